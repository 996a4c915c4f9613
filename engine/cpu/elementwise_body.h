/*
 * elementwise_body.h - the elementwise and update kernels, written once for every instruction set.
 *
 * elementwise_avx2.c and elementwise_avx512.c each define ELEMENTWISE_KERNELS, their entry point,
 * and include this. A kernel is a "span" function that computes elements [begin, end) of every
 * output. Threads take whole spans, so no bit depends on their number.
 *
 * Each vector is loaded from all inputs before it is stored to any output, so an output may share
 * the memory of an input that is read at the same index (op_in_place() says which).
 */
#ifndef ENGINE_CPU_ELEMENTWISE_BODY_H
#define ENGINE_CPU_ELEMENTWISE_BODY_H

#include "engine/cpu/cpu.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/simd_math.h"
#include "engine/ops/real.h"

#include <stdbool.h>

/* ---- one pass over up to two inputs ---------------------------------------- */

/* The operation on vectors. A missing second operand gets the constant. */
typedef simd_real vector_function(simd_real a, simd_real b);

SIMD_INLINE void map(float *y, const float *a, const float *b, size_t count, simd_real constant,
                     vector_function *function)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) {
        simd_real vb = b != NULL ? simd_load(b + i) : constant;
        simd_store(y + i, simd_stored(function(simd_load(a + i), vb)));
    }
    if (i < count) {
        size_t lanes = count - i;
        simd_real vb = b != NULL ? simd_load_part(b + i, lanes) : constant;
        simd_real vy = function(simd_load_part(a + i, lanes), vb);
        simd_store_part(y + i, simd_stored(vy), lanes);
    }
}

static float constant_of(const struct kernel_call *call, uint32_t attribute)
{
    return real_from_bits((uint32_t)call->op->attributes[attribute]);
}

static uint64_t count_of(const struct kernel_call *call)
{
    return call->tensors[call->op->outputs[0]].count;
}

static void run_spans(const struct kernel_call *call, span_function *span)
{
    parallel_spans(call, count_of(call), span);
}

/* ---- constants and copies --------------------------------------------------- */

/* Copies bits: a NaN stays as it is. */
static void fill_bits(uint32_t *to, uint32_t bits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = bits;
    }
}

static void span_fill(const struct kernel_call *call, size_t begin, size_t end)
{
    uint32_t *y = call->outputs[0];

    fill_bits(y + begin, (uint32_t)call->op->attributes[FILL_VALUE_BITS], end - begin);
}

static void span_expand(const struct kernel_call *call, size_t begin, size_t end)
{
    size_t div = (size_t)call->op->attributes[EXPAND_DIV];
    size_t mod = (size_t)call->op->attributes[EXPAND_MOD];
    const uint32_t *a = call->inputs[0];
    uint32_t *y = call->outputs[0];

    for (size_t i = begin; i < end;) {
        size_t at = i / div % mod;
        size_t run = div == 1 ? mod - at : div - i % div;

        run = run > end - i ? end - i : run;
        if (div == 1) {
            memcpy(y + i, a + at, run * sizeof(*y));
        } else {
            fill_bits(y + i, a[at], run);
        }
        i += run;
    }
}

/* ---- rotary ------------------------------------------------------------------ */

SIMD_INLINE void rotary_vector(float *y, const float *x, const float *angles, bool inverse,
                               size_t lanes)
{
    simd_real vx = simd_get(x, lanes);
    simd_real cs = simd_get(angles, lanes);

    cs = inverse ? simd_negate_odd(cs) : cs;
    /* even: fma(x0, c, -(x1 * s)); odd: fma(x0, s, x1 * c) */
    simd_real rounded = simd_mul(simd_odd_twice(vx), simd_swap_pairs(cs));
    simd_put(y, simd_stored(simd_fma_turn(simd_even_twice(vx), cs, rounded)), lanes);
}

/* One head at one time step; angles is the row of the table, (c, s) per pair. */
SIMD_INLINE void rotary_head(float *y, const float *x, const float *angles, size_t width,
                             bool inverse)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= width; i += SIMD_WIDTH) {
        rotary_vector(y + i, x + i, angles + i, inverse, SIMD_WIDTH);
    }
    if (i < width) {
        rotary_vector(y + i, x + i, angles + i, inverse, width - i);
    }
}

