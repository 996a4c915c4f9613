/*
 * node_claims.h - what the node says against others: claims as an outsider, and challenges of
 * rights that are false.
 *
 * A plan is an action (queue.h). The signing guard sends it. Everything here runs inside a
 * transaction.
 */
#ifndef VERIFIER_NODE_NODE_CLAIMS_H
#define VERIFIER_NODE_NODE_CLAIMS_H

#include "verifier/node/node.h"

/* The segment of the request that the result is about; NULL: the request names no such segment. */
const struct check_segment *node_segment_of(const struct check_request *request,
                                            const struct check_result *result);

/* Enters a refuted step into the verdict database and, where no place of ours can raise an alarm,
 * plans the claim. *why: what stands in the way, if anything does. */
MUST_CHECK enum status node_accuse(struct node *node, const struct task *task,
                                   const struct check_request *request,
                                   const struct check_result *result, const char **why,
                                   struct error *error);

/* Plans a seal, by its number, and the claim behind it. */
MUST_CHECK enum status node_plan_claim(struct node *node, const struct action *claim,
                                       uint32_t seal_number, struct error *error);

/* The seal of a claim lives for some blocks: plans another where the claim came too late for it. */
MUST_CHECK enum status node_seal_again(struct node *node, const struct action *claim,
                                       struct error *error);

/* Compares rights that were revealed with what was found here, and plans challenges. */
MUST_CHECK enum status node_judge_rights(struct node *node, struct error *error);

#endif /* VERIFIER_NODE_NODE_CLAIMS_H */
