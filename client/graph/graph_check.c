/* graph_check.c - see graph_check.h. */
#include "client/graph/graph_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/graph/graph_expected.h"
#include "engine/ops/real.h"
#include "proofs/job/job_notes.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"

/* What a step may be off, by the bits of its products. A gradient's share is of its norm, and of a
 * hundredth of the whole gradient where it is smaller: where ReLU or a pool is about to change
 * over, single elements go the other way. It is the same where PyTorch computed in binary32: that
 * is off by a small part of it. */
#define LEAST_GRADIENT 0.01
#define LEAST_LOSS     1e-3 /* of a loss near zero */

#define MOST_GRADIENT 0.5 /* a graph that asks for more is not believed */

/* With fewer bits a gradient may be off by half of what bfloat16 is on the same batch, where that
 * is more than a tenth: with ReLU and pools many elements go the other way. */
static struct graph_apart tolerance_of(uint32_t bits, double bfloat16)
{
    return bits >= 22
               ? (struct graph_apart){1e-4, 1e-2, 1e-4}
               : (struct graph_apart){2e-2, fmin(fmax(0.1, bfloat16 / 2), MOST_GRADIENT), 2e-2};
}

struct check {
    struct graph_expected expected;
    struct graph_measure *found; /* of each tensor of it */
    struct graph graph;
    struct model model;
    struct job *job;
    struct run run;
    struct first_state first;
    struct data_paths paths;
};

/* ---- the step --------------------------------------------------------------- */

/* A step of SGD from rest leaves each gradient in its moment. */
static enum status build_example(struct check *check, const struct graph *graph,
                                 const struct model_options *given, struct error *error)
{
    struct model_options options = *given;

    check->graph = *graph;
    check->graph.example = true;
    check->graph.freeze = NULL; /* all gradients are looked at */
    for (uint32_t i = 0; i < graph->input_count; i++) {
        check->graph.inputs[i].file_dtype = graph->inputs[i].dtype;
    }
    options.graph = &check->graph;
    options.data_count = graph->input_count == 0 ? 1 : graph->inputs[0].dims[0];
    options.held_out.batches = 0;
    options.optimizer = OPTIMIZER_SGD;
    options.schedule = SCHEDULE_CONSTANT;
    options.steps = 1;
    options.warmup = 0;
    options.accumulate = 1;
    options.group = 0;
    options.momentum = 0.0;
    options.decay = 0.0;
    options.clip = 0.0;
    options.seed = GRAPH_EXAMPLE_SEED;
    return model_build(&check->model, &options, error);
}

/* Nobody is bound by the job of an example, so its roots say nothing. */
static enum status make_job(struct check *check, struct error *error)
{
    const struct tape *tape = check->model.tape;
    struct job_terms terms = {.steps = 1, .segment_length = 1, .first_state_given = true};
    struct digest *roots;
    enum status status;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        terms.data_count += tape->tensors[id].role == ROLE_DATA;
    }
    roots = calloc((size_t)terms.data_count + 1, sizeof(*roots));
    if (roots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the example of a graph");
    }
    terms.data_roots = roots;
    status = job_from_model(&check->job, &check->model, &terms, error);
    free(roots);
    return status;
}

static enum status run_example(struct check *check, const char *weights, struct error *error)
{
    const struct tape *tape = check->job->tape;
    struct machine_options options;

    TRY(machine_options_default(&options, error));
    TRY(run_check_memory(tape, &options, "the step that checks the graph",
                         "make the job on a larger machine, or export with check=False", error));
    TRY(data_paths_of_files(&check->paths, tape, &weights, check->job->data_count > 0, error));
    TRY(first_state_open(&check->first, tape, weights, error));
    TRY(run_open_compared(&check->run, check->job, (const char *const *)check->paths.of,
                          check->paths.count, NULL, &options, error));
    TRY(run_first_state(&check->run, &check->first, error));
    return check->run.machine->backend->step(check->run.machine, NULL, error);
}

/* ---- what it made ------------------------------------------------------------- */

static uint32_t find_state(const struct tape *tape, const char *name)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (strcmp(tape->tensors[tape->states[i].before].name, name) == 0) {
            return tape->states[i].before;
        }
    }
    return TENSOR_NONE;
}

