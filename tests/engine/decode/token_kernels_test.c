/*
 * token_kernels_test.c - every instruction set gives the bits of the scalar kernels, and these
 * compute what they say.
 *
 * Method: products of every width up to 70 and around the edges of chunks, in all types of weights,
 * with several vectors; against binary64, and bit for bit; exponentials and weighted sums likewise.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/decode/token_kernels.h"
#include "engine/ops/element.h"
#include "engine/ops/fold.h"
#include "tests/support/test.h"

enum { MATRIX_ROWS = 5, VECTORS = 3, WIDTH_MAX = 2100 };

static float random_number(uint64_t *seed)
{
    return (float)((double)test_random_below(seed, 2000001) / 1e6 - 1.0);
}

/* A number of the type at a place, and what it is. */
static float put_number(void *to, enum dtype dtype, size_t at, float x)
{
    if (dtype == DTYPE_F32) {
        ((float *)to)[at] = x;
        return x;
    }
    const uint32_t bits = dtype == DTYPE_F16 ? element_to_f16(x) : element_to_bf16(x);

    ((uint16_t *)to)[at] = (uint16_t)bits;
    return dtype == DTYPE_F16 ? element_from_f16(bits) : real_from_bits(bits << 16);
}

static void check_product(size_t k, enum dtype dtype, uint64_t *seed)
{
    float *matrix = malloc(MATRIX_ROWS * k * sizeof(float));
    float *x = malloc(VECTORS * k * sizeof(float));
    double wanted[VECTORS * MATRIX_ROWS] = {0};
    double sizes[VECTORS * MATRIX_ROWS] = {0};
    float y[VECTORS * MATRIX_ROWS];
    float other[VECTORS * MATRIX_ROWS];
    struct token_product product = {.y = y,
                                    .y_stride = MATRIX_ROWS,
                                    .matrix = matrix,
                                    .dtype = dtype,
                                    .row_stride = k,
                                    .rows = MATRIX_ROWS,
                                    .x = x,
                                    .vectors = VECTORS,
                                    .k = k};

    for (size_t i = 0; i < VECTORS * k; i++) {
        x[i] = random_number(seed);
    }
    for (size_t row = 0; row < MATRIX_ROWS; row++) {
        for (size_t i = 0; i < k; i++) {
            const float w = put_number(matrix, dtype, row * k + i, random_number(seed));

            for (size_t r = 0; r < VECTORS; r++) {
                wanted[r * MATRIX_ROWS + row] += (double)w * (double)x[r * k + i];
                sizes[r * MATRIX_ROWS + row] += fabs((double)w * (double)x[r * k + i]);
            }
        }
    }
    token_kernels_scalar.product(&product);
    for (size_t i = 0; i < VECTORS * MATRIX_ROWS; i++) {
        assert_true(fabs((double)y[i] - wanted[i]) <= 1e-6 * sizes[i] + 1e-30);
    }
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa)) {
            product.y = other;
            token_kernels_of((enum isa)isa)->product(&product);
            assert_memory_equal(y, other, sizeof(y));
        }
    }
    free(matrix);
    free(x);
}

static void test_products_have_one_order(void **state)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    static const size_t edges[] = {127, 128, 1023, 1024, 1025, 1056, 2048, WIDTH_MAX};
    uint64_t seed = 1;

    (void)state;
    for (size_t t = 0; t < 3; t++) {
        for (size_t k = 1; k <= 70; k++) {
            check_product(k, types[t], &seed);
        }
        for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
            check_product(edges[i], types[t], &seed);
        }
    }
}

/* A sum of nothing but -0 is -0, in every instruction set and at every width. */
static void test_a_zero_keeps_its_sign(void **state)
{
    float x[WIDTH_MAX];
    float y[2];

    (void)state;
    for (size_t i = 0; i < WIDTH_MAX; i++) {
        x[i] = -1.0f;
    }
    for (size_t k = 1; k <= WIDTH_MAX; k += k < 70 ? 1 : 97) {
        float *matrix = calloc(2 * k, sizeof(*matrix));
        const struct token_product product = {.y = y,
                                              .y_stride = 2,
                                              .matrix = matrix,
                                              .dtype = DTYPE_F32,
                                              .row_stride = k,
                                              .rows = 2,
                                              .x = x,
                                              .vectors = 1,
                                              .k = k};

        assert_non_null(matrix);
        for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
            if (isa_available((enum isa)isa)) {
                token_kernels_of((enum isa)isa)->product(&product);
                assert_true(y[0] == 0.0f && signbit(y[0]) && y[1] == 0.0f && signbit(y[1]));
            }
        }
        free(matrix);
    }
}

