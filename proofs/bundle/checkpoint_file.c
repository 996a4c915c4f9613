/* checkpoint_file.c - see checkpoint_file.h. */
#include "proofs/bundle/checkpoint_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"
#include "proofs/job/first_state.h"

/* Files are hashed in parts of this many bytes. */
#define PART_SIZE ((size_t)4 << 20)

enum {
    LABEL_TEXTS = 4, /* job, step, root, rules */
};

static const char absent_key[] = "lockstep.absent";

/* ---- the layout --------------------------------------------------------- */

static void set_label(struct checkpoint_file *file, const struct job *job, uint64_t step,
                      const struct digest *root)
{
    hex_encode(file->job, job->id.bytes, DIGEST_SIZE);
    hex_encode(file->root, root->bytes, DIGEST_SIZE);
    (void)snprintf(file->step, sizeof(file->step), "%" PRIu64, step);
    (void)snprintf(file->rules, sizeof(file->rules), "%" PRIu32, job->rules_version);
    file->texts[0] = (struct safetensors_text){"lockstep.job", file->job};
    file->texts[1] = (struct safetensors_text){"lockstep.step", file->step};
    file->texts[2] = (struct safetensors_text){"lockstep.root", file->root};
    file->texts[3] = (struct safetensors_text){"lockstep.rules", file->rules};
    file->text_count = LABEL_TEXTS;
}

/* Wider types first, as safetensors wants them; among equals in the order of the states. */
static void order_states(struct checkpoint_file *file, const struct tape *tape, bool model)
{
    for (size_t size = 8; size > 0; size /= 2) {
        for (uint32_t i = 0; i < tape->state_count; i++) {
            const struct tensor *tensor = &tape->tensors[tape->states[i].before];

            if (dtype_size(tensor->dtype) == size &&
                !(model && first_state_is_of_training(tape, i))) {
                safetensors_describe(&file->entries[file->count], tensor);
                file->states[file->count++] = i;
            }
        }
    }
}

static enum status init_file(struct checkpoint_file *file, const struct job *job, uint64_t step,
                             const struct digest *root, bool model, struct error *error)
{
    *file = (struct checkpoint_file){0};
    file->entries = calloc((size_t)job->tape->state_count + 1, sizeof(*file->entries));
    file->states = calloc((size_t)job->tape->state_count + 1, sizeof(*file->states));
    if (file->entries == NULL || file->states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a checkpoint");
    }
    set_label(file, job, step, root);
    order_states(file, job->tape, model);
    return STATUS_OK;
}

enum status checkpoint_file_init(struct checkpoint_file *file, const struct job *job, uint64_t step,
                                 const struct digest *root, struct error *error)
{
    return init_file(file, job, step, root, false, error);
}

enum status checkpoint_file_init_model(struct checkpoint_file *file, const struct job *job,
                                       uint64_t step, const struct digest *root,
                                       const struct digest *roots, struct error *error)
{
    const struct tape *tape = job->tape;
    char *text;

    TRY(init_file(file, job, step, root, true, error));
    if (file->count == 0) {
        (void)error_set(error, STATUS_REFUSED, "the state of this job has no model to part out");
        error_advise(error, "take all of it, with the optimizer's part");
        return STATUS_REFUSED;
    }
    file->absent = text = calloc((size_t)tape->state_count + 1, HEX_SIZE(DIGEST_SIZE));
    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a model file");
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (first_state_is_of_training(tape, i)) {
            hex_encode(text, roots[i].bytes, DIGEST_SIZE);
            text += 2 * DIGEST_SIZE;
        }
    }
    file->texts[file->text_count++] = (struct safetensors_text){absent_key, file->absent};
    return STATUS_OK;
}

void checkpoint_file_release(struct checkpoint_file *file)
{
    free(file->entries);
    free(file->states);
    free(file->absent);
    *file = (struct checkpoint_file){0};
}

struct safetensors_plan checkpoint_file_plan(const struct checkpoint_file *file)
{
    return (struct safetensors_plan){.entries = file->entries,
                                     .entry_count = file->count,
                                     .texts = file->texts,
                                     .text_count = file->text_count};
}

/* ---- files -------------------------------------------------------------- */

bool checkpoint_file_says(const struct safetensors *file, const struct job *job, uint64_t step,
                          const struct digest *root)
{
    struct checkpoint_file label = {0};

    set_label(&label, job, step, root);
    for (uint32_t i = 0; i < LABEL_TEXTS; i++) {
        const char *found = safetensors_metadata(file, label.texts[i].key);

        if (found == NULL || strcmp(found, label.texts[i].value) != 0) {
            return false;
        }
    }
    return true;
}

