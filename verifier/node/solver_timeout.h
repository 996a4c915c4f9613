/*
 * solver_timeout.h - makes the moves that anybody may make, for a solver that makes them no more.
 *
 * Bond and fee of an attestation come back when its segment is final or void. A segment becomes
 * final when somebody says so, after all segments before it. The solver does, since it is paid by
 * it. Where it does not, and money of ours waits, the node does: it draws, renews and finalizes the
 * job's first segment that is not final, whoever attested it. It ends claims that nobody ends, and
 * lets the job expire when nothing else is left.
 *
 * The node waits for a grace period after the solver could have moved, and for a while longer that
 * only this node can compute, so that few nodes pay for the same move. A node that comes second
 * loses some gas and nothing else.
 *
 * The cost is bounded: the node finalizes at most SOLVER_TIMEOUT_REACH segments that it has not
 * attested to get at one that it has, and renews one segment at most SOLVER_TIMEOUT_RENEWALS times.
 * After that, expiry gives the bonds back.
 */
#ifndef VERIFIER_NODE_SOLVER_TIMEOUT_H
#define VERIFIER_NODE_SOLVER_TIMEOUT_H

#include "verifier/node/node.h"

#define SOLVER_TIMEOUT_REACH    64
#define SOLVER_TIMEOUT_RENEWALS 3

/* Plans the moves that are due, and forgets planned ones that no longer are. Inside a
 * transaction. */
MUST_CHECK enum status solver_timeout_round(struct node *node, struct error *error);

/* Is it a kind of moves that anybody may make, so that somebody else may have? */
bool solver_timeout_is_anybodys(enum action_kind kind);

/* What becomes of such a move that the ledger refused, and since when: *due_s. */
enum action_state solver_timeout_refused(uint64_t *due_s, const struct node *node,
                                         enum game_refusal_kind refusal);

#endif /* VERIFIER_NODE_SOLVER_TIMEOUT_H */
