/*
 * graph.c - see graph.h: the declarations, the batch, and what stands behind the calls.
 */
#include "engine/models/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/graph/graph_writer.h"
#include "engine/tape/builder_core.h"

#define GRAPH_ROOM 256 /* values at first */

/* ---- declarations --------------------------------------------------------- */

static enum status take_input(struct graph *graph, const struct graph_declared *declared,
                              const struct graph_line *line, bool first, struct error *error)
{
    struct graph_input *input;

    if (!first) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: inputs stand before what else is "
                         "declared",
                         line->number);
    }
    if (graph->input_count == GRAPH_INPUTS_MAX || strlen(declared->name) > GRAPH_INPUT_NAME_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "line %u: more than %u inputs, or a name of over %d bytes", line->number,
                         GRAPH_INPUTS_MAX, GRAPH_INPUT_NAME_MAX);
    }
    input = &graph->inputs[graph->input_count++];
    (void)snprintf(input->name, sizeof(input->name), "%s", declared->name);
    input->dtype = input->file_dtype = declared->dtype;
    input->rank = declared->rank;
    memcpy(input->dims, declared->dims, sizeof(input->dims));
    if (input->dims[0] != graph->inputs[0].dims[0] || input->dims[0] > UINT32_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: '%s' has %llu rows a batch, and '%s' has %llu", line->number,
                         input->name, (unsigned long long)input->dims[0], graph->inputs[0].name,
                         (unsigned long long)graph->inputs[0].dims[0]);
    }
    return STATUS_OK;
}

enum status graph_read(struct graph *graph, const char *text, size_t size, struct error *error)
{
    struct graph_lines lines;
    struct graph_line line;
    struct graph_declared declared;
    bool inputs = true;   /* so far they stand alone */
    bool declares = true; /* so far */
    bool states = false;
    bool found;

    *graph = (struct graph){.text = text, .size = size};
    TRY(graph_lines_begin(&lines, text, size, error));
    for (;;) {
        TRY(graph_line_next(&line, &found, &lines, error));
        if (!found) {
            break;
        }
        const enum graph_word word = graph_line_word(&line);

        declares = declares && graph_word_declares(word);
        graph->evaluates = graph->evaluates || word == GRAPH_EVAL;
        if (!declares) {
            continue; /* model_build() says what is wrong with a later declaration */
        }
        TRY(graph_declared(&declared, &line, error));
        if (word == GRAPH_INPUT) {
            TRY(take_input(graph, &declared, &line, inputs, error));
        }
        inputs = inputs && word == GRAPH_INPUT;
        states = states || word == GRAPH_STATE;
        graph->frozen = graph->frozen || word == GRAPH_FROZEN;
        graph->trains = graph->trains || word == GRAPH_PARAM;
    }
    return graph->input_count > 0 || states
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "the graph has no input and no state");
}

/* ---- what is frozen ----------------------------------------------------------- */

/* Adds the parameter to the number of each pattern that it fits; does it fit one? */
static bool count_fits(uint32_t *fits, const struct recipe_rules *patterns, const char *name)
{
    bool any = false;

    for (uint32_t i = 0; i < patterns->count; i++) {
        const bool fit = recipe_fits(patterns->rules[i].pattern, name);

        fits[i] += fit;
        any = any || fit;
    }
    return any;
}

enum status graph_freeze(struct graph *graph, const struct recipe_rules *patterns,
                         struct error *error)
{
    uint32_t fits[RECIPE_RULES_MAX] = {0};
    struct graph_declared declared;
    struct graph_lines lines;
    struct graph_line line;
    uint32_t trained = 0;
    bool found = patterns->count > 0;

    TRY(graph_lines_begin(&lines, graph->text, graph->size, error));
    while (found) {
        TRY(graph_line_next(&line, &found, &lines, error));
        if (!found || !graph_word_declares(graph_line_word(&line))) {
            break;
        }
        if (graph_line_word(&line) == GRAPH_PARAM) {
            TRY(graph_declared(&declared, &line, error));
            trained += !count_fits(fits, patterns, declared.name);
        }
    }
    for (uint32_t i = 0; i < patterns->count; i++) {
        if (fits[i] == 0) {
            return error_set(error, STATUS_USAGE, "no parameter has a name like '%s'",
                             patterns->rules[i].pattern);
        }
    }
    if (patterns->count > 0 && trained == 0) {
        return error_set(error, STATUS_USAGE, "all parameters are frozen: nothing is trained");
    }
    graph->freeze = patterns;
    graph->frozen = graph->frozen || patterns->count > 0;
    return STATUS_OK;
}

