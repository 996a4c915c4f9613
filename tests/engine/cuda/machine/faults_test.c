/*
 * faults_test.c - any call of a device may fail, and no verdict is wrong because of it.
 *
 * Every use that the programs make of a device (steps queued, recorded and replayed; a trace;
 * ranges and slices; a split; roots and the search for numbers that are not finite; opening and
 * closing) is repeated, each time with the next of its calls failing: once, once for want of
 * memory, or it and all after it, as when a device is lost. The use must end with STATUS_DEVICE or
 * STATUS_NO_MEMORY and a sentence, or reach the very digest of an undisturbed use: never another
 * one, and never a job that diverged. Nothing may be left behind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/machine/machine_sliced.h"
#include "engine/machine/machine_split.h"
#include "engine/ops/real.h"
#include "proofs/commit/trace.h"
#include "proofs/hash/sha256.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

static enum status open_on_fake(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    struct cuda_config config = {.calls = fake_device_calls(), .ordinal = (int)options->device};

    return machine_cuda_open(machine, tape, options, &config, error);
}

/* What a use found: equal uses have equal outcomes. */
struct outcome {
    struct digest roots[2];
    float loss;
    bool diverged;
};

/* ---- uses ------------------------------------------------------------------------ */

static enum status look(struct outcome *outcome, struct machine *machine, struct error *error)
{
    const struct tape *tape = machine->tape;

    TRY(state_root_of(&outcome->roots[0], machine, error));
    if (tape->loss != TENSOR_NONE) {
        TRY(machine->backend->read(machine, tape->loss, &outcome->loss, error));
    }
    return machine->backend->diverged(machine, &outcome->diverged, error);
}

/* Three steps: queued, recorded, replayed. */
static enum status use_steps(struct outcome *outcome, const struct start *start,
                             const struct machine_options *options, struct error *error)
{
    struct machine *machine = NULL;
    enum status status;

    TRY(machine_open(&machine, start->tape, options, error));
    TRY_OUT(start_give(machine, start, error));
    for (int i = 0; i < 3; i++) {
        TRY_OUT(machine->backend->step(machine, NULL, error));
    }
    status = look(outcome, machine, error);
out:
    machine->backend->close(machine);
    return status;
}

static enum status use_trace(struct outcome *outcome, const struct start *start,
                             const struct machine_options *options, struct error *error)
{
    struct machine_options own = *options;
    struct machine *machine = NULL;
    struct trace trace;
    enum status status;

    own.trace = true;
    TRY(machine_open(&machine, start->tape, &own, error));
    TRY_OUT(start_give(machine, start, error));
    TRY_OUT(trace_run(&trace, machine, NULL, 0, error));
    outcome->roots[1] = trace.root;
    trace_release(&trace);
    status = look(outcome, machine, error);
out:
    machine->backend->close(machine);
    return status;
}

/* ---- each call in turn -------------------------------------------------------------- */

static bool same(const struct outcome *a, const struct outcome *b)
{
    return digest_equal(&a->roots[0], &b->roots[0]) && digest_equal(&a->roots[1], &b->roots[1]) &&
           real_to_bits(a->loss) == real_to_bits(b->loss) && a->diverged == b->diverged;
}

static void hold_call(enum status (*use)(struct outcome *, const struct start *,
                                         const struct machine_options *, struct error *),
                      const struct start *start, const struct machine_options *options,
                      const struct outcome *expected, const struct fake_device_switches *switches,
                      const char *what)
{
    struct outcome outcome = {.diverged = false};
    struct error error;
    enum status status;

    fake_device_set(switches);
    error_init(&error);
    status = use(&outcome, start, options, &error);
    if (status == STATUS_OK
            ? !same(&outcome, expected)
            : (status != STATUS_DEVICE && status != STATUS_NO_MEMORY) || error.text[0] == '\0') {
        fail_msg("%s, call %llu: status %d: %s", what, (unsigned long long)switches->fail_at,
                 (int)status, status == STATUS_OK ? "another outcome" : error.text);
    }
    if (fake_device_leftovers() != 0) {
        fail_msg("%s, call %llu: %llu things are left", what, (unsigned long long)switches->fail_at,
                 (unsigned long long)fake_device_leftovers());
    }
}

