/*
 * norms_body.h - the kernels of row sums, layer norm and RMS norm. Part of rows_body.h.
 */
#ifndef ENGINE_CPU_NORMS_BODY_H
#define ENGINE_CPU_NORMS_BODY_H

#include "engine/cpu/row_fold.h"

SIMD_INLINE void each_row(const struct kernel_call *call, size_t begin, size_t end,
                          void (*row)(const struct kernel_call *call, size_t columns, size_t r))
{
    size_t columns = columns_of(call);

    for (size_t r = begin; r < end; r++) {
        row(call, columns, r);
    }
}

/* ---- row sum ------------------------------------------------------------------ */

SIMD_INLINE void sum_of_row(const struct kernel_call *call, size_t columns, size_t r)
{
    size_t chunks = (size_t)fold_chunks(columns);
    struct row_pass row = {.x = input_row(call, 0, r, columns)};

    put_scalar(call, 1, r, fold_row(row, columns, output_row(call, 0, r, chunks), step_sum));
}

static void span_row_sum(const struct kernel_call *call, size_t begin, size_t end)
{
    each_row(call, begin, end, sum_of_row);
}

/* ---- layer norm ------------------------------------------------------------------ */

SIMD_INLINE simd_real step_square(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    simd_real d = simd_sub(simd_get(row.x + i, lanes), row.mean);

    return simd_fma(d, d, sum);
}

SIMD_INLINE void step_layer_norm(struct row_pass row, size_t i, size_t lanes)
{
    simd_real d = simd_sub(simd_get(row.x + i, lanes), row.mean);
    simd_real y = simd_fma(simd_mul(d, row.rstd), simd_get(row.gain + i, lanes),
                           simd_get(row.bias + i, lanes));

    simd_put(row.y + i, simd_stored(y), lanes);
}

/* 1 / sqrt(mean square + epsilon) */
static float rstd_of(const struct kernel_call *call, float square_sum)
{
    float variance = square_sum / (float)columns_of(call);

    return real_stored(1.0f / sqrtf(variance + constant_of(call, NORM_EPSILON_BITS)));
}

SIMD_INLINE void row_layer_norm(const struct kernel_call *call, size_t columns, size_t r)
{
    size_t chunks = (size_t)fold_chunks(columns);
    struct row_pass row = {
        .x = input_row(call, 0, r, columns),
        .gain = call->inputs[1],
        .bias = call->inputs[2],
        .y = output_row(call, 4, r, columns),
    };
    float sum = fold_row(row, columns, output_row(call, 0, r, chunks), step_sum);
    float mean = real_stored(sum / (float)columns);

    row.mean = simd_set(mean);
    float square = fold_row(row, columns, output_row(call, 2, r, chunks), step_square);
    float rstd = rstd_of(call, square);

    put_scalar(call, 1, r, mean);
    put_scalar(call, 3, r, rstd);
    if (row.y != NULL) {
        row.rstd = simd_set(rstd);
        map_row(row, columns, step_layer_norm);
    }
}

static void span_layer_norm(const struct kernel_call *call, size_t begin, size_t end)
{
    each_row(call, begin, end, row_layer_norm);
}

/* ---- layer norm, backward ---------------------------------------------------------- */

SIMD_INLINE simd_real layer_norm_xhat(struct row_pass row, size_t i, size_t lanes)
{
    return simd_mul(simd_sub(simd_get(row.x + i, lanes), row.mean), row.rstd);
}

/* first = fold of g, second = fold of g * xhat */
SIMD_INLINE void step_g_and_gx(struct sums *sums, struct row_pass row, size_t i, size_t lanes)
{
    simd_real g = simd_mul(simd_get(row.dy + i, lanes), simd_get(row.gain + i, lanes));

    sums->first = simd_add(sums->first, g);
    sums->second = simd_fma(g, layer_norm_xhat(row, i, lanes), sums->second);
}

/* scale = mean of g, slope = mean of g * xhat */
SIMD_INLINE void step_layer_norm_grad(struct row_pass row, size_t i, size_t lanes)
{
    simd_real xhat = layer_norm_xhat(row, i, lanes);
    simd_real dy = simd_get(row.dy + i, lanes);
    simd_real g = simd_mul(dy, simd_get(row.gain + i, lanes));
    simd_real inner = simd_fnma(xhat, row.slope, simd_sub(g, row.scale));

    if (row.y != NULL) {
        simd_put(row.y + i, simd_stored(simd_mul(row.rstd, inner)), lanes);
    }
    if (row.z != NULL) {
        simd_put(row.z + i, simd_stored(simd_mul(dy, xhat)), lanes);
    }
}

