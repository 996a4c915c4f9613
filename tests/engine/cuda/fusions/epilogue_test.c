/*
 * epilogue_test.c - element-wise operations behind a product have the bits of the rules, and are
 * what runs: on the emulator, behind every kernel that contracts, over tiles whole and ragged, and
 * numbers that are subnormal, infinite or NaN. What cannot be made there is left alone. Whole
 * models run with this variant alone and with all variants.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "engine/ops/real.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/traffic.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

/* ---- machines and values ---------------------------------------------------------- */

/* By kernels that contract, and of the others by this one and rows that are held; or by all. */
#define ALL_BUT(variants)                                                                          \
    (~(1u << VARIANT_EPILOGUE | 1u << VARIANT_HELD | 1u << VARIANT_PLAIN | (variants)))

static const struct {
    const char *name;
    int32_t capability;
    uint32_t disabled;
} devices[] = {
    {"mma", 80, ALL_BUT(1u << VARIANT_MMA)},
    {"half", 80, ALL_BUT(1u << VARIANT_HALF)},
    {"plainly", 80, ALL_BUT(0u)},
    {"wgmma", 90, ALL_BUT(1u << VARIANT_WGMMA)},
    {"all", 90, 0},
};

#define DEVICES (sizeof(devices) / sizeof(devices[0]))

static struct machine *open_fake(const struct tape *tape, int32_t capability, uint32_t disabled)
{
    const struct fake_device_switches switches = {.capability = capability};
    struct machine_options options = {.trace = false};
    struct cuda_config config = {.calls = fake_device_calls(), .disabled = disabled};
    struct machine *machine = NULL;
    struct error error;

    fake_device_set(&switches);
    error_init(&error);
    start_must(machine_cuda_open(&machine, tape, &options, &config, &error), &error);
    return machine;
}

static struct machine *open_rules(const struct tape *tape)
{
    struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 2};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    start_must(backend_cpu.open(&machine, tape, &options, &error), &error);
    return machine;
}

enum sort { SORT_PLAIN, SORT_SUBNORMAL, SORT_NASTY, SORT_ZEROS, SORTS };

static uint32_t draw(uint64_t *random, enum sort sort)
{
    static const uint32_t nasty[] = {0x7f800000, 0xff800000, FLOAT_NAN_BITS, 0xffc12345,
                                     0x7f7fffff, 0x00000001, 0x80000000,     0x807fffff};
    const uint64_t word = test_random(random);
    const float value = (float)((double)(int64_t)word * 0x1p-63);

    switch (sort) {
    case SORT_SUBNORMAL:
        return (uint32_t)word & UINT32_C(0x80ffffff); /* and the smallest that are normal */
    case SORT_NASTY:
        return word % 997 == 0 ? nasty[(word >> 32) % 8] : real_to_bits(value * 12.0f);
    case SORT_ZEROS:
        return word % 5 == 0 ? real_to_bits(value) : (uint32_t)word & UINT32_C(0x80000000);
    case SORT_PLAIN:
    case SORTS:
        break;
    }
    return real_to_bits(ldexpf(value, (int)(word % 23) - 14));
}

static void start_sorted(struct start *start, const struct tape *tape, enum sort sort)
{
    start_random(start, tape, 5);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        uint64_t random = 77 + id;
        uint32_t *words = start->values[id];

        for (uint64_t i = 0; words != NULL && i < tape->tensors[id].count; i++) {
            words[i] = draw(&random, sort);
        }
    }
}

/* ---- tapes ---------------------------------------------------------------------------- */

struct shape {
    uint64_t m;
    uint64_t n;
    uint64_t k;
    struct precision cut;
};

/* What a tape is built of. */
struct parts {
    struct builder *builder;
    uint32_t x;       /* (m, k) */
    uint32_t weight;  /* (n, k) */
    uint32_t row;     /* (n) */
    uint32_t column;  /* (m) */
    uint32_t side[3]; /* (m, n) */
};

static struct parts parts_of(const struct shape *shape)
{
    const uint64_t x[2] = {shape->m, shape->k};
    const uint64_t weight[2] = {shape->n, shape->k};
    const uint64_t side[2] = {shape->m, shape->n};
    const uint64_t four = 4;
    struct parts parts = {.builder = builder_new(shape->cut)};
    char name[16];

