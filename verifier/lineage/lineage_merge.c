/* lineage_merge.c - see lineage_merge.h. */
#include "verifier/lineage/lineage_merge.h"

#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/text.h"
#include "proofs/format/new_folder.h"
#include "proofs/model/file_hash.h"
#include "proofs/model/merge_folder.h"

enum { NOTE_MAX = 1 << 20, DEPTH_MAX = 4 };

bool lineage_merge_is(const struct lineage_item *item)
{
    return item->kind == LINEAGE_MODEL && lineage_parts_has(item->path, MERGE_NOTE);
}

/* One of the two folders that the note names. */
struct merge_part {
    const char *what;
    enum lineage_kind kind;
    json_t *files;             /* of the note: names and SHA-256 */
    struct lineage_item *item; /* with these files; NULL: it was not given */
    bool same;                 /* no: one of its files is another */
};

/* How many of these files has the item; and has it others under these names? */
static size_t count_files(bool *all, const struct lineage_item *item, json_t *files)
{
    const char *name;
    json_t *hash;
    size_t same = 0;

    *all = true;
    json_object_foreach(files, name, hash)
    {
        const char *found = lineage_parts_file(item, name);

        *all = *all && found != NULL;
        same += found != NULL && strcmp(found, json_string_value(hash)) == 0;
    }
    return same;
}

/* The item that has all of these files; else one that has some of them, and others under the names
 * of the rest: there, or in the note, something was changed. */
static void find_item(struct merge_part *part, const struct lineage *lineage,
                      const struct lineage_item *merged)
{
    for (size_t i = 0; i < lineage->count && !part->same; i++) {
        struct lineage_item *item = &lineage->items[i];
        bool all;
        const size_t same = count_files(&all, item, part->files);

        if (item == merged || item->kind != part->kind || !all || same == 0) {
            continue;
        }
        part->same = same == json_object_size(part->files);
        part->item = part->same || part->item == NULL ? item : part->item;
    }
}

/* It must name files by their SHA-256. */
static enum status take_files(struct merge_part *part, const json_t *note, struct error *error)
{
    struct digest hash;
    const char *name;
    json_t *hex;
    bool good;

    part->files = json_object_get(note, part->what);
    good = json_object_size(part->files) > 0;
    json_object_foreach(part->files, name, hex)
    {
        good = good && strchr(name, '/') == NULL && json_is_string(hex) &&
               hex_decode(hash.bytes, DIGEST_SIZE, json_string_value(hex),
                          json_string_length(hex)) == STATUS_OK;
    }
    return good ? STATUS_OK
                : error_set(error, STATUS_BAD_FORMAT,
                            MERGE_NOTE " names no files with their SHA-256 under '%s'", part->what);
}

/* Does its card say that a run makes it that was given? Then that run is asked about its bytes. */
static bool is_made_here(const struct lineage *lineage, const struct lineage_item *item)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const struct bundle *bundle = lineage->items[i].bundle;

        if (bundle != NULL && item->card.job_known &&
            digest_equal(&item->card.job, &bundle_job(bundle)->id)) {
            return true;
        }
    }
    return false;
}

static void say_changed(struct lineage *lineage, const struct merge_part *part,
                        const struct lineage_item *merged)
{
    const char *name;
    json_t *hash;

    json_object_foreach(part->files, name, hash)
    {
        const char *found = lineage_parts_file(part->item, name);
        char path[FILE_PATH_MAX];

        if (found != NULL && strcmp(found, json_string_value(hash)) != 0 &&
            file_path_join(path, sizeof(path), NULL, part->item->path, name) == STATUS_OK) {
            findings_say(&lineage->findings, FINDING_REFUTED, path,
                         "is not what %s was merged of: " MERGE_NOTE " there says the SHA-256 "
                         "%s",
                         merged->path, json_string_value(hash));
        }
    }
}

/* Of a part that is not there as the note says. */
static void say_part(struct lineage *lineage, const struct merge_part *part,
                     const struct lineage_item *merged)
{
    if (part->item == NULL || (!part->same && is_made_here(lineage, part->item))) {
        findings_say(&lineage->findings, FINDING_MISSING, merged->path,
                     "the %s that " MERGE_NOTE " names", part->what);
        return;
    }
    part->item->roles |= LINEAGE_BASE;
    if (!part->same) {
        say_changed(lineage, part, merged);
    }
}

