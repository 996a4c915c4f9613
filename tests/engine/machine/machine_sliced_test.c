/*
 * machine_sliced_test.c - steps that run by ranges and slices have the bits of whole steps.
 *
 * Small models within a few kilobytes, on the CPU and on the emulated device: states, traces,
 * failures and refusals. Last, the memory of GPT-2 124M is counted.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/machine/machine_sliced.h"
#include "engine/plan/range.h"
#include "proofs/commit/trace.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

#define MIB UINT64_C(1048576)

/* ---- whole steps --------------------------------------------------------------- */

static enum status open_on_fake(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    struct cuda_config config = {.calls = fake_device_calls()};

    return machine_cuda_open(machine, tape, options, &config, error);
}

/*
 * Two traced steps by slices have the roots of whole steps; the second starts where the first
 * ended.
 */
static void hold_options(const struct model_options *wanted, const struct backend *backend,
                         enum isa isa, uint64_t device_memory, uint32_t steps)
{
    enum model_kind kind = wanted->kind;

    const struct machine_options options = {
        .backend = backend, .isa = isa, .thread_count = 1, .device_memory = device_memory};
    struct small_model small;
    struct machine *whole;
    struct machine *sliced = NULL;
    struct machine_sliced_survey survey;
    struct error error;
    bool diverged;

    error_init(&error);
    small_model_open(&small, wanted);
    whole = small_machine_open(&small, ISA_SCALAR, 1, true);
    assert_int_equal(machine_sliced_open(&sliced, small.model.tape, &options, &error), STATUS_OK);
    assert_int_equal(machine_sliced_survey(&survey, small.model.tape, &options, &error), STATUS_OK);
    if (survey.device_size > device_memory || survey.ranges < 2 ||
        (device_memory <= 60000 && survey.slices <= survey.cut)) {
        fail_msg("%s within %llu bytes: %llu taken, %u operations cut into %u slices, %u left",
                 model_kind_name(kind), (unsigned long long)device_memory,
                 (unsigned long long)survey.device_size, survey.cut, survey.slices, survey.left);
    }
    small_machine_give(sliced, &small);
    for (uint32_t step = 0; step < steps; step++) {
        struct trace expected;
        struct trace got;

        assert_int_equal(trace_watch_all(&expected, whole, NULL, &error), STATUS_OK);
        if (trace_watch_all(&got, sliced, NULL, &error) != STATUS_OK) {
            fail_msg("%s: %s", model_kind_name(kind), error.text);
        }
        assert_memory_equal(expected.items, got.items, expected.item_count * sizeof(*got.items));
        assert_true(digest_equal(&expected.next_root, &got.next_root));
        trace_release(&expected);
        trace_release(&got);
    }
    assert_int_equal(sliced->backend->diverged(sliced, &diverged, &error), STATUS_OK);
    assert_false(diverged);
    whole->backend->close(whole);
    sliced->backend->close(sliced);
    small_model_close(&small);
}

static void hold_model(enum model_kind kind, const struct backend *backend, enum isa isa,
                       uint64_t device_memory, uint32_t steps)
{
    struct model_options options;

    small_model_options(&options, kind);
    hold_options(&options, backend, isa, device_memory, steps);
}

static void test_micro_batches_by_slices_have_the_trace_of_the_whole_step(void **state)
{
    struct model_options options;

    (void)state;
    small_model_options(&options, MODEL_MLP);
    options.accumulate = 4;
    options.group = 2;
    hold_options(&options, &backend_cpu, ISA_SCALAR, 20000, 2);
}

static void test_steps_by_slices_have_the_trace_of_the_whole_step(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        hold_model((enum model_kind)kind, &backend_cpu, ISA_SCALAR, 20000, 2);
        hold_model((enum model_kind)kind, &backend_cpu, ISA_SCALAR, 3000, 1);
        hold_model((enum model_kind)kind, &backend_cpu, isa_best(), 400000, 1);
    }
}

