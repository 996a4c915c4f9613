/*
 * strips_test.c - products of strips (numbers that are quantized where a block of threads holds
 * them) have the bits of the rules: on the emulator, over ragged shapes, either side of the
 * product, all widths that are taken, numbers of all sorts; behind a causal softmax; and in whole
 * training steps. Nothing is made so that does not fit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine_cuda.h"
#include "engine/ops/real.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/device/traffic.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound = {.shared_max = 227 * 1024};

static uint64_t strip_launches(void)
{
    return fake_device_launches(KERNEL_STRIP_COLUMNS_NARROW) +
           fake_device_launches(KERNEL_STRIP_COLUMNS_WIDE);
}

static uint64_t strip_launches_by_halves(void)
{
    return fake_device_launches(KERNEL_STRIP_HALVES_NARROW) +
           fake_device_launches(KERNEL_STRIP_HALVES_WIDE);
}

/* Two steps by that variant alone are two steps by the rules. */
static void hold(const struct tape *tape, enum sort sort, uint32_t disabled, const char *what)
{
    struct machine *rules = fused_rules(tape);
    struct machine *fused = fused_open(tape, disabled);
    struct error error;

    error_init(&error);
    fused_give(rules, tape, sort);
    fused_give(fused, tape, sort);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
        assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
    }
    fused_compare(rules, fused, what);
    rules->backend->close(rules);
    fused->backend->close(fused);
}

/* ---- products --------------------------------------------------------------------- */

/* Columns of x, in groups one behind the other, by rows of y, which lie along k. */
struct product {
    uint64_t batches;
    uint64_t groups; /* of k */
    uint64_t inner;
    uint64_t rows;
    uint64_t others;
    struct precision precision;
    bool is_b;       /* x is the second operand */
    uint64_t causal; /* x is a softmax of so many queries a turn, or of none (0) */
};

static struct tape *product_tape(const struct product *p)
{
    const uint64_t k = p->groups * p->inner;
    const uint64_t x_dims[3] = {p->batches, k, p->rows};
    const uint64_t y_dims[3] = {p->batches, p->others, k};
    const uint64_t out_dims[3] = {p->batches, p->rows, p->others};
    const struct view x_view = {{p->batches, 1, 1, p->rows, p->groups, p->inner},
                                {k * p->rows, 0, 0, 1, p->inner * p->rows, p->rows}};
    const struct view y_view = {{p->batches, 1, 1, p->others, p->groups, p->inner},
                                {p->others * k, 0, 0, k, p->inner, 1}};
    const uint64_t by_a[6] = {p->rows * p->others, 0, 0, p->others, 0, 1};
    const uint64_t by_b[6] = {p->rows * p->others, 0, 0, 1, 0, p->others};
    struct builder *builder = builder_new(p->precision);
    const uint32_t y = build_tensor(builder, "y", DTYPE_F32, ROLE_INPUT, 3, y_dims);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 3, x_dims);

    x = p->causal == 0 ? build_scale(builder, x, 1.0f)
                       : build_softmax(builder, x, 0.5f, p->causal, TENSOR_NONE);
    build_output(builder, "product",
                 p->is_b ? build_contract(builder, y, &y_view, x, &x_view, by_b, 0, 3, out_dims)
                         : build_contract(builder, x, &x_view, y, &y_view, by_a, 0, 3, out_dims));
    return fused_finish(builder);
}

static const struct product products[] = {
    {2, 1, 150, 37, 19, {14, 128}, false, 0},    {1, 1, 130, 16, 64, {14, 128}, true, 0},
    {3, 2, 77, 33, 5, {16, 128}, false, 0},      {1, 1, 1024, 20, 33, {14, 128}, true, 0},
    {2, 1, 60, 31, 128, {15, 0}, false, 0},      {1, 3, 11, 2, 1, {14, 0}, true, 0},
    {1, 1, 257, 65, 97, {16, 0}, true, 0},       {1, 1, 1, 40, 7, {14, 128}, false, 0},
    {2, 1, 300, 300, 24, {14, 128}, false, 300}, {1, 2, 90, 90, 40, {14, 128}, true, 90},
    {2, 1, 60, 140, 9, {16, 128}, true, 60},     {1, 4, 129, 129, 3, {15, 0}, false, 129},
};

