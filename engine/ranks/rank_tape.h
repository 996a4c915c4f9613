/*
 * rank_tape.h - what one rank runs of a step: its groups, the additions that it has whole, and its
 * share of what stands behind the micro-batches.
 *
 * The tape of a rank runs in legs. The first makes the sums of the rank's subtrees, which are
 * outputs. Then the ranks exchange and add them (ranks_plan.h), and the rank's shards of the whole
 * sums are inputs of the second leg. Each further leg reads what has arrived before it, which are
 * inputs too (rank_places.h). What stands before the micro-batches, every rank runs.
 *
 * Micro-batches hand on sums and counters. A counter of group g begins g times the micro-batches of
 * a group further on; the caller writes where each begins and ends, which are inputs too.
 */
#ifndef ENGINE_RANKS_RANK_TAPE_H
#define ENGINE_RANKS_RANK_TAPE_H

#include "engine/ranks/rank_cutter.h"

/* Refuses by name a job that has no groups, and one whose micro-batches hand on what is neither a
 * sum nor a counter. */
MUST_CHECK enum status rank_tape_check(const struct tape *whole, struct error *error);

/* The groups of a tape; 1: it has none. */
uint32_t rank_tape_groups(const struct tape *whole);

/* The tape of the places passed rank_tape_check(); plan is that of its groups. */
MUST_CHECK enum status rank_tape_build(struct rank_tape *own, const struct rank_places *places,
                                       const struct ranks_plan *plan, uint32_t rank,
                                       struct error *error);
void rank_tape_release(struct rank_tape *own); /* a zero-filled one is allowed */

/* Where the legs begin in the tape or in a rewrite of it, whose tensors keep their ids; legs has
 * room for leg_count. STATUS_REFUSED: the rewrite has mixed the legs. */
MUST_CHECK enum status rank_tape_cut(uint32_t *legs, const struct rank_tape *own,
                                     const struct rank_places *places, const struct tape *run,
                                     struct error *error);

#endif /* ENGINE_RANKS_RANK_TAPE_H */