bool checkpoint_file_is(const struct safetensors *file, const struct job *job, uint64_t step,
                        const struct digest *root)
{
    return checkpoint_file_says(file, job, step, root) &&
           safetensors_metadata_count(file) == LABEL_TEXTS &&
           file->entry_count == job->tape->state_count;
}

static enum status hash_tensor(struct digest *root, const struct safetensors *file,
                               const struct tensor *shape, uint8_t *part, struct error *error)
{
    uint64_t size = commit_tensor_size(shape);
    const struct safetensors_entry *entry;
    struct commit_stream stream;

    TRY(safetensors_find_tensor(&entry, file, shape, error));
    commit_stream_init(&stream, COMMIT_TENSOR, shape);
    for (uint64_t from = 0; from < size; from += PART_SIZE) {
        size_t taken = size - from < PART_SIZE ? (size_t)(size - from) : PART_SIZE;

        TRY(safetensors_read(file, error, part, entry, taken, from));
        commit_stream_add(&stream, part, taken, 0);
    }
    commit_stream_root(&stream, root);
    return STATUS_OK;
}

/* Of a tensor that the file lacks, where the metadata has its root. */
static enum status take_absent(struct digest *root, const char **absent,
                               const struct safetensors *file, const struct tensor *shape,
                               struct error *error)
{
    if (*absent == NULL || strnlen(*absent, 2 * DIGEST_SIZE) < 2 * DIGEST_SIZE ||
        hex_decode(root->bytes, DIGEST_SIZE, *absent, 2 * DIGEST_SIZE) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "%s lacks the tensor '%s', and its root",
                         file->path, shape->name);
    }
    *absent += 2 * DIGEST_SIZE;
    return STATUS_OK;
}

enum status checkpoint_file_root(struct digest *root, const struct safetensors *file,
                                 const struct tape *tape, struct error *error)
{
    const char *absent = safetensors_metadata(file, absent_key);
    uint8_t *part = malloc(PART_SIZE);
    struct commit_roots roots;
    uint32_t found = 0;
    enum status status;

    if (part == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read %s", file->path);
    }
    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *shape = &tape->tensors[tape->states[i].before];
        bool lacks = absent != NULL && first_state_is_of_training(tape, i);
        struct digest item;

        TRY_OUT(lacks ? take_absent(&item, &absent, file, shape, error)
                      : hash_tensor(&item, file, shape, part, error));
        TRY_OUT(commit_roots_add(&roots, &item));
        found += !lacks;
    }
    /* Nothing that no root covers may pass for a part of the model. */
    TRY_OUT(found == file->entry_count && (absent == NULL || absent[0] == '\0')
                ? STATUS_OK
                : error_set(error, STATUS_BAD_FORMAT, "%s holds tensors that the job does not have",
                            file->path));
    commit_roots_end(&roots, root);
out:
    free(part);
    return status;
}

static enum status load_tensor(struct machine *machine, const struct safetensors *file,
                               uint32_t tensor, struct error *error)
{
    const struct tensor *shape = &machine->tape->tensors[tensor];
    const struct safetensors_entry *entry;
    enum status status;
    void *bytes;

    TRY(safetensors_find_tensor(&entry, file, shape, error));
    bytes = malloc(entry->size);
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", shape->name);
    }
    TRY_OUT(safetensors_read(file, error, bytes, entry, entry->size, 0));
    TRY_OUT(machine->backend->write(machine, tensor, bytes, error));
out:
    free(bytes);
    return status;
}

enum status checkpoint_file_load(struct machine *machine, const struct safetensors *file,
                                 struct error *error)
{
    for (uint32_t i = 0; i < machine->tape->state_count; i++) {
        TRY(load_tensor(machine, file, machine->tape->states[i].before, error));
    }
    return STATUS_OK;
}

enum status checkpoint_file_pieces(struct digest *hashes, const struct safetensors *file,
                                   const struct tape *tape, struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    enum status status = STATUS_OK;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read %s", file->path);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *shape = &tape->tensors[tape->states[i].before];
        uint64_t size = commit_tensor_size(shape);
        const struct safetensors_entry *entry;

        TRY_OUT(safetensors_find_tensor(&entry, file, shape, error));
        for (uint64_t from = 0; from < size; from += PIECE_SIZE) {
            size_t taken = size - from < PIECE_SIZE ? (size_t)(size - from) : PIECE_SIZE;

            TRY_OUT(safetensors_read(file, error, piece, entry, taken, from));
            piece_hash(hashes++, piece, taken);
        }
    }
out:
    free(piece);
    return status;
}
