/*
 * node_seats.h - the places that the node has in draws: has seeds drawn, checks what it has a place
 * in, seals a verdict, and reveals it in time.
 *
 * A verdict is right (the eight leaves follow from the replay) or false at a step. It is in the
 * verdict database before it is planned, and is never another. Where the states could not be
 * fetched until late, the node says unseen instead; all else that keeps it from a verdict is
 * silence, and the reason stands at the place.
 */
#ifndef VERIFIER_NODE_NODE_SEATS_H
#define VERIFIER_NODE_NODE_SEATS_H

#include "verifier/node/node.h"

/* Inside a transaction. */
MUST_CHECK enum status node_seats_round(struct node *node, struct error *error);

/* For the signing guard: seals, reveals or raises the alarm as the verdict database has it. */
MUST_CHECK enum status node_seats_send(struct node *node, const struct action *action,
                                       const struct store_segment *segment, struct error *error);

#endif /* VERIFIER_NODE_NODE_SEATS_H */
