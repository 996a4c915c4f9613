/*
 * job_new.c - `lockstep job new`, and `job show` of a file.
 *
 * A new job comes from a model and its options, or from a tape. Nothing here touches a ledger: see
 * job_open.c and job_list.c.
 */
#include "client/job_new.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/commands/commands.h"
#include "client/job_list.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"
#include "proofs/job/tape_file.h"
#include "proofs/run/run.h"

enum {
    PICTURE_LEAST = 4,       /* what two pools leave something of */
    CHANNELS_FIRST_MOST = 4, /* as many "rows" of squares are rather channels that come first */
};

/* ---- options ------------------------------------------------------------ */

const struct option_spec job_new_options[JOB_NEW_OPTIONS] = {
    {.name = "model",
     .kind = OPTION_CHOICE,
     .value = "MODEL",
     .choices = "gpt2|llama|mlp|convnet",
     .fallback = "gpt2",
     .help = "what to train"},
    {.name = "tape",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "take the program from this tape instead of a model (see 'job show --save-tape')"},
    {.name = "constants",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "the constants of the tape, by name (.safetensors)"},
    {.name = "first-state",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "begin with this state (.safetensors, such as GPT-2 from Hugging Face) and not with "
             "a drawn one"},
    {.name = "data",
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "tokens (flat or .npy) or samples (.npy; pictures are height, width, channels); for a "
             "tape, each of its data files in order"},
    {.name = "labels", .kind = OPTION_TEXT, .value = "FILE", .help = "labels of samples (.npy)"},
    {.name = "data-type",
     .kind = OPTION_CHOICE,
     .value = "TYPE",
     .choices = "u8|u16|u32|f32",
     .fallback = "u8",
     .help = "element type of the data"},
    {.name = "out",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .fallback = "lockstep.job",
     .help = "where to write the job"},
    {.name = "steps",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "300",
     .minimum = 1,
     .maximum = 10000000,
     .help = "how many steps to train"},
    {.name = "segment",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "50",
     .minimum = 1,
     .maximum = GAME_STATES_MAX,
     .help = "steps of a segment: one commitment and one checkpoint each"},
    {.name = "seed",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .help = "seed of the first state, the batches and dropout"},
    {.name = "bits",
     .kind = OPTION_CHOICE,
     .value = "N",
     .choices = "14|15|16|22",
     .fallback = "14",
     .help = "bits of an operand of a contraction"},
    {.name = "block",
     .kind = OPTION_INTEGER,
     .value = "N",
     .help = "elements that share a scale; 0: a whole row (default: 128, with 22 bits 0)",
     .maximum = 1048576},
    {.name = "equilibrate",
     .kind = OPTION_FLAG,
     .help = "in gradients of weights, shift each token so that large ones cost others no bits"},
    {.name = "batch",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "sequences (default: 8) or samples (32) of a step, or of a micro-batch"},
    {.name = "accumulate",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 1000000,
     .help = "micro-batches of a step (default: 1): the gradient is their mean"},
    {.name = "accumulate-group",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = 1000000,
     .help = "micro-batches that are summed in order (default: all); the groups, 2, 4, 8, ... of "
             "them, are summed as a tree"},
    {.name = "length",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "tokens of a sequence (default: 64)"},
    {.name = "positions",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "rows of the table of positions (gpt2; default: the length)"},
    {.name = "vocabulary",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 100000000,
     .help = "how many different tokens there are (default: 256)"},
    {.name = "layers",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000,
     .help = "layers of the model (gpt2, llama; default: 3), or hidden layers (mlp; 2)"},
    {.name = "heads",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000,
     .help = "attention heads (gpt2, llama; default: 4)"},
    {.name = "kv-heads",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000,
     .help = "key and value heads that groups of heads share (llama; default: 2)"},
    {.name = "rotary-base",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "base of the rotary angles, rope_theta of published weights (llama; default: 10000)"},
    {.name = "norm-epsilon",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "epsilon of the norms, rms_norm_eps of published weights (llama; default: 0.00001)"},
    {.name = "width",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "width of the model (gpt2, llama; default: 64)"},
    {.name = "hidden",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "width of the hidden layers (default: gpt2 4 times the width, llama 8/3 of it up to a "
             "multiple of 32, mlp 64, convnet 8)"},
    {.name = "classes",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000000,
     .help = "classes of a classifier (mlp, convnet; default: 10)"},
    {.name = "dropout",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "share that dropout drops (default: 0)"},
    {.name = "inference",
     .kind = OPTION_FLAG,
     .help = "only answer: each step's logits and the sum of the losses are the state, and the "
             "weights of --first-state stay as they are"},
    {.name = "optimizer",
     .kind = OPTION_CHOICE,
     .value = "NAME",
     .choices = "adamw|sgd",
     .fallback = "adamw",
     .help = "how parameters are updated"},
    {.name = "schedule",
     .kind = OPTION_CHOICE,
     .value = "NAME",
     .choices = "constant|linear|cosine",
     .fallback = "linear",
     .help = "how the learning rate falls after the warm-up"},
    {.name = "rate",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "learning rate after the warm-up (default: 0.001)"},
    {.name = "rate-min",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "learning rate at the end (default: 0.0001)"},
    {.name = "warmup",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 10000000,
     .help = "steps of the warm-up (default: 20, or a tenth where there are not more steps)"},
    {.name = "decay",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "weight decay of matrices (default: 0.1)"},
    {.name = "clip",
     .kind = OPTION_REAL,
     .value = "X",
     .help = "limit of the gradient's norm; 0: none (default: 1)"},
    {.name = "memory",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "memory that a machine must have to take the job"},
    {.name = "compute-capability",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1000,
     .help = "compute capability of the CUDA device that it must have, such as 90 for 9.0"},
    {.name = "contraction-rate",
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
    FROM_CLASSIFIER = FROM_MLP | FROM_CONVNET,
    FROM_LANGUAGE = FROM_GPT2 | FROM_LLAMA,
    FROM_MODEL = FROM_CLASSIFIER | FROM_LANGUAGE,
};

/* Options that are not listed go with every source. */
static const struct {
    const char *option;
    uint32_t sources;
} belongings[] = {
    {"constants", FROM_TAPE},
    {"model", FROM_MODEL},
    {"labels", FROM_CLASSIFIER},
    {"data-type", FROM_LANGUAGE},
    {"seed", FROM_MODEL | FROM_TAPE},
    {"bits", FROM_MODEL},
    {"block", FROM_MODEL},
    {"equilibrate", FROM_MODEL},
    {"batch", FROM_MODEL},
    {"accumulate", FROM_MODEL},
    {"accumulate-group", FROM_MODEL},
    {"length", FROM_LANGUAGE},
    {"positions", FROM_GPT2},
    {"vocabulary", FROM_LANGUAGE},
    {"layers", FROM_LANGUAGE | FROM_MLP},
    {"heads", FROM_LANGUAGE},
    {"kv-heads", FROM_LLAMA},
    {"rotary-base", FROM_LLAMA},
    {"norm-epsilon", FROM_LLAMA},
    {"width", FROM_LANGUAGE},
    {"hidden", FROM_MODEL},
    {"classes", FROM_CLASSIFIER},
    {"dropout", FROM_MODEL},
    {"inference", FROM_MODEL},
    {"optimizer", FROM_MODEL},
    {"schedule", FROM_MODEL},
    {"rate", FROM_MODEL},
    {"rate-min", FROM_MODEL},
    {"warmup", FROM_MODEL},
    {"decay", FROM_MODEL},
    {"clip", FROM_MODEL},
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
    TRY(check_belongings(options, source, what, error));
    if (options_flagged(options, "warmup") &&
        options_number(options, "warmup") >= options_number(options, "steps")) {
        return error_set(error, STATUS_USAGE,
                         "--warmup: it must end before the last of %" PRIu64 " steps",
                         options_number(options, "steps"));
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

static void read_options(struct model_options *model, const struct options *options)
{
    static const char *const kinds[] = {"mlp", "convnet", "gpt2", "llama"};
    static const char *const types[] = {"f32", "u8", "u16", "u32"};
    static const char *const optimizers[] = {"adamw", "sgd"};
    static const char *const schedules[] = {"constant", "linear", "cosine"};

    model_options_default(model, (enum model_kind)choice_index(options, "model", kinds, 4));
    model->data_dtype = (enum dtype)choice_index(options, "data-type", types, 4);
    model->optimizer = (enum optimizer)choice_index(options, "optimizer", optimizers, 2);
    model->schedule = (enum schedule)choice_index(options, "schedule", schedules, 3);
    model->steps = (uint32_t)options_number(options, "steps");
    model->evaluation = options_flag(options, "inference");
    model->seed = options_number(options, "seed");
    model->precision.bits = (uint32_t)strtoul(options_text(options, "bits"), NULL, 10);
    model->precision.block = model->precision.bits == 22 ? 0 : PRECISION_DEFAULT.block;
    take_number(&model->precision.block, options, "block");
    model->equilibrate = options_flag(options, "equilibrate");
    take_number(&model->batch, options, "batch");
    take_number(&model->accumulate, options, "accumulate");
    take_number(&model->group, options, "accumulate-group");
    take_number(&model->length, options, "length");
    take_number(&model->positions, options, "positions");
    take_number(&model->vocabulary, options, "vocabulary");
    take_number(&model->layers, options, "layers");
    take_number(&model->heads, options, "heads");
    take_number(&model->kv_heads, options, "kv-heads");
    take_number(&model->width, options, "width");
    take_number(&model->hidden, options, "hidden");
    take_number(&model->classes, options, "classes");
    take_number(&model->warmup, options, "warmup");
    take_real(&model->rotary_base, options, "rotary-base");
    take_real(&model->norm_epsilon, options, "norm-epsilon");
    take_real(&model->dropout, options, "dropout");
    take_real(&model->rate, options, "rate");
    take_real(&model->rate_min, options, "rate-min");
    take_real(&model->decay, options, "decay");
    take_real(&model->clip, options, "clip");
    if (model->warmup >= model->steps) {
        model->warmup = model->steps / 10;
    }
}

/* ---- the data ----------------------------------------------------------- */

static bool is_language(const struct model_options *model)
{
    return model->kind == MODEL_GPT2 || model->kind == MODEL_LLAMA;
}

/*
 * A picture is (height, width) or (height, width, channels). A row says nothing of a picture: only
 * a square of one channel is taken for one, and job show says so.
 */
static enum status take_picture(struct model_options *model, const struct dataset *samples,
                                struct error *error)
{
    uint64_t height = samples->dims[0];
    uint64_t width = samples->rank == 1 ? 1 : samples->dims[1];
    uint64_t channels = samples->rank == 3 ? samples->dims[2] : 1;

    if (samples->rank == 1) {
        for (height = 1; height * height < samples->width; height++) {
        }
        width = height;
    }
    if (height * width * channels != samples->width) {
        (void)error_set(error, STATUS_USAGE,
                        "a convnet needs pictures, and these samples are rows of %" PRIu64
                        " numbers",
                        samples->width);
        error_advise(error, "save them with their shape: x.reshape(-1, HEIGHT, WIDTH, CHANNELS)");
        return STATUS_USAGE;
    }
    if (height < PICTURE_LEAST || width < PICTURE_LEAST ||
        (height <= CHANNELS_FIRST_MOST && width == channels)) {
        (void)error_set(error, STATUS_USAGE,
                        "these samples would be pictures %" PRIu64 " high and %" PRIu64
                        " wide, with %" PRIu64 " channels",
                        height, width, channels);
        error_advise(error,
                     "channels come last, and sides are %d at least: "
                     "numpy.transpose(x, (0, 2, 3, 1)) moves channels that come first",
                     PICTURE_LEAST);
        return STATUS_USAGE;
    }
    model->image_height = (uint32_t)height;
    model->image_width = (uint32_t)width;
    model->channels = (uint32_t)channels;
    return STATUS_OK;
}

/* The shape is the file's, and the job binds it. */
static enum status take_shape(struct model_options *model, const struct dataset *samples,
                              struct error *error)
{
    if (samples->rank > TENSOR_RANK_MAX - 1 || samples->width > UINT32_MAX) {
        return error_set(error, STATUS_USAGE,
                         "samples have at most %d dimensions; these have %u, and %" PRIu64
                         " numbers",
                         TENSOR_RANK_MAX - 1, samples->rank, samples->width);
    }
    model->sample_rank = samples->rank;
    memcpy(model->sample_dims, samples->dims, samples->rank * sizeof(samples->dims[0]));
    if (model->kind == MODEL_CONVNET) {
        return take_picture(model, samples, error);
    }
    model->image_height = 1;
    model->image_width = (uint32_t)samples->width;
    model->channels = 1;
    return STATUS_OK;
}

/* Opens the data, checks it and puts its size into the model's options. */
static enum status measure_data(struct model_options *model, const struct options *options,
                                struct error *error)
{
    const char *path = options_list_item(options, "data", 0);
    const char *labels = options_text(options, "labels");
    struct dataset samples;
    struct dataset classes;
    enum status status;

    if (is_language(model)) {
        TRY(dataset_open_tokens(&samples, error, path, model->data_dtype, model->vocabulary));
        model->data_count = samples.count;
        model->data_dtype = samples.dtype;
        dataset_close(&samples);
        return STATUS_OK;
    }
    if (labels == NULL) {
        return error_set(error, STATUS_USAGE, "a classifier needs --labels beside --data");
    }
    TRY(dataset_open_samples(&samples, error, path));
    TRY_OUT(dataset_open_labels(&classes, error, labels, samples.rows, model->classes));
    model->data_count = samples.rows;
    model->data_dtype = samples.dtype;
    status = take_shape(model, &samples, error);
    dataset_close(&classes);
out:
    dataset_close(&samples);
    return status;
}

static enum status add_root(struct job_terms *terms, const struct tensor *tensor, const char *path,
                            struct error *error)
{
    struct dataset dataset;

    TRY(run_data_open(&dataset, &terms->data_roots[terms->data_count], tensor, path, error));
    terms->data_count++;
    dataset_close(&dataset);
    return STATUS_OK;
}

static enum status find_roots(struct job_terms *terms, const struct model *model,
                              const struct options *options, struct error *error)
{
    TRY(add_root(terms, &model->tape->tensors[model->data], options_list_item(options, "data", 0),
                 error));
    if (model->labels != TENSOR_NONE) {
        TRY(add_root(terms, &model->tape->tensors[model->labels], options_text(options, "labels"),
                     error));
    }
    return STATUS_OK;
}

/* ---- the first state -------------------------------------------------------- */

static enum status give_first_state(struct job_terms *terms, const struct tape *tape,
                                    const struct options *options, struct error *error)
{
    const char *path = options_text(options, "first-state");
    struct first_state first = {0};
    bool stated = options_text(options, "tape") != NULL ||
                  (options_given(options, "rotary-base") && options_given(options, "norm-epsilon"));
    enum status status;

    if (path == NULL) {
        return STATUS_OK;
    }
    TRY_OUT(first_state_check_origin(tape, path, stated, error));
    TRY_OUT(first_state_open(&first, tape, path, error));
    TRY_OUT(first_state_root(&terms->first_state_root, &first, error));
out:
    terms->first_state_given = true;
    first_state_close(&first);
    return status;
}

/* ---- job new ------------------------------------------------------------ */

static enum status job_of_model(struct job **job, struct job_terms *terms,
                                const struct options *options, struct error *error)
{
    struct model_options model_options;
    struct model model;
    enum status status;

    if (options_list_count(options, "data") != 1) {
        return error_set(error, STATUS_USAGE,
                         "a model is trained on one file: name it with --data");
    }
    TRY(check_model_options(options, error));
    read_options(&model_options, options);
    TRY(measure_data(&model_options, options, error));
    TRY(model_build(&model, &model_options, error));
    TRY_OUT(find_roots(terms, &model, options, error));
    TRY_OUT(give_first_state(terms, model.tape, options, error));
    TRY_OUT(job_from_model(job, &model, terms, error));
out:
    model_release(&model);
    return status;
}

static enum status tape_roots(struct job_terms *terms, const struct tape *tape,
                              const struct options *options, struct error *error)
{
    size_t count = options_list_count(options, "data");
    size_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role != ROLE_DATA) {
            continue;
        }
        if (at >= count || at >= JOB_DATA_MAX) {
            return error_set(error, STATUS_USAGE,
                             "the tape reads '%s', and no file is named for it (at most %d)",
                             tape->tensors[id].name, JOB_DATA_MAX);
        }
        TRY(add_root(terms, &tape->tensors[id], options_list_item(options, "data", at++), error));
    }
    if (at < count) {
        return error_set(error, STATUS_USAGE, "the tape reads %zu data files; %zu are named", at,
                         count);
    }
    return STATUS_OK;
}

static enum status job_of_tape(struct job **job, struct job_terms *terms,
                               const struct options *options, struct error *error)
{
    struct tape *tape = NULL;
    void **constants = NULL;
    uint32_t constant_count = 0;
    enum status status;

    TRY_OUT(check_belongings(options, FROM_TAPE, "a tape: its program is fixed", error));
    TRY_OUT(tape_file_read(&tape, options_text(options, "tape"), error));
    TRY_OUT(tape_file_constants(&constants, &constant_count, tape,
                                options_text(options, "constants"), error));
    TRY_OUT(tape_roots(terms, tape, options, error));
    TRY_OUT(give_first_state(terms, tape, options, error));
    return job_from_tape(job, tape, constants, constant_count, terms, error);
out:
    tape_file_free_constants(constants, constant_count);
    tape_free(tape);
    return status;
}

static enum status make_job(struct job **job, const struct options *options, struct error *error)
{
    struct job_terms terms = {
        .steps = options_number(options, "steps"),
        .segment_length = options_number(options, "segment"),
        .seed = options_number(options, "seed"),
        .requirements.memory = options_number(options, "memory"),
        .requirements.compute_capability = (uint32_t)options_number(options, "compute-capability"),
        .requirements.contraction_rate = (uint32_t)options_number(options, "contraction-rate")};

    if (terms.segment_length > terms.steps) {
        terms.segment_length = terms.steps;
    }
    return options_text(options, "tape") != NULL ? job_of_tape(job, &terms, options, error)
                                                 : job_of_model(job, &terms, options, error);
}

/* What is read, and as what pictures. */
static void print_shapes(FILE *out, const struct tape *tape)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_DATA) {
            fprintf(out, "  %-10s %s (%" PRIu64, tensor->name, dtype_name(tensor->dtype),
                    tensor->dims[0]);
            for (uint32_t i = 1; i < tensor->rank; i++) {
                fprintf(out, ", %" PRIu64, tensor->dims[i]);
            }
            fputs(")\n", out);
        }
    }
    for (uint32_t i = 0; i < tape->op_count; i++) {
        if (tape->ops[i].kind == OP_IM2COL) {
            const int64_t *image = tape->ops[i].attributes;

            fprintf(out, "  pictures   %" PRId64 " high, %" PRId64 " wide, %" PRId64 " channels\n",
                    image[IMAGE_HEIGHT], image[IMAGE_WIDTH], image[IMAGE_CHANNELS]);
            return;
        }
    }
}

