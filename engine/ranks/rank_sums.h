/*
 * rank_sums.h - the sums of one rank between its first two legs: what it sends to the owners of the
 * shards, and the additions that it owes as an owner, in the order of the tree.
 *
 * A message has one place in memory on both sides: the shards lie one after another, owner by
 * owner.
 */
#ifndef ENGINE_RANKS_RANK_SUMS_H
#define ENGINE_RANKS_RANK_SUMS_H

#include "engine/cpu/cpu.h"
#include "engine/ranks/ranks_link.h"
#include "engine/ranks/ranks_plan.h"

enum {
    RANK_TAG_PARTS = 1, /* of the exchanges of a step */
    RANK_TAG_ARRIVALS,
};

struct rank_sums {
    const struct ranks_plan *plan; /* borrowed, like the shards */
    const struct ranks_shards *shards;
    uint32_t rank;
    float *parts; /* of the rank's subtrees: per owner, subtree and sum its shard */
    float *slots; /* of all subtrees the own shard; a join is made over its left one */
    struct ranks_transfer *transfers;
    struct kernel_table kernels;
    int thread_count;
};

MUST_CHECK enum status rank_sums_open(struct rank_sums *sums, const struct ranks_plan *plan,
                                      const struct ranks_shards *shards, uint32_t rank,
                                      enum isa isa, int thread_count, struct error *error);
void rank_sums_close(struct rank_sums *sums); /* a zero-filled one is allowed */

/* A sum of the rank's own subtree number `subtree`. */
void rank_sums_put(struct rank_sums *sums, uint32_t subtree, uint32_t sum, const float *elements);

/* What was put there last: what the owners got of it. */
void rank_sums_part(float *elements, const struct rank_sums *sums, uint32_t subtree, uint32_t sum);

/* The exchange and the additions behind it. */
MUST_CHECK enum status rank_sums_join(struct rank_sums *sums, const struct ranks_link *link,
                                      struct error *error);

/* The rank's own shard of a whole sum. */
const float *rank_sums_shard(const struct rank_sums *sums, uint32_t sum);

#endif /* ENGINE_RANKS_RANK_SUMS_H */
