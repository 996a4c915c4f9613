/*
 * node_plan.h - decides what is checked, and plans what the node says and moves.
 */
#ifndef VERIFIER_NODE_NODE_PLAN_H
#define VERIFIER_NODE_NODE_PLAN_H

#include "verifier/node/node.h"

MUST_CHECK enum status node_plan(struct node *node, struct error *error);

#endif /* VERIFIER_NODE_NODE_PLAN_H */
