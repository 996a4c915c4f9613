/*
 * claimant.h - what becomes of our claims once they are on the ledger.
 *
 * A solver that does not answer in time is convicted by a timeout, which somebody must call; a
 * claim whose accused was convicted by another gives its bond back. The dispute about an answer,
 * question by question, belongs here too.
 */
#ifndef VERIFIER_CLAIMANT_H
#define VERIFIER_CLAIMANT_H

#include "verifier/node.h"

MUST_CHECK enum status claimant_round(struct node *node, struct error *error);

#endif /* VERIFIER_CLAIMANT_H */