/* Does a parameter of that name stay as it is? */
static bool is_frozen(const struct graph *graph, const char *name)
{
    uint32_t fits[RECIPE_RULES_MAX] = {0};

    return graph->freeze != NULL && count_fits(fits, graph->freeze, name);
}

/* ---- batches ---------------------------------------------------------------- */

/* The rows of a batch of the input's data, the same rows of each input: as a job draws them of its
 * data, or of other data as they lie. */
static uint32_t draw_input(struct graph_writer *graph, const struct graph_input *input,
                           uint32_t data)
{
    const struct model_options *options = graph->writer->options;
    const struct held_out_pass *pass = graph->writer->pass;
    const bool in_order = pass != NULL || options->graph->example;
    struct output_shape shape = {input->dtype, input->rank, {0}};
    uint32_t inputs[2] = {data, pass != NULL ? pass->counter : build_counter(graph->builder)};
    struct op op = op_begin(OP_BATCH_ROWS, 2, inputs);
    uint64_t width = 1;

    for (uint32_t axis = 1; axis < input->rank; axis++) {
        width *= input->dims[axis];
    }
    memcpy(shape.dims, input->dims, sizeof(shape.dims));
    op_attribute(&op, input->dims[0]);
    op_attribute(&op, width);
    op_attribute(&op, 0);
    op_attribute(&op, options->seed & UINT32_MAX);
    op_attribute(&op, options->seed >> 32);
    op_attribute(&op, 1);
    op_attribute(&op, 0);
    op_attribute(&op, 0);
    op_attribute(&op, in_order ? 0 : 1);
    op.output_count = 1;
    build_op(graph->builder, &op, &shape);
    return op.outputs[0];
}

/* The data of an input. Those of held-out data are made by the first pass, one after the other. */
static uint32_t write_input(struct graph_writer *graph, uint32_t at)
{
    const struct model_options *options = graph->writer->options;
    const struct graph_input *input = &options->graph->inputs[at];
    const bool pass = graph->writer->pass != NULL;
    struct model *model = graph->writer->model;
    uint32_t *first = pass ? &model->held_out : &model->data;
    char name[TENSOR_NAME_MAX + 1];
    uint64_t dims[TENSOR_RANK_MAX];
    uint32_t data;

    if (pass && *first != TENSOR_NONE && *first + at < graph->builder->tape.tensor_count &&
        builder_tensor(graph->builder, *first + at)->role == ROLE_DATA) {
        return *first + at;
    }
    (void)snprintf(name, sizeof(name), "%s%s",
                   pass                      ? GRAPH_HELD_OUT
                   : options->graph->example ? GRAPH_EXAMPLE
                                             : "",
                   input->name);
    memcpy(dims, input->dims, sizeof(dims));
    dims[0] = options->data_count;
    data = build_tensor(graph->builder, name, input->file_dtype, ROLE_DATA, input->rank, dims);
    if (at == 0) {
        *first = data;
    }
    return data;
}

/* Draws the batch behind the last declaration: all that follows is done for each micro-batch. */
static void begin_batch(struct graph_writer *graph)
{
    const struct model_options *options = graph->writer->options;

    if (graph->writer->pass == NULL) {
        build_repeat(graph->builder, options->accumulate,
                     options->group == 0 ? options->accumulate : options->group);
        (void)build_step(graph->builder);
        graph->writer->stream = 1;
    }
    for (uint32_t i = 0; i < options->graph->input_count; i++) {
        graph->ids[i] = draw_input(graph, &options->graph->inputs[i], graph->ids[i]);
    }
}

/* ---- names -------------------------------------------------------------------- */

/* Moments and sums are told by the letter before the name of what they belong to. */
static bool is_beside(const char *name, const char *other)
{
    return strchr("mvg", name[0]) != NULL && name[1] == '.' && strcmp(name + 2, other) == 0;
}

/* What a job calls tensors of its own. */
static bool is_taken(const char *name)
{
    static const char *const taken[] = {"step",         "micro",       "schedule",       "loss",
                                        "losses",       "answers",     "loss_sum",       "marked",
                                        "held_out.due", HELD_OUT_LOSS, HELD_OUT_ACCURACY};

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(name, taken[i]) == 0) {
            return true;
        }
    }
    return strncmp(name, GRAPH_EXAMPLE, strlen(GRAPH_EXAMPLE)) == 0 ||
           strncmp(name, GRAPH_HELD_OUT, strlen(GRAPH_HELD_OUT)) == 0;
}

