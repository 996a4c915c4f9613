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

static const char *hash_in(const struct lineage_item *item, const char *name)
{
    const json_t *file;
    size_t i;

    json_array_foreach(item->files, i, file)
    {
        if (strcmp(strict_json_text_or(file, "name", ""), name) == 0) {
            return strict_json_text_or(file, "sha256", "");
        }
    }
    return "";
}

/* Has the item all of these files; and are they the same? */
static bool has_files(bool *same, const struct lineage_item *item, json_t *files)
{
    const char *name;
    json_t *hash;

    *same = json_object_size(files) > 0;
    json_object_foreach(files, name, hash)
    {
        const char *found = hash_in(item, name);

        if (found[0] == '\0' || !json_is_string(hash)) {
            return false;
        }
        *same = *same && strcmp(found, json_string_value(hash)) == 0;
    }
    return *same || json_object_size(files) > 0;
}

/* The item of that kind that has all of these files; else one that has others under their names and
 * stands nowhere else, so that it is the one that was changed; or NULL. */
static struct lineage_item *find_item(bool *same, const struct lineage *lineage,
                                      const struct lineage_item *merged, enum lineage_kind kind,
                                      json_t *files)
{
    struct lineage_item *changed = NULL;

    for (size_t i = 0; i < lineage->count; i++) {
        struct lineage_item *item = &lineage->items[i];

        if (item != merged && item->kind == kind && has_files(same, item, files)) {
            if (*same) {
                return item;
            }
            changed = changed == NULL && item->roles == 0 ? item : changed;
        }
    }
    *same = false;
    return changed;
}

static void say_changed(struct lineage *lineage, struct lineage_item *item,
                        const struct lineage_item *merged, json_t *files)
{
    const char *name;
    json_t *hash;

    json_object_foreach(files, name, hash)
    {
        char path[FILE_PATH_MAX];

        if (strcmp(hash_in(item, name), json_string_value(hash)) != 0 &&
            file_path_join(path, sizeof(path), NULL, item->path, name) == STATUS_OK) {
            lineage_parts_say(lineage, LINEAGE_REFUTED, path,
                              "is not what %s was merged of: " MERGE_NOTE " there says the SHA-256 "
                              "%s",
                              merged->path, json_string_value(hash));
        }
    }
}

/* Finds one of the two. NULL: it was not given, or is another, which is said. */
static struct lineage_item *bind_item(struct lineage *lineage, struct lineage_item *merged,
                                      enum lineage_kind kind, const char *what, const json_t *note)
{
    json_t *files = json_object_get(note, what);
    bool same;
    struct lineage_item *item = find_item(&same, lineage, merged, kind, files);

    if (item == NULL) {
        lineage_parts_say(lineage, LINEAGE_MISSING, merged->path,
                          "the %s that " MERGE_NOTE " names", what);
        return NULL;
    }
    item->roles |= LINEAGE_BASE;
    if (!same) {
        say_changed(lineage, item, merged, files);
        return NULL;
    }
    return item;
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

        lineage_parts_say(lineage, read ? LINEAGE_REFUTED : LINEAGE_TRUSTED, paths[0],
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
    lineage_parts_say(lineage, LINEAGE_REFUTED, paths[0],
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
        lineage_parts_say(lineage, LINEAGE_PROVEN, item->path,
                          "is %s with the adapters of %s, byte for byte", base->path,
                          adapters->path);
    }
    return STATUS_OK;
}

static enum status merge_again(struct lineage *lineage, struct lineage_item *item,
                               struct lineage_item *base, struct lineage_item *adapters,
                               struct error *error)
{
    char scratch[FILE_PATH_MAX];
    char again[FILE_PATH_MAX];
    struct merged merged;
    enum status status;

    item->roles |= LINEAGE_PRODUCT;
    TRY(new_folder_scratch(scratch, error));
    TRY_OUT(file_path_join(again, sizeof(again), error, scratch, "model"));
    TRY_OUT(merge_folder(&merged, again, base->path, adapters->path, error));
    TRY_OUT(compare_folders(lineage, item, base, adapters, again, error));
out:
    file_remove_folder(scratch);
    return status;
}

enum status lineage_merge_check(struct lineage *lineage, struct lineage_item *item,
                                struct error *error)
{
    struct lineage_item *adapters;
    struct lineage_item *base;
    char path[FILE_PATH_MAX];
    json_t *note = NULL;
    struct error why;
    enum status status;

    error_init(&why);
    TRY_OUT(file_path_join(path, sizeof(path), &why, item->path, MERGE_NOTE));
    TRY_OUT(strict_json_read(&note, &why, path, NOTE_MAX, DEPTH_MAX));
    base = bind_item(lineage, item, LINEAGE_MODEL, "base", note);
    adapters = bind_item(lineage, item, LINEAGE_ADAPTERS, "adapters", note);
    if (base != NULL && adapters != NULL) {
        status = merge_again(lineage, item, base, adapters, &why);
    }
out:
    json_decref(note);
    return lineage_parts_end(lineage, item->path, status, &why, error);
}
