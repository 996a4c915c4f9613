/*
 * graph.c - see graph.h: the declarations, and one row for each call of the builder.
 */
#include "engine/models/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

#define GRAPH_HEAD     "lockstep-graph 1\n"
#define PLACE_MAX      160 /* bytes of an "at" that an error repeats */
#define NUMBERS_MAX    32
#define OPERANDS_MAX   3
#define GRAPH_ROOM     256   /* values at first */
#define IMAGE_SIZE_MAX 65535 /* of what the operations over pictures count */

static enum status begin_lines(struct graph_lines *lines, const char *text, size_t size,
                               struct error *error)
{
    const size_t head = sizeof(GRAPH_HEAD) - 1;

    if (size < head || size > GRAPH_TEXT_MAX || memcmp(text, GRAPH_HEAD, head) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "no graph: it begins with 'lockstep-graph 1' and has at most 64 MiB");
    }
    *lines = (struct graph_lines){.at = text + head, .end = text + size, .number = 1};
    return STATUS_OK;
}

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
    if (graph->input_count == GRAPH_INPUTS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "line %u: more than %u inputs", line->number,
                         GRAPH_INPUTS_MAX);
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
    bool inputs = true; /* so far they stand alone */
    bool found;

    *graph = (struct graph){.text = text, .size = size};
    TRY(begin_lines(&lines, text, size, error));
    for (;;) {
        TRY(graph_line_next(&line, &found, &lines, error));
        if (!found || graph_line_word(&line) == GRAPH_CALL) {
            break;
        }
        TRY(graph_declared(&declared, &line, error));
        if (graph_line_word(&line) == GRAPH_INPUT) {
            TRY(take_input(graph, &declared, &line, inputs, error));
        }
        inputs = inputs && graph_line_word(&line) == GRAPH_INPUT;
        graph->frozen = graph->frozen || graph_line_word(&line) == GRAPH_FROZEN;
    }
    return graph->input_count > 0 ? STATUS_OK
                                  : error_set(error, STATUS_BAD_FORMAT, "the graph has no input");
}

/* ---- calls ------------------------------------------------------------------ */

struct graph_writer {
    struct model_writer *writer;
    struct builder *builder;
    uint32_t *ids; /* the tensor of each value */
    uint32_t count;
    uint32_t room;
    uint32_t names;
    uint32_t loss;
    char place[PLACE_MAX + 1];
};

struct call {
    const struct graph_line *line;
    const uint32_t *operands; /* tensors */
    const int64_t *numbers;
    uint32_t code;
};

static float float_of(int64_t bits)
{
    const uint32_t pattern = (uint32_t)bits;
    float value;

    memcpy(&value, &pattern, sizeof(value));
    return value;
}

static uint32_t call_fill(struct graph_writer *graph, const struct call *call)
{
    return build_fill(graph->builder, float_of(call->numbers[0]), call->line->rank,
                      call->line->dims);
}

/* A call whose numbers are the attributes of its kind; code stands in front of them. */
static uint32_t call_kind(struct graph_writer *graph, const struct call *call, enum op_kind kind,
                          uint32_t operands, uint32_t numbers, enum dtype dtype)
{
    struct op op = op_begin(kind, operands, call->operands);
    struct output_shape shape = {dtype, call->line->rank, {0}};

    if (kind == OP_BINARY) {
        op_attribute(&op, call->code);
    }
    for (uint32_t i = 0; i < numbers; i++) {
        op_attribute(&op, (uint64_t)call->numbers[i]);
    }
    memcpy(shape.dims, call->line->dims, sizeof(shape.dims));
    op.output_count = 1;
    build_op(graph->builder, &op, &shape);
    return op.outputs[0];
}

static enum dtype dtype_of(const struct graph_writer *graph, uint32_t tensor)
{
    return builder_tensor(graph->builder, tensor)->dtype;
}

static uint32_t call_fill_integer(struct graph_writer *graph, const struct call *call)
{
    return call_kind(graph, call, OP_FILL, 0, 1, DTYPE_U32);
}

static uint32_t call_map(struct graph_writer *graph, const struct call *call)
{
    return build_map(graph->builder, (enum map_function)call->code, call->operands[0]);
}

