/*
 * rank_arrivals.h - what ranks have made in parts and read whole: each sends its parts to all.
 *
 * One exchange stands before each leg that reads such tensors, and one behind the last leg for the
 * next values of states that are whole on every rank. All parts of a rank travel as one message.
 */
#ifndef ENGINE_RANKS_RANK_ARRIVALS_H
#define ENGINE_RANKS_RANK_ARRIVALS_H

#include "engine/ranks/rank_places.h"
#include "engine/ranks/ranks_link.h"

struct rank_arrivals {
    struct ranks_shards shards; /* in bytes, of what arrives before this stage */
    uint32_t rank;
    uint8_t *parts; /* per owner and tensor its part */
    struct ranks_transfer *transfers;
};

MUST_CHECK enum status rank_arrivals_open(struct rank_arrivals *arrivals,
                                          const struct rank_places *places, uint32_t stage,
                                          uint32_t rank, struct error *error);
void rank_arrivals_close(struct rank_arrivals *arrivals); /* a zero-filled one is allowed */

/* Where the rank's own part of tensor number `at` of this stage is to be written. */
uint8_t *rank_arrivals_own(const struct rank_arrivals *arrivals, uint32_t at);

/* Sends the own parts to all, and takes theirs. */
MUST_CHECK enum status rank_arrivals_exchange(struct rank_arrivals *arrivals,
                                              const struct ranks_link *link, struct error *error);

/* A tensor as a whole. */
void rank_arrivals_get(uint8_t *bytes, const struct rank_arrivals *arrivals, uint32_t at);

#endif /* ENGINE_RANKS_RANK_ARRIVALS_H */
