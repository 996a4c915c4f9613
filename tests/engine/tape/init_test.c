/*
 * init_test.c - first states have the same bits everywhere and the distributions of init.h.
 *
 * Method: bits pinned from a second implementation, init_reference.py, written from the text of
 * init.c; moments, quantiles and tails of millions of draws; various threads, lengths, seeds and
 * streams.
 */
#include "engine/tape/init.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/ops/philox.h"

#define BITS_ONE   0x3f800000
#define BITS_0_02  0x3ca3d70a
#define BITS_0_05  0x3d4ccccd
#define SEED_LARGE UINT64_C(0x123456789abcdef0)

static void check_bits(const float *values, const uint32_t *bits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t got;

        memcpy(&got, &values[i], sizeof(got));
        assert_int_equal(got, bits[i]);
    }
}

static void test_normal_numbers_are_pinned(void **state)
{
    const struct init unit = {INIT_NORMAL, BITS_ONE};
    const struct init small = {INIT_NORMAL, BITS_0_02};
    const uint32_t unit_bits[8] = {0xbec8cf77, 0xbf3f0f98, 0x3fb7e60e, 0xbe62e8ce,
                                   0xbfa09fb7, 0xbe7897f9, 0x3eccaf40, 0xbf202527};
    const uint32_t small_bits[6] = {0x3b3a7e7b, 0xbbeccf7a, 0xbc5d0706,
                                    0x3ca64354, 0x3bb3aaf4, 0x3c21d7dc};
    const uint32_t last_bits[2] = {0xbaca8eaa, 0xbc96b20e};
    enum { COUNT = 1000000 };
    float *values = malloc(COUNT * sizeof(*values));

    (void)state;
    assert_non_null(values);
    init_fill(values, 8, &unit, 1, 0);
    check_bits(values, unit_bits, 8);
    init_fill(values, COUNT, &small, SEED_LARGE, 7);
    check_bits(values, small_bits, 6);
    check_bits(values + COUNT - 2, last_bits, 2);
    free(values);
}

static void test_uniform_numbers_are_pinned(void **state)
{
    const struct init unit = {INIT_UNIFORM, BITS_ONE};
    const struct init small = {INIT_UNIFORM, BITS_0_05};
    const uint32_t unit_bits[8] = {0x3f6a1927, 0xbe0f8cc4, 0xbcce02a0, 0x3f00a05d,
                                   0x3edfee9e, 0x3ea02af6, 0xbec5258e, 0x3eef2ec6};
    const uint32_t small_bits[8] = {0x3d0676b1, 0x3d25d311, 0x3cef39db, 0xbca6f85f,
                                    0xba104f67, 0x3cf0ff65, 0x3c25b90a, 0xbd3fa88f};
    float values[8];

    (void)state;
    init_fill(values, 8, &unit, 1, 0);
    check_bits(values, unit_bits, 8);
    init_fill(values, 8, &small, SEED_LARGE, 7);
    check_bits(values, small_bits, 8);
}

/* FNV-1a over the little-endian bytes: a pin for many numbers at once. */
static uint64_t hash_of(const float *values, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof(bits));
        for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ (bits >> shift & 0xff)) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

static void test_long_runs_are_pinned(void **state)
{
    enum { COUNT = 20000 };
    static float values[COUNT];

    (void)state;
    init_fill(values, COUNT, &(struct init){INIT_NORMAL, BITS_0_02}, 42, 3);
    assert_int_equal(hash_of(values, COUNT), UINT64_C(0x9ba99c333bb1e513));
    init_fill(values, COUNT, &(struct init){INIT_UNIFORM, BITS_0_02}, 42, 3);
    assert_int_equal(hash_of(values, COUNT), UINT64_C(0xd0726c98d81e9342));
}

static void test_constants_fill_every_element(void **state)
{
    float values[5];

    (void)state;
    init_fill(values, 5, &(struct init){INIT_ZEROS, BITS_ONE}, 1, 2);
    check_bits(values, (uint32_t[]){0, 0, 0, 0, 0}, 5);
    init_fill(values, 5, &(struct init){INIT_ONES, 0}, 1, 2);
    check_bits(values, (uint32_t[]){BITS_ONE, BITS_ONE, BITS_ONE, BITS_ONE, BITS_ONE}, 5);
    init_fill(values, 5, &(struct init){INIT_CONSTANT, 0x80000000}, 1, 2);
    check_bits(values, (uint32_t[]){0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000}, 5);
}

static void test_threads_and_lengths_change_no_number(void **state)
{
    enum { COUNT = 5000 };
    static float whole[COUNT];
    static float part[COUNT + 1];

    (void)state;
    for (enum init_kind kind = INIT_ZEROS; kind <= INIT_NORMAL; kind++) {
        const struct init init = {kind, BITS_0_02};

        omp_set_num_threads(1);
        init_fill(whole, COUNT, &init, 5, 6);
        for (int threads = 1; threads <= 3; threads++) {
            omp_set_num_threads(threads);
            for (uint64_t count = 0; count <= 40; count++) {
                uint64_t length = count * 125;

                memset(part, 0x7f, sizeof(part));
                init_fill(part, length, &init, 5, 6);
                assert_memory_equal(part, whole, length * sizeof(*part));
                /* Nothing is written past the end, also for half a pair. */
                for (uint64_t i = length; i < COUNT + 1; i++) {
                    assert_memory_equal(&part[i], "\x7f\x7f\x7f\x7f", 4);
                }
            }
        }
    }
}

