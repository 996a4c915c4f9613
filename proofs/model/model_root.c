/* model_root.c - see model_root.h. */
#include "proofs/model/model_root.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_SIZE ((size_t)4 << 20)

static enum status describe_tensor(struct tensor *tensor, const struct weights_entry *from,
                                   struct error *error)
{
    const struct safetensors_entry *entry = from->entry;

    *tensor = (struct tensor){.role = ROLE_TEMPORARY, .rank = entry->rank, .count = 1};
    if (strlen(entry->name) > TENSOR_NAME_MAX || entry->rank > TENSOR_RANK_MAX ||
        !element_dtype(&tensor->dtype, entry->element)) {
        return error_set(error, STATUS_REFUSED,
                         "'%s': a name, type or shape that no model here has", entry->name);
    }
    (void)snprintf(tensor->name, sizeof(tensor->name), "%s", entry->name);
    for (uint32_t i = 0; i < entry->rank; i++) {
        tensor->dims[i] = entry->dims[i];
        tensor->count *= entry->dims[i];
    }
    if (!commit_tensor_sound(tensor) || commit_tensor_size(tensor) != entry->size) {
        return error_set(error, STATUS_REFUSED,
                         "'%s': a name, type or shape that no model here has", entry->name);
    }
    return STATUS_OK;
}

enum status model_tensor_root(struct digest *root, enum commit_array kind,
                              const struct tensor *tensor, const struct weights_entry *from,
                              struct error *error)
{
    const uint64_t size = commit_tensor_size(tensor);
    uint8_t *piece = malloc(PIECE_SIZE);
    struct commit_stream stream;
    enum status status = STATUS_OK;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read '%s'", tensor->name);
    }
    commit_stream_init(&stream, kind, tensor);
    for (uint64_t at = 0; at < size; at += PIECE_SIZE) {
        const size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        TRY_OUT(safetensors_read(from->file, error, piece, from->entry, taken, at));
        commit_stream_add(&stream, piece, taken, 0);
    }
    commit_stream_root(&stream, root);
out:
    free(piece);
    return status;
}

enum status model_root(struct digest *root, uint32_t *count, const struct weights *weights,
                       struct error *error)
{
    struct commit_roots roots;

    *count = weights->entry_count;
    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < weights->entry_count; i++) { /* sorted by name */
        struct tensor tensor;
        struct digest one;

        TRY(describe_tensor(&tensor, &weights->entries[i], error));
        TRY(model_tensor_root(&one, COMMIT_TENSOR, &tensor, &weights->entries[i], error));
        TRY(commit_roots_add(&roots, &one));
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}

enum status model_root_of(struct digest *root, uint32_t *count, const char *path,
                          struct error *error)
{
    struct weights weights;
    enum status status;

    TRY(weights_open(&weights, path, error));
    status = model_root(root, count, &weights, error);
    weights_close(&weights);
    return status;
}
