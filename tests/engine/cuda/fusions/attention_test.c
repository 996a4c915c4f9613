/*
 * attention_test.c - rows of attention made on chip have the bits of the rules, and are what runs:
 * on the emulator, over heads of all shapes, grouped or not, ragged, masked or not; strips of 16
 * and of 32 rows; by bytes and by halves; numbers that are subnormal, infinite or NaN; and whole
 * steps of the models with attention.
 */
#include <stdio.h>

#include "engine/cuda/fusions/strips.h"
#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/launcher.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

/* Who else reads p: nobody, an observer that asked for it, or an operation before or behind its
 * product. Or nobody, and the queries have a reach; or an observer wants the rows' numbers. */
enum p_reader { P_ALONE, P_KEPT, P_BEFORE, P_BEHIND, P_REACH, P_NUMBERS };

struct attention_case {
    uint64_t batch;
    uint64_t kv_heads;
    uint64_t group; /* query heads of a key head */
    uint64_t queries;
    uint64_t keys;
    uint64_t d;
    bool causal;
    bool forward; /* no gradients, and nobody reads p */
    struct precision cut;
    uint32_t shared_max; /* of the device; 0: as it is */
    uint32_t kernel;     /* KERNEL_COUNT: it is not taken */
    enum p_reader p_reader;
};

/* As models write it, over inputs; what each of the three gradients is, too. */
static struct tape *attention_tape(const struct attention_case *shape)
{
    const uint64_t d = shape->d;
    const uint64_t t = shape->queries;
    const uint64_t heads = shape->kv_heads * shape->group;
    const uint64_t wide = heads * d;
    const uint64_t kv_wide = shape->kv_heads * d;
    const uint64_t square = t * shape->keys;
    const uint64_t q_dims[3] = {shape->batch, t, wide};
    const uint64_t kv_dims[3] = {shape->batch, shape->keys, kv_wide};
    const uint64_t weight_dims[2] = {3, wide};
    const uint64_t score_dims[4] = {shape->batch, heads, t, shape->keys};
    const uint64_t group = shape->group;
    const struct view q_rows = {{shape->batch, shape->kv_heads, group, t, 1, d},
                                {t * wide, group * d, d, wide, 0, 1}};
    const struct view k_rows = {{shape->batch, shape->kv_heads, 1, shape->keys, 1, d},
                                {shape->keys * kv_wide, d, 0, kv_wide, 0, 1}};
    const struct view v_columns = {{shape->batch, shape->kv_heads, 1, d, 1, shape->keys},
                                   {shape->keys * kv_wide, d, 0, 1, 0, kv_wide}};
    const uint64_t score_strides[6] = {heads * square, group * square, square, shape->keys, 0, 1};
    const struct view p_rows = {{shape->batch, shape->kv_heads, group, t, 1, shape->keys},
                                {heads * square, group * square, square, shape->keys, 0, 1}};
    const uint64_t out_strides[6] = {t * wide, group * d, d, wide, 0, 1};
    struct builder *builder = builder_new(shape->cut);
    const uint32_t of[3] = {build_tensor(builder, "q", DTYPE_F32, ROLE_INPUT, 3, q_dims),
                            build_tensor(builder, "k", DTYPE_F32, ROLE_INPUT, 3, kv_dims),
                            build_tensor(builder, "v", DTYPE_F32, ROLE_INPUT, 3, kv_dims)};
    const uint32_t weight = build_tensor(builder, "w", DTYPE_F32, ROLE_INPUT, 2, weight_dims);
    static const char *const names[3] = {"dq", "dk", "dv"};
    const uint32_t scores = build_contract(builder, of[0], &q_rows, of[1], &k_rows, score_strides,
                                           shape->causal ? t : 0, 4, score_dims);
    const uint64_t reach_dims[2] = {shape->batch, t};
    const uint32_t reach = shape->p_reader == P_REACH ? build_tensor(builder, "reach", DTYPE_U32,
                                                                     ROLE_INPUT, 2, reach_dims)
                                                      : TENSOR_NONE;
    const uint32_t p = build_softmax(builder, scores, 0.375f, shape->causal ? t : 0, reach);
    const struct op softmax = builder->tape.ops[builder->tape.op_count - 1];
    uint32_t gradients[3];
    uint32_t out;
    uint32_t loss;

