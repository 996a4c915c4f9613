/*
 * elementwise_test.c - every elementwise kernel gives its rule's bits, and the rules compute their
 * functions.
 *
 * Method: kernels against the looped rules on ordinary and special numbers, for every length up to
 * 70 and some around the edges of vectors and threads, in every broadcast form, in place and apart
 * (float_case.h); rules against the C library in double precision, at their edges, and against
 * pinned vectors.
 */
#include <math.h>
#include <string.h>

#include "engine/ops/kernel.h"
#include "engine/ops/view.h"
#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

/* Work is shared by two threads from 2 * 8192 elements on. */
static const uint64_t lengths[] = {1023, 1024, 1030, 2049, 20011};

#define LENGTHS    (sizeof(lengths) / sizeof(lengths[0]))
#define LENGTH_RUN 70 /* all lengths from 1 to here */

static uint64_t length_at(uint64_t i)
{
    return i < LENGTH_RUN ? i + 1 : lengths[i - LENGTH_RUN];
}

/* ---- kernels against rules ------------------------------------------------------ */

static void check_map(enum map_function function, uint64_t count, float constant,
                      enum float_fill fill)
{
    struct float_case one;
    uint64_t seed = count + (uint64_t)function;

    float_case_init(&one, OP_MAP, MAP_ATTRIBUTES,
                    (int64_t[]){function, function == MAP_SCALE ? float_attribute(constant) : 0});
    float_case_fill(&seed, float_case_input(&one, count), count, fill);
    float_case_output(&one, count);
    float_case_check(&one);
    float_case_release(&one);
}

static void check_binary(enum binary_function function, uint64_t count, uint64_t div, uint64_t mod,
                         enum float_fill fill)
{
    struct float_case one;
    uint64_t seed = count + mod;

    float_case_init(&one, OP_BINARY, 0, NULL);
    binary_set(&one.op, function, count, div, mod);
    float_case_fill(&seed, float_case_input(&one, count), count, fill);
    float_case_fill(&seed, float_case_input(&one, mod), mod, fill);
    float_case_output(&one, count);
    float_case_check(&one);
    float_case_release(&one);
}

static void test_kernels_of_equal_shapes_give_the_rules_bits(void **state)
{
    static const enum map_function maps[] = {MAP_SCALE, MAP_RELU, MAP_GELU, MAP_SILU};
    static const enum binary_function pairs[] = {BINARY_RELU_GRAD, BINARY_GELU_GRAD,
                                                 BINARY_SILU_GRAD, BINARY_SQUARED_ERROR,
                                                 BINARY_SQUARED_ERROR_SLOPE};

    (void)state;
    for (uint64_t i = 0; i < LENGTH_RUN + LENGTHS; i++) {
        const enum float_fill fill = i % 3 == 0 ? FLOAT_PLAIN : FLOAT_NASTY;
        const uint64_t count = length_at(i);

        for (size_t k = 0; k < sizeof(maps) / sizeof(maps[0]); k++) {
            check_map(maps[k], count, i % 5 == 0 ? INFINITY : 0.3f, fill);
        }
        for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
            check_binary(pairs[k], count, 1, count, fill);
        }
    }
}

static void check_expand(uint64_t count, int64_t div, int64_t mod)
{
    struct float_case one;
    uint64_t seed = count + (uint64_t)mod;

    float_case_init(&one, OP_EXPAND, 2, (int64_t[]){div, mod});
    float_case_fill(&seed, float_case_input(&one, (uint64_t)mod), (uint64_t)mod, FLOAT_NASTY);
    float_case_output(&one, count);
    float_case_check(&one);
    float_case_release(&one);
}

static void test_broadcast_kernels_give_the_rules_bits(void **state)
{
    /* count, div, mod: equal shapes, one number, a bias, a factor per row, both, and a wrap. */
    static const int64_t forms[][3] = {
        {1, 1, 1},           {20011, 1, 20011}, {20011, 1, 1},    {24000, 1, 768}, {24000, 1, 3},
        {24000, 768, 24000}, {24000, 7, 24000}, {24000, 100, 60}, {24000, 40, 5},  {70, 1, 7},
        {70, 35, 2},         {71, 71, 1},       {66, 66, 3},      {90, 5, 3},      {17, 1, 40},
        {24000, 768, 25},    {24000, 1, 750},   {24000, 8, 60},
    };

    (void)state;
    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
        const int64_t *form = forms[f];

        check_expand((uint64_t)form[0], form[1], form[2]);
        if (form[0] % (form[1] * form[2]) == 0) {
            check_binary(BINARY_ADD, (uint64_t)form[0], (uint64_t)form[1], (uint64_t)form[2],
                         FLOAT_NASTY);
            check_binary(BINARY_MUL, (uint64_t)form[0], (uint64_t)form[1], (uint64_t)form[2],
                         FLOAT_NASTY);
        }
    }
    for (int64_t count = 1; count <= LENGTH_RUN; count++) {
        check_expand((uint64_t)count, 1, count);
        check_binary(BINARY_ADD, (uint64_t)count, 1, (uint64_t)count, FLOAT_NASTY);
        check_binary(BINARY_MUL, (uint64_t)count, 1, (uint64_t)count, FLOAT_NASTY);
    }
}

