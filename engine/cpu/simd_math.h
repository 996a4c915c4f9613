/*
 * simd_math.h - the vector twins of scalar.h: the same steps, the same constants, the same bits.
 */
#ifndef ENGINE_CPU_SIMD_MATH_H
#define ENGINE_CPU_SIMD_MATH_H

#include "engine/cpu/isa/simd.h"
#include "engine/ops/scalar.h"

/* Where |x| is at most this, exp(x) and every step to it are normal numbers. */
#define SIMD_EXP_EASY 86.0f

/* exp(x) = p * 2^k: k is the integer in the low bits of t, n is k as a number. */
struct simd_exp {
    simd_real p, t, n;
};

/* Of x + *low, if low is given. */
SIMD_INLINE struct simd_exp simd_exp_parts(simd_real x, const simd_real *low)
{
    simd_real t = simd_fma(x, simd_set(SCALAR_LOG2_E), simd_set(SCALAR_ROUNDER));
    simd_real n = simd_sub(t, simd_set(SCALAR_ROUNDER));
    simd_real r = simd_fnma(n, simd_set(SCALAR_LN2_HIGH), x);
    r = simd_fnma(n, simd_set(SCALAR_LN2_LOW), r);
    r = low != NULL ? simd_add(r, *low) : r;

    simd_real p = simd_fma(simd_set(SCALAR_EXP_C6), r, simd_set(SCALAR_EXP_C5));
    p = simd_fma(p, r, simd_set(SCALAR_EXP_C4));
    p = simd_fma(p, r, simd_set(SCALAR_EXP_C3));
    p = simd_fma(p, r, simd_set(SCALAR_EXP_C2));
    p = simd_fma(p, r, simd_set(1.0f));
    p = simd_fma(p, r, simd_set(1.0f));
    return (struct simd_exp){.p = p, .t = t, .n = n};
}

/* scalar_exp() for |x| <= SIMD_EXP_EASY. For a NaN the result is any number. */
SIMD_INLINE simd_real simd_exp_easy(simd_real x)
{
    struct simd_exp e = simd_exp_parts(x, NULL);

    return simd_scale_normal(e.p, e.t, e.n);
}

/* scalar_exp(). A NaN stays: min and max give their second operand for it. */
SIMD_INLINE simd_real simd_exp(simd_real x)
{
    if (!SIMD_SCALES_AT_ONCE && simd_all_within(x, SIMD_EXP_EASY)) {
        return simd_exp_easy(x);
    }
    x = simd_max(simd_set(SCALAR_EXP_LEAST), x);
    x = simd_min(simd_set(SCALAR_EXP_MOST), x);

    struct simd_exp e = simd_exp_parts(x, NULL);

    return simd_scale(e.p, e.t, e.n);
}

/* rule_gelu() */
SIMD_INLINE simd_real simd_gelu(simd_real x)
{
    simd_real w = simd_fma(simd_set(SCALAR_GELU_W3), simd_mul(x, x), simd_set(SCALAR_GELU_W1));

    return simd_div(x, simd_add(simd_set(1.0f), simd_exp(simd_mul(x, w))));
}

/* rule_gelu_grad(), before the product with dy */
SIMD_INLINE simd_real simd_gelu_slope(simd_real x)
{
    simd_real one = simd_set(1.0f);

    x = simd_max(simd_set(-SCALAR_GELU_FLAT), x);
    x = simd_min(simd_set(SCALAR_GELU_FLAT), x);
    simd_real square = simd_mul(x, x);
    simd_real w = simd_fma(simd_set(SCALAR_GELU_W3), square, simd_set(SCALAR_GELU_W1));
    /* |x * w| < 77. x * s restores a NaN. */
    simd_real e = simd_exp_easy(simd_mul(x, w));
    simd_real s = simd_div(one, simd_add(one, e));
    simd_real slope = simd_fma(simd_set(SCALAR_GELU_D3), square, simd_set(SCALAR_GELU_W1));
    simd_real m = simd_mul(simd_mul(x, s), simd_mul(e, s));

    return simd_fnma(m, slope, s);
}

/* rule_silu() */
SIMD_INLINE simd_real simd_silu(simd_real x)
{
    return simd_div(x, simd_add(simd_set(1.0f), simd_exp(simd_negate(x))));
}

