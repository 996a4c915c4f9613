/*
 * scalar_test.c - exp, log, tanh and the canonical fold have the bits that docs/ARITHMETIC.md
 * states and the accuracy that scalar.h states.
 *
 * Method: every k-th of all 2^32 inputs against the C library in double precision (its error is
 * 2^-28 of ours; bench/scalar_bench.c tries all of them); the edges by name; bits pinned by vectors
 * and by one number over all samples; the fold against a version that builds the tree from lists,
 * without the -0 trick.
 */
#include "engine/ops/scalar.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "engine/ops/assumptions.h"
#include "engine/ops/element.h"
#include "engine/ops/fold.h"
#include "engine/ops/real.h"
#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

/* One binary32 spacing at the exact value. */
static double spacing(double exact)
{
    int exponent;

    if (fabs(exact) < 0x1p-126) {
        return 0x1p-149;
    }
    (void)frexp(exact, &exponent);
    return ldexp(1.0, exponent - 24);
}

static double error_in_ulp(float got, double exact)
{
    if (isnan(exact)) {
        return isnan(got) ? 0.0 : INFINITY;
    }
    if (isinf((float)exact) || isinf(got)) {
        /* Overflow is right where the exact value is past the largest number, or next to it. */
        return isinf(got) && (got > 0.0f) == (exact > 0.0) && fabs(exact) > 0x1.fffffcp127
                   ? 0.0
                   : INFINITY;
    }
    return fabs(got - exact) / spacing(exact);
}

struct function {
    const char *name;
    float (*ours)(float);
    double (*exact)(double);
    double ulp_max;
    uint64_t bits_digest; /* over the pinned samples */
};

static const struct function functions[] = {
    {"exp", scalar_exp, exp, 0.9, UINT64_C(0x6eea609e3413b414)},
    {"log", scalar_log, log, 1.1, UINT64_C(0xd2ad7bb4292fdaca)},
    {"tanh", scalar_tanh, tanh, 1.4, UINT64_C(0xaa14fa6554776fb5)},
};

#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static void test_error_over_all_inputs_is_below_its_bound(void **state)
{
    (void)state;
    for (size_t f = 0; f < FUNCTIONS; f++) {
        uint64_t samples = test_share(UINT64_C(1) << 32, UINT64_C(1) << 22);
        uint64_t step = (UINT64_C(1) << 32) / samples;

        for (uint64_t bits = step / 2; bits >> 32 == 0; bits += step) {
            float x = float_of((uint32_t)bits);
            double error = error_in_ulp(functions[f].ours(x), functions[f].exact(x));

            if (!(error <= functions[f].ulp_max)) {
                fail_msg("%s(%a) is off by %g ulp", functions[f].name, (double)x, error);
            }
        }
    }
}

/* All inputs with results of ordinary size, also those between the samples above. */
static void test_error_over_ordinary_inputs_is_below_its_bound(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (uint64_t i = 0; i < test_share(1 << 26, 1 << 20); i++) {
        float x = (float)((int64_t)test_random_below(&seed, 1 << 28) - (1 << 27)) * 0x1p-20f;

        for (size_t f = 0; f < FUNCTIONS; f++) {
            double error = error_in_ulp(functions[f].ours(x), functions[f].exact(x));
            if (!(error <= functions[f].ulp_max)) {
                fail_msg("%s(%a) is off by %g ulp", functions[f].name, (double)x, error);
            }
        }
    }
}