static void test_fill_kernel_copies_the_bits(void **state)
{
    static const uint32_t values[] = {0x3f800000, 0x80000000, 0x00000001, FLOAT_NAN_BITS};

    (void)state;
    for (uint64_t i = 0; i < LENGTH_RUN + LENGTHS; i++) {
        struct float_case one;

        float_case_init(&one, OP_FILL, 1, (int64_t[]){values[i % 4]});
        float_case_output(&one, length_at(i));
        float_case_check(&one);
        assert_int_equal(float_bits(one.actual[0][0]), values[i % 4]);
        float_case_release(&one);
    }
}

static void rotary_init(struct float_case *one, uint64_t seed, enum float_fill fill, int64_t length,
                        int64_t heads, int64_t width, int64_t inverse, int64_t halves)
{
    uint64_t count = (uint64_t)(3 * length * heads * width);

    float_case_init(one, OP_ROTARY, 5, (int64_t[]){length, heads, width, inverse, halves});
    float_case_fill(&seed, float_case_input(one, count), count, fill);
    float_case_fill(&seed, float_case_input(one, (uint64_t)(length * width)),
                    (uint64_t)(length * width), fill);
    float_case_output(one, count);
}

static void test_rotary_kernel_gives_the_rules_bits(void **state)
{
    (void)state;
    for (int64_t width = 2; width <= LENGTH_RUN; width += 2) {
        struct float_case one;

        for (int64_t halves = 0; halves < 2; halves++) {
            rotary_init(&one, (uint64_t)width, width % 4 == 0 ? FLOAT_PLAIN : FLOAT_NASTY, 5, 3,
                        width, width % 3 == 0, halves);
            float_case_check(&one);
            float_case_release(&one);
        }
    }
    for (int64_t form = 0; form < 4; form++) {
        struct float_case one;

        /* Two threads: heads are the items that are cut. */
        rotary_init(&one, 17, FLOAT_NASTY, 2048, 4, 2, form % 2, form / 2);
        float_case_check(&one);
        float_case_release(&one);
    }
}

/* ---- what the rules compute -------------------------------------------------------- */

/* One rule on one element of each input. */
static float rule_of(struct float_case *one)
{
    float y;

    float_case_output(one, 1);
    float_case_rules(one);
    y = one->expected[0][0];
    float_case_release(one);
    return y;
}

static float map_of(enum map_function function, float x)
{
    struct float_case one;

    float_case_init(&one, OP_MAP, MAP_ATTRIBUTES, (int64_t[]){function, 0});
    float_case_input(&one, 1)[0] = x;
    return rule_of(&one);
}

static float pair_of(enum binary_function function, float a, float b)
{
    struct float_case one;

    float_case_init(&one, OP_BINARY, 0, NULL);
    binary_set(&one.op, function, 1, 1, 1);
    float_case_input(&one, 1)[0] = a;
    float_case_input(&one, 1)[0] = b;
    return rule_of(&one);
}

static uint32_t map_bits(enum map_function function, float x)
{
    return float_bits(map_of(function, x));
}

static uint32_t pair_bits(enum binary_function function, float a, float b)
{
    return float_bits(pair_of(function, a, b));
}

static double exact_gelu(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double exact_gelu_slope(double x)
{
    double c = sqrt(2.0 / M_PI);
    double t = tanh(c * (x + 0.044715 * x * x * x));

    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * 0.044715 * x * x);
}

static double exact_silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double exact_silu_slope(double x)
{
    double s = 1.0 / (1.0 + exp(-x));

    return s * (1.0 + x * (1.0 - s));
}

static void check_close(const char *name, double x, double got, double exact)
{
    /* In units of the larger of the result and 1; the tails are tested by the limits below. */
    double bound = 6.0 * 0x1p-24 * fmax(1.0, fabs(exact));

    if (!(fabs(got - exact) <= bound)) {
        fail_msg("%s(%a) = %a, off by %g", name, x, got, got - exact);
    }
}

