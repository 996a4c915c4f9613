/* token_kernels.c - the definition of each kernel, one number after the other; see token_kernels.h.
 */
#include "engine/decode/token_kernels.h"

#include <assert.h>

#include "engine/ops/element.h"
#include "engine/ops/fold.h"
#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

static float number_at(const void *numbers, enum dtype dtype, size_t at)
{
    if (dtype == DTYPE_F32) {
        return ((const float *)numbers)[at];
    }
    const uint32_t bits = ((const uint16_t *)numbers)[at];

    return dtype == DTYPE_F16 ? element_from_f16(bits) : real_from_bits(bits << 16);
}

static float dot_chunk(const struct token_product *product, size_t row, const float *x, size_t from,
                       size_t to)
{
    struct fold fold;

    fold_init(&fold);
    for (size_t i = from; i < to; i++) {
        fold_multiply_add(
            &fold, number_at(product->matrix, product->dtype, row * product->row_stride + i), x[i]);
    }
    return real_stored(fold_total(&fold));
}

static float dot_row(const struct token_product *product, size_t row, const float *x)
{
    struct fold parts;

    if (product->k <= FOLD_CHUNK) {
        return dot_chunk(product, row, x, 0, product->k);
    }
    fold_init(&parts);
    for (size_t from = 0; from < product->k; from += FOLD_CHUNK) {
        const size_t left = product->k - from;

        fold_add(&parts,
                 dot_chunk(product, row, x, from, from + (left < FOLD_CHUNK ? left : FOLD_CHUNK)));
    }
    return real_stored(fold_total(&parts));
}

static void product_scalar(const struct token_product *product)
{
    for (size_t row = 0; row < product->rows; row++) {
        for (size_t r = 0; r < product->vectors; r++) {
            product->y[r * product->y_stride + row] =
                dot_row(product, row, product->x + r * product->k);
        }
    }
}

static void exponentials_scalar(float *x, size_t count, float scale, float maximum)
{
    for (size_t i = 0; i < count; i++) {
        const float v = x[i] * scale;

        x[i] = scalar_exp(v - maximum);
    }
}

static void weighted_sum_scalar(float *out, const float *rows, const float *p, size_t count,
                                size_t width)
{
    for (size_t d = 0; d < width; d++) {
        float sum = 0.0f;

        for (size_t t = 0; t < count; t++) {
            sum = fmaf(p[t], rows[t * width + d], sum);
        }
        out[d] = sum;
    }
}

const struct token_kernels token_kernels_scalar = {
    product_scalar,
    exponentials_scalar,
    weighted_sum_scalar,
};

const struct token_kernels *token_kernels_of(enum isa isa)
{
    assert(isa_available(isa));
#if defined(__x86_64__)
    if (isa != ISA_SCALAR) {
        return isa == ISA_AVX2 ? &token_kernels_avx2 : &token_kernels_avx512;
    }
#elif defined(__aarch64__)
    if (isa != ISA_SCALAR) {
        return &token_kernels_neon;
    }
#endif
    return &token_kernels_scalar;
}