static enum status measure_tensor(struct graph_measure *measure, struct check *check,
                                  const struct graph_expected_tensor *wanted, struct error *error)
{
    struct machine *machine = check->run.machine;
    char name[TENSOR_NAME_MAX + 1];
    const struct tensor *tensor;
    uint32_t id;
    void *bytes;
    enum status status;

    (void)snprintf(name, sizeof(name), "%s%s", wanted->state ? "" : "v.", wanted->name);
    id = find_state(check->job->tape, name);
    if (id == TENSOR_NONE) {
        return error_set(error, STATUS_NOT_FOUND, "the example has no '%s'", name);
    }
    tensor = &check->job->tape->tensors[id];
    bytes = malloc(tensor->count * sizeof(uint32_t));
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", name);
    }
    status = machine->backend->read(machine, id, bytes, error);
    for (uint64_t i = 0; status == STATUS_OK && i < tensor->count; i++) {
        graph_measure_add(measure, i,
                          tensor->dtype == DTYPE_U32 ? (double)((const uint32_t *)bytes)[i]
                                                     : (double)((const float *)bytes)[i]);
    }
    free(bytes);
    return status;
}

/* About the norm of the difference. */
static double distance_of(const struct graph_measure *a, const struct graph_measure *b)
{
    const double norms = fabs(sqrt(a->square) - sqrt(b->square));
    double square = 0.0;

    for (uint32_t i = 0; i < GRAPH_SUMS; i++) {
        square += (a->sums[i] - b->sums[i]) * (a->sums[i] - b->sums[i]);
    }
    return fmax(norms, sqrt(square / GRAPH_SUMS));
}

static enum status refuse_tensor(const struct graph_expected_tensor *wanted, double apart,
                                 struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "the first step is not PyTorch's: the %s '%s'%s%s is %.2g off",
                    wanted->state ? "next value of" : "gradient of", wanted->name,
                    wanted->place[0] == '\0' ? "" : ", first read at ", wanted->place, apart);
    error_advise(error, "export the program once more, or take more --bits; a program that is "
                        "exported wrongly is a fault to report");
    return STATUS_REFUSED;
}

static enum status compare_tensors(struct graph_checked *checked, const struct check *check,
                                   struct error *error)
{
    const struct graph_expected *expected = &check->expected;
    double whole = 0.0;

    for (uint32_t i = 0; i < expected->count; i++) {
        whole += expected->tensors[i].state ? 0.0 : expected->tensors[i].measure.square;
    }
    for (uint32_t i = 0; i < expected->count; i++) {
        const struct graph_expected_tensor *wanted = &expected->tensors[i];
        const double norm = sqrt(wanted->measure.square);
        const double least = wanted->state ? 1e-6 : LEAST_GRADIENT * sqrt(whole);
        const double off = distance_of(&wanted->measure, &check->found[i]);
        const double apart = off == 0.0 ? 0.0 : off / fmax(norm, least);
        double *most = wanted->state ? &checked->found.states : &checked->found.gradients;

        if (!(apart <= (wanted->state ? checked->allowed.states : checked->allowed.gradients))) {
            return refuse_tensor(wanted, apart, error);
        }
        *most = fmax(*most, apart);
    }
    return STATUS_OK;
}

static enum status compare_loss(struct graph_checked *checked, struct check *check,
                                struct error *error)
{
    const double wanted = check->expected.loss;
    uint32_t bits;
    double found;

    TRY(run_loss(&bits, &check->run, error));
    found = (double)real_from_bits(bits);
    checked->found.loss = fabs(found - wanted) / fmax(fabs(wanted), LEAST_LOSS);
    if (checked->found.loss <= checked->allowed.loss) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "the first step is not PyTorch's: its loss is %.9g and not %.9g", found,
                    wanted);
    error_advise(error, "export the program once more, or take more --bits; a program that is "
                        "exported wrongly is a fault to report");
    return STATUS_REFUSED;
}

static enum status compare_figures(struct graph_checked *checked, struct check *check,
                                   struct error *error)
{
    check->found = calloc((size_t)check->expected.count + 1, sizeof(*check->found));
    if (check->found == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the example of a graph");
    }
    for (uint32_t i = 0; i < check->expected.count; i++) {
        TRY(measure_tensor(&check->found[i], check, &check->expected.tensors[i], error));
    }
    if (checked->has_loss) {
        TRY(compare_loss(checked, check, error));
    }
    return compare_tensors(checked, check, error);
}

