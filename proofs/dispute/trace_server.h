/*
 * trace_server.h - one step on its machine, ready to reply to any query about it.
 *
 * A solver whose step is disputed replies with what lies in its trace. A claimant uses the same to
 * know what should lie there. The trace is made once and its roots are kept; of a step with
 * micro-batches it is run once more to hash the one that is asked about. Where there is room
 * for a file (trace_file.h), it holds every tensor of the step, and the step is never run again; of
 * a step with a repeat it holds one micro-batch, and the step is run once more to turn to another.
 * Without a file, a tensor is made again when a query is about it, by running the step once more,
 * and kept until another one is: memory then holds the states before the step and one tensor.
 */
#ifndef PROOFS_DISPUTE_TRACE_SERVER_H
#define PROOFS_DISPUTE_TRACE_SERVER_H

#include "proofs/commit/trace.h"
#include "proofs/commit/trace_file.h"
#include "proofs/dispute/trace_reply.h"

/* Tensors that are kept at once: all that one operation touches. */
#define TRACE_SERVER_KEPT_MAX (OP_INPUTS_MAX + OP_OUTPUTS_MAX)

/* A tensor of the trace, whole. */
struct trace_server_tensor {
    uint32_t item;
    const struct tensor *tensor;
    const uint8_t *bytes; /* borrowed of the file or of a state before the step, else owned */
    uint8_t *owned;
    uint64_t size;
    struct digest *hashes; /* of its leaves */
    uint64_t leaf_count;
};

struct trace_server {
    struct machine *machine; /* borrowed; NULL: what the file lacks cannot be served */
    const struct tape *tape;
    struct trace trace;
    struct trace_file file; /* perhaps not open */
    uint8_t **states;       /* bytes of the states before the step; NULL: the file has them */
    uint32_t *next_items;   /* per state: the item of its next value */
    struct digest *next;    /* the roots of the next values, then their hashes as leaves */
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

/* The same, with a file that is kept. mark: see trace_file_run(). */
MUST_CHECK enum status trace_server_open_kept(struct trace_server *server, struct machine *machine,
                                              const char *path, const struct digest *mark,
                                              struct error *error);

/* From a file that is there, without a machine. Fails as trace_file_open() does. */
MUST_CHECK enum status trace_server_load(struct trace_server *server, const struct tape *tape,
                                         const char *path, const struct digest *mark,
                                         struct error *error);

/* Gives a server that was loaded the machine that makes what its file lacks: of the same step, in
 * trace mode, in any state. */
void trace_server_use(struct trace_server *server, struct machine *machine);
void trace_server_close(struct trace_server *server); /* a zero-filled one is allowed */

/*
 * The reply to any query about a tree (for TRACE_QUERY_DIVERGED and TRACE_QUERY_PARTS see
 * fraud_proof.h). bytes has room for TRACE_REPLY_BYTES_MAX. STATUS_NOT_FOUND: the step has no such
 * thing. STATUS_DEVICE: the machine made another tensor than the first time.
 */
MUST_CHECK enum status trace_server_answer(uint8_t *bytes, size_t *size,
                                           struct trace_server *server,
                                           const struct trace_query *query, struct error *error);

/* The tree that the query is about; borrowed until the next call. */
MUST_CHECK enum status trace_server_tree(struct trace_reply_tree *tree, struct trace_server *server,
                                         const struct trace_query *query, struct error *error);

/* Keeps these tensors, and no others, with at most one run, or two where a file turns to another
 * micro-batch; with none where the file has them. At most TRACE_SERVER_KEPT_MAX items. */
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
