/* ranks_plan.c - see ranks_plan.h. */
#include "engine/ranks/ranks_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 32

/* ---- the tree --------------------------------------------------------------------------- */

uint32_t ranks_first_group(uint32_t rank, uint32_t ranks, uint32_t groups)
{
    return (uint32_t)((uint64_t)rank * groups / ranks);
}

/* The largest subtree that begins with this group and ends before `end`; *groups: how many. */
static uint32_t largest_node(uint32_t *groups, uint32_t group, uint32_t end, uint32_t all)
{
    uint32_t node = all + group;

    *groups = 1;
    while (node > 1 && (node & 1) == 0 && *groups * 2 <= end - group) {
        node /= 2;
        *groups *= 2;
    }
    return node;
}

/* The subtrees that wait for their neighbour, at most one a level. */
struct waiting_nodes {
    uint32_t nodes[LEVELS_MAX];
    uint32_t slots[LEVELS_MAX];
    uint32_t count;
};

/* Joins what is complete. The joins are counted on from all subtrees, which are known by then. */
static void add_node(struct ranks_plan *plan, struct waiting_nodes *waiting, uint32_t node,
                     uint32_t slot)
{
    while (waiting->count > 0 && (node & 1) == 1 &&
           waiting->nodes[waiting->count - 1] == node - 1) {
        waiting->count--;
        node /= 2;
        plan->joins[plan->join_count] =
            (struct ranks_join){node, waiting->slots[waiting->count], slot};
        slot = plan->subtree_count + plan->join_count++;
    }
    assert(waiting->count < LEVELS_MAX);
    waiting->nodes[waiting->count] = node;
    waiting->slots[waiting->count++] = slot;
}

static void fill_plan(struct ranks_plan *plan)
{
    struct waiting_nodes waiting = {.count = 0};

    for (uint32_t rank = 0; rank < plan->rank_count; rank++) {
        const uint32_t end = ranks_first_group(rank + 1, plan->rank_count, plan->group_count);
        uint32_t group = ranks_first_group(rank, plan->rank_count, plan->group_count);

        while (group < end) {
            uint32_t groups;
            uint32_t node = largest_node(&groups, group, end, plan->group_count);

            plan->subtrees[plan->subtree_count++] = (struct ranks_subtree){node, rank};
            group += groups;
        }
    }
    for (uint32_t i = 0; i < plan->subtree_count; i++) {
        add_node(plan, &waiting, plan->subtrees[i].node, i);
    }
    assert(waiting.count == 1 && waiting.nodes[0] == 1);
}

enum status ranks_plan_build(struct ranks_plan *plan, uint32_t ranks, uint32_t groups,
                             struct error *error)
{
    *plan = (struct ranks_plan){.rank_count = ranks, .group_count = groups};
    if (ranks < 2 || ranks > RANKS_MAX) {
        return error_set(error, STATUS_USAGE, "%u ranks: a step is shared by 2 to %u", ranks,
                         RANKS_MAX);
    }
    assert((groups & (groups - 1)) == 0);
    plan->subtrees = calloc(groups, sizeof(*plan->subtrees));
    plan->joins = calloc(groups, sizeof(*plan->joins));
    if (plan->subtrees == NULL || plan->joins == NULL) {
        ranks_plan_release(plan);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a plan of %u groups", groups);
    }
    fill_plan(plan);
    return STATUS_OK;
}

void ranks_plan_release(struct ranks_plan *plan)
{
    free(plan->subtrees);
    free(plan->joins);
    *plan = (struct ranks_plan){0};
}

uint32_t ranks_first_subtree(const struct ranks_plan *plan, uint32_t rank)
{
    uint32_t at = 0;

    while (at < plan->subtree_count && plan->subtrees[at].rank < rank) {
        at++;
    }
    return at;
}

/* ---- shards ----------------------------------------------------------------------------- */

enum status ranks_deal(uint32_t *owners, const uint64_t *sizes, uint32_t count, uint32_t ranks,
                       struct error *error)
{
    uint64_t *loads = calloc(ranks, sizeof(*loads));

    if (loads == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", ranks);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t least = 0;

        for (uint32_t rank = 1; rank < ranks; rank++) {
            least = loads[rank] < loads[least] ? rank : least;
        }
        owners[i] = least;
        loads[least] += sizes[i];
    }
    free(loads);
    return STATUS_OK;
}

void ranks_shards_release(struct ranks_shards *shards)
{
    free(shards->bounds);
    *shards = (struct ranks_shards){0};
}

uint64_t ranks_shard_first(const struct ranks_shards *shards, uint32_t tensor, uint32_t rank)
{
    return shards->bounds[(size_t)tensor * (shards->rank_count + 1) + rank];
}

uint64_t ranks_shard_count(const struct ranks_shards *shards, uint32_t rank)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < shards->tensor_count; i++) {
        count += ranks_shard_first(shards, i, rank + 1) - ranks_shard_first(shards, i, rank);
    }
    return count;
}

uint64_t ranks_sent_elements(const struct ranks_plan *plan, const struct ranks_shards *shards)
{
    uint64_t elements = 0;

    for (uint32_t owner = 0; owner < plan->rank_count; owner++) {
        const uint32_t own =
            ranks_first_subtree(plan, owner + 1) - ranks_first_subtree(plan, owner);

        elements += ranks_shard_count(shards, owner) * (plan->subtree_count - own);
    }
    return elements;
}
