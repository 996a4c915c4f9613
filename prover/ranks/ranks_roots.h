/*
 * ranks_roots.h - the roots of states that several ranks hash: each its share, and one joins them.
 *
 * Of a state with shards each rank hashes its own leaves, as full subtrees of the state's tree.
 * Others are dealt out whole, by size.
 */
#ifndef PROVER_RANKS_RANKS_ROOTS_H
#define PROVER_RANKS_RANKS_ROOTS_H

#include "base/digest.h"
#include "engine/ranks/rank_step.h"

struct ranks_roots {
    const struct rank_step *step; /* borrowed */
    int threads;                  /* to hash with */
    uint32_t *owners;             /* per tensor of the list: who hashes it whole */
    uint64_t *sizes;
};

/* A list has at most `states` tensors. */
MUST_CHECK enum status ranks_roots_open(struct ranks_roots *roots, const struct rank_step *step,
                                        uint32_t states, int threads, struct error *error);
void ranks_roots_close(struct ranks_roots *roots); /* a zero-filled one is allowed */

/* Who hashes what of a list of states, by ids of the whole tape. */
MUST_CHECK enum status ranks_roots_deal(struct ranks_roots *roots, const uint32_t *list,
                                        uint32_t count, struct error *error);

/* How many digests a rank finds for the list, and one more: whether what it read is finite. */
size_t ranks_roots_count(const struct ranks_roots *roots, const uint32_t *list, uint32_t count,
                         uint32_t rank);

/* What this rank finds. */
MUST_CHECK enum status ranks_roots_find(struct digest *findings, const struct ranks_roots *roots,
                                        const uint32_t *list, uint32_t count, struct error *error);

/* The roots of the list from what all ranks have found: findings[rank]. */
MUST_CHECK enum status ranks_roots_join(struct digest *found, bool *finite,
                                        const struct ranks_roots *roots, const uint32_t *list,
                                        uint32_t count, struct digest *const *findings,
                                        struct error *error);

#endif /* PROVER_RANKS_RANKS_ROOTS_H */
