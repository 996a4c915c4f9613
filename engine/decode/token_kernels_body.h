/*
 * token_kernels_body.h - the kernels of token_kernels.h in vectors, for the instruction set of the
 * including file, which defines TOKEN_KERNELS.
 *
 * A product reads a matrix once, from memory: that is what it costs. Two of its rows go together,
 * so that enough additions wait for each other, and all vectors are multiplied while they are near.
 */
#ifndef ENGINE_DECODE_TOKEN_KERNELS_BODY_H
#define ENGINE_DECODE_TOKEN_KERNELS_BODY_H

#include <string.h>

#include "engine/cpu/simd_math.h"
#include "engine/decode/token_kernels.h"
#include "engine/ops/fold.h"
#include "engine/ops/real.h"

#define PAIR 2

/* Elements at .. at + SIMD_WIDTH - 1 of a row. */
SIMD_INLINE simd_real widened(const void *row, enum dtype dtype, size_t at)
{
    if (dtype == DTYPE_F32) {
        return simd_load((const float *)row + at);
    }
    return dtype == DTYPE_F16 ? simd_load_f16((const uint16_t *)row + at)
                              : simd_load_bf16((const uint16_t *)row + at);
}

/* The last elements of a chunk, fewer than FOLD_LANES: other lanes keep what they have. */
SIMD_INLINE void add_rest(simd_real sums[SIMD_GROUP], const void *row, enum dtype dtype,
                          const float *x, size_t from, size_t count)
{
    const size_t size = dtype_size(dtype);
    float padded_row[FOLD_LANES] = {0.0f}; /* of any of the types */
    float padded_x[FOLD_LANES] = {0.0f};

    memcpy(padded_row, (const uint8_t *)row + from * size, count * size);
    memcpy(padded_x, x + from, count * sizeof(*x));
    for (size_t j = 0; j < SIMD_GROUP; j++) {
        const size_t at = j * SIMD_WIDTH;
        const size_t lanes = count <= at ? 0 : count - at < SIMD_WIDTH ? count - at : SIMD_WIDTH;
        const simd_real next =
            simd_fma(widened(padded_row, dtype, at), simd_load(padded_x + at), sums[j]);

        if (lanes == SIMD_WIDTH) {
            sums[j] = next;
        } else if (lanes > 0) {
            sums[j] = simd_select(simd_first(lanes), next, sums[j]);
        }
    }
}

/* One chunk of `rows` rows, PAIR at most. */
SIMD_INLINE void dot_chunks(float *parts, size_t part_stride, const void *const *row, size_t rows,
                            enum dtype dtype, const float *x, size_t from, size_t to)
{
    simd_real sums[PAIR][SIMD_GROUP];
    size_t i = from;

    SIMD_UNROLL
    for (size_t o = 0; o < rows; o++) {
        SIMD_UNROLL
        for (size_t j = 0; j < SIMD_GROUP; j++) {
            sums[o][j] = simd_set(-0.0f);
        }
    }
    for (; i + FOLD_LANES <= to; i += FOLD_LANES) {
        SIMD_UNROLL
        for (size_t j = 0; j < SIMD_GROUP; j++) {
            const simd_real factor = simd_load(x + i + j * SIMD_WIDTH);

            SIMD_UNROLL
            for (size_t o = 0; o < rows; o++) {
                sums[o][j] =
                    simd_fma(widened(row[o], dtype, i + j * SIMD_WIDTH), factor, sums[o][j]);
            }
        }
    }
    SIMD_UNROLL
    for (size_t o = 0; o < rows; o++) {
        if (i < to) {
            add_rest(sums[o], row[o], dtype, x, i, to - i);
        }
        parts[o * part_stride] = real_stored(simd_fold(sums[o]));
    }
}

/* The canonical sum of the parts of one row. */
static float total_of(const float *parts, size_t count)
{
    struct fold fold;

    if (count == 1) {
        return parts[0];
    }
    fold_init(&fold);
    for (size_t i = 0; i < count; i++) {
        fold_add(&fold, parts[i]);
    }
    return real_stored(fold_total(&fold));
}