static void test_steps_by_slices_run_on_a_device(void **state)
{
    const struct fake_device_switches sound = {0};
    struct backend fake = backend_cuda;

    (void)state;
    fake_device_set(&sound);
    fake.open = open_on_fake;
    hold_model(MODEL_MLP, &fake, isa_best(), 30000, 1);
    hold_model(MODEL_GPT2, &fake, isa_best(), 60000, 1);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* Without a limit in the options, the device says when it is full. */
static void test_a_device_that_is_full_gets_smaller_parts(void **state)
{
    const struct fake_device_switches small_device = {.memory_max = 150000};
    const struct fake_device_switches sound = {0};
    struct backend fake = backend_cuda;
    struct machine_options options = {
        .backend = &fake, .isa = isa_best(), .thread_count = 1, .trace = true};
    struct model_options wanted;
    struct small_model small;
    struct machine *machine = NULL;
    struct machine *whole;
    struct trace expected;
    struct trace got;
    struct error error;

    (void)state;
    error_init(&error);
    fake.open = open_on_fake;
    small_model_options(&wanted, MODEL_MLP);
    small_model_open(&small, &wanted);
    fake_device_set(&small_device);
    assert_int_equal(machine_open(&machine, small.model.tape, &options, &error), STATUS_OK);
    assert_string_equal(machine->backend->name, "sliced");
    small_machine_give(machine, &small);
    whole = small_machine_open(&small, ISA_SCALAR, 1, true);
    assert_int_equal(trace_watch_all(&expected, whole, NULL, &error), STATUS_OK);
    assert_int_equal(trace_watch_all(&got, machine, NULL, &error), STATUS_OK);
    assert_memory_equal(expected.items, got.items, expected.item_count * sizeof(*got.items));
    trace_release(&expected);
    trace_release(&got);
    machine->backend->close(machine);
    /* Without device_memory and without a trace, too little memory is an error. */
    options.trace = false;
    assert_int_equal(machine_open(&machine, small.model.tape, &options, &error), STATUS_NO_MEMORY);
    whole->backend->close(whole);
    fake_device_set(&sound);
    assert_int_equal(fake_device_leftovers(), 0);
    small_model_close(&small);
}

/* ---- failures and refusals -------------------------------------------------------- */

static void test_every_failure_of_the_device_stops_the_step(void **state)
{
    const struct fake_device_switches sound = {0};
    struct backend fake = backend_cuda;
    const struct machine_options options = {
        .backend = &fake, .isa = isa_best(), .thread_count = 1, .device_memory = 60000};
    struct model_options wanted;
    struct small_model small;
    struct machine *machine = NULL;
    struct error error;
    uint64_t calls;

    (void)state;
    error_init(&error);
    fake.open = open_on_fake;
    small_model_options(&wanted, MODEL_MLP);
    small_model_open(&small, &wanted);
    fake_device_set(&sound);
    assert_int_equal(machine_sliced_open(&machine, small.model.tape, &options, &error), STATUS_OK);
    small_machine_give(machine, &small);
    assert_int_equal(machine->backend->step(machine, NULL, &error), STATUS_OK);
    calls = fake_device_call_count();
    assert_true(calls > 200);
    for (uint64_t k = 1; k <= calls; k += 1 + calls / 60) {
        const struct fake_device_switches lost = {
            .fail_at = k, .result = DEVICE_FAILED, .for_good = true};
        enum status status;

        fake_device_set(&lost);
        small_machine_give(machine, &small);
        error_init(&error);
        status = machine->backend->step(machine, NULL, &error);
        /* The last call is the wait of closing. */
        assert_true(status == STATUS_DEVICE || k == calls);
        assert_int_equal(fake_device_leftovers(), 0);
    }
    fake_device_set(&sound);
    machine->backend->close(machine);
    small_model_close(&small);
}

static void test_too_little_memory_is_refused(void **state)
{
    struct machine_options options = {.isa = isa_best(), .memory_max = 1000};
    struct model_options wanted;
    struct small_model small;
    struct machine *machine = NULL;
    struct error error;
    uint8_t word[4] = {0};

    (void)state;
    error_init(&error);
    small_model_options(&wanted, MODEL_MLP);
    small_model_open(&small, &wanted);
    assert_int_equal(machine_sliced_open(&machine, small.model.tape, &options, &error),
                     STATUS_NO_MEMORY);
    assert_non_null(strstr(error.text, "of the host's memory"));
    options.memory_max = 0;
    assert_int_equal(machine_sliced_open(&machine, small.model.tape, &options, &error), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, UINT32_MAX, word, &error), STATUS_USAGE);
    assert_int_equal(machine->backend->read(machine, UINT32_MAX, word, &error), STATUS_USAGE);
    assert_int_equal(machine->backend->bind(machine, small.model.tape->loss, word, &error),
                     STATUS_USAGE);
    assert_int_equal(machine->backend->step(machine, NULL, &error), STATUS_USAGE);
    machine->backend->close(machine);
    small_model_close(&small);
}

