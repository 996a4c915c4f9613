/*
 * node_children.h - the child processes of a node: what they are asked, and which of them run.
 */
#ifndef VERIFIER_NODE_NODE_CHILDREN_H
#define VERIFIER_NODE_NODE_CHILDREN_H

#include "verifier/node/node.h"

/* The request to check a segment as it was committed, with the node's limits and mirrors. *made is
 * the caller's on any outcome. */
MUST_CHECK enum status node_request(struct node *node, struct check_request **made,
                                    const struct store_segment *segment, struct error *error);

/* The request to try a job: see check_wire.h. *made is the caller's on any outcome. */
MUST_CHECK enum status node_trial_request(struct node *node, struct check_request **made,
                                          const struct store_job *job, struct error *error);

/* Hands a request to a free child. STATUS_NOT_FOUND: none is free. Takes request. claim: the
 * dispute that the request is about, which has a place of its own; NULL: a task. */
MUST_CHECK enum status node_start(struct node *node, int64_t number, const struct hash32 *claim,
                                  struct check_request *request, struct error *error);

/* Notes the result of each child that has ended. */
MUST_CHECK enum status node_collect(struct node *node, struct error *error);

#endif /* VERIFIER_NODE_NODE_CHILDREN_H */