static enum status check_name(const struct graph_writer *graph, const struct graph_line *line,
                              const char *name, struct error *error)
{
    if (graph->count == GRAPH_NAMES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "line %u: more than %u names", line->number,
                         GRAPH_NAMES_MAX);
    }
    if (is_taken(name)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: '%s' is a name of the job's own; give it another", line->number,
                         name);
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        const char *other = builder_tensor(graph->builder, graph->ids[i])->name;

        if (strcmp(other, name) == 0) {
            return error_set(error, STATUS_BAD_FORMAT, "line %u: '%s' is declared twice",
                             line->number, name);
        }
        if (is_beside(name, other) || is_beside(other, name)) {
            return error_set(
                error, STATUS_BAD_FORMAT,
                "line %u: '%s' and '%s': with m., v. or g. before its name a job calls "
                "what it keeps of a tensor; give one another name",
                line->number, name, other);
        }
    }
    return STATUS_OK;
}

/* ---- lines ---------------------------------------------------------------------- */

/* A state of the program's own, or, of a pass, its next value. */
static uint32_t write_state(struct graph_writer *graph, const struct graph_declared *declared)
{
    const struct tape *tape = &graph->builder->tape;
    uint32_t id = 0;

    graph->states++;
    if (graph->writer->pass == NULL) {
        id = build_tensor(graph->builder, declared->name, declared->dtype, ROLE_STATE,
                          declared->rank, declared->dims);
        build_init(graph->builder, id, (struct init){.kind = INIT_NONE});
        return id;
    }
    while (id < tape->tensor_count && (tape->tensors[id].role != ROLE_STATE ||
                                       strcmp(tape->tensors[id].name, declared->name) != 0)) {
        id++;
    }
    return builder_after(graph->builder, id);
}

static enum status write_declared(struct graph_writer *graph, uint32_t *id,
                                  const struct graph_line *line, struct error *error)
{
    struct graph_declared declared;

    TRY(graph_declared(&declared, line, error));
    if (graph->writer->pass == NULL) {
        TRY(check_name(graph, line, declared.name, error));
    }
    const enum graph_word word = graph_line_word(line);

    if (word == GRAPH_INPUT) {
        *id = write_input(graph, graph->count);
    } else if (word == GRAPH_PARAM && !is_frozen(graph->writer->options->graph, declared.name)) {
        *id = write_shaped_parameter(graph->writer, declared.name, declared.rank, declared.dims,
                                     (struct init){.kind = INIT_NONE});
    } else if (word != GRAPH_STATE) {
        *id = write_shaped_frozen(graph->writer, declared.name, declared.dtype, declared.rank,
                                  declared.dims);
    } else {
        *id = write_state(graph, &declared);
    }
    return STATUS_OK;
}

static enum status add_value(struct graph_writer *graph, uint32_t id, struct error *error)
{
    if (graph->count == graph->room) {
        const size_t room = 2 * (size_t)graph->room + GRAPH_ROOM;
        void *larger = realloc(graph->ids, room * sizeof(*graph->ids));

        if (larger == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a graph");
        }
        graph->ids = larger;
        graph->room = (uint32_t)room;
    }
    graph->ids[graph->count++] = id;
    return STATUS_OK;
}

/* What the builder refused, with the line and its place. */
static enum status say_line(struct graph_writer *graph, const struct graph_line *line,
                            struct error *error)
{
    if (!builder_failed(graph->builder)) {
        return STATUS_OK;
    }
    *error = graph->builder->error;
    return error_wrap(error, "line %u%s%s", line->number, graph->place[0] == '\0' ? "" : ", ",
                      graph->place);
}

/* A line that makes a value. */
static enum status write_value(struct graph_writer *graph, const struct graph_line *line,
                               struct error *error)
{
    uint32_t id = 0;

    if (!line->made || line->value != graph->count) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: it should make %%%u", line->number,
                         graph->count);
    }
    if (graph_word_declares(graph_line_word(line))) {
        TRY(write_declared(graph, &id, line, error));
    } else {
        TRY(graph_call(&id, graph, line, error));
    }
    TRY(say_line(graph, line, error));
    return add_value(graph, id, error);
}

/* after %STATE %VALUE: the value is a call's, and no other state's. */
static enum status write_after(struct graph_writer *graph, const struct graph_line *line,
                               struct error *error)
{
    const struct tensor *state;
    const struct tensor *next;
    uint32_t values[2];

