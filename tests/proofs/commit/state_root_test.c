/*
 * Goal: the root of a machine's state is that of its bytes, also where the root of what no step
 * changes is not searched again, and where it is found beside the next step. Method: states that
 * stay beside one that moves; after each step, and after other bytes are written, the root is that
 * of a machine that was given these bytes. Beside steps: any number of helpers, steps and writes in
 * between.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder.h"
#include "proofs/commit/state_pieces.h"
#include "proofs/commit/state_root.h"
#include "tests/support/test.h"

enum {
    STATES = 5,
    MOVES = 2, /* the third state; pieces of others stand before and behind its own */
    MOST = 70000,
};

static const uint64_t lengths[STATES] = {3, MOST, 66000, 65536, 1};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static struct tape *make_tape(void)
{
    static const char *const names[STATES] = {"a", "b", "c", "d", "e"};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    struct error error;
    uint32_t ids[STATES];

    error_init(&error);
    assert_non_null(builder);
    (void)build_step(builder);
    for (int i = 0; i < STATES; i++) {
        ids[i] = build_tensor(builder, names[i], DTYPE_F32, ROLE_STATE, 1, &lengths[i]);
    }
    build_after(builder, ids[MOVES], build_add(builder, ids[MOVES], ids[MOVES], 1));
    check(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static struct machine *open_machine(const struct tape *tape, int threads)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = threads};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    check(backend_cpu.open(&machine, tape, &options, &error), &error);
    return machine;
}

static void write_state(struct machine *machine, uint32_t state, float value)
{
    static float bytes[MOST];
    const uint32_t id = machine->tape->states[state].before;
    struct error error;

    error_init(&error);
    for (uint64_t i = 0; i < machine->tape->tensors[id].count; i++) {
        bytes[i] = value * (float)(i + 1);
    }
    check(machine->backend->write(machine, id, bytes, &error), &error);
}

/* Of a machine that was just given the other's bytes. */
static struct digest expected_root(bool *finite, struct machine *machine)
{
    struct machine *fresh = open_machine(machine->tape, 1);
    struct digest root;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < machine->tape->state_count; i++) {
        const uint32_t id = machine->tape->states[i].before;

        check(fresh->backend->write(fresh, id, machine->backend->peek(machine, id), &error),
              &error);
    }
    check(state_root_find(&root, finite, fresh, 1, &error), &error);
    fresh->backend->close(fresh);
    return root;
}

static void compare_roots(struct machine *machine, int threads, bool wanted)
{
    bool finite[2];
    struct digest found;
    struct digest expected = expected_root(&finite[0], machine);
    struct error error;

    error_init(&error);
    check(state_root_find(&found, &finite[1], machine, threads, &error), &error);
    assert_memory_equal(found.bytes, expected.bytes, DIGEST_SIZE);
    assert_int_equal(finite[0], wanted);
    assert_int_equal(finite[1], wanted);
}

static void play_steps(int threads)
{
    struct tape *tape = make_tape();
    struct machine *machine = open_machine(tape, threads);
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (tape->tensors[tape->states[i].before].dtype == DTYPE_F32) {
            write_state(machine, i, 0.001f * (float)(i + 1));
        }
    }
    for (int step = 0; step < 3; step++) {
        check(machine->backend->step(machine, NULL, &error), &error);
        compare_roots(machine, threads, true);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (tape->tensors[tape->states[i].before].dtype != DTYPE_F32) {
            continue;
        }
        write_state(machine, i, 0.5f);
        compare_roots(machine, threads, true);
        write_state(machine, i, INFINITY);
        compare_roots(machine, threads, false);
        check(machine->backend->step(machine, NULL, &error), &error);
        compare_roots(machine, threads, false);
        write_state(machine, i, 0.25f);
        compare_roots(machine, threads, true);
    }
    machine->backend->close(machine);
    tape_free(tape);
}

static void test_what_no_step_changes_keeps_its_root_until_it_is_written(void **state)
{
    (void)state;
    play_steps(1);
    play_steps(3);
}

/* ---- beside a step ---------------------------------------------------------- */

enum {
    WIDE = 6,            /* states that all move */
    WIDE_COUNT = 300000, /* elements: five pieces each */
    BESIDE_STEPS = 4,
};

/* Every `every`-th state is scaled where it lies, of 0 none; the others are added and copied at the
 * step's end. */
