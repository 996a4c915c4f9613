/*
 * dispute_round.h - carries our claims to their end.
 *
 * A round reads each open claim back as a dispute (dispute.h), asks dispute_next() what comes next
 * and does it: it plans a move, starts a child that finds one, or ends a claim whose other side is
 * silent or gone.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_ROUND_H
#define VERIFIER_DISPUTE_DISPUTE_ROUND_H

#include "verifier/dispute/dispute_send.h"

/* *busy: a child looks for a move. */
MUST_CHECK enum status dispute_round(const struct dispute_ports *ports, bool *busy,
                                     struct error *error);

/* Keeps what an event says to a dispute. Called before the cursor moves past the entry. */
MUST_CHECK enum status dispute_hear(const struct dispute_ports *ports,
                                    const struct ledger_entry *entry, struct error *error);

/* Takes the result of a child that was to find a move of a claim. */
MUST_CHECK enum status dispute_take(const struct dispute_ports *ports, const struct hash32 *claim,
                                    const struct check_result *result, struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_ROUND_H */
