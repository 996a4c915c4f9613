/*
 * node_checks.h - starts checks and takes their results: a verdict is made here and nowhere else.
 */
#ifndef VERIFIER_NODE_NODE_CHECKS_H
#define VERIFIER_NODE_NODE_CHECKS_H

#include "verifier/node/node.h"

MUST_CHECK enum status node_take_answers(struct node *node, bool *busy, struct error *error);
MUST_CHECK enum status node_start_checks(struct node *node, bool *busy, struct error *error);

#endif /* VERIFIER_NODE_NODE_CHECKS_H */
