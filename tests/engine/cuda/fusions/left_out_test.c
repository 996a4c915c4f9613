/*
 * left_out_test.c - fusions and operations that a step may leave out (engine/plan/lazy.h): what a
 * step needs is never made where it is left out. Tapes in which the first quantization of a view, a
 * product's element-wise operation, or what reads a loss is due in some steps only: each step, due
 * or not, has the bits of the rules.
 */
#include <string.h>

#include "engine/cuda/machine/machine_cuda.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

enum { STEPS = 16, SIDE = 12 };

/* A tape, and which figure is chosen in some steps. */
struct due {
    struct builder *builder;
    uint32_t condition;
};

static struct due due_begin(void)
{
    static const uint64_t dims[2] = {STEPS, 1};
    struct due due = {.builder = builder_new((struct precision){14, 128})};
    const uint32_t table = build_tensor(due.builder, "due", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    due.condition = build_schedule(due.builder, table, 1, 0);
    return due;
}

static uint32_t square(const struct due *due, const char *name)
{
    static const uint64_t dims[2] = {SIDE, SIDE};

    return build_tensor(due->builder, name, DTYPE_F32, ROLE_INPUT, 2, dims);
}

/* The next figure is `figure` in steps where it is due. */
static void due_choose(const struct due *due, uint32_t figure)
{
    static const uint64_t one = 1;
    const uint32_t before = build_tensor(due->builder, "figure", DTYPE_F32, ROLE_STATE, 1, &one);

    build_after(due->builder, before, build_select(due->builder, due->condition, figure, before));
}

/* Rows of x by rows of y; the view's axis of rows is number `axis`. */
static uint32_t product(const struct due *due, uint32_t x, uint32_t y, int axis)
{
    static const uint64_t out[2] = {SIDE, SIDE};
    struct view x_view = {{1, 1, 1, 1, 1, SIDE}, {0, 0, 0, 0, 0, 1}};
    struct view y_view = x_view;
    uint64_t strides[6] = {0, 0, 0, 0, 0, 1};

    x_view.dims[axis] = SIDE;
    x_view.strides[axis] = SIDE;
    y_view.dims[3] = SIDE;
    y_view.strides[3] = SIDE;
    strides[axis] = SIDE;
    return build_contract(due->builder, x, &x_view, y, &y_view, strides, 0, 2, out);
}

/* The first quantization of a view is due in some steps; another one has the same view. */
static struct tape *repeated_tape(void)
{
    struct due due = due_begin();
    const uint32_t x = build_scale(due.builder, square(&due, "x"), 0.5f);
    const uint32_t y = square(&due, "y");

    due_choose(&due, build_mean(due.builder, product(&due, x, y, 2)));
    build_output(due.builder, "product", product(&due, x, square(&due, "z"), 3));
    return fused_finish(due.builder);
}

/* A product that each step needs, and GELU of it, which some need. */
static struct tape *epilogue_tape(void)
{
    struct due due = due_begin();
    const uint32_t y = build_linear(due.builder, square(&due, "x"), square(&due, "w"));

    due_choose(&due, build_mean(due.builder, build_map(due.builder, MAP_GELU, y)));
    build_output(due.builder, "again", build_linear(due.builder, y, square(&due, "v")));
    return fused_finish(due.builder);
}

/* Between a loss and its gradient something is made of the losses that some steps need. */
static struct tape *entropy_tape(void)
{
    static const uint64_t rows = SIDE;
    struct due due = due_begin();
    struct builder *builder = due.builder;
    uint32_t of[2] = {square(&due, "x"), square(&due, "w")};
    const uint32_t target = build_tensor(builder, "target", DTYPE_U32, ROLE_INPUT, 1, &rows);
    const uint32_t logits = build_linear(builder, of[0], of[1]);
    const uint32_t loss = build_cross_entropy_rows(builder, logits, target);
    uint32_t gradients[2];

    due_choose(&due, build_mean(builder, build_map(builder, MAP_EXP, loss)));
    const uint32_t mean = build_mean(builder, loss);

    build_loss(builder, mean);
    build_gradients(builder, gradients, mean, of, 2);
    build_output(builder, "dx", gradients[0]);
    build_output(builder, "dw", gradients[1]);
    return fused_finish(builder);
}

/* Steps in which the figure is due, and others; the first is none. */
static void give(struct machine *machine, const struct tape *tape)
{
    float table[STEPS];
    const uint32_t step = 0;

    fused_give(machine, tape, SORT_PLAIN);
    for (int i = 0; i < STEPS; i++) {
        table[i] = i % 3 == 1 ? 1.0f : 0.0f;
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (strcmp(tape->tensors[id].name, "due") == 0) {
            assert_int_equal(machine->backend->write(machine, id, table, NULL), STATUS_OK);
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;

        if (tape->tensors[id].dtype == DTYPE_U32) {
            assert_int_equal(machine->backend->write(machine, id, &step, NULL), STATUS_OK);
        }
    }
}

static void hold(struct tape *tape, const char *what)
{
    struct machine *rules = fused_rules(tape);
    struct machine *fused = fused_open(tape, 0);
    const struct machine_cuda *cuda = (const struct machine_cuda *)fused;
    struct error error;

    error_init(&error);
    if (cuda->lazy_last == 0) {
        fail_msg("%s: nothing is left out", what);
    }
    give(rules, tape);
    give(fused, tape);
    for (int step = 0; step < 6; step++) {
        assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
        assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
        fused_compare(rules, fused, what);
    }
    rules->backend->close(rules);
    fused->backend->close(fused);
    tape_free(tape);
}

static void test_a_quantization_that_is_left_out_serves_nobody_else(void **state)
{
    (void)state;
    fake_device_set(&sound);
    hold(repeated_tape(), "the first of two quantizations is left out");
}

static void test_a_product_is_not_left_out_with_what_reads_it(void **state)
{
    (void)state;
    fake_device_set(&sound);
    hold(epilogue_tape(), "GELU of a product is left out");
}

static void test_a_gradient_does_not_move_to_where_it_is_left_out(void **state)
{
    (void)state;
    fake_device_set(&sound);
    hold(entropy_tape(), "between a loss and its gradient something is left out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_quantization_that_is_left_out_serves_nobody_else),
        cmocka_unit_test(test_a_product_is_not_left_out_with_what_reads_it),
        cmocka_unit_test(test_a_gradient_does_not_move_to_where_it_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