    parts.x = build_tensor(parts.builder, "x", DTYPE_F32, ROLE_INPUT, 2, x);
    parts.weight = build_tensor(parts.builder, "w", DTYPE_F32, ROLE_INPUT, 2, weight);
    parts.row = build_tensor(parts.builder, "row", DTYPE_F32, ROLE_INPUT, 1, &shape->n);
    parts.column = build_tensor(parts.builder, "column", DTYPE_F32, ROLE_INPUT, 1, &shape->m);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "side%d", i);
        parts.side[i] = build_tensor(parts.builder, name, DTYPE_F32, ROLE_INPUT, 2, side);
    }
    const uint32_t state = build_tensor(parts.builder, "s", DTYPE_F32, ROLE_STATE, 1, &four);

    build_after(parts.builder, state, build_scale(parts.builder, state, 0.5f));
    return parts;
}

static uint32_t product(const struct parts *parts)
{
    return build_linear(parts->builder, parts->x, parts->weight);
}

static void shown(const struct parts *parts, uint32_t tensor)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "o%u", tensor);
    build_output(parts->builder, name, tensor);
}

static struct tape *finish(const struct parts *parts)
{
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    start_must(builder_finish(&tape, parts->builder, &error), &error);
    builder_free(parts->builder);
    return tape;
}

/* Six products: all that can follow them does. */
static struct tape *followed_tape(const struct shape *shape)
{
    const struct parts parts = parts_of(shape);
    struct builder *builder = parts.builder;
    uint32_t made = build_add(builder, product(&parts), parts.row, 1);

    shown(&parts, build_add(builder, parts.side[0], made, 1));
    made = build_add(builder, product(&parts), parts.row, 1);
    shown(&parts, made);
    shown(&parts, build_map(builder, MAP_GELU, made));
    shown(&parts, build_binary(builder, BINARY_GELU_GRAD, parts.side[1], product(&parts)));
    made = product(&parts);
    shown(&parts, made);
    made = build_map(builder, MAP_SILU, made);
    shown(&parts, made);
    shown(&parts, build_mul(builder, made, parts.side[2], 1));
    /* Two that go on from one, and one of them on. */
    made = product(&parts);
    shown(&parts, build_mul(builder, made, parts.side[0], 1));
    made = build_mul(builder, made, parts.side[1], 1);
    shown(&parts, build_binary(builder, BINARY_SILU_GRAD, parts.side[2], made));
    made = build_map(builder, MAP_RELU, build_scale(builder, product(&parts), -0.75f));
    shown(&parts, build_binary(builder, BINARY_RELU_GRAD, parts.side[1], made));
    return finish(&parts);
}

/* What looks much like it and must not be taken, or not all of it. */
static struct tape *refused_tape(const struct shape *shape)
{
    const struct parts parts = parts_of(shape);
    struct builder *builder = parts.builder;
    uint32_t made = product(&parts);
    uint32_t other;

    /* Twice itself; and a factor that is made of it. */
    shown(&parts, build_add(builder, made, made, 1));
    made = product(&parts);
    other = build_softmax(builder, made, 1.0f, 0, TENSOR_NONE);
    shown(&parts, build_mul(builder, other, made, 1));
    /* The sum is read by another before it could be added on. */
    made = build_add(builder, product(&parts), parts.row, 1);
    other = build_softmax(builder, made, 1.0f, 0, TENSOR_NONE);
    shown(&parts, build_add(builder, made, parts.side[0], 1));
    shown(&parts, other);
    /* A column; the value of a gradient, not its factor. */
    made = product(&parts);
    shown(&parts, build_add(builder, made, parts.column, shape->n));
    shown(&parts, build_binary(builder, BINARY_GELU_GRAD, product(&parts), parts.side[1]));
    /* Two products added: one of them takes the other. More steps than there is room for. */
    made = product(&parts);
    shown(&parts, build_add(builder, made, product(&parts), 1));
    made = product(&parts);
    for (int i = 0; i < 6; i++) {
        made = build_add(builder, made, parts.side[i % 3], 1);
    }
    shown(&parts, made);
    return finish(&parts);
}

static void hold(const struct tape *tape, enum sort sort, size_t device, struct machine *rules,
                 const char *what)
{
    struct machine *fused = open_fake(tape, devices[device].capability, devices[device].disabled);
    struct start start;
    char text[128];

    start_sorted(&start, tape, sort);
    start_steps(rules, &start, 2);
    start_steps(fused, &start, 2);
    (void)snprintf(text, sizeof(text), "%s, numbers of sort %d, %s", what, (int)sort,
                   devices[device].name);
    start_compare(rules, fused, text);
    fused->backend->close(fused);
    start_release(&start);
}

