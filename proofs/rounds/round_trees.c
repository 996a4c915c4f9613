/* round_trees.c - see round_trees.h. */
#include "proofs/rounds/round_trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"

enum { PIECE_SIZE = 1 << 20 };

static const struct tensor *tensor_of(const struct tape *tape, uint32_t state)
{
    return &tape->tensors[tape->states[state].before];
}

bool round_trees_is_moment(const struct tape *tape, uint32_t state)
{
    const struct tensor *tensor = tensor_of(tape, state);

    return tensor->dtype == DTYPE_F32 && first_state_is_of_training(tape, state) &&
           (tensor->name[0] == 'm' || tensor->name[0] == 'v') && tensor->name[1] == '.';
}

bool round_trees_takes(const struct tape *tape, uint32_t state, bool moments)
{
    return first_state_is_parameter(tape, state) || (moments && round_trees_is_moment(tape, state));
}

bool round_trees_prefix(char name[TENSOR_NAME_MAX + 1], const char *prefix, const char *tensor)
{
    const size_t before = strlen(prefix);
    const size_t length = strlen(tensor);

    if (before + length > TENSOR_NAME_MAX) {
        name[0] = '\0';
        return false;
    }
    memcpy(name, prefix, before);
    memcpy(name + before, tensor, length + 1);
    return true;
}

bool round_trees_name(char name[TENSOR_NAME_MAX + 1], uint32_t owner, const char *tensor)
{
    char prefix[16];

    (void)snprintf(prefix, sizeof(prefix), "%u.", owner + 1);
    return round_trees_prefix(name, prefix, tensor);
}

/* ---- trees ---------------------------------------------------------------- */

void round_trees_zero(struct digest *tree, const struct tensor *tensor)
{
    static const uint8_t zeros[65536];
    struct merkle_stream stream;
    uint64_t left = tensor_size(tensor);

    merkle_stream_init(&stream);
    while (left > 0) {
        const size_t taken = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);

        if (merkle_stream_add(&stream, zeros, taken, 0) != STATUS_OK) {
            break; /* a sound tensor has no more leaves than there may be */
        }
        left -= taken;
    }
    merkle_stream_root(&stream, tree);
}

/* Reads a tensor of a file piece by piece: into its tree, or into a file, or both. */
static enum status pass_tensor(struct digest *tree, struct safetensors_writer *writer,
                               const struct safetensors *file,
                               const struct safetensors_entry *entry, struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    struct merkle_stream stream;
    enum status status = STATUS_OK;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read '%s'", entry->name);
    }
    merkle_stream_init(&stream);
    for (uint64_t at = 0; at < entry->size; at += PIECE_SIZE) {
        const size_t taken =
            entry->size - at < PIECE_SIZE ? (size_t)(entry->size - at) : PIECE_SIZE;

        TRY_OUT(safetensors_read(file, error, piece, entry, taken, at));
        if (tree != NULL) {
            TRY_OUT(merkle_stream_add(&stream, piece, taken, 0));
        }
        if (writer != NULL) {
            TRY_OUT(safetensors_writer_add(writer, error, piece, taken));
        }
    }
    if (tree != NULL) {
        merkle_stream_root(&stream, tree);
    }
out:
    free(piece);
    return status;
}

/* The entry of a state under the owner's name; NULL: the file has none. */
static enum status find_entry(const struct safetensors_entry **entry,
                              const struct safetensors *file, const struct tensor *tensor,
                              uint32_t owner, struct error *error)
{
    struct tensor named = *tensor;

    if (owner != UINT32_MAX && !round_trees_name(named.name, owner, tensor->name)) {
        return error_set(error, STATUS_OVER_LIMIT, "the name '%s' is too long to be averaged",
                         tensor->name);
    }
    *entry = safetensors_find(file, named.name);
    return *entry == NULL ? STATUS_OK : safetensors_find_tensor(entry, file, &named, error);
}

enum status round_trees_read(struct digest *trees, const char *path, const struct tape *tape,
                             uint32_t owner, struct error *error)
{
    struct safetensors file;
    enum status status = STATUS_OK;

    TRY(safetensors_open(&file, error, path));
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct safetensors_entry *entry;

        TRY_OUT(find_entry(&entry, &file, tensor_of(tape, i), owner, error));
        if (entry == NULL) {
            round_trees_zero(&trees[i], tensor_of(tape, i));
        } else {
            TRY_OUT(pass_tensor(&trees[i], NULL, &file, entry, error));
        }
    }
out:
    safetensors_close(&file);
    return status;
}

enum status round_trees_root(struct digest *root, const struct digest *trees,
                             const struct tape *tape, struct error *error)
{
    struct commit_roots roots;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        struct digest item;

        commit_tensor_root_of(&item, COMMIT_TENSOR, tensor_of(tape, i), &trees[i]);
        if (commit_roots_add(&roots, &item) != STATUS_OK) {
            return error_set(error, STATUS_OVER_LIMIT, "the state has too many tensors");
        }
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}

/* ---- files ---------------------------------------------------------------- */

