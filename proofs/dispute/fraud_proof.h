/*
 * fraud_proof.h - evidence from a walk that has ended.
 *
 * Evidence is written under the accused's own roots. The accused's replies lead to the first
 * difference. Everything that the operation reads stands to the left of it and is as the claimant's
 * own, and so are the job's data and constants. A fraud proof puts these together as an
 * evidence_source, keeps the tensors that the operation reads and writes, and writes what
 * evidence.h judges.
 *
 * Tour 9 of 10: next read chain/local/local_referee.c, who convicts.
 */
#ifndef PROOFS_DISPUTE_FRAUD_PROOF_H
#define PROOFS_DISPUTE_FRAUD_PROOF_H

#include "proofs/dispute/evidence.h"
#include "proofs/dispute/trace_walk.h"
#include "proofs/job/job.h"

struct fraud_proof {
    struct trace_walk *walk; /* borrowed; its end names the kind of evidence */
    struct evidence_given given;
    struct digest **pieces; /* nodes of each data tensor, made when first used */
    uint32_t piece_count;
    struct evidence_source source;
    struct evidence_target target; /* TRACE_WALK_ELEMENT: the element that costs least to prove */
};

/* The walk must have ended, but not with TRACE_WALK_NO_LIE; given is borrowed. */
MUST_CHECK enum status fraud_proof_open(struct fraud_proof *proof, struct trace_walk *walk,
                                        const struct evidence_given *given, struct error *error);
/* Another element of the same leaf, where the ledger did not convict for the passed_over best ones.
 * STATUS_NOT_FOUND: there are no more, or the evidence is not about an element. */
MUST_CHECK enum status fraud_proof_other(struct fraud_proof *proof, uint32_t passed_over,
                                         struct error *error);
void fraud_proof_close(struct fraud_proof *proof); /* a zero-filled one is allowed */

/* What was queried last on the ledger, and the accused's reply to it, on any subject. Borrowed; of
 * size 0 where there is none. */
struct fraud_proof_said {
    const uint8_t *queried;
    size_t queried_size;
    const uint8_t *reply;
    size_t reply_size;
};

/*
 * Appends the move that convicts, of at most size_max bytes. Evidence of an element is written
 * whole while it has at most FRAUD_PROOF_WHOLE_MAX bytes. Of a longer one whose rule has parts
 * (rule.h), the accused must first reply what they come to: *is_query says that the move is that
 * query. A false part that is too long itself and has parts is queried in the same way, and so on.
 * After a restart the same element is chosen again. STATUS_OVER_LIMIT: the evidence does not fit.
 */
#define FRAUD_PROOF_WHOLE_MAX (32 * 1024)
MUST_CHECK enum status fraud_proof_write(struct buffer *bytes, bool *is_query,
                                         struct fraud_proof *proof,
                                         const struct fraud_proof_said *said, size_t size_max,
                                         struct error *error);

/* Appends whole evidence, where no ledger could query partial sums. STATUS_OVER_LIMIT: it has more
 * than size_max bytes. */
MUST_CHECK enum status fraud_proof_write_whole(struct buffer *bytes, struct fraud_proof *proof,
                                               size_t size_max, struct error *error);

/* How a ledger that knows the context rules on such evidence, when that was said last. */
MUST_CHECK enum status fraud_proof_judge(struct evidence_ruling *ruling,
                                         const struct fraud_proof *proof,
                                         const struct evidence_context *context,
                                         const struct fraud_proof_said *said,
                                         const struct buffer *evidence, struct error *error);

/*
 * Appends the reply of an accused to a query; own must have run the step. Replies to all queries of
 * trace_server_answer(), and to those of a ledger alone: a divergence, and the parts of an element
 * or of the range of its axis (NULL where nothing names one). STATUS_NOT_FOUND: the step has no
 * such thing.
 */
MUST_CHECK enum status fraud_proof_reply(struct buffer *bytes, struct trace_server *own,
                                         const struct evidence_given *given,
                                         const struct trace_query *query,
                                         const struct partial_sums_range *range,
                                         struct error *error);

/*
 * Appends evidence that the state after the step holds a number that ends a job: against a solver
 * that went on, or as the reply to TRACE_QUERY_DIVERGED. own must have run the step that both agree
 * on. STATUS_NOT_FOUND: all numbers are finite.
 */
MUST_CHECK enum status fraud_proof_not_finite(struct buffer *bytes, struct trace_server *own,
                                              struct error *error);

#endif /* PROOFS_DISPUTE_FRAUD_PROOF_H */
