/*
 * ledger_query.h - a query as a ledger takes it: with the proof that what it is about was
 * committed.
 *
 * On a ledger the claimant may query only what lies under the accused's own roots. So a ledger
 * query is a query and the paths from there to the program root and to the root of the trace or of
 * the next state. From a query that holds, the ledger learns everything that the reply is checked
 * with: struct ledger_queried, a short record. The ledger keeps its hash, and the accused repeats
 * the record when it replies. A contract needs nothing else, and neither does a reader of the
 * ledger's events. docs/FORMATS.md has every byte.
 */
#ifndef PROOFS_DISPUTE_LEDGER_QUERY_H
#define PROOFS_DISPUTE_LEDGER_QUERY_H

#include "base/buffer.h"
#include "proofs/dispute/evidence.h"
#include "proofs/dispute/trace_walk.h"

/* ---- what a ledger keeps ---- */

#define LEDGER_QUERIED_SIZE_MAX (TRACE_QUERY_SIZE + DIGEST_SIZE + 11 + COMMIT_TENSOR_HEADER_MAX)

/* What was queried, and what the reply is checked with. */
struct ledger_queried {
    struct trace_query query;
    struct trace_reply_target
        target; /* of TRACE_QUERY_DIVERGED only target.known counts: the next state's root */
    struct digest program; /* of TRACE_QUERY_DIVERGED: the root that the evidence is judged under */
    struct partial_sums_target parts; /* of TRACE_QUERY_PARTS, which has nothing else */
};

size_t ledger_queried_write(uint8_t bytes[LEDGER_QUERIED_SIZE_MAX],
                            const struct ledger_queried *queried);

/* Only bytes that ledger_queried_write() would write are read. */
MUST_CHECK enum status ledger_queried_read(struct ledger_queried *queried, const uint8_t *bytes,
                                           size_t size);

/* ---- writing and checking ---- */

#define LEDGER_QUERY_SIZE_MAX                                                                      \
    (TRACE_QUERY_SIZE + 14 + 1024 + 6 * DIGEST_SIZE + COMMIT_TENSOR_HEADER_MAX + 4 +               \
     3 * MERKLE_DEPTH_MAX * DIGEST_SIZE + PARTIAL_SUMS_RANGE_SIZE + PARTIAL_SUMS_REPLY_MAX)

/* Appends the walk's next query, with its proofs. A walk that has ended has none:
 * STATUS_USAGE. */
MUST_CHECK enum status ledger_query_write(struct buffer *bytes, const struct trace_walk *walk,
                                          struct error *error);

/* Appends the query for the parts of an element, of which the leaf alone is shown. part is NULL, or
 * it is that part of the last reply whose own parts are queried. */
MUST_CHECK enum status ledger_query_write_parts(struct buffer *bytes, const struct tape *tape,
                                                const struct evidence_source *source,
                                                const struct evidence_target *target,
                                                const struct evidence_part *part,
                                                struct error *error);

/* Appends a query that needs no more proof than the program: for a list, or for an element that is
 * no finite number. */
MUST_CHECK enum status ledger_query_write_plain(struct buffer *bytes, const struct tape *tape,
                                                const struct trace_query *query,
                                                struct error *error);

/* Safe on hostile bytes; queried means something only on VERDICT_VALID. */
MUST_CHECK enum verdict ledger_query_check(struct ledger_queried *queried,
                                           const struct evidence_context *context,
                                           const uint8_t *bytes, size_t size);

#endif /* PROOFS_DISPUTE_LEDGER_QUERY_H */
