/*
 * Goal: the root of a machine's state is that of its bytes, also where the root of what no step
 * changes is not searched again. Method: states that stay beside one that moves; after each step,
 * and after other bytes are written, the root is that of a machine that was given these bytes.
 */
#include <math.h>
#include <string.h>

#include "engine/tape/builder.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_no_step_changes_keeps_its_root_until_it_is_written),
    };

    return cmocka_run_group_tests_name("state root", tests, NULL, NULL);
}
