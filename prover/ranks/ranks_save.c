/* ranks_save.c - see ranks_roots.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/whole_file.h"
#include "proofs/format/safetensors.h"
#include "prover/ranks/ranks_roots.h"

#define SAVE_NAME_MAX 256

/* Tags of what is said about one checkpoint, in this order. */
enum {
    TAG_FILE = 0x5346,
    TAG_TENSORS,
    TAG_PLACES,
    TAG_SEEN,
    TAG_GO,
    TAG_SAVED,
};

/* What rank 0 has made; which tensors go into it, and where, follows. */
struct save_file {
    char name[SAVE_NAME_MAX];
    uint64_t size;
};

/* How a rank fared, or what rank 0 makes of all that. */
struct save_word {
    uint32_t status;
    char text[ERROR_TEXT_MAX];
};

/* ---- what is said ----------------------------------------------------------------------- */

/* A failure leaves the ranks at several places. */
static enum status move_bytes(struct ranks_team *team, uint32_t peer, uint32_t tag, bool sends,
                              void *bytes, size_t size, struct error *error)
{
    /* To write takes what the disk takes. */
    const struct ranks_transfer transfer = {
        .peer = peer, .tag = tag, .sends = sends, .idle = !sends, .bytes = bytes, .size = size};

    if (team->link.exchange(team->link.context, &transfer, 1, error) != STATUS_OK) {
        error->status = STATUS_RANK_LOST;
        return STATUS_RANK_LOST;
    }
    return STATUS_OK;
}

static enum status say_others(struct ranks_team *team, uint32_t tag, const void *bytes, size_t size,
                              struct error *error)
{
    for (uint32_t rank = 1; rank < team->link.rank_count; rank++) {
        TRY(move_bytes(team, rank, tag, true, (void *)(uintptr_t)bytes, size, error));
    }
    return STATUS_OK;
}

static void write_word(struct save_word *word, enum status status, const struct error *error)
{
    *word = (struct save_word){.status = (uint32_t)status};
    if (status != STATUS_OK) {
        (void)snprintf(word->text, sizeof(word->text), "%s", error->text);
    }
}

/* Hears all others; *found: the first failure, with its rank. */
static enum status hear_others(enum status *found, struct ranks_team *team, uint32_t tag,
                               struct error *why, struct error *error)
{
    for (uint32_t rank = 1; rank < team->link.rank_count; rank++) {
        struct save_word word;

        TRY(move_bytes(team, rank, tag, false, &word, sizeof(word), error));
        word.text[sizeof(word.text) - 1] = '\0';
        if (word.status != STATUS_OK && *found == STATUS_OK) {
            *found = error_set(why, STATUS_IO, "rank %u (%s): %.900s", rank, team->peers[rank].host,
                               word.text);
        }
    }
    return STATUS_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

enum status ranks_save_open(int *file, const char *path, uint64_t size, struct error *error)
{
    struct stat about;

    /* O_NONBLOCK: opening a pipe must not wait for a reader. */
    *file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*file < 0) {
        return error_set_errno(error, "cannot open '%s'", path);
    }
    if (fstat(*file, &about) != 0 || !S_ISREG(about.st_mode) || (uint64_t)about.st_size != size) {
        (void)close(*file);
        *file = -1;
        return error_set(error, STATUS_IO, "'%s' is another file than rank 0 has made", path);
    }
    return STATUS_OK;
}

static void close_made(int file)
{
    if (file >= 0) {
        (void)close(file);
    }
}

static enum status write_share(int file, const char *path, const struct ranks_roots *roots,
                               const uint32_t *list, uint32_t at, uint64_t place,
                               struct error *error)
{
    struct ranks_share share;
    enum status status = ranks_roots_share(&share, roots, list, at, error);

    if (status == STATUS_OK && share.size > 0) {
        status =
            whole_file_write_at(file, error, share.bytes, share.size, place + share.first, path);
    }
    free(share.copy);
    return status;
}

/* All shares of this rank, on disk when it returns. */
static enum status write_shares(int file, struct ranks_roots *roots,
                                const struct machine_save *save, struct error *error)
{
    TRY(ranks_roots_deal(roots, save->tensors, save->count, error));
    for (uint32_t i = 0; i < save->count; i++) {
        TRY(write_share(file, save->path, roots, save->tensors, i, save->places[i], error));
    }
    return fsync(file) == 0 ? STATUS_OK : error_set_errno(error, "cannot write '%s'", save->path);
}

/* ---- rank 0 ----------------------------------------------------------------------------- */

static enum status say_file(struct ranks_team *team, const struct machine_save *save,
                            struct error *error)
{
    const char *slash = strrchr(save->path, '/');
    const char *name = slash == NULL ? save->path : slash + 1;
    struct save_file told = {.size = save->size};

    /* A longer name nobody sees. */
    (void)snprintf(told.name, sizeof(told.name), "%s", strlen(name) < SAVE_NAME_MAX ? name : "");
    TRY(say_others(team, TAG_FILE, &told, sizeof(told), error));
    TRY(say_others(team, TAG_TENSORS, save->tensors, save->count * sizeof(*save->tensors), error));
    return say_others(team, TAG_PLACES, save->places, save->count * sizeof(*save->places), error);
}

/* Writes the own shares while the others write theirs. */
static enum status save_all(int file, struct ranks_team *team, struct ranks_roots *roots,
                            const struct machine_save *save, struct error *error)
{
    struct error why;
    enum status found = STATUS_OK;
    enum status own = write_shares(file, roots, save, error);

    error_init(&why);
    TRY(hear_others(&found, team, TAG_SAVED, &why, error));
    if (own == STATUS_OK && found != STATUS_OK) {
        *error = why;
    }
    return own != STATUS_OK ? own : found;
}