/* A weighted sum begins at +0: what it adds to is no -0. */
static void test_a_weighted_sum_begins_at_zero(void **state)
{
    enum { WIDE = 83 };
    const float p[2] = {1.0f, 0.5f};
    float rows[2 * WIDE];
    float out[WIDE];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rows[i] = -0.0f;
    }
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa)) {
            token_kernels_of((enum isa)isa)->weighted_sum(out, rows, p, 2, WIDE);
            for (size_t d = 0; d < WIDE; d++) {
                assert_true(out[d] == 0.0f && !signbit(out[d]));
            }
        }
    }
}

/* The order is that of fold.h: 32 lanes, then halves. */
static void test_a_dot_product_is_the_fold(void **state)
{
    float w[FOLD_CHUNK + 40];
    float x[FOLD_CHUNK + 40];
    struct fold parts;
    struct fold chunk;
    float y;
    uint64_t seed = 7;

    (void)state;
    fold_init(&parts);
    for (size_t from = 0; from < FOLD_CHUNK + 40; from += FOLD_CHUNK) {
        const size_t to = from == 0 ? FOLD_CHUNK : FOLD_CHUNK + 40;

        fold_init(&chunk);
        for (size_t i = from; i < to; i++) {
            w[i] = random_number(&seed);
            x[i] = random_number(&seed);
            fold_multiply_add(&chunk, w[i], x[i]);
        }
        fold_add(&parts, fold_total(&chunk));
    }
    const struct token_product product = {.y = &y,
                                          .matrix = w,
                                          .dtype = DTYPE_F32,
                                          .row_stride = FOLD_CHUNK + 40,
                                          .rows = 1,
                                          .x = x,
                                          .vectors = 1,
                                          .k = FOLD_CHUNK + 40};

    token_kernels_scalar.product(&product);
    assert_true(y == fold_total(&parts));
}

static void test_exponentials_and_weighted_sums_have_one_order(void **state)
{
    enum { COUNT = 45, WIDE = 83 };
    float x[COUNT];
    float rows[COUNT * WIDE];
    float out[2][WIDE];
    float made[2][COUNT];
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = 40.0f * random_number(&seed);
    }
    for (size_t i = 0; i < COUNT * WIDE; i++) {
        rows[i] = random_number(&seed);
    }
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        const int at = isa == ISA_SCALAR ? 0 : 1;

        for (size_t width = 1; width <= WIDE && isa_available((enum isa)isa); width++) {
            memset(out, 0, sizeof(out));
            token_kernels_scalar.weighted_sum(out[0], rows, x, COUNT, width);
            token_kernels_of((enum isa)isa)->weighted_sum(out[1], rows, x, COUNT, width);
            assert_memory_equal(out[0], out[1], sizeof(out[0]));
        }
        for (size_t count = 1; count <= COUNT && isa_available((enum isa)isa); count++) {
            memcpy(made[0], x, sizeof(x));
            memcpy(made[at], x, sizeof(x));
            token_kernels_scalar.exponentials(made[0], count, 0.5f, 20.0f);
            if (at != 0) {
                token_kernels_of((enum isa)isa)->exponentials(made[at], count, 0.5f, 20.0f);
            }
            assert_memory_equal(made[0], made[at], sizeof(x));
            assert_true(fabs(made[0][count - 1] - exp(0.5 * (double)x[count - 1] - 20.0)) <= 1e-6);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_have_one_order),
        cmocka_unit_test(test_a_zero_keeps_its_sign),
        cmocka_unit_test(test_a_weighted_sum_begins_at_zero),
        cmocka_unit_test(test_a_dot_product_is_the_fold),
        cmocka_unit_test(test_exponentials_and_weighted_sums_have_one_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
