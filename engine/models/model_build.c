/* model_build.c - builds a model from its options; see model.h. */
#include <stdlib.h>

#include "engine/models/layouts.h"
#include "engine/models/model.h"
#include "engine/models/model_writer.h"
#include "engine/ops/float_control.h"
#include "engine/tape/builder_core.h"

/* A job holds its schedule, twelve bytes per step. */
#define STEPS_MAX               10000000u
/* Each is written out in the tape. */
#define HELD_OUT_BATCHES_MAX    1024u
/* A state holds one for each step. */
#define GRADIENT_NORM_STEPS_MAX (1u << 20)
#define PREFERENCE_MAX          1000.0

const char *model_kind_name(enum model_kind kind)
{
    static const char *const names[MODEL_COUNT] = {"mlp", "convnet", "gpt2", "llama"};

    return (unsigned)kind < MODEL_COUNT ? names[kind] : "unknown";
}

const char *model_name(const struct model_options *options)
{
    if (options->graph != NULL) {
        return "graph";
    }
    return options->layout != NULL ? options->layout->family : model_kind_name(options->kind);
}

void model_options_default(struct model_options *options, enum model_kind kind)
{
    bool language = kind == MODEL_GPT2 || kind == MODEL_LLAMA;

    *options = (struct model_options){.kind = kind,
                                      .precision = PRECISION_DEFAULT,
                                      .seed = 1,
                                      .accumulate = 1,
                                      .batch = language ? 8 : 32,
                                      .data_dtype = DTYPE_U8,
                                      .optimizer = OPTIMIZER_ADAMW,
                                      .schedule = SCHEDULE_LINEAR,
                                      .steps = 300,
                                      .warmup = 20,
                                      .rate = 1e-3,
                                      .rate_min = 1e-4,
                                      .momentum = 0.9,
                                      .beta1 = 0.9,
                                      .beta2 = 0.99,
                                      .epsilon = 1e-8,
                                      .decay = 0.1,
                                      .clip = 1.0,
                                      .recipe = {.cycles = 1, .power = 1.0}};
    if (language) {
        options->length = 64;
        options->vocabulary = 256;
        options->layers = 3;
        options->heads = 4;
        options->kv_heads = kind == MODEL_LLAMA ? 2 : 0;
        options->width = 64;
        options->activation = kind == MODEL_GPT2 ? ACTIVATION_GELU_TANH : ACTIVATION_SILU;
        options->qkv_bias = options->out_bias = options->mlp_bias = kind == MODEL_GPT2;
        options->tied_head = kind == MODEL_GPT2;
        options->rotary_base = 10000.0;
        options->norm_epsilon = 1e-5;
    } else {
        options->layers = 2;
        options->hidden = kind == MODEL_MLP ? 64 : 8;
        options->image_height = 16;
        options->image_width = 16;
        options->channels = 1;
        options->classes = 10;
    }
}

/* Sizes of a recipe's own numbers. The comparisons refuse a NaN too. */
static enum status check_schedule(const struct model_options *options, struct error *error)
{
    const struct recipe *recipe = &options->recipe;

    if (options->schedule == SCHEDULE_RESTARTS &&
        (recipe->cycles == 0 || recipe->cycles > options->steps)) {
        return error_set(error, STATUS_USAGE, "%u cosines in %u steps; there must be 1 to a step",
                         recipe->cycles, options->steps);
    }
    if (options->schedule == SCHEDULE_POLYNOMIAL &&
        !(recipe->power > 0.0 && recipe->power <= 100.0)) {
        return error_set(error, STATUS_USAGE, "a power of %g; it must be from above 0 to 100",
                         recipe->power);
    }
    if (options->schedule == SCHEDULE_INVERSE_ROOT && options->warmup == 0) {
        return error_set(error, STATUS_USAGE,
                         "the inverse root falls from the end of a warm-up: there must be one");
    }
    if (options->schedule == SCHEDULE_STABLE_DECAY &&
        (recipe->cooldown == 0 || recipe->cooldown > options->steps - options->warmup)) {
        return error_set(
            error, STATUS_USAGE,
            "a cooldown of %u of %u steps, with a warm-up of %u; it must be 1 or more, "
            "and both must fit",
            recipe->cooldown, options->steps, options->warmup);
    }
    return options->schedule != SCHEDULE_LISTED || recipe->listed != NULL
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "a schedule of listed rates has no list");
}

