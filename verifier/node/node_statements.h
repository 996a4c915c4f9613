/*
 * node_statements.h - plans what the node says on a ledger of its own accord: attestations and
 * claims.
 *
 * A plan is an action (queue.h). The signing guard sends it. Everything here runs inside a
 * transaction.
 */
#ifndef VERIFIER_NODE_NODE_STATEMENTS_H
#define VERIFIER_NODE_NODE_STATEMENTS_H

#include "verifier/node/node.h"

/* Plans an action. Plans it again where an earlier round of the segment missed it. */
MUST_CHECK enum status node_plan_again(struct node *node, const struct action *action,
                                       struct error *error);

/* The segment of the request that the result is about; NULL: the request names no such segment. */
const struct check_segment *node_segment_of(const struct check_request *request,
                                            const struct check_result *result);

/* Enters a refuted step into the verdict database and plans the claim. *why: what stands in the
 * way, if anything does. */
MUST_CHECK enum status node_accuse(struct node *node, const struct hash32 *job,
                                   const struct check_request *request,
                                   const struct check_result *result, const char **why,
                                   struct error *error);

/* Plans the seal and the claim. */
MUST_CHECK enum status node_plan_claim(struct node *node, const struct action *seal,
                                       struct error *error);

/* Plans the attestation that a proven check allows, and its reveal. */
MUST_CHECK enum status node_plan_attestation(struct node *node, const struct store_segment *segment,
                                             uint32_t step, const struct check_result *result,
                                             struct error *error);

#endif /* VERIFIER_NODE_NODE_STATEMENTS_H */
