/*
 * backend_test.c - a machine in trace mode shows what its observer wants, with the bits of the
 * rules and in tape order, and nothing else; the step is the same no matter what is wanted. On the
 * CPU with every instruction set, over two devices, in parts, and on the CUDA backend over a fake
 * device; random tapes, and models with micro-batches.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/machine/machine_sliced.h"
#include "engine/plan/backend.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

#define TAPES 8

/* What a step makes by the rules, and an observer's wishes. */
struct wishes {
    const struct tape *tape;
    void **made; /* per tensor */
    uint64_t seed;
    uint32_t share; /* one of so many outputs is wanted; 0: none */
    uint64_t shown;
    uint64_t last; /* the number of the last one */
};

static uint64_t number_of(uint32_t op, uint32_t output)
{
    return (uint64_t)op * OP_OUTPUTS_MAX + output + 1;
}

static bool wants(const void *context, struct op_turn maker, uint32_t output)
{
    const struct wishes *wishes = context;
    uint64_t random = wishes->seed + number_of(maker.op, output);

    return wishes->share != 0 && test_random_below(&random, wishes->share) == 0;
}

static enum status keep(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error)
{
    struct wishes *wishes = context;
    void **made = &wishes->made[wishes->tape->ops[maker.op].outputs[output]];

    (void)error;
    *made = malloc(size);
    assert_non_null(*made);
    memcpy(*made, bytes, size);
    return STATUS_OK;
}

static enum status compare(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                           uint64_t size, struct error *error)
{
    struct wishes *wishes = context;

    (void)error;
    assert_true(wants(wishes, maker, output));
    assert_true(number_of(maker.op, output) > wishes->last);
    assert_memory_equal(bytes, wishes->made[wishes->tape->ops[maker.op].outputs[output]], size);
    wishes->last = number_of(maker.op, output);
    wishes->shown++;
    return STATUS_OK;
}

static uint64_t wanted_count(const struct wishes *wishes)
{
    uint64_t count = 0;

    for (uint32_t at = 0; at < wishes->tape->op_count; at++) {
        for (uint32_t i = 0; i < wishes->tape->ops[at].output_count; i++) {
            count += wants(wishes, (struct op_turn){at, 0}, i);
        }
    }
    return count;
}

/* Two steps from the start, of each of which some is wanted. Closes the machine. */
static void hold(struct machine *machine, struct machine *rules, const struct start *start,
                 struct wishes *wishes, const char *what)
{
    const struct observer observer = {.made = compare, .context = wishes, .wants = wants};
    struct error error;

    error_init(&error);
    start_must(start_give(machine, start, &error), &error);
    for (uint32_t share = 0; share < 4; share++) {
        wishes->seed++;
        wishes->share = share;
        wishes->shown = wishes->last = 0;
        start_must(start_give(machine, start, &error), &error);
        start_must(machine->backend->step(machine, &observer, &error), &error);
        assert_int_equal(wishes->shown, wanted_count(wishes));
        start_compare(rules, machine, what);
    }
    machine->backend->close(machine);
}

static struct machine *must_open(const struct tape *tape, const struct machine_options *options)
{
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    start_must(machine_open(&machine, tape, options, &error), &error);
    return machine;
}

static void hold_all(struct machine *rules, const struct start *start, struct wishes *wishes)
{
    const struct machine_options split = {
        .isa = isa_best(), .thread_count = 1, .trace = true, .device_count = 2};
    const struct machine_options sliced = {
        .isa = isa_best(), .thread_count = 1, .trace = true, .device_memory = 1 << 20};
    const struct machine_options traced = {.trace = true};
    const struct cuda_config config = {.calls = fake_device_calls()};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct machine_options options = {
            .isa = (enum isa)isa, .thread_count = 1 + isa % 2, .trace = true};

        if (isa_available((enum isa)isa)) {
            hold(must_open(start->tape, &options), rules, start, wishes, isa_name((enum isa)isa));
        }
    }
    hold(must_open(start->tape, &split), rules, start, wishes, "over two devices");
    start_must(machine_sliced_open(&machine, start->tape, &sliced, &error), &error);
    hold(machine, rules, start, wishes, "in parts");
    start_must(machine_cuda_open(&machine, start->tape, &traced, &config, &error), &error);
    hold(machine, rules, start, wishes, "on a fake device");
}

static void check_tape(const struct start *start, uint64_t seed)
{
    const struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1, .trace = true};
    struct wishes wishes = {.tape = start->tape, .seed = seed << 32};
    const struct observer all = {.made = keep, .context = &wishes};
    struct machine *rules = must_open(start->tape, &options);
    struct error error;

    error_init(&error);
    wishes.made = calloc((size_t)start->tape->tensor_count + 1, sizeof(*wishes.made));
    assert_non_null(wishes.made);
    start_must(start_give(rules, start, &error), &error);
    start_must(rules->backend->step(rules, &all, &error), &error);
    hold_all(rules, start, &wishes);
    rules->backend->close(rules);
    for (uint32_t id = 0; id < start->tape->tensor_count; id++) {
        free(wishes.made[id]);
    }
    free(wishes.made);
}

static const struct fake_device_switches sound;

static void test_random_tapes_show_what_is_wanted(void **state)
{
    (void)state;
    fake_device_set(&sound);
    for (uint64_t seed = 1; seed <= test_share(100, TAPES); seed++) {
        struct tape *tape = random_tape(seed, 20);
        struct start start;

        start_random(&start, tape, seed);
        check_tape(&start, seed);
        start_release(&start);
        tape_free(tape);
    }
}

static void test_models_of_micro_batches_show_what_is_wanted(void **state)
{
    static const enum model_kind kinds[] = {MODEL_MLP, MODEL_GPT2};

    (void)state;
    fake_device_set(&sound);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct model_options options;
        struct small_model small;
        struct start start;

        small_model_options(&options, kinds[i]);
        options.accumulate = 4;
        options.group = 2;
        small_model_open(&small, &options);
        start_model(&start, &small);
        check_tape(&start, 1000 + i);
        start_release(&start);
        small_model_close(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_tapes_show_what_is_wanted),
        cmocka_unit_test(test_models_of_micro_batches_show_what_is_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
