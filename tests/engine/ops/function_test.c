/*
 * function_test.c - the functions of MAP and BINARY have the accuracy that docs/ARITHMETIC.md
 * states, the limits of C's functions, and pinned bits.
 *
 * Method: every k-th of all 2^32 numbers, and many between -32 and 32, against the C library in
 * double precision; all pairs of special numbers for the powers, against pow(); a digest over
 * samples for the bits.
 */
#include <math.h>

#include "engine/ops/element.h"
#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

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
        return isinf(got) && (got > 0.0f) == (exact > 0.0) && fabs(exact) > 0x1.fffff8p127
                   ? 0.0
                   : INFINITY;
    }
    return fabs(got - exact) / spacing(exact);
}

/* ---- exact ones ----------------------------------------------------------- */

static double negated(double x)
{
    return -x;
}

static double sign(double x)
{
    return isnan(x) ? x : (x > 0.0) - (x < 0.0);
}

static double reciprocal_root(double x)
{
    return 1.0 / sqrt(x);
}

static double reciprocal(double x)
{
    return 1.0 / x;
}

static double sigmoid(double x)
{
    return x < 0.0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}

static double gelu(double x)
{
    return x == -INFINITY ? -0.0 : 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_slope(double x)
{
    double density = isinf(x) ? 0.0 : x * exp(-0.5 * x * x) * 0.39894228040143267794;

    return 0.5 * erfc(-x * M_SQRT1_2) + density;
}

/* ---- accuracy --------------------------------------------------------------- */

/* bound: largest error in ulp from least to most. */
struct range {
    enum map_function function;
    double (*exact)(double);
    float least;
    float most;
    double bound;
};

static const struct range ranges[] = {
    {MAP_NEG, negated, -INFINITY, INFINITY, 0.0},
    {MAP_ABS, fabs, -INFINITY, INFINITY, 0.0},
    {MAP_SIGN, sign, -INFINITY, INFINITY, 0.0},
    {MAP_FLOOR, floor, -INFINITY, INFINITY, 0.0},
    {MAP_CEIL, ceil, -INFINITY, INFINITY, 0.0},
    {MAP_ROUND, nearbyint, -INFINITY, INFINITY, 0.0},
    {MAP_SQRT, sqrt, -INFINITY, INFINITY, 0.5},
    {MAP_RSQRT, reciprocal_root, 0x1p-149f, INFINITY, 1.5},
    {MAP_RECIPROCAL, reciprocal, -INFINITY, INFINITY, 0.5},
    {MAP_EXP, exp, -INFINITY, INFINITY, 0.9},
    {MAP_LOG, log, 0.0f, INFINITY, 1.1},
    {MAP_TANH, tanh, -INFINITY, INFINITY, 1.4},
    {MAP_SIGMOID, sigmoid, -INFINITY, INFINITY, 2.5},
    {MAP_ERF, erf, -INFINITY, INFINITY, 1.3},
    {MAP_SIN, sin, -0x1p17f, 0x1p17f, 1.7},
    {MAP_COS, cos, -0x1p17f, 0x1p17f, 1.7},
    {MAP_GELU_ERF, gelu, -INFINITY, INFINITY, 6.0},
    {MAP_GELU_ERF_SLOPE, gelu_slope, -0.5f, INFINITY, 9.0},
    {MAP_GELU_ERF_SLOPE, gelu_slope, -INFINITY, -1.0f, 9.0},
};

#define RANGES (sizeof(ranges) / sizeof(ranges[0]))

static void check_at(const struct range *range, float x)
{
    float y = element_map(range->function, x, 0.0f);

    if (x >= range->least && x <= range->most) {
        double error = error_in_ulp(y, range->exact((double)x));

        if (!(error <= range->bound)) {
            fail_msg("function %d at %a is %a, off by %g ulp", (int)range->function, (double)x,
                     (double)y, error);
        }
    }
    if (isnan(x) && !isnan(y)) {
        fail_msg("function %d makes a number of a NaN", (int)range->function);
    }
}

static void test_error_over_all_inputs_is_below_its_bound(void **state)
{
    uint64_t samples = test_share(UINT64_C(1) << 32, UINT64_C(1) << 20);
    uint64_t step = (UINT64_C(1) << 32) / samples;

    (void)state;
    for (size_t r = 0; r < RANGES; r++) {
        for (uint64_t bits = step / 2; bits >> 32 == 0; bits += step) {
            check_at(&ranges[r], float_of((uint32_t)bits));
        }
    }
}

static void test_error_over_ordinary_inputs_is_below_its_bound(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (uint64_t i = 0; i < test_share(1 << 26, 1 << 18); i++) {
        float x = (float)((int64_t)test_random_below(&seed, 1 << 28) - (1 << 27)) * 0x1p-22f;

        for (size_t r = 0; r < RANGES; r++) {
            check_at(&ranges[r], x);
        }
    }
}

/* Near its zero the slope is a difference: its error is counted in ulp of 1. */
static void test_gelu_slope_near_its_zero_is_within_two_ulp_of_one(void **state)
{
    (void)state;
    for (int i = 0; i <= 1 << 17; i++) {
        float x = -1.0f + (float)i * 0x1p-18f;
        double error = fabs(scalar_gelu_erf_slope(x) - gelu_slope((double)x));

        assert_true(error <= 2.0 * 0x1p-24);
    }
}

/* The numbers nearest to multiples of pi/2 cancel most. */
static void test_angles_near_multiples_of_a_quarter_turn(void **state)
{
    (void)state;
    for (int64_t k = -83443; k <= 83443; k++) {
        uint32_t middle = float_bits((float)((double)k * M_PI_2));

        for (uint32_t near = 0; near < 3; near++) {
            float x = float_of(middle + near - 1);

            if (fabsf(x) <= SCALAR_ANGLE_MOST) {
                assert_true(error_in_ulp(scalar_sin(x), sin((double)x)) <= 1.7);
                assert_true(error_in_ulp(scalar_cos(x), cos((double)x)) <= 1.7);
            }
        }
    }
}

/* ---- limits ------------------------------------------------------------------- */

static void check_bits(enum map_function function, float x, uint32_t bits)
{
    uint32_t y = real_to_bits(element_map(function, x, 0.0f));

    if (y != bits) {
        fail_msg("function %d at %a is %08x, must be %08x", (int)function, (double)x, y, bits);
    }
}

static void test_limits_are_those_of_the_functions(void **state)
{
    static const enum map_function odd[] = {MAP_TANH, MAP_ERF,  MAP_SIN,
                                            MAP_SQRT, MAP_CEIL, MAP_FLOOR};

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        check_bits(odd[i], 0.0f, 0);
        check_bits(odd[i], -0.0f, 0x80000000);
    }
    check_bits(MAP_CEIL, -0.5f, 0x80000000);
    check_bits(MAP_ROUND, -0.5f, 0x80000000);
    check_bits(MAP_ROUND, 0.5f, 0);
    check_bits(MAP_ROUND, 1.5f, 0x40000000);
    check_bits(MAP_ROUND, 2.5f, 0x40000000);
    check_bits(MAP_SIGN, -0.0f, 0);
    check_bits(MAP_RSQRT, 0.0f, 0x7f800000);
    check_bits(MAP_RSQRT, -0.0f, 0xff800000);
    check_bits(MAP_RSQRT, -1.0f, FLOAT_NAN_BITS);
    check_bits(MAP_LOG, -1.0f, FLOAT_NAN_BITS);
    check_bits(MAP_SIGMOID, -INFINITY, 0);
    check_bits(MAP_SIGMOID, INFINITY, 0x3f800000);
    check_bits(MAP_ERF, -INFINITY, 0xbf800000);
    check_bits(MAP_COS, -0.0f, 0x3f800000);
    /* Beyond the range of angles. */
    check_bits(MAP_SIN, 0x1.000002p17f, FLOAT_NAN_BITS);
    check_bits(MAP_COS, -0x1.000002p17f, FLOAT_NAN_BITS);
    check_bits(MAP_COS, INFINITY, FLOAT_NAN_BITS);
    check_bits(MAP_GELU_ERF, -0.0f, 0x80000000);
    check_bits(MAP_GELU_ERF, INFINITY, 0x7f800000);
    check_bits(MAP_GELU_ERF, -INFINITY, 0x80000000);
    check_bits(MAP_GELU_ERF_SLOPE, -INFINITY, 0x80000000);
    check_bits(MAP_GELU_ERF_SLOPE, INFINITY, 0x3f800000);
}

