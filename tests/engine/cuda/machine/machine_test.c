/*
 * machine_test.c - the CUDA backend gives the bits of the rules, on an emulated device.
 *
 * The fake device runs the plugin's own kernels on the processor
 * (tests/support/device/fake_device.h). So planning, launches, graphs, in-place writing and every
 * kernel are compared with the looped rules: whole steps of small models and random tapes, fast and
 * in trace mode. faults_test.c fails calls. What only a real device can show is left to gpu-check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/machine/machine.h"
#include "engine/tape/builder.h"
#include "proofs/commit/trace.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/loops/random_repeat.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

static struct machine *fake_open(const struct tape *tape, bool trace, bool rules_only)
{
    struct machine_options options = {.trace = trace};
    struct cuda_config config = {.calls = fake_device_calls(), .rules_only = rules_only};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    if (machine_cuda_open(&machine, tape, &options, &config, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return machine;
}

static struct machine *cpu_open(const struct tape *tape, bool trace)
{
    struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 2, .trace = trace};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    assert_int_equal(backend_cpu.open(&machine, tape, &options, &error), STATUS_OK);
    return machine;
}

/* ---- the same bits -------------------------------------------------------- */

static void hold_to_the_rules(const struct start *start, const char *what, bool trace,
                              bool rules_only)
{
    struct machine *cpu = cpu_open(start->tape, false);
    struct machine *cuda = fake_open(start->tape, trace, rules_only);

    /* Three steps: call by call, recorded, replayed. */
    start_steps(cpu, start, 3);
    start_steps(cuda, start, 3);
    start_compare(cpu, cuda, what);
    backend_cpu.close(cpu);
    cuda->backend->close(cuda);
}

