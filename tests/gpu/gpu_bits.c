/*
 * gpu_bits.c - gpu-check's first half: the device against the rules, bit by bit.
 *
 * Every elementwise kind over random bit patterns of all sorts; random tapes and whole training
 * steps of every small model with every cut, in fast mode, in trace mode and by the device's own
 * copy of the rules; the pinned states of the fixtures' runs; roots of tensors and of states.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/tape/builder_core.h"
#include "proofs/commit/trace.h"
#include "tests/gpu/gpu_check.h"
#include "tests/support/device/training_runs.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"

#define RANDOM_TAPES   600
#define PATTERN_COUNT  (UINT64_C(1) << 22)
#define PATTERNS_QUICK 4096
#define STEPS          4

void gpu_check_compare(struct gpu_check *check, struct machine *cpu, struct machine *other,
                       const char *what)
{
    const struct tape *tape = cpu->tape;
    struct digest roots[2];
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const uint64_t size = tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);
        const void *expected = cpu->backend->peek(cpu, id);
        uint8_t *got;

        if (expected == NULL) {
            continue;
        }
        got = malloc(size);
        if (got == NULL) {
            gpu_check_must(error_set(&error, STATUS_NO_MEMORY, "no memory to compare"), &error);
            return;
        }
        gpu_check_must(other->backend->read(other, id, got, &error), &error);
        check->tally->comparisons++;
        if (memcmp(got, expected, size) != 0) {
            char text[160];

            (void)snprintf(text, sizeof(text), "%s: tensor %u '%s'", what, id,
                           tape->tensors[id].name);
            gpu_check_differs(check, text);
        }
        free(got);
    }
    gpu_check_must(state_root_of(&roots[0], cpu, &error), &error);
    gpu_check_must(state_root_of(&roots[1], other, &error), &error);
    check->tally->comparisons++;
    if (tape->state_count > 0 && !digest_equal(&roots[0], &roots[1])) {
        gpu_check_differs(check, "the root of the state");
    }
}

/* Three machines of the device and one of the processor make the same steps. */
static void hold_tape(struct gpu_check *check, const struct model *model, const struct tape *tape,
                      uint64_t seed, uint32_t steps, const char *what)
{
    static const char *const ways[3] = {"fast", "trace", "rules"};
    struct machine *machines[4] = {
        gpu_check_cpu(tape, false, false), gpu_check_open(check, tape, false, false),
        gpu_check_open(check, tape, true, false), gpu_check_open(check, tape, false, true)};
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
        gpu_check_compare(check, machines[0], machines[i], name);
    }
    for (int i = 0; i < 4; i++) {
        machines[i]->backend->close(machines[i]);
    }
}

