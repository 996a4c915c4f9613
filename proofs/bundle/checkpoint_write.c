/* checkpoint_write.c - see checkpoint_write.h. */
#include "proofs/bundle/checkpoint_write.h"

#include <stdlib.h>

#include "base/io/file.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"
#include "proofs/commit/state_root.h"

struct checkpoint_writing {
    const struct checkpoint_write *what;
    struct safetensors_writer writer;
    struct digest *hashes; /* of all pieces, in the tape's order; NULL: nobody wants them */
    struct digest *next;   /* of the tensor that comes */
};

static enum status add_bytes(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    struct checkpoint_writing *writing = context;
    uint64_t size = commit_tensor_size(tensor);

    for (uint64_t from = 0; writing->hashes != NULL && from < size; from += PIECE_SIZE) {
        piece_hash(writing->next++, (const uint8_t *)bytes + from,
                   size - from < PIECE_SIZE ? (size_t)(size - from) : PIECE_SIZE);
    }
    return safetensors_writer_add(&writing->writer, error, bytes, (size_t)size);
}

static enum status add_state(struct checkpoint_writing *writing, uint32_t state,
                             struct error *error)
{
    const struct checkpoint_write *what = writing->what;
    const struct tape *tape = what->job->tape;
    uint32_t tensor = tape->states[state].before;
    const struct tensor *shape = &tape->tensors[tensor];
    enum status status;
    void *bytes;

    writing->next = writing->hashes;
    for (uint32_t i = 0; writing->hashes != NULL && i < state; i++) {
        writing->next += piece_count(&tape->tensors[tape->states[i].before]);
    }
    if (what->machine != NULL) {
        return state_root_visit(what->machine, tensor, add_bytes, writing, error);
    }
    bytes = malloc(commit_tensor_size(shape));
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'", shape->name);
    }
    TRY_OUT(first_state_read(bytes, what->first, state, error));
    TRY_OUT(add_bytes(writing, shape, bytes, error));
out:
    free(bytes);
    return status;
}

/* Those who hold the states write them, each its part. */
static enum status save_states(struct checkpoint_writing *writing,
                               const struct checkpoint_file *layout, struct error *error)
{
    struct machine *machine = writing->what->machine;
    uint32_t *tensors = calloc((size_t)layout->count + 1, sizeof(*tensors));
    uint64_t *places = calloc((size_t)layout->count + 1, sizeof(*places));
    struct machine_save save = {.path = writing->writer.file.part_path,
                                .size = writing->writer.left,
                                .tensors = tensors,
                                .places = places,
                                .count = layout->count};
    uint64_t first = 0;
    enum status status;

    if (tensors == NULL || places == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for a checkpoint"));
    }
    TRY_OUT(safetensors_writer_room(&first, &writing->writer, error));
    save.size += first;
    for (uint32_t i = 0; i < layout->count; i++) {
        tensors[i] = machine->tape->states[layout->states[i]].before;
        places[i] = first + layout->entries[i].offset;
    }
    TRY_OUT(machine->backend->save(machine, &save, error));
out:
    free(tensors);
    free(places);
    return status;
}

/* What passes through here one state after the other: to be encrypted, or hashed in pieces. */
static bool takes_turns(const struct checkpoint_writing *writing)
{
    const struct checkpoint_write *what = writing->what;

    return what->machine == NULL || what->machine->backend->save == NULL || what->key != NULL ||
           writing->hashes != NULL;
}

static enum status write_states(struct checkpoint_writing *writing,
                                const struct checkpoint_file *layout, const char *path,
                                struct error *error)
{
    const struct checkpoint_write *what = writing->what;
    struct safetensors_plan plan = checkpoint_file_plan(layout);
    enum status status;

    plan.key = what->key;
    plan.context = what->context;
    TRY(safetensors_writer_open_plan(&writing->writer, error, path, &plan));
    if (!takes_turns(writing)) {
        TRY_OUT(save_states(writing, layout, error));
    }
    for (uint32_t i = 0; takes_turns(writing) && i < layout->count; i++) {
        TRY_OUT(add_state(writing, layout->states[i], error));
    }
    TRY_OUT(writing->hashes == NULL
                ? STATUS_OK
                : file_write(what->pieces, error, writing->hashes,
                             piece_count_of_state(what->job->tape) * DIGEST_SIZE, 0644));
out:
    return safetensors_writer_end(&writing->writer, status, error);
}

enum status checkpoint_write(const struct checkpoint_write *what, const char *path,
                             struct error *error)
{
    struct checkpoint_writing writing = {.what = what};
    struct checkpoint_file layout = {.entries = NULL};
    enum status status = STATUS_OK;

    if (what->pieces != NULL) {
        writing.hashes = calloc(piece_count_of_state(what->job->tape) + 1, sizeof(*writing.hashes));
        TRY_OUT(writing.hashes != NULL
                    ? STATUS_OK
                    : error_set(error, STATUS_NO_MEMORY, "no memory for a list of hashes"));
    }
    TRY_OUT(checkpoint_file_init(&layout, what->job, what->step, what->root, error));
    TRY_OUT(write_states(&writing, &layout, path, error));
out:
    checkpoint_file_release(&layout);
    free(writing.hashes);
    return status;
}
