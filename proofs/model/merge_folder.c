/* merge_folder.c - see merge_folder.h. */
#include "proofs/model/merge_folder.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "base/text.h"
#include "proofs/format/base_config.h"
#include "proofs/format/new_folder.h"
#include "proofs/format/weights.h"
#include "proofs/model/adapter.h"
#include "proofs/model/adapter_config.h"
#include "proofs/model/file_hash.h"
#include "proofs/model/model_root.h"

#define WEIGHT ".weight"

struct merging {
    struct weights base;
    struct weights adapters;
    const char *base_folder;
    const char *adapter_folder;
    double scale;
    bool in_first; /* matrices of GPT-2 are (in, out) */
    uint32_t used; /* tensors of the adapters */
    char part[FILE_PATH_MAX];
    struct merged *merged;
};

/* The two parts of a weight's adapter; NULL where it has none. */
struct merge_parts {
    const struct weights_entry *a;
    const struct weights_entry *b;
    bool tokens; /* beside an embedding */
};

static const struct weights_entry *find_part(const struct merging *merging, const char *module,
                                             const char *end)
{
    char name[WEIGHTS_NAME_MAX + 32];

    (void)snprintf(name, sizeof(name), "%s%s", module, end);
    return weights_find_plain(&merging->adapters, name);
}

static struct merge_parts find_parts(const struct merging *merging, const char *name)
{
    char module[WEIGHTS_NAME_MAX + 1];
    struct merge_parts parts = {0};

    if (!text_ends_with(name, WEIGHT)) {
        return parts;
    }
    weights_plain_name(module, name);
    module[strlen(module) - strlen(WEIGHT)] = '\0';
    parts.a = find_part(merging, module, LORA_A);
    parts.b = find_part(merging, module, LORA_B);
    if (parts.a == NULL && parts.b == NULL) {
        parts.a = find_part(merging, module, LORA_TOKENS_A);
        parts.b = find_part(merging, module, LORA_TOKENS_B);
        parts.tokens = true;
    }
    return parts;
}

static enum status check_parts(const struct merge_parts *parts, const char *name, uint64_t count,
                               struct error *error)
{
    const struct weights_entry *const both[] = {parts->a, parts->b};

    for (int i = 0; i < 2; i++) {
        if (both[i]->entry->rank != 2 || !weights_widen(both[i]->entry->element)) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' is no matrix of F32, F16 or BF16",
                             both[i]->entry->name);
        }
    }
    return parts->a->entry->dims[1] * parts->b->entry->dims[0] == count &&
                   parts->a->entry->dims[0] == parts->b->entry->dims[1]
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "'%s' is no adapter of '%s': other shapes",
                           parts->a->entry->name, name);
}

static enum status read_part(float **values, const struct weights_entry *part, struct error *error)
{
    const uint64_t count = part->entry->dims[0] * part->entry->dims[1];

    *values = malloc((size_t)count * sizeof(**values) + 1);
    return *values == NULL
               ? error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", part->entry->name)
               : weights_read(*values, part, 0, count, error);
}

static enum status add_adapter(float *values, struct merging *merging,
                               const struct merge_parts *parts, struct error *error)
{
    const struct adapter adapter = {.a = parts->a->entry,
                                    .b = parts->b->entry,
                                    .scale = merging->scale,
                                    .tokens = parts->tokens};
    float *a = NULL;
    float *b = NULL;
    enum status status;

    TRY_OUT(read_part(&a, parts->a, error));
    TRY_OUT(read_part(&b, parts->b, error));
    adapter_add(values, a, b, &adapter, merging->in_first || adapter.tokens);
    merging->used += 2;
    merging->merged->adapters++;
out:
    free(a);
    free(b);
    return status;
}

/* ---- the weights -------------------------------------------------------------- */

static enum status write_tensor(struct safetensors_writer *writer, struct merging *merging,
                                const struct weights_entry *from, struct error *error)
{
    const struct merge_parts parts = find_parts(merging, from->entry->name);
    const uint64_t count = from->entry->size / element_size(from->entry->element);
    float *values = malloc((size_t)count * sizeof(*values) + 1);
    enum status status;

    if (values == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", from->entry->name);
    }
    TRY_OUT(weights_read(values, from, 0, count, error));
    if ((parts.a == NULL) != (parts.b == NULL)) {
        status = error_set(error, STATUS_BAD_FORMAT, "'%s' has one part of an adapter alone",
                           from->entry->name);
        goto out;
    }
    if (parts.a != NULL && parts.b != NULL) {
        TRY_OUT(check_parts(&parts, from->entry->name, count, error));
        TRY_OUT(add_adapter(values, merging, &parts, error));
    }
    TRY_OUT(safetensors_writer_add(writer, error, values, (size_t)count * sizeof(*values)));
out:
    free(values);
    return status;
}

/* Every tensor of the adapters must have been added to a weight. */
static enum status check_used(const struct merging *merging, struct error *error)
{
    return merging->used == merging->adapters.entry_count && merging->used > 0
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED,
                           "%s: %u of its %u tensors are adapters of weights of %s",
                           merging->adapter_folder, merging->used, merging->adapters.entry_count,
                           merging->base_folder);
}

