/*
 * job_new_options.c - the options of `job new`: which there are, to which sources of a job they
 * belong, and what they say of a model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/commands/commands.h"
#include "client/job_new_options.h"
#include "client/tokens/job_adapter.h"
#include "client/tokens/job_pairs.h"
#include "engine/models/layouts.h"
#include "proofs/format/base_config.h"
#include "proofs/job/job_check.h"
#include "proofs/receipt/receipt_state.h"

/* Tokens of a sequence where nobody says how many, and the base takes more. */
#define LENGTH_USUAL_MAX 1024

/* ---- options ------------------------------------------------------------ */

const struct option_spec job_new_options[JOB_NEW_OPTIONS] = {
    {.name = "model",
     .heading = "model",
     .often = true,
     .kind = OPTION_CHOICE,
     .value = "MODEL",
     .choices = "gpt2|llama|mlp|convnet",
     .fallback = "gpt2",
     .help = "what to train"},
    {.name = "base",
     .heading = "model",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "fine-tune this model: a folder of Hugging Face with config.json and .safetensors "
             "(GPT-2, Llama, Mistral, Qwen, Gemma, Phi, OLMo, Granite, GLM, Pythia and others)"},
    LORA_OPTIONS,
    {.name = "dpo",
     .heading = "training",
     .kind = OPTION_REAL,
     .value = "BETA",
     .help = "learn preferences from the pairs of a folder of 'data pack' (DPO), such as 0.1; the "
             "reference is --base: with --lora its weights without adapters, else a copy of them"},
    {.name = "tape",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "take the program from this tape instead of a model (see 'job show --save-tape')"},
    {.name = "graph",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "train the program of this graph, which lockstep_torch.py writes of a PyTorch module; "
             "--first-state has its weights"},
    {.name = "receipt",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "have the answer of this receipt ('generate --prove') proven: a job of one step, with "
             "the weights of --base as data"},
    {.name = "constants",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "the constants of the tape, by name (.safetensors)"},
    {.name = "first-state",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "begin with this state (.safetensors, such as GPT-2 from Hugging Face) and not with "
             "a drawn one"},
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help =
         "a folder of 'data pack', whose rows are each read once per epoch; or windows at any "
         "place of a stream of tokens (flat or .npy); or samples (.npy; pictures are height, "
         "width, channels); for a tape, each of its data files in order; for a graph NAME=FILE for "
         "each input, or all in their order"},
    {.name = "mask",
     .heading = "data",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "a u8 for each token (flat or .npy): 0 where it is not to be learned; the loss is the "
             "mean over the others"},
    {.name = "labels",
     .heading = "data",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "labels of samples (.npy)"},
    {.name = "data-type",
     .heading = "data",
     .often = true,
     .kind = OPTION_CHOICE,
     .value = "TYPE",
     .choices = "u8|u16|u32|f32",
     .fallback = "u8",
     .help = "element type of flat data; with --base it must be said"},
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .fallback = "lockstep.job",
     .help = "where to write the job"},
    {.name = "steps",
     .heading = "training",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "300",
     .minimum = 1,
     .maximum = RECIPE_STEPS_MAX,
     .help = "how many steps to train"},
    {.name = "epochs",
     .heading = "training",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 1000000,
     .help = "as many steps as read every packed row N times, instead of --steps; 'job show' says "
             "how many rows the last step takes of the next epoch"},
    {.name = "segment-steps",
     .heading = "training",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "50",
     .minimum = 1,
     .maximum = GAME_STATES_MAX,
     .help = "steps of a segment: one commitment and one checkpoint each"},
    {.name = "seed",
     .heading = "training",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .help = "seed of the first state, the batches and dropout"},
    {.name = "bits",
     .heading = "model",
     .kind = OPTION_CHOICE,
     .value = "N",
     .choices = "14|15|16|22",
     .fallback = "14",
     .help = "bits of an operand of a contraction"},
    {.name = "block",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .help = "elements that share a scale; 0: a whole row (default: 128, with 22 bits 0)",
     .maximum = 1048576},
    {.name = "equilibrate",
     .heading = "model",
     .kind = OPTION_CHOICE,
     .value = "AXES",
     .choices = "tokens|none",
     .fallback = "tokens",
     .help = "in gradients of weights, shift each token so that large ones cost others no bits"},
    {.name = "calibrate",
     .heading = "model",
     .kind = OPTION_CHOICE,
     .value = "HOW",
     .choices = "step|none",
     .fallback = "step",
     .help = "with --base, or where it is said with --graph: watch one step, shift channels that "
             "differ much, and give products that are still far from exact 22 bits"},
    {.name = "batch",
     .heading = "training",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "sequences (default: 8) or samples (32) of a step, or of a micro-batch"},
    {.name = "accumulate",
     .heading = "training",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 1000000,
     .help = "micro-batches of a step (default: 1): the gradient is their mean"},
    {.name = "accumulate-group",
     .heading = "training",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 1000000,
     .help = "micro-batches that are summed in order (default: all); the groups, 2, 4, 8, ... of "
             "them, are summed as a tree"},
    {.name = "length",
     .heading = "data",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "tokens of a sequence (default: 64; with --base as many as the model takes, at most "
             "1024)"},
    {.name = "positions",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "rows of the table of positions (gpt2; default: the length)"},
    {.name = "vocabulary",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 100000000,
     .help = "how many different tokens there are (default: 256)"},
    {.name = "layers",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000,
     .help = "layers of the model (gpt2, llama; default: 3), or hidden layers (mlp; 2)"},
    {.name = "heads",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000,
     .help = "attention heads (gpt2, llama; default: 4)"},
    {.name = "kv-heads",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000,
     .help = "key and value heads that groups of heads share (llama; default: 2)"},
    {.name = "rotary-base",
     .heading = "model",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "base of the rotary angles, rope_theta of published weights (llama; default: 10000)"},
    {.name = "norm-epsilon",
     .heading = "model",
     .kind = OPTION_REAL,
     .value = "X",
     .help =
         "epsilon of the norms, rms_norm_eps of published weights (gpt2, llama; default: 0.00001)"},
    {.name = "width",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "width of the model (gpt2, llama; default: 64)"},
    {.name = "hidden",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "width of the hidden layers (default: gpt2 4 times the width, llama 8/3 of it up to a "
             "multiple of 32, mlp 64, convnet 8)"},
    {.name = "classes",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "classes of a classifier (mlp, convnet; default: 10)"},
    {.name = "dropout",
     .heading = "model",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "share that dropout drops (default: 0)"},
    {.name = "inference",
     .heading = "model",
     .kind = OPTION_FLAG,
     .help = "only answer: each step's logits and the sum of the losses are the state, and the "
             "weights of --first-state stay as they are"},
    RECIPE_OPTIONS,
    {.name = "eval",
     .heading = "held-out",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "held-out data: what the model loses on it is found, committed and disputed like all "
             "of the job. The solver of the job needs this file too. Of packed rows a folder: its "
             "held-out rows, or all if it has none, in their order. Of a graph like --data"},
    {.name = "eval-labels",
     .heading = "held-out",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help =
         "a class for each sample of --eval (mlp, convnet): the share of right answers is found "
         "too"},
    {.name = "eval-every",
     .heading = "held-out",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 10000000,
     .help = "look at it after every so many steps, and after the last (default: a tenth of the "
             "steps)"},
    {.name = "eval-batches",
     .heading = "held-out",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 1024,
     .help = "as many batches of it, drawn once for all steps, of packed rows the first ones "
             "(default: as many as the file holds, 16 at most)"},
    {.name = "title",
     .heading = "names",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .help = "what the job is, for people: printable ASCII, 80 characters at most"},
    {.name = "model-name",
     .heading = "names",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .help = "what the model is called (default: the name of the folder of --base, or the kind and "
             "the size of the model)"},
    {.name = "memory",
     .heading = "machine",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "memory that a machine must have to take the job"},
    {.name = "compute-capability",
     .heading = "machine",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000,
     .help = "compute capability of the CUDA device that it must have, such as 90 for 9.0"},
    {.name = "contraction-rate",
     .heading = "machine",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 4000000000,
     .help = "10^9 multiply-adds a second that it must make at 14 bits"},
};

