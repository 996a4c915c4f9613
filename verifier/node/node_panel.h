/*
 * node_panel.h - in whose panels the node is: enlists by its policy, leaves when the policy agrees
 * no longer or the job is at an end, and collects its bonds; and where its panels find it.
 */
#ifndef VERIFIER_NODE_NODE_PANEL_H
#define VERIFIER_NODE_NODE_PANEL_H

#include "verifier/node/node.h"

/* Inside a transaction. */
MUST_CHECK enum status node_panel_round(struct node *node, struct error *error);

/* For the signing guard. */
MUST_CHECK enum status node_panel_enlist(struct node *node, const struct action *action,
                                         struct error *error);
MUST_CHECK enum status node_panel_announce(struct node *node, const struct action *action,
                                           struct error *error);

#endif /* VERIFIER_NODE_NODE_PANEL_H */
