/*
 * fuse_test.c - what is launched together, or in fewer passes, has the bits of the rules and is
 * what runs: on the emulator, each variant alone, over tensors of ragged sizes and of numbers that
 * are subnormal, infinite or NaN; in place; and in whole steps that may be cut inside of a unit.
 * The account of bytes counts what is launched.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "engine/cuda/machine/machine_cuda.h"
#include "engine/ops/real.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/device/traffic.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

static const struct {
    uint32_t variant;
    const char *name;
} variants[] = {{VARIANT_DOTS, "dots"}, {VARIANT_LISTS, "lists"}, {VARIANT_COLUMNS, "columns"},
                {VARIANT_HELD, "held"}, {VARIANT_TILES, "tiles"}, {VARIANT_PLAIN, "none"},
                {VARIANT_COUNT, "all"}};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

/*
 * By two variants alone and by all, and in the long version by each: two steps, so that what is in
 * place is met again.
 */
static void hold(struct tape *tape, enum sort sort, const uint32_t two[2], const char *what)
{
    struct machine *rules = fused_rules(tape);
    struct error error;

    error_init(&error);
    fused_give(rules, tape, sort);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
    }
    for (size_t i = 0; i < VARIANTS; i++) {
        struct machine *fused;
        char text[128];

        if (variants[i].variant != two[0] && variants[i].variant != two[1] &&
            variants[i].variant != VARIANT_COUNT && test_share(1, 0) == 0) {
            continue;
        }
        fused = fused_open(tape, fused_disabled_but(variants[i].variant));
        fused_give(fused, tape, sort);
        for (int step = 0; step < 2; step++) {
            assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
        }
        (void)snprintf(text, sizeof(text), "%s, numbers of sort %d, %s", what, (int)sort,
                       variants[i].name);
        fused_compare(rules, fused, text);
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
}

/* ---- parameters: their norm, their update ------------------------------------------- */

static const uint64_t shapes[][2] = {{7, 130}, {1, 5}, {3, 1500}, {64, 16}, {0, 33}, {2, 1028}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* As a model's end: squares of all gradients, a clip, and an update of each tensor. */
static struct tape *parameters_tape(bool adamw, struct precision precision)
{
    static const uint64_t one = 1;
    struct builder *builder = builder_new(precision);
    uint32_t gradients[SHAPES];
    uint32_t parameters[SHAPES];
    uint32_t scalars[4];
    uint32_t total = 0;
    char name[32];

    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "scalar%u", i);
        scalars[i] = build_tensor(builder, name, DTYPE_F32, ROLE_INPUT, 1, &one);
    }
    for (uint32_t i = 0; i < SHAPES; i++) {
        const uint32_t rank = shapes[i][0] == 0 ? 1 : 2;
        const uint64_t *dims = rank == 1 ? &shapes[i][1] : shapes[i];

        (void)snprintf(name, sizeof(name), "p%u", i);
        parameters[i] = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, rank, dims);
        (void)snprintf(name, sizeof(name), "g%u", i);
        gradients[i] = build_scale(
            builder, build_tensor(builder, name, DTYPE_F32, ROLE_INPUT, rank, dims), 0.5f);
    }
    for (uint32_t i = 0; i < SHAPES; i++) {
        const uint32_t square = build_square_sum(builder, gradients[i]);

        total = i == 0 ? square : build_add(builder, total, square, 1);
    }
    build_output(builder, "norm", total);
    scalars[3] = total;
    for (uint32_t i = 0; i < SHAPES; i++) {
        const struct tensor like = *builder_tensor(builder, parameters[i]);
        uint32_t inputs[8] = {parameters[i], gradients[i]};
        uint32_t count = 2;
        struct op op;
        struct output_shape shape = shape_like(builder, parameters[i]);
        struct output_shape all[3] = {shape, shape, shape};

        for (uint32_t m = 0; m < (adamw ? 2u : 1u); m++) {
            (void)snprintf(name, sizeof(name), "m%u.%u", i, m);
            inputs[count++] =
                build_tensor(builder, name, DTYPE_F32, ROLE_STATE, like.rank, like.dims);
        }
        for (uint32_t s = 0; s < 4; s++) {
            if (adamw || s == 0 || s == 3) {
                inputs[count++] = scalars[s];
            }
        }
        op = op_begin(adamw ? OP_ADAMW : OP_SGD, count, inputs);
        for (uint32_t a = 0; a < (adamw ? ADAMW_ATTRIBUTES : SGD_ATTRIBUTES); a++) {
            op_attribute_float(&op, 0.25f / (float)(a + 1));
        }
        op.output_count = adamw ? 3 : 2;
        build_op(builder, &op, all);
        build_after(builder, parameters[i], op.outputs[0]);
        build_after(builder, inputs[2], op.outputs[1]);
        if (adamw) {
            build_after(builder, inputs[3], op.outputs[2]);
        }
    }
    return fused_finish(builder);
}

