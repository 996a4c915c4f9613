/*
 * machine_split_test.c - a step split over several machines has the bits of one.
 *
 * Small models and random tapes over two to twelve emulated devices, each with its own memory,
 * against one CPU: states, outputs, losses and roots after three steps (queued, recorded,
 * replayed), and traces item by item. The emulated memory of a device holds only tensors that were
 * made or moved there. Then refusals, failures, and how GPT-2 124M is divided.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/machine/machine_sliced.h"
#include "engine/machine/machine_split.h"
#include "engine/plan/division.h"
#include "proofs/commit/trace.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/device/memory_plan.h"
#include "tests/support/numeric/division_bytes.h"
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

/* Counts what the devices are asked for. */
static struct {
    struct device_calls calls;
    struct device *devices[MACHINE_DEVICES_MAX];
    uint64_t allocated[MACHINE_DEVICES_MAX];
    uint64_t copied;
} counted;

static enum device_result counted_open(struct device **device, struct device_facts *facts,
                                       int ordinal)
{
    enum device_result result = fake_device_calls()->open(device, facts, ordinal);

    counted.devices[ordinal] = *device;
    return result;
}

static enum device_result counted_allocate(struct device *device, void **memory, uint64_t size)
{
    for (uint32_t i = 0; i < MACHINE_DEVICES_MAX; i++) {
        counted.allocated[i] += counted.devices[i] == device ? size : 0;
    }
    return fake_device_calls()->allocate(device, memory, size);
}

static enum device_result counted_copy(struct device *device, void *to, const void *from,
                                       uint64_t size)
{
    counted.copied += size;
    return fake_device_calls()->copy(device, to, from, size);
}

static enum status open_counted(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    struct cuda_config config = {.calls = &counted.calls, .ordinal = (int)options->device};

    counted.calls = *fake_device_calls();
    counted.calls.open = counted_open;
    counted.calls.allocate = counted_allocate;
    counted.calls.copy = counted_copy;
    return machine_cuda_open(machine, tape, options, &config, error);
}

static struct backend fake_backend(void)
{
    struct backend fake = backend_cuda;

    fake.open = open_on_fake;
    return fake;
}

static struct machine *cpu_open(const struct tape *tape, bool trace)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1, .trace = trace};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    start_must(backend_cpu.open(&machine, tape, &options, &error), &error);
    return machine;
}

/* NULL: the tape has fewer forward operations than parts. */
static struct machine *split_open(const struct tape *tape, const struct backend *backend,
                                  uint32_t parts, bool trace)
{
    struct machine_options options = {.backend = backend,
                                      .isa = isa_best(),
                                      .thread_count = 1,
                                      .trace = trace,
                                      .device_count = parts};
    struct machine *machine = NULL;
    struct error error;

    for (uint32_t part = 0; part < parts; part++) {
        options.devices[part] = part;
    }
    error_init(&error);
    enum status status = machine_split_open(&machine, tape, &options, &error);

    if (status != STATUS_USAGE) {
        start_must(status, &error);
    }
    return machine;
}

/* ---- the same bits --------------------------------------------------------------- */

static void hold(const struct start *start, const struct backend *backend, uint32_t parts,
                 const char *what)
{
    struct machine *cpu = cpu_open(start->tape, false);
    struct machine *split = split_open(start->tape, backend, parts, false);

    if (split != NULL) {
        start_steps(cpu, start, 3);
        start_steps(split, start, 3);
        start_compare(cpu, split, what);
        split->backend->close(split);
    }
    backend_cpu.close(cpu);
}

