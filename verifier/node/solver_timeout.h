/*
 * solver_timeout.h - makes the moves that anybody may make, in place of a solver that makes them no
 * more.
 *
 * The fee of a right comes when its leg is final, and the bond of an entry is bound while a solver
 * has the job. A leg is final when somebody settles its covered segment, after all legs before it.
 * The solver does, since it is paid by it. Where it does not, and money of ours waits, the node
 * does: it settles covered segments, and brings what their keeper announced; ends claims that
 * nobody ends; has the pot of a conviction paid; and releases a job whose solver is late.
 *
 * The node waits for a grace period after the move became possible, and for a while longer that
 * only this node can compute, so that few nodes pay for the same move. A node that comes second
 * loses some gas and nothing else.
 */
#ifndef VERIFIER_NODE_SOLVER_TIMEOUT_H
#define VERIFIER_NODE_SOLVER_TIMEOUT_H

#include "verifier/node/node.h"

/* Plans the moves that are due, and forgets planned ones that no longer are. Inside a
 * transaction. */
MUST_CHECK enum status solver_timeout_round(struct node *node, struct error *error);

/* Has the pots of our convictions paid. Inside a transaction. */
MUST_CHECK enum status solver_timeout_pots(struct node *node, struct error *error);

/* Is it a kind of moves that anybody may make, so that somebody else may have? */
bool solver_timeout_is_anybodys(enum action_kind kind);

/* How much later than the first this node moves, within a span: another while for each node. */
uint64_t solver_timeout_place(const struct node *node, const struct hash32 *about, uint64_t span_s);

/* Settles a segment, with the vouch that its keeper announced where that is one. */
MUST_CHECK enum status solver_timeout_settle(struct node *node, const struct action *action,
                                             const struct store_segment *segment,
                                             struct error *error);

/* What becomes of such a move that the ledger refused, and since when: *due_s. */
enum action_state solver_timeout_refused(uint64_t *due_s, const struct node *node,
                                         enum game_refusal_kind refusal);

#endif /* VERIFIER_NODE_SOLVER_TIMEOUT_H */