void gpu_check_model(struct gpu_check *check, int kind)
{
    static const struct precision cuts[] = {{14, 128}, {15, 0},  {16, 64},  {22, 0},
                                            {14, 16},  {16, 32}, {14, 1024}};

    for (size_t i = 0; i < (check->quick ? 1 : sizeof(cuts) / sizeof(cuts[0])); i++) {
        struct model_options options;
        struct model model;
        struct error error;
        char what[96];

        error_init(&error);
        model_options_default(&options, (enum model_kind)kind);
        options.seed = 11 + i;
        options.precision = cuts[i];
        options.batch = check->quick ? 1 : 3;
        if (check->quick) {
            options.width = options.layers == 0 ? options.width : 16;
            options.layers = options.layers == 0 ? 0 : 1;
            options.heads = options.heads == 0 ? 0 : 2;
            options.length = options.length == 0 ? 0 : 8;
            options.hidden = options.hidden == 0 ? 0 : 4;
        }
        options.steps = 40;
        options.data_count = kind == MODEL_GPT2 || kind == MODEL_LLAMA ? 5000 : 64;
        options.data_dtype = DTYPE_U8;
        gpu_check_must(model_build(&model, &options, &error), &error);
        (void)snprintf(what, sizeof(what), "%s, %u bits, block %u",
                       model_kind_name((enum model_kind)kind), cuts[i].bits, cuts[i].block);
        hold_tape(check, &model, model.tape, i, check->quick ? 2 : STEPS, what);
        model_release(&model);
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

static struct tape *function_tape(uint64_t count)
{
    static const enum map_function ones[] = {MAP_RELU, MAP_GELU, MAP_SILU};
    static const enum binary_function twos[] = {BINARY_RELU_GRAD, BINARY_GELU_GRAD,
                                                BINARY_SILU_GRAD};
    const uint64_t dims[2] = {count / 64, 64};
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
        build_output(builder, name, build_map(builder, ones[i], x));
        (void)snprintf(name, sizeof(name), "two.%d", i);
        build_output(builder, name, build_binary(builder, twos[i], x, y));
    }
    build_output(builder, "add", build_add(builder, x, y, 1));
    build_output(builder, "mul", build_mul(builder, x, y, 1));
    build_output(builder, "scale", build_scale(builder, x, 0x1.fp-3f));
    build_output(builder, "softmax", build_softmax(builder, x, 0.125f, 0, TENSOR_NONE));
    build_output(builder, "causal", build_softmax(builder, y, 0.125f, 64, TENSOR_NONE));
    build_output(builder, "layer", build_layer_norm(builder, x, gain, gain, 1e-5f));
    build_output(builder, "rms", build_rms_norm(builder, y, gain, 1e-5f));
    build_output(builder, "linear", build_linear(builder, x, weight));
    gpu_check_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

void gpu_check_functions(struct gpu_check *check, int kind)
{
    struct tape *tape = function_tape(check->quick ? PATTERNS_QUICK : PATTERN_COUNT);
    struct machine *machines[3] = {gpu_check_cpu(tape, true, false),
                                   gpu_check_open(check, tape, false, false),
                                   gpu_check_open(check, tape, true, false)};
    uint32_t *words = malloc(PATTERN_COUNT * sizeof(*words));
    struct error error;

    (void)kind;
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
    gpu_check_compare(check, machines[0], machines[1], "functions (fast)");
    gpu_check_compare(check, machines[0], machines[2], "functions (trace)");
    for (int i = 0; i < 3; i++) {
        machines[i]->backend->close(machines[i]);
    }
    free(words);
    tape_free(tape);
}

void gpu_check_tapes(struct gpu_check *check, int kind)
{
    (void)kind;
    for (uint64_t seed = 0; seed < (check->quick ? 6 : RANDOM_TAPES); seed++) {
        struct tape *tape = random_tape(seed, 3 + (uint32_t)(seed % 25));
        char what[64];

        (void)snprintf(what, sizeof(what), "random tape %llu", (unsigned long long)seed);
        hold_tape(check, NULL, tape, seed, 3, what);
        tape_free(tape);
    }
}

/* ---- pinned states ------------------------------------------------------------ */

/* The fixtures' training runs end where every processor ends. */
void gpu_check_pinned(struct gpu_check *check, int kind)
{
    const struct training_run *run = &training_runs[kind];
    struct model_options options;
    struct small_model small;
    struct machine *machine;
    uint32_t done = 0;
    struct error error;

    error_init(&error);
    if (access("fixtures/text/village.u8", R_OK) != 0) {
        gpu_check_must(error_set(&error, STATUS_IO, "run it where the folder 'fixtures' is"),
                       &error);
    }
    small_model_options(&options, run->kind);
    small_model_open(&small, &options);
    machine = gpu_check_open(check, small.model.tape, false, false);
    small_machine_give(machine, &small);
    for (int i = 0; i < (check->quick ? 1 : TRAINING_MARKS_MAX) && run->steps[i] != 0; i++) {
        char digest[SMALL_DIGEST_TEXT];

        for (; done < run->steps[i]; done++) {
            gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
        }
        small_machine_digest(digest, machine);
        check->tally->comparisons++;
        if (strcmp(digest, run->digests[i]) != 0) {
            char what[96];

            (void)snprintf(what, sizeof(what), "%s after %u steps is not what is pinned",
                           model_kind_name(run->kind), done);
            gpu_check_differs(check, what);
        }
    }
    machine->backend->close(machine);
    small_model_close(&small);
}

/* ---- hashing ---------------------------------------------------------------------- */

/* Roots of tensors of all sorts of sizes, at once, beside the processor's. */
void gpu_check_hashes(struct gpu_check *check, int kind)
{
    static const uint64_t sizes[] = {4,      1020,   1024,   1028,   2048,    4092,     261120,
                                     262140, 262144, 262148, 524292, 1048576, 67108868, 268436480};
    const size_t count = check->quick ? 10 : sizeof(sizes) / sizeof(sizes[0]);
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    struct machine *machine;
    struct digest roots[sizeof(sizes) / sizeof(sizes[0])];
    uint32_t ids[sizeof(sizes) / sizeof(sizes[0])];
    uint32_t *words[sizeof(sizes) / sizeof(sizes[0])];
    struct error error;

    (void)kind;
    error_init(&error);
    for (size_t i = 0; i < count; i++) {
        const uint64_t elements = sizes[i] / 4;
        char name[32];

        (void)snprintf(name, sizeof(name), "x.%zu", i);
        ids[i] = build_tensor(builder, name, DTYPE_F32, ROLE_INPUT, 1, &elements);
    }
    build_output(builder, "y", build_scale(builder, ids[0], 2.0f));
    gpu_check_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    machine = gpu_check_open(check, tape, false, false);
    for (size_t i = 0; i < count; i++) {
        words[i] = malloc(sizes[i]);
        patterns(words[i], sizes[i] / 4, i);
        gpu_check_must(machine->backend->write(machine, ids[i], words[i], &error), &error);
    }
    gpu_check_must(machine->backend->leaves_roots(machine, roots, ids, (uint32_t)count, &error),
                   &error);
    for (size_t i = 0; i < count; i++) {
        struct merkle_leaves leaves;
        struct digest expected;

        merkle_leaves_init_bytes(&leaves, words[i], sizes[i]);
        merkle_root(&expected, &leaves);
        check->tally->comparisons++;
        if (!digest_equal(&expected, &roots[i])) {
            char what[64];

            (void)snprintf(what, sizeof(what), "the root of %llu bytes",
                           (unsigned long long)sizes[i]);
            gpu_check_differs(check, what);
        }
        free(words[i]);
    }
    machine->backend->close(machine);
    tape_free(tape);
}