static void test_maxima_and_comparisons_know_zeros_and_nans(void **state)
{
    float nan = float_of(FLOAT_NAN_BITS);

    (void)state;
    assert_int_equal(real_to_bits(element_binary(BINARY_MAX, -0.0f, 0.0f)), 0x80000000);
    assert_int_equal(real_to_bits(element_binary(BINARY_MIN, 0.0f, -0.0f)), 0);
    assert_int_equal(real_to_bits(element_binary(BINARY_MAX, nan, 1.0f)), FLOAT_NAN_BITS);
    assert_int_equal(real_to_bits(element_binary(BINARY_MAX, 1.0f, nan)), FLOAT_NAN_BITS);
    assert_int_equal(real_to_bits(element_binary(BINARY_MIN, nan, 1.0f)), FLOAT_NAN_BITS);
    assert_int_equal(real_to_bits(element_binary(BINARY_MIN, 1.0f, nan)), FLOAT_NAN_BITS);
    for (int function = BINARY_LESS; function <= BINARY_NOT_EQUAL; function++) {
        bool unequal = function == BINARY_NOT_EQUAL;

        assert_true(element_binary((enum binary_function)function, nan, 1.0f) == unequal);
        assert_true(element_binary((enum binary_function)function, 1.0f, nan) == unequal);
        assert_true(element_binary((enum binary_function)function, nan, nan) == unequal);
    }
    assert_true(element_binary(BINARY_EQUAL, 0.0f, -0.0f) == 1.0f);
    assert_true(element_binary(BINARY_LESS, -0.0f, 0.0f) == 0.0f);
    assert_true(element_binary(BINARY_LESS_EQUAL, 0.0f, -0.0f) == 1.0f);
}

