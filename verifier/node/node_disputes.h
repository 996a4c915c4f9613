/*
 * node_disputes.h - the disputes of a node: gives verifier/dispute the node's store, ledger and
 * children.
 */
#ifndef VERIFIER_NODE_NODE_DISPUTES_H
#define VERIFIER_NODE_NODE_DISPUTES_H

#include "verifier/dispute/dispute_round.h"
#include "verifier/node/node.h"

/* Borrows node. */
struct dispute_ports node_dispute_ports(struct node *node);

/* A round of all open claims. */
MUST_CHECK enum status node_disputes(struct node *node, bool *busy, struct error *error);

/* Takes the result of a child that was to find a move. */
MUST_CHECK enum status node_take_move(struct node *node, const struct node_running *place,
                                      const struct check_result *result, struct error *error);

#endif /* VERIFIER_NODE_NODE_DISPUTES_H */
