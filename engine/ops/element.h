/*
 * element.h - the element-wise functions that take more than one arithmetic step. Rules call them,
 * and so do kernels that have the operands in registers. Results are bits, as they are stored.
 */
#ifndef ENGINE_OPS_ELEMENT_H
#define ENGINE_OPS_ELEMENT_H

#include <math.h>

#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

/* A NaN stays a NaN; -0 and every negative number become +0. */
static RULE inline uint32_t element_relu(float x)
{
    return x != x ? FLOAT_NAN_BITS : x > 0.0f ? real_to_bits(x) : 0;
}

static RULE inline uint32_t element_relu_grad(float x, float dy)
{
    return x != x ? FLOAT_NAN_BITS : x > 0.0f ? real_to_bits(dy) : 0;
}

/* x / (1 + exp(-2u)): see scalar.h. */
static RULE inline uint32_t element_gelu(float x)
{
    float z = x * fmaf(SCALAR_GELU_W3, x * x, SCALAR_GELU_W1);

    return real_to_bits(x / (1.0f + scalar_exp(z)));
}

static RULE inline uint32_t element_gelu_grad(float x, float dy)
{
    /* A NaN is not changed by either comparison. */
    x = x < -SCALAR_GELU_FLAT ? -SCALAR_GELU_FLAT : x;
    x = x > SCALAR_GELU_FLAT ? SCALAR_GELU_FLAT : x;
    float square = x * x;
    float z = x * fmaf(SCALAR_GELU_W3, square, SCALAR_GELU_W1);
    float e = scalar_exp(z);
    float s = 1.0f / (1.0f + e);
    float slope = fmaf(SCALAR_GELU_D3, square, SCALAR_GELU_W1); /* dz/dx */
    float m = (x * s) * (e * s);                                /* e * s = 1 - s, exact in ratio */

    return real_to_bits(fmaf(-m, slope, s) * dy);
}

static RULE inline uint32_t element_silu(float x)
{
    return real_to_bits(x / (1.0f + scalar_exp(-x)));
}

static RULE inline uint32_t element_silu_grad(float x, float dy)
{
    x = x < -SCALAR_SILU_FLAT ? -SCALAR_SILU_FLAT : x;
    x = x > SCALAR_SILU_FLAT ? SCALAR_SILU_FLAT : x;
    float e = scalar_exp(-x);
    float s = 1.0f / (1.0f + e);

    return real_to_bits(fmaf(x * s, e * s, s) * dy);
}

#endif /* ENGINE_OPS_ELEMENT_H */
