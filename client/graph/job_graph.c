/* job_graph.c - see job_graph.h. */
#include "client/graph/job_graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "engine/models/graph/graph.h"
#include "proofs/format/dataset.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_notes.h"
#include "proofs/run/calibrate.h"
#include "proofs/run/run.h"

#define EVAL_BATCHES 16 /* where nobody says how many */

static bool has_rows_of(const struct dataset *rows, const struct graph_input *input)
{
    return rows->rank + 1 == input->rank &&
           memcmp(rows->dims, input->dims + 1, rows->rank * sizeof(rows->dims[0])) == 0 &&
           (rows->dtype == DTYPE_F32) == (input->dtype == DTYPE_F32);
}

static enum status refuse_rows(const char *path, const struct graph_input *input,
                               struct error *error)
{
    char shape[96];
    size_t size = 0;

    shape[0] = '\0';
    for (uint32_t axis = 1; axis < input->rank; axis++) {
        size +=
            (size_t)snprintf(shape + size, sizeof(shape) - size, ", %" PRIu64, input->dims[axis]);
    }
    (void)error_set(error, STATUS_USAGE, "%s is no data of the input '%s': that has rows of %s",
                    path, input->name, input->dtype == DTYPE_F32 ? "floats" : "integers");
    error_advise(error,
                 "an array of shape (rows%s), written by lockstep_torch.save_rows(); name "
                 "the files with --data in the order of the batch",
                 shape);
    return STATUS_USAGE;
}

/* The files of an option in the order of the inputs: each as NAME=FILE, or all in that order. */
static enum status order_files(const char **files, const struct graph *graph,
                               const struct options *options, const char *option,
                               struct error *error)
{
    size_t named = 0;

    if (options_list_count(options, option) != graph->input_count) {
        return error_set(error, STATUS_USAGE,
                         "the graph reads %u files of rows, and --%s names %zu", graph->input_count,
                         option, options_list_count(options, option));
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        files[i] = NULL;
    }
    for (uint32_t at = 0; at < graph->input_count; at++) {
        const char *item = options_list_item(options, option, at);

        for (uint32_t i = 0; i < graph->input_count; i++) {
            const size_t length = strlen(graph->inputs[i].name);

            if (strncmp(item, graph->inputs[i].name, length) == 0 && item[length] == '=') {
                named += files[i] == NULL;
                files[i] = item + length + 1;
            }
        }
    }
    if (named != 0 && named != graph->input_count) {
        return error_set(error, STATUS_USAGE,
                         "--%s: name each input once, as NAME=FILE, or none of them", option);
    }
    for (uint32_t i = 0; named == 0 && i < graph->input_count; i++) {
        files[i] = options_list_item(options, option, i);
    }
    return STATUS_OK;
}

/* Looks at the file of each input: all have as many rows. held_out: of the type of the others. */
static enum status measure_rows(uint64_t *count, struct graph *graph, const char *const *files,
                                bool held_out, struct error *error)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        struct graph_input *input = &graph->inputs[i];
        struct dataset rows;

        TRY(dataset_open_rows(&rows, error, files[i]));
        if (!has_rows_of(&rows, input)) {
            dataset_close(&rows);
            return refuse_rows(files[i], input, error);
        }
        if (held_out && rows.dtype != input->file_dtype) {
            const enum dtype dtype = rows.dtype;

            dataset_close(&rows);
            return error_set(error, STATUS_USAGE, "%s is of %s, and the data of '%s' of %s",
                             files[i], dtype_name(dtype), input->name,
                             dtype_name(input->file_dtype));
        }
        input->file_dtype = rows.dtype;
        *count = i == 0 ? rows.rows : *count;
        if (rows.rows != *count) {
            (void)error_set(error, STATUS_USAGE,
                            "%s has %" PRIu64 " rows, and the file before it has %" PRIu64,
                            files[i], rows.rows, *count);
            dataset_close(&rows);
            return STATUS_USAGE;
        }
        dataset_close(&rows);
    }
    return STATUS_OK;
}

/* Batches of held-out data are read as they lie, each once, and none is short. */
static enum status measure_held_out(struct model_options *model, struct graph *graph,
                                    const char *const *files, const struct options *options,
                                    struct error *error)
{
    struct held_out_options *held_out = &model->held_out;
    const uint64_t batch = graph->inputs[0].dims[0];
    uint64_t fit;

    if (!graph->evaluates) {
        (void)error_set(error, STATUS_USAGE, "the graph does not say what held-out data cost");
        error_advise(error, "lockstep_torch.export() writes it, but for evaluate=False");
        return STATUS_USAGE;
    }
    TRY(measure_rows(&held_out->count, graph, files, true, error));
    fit = held_out->count / batch;
    held_out->every = options_given(options, "eval-every")
                          ? (uint32_t)options_number(options, "eval-every")
                          : (model->steps + 9) / 10;
    held_out->batches = fit < EVAL_BATCHES ? (uint32_t)fit : EVAL_BATCHES;
    if (options_given(options, "eval-batches")) {
        held_out->batches = (uint32_t)options_number(options, "eval-batches");
    }
    if (held_out->batches > fit || fit == 0) {
        return error_set(error, STATUS_USAGE,
                         "--eval: %" PRIu64 " rows are no %u whole batch%s of %" PRIu64,
                         held_out->count, held_out->batches == 0 ? 1 : held_out->batches,
                         held_out->batches > 1 ? "es" : "", batch);
    }
    return STATUS_OK;
}