static void test_edges_have_their_limits(void **state)
{
    (void)state;
    assert_int_equal(float_bits(scalar_exp(0.0f)), 0x3f800000);
    assert_int_equal(float_bits(scalar_exp(-0.0f)), 0x3f800000);
    assert_int_equal(float_bits(scalar_exp(INFINITY)), 0x7f800000);
    assert_int_equal(float_bits(scalar_exp(3e38f)), 0x7f800000);
    assert_int_equal(float_bits(scalar_exp(-INFINITY)), 0);
    assert_int_equal(float_bits(scalar_exp(-3e38f)), 0);
    assert_true(isnan(scalar_exp(NAN)));
    /* The last finite result and the first infinite one; the last subnormal and the first zero. */
    assert_int_equal(float_bits(scalar_exp(float_of(0x42b17217))), 0x7f7fff84);
    assert_int_equal(float_bits(scalar_exp(float_of(0x42b17218))), 0x7f800000);
    assert_int_equal(float_bits(scalar_exp(float_of(0xc2cff1b4))), 1);
    assert_int_equal(float_bits(scalar_exp(float_of(0xc2cff1b5))), 0);

    assert_int_equal(float_bits(scalar_log(1.0f)), 0);
    assert_int_equal(float_bits(scalar_log(0.0f)), 0xff800000);
    assert_int_equal(float_bits(scalar_log(-0.0f)), 0xff800000);
    assert_int_equal(float_bits(scalar_log(INFINITY)), 0x7f800000);
    assert_true(isnan(scalar_log(-1.0f)));
    assert_true(isnan(scalar_log(-INFINITY)));
    assert_true(isnan(scalar_log(-0x1p-149f)));
    assert_true(isnan(scalar_log(NAN)));

    assert_int_equal(float_bits(scalar_tanh(0.0f)), 0);
    assert_int_equal(float_bits(scalar_tanh(-0.0f)), 0x80000000);
    assert_int_equal(float_bits(scalar_tanh(INFINITY)), 0x3f800000);
    assert_int_equal(float_bits(scalar_tanh(-INFINITY)), 0xbf800000);
    assert_int_equal(float_bits(scalar_tanh(0x1p-149f)), 1);
    assert_int_equal(float_bits(scalar_tanh(-3e38f)), 0xbf800000);
    assert_true(isnan(scalar_tanh(NAN)));
}

static void test_bits_are_the_pinned_ones(void **state)
{
    (void)state;
    for (size_t f = 0; f < FUNCTIONS; f++) {
        uint64_t digest = 0;

        for (uint64_t bits = 0; bits >> 32 == 0; bits += 12343) {
            float y = functions[f].ours(float_of((uint32_t)bits));
            digest = (digest ^ real_to_bits(y)) * UINT64_C(0x9e3779b97f4a7c15);
            digest ^= digest >> 29;
        }
        if (digest != functions[f].bits_digest) {
            fail_msg("%s: the samples digest to %016llx", functions[f].name,
                     (unsigned long long)digest);
        }
    }
}

/* ---- the canonical fold ------------------------------------------------------ */

/* The definition with lists: lanes may be absent, and there is no starting value. */
static float fold_by_lists(const float *v, const float *w, uint32_t count)
{
    float lanes[FOLD_LANES];
    uint32_t present = count < FOLD_LANES ? count : FOLD_LANES;

    for (uint32_t l = 0; l < present; l++) {
        lanes[l] = w == NULL ? v[l] : v[l] * w[l];
        for (uint32_t i = l + FOLD_LANES; i < count; i += FOLD_LANES) {
            lanes[l] = w == NULL ? lanes[l] + v[i] : fmaf(v[i], w[i], lanes[l]);
        }
    }
    for (uint32_t d = FOLD_LANES / 2; d > 0; d /= 2) {
        for (uint32_t l = 0; l < d; l++) {
            if (l + d < present) {
                lanes[l] = lanes[l] + lanes[l + d];
            }
        }
        present = present < d ? present : d;
    }
    return lanes[0];
}

static void test_fold_equals_its_definition_for_every_length(void **state)
{
    static const enum float_fill fills[] = {FLOAT_PLAIN, FLOAT_FINITE, FLOAT_NASTY};
    float v[FOLD_CHUNK];
    float w[FOLD_CHUNK];
    uint64_t seed = 5;

    (void)state;
    for (uint32_t count = 1; count <= FOLD_CHUNK; count++) {
        struct fold sum;
        struct fold dot;

        float_case_fill(&seed, v, count, fills[count % 3]);
        float_case_fill(&seed, w, count, fills[count % 3]);
        fold_init(&sum);
        fold_init(&dot);
        for (uint32_t i = 0; i < count; i++) {
            fold_add(&sum, v[i]);
            fold_multiply_add(&dot, v[i], w[i]);
        }
        assert_int_equal(real_to_bits(fold_total(&sum)),
                         real_to_bits(fold_by_lists(v, NULL, count)));
        assert_int_equal(real_to_bits(fold_total(&dot)), real_to_bits(fold_by_lists(v, w, count)));
    }
}

