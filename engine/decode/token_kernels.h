/*
 * token_kernels.h - what a decoder computes beside the engine's own operations: a matrix times a
 * vector, and the parts of attention over keys and values that were kept.
 *
 * Every sum has one order, which no instruction set and no number of threads changes: a dot product
 * is the fold of fold.h, by fused multiply-add, in chunks of FOLD_CHUNK whose sums are folded; a
 * weighted sum of rows adds one row after the other. Nothing here starts threads.
 */
#ifndef ENGINE_DECODE_TOKEN_KERNELS_H
#define ENGINE_DECODE_TOKEN_KERNELS_H

#include <stddef.h>

#include "engine/cpu/isa/isa.h"
#include "engine/ops/tensor.h"

/* The longest vector: a fold of parts. */
#define TOKEN_VECTOR_MAX (FOLD_CHUNK * FOLD_CHUNK)

/* y[r * y_stride + i] = the dot product of row i of the matrix and of vector r. A row follows the
 * one before it after row_stride elements; vectors are k elements apart. */
struct token_product {
    float *y;
    size_t y_stride;
    const void *matrix;
    enum dtype dtype; /* F32, F16 or BF16 */
    size_t row_stride;
    size_t rows;
    const float *x;
    size_t vectors;
    size_t k;
};

struct token_kernels {
    void (*product)(const struct token_product *product);
    /* x[i] = exp(x[i] * scale - maximum) */
    void (*exponentials)(float *x, size_t count, float scale, float maximum);
    /* out[d] = the sum of p[t] * rows[t * width + d] over t, from t = 0 on */
    void (*weighted_sum)(float *out, const float *rows, const float *p, size_t count, size_t width);
};

/* The kernels of an instruction set, which must be available. */
const struct token_kernels *token_kernels_of(enum isa isa);

/* Inside engine/decode/ only. */
extern const struct token_kernels token_kernels_scalar;
extern const struct token_kernels token_kernels_avx2;
extern const struct token_kernels token_kernels_avx512;
extern const struct token_kernels token_kernels_neon;

#endif /* ENGINE_DECODE_TOKEN_KERNELS_H */
