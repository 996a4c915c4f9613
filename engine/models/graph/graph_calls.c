/* graph_calls.c - see graph_writer.h: one row for each call of the builder. */
#include "engine/models/graph/graph_writer.h"

#include <string.h>

#include "engine/models/graph/graph.h"
#include "engine/tape/builder_core.h"

#define NUMBERS_MAX     32
#define OPERANDS_MAX    3
#define IMAGE_SIZE_MAX  65535 /* of what the operations over pictures count */
#define ROTARY_SIZE_MAX 16777216
/* Streams of draws: dropout counts up from 1. */
#define DRAWS_FIRST     0x80000000u
#define DRAWS_MAX       65535

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

    if (kind == OP_BINARY || kind == OP_INTEGER) {
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

static uint32_t call_integer(struct graph_writer *graph, const struct call *call)
{
    return call_kind(graph, call, OP_INTEGER, 2, 12, DTYPE_U32);
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

/* What was computed, as an index: toward zero. */
static uint32_t call_cast_integer(struct graph_writer *graph, const struct call *call)
{
    return build_cast(graph->builder, call->operands[0], DTYPE_U32);
}

static uint32_t call_gather(struct graph_writer *graph, const struct call *call)
{
    return build_gather(graph->builder, call->operands[0], call->operands[1]);
}

static uint32_t call_gather_elements(struct graph_writer *graph, const struct call *call)
{
    return build_gather_elements(graph->builder, call->operands[0], call->operands[1]);
}

static uint32_t call_take(struct graph_writer *graph, const struct call *call)
{
    return build_take(graph->builder, call->operands[0], call->operands[1]);
}

static uint32_t call_scatter_add(struct graph_writer *graph, const struct call *call)
{
    return build_scatter(graph->builder, SCATTER_ADD, call->operands[0], call->operands[1],
                         call->operands[2]);
}

static uint32_t call_scatter_last(struct graph_writer *graph, const struct call *call)
{
    return build_scatter(graph->builder, SCATTER_LAST, call->operands[0], call->operands[1],
                         call->operands[2]);
}

/* Rows apart by an index, and summed. */
static uint32_t call_sum_by_index(struct graph_writer *graph, const struct call *call)
{
    return build_sum_by_index(graph->builder, call->operands[0], call->operands[1],
                              call->line->rank, call->line->dims);
}

/* The lines of one x in the same order are one operation's. */
static const struct sorted *sorted_of(struct graph_writer *graph, const struct call *call)
{
    const uint32_t x = call->operands[0];
    const bool descending = call->numbers[0] == 1;

    if (call->numbers[0] < 0 || call->numbers[0] > 1) {
        builder_fail(graph->builder, STATUS_BAD_FORMAT,
                     "an order is 0, from below, or 1, from above");
    }
    if (!graph->sort.is_there || graph->sort.x != x || graph->sort.descending != descending) {
        build_sort(graph->builder, &graph->sort.made, x, descending);
        graph->sort.x = x;
        graph->sort.descending = descending;
        graph->sort.is_there = true;
    }
    return &graph->sort.made;
}

static uint32_t call_sort(struct graph_writer *graph, const struct call *call)
{
    return sorted_of(graph, call)->y;
}

static uint32_t call_sort_index(struct graph_writer *graph, const struct call *call)
{
    return sorted_of(graph, call)->index;
}

static uint32_t call_sort_rank(struct graph_writer *graph, const struct call *call)
{
    return sorted_of(graph, call)->rank;
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

/* An example is what PyTorch finds where nothing is dropped; so are held-out data. */
static uint32_t call_dropout(struct graph_writer *graph, const struct call *call)
{
    if (graph->writer->options->graph->example || graph->writer->pass != NULL) {
        return build_scale(graph->builder, call->operands[0], 1.0f);
    }
    return build_dropout(graph->builder, call->operands[0], (double)float_of(call->numbers[0]),
                         graph->writer->stream++, graph->writer->options->seed);
}

/* Words that the job draws again in each step, by the number of the line. */
static uint32_t call_uniform(struct graph_writer *graph, const struct call *call)
{
    const uint64_t seed = graph->writer->options->seed;
    const uint32_t counter = build_counter(graph->builder);
    struct op op = op_begin(OP_UNIFORM, 1, &counter);
    struct output_shape shape = {DTYPE_U32, call->line->rank, {0}};

    if (call->numbers[0] < 0 || call->numbers[0] > DRAWS_MAX) {
        builder_fail(graph->builder, STATUS_BAD_FORMAT, "the number of a draw goes from 0 to %d",
                     DRAWS_MAX);
        return 0;
    }
    op_attribute(&op, DRAWS_FIRST + (uint64_t)call->numbers[0]);
    op_attribute(&op, seed & UINT32_MAX);
    op_attribute(&op, seed >> 32);
    memcpy(shape.dims, call->line->dims, sizeof(shape.dims));
    op.output_count = 1;
    build_op(graph->builder, &op, &shape);
    return op.outputs[0];
}

/* A number that counts up: u32, of one element. */
static uint32_t call_count(struct graph_writer *graph, const struct call *call)
{
    struct op op = op_begin(OP_STEP_NEXT, 1, call->operands);
    struct output_shape shape = {DTYPE_U32, 1, {1}};

    op.output_count = 1;
    build_op(graph->builder, &op, &shape);
    return op.outputs[0];
}

/* The widths behind the number of the part; false, and the builder fails, where they are none. */
static bool take_widths(struct graph_writer *graph, struct graph_split *split,
                        const int64_t *numbers)
{
    while (split->count < OP_OUTPUTS_MAX && numbers[1 + split->count] > 0) {
        split->widths[split->count] = (uint64_t)numbers[1 + split->count];
        split->count++;
    }
    if (numbers[0] < 0 || numbers[0] >= split->count) {
        builder_fail(graph->builder, STATUS_BAD_FORMAT, "a part that its widths do not have");
        return false;
    }
    return true;
}

/* Columns of x. The parts of one x with the same widths are one operation's. */
static uint32_t call_part(struct graph_writer *graph, const struct call *call)
{
    struct graph_split split = {.x = call->operands[0]};

    if (!take_widths(graph, &split, call->numbers)) {
        return 0;
    }
    if (graph->split.x != split.x || graph->split.count != split.count ||
        memcmp(graph->split.widths, split.widths, sizeof(split.widths)) != 0) {
        build_split_widths(graph->builder, split.parts, split.widths, split.count, split.x);
        graph->split = split;
    }
    return builder_failed(graph->builder) ? 0 : graph->split.parts[call->numbers[0]];
}

static uint32_t call_rotary(struct graph_writer *graph, const struct call *call)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (call->numbers[i] < 0 || call->numbers[i] > ROTARY_SIZE_MAX) {
            builder_fail(graph->builder, STATUS_BAD_FORMAT, "sizes of a rotation go from 0 to %d",
                         ROTARY_SIZE_MAX);
            return 0;
        }
    }
    return build_rotary(graph->builder, call->operands[0], call->operands[1],
                        (uint64_t)call->numbers[0], (uint64_t)call->numbers[1],
                        call->numbers[2] != 0);
}

/* The sum of each channel, exactly: run over the whole batch, it keeps 22 bits in every job. */
static uint32_t call_channel_sum(struct graph_writer *graph, const struct call *call)
{
    const struct precision precision = graph->builder->precision;
    uint32_t sum;

    if (call->numbers[0] < 1 || call->numbers[1] < 1) {
        builder_fail(graph->builder, STATUS_BAD_FORMAT, "channels are counted from 1");
        return 0;
    }
    graph->builder->precision = (struct precision){22, 0};
    sum = build_reduce(graph->builder, call->operands[0], (uint64_t)call->numbers[0],
                       (uint64_t)call->numbers[1]);
    graph->builder->precision = precision;
    return sum == call->operands[0] ? build_scale(graph->builder, sum, 1.0f) : sum;
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
    {"cast-integer", 1, 0, false, call_cast_integer},
    {"gather", 2, 0, false, call_gather},
    {"gather-elements", 2, 0, false, call_gather_elements},
    {"take", 2, 0, false, call_take},
    {"scatter-add", 3, 0, false, call_scatter_add},
    {"scatter-last", 3, 0, false, call_scatter_last},
    {"sum-by-index", 2, 0, true, call_sum_by_index},
    {"sort", 1, 1, false, call_sort},
    {"sort-index", 1, 1, false, call_sort_index},
    {"sort-rank", 1, 1, false, call_sort_rank},
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
    {"uniform", 0, 1, true, call_uniform},
    {"count", 1, 0, false, call_count},
    {"part", 1, 1 + OP_OUTPUTS_MAX, false, call_part},
    {"rotary", 2, 3, false, call_rotary},
    {"channel-sum", 1, 2, false, call_channel_sum},
    {"stop", 1, 0, false, call_stop},
    {"im2col", 1, IMAGE_ATTRIBUTES, false, call_im2col},
    {"max-pool", 1, IMAGE_ATTRIBUTES, false, call_max_pool},
    {"mean-pool", 1, MEAN_POOL_ATTRIBUTES, false, call_mean_pool},
};

static const struct call_row map_row = {"", 1, 0, false, call_map};
static const struct call_row binary_row = {"", 2, 12, true, call_binary};
static const struct call_row integer_row = {"", 2, 12, true, call_integer};

#define CALL_WORD(NAME, text, ...) text,

static bool find_code(uint32_t *code, const char *word, const char *const *words, uint32_t count)
{
    for (*code = 0; *code < count; ++*code) {
        if (strcmp(words[*code], word) == 0) {
            return true;
        }
    }
    return false;
}

/* The row of a word, and its code where it is that of a function; NULL: none. */
static const struct call_row *find_call(uint32_t *code, const char *word)
{
    static const char *const maps[] = {OP_MAP_CODES(CALL_WORD)};
    static const char *const binaries[] = {OP_BINARY_CODES(CALL_WORD)};
    static const char *const integers[] = {OP_INTEGER_CODES(CALL_WORD)};

    for (size_t i = 0; i < sizeof(call_rows) / sizeof(call_rows[0]); i++) {
        if (strcmp(call_rows[i].word, word) == 0) {
            return &call_rows[i];
        }
    }
    return find_code(code, word, maps, MAP_FUNCTION_COUNT)           ? &map_row
           : find_code(code, word, binaries, BINARY_FUNCTION_COUNT)  ? &binary_row
           : find_code(code, word, integers, INTEGER_FUNCTION_COUNT) ? &integer_row
                                                                     : NULL;
}

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

enum status graph_call(uint32_t *id, struct graph_writer *graph, const struct graph_line *line,
                       struct error *error)
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
