/*
 * site_trace.h - answers to asks about steps of bundles, one at a time. Used by site.c only.
 *
 * The step that was asked about last stays ready, so a walk costs one replay. Whoever comes while
 * another ask is answered is told to come again: a stranger can occupy one machine, never more.
 */
#ifndef PROVER_SITE_TRACE_H
#define PROVER_SITE_TRACE_H

#include "proofs/teller.h"
#include "prover/site.h"

struct site_trace;

/* What is asked: which bundle, its data, which step. Owned; site_trace_wish_release() frees it. */
struct site_trace_wish {
    char *bundle;
    char *data[JOB_DATA_MAX];
    uint32_t data_count;
    uint64_t step;
    struct ask ask;
};

void site_trace_wish_release(struct site_trace_wish *wish);

MUST_CHECK enum status site_trace_open(struct site_trace **trace,
                                       const struct machine_options *machine, struct error *error);
void site_trace_close(struct site_trace *trace); /* NULL is fine */

/* *bytes is allocated. STATUS_OVER_LIMIT: busy. STATUS_NOT_FOUND: there is no such thing. */
MUST_CHECK enum status site_trace_answer(struct site_trace *trace, uint8_t **bytes, uint64_t *size,
                                         const struct site_trace_wish *wish, struct error *error);

#endif /* PROVER_SITE_TRACE_H */