    if (shape->p_reader == P_KEPT) {
        build_output(builder, "p", p);
    } else if (shape->p_reader == P_BEFORE) {
        build_output(builder, "p2", build_scale(builder, p, 2.0f));
    } else if (shape->p_reader == P_NUMBERS) {
        build_output(builder, "max", softmax.outputs[1]);
        build_output(builder, "sum", softmax.outputs[4]);
    }
    out = build_contract(builder, p, &p_rows, of[2], &v_columns, out_strides, 0, 3, q_dims);
    if (shape->p_reader == P_BEHIND) {
        build_output(builder, "p2", build_scale(builder, p, 2.0f));
    }
    build_output(builder, "out", build_scale(builder, out, 1.0f));
    loss = build_mean(builder, build_linear(builder, out, weight));
    build_loss(builder, loss);
    if (!shape->forward) {
        build_gradients(builder, gradients, loss, of, 3);
        for (int i = 0; i < 3; i++) {
            build_output(builder, names[i], gradients[i]);
        }
    }
    return fused_finish(builder);
}

/* In two steps, forward and backward. */
static uint64_t launches_of(const struct attention_case *shape)
{
    const bool forward = shape->p_reader != P_BEFORE;

    return shape->kernel == KERNEL_COUNT ? 0 : 2 * (uint64_t)(forward + !shape->forward);
}

/* The columns of p and of ds, which nobody else may want. */
static uint64_t columns_of(const struct attention_case *shape)
{
    const bool alone = shape->p_reader == P_ALONE || shape->p_reader == P_NUMBERS;
    const bool remade = alone && !shape->forward;

    return shape->kernel != KERNEL_COUNT && remade ? 4 : 0;
}

/* Launches of rows (or columns) of either width, by bytes or by halves. */
static uint64_t launched(bool columns, bool halves)
{
    const uint32_t more = halves ? 2 : 0;
    const uint32_t first = (columns ? KERNEL_ATTEND_KEYS_NARROW : KERNEL_ATTENTION_NARROW) + more;
    const uint32_t longer = KERNEL_ATTEND_LONG_NARROW + more;
    const uint64_t launches = fake_device_launches(first) + fake_device_launches(first + 1);

    return columns ? launches
                   : launches + fake_device_launches(longer) + fake_device_launches(longer + 1);
}

/* By that variant alone, by all, and alone by halves: two steps, so that what is in place is met
 * again. */
static void hold(struct tape *tape, const struct attention_case *shape, enum sort sort,
                 const char *what)
{
    const uint32_t disabled[] = {fused_disabled_but(VARIANT_ATTENTION),
                                 fused_disabled_but(VARIANT_COUNT),
                                 fused_disabled_but_halves(VARIANT_ATTENTION)};
    const struct fake_device_switches device = {.shared_max = shape->shared_max};
    struct machine *rules = fused_rules(tape);
    struct error error;

    error_init(&error);
    fused_give(rules, tape, sort);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
    }
    for (int i = 0; i < 3; i++) {
        struct machine *fused;

        fake_device_set(&device);
        fused = fused_open(tape, disabled[i]);
        fused_give(fused, tape, sort);
        for (int step = 0; step < 2; step++) {
            assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
        }
        fused_compare(rules, fused, what);
        fused->backend->close(fused);
        for (int halves = 0; halves < 2; halves++) {
            const bool there = halves == (i == 2);

            assert_int_equal(launched(false, halves), there ? launches_of(shape) : 0);
            assert_int_equal(launched(true, halves), there ? columns_of(shape) : 0);
        }
        assert_true(shape->kernel == KERNEL_COUNT || i == 2 ||
                    fake_device_launches(shape->kernel) > 0);
    }
    rules->backend->close(rules);
}

