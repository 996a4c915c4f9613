/*
 * node_offers.h - which jobs of the board a solver's node would take, and which first.
 */
#ifndef PROVER_NODE_NODE_OFFERS_H
#define PROVER_NODE_NODE_OFFERS_H

#include "prover/node/node_parts.h"

/* Weighs all open jobs for a slot. Afterwards the offers of the node say why it refuses. */
MUST_CHECK enum status node_offers_weigh(struct solver_node *node, uint32_t slot,
                                         struct error *error);

/* After that: the first job that is to be measured, else the one that earns most an hour. False:
 * there is none. */
bool node_offers_choose(const struct solver_node *node, uint32_t slot, uint32_t *number,
                        bool *measure);

/* The pace that is remembered after a measurement, for every opening of this job: all of them are
 * the same work. */
MUST_CHECK enum status node_offers_read_pace(struct solver_node *node, uint32_t slot,
                                             const struct digest *job_id, struct error *error);

/* Not again for so long, for that reason. */
void node_offers_put_off(struct solver_node *node, const struct hash32 *key, uint64_t wait_ms,
                         const char *why);

/* The same, for every opening of the job. */
void node_offers_put_off_all(struct solver_node *node, const struct digest *job_id,
                             uint64_t wait_ms, const char *why);

#endif /* PROVER_NODE_NODE_OFFERS_H */