SIMD_INLINE void row_layer_norm_grad(const struct kernel_call *call, size_t columns, size_t r)
{
    size_t chunks = (size_t)fold_chunks(columns);
    struct row_pass row = {
        .dy = input_row(call, 0, r, columns),
        .x = input_row(call, 1, r, columns),
        .gain = call->inputs[2],
        .mean = simd_set(*input_row(call, 3, r, 1)),
        .rstd = simd_set(*input_row(call, 4, r, 1)),
        .y = output_row(call, 4, r, columns),
        .z = output_row(call, 5, r, columns),
    };
    struct totals total = fold_row_pair(row, columns, output_row(call, 0, r, chunks),
                                        output_row(call, 1, r, chunks), step_g_and_gx);
    float mean_g = real_stored(total.first / (float)columns);
    float mean_gx = real_stored(total.second / (float)columns);

    put_scalar(call, 2, r, mean_g);
    put_scalar(call, 3, r, mean_gx);
    row.scale = simd_set(mean_g);
    row.slope = simd_set(mean_gx);
    map_row(row, columns, step_layer_norm_grad);
}

static void span_layer_norm_grad(const struct kernel_call *call, size_t begin, size_t end)
{
    each_row(call, begin, end, row_layer_norm_grad);
}

/* ---- RMS norm ------------------------------------------------------------------------ */

SIMD_INLINE simd_real step_plain_square(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    simd_real x = simd_get(row.x + i, lanes);

    return simd_fma(x, x, sum);
}

SIMD_INLINE void step_rms_norm(struct row_pass row, size_t i, size_t lanes)
{
    simd_real xhat = simd_mul(simd_get(row.x + i, lanes), row.rstd);

    simd_put(row.y + i, simd_stored(simd_mul(xhat, simd_get(row.gain + i, lanes))), lanes);
}

SIMD_INLINE void row_rms_norm(const struct kernel_call *call, size_t columns, size_t r)
{
    size_t chunks = (size_t)fold_chunks(columns);
    struct row_pass row = {
        .x = input_row(call, 0, r, columns),
        .gain = call->inputs[1],
        .y = output_row(call, 2, r, columns),
    };
    float square = fold_row(row, columns, output_row(call, 0, r, chunks), step_plain_square);
    float rstd = rstd_of(call, square);

    put_scalar(call, 1, r, rstd);
    if (row.y != NULL) {
        row.rstd = simd_set(rstd);
        map_row(row, columns, step_rms_norm);
    }
}

static void span_rms_norm(const struct kernel_call *call, size_t begin, size_t end)
{
    each_row(call, begin, end, row_rms_norm);
}

/* ---- RMS norm, backward ---------------------------------------------------------------- */

SIMD_INLINE simd_real step_rms_gx(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    simd_real xhat = simd_mul(simd_get(row.x + i, lanes), row.rstd);
    simd_real g = simd_mul(simd_get(row.dy + i, lanes), simd_get(row.gain + i, lanes));

    return simd_fma(g, xhat, sum);
}

SIMD_INLINE void step_rms_norm_grad(struct row_pass row, size_t i, size_t lanes)
{
    simd_real xhat = simd_mul(simd_get(row.x + i, lanes), row.rstd);
    simd_real dy = simd_get(row.dy + i, lanes);
    simd_real g = simd_mul(dy, simd_get(row.gain + i, lanes));

    if (row.y != NULL) {
        simd_real dx = simd_mul(row.rstd, simd_fnma(xhat, row.slope, g));
        simd_put(row.y + i, simd_stored(dx), lanes);
    }
    if (row.z != NULL) {
        simd_put(row.z + i, simd_stored(simd_mul(dy, xhat)), lanes);
    }
}

SIMD_INLINE void row_rms_norm_grad(const struct kernel_call *call, size_t columns, size_t r)
{
    size_t chunks = (size_t)fold_chunks(columns);
    struct row_pass row = {
        .dy = input_row(call, 0, r, columns),
        .x = input_row(call, 1, r, columns),
        .gain = call->inputs[2],
        .rstd = simd_set(*input_row(call, 3, r, 1)),
        .y = output_row(call, 2, r, columns),
        .z = output_row(call, 3, r, columns),
    };
    float gx = fold_row(row, columns, output_row(call, 0, r, chunks), step_rms_gx);
    float mean_gx = real_stored(gx / (float)columns);

    put_scalar(call, 1, r, mean_gx);
    row.slope = simd_set(mean_gx);
    map_row(row, columns, step_rms_norm_grad);
}

static void span_rms_norm_grad(const struct kernel_call *call, size_t begin, size_t end)
{
    each_row(call, begin, end, row_rms_norm_grad);
}

#endif /* ENGINE_CPU_NORMS_BODY_H */
