/* ranks_plan.c - see ranks_plan.h. */
#include "engine/ranks/ranks_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX    32
#define LEAF_ELEMENTS 256 /* of a leaf of 1,024 bytes */

/* ---- the tree ---------------------------------------------------------------------------- */

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
    if (groups < ranks) {
        (void)error_set(error, STATUS_REFUSED,
                        "the job has %u group%s of micro-batches, fewer than %u ranks", groups,
                        groups == 1 ? "" : "s", ranks);
        error_advise(error,
                     "take at most one rank a group, or give the job more groups: 'job new "
                     "--accumulate N --accumulate-group M' makes N / M of them: 2, 4, 8, ...");
        return STATUS_REFUSED;
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

/* ---- shards ------------------------------------------------------------------------------ */

static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a;
    uint64_t y = b;

    while (y != 0) {
        const uint64_t rest = x % y;

        x = y;
        y = rest;
    }
    return a / x * b; /* below 2^48: a row has at most 2^40 elements */
}

/* Elements between two places where the tensor may be cut; 0: nowhere. */
static uint64_t cut_unit(const struct tensor *tensor)
{
    const uint64_t row = tensor->rank == 0 ? 1 : tensor->dims[tensor->rank - 1];
    const uint64_t unit = common_multiple(tensor->rank < 2 ? 1 : row, LEAF_ELEMENTS);

    return tensor_size(tensor) < RANKS_SHARD_LEAST || tensor->count / unit < 2 ? 0 : unit;
}

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

static void cut_tensor(uint64_t *bounds, const struct tensor *tensor, uint64_t unit, uint32_t owner,
                       uint32_t ranks)
{
    const uint64_t units = unit == 0 ? 0 : tensor->count / unit;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        bounds[rank] =
            unit == 0 ? (rank <= owner ? 0 : tensor->count) : units * rank / ranks * unit;
    }
    bounds[ranks] = tensor->count;
}

enum status ranks_shards_build(struct ranks_shards *shards, const struct tensor *tensors,
                               uint32_t count, uint32_t ranks, struct error *error)
{
    uint64_t *sizes = calloc((size_t)count + 1, sizeof(*sizes));
    uint32_t *owners = calloc((size_t)count + 1, sizeof(*owners));
    enum status status;

    *shards = (struct ranks_shards){.rank_count = ranks, .tensor_count = count};
    shards->bounds = malloc(((size_t)count * (ranks + (size_t)1) + 1) * sizeof(*shards->bounds));
    if (sizes == NULL || owners == NULL || shards->bounds == NULL) {
        status =
            error_set(error, STATUS_NO_MEMORY, "no memory for the shards of %u tensors", count);
        goto out;
    }
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = cut_unit(&tensors[i]) == 0 ? tensor_size(&tensors[i]) : 0;
    }
    TRY_OUT(ranks_deal(owners, sizes, count, ranks, error));
    for (uint32_t i = 0; i < count; i++) {
        cut_tensor(shards->bounds + (size_t)i * (ranks + 1), &tensors[i], cut_unit(&tensors[i]),
                   owners[i], ranks);
    }
out:
    free(sizes);
    free(owners);
    if (status != STATUS_OK) {
        ranks_shards_release(shards);
    }
    return status;
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

uint64_t ranks_wire_bytes(const struct ranks_plan *plan, const struct ranks_shards *shards)
{
    const uint32_t ranks = plan->rank_count;
    uint64_t elements = 0;

    for (uint32_t owner = 0; owner < ranks; owner++) {
        const uint32_t own =
            ranks_first_subtree(plan, owner + 1) - ranks_first_subtree(plan, owner);

        elements += ranks_shard_count(shards, owner) * (plan->subtree_count - own + ranks - 1);
    }
    return elements * sizeof(float);
}
