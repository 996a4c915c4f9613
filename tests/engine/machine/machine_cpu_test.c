/*
 * machine_cpu_test.c - all machines give the same bits.
 *
 * Whole steps of small models and of random tapes: fast mode, trace mode and the looped rules
 * agree, on one and two threads, for every instruction set of this CPU. The outputs that an
 * observer sees are what the rules give on the outputs before. A floating-point control word that a
 * hostile library left behind changes nothing. Machines refuse what they cannot do, and say what.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/rules/rule.h"
#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

#define STEPS 3

static void open_small(struct small_model *small, int kind)
{
    struct model_options options;

    small_model_options(&options, (enum model_kind)kind);
    small_model_open(small, &options);
}

/* ---- all machines agree ------------------------------------------------- */

struct variant {
    enum isa isa;
    int thread_count;
    bool trace;
};

/* Calls for every instruction set and mode, with one and with two threads. */
static void each_variant(void (*call)(const struct variant *variant, void *context), void *context)
{
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        for (int i = 0; i < 4 && isa_available((enum isa)isa); i++) {
            struct variant variant = {(enum isa)isa, 1 + i % 2, i / 2 == 1};

            call(&variant, context);
        }
    }
}

struct model_case {
    struct small_model small;
    char digest[SMALL_DIGEST_TEXT]; /* of the first variant */
};

static void run_model(const struct variant *variant, void *context)
{
    struct model_case *model = context;
    struct machine *machine =
        small_machine_open(&model->small, variant->isa, variant->thread_count, variant->trace);
    char digest[SMALL_DIGEST_TEXT];

    small_machine_steps(machine, STEPS);
    small_machine_digest(digest, machine);
    if (model->digest[0] == '\0') {
        memcpy(model->digest, digest, sizeof(digest));
    } else if (strcmp(digest, model->digest) != 0) {
        fail_msg("%s: %s, %d threads, %s mode differs",
                 model_kind_name(model->small.model.options.kind), isa_name(variant->isa),
                 variant->thread_count, variant->trace ? "trace" : "fast");
    }
    backend_cpu.close(machine);
}

/* Every bits and block of a contraction, in every model: the pinned runs have one each. */
static void test_models_have_the_same_bits_in_every_variant(void **state)
{
    static const struct precision cuts[] = {{14, 128}, {15, 0}, {16, 64}, {22, 0}, {14, 1024}};

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
            struct model_case model = {.digest = ""};
            struct model_options options;

            small_model_options(&options, (enum model_kind)kind);
            options.precision = cuts[i];
            small_model_open(&model.small, &options);
            each_variant(run_model, &model);
            small_model_close(&model.small);
        }
    }
}

struct random_case {
    struct tape *tape;
    uint64_t seed;
    struct random_machine first;
    bool has_first;
};

static void run_random(const struct variant *variant, void *context)
{
    struct random_case *random = context;
    struct machine_options options = {
        .isa = variant->isa, .thread_count = variant->thread_count, .trace = variant->trace};
    struct random_machine machine;
    const char *name = "";

    random_machine_open(&machine, random->tape, &options, random->seed);
    random_machine_step(&machine, NULL);
    random_machine_step(&machine, NULL);
    if (!random->has_first) {
        random->first = machine;
        random->has_first = true;
        return;
    }
    if (!random_machine_equal(&name, &random->first, &machine)) {
        fail_msg("tape %llu: '%s' differs on %s, %d threads, %s mode",
                 (unsigned long long)random->seed, name, isa_name(variant->isa),
                 variant->thread_count, variant->trace ? "trace" : "fast");
    }
    random_machine_close(&machine);
}

static void test_random_tapes_have_the_same_bits_in_every_variant(void **state)
{
    uint64_t count = test_share(20000, 150);

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct random_case random = {.tape = random_tape(seed, 3 + (uint32_t)(seed % 25)),
                                     .seed = seed};

        each_variant(run_random, &random);
        random_machine_close(&random.first);
        tape_free(random.tape);
    }
}

/* ---- what the observer sees --------------------------------------------- */