/* Pairs j, j + half of one head: both halves are read before either is written, so in place too. */
SIMD_INLINE void halves_vector(float *y, const float *x, const float *angles, size_t half,
                               bool inverse, size_t lanes)
{
    float cs[2][SIMD_WIDTH];

    for (size_t j = 0; j < lanes; j++) {
        cs[0][j] = angles[2 * j];
        cs[1][j] = inverse ? -angles[2 * j + 1] : angles[2 * j + 1];
    }
    simd_real x0 = simd_get(x, lanes);
    simd_real x1 = simd_get(x + half, lanes);
    simd_real c = simd_get(cs[0], lanes);
    simd_real s = simd_get(cs[1], lanes);
    simd_real even = simd_fma(x0, c, simd_negate(simd_mul(x1, s)));
    simd_real odd = simd_fma(x0, s, simd_mul(x1, c));

    simd_put(y, simd_stored(even), lanes);
    simd_put(y + half, simd_stored(odd), lanes);
}

SIMD_INLINE void halves_head(float *y, const float *x, const float *angles, size_t width,
                             bool inverse)
{
    size_t half = width / 2;
    size_t j = 0;

    for (; j + SIMD_WIDTH <= half; j += SIMD_WIDTH) {
        halves_vector(y + j, x + j, angles + 2 * j, half, inverse, SIMD_WIDTH);
    }
    if (j < half) {
        halves_vector(y + j, x + j, angles + 2 * j, half, inverse, half - j);
    }
}

/* [begin, end) counts heads here. */
static void span_rotary(const struct kernel_call *call, size_t begin, size_t end)
{
    const int64_t *attributes = call->op->attributes;
    size_t width = (size_t)attributes[ROTARY_WIDTH];
    size_t heads = (size_t)attributes[ROTARY_HEADS];
    size_t length = (size_t)attributes[ROTARY_LENGTH];
    const float *x = call->inputs[0];
    const float *table = call->inputs[1];
    float *y = call->outputs[0];

    for (size_t h = begin; h < end; h++) {
        const float *angles = table + h / heads % length * width;

        if (attributes[ROTARY_HALVES] != 0) {
            halves_head(y + h * width, x + h * width, angles, width,
                        attributes[ROTARY_INVERSE] != 0);
        } else if (attributes[ROTARY_INVERSE] != 0) {
            rotary_head(y + h * width, x + h * width, angles, width, true);
        } else {
            rotary_head(y + h * width, x + h * width, angles, width, false);
        }
    }
}

static void run_rotary(const struct kernel_call *call)
{
    size_t width = (size_t)call->op->attributes[ROTARY_WIDTH];

    if (call->outputs[0] != NULL) {
        parallel_spans(call, count_of(call) / width, span_rotary);
    }
}

/* ---- the update --------------------------------------------------------------- */

static float scalar_input(const struct kernel_call *call, uint32_t input)
{
    return *(const float *)call->inputs[input];
}

struct sgd {
    simd_real momentum, decay, rate, gradient_scale;
    const float *p, *g, *v;
    float *p_out, *v_out; /* either may be NULL */
};

SIMD_INLINE void sgd_vector(struct sgd sgd, size_t i, size_t lanes)
{
    simd_real p = simd_get(sgd.p + i, lanes);
    simd_real scaled = simd_mul(simd_get(sgd.g + i, lanes), sgd.gradient_scale);
    simd_real v = simd_get(sgd.v + i, lanes);

    v = simd_fma(sgd.momentum, v, simd_fma(sgd.decay, p, scaled));
    if (sgd.v_out != NULL) {
        simd_put(sgd.v_out + i, simd_stored(v), lanes);
    }
    if (sgd.p_out != NULL) {
        simd_put(sgd.p_out + i, simd_stored(simd_fnma(sgd.rate, v, p)), lanes);
    }
}

static void span_sgd(const struct kernel_call *call, size_t begin, size_t end)
{
    struct sgd sgd = {
        .momentum = simd_set(constant_of(call, SGD_MOMENTUM_BITS)),
        .decay = simd_set(constant_of(call, SGD_DECAY_BITS)),
        .rate = simd_set(scalar_input(call, 3)),
        .gradient_scale = simd_set(scalar_input(call, 4)),
        .p = call->inputs[0],
        .g = call->inputs[1],
        .v = call->inputs[2],
        .p_out = call->outputs[0],
        .v_out = call->outputs[1],
    };
    size_t i = begin;

    for (; i + SIMD_WIDTH <= end; i += SIMD_WIDTH) {
        sgd_vector(sgd, i, SIMD_WIDTH);
    }
    if (i < end) {
        sgd_vector(sgd, i, end - i);
    }
}

