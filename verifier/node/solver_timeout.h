/*
 * solver_timeout.h - the moves that anybody may make, for a solver that makes them no more.
 *
 * Bond and fee of an attestation come back when its segment is final or void, and a segment becomes
 * final when somebody says so, after all before it. The solver does, which is paid by it. Where it
 * does not, and money of ours waits, the node does it: it draws, renews and finalizes the job's
 * first segment that is not final, whoever attested it, ends claims that nobody ends, and has the
 * job expire when nothing else is left.
 *
 * It begins a grace period after the solver could have, and a little later than that: each node
 * another while, which nobody else can compute, so that few pay for the same move. Who comes second
 * has lost some gas and nothing else.
 *
 * What it may cost is bounded: it makes no more than SOLVER_TIMEOUT_REACH segments final that it
 * has not attested itself to get at one that it has, and no more than SOLVER_TIMEOUT_RENEWALS
 * rounds of one segment. Behind that, expiry gives the bonds back.
 */
#ifndef VERIFIER_NODE_SOLVER_TIMEOUT_H
#define VERIFIER_NODE_SOLVER_TIMEOUT_H

#include "verifier/node/node.h"

#define SOLVER_TIMEOUT_REACH    64
#define SOLVER_TIMEOUT_RENEWALS 3

/* Plans what is due, and forgets what was planned and is not wanted any more. Inside a
 * transaction. */
MUST_CHECK enum status solver_timeout_round(struct node *node, struct error *error);

/* Is it a kind of moves that anybody may make, so that somebody else may have? */
bool solver_timeout_is_anybodys(enum action_kind kind);

/* What becomes of such a move that the ledger refused, and since when: *due_s. */
enum action_state solver_timeout_refused(uint64_t *due_s, const struct node *node,
                                         enum game_refusal_kind refusal);

#endif /* VERIFIER_NODE_SOLVER_TIMEOUT_H */