static const struct shape shapes[] = {{133, 72, 260, {14, 128}},
                                      {9, 132, 130, {14, 128}},
                                      {39, 36, 260, {16, 0}},
                                      {33, 68, 70, {22, 0}},
                                      {5, 12, 40, {14, 16}}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void hold_shapes(struct tape *(*build)(const struct shape *shape), bool all_followed)
{
    for (size_t i = 0; i < SHAPES; i++) {
        struct tape *tape = build(&shapes[i]);
        struct machine *rules = open_rules(tape);
        char what[64];

        (void)snprintf(what, sizeof(what), "%llu x %llu x %llu", (unsigned long long)shapes[i].m,
                       (unsigned long long)shapes[i].n, (unsigned long long)shapes[i].k);
        for (size_t device = 0; device < DEVICES; device++) {
            for (int sort = 0; sort < SORTS; sort++) {
                /* One sort for each, and every second device. */
                if (test_share(1, 0) == 0 &&
                    (sort != (int)((i + device) % SORTS) || (i + device) % 2 != 0)) {
                    continue;
                }
                hold(tape, (enum sort)sort, device, rules, what);
                /* The state's scale is all that runs alone. */
                assert_int_equal(fake_device_launches(KERNEL_ELEMENTS), all_followed ? 0 : 2);
                assert_true((fake_device_launches(KERNEL_QUADS) == 2) == all_followed);
            }
        }
        rules->backend->close(rules);
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

static void test_what_follows_products_has_the_bits_of_the_rules(void **state)
{
    (void)state;
    hold_shapes(followed_tape, true);
}

static void test_what_cannot_follow_is_left_where_it_was(void **state)
{
    (void)state;
    hold_shapes(refused_tape, false);
}

/* Results in rows of no multiple of four are written as they were, and gone through after. */
static void test_ragged_rows_of_results_are_left(void **state)
{
    const struct shape shape = {21, 35, 130, {14, 128}};
    struct tape *tape = followed_tape(&shape);
    struct machine *rules = open_rules(tape);

    (void)state;
    for (size_t device = 0; device < DEVICES; device++) {
        hold(tape, SORT_NASTY, device, rules, "ragged");
        assert_true(fake_device_launches(KERNEL_ELEMENTS) > 0);
    }
    rules->backend->close(rules);
    tape_free(tape);
}

/* ---- gradients along rows ------------------------------------------------------------- */

/* As models have it: what a norm's gradient gives is added to that of what goes past the norm. */
static struct tape *block_tape(uint64_t columns)
{
    const struct shape shape = {7, 8, columns, {14, 128}};
    const struct parts parts = parts_of(&shape);
    struct builder *builder = parts.builder;
    const uint32_t gain = build_tensor(builder, "gain", DTYPE_F32, ROLE_INPUT, 1, &columns);
    const uint32_t of[3] = {parts.x, parts.weight, gain};
    const uint32_t x = build_scale(builder, parts.x, 2.0f);
    const uint32_t layer = build_layer_norm(builder, x, gain, gain, 1e-5f);
    const uint32_t past = build_mul(builder, x, x, 1);
    const uint32_t rms = build_rms_norm(builder, past, gain, 1e-5f);
    uint32_t loss = build_mean(builder, build_linear(builder, layer, parts.weight));
    uint32_t gradients[3];

    loss =
        build_add(builder, loss, build_mean(builder, build_linear(builder, rms, parts.weight)), 1);
    loss = build_add(builder, loss, build_mean(builder, past), 1);
    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, of, 3);
    for (int i = 0; i < 3; i++) {
        shown(&parts, gradients[i]);
    }
    return finish(&parts);
}

static uint64_t launches_of(struct tape *tape, uint32_t disabled, uint32_t kernel)
{
    struct machine *machine = open_fake(tape, 80, disabled);
    struct start start;
    uint64_t count;

    start_sorted(&start, tape, SORT_PLAIN);
    start_steps(machine, &start, 1);
    count = fake_device_launches(kernel);
    machine->backend->close(machine);
    start_release(&start);
    return count;
}

static void test_gradients_along_rows_are_added_where_they_are_made(void **state)
{
    static const uint64_t widths[] = {36, 300, 1028};
    const uint32_t without = ALL_BUT(1u << VARIANT_MMA) | 1u << VARIANT_HELD;

    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        struct tape *tape = block_tape(widths[i]);
        struct machine *rules = open_rules(tape);

        for (int sort = 0; sort < SORTS; sort++) {
            if (test_share(1, 0) != 0 || sort == (int)i + 1) {
                hold(tape, (enum sort)sort, sort % 2 == 0 ? DEVICES - 1 : 0, rules, "a block");
            }
        }
        /* Two sums less, where a warp holds the rows. */
        assert_int_equal(launches_of(tape, without, KERNEL_QUADS) -
                             launches_of(tape, devices[0].disabled, KERNEL_QUADS),
                         widths[i] <= HELD_MAX ? 2 : 0);
        rules->backend->close(rules);
        tape_free(tape);
    }
}

/* ---- models ------------------------------------------------------------------------------- */

static void test_models_have_the_bits_of_the_rules(void **state)
{
    static const enum model_kind kinds[] = {MODEL_GPT2, MODEL_LLAMA};

    (void)state;
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        struct model_options options;
        struct small_model small;
        struct start start;
        struct machine *rules;

        small_model_options(&options, kinds[kind]);
        small_model_open(&small, &options);
        start_model(&start, &small);
        rules = open_rules(start.tape);
        start_steps(rules, &start, 2);
        for (size_t device = 0; device < DEVICES; device++) {
            if (device == 2 * kind || test_share(1, 0) != 0) {
                struct machine *fused =
                    open_fake(start.tape, devices[device].capability, devices[device].disabled);

                start_steps(fused, &start, 2);
                start_compare(rules, fused, devices[device].name);
                fused->backend->close(fused);
            }
        }
        rules->backend->close(rules);
        start_release(&start);
        small_model_close(&small);
    }
}

