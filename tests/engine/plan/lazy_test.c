/*
 * Goal: what a select drops costs nothing where it is dropped, and every state is the same as where
 * all of it is made.
 *
 * Method: a tape with a figure that is due in some steps, whose operations are counted in each
 * step, with and without what lasts from step to step; the same tape on a machine in trace mode,
 * which makes everything. A tape in which nothing can be left out.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/plan/backend.h"
#include "engine/plan/lazy.h"
#include "engine/tape/builder_core.h"
#include "tests/support/test.h"

#define SIDE  16
#define STEPS 8

static const float due[STEPS] = {0.0f, -0.0f, 1.0f, 0.0f, 0x1p-149f, 0.0f, 0.0f, 1.0f};

struct figure {
    struct tape *tape;
    uint32_t table;
    uint32_t w;
    uint32_t data;
    uint32_t figure;
};

/* w moves by itself; the figure is a number of w and of the data, made where it is due, or where it
 * is not (other_side). */
static void build_either(struct figure *figure, bool also_read, bool other_side)
{
    static const uint64_t square[2] = {SIDE, SIDE};
    static const uint64_t rows[2] = {STEPS, 1};
    static const uint64_t one = 1;
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t next;
    uint32_t condition;
    uint32_t mean;

    figure->data = build_tensor(builder, "data", DTYPE_F32, ROLE_DATA, 2, square);
    figure->table = build_tensor(builder, "due", DTYPE_F32, ROLE_CONSTANT, 2, rows);
    figure->w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, square);
    figure->figure = build_tensor(builder, "figure", DTYPE_F32, ROLE_STATE, 1, &one);
    next = build_scale(builder, figure->w, 0.75f);
    build_after(builder, figure->w, next);
    condition = build_schedule(builder, figure->table, 1, 0);
    mean = build_mean(builder, build_linear(builder, next, figure->data));
    build_after(builder, figure->figure,
                other_side ? build_select(builder, condition, figure->figure, mean)
                           : build_select(builder, condition, mean, figure->figure));
    if (also_read) {
        build_output(builder, "mean", mean);
    }
    figure->tape = NULL;
    assert_int_equal(builder_finish(&figure->tape, builder, NULL), STATUS_OK);
    builder_free(builder);
}

static void build(struct figure *figure, bool also_read)
{
    build_either(figure, also_read, false);
}

static void count_op(void *context, uint32_t op, double seconds)
{
    uint32_t *count = context;

    (void)op;
    (void)seconds;
    ++*count;
}

static struct machine *open_machine(const struct figure *figure, struct machine_options options,
                                    const float *values)
{
    struct machine *machine = NULL;
    float nothing = 0.0f;
    uint32_t step = 0;

    options.isa = isa_best();
    options.thread_count = 1;
    assert_int_equal(machine_open(&machine, figure->tape, &options, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, figure->table, due, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, figure->w, values, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, figure->figure, &nothing, NULL), STATUS_OK);
    assert_int_equal(machine->backend->bind(machine, figure->data, values, NULL), STATUS_OK);
    for (uint32_t i = 0; i < figure->tape->state_count; i++) {
        uint32_t id = figure->tape->states[i].before;

        if (figure->tape->tensors[id].dtype == DTYPE_U32) {
            assert_int_equal(machine->backend->write(machine, id, &step, NULL), STATUS_OK);
        }
    }
    return machine;
}

static float read_figure(struct machine *machine, const struct figure *figure)
{
    float value;

    assert_int_equal(machine->backend->read(machine, figure->figure, &value, NULL), STATUS_OK);
    return value;
}

/* hoist: the fast machine keeps what lasts. changes: in which steps the figure is another one. */
static void play_when(const struct figure *figure, bool hoist, bool leaves_out, bool changes)
{
    uint32_t counts[2] = {0, 0};
    struct machine *machines[2];
    float values[SIDE * SIDE];
    uint32_t most = 0;
    float last = 0.0f;

    for (int i = 0; i < SIDE * SIDE; i++) {
        values[i] = 0.001f * (float)(i * 37 % 101 - 20);
    }
    for (int i = 0; i < 2; i++) {
        machines[i] = open_machine(figure,
                                   (struct machine_options){.hoist = hoist && i == 0,
                                                            .trace = i == 1,
                                                            .timed = count_op,
                                                            .timed_context = &counts[i]},
                                   values);
    }
    for (int step = 0; step < STEPS; step++) {
        bool is_due = (due[step] != 0.0f) == changes;
        float now;

        for (int i = 0; i < 2; i++) {
            counts[i] = 0;
            assert_int_equal(machines[i]->backend->step(machines[i], NULL, NULL), STATUS_OK);
        }
        now = read_figure(machines[0], figure);
        assert_true(now == read_figure(machines[1], figure));
        assert_int_equal(now != last, is_due);
        most = counts[0] > most ? counts[0] : most;
        if (leaves_out && !is_due && (step > 0 || !hoist)) {
            assert_int_equal(counts[0], 4); /* step, w, the condition, the choice */
        } else if (!hoist) {
            assert_true(counts[0] > 4);
        }
        last = now;
    }
    assert_true(most > 6);
    for (int i = 0; i < 2; i++) {
        machines[i]->backend->close(machines[i]);
    }
}

static void play(const struct figure *figure, bool hoist, bool leaves_out)
{
    play_when(figure, hoist, leaves_out, true);
}

static void test_what_is_not_due_costs_nothing(void **state)
{
    struct figure figure;

    (void)state;
    build(&figure, false);
    play(&figure, false, true);
    play(&figure, true, true);
    tape_free(figure.tape);
}

static void test_what_is_read_elsewhere_is_made(void **state)
{
    struct figure figure;
    struct lazy lazy;

    (void)state;
    build(&figure, true);
    play(&figure, false, false);
    assert_int_equal(lazy_find(&lazy, figure.tape, NULL), STATUS_OK);
    for (uint32_t at = 0; at < figure.tape->op_count; at++) {
        assert_false(lazy.ops[at]);
    }
    lazy_release(&lazy);
    tape_free(figure.tape);
}

/* A select of zero takes its second side: that one can never be left out. */
static void test_what_is_taken_instead_is_made(void **state)
{
    struct figure figure;

    (void)state;
    build_either(&figure, false, true);
    play_when(&figure, false, false, false);
    play_when(&figure, true, false, false);
    tape_free(figure.tape);
}

static void test_conditions_are_read_as_select_reads_them(void **state)
{
    const struct tensor real = {.dtype = DTYPE_F32, .count = 1};
    const struct tensor whole = {.dtype = DTYPE_U32, .count = 1};
    const struct tensor byte = {.dtype = DTYPE_U8, .count = 1};

    (void)state;
    assert_false(lazy_holds(&real, &(uint32_t){0}));
    assert_false(lazy_holds(&real, &(uint32_t){0x80000000}));
    assert_true(lazy_holds(&real, &(uint32_t){1}));
    assert_true(lazy_holds(&real, &(uint32_t){FLOAT_NAN_BITS}));
    assert_false(lazy_holds(&whole, &(uint32_t){0x80000000}));
    assert_true(lazy_holds(&whole, &(uint32_t){0x80000001}));
    assert_true(lazy_holds(&byte, &(uint8_t){0x80}));
    assert_false(lazy_holds(&byte, &(uint8_t){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_due_costs_nothing),
        cmocka_unit_test(test_what_is_read_elsewhere_is_made),
        cmocka_unit_test(test_what_is_taken_instead_is_made),
        cmocka_unit_test(test_conditions_are_read_as_select_reads_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
