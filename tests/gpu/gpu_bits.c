/*
 * gpu_bits.c - gpu-check's first half: the device against the rules, bit by bit.
 *
 * Every elementwise kind over random bit patterns of all sorts; random tapes and whole training
 * steps of every small model with every cut, in fast mode, in trace mode and by the device's own
 * copy of the rules; roots of states.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/builder_core.h"
#include "proofs/trace.h"
#include "tests/gpu/gpu_check.h"
#include "tests/support/random_tape.h"

#define RANDOM_TAPES  600
#define PATTERN_COUNT (UINT64_C(1) << 22)
#define STEPS         4

static struct machine *cpu_open(const struct tape *tape, bool scalar)
{
    struct machine_options options;
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    gpu_check_must(machine_options_default(&options, &error), &error);
    options.isa = scalar ? ISA_SCALAR : options.isa;
    gpu_check_must(backend_cpu.open(&machine, tape, &options, &error), &error);
    return machine;
}

static void differs(struct gpu_check *check, const char *what, const struct tape *tape, uint32_t id)
{
    check->failures++;
    if (check->failures <= 40) {
        printf("  DIFFERS: %s: tensor %u '%s'\n", what, id, tape->tensors[id].name);
    }
}

static void compare(struct gpu_check *check, struct machine *cpu, struct machine *cuda,
                    const char *what)
{
    const struct tape *tape = cpu->tape;
    struct digest roots[2];
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const uint64_t size = tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);
        const void *expected = backend_cpu.peek(cpu, id);
        uint8_t *got;

        if (expected == NULL) {
            continue;
        }
        got = malloc(size);
        if (got == NULL) {
            abort();
        }
        gpu_check_must(cuda->backend->read(cuda, id, got, &error), &error);
        check->comparisons++;
        if (memcmp(got, expected, size) != 0) {
            differs(check, what, tape, id);
        }
        free(got);
    }
    gpu_check_must(machine_state_root(&roots[0], cpu, &error), &error);
    gpu_check_must(machine_state_root(&roots[1], cuda, &error), &error);
    check->comparisons++;
    if (tape->state_count > 0 && !digest_equal(&roots[0], &roots[1])) {
        check->failures++;
        printf("  DIFFERS: %s: the root of the state\n", what);
    }
}

/* Three machines of the device and one of the processor make the same steps. */
static void hold_tape(struct gpu_check *check, const struct model *model, const struct tape *tape,
                      uint64_t seed, uint32_t steps, const char *what)
{
    static const char *const ways[3] = {"fast", "trace", "rules"};
    struct machine *machines[4] = {cpu_open(tape, false), gpu_check_open(check, tape, false, false),
                                   gpu_check_open(check, tape, true, false),
                                   gpu_check_open(check, tape, false, true)};
    struct error error;

    error_init(&error);
    gpu_check_give(machines, 4, model, tape, seed);
    for (uint32_t step = 0; step < steps; step++) {
        for (int i = 0; i < 4; i++) {
            gpu_check_must(machines[i]->backend->step(machines[i], NULL, &error), &error);
        }
    }
    for (int i = 1; i < 4; i++) {
        char name[160];

        (void)snprintf(name, sizeof(name), "%s (%s)", what, ways[i - 1]);
        compare(check, machines[0], machines[i], name);
    }
    for (int i = 0; i < 4; i++) {
        machines[i]->backend->close(machines[i]);
    }
}

static void hold_models(struct gpu_check *check)
{
    static const struct precision cuts[] = {{14, 128}, {15, 0},  {16, 64},  {22, 0},
                                            {14, 16},  {16, 32}, {14, 1024}};

    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
            struct model_options options;
            struct model model;
            struct error error;
            char what[96];

            error_init(&error);
            model_options_default(&options, (enum model_kind)kind);
            options.seed = 11 + i;
            options.precision = cuts[i];
            options.batch = 3;
            options.steps = 40;
            options.data_count = kind == MODEL_GPT2 || kind == MODEL_LLAMA ? 5000 : 64;
            options.data_dtype = DTYPE_U8;
            gpu_check_must(model_build(&model, &options, &error), &error);
            (void)snprintf(what, sizeof(what), "%s, %u bits, block %u",
                           model_kind_name((enum model_kind)kind), cuts[i].bits, cuts[i].block);
            hold_tape(check, &model, model.tape, i, STEPS, what);
            model_release(&model);
        }
    }
}

/* Products at the edges of tiles and at sizes that fill a device, by each way alone. */
static void hold_path(struct gpu_check *check, enum contract_path path, const uint64_t shape[3],
                      struct precision cut, uint64_t seed)
{
    struct tape *tape = gpu_check_product(shape[0], shape[1], shape[2], cut);
    struct machine *machines[2] = {cpu_open(tape, false), gpu_check_open_path(check, tape, path)};
    struct error error;
    char what[96];

    error_init(&error);
    gpu_check_give(machines, 2, NULL, tape, seed);
    for (int m = 0; m < 2; m++) {
        gpu_check_must(machines[m]->backend->step(machines[m], NULL, &error), &error);
    }
    (void)snprintf(what, sizeof(what), "contraction by %s, %llu x %llu x %llu, %u/%u",
                   path_name(path), (unsigned long long)shape[0], (unsigned long long)shape[1],
                   (unsigned long long)shape[2], cut.bits, cut.block);
    compare(check, machines[0], machines[1], what);
    for (int m = 0; m < 2; m++) {
        machines[m]->backend->close(machines[m]);
    }
    tape_free(tape);
}