/* Keeps a copy of every output, and recomputes it by the rules. */
struct witness {
    const struct tape *tape;
    void **seen; /* per tensor; what is given is there from the start */
    uint32_t next_op;
    uint32_t next_output;
    uint32_t stop_at; /* operation at which to fail; or UINT32_MAX */
    uint64_t elements;
};

static struct operand operand_of(const struct witness *witness, uint32_t id)
{
    const struct tensor *tensor = &witness->tape->tensors[id];

    assert_non_null(witness->seen[id]);
    return (struct operand){
        .memory = witness->seen[id], .dtype = tensor->dtype, .count = tensor->count, .tensor = id};
}

static uint32_t narrow(uint32_t bits, enum dtype dtype)
{
    return dtype == DTYPE_I16 ? (uint32_t)(int32_t)(int16_t)bits : bits;
}

/* Recomputes all of a small output, a sample of a large one. */
static void recompute(struct witness *witness, uint32_t at, uint32_t output)
{
    const struct op *op = &witness->tape->ops[at];
    const struct tensor *tensor = &witness->tape->tensors[op->outputs[output]];
    struct rule_call call = {.op = op};
    uint64_t stride = tensor->count / 512 + 1;

    for (uint32_t i = 0; i < op->input_count; i++) {
        call.inputs[i] = operand_of(witness, op->inputs[i]);
    }
    for (uint32_t i = 0; i <= output; i++) {
        call.outputs[i] = operand_of(witness, op->outputs[i]);
    }
    for (uint64_t i = 0; i < tensor->count; i += stride) {
        uint32_t shown = operand_get(&call.outputs[output], i);
        uint32_t by_rule = narrow(rule_element(&call, output, i), tensor->dtype);

        if (shown != by_rule) {
            fail_msg("operation %u (%s), output %u, element %llu: shown %08x, by the rule %08x", at,
                     op_kind_name(op->kind), output, (unsigned long long)i, shown, by_rule);
        }
        witness->elements++;
    }
}

static enum status witness_made(void *context, struct op_turn maker, uint32_t output,
                                const void *bytes, uint64_t size, struct error *error)
{
    struct witness *witness = context;
    uint32_t id = witness->tape->ops[maker.op].outputs[output];
    const struct tensor *tensor = &witness->tape->tensors[id];

    if (maker.op == witness->stop_at) {
        return error_set(error, STATUS_STOPPED, "seen enough");
    }
    assert_int_equal(maker.op, witness->next_op);
    assert_int_equal(output, witness->next_output);
    assert_int_equal(size, tensor->count * dtype_size(tensor->dtype));
    witness->next_output++;
    if (witness->next_output == witness->tape->ops[maker.op].output_count) {
        witness->next_output = 0;
        witness->next_op++;
    }
    witness->seen[id] = realloc(witness->seen[id], size);
    assert_non_null(witness->seen[id]);
    memcpy(witness->seen[id], bytes, size);
    recompute(witness, maker.op, output);
    return STATUS_OK;
}

/* Copies the states, the constants and the data. */
static void witness_open(struct witness *witness, const struct small_model *small,
                         struct machine *machine)
{
    const struct tape *tape = small->model.tape;

    *witness = (struct witness){.tape = tape, .stop_at = UINT32_MAX};
    witness->seen = calloc(tape->tensor_count, sizeof(*witness->seen));
    assert_non_null(witness->seen);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        const void *bytes = id == small->model.data     ? small->data
                            : id == small->model.labels ? small->labels
                                                        : backend_cpu.peek(machine, id);
        size_t size = tensor->count * dtype_size(tensor->dtype);

        if (!role_is_made(tensor->role)) {
            witness->seen[id] = malloc(size);
            assert_non_null(witness->seen[id]);
            memcpy(witness->seen[id], bytes, size);
        }
    }
}

static void witness_close(struct witness *witness)
{
    for (uint32_t id = 0; id < witness->tape->tensor_count; id++) {
        free(witness->seen[id]);
    }
    free(witness->seen);
}