static void test_powers_of_special_numbers_are_those_of_c(void **state)
{
    static const float numbers[] = {
        0.0f,       0.5f,        1.0f,        1.5f,        2.0f,
        3.0f,       5.0f,        0x1p-149f,   0x1p-126f,   0x1.fffffep127f,
        INFINITY,   16777215.0f, 16777216.0f, 33554432.0f, 0.25f,
        8388609.5f, NAN};
    enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

    (void)state;
    for (int i = 0; i < 4 * NUMBERS * NUMBERS; i++) {
        float x = (i & 1) != 0 ? -numbers[i / 4 % NUMBERS] : numbers[i / 4 % NUMBERS];
        float y = (i & 2) != 0 ? -numbers[i / 4 / NUMBERS] : numbers[i / 4 / NUMBERS];
        double exact = pow((double)x, (double)y);
        float got = scalar_pow(x, y);

        if (!(error_in_ulp(got, exact) <= 8.0) ||
            (!isnan(exact) && (signbit(exact) != 0) != (signbit(got) != 0))) {
            fail_msg("pow(%a, %a) is %a, must be %a", (double)x, (double)y, (double)got, exact);
        }
    }
}

static void test_error_of_powers_is_below_its_bound(void **state)
{
    static const float exponents[] = {2.0f, 3.0f, 0.5f, -0.5f, -1.0f, 1.5f, 0.75f, -2.0f, 10.0f};
    uint64_t seed = 5;

    (void)state;
    for (uint64_t i = 0; i < test_share(1 << 26, 1 << 18); i++) {
        float x = float_of((uint32_t)test_random_below(&seed, 0x7f800000));
        /* With exponents of both kinds: results over the whole range, and common ones. */
        double log_x = log((double)x);
        float y = i % 2 == 0 ? exponents[i / 2 % 9]
                             : (float)(((double)test_random_below(&seed, 200001) - 1e5) * 1e-3 /
                                       (log_x == 0.0 ? 1.0 : log_x));
        double error = error_in_ulp(scalar_pow(x, y), pow((double)x, (double)y));

        if (!(error <= 7.5)) {
            fail_msg("pow(%a, %a) is off by %g ulp", (double)x, (double)y, error);
        }
    }
}

/* ---- types ---------------------------------------------------------------------- */

/* Of a narrow type: the value of a pattern below infinity, without its sign. */
static double value_of(enum dtype dtype, uint32_t bits)
{
    int fraction = dtype == DTYPE_F16 ? 10 : 7;
    int least = dtype == DTYPE_F16 ? -24 : -133;
    uint32_t exponent = bits >> fraction;
    uint32_t m = bits & ((1u << fraction) - 1);

    return exponent == 0 ? ldexp(m, least) : ldexp(m + (1u << fraction), least + (int)exponent - 1);
}

static void test_every_number_of_16_bits_widens_exactly_and_comes_back(void **state)
{
    static const enum dtype types[2] = {DTYPE_F16, DTYPE_BF16};
    static const uint32_t infinite[2] = {0x7c00, 0x7f80};

    (void)state;
    for (int t = 0; t < 2; t++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint32_t wide = element_cast(types[t], DTYPE_F32, bits);
            uint32_t a = bits & 0x7fff;

            if (a > infinite[t]) {
                assert_int_equal(wide, FLOAT_NAN_BITS);
                continue;
            }
            if (a < infinite[t]) {
                assert_true(fabs((double)float_of(wide)) == value_of(types[t], a));
            } else {
                assert_int_equal(wide & 0x7fffffff, 0x7f800000);
            }
            assert_int_equal(wide >> 31, bits >> 15);
            assert_int_equal(element_cast(DTYPE_F32, types[t], wide), bits);
        }
    }
}

