/*
 * node_policy.h - asks the node's policy (chain/game/policy/policy.h) before money is locked: what
 * the node's bonds lock already, and how long the checks of a job take here, are in its database.
 *
 * A bond that was lost counts as locked for NODE_POLICY_LOST_S more: a party that robs a node of
 * its bonds gets no more than the limit of such a time.
 */
#ifndef VERIFIER_NODE_NODE_POLICY_H
#define VERIFIER_NODE_NODE_POLICY_H

#include "verifier/node/node.h"

#define NODE_POLICY_LOST_S (30 * 86400)

/* May the node have one entry more in a job's panel? refusal->term is POLICY_AGREED when it may. */
MUST_CHECK enum status node_policy_enlist(struct node *node, struct policy_refusal *refusal,
                                          const struct store_job *job, struct error *error);
/* The same just before it is sent. STATUS_REFUSED: no, for the reason in error. */
MUST_CHECK enum status node_policy_enlist_now(struct node *node, const struct store_job *job,
                                              struct error *error);

/* Would it take the terms alone, without a look at what is locked? */
MUST_CHECK enum status node_policy_terms(struct node *node, struct policy_refusal *refusal,
                                         const struct store_job *job, struct error *error);

/* May the bond of a claim be locked now? STATUS_REFUSED: no, for the reason in error. The first
 * time the log says so. */
MUST_CHECK enum status node_policy_claim(struct node *node, const struct action *action,
                                         const struct store_segment *segment, wei bond,
                                         struct error *error);

#endif /* VERIFIER_NODE_NODE_POLICY_H */