static void hold_paths(struct gpu_check *check)
{
    static const uint64_t shapes[][3] = {{257, 190, 515},  {1000, 1000, 1000}, {64, 48, 5000},
                                         {2048, 96, 1152}, {130, 4100, 64},    {3, 5, 7}};
    static const struct precision cuts[] = {{14, 128}, {14, 0},  {16, 128}, {15, 512},
                                            {22, 0},   {14, 32}, {22, 128}};

    const size_t shape_count =
        getenv("GPU_CHECK_QUICK") != NULL ? 1 : sizeof(shapes) / sizeof(shapes[0]);

    for (int path = 0; path < CONTRACT_PATHS; path++) {
        for (size_t i = 0; i < shape_count && (check->paths.offered >> path & 1) != 0; i++) {
            for (size_t j = 0; j < sizeof(cuts) / sizeof(cuts[0]); j++) {
                hold_path(check, (enum contract_path)path, shapes[i], cuts[j], i);
            }
        }
    }
}

/* Bits of all sorts: every eighth is subnormal, zero, infinite or NaN. */
static void patterns(uint32_t *words, uint64_t count, uint64_t seed)
{
    uint64_t random = seed;

    for (uint64_t i = 0; i < count; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        words[i] = (uint32_t)(random >> 32);
        if (i % 16 == 0) {
            words[i] &= UINT32_C(0x807fffff);
        } else if (i % 16 == 1) {
            words[i] |= UINT32_C(0x7f800000);
        } else if (i % 16 == 2) {
            words[i] &= UINT32_C(0x80000000);
        } else if (i % 16 < 10) {
            /* Of a size at which functions do something: 2^-8 to 2^8. */
            words[i] = (words[i] & UINT32_C(0x807fffff)) | (119 + (words[i] >> 27)) << 23;
        }
        if ((words[i] & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000)) {
            words[i] = FLOAT_NAN_BITS; /* the one NaN that is ever stored */
        }
    }
}

static struct tape *function_tape(void)
{
    static const enum op_kind ones[] = {OP_RELU, OP_GELU, OP_SILU};
    static const enum op_kind twos[] = {OP_RELU_GRAD, OP_GELU_GRAD, OP_SILU_GRAD};
    const uint64_t dims[2] = {PATTERN_COUNT / 64, 64};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    struct error error;
    uint32_t x;
    uint32_t y;
    uint32_t gain;
    uint32_t weight;

    error_init(&error);
    x = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, dims);
    y = build_tensor(builder, "y", DTYPE_F32, ROLE_INPUT, 2, dims);
    gain = build_tensor(builder, "gain", DTYPE_F32, ROLE_INPUT, 1, &dims[1]);
    weight = build_tensor(builder, "weight", DTYPE_F32, ROLE_INPUT, 2, (const uint64_t[]){96, 64});
    for (int i = 0; i < 3; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "one.%d", i);
        build_output(builder, name, build_unary(builder, ones[i], x));
        (void)snprintf(name, sizeof(name), "two.%d", i);
        build_output(builder, name, build_unary_grad(builder, twos[i], x, y));
    }
    build_output(builder, "add", build_add(builder, x, y, 1));
    build_output(builder, "mul", build_mul(builder, x, y, 1));
    build_output(builder, "scale", build_scale(builder, x, 0x1.fp-3f));
    build_output(builder, "softmax", build_softmax(builder, x, 0.125f, 0));
    build_output(builder, "causal", build_softmax(builder, y, 0.125f, 64));
    build_output(builder, "layer", build_layer_norm(builder, x, gain, gain, 1e-5f));
    build_output(builder, "rms", build_rms_norm(builder, y, gain, 1e-5f));
    build_output(builder, "linear", build_linear(builder, x, weight));
    gpu_check_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static void hold_functions(struct gpu_check *check)
{
    struct tape *tape = function_tape();
    struct machine *machines[3] = {cpu_open(tape, true), gpu_check_open(check, tape, false, false),
                                   gpu_check_open(check, tape, true, false)};
    uint32_t *words = malloc(PATTERN_COUNT * sizeof(*words));
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_INPUT) {
            patterns(words, tape->tensors[id].count, id + 1);
            for (int i = 0; i < 3; i++) {
                gpu_check_must(machines[i]->backend->write(machines[i], id, words, &error), &error);
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        gpu_check_must(machines[i]->backend->step(machines[i], NULL, &error), &error);
    }
    compare(check, machines[0], machines[1], "functions (fast)");
    compare(check, machines[0], machines[2], "functions (trace)");
    for (int i = 0; i < 3; i++) {
        machines[i]->backend->close(machines[i]);
    }
    free(words);
    tape_free(tape);
}

void gpu_check_bits(struct gpu_check *check)
{
    hold_paths(check);
    hold_functions(check);
    hold_models(check);
    for (uint64_t seed = 0; seed < RANDOM_TAPES; seed++) {
        struct tape *tape = random_tape(seed, 3 + (uint32_t)(seed % 25));
        char what[64];

        (void)snprintf(what, sizeof(what), "random tape %llu", (unsigned long long)seed);
        hold_tape(check, NULL, tape, seed, 3, what);
        tape_free(tape);
    }
    gpu_check_number(check, "tensors and roots compared", (double)check->comparisons, "");
    gpu_check_number(check, "of which differ", (double)check->failures, "");
}