/* Without a loss each step makes states of states: nothing is trained. */
static enum status check_steps(const struct graph *graph, const struct options *options,
                               struct error *error)
{
    static const char *const names[] = {
        "optimizer",  "schedule",         "rate",   "rate-min",      "rate-of",
        "warmup",     "warmup-share",     "cycles", "power",         "cooldown",
        "decay",      "decay-of",         "freeze", "beta1",         "beta2",
        "epsilon",    "momentum",         "clip",   "gradient-norm", "equilibrate",
        "accumulate", "accumulate-group", "eval",   "eval-every",    "eval-batches"};

    for (size_t i = 0; !graph->trains && i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_flagged(options, names[i])) {
            return error_set(
                error, STATUS_USAGE,
                "--%s says nothing about a graph without a loss: its steps make states "
                "of states",
                names[i]);
        }
    }
    return STATUS_OK;
}

/* The files of a job: of its rows, of what is frozen, of its held-out rows. */
struct graph_files {
    const char *of[2 * GRAPH_INPUTS_MAX + 1];
    size_t count;
};

static enum status find_files(struct graph_files *files, struct model_options *model,
                              struct graph *graph, const struct options *options,
                              struct error *error)
{
    TRY(order_files(files->of, graph, options, "data", error));
    TRY(measure_rows(&model->data_count, graph, files->of, false, error));
    files->count = graph->input_count;
    if (graph->frozen) {
        files->of[files->count++] = options_text(options, "first-state");
    }
    if (options_list_count(options, "eval") == 0) {
        return STATUS_OK;
    }
    TRY(order_files(files->of + files->count, graph, options, "eval", error));
    TRY(measure_held_out(model, graph, files->of + files->count, options, error));
    files->count += graph->input_count;
    return STATUS_OK;
}

static enum status find_weights(struct job_terms *terms, const struct tape *tape,
                                const struct options *options, struct error *error)
{
    struct first_state first = {0};
    enum status status;

    terms->first_state_given = true;
    TRY_OUT(first_state_open(&first, tape, options_text(options, "first-state"), error));
    TRY_OUT(first_state_root(&terms->first_state_root, &first, error));
out:
    first_state_close(&first);
    return status;
}

/* Modules that are too many for the notes are left out. */
static enum status write_notes(struct buffer *notes, const struct graph_checked *checked,
                               const struct model *model, struct error *error)
{
    graph_check_note(notes, checked);
    if (model->modules != NULL && notes->size + strlen(model->modules) <= JOB_NOTES_MAX) {
        buffer_add_text(notes, model->modules);
    }
    return buffer_check(notes, error, "the notes of the job");
}

static enum status make_of_text(struct job **job, struct graph_checked *checked,
                                struct job_terms *terms, struct model_options *options_of_model,
                                struct graph *graph, const struct options *options,
                                struct error *error)
{
    struct graph_files files = {.count = 0};
    struct calibration calibration = {0};
    struct model model = {0};
    struct digest *roots = NULL;
    struct buffer notes;
    enum status status;

    TRY(check_steps(graph, options, error));
    if (!graph->trains) {
        options_of_model->accumulate = 1;
    }
    TRY(graph_freeze(graph, &options_of_model->recipe.frozen, error));
    TRY(find_files(&files, options_of_model, graph, options, error));
    options_of_model->graph = graph;
    buffer_init(&notes, 2 * JOB_NOTES_MAX);
    TRY_OUT(model_build(&model, options_of_model, error));
    TRY_OUT(run_file_roots(terms, &roots, model.tape, files.of, files.count, error));
    TRY_OUT(find_weights(terms, model.tape, options, error));
    if (options_given(options, "calibrate") &&
        strcmp(options_text(options, "calibrate"), "step") == 0) {
        TRY_OUT(calibrate_model(&calibration, options_of_model, terms, files.of, files.count,
                                options_text(options, "first-state"), error));
        model_release(&model);
        options_of_model->calibration = &calibration;
        TRY_OUT(model_build(&model, options_of_model, error));
    }
    TRY_OUT(
        graph_check(checked, graph, options_of_model, options_text(options, "first-state"), error));
    TRY_OUT(write_notes(&notes, checked, &model, error));
    terms->notes = buffer_text(&notes);
    TRY_OUT(job_from_model(job, &model, terms, error));
out:
    terms->notes = NULL;
    buffer_release(&notes);
    free(roots);
    model_release(&model);
    options_of_model->calibration = NULL;
    calibration_release(&calibration);
    return status;
}

enum status job_graph_make(struct job **job, struct graph_checked *checked, struct job_terms *terms,
                           struct model_options *model, const struct options *options,
                           struct error *error)
{
    const char *path = options_text(options, "graph");
    struct file_bytes bytes = {0};
    struct graph graph;
    enum status status;

    if (options_text(options, "first-state") == NULL) {
        (void)error_set(error, STATUS_USAGE, "--graph needs --first-state: the weights");
        error_advise(error, "lockstep_torch.export() writes them beside the graph");
        return STATUS_USAGE;
    }
    TRY_OUT(file_read(&bytes, error, path, GRAPH_TEXT_MAX));
    status = graph_read(&graph, (const char *)bytes.data, bytes.size, error);
    if (status != STATUS_OK) {
        status = error_wrap(error, "%s", path);
        goto out;
    }
    TRY_OUT(make_of_text(job, checked, terms, model, &graph, options, error));
out:
    file_bytes_release(&bytes);
    return status;
}