static void test_activations_are_close_to_double_precision(void **state)
{
    (void)state;
    for (int i = -40000; i <= 40000; i += 7) {
        float x = (float)i * 0x1p-11f;

        check_close("gelu", x, map_of(MAP_GELU, x), exact_gelu(x));
        check_close("gelu'", x, pair_of(BINARY_GELU_GRAD, x, 1.0f), exact_gelu_slope(x));
        check_close("silu", x, map_of(MAP_SILU, x), exact_silu(x));
        check_close("silu'", x, pair_of(BINARY_SILU_GRAD, x, 1.0f), exact_silu_slope(x));
    }
}

static void test_activations_are_total(void **state)
{
    static const float large[] = {11.0f, 12.0f, 89.0f, 104.0f, 1e4f, 1e13f, 1e20f, 3.4e38f};

    (void)state;
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        float x = large[i];

        assert_int_equal(map_bits(MAP_GELU, x), float_bits(x));
        assert_true(fabsf(map_of(MAP_GELU, -x)) <= 0x1p-100f);
        assert_int_equal(pair_bits(BINARY_GELU_GRAD, x, 1.0f), 0x3f800000);
        assert_true(fabsf(pair_of(BINARY_GELU_GRAD, -x, 1.0f)) <= 0x1p-100f);
        assert_true(map_of(MAP_SILU, x) >= x * 0.999f);
        assert_true(fabsf(map_of(MAP_SILU, -x)) <= 0.001f);
        assert_true(fabsf(pair_of(BINARY_SILU_GRAD, x, 1.0f) - 1.0f) <= 0.001f);
        assert_true(fabsf(pair_of(BINARY_SILU_GRAD, -x, 1.0f)) <= 0.001f);
    }
    assert_int_equal(map_bits(MAP_GELU, 0.0f), 0);
    assert_int_equal(map_bits(MAP_GELU, -0.0f), 0x80000000);
    assert_int_equal(map_bits(MAP_GELU, INFINITY), 0x7f800000);
    assert_int_equal(map_bits(MAP_GELU, -INFINITY), FLOAT_NAN_BITS);
    assert_int_equal(pair_bits(BINARY_GELU_GRAD, INFINITY, 1.0f), 0x3f800000);
    assert_int_equal(map_bits(MAP_SILU, -0.0f), 0x80000000);
    assert_int_equal(map_bits(MAP_SILU, INFINITY), 0x7f800000);
    assert_int_equal(map_bits(MAP_SILU, -INFINITY), FLOAT_NAN_BITS);
    assert_int_equal(pair_bits(BINARY_SILU_GRAD, INFINITY, 1.0f), 0x3f800000);
    assert_true(fabsf(pair_of(BINARY_SILU_GRAD, -INFINITY, 1.0f)) <= 0x1p-100f);
    assert_true(fabsf(pair_of(BINARY_GELU_GRAD, -INFINITY, 1.0f)) <= 0x1p-100f);
    assert_int_equal(map_bits(MAP_GELU, NAN), FLOAT_NAN_BITS);
}

static void test_relu_keeps_nan_and_loses_minus_zero(void **state)
{
    float nan = float_of(FLOAT_NAN_BITS);

    (void)state;
    assert_int_equal(map_bits(MAP_RELU, -0.0f), 0);
    assert_int_equal(map_bits(MAP_RELU, -1.0f), 0);
    assert_int_equal(map_bits(MAP_RELU, 0x1p-149f), 1);
    assert_int_equal(map_bits(MAP_RELU, nan), FLOAT_NAN_BITS);
    assert_int_equal(pair_bits(BINARY_RELU_GRAD, 0.0f, 5.0f), 0);
    assert_int_equal(pair_bits(BINARY_RELU_GRAD, 0x1p-149f, -0.0f), 0x80000000);
    assert_int_equal(pair_bits(BINARY_RELU_GRAD, -1.0f, nan), 0);
    assert_int_equal(pair_bits(BINARY_RELU_GRAD, nan, 5.0f), FLOAT_NAN_BITS);
}

static void test_invalid_sums_give_the_one_stored_nan(void **state)
{
    struct float_case one;

    (void)state;
    float_case_init(&one, OP_BINARY, 0, NULL);
    binary_set(&one.op, BINARY_ADD, 1, 1, 1);
    float_case_input(&one, 1)[0] = INFINITY;
    float_case_input(&one, 1)[0] = -INFINITY;
    float_case_output(&one, 1);
    float_case_check(&one);
    assert_int_equal(float_bits(one.expected[0][0]), FLOAT_NAN_BITS);
    float_case_release(&one);
}

