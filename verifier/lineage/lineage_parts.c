/* lineage_parts.c - see lineage_parts.h. */
#include "verifier/lineage/lineage_parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/io/whole_file.h"
#include "base/text.h"
#include "proofs/format/base_config.h"
#include "proofs/hash/sha256.h"
#include "proofs/model/file_hash.h"
#include "proofs/model/model_root.h"
#include "proofs/receipt/receipt.h"

enum {
    PIECE_SIZE = 1 << 20,
    NAMES_MAX = 4096, /* files of a folder */
};

/* ---- sentences ------------------------------------------------------------ */

void lineage_parts_blame(struct lineage *lineage, const char *path, const struct error *error)
{
    findings_say(&lineage->findings, findings_of(error), path, "%s", error->text);
}

enum status lineage_parts_end(struct lineage *lineage, const char *path, enum status status,
                              const struct error *why, struct error *error)
{
    if (status == STATUS_NO_MEMORY) {
        *error = *why;
        return status;
    }
    if (status != STATUS_OK) {
        lineage_parts_blame(lineage, path, why);
    }
    return STATUS_OK;
}

const char *lineage_parts_file(const struct lineage_item *item, const char *name)
{
    const json_t *file;
    size_t i;

    json_array_foreach(item->files, i, file)
    {
        if (strcmp(strict_json_text_or(file, "name", ""), name) == 0) {
            return strict_json_text_or(file, "sha256", NULL);
        }
    }
    return NULL;
}

const char *lineage_parts_loss(char text[LINEAGE_LOSS_MAX], const json_t *figures)
{
    const json_t *loss = json_object_get(figures, "loss");

    if (json_is_number(loss)) {
        (void)snprintf(text, LINEAGE_LOSS_MAX, "%.6f", json_number_value(loss));
    } else {
        (void)snprintf(text, LINEAGE_LOSS_MAX, "that is no finite number (bits %.8s)",
                       strict_json_text_or(figures, "loss_bits", "unknown"));
    }
    return text;
}

bool lineage_parts_is_blamed(const struct lineage *lineage, const char *path)
{
    static const enum finding lists[] = {FINDING_REFUTED, FINDING_NOT_TOLD};
    json_t *wanted = findings_text(path);
    bool found = false;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_t *said;
        size_t at;

        json_array_foreach(lineage->findings.lists[lists[i]], at, said)
        {
            found = found || json_equal(json_object_get(said, "file"), wanted);
        }
    }
    json_decref(wanted);
    return found;
}

/* ---- files ---------------------------------------------------------------- */

bool lineage_parts_has(const char *folder, const char *name)
{
    char path[FILE_PATH_MAX];

    return file_path_join(path, sizeof(path), NULL, folder, name) == STATUS_OK && file_exists(path);
}

/* name NULL: the path is the file. */
static enum status note_file(struct lineage_item *item, const char *name, struct error *error)
{
    char path[FILE_PATH_MAX];
    char hex[HEX_SIZE(DIGEST_SIZE)];
    struct digest sha256;
    uint64_t size = 0;