/* One file of the item against the one that was made again. */
static enum status compare_file(bool *same, struct lineage *lineage, struct lineage_item *item,
                                json_t *file, const char *again, struct error *error)
{
    const char *name = strict_json_text_or(file, "name", "");
    char paths[2][FILE_PATH_MAX];
    char hex[HEX_SIZE(DIGEST_SIZE)];
    struct digest hash;
    uint64_t size;

    TRY(file_path_join(paths[0], sizeof(paths[0]), error, item->path, name));
    TRY(file_path_join(paths[1], sizeof(paths[1]), error, again, name));
    if (!file_exists(paths[1])) {
        const bool read =
            text_ends_with(name, ".safetensors") || text_ends_with(name, ".index.json");

        findings_say(&lineage->findings, read ? FINDING_REFUTED : FINDING_TRUSTED, paths[0],
                     read ? "is none of the merged model's files"
                          : "what it says: a merge does not write it");
        *same = *same && !read;
        return STATUS_OK;
    }
    TRY(file_hash(&hash, &size, paths[1], error));
    hex_encode(hex, hash.bytes, DIGEST_SIZE);
    if (strcmp(hex, strict_json_text_or(file, "sha256", "")) == 0) {
        (void)json_object_set_new(file, "proven", json_true());
        return STATUS_OK;
    }
    findings_say(&lineage->findings, FINDING_REFUTED, paths[0],
                 "is not what base and adapters make: that has the SHA-256 %s", hex);
    *same = false;
    return STATUS_OK;
}

static enum status compare_folders(struct lineage *lineage, struct lineage_item *item,
                                   const struct lineage_item *base,
                                   const struct lineage_item *adapters, const char *again,
                                   struct error *error)
{
    bool same = lineage_parts_has(item->path, "model.safetensors") &&
                lineage_parts_has(item->path, "config.json");
    json_t *file;
    size_t i;

    json_array_foreach(item->files, i, file)
    {
        TRY(compare_file(&same, lineage, item, file, again, error));
    }
    if (same) {
        findings_say(&lineage->findings, FINDING_PROVEN, item->path,
                     "is %s with the adapters of %s, byte for byte", base->path, adapters->path);
    }
    return STATUS_OK;
}

/* Are the weights the same that were made again? */
static bool has_weights_of(const struct lineage_item *item, const char *again)
{
    const char *said = lineage_parts_file(item, "model.safetensors");
    char hex[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];
    struct digest hash;
    uint64_t size;

    if (said == NULL ||
        file_path_join(path, sizeof(path), NULL, again, "model.safetensors") != STATUS_OK ||
        file_hash(&hash, &size, path, NULL) != STATUS_OK) {
        return false;
    }
    hex_encode(hex, hash.bytes, DIGEST_SIZE);
    return strcmp(said, hex) == 0;
}

/*
 * Merges the two again. Where one of their files is not the note's, they are the two if they make
 * these weights: then the note is what was changed.
 */
static enum status merge_again(struct lineage *lineage, struct lineage_item *item,
                               const struct merge_part parts[2], struct error *error)
{
    struct lineage_item *base = parts[0].item;
    struct lineage_item *adapters = parts[1].item;
    const bool named = parts[0].same && parts[1].same;
    char scratch[FILE_PATH_MAX];
    char again[FILE_PATH_MAX];
    struct merged merged;
    enum status status;

    TRY(new_folder_scratch(scratch, error));
    TRY_OUT(file_path_join(again, sizeof(again), error, scratch, "model"));
    status = merge_folder(&merged, again, base->path, adapters->path, error);
    if (named ? status == STATUS_OK : status == STATUS_OK && has_weights_of(item, again)) {
        item->roles |= LINEAGE_PRODUCT;
        base->roles |= LINEAGE_BASE;
        adapters->roles |= LINEAGE_BASE;
        status = compare_folders(lineage, item, base, adapters, again, error);
    } else if (!named && status != STATUS_NO_MEMORY) {
        say_part(lineage, &parts[0], item);
        say_part(lineage, &parts[1], item);
        status = STATUS_OK;
    }
out:
    file_remove_folder(scratch);
    return status;
}

enum status lineage_merge_check(struct lineage *lineage, struct lineage_item *item,
                                struct error *error)
{
    struct merge_part parts[2] = {{.what = "base", .kind = LINEAGE_MODEL},
                                  {.what = "adapters", .kind = LINEAGE_ADAPTERS}};
    char path[FILE_PATH_MAX];
    json_t *note = NULL;
    struct error why;
    enum status status;

    error_init(&why);
    TRY_OUT(file_path_join(path, sizeof(path), &why, item->path, MERGE_NOTE));
    TRY_OUT(strict_json_read(&note, &why, path, NOTE_MAX, DEPTH_MAX));
    for (int i = 0; i < 2; i++) {
        TRY_OUT(take_files(&parts[i], note, &why));
        find_item(&parts[i], lineage, item);
    }
    if (parts[0].item != NULL && parts[1].item != NULL) {
        status = merge_again(lineage, item, parts, &why);
    } else {
        say_part(lineage, &parts[0], item);
        say_part(lineage, &parts[1], item);
    }
out:
    json_decref(note);
    return lineage_parts_end(lineage, item->path, status, &why, error);
}
