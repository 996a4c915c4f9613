/* ranks_cross.c - see ranks_cross.h. */
#include "prover/ranks/ranks_cross.h"

#include <stdlib.h>

#include "base/endian.h"
#include "proofs/hash/sha256.h"

/* ---- what is drawn ----------------------------------------------------------------------- */

static uint32_t groups_of(const struct ranks_plan *plan, uint32_t subtree)
{
    uint32_t groups = plan->group_count;

    for (uint32_t node = plan->subtrees[subtree].node; node > 1; node /= 2) {
        groups /= 2;
    }
    return groups;
}

/* The subtree that holds a group: they stand in the order of the groups. */
static uint32_t subtree_with(const struct ranks_plan *plan, uint32_t group)
{
    uint32_t subtree = 0;
    uint32_t end = groups_of(plan, 0);

    while (end <= group) {
        end += groups_of(plan, ++subtree);
    }
    return subtree;
}

/* A machine that makes a subtree again is one of as many ranks as the tree is wide there. */
enum status ranks_cross_check(const struct ranks_plan *plan, uint64_t every, struct error *error)
{
    for (uint32_t i = 0; every > 0 && i < plan->subtree_count; i++) {
        if (plan->subtrees[i].node >= 2 * RANKS_MAX) {
            (void)error_set(error, STATUS_REFUSED,
                            "--cross-check makes one of %d parts of a step again at the least, and "
                            "%u ranks share %u groups in smaller ones",
                            RANKS_MAX, plan->rank_count, plan->group_count);
            error_advise(error, "take 2, 4, 8, ... ranks, or leave --cross-check out");
            return STATUS_REFUSED;
        }
    }
    return STATUS_OK;
}

enum status ranks_cross_draw(struct ranks_drawn *drawn, const struct ranks_team *team,
                             const struct ranks_plan *plan, uint64_t every, struct error *error)
{
    uint8_t bytes[2 * sizeof(uint64_t)];
    uint32_t owner;

    *drawn = (struct ranks_drawn){RANKS_NOBODY, RANKS_NOBODY};
    if (every == 0 || team->step % every != every - 1) {
        return STATUS_OK;
    }
    TRY(secret_random(bytes, sizeof(bytes), error));
    drawn->subtree = subtree_with(plan, (uint32_t)(endian_load_be64(bytes) % plan->group_count));
    owner = plan->subtrees[drawn->subtree].rank;
    drawn->second = (uint32_t)((owner + 1 + endian_load_be64(bytes + 8) % (plan->rank_count - 1)) %
                               plan->rank_count);
    return STATUS_OK;
}

bool ranks_cross_is_sound(const struct ranks_drawn *drawn, const struct ranks_plan *plan)
{
    return drawn->subtree == RANKS_NOBODY ||
           (drawn->subtree < plan->subtree_count && drawn->second < plan->rank_count &&
            drawn->second != plan->subtrees[drawn->subtree].rank);
}

/* ---- hashes of sums ---------------------------------------------------------------------- */

static void add_sum(struct sha256 *hash, const struct rank_step *step, uint32_t sum,
                    const float *elements)
{
    sha256_add(hash, elements,
               step->whole->tensors[step->places.sums[sum]].count * sizeof(*elements));
}

enum status ranks_cross_before(struct digest *again, const struct ranks_drawn *drawn,
                               const struct rank_step *step, const void *const *data,
                               const struct machine_options *options, struct error *error)
{
    float *elements = (float *)(void *)step->bounce;
    struct rank_step part = {.machine = NULL};
    struct sha256 hash;
    enum status status;

    if (drawn->subtree == RANKS_NOBODY || drawn->second != step->link->rank) {
        return STATUS_OK;
    }
    sha256_init(&hash, SHA256_ISA_BEST);
    TRY_OUT(rank_step_open_again(&part, step, drawn->subtree, data, options, error));
    for (uint32_t sum = 0; sum < step->own.sum_count; sum++) {
        TRY_OUT(rank_step_again_sum(elements, &part, sum, error));
        add_sum(&hash, step, sum, elements);
    }
    sha256_end(&hash, again);
out:
    rank_step_close(&part);
    return status;
}

/* Of the sums that this rank made of its subtree, as the owners got them. */
static void hash_own(struct digest *own, const struct rank_step *step, uint32_t subtree)
{
    const uint32_t at = subtree - ranks_first_subtree(&step->plan, step->link->rank);
    float *elements = (float *)(void *)step->bounce;
    struct sha256 hash;

    sha256_init(&hash, SHA256_ISA_BEST);
    for (uint32_t sum = 0; sum < step->own.sum_count; sum++) {
        rank_sums_part(elements, &step->sums, at, sum);
        add_sum(&hash, step, sum, elements);
    }
    sha256_end(&hash, own);
}

/* ---- comparing --------------------------------------------------------------------------- */

static enum status name_both(const struct ranks_team *team, const struct ranks_drawn *drawn,
                             const struct rank_step *step, struct error *error)
{
    const uint32_t owner = step->plan.subtrees[drawn->subtree].rank;

    (void)error_set(error, STATUS_REFUSED,
                    "rank %u (%s) and rank %u (%s) made other sums of the same micro-batches: one "
                    "of the two machines computes wrong",
                    owner, owner == 0 ? "this machine" : team->peers[owner].host, drawn->second,
                    drawn->second == 0 ? "this machine" : team->peers[drawn->second].host);
    error_advise(error, "test both ('lockstep self-test'); 'lockstep prover resume' goes on from "
                        "the last checkpoint, which an earlier error may have reached: audit it");
    return STATUS_REFUSED;
}

/* Rank 0 hears what it has not found itself. */
static enum status hear_both(struct digest found[2], struct ranks_team *team,
                             const uint32_t from[2], struct error *error)
{
    struct ranks_transfer heard[2];
    uint32_t count = 0;

    for (int i = 0; i < 2; i++) {
        if (from[i] != 0) {
            heard[count++] = (struct ranks_transfer){.peer = from[i],
                                                     .tag = RANKS_TAG_CROSS,
                                                     .bytes = &found[i],
                                                     .size = sizeof(found[i])};
        }
    }
    return team->link.exchange(team->link.context, heard, count, error);
}

enum status ranks_cross_after(struct ranks_team *team, const struct ranks_drawn *drawn,
                              const struct rank_step *step, const struct digest *again,
                              struct error *error)
{
    const uint32_t rank = team->link.rank;
    struct ranks_transfer said = {.peer = 0, .tag = RANKS_TAG_CROSS, .sends = true};
    struct digest found[2] = {{{0}}, *again};
    uint32_t from[2];

    if (drawn->subtree == RANKS_NOBODY) {
        return STATUS_OK;
    }
    from[0] = step->plan.subtrees[drawn->subtree].rank;
    from[1] = drawn->second;
    if (from[0] == rank) {
        hash_own(&found[0], step, drawn->subtree);
    }
    if (rank == 0) {
        TRY(hear_both(found, team, from, error));
        return digest_equal(&found[0], &found[1]) ? STATUS_OK : name_both(team, drawn, step, error);
    }
    if (rank != from[0] && rank != from[1]) {
        return STATUS_OK;
    }
    said.bytes = &found[rank == from[0] ? 0 : 1];
    said.size = sizeof(found[0]);
    return team->link.exchange(team->link.context, &said, 1, error);
}
