/*
 * model_test.c - tapes of models from options, with their first states and constants.
 *
 * Options that make no sense are refused by name. Names and shapes of GPT-2 are those of the
 * published weights ("openai-community/gpt2", model.safetensors, without the prefix of some
 * copies); those of Llama follow the published layout. Inference gives the bits of the training
 * tape's forward pass. Schedules and rotary tables are compared with libm.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "engine/models/graph/graph.h"
#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

/* ---- refusals ----------------------------------------------------------- */

struct move_retry {
    enum model_kind kind;
    size_t offset; /* of the option in struct model_options */
    char type;     /* u: uint32_t, d: double, e: an enumeration */
    double value;
    const char *words;
};

#define U(field) offsetof(struct model_options, field), 'u'
#define D(field) offsetof(struct model_options, field), 'd'
#define E(field) offsetof(struct model_options, field), 'e'

static const struct move_retry refusals[] = {
    {MODEL_GPT2, U(batch), 0, "'batch'"},
    {MODEL_GPT2, U(length), 0, "'length'"},
    {MODEL_GPT2, U(vocabulary), 0, "'vocabulary'"},
    {MODEL_GPT2, U(layers), 0, "'layers'"},
    {MODEL_GPT2, U(heads), 0, "'heads'"},
    {MODEL_GPT2, U(width), 0, "'width'"},
    {MODEL_GPT2, U(heads), 3, "a width of 20 is not a multiple of 3 heads"},
    {MODEL_GPT2, U(positions), 5, "as many positions, not 5"},
    {MODEL_GPT2, U(length), 4294967295.0, "sequences of 4294967295 tokens"},
    {MODEL_GPT2, U(vocabulary), 4294967295.0, "columns is 4294967295"},
    {MODEL_GPT2, U(width), 4294967294.0, "columns is 4294967294"},
    {MODEL_GPT2, U(layers), 4294967295.0, "at most"},
    {MODEL_LLAMA, U(batch), 0, "'batch'"},
    {MODEL_LLAMA, U(length), 0, "'length'"},
    {MODEL_LLAMA, U(length), 1048577, "sequences of 1048577 tokens"},
    {MODEL_LLAMA, U(vocabulary), 0, "'vocabulary'"},
    {MODEL_LLAMA, U(layers), 0, "'layers'"},
    {MODEL_LLAMA, U(heads), 0, "'heads'"},
    {MODEL_LLAMA, U(width), 0, "'width'"},
    {MODEL_LLAMA, U(width), 20, "be even"},
    {MODEL_LLAMA, U(kv_heads), 3, "divide evenly"},
    {MODEL_LLAMA, U(width), 4294967288.0, "rotary"},
    {MODEL_MLP, U(batch), 0, "'batch'"},
    {MODEL_MLP, U(layers), 0, "'layers'"},
    {MODEL_MLP, U(hidden), 0, "'hidden'"},
    {MODEL_MLP, U(classes), 0, "'classes'"},
    {MODEL_MLP, U(image_height), 0, "'image-height'"},
    {MODEL_MLP, U(image_width), 0, "'image-width'"},
    {MODEL_MLP, U(channels), 0, "'channels'"},
    {MODEL_CONVNET, U(batch), 0, "'batch'"},
    {MODEL_CONVNET, U(hidden), 0, "'hidden'"},
    {MODEL_CONVNET, U(image_height), 3, "image-height"},
    {MODEL_CONVNET, U(image_width), 0, "image-width"},
    {MODEL_MLP, U(steps), 0, "0 steps"},
    {MODEL_MLP, U(steps), 4294967295.0, "4294967295 steps"},
    {MODEL_MLP, U(precision.bits), 13, "bits"},
    {MODEL_MLP, U(precision.bits), 17, "bits"},
    {MODEL_MLP, U(precision.block), 24, "block"},
    {MODEL_MLP, D(dropout), 1.0, "dropout"},
    {MODEL_MLP, D(dropout), -0.5, "dropout"},
    {MODEL_MLP, D(dropout), NAN, "dropout"},
    {MODEL_MLP, D(rate), -1.0, "learning rate"},
    {MODEL_MLP, D(rate), NAN, "learning rate"},
    {MODEL_MLP, D(rate_min), INFINITY, "learning rate"},
    {MODEL_MLP, D(momentum), 1.0, "momentum"},
    {MODEL_GPT2, D(beta1), 1.0, "beta1"},
    {MODEL_GPT2, D(beta2), NAN, "beta2"},
    {MODEL_GPT2, D(epsilon), 0.0, "epsilon"},
    {MODEL_GPT2, D(decay), -1.0, "decay"},
    {MODEL_GPT2, D(clip), NAN, "clip"},
    {MODEL_GPT2, E(kind), MODEL_COUNT, "unknown model"},
    {MODEL_GPT2, E(optimizer), OPTIMIZER_COUNT, "optimizer"},
    {MODEL_GPT2, E(schedule), SCHEDULE_COUNT, "schedule"},
    {MODEL_GPT2, E(data_dtype), DTYPE_F32, "type f32"},
    {MODEL_MLP, E(data_dtype), DTYPE_I16, "type i16"},
};