static uint32_t call_binary(struct graph_writer *graph, const struct call *call)
{
    return call_kind(graph, call, OP_BINARY, 2, 12, DTYPE_F32);
}

static uint32_t call_scale(struct graph_writer *graph, const struct call *call)
{
    return build_scale(graph->builder, call->operands[0], float_of(call->numbers[0]));
}

static uint32_t call_select(struct graph_writer *graph, const struct call *call)
{
    return call_kind(graph, call, OP_SELECT, 3, 16, dtype_of(graph, call->operands[1]));
}

static uint32_t call_move(struct graph_writer *graph, const struct call *call)
{
    return call_kind(graph, call, OP_MOVE, 1, 11, dtype_of(graph, call->operands[0]));
}

static uint32_t call_place(struct graph_writer *graph, const struct call *call)
{
    return call_kind(graph, call, OP_PLACE, 2, 11, dtype_of(graph, call->operands[0]));
}

static uint32_t call_cast(struct graph_writer *graph, const struct call *call)
{
    return build_cast(graph->builder, call->operands[0], DTYPE_F32);
}

static uint32_t call_gather(struct graph_writer *graph, const struct call *call)
{
    return build_gather(graph->builder, call->operands[0], call->operands[1]);
}

static uint32_t call_gather_elements(struct graph_writer *graph, const struct call *call)
{
    return build_gather_elements(graph->builder, call->operands[0], call->operands[1]);
}

static uint32_t call_row_max(struct graph_writer *graph, const struct call *call)
{
    return build_extreme(graph->builder, REDUCE_MAX, call->operands[0], NULL);
}

static uint32_t call_row_min(struct graph_writer *graph, const struct call *call)
{
    return build_extreme(graph->builder, REDUCE_MIN, call->operands[0], NULL);
}

/* The column of the first maximum of each row, u32. */
static uint32_t call_row_max_index(struct graph_writer *graph, const struct call *call)
{
    uint32_t index = 0;

    (void)build_extreme(graph->builder, REDUCE_MAX, call->operands[0], &index);
    return index;
}

static uint32_t call_row_sum(struct graph_writer *graph, const struct call *call)
{
    return build_row_sum(graph->builder, call->operands[0], (uint64_t)call->numbers[0]);
}

/* Six lengths and six strides; false, and the builder fails, where they overflow. */
static bool take_view(struct graph_writer *graph, struct view *view, const int64_t *numbers)
{
    uint64_t count = 1;

    for (uint32_t axis = 0; axis < 6; axis++) {
        view->dims[axis] = (uint64_t)numbers[axis];
        view->strides[axis] = (uint64_t)numbers[6 + axis];
        if (numbers[axis] < 1 || numbers[6 + axis] < 0 ||
            view->dims[axis] > TENSOR_COUNT_MAX / count) {
            builder_fail(graph->builder, STATUS_BAD_FORMAT, "a view of no or too many elements");
            return false;
        }
        count *= view->dims[axis];
    }
    return true;
}

/* a's view, b's view, the strides of the result; causal. */
static uint32_t call_contract(struct graph_writer *graph, const struct call *call)
{
    struct view a;
    struct view b;
    uint64_t strides[6];

    if (!take_view(graph, &a, call->numbers) || !take_view(graph, &b, call->numbers + 12)) {
        return 0;
    }
    for (uint32_t axis = 0; axis < 6; axis++) {
        strides[axis] = (uint64_t)call->numbers[24 + axis];
    }
    return build_contract(graph->builder, call->operands[0], &a, call->operands[1], &b, strides,
                          (uint64_t)call->numbers[30], call->line->rank, call->line->dims);
}

static uint32_t call_sum(struct graph_writer *graph, const struct call *call)
{
    struct view view;

    return take_view(graph, &view, call->numbers)
               ? build_sum(graph->builder, call->operands[0], &view)
               : 0;
}

static uint32_t call_layer_norm(struct graph_writer *graph, const struct call *call)
{
    return build_layer_norm(graph->builder, call->operands[0], call->operands[1], call->operands[2],
                            float_of(call->numbers[0]));
}

