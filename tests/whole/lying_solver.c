/*
 * lying_solver.c - in place of prover/train/fault_injection.c, a solver that lies as well as it can
 * about an element that is a sum, when it is told to --falsify a step. `prover run --falsify` alone
 * commits to a false state and to the honest trace beside it, which one piece of evidence shows.
 * Here the trace says the lie too, and of parts of the sum the solver says what comes to the lie:
 * of one part in each reply something false, so that the claimant must go down to it.
 *
 * The first floating-point state must be what a sum makes. Linked with the whole program as
 * build/tests/lying_solver; nothing of it is in the program itself.
 */
#include "prover/train/fault_injection.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/element.h"
#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/liar.h"

static struct liar liar; /* of the step that is answered for; no machine: it is an honest one */

/* ---- the lie in the state and in the trace --------------------------------- */

static uint32_t find_state(const struct tape *tape)
{
    uint32_t state = 0;

    while (tape->tensors[tape->states[state].before].dtype != DTYPE_F32) {
        state++;
    }
    return state;
}

enum status fault_injection_in_state(struct machine *machine, struct error *error)
{
    const struct lie lie = {.kind = LIE_ULP};
    const struct tape *tape = machine->tape;
    const uint32_t id = tape->states[find_state(tape)].before;
    uint8_t *bytes = malloc(commit_tensor_size(&tape->tensors[id]));
    enum status status = machine->backend->read(machine, id, bytes, error);

    if (status == STATUS_OK) {
        liar_lie(bytes, &tape->tensors[id], &lie);
        status = machine->backend->write(machine, id, bytes, error);
    }
    free(bytes);
    return status;
}

/* The server begins again, on a machine that shows the lie. */
static enum status open_again(struct trace_server *server, struct error *error)
{
    struct machine *machine = server->machine;
    const struct tape *tape = server->tape;
    const struct lie lie = {.item = server->next_items[find_state(tape)], .kind = LIE_ULP};

    for (uint32_t i = 0; i < tape->state_count; i++) {
        TRY(machine->backend->write(machine, tape->states[i].before, server->states[i], error));
    }
    trace_server_close(server);
    liar_open(&liar, machine, &lie);
    return trace_server_open(server, &liar.machine, error);
}

enum status fault_injection_stand_by(struct trace_server *server, struct bundle *bundle,
                                     uint64_t step, struct error *error)
{
    struct digest wanted;
    enum status status = bundle_state_root(&wanted, bundle, step + 1, error);

    liar_close(&liar);
    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    if (status != STATUS_OK || digest_equal(&wanted, &server->trace.next_root)) {
        return status;
    }
    return open_again(server, error);
}

/* ---- the lie in partial sums ------------------------------------------------- */

static int64_t value_at(const uint8_t *reply, uint32_t number)
{
    return (int64_t)endian_load_be64(reply + 4 + 8 * (size_t)number);
}

/* What the element's parts must come to, for the element to be what the trace says. */
static int64_t sum_of_lie(const uint8_t *reply, int64_t truth, uint32_t bits)
{
    struct rule_part whole = {
        .fold = RULE_SUM, .exponent = (int32_t)endian_load_be32(reply), .value = truth};

    for (int64_t more = 1; element_cut(rule_part_finish(&whole), DTYPE_F32) != bits; more *= 2) {
        whole.value = truth + more;
    }
    return whole.value;
}

/* Says another thing than the truth of the part in the middle. */
static void forge(uint8_t *reply, size_t size, const struct partial_sums_range *range,
                  uint32_t bits)
{
    const uint32_t count = (uint32_t)((size - 4) / 8);
    const uint32_t middle = count / 2;
    int64_t truth = 0;
    int64_t wanted;

    for (uint32_t i = 0; i < count; i++) {
        truth += value_at(reply, i);
    }
    wanted = range != NULL && range->is_part ? range->value : sum_of_lie(reply, truth, bits);
    endian_store_be64(reply + 4 + 8 * (size_t)middle,
                      (uint64_t)(value_at(reply, middle) + wanted - truth));
}

enum status __real_fraud_proof_reply(struct buffer *bytes, struct trace_server *own,
                                     const struct evidence_given *given,
                                     const struct trace_query *query,
                                     const struct partial_sums_range *range, struct error *error);

enum status __wrap_fraud_proof_reply(struct buffer *bytes, struct trace_server *own,
                                     const struct evidence_given *given,
                                     const struct trace_query *query,
                                     const struct partial_sums_range *range, struct error *error)
{
    const size_t before = bytes->size;

    TRY(__real_fraud_proof_reply(bytes, own, given, query, range, error));
    if (query->kind == TRACE_QUERY_PARTS && own->machine == &liar.machine &&
        query->item == liar.lie.item && query->index == liar.lie.element) {
        uint32_t bits;

        memcpy(&bits, trace_server_tensor(own, query->item)->bytes + 4 * query->index, 4);
        forge(bytes->data + before, bytes->size - before, range, bits);
    }
    return STATUS_OK;
}