static void test_norms_and_updates_have_the_bits_of_the_rules(void **state)
{
    static const struct precision cuts[] = {{14, 128}, {16, 0}, {22, 128}, {15, 32}};
    static const uint32_t two[2] = {VARIANT_DOTS, VARIANT_LISTS};

    (void)state;
    for (int sort = 0; sort < SORTS; sort++) {
        struct tape *tape = parameters_tape(sort % 2 == 0, cuts[sort]);

        fake_device_set(&sound);
        hold(tape, (enum sort)sort, two, "parameters");
        /* Blocks of 32 are no pieces: their squares are left as they are. */
        assert_true((fake_device_launches(KERNEL_TOTAL) > 0) == (cuts[sort].block != 32));
        assert_true(fake_device_launches(KERNEL_UPDATES) > 0);
        tape_free(tape);
    }
}

/* ---- rows, and views of what they give ------------------------------------------------- */

static struct tape *rows_tape(uint64_t rows, uint64_t columns, struct precision precision)
{
    const uint64_t dims[2] = {rows, columns};
    const uint64_t weight_dims[2] = {5, columns};
    struct builder *builder = builder_new(precision);
    const uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, dims);
    const uint32_t dy = build_tensor(builder, "dy", DTYPE_F32, ROLE_INPUT, 2, dims);
    const uint32_t gain = build_tensor(builder, "gain", DTYPE_F32, ROLE_INPUT, 1, &columns);
    const uint32_t weight = build_tensor(builder, "w", DTYPE_F32, ROLE_INPUT, 2, weight_dims);
    uint32_t made[4];
    uint32_t loss;
    uint32_t gradients[3];
    const uint32_t of[3] = {x, gain, weight};
    char name[32];

    made[0] = build_layer_norm(builder, x, gain, gain, 1e-5f);
    made[1] = build_rms_norm(builder, build_add(builder, x, dy, 1), gain, 1e-5f);
    made[2] = build_softmax(builder, x, 0.25f, columns > 3 ? columns - 2 : 0, TENSOR_NONE);
    made[3] = build_softmax(builder, dy, 2.0f, 0, TENSOR_NONE);
    loss = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t product = build_linear(builder, made[i], weight);
        const uint32_t mean = build_mean(builder, product);

        (void)snprintf(name, sizeof(name), "made%d", i);
        build_output(builder, name, build_scale(builder, made[i], 1.0f));
        (void)snprintf(name, sizeof(name), "product%d", i);
        build_output(builder, name, build_scale(builder, product, 1.0f));
        loss = i == 0 ? mean : build_add(builder, loss, mean, 1);
    }
    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, of, 3);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "gradient%d", i);
        build_output(builder, name, gradients[i]);
    }
    return fused_finish(builder);
}

