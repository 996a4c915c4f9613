/* random_terms.h - terms that a ledger takes, at random, and terms of which one is out of range. */
#ifndef TESTS_SUPPORT_CHAIN_RANDOM_TERMS_H
#define TESTS_SUPPORT_CHAIN_RANDOM_TERMS_H

#include "chain/game/game.h"

/* Without job, salt and steps. Some have an allow-list, of the members. */
struct game_terms random_terms(uint64_t *random, const struct address *members,
                               uint32_t member_count, uint64_t now_s);

/* One term that is out of range, or at its edge. */
void random_terms_spoil(struct game_terms *terms, uint64_t *random, uint64_t now_s);

#endif /* TESTS_SUPPORT_CHAIN_RANDOM_TERMS_H */