    if (name == NULL) {
        TRY(file_hash(&sha256, &size, item->path, error));
    } else {
        TRY(file_path_join(path, sizeof(path), error, item->path, name));
        TRY(file_hash(&sha256, &size, path, error));
    }
    hex_encode(hex, sha256.bytes, DIGEST_SIZE);
    (void)json_array_append_new(item->files, json_pack("{s:o, s:s, s:I}", "name",
                                                       findings_text(name == NULL ? "" : name),
                                                       "sha256", hex, "size", (json_int_t)size));
    return STATUS_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The regular files of a folder, by their names. */
static enum status note_folder(struct lineage_item *item, struct error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(item->path, &entries, is_shown, by_name);
    enum status status = STATUS_OK;

    if (count < 0) {
        return error_set_errno(error, "cannot list %s", item->path);
    }
    if (count > NAMES_MAX) {
        status =
            error_set(error, STATUS_OVER_LIMIT, "%s has more than %d files", item->path, NAMES_MAX);
    }
    for (int i = 0; i < count; i++) {
        char path[FILE_PATH_MAX];
        struct stat about;

        if (status == STATUS_OK) {
            status = file_path_join(path, sizeof(path), error, item->path, entries[i]->d_name);
        }
        if (status == STATUS_OK && stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
            status = note_file(item, entries[i]->d_name, error);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* ---- what it is ----------------------------------------------------------- */

static enum lineage_kind kind_of_folder(const char *path)
{
    if (lineage_parts_has(path, "job") && lineage_parts_has(path, "journal.db")) {
        return LINEAGE_RUN;
    }
    if (lineage_parts_has(path, MANIFEST_NAME)) {
        return LINEAGE_ROWS;
    }
    if (lineage_parts_has(path, "adapter_config.json")) {
        return LINEAGE_ADAPTERS;
    }
    return lineage_parts_has(path, BASE_CONFIG_NAME) ? LINEAGE_MODEL : LINEAGE_UNKNOWN;
}

static enum status find_kind(struct lineage_item *item, struct error *error)
{
    struct stat about;

    if (stat(item->path, &about) != 0) {
        return error_set_errno(error, "cannot open %s", item->path);
    }
    if (S_ISDIR(about.st_mode)) {
        item->kind = kind_of_folder(item->path);
        return item->kind != LINEAGE_UNKNOWN
                   ? STATUS_OK
                   : error_set(
                         error, STATUS_NOT_FOUND,
                         "%s is no folder of a model, of adapters, of packed rows or of a run",
                         item->path);
    }
    item->kind = text_ends_with(item->path, ".safetensors") ? LINEAGE_MODEL
                 : receipt_is(item->path)                   ? LINEAGE_RECEIPT
                                                            : LINEAGE_TOKENS;
    return STATUS_OK;
}

static enum status open_weights(struct lineage_item *item, struct error *error)
{
    char path[FILE_PATH_MAX];
    uint32_t count;

    (void)snprintf(path, sizeof(path), "%s", item->path);
    if (item->kind == LINEAGE_ADAPTERS) {
        TRY(file_path_join(path, sizeof(path), error, item->path, WEIGHTS_ADAPTERS_NAME));
    }
    TRY(weights_open(&item->weights, path, error));
    if (item->weights.file_count == 1 &&
        safetensors_metadata(&item->weights.files[0], "lockstep.job") != NULL) {
        item->kind = LINEAGE_STATE; /* its root follows from the tape of its job */
        return STATUS_OK;
    }
    TRY(model_root(&item->root, &count, &item->weights, error));
    item->root_tag = "lockstep.state.v1";
    return STATUS_OK;
}

static enum status open_run(struct lineage_item *item, struct error *error)
{
    TRY(bundle_open(&item->bundle, item->path, BUNDLE_READ, error));
    item->root = bundle_job(item->bundle)->id;
    item->root_tag = "lockstep.job.v1";
    return note_file(item, "job", error);
}

static enum status open_item(struct lineage_item *item, struct error *error)
{
    TRY(find_kind(item, error));
    switch (item->kind) {
    case LINEAGE_RUN:
        return open_run(item, error);
    case LINEAGE_ROWS:
        TRY(note_folder(item, error));
        return manifest_read(&item->manifest, error, item->path);
    case LINEAGE_MODEL:
    case LINEAGE_STATE:
    case LINEAGE_ADAPTERS: {
        struct stat about;
        const bool folder = stat(item->path, &about) == 0 && S_ISDIR(about.st_mode);

        TRY(folder ? note_folder(item, error) : note_file(item, NULL, error));
        if (folder) {
            model_card_read(&item->card, item->path);
        }
        return open_weights(item, error);
    }
    case LINEAGE_RECEIPT:
    case LINEAGE_TOKENS:
    case LINEAGE_UNKNOWN:
        break;
    }
    return note_file(item, NULL, error);
}

/* ---- all of them ----------------------------------------------------------- */

enum status lineage_parts_open(struct lineage *lineage, const char *const *paths, size_t count,
                               const struct lineage_options *options, struct error *error)
{
    lineage->options = options;
    TRY(findings_init(&lineage->findings, error));
    lineage->items = calloc(count + 1, sizeof(*lineage->items));
    lineage->figures = json_array();
    if (lineage->items == NULL || lineage->figures == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a lineage");
    }
    for (size_t i = 0; i < count; i++) {
        struct lineage_item *item = &lineage->items[lineage->count++];
        struct error why;

        error_init(&why);
        *item = (struct lineage_item){.path = paths[i],
                                      .files = json_array(),
                                      .base = SIZE_MAX,
                                      .first = SIZE_MAX,
                                      .run = SIZE_MAX};
        error_init(&item->audit.reason);
        if (item->files == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a lineage");
        }
        if (open_item(item, &why) != STATUS_OK) {
            lineage_parts_blame(lineage, item->path, &why);
            item->kind = LINEAGE_UNKNOWN;
        }
    }
    return STATUS_OK;
}

static void close_item(struct lineage_item *item)
{
    json_decref(item->files);
    weights_close(&item->weights);
    manifest_release(&item->manifest);
    bundle_close(item->bundle);
    data_paths_close(&item->data);
    audit_result_release(&item->audit);
}

void lineage_parts_close(struct lineage *lineage)
{
    for (size_t i = 0; i < lineage->count; i++) {
        close_item(&lineage->items[i]);
    }
    free(lineage->items);
    findings_release(&lineage->findings);
    json_decref(lineage->figures);
}