static void test_seeds_and_streams_are_apart(void **state)
{
    const struct init init = {INIT_NORMAL, BITS_ONE};
    float a[64];
    float b[64];

    (void)state;
    init_fill(a, 64, &init, 1, 1);
    for (int change = 0; change < 3; change++) {
        init_fill(b, 64, &init,
                  change == 0   ? 2
                  : change == 1 ? UINT64_C(0x100000001)
                                : 1,
                  change == 2 ? 2 : 1);
        for (int i = 0; i < 64; i++) {
            for (int j = 0; j < 64; j++) {
                assert_true(a[i] != b[j]);
            }
        }
    }
}

/* The transform in long double with the library's log and cos: the same within rounding. */
static void test_normal_pair_is_box_mullers(void **state)
{
    enum { PAIRS = 200000 };
    float *values = malloc(2 * PAIRS * sizeof(*values));
    const long double pi = 3.141592653589793238462643383279502884L;

    (void)state;
    assert_non_null(values);
    init_fill(values, 2 * PAIRS, &(struct init){INIT_NORMAL, BITS_ONE}, 8, 9);
    for (uint64_t j = 0; j < PAIRS; j++) {
        struct philox_block block = philox_draw(j, 9, INIT_STEP, 8);
        uint64_t m = (((uint64_t)block.words[1] << 32 | block.words[0]) >> 11) + 1;
        uint64_t v = ((uint64_t)block.words[3] << 32 | block.words[2]) >> 11;
        long double radius = sqrtl(-2.0L * logl((long double)m * 0x1p-53L));
        long double angle = 2.0L * pi * ((long double)v * 0x1p-53L - 0.125L);
        long double cosine = radius * cosl(angle);
        long double sine = radius * sinl(angle);

        assert_true(fabsl(values[2 * j] - cosine) <= 0x1.0001p-24L * fabsl(cosine) + 0x1p-50L);
        assert_true(fabsl(values[2 * j + 1] - sine) <= 0x1.0001p-24L * fabsl(sine) + 0x1p-50L);
    }
    free(values);
}

static void test_normal_numbers_have_normal_moments_and_tails(void **state)
{
    enum { COUNT = 4000000 };
    float *values = malloc(COUNT * sizeof(*values));
    double sums[5] = {0};
    double beyond[6] = {0};

    (void)state;
    assert_non_null(values);
    init_fill(values, COUNT, &(struct init){INIT_NORMAL, BITS_ONE}, 2024, 1);
    for (int i = 0; i < COUNT; i++) {
        double x = values[i];

        for (int power = 1; power <= 4; power++) {
            sums[power] += pow(x, power) / COUNT;
        }
        for (int d = 1; d <= 5; d++) {
            beyond[d] += fabs(x) > d;
        }
    }
    /* Five standard errors: variances of x, x^2, x^3, x^4 are 1, 2, 15, 96. */
    assert_true(fabs(sums[1] - 0.0) < 5 * sqrt(1.0 / COUNT));
    assert_true(fabs(sums[2] - 1.0) < 5 * sqrt(2.0 / COUNT));
    assert_true(fabs(sums[3] - 0.0) < 5 * sqrt(15.0 / COUNT));
    assert_true(fabs(sums[4] - 3.0) < 5 * sqrt(96.0 / COUNT));
    for (int d = 1; d <= 5; d++) {
        double expected = COUNT * erfc(d / sqrt(2.0));

        assert_true(fabs(beyond[d] - expected) <= 5 * sqrt(expected) + 1);
    }
    free(values);
}

/* Chi-square over 64 equally likely cells: the upper 10^-6 point for 63 degrees is 127. */
static void check_cells(enum init_kind kind, uint64_t stream)
{
    enum { COUNT = 1000000, CELLS = 64 };
    float *values = malloc(COUNT * sizeof(*values));
    double seen[CELLS] = {0};
    double chi_square = 0;

    assert_non_null(values);
    init_fill(values, COUNT, &(struct init){kind, BITS_ONE}, 77, (uint32_t)stream);
    for (int i = 0; i < COUNT; i++) {
        double p = kind == INIT_NORMAL ? 0.5 * erfc(-values[i] / sqrt(2.0))
                                       : ((double)values[i] + 1.0) / 2.0;

        seen[p < 1.0 ? (int)(p * CELLS) : CELLS - 1]++;
    }
    for (int i = 0; i < CELLS; i++) {
        double expected = (double)COUNT / CELLS;

        chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    assert_true(chi_square < 127.0);
    free(values);
}

static void test_numbers_fall_into_quantiles_equally(void **state)
{
    (void)state;
    for (uint64_t stream = 0; stream < 4; stream++) {
        check_cells(INIT_NORMAL, stream);
        check_cells(INIT_UNIFORM, stream);
    }
}

static void test_uniform_numbers_stay_within_the_limit(void **state)
{
    enum { COUNT = 200000 };
    static float values[COUNT];
    float least = 1.0f;
    float most = -1.0f;

    (void)state;
    init_fill(values, COUNT, &(struct init){INIT_UNIFORM, BITS_ONE}, 3, 4);
    for (int i = 0; i < COUNT; i++) {
        assert_true(values[i] != 0.0f && fabsf(values[i]) <= 1.0f);
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    assert_true(least < -0.9999f && most > 0.9999f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal_numbers_are_pinned),
        cmocka_unit_test(test_uniform_numbers_are_pinned),
        cmocka_unit_test(test_long_runs_are_pinned),
        cmocka_unit_test(test_constants_fill_every_element),
        cmocka_unit_test(test_threads_and_lengths_change_no_number),
        cmocka_unit_test(test_seeds_and_streams_are_apart),
        cmocka_unit_test(test_normal_pair_is_box_mullers),
        cmocka_unit_test(test_normal_numbers_have_normal_moments_and_tails),
        cmocka_unit_test(test_numbers_fall_into_quantiles_equally),
        cmocka_unit_test(test_uniform_numbers_stay_within_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
