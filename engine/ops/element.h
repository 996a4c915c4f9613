/*
 * element.h - CAST, and the functions of MAP and BINARY. Rules call them, and so do kernels that
 * have the operands in registers.
 */
#ifndef ENGINE_OPS_ELEMENT_H
#define ENGINE_OPS_ELEMENT_H

#include <math.h>

#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

/* ---- types: CAST ------------------------------------------------------------ */

static RULE inline float element_from_f16(uint32_t bits)
{
    uint32_t sign = (bits & UINT32_C(0x8000)) << 16;
    uint32_t exponent = bits >> 10 & 31;
    uint32_t fraction = bits & UINT32_C(0x3ff);

    if (exponent == 0) { /* exact: units of 2^-24 */
        return copysignf((float)fraction * 0x1p-24f, real_from_bits(sign));
    }
    exponent = exponent == 31 ? 255 : exponent + 112;
    return real_from_bits(sign | exponent << 23 | fraction << 13);
}

/* Rounded to nearest even; past 65504 infinite; a NaN is 0x7e00. */
static RULE inline uint32_t element_to_f16(float x)
{
    uint32_t bits = real_to_bits(x);
    uint32_t sign = bits >> 16 & UINT32_C(0x8000);

    bits &= UINT32_C(0x7fffffff);
    if (bits > UINT32_C(0x7f800000)) {
        return UINT32_C(0x7e00);
    }
    if (bits >= UINT32_C(0x477ff000)) {
        return sign | UINT32_C(0x7c00);
    }
    if (bits < UINT32_C(0x38800000)) { /* subnormal: the sum has units of 2^-24 */
        return sign | (real_to_bits(real_from_bits(bits) + 0.5f) - UINT32_C(0x3f000000));
    }
    bits += UINT32_C(0xfff) + (bits >> 13 & 1);
    return sign | (bits - (UINT32_C(112) << 23)) >> 13;
}

/* Rounded to nearest even; a NaN is 0x7fc0. */
static RULE inline uint32_t element_to_bf16(float x)
{
    uint32_t bits = real_to_bits(x);

    return x != x ? UINT32_C(0x7fc0) : (bits + UINT32_C(0x7fff) + (bits >> 16 & 1)) >> 16;
}

/* Toward zero; the nearest number of the type where it is beyond them; 0 for a NaN. */
static RULE inline uint32_t element_to_i32(float x)
{
    if (x != x) {
        return 0;
    }
    if (x >= 0x1p31f) {
        return INT32_MAX;
    }
    return x < -0x1p31f ? UINT32_C(0x80000000) : (uint32_t)(int32_t)x;
}

/* Likewise; every negative number becomes 0. */
static RULE inline uint32_t element_to_u32(float x)
{
    return x >= 0x1p32f ? UINT32_MAX : x >= 1.0f ? (uint32_t)x : 0; /* a NaN is not */
}

/* bits as operand_get() gives them; the result is as it is stored. */
static RULE inline uint32_t element_cast(enum dtype from, enum dtype to, uint32_t bits)
{
    float x = real_from_bits(bits);

    switch (from) {
    case DTYPE_F32:
        return to == DTYPE_F16    ? element_to_f16(x)
               : to == DTYPE_BF16 ? element_to_bf16(x)
               : to == DTYPE_U32  ? element_to_u32(x)
                                  : element_to_i32(x);
    case DTYPE_U8:
    case DTYPE_U16:
    case DTYPE_U32:
        return real_to_bits((float)bits);
    case DTYPE_I16:
    case DTYPE_I32:
        return real_to_bits((float)(int32_t)bits);
    case DTYPE_F16:
        return real_to_bits(element_from_f16(bits));
    case DTYPE_BF16:
        return real_to_bits(real_from_bits(bits << 16));
    case DTYPE_COUNT:
        break;
    }
    return FLOAT_NAN_BITS;
}

/* ---- the functions of MAP and BINARY: values, a NaN not yet the stored one ---- */

/* A NaN stays a NaN; -0 and every negative number become +0. */
static RULE inline float element_relu(float x)
{
    return x > 0.0f || x != x ? x : 0.0f;
}

static RULE inline float element_relu_grad(float x, float dy)
{
    return x != x ? x : x > 0.0f ? dy : 0.0f;
}

/* x / (1 + exp(-2u)): see scalar.h. */
static RULE inline float element_gelu(float x)
{
    float z = x * fmaf(SCALAR_GELU_W3, x * x, SCALAR_GELU_W1);

    return x / (1.0f + scalar_exp(z));
}

