/*
 * promised.h - the sum of all that an embedded ledger holds: escrows, pools, stakes, bonds, pots,
 * query fees; and what it burned.
 *
 * It must equal what a contract with the same history holds beyond what it owes already.
 */
#ifndef TESTS_SUPPORT_GAME_PROMISED_H
#define TESTS_SUPPORT_GAME_PROMISED_H

#include "chain/local/local_store.h"

wei promised_money(struct local_store *store);

#endif /* TESTS_SUPPORT_GAME_PROMISED_H */
