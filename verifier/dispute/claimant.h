/*
 * claimant.h - what becomes of our claims once they are on the ledger, and of claims against us.
 *
 * An accused that does not answer in time is convicted by a timeout, which somebody must call; a
 * claim whose accused was convicted by another gives its bond back. An answer is disputed question
 * by question: a child (duel.h) finds the next move and leaves it in the claim's folder in the
 * cache, and it is sent under a name that follows from the claim and the turn (moves.h). So the
 * node can be killed between any two instructions and makes the same move again, never another one.
 * Who accuses an attestation of ours is answered in the same way, and timed out when it falls
 * silent.
 */
#ifndef VERIFIER_DISPUTE_CLAIMANT_H
#define VERIFIER_DISPUTE_CLAIMANT_H

#include "verifier/node/node.h"

MUST_CHECK enum status claimant_round(struct node *node, bool *busy, struct error *error);

/* Keeps what the accused told on the ledger. Before the cursor moves past the entry. */
MUST_CHECK enum status claimant_hear(struct node *node, const struct ledger_entry *entry,
                                     struct error *error);

/* A child has ended that was to find a move. */
MUST_CHECK enum status claimant_take(struct node *node, const struct node_running *place,
                                     const struct check_result *result, struct error *error);

#endif /* VERIFIER_DISPUTE_CLAIMANT_H */