#define PRODUCTS (sizeof(products) / sizeof(products[0]))

static void test_products_of_columns_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < PRODUCTS; i++) {
        struct tape *tape = product_tape(&products[i]);
        /* No more than 16 rows of a strip need, where they need more than the least. */
        const struct fake_device_switches tight = {
            .shared_max = STRIP_SHARED(16, products[i].groups * products[i].inner)};

        for (int sort = 0; sort < SORTS; sort++) {
            char what[64];

            if (test_share(1, 0) == 0 && sort != SORT_NASTY && sort != (int)(i % SORTS)) {
                continue;
            }
            fake_device_set(sort == SORT_NASTY ? &tight : &sound);
            (void)snprintf(what, sizeof(what), "product %zu, numbers of sort %d", i, sort);
            hold(tape, (enum sort)sort, fused_disabled_but(VARIANT_STRIPS), what);
            if (strip_launches() != 2) {
                fail_msg("%s: %llu strips", what, (unsigned long long)strip_launches());
            }
            hold(tape, (enum sort)sort, fused_disabled_but_halves(VARIANT_STRIPS), what);
            if (strip_launches() != 2 || strip_launches_by_halves() != 2) {
                fail_msg("%s: %llu strips by halves", what,
                         (unsigned long long)strip_launches_by_halves());
            }
            /* Only the other operand is quantized: two or three launches a step, or one. */
            assert_int_equal(fake_device_launches(KERNEL_CONTRACT_NARROW) +
                                 fake_device_launches(KERNEL_CONTRACT_WIDE),
                             0);
        }
        tape_free(tape);
    }
}

/* What a strip does not take is made as it was. */
static void test_products_that_do_not_fit_are_left(void **state)
{
    static const struct product others[] = {
        {1, 1, 1025, 16, 4, {14, 128}, false, 0}, /* long rows */
        {1, 1, 130, 16, 129, {14, 128}, true, 0}, /* many rows by them */
        {1, 1, 60, 16, 4, {22, 0}, false, 0},     /* three limbs */
        {1, 1, 60, 16, 4, {14, 32}, false, 0},    /* short blocks */
        {1, 1, 300, 16, 4, {14, 256}, false, 0},  /* long ones */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct tape *tape = product_tape(&others[i]);

        fake_device_set(&sound);
        hold(tape, SORT_PLAIN, fused_disabled_but(VARIANT_STRIPS), "what does not fit");
        assert_int_equal(strip_launches(), 0);
        tape_free(tape);
    }
}

/* ---- every integer ---------------------------------------------------------------- */

/* Columns that hold all integers of 14 bits, by ones: each comes back as it was. */
static void hold_integers(uint32_t disabled)
{
    enum { K = 128, ROWS = 128, MOST = (1 << 13) - 1 };
    static const struct product p = {1, 1, K, ROWS, K, {14, 128}, false, 0};
    struct tape *tape = product_tape(&p);
    struct machine *fused = fused_open(tape, disabled);
    float *x = malloc(sizeof(float) * K * ROWS);
    float *y = calloc(K * K, sizeof(float));
    float *out = malloc(sizeof(float) * K * ROWS);
    struct error error;
    uint32_t ids[3] = {TENSOR_NONE, TENSOR_NONE, TENSOR_NONE};

    error_init(&error);
    assert_non_null(x);
    assert_non_null(y);
    assert_non_null(out);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        for (int i = 0; i < 3; i++) {
            if (strcmp(tape->tensors[id].name, i == 0 ? "x" : i == 1 ? "y" : "product") == 0) {
                ids[i] = id;
            }
        }
    }
    for (int k = 0; k < K; k++) {
        y[k * K + k] = 1.0f;
        for (int row = 0; row < ROWS; row++) {
            /* The first of a row is the largest, so that 2^13 is its exponent. */
            const int q = k == 0 ? MOST : (row * (K - 1) + k - 1) % (2 * MOST + 1) - MOST;

            x[k * ROWS + row] = (float)q;
        }
    }
    assert_int_equal(fused->backend->write(fused, ids[0], x, &error), STATUS_OK);
    assert_int_equal(fused->backend->write(fused, ids[1], y, &error), STATUS_OK);
    assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
    assert_int_equal(fused->backend->read(fused, ids[2], out, &error), STATUS_OK);
    for (int k = 0; k < K; k++) {
        for (int row = 0; row < ROWS; row++) {
            assert_true(out[row * K + k] == x[k * ROWS + row]);
        }
    }
    fused->backend->close(fused);
    tape_free(tape);
    free(x);
    free(y);
    free(out);
}

