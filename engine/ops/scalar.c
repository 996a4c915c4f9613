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

/* exp(x + low), |low| far below 1; low is not read where the result is +0 or overflows. */
static RULE float exp_of_sum(float x, float low)
{
    if (x != x) {
        return x;
    }
    low = x < SCALAR_EXP_LEAST || x > SCALAR_EXP_MOST ? 0.0f : low;
    x = x < SCALAR_EXP_LEAST ? SCALAR_EXP_LEAST : x;
    x = x > SCALAR_EXP_MOST ? SCALAR_EXP_MOST : x;

    /* x = k ln 2 + r: k is the integer in the low bits of t. */
    float t = fmaf(x, SCALAR_LOG2_E, SCALAR_ROUNDER);
    int32_t k = (int32_t)(raw_bits(t) - raw_bits(SCALAR_ROUNDER));
    float n = t - SCALAR_ROUNDER;
    float r = fmaf(n, -SCALAR_LN2_HIGH, x);
    r = fmaf(n, -SCALAR_LN2_LOW, r) + low;

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

RULE float scalar_exp(float x)
{
    return exp_of_sum(x, 0.0f);
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

RULE float scalar_sigmoid(float x)
{
    float e = scalar_exp(x > 0.0f ? -x : x);

    return (x > 0.0f ? 1.0f : e) / (1.0f + e);
}

/* ---- the normal distribution ---------------------------------------------- */

/* exp(-x*y) without the rounding of the product. */
static RULE float exp_of_product(float x, float y)
{
    float h = x * y;

    return exp_of_sum(-h, -fmaf(x, y, -h));
}

/* The tail of the normal distribution at a >= 0, without its factor exp(-a^2/2). */
static RULE float tail_factor(float a)
{
    float t = 1.0f / fmaf(SCALAR_TAIL_K, a, 1.0f);
    float u = t - 0.5f;
    float p = fmaf(SCALAR_TAIL_C9, u, SCALAR_TAIL_C8);

    p = fmaf(p, u, SCALAR_TAIL_C7);
    p = fmaf(p, u, SCALAR_TAIL_C6);
    p = fmaf(p, u, SCALAR_TAIL_C5);
    p = fmaf(p, u, SCALAR_TAIL_C4);
    p = fmaf(p, u, SCALAR_TAIL_C3);
    p = fmaf(p, u, SCALAR_TAIL_C2);
    p = fmaf(p, u, SCALAR_TAIL_C1);
    p = fmaf(p, u, SCALAR_TAIL_C0);
    return p * t;
}

RULE float scalar_erf(float x)
{
    if (x != x) {
        return x;
    }
    uint32_t sign = raw_bits(x) & SIGN_BIT;
    float a = real_from_bits(raw_bits(x) ^ sign);
    float y;

    if (a < 1.0f) {
        float s = a * a;
        float p = fmaf(SCALAR_ERF_C13, s, SCALAR_ERF_C11);
        p = fmaf(p, s, SCALAR_ERF_C9);
        p = fmaf(p, s, SCALAR_ERF_C7);
        p = fmaf(p, s, SCALAR_ERF_C5);
        p = fmaf(p, s, SCALAR_ERF_C3);
        p = fmaf(p, s, SCALAR_ERF_C1);
        y = fmaf(a, p, a);
    } else {
        a = a > SCALAR_ERF_MOST ? SCALAR_ERF_MOST : a;
        y = fmaf(-2.0f * tail_factor(a * SCALAR_SQRT_2), exp_of_product(a, a), 1.0f);
    }
    return real_from_bits(raw_bits(y) | sign);
}

/* |x|, or the place from where on the tail is +0. */
static RULE float tail_place(float x)
{
    float a = real_from_bits(raw_bits(x) & ~SIGN_BIT);

    return a > SCALAR_TAIL_MOST ? SCALAR_TAIL_MOST : a;
}

RULE float scalar_gelu_erf(float x)
{
    if (x != x) {
        return x;
    }
    float a = tail_place(x);
    float q = exp_of_product(a, 0.5f * a) * (a * tail_factor(a));

    return x > 0.0f ? x - q : -q;
}

RULE float scalar_gelu_erf_slope(float x)
{
    if (x != x) {
        return x;
    }
    float a = tail_place(x);
    float q = exp_of_product(a, 0.5f * a) * fmaf(-SCALAR_NORMAL_DENSITY, a, tail_factor(a));

    return x > 0.0f ? 1.0f - q : q;
}

/* ---- angles ----------------------------------------------------------------- */

/* sin(x + quarters * pi/2) */
static RULE float sine_of(float x, uint32_t quarters)
{
    if (!(x >= -SCALAR_ANGLE_MOST && x <= SCALAR_ANGLE_MOST)) {
        return real_from_bits(FLOAT_NAN_BITS);
    }
    float t = fmaf(x, SCALAR_2_OVER_PI, SCALAR_ROUNDER);
    uint32_t k = raw_bits(t) - raw_bits(SCALAR_ROUNDER) + quarters;
    float n = t - SCALAR_ROUNDER;
    float r = fmaf(n, -SCALAR_PI_2_P1, x);
    r = fmaf(n, -SCALAR_PI_2_P2, r);
    r = fmaf(n, -SCALAR_PI_2_P3, r);

    float s = r * r;
    float y;
    if ((k & 1) == 0) {
        float p = fmaf(SCALAR_SIN_C7, s, SCALAR_SIN_C5);
        p = fmaf(p, s, SCALAR_SIN_C3);
        y = fmaf(p * s, r, r);
    } else {
        float p = fmaf(SCALAR_COS_C8, s, SCALAR_COS_C6);
        p = fmaf(p, s, SCALAR_COS_C4);
        y = fmaf(p, s * s, fmaf(-0.5f, s, 1.0f));
    }
    return (k & 2) == 0 ? y : -y;
}

RULE float scalar_sin(float x)
{
    /* -0 would become +0. */
    return x == 0.0f ? x : sine_of(x, 0);
}

RULE float scalar_cos(float x)
{
    return sine_of(x, 1);
}

/* ---- powers ------------------------------------------------------------------- */

/* exp(y * log(a)) for 0 < a < inf and a finite y: log(a) = high + low, to about 2^-29 of it. */
static RULE float positive_power(float a, float y)
{
    float k = 0.0f;
    if (a < LEAST_NORMAL) {
        a = a * 0x1p23f;
        k = -23.0f;
    }
    int32_t e = (int32_t)(raw_bits(a) - SCALAR_LOG_SPLIT) >> MANTISSA_BITS;
    float m = real_from_bits(raw_bits(a) - ((uint32_t)e << MANTISSA_BITS));
    k = k + (float)e;

    /* s = (m-1)/(m+1) and its rest; log(m) = 2s + s^3 * p. */
    float f = m - 1.0f;
    float d = m + 1.0f;
    float s = f / d;
    float rest = fmaf(-s, d, f);
    rest = fmaf(-s, m - (d - 1.0f), rest) / d;
    float q = s * s;
    float p = fmaf(SCALAR_POW_C9, q, SCALAR_POW_C7);
    p = fmaf(p, q, SCALAR_POW_C5);
    p = fmaf(p, q, SCALAR_POW_C3);
    float low = fmaf(q * s, p, rest + rest);

    /* k ln 2 + 2s, then the sum as a number and its rest. k * HIGH has 29 bits. */
    float whole = k * SCALAR_LN2_HIGH;
    float high = whole + (s + s);
    low = ((whole - high) + (s + s)) + low;
    low = fmaf(k, SCALAR_LN2_LOW, fmaf(k, SCALAR_LN2_HIGH, -whole)) + low;
    float log_high = high + low;
    float log_low = (high - log_high) + low;

    float x = y * log_high;
    return exp_of_sum(x, fmaf(y, log_low, fmaf(y, log_high, -x)));
}

/* Is y an odd integer (2), an even one (1), or none (0)? Infinities are even. */
static RULE int parity_of(float y)
{
    float a = real_from_bits(raw_bits(y) & ~SIGN_BIT);

    if (a >= 0x1p24f) {
        return 1;
    }
    int32_t n = (int32_t)a;
    return (float)n != a ? 0 : (n & 1) != 0 ? 2 : 1;
}

RULE float scalar_pow(float x, float y)
{
    if (y == 0.0f || x == 1.0f) {
        return 1.0f;
    }
    if (x != x || y != y) {
        return real_from_bits(FLOAT_NAN_BITS);
    }
    float a = real_from_bits(raw_bits(x) & ~SIGN_BIT);
    float b = real_from_bits(raw_bits(y) & ~SIGN_BIT);
    float power;

    if (a == 0.0f || a == INFINITY) {
        power = (a == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY;
    } else if (x < 0.0f && parity_of(y) == 0) {
        return real_from_bits(FLOAT_NAN_BITS);
    } else if (b == INFINITY) {
        power = a == 1.0f ? 1.0f : (a > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f;
    } else {
        power = positive_power(a, y);
    }
    /* The sign of x, -0 included, under an odd power. */
    return (raw_bits(x) & SIGN_BIT) != 0 && parity_of(y) == 2 ? -power : power;
}
