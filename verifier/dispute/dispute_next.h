/*
 * dispute_next.h - decides the next move of a dispute: the only place that does.
 *
 * The node, `lockstep verifier claim` and `lockstep audit` all ask here. A node knows the ledger
 * and not the step: it asks without the step, and starts a child where the answer is DISPUTE_RUN.
 * The child has the step and asks again. An audit has the step and no ledger.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_NEXT_H
#define VERIFIER_DISPUTE_DISPUTE_NEXT_H

#include "verifier/dispute/dispute_move.h"
#include "verifier/dispute/dispute_step.h"

/*
 * step NULL: it is not at hand, and payload is not used; a move that was found before is read from
 * the folder. Otherwise the payload of a query or of evidence is appended to payload.
 * The rules of this program have judged evidence for a ledger before it is given: what they do not
 * convict for is not sent. An audit judges its own.
 */
MUST_CHECK enum status dispute_next(enum dispute_kind *kind, struct buffer *payload,
                                    const struct dispute *dispute, struct dispute_step *step,
                                    struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_NEXT_H */
