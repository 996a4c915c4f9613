/* vouch_intake.c - see vouch_intake.h. */
#include "prover/serve/vouch_intake.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "chain/job/vouch_box.h"

#define PLACE "vouch/"

struct vouch_intake {
    struct content_tree *tree;
    char name[HEX_SIZE(HASH32_SIZE)];
    uint8_t bytes[VOUCH_SIZE_MAX];
    size_t size;
};

static enum status take_begin(void *context, void **intake, const char *path, struct error *error)
{
    const size_t digits = HEX_SIZE(HASH32_SIZE) - 1;
    struct vouch_intake *made;

    if (strncmp(path, PLACE, strlen(PLACE)) != 0 || strlen(path) != strlen(PLACE) + digits) {
        return error_set(error, STATUS_NOT_FOUND,
                         "only " PLACE "HASH is taken in, of the hash of a segment");
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a vouch");
    }
    made->tree = context;
    memcpy(made->name, path + strlen(PLACE), digits);
    *intake = made;
    return STATUS_OK;
}

static enum status refuse_size(struct error *error)
{
    return error_set(error, STATUS_REFUSED,
                     "a vouch has %d bytes: a segment's hash and a signature; that of a contract "
                     "has %d at most",
                     VOUCH_SIZE, VOUCH_SIZE_MAX);
}

static enum status take_bytes(void *intake, const void *bytes, size_t size, struct error *error)
{
    struct vouch_intake *taking = intake;

    if (size > VOUCH_SIZE_MAX - taking->size) {
        return refuse_size(error);
    }
    memcpy(taking->bytes + taking->size, bytes, size);
    taking->size += size;
    return STATUS_OK;
}

/* Into the box of the first bundle whose job has the segment. */
static enum status keep_vouch(struct content_tree *tree, const struct vouch *vouch,
                              struct error *error)
{
    enum status status = error_set(error, STATUS_REFUSED, "no job that stands on a ledger is here");

    for (size_t i = 0; i < content_tree_bundle_count(tree) && status != STATUS_OK; i++) {
        struct askers *askers = content_tree_askers(tree, i);
        char folder[FILE_PATH_MAX];

        if (askers == NULL) {
            continue;
        }
        error_init(error);
        status = askers_admit_vouch(askers, vouch, error);
        if (status == STATUS_OK) {
            TRY(file_path_join(folder, sizeof(folder), error,
                               bundle_path(content_tree_bundle(tree, i)), VOUCH_BOX_NAME));
            return vouch_box_put(folder, vouch, error);
        }
    }
    return status;
}

static enum status take_end(void *intake, bool whole, struct error *error)
{
    struct vouch_intake *taken = intake;
    const struct game_bytes bytes = {taken->bytes, taken->size};
    char name[HEX_SIZE(HASH32_SIZE)];
    struct vouch vouch;
    enum status status = STATUS_OK;

    if (whole && !vouch_read(&vouch, &bytes)) {
        status = refuse_size(error);
    } else if (whole) {
        hex_encode(name, vouch.segment.bytes, HASH32_SIZE);
        status = strcmp(name, taken->name) == 0
                     ? keep_vouch(taken->tree, &vouch, error)
                     : error_set(error, STATUS_REFUSED, "the vouch is about another segment");
    }
    free(taken);
    return status;
}

struct serve_source vouch_intake_source(struct content_tree *tree)
{
    struct serve_source source = content_tree_source(tree);

    source.take_begin = take_begin;
    source.take = take_bytes;
    source.take_end = take_end;
    return source;
}