static void hold_trace(const struct start *start, const struct backend *backend, uint32_t parts)
{
    struct machine *cpu = cpu_open(start->tape, true);
    struct machine *split = split_open(start->tape, backend, parts, true);
    struct trace expected;
    struct trace got;
    struct error error;

    error_init(&error);
    if (split != NULL) {
        start_steps(cpu, start, 0);
        start_steps(split, start, 0);
        start_must(trace_watch_all(&expected, cpu, NULL, &error), &error);
        start_must(trace_watch_all(&got, split, NULL, &error), &error);
        assert_memory_equal(expected.items, got.items, expected.item_count * sizeof(*got.items));
        assert_true(digest_equal(&expected.next_root, &got.next_root));
        trace_release(&expected);
        trace_release(&got);
        split->backend->close(split);
    }
    backend_cpu.close(cpu);
}

static void test_models_have_the_bits_of_one_machine(void **state)
{
    const struct backend fake = fake_backend();

    (void)state;
    fake_device_set(&sound);
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;
        struct start start;

        small_model_options(&options, (enum model_kind)kind);
        options.equilibrate = kind % 2 == 0;
        small_model_open(&small, &options);
        start_model(&start, &small);
        for (uint32_t parts = 1; parts <= 5; parts += parts == 3 ? 2 : 1) {
            hold(&start, &backend_cpu, parts, model_kind_name((enum model_kind)kind));
            hold_trace(&start, &backend_cpu, parts);
        }
        hold(&start, &fake, 2, model_kind_name((enum model_kind)kind));
        hold_trace(&start, &fake, 3);
        start_release(&start);
        small_model_close(&small);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* What an answer is made of. */
static void give_tokens(struct start *start, uint32_t id, uint32_t vocabulary)
{
    const uint64_t count = start->tape->tensors[id].count;
    uint32_t *tokens = calloc(count, sizeof(*tokens));

    assert_non_null(tokens);
    for (uint64_t i = 0; i < count; i++) {
        tokens[i] = (uint32_t)(7 * i + 3) % vocabulary;
    }
    start->values[id] = tokens;
}

/* Training and answers of language models, in as many parts as a step may have. */
static void test_two_to_twelve_parts_have_the_bits_of_one(void **state)
{
    const struct backend fake = fake_backend();

    (void)state;
    fake_device_set(&sound);
    for (int turn = 0; turn < 4; turn++) {
        struct model_options options;
        struct small_model small;
        struct start start;
        char what[64];

        small_model_options(&options, turn % 2 == 0 ? MODEL_GPT2 : MODEL_LLAMA);
        options.layers = 2;
        options.inference = turn >= 2;
        small_model_open(&small, &options);
        start_model(&start, &small);
        if (options.inference) {
            give_tokens(&start, small.model.input, options.vocabulary);
        }
        for (uint32_t parts = 2; parts <= 12; parts++) {
            struct machine *split = split_open(start.tape, &backend_cpu, parts, false);

            assert_non_null(split); /* there is enough to do for all of them */
            split->backend->close(split);
            (void)snprintf(what, sizeof(what), "%s in %u parts",
                           options.inference ? "answers" : "training", parts);
            hold(&start, &backend_cpu, parts, what);
        }
        hold_trace(&start, &backend_cpu, 12);
        if (turn % 2 == 0) {
            hold(&start, &fake, 12, "twelve devices");
        }
        start_release(&start);
        small_model_close(&small);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* Parts that a device cannot hold run from the host, beside others that it can. */
static void test_parts_that_do_not_fit_run_by_ranges(void **state)
{
    const struct backend fake = fake_backend();
    struct machine_options options = {.backend = &fake,
                                      .isa = isa_best(),
                                      .thread_count = 1,
                                      .device_count = 3,
                                      .devices = {0, 1, 2}};
    struct model_options wanted;
    struct machine_split_cost cost;
    struct small_model small;
    struct start start;
    struct error error;
    uint64_t most = 0;

    (void)state;
    error_init(&error);
    fake_device_set(&sound);
    small_model_options(&wanted, MODEL_GPT2);
    small_model_open(&small, &wanted);
    start_model(&start, &small);
    start_must(machine_split_cost(&cost, start.tape, &options, &error), &error);
    for (int part = 0; part < 3; part++) {
        most = cost.memory[part] > most ? cost.memory[part] : most;
    }
    for (int turn = 0; turn < 2; turn++) {
        struct machine *cpu = cpu_open(start.tape, false);
        struct machine *split = NULL;

        options.device_memory = turn == 0 ? most : most / 2;
        start_must(machine_split_open(&split, start.tape, &options, &error), &error);
        /* A device hashes what it has; a part on the host has no device. */
        assert_true((split->backend->leaves_roots != NULL) == (turn == 0));
        start_steps(cpu, &start, 2);
        start_steps(split, &start, 2);
        start_compare(cpu, split, "a part by ranges");
        split->backend->close(split);
        backend_cpu.close(cpu);
    }
    start_release(&start);
    small_model_close(&small);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* Micro-batches of one step, some of whose accumulators are on other parts than their terms. */
static void test_micro_batches_have_the_bits_of_one_machine(void **state)
{
    const struct backend fake = fake_backend();
    struct model_options options;
    struct small_model small;
    struct start start;

    (void)state;
    fake_device_set(&sound);
    small_model_options(&options, MODEL_GPT2);
    options.accumulate = 4;
    options.group = 2;
    small_model_open(&small, &options);
    start_model(&start, &small);
    hold(&start, &backend_cpu, 3, "micro-batches");
    hold_trace(&start, &backend_cpu, 3);
    hold(&start, &fake, 2, "micro-batches");
    start_release(&start);
    small_model_close(&small);
    assert_int_equal(fake_device_leftovers(), 0);
}

/*
 * Gates: the outputs of a layer move to the next part, and the gradients need both factors of each
 * product again, together with tensors that move back in a later leg.
 */
static struct tape *gates_tape(enum map_function function, uint32_t layers)
{
    static const uint64_t dims[2] = {8, 16};
    static const uint64_t square[2] = {16, 16};
    struct builder *builder = builder_new((struct precision){14, 128});
    uint32_t weights[8];
    uint32_t gradients[8];
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, dims);

    for (uint32_t i = 0; i < 2 * layers; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "w%u", i);
        weights[i] = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, 2, square);
    }
    for (uint32_t i = 0; i < 2 * layers; i += 2) {
        const uint32_t gate = build_map(builder, function, build_linear(builder, x, weights[i]));

        x = build_mul(builder, gate, build_linear(builder, x, weights[i + 1]), 1);
    }
    const uint32_t loss = build_mean(builder, x);

    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, weights, 2 * layers);
    for (uint32_t i = 0; i < 2 * layers; i++) {
        build_after(builder, weights[i], build_add(builder, weights[i], gradients[i], 1));
    }
    return fused_finish(builder);
}