static void set_option(struct model_options *options, const struct move_retry *refusal)
{
    void *at = (char *)options + refusal->offset;

    if (refusal->type == 'd') {
        *(double *)at = refusal->value;
    } else {
        *(uint32_t *)at = (uint32_t)refusal->value;
    }
}

static void test_options_without_sense_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct model_options options;
        struct model model;
        struct error error;

        error_init(&error);
        small_model_options(&options, refusals[i].kind);
        options.data_count = 100000;
        set_option(&options, &refusals[i]);
        if (model_build(&model, &options, &error) == STATUS_OK) {
            fail_msg("case %zu was taken, although '%s'", i, refusals[i].words);
        }
        if (strstr(error.text, refusals[i].words) == NULL) {
            fail_msg("'%s' does not say '%s'", error.text, refusals[i].words);
        }
        assert_null(model.tape);
    }
}

static void test_data_shorter_than_a_sequence_is_refused(void **state)
{
    struct model_options options;
    struct model model;
    struct error error;

    (void)state;
    error_init(&error);
    small_model_options(&options, MODEL_GPT2);
    options.data_count = options.length;
    assert_int_not_equal(model_build(&model, &options, &error), STATUS_OK);
    assert_non_null(strstr(error.text, "'data' has 12 elements, needs at least 13"));
    options.data_count = 0;
    assert_int_not_equal(model_build(&model, &options, &error), STATUS_OK);
    assert_non_null(strstr(error.text, "'data'"));
}

static void test_defaults_make_a_model_of_every_kind(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct model model;
        struct error error;

        error_init(&error);
        model_options_default(&options, (enum model_kind)kind);
        options.data_count = 1000;
        assert_int_equal(model_build(&model, &options, &error), STATUS_OK);
        assert_string_not_equal(model_kind_name((enum model_kind)kind), "unknown");
        assert_int_not_equal(model.tape->loss, TENSOR_NONE);
        model_release(&model);
    }
}

/* ---- names and shapes --------------------------------------------------- */

struct named {
    const char *name; /* %u is the layer */
    uint64_t rows;
    uint64_t columns; /* 0: a vector */
};

static const struct named gpt2_block[] = {
    {"h.%u.ln_1.weight", 768, 0},           {"h.%u.ln_1.bias", 768, 0},
    {"h.%u.attn.c_attn.weight", 768, 2304}, {"h.%u.attn.c_attn.bias", 2304, 0},
    {"h.%u.attn.c_proj.weight", 768, 768},  {"h.%u.attn.c_proj.bias", 768, 0},
    {"h.%u.ln_2.weight", 768, 0},           {"h.%u.ln_2.bias", 768, 0},
    {"h.%u.mlp.c_fc.weight", 768, 3072},    {"h.%u.mlp.c_fc.bias", 3072, 0},
    {"h.%u.mlp.c_proj.weight", 3072, 768},  {"h.%u.mlp.c_proj.bias", 768, 0},
};

static const struct named gpt2_rest[] = {{"wte.weight", 50257, 768},
                                         {"wpe.weight", 1024, 768},
                                         {"ln_f.weight", 768, 0},
                                         {"ln_f.bias", 768, 0}};

static const struct named llama_block[] = {
    {"model.layers.%u.input_layernorm.weight", 24, 0},
    {"model.layers.%u.self_attn.q_proj.weight", 24, 24},
    {"model.layers.%u.self_attn.k_proj.weight", 12, 24},
    {"model.layers.%u.self_attn.v_proj.weight", 12, 24},
    {"model.layers.%u.self_attn.o_proj.weight", 24, 24},
    {"model.layers.%u.post_attention_layernorm.weight", 24, 0},
    {"model.layers.%u.mlp.gate_proj.weight", 32, 24},
    {"model.layers.%u.mlp.up_proj.weight", 32, 24},
    {"model.layers.%u.mlp.down_proj.weight", 24, 32},
};

