/* job_graph.c - see job_graph.h. */
#include "client/graph/job_graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "engine/models/graph.h"
#include "proofs/format/dataset.h"
#include "proofs/job/first_state.h"
#include "proofs/run/run.h"

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

/* Looks at the file of each input: all have as many rows. */
static enum status measure_rows(struct model_options *model, struct graph *graph,
                                const struct options *options, struct error *error)
{
    if (options_list_count(options, "data") != graph->input_count) {
        return error_set(error, STATUS_USAGE,
                         "the graph reads %u files of rows, and --data names %zu",
                         graph->input_count, options_list_count(options, "data"));
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const char *path = options_list_item(options, "data", i);
        struct graph_input *input = &graph->inputs[i];
        struct dataset rows;

        TRY(dataset_open_rows(&rows, error, path));
        if (!has_rows_of(&rows, input)) {
            dataset_close(&rows);
            return refuse_rows(path, input, error);
        }
        input->file_dtype = rows.dtype;
        model->data_count = i == 0 ? rows.rows : model->data_count;
        if (rows.rows != model->data_count) {
            (void)error_set(error, STATUS_USAGE,
                            "%s has %" PRIu64 " rows, and the file before it has %" PRIu64, path,
                            rows.rows, model->data_count);
            dataset_close(&rows);
            return STATUS_USAGE;
        }
        dataset_close(&rows);
    }
    return STATUS_OK;
}

/* Without a loss each step makes states of states: nothing is trained. */
static enum status check_steps(const struct graph *graph, const struct options *options,
                               struct error *error)
{
    static const char *const names[] = {"optimizer", "schedule",     "rate",   "rate-min", "warmup",
                                        "decay",     "beta1",        "beta2",  "epsilon",  "clip",
                                        "accumulate", "accumulate-group"};

    for (size_t i = 0; !graph->trains && i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_flagged(options, names[i])) {
            return error_set(error, STATUS_USAGE,
                             "--%s says nothing about a graph without a loss: its steps make states "
                             "of states",
                             names[i]);
        }
    }
    return STATUS_OK;
}

/* The roots of the rows and of what is frozen. */
static enum status find_data(struct job_terms *terms, struct digest **roots,
                             const struct tape *tape, const struct graph *graph,
                             const struct options *options, struct error *error)
{
    const char *files[OPTION_LIST_MAX + 1];
    size_t count = options_list(files, options, "data");

    if (graph->frozen) {
        files[count++] = options_text(options, "first-state");
    }
    return run_file_roots(terms, roots, tape, files, count, error);
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

static enum status make_of_text(struct job **job, struct graph_checked *checked,
                                struct job_terms *terms, struct model_options *options_of_model,
                                struct graph *graph, const struct options *options,
                                struct error *error)
{
    struct model model = {0};
    struct digest *roots = NULL;
    enum status status;

    TRY(check_steps(graph, options, error));
    if (!graph->trains) {
        options_of_model->accumulate = 1;
    }
    TRY(measure_rows(options_of_model, graph, options, error));
    options_of_model->graph = graph;
    TRY_OUT(model_build(&model, options_of_model, error));
    TRY_OUT(find_data(terms, &roots, model.tape, graph, options, error));
    TRY_OUT(find_weights(terms, model.tape, options, error));
    TRY_OUT(graph_check(checked, graph, options_of_model, options_text(options, "first-state"),
                        error));
    TRY_OUT(job_from_model(job, &model, terms, error));
out:
    free(roots);
    model_release(&model);
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
