/*
 * views_test.c - rows that nobody splits or joins have the bits of the rules: on the emulator, in
 * tapes that write and read neighbouring parts of rows, in memory that is reused at once; alone and
 * with all other variants; cut anywhere; in models.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

#define SHARED_HOPPER 232448

/* ---- tapes ------------------------------------------------------------------------------- */

struct views_case {
    uint64_t batch;
    uint64_t length;
    uint64_t heads;
    uint64_t d;
    struct precision cut;
    uint32_t blocks;
    bool queries_read; /* by others too */
    bool whole_read;
    bool causal; /* and a softmax lies between the products */
    bool spared; /* neither SPLIT nor CONCAT is run */
};

/* Scores of queries and keys and their product with values, as models write it. */
static uint32_t mix(struct builder *builder, const struct views_case *shape, const uint32_t qkv[3])
{
    const uint64_t t = shape->length;
    const uint64_t d = shape->d;
    const uint64_t wide = shape->heads * d;
    const uint64_t square = t * t;
    const uint64_t dims[2] = {shape->batch * t, wide};
    const uint64_t score_dims[4] = {shape->batch, shape->heads, t, t};
    const struct view rows = {{shape->batch, shape->heads, 1, t, 1, d},
                              {t * wide, d, 0, wide, 0, 1}};
    const struct view columns = {{shape->batch, shape->heads, 1, d, 1, t},
                                 {t * wide, d, 0, 1, 0, wide}};
    const struct view p_rows = {{shape->batch, shape->heads, 1, t, 1, t},
                                {shape->heads * square, square, 0, t, 0, 1}};
    const uint64_t score_strides[6] = {shape->heads * square, square, 0, t, 0, 1};
    const uint64_t out_strides[6] = {t * wide, d, 0, wide, 0, 1};
    uint32_t p = build_contract(builder, qkv[0], &rows, qkv[1], &rows, score_strides,
                                shape->causal ? t : 0, 4, score_dims);

    p = shape->causal ? build_softmax(builder, p, 0.5f, t, TENSOR_NONE)
                      : build_scale(builder, p, 0.5f);
    return build_contract(builder, p, &p_rows, qkv[2], &columns, out_strides, 0, 2, dims);
}

static struct tape *views_tape(const struct views_case *shape)
{
    const uint64_t wide = shape->heads * shape->d;
    const uint64_t dims[2] = {shape->batch * shape->length, wide};
    const uint64_t weight_dims[2] = {wide, 3 * wide};
    const uint64_t bias_dims[1] = {3 * wide};
    struct builder *builder = builder_new(shape->cut);
    uint32_t of[5];
    uint32_t gradients[5];
    uint32_t count = 0;
    uint32_t y = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, dims);
    char name[32];

    of[count++] = y;
    for (uint32_t block = 0; block < shape->blocks; block++) {
        uint32_t qkv[3];
        uint32_t whole;

        (void)snprintf(name, sizeof(name), "w%u", block);
        of[count++] = build_tensor(builder, name, DTYPE_F32, ROLE_INPUT, 2, weight_dims);
        (void)snprintf(name, sizeof(name), "b%u", block);
        of[count++] = build_tensor(builder, name, DTYPE_F32, ROLE_INPUT, 1, bias_dims);
        whole = build_add(builder, build_linear_transposed(builder, y, of[count - 2]),
                          of[count - 1], 1);
        build_split(builder, qkv, 3, whole);
        y = build_add(builder, y, mix(builder, shape, qkv), 1);
        if (shape->queries_read) {
            y = build_add(builder, y, qkv[0], 1);
        }
        if (shape->whole_read) {
            (void)snprintf(name, sizeof(name), "whole%u", block);
            build_output(builder, name, build_scale(builder, whole, 3.0f));
        }
    }
    build_output(builder, "y", y);
    build_loss(builder, build_mean(builder, build_mul(builder, y, y, 1)));
    build_gradients(builder, gradients, build_mean(builder, build_mul(builder, y, y, 1)), of,
                    count);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "gradient%u", i);
        build_output(builder, name, gradients[i]);
    }
    return fused_finish(builder);
}

/* Alone, beside all others, and beside those that launch attention as a whole. */
static const uint32_t barred_ways[] = {
    ~(1u << VARIANT_VIEWS | 1u << VARIANT_DOTS | 1u << VARIANT_PLAIN | 1u << VARIANT_MMA),
    0,
    1u << VARIANT_ATTENTION | 1u << VARIANT_STRIPS,
};

#define BARRED_WAYS (sizeof(barred_ways) / sizeof(barred_ways[0]))