static const struct named llama_rest[] = {{"model.embed_tokens.weight", 128, 24},
                                          {"model.norm.weight", 24, 0},
                                          {"lm_head.weight", 128, 24}};

/* Asserts the tensors of a list and their shapes; returns the number of elements. */
static uint64_t assert_named(const struct model *model, const struct named *list, size_t count,
                             uint32_t layer)
{
    uint64_t elements = 0;

    for (size_t i = 0; i < count; i++) {
        char name[TENSOR_NAME_MAX + 1];
        const struct tensor *tensor;
        uint32_t id;

        /* One conversion or none: the lists above are the only formats. */
        const char *mark = strstr(list[i].name, "%u");
        if (mark == NULL) {
            (void)snprintf(name, sizeof(name), "%s", list[i].name);
        } else {
            (void)snprintf(name, sizeof(name), "%.*s%u%s", (int)(mark - list[i].name), list[i].name,
                           layer, mark + 2);
        }
        id = model_find(model, name);
        if (id == TENSOR_NONE) {
            fail_msg("there is no '%s'", name);
        }
        tensor = &model->tape->tensors[id];
        assert_int_equal(tensor->role, ROLE_STATE);
        assert_int_equal(tensor->rank, list[i].columns == 0 ? 1 : 2);
        assert_int_equal(tensor->dims[0], list[i].rows);
        assert_true(list[i].columns == 0 || tensor->dims[1] == list[i].columns);
        elements += tensor->count;
    }
    return elements;
}

static void test_gpt2_of_124m_has_the_published_names_and_shapes(void **state)
{
    struct model_options options;
    struct model model;
    struct error error;
    uint64_t elements;

    (void)state;
    error_init(&error);
    model_options_default(&options, MODEL_GPT2);
    options.layers = options.heads = 12;
    options.width = 768;
    options.vocabulary = 50257;
    options.positions = 1024;
    options.batch = 1;
    options.data_dtype = DTYPE_U16;
    options.data_count = 5000;
    assert_int_equal(model_build(&model, &options, &error), STATUS_OK);
    elements = assert_named(&model, gpt2_rest, 4, 0);
    for (uint32_t layer = 0; layer < 12; layer++) {
        elements += assert_named(&model, gpt2_block, 12, layer);
    }
    assert_int_equal(model.parameter_count, 4 + 12 * 12);
    assert_int_equal(elements, 124439808);
    /* Parameters and two moments, and the step. */
    assert_int_equal(tape_footprint(model.tape).state, 3 * 4 * elements + 4);
    model_release(&model);
}

static void test_llama_has_the_published_names_and_grouped_shapes(void **state)
{
    struct model_options options;
    struct small_model small;

    (void)state;
    small_model_options(&options, MODEL_LLAMA);
    options.layers = 3;
    small_model_open(&small, &options);
    (void)assert_named(&small.model, llama_rest, 3, 0);
    for (uint32_t layer = 0; layer < 3; layer++) {
        (void)assert_named(&small.model, llama_block, 9, layer);
    }
    assert_int_equal(small.model.parameter_count, 3 + 3 * 9);
    small_model_close(&small);
}

/* ---- inference ---------------------------------------------------------- */

/* Copies of one step's batch and of the logits that the loss reads. */
struct capture {
    const struct tape *tape;
    uint32_t input; /* tensor ids */
    uint32_t logits;
    void *input_bytes;
    void *logits_bytes;
};

static enum status capture_made(void *context, struct op_turn maker, uint32_t output,
                                const void *bytes, uint64_t size, struct error *error)
{
    struct capture *capture = context;
    uint32_t id = capture->tape->ops[maker.op].outputs[output];
    void **kept = id == capture->input    ? &capture->input_bytes
                  : id == capture->logits ? &capture->logits_bytes
                                          : NULL;

    (void)error;
    if (kept != NULL) {
        *kept = malloc(size);
        assert_non_null(*kept);
        memcpy(*kept, bytes, size);
    }
    return STATUS_OK;
}

