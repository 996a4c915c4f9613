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
#include "base/text.h"
#include "chain/commands/commands.h"
#include "client/graph/job_graph.h"
#include "client/job_list.h"
#include "client/job_new_options.h"
#include "client/judge/held_out_every.h"
#include "client/recipe/recipe_options.h"
#include "client/show/job_modules.h"
#include "client/show/job_ranks.h"
#include "client/show/job_sheet.h"
#include "client/tokens/job_rows.h"
#include "client/tokens/job_tokens.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_facts.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"
#include "proofs/job/job_notes.h"
#include "proofs/job/job_precision.h"
#include "proofs/job/tape_file.h"
#include "proofs/model/adapter_config.h"
#include "proofs/model/frozen.h"
#include "proofs/receipt/receipt_job.h"
#include "proofs/run/calibrate.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "proofs/run/step_memory.h"

enum {
    PICTURE_LEAST = 4,       /* what two pools leave something of */
    EVAL_BATCHES = 16,       /* of held-out data, where nobody says how many */
    CHANNELS_FIRST_MOST = 4, /* as many "rows" of squares are rather channels that come first */
};

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
static enum status measure_data(struct model_options *model, struct job_rows *rows,
                                const struct options *options, struct error *error)
{
    const char *path = options_list_item(options, "data", 0);
    const char *labels = options_text(options, "labels");
    const char *mask = options_text(options, "mask");
    struct dataset samples;
    struct dataset classes;
    enum status status;

    if (job_rows_is(path)) {
        return job_rows_measure(rows, model, options, error);
    }
    if (is_language(model)) {
        if (options_text(options, "base") != NULL) {
            TRY(job_tokens_check_type(path, options_given(options, "data-type"), error));
        }
        TRY(dataset_open_tokens(&samples, error, path, model->data_dtype, model->vocabulary));
        if (samples.count <= model->length) {
            (void)error_set(error, STATUS_USAGE,
                            "%s has %" PRIu64 " tokens, and a row takes %" PRIu64
                            ": --length and the one after it",
                            path, (uint64_t)samples.count, (uint64_t)model->length + 1);
            dataset_close(&samples);
            return STATUS_USAGE;
        }
        model->data_count = samples.count;
        model->data_dtype = samples.dtype;
        dataset_close(&samples);
        return mask == NULL ? STATUS_OK : job_tokens_check_mask(mask, model->data_count, error);
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

/* The mask is of the data, and says nothing of other tokens. */
static enum status refuse_masked(struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "--eval with --mask: held-out tokens have no mask, so the figure would count "
                    "prompts too");
    error_advise(error, "leave --eval out, or train without --mask");
    return STATUS_REFUSED;
}

/* The same of held-out data, which is like the data. */
static enum status measure_held_out(struct model_options *model, struct job_rows *rows,
                                    const struct options *options, struct error *error)
{
    const char *path = options_list_first(options, "eval");
    const char *labels = options_text(options, "eval-labels");
    struct held_out_options *held_out = &model->held_out;
    struct dataset data = {0};
    struct dataset classes;
    uint64_t batch = model->batch == 0 ? 1 : model->batch;

    if (path == NULL) {
        return job_new_check_eval(options, error);
    }
    if (options_list_count(options, "eval") != 1) {
        return error_set(error, STATUS_USAGE, "a model looks at one file: name it with --eval");
    }
    if (model->packed) {
        TRY(job_rows_measure_held_out(rows, model, options, error));
    } else if (is_language(model)) {
        if (model->masked) {
            return refuse_masked(error);
        }
        TRY(dataset_open_tokens(&data, error, path, model->data_dtype, model->vocabulary));
        held_out->count = data.count;
        batch *= model->length == 0 ? 1 : model->length;
    } else if (labels == NULL) {
        return error_set(error, STATUS_USAGE, "a classifier needs --eval-labels beside --eval");
    } else {
        TRY(dataset_open_samples(&data, error, path));
        if (data.dtype != model->data_dtype ||
            data.width != (uint64_t)model->image_height * model->image_width * model->channels) {
            dataset_close(&data);
            return error_set(error, STATUS_USAGE,
                             "--eval: its samples are not of the type and width of --data");
        }
        held_out->count = data.rows;
    }
    held_out->dtype = model->data_dtype;
    dataset_close(&data);
    if (!is_language(model)) {
        TRY(dataset_open_labels(&classes, error, labels, held_out->count, model->classes));
        dataset_close(&classes);
    }
    held_out->every = held_out_every(options, model->steps);
    held_out->batches = held_out->count / batch < EVAL_BATCHES
                            ? (uint32_t)((held_out->count + batch - 1) / batch)
                            : EVAL_BATCHES;
    if (options_given(options, "eval-batches")) {
        held_out->batches = (uint32_t)options_number(options, "eval-batches");
    }
    return STATUS_OK;
}

/* ---- the first state -------------------------------------------------------- */

/* Where a first state that is given lies: adapters, the base, or a file; NULL: it is drawn. */
static const char *first_state_of(const struct options *options)
{
    const char *adapter = options_text(options, "adapter");
    const char *base = options_text(options, "base");

    return adapter != NULL ? adapter : base != NULL ? base : options_text(options, "first-state");
}

static enum status give_first_state(struct job_terms *terms, const struct tape *tape,
                                    const struct options *options, struct error *error)
{
    const char *base = options_text(options, "base");
    const char *path = first_state_of(options);
    struct first_state first = {0};
    bool stated = options_text(options, "tape") != NULL || base != NULL ||
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

/* The weights of the base stay as and where they are. */
static void freeze(struct lora *lora, const struct weights *weights)
{
    lora->find = frozen_find;
    lora->files = weights;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Those of packed rows, or those that the options name; returns how many. */
static size_t list_side(const char **files, const struct job_rows *rows,
                        const struct options *options, const char *const *names)
{
    size_t count = 0;

    for (int i = 0; i < (rows->count > 0 ? ROW_TENSORS : 0); i++) {
        files[count++] = rows->paths[i];
    }
    for (; rows->count == 0 && *names != NULL; names++) {
        files[count] = strcmp(*names, "eval") == 0 ? options_list_first(options, *names)
                                                   : options_text(options, *names);
        count += files[count] != NULL;
    }
    return count;
}

/* The files of a model's data in the tape's order; frozen: the folder of its weights, or NULL. */
static size_t list_files(const char **files, const struct job_rows rows[2],
                         const struct options *options, const char *frozen)
{
    static const char *const beside[] = {"mask", "labels", NULL};
    static const char *const held_out[] = {"eval", "eval-labels", NULL};
    size_t count = 0;

    if (rows[0].count == 0) {
        files[count++] = options_list_item(options, "data", 0);
    }
    count += list_side(files + count, &rows[0], options, beside);
    if (frozen != NULL) {
        files[count++] = frozen;
    }
    return count + list_side(files + count, &rows[1], options, held_out);
}

/* The roots of a job's data stand in the tape's order. */
static const struct digest *root_of(const struct digest *roots, const struct tape *tape,
                                    uint32_t data)
{
    for (uint32_t id = 0; id < data; id++) {
        roots += tape->tensors[id].role == ROLE_DATA;
    }
    return roots;
}

/* The job binds the roots of the manifests. */
static enum status check_rows(const struct job_rows rows[2], const struct model *model,
                              const struct digest *roots, struct error *error)
{
    const uint32_t first[2] = {model->data, model->held_out};

    for (int side = 0; side < 2; side++) {
        if (rows[side].count > 0) {
            TRY(job_rows_check_roots(&rows[side], root_of(roots, model->tape, first[side]), error));
        }
    }
    return STATUS_OK;
}

/* What the program was made of beside its data, so that nobody takes another for it. */
static enum status note_files(struct buffer *notes, const struct options *options,
                              struct error *error)
{
    const char *base = options_text(options, "base");
    const char *adapter = options_text(options, "adapter");

    buffer_init(notes, JOB_NOTES_MAX);
    if (base != NULL) {
        TRY(job_notes_add_from(notes, base, BASE_CONFIG_NAME, error));
    }
    if (adapter != NULL) {
        TRY(job_notes_add_from(notes, adapter, ADAPTER_CONFIG_NAME, error));
    }
    return buffer_check(notes, error, "the notes of the job");
}

static enum status job_of_model(struct job **job, struct job_terms *terms,
                                const struct options *options, struct error *error)
{
    struct job_rows rows[2] = {0}; /* trained on, held out */
    const char *files[8];
    const char *base = options_text(options, "base");
    struct calibration calibration = {0};
    struct model_options model_options;
    char name[JOB_TITLE_MAX + 2];
    struct weights weights = {0};
    struct digest *roots = NULL;
    struct model model = {0};
    struct buffer notes = {0};
    size_t count;
    enum status status;

    if (options_list_count(options, "data") != 1) {
        return error_set(error, STATUS_USAGE,
                         "a model is trained on one file: name it with --data");
    }
    TRY(job_new_model(&model_options, options, error));
    job_new_model_name(name, &model_options, options);
    TRY(measure_data(&model_options, &rows[0], options, error));
    TRY_OUT(recipe_options_settle(&model_options, options, error));
    TRY_OUT(measure_held_out(&model_options, &rows[1], options, error));
    terms->steps = model_options.steps;
    terms->segment_length = least_of(options_number(options, "segment-steps"), terms->steps);
    const bool frozen = model_options.lora.rank != 0 || model_options.preference != 0.0;

    count = list_files(files, rows, options, frozen ? base : NULL);
    if (base != NULL) {
        TRY_OUT(weights_open(&weights, base, error));
        model_options.embedding_type = frozen_embedding_type(&weights, &model_options);
    }
    if (frozen) {
        freeze(&model_options.lora, &weights);
    }
    TRY_OUT(model_build(&model, &model_options, error));
    TRY_OUT(
        first_state_check_frozen(&weights, model.tape, model.frozen, model.frozen_count, error));
    TRY_OUT(run_file_roots(terms, &roots, model.tape, files, count, error));
    TRY_OUT(check_rows(rows, &model, roots, error));
    if (model_options.lora.rank == 0 || model_options.lora.whole[0] != '\0' ||
        options_text(options, "adapter") != NULL) {
        TRY_OUT(give_first_state(terms, model.tape, options, error));
    }
    terms->model = name;
    TRY_OUT(note_files(&notes, options, error));
    terms->notes = notes.size > 0 ? buffer_text(&notes) : NULL;
    if (base != NULL && model_options.preference == 0.0 &&
        strcmp(options_text(options, "calibrate"), "step") == 0) {
        TRY_OUT(calibrate_model(&calibration, &model_options, terms, files, count,
                                first_state_of(options), error));
        model_release(&model);
        model_options.calibration = &calibration;
        TRY_OUT(model_build(&model, &model_options, error));
    }
    TRY_OUT(job_from_model(job, &model, terms, error));
out:
    terms->model = terms->notes = NULL;
    buffer_release(&notes);
    weights_close(&weights);
    free(roots);
    model_release(&model);
    recipe_options_release(&model_options);
    calibration_release(&calibration);
    return status;
}

static enum status job_of_graph(struct job **job, struct graph_checked *checked,
                                struct job_terms *terms, const struct options *options,
                                struct error *error)
{
    struct model_options model;

    enum status status;

    TRY(job_new_model(&model, options, error));
    TRY_OUT(recipe_options_settle(&model, options, error));
    if (options_list_first(options, "eval") == NULL) {
        TRY_OUT(job_new_check_eval(options, error));
    }
    TRY_OUT(job_graph_make(job, checked, terms, &model, options, error));
out:
    recipe_options_release(&model);
    return status;
}

static enum status job_of_tape(struct job **job, struct job_terms *terms,
                               const struct options *options, struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    size_t count = options_list(files, options, "data");
    struct digest *roots = NULL;
    struct tape *tape = NULL;
    void **constants = NULL;
    uint32_t constant_count = 0;
    enum status status;

    TRY_OUT(job_new_check_tape(options, error));
    TRY_OUT(tape_file_read(&tape, options_text(options, "tape"), error));
    TRY_OUT(tape_file_constants(&constants, &constant_count, tape,
                                options_text(options, "constants"), error));
    TRY_OUT(run_file_roots(terms, &roots, tape, files, count, error));
    TRY_OUT(give_first_state(terms, tape, options, error));
    status = job_from_tape(job, tape, constants, constant_count, terms, error);
    free(roots);
    return status;
out:
    free(roots);
    tape_file_free_constants(constants, constant_count);
    tape_free(tape);
    return status;
}

/* The one step that decides a receipt. */
static enum status job_of_receipt(struct job **job, const struct job_terms *terms,
                                  const struct options *options, struct error *error)
{
    struct receipt_base base = {0};
    struct receipt receipt = {0};
    enum status status;

    TRY(job_new_check_receipt(options, error));
    TRY_OUT(receipt_read(&receipt, error, options_text(options, "receipt")));
    TRY_OUT(receipt_base_open(&base, options_text(options, "base"), NULL, error));
    if (!receipt_base_is(&base, &receipt, error) || !receipt_base_takes(&base, &receipt, error)) {
        status = STATUS_REFUSED;
        goto out;
    }
    status = receipt_job(job, NULL, &receipt, &base, terms, error);
out:
    receipt_base_close(&base);
    receipt_release(&receipt);
    return status;
}

static enum status make_job(struct job **job, struct graph_checked *checked,
                            const struct options *options, struct error *error)
{
    struct job_terms terms = {
        .title = options_text(options, "title"),
        .model = options_text(options, "model-name"),
        .steps = options_number(options, "steps"),
        .segment_length = options_number(options, "segment-steps"),
        .seed = options_number(options, "seed"),
        .requirements.memory = options_number(options, "memory"),
        .requirements.compute_capability = (uint32_t)options_number(options, "compute-capability"),
        .requirements.contraction_rate = (uint32_t)options_number(options, "contraction-rate")};

    if (options_text(options, "receipt") != NULL && options_text(options, "graph") == NULL) {
        return job_of_receipt(job, &terms, options, error);
    }
    terms.segment_length = least_of(terms.segment_length, terms.steps);
    if (options_text(options, "graph") != NULL) {
        return job_of_graph(job, checked, &terms, options, error);
    }
    return options_text(options, "tape") != NULL ? job_of_tape(job, &terms, options, error)
                                                 : job_of_model(job, &terms, options, error);
}

/* Tokens of a language model; a tape's data say nothing that we know. */
static enum status look_at_tokens(struct job_tokens *tokens, bool *looked, const struct job *job,
                                  const struct options *options, struct error *error)
{
    const char *mask = options_text(options, "mask");
    const char *path;
    struct job_rows rows;
    struct job_facts facts;
    uint32_t id = 0;

    job_facts(&facts, job);
    *looked = options_text(options, "tape") == NULL && options_text(options, "receipt") == NULL &&
              facts.tokens > 0;
    if (!*looked) {
        return STATUS_OK;
    }
    while (job->tape->tensors[id].role != ROLE_DATA) {
        id++;
    }
    path = options_list_item(options, "data", 0);
    if (job_rows_is(path)) {
        TRY(job_rows_open(&rows, path, error));
        path = rows.paths[ROW_TOKENS];
        mask = rows.paths[ROW_MASK];
    }
    TRY(job_tokens_look(tokens, error, path, job->tape->tensors[id].dtype, UINT32_MAX,
                        options_text(options, "base"), facts.length));
    return mask == NULL ? STATUS_OK : job_tokens_count_mask(tokens, mask, error);
}

static void print_tokens(struct sheet *sheet, const struct job_tokens *tokens)
{
    sheet_print(sheet, "tokens       the largest is %" PRIu32 "\n", tokens->largest);
    if (tokens->masked) {
        sheet_print(sheet, "mask         %.3g %% of the tokens count\n", 100.0 * tokens->counted);
    }
    if (tokens->first.size > 0) {
        sheet_print(sheet, "first row    %s\n", buffer_text(&tokens->first));
    } else if (tokens->unread.status != STATUS_OK) {
        sheet_print(sheet, "first row    not shown: %s\n", tokens->unread.text);
    }
}

/* Of a folder with a text part, what the training leaves as it is. */
static void print_beside(struct sheet *sheet, const char *base)
{
    struct weights weights = {0};
    struct error none;
    uint64_t count = 0;
    uint64_t size = 0;

    error_init(&none);
    if (weights_open(&weights, base, &none) != STATUS_OK) {
        return;
    }
    for (uint32_t i = 0; i < weights.entry_count; i++) {
        if (weights_is_beside(&weights, weights.entries[i].entry->name)) {
            count++;
            size += weights.entries[i].entry->size;
        }
    }
    if (weights.text_part) {
        sheet_set(sheet, "tensors_left", json_integer((json_int_t)count));
        sheet_print(
            sheet, "leaves       %" PRIu64 " tensors beside the text part, %.2f MiB, as they are\n",
            count, (double)size / 1048576.0);
    }
    weights_close(&weights);
}

/* What a ledger will have of a receipt that is true. */
static void print_receipt(struct sheet *sheet, const struct job *job, const struct options *options)
{
    const char *path = options_text(options, "receipt");
    char text[HEX_SIZE(DIGEST_SIZE)];
    struct receipt receipt;
    struct digest root;
    struct error none;

    error_init(&none);
    if (path == NULL || receipt_read(&receipt, &none, path) != STATUS_OK) {
        return;
    }
    receipt_true_root(&root, job, &receipt);
    hex_encode(text, root.bytes, DIGEST_SIZE);
    sheet_set(sheet, "proven_root", json_string(text));
    sheet_set(sheet, "conditions", json_integer((json_int_t)receipt_row_conditions(&receipt.row)));
    sheet_print(sheet, "proven if    the state root is %s: %" PRIu32 " conditions hold\n", text,
                receipt_row_conditions(&receipt.row));
    receipt_release(&receipt);
}

/* What a file and a new job have in common. options: of a new job. */
static enum status fill_sheet(struct sheet *sheet, const struct job *job,
                              const struct options *options, struct error *error)
{
    struct step_memory memory;

    TRY(step_memory_plan(&memory, job->tape, error));
    sheet_merge(sheet, job_json(job));
    sheet_set(sheet, "step_memory", step_memory_json(&memory));
    sheet_set(sheet, "precision", job_precision_json(job->tape));
    job_sheet_print(sheet, job, &memory);
    held_out_every_show(sheet, job, options);
    return STATUS_OK;
}

/* tokens is NULL where nobody looked at them; base is the folder of the job, or NULL. */
static int emit_job(struct command_context *context, const struct job *job, const char *path,
                    const struct job_tokens *tokens, const char *base,
                    const struct graph_checked *checked)
{
    struct sheet sheet;
    struct error error;

    error_init(&error);
    sheet_init(&sheet);
    if (fill_sheet(&sheet, job, context->options, &error) != STATUS_OK) {
        sheet_release(&sheet);
        return command_fail(context, &error);
    }
    if (tokens != NULL) {
        sheet_set(&sheet, "largest_token", json_integer(tokens->largest));
        if (tokens->masked) {
            sheet_set(&sheet, "mask_share", json_real(tokens->counted));
        }
        sheet_set(&sheet, "first_row", json_string(buffer_text(&tokens->first)));
        print_tokens(&sheet, tokens);
    }
    if (base != NULL) {
        print_beside(&sheet, base);
    }
    graph_check_show(&sheet, checked);
    print_receipt(&sheet, job, context->options);
    sheet_set(&sheet, "path", json_string(path));
    sheet_print(&sheet, "written to   %s\n", path);
    return command_show(context, &sheet);
}

int job_new_run(struct command_context *context)
{
    struct job_tokens tokens = {0};
    struct graph_checked checked = {0};
    bool looked = false;
    const char *path = options_text(context->options, "out");
    struct job *job = NULL;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    TRY_OUT(make_job(&job, &checked, context->options, &error));
    TRY_OUT(look_at_tokens(&tokens, &looked, job, context->options, &error));
    TRY_OUT(job_write(job, path, &error));
out:
    code = status == STATUS_OK ? emit_job(context, job, path, looked ? &tokens : NULL,
                                          options_text(context->options, "base"), &checked)
                               : command_fail(context, &error);
    job_tokens_release(&tokens);
    job_free(job);
    return code;
}

/* ---- job show ----------------------------------------------------------- */

const struct option_spec job_new_show_options[JOB_NEW_SHOW_OPTIONS] = {
    {.name = "program",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "print the whole program, one operation a line",
     .command_line_only = true},
    {.name = "modules",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "show each module of the program with its tensors, and not a few joined ones",
     .command_line_only = true},
    {.name = "save-tape",
     .heading = "result",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write the program's canonical bytes, for 'job new --tape'",
     .command_line_only = true},
    {.name = "save-constants",
     .heading = "result",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write the constants (.safetensors), for 'job new --constants'",
     .command_line_only = true},
    {.name = "ranks",
     .heading = "machine",
     .kind = OPTION_TEXT,
     .value = "N",
     .help = "say what N ranks that train it together would send ('prover run --ranks')",
     .command_line_only = true},
    CHAIN_LEDGER_OPTIONS,
};

/* *ranks 0: nobody asks. */
static enum status find_wire(uint32_t *ranks, struct rank_wire *wire, const struct job *job,
                             const struct options *options, struct error *error)
{
    const char *text = options_text(options, "ranks");
    uint64_t number = 0;

    *ranks = 0;
    if (text == NULL) {
        return STATUS_OK;
    }
    if (!text_is_number(&number, text, 9999) || number == 0) {
        return error_set(error, STATUS_USAGE, "--ranks %.40s is no number of ranks", text);
    }
    *ranks = (uint32_t)number;
    return rank_step_wire(wire, job->tape, *ranks, error);
}

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

/* ranks 0: nobody asks how many would share it. */
static int show_job(struct command_context *context, const struct job *job, uint32_t ranks,
                    const struct rank_wire *wire)
{
    struct sheet sheet;
    struct error error;

    error_init(&error);
    sheet_init(&sheet);
    if (fill_sheet(&sheet, job, NULL, &error) != STATUS_OK) {
        sheet_release(&sheet);
        return command_fail(context, &error);
    }
    graph_check_show_noted(&sheet, job);
    if (job_modules_show(&sheet, job, options_flag(context->options, "modules"), &error) !=
        STATUS_OK) {
        sheet_release(&sheet);
        return command_fail(context, &error);
    }
    if (ranks > 0) {
        job_ranks_show(&sheet, wire, ranks);
    }
    return command_show(context, &sheet);
}

int job_new_show(struct command_context *context)
{
    struct rank_wire wire;
    uint32_t ranks = 0;
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
    TRY_OUT(find_wire(&ranks, &wire, job, context->options, &error));
    if (options_flag(context->options, "program")) {
        TRY_OUT(tape_text(&text, job->tape, &error));
    }
out:
    if (status != STATUS_OK) {
        code = command_fail(context, &error);
    } else if (text != NULL) {
        code = command_say(context, json_pack("{s:s}", "tape", text), "%s", text);
    } else {
        code = show_job(context, job, ranks, &wire);
    }
    free(text);
    job_free(job);
    return code;
}
