/*
 * range_test.c - any range of a step's operations, run alone from its inputs, makes what the whole
 * step makes: on the CPU, and on the CUDA backend over a fake device. Two ranges may run on two
 * machines, the second with the outputs of the first.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/plan/range.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

struct whole {
    struct small_model small;
    const struct tape *tape;
    void **values; /* per tensor of the whole tape */
};

static uint64_t size_of(const struct tape *tape, uint32_t id)
{
    return tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);
}

static void keep_bytes(struct whole *whole, uint32_t id, const void *bytes)
{
    whole->values[id] = malloc(size_of(whole->tape, id));
    assert_non_null(whole->values[id]);
    memcpy(whole->values[id], bytes, size_of(whole->tape, id));
}

static enum status keep(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error)
{
    struct whole *whole = context;

    (void)size;
    (void)error;
    keep_bytes(whole, whole->tape->ops[maker.op].outputs[output], bytes);
    return STATUS_OK;
}

static void whole_open(struct whole *whole, enum model_kind kind)
{
    struct observer observer = {.made = keep, .context = whole};
    struct model_options options;
    struct machine *machine;
    struct error error;

    error_init(&error);
    small_model_options(&options, kind);
    small_model_open(&whole->small, &options);
    whole->tape = whole->small.model.tape;
    whole->values = calloc((size_t)whole->tape->tensor_count + 1, sizeof(*whole->values));
    machine = small_machine_open(&whole->small, ISA_SCALAR, 2, true);
    for (uint32_t id = 0; id < whole->tape->tensor_count; id++) {
        if (whole->tape->tensors[id].role == ROLE_DATA) {
            keep_bytes(whole, id,
                       id == whole->small.model.data ? whole->small.data : whole->small.labels);
        } else if (!role_is_made(whole->tape->tensors[id].role)) {
            keep_bytes(whole, id, backend_cpu.peek(machine, id));
        }
    }
    assert_int_equal(backend_cpu.step(machine, &observer, &error), STATUS_OK);
    backend_cpu.close(machine);
}

static void whole_close(struct whole *whole)
{
    for (uint32_t id = 0; id < whole->tape->tensor_count; id++) {
        free(whole->values[id]);
    }
    free(whole->values);
    small_model_close(&whole->small);
}

static void hold_range(const struct whole *whole, uint32_t first, uint32_t last, bool on_fake)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 2, .trace = true};
    struct cuda_config config = {.calls = fake_device_calls()};
    struct machine *machine = NULL;
    struct range range;
    struct error error;

    error_init(&error);
    assert_int_equal(range_build(&range, whole->tape, first, last, &error), STATUS_OK);
    assert_int_equal(on_fake ? machine_cuda_open(&machine, range.tape, &options, &config, &error)
                             : backend_cpu.open(&machine, range.tape, &options, &error),
                     STATUS_OK);
    for (uint32_t i = 0; i < range.given_count; i++) {
        uint32_t id = range.ids[range.given[i]];
        bool data = range.tape->tensors[id].role == ROLE_DATA;

        assert_int_equal((data ? machine->backend->bind : machine->backend->write)(
                             machine, id, whole->values[range.given[i]], &error),
                         STATUS_OK);
    }
    assert_int_equal(machine->backend->step(machine, NULL, &error), STATUS_OK);
    for (uint32_t i = 0; i < range.made_count; i++) {
        uint32_t id = range.made[i];
        uint8_t *bytes = malloc(size_of(whole->tape, id));

        assert_int_equal(machine->backend->read(machine, range.ids[id], bytes, &error), STATUS_OK);
        if (memcmp(bytes, whole->values[id], size_of(whole->tape, id)) != 0) {
            fail_msg("operations %u to %u (%s): tensor %u '%s' differs", first, last,
                     op_kind_name(whole->tape->ops[first].kind), id, whole->tape->tensors[id].name);
        }
        free(bytes);
    }
    machine->backend->close(machine);
    range_release(&range);
}

static void test_ranges_make_what_the_whole_step_makes(void **state)
{
    const struct fake_device_switches sound = {0};

    (void)state;
    fake_device_set(&sound);
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct whole whole;
        uint32_t count;

        whole_open(&whole, (enum model_kind)kind);
        count = whole.tape->op_count;
        for (uint32_t length = 1; length < count; length = length * 5 + 2) {
            for (uint32_t first = 0; first < count; first += length) {
                uint32_t last = first + length < count ? first + length : count;

                hold_range(&whole, first, last, false);
            }
        }
        hold_range(&whole, 0, count / 2, true);
        hold_range(&whole, count / 2, count, true);
        hold_range(&whole, count / 3, count / 3 + 1, true);
        whole_close(&whole);
    }
}

static void test_ranges_that_are_none_are_refused(void **state)
{
    struct whole whole;
    struct range range;
    struct error error;

    (void)state;
    error_init(&error);
    whole_open(&whole, MODEL_MLP);
    assert_int_equal(range_build(&range, whole.tape, 3, 3, &error), STATUS_USAGE);
    assert_int_equal(range_build(&range, whole.tape, 0, UINT32_MAX, &error), STATUS_USAGE);
    whole_close(&whole);
}

static void test_ranges_that_fit_cover_the_step_and_stay_within(void **state)
{
    struct whole whole;
    uint32_t ranges = 0;

    (void)state;
    whole_open(&whole, MODEL_GPT2);
    for (uint32_t first = 0; first < whole.tape->op_count; ranges++) {
        uint32_t last = range_fit(whole.tape, first, 200000);
        struct range range;
        uint64_t total = 0;
        struct error error;

        assert_true(last > first && last <= whole.tape->op_count);
        assert_int_equal(range_build(&range, whole.tape, first, last, &error), STATUS_OK);
        for (uint32_t id = 0; id < range.tape->tensor_count; id++) {
            total += size_of(range.tape, id);
        }
        assert_true(total <= 200000 || last == first + 1);
        range_release(&range);
        first = last;
    }
    assert_true(ranges > 2);
    assert_int_equal(range_fit(whole.tape, 0, UINT64_MAX), whole.tape->op_count);
    whole_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_make_what_the_whole_step_makes),
        cmocka_unit_test(test_ranges_that_are_none_are_refused),
        cmocka_unit_test(test_ranges_that_fit_cover_the_step_and_stay_within),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
