/*
 * gpu_parts.c - steps in parts on a device: by ranges and slices within little memory, and split
 * over two devices (or over two machines on one, each with memory of its own). The bits are those
 * of the whole; what it costs is measured.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/machine/machine_sliced.h"
#include "proofs/commit/trace.h"
#include "tests/gpu/gpu_check.h"
#include "tests/support/numeric/division_bytes.h"
#include "tests/support/numeric/random_tape.h"

#define GIB          (UINT64_C(1) << 30)
#define TOKEN_ROUNDS 7

/* ---- ranges and slices --------------------------------------------------------- */

static void build_small(struct model *model, enum model_kind kind, bool quick)
{
    struct model_options options;
    struct error error;

    error_init(&error);
    model_options_default(&options, kind);
    options.seed = 5;
    options.batch = 2;
    options.length = options.length == 0 ? 0 : quick ? 8 : 32;
    options.layers = options.layers == 0 ? 0 : quick ? 1 : 2;
    options.heads = options.heads == 0 ? 0 : 2;
    options.width = options.width == 0 ? 0 : quick ? 16 : 64;
    options.hidden = options.hidden == 0 ? 0 : quick ? 8 : 48;
    options.steps = 40;
    options.data_count = kind == MODEL_GPT2 || kind == MODEL_LLAMA ? 5000 : 64;
    options.data_dtype = DTYPE_U8;
    gpu_check_must(model_build(model, &options, &error), &error);
}

static void compare_traces(struct gpu_check *check, struct machine *whole, struct machine *parts,
                           const char *what)
{
    struct trace expected;
    struct trace got;
    struct error error;

    error_init(&error);
    gpu_check_must(trace_watch_all(&expected, whole, NULL, &error), &error);
    gpu_check_must(trace_watch_all(&got, parts, NULL, &error), &error);
    for (uint32_t item = 0; item < expected.item_count; item++) {
        check->tally->comparisons++;
        if (!digest_equal(&expected.items[item], &got.items[item])) {
            char text[128];

            (void)snprintf(text, sizeof(text), "%s: item %u of the trace", what, item);
            gpu_check_differs(check, text);
        }
    }
    trace_release(&expected);
    trace_release(&got);
}

void gpu_check_slices(struct gpu_check *check, int kind)
{
    static const uint64_t limits[] = {100000, 1000000};

    (void)kind;
    for (int model_kind = 0; model_kind < MODEL_COUNT; model_kind++) {
        struct model model;

        build_small(&model, (enum model_kind)model_kind, check->quick);
        for (size_t i = 0; i < (check->quick ? 1 : 2); i++) {
            const struct machine_options options = {.trace = true, .device_memory = limits[i]};
            struct machine *machines[2] = {gpu_check_cpu(model.tape, false, true),
                                           gpu_check_open_as(model.tape, &options)};

            gpu_check_give(machines, 2, &model, model.tape, 3);
            compare_traces(check, machines[0], machines[1],
                           model_kind_name((enum model_kind)model_kind));
            machines[0]->backend->close(machines[0]);
            machines[1]->backend->close(machines[1]);
        }
        model_release(&model);
    }
}

/* The whole step's trace within 1 GiB of the device, against the processor's roots. */
void gpu_check_small_memory(struct gpu_check *check, int kind)
{
    const struct machine_options options = {
        .backend = &backend_cuda, .trace = true, .device_memory = check->quick ? 200000 : GIB};
    struct machine_sliced_survey survey;
    struct machine *machines[2];
    struct model model;
    struct error error;
    double start;

    error_init(&error);
    gpu_check_gpt2(&model, check, (uint32_t)kind, 1024, false);
    gpu_check_must(machine_sliced_survey(&survey, model.tape, &options, &error), &error);
    gpu_check_number(check, "gpt2 124M step within 1 GiB: of the device",
                     (double)survey.device_size / 1048576.0, "MiB");
    gpu_check_number(check, "    of the host", (double)survey.host_size / 1048576.0, "MiB");
    gpu_check_number(check, "    moved", (double)survey.moved / 1048576.0, "MiB");
    machines[0] = gpu_check_open(check, model.tape, true, false);
    machines[1] = gpu_check_open_as(model.tape, &options);
    gpu_check_give(machines, 2, &model, model.tape, 9);
    start = gpu_check_now();
    gpu_check_must(machines[1]->backend->step(machines[1], NULL, &error), &error);
    gpu_check_number(check, "    a step", gpu_check_now() - start, "s");
    gpu_check_must(machines[0]->backend->step(machines[0], NULL, &error), &error);
    gpu_check_compare(check, machines[1], machines[0], "gpt2 124M within 1 GiB");
    machines[0]->backend->close(machines[0]);
    machines[1]->backend->close(machines[1]);
    model_release(&model);
}

/* ---- split over devices ------------------------------------------------------------ */

/* Over what there is: one device serves as several. */
static struct machine_options split_options(const struct gpu_check *check, uint32_t parts)
{
    struct machine_options options = {.device_count = parts};

    for (uint32_t part = 0; part < parts; part++) {
        options.devices[part] = part % check->tally->devices;
    }
    return options;
}

