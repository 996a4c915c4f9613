/*
 * update_test.c - the optimizers' kernels give their rules' bits, and the rules are SGD with
 * momentum and AdamW.
 *
 * Method: kernels against the looped rules on ordinary and special numbers, apart and in place
 * (float_case.h); rules over several steps against the same recurrences in double precision;
 * clipping at its edges; pinned bits.
 */
#include <math.h>
#include <string.h>

#include "engine/ops/kernel.h"
#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

#define MOMENTUM 0.9f
#define DECAY    0.01f
#define BETA1    0.9f
#define BETA2    0.99f
#define EPSILON  1e-8f

static void sgd_init(struct float_case *one, uint64_t *seed, enum float_fill fill, uint64_t count)
{
    float_case_init(one, OP_SGD, 2, (int64_t[]){float_attribute(MOMENTUM), float_attribute(DECAY)});
    for (int i = 0; i < 3; i++) {
        float_case_fill(seed, float_case_input(one, count), count, fill);
    }
    float_case_input(one, 1)[0] = 0.05f;
    float_case_input(one, 1)[0] = 0.5f;
    float_case_output(one, count);
    float_case_output(one, count);
}

static void adamw_init(struct float_case *one, uint64_t *seed, enum float_fill fill, uint64_t count)
{
    float_case_init(one, OP_ADAMW, 6,
                    (int64_t[]){float_attribute(BETA1), float_attribute(1.0f - BETA1),
                                float_attribute(BETA2), float_attribute(1.0f - BETA2),
                                float_attribute(EPSILON), float_attribute(DECAY)});
    for (int i = 0; i < 4; i++) {
        float *input = float_case_input(one, count);
        float_case_fill(seed, input, count, i == 3 && fill == FLOAT_PLAIN ? FLOAT_POSITIVE : fill);
    }
    float_case_input(one, 1)[0] = 0.001f;
    float_case_input(one, 1)[0] = 1.0f / (1.0f - BETA1);
    float_case_input(one, 1)[0] = 1.0f / (1.0f - BETA2);
    float_case_input(one, 1)[0] = 0.5f;
    for (int i = 0; i < 3; i++) {
        float_case_output(one, count);
    }
}

static void test_kernels_give_the_rules_bits(void **state)
{
    static const uint64_t lengths[] = {1023, 1030, 2049, 20011};
    uint64_t seed = 71;

    (void)state;
    for (uint64_t i = 1; i <= 74; i++) {
        uint64_t count = i <= 70 ? i : lengths[i - 71];
        enum float_fill fill = i % 2 == 0 ? FLOAT_PLAIN : FLOAT_NASTY;
        struct float_case one;

        sgd_init(&one, &seed, fill, count);
        float_case_check(&one);
        float_case_release(&one);
        adamw_init(&one, &seed, fill, count);
        float_case_check(&one);
        float_case_release(&one);
    }
}

static void test_kernels_give_the_rules_bits_for_troubled_scalars(void **state)
{
    static const float values[] = {0.0f, -0.0f, INFINITY, NAN, -1.0f, 0x1p-149f, 3e38f};
    uint64_t seed = 73;

    (void)state;
    for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
        struct float_case one;

        for (int input = 3; input < 5; input++) {
            sgd_init(&one, &seed, FLOAT_FINITE, 37);
            ((float *)one.inputs[input])[0] = values[v];
            float_case_check(&one);
            float_case_release(&one);
        }
        for (int input = 4; input < 8; input++) {
            adamw_init(&one, &seed, FLOAT_FINITE, 37);
            ((float *)one.inputs[input])[0] = values[v];
            float_case_check(&one);
            float_case_release(&one);
        }
    }
}

/* The state of one parameter, in double. */
struct exact {
    double p, m, v;
};

static double gradient_at(double p, int i)
{
    return 0.7 * p + sin(i); /* of a bowl whose bottom differs by parameter */
}

static void check_near(double got, double exact, double bound)
{
    if (!(fabs(got - exact) <= bound * (1.0 + fabs(exact)))) {
        fail_msg("got %.9g, in double precision it is %.9g", got, exact);
    }
}

static void test_adamw_follows_double_precision_over_steps(void **state)
{
    enum { COUNT = 20 };
    struct float_case one;
    struct exact exact[COUNT];
    uint64_t seed = 79;

    (void)state;
    adamw_init(&one, &seed, FLOAT_PLAIN, COUNT);
    for (int i = 0; i < COUNT; i++) {
        exact[i] = (struct exact){.p = ((float *)one.inputs[0])[i]};
        ((float *)one.inputs[2])[i] = 0.0f;
        ((float *)one.inputs[3])[i] = 0.0f;
    }
    for (int step = 1; step <= 30; step++) {
        double correct1 = 1.0 / (1.0 - pow((double)BETA1, step));
        double correct2 = 1.0 / (1.0 - pow((double)BETA2, step));

        ((float *)one.inputs[5])[0] = (float)correct1;
        ((float *)one.inputs[6])[0] = (float)correct2;
        for (int i = 0; i < COUNT; i++) {
            double g = gradient_at(exact[i].p, i);
            ((float *)one.inputs[1])[i] = (float)(2.0 * g); /* the scale of 0.5 takes it back */
            exact[i].m = (double)BETA1 * exact[i].m + (1.0 - (double)BETA1) * g;
            exact[i].v = (double)BETA2 * exact[i].v + (1.0 - (double)BETA2) * g * g;
            double update = exact[i].m * correct1 / (sqrt(exact[i].v * correct2) + 1e-8);
            exact[i].p -= (double)0.001f * (update + (double)DECAY * exact[i].p);
        }
        float_case_rules(&one);
        for (int i = 0; i < COUNT; i++) {
            check_near(one.expected[0][i], exact[i].p, 1e-5);
            check_near(one.expected[1][i], exact[i].m, 1e-5);
            check_near(one.expected[2][i], exact[i].v, 1e-5);
        }
        memcpy(one.inputs[0], one.expected[0], COUNT * sizeof(float));
        memcpy(one.inputs[2], one.expected[1], COUNT * sizeof(float));
        memcpy(one.inputs[3], one.expected[2], COUNT * sizeof(float));
    }
    float_case_release(&one);
}

