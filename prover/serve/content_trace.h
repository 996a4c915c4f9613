/*
 * content_trace.h - replies to trace queries about steps of bundles, one at a time. Used by
 * content_tree.c only.
 *
 * A child without a key runs the step (prover/confined/tracer.h). The last step stays ready, so a
 * whole trace walk costs one replay. Parties take turns
 * (prover/serve/ask_turns.h), so strangers can occupy one machine, never more.
 */
#ifndef PROVER_SERVE_CONTENT_TRACE_H
#define PROVER_SERVE_CONTENT_TRACE_H

#include "chain/codec/address.h"
#include "engine/plan/backend.h"
#include "proofs/dispute/trace_server.h"
#include "proofs/job/job.h"
#include "proofs/run/data_paths.h"
#include "prover/serve/askers.h"

#define CONTENT_TRACE_WAIT_S 60 /* for a turn, at most */

struct content_trace;

/* A trace query, with the bundle, its data and the step. Owns its texts. */
struct content_trace_request {
    char *bundle;
    struct data_paths data;
    uint64_t step;
    struct trace_query query;
    struct askers *askers; /* who say whether it is answered; NULL: it is */
    struct address party;  /* who asks; zero: anybody, and all of them are one */
};

void content_trace_request_release(struct content_trace_request *request);

MUST_CHECK enum status content_trace_open(struct content_trace **trace,
                                          const struct machine_options *machine,
                                          struct error *error);
void content_trace_close(struct content_trace *trace); /* NULL is fine */

/* Waits for the party's turn. The caller frees *bytes. STATUS_OVER_LIMIT: it has a query here
 * already, or had its share, or it takes too long. STATUS_NOT_FOUND: no such step or item. */
MUST_CHECK enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes,
                                            uint64_t *size,
                                            const struct content_trace_request *request,
                                            struct error *error);

#endif /* PROVER_SERVE_CONTENT_TRACE_H */
