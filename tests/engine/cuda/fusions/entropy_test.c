/*
 * entropy_test.c - cross-entropy, its gradient and the gradient's quantization in one launch
 * (entropy_body.h) have the bits of the rules, and are what runs wherever they may be one: on the
 * emulator, over rows of ragged lengths that begin anywhere between multiples of 16 bytes, numbers
 * that are subnormal, infinite or NaN, and targets that do not exist.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "engine/ops/real.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/traffic.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

#define SHARED_HOPPER 232448 /* bytes that a block of threads may have */
/* With the sums without tiles, for the emulator's sake. */
#define ALONE                                                                                      \
    (~(1u << VARIANT_ENTROPY | 1u << VARIANT_DOTS | 1u << VARIANT_PLAIN | 1u << VARIANT_MMA))

/* ---- tapes ------------------------------------------------------------------------------- */

struct entropy_case {
    uint64_t rows;
    uint64_t columns;
    struct precision cut;
    bool logits_read;  /* by others, behind */
    bool losses_read;  /* in between */
    bool slope_waits;  /* the gradient of the losses depends on the losses */
    bool whole_launch; /* three operations are one */
};

/* The targets are the tensor of this name. */
#define TARGETS "target"

/* Logits are a product where rows are short, else what is given, halved. */
static struct tape *entropy_tape(const struct entropy_case *shape)
{
    const uint64_t dims[2] = {shape->rows, shape->columns};
    const uint64_t x_dims[2] = {shape->rows, 3};
    const uint64_t weight_dims[2] = {shape->columns, 3};
    const bool product = shape->columns < 8192;
    struct builder *builder = builder_new(shape->cut);
    const uint32_t x =
        build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, product ? x_dims : dims);
    const uint32_t weight = build_tensor(builder, "w", DTYPE_F32, ROLE_INPUT, 2, weight_dims);
    const uint32_t target = build_tensor(builder, TARGETS, DTYPE_U32, ROLE_INPUT, 1, &shape->rows);
    const uint32_t logits =
        product ? build_linear(builder, x, weight) : build_scale(builder, x, 0.5f);
    const uint32_t loss = build_cross_entropy(builder, logits, target);
    const uint32_t of[2] = {product ? x : logits, weight};
    const uint32_t count = product ? 2 : 1;
    uint32_t gradients[2];
    struct tape *tape = NULL;
    struct error error;

    if (shape->losses_read) {
        build_output(builder, "twice", build_scale(builder, loss, 2.0f));
    }
    build_loss(builder, loss);
    build_gradients(builder, gradients,
                    shape->slope_waits ? build_mul(builder, loss, loss, 1) : loss, of, count);
    for (uint32_t i = 0; i < count; i++) {
        build_output(builder, i == 0 ? "dx" : "dw", gradients[i]);
        /* Quantizes rows as they lie. */
        build_output(builder, i == 0 ? "norm-x" : "norm-w",
                     build_square_sum(builder, gradients[i]));
    }
    if (shape->logits_read) {
        build_output(builder, "logits", build_scale(builder, logits, 1.0f));
    }
    error_init(&error);
    if (builder_finish(&tape, builder, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    builder_free(builder);
    return tape;
}

/* ---- values and machines -------------------------------------------------------------------- */

enum sort { SORT_PLAIN, SORT_LARGE, SORT_NASTY, SORT_ALIKE, SORTS };

static uint32_t draw(uint64_t *random, enum sort sort)
{
    static const uint32_t nasty[] = {0x7f800000, 0xff800000, FLOAT_NAN_BITS, 0x7f7fffff,
                                     0x00000001, 0x80000000, 0x807fffff,     0xff7fffff};
    const uint64_t word = test_random(random);
    const float value = (float)((double)(int64_t)word * 0x1p-63);

    switch (sort) {
    case SORT_LARGE: /* exponentials of all sizes, subnormal ones among them */
        return real_to_bits(value * 120.0f);
    case SORT_NASTY:
        return word % 41 == 0 ? nasty[(word >> 32) % 8] : real_to_bits(value * 3.0f);
    case SORT_ALIKE: /* a row's maximum is met many times, as zeros of both signs */
        return word % 3 == 0 ? (uint32_t)word & UINT32_C(0x80000000) : real_to_bits(-0.25f);
    case SORT_PLAIN:
    case SORTS:
        break;
    }
    return real_to_bits(ldexpf(value, (int)(word % 9) - 4));
}

/* A sixth of the targets name no column, some of them only just. */
static void set_values(struct start *start, uint64_t columns, enum sort sort)
{
    for (uint32_t id = 0; id < start->tape->tensor_count; id++) {
        const struct tensor *tensor = &start->tape->tensors[id];
        uint64_t random = 1000 * columns + id;
        uint32_t *words = start->values[id];

        for (uint64_t i = 0; words != NULL && i < tensor->count; i++) {
            const uint64_t word = test_random(&random);

            words[i] = tensor->dtype == DTYPE_F32 ? draw(&random, sort)
                       : word % 6 == 0            ? (uint32_t)(columns + (word >> 32) % 3)
                       : word % 6 == 1            ? TARGET_IGNORED
                                                  : (uint32_t)((word >> 32) % columns);
        }
    }
}

static struct machine *open_fake(const struct tape *tape, uint32_t disabled)
{
    const struct machine_options options = {.trace = false};
    const struct cuda_config config = {.calls = fake_device_calls(), .disabled = disabled};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    start_must(machine_cuda_open(&machine, tape, &options, &config, &error), &error);
    return machine;
}

/* Two steps by the variant alone, and by all variants. */
static void hold(const struct entropy_case *shape, enum sort sort)
{
    const struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 2};
    struct tape *tape = entropy_tape(shape);
    struct machine *rules = NULL;
    struct start start;
    struct error error;

    error_init(&error);
    start_random(&start, tape, 1);
    set_values(&start, shape->columns, sort);
    start_must(backend_cpu.open(&rules, tape, &options, &error), &error);
    start_steps(rules, &start, 2);
    for (int all = 0; all < 2; all++) {
        const struct fake_device_switches large = {.shared_max = SHARED_HOPPER};
        struct machine *fused;
        char what[128];

        fake_device_set(&large);
        fused = open_fake(tape, all ? 0 : ALONE);
        start_steps(fused, &start, 2);
        (void)snprintf(what, sizeof(what), "%llu rows of %llu, sort %d, %s",
                       (unsigned long long)shape->rows, (unsigned long long)shape->columns,
                       (int)sort, all ? "all" : "alone");
        start_compare(rules, fused, what);
        assert_int_equal(fake_device_launches(KERNEL_ENTROPY), shape->whole_launch ? 2 : 0);
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
    start_release(&start);
    tape_free(tape);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* ---- tests ----------------------------------------------------------------------- */

static void test_rows_of_any_length_have_the_bits_of_the_rules(void **state)
{
    static const struct entropy_case cases[] = {
        {5, 1, {14, 128}, .whole_launch = true},
        {9, 7, {16, 0}, .whole_launch = true},
        {3, 64, {14, 128}, .logits_read = true, .whole_launch = true},
        {6, 129, {15, 128}, .whole_launch = true},
        {1, 300, {22, 128}, .whole_launch = true},
        {7, 1021, {14, 128}, .losses_read = true, .whole_launch = true},
        {2, 1024, {14, 128}, .whole_launch = true},
        {5, 1027, {22, 0}, .losses_read = true, .whole_launch = true},
        {3, 3330, {16, 128}, .logits_read = true, .whole_launch = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int sort = 0; sort < SORTS; sort++) {
            if (cases[i].columns < 1000 || test_share(1, 0) != 0 || sort == (int)(i % SORTS)) {
                hold(&cases[i], (enum sort)sort);
            }
        }
    }
}

/* More chunks than a block has warps. */
static void test_long_rows_have_the_bits_of_the_rules(void **state)
{
    static const struct entropy_case longest = {3, 50257, {14, 128}, .whole_launch = true};

    (void)state;
    hold(&longest, SORT_PLAIN);
    if (test_share(1, 0) != 0) {
        hold(&longest, SORT_LARGE);
        hold(&longest, SORT_NASTY);
    }
}

static void test_what_does_not_fit_is_left_as_it_was(void **state)
{
    static const struct entropy_case others[] = {
        {4, 70, {14, 64}, .whole_launch = false},   /* blocks of half a piece */
        {4, 600, {14, 256}, .whole_launch = false}, /* and of two */
        {4, 70, {14, 128}, .slope_waits = true},    /* the losses come first */
        {2, 58400, {14, 128}, .logits_read = true}  /* no block of threads has so much */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        hold(&others[i], SORT_PLAIN);
    }
}

/* A step that is cut anywhere, between the three operations too. */
static void test_parts_may_end_anywhere(void **state)
{
    static const struct entropy_case shape = {4, 260, {14, 128}, .losses_read = true};
    const struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1};
    struct tape *tape = entropy_tape(&shape);
    struct machine *rules = NULL;
    struct start start;
    struct error error;

    (void)state;
    error_init(&error);
    start_random(&start, tape, 1);
    set_values(&start, shape.columns, SORT_PLAIN);
    start_must(backend_cpu.open(&rules, tape, &options, &error), &error);
    start_steps(rules, &start, 1);
    for (uint32_t cut = 1; cut < tape->op_count; cut++) {
        struct machine *fused = open_fake(tape, 0);
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

/* Logits once, and the gradient and its limbs; nothing else of that size. */
static void test_the_account_counts_each_number_once(void **state)
{
    static const struct fake_device_switches large = {.shared_max = SHARED_HOPPER};
    static const struct entropy_case shape = {64, 5001, {14, 128}, .whole_launch = true};
    struct tape *tape = entropy_tape(&shape);
    struct traffic *counts = calloc(tape->op_count, sizeof(*counts));
    const uint64_t once = 4 * shape.rows * shape.columns;
    uint64_t moved[2] = {0, 0};

    (void)state;
    assert_non_null(counts);
    fake_device_set(&large);
    for (int spared = 0; spared < 2; spared++) {
        struct machine *machine = open_fake(tape, spared ? ALONE : ALONE | 1u << VARIANT_ENTROPY);

        memset(counts, 0, tape->op_count * sizeof(*counts));
        traffic_count(counts, machine);
        for (uint32_t at = 0; at < tape->op_count; at++) {
            moved[spared] += counts[at].read + counts[at].written;
        }
        machine->backend->close(machine);
    }
    /* Twice for the loss, once for the gradient, twice for its limbs: four of the five are gone. */
    assert_true(moved[0] - moved[1] > 4 * once && moved[0] - moved[1] < 4 * once + once / 10);
    free(counts);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_any_length_have_the_bits_of_the_rules),
        cmocka_unit_test(test_long_rows_have_the_bits_of_the_rules),
        cmocka_unit_test(test_what_does_not_fit_is_left_as_it_was),
        cmocka_unit_test(test_parts_may_end_anywhere),
        cmocka_unit_test(test_the_account_counts_each_number_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