static enum status check_recipe(const struct model_options *options, struct error *error)
{
    const struct recipe *recipe = &options->recipe;

    TRY(check_schedule(options, error));
    if (options->optimizer == OPTIMIZER_MUON && options->kind != MODEL_GPT2 &&
        options->kind != MODEL_LLAMA) {
        return error_set(error, STATUS_USAGE,
                         "muon is for language models, whose matrices lie between layers");
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct recipe_rules *rules = i == 0 ? &recipe->rates : &recipe->decays;

        for (uint32_t j = 0; j < rules->count && j < RECIPE_RULES_MAX; j++) {
            if (!(rules->rules[j].value >= 0.0 && rules->rules[j].value <= 1e3)) {
                return error_set(error, STATUS_USAGE,
                                 "'%s' has a rate or a decay of %g; it must be from 0 to 1000",
                                 rules->rules[j].pattern, rules->rules[j].value);
            }
        }
    }
    if (!(recipe->plus >= 0.0 && recipe->plus <= 1e6 && recipe->smoothing >= 0.0 &&
          recipe->smoothing < 1.0 && recipe->z_loss >= 0.0 && recipe->z_loss <= 1e3)) {
        return error_set(error, STATUS_USAGE,
                         "B learns %g times as fast as A, %g of a label is spread, and z-loss "
                         "counts %g times; these must be from 0 to 1e6, to below 1, and to 1000",
                         recipe->plus, recipe->smoothing, recipe->z_loss);
    }
    return recipe->gradient_norm && options->steps > GRADIENT_NORM_STEPS_MAX
               ? error_set(error, STATUS_USAGE,
                           "the gradient's norms of %u steps; they are kept of at most %u",
                           options->steps, GRADIENT_NORM_STEPS_MAX)
               : STATUS_OK;
}

/* Preference pairs. */
static enum status check_pairs(const struct model_options *options, struct error *error)
{
    if (options->preference == 0.0) {
        return STATUS_OK;
    }
    if (!(options->preference > 0.0 && options->preference <= PREFERENCE_MAX && options->packed &&
          options->batch % 2 == 0 && !options->evaluation && options->held_out.batches == 0 &&
          options->lora.find != NULL && options->calibration == NULL)) {
        return error_set(error, STATUS_USAGE,
                         "pairs with a beta of %g, %u rows a batch: it must be from above 0 to %g, "
                         "of a training on packed pairs, whole ones, of a published model",
                         options->preference, options->batch, PREFERENCE_MAX);
    }
    if (options->recipe.smoothing > 0.0 || options->recipe.z_loss > 0.0 ||
        options->lora.whole[0] != '\0' || options->experts != 0) {
        return error_set(error, STATUS_USAGE,
                         "pairs are learned without label smoothing, z-loss, modules that are "
                         "trained whole, and experts");
    }
    return STATUS_OK;
}