static void test_observer_sees_all_outputs_in_order_and_the_rules_agree(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct small_model small;
        struct machine *machine;
        struct witness witness;
        struct observer observer = {.made = witness_made, .context = &witness};
        struct error error;

        error_init(&error);
        open_small(&small, kind);
        machine = small_machine_open(&small, isa_best(), 2, true);
        small_machine_steps(machine, 2); /* so that moments are not zero */
        witness_open(&witness, &small, machine);
        assert_int_equal(backend_cpu.step(machine, &observer, &error), STATUS_OK);
        assert_int_equal(witness.next_op, small.model.tape->op_count);
        assert_true(witness.elements > 1000);
        /* The next states are the outputs that were shown. */
        for (uint32_t i = 0; i < small.model.tape->state_count; i++) {
            const struct state_pair *pair = &small.model.tape->states[i];
            const struct tensor *tensor = &small.model.tape->tensors[pair->before];

            assert_memory_equal(backend_cpu.peek(machine, pair->before), witness.seen[pair->after],
                                tensor->count * dtype_size(tensor->dtype));
        }
        witness_close(&witness);
        backend_cpu.close(machine);
        small_model_close(&small);
    }
}

static void test_observer_that_refuses_stops_the_step(void **state)
{
    struct small_model small;
    struct machine *machine;
    struct witness witness;
    struct observer observer = {.made = witness_made, .context = &witness};
    struct error error;

    (void)state;
    error_init(&error);
    open_small(&small, MODEL_MLP);
    machine = small_machine_open(&small, isa_best(), 1, true);
    witness_open(&witness, &small, machine);
    witness.stop_at = 3;
    assert_int_equal(backend_cpu.step(machine, &observer, &error), STATUS_STOPPED);
    assert_string_equal(error.text, "seen enough");
    assert_int_equal(witness.next_op, 3);
    witness_close(&witness);
    backend_cpu.close(machine);
    small_model_close(&small);
}

/* ---- a hostile library -------------------------------------------------- */

#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
#define FLUSH_BOTH  0x8040u /* flush-to-zero and denormals-are-zero */
#define ROUND_UP    0x4000u
#define CLEAN_STATE 0x1f80u

static void set_control(unsigned word)
{
    _mm_setcsr(word);
}

static unsigned get_control(void)
{
    return _mm_getcsr() & ~0x3fu;
}
#else
#define FLUSH_BOTH  0x3000000u /* FPCR: flush-to-zero and default NaN */
#define ROUND_UP    0x0400000u
#define CLEAN_STATE 0x0u

static void set_control(unsigned word)
{
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)word));
}

static unsigned get_control(void)
{
    uint64_t word;

    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (unsigned)word;
}
#endif

/* Sets a control word on the calling thread and on every worker of the pool. */
static void poison_threads(unsigned word)
{
#pragma omp parallel num_threads(2)
    set_control(word);
    /* Again: some runtimes restore the caller's word at the end of a parallel region. */
    set_control(word);
}

static void test_flush_to_zero_and_rounding_left_by_others_change_nothing(void **state)
{
    static const unsigned words[] = {CLEAN_STATE | FLUSH_BOTH, CLEAN_STATE | ROUND_UP,
                                     FLUSH_BOTH | ROUND_UP};

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct small_model small;
        char expected[SMALL_DIGEST_TEXT];
        struct machine *machine;

        open_small(&small, kind);
        machine = small_machine_open(&small, isa_best(), 2, false);
        small_machine_steps(machine, STEPS);
        small_machine_digest(expected, machine);
        backend_cpu.close(machine);
        for (int i = 0; i < 6; i++) {
            char digest[SMALL_DIGEST_TEXT];
            unsigned word =
                words[i % 3] | CLEAN_STATE; /* keep traps off, or we die of our own poison */
            enum isa isa = i < 3 ? isa_best() : ISA_SCALAR;

            machine = small_machine_open(&small, isa, 2, false);
            for (int step = 0; step < STEPS; step++) {
                poison_threads(word);
                small_machine_steps(machine, 1);
                /* The caller's own word is handed back as it was. */
                assert_int_equal(get_control(), word);
            }
            poison_threads(CLEAN_STATE);
            small_machine_digest(digest, machine);
            assert_string_equal(digest, expected);
            backend_cpu.close(machine);
        }
        small_model_close(&small);
    }
}