/* The nearest number of the type, and of two the even one; 2^16 and more are infinite in f16. */
static void check_rounded(enum dtype dtype, uint32_t infinite, float x)
{
    uint32_t bits = element_cast(DTYPE_F32, dtype, float_bits(x));
    uint32_t a = bits & 0x7fff;
    double size = fabs((double)x);

    if (isnan(x)) {
        assert_int_equal(bits, infinite | (dtype == DTYPE_F16 ? 0x200 : 0x40));
        return;
    }
    assert_int_equal(bits >> 15, float_bits(x) >> 31);
    assert_true(a <= infinite);
    if (isinf(x)) {
        assert_int_equal(a, infinite);
        return;
    }
    /* value_of() goes on past the largest number, as the rounding does. */
    double apart = fabs(size - value_of(dtype, a));
    double above = fabs(value_of(dtype, a + 1) - size);
    double below = a == 0 ? INFINITY : fabs(size - value_of(dtype, a - 1));

    if ((a < infinite && (apart > above || (apart == above && (a & 1) != 0))) || apart < 0.0 ||
        (a < infinite && apart > below) || (a == infinite && apart > below && size < 1e30) ||
        (apart == below && (a & 1) != 0)) {
        fail_msg("%a is rounded to %04x", (double)x, bits);
    }
}

static void test_numbers_round_to_the_nearest_of_16_bits(void **state)
{
    uint64_t seed = 9;

    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        for (uint32_t rest = 0; rest < 65536; rest += 0x0fff + (bits & 1)) {
            check_rounded(DTYPE_F16, 0x7c00, float_of(bits << 16 | rest));
            check_rounded(DTYPE_BF16, 0x7f80, float_of(bits << 16 | rest));
        }
    }
    for (uint64_t i = 0; i < test_share(1 << 26, 1 << 18); i++) {
        /* Near f16's numbers and the ties between them. */
        uint32_t bits = (uint32_t)test_random_below(&seed, UINT64_C(1) << 32);

        bits = (bits & 0x87ffffff) + 0x33000000 + (uint32_t)test_random_below(&seed, 0x14000000);
        check_rounded(DTYPE_F16, 0x7c00, float_of((bits & ~0xfffu) + (uint32_t)(i % 3) - 1));
    }
}

static void test_integers_are_cut_and_widened(void **state)
{
    static const struct {
        float x;
        int32_t n;
    } cut[] = {{0.0f, 0},
               {-0.0f, 0},
               {0.99f, 0},
               {-0.99f, 0},
               {1.5f, 1},
               {-1.5f, -1},
               {16777217.5f, 16777218},
               {3e9f, INT32_MAX},
               {-3e9f, INT32_MIN},
               {0x1p31f, INT32_MAX},
               {-0x1p31f, INT32_MIN},
               {0x1.fffffep30f, 2147483520},
               {INFINITY, INT32_MAX},
               {-INFINITY, INT32_MIN},
               {NAN, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        assert_int_equal((int32_t)element_cast(DTYPE_F32, DTYPE_I32, float_bits(cut[i].x)),
                         cut[i].n);
    }
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(3e9f)), 3000000000u);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(0x1p32f)), UINT32_MAX);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(INFINITY)), UINT32_MAX);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(7.99f)), 7);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(1.0f)), 1);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(0.99f)), 0);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(-7.0f)), 0);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(-INFINITY)), 0);
    assert_int_equal(element_cast(DTYPE_F32, DTYPE_U32, float_bits(NAN)), 0);
    assert_int_equal(element_cast(DTYPE_U8, DTYPE_F32, 255), float_bits(255.0f));
    assert_int_equal(element_cast(DTYPE_I16, DTYPE_F32, (uint32_t)-7), float_bits(-7.0f));
    assert_int_equal(element_cast(DTYPE_I32, DTYPE_F32, (uint32_t)-16777217),
                     float_bits(-16777216.0f));
    assert_int_equal(element_cast(DTYPE_U32, DTYPE_F32, UINT32_MAX), float_bits(0x1p32f));
}

/* ---- bits ----------------------------------------------------------------------- */

static uint64_t add_to_digest(uint64_t digest, float y)
{
    digest = (digest ^ real_to_bits(y)) * UINT64_C(0x9e3779b97f4a7c15);
    return digest ^ digest >> 29;
}

