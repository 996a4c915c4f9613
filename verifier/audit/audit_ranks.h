/*
 * audit_ranks.h - an audit that mpirun has started several times: each process replays a share of
 * the segments of each bundle, and the first one tells what all of them found.
 *
 * The replay itself runs in a child of each rank, so that one that is killed, for its memory or by
 * a machine's fault, is told of by its rank: its share is then "cannot tell". Shares are looked at
 * in the order of the steps, so the answer is that of a single process; a share that nobody knows
 * of decides like a step that cannot be told.
 */
#ifndef VERIFIER_AUDIT_AUDIT_RANKS_H
#define VERIFIER_AUDIT_AUDIT_RANKS_H

#include "verifier/audit/report.h"

struct audit_ranks {
    uint32_t rank;
    uint32_t count;
    size_t bundle_count;
    /*
     * Audits bundle `index` in the child, share number `share` of `count`. result is initialized;
     * report is NULL where no page is wanted.
     */
    void (*audit_one)(void *context, struct audit_result *result, struct report *report,
                      size_t index, uint32_t share, uint32_t share_count, struct stop *stop);
    void *context;
};

/* Were we started by mpirun, as one of several? Sets rank and count. */
bool audit_ranks_wanted(struct audit_ranks *ranks);

/*
 * Replays and, at rank 0, fills views (their results) and reports (NULL: none), one for each
 * bundle; the other ranks get nothing. Call it before a thread is started. Failure is of this rank
 * alone.
 */
MUST_CHECK enum status audit_ranks_run(struct audit_view *views, struct report *reports,
                                       const struct audit_ranks *ranks, struct error *error);

/*
 * Of the parts of one bundle, in the order of the steps: merges count of them into the first. A
 * part whose answer is "cannot tell" decides when none before it is refuted.
 */
void audit_ranks_merge(struct audit_result *results, struct report *reports, uint32_t count);

#endif /* VERIFIER_AUDIT_AUDIT_RANKS_H */