static enum status write_weights(struct merging *merging, struct error *error)
{
    static const struct safetensors_text pytorch[] = {{"format", "pt"}};
    struct safetensors_entry *entries = calloc(merging->base.entry_count + 1, sizeof(*entries));
    struct safetensors_writer writer;
    char path[FILE_PATH_MAX];
    uint32_t count = 0;
    enum status status;

    if (entries == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a model");
    }
    for (uint32_t i = 0; i < merging->base.entry_count; i++) {
        if (weights_widen(merging->base.entries[i].entry->element)) {
            entries[count] = *merging->base.entries[i].entry;
            entries[count++].element = ELEMENT_F32;
        }
    }
    TRY_OUT(file_path_join(path, sizeof(path), error, merging->part, "model.safetensors"));
    TRY_OUT(safetensors_writer_open(&writer, error, path, entries, count, pytorch, 1));
    for (uint32_t i = 0; i < merging->base.entry_count && status == STATUS_OK; i++) {
        if (weights_widen(merging->base.entries[i].entry->element)) {
            status = write_tensor(&writer, merging, &merging->base.entries[i], error);
        }
    }
    status = status == STATUS_OK ? check_used(merging, error) : status;
    status = safetensors_writer_end(&writer, status, error);
out:
    free(entries);
    return status;
}

/* ---- beside them --------------------------------------------------------------- */

static enum status write_config(const struct merging *merging, struct error *error)
{
    json_t *config = NULL;
    char path[FILE_PATH_MAX];

    TRY(file_path_join(path, sizeof(path), error, merging->base_folder, BASE_CONFIG_NAME));
    TRY(strict_json_read(&config, error, path, BASE_CONFIG_SIZE_MAX, STRICT_JSON_DEPTH_MAX));
    return new_folder_config(merging->part, config, "float32", 0, error);
}

/* "NAME": SHA-256, of a file's path. */
static enum status note_file(json_t *files, const char *path, struct error *error)
{
    struct digest hash;
    uint64_t size;

    TRY(file_hash(&hash, &size, path, error));
    (void)json_object_set_new(files, text_last_part(path), strict_json_digest(&hash));
    return STATUS_OK;
}

static enum status note_folder(json_t *note, const char *what, const char *folder,
                               const char *config, const struct weights *weights,
                               struct error *error)
{
    json_t *files = json_object();
    char path[FILE_PATH_MAX];

    (void)json_object_set_new(note, what, files);
    TRY(file_path_join(path, sizeof(path), error, folder, config));
    TRY(note_file(files, path, error));
    for (uint32_t i = 0; i < weights->file_count; i++) {
        TRY(note_file(files, weights->paths[i], error));
    }
    return STATUS_OK;
}

static enum status write_note(const struct merging *merging, struct error *error)
{
    json_t *note = json_pack("{s:s, s:f}", "rule", "W + scale * B A", "scale", merging->scale);
    enum status status;

    if (note == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for " MERGE_NOTE);
    }
    status =
        note_folder(note, "base", merging->base_folder, BASE_CONFIG_NAME, &merging->base, error);
    if (status == STATUS_OK) {
        status = note_folder(note, "adapters", merging->adapter_folder, ADAPTER_CONFIG_NAME,
                             &merging->adapters, error);
    }
    if (status != STATUS_OK) {
        json_decref(note);
        return status;
    }
    return new_folder_json(merging->part, MERGE_NOTE, note, 0, error);
}

static enum status write_parts(struct merging *merging, struct error *error)
{
    uint32_t count;

    TRY(write_weights(merging, error));
    TRY(write_config(merging, error));
    TRY(new_folder_copy_rest(merging->part, merging->base_folder, error));
    TRY(write_note(merging, error));
    return model_root_of(&merging->merged->root, &count, merging->part, error);
}

/* ---- the folder ----------------------------------------------------------------- */

static enum status open_both(struct merging *merging, struct error *error)
{
    struct base_config config;
    char path[FILE_PATH_MAX];
    struct lora lora = {0};

    TRY(base_config_read(&config, merging->base_folder, error));
    TRY(adapter_config_read(&lora, merging->adapter_folder, error));
    merging->scale = lora.alpha / (double)lora.rank;
    TRY(weights_open(&merging->base, merging->base_folder, error));
    merging->in_first = weights_find_plain(&merging->base, "wte.weight") != NULL;
    TRY(file_path_join(path, sizeof(path), error, merging->adapter_folder, WEIGHTS_ADAPTERS_NAME));
    return weights_open(&merging->adapters, path, error);
}

enum status merge_folder(struct merged *merged, const char *out, const char *base,
                         const char *adapters, struct error *error)
{
    struct merging merging = {.base_folder = base, .adapter_folder = adapters, .merged = merged};
    enum status status;

    *merged = (struct merged){0};
    TRY_OUT(open_both(&merging, error));
    TRY_OUT(new_folder_begin(merging.part, out, error));
    status = new_folder_end(merging.part, out, write_parts(&merging, error), error);
out:
    weights_close(&merging.base);
    weights_close(&merging.adapters);
    return status;
}