static struct tape *make_wide_tape(int every)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    const uint64_t length = WIDE_COUNT;
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    assert_non_null(builder);
    (void)build_step(builder);
    for (int i = 0; i < WIDE; i++) {
        char name[8];
        uint32_t id;

        (void)snprintf(name, sizeof(name), "s%d", i);
        id = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, 1, &length);
        build_after(builder, id,
                    every != 0 && i % every == 0 ? build_scale(builder, id, 0.75f)
                                                 : build_add(builder, id, id, 1));
    }
    check(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static void write_wide(struct machine *machine, uint32_t state, float value)
{
    float *bytes = malloc(WIDE_COUNT * sizeof(*bytes));
    struct error error;

    error_init(&error);
    assert_non_null(bytes);
    for (int i = 0; i < WIDE_COUNT; i++) {
        bytes[i] = value * (float)(i % 1000 + 1);
    }
    check(machine->backend->write(machine, machine->tape->states[state].before, bytes, &error),
          &error);
    free(bytes);
}

/* Of the machine's states as they are now, hashed beside what `between` does. */
static void compare_beside(struct machine *machine, int helpers,
                           void (*between)(struct machine *machine), bool wanted)
{
    struct state_pieces *pieces = NULL;
    struct digest expected;
    struct digest found;
    struct error error;
    bool finite[2];

    error_init(&error);
    check(state_root_find(&expected, &finite[0], machine, 1, &error), &error);
    check(state_pieces_new(&pieces, machine, 1, &error), &error);
    assert_non_null(pieces);
    state_pieces_start(pieces, helpers);
    between(machine);
    check(state_pieces_finish(&found, &finite[1], pieces), &error);
    state_pieces_free(pieces);
    assert_null(machine->guard.context);
    assert_memory_equal(found.bytes, expected.bytes, DIGEST_SIZE);
    assert_int_equal(finite[0], wanted);
    assert_int_equal(finite[1], wanted);
}

static void between_nothing(struct machine *machine)
{
    (void)machine;
}

static void between_step(struct machine *machine)
{
    struct error error;

    error_init(&error);
    check(machine->backend->step(machine, NULL, &error), &error);
}

static void between_steps(struct machine *machine)
{
    between_step(machine);
    between_step(machine);
}

static void between_write(struct machine *machine)
{
    write_wide(machine, WIDE, 0.75f); /* the last; the step's number is the first */
}

static void play_beside(int every)
{
    void (*const betweens[])(struct machine *) = {between_nothing, between_step, between_steps,
                                                  between_write};
    struct tape *tape = make_wide_tape(every);

    for (int helpers = 0; helpers <= 3; helpers++) {
        for (size_t i = 0; i < sizeof(betweens) / sizeof(betweens[0]); i++) {
            struct machine *machine = open_machine(tape, 1);

            for (uint32_t wide = 1; wide <= WIDE; wide++) {
                write_wide(machine, wide, 0.001f * (float)wide);
            }
            for (int step = 0; step < BESIDE_STEPS; step++) {
                compare_beside(machine, helpers, betweens[i], true);
            }
            write_wide(machine, 2, INFINITY);
            compare_beside(machine, helpers, betweens[i], false);
            machine->backend->close(machine);
        }
    }
    tape_free(tape);
}

static void test_a_root_found_beside_steps_is_that_of_before(void **state)
{
    (void)state;
    play_beside(2);
    play_beside(0); /* nothing is overwritten before the step's end */
}

/* A hash that nobody waits for ends before the machine may be closed. */
static void test_a_hash_may_be_dropped(void **state)
{
    struct tape *tape = make_wide_tape(2);
    struct machine *machine = open_machine(tape, 1);
    struct state_pieces *pieces = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    check(state_pieces_new(&pieces, machine, 1, &error), &error);
    state_pieces_start(pieces, 2);
    state_pieces_free(pieces);
    assert_null(machine->guard.context);
    assert_null(machine->guard.before_write);
    between_step(machine);
    machine->backend->close(machine);
    tape_free(tape);
}

/* By the two calls that a prover makes. */
static void test_a_machine_that_leaves_a_core_idle_hashes_beside_its_steps(void **state)
{
    struct tape *tape = make_wide_tape(2);
    struct machine *machine = open_machine(tape, 1);
    struct digest expected;
    struct digest found;
    struct error error;
    uint64_t waited = UINT64_MAX;
    bool finite;

    (void)state;
    error_init(&error);
    assert_false(state_root_can_overlap(machine, 0));
    assert_false(state_root_can_overlap(machine, omp_get_num_procs()));
    assert_int_equal(state_root_can_overlap(machine, 1), omp_get_num_procs() > 1);
    check(state_root_find(&expected, &finite, machine, 1, &error), &error);
    check(state_root_begin(machine, 1, &error), &error);
    between_step(machine);
    check(state_root_end(&found, &finite, &waited, machine, &error), &error);
    assert_memory_equal(found.bytes, expected.bytes, DIGEST_SIZE);
    assert_true(finite);
    assert_true(waited != UINT64_MAX);
    machine->backend->close(machine);
    tape_free(tape);
}

/* A few bytes are hashed before another thread would wake up. */
static void test_a_small_state_is_not_hashed_beside_a_step(void **state)
{
    struct tape *tape = make_tape();
    struct machine *machine = open_machine(tape, 1);

    (void)state;
    assert_false(state_root_can_overlap(machine, 1));
    machine->backend->close(machine);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_no_step_changes_keeps_its_root_until_it_is_written),
        cmocka_unit_test(test_a_root_found_beside_steps_is_that_of_before),
        cmocka_unit_test(test_a_hash_may_be_dropped),
        cmocka_unit_test(test_a_machine_that_leaves_a_core_idle_hashes_beside_its_steps),
        cmocka_unit_test(test_a_small_state_is_not_hashed_beside_a_step),
    };

    return cmocka_run_group_tests_name("state root", tests, NULL, NULL);
}