static void test_models_have_the_bits_of_the_rules(void **state)
{
    static const struct precision cuts[] = {{14, 128}, {15, 0}, {16, 64}, {22, 0}, {14, 16}};

    (void)state;
    fake_device_set(&sound);
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        size_t count = test_share(5, 1);

        for (size_t i = 0; i < count; i++) {
            struct model_options options;
            struct small_model small;
            struct start start;

            small_model_options(&options, (enum model_kind)kind);
            options.precision = cuts[(i + (size_t)kind) % 5];
            small_model_open(&small, &options);
            start_model(&start, &small);
            hold_to_the_rules(&start, model_kind_name((enum model_kind)kind), false, false);
            start_release(&start);
            small_model_close(&small);
        }
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

static void test_micro_batches_have_the_bits_of_the_rules(void **state)
{
    static const struct {
        enum model_kind kind;
        uint32_t times;
        uint32_t group;
    } steps[] = {{MODEL_GPT2, 4, 2}, {MODEL_GPT2, 3, 3}, {MODEL_CONVNET, 4, 4}};

    (void)state;
    fake_device_set(&sound);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct model_options options;
        struct small_model small;
        struct start start;

        small_model_options(&options, steps[i].kind);
        options.accumulate = steps[i].times;
        options.group = steps[i].group;
        small_model_open(&small, &options);
        start_model(&start, &small);
        hold_to_the_rules(&start, "micro-batches", false, false);
        start_release(&start);
        small_model_close(&small);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

static void test_random_tapes_have_the_bits_of_the_rules(void **state)
{
    uint64_t count = test_share(3000, 24);

    (void)state;
    fake_device_set(&sound);
    for (uint64_t seed = 0; seed < count; seed++) {
        struct tape *tape = random_tape(seed, 3 + (uint32_t)(seed % 12));
        struct start start;
        char what[64];

        (void)snprintf(what, sizeof(what), "tape %llu", (unsigned long long)seed);
        start_random(&start, tape, seed);
        hold_to_the_rules(&start, what, seed % 4 == 3, seed % 8 == 6);
        start_release(&start);
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

static void test_random_loops_have_the_bits_of_the_rules(void **state)
{
    uint64_t left = test_share(1500, 12);

    (void)state;
    fake_device_set(&sound);
    for (uint64_t seed = 0; left > 0; seed++) {
        struct tape *tape = random_repeat(seed);
        struct start start;
        char what[64];

        if (tape == NULL || tape->loop_count == 0) {
            tape_free(tape);
            continue;
        }
        (void)snprintf(what, sizeof(what), "tape %llu", (unsigned long long)seed);
        start_random(&start, tape, seed);
        hold_to_the_rules(&start, what, left % 4 == 3, left % 8 == 6);
        start_release(&start);
        tape_free(tape);
        left--;
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* Each turn multiplies by what it is given and by what it hands on; and it hands on a part of rows
 * that are split. */
static struct tape *products_of_turns(void)
{
    static const uint64_t square[2] = {16, 16};
    static const uint64_t wide[2] = {32, 16};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 2, square);
    uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, square);
    uint32_t both = build_tensor(builder, "both", DTYPE_F32, ROLE_CONSTANT, 2, wide);
    uint32_t part = build_fill(builder, 0.5f, 2, square);
    struct tape *tape = NULL;
    uint32_t parts[2];
    uint32_t after;
    uint32_t sum;

    build_repeat(builder, 4, 4);
    after = build_scale(builder, w, 0.75f);
    sum = build_add(builder, build_linear(builder, x, w), build_linear(builder, x, after), 1);
    sum = build_add(builder, sum, build_linear(builder, part, w), 1);
    build_split(builder, parts, 2, build_linear(builder, x, both));
    sum = build_add(builder, sum, build_linear(builder, parts[1], w), 1);
    sum = build_accumulated(builder, "sum", sum);
    build_carry(builder, w, after);
    build_carry(builder, part, parts[0]);
    build_repeat_end(builder);
    build_after(builder, w, after);
    build_output(builder, "y", build_scale(builder, sum, 0.5f));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    return tape;
}

static void test_what_turns_hand_on_is_another_operand_in_each(void **state)
{
    struct tape *tape = products_of_turns();
    struct start start;

    (void)state;
    fake_device_set(&sound);
    assert_int_equal(tape->loop_count, 1);
    start_random(&start, tape, 7);
    hold_to_the_rules(&start, "products of turns", false, false);
    start_release(&start);
    tape_free(tape);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* ---- what the observer is shown --------------------------------------------- */

struct shown {
    uint8_t *bytes;
    uint64_t size;
    uint64_t capacity;
    uint64_t at; /* second machine: compared so far */
    bool compare;
    uint32_t stop_at;
};

static enum status keep(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error)
{
    struct shown *shown = context;

    if (maker.op == shown->stop_at) {
        return error_set(error, STATUS_STOPPED, "seen enough");
    }
    if (shown->compare) {
        if (shown->at + size > shown->size || memcmp(shown->bytes + shown->at, bytes, size) != 0) {
            fail_msg("operation %u, output %u is shown with other bits", maker.op, output);
        }
        shown->at += size;
        return STATUS_OK;
    }
    if (shown->size + size > shown->capacity) {
        shown->capacity = 2 * (shown->size + size);
        shown->bytes = realloc(shown->bytes, shown->capacity);
        assert_non_null(shown->bytes);
    }
    memcpy(shown->bytes + shown->size, bytes, size);
    shown->size += size;
    return STATUS_OK;
}

static void test_trace_shows_what_the_rules_make(void **state)
{
    (void)state;
    fake_device_set(&sound);
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct shown shown = {.stop_at = UINT32_MAX};
        struct observer observer = {.made = keep, .context = &shown};
        struct model_options options;
        struct small_model small;
        struct start start;
        struct machine *cpu;
        struct machine *cuda;
        struct error error;

        error_init(&error);
        small_model_options(&options, (enum model_kind)kind);
        small_model_open(&small, &options);
        start_model(&start, &small);
        cpu = cpu_open(start.tape, true);
        cuda = fake_open(start.tape, true, false);
        start_must(start_give(cpu, &start, &error), &error);
        start_must(start_give(cuda, &start, &error), &error);
        start_must(backend_cpu.step(cpu, &observer, &error), &error);
        shown.compare = true;
        start_must(cuda->backend->step(cuda, &observer, &error), &error);
        assert_int_equal(shown.at, shown.size);
        start_compare(cpu, cuda, "after a trace");
        shown.compare = false;
        shown.stop_at = 2;
        assert_int_equal(cuda->backend->step(cuda, &observer, &error), STATUS_STOPPED);
        free(shown.bytes);
        backend_cpu.close(cpu);
        cuda->backend->close(cuda);
        start_release(&start);
        small_model_close(&small);
    }
}

/* ---- refusals ----------------------------------------------------------------- */

static void test_too_little_memory_is_refused_with_how_much(void **state)
{
    struct fake_device_switches small = {.memory_max = 10000};
    struct machine_options options = {.memory_max = 1000};
    struct cuda_config config = {.calls = fake_device_calls()};
    struct tape *tape = random_tape(3, 4);
    struct machine *machine;
    struct error error;

    (void)state;
    fake_device_set(&small);
    error_init(&error);
    assert_int_equal(machine_cuda_open(&machine, tape, &options, &config, &error),
                     STATUS_NO_MEMORY);
    assert_non_null(strstr(error.text, "0.0 MiB are allowed"));
    options.memory_max = 0;
    assert_int_equal(machine_cuda_open(&machine, tape, &options, &config, &error),
                     STATUS_NO_MEMORY);
    assert_non_null(strstr(error.text, "MiB of device memory; fake device had 0.0 MiB free"));
    assert_true(error.advice[0] != '\0');
    assert_int_equal(fake_device_leftovers(), 0);
    fake_device_set(&sound);
    tape_free(tape);
}

static void test_devices_that_cannot_be_opened_are_told_apart(void **state)
{
    static const struct {
        enum device_result result;
        const char *text;
    } cases[] = {{DEVICE_NO_DRIVER, "no NVIDIA driver"},
                 {DEVICE_OLD_DRIVER, "serves CUDA 11.4, the plugin needs 13.0"},
                 {DEVICE_NONE, "no CUDA device 0"},
                 {DEVICE_NO_CODE, "no code for this device"},
                 {DEVICE_FAILED, "does not start"}};
    struct machine_options options = {.trace = false};
    struct cuda_config config = {.calls = fake_device_calls()};
    struct tape *tape = random_tape(3, 4);
    struct machine *machine;
    struct error error;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_device_switches switches = {.open = cases[i].result};

        fake_device_set(&switches);
        error_init(&error);
        assert_int_equal(machine_cuda_open(&machine, tape, &options, &config, &error),
                         STATUS_DEVICE);
        assert_non_null(strstr(error.text, cases[i].text));
        assert_true(error.advice[0] != '\0');
    }
    fake_device_set(&sound);
    tape_free(tape);
}

static void test_what_a_machine_cannot_do_is_refused(void **state)
{
    struct tape *tape = random_tape(3, 4);
    struct machine *machine;
    struct start start;
    struct error error;
    uint8_t word[4] = {0};
    uint32_t made = tape->ops[0].outputs[0];
    struct digest root;

    (void)state;
    fake_device_set(&sound);
    error_init(&error);
    start_random(&start, tape, 3);
    machine = fake_open(tape, false, false);
    assert_int_equal(backend_cuda.write(machine, made, word, &error), STATUS_USAGE);
    assert_int_equal(backend_cuda.write(machine, UINT32_MAX, word, &error), STATUS_USAGE);
    assert_int_equal(backend_cuda.read(machine, UINT32_MAX, word, &error), STATUS_USAGE);
    assert_int_equal(backend_cuda.bind(machine, made, word, &error), STATUS_USAGE);
    assert_int_equal(backend_cuda.leaves_roots(machine, &root, &(uint32_t){UINT32_MAX}, 1, &error),
                     STATUS_USAGE);
    assert_null(backend_cuda.peek(machine, tape->loss));
    backend_cuda.close(machine);
    start_release(&start);
    tape_free(tape);
}

/* A kernel that no list of device.cu names has 48 KB, also on a device that grants others more. */
static void test_shared_memory_that_was_not_asked_for_is_refused(void **state)
{
    const struct device_calls *calls = fake_device_calls();
    const struct finite_args args = {.count = 0};
    struct device_launch launch = {.kernel = KERNEL_FINITE,
                                   .grid = {1, 1, 1},
                                   .block = BLOCK_THREADS,
                                   .shared_size = SHARED_USUAL,
                                   .arguments_size = sizeof(args),
                                   .arguments = &args};
    struct device_facts facts;
    struct device *device;

    (void)state;
    fake_device_set(&sound);
    assert_int_equal(calls->open(&device, &facts, 0), DEVICE_OK);
    assert_int_equal(calls->launch(device, &launch), DEVICE_OK);
    launch.shared_size++;
    assert_int_equal(calls->launch(device, &launch), DEVICE_FAILED);
    calls->close(device);
    assert_int_equal(kernel_shared_most(KERNEL_HOPPER_NARROW, 232448, 90), HOPPER_SHARED);
    assert_int_equal(kernel_shared_most(KERNEL_HOPPER_NARROW, 101376, 89), 0);
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        /* Of compute capability 7.5, 8.0, 8.6 and 9.0. */
        assert_true(kernel_shared_most(kernel, 65536, 75) <= 65536);
        assert_true(kernel_shared_most(kernel, 166912, 80) <= 166912);
        assert_true(kernel_shared_most(kernel, 101376, 86) <= 101376);
        assert_true(kernel_shared_most(kernel, 232448, 90) <= 232448);
    }
}

/* ---- what a select drops ------------------------------------------------------ */

enum { DUE_SIDE = 16, DUE_STEPS = 9 };
static const float due_steps[DUE_STEPS] = {0, 0, 0, 1, 0, 1, 0, 0, 1};

struct due_tape {
    struct tape *tape;
    uint32_t table;
    uint32_t w;
    uint32_t figure;
};

static void due_tape_build(struct due_tape *due)
{
    static const uint64_t square[2] = {DUE_SIDE, DUE_SIDE};
    static const uint64_t rows[2] = {DUE_STEPS, 1};
    static const uint64_t one = 1;
    struct builder *builder = builder_new(PRECISION_DEFAULT);

    due->table = build_tensor(builder, "due", DTYPE_F32, ROLE_CONSTANT, 2, rows);
    due->w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, square);
    due->figure = build_tensor(builder, "figure", DTYPE_F32, ROLE_STATE, 1, &one);
    uint32_t next = build_scale(builder, due->w, 0.75f);
    build_after(builder, due->w, next);
    uint32_t condition = build_schedule(builder, due->table, 1, 0);
    uint32_t wide = build_map(builder, MAP_GELU, build_linear(builder, next, next));
    uint32_t mean = build_mean(builder, build_linear(builder, wide, next));
    build_after(builder, due->figure, build_select(builder, condition, mean, due->figure));
    due->tape = NULL;
    assert_int_equal(builder_finish(&due->tape, builder, NULL), STATUS_OK);
    builder_free(builder);
}

static void due_give(struct machine *machine, const struct due_tape *due)
{
    float values[DUE_SIDE * DUE_SIDE];
    float figure = 0.0f;

    for (int i = 0; i < DUE_SIDE * DUE_SIDE; i++) {
        values[i] = 0.01f * (float)(i * 37 % 101 - 20);
    }
    assert_int_equal(machine->backend->write(machine, due->table, due_steps, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, due->w, values, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, due->figure, &figure, NULL), STATUS_OK);
    for (uint32_t i = 0; i < due->tape->state_count; i++) {
        const uint32_t id = due->tape->states[i].before;
        const uint32_t step = 0;

        if (due->tape->tensors[id].dtype == DTYPE_U32) {
            assert_int_equal(machine->backend->write(machine, id, &step, NULL), STATUS_OK);
        }
    }
}

static bool was_run(const struct machine_cuda *cuda)
{
    for (int i = 0; i < LEGS_MAX; i++) {
        const struct leg *leg = &cuda->legs[i];

        if (leg->used && leg->first < cuda->lazy_last && leg->last > cuda->lazy_first) {
            return true;
        }
    }
    return false;
}

static void test_what_is_not_due_is_left_out(void **state)
{
    struct due_tape due;
    struct machine *machines[2];

    (void)state;
    fake_device_set(&sound);
    due_tape_build(&due);
    machines[0] = cpu_open(due.tape, true);
    machines[1] = fake_open(due.tape, false, false);
    assert_true(cuda_of(machines[1])->lazy_last > cuda_of(machines[1])->lazy_first + 3);
    due_give(machines[0], &due);
    due_give(machines[1], &due);
    for (int step = 0; step < DUE_STEPS; step++) {
        float figures[2];

        for (int i = 0; i < 2; i++) {
            assert_int_equal(machines[i]->backend->step(machines[i], NULL, NULL), STATUS_OK);
            assert_int_equal(machines[i]->backend->read(machines[i], due.figure, &figures[i], NULL),
                             STATUS_OK);
        }
        assert_memory_equal(&figures[0], &figures[1], sizeof(figures[0]));
        assert_int_equal(was_run(cuda_of(machines[1])), step >= 3);
    }
    machines[0]->backend->close(machines[0]);
    machines[1]->backend->close(machines[1]);
    tape_free(due.tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_due_is_left_out),
        cmocka_unit_test(test_models_have_the_bits_of_the_rules),
        cmocka_unit_test(test_micro_batches_have_the_bits_of_the_rules),
        cmocka_unit_test(test_random_tapes_have_the_bits_of_the_rules),
        cmocka_unit_test(test_random_loops_have_the_bits_of_the_rules),
        cmocka_unit_test(test_what_turns_hand_on_is_another_operand_in_each),
        cmocka_unit_test(test_trace_shows_what_the_rules_make),
        cmocka_unit_test(test_too_little_memory_is_refused_with_how_much),
        cmocka_unit_test(test_devices_that_cannot_be_opened_are_told_apart),
        cmocka_unit_test(test_what_a_machine_cannot_do_is_refused),
        cmocka_unit_test(test_shared_memory_that_was_not_asked_for_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