/* ---- parts of a step, and the account ------------------------------------------------- */

static void test_parts_may_end_anywhere(void **state)
{
    const struct shape shape = {9, 12, 40, {14, 128}};
    struct tape *tape = followed_tape(&shape);
    struct machine *rules = open_rules(tape);
    struct start start;
    struct error error;

    (void)state;
    error_init(&error);
    start_sorted(&start, tape, SORT_PLAIN);
    start_steps(rules, &start, 1);
    for (uint32_t cut = 1; cut < tape->op_count; cut++) {
        struct machine *fused = open_fake(tape, 80, 0);
        char what[32];

        start_must(start_give(fused, &start, &error), &error);
        start_must(fused->backend->run(fused, 0, cut, NULL, &error), &error);
        start_must(fused->backend->run(fused, cut, tape->op_count, NULL, &error), &error);
        (void)snprintf(what, sizeof(what), "cut at %u", cut);
        start_compare(rules, fused, what);
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
    start_release(&start);
    tape_free(tape);
}

static struct traffic all_traffic(const struct tape *tape, uint32_t disabled)
{
    struct machine *machine = open_fake(tape, 80, disabled);
    struct traffic *counts = calloc(tape->op_count, sizeof(*counts));
    struct traffic all = {.launches = 0};

    assert_non_null(counts);
    traffic_count(counts, machine);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        all.launches += counts[at].launches;
        all.read += counts[at].read;
        all.written += counts[at].written;
    }
    free(counts);
    machine->backend->close(machine);
    return all;
}

/*
 * Behind six products of one size are 13 operations that read 20 such tensors, and two rows; with
 * the products, 19 are written. What is read still is 7 of them and the rows; ten are wanted.
 */
static void test_the_account_counts_what_is_spared(void **state)
{
    const struct shape shape = {64, 128, 128, {14, 128}};
    const uint64_t size = 4 * shape.m * shape.n;
    struct tape *tape = followed_tape(&shape);
    const struct traffic with = all_traffic(tape, 0);
    const struct traffic without = all_traffic(tape, 1u << VARIANT_EPILOGUE);

    (void)state;
    assert_int_equal(without.launches - with.launches, 13);
    assert_int_equal(without.read - with.read, 13 * size);
    assert_int_equal(without.written - with.written, 9 * size);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_follows_products_has_the_bits_of_the_rules),
        cmocka_unit_test(test_what_cannot_follow_is_left_where_it_was),
        cmocka_unit_test(test_ragged_rows_of_results_are_left),
        cmocka_unit_test(test_gradients_along_rows_are_added_where_they_are_made),
        cmocka_unit_test(test_models_have_the_bits_of_the_rules),
        cmocka_unit_test(test_parts_may_end_anywhere),
        cmocka_unit_test(test_the_account_counts_what_is_spared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