static void test_rows_and_their_views_have_the_bits_of_the_rules(void **state)
{
    static const struct {
        uint64_t rows;
        uint64_t columns;
        struct precision cut;
    } cases[] = {{9, 36, {14, 128}}, {2, 1000, {16, 0}}, {5, 129, {15, 64}}, {2, 1028, {22, 128}}};

    static const uint32_t two[2] = {VARIANT_HELD, VARIANT_COLUMNS};

    (void)state;
    fake_device_set(&sound);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tape *tape = rows_tape(cases[i].rows, cases[i].columns, cases[i].cut);
        char what[64];

        (void)snprintf(what, sizeof(what), "%llu rows of %llu", (unsigned long long)cases[i].rows,
                       (unsigned long long)cases[i].columns);
        for (int sort = 0; sort < SORTS; sort++) {
            if (test_share(1, 0) != 0 || sort == (int)(i % SORTS)) {
                hold(tape, (enum sort)sort, two, what);
            }
        }
        tape_free(tape);
    }
    assert_true(fake_device_launches(KERNEL_HELD) > 0);
    assert_true(fake_device_launches(KERNEL_QUANTIZE_COLUMNS) > 0);
    assert_true(fake_device_launches(KERNEL_DOTS) > 0);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* ---- words ------------------------------------------------------------------------------- */

/* What the sums of words are added to: it dies there, is read later too, or is given. */
enum addend { DIES, STAYS, GIVEN, ADDENDS };

static struct tape *words_tape(uint64_t vocabulary, uint64_t width, enum addend addend)
{
    static const uint64_t k = 140;
    const uint64_t x_dims[2] = {k, width};
    const uint64_t dims[2] = {vocabulary, width};
    struct builder *builder = builder_new((struct precision){14, 128});
    const uint32_t index = build_tensor(builder, "index", DTYPE_U32, ROLE_INPUT, 1, &k);
    const uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, x_dims);
    const uint32_t given = build_tensor(builder, "given", DTYPE_F32, ROLE_INPUT, 2, dims);
    const uint32_t other = addend == GIVEN ? given : build_scale(builder, given, 1.0f);
    const uint32_t sums = build_sum_by_index(builder, index, x, 2, dims);
    const uint32_t all = build_add(builder, other, sums, 1);

    build_output(builder, "all", build_scale(builder, all, 1.0f));
    if (addend == STAYS) {
        build_output(builder, "other", build_scale(builder, other, 2.0f));
    }
    return fused_finish(builder);
}

/* Do the sums lie where the addend lay? */
static void hold_place(const struct machine *machine, bool in_place)
{
    const struct machine_cuda *cuda = (const struct machine_cuda *)machine;
    uint32_t at = 0;

    while (cuda->tape.ops[at].input_count != 4 || cuda->tape.ops[at].kind != OP_CONTRACT_ONEHOT) {
        at++;
        assert_true(at < cuda->tape.op_count);
    }
    const struct op *op = &cuda->tape.ops[at];

    assert_true((cuda->memory[op->outputs[0]] == cuda->memory[op->inputs[3]]) == in_place);
}

/* Words that occur often, never, and that there are none of; zeros of both signs beside them. */
static void test_sums_of_words_are_added_where_they_are_made(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * ADDENDS; turn++) {
        const enum addend addend = (enum addend)(turn / 2);
        struct tape *tape = words_tape(turn % 2 == 0 ? 30 : 5, turn % 2 == 0 ? 300 : 7, addend);

        for (int sort = 0; sort < SORTS; sort++) {
            struct machine *rules = fused_rules(tape);
            struct machine *fused;
            struct error error;

            error_init(&error);
            fake_device_set(&sound);
            fused = fused_open(tape, fused_disabled_but(VARIANT_EPILOGUE));
            fused_give(rules, tape, (enum sort)sort);
            fused_give(fused, tape, (enum sort)sort);
            for (int step = 0; step < 2; step++) {
                assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
                assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
            }
            fused_compare(rules, fused, "words");
            /* Scales alone are left, and what dies has the sums in its place. */
            assert_int_equal(fake_device_launches(KERNEL_ELEMENTS) +
                                 fake_device_launches(KERNEL_QUADS),
                             2 * (addend == GIVEN  ? 1
                                  : addend == DIES ? 2
                                                   : 3));
            hold_place(fused, addend == DIES);
            rules->backend->close(rules);
            fused->backend->close(fused);
        }
        tape_free(tape);
    }
}