/* Which states a file takes, and where their bytes come from. */
struct state_copy {
    const struct tape *tape;
    const struct safetensors *from; /* NULL: the first state */
    const struct first_state *first;
    const struct job *drawn; /* NULL: first gives it */
    uint32_t owner;          /* under whose names; UINT32_MAX: plain ones */
    bool moments;
};

static bool copies_state(const struct state_copy *copy, uint32_t state)
{
    return round_trees_takes(copy->tape, state, copy->moments) ||
           (copy->first != NULL && copy->first->entries[state] != NULL);
}

static enum status describe_states(struct safetensors_entry *entries, uint32_t *count,
                                   const struct state_copy *copy, struct error *error)
{
    *count = 0;
    for (uint32_t i = 0; i < copy->tape->state_count; i++) {
        struct tensor named = *tensor_of(copy->tape, i);

        if (!copies_state(copy, i)) {
            continue;
        }
        if (copy->owner != UINT32_MAX &&
            !round_trees_name(named.name, copy->owner, tensor_of(copy->tape, i)->name)) {
            return error_set(error, STATUS_OVER_LIMIT, "the name '%s' is too long to be averaged",
                             tensor_of(copy->tape, i)->name);
        }
        safetensors_describe(&entries[(*count)++], &named);
    }
    return STATUS_OK;
}

static enum status add_first(struct safetensors_writer *writer, const struct state_copy *copy,
                             uint32_t state, struct error *error)
{
    const struct tensor *tensor = tensor_of(copy->tape, state);
    void *bytes = malloc(tensor_size(tensor));
    enum status status = STATUS_OK;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", tensor->name);
    }
    if (copy->drawn != NULL) {
        job_first_state(bytes, copy->drawn, copy->tape->states[state].before);
    } else {
        TRY_OUT(first_state_read(bytes, copy->first, state, error));
    }
    status = safetensors_writer_add(writer, error, bytes, tensor_size(tensor));
out:
    free(bytes);
    return status;
}

static enum status add_state(struct safetensors_writer *writer, const struct state_copy *copy,
                             uint32_t state, struct error *error)
{
    const struct safetensors_entry *entry;

    if (copy->from == NULL) {
        return add_first(writer, copy, state, error);
    }
    TRY(safetensors_find_tensor(&entry, copy->from, tensor_of(copy->tape, state), error));
    return pass_tensor(NULL, writer, copy->from, entry, error);
}

/* Writes what a copy takes behind the header. */
static enum status add_states(struct safetensors_writer *writer, const struct state_copy *copy,
                              struct error *error)
{
    for (uint32_t i = 0; i < copy->tape->state_count; i++) {
        if (copies_state(copy, i)) {
            TRY(add_state(writer, copy, i, error));
        }
    }
    return STATUS_OK;
}

static enum status write_copy(const char *path, const struct state_copy *copy, struct error *error)
{
    struct safetensors_entry *entries =
        calloc((size_t)copy->tape->state_count + 1, sizeof(*entries));
    struct safetensors_writer writer;
    uint32_t count = 0;
    enum status status;

    TRY_OUT(entries == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for %s", path)
                            : describe_states(entries, &count, copy, error));
    TRY_OUT(safetensors_writer_open(&writer, error, path, entries, count, NULL, 0));
    status = safetensors_writer_end(&writer, add_states(&writer, copy, error), error);
out:
    free(entries);
    return status;
}

enum status round_trees_give(const char *path, const struct safetensors *state,
                             const struct tape *tape, uint32_t owner, bool moments,
                             struct error *error)
{
    const struct state_copy copy = {
        .tape = tape, .from = state, .owner = owner, .moments = moments};

    return write_copy(path, &copy, error);
}

enum status round_trees_go_on(const char *path, const struct safetensors *mean,
                              const struct tape *tape, bool moments, struct error *error)
{
    const struct state_copy copy = {
        .tape = tape, .from = mean, .owner = UINT32_MAX, .moments = moments};

    return write_copy(path, &copy, error);
}

enum status round_trees_begin(const char *path, const struct job *job, const char *given,
                              struct error *error)
{
    struct first_state first = {0};
    struct state_copy copy = {.tape = job->tape, .owner = UINT32_MAX};
    struct digest root;
    enum status status = STATUS_OK;

    if (!job->first_state_given) {
        copy.drawn = job;
        return write_copy(path, &copy, error);
    }
    if (given == NULL) {
        (void)error_set(error, STATUS_USAGE,
                        "the first state of the jobs is given as a file, and no file is named");
        error_advise(error, "name it in the plan: \"first_state\": \"FILE\"");
        return STATUS_USAGE;
    }
    TRY_OUT(first_state_open(&first, job->tape, given, error));
    TRY_OUT(first_state_root(&root, &first, error));
    TRY_OUT(digest_equal(&root, &job->first_state_root)
                ? STATUS_OK
                : error_set(error, STATUS_REFUSED, "%s is not the first state of the jobs", given));
    copy.first = &first;
    status = write_copy(path, &copy, error);
out:
    first_state_close(&first);
    return status;
}