/* The checks of options that do not depend on the kind. The comparisons refuse a NaN too. */
static enum status check_options(const struct model_options *options, struct error *error)
{
    if ((unsigned)options->kind >= MODEL_COUNT || (unsigned)options->optimizer >= OPTIMIZER_COUNT ||
        (unsigned)options->schedule >= SCHEDULE_COUNT ||
        (unsigned)options->activation >= ACTIVATION_COUNT ||
        (unsigned)options->rotary_scaling.kind >= ROTARY_COUNT) {
        return error_set(error, STATUS_USAGE, "unknown model, optimizer, schedule or choice");
    }
    if (options->decoding != 0 && (!options->inference || options->batch != 1 ||
                                   options->lora.rank != 0 || options->lora.find == NULL)) {
        return error_set(error, STATUS_USAGE,
                         "a tape that decodes is of one sequence, for inference, with weights that "
                         "lie in files");
    }
    if (options->inference) {
        return STATUS_OK;
    }
    TRY(check_receipt(options, error));
    if (options->steps == 0 || options->steps > STEPS_MAX) {
        return error_set(error, STATUS_USAGE, "%u steps; must be from 1 to %u", options->steps,
                         STEPS_MAX);
    }
    if (options->accumulate == 0 || options->group > options->accumulate) {
        return error_set(
            error, STATUS_USAGE,
            "%u micro-batches in groups of %u; a step has a whole group, of one or more",
            options->accumulate, options->group);
    }
    if (!(options->rate >= 0.0 && options->rate <= 1e6 && options->rate_min >= 0.0 &&
          options->rate_min <= 1e6)) {
        return error_set(error, STATUS_USAGE,
                         "a learning rate of %g that falls to %g; each must be from 0 to 1e6",
                         options->rate, options->rate_min);
    }
    if (!(options->beta1 >= 0.0 && options->beta1 < 1.0 && options->beta2 >= 0.0 &&
          options->beta2 < 1.0 && options->momentum >= 0.0 && options->momentum < 1.0)) {
        return error_set(error, STATUS_USAGE,
                         "beta1, beta2 and momentum must be from 0 to below 1");
    }
    TRY(check_pairs(options, error));
    if (options->held_out.batches > HELD_OUT_BATCHES_MAX ||
        (options->held_out.batches != 0 && (options->held_out.every == 0 || options->evaluation))) {
        return error_set(error, STATUS_USAGE,
                         "%u batches of held-out data after every %u steps; there may be 1 to %u, "
                         "of a training",
                         options->held_out.batches, options->held_out.every, HELD_OUT_BATCHES_MAX);
    }
    if (options->lora.rank != 0 &&
        !(options->lora.alpha > 0.0 && options->lora.alpha <= 1e6 && options->lora.dropout >= 0.0 &&
          options->lora.dropout < 1.0 && options->lora.find != NULL && !options->evaluation)) {
        return error_set(error, STATUS_USAGE,
                         "adapters of alpha %g and dropout %g, on frozen weights, for a training",
                         options->lora.alpha, options->lora.dropout);
    }
    if (!(options->epsilon > 0.0 && options->epsilon <= 1.0 && options->decay >= 0.0 &&
          options->decay <= 1e3 && options->clip >= 0.0 && options->clip <= 1e30)) {
        return error_set(error, STATUS_USAGE,
                         "epsilon must be from above 0 to 1, decay and clip not negative");
    }
    return check_recipe(options, error);
}

enum status model_build(struct model *model, const struct model_options *options,
                        struct error *error)
{
    static void (*const writers[MODEL_COUNT])(struct model_writer *) = {
        write_mlp, write_convnet, write_decoder, write_decoder};
    struct model_writer writer = {.model = model,
                                  .options = &model->options,
                                  .mask = TENSOR_NONE,
                                  .reach = TENSOR_NONE,
                                  .chosen = TENSOR_NONE,
                                  .probable = TENSOR_NONE,
                                  .penalty = TENSOR_NONE};
    enum status status = check_options(options, error);
    void (*const write)(struct model_writer *) =
        options->graph != NULL ? write_graph : writers[(unsigned)options->kind % MODEL_COUNT];
    uint64_t control;

    *model = (struct model){.options = *options,
                            .data = TENSOR_NONE,
                            .labels = TENSOR_NONE,
                            .mask = TENSOR_NONE,
                            .reach = TENSOR_NONE,
                            .held_out = TENSOR_NONE,
                            .held_out_labels = TENSOR_NONE,
                            .held_out_mask = TENSOR_NONE,
                            .held_out_reach = TENSOR_NONE,
                            .input = TENSOR_NONE,
                            .output = TENSOR_NONE,
                            .places = TENSOR_NONE};
    if (status != STATUS_OK) {
        return status;
    }
    writer.builder = builder_new(options->precision);
    if (writer.builder == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a model");
    }
    if (options->equilibrate) {
        builder_equilibrate(writer.builder);
    }
    write_calibrated(&writer);
    control = float_control_take(); /* the writers compute tables of constants */
    write(&writer);
    if (options->held_out.batches != 0) {
        write_held_out(&writer, write);
    }
    float_control_give_back(control);
    status = builder_finish(&model->tape, writer.builder, error);
    builder_free(writer.builder);
    free(writer.shifts);
    if (status != STATUS_OK) {
        model_release(model);
        (void)error_wrap(error, "%s", model_name(options));
    }
    return status;
}

void model_release(struct model *model)
{
    tape_free(model->tape);
    free(model->parameters);
    free(model->frozen);
    for (uint32_t i = 0; i < model->constant_count; i++) {
        free(model->constants[i].bytes);
    }
    free(model->constants);
    free(model->attentions);
    free(model->slices);
    free(model->modules);
    model->modules = NULL;
    model->tape = NULL;
    model->parameters = model->frozen = NULL;
    model->constants = NULL;
    model->attentions = NULL;
    model->slices = NULL;
    model->attention_count = model->slice_count = 0;
    model->parameter_count = model->frozen_count = model->constant_count = 0;
}
