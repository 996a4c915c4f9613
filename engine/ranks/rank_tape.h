/*
 * rank_tape.h - what one rank runs of a step: its groups, the additions that it has whole, and what
 * stands behind the micro-batches.
 *
 * The tape of a rank runs in two legs. The first makes the sums of the rank's subtrees, which are
 * outputs. Then the ranks exchange and add them (ranks_plan.h), and the whole sums are inputs of
 * the second leg. What stands before and behind the micro-batches, every rank runs.
 *
 * Micro-batches hand on sums and counters. A counter of group g begins g times the micro-batches of
 * a group further on; the caller writes where each begins and ends, which are inputs too.
 */
#ifndef ENGINE_RANKS_RANK_TAPE_H
#define ENGINE_RANKS_RANK_TAPE_H

#include "engine/ranks/ranks_plan.h"
#include "engine/tape/tape.h"

/* A state that counts micro-batches, by ids of the rank's tape. */
struct rank_counter {
    uint32_t state;
    uint32_t begin; /* an input: state + begin_plus. TENSOR_NONE: the rank begins with the state */
    uint32_t begin_plus;
    uint32_t
        end; /* an input, one short of the end: state + end_plus; TENSOR_NONE: it has the end */
    uint32_t end_plus;
};

struct rank_tape {
    struct tape *tape;
    uint32_t *ids;          /* per tensor of the whole tape: its id here, or TENSOR_NONE */
    uint32_t sum_count;     /* sums: the joined carries, in the order of the tape */
    uint32_t *sums;         /* per sum: the input with the whole sum */
    uint32_t subtree_count; /* of the rank */
    uint32_t *outputs;      /* per subtree and sum: what the first leg makes */
    struct rank_counter *counters;
    uint32_t counter_count;
};

/* Refuses by name a job that has no groups, and one whose micro-batches hand on what is neither a
 * sum nor a counter. */
MUST_CHECK enum status rank_tape_check(const struct tape *whole, struct error *error);

/* The groups of a tape; 1: it has none. */
uint32_t rank_tape_groups(const struct tape *whole);

/* The sums of a tape, as its tensors are; the caller frees the table. */
MUST_CHECK enum status rank_tape_sums(struct tensor **sums, uint32_t *count,
                                      const struct tape *whole, struct error *error);

/* whole passed rank_tape_check(); plan is that of its groups. */
MUST_CHECK enum status rank_tape_build(struct rank_tape *own, const struct tape *whole,
                                       const struct ranks_plan *plan, uint32_t rank,
                                       struct error *error);
void rank_tape_release(struct rank_tape *own); /* a zero-filled one is allowed */

/* The first operation of the second leg, in the tape or in a rewrite of it, whose tensors keep
 * their ids. STATUS_REFUSED: the rewrite has mixed the legs. */
MUST_CHECK enum status rank_tape_cut(uint32_t *cut, const struct rank_tape *own,
                                     const struct tape *run, struct error *error);

#endif /* ENGINE_RANKS_RANK_TAPE_H */
