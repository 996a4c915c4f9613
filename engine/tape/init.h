/*
 * init.h - draws the first state of a job from Philox, with the same bits on every machine.
 *
 * Element i of a tensor depends on (kind, value, seed, stream, i) alone: not on threads, not on
 * other elements. A second implementation needs binary64 add, subtract, multiply, divide and square
 * root, each rounded to nearest even, and no mathematics library.
 *
 * The distributions, exactly:
 *
 *   UNIFORM  k = word 0 of block i, without its low 8 bits: 0 .. 2^24-1.
 *            x = RNE32((2k + 1 - 2^24) * 2^-24 * limit), one rounding. Symmetric about 0; |x| is at
 *            most the limit, and never 0 where the limit is a normal number.
 *
 *   NORMAL   Box and Muller's transform of block i/2, in binary64; see init.c for the steps.
 *            Elements 2j and 2j+1 are one pair, independent of each other. Radius and angle have
 *            53 bits each, so the distribution is normal up to that resolution and a few roundings
 *            of binary64. It ends at sqrt(106 ln 2) = 8.57 deviations; one true normal number in
 *            10^17 lies beyond. Then RNE32(z * std): one rounding in binary64, one to binary32.
 *
 * Draws use the step INIT_STEP, which no step of a job has, so they share no block with a step.
 */
#ifndef ENGINE_TAPE_INIT_H
#define ENGINE_TAPE_INIT_H

#include <stdbool.h>
#include <stdint.h>

#define INIT_STEP UINT32_MAX

enum init_kind {
    INIT_NONE = 0, /* no rule: a first state must be given */
    INIT_ZEROS,    /* +0 */
    INIT_ONES,
    INIT_CONSTANT, /* value: the constant */
    INIT_UNIFORM,  /* value: the limit; uniform in -limit .. limit */
    INIT_NORMAL,   /* value: the standard deviation; mean 0 */
};

struct init {
    enum init_kind kind;
    uint32_t value_bits; /* binary32, finite; means what the kind says, else 0 */
};

/* Is it of a known kind, with a finite value, and none where the kind has no value? */
bool init_is_sound(const struct init *init);

/* Can the rule give another number than zero? */
bool init_is_nonzero(const struct init *init);

/* The kind must not be INIT_NONE. Tensors with different streams draw different numbers. Uses
 * OpenMP's default threads. */
void init_fill(float *out, uint64_t count, const struct init *init, uint64_t seed, uint32_t stream);

#endif /* ENGINE_TAPE_INIT_H */