/* Tables, first states and single rules are computed outside of machines. */
static void test_poisoned_control_changes_no_model_and_no_single_rule(void **state)
{
    static const unsigned words[] = {CLEAN_STATE | FLUSH_BOTH, CLEAN_STATE | ROUND_UP};
    static const uint32_t a[1] = {0x00000003}; /* a subnormal */
    struct op op = {
        .kind = OP_MAP, .input_count = 1, .output_count = 1, .attribute_count = MAP_ATTRIBUTES};
    struct rule_call call = {.op = &op};
    struct model_options options;
    struct small_model clean;

    (void)state;
    op.attributes[MAP_FUNCTION] = MAP_SCALE;
    op.attributes[MAP_CONSTANT_BITS] = 0x3f000000;
    call.inputs[0] = (struct operand){.memory = a, .dtype = DTYPE_F32, .count = 1};
    small_model_options(&options, MODEL_LLAMA);
    options.schedule = SCHEDULE_COSINE;
    small_model_open(&clean, &options);
    for (size_t i = 0; i < 2; i++) {
        struct small_model small;

        poison_threads(words[i]);
        small_model_open(&small, &options);
        for (uint32_t k = 0; k < small.model.constant_count; k++) {
            const struct tensor *tensor =
                &small.model.tape->tensors[small.model.constants[k].tensor];

            assert_memory_equal(small.model.constants[k].bytes, clean.model.constants[k].bytes,
                                tensor->count * dtype_size(tensor->dtype));
        }
        for (uint32_t k = 0; k < small.model.parameter_count; k++) {
            uint32_t id = small.model.parameters[k];
            size_t size = small.model.tape->tensors[id].count * sizeof(float);
            void *values[2] = {malloc(size), malloc(size)};

            poison_threads(words[i]);
            model_first_state(values[0], &small.model, id);
            poison_threads(CLEAN_STATE);
            model_first_state(values[1], &clean.model, id);
            assert_memory_equal(values[0], values[1], size);
            free(values[0]);
            free(values[1]);
        }
        poison_threads(words[i]);
        assert_int_equal(rule_element(&call, 0, 0), 0x00000002); /* 1.5, to even */
        assert_int_equal(get_control(), words[i]);
        poison_threads(CLEAN_STATE);
        small_model_close(&small);
    }
    small_model_close(&clean);
}
#else
static void test_flush_to_zero_and_rounding_left_by_others_change_nothing(void **state)
{
    (void)state;
    test_skip("no control word to poison is known for this CPU");
}

static void test_poisoned_control_changes_no_model_and_no_single_rule(void **state)
{
    (void)state;
    test_skip("no control word to poison is known for this CPU");
}
#endif

/* A step whose results are subnormal. */
static void run_subnormal(const struct variant *variant, void *context)
{
    const struct tape *tape = context;
    struct machine_options options = {
        .isa = variant->isa, .thread_count = variant->thread_count, .trace = variant->trace};
    uint32_t tiny[4] = {0x00800001, 0x80800003, 0x00000007, 0x00ffffff};
    uint32_t result[4];
    struct machine *machine;
    struct error error;

    error_init(&error);
    assert_int_equal(backend_cpu.open(&machine, tape, &options, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, 0, tiny, &error), STATUS_OK);
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    assert_int_equal(backend_cpu.read(machine, 0, result, &error), STATUS_OK);
    /* Halves, to nearest even: 0x400000.8 -> 0x400000, 3.5 -> 4 and so on. */
    assert_int_equal(result[0], 0x00400000);
    assert_int_equal(result[1], 0x80400002);
    assert_int_equal(result[2], 0x00000004);
    assert_int_equal(result[3], 0x00800000);
    backend_cpu.close(machine);
}

static void test_subnormals_are_kept(void **state)
{
    static const uint64_t dims[1] = {4};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 1, dims);

    (void)state;
    build_after(builder, x, build_scale(builder, x, 0.5f));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    each_variant(run_subnormal, tape);
    tape_free(tape);
}

/* ---- refusals ----------------------------------------------------------- */