static struct capture capture_step(struct machine *machine)
{
    struct capture capture = {.tape = machine->tape};
    struct observer observer = {.made = capture_made, .context = &capture};
    struct error error;

    error_init(&error);
    for (uint32_t at = 0; at < machine->tape->op_count; at++) {
        const struct op *op = &machine->tape->ops[at];

        if (op->kind == OP_BATCH_TOKENS || op->kind == OP_BATCH_SAMPLES) {
            capture.input = op->outputs[0];
        } else if (op->kind == OP_CROSS_ENTROPY) {
            capture.logits = op->inputs[0];
        }
    }
    assert_int_equal(backend_cpu.step(machine, &observer, &error), STATUS_OK);
    return capture;
}

static void check_inference(enum model_kind kind)
{
    struct model_options options;
    struct small_model training;
    struct small_model inference;
    struct machine *trainer;
    struct machine *guesser;
    struct capture capture;
    struct error error;
    const struct tensor *logits;

    error_init(&error);
    small_model_options(&options, kind);
    options.dropout = 0.0;
    small_model_open(&training, &options);
    options.inference = true;
    small_model_open(&inference, &options);
    trainer = small_machine_open(&training, isa_best(), 2, true);
    guesser = small_machine_open(&inference, isa_best(), 1, false);
    small_machine_steps(trainer, 3);
    assert_int_equal(inference.model.parameter_count, training.model.parameter_count);
    for (uint32_t i = 0; i < inference.model.parameter_count; i++) {
        uint32_t from = training.model.parameters[i];
        uint32_t to = inference.model.parameters[i];

        assert_string_equal(training.model.tape->tensors[from].name,
                            inference.model.tape->tensors[to].name);
        assert_int_equal(backend_cpu.write(guesser, to, backend_cpu.peek(trainer, from), &error),
                         STATUS_OK);
    }
    capture = capture_step(trainer);
    assert_int_equal(backend_cpu.write(guesser, inference.model.input, capture.input_bytes, &error),
                     STATUS_OK);
    assert_int_equal(backend_cpu.step(guesser, NULL, &error), STATUS_OK);
    logits = &inference.model.tape->tensors[inference.model.output];
    assert_string_equal(logits->name, "logits");
    assert_memory_equal(backend_cpu.peek(guesser, inference.model.output), capture.logits_bytes,
                        logits->count * sizeof(float));
    free(capture.input_bytes);
    free(capture.logits_bytes);
    backend_cpu.close(trainer);
    backend_cpu.close(guesser);
    small_model_close(&training);
    small_model_close(&inference);
}

static void test_inference_gives_the_logits_of_the_training_tape(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        check_inference((enum model_kind)kind);
    }
}

static void test_inference_has_neither_dropout_nor_update(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;

        small_model_options(&options, (enum model_kind)kind);
        options.inference = true;
        options.dropout = 0.5;
        small_model_open(&small, &options);
        assert_int_equal(small.model.data, TENSOR_NONE);
        assert_int_equal(small.model.tape->loss, TENSOR_NONE);
        for (uint32_t at = 0; at < small.model.tape->op_count; at++) {
            enum op_kind op = small.model.tape->ops[at].kind;

            assert_true(op != OP_DROPOUT && op != OP_SGD && op != OP_ADAMW);
        }
        small_model_close(&small);
    }
}

/* ---- first states, schedules, tables ------------------------------------ */

static void test_first_state_depends_on_seed_and_not_on_threads(void **state)
{
    struct model_options options;
    struct small_model small;
    struct small_model other;
    uint32_t id;
    float a[128 * 20];
    float b[128 * 20];

    (void)state;
    small_model_options(&options, MODEL_GPT2);
    small_model_open(&small, &options);
    options.seed++;
    small_model_open(&other, &options);
    id = model_find(&small.model, "wte.weight");
    omp_set_num_threads(1);
    model_first_state(a, &small.model, id);
    omp_set_num_threads(2);
    model_first_state(b, &small.model, id);
    assert_memory_equal(a, b, sizeof(a));
    model_first_state(b, &other.model, id);
    assert_memory_not_equal(a, b, sizeof(a));
    memset(a, 1, sizeof(a));
    model_first_state(a, &small.model, model_find(&small.model, "m.wte.weight"));
    for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++) {
        assert_true(a[i] == 0.0f);
    }
    small_model_close(&small);
    small_model_close(&other);
}

