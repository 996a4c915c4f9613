/*
 * overlap_test.c - states are hashed beside the next step, and the roots are those of the state
 * before it.
 *
 * The emulated device runs queued work only when something waits for it, and its lanes take turns
 * at random, as far as signals allow. Over many seeds a root that is read too early, or a state
 * that is overwritten too soon, shows; a device that is deaf to signals proves that it would.
 * Steps, writes and reads come between the halves; tensors that are no states too.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "proofs/commit/state_root.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

#define STEPS 5

static const struct fake_device_switches sound;

static struct machine *fake_open(const struct tape *tape)
{
    struct machine_options options = {.trace = false};
    struct cuda_config config = {.calls = fake_device_calls()};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    start_must(machine_cuda_open(&machine, tape, &options, &config, &error), &error);
    return machine;
}

static void expected_roots(struct digest roots[STEPS], const struct start *start)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    start_must(backend_cpu.open(&machine, start->tape, &options, &error), &error);
    start_must(start_give(machine, start, &error), &error);
    for (int i = 0; i < STEPS; i++) {
        start_must(backend_cpu.step(machine, NULL, &error), &error);
        start_must(state_root_of(&roots[i], machine, &error), &error);
    }
    backend_cpu.close(machine);
}

/* How many of the roots, found beside the step that follows, are wrong. */
static uint32_t wrong_roots(const struct start *start, const struct digest expected[STEPS],
                            const struct fake_device_switches *switches)
{
    struct machine *machine;
    struct error error;
    uint32_t wrong = 0;

    fake_device_set(switches);
    error_init(&error);
    machine = fake_open(start->tape);
    start_must(start_give(machine, start, &error), &error);
    start_must(machine->backend->step(machine, NULL, &error), &error);
    for (int i = 0; i < STEPS; i++) {
        struct digest root;
        uint64_t waited;
        bool finite;

        start_must(state_root_begin(machine, 1, &error), &error);
        if (i + 1 < STEPS) {
            start_must(machine->backend->step(machine, NULL, &error), &error);
        }
        start_must(state_root_end(&root, &finite, &waited, machine, &error), &error);
        wrong += !digest_equal(&root, &expected[i]);
    }
    machine->backend->close(machine);
    assert_int_equal(fake_device_leftovers(), 0);
    return wrong;
}

static void hold(const struct start *start, uint64_t seeds, uint32_t *found_deaf)
{
    struct digest expected[STEPS];

    expected_roots(expected, start);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct fake_device_switches switches = {.seed = seed};

        assert_int_equal(wrong_roots(start, expected, &switches), 0);
        switches.deaf = true;
        *found_deaf += wrong_roots(start, expected, &switches) > 0;
    }
    fake_device_set(&sound);
}

static void test_roots_beside_steps_are_those_of_the_state_before(void **state)
{
    const uint64_t count = test_share(300, 24);
    uint32_t found_deaf = 0;

    (void)state;
    for (uint64_t tape_seed = 0; tape_seed < count; tape_seed++) {
        struct tape *tape = random_tape(tape_seed, 3 + (uint32_t)(tape_seed % 7));
        struct start start;

        start_random(&start, tape, tape_seed);
        hold(&start, 3, &found_deaf);
        start_release(&start);
        tape_free(tape);
    }
    /* Without signals it must go wrong, or the test would prove nothing. */
    assert_true(found_deaf > count / 2);
}

static void test_a_model_trains_and_is_hashed_at_once(void **state)
{
    struct model_options options;
    struct small_model small;
    struct start start;
    uint32_t found_deaf = 0;

    (void)state;
    small_model_options(&options, MODEL_MLP);
    small_model_open(&small, &options);
    start_model(&start, &small);
    hold(&start, 2, &found_deaf);
    assert_true(found_deaf > 0);
    start_release(&start);
    small_model_close(&small);
}

/* A write, and tensors that a step makes, wait for the hashing too. */
static void test_what_is_hashed_is_not_written(void **state)
{
    struct tape *tape = random_tape(4, 6);
    const uint32_t id = tape->states[0].before;
    struct start start;
    struct error error;

    (void)state;
    assert_true(tape->loss != TENSOR_NONE);
    start_random(&start, tape, 4);
    for (uint64_t seed = 1; seed < 12; seed++) {
        const struct fake_device_switches switches = {.seed = seed};
        const uint32_t tensors[2] = {id, tape->loss};
        struct machine *machine;
        struct digest expected[2];
        struct digest got[2];
        uint8_t *ones = malloc(start_size(tape, id));
        bool diverged;

        fake_device_set(&switches);
        error_init(&error);
        machine = fake_open(tape);
        start_must(start_give(machine, &start, &error), &error);
        start_must(machine->backend->step(machine, NULL, &error), &error);
        start_must(machine->backend->leaves_roots(machine, expected, tensors, 2, &error), &error);
        start_must(machine->backend->hash_begin(machine, tensors, 2, &error), &error);
        /* One at a time. */
        assert_int_equal(machine->backend->hash_begin(machine, tensors, 2, &error), STATUS_USAGE);
        memset(ones, 1, start_size(tape, id));
        if (seed % 2 == 0) {
            start_must(machine->backend->write(machine, id, ones, &error), &error);
        }
        start_must(machine->backend->step(machine, NULL, &error), &error);
        start_must(machine->backend->hash_end(machine, got, &diverged, &error), &error);
        assert_memory_equal(got, expected, sizeof(got));
        machine->backend->close(machine);
        free(ones);
    }
    fake_device_set(&sound);
    start_release(&start);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roots_beside_steps_are_those_of_the_state_before),
        cmocka_unit_test(test_a_model_trains_and_is_hashed_at_once),
        cmocka_unit_test(test_what_is_hashed_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
