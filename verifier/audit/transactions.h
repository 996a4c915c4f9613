/*
 * transactions.h - what a ledger says of the job of a bundle, for those who cite a report: the
 * transactions of its commits, of the verdicts about them, and of what is final.
 *
 * The embedded ledger has no transactions: there the number of the event names it.
 */
#ifndef VERIFIER_AUDIT_TRANSACTIONS_H
#define VERIFIER_AUDIT_TRANSACTIONS_H

#include <jansson.h>

#include "chain/game/ledger.h"
#include "proofs/bundle/bundle.h"

#define TRANSACTIONS_MAX 256 /* the last ones; how many came before is said */

/* Adds "transactions", and "transactions_left_out", of the job that the bundle notes. A commit says
 * whether its root is that of the journal. STATUS_NOT_FOUND: no job is noted, or the ledger does
 * not know it. STATUS_REFUSED: there it is another job. */
MUST_CHECK enum status transactions_add(json_t *entry, struct ledger *ledger, struct bundle *bundle,
                                        struct error *error);

/* Was the segment committed on the ledger, and each time with another root? The same failures. */
MUST_CHECK enum status transactions_differ(bool *differ, struct ledger *ledger,
                                           struct bundle *bundle, uint64_t segment,
                                           const struct digest *root, struct error *error);

/* The line of one of them. False: it is malformed. */
#define TRANSACTIONS_LINE_MAX 200
bool transactions_line(char line[TRANSACTIONS_LINE_MAX], const json_t *transaction);

#endif /* VERIFIER_AUDIT_TRANSACTIONS_H */