static void check_turns(int64_t halves)
{
    enum { LENGTH = 6, HEADS = 2, WIDTH = 8, HALF = WIDTH / 2, COUNT = 3 * LENGTH * HEADS * WIDTH };
    struct float_case there;
    struct float_case back;
    const int apart = halves != 0 ? HALF : 1;

    rotary_init(&there, 23, FLOAT_PLAIN, LENGTH, HEADS, WIDTH, 0, halves);
    rotary_init(&back, 23, FLOAT_PLAIN, LENGTH, HEADS, WIDTH, 1, halves);
    for (int i = 0; i < LENGTH * WIDTH / 2; i++) {
        for (int k = 0; k < 2; k++) {
            float angle = k == 0 ? cosf((float)i) : sinf((float)i);
            ((float *)there.inputs[1])[2 * i + k] = angle;
            ((float *)back.inputs[1])[2 * i + k] = angle;
        }
    }
    float_case_rules(&there);
    for (int at = 0; at < COUNT / 2; at++) {
        int head = at / HALF;
        int pair = at % HALF;
        int i = head * WIDTH + (halves != 0 ? pair : 2 * pair);
        const float *x = (const float *)there.inputs[0] + i;
        const float *y = there.expected[0] + i;
        double angle = head / HEADS % LENGTH * HALF + pair;

        assert_true(fabs(y[0] - (x[0] * cos(angle) - x[apart] * sin(angle))) < 4e-6);
        assert_true(fabs(y[apart] - (x[0] * sin(angle) + x[apart] * cos(angle))) < 4e-6);
    }
    memcpy(back.inputs[0], there.expected[0], COUNT * sizeof(float));
    float_case_rules(&back);
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(back.expected[0][i] - ((const float *)there.inputs[0])[i]) < 4e-6f);
    }
    float_case_release(&there);
    float_case_release(&back);
}

static void test_rotary_turns_by_the_tables_angle_and_back(void **state)
{
    (void)state;
    check_turns(0);
    check_turns(1);
}

struct pinned {
    uint32_t function;
    uint32_t input_count;
    uint32_t x;
    uint32_t y; /* with dy = 1 */
};

static void test_activation_bits_are_the_pinned_ones(void **state)
{
    static const struct pinned vectors[] = {
        {MAP_GELU, 1, 0x3f800000, 0x3f57585c},
        {MAP_GELU, 1, 0xbf800000, 0xbe229e90},
        {MAP_GELU, 1, 0xc0a00000, 0xb4761470},
        {MAP_GELU, 1, 0x33800000, 0x33000001},
        {MAP_GELU, 1, 0x00000003, 0x00000002},
        {MAP_GELU, 1, 0x40490fdb, 0x4048ea6e},
        {BINARY_GELU_GRAD, 2, 0x3f800000, 0x3f8a9e91},
        {BINARY_GELU_GRAD, 2, 0xbf800000, 0xbda9e914},
        {BINARY_GELU_GRAD, 2, 0xc0a00000, 0xb5cf8c9e},
        {BINARY_GELU_GRAD, 2, 0x00000000, 0x3f000000},
        {MAP_SILU, 1, 0x3f800000, 0x3f3b26a8},
        {MAP_SILU, 1, 0xbf800000, 0xbe89b2b1},
        {MAP_SILU, 1, 0xc1200000, 0xb9ee03fc},
        {MAP_SILU, 1, 0x40490fdb, 0x4040bbb1},
        {BINARY_SILU_GRAD, 2, 0x3f800000, 0x3f6d7bd1},
        {BINARY_SILU_GRAD, 2, 0xbf800000, 0x3d94217b},
        {BINARY_SILU_GRAD, 2, 0xc1200000, 0xb9d63407},
        {BINARY_SILU_GRAD, 2, 0x40490fdb, 0x3f8aaa4d},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const float x = float_of(vectors[i].x);
        const uint32_t y = vectors[i].input_count == 1
                               ? map_bits((enum map_function)vectors[i].function, x)
                               : pair_bits((enum binary_function)vectors[i].function, x, 1.0f);

        if (y != vectors[i].y) {
            fail_msg("vector %zu: f(%08x) = %08x, pinned as %08x", i, vectors[i].x, y,
                     vectors[i].y);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_of_equal_shapes_give_the_rules_bits),
        cmocka_unit_test(test_broadcast_kernels_give_the_rules_bits),
        cmocka_unit_test(test_fill_kernel_copies_the_bits),
        cmocka_unit_test(test_rotary_kernel_gives_the_rules_bits),
        cmocka_unit_test(test_activations_are_close_to_double_precision),
        cmocka_unit_test(test_activations_are_total),
        cmocka_unit_test(test_relu_keeps_nan_and_loses_minus_zero),
        cmocka_unit_test(test_invalid_sums_give_the_one_stored_nan),
        cmocka_unit_test(test_rotary_turns_by_the_tables_angle_and_back),
        cmocka_unit_test(test_activation_bits_are_the_pinned_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