static uint32_t call_rms_norm(struct graph_writer *graph, const struct call *call)
{
    return build_rms_norm(graph->builder, call->operands[0], call->operands[1],
                          float_of(call->numbers[0]));
}

static uint32_t call_softmax(struct graph_writer *graph, const struct call *call)
{
    return build_softmax(graph->builder, call->operands[0], float_of(call->numbers[0]),
                         (uint64_t)call->numbers[1], TENSOR_NONE);
}

static uint32_t call_cross_entropy(struct graph_writer *graph, const struct call *call)
{
    return build_cross_entropy_rows(graph->builder, call->operands[0], call->operands[1]);
}

static uint32_t call_dropout(struct graph_writer *graph, const struct call *call)
{
    return build_dropout(graph->builder, call->operands[0], (double)float_of(call->numbers[0]),
                         graph->writer->stream++, graph->writer->options->seed);
}

static uint32_t call_stop(struct graph_writer *graph, const struct call *call)
{
    return build_stop(graph->builder, call->operands[0]);
}

static uint32_t call_image(struct graph_writer *graph, const struct call *call, enum op_kind kind,
                           uint32_t numbers)
{
    for (uint32_t i = 0; i < numbers; i++) {
        if (call->numbers[i] < 0 || call->numbers[i] > IMAGE_SIZE_MAX) {
            builder_fail(graph->builder, STATUS_BAD_FORMAT, "a picture's numbers go from 0 to %d",
                         IMAGE_SIZE_MAX);
            return 0;
        }
    }
    return build_image_op(graph->builder, kind, call->operands[0], call->numbers);
}

static uint32_t call_im2col(struct graph_writer *graph, const struct call *call)
{
    return call_image(graph, call, OP_IM2COL, IMAGE_ATTRIBUTES);
}

static uint32_t call_max_pool(struct graph_writer *graph, const struct call *call)
{
    return call_image(graph, call, OP_MAX_POOL, IMAGE_ATTRIBUTES);
}

static uint32_t call_mean_pool(struct graph_writer *graph, const struct call *call)
{
    return call_image(graph, call, OP_MEAN_POOL, MEAN_POOL_ATTRIBUTES);
}

/* ---- the table of calls ------------------------------------------------------- */

struct call_row {
    const char *word;
    uint32_t operands;
    uint32_t numbers;
    bool shaped; /* it must give the shape of its result */
    uint32_t (*build)(struct graph_writer *graph, const struct call *call);
};

static const struct call_row call_rows[] = {
    {"fill", 0, 1, true, call_fill},
    {"fill-integer", 0, 1, true, call_fill_integer},
    {"scale", 1, 1, false, call_scale},
    {"select", 3, 16, true, call_select},
    {"move", 1, 11, true, call_move},
    {"place", 2, 11, true, call_place},
    {"cast", 1, 0, false, call_cast},
    {"gather", 2, 0, false, call_gather},
    {"gather-elements", 2, 0, false, call_gather_elements},
    {"row-max", 1, 0, false, call_row_max},
    {"row-min", 1, 0, false, call_row_min},
    {"row-max-index", 1, 0, false, call_row_max_index},
    {"row-sum", 1, 1, false, call_row_sum},
    {"contract", 2, 31, true, call_contract},
    {"sum", 1, 12, false, call_sum},
    {"layer-norm", 3, 1, false, call_layer_norm},
    {"rms-norm", 2, 1, false, call_rms_norm},
    {"softmax", 1, 2, false, call_softmax},
    {"cross-entropy", 2, 0, false, call_cross_entropy},
    {"dropout", 1, 1, false, call_dropout},
    {"stop", 1, 0, false, call_stop},
    {"im2col", 1, IMAGE_ATTRIBUTES, false, call_im2col},
    {"max-pool", 1, IMAGE_ATTRIBUTES, false, call_max_pool},
    {"mean-pool", 1, MEAN_POOL_ATTRIBUTES, false, call_mean_pool},
};

static const struct call_row map_row = {"", 1, 0, false, call_map};
static const struct call_row binary_row = {"", 2, 12, true, call_binary};