static void check_digest(const char *name, int function, uint64_t digest, uint64_t pinned)
{
    if (digest != pinned) {
        fail_msg("%s %d: the samples digest to %016llx", name, function,
                 (unsigned long long)digest);
    }
}

static void test_bits_are_the_pinned_ones(void **state)
{
    static const uint64_t of_one[MAP_FUNCTION_COUNT] = {
        UINT64_C(0x6329bce07be7c0d0), UINT64_C(0x3652006827a03e47), UINT64_C(0x41cbba7b958accf7),
        UINT64_C(0x8d272cad7c2f8f06), UINT64_C(0x3467f4d3fc5f35e6), UINT64_C(0xdac360abf6331416),
        UINT64_C(0x51345fed5104a32c), UINT64_C(0xa78f56af0b3c9628), UINT64_C(0xea8f2d285ec1231d),
        UINT64_C(0x6eea609e3413b414), UINT64_C(0xd2ad7bb4292fdaca), UINT64_C(0xaa14fa6554776fb5),
        UINT64_C(0x4c1999554fbb7241), UINT64_C(0xddcc63861987f931), UINT64_C(0x036c26b40f7e3856),
        UINT64_C(0x9f67ffcb61897076), UINT64_C(0xf5a637d590856ff7), UINT64_C(0x27457c50ef488e2a),
        UINT64_C(0xd5ff25b41634e449), UINT64_C(0xdc6a1ab353ab837c), UINT64_C(0xdbf5a557cc5ae07d),
        UINT64_C(0xd57ceefba8a73f83)};
    static const uint64_t of_two[BINARY_FUNCTION_COUNT] = {
        UINT64_C(0x8fc759db50d0e4b2), UINT64_C(0x53334ea5c95354d7), UINT64_C(0xedef14b64bdd55c4),
        UINT64_C(0x24235a06b862b2b2), UINT64_C(0x9c385f934f50bfce), UINT64_C(0x9d9887c7bccbe49e),
        UINT64_C(0x48af675d7e8015b5), UINT64_C(0x46185a1669cc6396), UINT64_C(0xcfe269cb6e76396a),
        UINT64_C(0x8f5906d2bad668a9), UINT64_C(0xbfab28cd1dc9add5), UINT64_C(0x9acc09eeaea61bce),
        UINT64_C(0x8f136968e70d6ba0), UINT64_C(0x07fd2e5921be1eae), UINT64_C(0x9dd1dbf60096cbb1),
        UINT64_C(0xf228d2e3c505be69)};

    (void)state;
    for (int function = 0; function < MAP_FUNCTION_COUNT; function++) {
        uint64_t digest = 0;

        for (uint64_t bits = 0; bits >> 32 == 0; bits += 12343) {
            digest = add_to_digest(
                digest, element_map((enum map_function)function, float_of((uint32_t)bits), 0.75f));
        }
        check_digest("function", function, digest, of_one[function]);
    }
    for (int function = 0; function < BINARY_FUNCTION_COUNT; function++) {
        uint64_t digest = 0;

        for (uint64_t bits = 0; bits >> 32 == 0; bits += 12343) {
            /* Near enough to 1 for powers and equals of every kind. */
            float a = float_of((uint32_t)bits);
            float b =
                bits % 5 == 0 ? a : float_of(0x3f000000 + (uint32_t)(bits * 2654435761u >> 7));

            digest = add_to_digest(digest, element_binary((enum binary_function)function, a, b));
        }
        check_digest("binary", function, digest, of_two[function]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_over_all_inputs_is_below_its_bound),
        cmocka_unit_test(test_error_over_ordinary_inputs_is_below_its_bound),
        cmocka_unit_test(test_gelu_slope_near_its_zero_is_within_two_ulp_of_one),
        cmocka_unit_test(test_angles_near_multiples_of_a_quarter_turn),
        cmocka_unit_test(test_limits_are_those_of_the_functions),
        cmocka_unit_test(test_maxima_and_comparisons_know_zeros_and_nans),
        cmocka_unit_test(test_powers_of_special_numbers_are_those_of_c),
        cmocka_unit_test(test_error_of_powers_is_below_its_bound),
        cmocka_unit_test(test_every_number_of_16_bits_widens_exactly_and_comes_back),
        cmocka_unit_test(test_numbers_round_to_the_nearest_of_16_bits),
        cmocka_unit_test(test_integers_are_cut_and_widened),
        cmocka_unit_test(test_bits_are_the_pinned_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
