/*
 * signing_guard.h - sends the node's moves. The only file of the verifier that makes anything be
 * signed.
 *
 * A verdict, an alarm, a claim and the seal of a claim are statements. Before one is signed, the
 * verdict database must have taken it, and the node must not be at fault. Each is on disk as an
 * action before it is sent, and has one name on the ledger for ever.
 */
#ifndef VERIFIER_NODE_SIGNING_GUARD_H
#define VERIFIER_NODE_SIGNING_GUARD_H

#include "verifier/node/node.h"

/* Sends what is due and looks what became of what was sent. *busy: something was. */
MUST_CHECK enum status signing_guard_round(struct node *node, bool *busy, struct error *error);

/* A reorganization took back what was final: moves that were done and are not final any more are
 * looked after again. The ledger sends the same bytes; what it refuses is planned again. */
MUST_CHECK enum status signing_guard_reopen(struct node *node, struct error *error);

#endif /* VERIFIER_NODE_SIGNING_GUARD_H */