#define CALL_WORD(NAME, text, ...) text,

/* The row of a word, and its code where it is that of a function; NULL: none. */
static const struct call_row *find_call(uint32_t *code, const char *word)
{
    static const char *const maps[] = {OP_MAP_CODES(CALL_WORD)};
    static const char *const binaries[] = {OP_BINARY_CODES(CALL_WORD)};

    for (size_t i = 0; i < sizeof(call_rows) / sizeof(call_rows[0]); i++) {
        if (strcmp(call_rows[i].word, word) == 0) {
            return &call_rows[i];
        }
    }
    for (*code = 0; *code < MAP_FUNCTION_COUNT; ++*code) {
        if (strcmp(maps[*code], word) == 0) {
            return &map_row;
        }
    }
    for (*code = 0; *code < BINARY_FUNCTION_COUNT; ++*code) {
        if (strcmp(binaries[*code], word) == 0) {
            return &binary_row;
        }
    }
    return NULL;
}

/* ---- lines ---------------------------------------------------------------------- */

/* The words of a call: operands, then numbers. */
static enum status read_call(struct graph_writer *graph, uint32_t *operands, int64_t *numbers,
                             const struct call_row *row, const struct graph_line *line,
                             struct error *error)
{
    if (line->count != 1 + row->operands + row->numbers || (row->shaped && line->rank == 0)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: '%s' takes %u values, %u numbers and %s shape", line->number,
                         line->words[0], row->operands, row->numbers, row->shaped ? "a" : "no");
    }
    for (uint32_t i = 0; i < row->operands; i++) {
        TRY(graph_operand(&operands[i], line, 1 + i, graph->count, error));
        operands[i] = graph->ids[operands[i]];
    }
    for (uint32_t i = 0; i < row->numbers; i++) {
        TRY(graph_number(&numbers[i], line, 1 + row->operands + i, error));
    }
    return STATUS_OK;
}

static enum status write_call(struct graph_writer *graph, uint32_t *id,
                              const struct graph_line *line, struct error *error)
{
    uint32_t operands[OPERANDS_MAX];
    int64_t numbers[NUMBERS_MAX];
    struct call call = {line, operands, numbers, 0};
    const struct call_row *row = find_call(&call.code, line->words[0]);

    if (row == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: '%.40s' is no call", line->number,
                         line->words[0]);
    }
    TRY(read_call(graph, operands, numbers, row, line, error));
    *id = row->build(graph, &call);
    if (line->rank != 0 && !row->shaped) {
        (void)build_reshape(graph->builder, *id, line->rank, line->dims);
    }
    return STATUS_OK;
}

/* The rows of a batch that the job draws of the input's data: the same rows of each input. */
static uint32_t draw_input(struct graph_writer *graph, const struct graph_input *input,
                           uint32_t data)
{
    const struct model_options *options = graph->writer->options;
    struct output_shape shape = {input->dtype, input->rank, {0}};
    uint32_t inputs[2] = {data, build_counter(graph->builder)};
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
    op_attribute(&op, 1);
    op.output_count = 1;
    build_op(graph->builder, &op, &shape);
    return op.outputs[0];
}

static uint32_t write_input(struct graph_writer *graph, uint32_t at)
{
    const struct model_options *options = graph->writer->options;
    const struct graph_input *input = &options->graph->inputs[at];
    uint64_t dims[TENSOR_RANK_MAX];
    uint32_t data;

    memcpy(dims, input->dims, sizeof(dims));
    dims[0] = options->data_count;
    data =
        build_tensor(graph->builder, input->name, input->file_dtype, ROLE_DATA, input->rank, dims);
    if (at == 0) {
        graph->writer->model->data = data;
    }
    return data;
}

