/*
 * audit_ranks.h - one audit in several processes that mpirun started: each rank replays a share of
 * the segments of each bundle, and rank 0 reports for all.
 *
 * Each rank replays in a child. If the child is killed, for its memory or by a fault of the
 * machine, the rank still reports, and its share is CANNOT_TELL. Shares are merged in the order of
 * the steps, so the answer is that of a single process. A missing share is CANNOT_TELL too.
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

/* Did mpirun start this process as one of several? Sets rank and count. */
bool audit_ranks_wanted(struct audit_ranks *ranks);

/*
 * Replays. Rank 0 gets the results in views, and reports (NULL: none), one for each bundle; the
 * other ranks get nothing. Call it before the process starts a thread. A failure is this rank's.
 */
MUST_CHECK enum status audit_ranks_run(struct audit_view *views, struct report *reports,
                                       const struct audit_ranks *ranks, struct error *error);

/*
 * Merges the parts of one bundle, in the order of the steps, into the first. The first part that is
 * not PROVEN decides.
 */
void audit_ranks_merge(struct audit_result *results, struct report *reports, uint32_t count);

#endif /* VERIFIER_AUDIT_AUDIT_RANKS_H */
