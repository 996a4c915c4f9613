/*
 * race_test.c - the race detector finds what is planted and is silent where nothing is, and a few
 * whole steps of training on the emulated device give it nothing to say.
 *
 * Each planted kernel (planted.c) is run as it is, and as the twin whose barrier, fence or bound is
 * there. Lanes are planted here, by signals that are given and not awaited. `make racecheck` runs
 * all tests of the emulated device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "tests/race/planted.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

/* ---- kernels -------------------------------------------------------------------- */

struct planted_memory {
    uint32_t words[PLANTED_WORDS] __attribute__((aligned(16)));
    uint32_t before[64]; /* whose place is nobody's */
    uint32_t fresh[PLANTED_WORDS] __attribute__((aligned(16)));
    uint32_t between[64];
    uint32_t tickets[16];
};

static void run_planted(const struct planted *kernel, bool is_sound)
{
    static struct planted_memory *memory;
    struct {
        struct planted_args args;
        uint8_t room[2048]; /* the emulator passes as many bytes as a launch may have */
    } arguments = {.args = {.sound = is_sound}};
    const uint32_t grid[3] = {kernel->grid, 1, 1};

    memory = calloc(1, sizeof(*memory));
    assert_non_null(memory);
    arguments.args.words = memory->words;
    arguments.args.fresh = memory->fresh;
    arguments.args.tickets = memory->tickets;
    fake_device_lend(memory->words, sizeof(memory->words), true);
    fake_device_lend(memory->fresh, sizeof(memory->fresh), false);
    fake_device_lend(memory->tickets, sizeof(memory->tickets), true);
    race_work(0, race_point(), kernel->name);
    emulator_run(kernel->kernel, &arguments, grid, kernel->block, PLANTED_DYNAMIC);
    fake_device_take_back(memory->words);
    fake_device_take_back(memory->fresh);
    fake_device_take_back(memory->tickets);
    free(memory);
}

static void test_planted_faults_are_all_found(void **state)
{
    (void)state;
    race_expect(true);
    for (uint32_t i = 0; i < planted_count; i++) {
        race_forget();
        run_planted(&planted[i], false);
        uint32_t found = 0;

        for (uint32_t at = 0; at < race_fault_count(); at++) {
            found += race_fault_at(at)->kind == planted[i].kind;
            assert_string_equal(race_fault_at(at)->now.kernel, planted[i].name);
        }
        if (found == 0) {
            fail_msg("%s: not found: %s", planted[i].name, race_kind_name(planted[i].kind));
        }
    }
    race_forget();
    race_expect(false);
}

static void test_sound_twins_of_planted_faults_are_passed(void **state)
{
    (void)state;
    race_expect(true);
    for (uint32_t i = 0; i < planted_count; i++) {
        race_forget();
        run_planted(&planted[i], true);
        if (race_fault_count() != 0) {
            fail_msg("%s: '%s' was found in the twin", planted[i].name,
                     race_kind_name(race_fault_at(0)->kind));
        }
    }
    race_expect(false);
}

/* ---- lanes ------------------------------------------------------------------------ */

/* How often a lane's fill and another's copy of it are unordered. */
static uint32_t faults_of_lanes(bool signal, bool await, bool wait)
{
    const struct device_calls *calls = fake_device_calls();
    struct device_facts facts;
    struct device *device;
    void *memory[2];
    uint32_t count;

    fake_device_set(&sound);
    race_expect(true);
    race_forget();
    assert_int_equal(calls->open(&device, &facts, 0), DEVICE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls->allocate(device, &memory[i], 256), DEVICE_OK);
    }
    assert_int_equal(calls->fill(device, memory[0], 1, 256), DEVICE_OK);
    if (signal) {
        assert_int_equal(calls->signal(device, 0), DEVICE_OK);
    }
    if (wait) {
        assert_int_equal(calls->wait(device), DEVICE_OK);
    }
    calls->lane(device, 1);
    if (await) {
        assert_int_equal(calls->await(device, 0), DEVICE_OK);
    }
    assert_int_equal(calls->copy(device, memory[1], memory[0], 256), DEVICE_OK);
    count = race_fault_count();
    for (int i = 0; i < 2; i++) {
        calls->release(device, memory[i]);
    }
    calls->close(device);
    race_forget();
    race_expect(false);
    return count;
}

static void test_lanes_are_ordered_by_signals_and_waits_alone(void **state)
{
    (void)state;
    assert_int_equal(faults_of_lanes(true, true, false), 0);
    assert_int_equal(faults_of_lanes(false, false, true), 0);
    assert_true(faults_of_lanes(true, false, false) > 0);
    assert_true(faults_of_lanes(false, false, false) > 0);
    assert_true(faults_of_lanes(false, true, false) > 0); /* without a signal */
}

/* ---- steps ------------------------------------------------------------------------ */

static void run_steps(enum model_kind kind, uint32_t disabled, int32_t capability)
{
    const struct fake_device_switches switches = {.capability = capability};
    struct machine_options options = {.trace = false};
    struct cuda_config config = {.calls = fake_device_calls(), .disabled = disabled};
    struct model_options model;
    struct small_model small;
    struct machine *machine = NULL;
    struct start start;
    struct error error;

    fake_device_set(&switches);
    error_init(&error);
    small_model_options(&model, kind);
    small_model_open(&small, &model);
    start_model(&start, &small);
    start_must(machine_cuda_open(&machine, start.tape, &options, &config, &error), &error);
    start_must(start_give(machine, &start, &error), &error);
    /* The second is recorded. */
    for (int step = 0; step < 2; step++) {
        start_must(machine->backend->step(machine, NULL, &error), &error);
    }
    machine->backend->close(machine);
    start_release(&start);
    small_model_close(&small);
}

static void test_steps_of_training_have_no_races(void **state)
{
    const uint64_t before = race_looked_at();

    (void)state;
    run_steps(MODEL_GPT2, 0, 80);
    run_steps(MODEL_LLAMA, 0, 90);
    assert_int_equal(race_fault_count(), 0);
    assert_true(race_looked_at() - before > 1000000); /* it did look */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_faults_are_all_found),
        cmocka_unit_test(test_sound_twins_of_planted_faults_are_passed),
        cmocka_unit_test(test_lanes_are_ordered_by_signals_and_waits_alone),
        cmocka_unit_test(test_steps_of_training_have_no_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