static void test_fold_of_minus_zeros_is_minus_zero(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 70; count++) {
        struct fold sum;
        struct fold dot;

        fold_init(&sum);
        fold_init(&dot);
        for (uint32_t i = 0; i < count; i++) {
            fold_add(&sum, -0.0f);
            fold_multiply_add(&dot, -0x1p-100f, 0x1p-100f);
        }
        assert_int_equal(float_bits(fold_total(&sum)), 0x80000000);
        assert_int_equal(float_bits(fold_total(&dot)), 0x80000000);
    }
}

/* ---- where gelu and silu leave their bound ---------------------------------------- */

static double exact_gelu(double x)
{
    double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);

    return x / (1.0 + exp(-2.0 * u));
}

static double exact_silu(double x)
{
    return x / (1.0 + exp(-x));
}

/* docs/ARITHMETIC.md, "Errors": of every 9973rd number from `first` to `last`. */
static void check_bound(float (*ours)(float), double (*exact)(double), float first, float last,
                        double bound)
{
    uint32_t most = float_bits(last < 0.0f ? first : last);
    uint32_t least = float_bits(last < 0.0f ? last : first);

    for (uint64_t bits = least; bits <= most; bits += 9973) {
        float x = real_from_bits((uint32_t)bits);
        double error = error_in_ulp(ours(x), exact((double)x));

        if (error > bound) {
            fail_msg("at %a the error is %.3f ulp, above %.1f", (double)x, error, bound);
        }
    }
}

static void test_gelu_and_silu_leave_their_bound_where_it_is_written(void **state)
{
    (void)state;
    check_bound(element_gelu, exact_gelu, 0.0f, FLT_MAX, 2.0);
    check_bound(element_gelu, exact_gelu, -1.0f, -FLT_MIN, 3.0);
    check_bound(element_gelu, exact_gelu, -0x1.41f36ep3f, -1.0f, 220.0);
    check_bound(element_silu, exact_silu, 0.0f, FLT_MAX, 2.5);
    check_bound(element_silu, exact_silu, -0x1.62e42ep6f, -FLT_MIN, 2.5);
    /* The last number before the flush, and the first flushed one. */
    assert_true(element_gelu(-0x1.41f36ep3f) < -FLT_MIN);
    assert_int_equal(float_bits(element_gelu(-0x1.41f37p3f)), 0x80000000);
    assert_true(element_silu(-0x1.62e42ep6f) < -FLT_MIN);
    assert_int_equal(float_bits(element_silu(-0x1.62e43p6f)), 0x80000000);
}

/* ---- what we stand on ----------------------------------------------------------- */

static void test_this_thread_computes_as_assumed(void **state)
{
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(assumptions_check(&error), STATUS_OK);
}

static void test_other_rounding_directions_are_refused(void **state)
{
    static const int directions[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

    (void)state;
    for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
        struct error error;
        enum status status;

        error_init(&error);
        assert_int_equal(fesetround(directions[i]), 0);
        status = assumptions_check(&error);
        (void)fesetround(FE_TONEAREST);
        assert_int_equal(status, STATUS_REFUSED);
        assert_non_null(strstr(error.text, "rounded"));
    }
}

static void test_flushed_subnormals_are_refused(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static const unsigned flags[] = {0x8000 /* flush results */, 0x0040 /* operands are zero */};
    unsigned before = _mm_getcsr();

    for (size_t i = 0; i < 2; i++) {
        struct error error;
        enum status status;

        error_init(&error);
        _mm_setcsr(before | flags[i]);
        status = assumptions_check(&error);
        _mm_setcsr(before);
        assert_int_equal(status, STATUS_REFUSED);
        assert_non_null(strstr(error.text, "subnormal"));
    }
#else
    test_skip("the control word is set here for x86-64 only");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_over_all_inputs_is_below_its_bound),
        cmocka_unit_test(test_error_over_ordinary_inputs_is_below_its_bound),
        cmocka_unit_test(test_edges_have_their_limits),
        cmocka_unit_test(test_bits_are_the_pinned_ones),
        cmocka_unit_test(test_fold_equals_its_definition_for_every_length),
        cmocka_unit_test(test_fold_of_minus_zeros_is_minus_zero),
        cmocka_unit_test(test_gelu_and_silu_leave_their_bound_where_it_is_written),
        cmocka_unit_test(test_this_thread_computes_as_assumed),
        cmocka_unit_test(test_other_rounding_directions_are_refused),
        cmocka_unit_test(test_flushed_subnormals_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
