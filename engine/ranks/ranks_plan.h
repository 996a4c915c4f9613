/*
 * ranks_plan.h - the plan of sums of one step that several processes, the ranks, make together.
 *
 * The tape says how gradients are added: the groups of micro-batches are the leaves of a balanced
 * tree (engine/tape/repeat.h). Rank r of N runs the groups floor(r G / N) to floor((r + 1) G / N)
 * - 1 and makes the additions of every subtree that it has whole. All other additions are the
 * tape's too: the owner of an element makes them in the order of the tree. So the bits do
 * not depend on N.
 *
 * rank_places.h says where a sum is cut into shards, one a rank.
 *
 * Nothing here does I/O.
 */
#ifndef ENGINE_RANKS_RANKS_PLAN_H
#define ENGINE_RANKS_RANKS_PLAN_H

#include "base/error.h"
#include "engine/ops/tensor.h"

#define RANKS_MAX         1024
#define RANKS_SHARD_LEAST 65536 /* bytes of a sum that is cut */
#define RANKS_NOBODY      UINT32_MAX

/* A node of the tree: 1 is the root, the children of t are 2t and 2t + 1. */
struct ranks_subtree {
    uint32_t node;
    uint32_t rank; /* that has it whole */
};

/* An addition that an owner makes. Slots count the subtrees, then the additions before. */
struct ranks_join {
    uint32_t node;
    uint32_t left;
    uint32_t right;
};

struct ranks_plan {
    uint32_t rank_count;
    uint32_t group_count;
    struct ranks_subtree *subtrees; /* the largest ones of each rank, in the order of the groups */
    uint32_t subtree_count;
    struct ranks_join *joins; /* in running order; the last makes the root */
    uint32_t join_count;
};

/* The first group of a rank; of rank `ranks`, the number of groups. */
uint32_t ranks_first_group(uint32_t rank, uint32_t ranks, uint32_t groups);

/* groups: a power of two, from 2 on. Refuses fewer than two ranks, and more than RANKS_MAX. A rank
 * without a group is spare: it owns shards like the others. */
MUST_CHECK enum status ranks_plan_build(struct ranks_plan *plan, uint32_t ranks, uint32_t groups,
                                        struct error *error);
void ranks_plan_release(struct ranks_plan *plan); /* a zero-filled plan is allowed */

/* Where in plan->subtrees those of a rank begin; of rank `ranks`, their number. */
uint32_t ranks_first_subtree(const struct ranks_plan *plan, uint32_t rank);

/* Who owns which elements: rank r those from bound r to bound r + 1 of each tensor. */
struct ranks_shards {
    uint32_t rank_count;
    uint32_t tensor_count;
    uint64_t *bounds; /* per tensor rank_count + 1 */
};

void ranks_shards_release(struct ranks_shards *shards);

/* The first element of a tensor that the rank owns; of rank `rank_count`, their number. */
uint64_t ranks_shard_first(const struct ranks_shards *shards, uint32_t tensor, uint32_t rank);

/* Elements of all tensors that the rank owns. */
uint64_t ranks_shard_count(const struct ranks_shards *shards, uint32_t rank);

/* Who does a piece of work of each of these sizes, so that all have about as much: owners[i]. */
MUST_CHECK enum status ranks_deal(uint32_t *owners, const uint64_t *sizes, uint32_t count,
                                  uint32_t ranks, struct error *error);

/* Elements of sums that all ranks together send to their owners in a step: what the subtrees of
 * each hold of the shards of others. */
uint64_t ranks_sent_elements(const struct ranks_plan *plan, const struct ranks_shards *shards);

#endif /* ENGINE_RANKS_RANKS_PLAN_H */
