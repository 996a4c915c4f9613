/* rank_sums.c - see rank_sums.h. */
#include "engine/ranks/rank_sums.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/float_control.h"
#include "engine/ops/view.h"

/* ---- places ----------------------------------------------------------------------------- */

static uint64_t shard_size(const struct rank_sums *sums, uint32_t sum, uint32_t owner)
{
    return ranks_shard_first(sums->shards, sum, owner + 1) -
           ranks_shard_first(sums->shards, sum, owner);
}

static uint32_t subtrees_of(const struct rank_sums *sums, uint32_t rank)
{
    return ranks_first_subtree(sums->plan, rank + 1) - ranks_first_subtree(sums->plan, rank);
}

/* Elements of the shards of all owners before this one. */
static uint64_t before_owner(const struct rank_sums *sums, uint32_t owner)
{
    uint64_t before = 0;

    for (uint32_t rank = 0; rank < owner; rank++) {
        before += ranks_shard_count(sums->shards, rank);
    }
    return before;
}

/* Where a sum begins in its owner's shard. */
static uint64_t before_sum(const struct rank_sums *sums, uint32_t owner, uint32_t sum)
{
    uint64_t before = 0;

    for (uint32_t i = 0; i < sum; i++) {
        before += shard_size(sums, i, owner);
    }
    return before;
}

enum status rank_sums_open(struct rank_sums *sums, const struct ranks_plan *plan,
                           const struct ranks_shards *shards, uint32_t rank, enum isa isa,
                           int thread_count, struct error *error)
{
    const uint64_t own = ranks_shard_count(shards, rank);
    uint64_t all = 0;

    *sums = (struct rank_sums){
        .plan = plan, .shards = shards, .rank = rank, .thread_count = thread_count};
    all = before_owner(sums, plan->rank_count);
    cpu_kernels(&sums->kernels, isa);
    sums->parts = malloc((all * subtrees_of(sums, rank) + 1) * sizeof(float));
    sums->slots = malloc((own * plan->subtree_count + 1) * sizeof(float));
    sums->transfers = malloc(2 * (size_t)plan->rank_count * sizeof(*sums->transfers));
    if (sums->parts == NULL || sums->slots == NULL || sums->transfers == NULL) {
        rank_sums_close(sums);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the sums of %u ranks",
                         plan->rank_count);
    }
    return STATUS_OK;
}

void rank_sums_close(struct rank_sums *sums)
{
    free(sums->parts);
    free(sums->slots);
    free(sums->transfers);
    *sums = (struct rank_sums){.plan = NULL};
}

/* Where an owner's shard of a sum of the rank's subtree lies. before: elements of the shards of
 * the owners before. */
static uint64_t part_place(const struct rank_sums *sums, uint32_t owner, uint64_t before,
                           uint32_t subtree, uint32_t sum)
{
    return before * subtrees_of(sums, sums->rank) +
           ranks_shard_count(sums->shards, owner) * subtree + before_sum(sums, owner, sum);
}

void rank_sums_put(struct rank_sums *sums, uint32_t subtree, uint32_t sum, const float *elements)
{
    uint64_t before = 0;

    for (uint32_t owner = 0; owner < sums->plan->rank_count; owner++) {
        memcpy(sums->parts + part_place(sums, owner, before, subtree, sum),
               elements + ranks_shard_first(sums->shards, sum, owner),
               shard_size(sums, sum, owner) * sizeof(float));
        before += ranks_shard_count(sums->shards, owner);
    }
}

void rank_sums_part(float *elements, const struct rank_sums *sums, uint32_t subtree, uint32_t sum)
{
    uint64_t before = 0;

    for (uint32_t owner = 0; owner < sums->plan->rank_count; owner++) {
        memcpy(elements + ranks_shard_first(sums->shards, sum, owner),
               sums->parts + part_place(sums, owner, before, subtree, sum),
               shard_size(sums, sum, owner) * sizeof(float));
        before += ranks_shard_count(sums->shards, owner);
    }
}

/* The leftmost subtree's place has the root. */
const float *rank_sums_shard(const struct rank_sums *sums, uint32_t sum)
{
    return sums->slots + before_sum(sums, sums->rank, sum);
}

/* ---- the exchange ----------------------------------------------------------------------- */

static void add_transfer(struct rank_sums *sums, uint32_t *count, uint32_t peer, uint32_t tag,
                         bool sends, float *elements, uint64_t size)
{
    if (size > 0) {
        sums->transfers[(*count)++] = (struct ranks_transfer){.peer = peer,
                                                              .tag = tag,
                                                              .sends = sends,
                                                              .bytes = elements,
                                                              .size = size * sizeof(float)};
    }
}

/* To every owner its shard of the own subtrees; from every rank the own shard of its subtrees. */
static enum status exchange_parts(struct rank_sums *sums, const struct ranks_link *link,
                                  struct error *error)
{
    const uint64_t own = ranks_shard_count(sums->shards, sums->rank);
    const uint32_t subtrees = subtrees_of(sums, sums->rank);
    uint32_t count = 0;

    for (uint32_t peer = 0; peer < sums->plan->rank_count; peer++) {
        const uint64_t theirs = ranks_shard_count(sums->shards, peer);
        float *part = sums->parts + before_owner(sums, peer) * subtrees;
        float *slot = sums->slots + own * ranks_first_subtree(sums->plan, peer);

        if (peer == sums->rank) {
            memcpy(slot, part, own * subtrees * sizeof(float));
            continue;
        }
        add_transfer(sums, &count, peer, RANK_TAG_PARTS, true, part, theirs * subtrees);
        add_transfer(sums, &count, peer, RANK_TAG_PARTS, false, slot,
                     own * subtrees_of(sums, peer));
    }
    return link->exchange(link->context, sums->transfers, count, error);
}

/* Adds with the kernel that every machine of this processor adds with. */
static void add_elements(struct rank_sums *sums, float *left, const float *right, uint64_t count)
{
    const struct tensor elements = {.dtype = DTYPE_F32, .rank = 1, .dims = {count}, .count = count};
    const struct tensor tensors[] = {elements, elements, elements};
    struct op op = {.input_count = 2, .output_count = 1, .inputs = {0, 1}, .outputs = {2}};
    const struct kernel_call call = {.op = &op,
                                     .tensors = tensors,
                                     .inputs = {left, right},
                                     .outputs = {left},
                                     .thread_count = sums->thread_count};

    binary_set(&op, BINARY_ADD, count, 1, count);
    if (sums->kernels.kernels[OP_BINARY].run != NULL) {
        sums->kernels.kernels[OP_BINARY].run(&call);
    } else {
        kernel_run_rules(&call); /* an addition's element is read before it is written */
    }
}

static void join_slots(struct rank_sums *sums)
{
    const struct ranks_plan *plan = sums->plan;
    const uint64_t own = ranks_shard_count(sums->shards, sums->rank);
    const uint64_t control = float_control_take();

    for (uint32_t i = 0; own > 0 && i < plan->join_count; i++) {
        uint32_t left = plan->joins[i].left;
        uint32_t right = plan->joins[i].right;

        while (left >= plan->subtree_count) {
            left = plan->joins[left - plan->subtree_count].left;
        }
        while (right >= plan->subtree_count) {
            right = plan->joins[right - plan->subtree_count].left;
        }
        add_elements(sums, sums->slots + own * left, sums->slots + own * right, own);
    }
    float_control_give_back(control);
}

enum status rank_sums_join(struct rank_sums *sums, const struct ranks_link *link,
                           struct error *error)
{
    TRY(exchange_parts(sums, link, error));
    join_slots(sums);
    return STATUS_OK;
}
