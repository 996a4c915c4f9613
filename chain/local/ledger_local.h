/*
 * ledger_local.h - the embedded ledger: a new file, free money, and a clock for tests.
 *
 * One sqlite3 file. Each move is a block; the height also grows by one every second, so nothing
 * waits for a move of somebody else. The file's owner can change everything: it is for one machine,
 * for trials and tests.
 */
#ifndef CHAIN_LOCAL_LEDGER_LOCAL_H
#define CHAIN_LOCAL_LEDGER_LOCAL_H

#include "chain/game/ledger.h"

/* Makes the file. STATUS_REFUSED if it exists. */
MUST_CHECK enum status ledger_local_init(const char *path, struct error *error);

/* Gives free money. The ledger must be an embedded one. */
MUST_CHECK enum status ledger_local_faucet(struct ledger *ledger, const struct address *account,
                                           wei amount, struct error *error);

/* From now on time stands still at time_s, and the random number of a block is keccak256 of its
 * height. */
MUST_CHECK enum status ledger_local_set_clock(struct ledger *ledger, uint64_t time_s,
                                              struct error *error);

struct local_job;

/* What a ledger shows of a job that it keeps. */
void ledger_local_job(struct ledger_job *job, const struct local_job *found);

#endif /* CHAIN_LOCAL_LEDGER_LOCAL_H */
