/*
 * scalar.h - exp, log, tanh, erf, sine, power and their like of binary32, as sequences that every
 * machine can repeat.
 *
 * A sequence uses add, subtract, multiply, fma, divide, compare-and-select and integer operations
 * on the bits. Each floating operation rounds once, to nearest even. Vector kernels, the CUDA
 * backend and the contract run the same steps with the same constants. The steps are protocol:
 * docs/ARITHMETIC.md states them, and any change is a new version of the arithmetic.
 *
 * Over all 2^32 inputs the error is below 0.9 ulp for exp, 1.1 for log and 1.4 for tanh
 * (bench/scalar_bench.c); docs/ARITHMETIC.md has the bounds of the others. A NaN gives a NaN of
 * unspecified bits, which real_to_bits() makes canonical. No tables, no libm.
 */
#ifndef ENGINE_OPS_SCALAR_H
#define ENGINE_OPS_SCALAR_H

#include "engine/ops/portable.h"

/* x + 1.5 * 2^23 rounds x to an integer, which is then in the low bits of the sum. */
#define SCALAR_ROUNDER 0x1.8p23f

#define SCALAR_LOG2_E   0x1.715476p0f
#define SCALAR_LN2_HIGH 0x1.62e43p-1f
/* ln 2 = HIGH + LOW, to 2^-55. */
#define SCALAR_LN2_LOW  (-0x1.05c61p-29f)

/* Below EXP_LEAST the result rounds to +0, above EXP_MOST it overflows; between, every step of
 * scalar_exp() is exact or normal, up to the last. */
#define SCALAR_EXP_LEAST (-104.0f)
#define SCALAR_EXP_MOST  89.0f

/* exp(r) = 1 + r + r^2 * (C2 + ... ) on |r| <= ln(2)/2: minimax in relative error. */
#define SCALAR_EXP_C2 0x1.fffffap-2f
#define SCALAR_EXP_C3 0x1.555492p-3f
#define SCALAR_EXP_C4 0x1.555a26p-5f
#define SCALAR_EXP_C5 0x1.12398p-7f
#define SCALAR_EXP_C6 0x1.694c9cp-10f

/* Bits of 2/3, rounded up: subtracting them leaves x's exponent for a mantissa in [2/3, 4/3). */
#define SCALAR_LOG_SPLIT UINT32_C(0x3f2aaaab)

/* log(1+f) = f + f^2 * (C2 + ...) on -1/3 <= f < 1/3. */
#define SCALAR_LOG_C2 (-0x1.ffffd6p-2f)
#define SCALAR_LOG_C3 0x1.5554fcp-2f
#define SCALAR_LOG_C4 (-0x1.00144ep-2f)
#define SCALAR_LOG_C5 0x1.99d398p-3f
#define SCALAR_LOG_C6 (-0x1.5038e4p-3f)
#define SCALAR_LOG_C7 0x1.1eaacap-3f
#define SCALAR_LOG_C8 (-0x1.3b0c36p-3f)
#define SCALAR_LOG_C9 0x1.1f1bb8p-3f

/* tanh(x) = x + x^3 * (C3 + C5 x^2 + ...) below SMALL, 1 - 2/(exp(2x) + 1) from there. */
#define SCALAR_TANH_SMALL 0.625f
#define SCALAR_TANH_C3    (-0x1.555532p-2f)
#define SCALAR_TANH_C5    0x1.110704p-3f
#define SCALAR_TANH_C7    (-0x1.b838ap-5f)
#define SCALAR_TANH_C9    0x1.5211c4p-6f
#define SCALAR_TANH_C11   (-0x1.758facp-8f)

/*
 * GELU in its tanh form is x / (1 + exp(-2u)) with u = sqrt(2/pi) * (x + 0.044715 x^3): the same
 * function without the cancellation of 1 + tanh(u) and with one exponential. W1 = -2 sqrt(2/pi),
 * W3 = W1 * 0.044715, so that -2u = x * (W1 + W3 x^2); D3 = 3 * W3 serves the derivative.
 */
#define SCALAR_GELU_W1   (-0x1.988454p0f)
#define SCALAR_GELU_W3   (-0x1.2444f2p-4f)
#define SCALAR_GELU_D3   (-0x1.b6676cp-3f)
/* Beyond this |x| the derivative is 1, or less than 2^-100 away from 0. At it, exp(-2u) is far from
 * overflow. */
#define SCALAR_GELU_FLAT 9.5f
/* The same for SiLU, x / (1 + exp(-x)). */
#define SCALAR_SILU_FLAT 80.0f