/* A tape that needs terabytes is refused by its size, before any allocation. */
static void test_memory_limit_refuses_before_allocating(void **state)
{
    static const uint64_t dims[2] = {1 << 20, 1 << 19};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct machine_options options = {.thread_count = 1};
    struct tape *tape = NULL;
    struct machine *machine = NULL;
    struct error error;
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 2, dims);

    (void)state;
    error_init(&error);
    build_after(builder, x, build_map(builder, MAP_GELU, x));
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_OK);
    builder_free(builder);
    options.memory_max = 1 << 20;
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa)) {
            options.isa = (enum isa)isa;
            assert_int_equal(backend_cpu.open(&machine, tape, &options, &error), STATUS_NO_MEMORY);
            assert_null(machine);
            assert_non_null(strstr(error.text, "and 1.0 MiB are allowed"));
            /* A vector kernel writes over its input; a rule may still read it. */
            assert_non_null(strstr(error.text, isa == ISA_SCALAR ? "needs 4194304.0 MiB"
                                                                 : "needs 2097152.0 MiB"));
        }
    }
    tape_free(tape);
}

static void test_memory_limit_counts_what_is_taken(void **state)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct small_model small;
    struct machine *machine = NULL;
    struct error error;
    uint64_t low = 1;
    uint64_t high = UINT64_C(1) << 30;

    (void)state;
    error_init(&error);
    open_small(&small, MODEL_GPT2);
    while (low + 1 < high) { /* low is refused, high is enough */
        options.memory_max = low + (high - low) / 2;
        if (backend_cpu.open(&machine, small.model.tape, &options, &error) == STATUS_OK) {
            backend_cpu.close(machine);
            high = options.memory_max;
        } else {
            low = options.memory_max;
        }
    }
    /* All states and at least one activation, and less than a trace would take. */
    assert_true(high > tape_footprint(small.model.tape).state);
    assert_true(high < tape_footprint(small.model.tape).state +
                           tape_footprint(small.model.tape).constant +
                           tape_footprint(small.model.tape).trace);
    small_model_close(&small);
}

static void test_data_that_is_not_bound_is_named(void **state)
{
    struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1};
    struct small_model small;
    struct machine *machine = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    open_small(&small, MODEL_GPT2);
    assert_int_equal(backend_cpu.open(&machine, small.model.tape, &options, &error), STATUS_OK);
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "'data'"));
    backend_cpu.close(machine);
    small_model_close(&small);
}

static void test_only_given_tensors_are_written_and_lasting_ones_read(void **state)
{
    struct small_model small;
    struct machine *machine;
    struct error error;
    float value[4096] = {0};
    const struct tape *tape;

    (void)state;
    error_init(&error);
    open_small(&small, MODEL_MLP);
    tape = small.model.tape;
    machine = small_machine_open(&small, isa_best(), 1, false);
    small_machine_steps(machine, 1);
    assert_int_equal(backend_cpu.write(machine, tape->loss, value, &error), STATUS_USAGE);
    assert_int_equal(backend_cpu.write(machine, small.model.data, value, &error), STATUS_USAGE);
    assert_int_equal(backend_cpu.write(machine, UINT32_MAX, value, &error), STATUS_USAGE);
    assert_int_equal(backend_cpu.read(machine, tape->ops[4].outputs[0], value, &error),
                     STATUS_USAGE);
    assert_int_equal(backend_cpu.read(machine, UINT32_MAX, value, &error), STATUS_USAGE);
    assert_int_equal(backend_cpu.bind(machine, tape->loss, value, &error), STATUS_USAGE);
    assert_int_equal(backend_cpu.read(machine, tape->loss, value, &error), STATUS_OK);
    assert_true(value[0] > 0.0f);
    assert_null(backend_cpu.peek(machine, small.model.data));
    backend_cpu.close(machine);
    small_model_close(&small);
}

