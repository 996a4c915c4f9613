/*
 * ledger_local.h - the embedded ledger, beyond what all ledgers have: making one, free money, and
 * a clock for tests.
 *
 * One sqlite3 file. Each move is a block; the height also grows by one with every second, so that
 * what waits for a block does not wait for a move. Nobody but the file's owner is trusted or kept
 * out: it is for one machine, for trying things and for tests. On a chain, none of this exists.
 */
#ifndef CHAIN_LOCAL_LEDGER_LOCAL_H
#define CHAIN_LOCAL_LEDGER_LOCAL_H

#include "chain/game/ledger.h"

/* Makes the file. STATUS_REFUSED when there is one. referee NULL: the embedded one, which judges by
 * the same rules as the contract. Else the account that may pass turns and rule; zero: nobody, and
 * every dispute ends by a timeout. */
MUST_CHECK enum status ledger_local_init(const char *path, const struct address *referee,
                                         struct error *error);

/* Money from nowhere. The ledger must be a local one. */
MUST_CHECK enum status ledger_local_faucet(struct ledger *ledger, const struct address *account,
                                           wei amount, struct error *error);

/* From now on time stands still at time_s, and block hashes are keccak256 of the height. */
MUST_CHECK enum status ledger_local_set_clock(struct ledger *ledger, uint64_t time_s,
                                              struct error *error);

#endif /* CHAIN_LOCAL_LEDGER_LOCAL_H */