/* calls_max: of how many calls at the most, evenly, each is tried. */
static void hold_use(enum status (*use)(struct outcome *, const struct start *,
                                        const struct machine_options *, struct error *),
                     const struct machine_options *options, uint64_t calls_max, const char *what)
{
    static const struct fake_device_switches kinds[3] = {
        {.result = DEVICE_FAILED},
        {.result = DEVICE_NO_MEMORY},
        {.result = DEVICE_FAILED, .for_good = true}};
    struct tape *tape = random_tape(5, 3);
    struct outcome expected = {.diverged = false};
    struct start start;
    struct error error;
    uint64_t calls;

    start_random(&start, tape, 5);
    fake_device_set(&sound);
    error_init(&error);
    start_must(use(&expected, &start, options, &error), &error);
    assert_false(expected.diverged);
    calls = fake_device_call_count();
    assert_true(calls > 40);
    for (uint64_t k = 1; k <= calls; k += 1 + calls / calls_max) {
        for (int kind = 0; kind < 3; kind++) {
            struct fake_device_switches switches = kinds[kind];

            switches.fail_at = k;
            hold_call(use, &start, options, &expected, &switches, what);
        }
    }
    fake_device_set(&sound);
    start_release(&start);
    tape_free(tape);
}

static void test_any_call_of_a_step_may_fail(void **state)
{
    struct backend fake = backend_cuda;
    const struct machine_options options = {.backend = &fake};

    (void)state;
    fake.open = open_on_fake;
    hold_use(use_steps, &options, test_share(100000, 1000), "steps");
}

static void test_any_call_of_a_trace_may_fail(void **state)
{
    struct backend fake = backend_cuda;
    const struct machine_options options = {.backend = &fake};

    (void)state;
    fake.open = open_on_fake;
    hold_use(use_trace, &options, test_share(100000, 1000), "a trace");
}

/* Ranges and slices, whose machines come and go. */
static void test_any_call_of_a_step_in_parts_may_fail(void **state)
{
    struct backend fake = backend_cuda;
    const struct machine_options options = {
        .backend = &fake, .isa = isa_best(), .thread_count = 1, .device_memory = 6000};

    (void)state;
    fake.open = open_on_fake;
    hold_use(use_steps, &options, test_share(100000, 60), "steps in parts");
    hold_use(use_trace, &options, test_share(100000, 60), "a trace in parts");
}

static void test_any_call_of_a_split_step_may_fail(void **state)
{
    struct backend fake = backend_cuda;
    const struct machine_options options = {.backend = &fake, .device_count = 2, .devices = {0, 1}};

    (void)state;
    fake.open = open_on_fake;
    hold_use(use_steps, &options, test_share(100000, 100), "a split step");
    hold_use(use_trace, &options, test_share(100000, 50), "a split trace");
}

/* A device that fails at the search for numbers that are not finite has found none. */
static void test_a_failed_search_is_no_divergence(void **state)
{
    struct backend fake = backend_cuda;
    const struct machine_options options = {.backend = &fake};
    struct tape *tape = random_tape(5, 3);
    struct machine *machine = NULL;
    struct start start;
    struct error error;
    uint64_t calls;

    (void)state;
    fake.open = open_on_fake;
    fake_device_set(&sound);
    error_init(&error);
    start_random(&start, tape, 5);
    start_must(machine_open(&machine, tape, &options, &error), &error);
    start_must(start_give(machine, &start, &error), &error);
    fake_device_set(&sound);
    bool diverged = true;

    start_must(machine->backend->diverged(machine, &diverged, &error), &error);
    assert_false(diverged);
    calls = fake_device_call_count();
    for (uint64_t k = 1; k <= calls; k++) {
        const struct fake_device_switches switches = {.fail_at = k, .result = DEVICE_FAILED};

        fake_device_set(&switches);
        assert_int_equal(machine->backend->diverged(machine, &diverged, &error), STATUS_DEVICE);
    }
    fake_device_set(&sound);
    machine->backend->close(machine);
    start_release(&start);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_call_of_a_step_may_fail),
        cmocka_unit_test(test_any_call_of_a_trace_may_fail),
        cmocka_unit_test(test_any_call_of_a_step_in_parts_may_fail),
        cmocka_unit_test(test_any_call_of_a_split_step_may_fail),
        cmocka_unit_test(test_a_failed_search_is_no_divergence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