enum status ranks_save_lead(bool *seen, struct ranks_team *team, struct ranks_roots *roots,
                            const struct machine_save *save, struct error *error)
{
    enum status found = STATUS_OK;
    enum status status;
    struct save_word word;
    struct error why;
    int file = -1;

    *seen = false;
    error_init(&why);
    TRY_OUT(say_file(team, save, error));
    TRY_OUT(hear_others(&found, team, TAG_SEEN, &why, error));
    found = found == STATUS_OK ? ranks_save_open(&file, save->path, save->size, &why) : found;
    write_word(&word, found, &why);
    TRY_OUT(say_others(team, TAG_GO, &word, sizeof(word), error));
    *seen = found == STATUS_OK;
    if (*seen) {
        TRY_OUT(save_all(file, team, roots, save, error));
    } else {
        *error = why;
    }
out:
    close_made(file);
    return status;
}

/* ---- another rank ------------------------------------------------------------------------ */

static bool is_sound(const struct save_file *told, const struct machine_save *save,
                     const struct tape *tape)
{
    bool sound = memchr(told->name, '\0', sizeof(told->name)) != NULL &&
                 strchr(told->name, '/') == NULL && told->name[0] != '\0';

    for (uint32_t i = 0; i < save->count && sound; i++) {
        const uint32_t tensor = save->tensors[i];

        sound = tensor < tape->tensor_count && tape->tensors[tensor].role == ROLE_STATE &&
                save->places[i] <= told->size &&
                tensor_size(&tape->tensors[tensor]) <= told->size - save->places[i];
    }
    return sound;
}

/* Says how it fared, and returns what of that ends the run. */
static enum status say_first(struct ranks_team *team, uint32_t tag, enum status own,
                             const struct error *why, struct error *error)
{
    struct save_word word;

    write_word(&word, own, why);
    return move_bytes(team, 0, tag, true, &word, sizeof(word), error);
}

/* The most bytes of a checkpoint of this tape. */
static uint64_t size_most(const struct tape *tape)
{
    uint64_t size = SAFETENSORS_HEADER_MAX + sizeof(uint64_t);

    for (uint32_t i = 0; i < tape->state_count; i++) {
        size += tensor_size(&tape->tensors[tape->states[i].before]);
    }
    return size;
}

/* A rank 0 that lies cannot make this rank write to a finished checkpoint, or to a huge file. */
static enum status open_told(int *file, char path[FILE_PATH_MAX], const char *folder,
                             const struct save_file *told, const struct tape *tape,
                             struct error *error)
{
    if (folder == NULL) {
        return error_set(error, STATUS_IO, "it sees no folder of checkpoints");
    }
    if (!whole_file_is_part(told->name)) {
        return error_set(error, STATUS_REFUSED, "'%s' is no file that is being written",
                         told->name);
    }
    if (told->size > size_most(tape)) {
        return error_set(error, STATUS_REFUSED, "'%s' is larger than a checkpoint of this job",
                         told->name);
    }
    TRY(file_path_join(path, FILE_PATH_MAX, error, folder, told->name));
    return ranks_save_open(file, path, told->size, error);
}

static enum status follow_file(struct ranks_team *team, struct ranks_roots *roots,
                               const char *folder, const struct save_file *told,
                               const struct machine_save *save, struct error *error)
{
    struct machine_save own_save = *save;
    char path[FILE_PATH_MAX] = "";
    struct save_word word;
    struct error why;
    int file = -1;
    enum status own;
    enum status status;

    error_init(&why);
    own = open_told(&file, path, folder, told, roots->step->whole, &why);
    TRY_OUT(say_first(team, TAG_SEEN, own, &why, error));
    TRY_OUT(move_bytes(team, 0, TAG_GO, false, &word, sizeof(word), error));
    if (word.status == STATUS_OK && own == STATUS_OK) {
        own_save.path = path;
        own = write_shares(file, roots, &own_save, &why);
        TRY_OUT(say_first(team, TAG_SAVED, own, &why, error));
    }
out:
    close_made(file);
    return status;
}

enum status ranks_save_follow(struct ranks_team *team, struct ranks_roots *roots,
                              const char *folder, uint32_t count, struct error *error)
{
    const struct tape *tape = roots->step->whole;
    uint32_t *tensors = calloc((size_t)tape->state_count + 1, sizeof(*tensors));
    uint64_t *places = calloc((size_t)tape->state_count + 1, sizeof(*places));
    struct machine_save save = {.tensors = tensors, .places = places, .count = count};
    struct save_file told;
    enum status status = STATUS_OK;

    if (tensors == NULL || places == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states", count));
    }
    if (count > tape->state_count) {
        TRY_OUT(error_set(error, STATUS_RANK_LOST, "rank 0 speaks of %u states of %u", count,
                          tape->state_count));
    }
    TRY_OUT(move_bytes(team, 0, TAG_FILE, false, &told, sizeof(told), error));
    TRY_OUT(move_bytes(team, 0, TAG_TENSORS, false, tensors, count * sizeof(*tensors), error));
    TRY_OUT(move_bytes(team, 0, TAG_PLACES, false, places, count * sizeof(*places), error));
    if (!is_sound(&told, &save, tape)) {
        TRY_OUT(error_set(error, STATUS_RANK_LOST, "rank 0 speaks of a checkpoint that is none"));
    }
    TRY_OUT(follow_file(team, roots, folder, &told, &save, error));
out:
    free(tensors);
    free(places);
    return status;
}