static void test_state_that_is_not_finite_is_diverged(void **state)
{
    static const uint32_t bad[] = {FLOAT_NAN_BITS, 0x7f800000, 0xff800000};
    struct small_model small;
    struct machine *machine;
    struct error error;
    uint32_t id;

    (void)state;
    error_init(&error);
    open_small(&small, MODEL_MLP);
    machine = small_machine_open(&small, isa_best(), 2, false);
    assert_false(small_machine_diverged(machine));
    id = model_find(&small.model, "layers.0.weight");
    assert_int_equal(small.model.tape->tensors[id].count, 3072);
    for (size_t i = 0; i < 3; i++) {
        static const size_t places[] = {0, 1, 1023, 1024, 2047, 3071};

        for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
            static uint32_t weight[3072];

            weight[places[k]] = bad[i];
            assert_int_equal(backend_cpu.write(machine, id, weight, &error), STATUS_OK);
            assert_true(small_machine_diverged(machine));
            weight[places[k]] = 0xff7fffff; /* the largest is still a number */
            assert_int_equal(backend_cpu.write(machine, id, weight, &error), STATUS_OK);
            assert_false(small_machine_diverged(machine));
        }
    }
    {
        uint32_t bias[10] = {[9] = 0x7f800000}; /* a short one */

        id = model_find(&small.model, "head.bias");
        assert_int_equal(backend_cpu.write(machine, id, bias, &error), STATUS_OK);
        assert_true(small_machine_diverged(machine));
    }
    backend_cpu.close(machine);
    small_model_close(&small);
}

/* A NaN in one weight gives the same bits of every state on every machine. */
static void test_poisoned_weight_spreads_alike(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        char first[SMALL_DIGEST_TEXT] = "";
        struct small_model small;

        open_small(&small, kind);
        for (int isa = 0; isa < ISA_COUNT; isa++) {
            char digest[SMALL_DIGEST_TEXT];
            uint32_t id = small.model.parameters[small.model.parameter_count / 2];
            struct machine *machine;

            if (!isa_available((enum isa)isa)) {
                continue;
            }
            machine = small_machine_open(&small, (enum isa)isa, 2, false);
            ((uint32_t *)(uintptr_t)backend_cpu.peek(machine, id))[1] = FLOAT_NAN_BITS;
            small_machine_steps(machine, 2);
            assert_true(small_machine_diverged(machine));
            small_machine_digest(digest, machine);
            if (first[0] == '\0') {
                memcpy(first, digest, sizeof(first));
            }
            assert_string_equal(digest, first);
            backend_cpu.close(machine);
        }
        small_model_close(&small);
    }
}

static void test_wish_for_an_instruction_set_is_obeyed_or_refused(void **state)
{
    struct machine_options options;
    struct error error;

    (void)state;
    error_init(&error);
    (void)setenv("LOCKSTEP_ISA", "scalar", 1);
    assert_int_equal(machine_options_default(&options, &error), STATUS_OK);
    assert_int_equal(options.isa, ISA_SCALAR);
    (void)setenv("LOCKSTEP_ISA", "sse9", 1);
    assert_int_equal(machine_options_default(&options, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "sse9"));
    (void)unsetenv("LOCKSTEP_ISA");
    assert_int_equal(machine_options_default(&options, &error), STATUS_OK);
    assert_int_equal(options.isa, isa_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_have_the_same_bits_in_every_variant),
        cmocka_unit_test(test_random_tapes_have_the_same_bits_in_every_variant),
        cmocka_unit_test(test_observer_sees_all_outputs_in_order_and_the_rules_agree),
        cmocka_unit_test(test_observer_that_refuses_stops_the_step),
        cmocka_unit_test(test_flush_to_zero_and_rounding_left_by_others_change_nothing),
        cmocka_unit_test(test_poisoned_control_changes_no_model_and_no_single_rule),
        cmocka_unit_test(test_subnormals_are_kept),
        cmocka_unit_test(test_memory_limit_refuses_before_allocating),
        cmocka_unit_test(test_memory_limit_counts_what_is_taken),
        cmocka_unit_test(test_data_that_is_not_bound_is_named),
        cmocka_unit_test(test_only_given_tensors_are_written_and_lasting_ones_read),
        cmocka_unit_test(test_state_that_is_not_finite_is_diverged),
        cmocka_unit_test(test_poisoned_weight_spreads_alike),
        cmocka_unit_test(test_wish_for_an_instruction_set_is_obeyed_or_refused),
    };

    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