static void print_job(FILE *out, const struct job *job)
{
    struct tape_footprint footprint = tape_footprint(job->tape);
    const struct tape *brief = job->tape->brief;
    char id[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(id, job->id.bytes, DIGEST_SIZE);
    fprintf(out, "job          %s\n", id);
    fprintf(out, "steps        %" PRIu64 " in %" PRIu64 " segments of %" PRIu64 "\n", job->steps,
            job_segments(job), job->segment_length);
    if (brief != NULL) {
        fprintf(out,
                "program      %u operations on %u tensors; %u micro-batches of %u of them, in "
                "groups of %u\n",
                brief->op_count, brief->tensor_count, brief->repeat.times, brief->repeat.op_count,
                brief->repeat.group);
    } else {
        fprintf(out, "program      %u operations on %u tensors\n", job->tape->op_count,
                job->tape->tensor_count);
    }
    fprintf(out, "state        %u tensors, %.2f MiB; a checkpoint is as large\n",
            job->tape->state_count, (double)footprint.state / 1048576.0);
    fprintf(out, "data         %.2f MiB", (double)footprint.data / 1048576.0);
    for (uint32_t i = 0; i < job->data_count; i++) {
        hex_encode(id, job->data_roots[i].bytes, DIGEST_SIZE);
        fprintf(out, "%s root %.16s...", i == 0 ? "," : " and", id);
    }
    fputc('\n', out);
    print_shapes(out, job->tape);
    hex_encode(id, job->first_state_root.bytes, DIGEST_SIZE);
    fprintf(out, "first state  %s, root %.16s...\n",
            job->first_state_given ? "given as a checkpoint" : "drawn from the seed", id);
    fprintf(out, "rules        version %u\n", job->rules_version);
    if (job->requirements.memory != 0) {
        fprintf(out, "needs        %.2f MiB of memory\n",
                (double)job->requirements.memory / 1048576.0);
    }
}

static int emit_job(struct command_context *context, const struct job *job, const char *path)
{
    json_t *view;

    if (!context->json) {
        print_job(context->out, job);
        if (path != NULL) {
            fprintf(context->out, "written to   %s\n", path);
        }
        return COMMAND_OK;
    }
    view = job_json(job);
    if (view != NULL && path != NULL) {
        (void)json_object_set_new(view, "path", json_string(path));
    }
    return command_emit(context, view);
}

int job_new_run(struct command_context *context)
{
    const char *path = options_text(context->options, "out");
    struct job *job = NULL;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    TRY_OUT(make_job(&job, context->options, &error));
    TRY_OUT(job_write(job, path, &error));
out:
    code = status == STATUS_OK ? emit_job(context, job, path) : command_fail(context, &error);
    job_free(job);
    return code;
}

/* ---- job show ----------------------------------------------------------- */

const struct option_spec job_new_show_options[JOB_NEW_SHOW_OPTIONS] = {
    {.name = "tape",
     .kind = OPTION_FLAG,
     .help = "print the whole program, one operation a line",
     .command_line_only = true},
    {.name = "save-tape",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write the program's canonical bytes, for 'job new --tape'",
     .command_line_only = true},
    {.name = "save-constants",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write the constants (.safetensors), for 'job new --constants'",
     .command_line_only = true},
    CHAIN_LEDGER_OPTIONS,
};

static enum status save_parts(const struct job *job, const struct options *options,
                              struct error *error)
{
    const char *tape = options_text(options, "save-tape");
    const char *constants = options_text(options, "save-constants");

    if (tape != NULL) {
        TRY(tape_file_write(tape, job->tape, error));
    }
    if (constants != NULL) {
        TRY(tape_file_write_constants(constants, job->tape, job->constants, error));
    }
    return STATUS_OK;
}

int job_new_show(struct command_context *context)
{
    struct job *job = NULL;
    char *text = NULL;
    struct error error;
    enum status status;
    int code;

    if (!file_exists(context->options->arguments[0]) &&
        options_text(context->options, "ledger") != NULL) {
        return job_list_show(context); /* a key */
    }
    error_init(&error);
    TRY_OUT(job_read(&job, context->options->arguments[0], &error));
    TRY_OUT(save_parts(job, context->options, &error));
    if (options_flag(context->options, "tape")) {
        TRY_OUT(tape_text(&text, job->tape, &error));
    }
out:
    if (status != STATUS_OK) {
        code = command_fail(context, &error);
    } else if (text != NULL && context->json) {
        code = command_emit(context, json_pack("{s:s}", "tape", text));
    } else if (text != NULL) {
        code = fputs(text, context->out) >= 0 ? COMMAND_OK : COMMAND_UNKNOWN;
    } else {
        code = emit_job(context, job, NULL);
    }
    free(text);
    job_free(job);
    return code;
}