static void hold_split(struct gpu_check *check, const struct model *model, const struct tape *tape,
                       uint64_t seed, uint32_t parts, const char *what)
{
    const struct machine_options options = split_options(check, parts);
    struct machine *machines[2] = {gpu_check_cpu(tape, false, false),
                                   gpu_check_open_as(tape, &options)};
    struct error error;

    error_init(&error);
    gpu_check_give(machines, 2, model, tape, seed);
    for (int step = 0; step < 3; step++) {
        gpu_check_must(machines[0]->backend->step(machines[0], NULL, &error), &error);
        gpu_check_must(machines[1]->backend->step(machines[1], NULL, &error), &error);
    }
    gpu_check_compare(check, machines[0], machines[1], what);
    machines[0]->backend->close(machines[0]);
    machines[1]->backend->close(machines[1]);
}

void gpu_check_split(struct gpu_check *check, int kind)
{
    (void)kind;
    for (int model_kind = 0; model_kind < MODEL_COUNT; model_kind++) {
        struct model model;

        build_small(&model, (enum model_kind)model_kind, check->quick);
        hold_split(check, &model, model.tape, 3, 2, model_kind_name((enum model_kind)model_kind));
        if (!check->quick) {
            hold_split(check, &model, model.tape, 3, 4,
                       model_kind_name((enum model_kind)model_kind));
        }
        model_release(&model);
    }
    for (uint64_t seed = 0; seed < (check->quick ? 2 : 100); seed++) {
        struct tape *tape = random_tape(seed, 20); /* with enough to do for two */

        hold_split(check, NULL, tape, seed, 2, "a random tape");
        tape_free(tape);
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds of a step, until its loss or its answers are on the host; the first ones warm up. */
static double time_steps(struct machine *machine, const struct model *model, bool quick)
{
    const uint32_t read = model->output != TENSOR_NONE ? model->output : model->tape->loss;
    const struct tensor *tensor = &model->tape->tensors[read];
    void *bytes = malloc(tensor->count * dtype_size(tensor->dtype));
    double seconds[TOKEN_ROUNDS];
    struct error error;

    error_init(&error);
    const int rounds = quick ? 1 : TOKEN_ROUNDS;

    for (int round = -3; round < rounds; round++) {
        const double start = gpu_check_now();

        gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
        gpu_check_must(machine->backend->read(machine, read, bytes, &error), &error);
        seconds[round < 0 ? 0 : round] = gpu_check_now() - start;
    }
    free(bytes);
    qsort(seconds, (size_t)rounds, sizeof(*seconds), by_size);
    return seconds[rounds / 2];
}

/* The same states, outputs and loss on both? */
static void compare_parts(struct gpu_check *check, struct machine *const machines[2],
                          const struct model *model, const char *what)
{
    for (uint32_t id = 0; id < model->tape->tensor_count; id++) {
        const struct tensor *tensor = &model->tape->tensors[id];
        const uint64_t size = tensor->count * dtype_size(tensor->dtype);
        struct error error;
        void *bytes[2];
        char name[96];

        if (tensor->role != ROLE_STATE && tensor->role != ROLE_OUTPUT && id != model->tape->loss) {
            continue;
        }
        error_init(&error);
        for (int i = 0; i < 2; i++) {
            bytes[i] = malloc(size);
            gpu_check_must(machines[i]->backend->read(machines[i], id, bytes[i], &error), &error);
        }
        check->tally->comparisons++;
        if (memcmp(bytes[0], bytes[1], size) != 0) {
            (void)snprintf(name, sizeof(name), "%.50s: '%.30s'", what, tensor->name);
            gpu_check_differs(check, name);
        }
        free(bytes[0]);
        free(bytes[1]);
    }
}

/* In so many parts, against one that has made as many steps. */
static void time_parts(struct gpu_check *check, struct machine *one, const struct model *model,
                       uint32_t parts, const char *what)
{
    const struct machine_options options = split_options(check, parts);
    struct machine *machines[2] = {one, gpu_check_open_as(model->tape, &options)};
    struct division division;
    struct error error;
    char name[96];

    error_init(&error);
    gpu_check_must(division_build(&division, model->tape, parts, false, &error), &error);
    gpu_check_give(machines, 2, model, model->tape, 4);
    (void)time_steps(one, model, check->quick);
    (void)snprintf(name, sizeof(name), "%.60s, %u parts", what, parts);
    gpu_check_number(check, name, 1e3 * time_steps(machines[1], model, check->quick), "ms");
    gpu_check_number(check, "    moved between them",
                     (double)division_bytes(&division, model->tape) / 1048576.0, "MiB");
    compare_parts(check, machines, model, name);
    division_release(&division);
    machines[1]->backend->close(machines[1]);
}

/* GPT-2 124M on so many tokens: answers, and training, on one device and in parts. */
static void time_tokens(struct gpu_check *check, uint32_t tokens, bool inference)
{
    static const uint32_t counts[] = {2, 4, 8, MACHINE_DEVICES_MAX};
    const struct machine_options alone = {.device_count = 0};
    struct machine *one;
    struct model model;
    char what[64];

    gpu_check_gpt2(&model, check, 1, tokens, inference);
    one = gpu_check_open_as(model.tape, &alone);
    gpu_check_give(&one, 1, &model, model.tape, 4);
    (void)snprintf(what, sizeof(what), "gpt2 124M %s of %u tokens", inference ? "answers" : "step",
                   tokens);
    gpu_check_number(check, what, 1e3 * time_steps(one, &model, check->quick), "ms");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        time_parts(check, one, &model, counts[i], what);
    }
    one->backend->close(one);
    model_release(&model);
}

void gpu_check_tokens(struct gpu_check *check, int kind)
{
    time_tokens(check, (uint32_t)kind, true);
    time_tokens(check, (uint32_t)kind, false);
}