    if (line->made || line->count != 3 || line->rank != 0 || graph->writer->pass != NULL) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: 'after' takes a state and a value, and stands before the loss",
                         line->number);
    }
    for (uint32_t i = 0; i < 2; i++) {
        TRY(graph_operand(&values[i], line, 1 + i, graph->count, error));
        values[i] = graph->ids[values[i]];
    }
    state = builder_tensor(graph->builder, values[0]);
    next = builder_tensor(graph->builder, values[1]);
    if (state->role != ROLE_STATE || builder_after(graph->builder, values[0]) != values[0]) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: '%s' is no state, or has its next value already", line->number,
                         state->name);
    }
    if (!role_is_made(next->role) || next->dtype != state->dtype || next->rank != state->rank ||
        memcmp(next->dims, state->dims, sizeof(state->dims[0]) * state->rank) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: what is next of '%s' is a call's, of its type and shape",
                         line->number, state->name);
    }
    for (uint32_t i = 0; i < graph->builder->tape.state_count; i++) {
        if (graph->builder->tape.states[i].after == values[1]) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "line %u: one value is next of two states: give each its own",
                             line->number);
        }
    }
    build_after(graph->builder, values[0], values[1]);
    if (graph->writer->options->accumulate > 1) {
        build_carry(graph->builder, values[0], values[1]);
    }
    graph->afters++;
    return say_line(graph, line, error);
}

/* The first word of a place is the module. What is said of no module yet ends where it began. */
static void note_module(struct graph_writer *graph, const char *module)
{
    if (module != NULL) {
        buffer_add_format(&graph->places, "at %u %.*s\n", graph->builder->tape.tensor_count,
                          GRAPH_PLACE_MAX, module);
    } else if (graph->placed) {
        buffer_add_format(&graph->places, "end %u\n", graph->builder->tape.tensor_count);
    }
    graph->placed = module != NULL;
}

/* Is it the module that the place has already? */
static bool is_same_module(const struct graph_writer *graph, const char *module)
{
    const size_t size = strlen(module);

    return graph->placed && strncmp(graph->place, module, size) == 0 &&
           (graph->place[size] == ' ' || graph->place[size] == '\0');
}

static enum status write_place(struct graph_writer *graph, const struct graph_line *line)
{
    size_t size = 0;

    if (line->count > 1 && !is_same_module(graph, line->words[1])) {
        note_module(graph, line->words[1]);
    }
    graph->place[0] = '\0';
    for (uint32_t i = 1; i < line->count && size < GRAPH_PLACE_MAX; i++) {
        size += (size_t)snprintf(graph->place + size, GRAPH_PLACE_MAX + 1 - size, "%s%s",
                                 i == 1 ? "" : " ", line->words[i]);
    }
    return STATUS_OK;
}

static enum status write_loss_line(struct graph_writer *graph, const struct graph_line *line,
                                   struct error *error)
{
    const struct tensor *tensor;
    uint32_t value;

    if (line->made || line->count != 2 || line->rank != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: 'loss' takes one value", line->number);
    }
    if (!graph->writer->options->graph->trains) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: a loss without a parameter",
                         line->number);
    }
    TRY(graph_operand(&value, line, 1, graph->count, error));
    graph->loss = graph->ids[value];
    tensor = builder_tensor(graph->builder, graph->loss);
    if (tensor->count != 1 || tensor->dtype != DTYPE_F32 || !role_is_made(tensor->role)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: a loss is one number that a call makes", line->number);
    }
    graph->part = GRAPH_ENDED;
    return STATUS_OK;
}

/* Behind the loss: what is found on held-out data, then what is expected of a first step. */
static enum status write_end_line(struct graph_writer *graph, const struct graph_line *line,
                                  enum graph_word word, struct error *error)
{
    const bool pass = graph->writer->pass != NULL;

    if (word == GRAPH_EVAL && line->count == 1 && !line->made && line->rank == 0 &&
        graph->part == (pass ? GRAPH_LEFT : GRAPH_ENDED)) {
        graph->part = pass ? GRAPH_CALLS : GRAPH_SKIPPED;
        return STATUS_OK;
    }
    if (word == GRAPH_EXPECT && graph->part >= GRAPH_ENDED) {
        graph->part = GRAPH_EXPECTS; /* graph_expected_read() reads them */
        return STATUS_OK;
    }
    if (graph->part == GRAPH_LEFT || graph->part == GRAPH_SKIPPED) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_FORMAT,
                     "line %u: what follows the loss is one 'eval', and lines 'expect'",
                     line->number);
}

