/*
 * general_body.h - the kernels of MAP, BINARY and SELECT; part of elementwise_body.h.
 *
 * A view is cut into runs along its innermost axis. Along a run an operand has one stride; runs
 * with strides 1 and 0 take vectors, the others a loop over the elements.
 */
#ifndef ENGINE_CPU_GENERAL_BODY_H
#define ENGINE_CPU_GENERAL_BODY_H

#include "engine/ops/element.h"

#define GENERAL_OPERANDS_MAX 3

/* ---- MAP -------------------------------------------------------------------- */

#define MAP_VECTOR(name, expression)                                                               \
    SIMD_INLINE simd_real vector_map_##name(simd_real x, simd_real constant)                       \
    {                                                                                              \
        (void)constant;                                                                            \
        return expression;                                                                         \
    }

MAP_VECTOR(neg, simd_negate(x))
MAP_VECTOR(abs, simd_abs(x))
MAP_VECTOR(sqrt, simd_sqrt(x))
MAP_VECTOR(rsqrt, simd_div(simd_set(1.0f), simd_sqrt(x)))
MAP_VECTOR(reciprocal, simd_div(simd_set(1.0f), x))
MAP_VECTOR(exp, simd_exp(x))
MAP_VECTOR(tanh, simd_tanh(x))
MAP_VECTOR(sigmoid, simd_sigmoid(x))
MAP_VECTOR(gelu_erf, simd_gelu_erf(x))
MAP_VECTOR(gelu_erf_slope, simd_gelu_erf_slope(x))
MAP_VECTOR(scale, simd_mul(x, constant))
/* max(x, +0) gives +0 for x = -0 and for NaN, since equal or unordered operands give the second.
 * The select restores NaN. */
MAP_VECTOR(relu, simd_select(simd_is_nan(x), x, simd_max(x, simd_set(0.0f))))
MAP_VECTOR(gelu, simd_gelu(x))
MAP_VECTOR(silu, simd_silu(x))

static void map_singly(const struct kernel_call *call, size_t begin, size_t end,
                       enum map_function function)
{
    const float *x = call->inputs[0];
    float *y = call->outputs[0];

    for (size_t i = begin; i < end; i++) {
        y[i] = real_stored(element_map(function, x[i], 0.0f));
    }
}