/* A part finds every tensor that it needs, also one from a fused group of another device. */
static void test_moved_tensors_arrive_in_time(void **state)
{
    static const enum map_function kinds[] = {MAP_RELU, MAP_GELU, MAP_SILU};
    const struct backend fake = fake_backend();

    (void)state;
    fake_device_set(&sound);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct tape *tape = gates_tape(kinds[i], 4);
        struct start start;

        start_random(&start, tape, i);
        for (uint32_t parts = 2; parts <= 4; parts++) {
            hold(&start, &fake, parts, "gates");
        }
        start_release(&start);
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

static void test_random_tapes_have_the_bits_of_one_machine(void **state)
{
    const uint64_t count = test_share(3000, 400);
    const struct backend fake = fake_backend();

    (void)state;
    fake_device_set(&sound);
    for (uint64_t seed = 0; seed < count; seed++) {
        struct tape *tape = random_tape(seed, 3 + (uint32_t)(seed % 25));
        struct start start;
        char what[64];

        (void)snprintf(what, sizeof(what), "tape %llu", (unsigned long long)seed);
        start_random(&start, tape, seed);
        hold(&start, seed % 25 == 0 ? &fake : &backend_cpu, 2 + (uint32_t)(seed % 3), what);
        if (seed % 5 == 0) {
            hold_trace(&start, &backend_cpu, 2);
        }
        start_release(&start);
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* ---- failures and refusals ---------------------------------------------------------- */

static enum status open_and_step(struct machine **machine, const struct start *start,
                                 const struct machine_options *options, struct error *error)
{
    struct digest root;

    TRY(machine_split_open(machine, start->tape, options, error));
    TRY(start_give(*machine, start, error));
    TRY((*machine)->backend->step(*machine, NULL, error));
    TRY((*machine)->backend->step(*machine, NULL, error));
    return state_root_of(&root, *machine, error);
}

static void test_any_failing_call_of_any_device_is_an_error(void **state)
{
    const struct backend fake = fake_backend();
    struct tape *tape = random_tape(5, 9);
    struct start start;
    uint64_t calls = 1;

    (void)state;
    start_random(&start, tape, 5);
    for (uint64_t k = 0; k <= calls; k += 1 + calls / 80) {
        const struct fake_device_switches lost = {
            .fail_at = k, .result = DEVICE_FAILED, .for_good = true};
        struct machine_options options = {.backend = &fake, .device_count = 2, .devices = {0, 1}};
        struct machine *machine = NULL;
        struct error error;
        enum status status;

        fake_device_set(&lost);
        error_init(&error);
        status = open_and_step(&machine, &start, &options, &error);
        if (k == 0) {
            assert_int_equal(status, STATUS_OK);
            calls = fake_device_call_count();
            assert_true(calls > 60);
        } else if (k + 1 < calls) { /* the last two calls are the waits of closing */
            if (status != STATUS_DEVICE) {
                fail_msg("call %llu of %llu failed: status %d", (unsigned long long)k,
                         (unsigned long long)calls, (int)status);
            }
        }
        if (machine != NULL) {
            machine->backend->close(machine);
        }
        assert_int_equal(fake_device_leftovers(), 0);
    }
    fake_device_set(&sound);
    start_release(&start);
    tape_free(tape);
}

static void test_impossible_splits_are_refused(void **state)
{
    struct tape *tape = random_tape(3, 8);
    struct machine_options options = {.isa = isa_best(), .device_count = 13};
    struct machine *machine = NULL;
    struct error error;
    uint8_t word[4] = {0};

    (void)state;
    error_init(&error);
    assert_int_equal(machine_split_open(&machine, tape, &options, &error), STATUS_USAGE);
    options.device_count = 0;
    assert_int_equal(machine_split_open(&machine, tape, &options, &error), STATUS_USAGE);
    machine = split_open(tape, &backend_cpu, 2, false);
    assert_non_null(machine);
    assert_int_equal(machine->backend->write(machine, UINT32_MAX, word, &error), STATUS_USAGE);
    assert_int_equal(machine->backend->read(machine, UINT32_MAX, word, &error), STATUS_USAGE);
    assert_int_equal(machine->backend->bind(machine, tape->loss, word, &error), STATUS_USAGE);
    assert_null(machine->backend->peek(machine, UINT32_MAX));
    machine->backend->close(machine);
    tape_free(tape);
}

static void test_lists_of_devices_are_read(void **state)
{
    static const char *const bad[] = {"cuda:0,",     "cuda:0,cpu", "cuda:0cuda:1", "cuda,,cuda",
                                      "cuda:0;cuda", "cuda:x",     "cuda:1024"};
    struct machine_options options;
    struct error error;

    (void)state;
    error_init(&error);
    start_must(machine_options_default(&options, &error), &error);
    assert_int_equal(setenv("LOCKSTEP_CUDA", "build/tests/emulated_cuda.so", 1), 0);
    if (machine_options_device(&options, "cuda:0,cuda:1,cuda", NULL, &error) != STATUS_OK) {
        skip(); /* another build folder; the test of the programs covers it too */
    }
    assert_int_equal(options.device_count, 3);
    assert_int_equal(options.devices[1], 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(machine_options_device(&options, bad[i], NULL, &error), STATUS_USAGE);
    }
    const char *const twelve = "cuda:0,cuda:1,cuda:2,cuda:3,cuda:4,cuda:5,cuda:6,cuda:7,cuda:8,"
                               "cuda:9,cuda:10,cuda:11";
    char thirteen[128];

    (void)snprintf(thirteen, sizeof(thirteen), "%s,cuda", twelve);
    start_must(machine_options_device(&options, twelve, NULL, &error), &error);
    assert_int_equal(options.device_count, 12);
    assert_int_equal(options.devices[11], 11);
    assert_int_equal(machine_options_device(&options, thirteen, NULL, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "over 12 devices at most"));
}

/* ---- what it costs ---------------------------------------------------------------------- */

/* The plan says what the devices are then asked for: it needs none of them. */
static void test_the_cost_is_known_before(void **state)
{
    struct backend backend = backend_cuda;
    struct model_options options;
    struct small_model small;
    struct start start;
    struct error error;
    uint64_t alone = 0; /* bytes that a device copies within itself */

    (void)state;
    error_init(&error);
    fake_device_set(&sound);
    backend.open = open_counted;
    small_model_options(&options, MODEL_GPT2);
    options.layers = 4;
    small_model_open(&small, &options);
    start_model(&start, &small);
    for (uint32_t parts = 1; parts <= 12; parts++) {
        struct machine_options wanted = {.backend = &backend, .device_count = parts};
        struct machine_split_cost cost;
        struct machine *split;
        uint64_t sum = 0;
        uint64_t size = 0;

        memset(&counted, 0, sizeof(counted));
        start_must(machine_split_cost(&cost, start.tape, &wanted, &error), &error);
        split = split_open(start.tape, &backend, parts, false);
        assert_non_null(split);
        for (uint32_t part = 0; part < parts; part++) {
            assert_true(counted.allocated[part] > 0);
            /* Enough for any device, and not much more than this one takes. */
            assert_true(counted.allocated[part] <= cost.memory[part]);
            assert_true(cost.memory[part] <= 2 * counted.allocated[part]);
            sum += cost.memory[part];
        }
        counted.copied = 0;
        start_steps(split, &start, 1);
        alone = parts == 1 ? counted.copied : alone;
        assert_true(counted.copied == alone + cost.moved);
        start_must(split->backend->size(&size, start.tape, &wanted, &error), &error);
        assert_true(size == sum);
        assert_true(parts > 1 ? cost.moved > 0 && cost.moves > 0
                              : cost.moved == 0 && cost.moves == 0);
        split->backend->close(split);
    }
    start_release(&start);
    small_model_close(&small);
    assert_int_equal(fake_device_leftovers(), 0);
}

/* Each part fits, or runs by ranges and slices that fit; nothing is left to the processor. */
static void hold_parts_within(const struct tape *tape, uint32_t parts, uint64_t limit)
{
    const struct machine_options options = {
        .backend = &backend_cuda, .device_memory = limit, .in_legs = true};
    struct division division;
    struct error error;
    uint32_t by_ranges = 0;

    error_init(&error);
    start_must(division_build(&division, tape, parts, false, &error), &error);
    for (uint32_t part = 0; part < parts; part++) {
        const struct tape *own = division.parts[part].tape;
        struct machine_sliced_survey survey;
        uint64_t size = 0;

        start_must(backend_cuda.size(&size, own, &options, &error), &error);
        if (size > limit) {
            start_must(machine_sliced_survey(&survey, own, &options, &error), &error);
            assert_true(survey.device_size <= limit && survey.left == 0);
            by_ranges++;
        }
    }
    assert_true(by_ranges > 0 && by_ranges < parts);
    division_release(&division);
}

/* ---- what it is for -------------------------------------------------------------------- */

static void test_gpt2_124m_is_divided_by_layers(void **state)
{
    struct model_options wanted;
    struct model model;
    struct division division;
    struct error error;
    uint64_t parameters[2] = {0, 0};

    (void)state;
    error_init(&error);
    model_options_default(&wanted, MODEL_GPT2);
    wanted.batch = 4;
    wanted.length = wanted.positions = 1024;
    wanted.vocabulary = 50257;
    wanted.layers = wanted.heads = 12;
    wanted.width = 768;
    wanted.hidden = 3072;
    wanted.data_count = 1000000;
    wanted.data_dtype = DTYPE_U16;
    start_must(model_build(&model, &wanted, &error), &error);
    start_must(division_build(&division, model.tape, 2, false, &error), &error);
    for (uint32_t i = 0; i < model.tape->state_count; i++) {
        const uint32_t id = model.tape->states[i].before;

        parameters[division.homes[id]] += model.tape->tensors[id].count;
    }
    print_message("GPT-2 124M over two devices: %u and %u operations, %.0f%% and %.0f%% of the "
                  "state, %u turns, %.1f MiB moved in a step\n",
                  division.parts[0].tape->op_count, division.parts[1].tape->op_count,
                  100.0 * (double)parameters[0] / (double)(parameters[0] + parameters[1]),
                  100.0 * (double)parameters[1] / (double)(parameters[0] + parameters[1]),
                  division.leg_count, (double)division_bytes(&division, model.tape) / 1048576.0);
    /* The tied embedding and two activations, there and back, and little else. */
    assert_true(division_bytes(&division, model.tape) < UINT64_C(512) << 20);
    for (int part = 0; part < 2; part++) {
        assert_true(parameters[part] > (parameters[0] + parameters[1]) / 5);
        assert_true(division.parts[part].tape->op_count > model.tape->op_count / 5);
    }
    division_release(&division);
    model_release(&model);
}

/* One sequence over eight and over twelve devices as a whole; four of them, or fewer devices, by
 * ranges where a part needs more. More devices never need more of the fullest one. */
static void test_gpt2_124m_needs_a_gibibyte_of_each(void **state)
{
    static const uint64_t gibibyte = UINT64_C(1) << 30;

    (void)state;
    for (uint32_t batch = 1; batch <= 4; batch += 3) {
        struct machine_options options = {.backend = &backend_cuda};
        uint64_t before = UINT64_MAX;
        struct model model;
        struct error error;

        error_init(&error);
        memory_plan_model(&model, batch, 1024);
        for (uint32_t parts = 1; parts <= MACHINE_DEVICES_MAX; parts++) {
            struct machine_split_cost cost;
            uint64_t most = 0;

            options.device_count = parts;
            start_must(machine_split_cost(&cost, model.tape, &options, &error), &error);
            for (uint32_t part = 0; part < parts; part++) {
                most = cost.memory[part] > most ? cost.memory[part] : most;
            }
            print_message("%u x 1024 over %u devices: %llu MiB at most\n", batch, parts,
                          (unsigned long long)(most >> 20));
            assert_true(most <= before);
            assert_true(batch > 1 || parts < 8 || most <= gibibyte);
            before = most;
        }
        hold_parts_within(model.tape, batch == 1 ? 5 : 12, gibibyte);
        model_release(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_have_the_bits_of_one_machine),
        cmocka_unit_test(test_two_to_twelve_parts_have_the_bits_of_one),
        cmocka_unit_test(test_parts_that_do_not_fit_run_by_ranges),
        cmocka_unit_test(test_micro_batches_have_the_bits_of_one_machine),
        cmocka_unit_test(test_gpt2_124m_needs_a_gibibyte_of_each),
        cmocka_unit_test(test_moved_tensors_arrive_in_time),
        cmocka_unit_test(test_random_tapes_have_the_bits_of_one_machine),
        cmocka_unit_test(test_any_failing_call_of_any_device_is_an_error),
        cmocka_unit_test(test_impossible_splits_are_refused),
        cmocka_unit_test(test_lists_of_devices_are_read),
        cmocka_unit_test(test_the_cost_is_known_before),
        cmocka_unit_test(test_gpt2_124m_is_divided_by_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