/* ---- which options belong to what ---------------------------------------- */

enum job_source {
    FROM_MLP = 1,
    FROM_CONVNET = 2,
    FROM_GPT2 = 4,
    FROM_LLAMA = 8,
    FROM_TAPE = 16,
    FROM_BASE = 32,
    FROM_GRAPH = 64,
    FROM_RECEIPT = 128,
    FROM_CLASSIFIER = FROM_MLP | FROM_CONVNET,
    FROM_LANGUAGE = FROM_GPT2 | FROM_LLAMA,
    FROM_DECODER = FROM_LANGUAGE | FROM_BASE,
    FROM_MODEL = FROM_CLASSIFIER | FROM_LANGUAGE,
    FROM_PROGRAM = FROM_MODEL | FROM_BASE,
    FROM_TRAINING = FROM_PROGRAM | FROM_GRAPH,
    FROM_STEPS = FROM_TRAINING | FROM_TAPE,
};

/* Options that are not listed go with every source. */
static const struct {
    const char *option;
    uint32_t sources;
} belongings[] = {
    {"constants", FROM_TAPE},
    {"model", FROM_MODEL},
    {"base", FROM_BASE | FROM_RECEIPT},
    {"tape", FROM_TAPE},
    {"graph", FROM_GRAPH},
    {"receipt", FROM_RECEIPT},
    {"data", FROM_STEPS},
    {"steps", FROM_STEPS},
    {"segment-steps", FROM_STEPS},
    {"first-state", FROM_MODEL | FROM_TAPE | FROM_GRAPH},
    {"mask", FROM_DECODER},
    {"lora", FROM_BASE},
    {"lora-alpha", FROM_BASE},
    {"lora-dropout", FROM_BASE},
    {"lora-stabilized", FROM_BASE},
    {"lora-plus", FROM_BASE},
    {"train-whole", FROM_BASE},
    {"calibrate", FROM_BASE | FROM_GRAPH},
    {"freeze", FROM_GRAPH},
    {"target", FROM_BASE},
    {"dpo", FROM_BASE},
    {"adapter", FROM_BASE},
    {"labels", FROM_CLASSIFIER},
    {"data-type", FROM_DECODER},
    {"seed", FROM_STEPS},
    {"bits", FROM_TRAINING},
    {"block", FROM_TRAINING},
    {"equilibrate", FROM_TRAINING},
    {"batch", FROM_PROGRAM},
    {"accumulate", FROM_TRAINING},
    {"accumulate-group", FROM_TRAINING},
    {"epochs", FROM_DECODER},
    {"length", FROM_DECODER},
    {"positions", FROM_GPT2},
    {"vocabulary", FROM_LANGUAGE},
    {"layers", FROM_LANGUAGE | FROM_MLP},
    {"heads", FROM_LANGUAGE},
    {"kv-heads", FROM_LLAMA},
    {"rotary-base", FROM_LLAMA},
    {"norm-epsilon", FROM_LANGUAGE},
    {"width", FROM_LANGUAGE},
    {"hidden", FROM_MODEL},
    {"classes", FROM_CLASSIFIER},
    {"dropout", FROM_PROGRAM},
    {"inference", FROM_PROGRAM},
    {"optimizer", FROM_TRAINING},
    {"schedule", FROM_TRAINING},
    {"rate", FROM_TRAINING},
    {"rate-min", FROM_TRAINING},
    {"warmup", FROM_TRAINING},
    {"decay", FROM_TRAINING},
    {"cycles", FROM_TRAINING},
    {"power", FROM_TRAINING},
    {"cooldown", FROM_TRAINING},
    {"warmup-share", FROM_TRAINING},
    {"rate-of", FROM_TRAINING},
    {"decay-of", FROM_TRAINING},
    {"momentum", FROM_TRAINING},
    {"label-smoothing", FROM_DECODER | FROM_CLASSIFIER},
    {"z-loss", FROM_DECODER | FROM_CLASSIFIER},
    {"gradient-norm", FROM_TRAINING},
    {"beta1", FROM_TRAINING},
    {"beta2", FROM_TRAINING},
    {"epsilon", FROM_TRAINING},
    {"clip", FROM_TRAINING},
    {"eval", FROM_TRAINING},
    {"eval-every", FROM_TRAINING},
    {"eval-batches", FROM_TRAINING},
    {"eval-labels", FROM_CLASSIFIER},
};

