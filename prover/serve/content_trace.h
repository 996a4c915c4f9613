/*
 * content_trace.h - replies to trace queries about steps of bundles, one at a time. Used by
 * content_tree.c only.
 *
 * The last step stays ready, so a whole trace walk costs one replay. While one query is answered
 * all others are refused: strangers can occupy one machine, never more.
 */
#ifndef PROVER_SERVE_CONTENT_TRACE_H
#define PROVER_SERVE_CONTENT_TRACE_H

#include "engine/plan/backend.h"
#include "proofs/dispute/trace_server.h"
#include "proofs/job/job.h"

struct content_trace;

/* A trace query, with the bundle, its data and the step. Owns its texts. */
struct content_trace_request {
    char *bundle;
    char *data[JOB_DATA_MAX];
    uint32_t data_count;
    uint64_t step;
    struct trace_query query;
};

void content_trace_request_release(struct content_trace_request *request);

MUST_CHECK enum status content_trace_open(struct content_trace **trace,
                                          const struct machine_options *machine,
                                          struct error *error);
void content_trace_close(struct content_trace *trace); /* NULL is fine */

/* The caller frees *bytes. STATUS_OVER_LIMIT: busy. STATUS_NOT_FOUND: no such step or item. */
MUST_CHECK enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes,
                                            uint64_t *size,
                                            const struct content_trace_request *request,
                                            struct error *error);

#endif /* PROVER_SERVE_CONTENT_TRACE_H */
