/* scalar.c - see scalar.h. The vector twins of these functions are in cpu/simd_math.h. */
#include "engine/ops/scalar.h"

#include <math.h>
#include <stdint.h>

#include "engine/ops/real.h"

#define SIGN_BIT        UINT32_C(0x80000000)
#define LEAST_NORMAL    0x1p-126f
#define MANTISSA_BITS   23
#define EXPONENT_OFFSET 127

/* The bits as they are: real_to_bits() would change those of a NaN. */
static RULE uint32_t raw_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* 2^k for -126 <= k <= 127, from its bits. */
static RULE float power_of_two(int32_t k)
{
    return real_from_bits((uint32_t)(k + EXPONENT_OFFSET) << MANTISSA_BITS);
}

RULE float scalar_exp(float x)
{
    if (x != x) {
        return x;
    }
    x = x < SCALAR_EXP_LEAST ? SCALAR_EXP_LEAST : x;
    x = x > SCALAR_EXP_MOST ? SCALAR_EXP_MOST : x;

    /* x = k ln 2 + r: k is the integer in the low bits of t. */
    float t = fmaf(x, SCALAR_LOG2_E, SCALAR_ROUNDER);
    int32_t k = (int32_t)(raw_bits(t) - raw_bits(SCALAR_ROUNDER));
    float n = t - SCALAR_ROUNDER;
    float r = fmaf(n, -SCALAR_LN2_HIGH, x);
    r = fmaf(n, -SCALAR_LN2_LOW, r);

    float p = fmaf(SCALAR_EXP_C6, r, SCALAR_EXP_C5);
    p = fmaf(p, r, SCALAR_EXP_C4);
    p = fmaf(p, r, SCALAR_EXP_C3);
    p = fmaf(p, r, SCALAR_EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);

    /* p * 2^k with one rounding: k is in -150..128, so the first product is normal and exact. */
    int32_t half = k >> 1;
    return (p * power_of_two(half)) * power_of_two(k - half);
}

RULE float scalar_log(float x)
{
    if (x != x || x < 0.0f) {
        return real_from_bits(FLOAT_NAN_BITS);
    }
    if (x == 0.0f) {
        return -INFINITY;
    }
    if (x == INFINITY) {
        return x;
    }

    float k = 0.0f;
    if (x < LEAST_NORMAL) {
        x = x * 0x1p23f;
        k = -23.0f;
    }
    /* x = 2^e * (1 + f), -1/3 <= f < 1/3. The shift of a negative number keeps its sign. */
    int32_t e = (int32_t)(raw_bits(x) - SCALAR_LOG_SPLIT) >> MANTISSA_BITS;
    float f = real_from_bits(raw_bits(x) - ((uint32_t)e << MANTISSA_BITS)) - 1.0f;
    k = k + (float)e;

    float p = fmaf(SCALAR_LOG_C9, f, SCALAR_LOG_C8);
    p = fmaf(p, f, SCALAR_LOG_C7);
    p = fmaf(p, f, SCALAR_LOG_C6);
    p = fmaf(p, f, SCALAR_LOG_C5);
    p = fmaf(p, f, SCALAR_LOG_C4);
    p = fmaf(p, f, SCALAR_LOG_C3);
    p = fmaf(p, f, SCALAR_LOG_C2);
    p = fmaf(p, f * f, f);
    return fmaf(k, SCALAR_LN2_HIGH, p);
}

RULE float scalar_tanh(float x)
{
    if (x != x) {
        return x;
    }
    uint32_t sign = raw_bits(x) & SIGN_BIT;
    float a = real_from_bits(raw_bits(x) ^ sign);
    float y;

    if (a < SCALAR_TANH_SMALL) {
        float s = a * a;
        float p = fmaf(SCALAR_TANH_C11, s, SCALAR_TANH_C9);
        p = fmaf(p, s, SCALAR_TANH_C7);
        p = fmaf(p, s, SCALAR_TANH_C5);
        p = fmaf(p, s, SCALAR_TANH_C3);
        y = fmaf(p * s, a, a);
    } else {
        y = 1.0f - 2.0f / (scalar_exp(a + a) + 1.0f);
    }
    return real_from_bits(raw_bits(y) | sign);
}
