/*
 * content_trace.h - answers to asks about steps of bundles, one at a time. Used by content_tree.c
 * only.
 *
 * The step that was asked about last stays ready, so a walk costs one replay. Whoever comes while
 * another ask is answered is told to come again: a stranger can occupy one machine, never more.
 */
#ifndef PROVER_SERVE_CONTENT_TRACE_H
#define PROVER_SERVE_CONTENT_TRACE_H

#include "proofs/dispute/trace_server.h"
#include "prover/serve/content_tree.h"

struct content_trace;

/* What is asked: which bundle, its data, which step. Owned; content_trace_request_release()
 * frees it. */
struct content_trace_request {
    char *bundle;
    char *data[JOB_DATA_MAX];
    uint32_t data_count;
    uint64_t step;
    struct trace_query query;
};

void content_trace_request_release(struct content_trace_request *wish);

MUST_CHECK enum status content_trace_open(struct content_trace **trace,
                                          const struct machine_options *machine,
                                          struct error *error);
void content_trace_close(struct content_trace *trace); /* NULL is fine */

/* *bytes is allocated. STATUS_OVER_LIMIT: busy. STATUS_NOT_FOUND: there is no such thing. */
MUST_CHECK enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes,
                                            uint64_t *size,
                                            const struct content_trace_request *wish,
                                            struct error *error);

#endif /* PROVER_SERVE_CONTENT_TRACE_H */
