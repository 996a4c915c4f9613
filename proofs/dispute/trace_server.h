/*
 * trace_server.h - one step on its machine, ready to answer whatever may be asked of it.
 *
 * A solver, or an attestor, whose step is disputed tells what lies in its trace; a claimant uses
 * the same to know what should lie there. The trace is made once and its roots are kept. A tensor
 * of it is made again when it is asked for, by running the step once more, and kept until another
 * one is: so a walk through one tensor costs one run, and memory holds the states before the step
 * and one tensor beside what the machine holds.
 */
#ifndef PROOFS_DISPUTE_TRACE_SERVER_H
#define PROOFS_DISPUTE_TRACE_SERVER_H

#include "proofs/commit/trace.h"
#include "proofs/dispute/trace_reply.h"

/* Tensors that are kept at once: all that one operation touches. */
#define TRACE_SERVER_KEPT_MAX (OP_INPUTS_MAX + OP_OUTPUTS_MAX)

/* A tensor of the trace, whole. */
struct trace_server_tensor {
    uint32_t item;
    const struct tensor *tensor;
    const uint8_t *bytes; /* borrowed of a state before the step, else owned */
    uint8_t *owned;
    uint64_t size;
    struct digest *hashes; /* of its leaves */
    uint64_t leaf_count;
};

struct trace_server {
    struct machine *machine; /* borrowed */
    const struct tape *tape;
    struct trace trace;
    uint8_t **states;     /* bytes of the states before the step */
    uint32_t *next_items; /* per state: the item of its next value */
    struct digest *next;  /* the roots of the next values, then their hashes as leaves */
    struct trace_server_tensor kept[TRACE_SERVER_KEPT_MAX];
    uint32_t kept_count;
    uint64_t runs; /* of the step, so far */
};

/*
 * Traces the step before which machine, in trace mode, stands. The machine is the trace server's
 * until trace_server_close(), and is left in no particular state.
 */
MUST_CHECK enum status trace_server_open(struct trace_server *server, struct machine *machine,
                                         struct error *error);
void trace_server_close(struct trace_server *server); /* a zero-filled one is allowed */

/*
 * The answer to any ask about a tree (not TRACE_QUERY_DIVERGED or TRACE_QUERY_PARTS, see
 * fraud_proof.h); bytes has room for TRACE_REPLY_BYTES_MAX. STATUS_NOT_FOUND: the step has no such
 * thing. STATUS_DEVICE: the machine made another tensor than the first time.
 */
MUST_CHECK enum status trace_server_answer(uint8_t *bytes, size_t *size,
                                           struct trace_server *server,
                                           const struct trace_query *query, struct error *error);

/* The tree that ask is about; borrowed until the next call. */
MUST_CHECK enum status trace_server_tree(struct trace_reply_tree *tree, struct trace_server *server,
                                         const struct trace_query *query, struct error *error);

/* Keeps these tensors, and no others, with at most one run. At most TRACE_SERVER_KEPT_MAX items. */
MUST_CHECK enum status trace_server_keep(struct trace_server *server, const uint32_t *items,
                                         uint32_t count, struct error *error);

/* A tensor that is kept, until others are; NULL: it is not. */
const struct trace_server_tensor *trace_server_tensor(const struct trace_server *server,
                                                      uint32_t item);

/*
 * The first element of the state after the step that is no finite number: which state, and which
 * element of it. STATUS_NOT_FOUND: the step does not diverge.
 */
MUST_CHECK enum status trace_server_diverged(uint32_t *state, uint64_t *element,
                                             struct trace_server *server, struct error *error);

#endif /* PROOFS_DISPUTE_TRACE_SERVER_H */
