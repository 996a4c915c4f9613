/* fault_injection.c - see fault_injection.h. */
#include "prover/train/fault_injection.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"

/* The first state of a type; tape->state_count: none. */
static uint32_t find_typed(const struct tape *tape, enum dtype dtype)
{
    uint32_t state = 0;

    while (state < tape->state_count && tape->tensors[tape->states[state].before].dtype != dtype) {
        state++;
    }
    return state;
}

/* The state that gets the fault; tape->state_count: none. */
static uint32_t find_state(const struct tape *tape)
{
    const uint32_t state = find_typed(tape, DTYPE_F32);

    return state < tape->state_count ? state : find_typed(tape, DTYPE_I32);
}

/* Of a binary32 the last bit; an integer, such as a count, is one more. */
static void falsify_first(uint8_t *bytes, enum dtype dtype)
{
    uint32_t word;

    if (dtype == DTYPE_F32) {
        bytes[0] ^= 1; /* little-endian */
        return;
    }
    memcpy(&word, bytes, sizeof(word));
    word++;
    memcpy(bytes, &word, sizeof(word));
}

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "no memory for a false state");
}

enum status fault_injection_in_state(struct machine *machine, struct error *error)
{
    const struct tape *tape = machine->tape;
    uint32_t state = find_state(tape);
    enum status status;
    uint8_t *bytes;
    uint32_t id;

    if (state == tape->state_count) {
        return error_set(error, STATUS_USAGE, "the job has no state of numbers to falsify");
    }
    id = tape->states[state].before;
    bytes = malloc(commit_tensor_size(&tape->tensors[id]));
    if (bytes == NULL) {
        return no_memory(error);
    }
    TRY_OUT(machine->backend->read(machine, id, bytes, error));
    falsify_first(bytes, tape->tensors[id].dtype);
    TRY_OUT(machine->backend->write(machine, id, bytes, error));
out:
    free(bytes);
    return status;
}

/* The root of that state's next value with the fault in it. */
static enum status false_root(struct digest *root, struct trace_server *server, uint32_t state,
                              struct error *error)
{
    const struct trace_server_tensor *kept;
    uint32_t item = server->next_items[state];
    uint8_t *bytes;

    TRY(trace_server_keep(server, &item, 1, error));
    kept = trace_server_tensor(server, item);
    bytes = malloc((size_t)kept->size);
    if (bytes == NULL) {
        return no_memory(error);
    }
    memcpy(bytes, kept->bytes, (size_t)kept->size);
    falsify_first(bytes, kept->tensor->dtype);
    commit_tensor_root(root, COMMIT_TENSOR, kept->tensor, bytes, 1);
    free(bytes);
    return STATUS_OK;
}

static bool is_committed(const struct trace_server *server, const struct digest *wanted)
{
    struct digest root;

    commit_list_root(&root, COMMIT_STATE, 0, server->next, server->tape->state_count);
    return digest_equal(&root, wanted);
}

enum status fault_injection_stand_by(struct trace_server *server, struct bundle *bundle,
                                     uint64_t step, struct error *error)
{
    uint32_t count = server->tape->state_count;
    uint32_t state = find_state(server->tape);
    struct digest wanted;
    struct digest honest;
    enum status status = bundle_state_root(&wanted, bundle, step + 1, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    if (status != STATUS_OK || state == count || is_committed(server, &wanted)) {
        return status;
    }
    honest = server->next[state];
    status = false_root(&server->next[state], server, state, error);
    if (status != STATUS_OK || !is_committed(server, &wanted)) {
        server->next[state] = honest;
    }
    merkle_leaf_hash(&server->next[count + state], server->next[state].bytes, DIGEST_SIZE);
    return status;
}