#define SHARED_H200 (227 * 1024)

static void test_rows_of_attention_have_the_bits_of_the_rules(void **state)
{
    static const struct attention_case cases[] = {
        {2, 2, 1, 37, 37, 16, true, false, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_ALONE},
        {1, 1, 2, 70, 70, 24, true, false, {14, 0}, 0, KERNEL_ATTENTION_NARROW, P_NUMBERS},
        {1, 1, 1, 33, 260, 72, false, false, {16, 128}, 30000, KERNEL_ATTENTION_WIDE, P_ALONE},
        {1, 1, 1, 150, 150, 8, true, false, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_ALONE},
        {1, 2, 1, 5, 130, 128, false, false, {15, 128}, 0, KERNEL_ATTENTION_WIDE, P_ALONE},
        {1,
         1,
         1,
         18,
         1023,
         8,
         false,
         false,
         {14, 128},
         SHARED_H200,
         KERNEL_ATTENTION_NARROW,
         P_ALONE},
        {1, 1, 3, 33, 33, 64, true, true, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_ALONE},
        /* p has other readers: what is hidden is there for them, and p when it is read. */
        {1, 1, 2, 21, 21, 16, true, false, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_KEPT},
        {1, 1, 1, 140, 140, 8, true, true, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_KEPT},
        {1, 1, 1, 35, 35, 16, true, false, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_BEFORE},
        {1, 2, 1, 35, 35, 16, true, false, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_BEHIND},
        /* Longer than a strip holds: rows, rows alone, columns, columns of grouped heads. */
        {1,
         1,
         1,
         3,
         1025,
         8,
         false,
         false,
         {14, 128},
         SHARED_H200,
         KERNEL_ATTEND_LONG_NARROW,
         P_ALONE},
        {2, 1, 1, 2, 4600, 1, false, true, {16, 0}, 0, KERNEL_ATTEND_LONG_WIDE, P_NUMBERS},
        {1, 1, 1, 1040, 5, 16, false, false, {15, 128}, 0, KERNEL_ATTENTION_WIDE, P_ALONE},
        {1, 1, 26, 40, 43, 8, true, false, {14, 128}, 0, KERNEL_ATTENTION_NARROW, P_ALONE},
        /* And what is left as it was: too wide, two blocks, a long p that is wanted, no room. */
        {1, 1, 1, 19, 19, 16, true, false, {22, 128}, 0, KERNEL_COUNT, P_ALONE},
        {1, 1, 1, 19, 19, 48, true, false, {14, 32}, 0, KERNEL_COUNT, P_ALONE},
        {1, 1, 1, 3, 1025, 8, false, false, {14, 128}, SHARED_H200, KERNEL_COUNT, P_KEPT},
        {1, 1, 1, 3, 300, 8, false, false, {14, 128}, 20000, KERNEL_COUNT, P_ALONE},
        /* Its kernel knows no reach. */
        {2, 1, 2, 19, 19, 16, true, false, {14, 128}, 0, KERNEL_COUNT, P_REACH},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tape *tape = attention_tape(&cases[i]);

        for (int sort = 0; sort < SORTS; sort++) {
            char what[64];

            if (test_share(1, 0) == 0 && i > 0 && sort != (int)(i * 2 % SORTS)) {
                continue;
            }
            (void)snprintf(what, sizeof(what), "attention %zu, sort %d", i, sort);
            hold(tape, &cases[i], (enum sort)sort, what);
        }
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* Heads that are softmaxes of their own, of the same keys and values: all make them again. */
static struct tape *shared_tape(void)
{
    enum { HEADS = 3, ROWS_OF = 19, WIDE = 16 };
    const uint64_t dims[2] = {ROWS_OF, WIDE};
    const uint64_t score_dims[2] = {ROWS_OF, ROWS_OF};
    const uint64_t weight_dims[2] = {3, WIDE};
    const struct view rows = {{1, 1, 1, ROWS_OF, 1, WIDE}, {0, 0, 0, WIDE, 0, 1}};
    const struct view columns = {{1, 1, 1, WIDE, 1, ROWS_OF}, {0, 0, 0, 1, 0, WIDE}};
    const struct view p_rows = {{1, 1, 1, ROWS_OF, 1, ROWS_OF}, {0, 0, 0, ROWS_OF, 0, 1}};
    const uint64_t score_strides[6] = {0, 0, 0, ROWS_OF, 0, 1};
    const uint64_t out_strides[6] = {0, 0, 0, WIDE, 0, 1};
    static const char *const names[HEADS + 2] = {"q0", "q1", "q2", "k", "v"};
    static const char *const slopes[HEADS + 2] = {"dq0", "dq1", "dq2", "dk", "dv"};
    struct builder *builder = builder_new((struct precision){14, 128});
    const uint32_t weight = build_tensor(builder, "w", DTYPE_F32, ROLE_INPUT, 2, weight_dims);
    uint32_t of[HEADS + 2];
    uint32_t gradients[HEADS + 2];
    uint32_t sum = TENSOR_NONE;

    for (int i = 0; i < HEADS + 2; i++) {
        of[i] = build_tensor(builder, names[i], DTYPE_F32, ROLE_INPUT, 2, dims);
    }
    for (int head = 0; head < HEADS; head++) {
        const uint32_t scores = build_contract(builder, of[head], &rows, of[HEADS], &rows,
                                               score_strides, 0, 2, score_dims);
        const uint32_t p = build_softmax(builder, scores, 0.25f, 0, TENSOR_NONE);
        const uint32_t out =
            build_contract(builder, p, &p_rows, of[HEADS + 1], &columns, out_strides, 0, 2, dims);

        sum = head == 0 ? out : build_add(builder, sum, out, 1);
    }
    const uint32_t loss = build_mean(builder, build_linear(builder, sum, weight));

    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, of, HEADS + 2);
    for (int i = 0; i < HEADS + 2; i++) {
        build_output(builder, slopes[i], gradients[i]);
    }
    return fused_finish(builder);
}

/* The gradient of a softmax is given what its own p makes: two groups would want that product. */
static struct tape *own_tape(void)
{
    enum { SIDE = 19 };
    const uint64_t dims[2] = {SIDE, SIDE};
    const struct view rows = {{1, 1, 1, SIDE, 1, SIDE}, {0, 0, 0, SIDE, 0, 1}};
    const struct view columns = {{1, 1, 1, SIDE, 1, SIDE}, {0, 0, 0, 1, 0, SIDE}};
    const uint64_t strides[6] = {0, 0, 0, SIDE, 0, 1};
    static const char *const names[5] = {"q", "k", "v", "w", "x"};
    const struct output_shape shapes[3] = {
        {DTYPE_F32, 2, {SIDE, 1}}, {DTYPE_F32, 1, {SIDE}}, {DTYPE_F32, 2, {SIDE, SIDE}}};
    struct builder *builder = builder_new((struct precision){14, 128});
    uint32_t of[5];

    for (int i = 0; i < 5; i++) {
        of[i] = build_tensor(builder, names[i], DTYPE_F32, ROLE_INPUT, 2, dims);
    }
    const uint32_t scores =
        build_contract(builder, of[0], &rows, of[1], &rows, strides, 0, 2, dims);
    const uint32_t p = build_softmax(builder, scores, 0.25f, 0, TENSOR_NONE);
    const uint32_t y = build_contract(builder, p, &rows, of[2], &columns, strides, 0, 2, dims);
    struct op op = {.kind = OP_SOFTMAX_GRAD,
                    .input_count = 2,
                    .inputs = {p, y},
                    .output_count = 3,
                    .attribute_count = SOFTMAX_ATTRIBUTES};

    op.attributes[ROWS] = op.attributes[COLUMNS] = SIDE;
    op.attributes[SOFTMAX_SCALE_BITS] = 0x3e800000;
    build_op(builder, &op, shapes);
    build_output(
        builder, "dq",
        build_contract(builder, op.outputs[2], &rows, of[3], &columns, strides, 0, 2, dims));
    build_output(builder, "dv",
                 build_contract(builder, p, &columns, of[4], &columns, strides, 0, 2, dims));
    build_loss(builder, build_mean(builder, of[0]));
    return fused_finish(builder);
}

/* A step by that variant alone has the rules' bits, and so many launches of rows and of columns. */
static void hold_step(struct tape *tape, uint64_t rows, uint64_t columns, const char *what)
{
    static const struct fake_device_switches sound;
    struct machine *rules = fused_rules(tape);
    struct machine *fused;
    struct error error;

    error_init(&error);
    fake_device_set(&sound);
    fused = fused_open(tape, fused_disabled_but(VARIANT_ATTENTION));
    fused_give(rules, tape, (enum sort)0);
    fused_give(fused, tape, (enum sort)0);
    assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
    assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
    fused_compare(rules, fused, what);
    fused->backend->close(fused);
    rules->backend->close(rules);
    assert_int_equal(launched(false, false), rows);
    assert_int_equal(launched(true, false), columns);
    tape_free(tape);
}

static void test_operands_and_products_that_softmaxes_share(void **state)
{
    (void)state;
    hold_step(shared_tape(), 2 * 3, 2 * 3, "shared keys");
    hold_step(own_tape(), 1, 0, "a product of two groups");
}

/* Rows of a strip, where the keys are 1,024: of compute capability 7.5, 8.6 and 8.9, 8.0, 9.0. */
static void test_strips_are_as_high_as_shared_memory_lets_them(void **state)
{
    (void)state;
    assert_int_equal(strips_rows_of(64 * 1024, 1024), 0);
    assert_int_equal(strips_rows_of(64 * 1024, 896), 16);
    assert_int_equal(strips_rows_of(99 * 1024, 1024), 16);
    assert_int_equal(strips_rows_of(163 * 1024, 1024), 32);
    assert_int_equal(strips_rows_of(SHARED_H200, 1024), 32);
}

static void test_models_with_attention_have_the_bits_of_the_rules(void **state)
{
    static const enum model_kind kinds[] = {MODEL_GPT2, MODEL_LLAMA};
    static const struct fake_device_switches sound;
    static const uint32_t wanted[] = {VARIANT_ATTENTION, VARIANT_COUNT};

    (void)state;
    fake_device_set(&sound);
    for (int i = 0; i < 2; i++) {
        struct model_options options;
        struct small_model small;
        struct start start;
        struct machine *rules;

        small_model_options(&options, kinds[i]);
        options.dropout = 0.0;
        options.precision = (struct precision){i == 0 ? 14 : 16, 128};
        options.length = 18;
        small_model_open(&small, &options);
        start_model(&start, &small);
        rules = fused_rules(start.tape);
        start_steps(rules, &start, 2);
        for (int j = 0; j < 2; j++) {
            struct machine *fused = fused_open(start.tape, fused_disabled_but(wanted[j]));

            start_steps(fused, &start, 2);
            start_compare(rules, fused, "attention");
            fused->backend->close(fused);
        }
        rules->backend->close(rules);
        start_release(&start);
        small_model_close(&small);
    }
    assert_true(fake_device_launches(KERNEL_ATTENTION_NARROW) +
                    fake_device_launches(KERNEL_ATTENTION_WIDE) >
                0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_attention_have_the_bits_of_the_rules),
        cmocka_unit_test(test_operands_and_products_that_softmaxes_share),
        cmocka_unit_test(test_strips_are_as_high_as_shared_memory_lets_them),
        cmocka_unit_test(test_models_with_attention_have_the_bits_of_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