enum status graph_check(struct graph_checked *checked, const struct graph *graph,
                        const struct model_options *options, const char *weights,
                        struct error *error)
{
    struct check check = {.run = {0}};
    enum status status;

    *checked = (struct graph_checked){.looked = true, .has_loss = graph->trains};
    TRY(graph_expected_read(&check.expected, graph, error));
    checked->allowed = tolerance_of(options->precision.bits, check.expected.bfloat16);
    if (!check.expected.given) {
        graph_expected_release(&check.expected);
        return STATUS_OK;
    }
    checked->made = true;
    checked->single = check.expected.single;
    TRY_OUT(build_example(&check, graph, options, error));
    TRY_OUT(make_job(&check, error));
    TRY_OUT(run_example(&check, weights, error));
    TRY_OUT(compare_figures(checked, &check, error));
out:
    run_close(&check.run);
    first_state_close(&check.first);
    data_paths_close(&check.paths);
    job_free(check.job);
    model_release(&check.model);
    free(check.found);
    graph_expected_release(&check.expected);
    return status;
}

/* ---- what is said of it --------------------------------------------------------- */

static json_t *apart_json(const struct graph_apart *apart, bool has_loss)
{
    return json_pack("{s:o, s:o, s:f}", "loss", has_loss ? json_real(apart->loss) : json_null(),
                     "gradients", has_loss ? json_real(apart->gradients) : json_null(), "states",
                     apart->states);
}

/* Takes what was found and what may be, which is NULL where they are one. */
static void show_precision(struct sheet *sheet, json_t *said, json_t *allowed, bool single)
{
    (void)json_object_set_new(said, "reference", json_string(single ? "float32" : "float64"));
    if (allowed != NULL) {
        (void)json_object_set_new(said, "allowed", allowed);
    }
    sheet_set(sheet, "first_step", said);
    if (single) {
        sheet_print(sheet, "             PyTorch computed it in float32, not in float64: the "
                           "program does not run in that\n");
    }
}

void graph_check_show(struct sheet *sheet, const struct graph_checked *checked)
{
    const struct graph_apart *found = &checked->found;
    const struct graph_apart *allowed = &checked->allowed;

    if (!checked->looked) {
        return;
    }
    if (!checked->made) {
        sheet_set(sheet, "first_step", json_null());
        sheet_print(sheet, "first step   not checked: the graph does not say what PyTorch found\n");
        return;
    }
    sheet_print(sheet, "first step   as PyTorch's:");
    if (checked->has_loss) {
        sheet_print(sheet, " the loss within %.1g of %g, gradients within %.1g of %g", found->loss,
                    allowed->loss, found->gradients, allowed->gradients);
    }
    if (found->states > 0.0 || !checked->has_loss) {
        sheet_print(sheet, "%s states within %.1g of %g", checked->has_loss ? "," : "",
                    found->states, allowed->states);
    }
    sheet_print(sheet, " that may be\n");
    show_precision(sheet, apart_json(found, checked->has_loss),
                   apart_json(allowed, checked->has_loss), checked->single);
}

void graph_check_note(struct buffer *notes, const struct graph_checked *checked)
{
    const struct graph_apart *allowed = &checked->allowed;

    if (checked->made) {
        buffer_add_format(notes, "first-step %s %g %g %g\n", checked->single ? "f32" : "f64",
                          allowed->loss, allowed->gradients, allowed->states);
    }
}

void graph_check_show_noted(struct sheet *sheet, const struct job *job)
{
    const char *notes = job->notes;
    struct job_note note;

    if (!job_notes_next(&note, &notes) || note.kind != JOB_NOTE_FIRST_STEP) {
        return;
    }
    const struct graph_apart allowed = {note.loss, note.gradients, note.states};
    const bool has_loss = job->tape->loss != TENSOR_NONE;

    sheet_print(sheet, "first step   held to PyTorch's by the maker of the job:");
    if (has_loss) {
        sheet_print(sheet, " the loss may be %g off, gradients %g,", note.loss, note.gradients);
    }
    sheet_print(sheet, " states %g\n", note.states);
    show_precision(sheet, json_pack("{s:o}", "allowed", apart_json(&allowed, has_loss)), NULL,
                   note.single);
}