static void test_every_integer_comes_back(void **state)
{
    (void)state;
    hold_integers(fused_disabled_but(VARIANT_STRIPS));
    hold_integers(fused_disabled_but_halves(VARIANT_STRIPS));
}

/* ---- training ------------------------------------------------------------------------ */

/* Attention of one piece and of several, alone and in groups of heads. */
static void small_language(struct model_options *options, enum model_kind kind)
{
    small_model_options(options, kind);
    options->precision = (struct precision){kind == MODEL_GPT2 ? 14 : 16, 128};
    options->length = kind == MODEL_GPT2 ? 20 : 34;
    options->layers = 1;
    options->batch = 1;
    options->dropout = 0.0;
}

static void test_training_has_the_bits_of_the_rules(void **state)
{
    static const enum model_kind kinds[] = {MODEL_GPT2, MODEL_LLAMA};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct model_options options;
        struct small_model small;
        struct start start;
        struct machine *rules;

        small_language(&options, kinds[i]);
        small_model_open(&small, &options);
        start_model(&start, &small);
        rules = fused_rules(start.tape);
        start_steps(rules, &start, 2);
        for (int all = 0; all < 2; all++) {
            struct machine *fused =
                fused_open(start.tape, fused_disabled_but(all ? VARIANT_COUNT : VARIANT_STRIPS));

            fake_device_set(&sound);
            start_steps(fused, &start, 2);
            start_compare(rules, fused, all ? "all variants" : "strips");
            /* Two for each step, unless attention has them. */
            assert_true(all || strip_launches() >= 4);
            fused->backend->close(fused);
        }
        rules->backend->close(rules);
        start_release(&start);
        small_model_close(&small);
    }
}

/* ---- the account ------------------------------------------------------------------------ */

/* A strip reads each number once, and writes no limbs. */
static void test_the_account_counts_what_is_read(void **state)
{
    static const struct product p = {2, 1, 300, 300, 24, {14, 128}, false, 300};
    struct tape *tape = product_tape(&p);
    struct machine *machine = fused_open(tape, fused_disabled_but(VARIANT_STRIPS));
    struct traffic *counts = calloc(tape->op_count, sizeof(*counts));
    const uint64_t all = 4 * p.batches * p.inner * p.rows;
    const struct traffic *last = &counts[tape->op_count - 1];

    (void)state;
    assert_non_null(counts);
    traffic_count(counts, machine);
    assert_int_equal(last->launches, 1);
    assert_true(last->read > all && last->read < all + 4 * p.batches * p.others * p.inner);
    assert_int_equal(last->written, 4 * p.batches * p.rows * p.others);
    free(counts);
    machine->backend->close(machine);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_columns_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_that_do_not_fit_are_left),
        cmocka_unit_test(test_every_integer_comes_back),
        cmocka_unit_test(test_training_has_the_bits_of_the_rules),
        cmocka_unit_test(test_the_account_counts_what_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