struct adamw {
    simd_real beta1, one_less_beta1, beta2, one_less_beta2, epsilon, decay;
    simd_real rate, correct1, correct2, gradient_scale;
    const float *p, *g, *m, *v;
    float *p_out, *m_out, *v_out; /* any may be NULL */
};

SIMD_INLINE void adamw_vector(struct adamw a, size_t i, size_t lanes)
{
    simd_real p = simd_get(a.p + i, lanes);
    simd_real g = simd_mul(simd_get(a.g + i, lanes), a.gradient_scale);
    simd_real m = simd_get(a.m + i, lanes);
    simd_real v = simd_get(a.v + i, lanes);

    m = simd_fma(a.beta1, m, simd_mul(a.one_less_beta1, g));
    v = simd_fma(a.beta2, v, simd_mul(a.one_less_beta2, simd_mul(g, g)));
    if (a.m_out != NULL) {
        simd_put(a.m_out + i, simd_stored(m), lanes);
    }
    if (a.v_out != NULL) {
        simd_put(a.v_out + i, simd_stored(v), lanes);
    }
    if (a.p_out != NULL) {
        simd_real root = simd_sqrt(simd_mul(v, a.correct2));
        simd_real update = simd_div(simd_mul(m, a.correct1), simd_add(root, a.epsilon));
        update = simd_fma(a.decay, p, update);
        simd_put(a.p_out + i, simd_stored(simd_fnma(a.rate, update, p)), lanes);
    }
}

static void span_adamw(const struct kernel_call *call, size_t begin, size_t end)
{
    struct adamw adamw = {
        .beta1 = simd_set(constant_of(call, ADAMW_BETA1_BITS)),
        .one_less_beta1 = simd_set(constant_of(call, ADAMW_ONE_LESS_BETA1_BITS)),
        .beta2 = simd_set(constant_of(call, ADAMW_BETA2_BITS)),
        .one_less_beta2 = simd_set(constant_of(call, ADAMW_ONE_LESS_BETA2_BITS)),
        .epsilon = simd_set(constant_of(call, ADAMW_EPSILON_BITS)),
        .decay = simd_set(constant_of(call, ADAMW_DECAY_BITS)),
        .rate = simd_set(scalar_input(call, 4)),
        .correct1 = simd_set(scalar_input(call, 5)),
        .correct2 = simd_set(scalar_input(call, 6)),
        .gradient_scale = simd_set(scalar_input(call, 7)),
        .p = call->inputs[0],
        .g = call->inputs[1],
        .m = call->inputs[2],
        .v = call->inputs[3],
        .p_out = call->outputs[0],
        .m_out = call->outputs[1],
        .v_out = call->outputs[2],
    };
    size_t i = begin;

    for (; i + SIMD_WIDTH <= end; i += SIMD_WIDTH) {
        adamw_vector(adamw, i, SIMD_WIDTH);
    }
    if (i < end) {
        adamw_vector(adamw, i, end - i);
    }
}

#include "engine/cpu/general_body.h"

/* ---- the table ------------------------------------------------------------------ */

/* A kernel of one output has nothing to do if nobody reads it. */
#define DEFINE_RUN(name)                                                                           \
    static void run_##name(const struct kernel_call *call)                                         \
    {                                                                                              \
        if (call->outputs[0] != NULL) {                                                            \
            run_spans(call, span_##name);                                                          \
        }                                                                                          \
    }

DEFINE_RUN(fill)
DEFINE_RUN(expand)
DEFINE_RUN(map)
DEFINE_RUN(binary)
DEFINE_RUN(select)

static void run_sgd(const struct kernel_call *call)
{
    run_spans(call, span_sgd);
}

static void run_adamw(const struct kernel_call *call)
{
    run_spans(call, span_adamw);
}

void ELEMENTWISE_KERNELS(struct kernel_table *table)
{
    struct kernel *kernels = table->kernels;

    /* CLIP_FACTOR is one element; the looped rule computes it. */
    kernels[OP_FILL].run = run_fill;
    kernels[OP_EXPAND].run = run_expand;
    kernels[OP_ROTARY].run = run_rotary;
    kernels[OP_MAP].run = run_map;
    kernels[OP_BINARY].run = run_binary;
    kernels[OP_SELECT].run = run_select;
    kernels[OP_SGD].run = run_sgd;
    kernels[OP_ADAMW].run = run_adamw;
}

#endif /* ENGINE_CPU_ELEMENTWISE_BODY_H */
