/*
 * ledger_query.h - an ask as a ledger takes it: with the proof that what is asked about was
 * committed.
 *
 * On a ledger the claimant may ask only for what lies under the accused's own roots, so a question
 * is an ask and the paths from there to the program root and to the root of the trace or of the
 * next state. From a question that holds, the ledger learns all that the answer is checked with:
 * `asked`, a short record that the ledger keeps the hash of, and that the accused repeats when it
 * tells. A contract needs nothing else, and neither does whoever reads the ledger's events.
 * docs/FORMATS.md has every byte.
 */
#ifndef PROOFS_DISPUTE_LEDGER_QUERY_H
#define PROOFS_DISPUTE_LEDGER_QUERY_H

#include "base/buffer.h"
#include "proofs/dispute/evidence.h"
#include "proofs/dispute/trace_walk.h"

/* ---- what a ledger keeps ---- */

#define LEDGER_QUERIED_SIZE_MAX (TRACE_QUERY_SIZE + DIGEST_SIZE + 11 + COMMIT_TENSOR_HEADER_MAX)

/* What was asked, and what the answer is checked with. */
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

/* ---- asking ---- */

#define LEDGER_QUERY_SIZE_MAX                                                                      \
    (TRACE_QUERY_SIZE + 14 + 1024 + 6 * DIGEST_SIZE + COMMIT_TENSOR_HEADER_MAX + 4 +               \
     3 * MERKLE_DEPTH_MAX * DIGEST_SIZE)

/* Appends the question that walk asks now, with its proofs. A walk that has ended asks nothing:
 * STATUS_USAGE. */
MUST_CHECK enum status ledger_query_write(struct buffer *bytes, const struct trace_walk *walk,
                                          struct error *error);

/* Appends the question for the parts of an element, of which a leaf is all that is shown. */
MUST_CHECK enum status ledger_query_write_parts(struct buffer *bytes, const struct tape *tape,
                                                const struct evidence_source *source,
                                                const struct evidence_target *target,
                                                struct error *error);

/* Appends the question for an element that is no finite number. */
MUST_CHECK enum status ledger_query_write_diverged(struct buffer *bytes, const struct tape *tape,
                                                   struct error *error);

/* Safe on hostile bytes; asked means something only on VERDICT_VALID. */
MUST_CHECK enum verdict ledger_query_check(struct ledger_queried *queried,
                                           const struct evidence_context *context,
                                           const uint8_t *bytes, size_t size);

#endif /* PROOFS_DISPUTE_LEDGER_QUERY_H */