/* ---- what it is for ------------------------------------------------------------------ */

static void test_gpt2_124m_fits_one_gibibyte_of_a_device(void **state)
{
    const struct machine_options options = {.backend = &backend_cuda, .device_memory = 1024 * MIB};
    struct model_options wanted;
    struct model model;
    struct machine_sliced_survey step;
    struct error error;
    uint64_t largest = 0;

    (void)state;
    error_init(&error);
    model_options_default(&wanted, MODEL_GPT2);
    wanted.batch = 4;
    wanted.length = wanted.positions = 1024;
    wanted.vocabulary = 50257;
    wanted.layers = wanted.heads = 12;
    wanted.width = 768;
    wanted.hidden = 3072;
    wanted.data_count = 300000000;
    wanted.data_dtype = DTYPE_U16;
    assert_int_equal(model_build(&model, &wanted, &error), STATUS_OK);
    assert_int_equal(machine_sliced_survey(&step, model.tape, &options, &error), STATUS_OK);
    assert_true(step.device_size <= 1024 * MIB);
    assert_true(step.cut > 0 && step.left <= 2);
    print_message("GPT-2 124M, 4 x 1024, by ranges within 1 GiB: %llu MiB of the device, %llu MiB "
                  "of the host, %u ranges, %u operations cut into %u slices, %u left, %llu MiB "
                  "moved\n",
                  (unsigned long long)(step.device_size / MIB),
                  (unsigned long long)(step.host_size / MIB), step.ranges, step.cut, step.slices,
                  step.left, (unsigned long long)(step.moved / MIB));
    for (uint32_t at = 0; at < model.tape->op_count; at++) {
        struct machine_sliced_survey one;
        struct range range;

        assert_int_equal(range_build(&range, model.tape, at, at + 1, &error), STATUS_OK);
        assert_int_equal(machine_sliced_survey(&one, range.tape, &options, &error), STATUS_OK);
        range_release(&range);
        assert_true(one.device_size <= 1024 * MIB);
        largest = one.device_size > largest ? one.device_size : largest;
    }
    assert_true(largest > 512 * MIB);
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_by_slices_have_the_trace_of_the_whole_step),
        cmocka_unit_test(test_micro_batches_by_slices_have_the_trace_of_the_whole_step),
        cmocka_unit_test(test_steps_by_slices_run_on_a_device),
        cmocka_unit_test(test_a_device_that_is_full_gets_smaller_parts),
        cmocka_unit_test(test_every_failure_of_the_device_stops_the_step),
        cmocka_unit_test(test_too_little_memory_is_refused),
        cmocka_unit_test(test_gpt2_124m_fits_one_gibibyte_of_a_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
