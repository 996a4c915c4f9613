/*
 * node_plan.h - decides which segments are checked and attested, and notes why the others are not.
 */
#ifndef VERIFIER_NODE_NODE_PLAN_H
#define VERIFIER_NODE_NODE_PLAN_H

#include "verifier/node/node.h"

/* Also plans settlements, withdrawals, audits of attestations and the moves of a solver that makes
 * them no more. */
MUST_CHECK enum status node_plan(struct node *node, struct error *error);

#endif /* VERIFIER_NODE_NODE_PLAN_H */