static bool has_name(const struct graph_writer *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        if (strcmp(builder_tensor(graph->builder, graph->ids[i])->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum status write_declared(struct graph_writer *graph, uint32_t *id,
                                  const struct graph_line *line, struct error *error)
{
    struct graph_declared declared;

    TRY(graph_declared(&declared, line, error));
    if (++graph->names > GRAPH_NAMES_MAX || has_name(graph, declared.name)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: '%s' is declared twice, or is over the limit of %u",
                         line->number, declared.name, GRAPH_NAMES_MAX);
    }
    switch (graph_line_word(line)) {
    case GRAPH_INPUT:
        *id = write_input(graph, graph->count);
        break;
    case GRAPH_PARAM:
        *id = write_shaped_parameter(graph->writer, declared.name, declared.rank, declared.dims,
                                     (struct init){.kind = INIT_NONE});
        break;
    case GRAPH_FROZEN:
        *id = write_shaped_frozen(graph->writer, declared.name, declared.dtype, declared.rank,
                                  declared.dims);
        break;
    case GRAPH_CALL:
        break;
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

static enum status write_place(struct graph_writer *graph, const struct graph_line *line)
{
    size_t size = 0;

    graph->place[0] = '\0';
    for (uint32_t i = 1; i < line->count && size < PLACE_MAX; i++) {
        size += (size_t)snprintf(graph->place + size, PLACE_MAX + 1 - size, "%s%s",
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
    TRY(graph_operand(&value, line, 1, graph->count, error));
    graph->loss = graph->ids[value];
    tensor = builder_tensor(graph->builder, graph->loss);
    if (tensor->count != 1 || tensor->dtype != DTYPE_F32 || !role_is_made(tensor->role)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: a loss is one number that a call makes", line->number);
    }
    return STATUS_OK;
}

/* Draws the batch behind the last declaration: all that follows is done for each micro-batch. */
static void begin_batch(struct graph_writer *graph)
{
    const struct model_options *options = graph->writer->options;

    build_repeat(graph->builder, options->accumulate,
                 options->group == 0 ? options->accumulate : options->group);
    for (uint32_t i = 0; i < options->graph->input_count; i++) {
        graph->ids[i] = draw_input(graph, &options->graph->inputs[i], graph->ids[i]);
    }
    graph->writer->stream = 1;
}

static enum status write_line(struct graph_writer *graph, const struct graph_line *line,
                              bool *declares, struct error *error)
{
    const bool call = graph_line_word(line) == GRAPH_CALL;
    uint32_t id = 0;

    if (graph->loss != TENSOR_NONE) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: nothing follows the loss",
                         line->number);
    }
    if (call && *declares) {
        *declares = false;
        begin_batch(graph);
    }
    if (strcmp(line->words[0], "at") == 0) {
        return write_place(graph, line);
    }
    if (strcmp(line->words[0], "loss") == 0) {
        return write_loss_line(graph, line, error);
    }
    if (!line->made || line->value != graph->count) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: it should make %%%u", line->number,
                         graph->count);
    }
    if (!call && !*declares) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: declarations stand before all calls",
                         line->number);
    }
    TRY(call ? write_call(graph, &id, line, error) : write_declared(graph, &id, line, error));
    TRY(say_line(graph, line, error));
    return add_value(graph, id, error);
}

static enum status write_lines(struct graph_writer *graph, struct error *error)
{
    const struct graph *text = graph->writer->options->graph;
    struct graph_lines lines;
    struct graph_line line;
    bool declares = true;
    bool found;

    TRY(begin_lines(&lines, text->text, text->size, error));
    for (;;) {
        TRY(graph_line_next(&line, &found, &lines, error));
        if (!found) {
            break;
        }
        TRY(write_line(graph, &line, &declares, error));
    }
    return graph->loss != TENSOR_NONE
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "the graph ends without its loss");
}

void write_graph(struct model_writer *writer)
{
    struct graph_writer graph = {
        .writer = writer, .builder = writer->builder, .room = GRAPH_ROOM, .loss = TENSOR_NONE};
    struct error error;

    error_init(&error);
    graph.ids = calloc(GRAPH_ROOM, sizeof(*graph.ids));
    if (graph.ids == NULL) {
        builder_fail(graph.builder, STATUS_NO_MEMORY, "no memory for a graph");
        return;
    }
    if (write_lines(&graph, &error) != STATUS_OK) {
        writer->builder->error = error;
    } else {
        write_training(writer, graph.loss);
    }
    free(graph.ids);
}
