/*
 * node_round.h - one round of a node: follow the ledger, take results, plan, start checks, send.
 */
#ifndef VERIFIER_NODE_NODE_ROUND_H
#define VERIFIER_NODE_NODE_ROUND_H

#include "verifier/node/node.h"

/* *busy: there was something to do, so the next round should come soon. A ledger that cannot be
 * reached is no failure: the store says so. A failure is one of our own disk. */
MUST_CHECK enum status node_round(struct node *node, bool *busy, struct error *error);

#endif /* VERIFIER_NODE_NODE_ROUND_H */