static const void *constant_bytes(const struct model *model, const char *name)
{
    uint32_t id = model_find(model, name);

    for (uint32_t i = 0; i < model->constant_count; i++) {
        if (model->constants[i].tensor == id) {
            return model->constants[i].bytes;
        }
    }
    fail_msg("there is no constant '%s'", name);
    return NULL;
}

static double expected_rate(const struct model_options *options, uint32_t step)
{
    const double way = options->rate - options->rate_min;
    double share;

    if (options->schedule == SCHEDULE_LISTED) {
        return (double)options->recipe.listed[step];
    }
    if (step < options->warmup) {
        return options->rate * (step + 1) / options->warmup;
    }
    share = (double)(step - options->warmup) / (options->steps - 1 - options->warmup);
    switch (options->schedule) {
    case SCHEDULE_LINEAR:
        return options->rate + share * (options->rate_min - options->rate);
    case SCHEDULE_COSINE:
        return options->rate_min +
               (options->rate - options->rate_min) * 0.5 * (1.0 + cos(share * M_PI));
    case SCHEDULE_RESTARTS:
        share = share == 1.0 ? 1.0 : fmod(share * options->recipe.cycles, 1.0);
        return options->rate_min + way * 0.5 * (1.0 + cos(share * M_PI));
    case SCHEDULE_POLYNOMIAL:
        return options->rate_min + way * pow(1.0 - share, options->recipe.power);
    case SCHEDULE_INVERSE_ROOT:
        return options->rate * sqrt(options->warmup / (step + 1.0));
    case SCHEDULE_STABLE_DECAY:
        share = (step + 1.0 + options->recipe.cooldown - options->steps) / options->recipe.cooldown;
        return options->rate - way * fmax(share, 0.0);
    case SCHEDULE_CONSTANT:
    case SCHEDULE_LISTED:
    case SCHEDULE_COUNT:
        break;
    }
    return options->rate;
}

static void test_schedules_follow_their_formulas(void **state)
{
    (void)state;
    for (int schedule = 0; schedule < SCHEDULE_COUNT; schedule++) {
        struct model_options options;
        struct small_model small;
        const float *table;

        float listed[500];

        for (int step = 0; step < 500; step++) {
            listed[step] = 0.001f * (float)(step % 7);
        }
        small_model_options(&options, MODEL_GPT2);
        options.schedule = (enum schedule)schedule;
        options.steps = 500;
        options.warmup = 20;
        options.recipe =
            (struct recipe){.cycles = 4, .power = 1.5, .cooldown = 100, .listed = listed};
        small_model_open(&small, &options);
        table = constant_bytes(&small.model, "schedule");
        for (uint32_t step = 0; step < options.steps; step++) {
            double rate = expected_rate(&options, step);

            assert_true(fabs(table[3 * step] - rate) <= rate * 1e-7);
            assert_true(fabs(table[3 * step + 1] * (1.0 - pow(0.9, step + 1.0)) - 1.0) < 1e-6);
            assert_true(fabs(table[3 * step + 2] * (1.0 - pow(0.99, step + 1.0)) - 1.0) < 1e-6);
        }
        small_model_close(&small);
    }
}

static void test_rotary_table_holds_cosines_and_sines(void **state)
{
    struct model_options options;
    struct small_model small;
    const float *table;

    (void)state;
    small_model_options(&options, MODEL_LLAMA);
    options.length = 2048;
    options.width = 4 * 64;
    small_model_open(&small, &options);
    table = constant_bytes(&small.model, "rotary");
    for (uint32_t t = 0; t < options.length; t++) {
        for (uint32_t j = 0; j < 32; j++) {
            double angle = t * pow(10000.0, -2.0 * j / 64.0);

            assert_true(fabs(table[(t * 32 + j) * 2] - cos(angle)) < 6e-8 + 1e-12 * t);
            assert_true(fabs(table[(t * 32 + j) * 2 + 1] - sin(angle)) < 6e-8 + 1e-12 * t);
        }
    }
    small_model_close(&small);
}

/* ---- learning ----------------------------------------------------------- */

