/*
 * solver_node.h - a solver that takes work by itself: it follows the ledger's jobs, takes those
 * that its policy and its own measurement agree to, trains them, and stays until they are paid.
 *
 * It has slots: devices, on each of which it trains one job at a time. A slot's device is locked
 * against all other trainings of this machine from the measurement to the last step. Training and
 * measuring are children without a key (child.h); the node itself makes all moves, with one handle
 * on the ledger. What it has begun stands in folders (held_job.h), so a node that is killed goes on
 * where it was.
 *
 * A slot that is free measures a job that the policy does not refuse and nobody measured yet; of
 * those that are measured it takes the one that earns most an hour.
 */
#ifndef PROVER_NODE_SOLVER_NODE_H
#define PROVER_NODE_SOLVER_NODE_H

#include "prover/node/node_parts.h"

/* options->terms.jobs names a folder that exists. Opens what an earlier life has begun. */
MUST_CHECK enum status solver_node_open(struct solver_node *node, struct error *error);
/* Stops all children. */
void solver_node_close(struct solver_node *node);

/* One round. STATUS_GONE: the ledger's file is not there any more. */
MUST_CHECK enum status solver_node_round(struct solver_node *node, struct error *error);

#endif /* PROVER_NODE_SOLVER_NODE_H */
