/*
 * promised.h - the money that an embedded ledger's rules have promised to somebody. Tests only.
 *
 * Escrow, stakes and bonds: all of it, read from the records, must be what a contract with the same
 * history holds beyond what it owes already.
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