#define MAP_CASE(code, name)                                                                       \
    case code:                                                                                     \
        map(y + begin, x + begin, NULL, end - begin, constant, vector_map_##name);                 \
        return;

static void span_map(const struct kernel_call *call, size_t begin, size_t end)
{
    const enum map_function function = (enum map_function)call->op->attributes[MAP_FUNCTION];
    const simd_real constant = simd_set(constant_of(call, MAP_CONSTANT_BITS));
    const float *x = call->inputs[0];
    float *y = call->outputs[0];

    switch (function) {
        MAP_CASE(MAP_NEG, neg)
        MAP_CASE(MAP_ABS, abs)
        MAP_CASE(MAP_SQRT, sqrt)
        MAP_CASE(MAP_RSQRT, rsqrt)
        MAP_CASE(MAP_RECIPROCAL, reciprocal)
        MAP_CASE(MAP_EXP, exp)
        MAP_CASE(MAP_TANH, tanh)
        MAP_CASE(MAP_SIGMOID, sigmoid)
        MAP_CASE(MAP_GELU_ERF, gelu_erf)
        MAP_CASE(MAP_GELU_ERF_SLOPE, gelu_erf_slope)
        MAP_CASE(MAP_SCALE, scale)
        MAP_CASE(MAP_RELU, relu)
        MAP_CASE(MAP_GELU, gelu)
        MAP_CASE(MAP_SILU, silu)
    case MAP_SIGN:
    case MAP_FLOOR:
    case MAP_CEIL:
    case MAP_ROUND:
    case MAP_LOG:
    case MAP_ERF:
    case MAP_SIN:
    case MAP_COS:
    case MAP_FUNCTION_COUNT:
        map_singly(call, begin, end, function);
        return;
    }
}

/* ---- views ------------------------------------------------------------------ */

/* A view without axes of length one, and with neighbours that lie alike as one axis; axis 0 is the
 * innermost. */
struct general_view {
    size_t dims[VIEW_AXES];
    size_t strides[GENERAL_OPERANDS_MAX][VIEW_AXES];
    uint32_t axes;
};

static bool joins_axis(const struct general_view *view, const int64_t *attributes, uint32_t dims_at,
                       uint32_t axis, uint32_t operands)
{
    uint32_t last = view->axes - 1;

    for (uint32_t i = 0; i < operands && view->axes > 0; i++) {
        size_t stride = (size_t)attributes[dims_at + VIEW_AXES * (i + 1) + axis];

        if (stride != view->strides[i][last] * view->dims[last]) {
            return false;
        }
    }
    return view->axes > 0;
}

static void general_view_init(struct general_view *view, const struct op *op, uint32_t dims_at,
                              uint32_t operands)
{
    *view = (struct general_view){.dims = {1}};
    for (uint32_t axis = VIEW_AXES; axis-- > 0;) {
        size_t length = (size_t)op->attributes[dims_at + axis];

        if (length == 1) {
            continue;
        }
        if (joins_axis(view, op->attributes, dims_at, axis, operands)) {
            view->dims[view->axes - 1] *= length;
            continue;
        }
        view->dims[view->axes] = length;
        for (uint32_t i = 0; i < operands; i++) {
            view->strides[i][view->axes] =
                (size_t)op->attributes[dims_at + VIEW_AXES * (i + 1) + axis];
        }
        view->axes++;
    }
}

/* Where an operand is read for the output's element i. */
static size_t general_place(const struct general_view *view, uint32_t operand, size_t i)
{
    size_t place = 0;

    for (uint32_t axis = 0; axis < view->axes; axis++) {
        place += i % view->dims[axis] * view->strides[operand][axis];
        i /= view->dims[axis];
    }
    return place;
}

/* The elements from i to the end of its run, at most up to end. */
static size_t general_run(const struct general_view *view, size_t i, size_t end)
{
    size_t run = view->dims[0] - i % view->dims[0];

    return run < end - i ? run : end - i;
}

/* ---- BINARY ----------------------------------------------------------------- */

/* One operand along a run. */
struct terms_run {
    const float *at;
    size_t stride;
};

typedef void pair_function(float *y, struct terms_run a, struct terms_run b, size_t count);

static void pair_singly(float *y, struct terms_run a, struct terms_run b, size_t count,
                        enum binary_function function)
{
    for (size_t i = 0; i < count; i++) {
        y[i] = real_stored(element_binary(function, a.at[i * a.stride], b.at[i * b.stride]));
    }
}

/* vector_pair_NAME(), the same with its operands exchanged, and the function of a run. */
#define PAIR(name, code, expression)                                                               \
    SIMD_INLINE simd_real vector_pair_##name(simd_real a, simd_real b)                             \
    {                                                                                              \
        return expression;                                                                         \
    }                                                                                              \
    SIMD_INLINE simd_real vector_turned_##name(simd_real b, simd_real a)                           \
    {                                                                                              \
        return vector_pair_##name(a, b);                                                           \
    }                                                                                              \
    static void pair_##name(float *y, struct terms_run a, struct terms_run b, size_t count)        \
    {                                                                                              \
        if (a.stride == 1 && b.stride == 1) {                                                      \
            map(y, a.at, b.at, count, simd_set(0.0f), vector_pair_##name);                         \
        } else if (a.stride == 1 && b.stride == 0) {                                               \
            map(y, a.at, NULL, count, simd_set(*b.at), vector_pair_##name);                        \
        } else if (a.stride == 0 && b.stride == 1) {                                               \
            map(y, b.at, NULL, count, simd_set(*a.at), vector_turned_##name);                      \
        } else {                                                                                   \
            pair_singly(y, a, b, count, code);                                                     \
        }                                                                                          \
    }

SIMD_INLINE simd_real one_where(simd_mask mask)
{
    return simd_select(mask, simd_set(1.0f), simd_set(0.0f));
}

SIMD_INLINE simd_real one_where_not(simd_mask mask)
{
    return simd_select(mask, simd_set(0.0f), simd_set(1.0f));
}

SIMD_INLINE simd_mask either_is_nan(simd_real a, simd_real b)
{
    return simd_either(simd_is_nan(a), simd_is_nan(b));
}

SIMD_INLINE simd_mask differ(simd_real a, simd_real b)
{
    simd_mask apart = simd_either(simd_greater(a, b), simd_greater(b, a));

    return simd_either(apart, either_is_nan(a, b));
}

PAIR(add, BINARY_ADD, simd_add(a, b))
PAIR(sub, BINARY_SUB, simd_sub(a, b))
PAIR(mul, BINARY_MUL, simd_mul(a, b))
PAIR(div, BINARY_DIV, simd_div(a, b))
PAIR(max, BINARY_MAX, simd_select(simd_either(simd_greater(b, a), simd_is_nan(b)), b, a))
PAIR(min, BINARY_MIN, simd_select(simd_either(simd_greater(a, b), simd_is_nan(b)), b, a))
PAIR(less, BINARY_LESS, one_where(simd_greater(b, a)))
PAIR(less_equal, BINARY_LESS_EQUAL,
     one_where_not(simd_either(simd_greater(a, b), either_is_nan(a, b))))
PAIR(equal, BINARY_EQUAL, one_where_not(differ(a, b)))
PAIR(not_equal, BINARY_NOT_EQUAL, one_where(differ(a, b)))

SIMD_INLINE simd_real relu_grad(simd_real x, simd_real dy)
{
    simd_real dx = simd_select(simd_greater(x, simd_set(0.0f)), dy, simd_set(0.0f));

    return simd_select(simd_is_nan(x), x, dx);
}

PAIR(relu_grad, BINARY_RELU_GRAD, relu_grad(a, b))
PAIR(gelu_grad, BINARY_GELU_GRAD, simd_mul(simd_gelu_slope(a), b))
PAIR(silu_grad, BINARY_SILU_GRAD, simd_mul(simd_silu_slope(a), b))
PAIR(squared_error, BINARY_SQUARED_ERROR, simd_mul(simd_sub(a, b), simd_sub(a, b)))
PAIR(squared_error_slope, BINARY_SQUARED_ERROR_SLOPE, simd_mul(simd_set(2.0f), simd_sub(a, b)))

static void pair_pow(float *y, struct terms_run a, struct terms_run b, size_t count)
{
    pair_singly(y, a, b, count, BINARY_POW);
}

static pair_function *pair_of(enum binary_function function)
{
    switch (function) {
    case BINARY_ADD:
        return pair_add;
    case BINARY_SUB:
        return pair_sub;
    case BINARY_MUL:
        return pair_mul;
    case BINARY_DIV:
        return pair_div;
    case BINARY_MAX:
        return pair_max;
    case BINARY_MIN:
        return pair_min;
    case BINARY_POW:
        return pair_pow;
    case BINARY_LESS:
        return pair_less;
    case BINARY_LESS_EQUAL:
        return pair_less_equal;
    case BINARY_EQUAL:
        return pair_equal;
    case BINARY_NOT_EQUAL:
        return pair_not_equal;
    case BINARY_RELU_GRAD:
        return pair_relu_grad;
    case BINARY_GELU_GRAD:
        return pair_gelu_grad;
    case BINARY_SILU_GRAD:
        return pair_silu_grad;
    case BINARY_SQUARED_ERROR:
        return pair_squared_error;
    case BINARY_SQUARED_ERROR_SLOPE:
        return pair_squared_error_slope;
    case BINARY_FUNCTION_COUNT:
        break;
    }
    __builtin_unreachable();
}

static void span_binary(const struct kernel_call *call, size_t begin, size_t end)
{
    pair_function *pair = pair_of((enum binary_function)call->op->attributes[BINARY_FUNCTION]);
    float *y = call->outputs[0];
    struct general_view view;
    size_t count;

    general_view_init(&view, call->op, BINARY_DIMS, 2);
    for (size_t i = begin; i < end; i += count) {
        struct terms_run operands[2];

        for (uint32_t k = 0; k < 2; k++) {
            const float *memory = call->inputs[k];

            operands[k].at = memory + general_place(&view, k, i);
            operands[k].stride = view.strides[k][0];
        }
        count = general_run(&view, i, end);
        pair(y + i, operands[0], operands[1], count);
    }
}

/* ---- SELECT ----------------------------------------------------------------- */

/* Copies bits: a NaN stays as it is. */
static void span_select(const struct kernel_call *call, size_t begin, size_t end)
{
    const bool bytes = call->tensors[call->op->inputs[0]].dtype == DTYPE_U8;
    const uint8_t *c8 = call->inputs[0];
    const uint32_t *c32 = call->inputs[0];
    const uint32_t *a = call->inputs[1];
    const uint32_t *b = call->inputs[2];
    uint32_t *y = call->outputs[0];
    struct general_view view;
    size_t count;

    general_view_init(&view, call->op, SELECT_DIMS, 3);
    for (size_t i = begin; i < end; i += count) {
        size_t at_c = general_place(&view, 0, i);
        size_t at_a = general_place(&view, 1, i);
        size_t at_b = general_place(&view, 2, i);

        count = general_run(&view, i, end);
        for (size_t k = 0; k < count; k++) {
            size_t place = at_c + k * view.strides[0][0];
            uint32_t c = bytes ? c8[place] : c32[place] & UINT32_C(0x7fffffff);
            uint32_t first = a[at_a + k * view.strides[1][0]];
            uint32_t second = b[at_b + k * view.strides[2][0]];

            y[i + k] = c != 0 ? first : second;
        }
    }
}

#endif /* ENGINE_CPU_GENERAL_BODY_H */