SIMD_INLINE void dot_rows(const struct token_product *product, size_t first, size_t rows,
                          enum dtype dtype)
{
    const uint8_t *matrix = product->matrix;
    const size_t size = dtype_size(dtype) * product->row_stride;
    const void *const row[PAIR] = {matrix + first * size, matrix + (first + rows - 1) * size};
    const size_t chunks = (size_t)fold_chunks(product->k);
    float parts[PAIR][FOLD_CHUNK];

    for (size_t r = 0; r < product->vectors; r++) {
        const float *x = product->x + r * product->k;

        for (size_t c = 0; c < chunks; c++) {
            const size_t from = c * FOLD_CHUNK;
            const size_t left = product->k - from;

            dot_chunks(&parts[0][c], FOLD_CHUNK, row, rows, dtype, x, from,
                       from + (left < FOLD_CHUNK ? left : FOLD_CHUNK));
        }
        for (size_t o = 0; o < rows; o++) {
            product->y[r * product->y_stride + first + o] = total_of(parts[o], chunks);
        }
    }
}

SIMD_INLINE void product_of(const struct token_product *product, enum dtype dtype)
{
    size_t row = 0;

    for (; row + PAIR <= product->rows; row += PAIR) {
        dot_rows(product, row, PAIR, dtype);
    }
    if (row < product->rows) {
        dot_rows(product, row, 1, dtype);
    }
}

static void product_simd(const struct token_product *product)
{
    if (product->dtype == DTYPE_F32) {
        product_of(product, DTYPE_F32);
    } else if (product->dtype == DTYPE_F16) {
        product_of(product, DTYPE_F16);
    } else {
        product_of(product, DTYPE_BF16);
    }
}

static void exponentials_simd(float *x, size_t count, float scale, float maximum)
{
    for (size_t i = 0; i < count; i += SIMD_WIDTH) {
        const size_t lanes = count - i < SIMD_WIDTH ? count - i : SIMD_WIDTH;
        const simd_real v = simd_mul(simd_get(x + i, lanes), simd_set(scale));

        simd_put(x + i, simd_exp(simd_sub(v, simd_set(maximum))), lanes);
    }
}

/* `vectors` vectors of the sum, whose last has so many lanes. */
SIMD_INLINE void sum_columns(float *out, const float *rows, const float *p, size_t count,
                             size_t width, size_t vectors, size_t lanes)
{
    simd_real sums[4];

    SIMD_UNROLL
    for (size_t j = 0; j < vectors; j++) {
        sums[j] = simd_set(0.0f);
    }
    for (size_t t = 0; t < count; t++) {
        SIMD_UNROLL
        for (size_t j = 0; j < vectors; j++) {
            sums[j] = simd_fma(simd_set(p[t]), simd_get(rows + t * width + j * SIMD_WIDTH, lanes),
                               sums[j]);
        }
    }
    SIMD_UNROLL
    for (size_t j = 0; j < vectors; j++) {
        simd_put(out + j * SIMD_WIDTH, sums[j], lanes);
    }
}

static void weighted_sum_simd(float *out, const float *rows, const float *p, size_t count,
                              size_t width)
{
    const size_t four = (size_t)4 * SIMD_WIDTH;
    size_t d = 0;

    for (; d + four <= width; d += four) {
        sum_columns(out + d, rows + d, p, count, width, 4, SIMD_WIDTH);
    }
    for (; d + SIMD_WIDTH <= width; d += SIMD_WIDTH) {
        sum_columns(out + d, rows + d, p, count, width, 1, SIMD_WIDTH);
    }
    if (d < width) {
        sum_columns(out + d, rows + d, p, count, width, 1, width - d);
    }
}

const struct token_kernels TOKEN_KERNELS = {
    product_simd,
    exponentials_simd,
    weighted_sum_simd,
};

#endif /* ENGINE_DECODE_TOKEN_KERNELS_BODY_H */