/* ---- models ------------------------------------------------------------------------------- */

static void test_models_by_each_way_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    fake_device_set(&sound);
    for (int turn = 0; turn < 2 * MODEL_COUNT; turn++) {
        const int kind = turn / 2;
        struct model_options options;
        struct small_model small;
        struct start start;
        struct machine *rules;

        small_model_options(&options, (enum model_kind)kind);
        options.equilibrate = turn % 2 == 1;
        small_model_open(&small, &options);
        start_model(&start, &small);
        rules = fused_rules(start.tape);
        start_steps(rules, &start, 2);
        for (size_t i = 0; i < VARIANTS; i++) {
            /* One model for each variant, and all of them in the long version. */
            if (i == (size_t)kind || test_share(1, 0) != 0) {
                struct machine *fused =
                    fused_open(start.tape, fused_disabled_but(variants[i].variant));

                start_steps(fused, &start, 2);
                start_compare(rules, fused, variants[i].name);
                fused->backend->close(fused);
            }
        }
        rules->backend->close(rules);
        start_release(&start);
        small_model_close(&small);
    }
}

/* ---- parts of a step --------------------------------------------------------------------- */

/* A part that ends inside of what would be one launch: operations are launched one by one. */
static void test_parts_may_end_anywhere(void **state)
{
    struct tape *tape = parameters_tape(true, (struct precision){14, 128});
    struct machine *rules = fused_rules(tape);
    struct error error;

    (void)state;
    error_init(&error);
    fake_device_set(&sound);
    fused_give(rules, tape, SORT_PLAIN);
    assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
    for (uint32_t cut = 1; cut < tape->op_count; cut += (uint32_t)test_share(1, 12)) {
        struct machine *fused = fused_open(tape, 0);
        char what[32];

        fused_give(fused, tape, SORT_PLAIN);
        assert_int_equal(fused->backend->run(fused, 0, cut, NULL, &error), STATUS_OK);
        assert_int_equal(fused->backend->run(fused, cut, tape->op_count, NULL, &error), STATUS_OK);
        (void)snprintf(what, sizeof(what), "cut at %u", cut);
        fused_compare(rules, fused, what);
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
    tape_free(tape);
}

/* ---- the account --------------------------------------------------------------------------- */

/* As many launches as there are, and never less than what must be moved. */
static void test_the_account_counts_what_is_launched(void **state)
{
    struct tape *tape = parameters_tape(true, (struct precision){14, 128});

    (void)state;
    for (int all = 0; all < 2; all++) {
        struct machine *machine = fused_open(tape, all ? 0 : fused_disabled_but(VARIANT_PLAIN));
        struct traffic *counts = calloc(tape->op_count, sizeof(*counts));
        uint64_t launched = 0;
        uint64_t counted = 0;
        struct error error;

        error_init(&error);
        assert_non_null(counts);
        fused_give(machine, tape, SORT_PLAIN);
        traffic_count(counts, machine);
        for (uint32_t at = 0; at < tape->op_count; at++) {
            counted += counts[at].launches;
        }
        fake_device_set(&sound);
        assert_int_equal(machine->backend->step(machine, NULL, &error), STATUS_OK);
        for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
            launched += fake_device_launches(kernel);
        }
        assert_int_equal(counted, launched); /* nothing is filled here */
        /* A scale of each tensor, the norm by three launches and one update of all. */
        assert_true(!all || launched == SHAPES + 3 + 1);
        free(counts);
        machine->backend->close(machine);
    }
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms_and_updates_have_the_bits_of_the_rules),
        cmocka_unit_test(test_rows_and_their_views_have_the_bits_of_the_rules),
        cmocka_unit_test(test_sums_of_words_are_added_where_they_are_made),
        cmocka_unit_test(test_models_by_each_way_have_the_bits_of_the_rules),
        cmocka_unit_test(test_parts_may_end_anywhere),
        cmocka_unit_test(test_the_account_counts_what_is_launched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