/* rule_silu_grad(), before the product with dy */
SIMD_INLINE simd_real simd_silu_slope(simd_real x)
{
    simd_real one = simd_set(1.0f);

    x = simd_max(simd_set(-SCALAR_SILU_FLAT), x);
    x = simd_min(simd_set(SCALAR_SILU_FLAT), x);
    simd_real e = simd_exp_easy(simd_negate(x)); /* x * s restores a NaN */
    simd_real s = simd_div(one, simd_add(one, e));

    return simd_fma(simd_mul(x, s), simd_mul(e, s), s);
}

SIMD_INLINE simd_real simd_abs(simd_real x)
{
    /* The sum makes -0 +0. */
    return simd_add(simd_max(x, simd_negate(x)), simd_set(0.0f));
}

/* scalar_tanh() */
SIMD_INLINE simd_real simd_tanh(simd_real x)
{
    simd_real one = simd_set(1.0f);
    simd_real a = simd_abs(x);
    simd_real s = simd_mul(a, a);
    simd_real p = simd_fma(simd_set(SCALAR_TANH_C11), s, simd_set(SCALAR_TANH_C9));
    p = simd_fma(p, s, simd_set(SCALAR_TANH_C7));
    p = simd_fma(p, s, simd_set(SCALAR_TANH_C5));
    p = simd_fma(p, s, simd_set(SCALAR_TANH_C3));
    simd_real small = simd_fma(simd_mul(p, s), a, a);
    simd_real large = simd_add(simd_exp(simd_add(a, a)), one);

    large = simd_sub(one, simd_div(simd_set(2.0f), large));
    simd_real y = simd_select(simd_greater(simd_set(SCALAR_TANH_SMALL), a), small, large);

    y = simd_select(simd_greater(simd_set(0.0f), x), simd_negate(y), y);
    /* Zeros of both signs, and NaN. */
    return simd_select(simd_greater(a, simd_set(0.0f)), y, x);
}

/* scalar_sigmoid() */
SIMD_INLINE simd_real simd_sigmoid(simd_real x)
{
    simd_real one = simd_set(1.0f);
    simd_real e = simd_exp(simd_min(x, simd_negate(x)));

    return simd_div(simd_select(simd_greater(x, simd_set(0.0f)), one, e), simd_add(one, e));
}

/* The tail of the normal distribution at a >= 0: its factor, and exp(-a^2/2). See scalar.c. */
SIMD_INLINE simd_real simd_tail_factor(simd_real a)
{
    simd_real one = simd_set(1.0f);
    simd_real t = simd_div(one, simd_fma(simd_set(SCALAR_TAIL_K), a, one));
    simd_real u = simd_sub(t, simd_set(0.5f));
    simd_real p = simd_fma(simd_set(SCALAR_TAIL_C9), u, simd_set(SCALAR_TAIL_C8));

    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C7));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C6));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C5));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C4));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C3));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C2));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C1));
    p = simd_fma(p, u, simd_set(SCALAR_TAIL_C0));
    return simd_mul(p, t);
}

SIMD_INLINE simd_real simd_tail_exp(simd_real a)
{
    simd_real least = simd_set(SCALAR_EXP_LEAST);
    simd_real half = simd_mul(simd_set(0.5f), a);
    simd_real h = simd_negate(simd_mul(a, half));
    simd_real low = simd_negate(simd_fma(a, half, h));

    low = simd_select(simd_greater(least, h), simd_set(0.0f), low);
    struct simd_exp e = simd_exp_parts(simd_max(least, h), &low);
    return simd_scale(e.p, e.t, e.n);
}

/* scalar_gelu_erf() */
SIMD_INLINE simd_real simd_gelu_erf(simd_real x)
{
    simd_real a = simd_min(simd_abs(x), simd_set(SCALAR_TAIL_MOST));
    simd_real q = simd_mul(simd_tail_exp(a), simd_mul(a, simd_tail_factor(a)));
    simd_real y = simd_select(simd_greater(x, simd_set(0.0f)), simd_sub(x, q), simd_negate(q));

    return simd_select(simd_is_nan(x), x, y);
}

/* scalar_gelu_erf_slope() */
SIMD_INLINE simd_real simd_gelu_erf_slope(simd_real x)
{
    simd_real a = simd_min(simd_abs(x), simd_set(SCALAR_TAIL_MOST));
    simd_real factor = simd_fnma(simd_set(SCALAR_NORMAL_DENSITY), a, simd_tail_factor(a));
    simd_real q = simd_mul(simd_tail_exp(a), factor);
    simd_real y = simd_select(simd_greater(x, simd_set(0.0f)), simd_sub(simd_set(1.0f), q), q);

    return simd_select(simd_is_nan(x), x, y);
}

#endif /* ENGINE_CPU_SIMD_MATH_H */
