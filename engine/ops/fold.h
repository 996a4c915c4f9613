/*
 * fold.h - the canonical sum of up to FOLD_CHUNK numbers: the one order in which floats are added.
 *
 *   1. lane l (of FOLD_LANES) takes v[l], v[l+32], v[l+64], ... in that order; its first element
 *      starts it; a lane without an element is absent
 *   2. for d = 16, 8, 4, 2, 1: lane[l] += lane[l+d] for every l < d whose lane l+d is present
 *   3. the sum is lane[0]; of one element it is that element
 *
 * The code starts every lane at -0 instead of marking it absent: v + -0 has the bits of v for every
 * v, -0 included. (+0 would not do: -0 + +0 is +0.)
 *
 * A fold of products has the same order; each step is one fma. A maximum needs no order.
 */
#ifndef ENGINE_OPS_FOLD_H
#define ENGINE_OPS_FOLD_H

#include <math.h>

#include "engine/ops/real.h"

struct fold {
    float lanes[FOLD_LANES];
    uint32_t count;
};

static RULE inline void fold_init(struct fold *fold)
{
    for (uint32_t l = 0; l < FOLD_LANES; l++) {
        fold->lanes[l] = -0.0f;
    }
    fold->count = 0;
}

static RULE inline void fold_add(struct fold *fold, float v)
{
    float *lane = &fold->lanes[fold->count++ % FOLD_LANES];

    *lane = *lane + v;
}

static RULE inline void fold_multiply_add(struct fold *fold, float a, float b)
{
    float *lane = &fold->lanes[fold->count++ % FOLD_LANES];

    *lane = fmaf(a, b, *lane);
}

/* The sum of one element or more. Destroys the lanes. */
static RULE inline float fold_total(struct fold *fold)
{
    for (uint32_t d = FOLD_LANES / 2; d > 0; d /= 2) {
        for (uint32_t l = 0; l < d; l++) {
            fold->lanes[l] = fold->lanes[l] + fold->lanes[l + d];
        }
    }
    return fold->lanes[0];
}

/*
 * The running maximum: NaN once a NaN was seen, else the largest number. A result of -0 is stored
 * as +0, so the order of -0 and +0 does not show.
 */
static RULE inline float fold_maximum(float so_far, float v)
{
    if (so_far != so_far || v <= so_far) {
        return so_far;
    }
    return v; /* larger, or NaN */
}

static RULE inline uint32_t fold_maximum_bits(float maximum)
{
    return real_to_bits(maximum == 0.0f ? 0.0f : maximum);
}

#endif /* ENGINE_OPS_FOLD_H */