/* Refuses an option on the command line that would change nothing: a job cannot be changed later.
 * A config file or an environment may serve several kinds of jobs, so their options pass. */
static enum status check_belongings(const struct options *options, uint32_t source,
                                    const char *what, struct error *error)
{
    for (size_t i = 0; i < sizeof(belongings) / sizeof(belongings[0]); i++) {
        if (options_flagged(options, belongings[i].option) &&
            (belongings[i].sources & source) == 0) {
            return error_set(error, STATUS_USAGE, "--%s says nothing about %s",
                             belongings[i].option, what);
        }
    }
    return STATUS_OK;
}

enum status job_new_check_receipt(const struct options *options, struct error *error)
{
    TRY(check_belongings(options, FROM_RECEIPT, "a receipt: it is one step", error));
    if (options_text(options, "base") == NULL) {
        (void)error_set(error, STATUS_USAGE, "a receipt is of a model");
        error_advise(error, "name its folder, as it was published: --base FOLDER");
        return STATUS_USAGE;
    }
    if (receipt_state_is_bundle(options_text(options, "base"))) {
        (void)error_set(error, STATUS_USAGE, "--base is a bundle, and a job's data lie in files");
        error_advise(error, "write its state with 'bundle export --hf FOLDER --merge', and name "
                            "FOLDER");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status job_new_check_tape(const struct options *options, struct error *error)
{
    return check_belongings(options, FROM_TAPE, "a tape: its program is fixed", error);
}

enum status job_new_check_eval(const struct options *options, struct error *error)
{
    static const char *const parts[] = {"eval-labels", "eval-every", "eval-batches"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (options_flagged(options, parts[i])) {
            return error_set(error, STATUS_USAGE, "--%s says nothing without --eval", parts[i]);
        }
    }
    return STATUS_OK;
}

static enum status check_model_options(const struct options *options, struct error *error)
{
    static const char *const names[] = {"mlp", "convnet", "gpt2", "llama"};
    const char *model = options_text(options, "model");
    char what[32];
    uint32_t source = 0;

    for (uint32_t i = 0; i < 4; i++) {
        source |= strcmp(model, names[i]) == 0 ? 1U << i : 0;
    }
    (void)snprintf(what, sizeof(what), "a model '%s'", model);
    if (options_text(options, "base") != NULL) {
        TRY(check_belongings(options, FROM_BASE, "a base: its folder says it", error));
    } else {
        TRY(check_belongings(options, source, what, error));
    }
    return STATUS_OK;
}

/* ---- the model's options -------------------------------------------------- */

static uint32_t choice_index(const struct options *options, const char *name,
                             const char *const *words, uint32_t count)
{
    const char *text = options_text(options, name);

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return 0; /* the table lists the same words */
}

/* A given number replaces the model's own default. */
static void take_number(uint32_t *field, const struct options *options, const char *name)
{
    if (options_given(options, name)) {
        *field = (uint32_t)options_number(options, name);
    }
}

static void take_real(double *field, const struct options *options, const char *name)
{
    if (options_given(options, name)) {
        *field = options_real(options, name);
    }
}

/* What a folder says, or the model's own defaults and options. */
static void read_shape(struct model_options *model, const struct options *options)
{
    take_number(&model->positions, options, "positions");
    take_number(&model->vocabulary, options, "vocabulary");
    take_number(&model->layers, options, "layers");
    take_number(&model->heads, options, "heads");
    take_number(&model->kv_heads, options, "kv-heads");
    take_number(&model->width, options, "width");
    take_number(&model->hidden, options, "hidden");
    take_number(&model->classes, options, "classes");
    take_real(&model->rotary_base, options, "rotary-base");
    take_real(&model->norm_epsilon, options, "norm-epsilon");
}

static void read_training(struct model_options *model, const struct options *options)
{
    static const char *const types[] = {"f32", "u8", "u16", "u32"};
    static const char *const equilibrated[] = {"none", "tokens"};

    model->data_dtype = (enum dtype)choice_index(options, "data-type", types, 4);
    model->steps = (uint32_t)options_number(options, "steps");
    model->evaluation = options_flag(options, "inference");
    model->masked = options_text(options, "mask") != NULL;
    model->seed = options_number(options, "seed");
    model->precision.bits = (uint32_t)strtoul(options_text(options, "bits"), NULL, 10);
    model->precision.block = model->precision.bits == 22 ? 0 : PRECISION_DEFAULT.block;
    take_number(&model->precision.block, options, "block");
    model->equilibrate = choice_index(options, "equilibrate", equilibrated, 2) == 1;
    take_number(&model->batch, options, "batch");
    take_number(&model->accumulate, options, "accumulate");
    take_number(&model->group, options, "accumulate-group");
    take_number(&model->length, options, "length");
    take_real(&model->dropout, options, "dropout");
}

static enum status read_base(struct model_options *model, const struct options *options,
                             struct error *error)
{
    struct base_config config;

    TRY(base_config_read(&config, options_text(options, "base"), error));
    *model = config.model;
    model->length = base_config_length(&config, LENGTH_USUAL_MAX);
    read_training(model, options);
    TRY(job_adapter_read(&model->lora, options, error));
    TRY(lora_options_read(model, options, error));
    TRY(recipe_options_read(model, options, error));
    TRY(job_pairs_read(model, options, error));
    return base_config_check_length(&config, model->length, error);
}

/* The program says its own sizes; --bits are 22 where nobody says another number. */
static enum status read_graph(struct model_options *model, const struct options *options,
                              struct error *error)
{
    TRY(check_belongings(options, FROM_GRAPH, "a graph: its program is fixed", error));
    model_options_default(model, MODEL_MLP);
    read_training(model, options);
    model->evaluation = model->masked = false; /* a config file may say so of other jobs */
    if (!options_given(options, "bits")) {
        model->precision.bits = 22;
        model->precision.block = 0;
        take_number(&model->precision.block, options, "block");
    }
    return recipe_options_read(model, options, error);
}

void job_new_model_name(char name[JOB_TITLE_MAX + 2], const struct model_options *model,
                        const struct options *options)
{
    const char *given = options_text(options, "model-name");
    const char *base = options_text(options, "base");
    const char *kind = model == NULL ? "" : model_name(model);
    const size_t size = JOB_TITLE_MAX + 2; /* one byte too many is seen */
    size_t length = base == NULL ? 0 : strlen(base);

    while (length > 0 && base[length - 1] == '/') {
        length--;
    }
    if (given != NULL || model == NULL) {
        (void)snprintf(name, size, "%s", given == NULL ? "" : given);
    } else if (base != NULL) {
        const char *slash = memrchr(base, '/', length);
        const char *last = slash == NULL ? base : slash + 1;

        (void)snprintf(name, size, "%.*s", (int)(base + length - last), last);
        if (job_check_text(name, "name", &(struct error){0}) != STATUS_OK) {
            (void)snprintf(name, size, "%s", kind);
        }
    } else if (model->kind == MODEL_CONVNET) {
        (void)snprintf(name, size, "%s, width %u", kind, model->hidden);
    } else {
        (void)snprintf(name, size, "%s, %u layer%s, width %u", kind, model->layers,
                       model->layers == 1 ? "" : "s",
                       model->kind == MODEL_MLP ? model->hidden : model->width);
    }
}

enum status job_new_model(struct model_options *model, const struct options *options,
                          struct error *error)
{
    static const char *const kinds[] = {"mlp", "convnet", "gpt2", "llama"};

    if (options_text(options, "graph") != NULL) {
        return read_graph(model, options, error);
    }
    TRY(check_model_options(options, error));
    if (options_text(options, "base") != NULL) {
        return read_base(model, options, error);
    }
    model_options_default(model, (enum model_kind)choice_index(options, "model", kinds, 4));
    read_shape(model, options);
    read_training(model, options);
    return recipe_options_read(model, options, error);
}
