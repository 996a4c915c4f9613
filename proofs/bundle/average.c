/* average.c - see average.h. */
#include "proofs/bundle/average.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "proofs/job/first_state.h"

enum { AVERAGED = 65536 }; /* numbers at a time */

/* One piece of a parameter. */
static enum status average_piece(float *mean, float *piece, const char *name, uint64_t from,
                                 uint64_t taken, const struct safetensors *states, uint32_t count,
                                 double *sums, struct error *error)
{
    for (uint64_t i = 0; i < taken; i++) {
        sums[i] = 0.0;
    }
    for (uint32_t state = 0; state < count; state++) {
        const struct safetensors_entry *entry = safetensors_find(&states[state], name);

        TRY(safetensors_read(&states[state], error, piece, entry, taken * sizeof(float),
                             from * sizeof(float)));
        for (uint64_t i = 0; i < taken; i++) {
            sums[i] += (double)piece[i];
        }
    }
    for (uint64_t i = 0; i < taken; i++) {
        mean[i] = (float)(sums[i] / count);
    }
    return STATUS_OK;
}

static enum status average_tensor(struct safetensors_writer *writer, const struct tensor *tensor,
                                  const struct safetensors *states, uint32_t count,
                                  struct error *error)
{
    float *pieces = malloc(2 * AVERAGED * sizeof(*pieces));
    double *sums = malloc(AVERAGED * sizeof(*sums));
    enum status status = STATUS_OK;

    if (pieces == NULL || sums == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the mean of '%s'", tensor->name);
        goto out;
    }
    for (uint64_t from = 0; from < tensor->count; from += AVERAGED) {
        uint64_t taken = tensor->count - from < AVERAGED ? tensor->count - from : AVERAGED;

        TRY_OUT(average_piece(pieces, pieces + AVERAGED, tensor->name, from, taken, states, count,
                              sums, error));
        TRY_OUT(safetensors_writer_add(writer, error, pieces, taken * sizeof(*pieces)));
    }
out:
    free(pieces);
    free(sums);
    return status;
}

static enum status check_states(const struct tensor *tensor, const struct safetensors *states,
                                uint32_t count, struct error *error)
{
    const struct safetensors_entry *entry;

    for (uint32_t state = 0; state < count; state++) {
        TRY(safetensors_find_tensor(&entry, &states[state], tensor, error));
    }
    return STATUS_OK;
}

enum status average_write(const char *path, const struct tape *tape,
                          const struct safetensors *states, uint32_t count, struct error *error)
{
    struct safetensors_entry *entries = calloc((size_t)tape->state_count + 1, sizeof(*entries));
    struct safetensors_writer writer;
    uint32_t tensors = 0;
    enum status status = STATUS_OK;

    if (entries == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the mean of %u states", count);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];

        if (first_state_is_parameter(tape, i)) {
            TRY_OUT(check_states(tensor, states, count, error));
            safetensors_describe(&entries[tensors++], tensor);
        }
    }
    TRY_OUT(safetensors_writer_open(&writer, error, path, entries, tensors, NULL, 0));
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        if (first_state_is_parameter(tape, i)) {
            status = average_tensor(&writer, &tape->tensors[tape->states[i].before], states, count,
                                    error);
        }
    }
    status = safetensors_writer_end(&writer, status, error);
out:
    free(entries);
    return status;
}

/* ---- of a bundle ---------------------------------------------------------- */

/* The checkpoint before step `at`. */
static enum status find_before(uint64_t *step, struct bundle *bundle, uint64_t at,
                               struct error *error)
{
    uint64_t next = 0;
    bool found = false;

    TRY(bundle_checkpoint_find(&next, bundle, 0, error));
    while (next < at) {
        *step = next;
        found = true;
        TRY(bundle_checkpoint_find(&next, bundle, *step + 1, error));
    }
    return found ? STATUS_OK
                 : error_set(error, STATUS_NOT_FOUND,
                             "--average: there is no checkpoint before step %" PRIu64, at);
}

enum status average_write_bundle(const char *path, uint64_t steps[AVERAGE_STATES_MAX],
                                 struct bundle *bundle, uint64_t step, uint32_t count,
                                 struct error *error)
{
    struct safetensors *states = calloc(AVERAGE_STATES_MAX, sizeof(*states));
    uint64_t at = step;
    uint32_t opened = 0;
    enum status status = STATUS_OK;

    assert(count <= AVERAGE_STATES_MAX);
    if (states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u checkpoints", count);
    }
    for (; opened < count; opened++) {
        if (opened > 0) {
            TRY_OUT(find_before(&at, bundle, at, error));
        }
        TRY_OUT(bundle_checkpoint_open(&states[opened], bundle, at, error));
        steps[opened] = at;
    }
    status = average_write(path, bundle_job(bundle)->tape, states, count, error);
out:
    while (opened > 0) {
        safetensors_close(&states[--opened]);
    }
    free(states);
    return status;
}
