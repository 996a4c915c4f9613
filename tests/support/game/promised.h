/*
 * promised.h - the sum of all escrow, stakes and bonds of an embedded ledger.
 *
 * It must equal what a contract with the same history holds beyond what it owes already.
 */
#ifndef TESTS_SUPPORT_GAME_PROMISED_H
#define TESTS_SUPPORT_GAME_PROMISED_H

#include "chain/local/local_store.h"

/* A segment that was committed: the records know only its hash. */
struct promised_segment {
    struct hash32 segment;
    struct hash32 job;
    uint32_t index;
};

wei promised_money(struct local_store *store, const struct promised_segment *segments,
                   uint32_t count);

#endif /* TESTS_SUPPORT_GAME_PROMISED_H */