/* Two steps, the second by what the first left in memory. */
static void hold(const struct views_case *shape, enum sort sort)
{
    struct tape *tape = views_tape(shape);
    struct machine *rules = fused_rules(tape);
    struct error error;

    error_init(&error);
    fused_give(rules, tape, sort);
    for (int step = 0; step < 2; step++) {
        start_must(rules->backend->step(rules, NULL, &error), &error);
    }
    for (size_t i = 0; i < BARRED_WAYS; i++) {
        const struct fake_device_switches large = {.shared_max = SHARED_HOPPER};
        struct machine *fused;
        char what[128];

        fake_device_set(&large);
        fused = fused_open(tape, barred_ways[i]);
        fused_give(fused, tape, sort);
        for (int step = 0; step < 2; step++) {
            start_must(fused->backend->step(fused, NULL, &error), &error);
        }
        (void)snprintf(what, sizeof(what), "%llu heads of %llu, sort %d, without %x",
                       (unsigned long long)shape->heads, (unsigned long long)shape->d, (int)sort,
                       barred_ways[i]);
        fused_compare(rules, fused, what);
        assert_true((fake_device_launches(KERNEL_RULE) == 0) == shape->spared);
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
    tape_free(tape);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* ---- tests ----------------------------------------------------------------------- */

static void test_parts_in_place_have_the_bits_of_the_rules(void **state)
{
    static const struct views_case cases[] = {
        {1, 20, 2, 4, {14, 128}, 2, .spared = true},
        {2, 37, 1, 12, {16, 0}, 1, .causal = true, .spared = true},
        {2, 9, 3, 8, {15, 128}, 2, .whole_read = true, .causal = true, .spared = true},
        {1, 150, 2, 68, {14, 128}, 1, .causal = true, .spared = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int sort = 0; sort < SORTS; sort++) {
            if (test_share(1, 0) != 0 || sort == (int)(i % SORTS) ||
                (i == 1 && sort == SORT_NASTY)) {
                hold(&cases[i], (enum sort)sort);
            }
        }
    }
}

/* Parts that others read, and parts that begin between multiples of 16 bytes. */
static void test_other_parts_are_split_and_put_together(void **state)
{
    static const struct views_case cases[] = {
        {1, 20, 2, 4, {14, 128}, 2, .queries_read = true},
        {1, 20, 3, 2, {14, 128}, 2, .causal = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hold(&cases[i], SORT_PLAIN);
    }
}

/* Between two parts of one whole, too. */
static void test_steps_may_be_cut_anywhere(void **state)
{
    static const struct views_case shape = {1, 10, 2, 4, {14, 128}, 2, .spared = true};
    struct tape *tape = views_tape(&shape);
    struct machine *rules = fused_rules(tape);
    struct error error;

    (void)state;
    error_init(&error);
    fused_give(rules, tape, SORT_PLAIN);
    start_must(rules->backend->step(rules, NULL, &error), &error);
    for (uint32_t cut = 1; cut < tape->op_count; cut += (uint32_t)test_share(1, 5)) {
        struct machine *fused = fused_open(tape, 0);
        char what[32];

        fused_give(fused, tape, SORT_PLAIN);
        start_must(fused->backend->run(fused, 0, cut, NULL, &error), &error);
        start_must(fused->backend->run(fused, cut, tape->op_count, NULL, &error), &error);
        (void)snprintf(what, sizeof(what), "cut at %u", cut);
        fused_compare(rules, fused, what);
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
    tape_free(tape);
}

/* A small GPT-2: with its rows in place there is less for the rules to do, and the same bits. */
static void test_a_model_has_the_bits_of_the_rules(void **state)
{
    const uint32_t without[] = {barred_ways[0] | 1u << VARIANT_VIEWS, barred_ways[0],
                                ~(1u << VARIANT_VIEWS | 1u << VARIANT_ENTROPY | 1u << VARIANT_DOTS |
                                  1u << VARIANT_PLAIN | 1u << VARIANT_MMA),
                                0};
    struct model_options options;
    struct small_model small;
    struct start start;
    struct machine *rules;
    uint64_t by_rules[4];

    (void)state;
    small_model_options(&options, MODEL_GPT2);
    options.precision = (struct precision){14, 128};
    small_model_open(&small, &options);
    start_model(&start, &small);
    rules = fused_rules(start.tape);
    start_steps(rules, &start, 2);
    for (int i = 0; i < 4; i++) {
        const struct fake_device_switches large = {.shared_max = SHARED_HOPPER};
        struct machine *fused;
        char what[32];

        fake_device_set(&large);
        fused = fused_open(start.tape, without[i]);
        start_steps(fused, &start, 2);
        (void)snprintf(what, sizeof(what), "without %x", without[i]);
        start_compare(rules, fused, what);
        by_rules[i] = fake_device_launches(KERNEL_RULE);
        assert_true((fake_device_launches(KERNEL_ENTROPY) > 0) == (i > 1));
        fused->backend->close(fused);
    }
    assert_true(by_rules[1] < by_rules[0] && by_rules[2] == by_rules[1] &&
                by_rules[3] <= by_rules[1]);
    rules->backend->close(rules);
    start_release(&start);
    small_model_close(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_in_place_have_the_bits_of_the_rules),
        cmocka_unit_test(test_other_parts_are_split_and_put_together),
        cmocka_unit_test(test_steps_may_be_cut_anywhere),
        cmocka_unit_test(test_a_model_has_the_bits_of_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