static enum status write_line(struct graph_writer *graph, const struct graph_line *line,
                              struct error *error)
{
    const enum graph_word word = graph_line_word(line);

    if (graph->part == GRAPH_DECLARES && !graph_word_declares(word)) {
        graph->declared = graph->count;
        begin_batch(graph);
        graph->part = graph->writer->pass != NULL ? GRAPH_LEFT : GRAPH_CALLS;
    }
    /* Without a loss the calls end where expectations begin. */
    if (word == GRAPH_EXPECT && graph->part == GRAPH_CALLS &&
        !graph->writer->options->graph->trains) {
        graph->part = GRAPH_ENDED;
    }
    if (graph->part > GRAPH_CALLS || word == GRAPH_EVAL || word == GRAPH_EXPECT) {
        return write_end_line(graph, line, word, error);
    }
    if (word == GRAPH_AT) {
        return write_place(graph, line);
    }
    if (word == GRAPH_LOSS) {
        return write_loss_line(graph, line, error);
    }
    if (word == GRAPH_AFTER) {
        return write_after(graph, line, error);
    }
    if (graph_word_declares(word) && graph->part != GRAPH_DECLARES) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: declarations stand before all calls",
                         line->number);
    }
    return write_value(graph, line, error);
}

static enum status check_end(const struct graph_writer *graph, struct error *error)
{
    const bool pass = graph->writer->pass != NULL;

    if (graph->loss == TENSOR_NONE && graph->writer->options->graph->trains) {
        return error_set(error, STATUS_BAD_FORMAT, "the graph ends without its loss");
    }
    if (!pass && graph->afters != graph->states) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%u states, and %u lines 'after': each state has one", graph->states,
                         graph->afters);
    }
    if (graph->states == 0 && !graph->writer->options->graph->trains) {
        return error_set(error, STATUS_BAD_FORMAT, "a graph without parameters has states");
    }
    return STATUS_OK;
}

static enum status write_lines(struct graph_writer *graph, struct error *error)
{
    const struct graph *text = graph->writer->options->graph;
    struct graph_lines lines;
    struct graph_line line;
    bool found;

    TRY(graph_lines_begin(&lines, text->text, text->size, error));
    for (;;) {
        TRY(graph_line_next(&line, &found, &lines, error));
        if (!found) {
            return check_end(graph, error);
        }
        TRY(write_line(graph, &line, error));
    }
}

/* A job without a loss makes states of states, one batch a step. */
static void end_step(struct graph_writer *graph)
{
    if (graph->writer->options->accumulate != 1) {
        builder_fail(graph->builder, STATUS_USAGE,
                     "micro-batches are for a loss, and this graph has none: leave --accumulate "
                     "out");
    }
}

/* A pass over held-out data goes on behind what the model has. */
static void take_places(struct graph_writer *graph)
{
    buffer_init(&graph->places, GRAPH_PLACES_MAX);
    if (graph->writer->model->modules != NULL) {
        buffer_add_text(&graph->places, graph->writer->model->modules);
    }
}

static void give_places(struct graph_writer *graph)
{
    struct model *model = graph->writer->model;

    note_module(graph, NULL);
    free(model->modules);
    model->modules = NULL;
    if (graph->places.status == STATUS_OK && graph->places.size > 0) {
        model->modules = strdup(buffer_text(&graph->places));
    }
    buffer_release(&graph->places);
}

void write_graph(struct model_writer *writer)
{
    struct graph_writer graph = {
        .writer = writer, .builder = writer->builder, .room = GRAPH_ROOM, .loss = TENSOR_NONE};
    struct error error;
    enum status status;

    error_init(&error);
    graph.ids = calloc(GRAPH_ROOM, sizeof(*graph.ids));
    if (graph.ids == NULL) {
        builder_fail(graph.builder, STATUS_NO_MEMORY, "no memory for a graph");
        return;
    }
    take_places(&graph);
    status = write_lines(&graph, &error);
    give_places(&graph);
    if (status != STATUS_OK) {
        writer->builder->error = error;
    } else if (writer->pass != NULL) {
        write_held_out_loss(writer, graph.loss);
    } else if (graph.loss != TENSOR_NONE) {
        write_training(writer, graph.loss);
    } else {
        end_step(&graph);
    }
    free(graph.ids);
}
