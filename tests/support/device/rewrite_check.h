/*
 * rewrite_check.h - a machine's private rewrite of a tape against the tape itself: the same states
 * and the same tensors. Any difference fails the running test.
 */
#ifndef TESTS_SUPPORT_DEVICE_REWRITE_CHECK_H
#define TESTS_SUPPORT_DEVICE_REWRITE_CHECK_H

#include "engine/plan/chain.h"
#include "tests/support/numeric/small_model.h"

/* The tape with its chains in slices, after `parts` of recompute.h (0: without); NULL: no chain. */
struct tape *rewrite_in_slices(const struct tape *tape, const struct chain_limits *limits,
                               uint32_t parts);

/* What hoist.h makes of a tape, which is freed. */
struct tape *rewrite_hoisted(struct tape *tape);

/* Some steps of both from the first state: states and losses. */
void rewrite_compare_states(const struct small_model *small, const struct tape *rewrite);

/* A step of both in trace mode: each tensor of the rewrite against that of the operation that its
 * origins name. Returns how many tensors repetitions made. */
uint32_t rewrite_compare_traces(const struct small_model *small, const struct tape *rewrite);

/* Some steps of a random tape and of its rewrite: states, outputs and losses. */
void rewrite_compare_random(const struct tape *tape, const struct tape *rewrite, uint64_t seed);

/* A step of each in trace mode, of the tape by the looped rules and of its rewrite by kernels: each
 * tensor of the tape that the rewrite has too. Returns how many. */
uint32_t rewrite_compare_tensors(const struct tape *tape, const struct tape *rewrite,
                                 uint64_t seed);

#endif /* TESTS_SUPPORT_DEVICE_REWRITE_CHECK_H */
