/*
 * node_slots.h - the slots of a solver's node: what each device measures or trains.
 */
#ifndef PROVER_NODE_NODE_SLOTS_H
#define PROVER_NODE_NODE_SLOTS_H

#include "prover/node/node_parts.h"

/* Looks at what ended, and gives free slots work. */
MUST_CHECK enum status node_slots_round(struct solver_node *node, struct error *error);

/* Stops all children, and waits for them. */
void node_slots_stop(struct solver_node *node);

/* Opens a job that has a folder, and holds it. */
MUST_CHECK enum status node_slots_hold(struct solver_node *node, const struct hash32 *key,
                                       const struct policy_pace *pace, struct error *error);

struct held_job *node_slots_find(const struct solver_node *node, const struct hash32 *key);

#endif /* PROVER_NODE_NODE_SLOTS_H */