/* The mean loss of the last ten of `steps` steps, with the default options. */
static double loss_after(enum model_kind kind, uint32_t steps)
{
    struct model_options options;
    struct small_model small;
    struct machine *machine;
    double sum = 0.0;

    model_options_default(&options, kind);
    options.steps = steps;
    options.warmup = 5;
    options.rate = 3e-3;
    small_model_open(&small, &options);
    machine = small_machine_open(&small, isa_best(), 2, false);
    small_machine_steps(machine, steps - 10);
    for (int i = 0; i < 10; i++) {
        small_machine_steps(machine, 1);
        sum += (double)small_machine_loss(machine) / 10.0;
    }
    backend_cpu.close(machine);
    small_model_close(&small);
    return sum;
}

/* Guessing gives ln 10 = 2.30 for the shapes and about 4 for the 52 letters that the text uses. */
static void test_models_of_every_kind_learn(void **state)
{
    (void)state;
    assert_true(loss_after(MODEL_MLP, 300) < 1.0);
    assert_true(loss_after(MODEL_CONVNET, 300) < 1.0);
    assert_true(loss_after(MODEL_GPT2, 60) < 3.2);
    assert_true(loss_after(MODEL_LLAMA, 60) < 2.8);
}

/* ---- a graph's integers, and several elements of each row --------------------- */

/* After %1 p (4, 6) and %2 u32 (4, 6), %3 is one line. */
static const struct line_refusal {
    const char *line;
    const char *words;
} line_refusals[] = {
    {"sort %1 2 = 4 6", "an order is 0, from below, or 1, from above"},
    {"sort-rank %1 -1 = 4 6", "an order is 0, from below, or 1, from above"},
    {"sort-index %2 0 = 4 6", "sort: x 'uniform.words' must not be of type u32"},
    {"take %1 %1 = 4 6", "take: index 'p' must not be of type f32"},
    {"take %2 %2 = 4 5", "24 elements take no shape of 20"},
    {"scatter-add %2 %2 %2 = 4 6", "scatter: x 'uniform.words' must not be of type u32"},
    {"scatter-last %2 %1 %2 = 4 6", "scatter: x 'p' must not be of type f32"},
    {"scatter-add %1 %1 %1 = 4 6", "scatter: index 'p' must not be of type f32"},
    {"sum-by-index %1 %1 = 4 6", "'p' must not be of type f32"},
    {"integer-add %1 %2 1 1 1 24 0 0 0 1 0 0 0 1 = 4 6", "'p' must not be of type f32"},
};

static enum status build_lines(struct error *error, const char *line)
{
    struct model_options options;
    struct model model = {.tape = NULL};
    struct graph graph;
    char text[512];
    const int size = snprintf(text, sizeof(text),
                              "lockstep-graph 1\n%%0 input d f32 3 2\n%%1 param p 4 6\n"
                              "%%2 uniform 0 = 4 6\n%%3 %s\n%%4 row-sum %%1 24 = 1\nloss %%4\n",
                              line);
    enum status status = graph_read(&graph, text, (size_t)size, error);

    if (status == STATUS_OK) {
        model_options_default(&options, MODEL_MLP);
        options.graph = &graph;
        options.data_count = 3;
        status = model_build(&model, &options, error);
        model_release(&model);
    }
    return status;
}

static void test_lines_of_integers_and_of_rows_are_refused_by_name(void **state)
{
    struct error error;

    (void)state;
    error_init(&error);
    for (size_t i = 0; i < sizeof(line_refusals) / sizeof(line_refusals[0]); i++) {
        const enum status status = build_lines(&error, line_refusals[i].line);
        assert_int_not_equal(status, STATUS_OK);
        assert_non_null(strstr(error.text, line_refusals[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_without_sense_are_refused_by_name),
        cmocka_unit_test(test_lines_of_integers_and_of_rows_are_refused_by_name),
        cmocka_unit_test(test_data_shorter_than_a_sequence_is_refused),
        cmocka_unit_test(test_defaults_make_a_model_of_every_kind),
        cmocka_unit_test(test_gpt2_of_124m_has_the_published_names_and_shapes),
        cmocka_unit_test(test_llama_has_the_published_names_and_grouped_shapes),
        cmocka_unit_test(test_inference_gives_the_logits_of_the_training_tape),
        cmocka_unit_test(test_inference_has_neither_dropout_nor_update),
        cmocka_unit_test(test_first_state_depends_on_seed_and_not_on_threads),
        cmocka_unit_test(test_schedules_follow_their_formulas),
        cmocka_unit_test(test_rotary_table_holds_cosines_and_sines),
        cmocka_unit_test(test_models_of_every_kind_learn),
    };

    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