/*
 * The tail of the normal distribution, 1 - Phi(a) = erfc(a / sqrt 2) / 2 for a >= 0, is
 * exp(-a^2/2) * t * (C0 + C1 u + ...), where t = 1 / (1 + K a) and u = t - 1/2. At MOST the
 * exponential is +0.
 */
#define SCALAR_TAIL_MOST 16.0f
#define SCALAR_TAIL_K    0.375f
#define SCALAR_TAIL_C0   0x1.129e6p-2f
#define SCALAR_TAIL_C1   0x1.626a2cp-2f
#define SCALAR_TAIL_C2   0x1.fd5a54p-3f
#define SCALAR_TAIL_C3   0x1.676a96p-6f
#define SCALAR_TAIL_C4   (-0x1.a444fep-4f)
#define SCALAR_TAIL_C5   (-0x1.3fb352p-6f)
#define SCALAR_TAIL_C6   0x1.08297cp-4f
#define SCALAR_TAIL_C7   (-0x1.95b932p-9f)
#define SCALAR_TAIL_C8   (-0x1.4b3d5p-5f)
#define SCALAR_TAIL_C9   0x1.5d8f76p-6f

#define SCALAR_SQRT_2         0x1.6a09e6p0f
#define SCALAR_NORMAL_DENSITY 0x1.988454p-2f /* 1 / sqrt(2 pi) */

/* erf(x) = x + x * (C1 + C3 x^2 + ...) below 1; from MOST on it is 1. */
#define SCALAR_ERF_MOST 4.0f
#define SCALAR_ERF_C1   0x1.06eba8p-3f
#define SCALAR_ERF_C3   (-0x1.81273ep-2f)
#define SCALAR_ERF_C5   0x1.ce2ce6p-4f
#define SCALAR_ERF_C7   (-0x1.b7f71ap-6f)
#define SCALAR_ERF_C9   0x1.53f224p-8f
#define SCALAR_ERF_C11  (-0x1.a3515ep-11f)
#define SCALAR_ERF_C13  0x1.4771fcp-14f

/* Sine and cosine know angles up to this; x = k pi/2 + r, pi/2 = P1 + P2 + P3, k * P1 is exact. */
#define SCALAR_ANGLE_MOST 0x1p17f
#define SCALAR_2_OVER_PI  0x1.45f306p-1f
#define SCALAR_PI_2_P1    0x1.921fb6p0f
#define SCALAR_PI_2_P2    (-0x1.777a5cp-25f)
#define SCALAR_PI_2_P3    (-0x1.ee59dap-50f)
#define SCALAR_SIN_C3     (-0x1.555546p-3f)
#define SCALAR_SIN_C5     0x1.110776p-7f
#define SCALAR_SIN_C7     (-0x1.995272p-13f)
#define SCALAR_COS_C4     0x1.55554ap-5f
#define SCALAR_COS_C6     (-0x1.6c0c1ap-10f)
#define SCALAR_COS_C8     0x1.99e0ecp-16f

/* log((1+s)/(1-s)) = 2s + s^3 * (C3 + C5 s^2 + ...), |s| <= 1/5. */
#define SCALAR_POW_C3 0x1.555554p-1f
#define SCALAR_POW_C5 0x1.999c0cp-2f
#define SCALAR_POW_C7 0x1.23e042p-2f
#define SCALAR_POW_C9 0x1.ee9fe6p-3f

/* exp(x) and exp(-inf) = +0, exp(+inf) = +inf; gradual underflow is rounded once. */
RULE float scalar_exp(float x);

/* log(x); log(+-0) = -inf, log(+inf) = +inf, NaN below zero. */
RULE float scalar_log(float x);

/* tanh(x); tanh(+-0) = +-0, tanh(+-inf) = +-1. */
RULE float scalar_tanh(float x);

/* 1 / (1 + exp(-x)), also where exp(-x) would overflow. */
RULE float scalar_sigmoid(float x);

/* erf(x); erf(+-0) = +-0, erf(+-inf) = +-1. */
RULE float scalar_erf(float x);

/* x * Phi(x), Phi the normal distribution: the exact GELU; and its derivative. */
RULE float scalar_gelu_erf(float x);
RULE float scalar_gelu_erf_slope(float x);

/* sin(x) and cos(x); NaN where |x| > SCALAR_ANGLE_MOST. */
RULE float scalar_sin(float x);
RULE float scalar_cos(float x);

/* x to the power y, with the special cases of C's pow(): 1 for y = 0 and for x = 1, NaN for x < 0
 * and a y that is no integer. */
RULE float scalar_pow(float x, float y);

#endif /* ENGINE_OPS_SCALAR_H */