static void test_sgd_follows_double_precision_over_steps(void **state)
{
    enum { COUNT = 20 };
    struct float_case one;
    struct exact exact[COUNT];
    uint64_t seed = 83;

    (void)state;
    sgd_init(&one, &seed, FLOAT_PLAIN, COUNT);
    for (int i = 0; i < COUNT; i++) {
        exact[i] = (struct exact){.p = ((float *)one.inputs[0])[i]};
        ((float *)one.inputs[2])[i] = 0.0f;
    }
    for (int step = 1; step <= 30; step++) {
        for (int i = 0; i < COUNT; i++) {
            double g = gradient_at(exact[i].p, i);
            ((float *)one.inputs[1])[i] = (float)(2.0 * g);
            exact[i].v = (double)MOMENTUM * exact[i].v + g + (double)DECAY * exact[i].p;
            exact[i].p -= (double)0.05f * exact[i].v;
        }
        float_case_rules(&one);
        for (int i = 0; i < COUNT; i++) {
            check_near(one.expected[0][i], exact[i].p, 1e-5);
            check_near(one.expected[1][i], exact[i].v, 1e-5);
        }
        memcpy(one.inputs[0], one.expected[0], COUNT * sizeof(float));
        memcpy(one.inputs[2], one.expected[1], COUNT * sizeof(float));
    }
    float_case_release(&one);
}

static uint32_t clip_bits(float square, float limit)
{
    struct float_case one;
    uint32_t bits;

    float_case_init(&one, OP_CLIP_FACTOR, 1, (int64_t[]){float_attribute(limit)});
    float_case_input(&one, 1)[0] = square;
    float_case_output(&one, 1);
    float_case_rules(&one);
    bits = float_bits(one.expected[0][0]);
    float_case_release(&one);
    return bits;
}

static void test_clip_factor_holds_at_its_edges(void **state)
{
    (void)state;
    assert_int_equal(clip_bits(4.0f, 1.0f), float_bits(0.5f));
    assert_int_equal(clip_bits(1.0f, 1.0f), float_bits(1.0f));
    assert_int_equal(clip_bits(0.25f, 1.0f), float_bits(1.0f));
    assert_int_equal(clip_bits(0.0f, 1.0f), float_bits(1.0f));
    assert_int_equal(clip_bits(3.0f, 1.0f), float_bits(1.0f / sqrtf(3.0f)));
    assert_int_equal(clip_bits(INFINITY, 1.0f), 0);
    assert_int_equal(clip_bits(NAN, 1.0f), FLOAT_NAN_BITS);
    assert_int_equal(clip_bits(-1.0f, 1.0f), FLOAT_NAN_BITS);
}

static void test_bits_are_the_pinned_ones(void **state)
{
    static const uint32_t sgd[2][3] = {{0x40247af5, 0x3fd40598, 0x403ef014},
                                       {0xbf4b558e, 0x3f8580e5, 0x401747a1}};
    static const uint32_t adamw[3][3] = {{0xc04176f2, 0x404fe90a, 0xc01c28d6},
                                         {0xbeb6162d, 0x3fbb9eb1, 0x3e88ab22},
                                         {0x3fd7a1f1, 0x3f1c24f2, 0x3ff7ca06}};
    struct float_case one;
    uint64_t seed = 89;

    (void)state;
    sgd_init(&one, &seed, FLOAT_PLAIN, 3);
    float_case_rules(&one);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(float_bits(one.expected[i / 3][i % 3]), sgd[i / 3][i % 3]);
    }
    float_case_release(&one);
    adamw_init(&one, &seed, FLOAT_PLAIN, 3);
    float_case_rules(&one);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(float_bits(one.expected[i / 3][i % 3]), adamw[i / 3][i % 3]);
    }
    float_case_release(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_give_the_rules_bits),
        cmocka_unit_test(test_kernels_give_the_rules_bits_for_troubled_scalars),
        cmocka_unit_test(test_adamw_follows_double_precision_over_steps),
        cmocka_unit_test(test_sgd_follows_double_precision_over_steps),
        cmocka_unit_test(test_clip_factor_holds_at_its_edges),
        cmocka_unit_test(test_bits_are_the_pinned_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