static RULE inline float element_gelu_grad(float x, float dy)
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

    return fmaf(-m, slope, s) * dy;
}

static RULE inline float element_silu(float x)
{
    return x / (1.0f + scalar_exp(-x));
}

static RULE inline float element_silu_grad(float x, float dy)
{
    x = x < -SCALAR_SILU_FLAT ? -SCALAR_SILU_FLAT : x;
    x = x > SCALAR_SILU_FLAT ? SCALAR_SILU_FLAT : x;
    float e = scalar_exp(-x);
    float s = 1.0f / (1.0f + e);

    return fmaf(x * s, e * s, s) * dy;
}

/* x rounded toward zero, |x| < 2^23; the sign of a zero is lost. */
static RULE inline float element_truncated(float x)
{
    return (float)(int32_t)x;
}

/* FLOOR, CEIL, ROUND: an integer, with the sign of x where it is zero. */
static RULE inline float element_integer(enum map_function function, float x)
{
    const float whole = 0x1p23f; /* from here on every number is an integer */
    float y;

    if (!(x > -whole && x < whole)) {
        return x;
    }
    y = element_truncated(x);
    if (function == MAP_FLOOR) {
        y = y > x ? y - 1.0f : y;
    } else if (function == MAP_CEIL) {
        y = y < x ? y + 1.0f : y;
    } else {
        y = x < 0.0f ? (x - whole) + whole : (x + whole) - whole;
    }
    return copysignf(y, x);
}

/* constant: of MAP_SCALE. */
static RULE inline float element_map(enum map_function function, float x, float constant)
{
    switch (function) {
    case MAP_NEG:
        return -x;
    case MAP_ABS:
        return fabsf(x);
    case MAP_SIGN:
        return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x;
    case MAP_FLOOR:
    case MAP_CEIL:
    case MAP_ROUND:
        return element_integer(function, x);
    case MAP_SQRT:
        return sqrtf(x);
    case MAP_RSQRT:
        return 1.0f / sqrtf(x);
    case MAP_RECIPROCAL:
        return 1.0f / x;
    case MAP_EXP:
        return scalar_exp(x);
    case MAP_LOG:
        return scalar_log(x);
    case MAP_TANH:
        return scalar_tanh(x);
    case MAP_SIGMOID:
        return scalar_sigmoid(x);
    case MAP_ERF:
        return scalar_erf(x);
    case MAP_SIN:
        return scalar_sin(x);
    case MAP_COS:
        return scalar_cos(x);
    case MAP_GELU_ERF:
        return scalar_gelu_erf(x);
    case MAP_GELU_ERF_SLOPE:
        return scalar_gelu_erf_slope(x);
    case MAP_SCALE:
        return x * constant;
    case MAP_RELU:
        return element_relu(x);
    case MAP_GELU:
        return element_gelu(x);
    case MAP_SILU:
        return element_silu(x);
    case MAP_FUNCTION_COUNT:
        break;
    }
    return real_from_bits(FLOAT_NAN_BITS);
}

static RULE inline float element_binary(enum binary_function function, float a, float b)
{
    switch (function) {
    case BINARY_ADD:
        return a + b;
    case BINARY_SUB:
        return a - b;
    case BINARY_MUL:
        return a * b;
    case BINARY_DIV:
        return a / b;
    case BINARY_MAX:
        return a != a || a >= b ? a : b;
    case BINARY_MIN:
        return a != a || a <= b ? a : b;
    case BINARY_POW:
        return scalar_pow(a, b);
    case BINARY_LESS:
        return a < b ? 1.0f : 0.0f;
    case BINARY_LESS_EQUAL:
        return a <= b ? 1.0f : 0.0f;
    case BINARY_EQUAL:
        return a == b ? 1.0f : 0.0f;
    case BINARY_NOT_EQUAL:
        return a != b ? 1.0f : 0.0f;
    case BINARY_RELU_GRAD:
        return element_relu_grad(a, b);
    case BINARY_GELU_GRAD:
        return element_gelu_grad(a, b);
    case BINARY_SILU_GRAD:
        return element_silu_grad(a, b);
    case BINARY_SQUARED_ERROR:
        return (a - b) * (a - b);
    case BINARY_SQUARED_ERROR_SLOPE:
        return 2.0f * (a - b);
    case BINARY_FUNCTION_COUNT:
        break;
    }
    return real_from_bits(FLOAT_NAN_BITS);
}

#endif /* ENGINE_OPS_ELEMENT_H */
