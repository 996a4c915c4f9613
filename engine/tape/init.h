/*
 * init.h - the first state of a job: numbers from Philox by means that every machine repeats.
 *
 * The element i of a tensor depends on (kind, value, seed, stream, i) alone: not on threads, nor on
 * the other elements. A second implementation needs binary64 add, subtract, multiply, divide and
 * square root, each rounded to nearest even, and nothing from a mathematics library.
 *
 * The distributions, exactly:
 *
 *   UNIFORM  k = word 0 of block i, without its low 8 bits: 0 .. 2^24-1.
 *            x = RNE32((2k + 1 - 2^24) * 2^-24 * limit), one rounding. Symmetric about 0; |x| is at
 *            most the limit, and never 0 where the limit is a normal number.
 *
 *   NORMAL   Box and Muller's transform of block i/2, in binary64; see init.c for the steps.
 *            Elements 2j and 2j+1 are one pair, independent of each other. Radius and angle come
 *            from 53 bits each, so the distribution is the normal one up to that grain and a few
 *            roundings of binary64. It ends at sqrt(106 ln 2) = 8.57 deviations; a true normal
 *            number lies beyond once in 10^17. Then RNE32(z * std): one rounding in binary64, one
 *            to binary32.
 *
 * Draws have step INIT_STEP, which no step of a job has, so that they share no block with them.
 */
#ifndef ENGINE_TAPE_INIT_H
#define ENGINE_TAPE_INIT_H

#include <stdint.h>

#define INIT_STEP UINT32_MAX

enum init_kind {
    INIT_ZEROS = 0, /* +0 */
    INIT_ONES,
    INIT_CONSTANT, /* value: the constant */
    INIT_UNIFORM,  /* value: the limit; uniform in -limit .. limit */
    INIT_NORMAL,   /* value: the standard deviation; mean 0 */
};

struct init {
    enum init_kind kind;
    uint32_t value_bits; /* binary32, finite; means what the kind says */
};

/* Fills out. stream keeps the draws of different tensors apart. Uses OpenMP's default threads. */
void init_fill(float *out, uint64_t count, const struct init *init, uint64_t seed, uint32_t stream);

#endif /* ENGINE_TAPE_INIT_H */
