/*
 * experts.c - the feed-forward layers of a mixture of experts.
 *
 * A token goes to the experts that its router likes best, the first of equals. Each of its choices
 * becomes a row: rows of all tokens and choices are multiplied by the weights of their experts at
 * once (CONTRACT_CHOSEN), weighed and summed. Every expert's weights are tensors of their own, as
 * the files have them; they are joined where they are used.
 */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/models/adapters.h"
#include "engine/models/decoder_core.h"
#include "engine/tape/builder_core.h"

void decoder_check_experts(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;

    if (decoder->layout->router == NULL || builder_failed(decoder->builder)) {
        return;
    }
    model_require(decoder->writer, options->experts, "experts");
    model_require(decoder->writer, options->experts_used, "experts used");
    if (options->experts > EXPERTS_MAX) {
        builder_fail(decoder->builder, STATUS_USAGE, "a layer of %u experts; at most %d",
                     options->experts, EXPERTS_MAX);
    } else if (options->experts_used > options->experts ||
               options->experts_used > EXPERTS_USED_MAX) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a token goes to %u of %u experts; to all of them at most, and to %d",
                     options->experts_used, options->experts, EXPERTS_USED_MAX);
    } else if (!(options->balance >= 0.0 && options->balance <= 1e6)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "the balance of experts counts %g times; it must be from 0 to 1e6",
                     options->balance);
    }
}

/* ---- joining ------------------------------------------------------------ */

/* The parts side by side, in `rows` rows. */
static uint32_t join_columns(struct builder *builder, const uint32_t *parts, uint32_t count,
                             uint64_t rows)
{
    struct op op = op_begin(OP_CONCAT, count, parts);
    struct output_shape shape;
    uint64_t width = 0;

    op_attribute(&op, rows);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t own = builder_tensor(builder, parts[i])->count / rows;

        op_attribute(&op, own);
        width += own;
    }
    shape = shape_matrix(DTYPE_F32, rows, width);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* Matrices one after the other: (count, rows, columns). An operation joins a few, so in turns. */
static uint32_t join_matrices(struct builder *builder, uint32_t *parts, uint32_t count)
{
    const struct tensor first = *builder_tensor(builder, parts[0]);
    const uint64_t dims[3] = {count, first.dims[0], first.dims[1]};

    do {
        uint32_t joined = 0;

        for (uint32_t i = 0; i < count; i += OP_INPUTS_MAX) {
            uint32_t together = count - i < OP_INPUTS_MAX ? count - i : OP_INPUTS_MAX;

            parts[joined++] = join_columns(builder, &parts[i], together, 1);
        }
        count = joined;
    } while (count > 1 && !builder_failed(builder));
    return build_reshape(builder, parts[0], 3, dims);
}

/* The choices of each token beside each other. */
static uint32_t join_choices(struct builder *builder, const uint32_t *index, uint32_t used,
                             uint64_t rows)
{
    static const uint64_t one = 1;
    const uint64_t count = rows * used;
    struct op fill = op_begin(OP_FILL, 0, NULL);
    struct output_shape shape = {DTYPE_U32, 1, {one}};

    op_attribute(&fill, 0);
    fill.output_count = 1;
    build_op(builder, &fill, &shape);

    uint32_t joined = fill.outputs[0];

    for (uint32_t i = 0; i < used; i++) {
        const struct move move = {
            {1, 1, 1, 1, (int64_t)rows}, {0, 0, 0, 0, (int64_t)used}, (int64_t)i};

        joined = build_place(builder, index[i], joined, &move, 1, &count);
    }
    return joined;
}

/* ---- routing ------------------------------------------------------------ */

struct route {
    uint64_t rows;    /* tokens */
    uint32_t index;   /* (rows * used): the expert of each choice */
    uint32_t weights; /* (rows, used) */
};

/* 1 where a token's expert stands, else +0: (rows, experts). */
static uint32_t mark_choice(struct builder *builder, uint32_t index, uint32_t like)
{
    const uint64_t columns = builder_tensor(builder, like)->dims[1];
    const uint64_t rows = builder_tensor(builder, like)->dims[0];
    uint32_t inputs[2] = {index, build_fill(builder, 1.0f, 1, &rows)};
    struct op op = op_begin(OP_GATHER_ELEMENTS_GRAD, 2, inputs);
    struct output_shape shape = shape_matrix(DTYPE_F32, rows, columns);

    op_attribute(&op, rows);
    op_attribute(&op, columns);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* Adds a term to a sum that is passed from layer to layer. */
static void add_up(struct builder *builder, uint32_t *sum, uint32_t term)
{
    *sum = *sum == TENSOR_NONE ? term : build_add(builder, *sum, term, 1);
}

/* A penalty is of a training, and not of the figures on held-out data. */
static bool counts_balance(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;

    return options->balance > 0.0 && !options->inference && !options->evaluation &&
           decoder->writer->pass == NULL;
}

/* Counts a choice of all tokens. */
static void count_choice(const struct decoder *decoder, uint32_t marks)
{
    const struct tensor shape = *builder_tensor(decoder->builder, marks);
    const struct view columns = view_transposed(shape.dims[1], shape.dims[0]);

    if (counts_balance(decoder)) {
        add_up(decoder->builder, &decoder->writer->chosen,
               build_sum(decoder->builder, marks, &columns));
    }
}

static void count_probabilities(const struct decoder *decoder, uint32_t probabilities)
{
    const struct tensor shape = *builder_tensor(decoder->builder, probabilities);
    const struct view columns = view_transposed(shape.dims[1], shape.dims[0]);

    if (counts_balance(decoder)) {
        add_up(decoder->builder, &decoder->writer->probable,
               build_sum(decoder->builder, probabilities, &columns));
    }
}

/* The weights of the chosen, which sum to one. */
static uint32_t renorm_weights(struct builder *builder, uint32_t weights, uint64_t rows,
                               uint32_t used)
{
    const uint64_t column[2] = {rows, 1};
    uint32_t sum = build_row_sum(builder, weights, used);

    return build_binary(builder, BINARY_DIV, weights, build_reshape(builder, sum, 2, column));
}

/* logits (rows, experts) */
static struct route find_route(const struct decoder *decoder, uint32_t logits)
{
    const struct model_options *options = decoder->options;
    const uint32_t used = options->experts_used;
    struct builder *builder = decoder->builder;
    const bool choice_first = decoder->layout->router_order == ROUTER_CHOICE_FIRST;
    static const uint64_t one = 1;
    struct route route = {.rows = builder_tensor(builder, logits)->count / options->experts};
    uint32_t probabilities = build_softmax(builder, logits, 1.0f, 0, TENSOR_NONE);
    uint32_t judged = choice_first ? logits : probabilities;
    uint32_t left = judged;
    uint32_t index[EXPERTS_USED_MAX];
    uint32_t weights[EXPERTS_USED_MAX];

    for (uint32_t i = 0; i < used; i++) {
        (void)build_extreme(builder, REDUCE_MAX, left, &index[i]);
        weights[i] = build_gather_elements(builder, judged, index[i]);

        if (i + 1 < used || counts_balance(decoder)) {
            uint32_t marks = mark_choice(builder, index[i], logits);

            count_choice(decoder, marks);
            left = i + 1 == used
                       ? left
                       : build_select(builder, marks, build_fill(builder, -FLT_MAX, 1, &one), left);
        }
    }
    count_probabilities(decoder, probabilities);
    route.index = join_choices(builder, index, used, route.rows);
    route.weights = join_columns(builder, weights, used, route.rows);
    if (choice_first) {
        route.weights = build_softmax(builder, route.weights, 1.0f, 0, TENSOR_NONE);
    } else if (options->experts_renormed) {
        route.weights = renorm_weights(builder, route.weights, route.rows, used);
    }
    return route;
}

uint32_t decoder_balance(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    const struct model_writer *writer = decoder->writer;
    struct builder *builder = decoder->builder;

    if (writer->chosen == TENSOR_NONE || writer->pass != NULL || builder_failed(builder)) {
        return TENSOR_NONE;
    }
    /* Shares of the tokens of all layers, and means of what the routers gave. */
    const double tokens =
        (double)options->batch * (double)options->length * (double)options->layers;
    const uint32_t product = build_mul(builder, writer->chosen, writer->probable, 1);
    const double factor = options->balance * (double)options->experts / (tokens * tokens);

    return build_scale(builder, build_row_sum(builder, product, options->experts), (float)factor);
}

/* ---- layers of experts -------------------------------------------------- */

/* The layer of that name of one expert. */
static struct linear layer_of_expert(const struct decoder *decoder, const struct linear *linear,
                                     uint32_t expert, char name[TENSOR_NAME_MAX + 1])
{
    struct linear own = *linear;
    char scope[TENSOR_NAME_MAX + 1];

    (void)snprintf(scope, sizeof(scope), decoder->layout->experts, expert);
    (void)snprintf(name, TENSOR_NAME_MAX + 1, "%.40s.%.16s", scope, linear->name);
    own.name = name;
    return own;
}

/* The matrices that every expert has under this name: (experts, out, in). */
static uint32_t expert_matrices(const struct decoder *decoder, const struct linear *linear)
{
    const uint32_t experts = decoder->options->experts;
    uint32_t parts[EXPERTS_MAX] = {0};

    for (uint32_t e = 0; e < experts; e++) {
        char name[TENSOR_NAME_MAX + 1];
        struct linear own = layer_of_expert(decoder, linear, e, name);
        uint32_t matrix = decoder_matrix(decoder, own.name, own.out, own.in, own.deviation);

        parts[e] = decoder_real(decoder, matrix);
    }
    return join_matrices(decoder->builder, parts, experts);
}

/* alpha / rank * B A x, with the pair of each row's expert. */
static uint32_t expert_adapter(const struct decoder *decoder, uint32_t x, uint32_t index,
                               const struct linear *linear)
{
    const struct model_options *options = decoder->options;
    const struct lora *lora = &options->lora;
    struct builder *builder = decoder->builder;
    uint32_t first[EXPERTS_MAX] = {0};
    uint32_t second[EXPERTS_MAX] = {0};

    for (uint32_t e = 0; e < options->experts; e++) {
        char name[TENSOR_NAME_MAX + 1];
        struct linear own = layer_of_expert(decoder, linear, e, name);
        uint32_t pair[2];

        adapters_parts(decoder->writer, pair,
                       &(struct adapted){own.name, own.in, own.out, own.wide});
        first[e] = pair[0];
        second[e] = pair[1];
    }
    if (lora->dropout > 0.0) {
        x = build_dropout(builder, x, lora->dropout, decoder->writer->stream++, options->seed);
    }
    x = build_linear_chosen(builder, x, join_matrices(builder, first, options->experts), index);
    x = build_linear_chosen(builder, x, join_matrices(builder, second, options->experts), index);
    return build_scale(builder, x, adapters_scale(lora));
}

/* x (choices, in), each with the layer of its expert. */
static uint32_t expert_linear(const struct decoder *decoder, uint32_t x, uint32_t index,
                              const struct linear *linear)
{
    struct builder *builder = decoder->builder;
    uint32_t y = build_linear_chosen(builder, x, expert_matrices(decoder, linear), index);

    return decoder_has_adapter(decoder, linear->name, true)
               ? build_add(builder, y, expert_adapter(decoder, x, index, linear), 1)
               : y;
}

/* The sum of a token's choices, each as often as it weighs; y (choices, width). */
static uint32_t mix_choices(const struct decoder *decoder, uint32_t y, const struct route *route)
{
    const uint32_t used = decoder->options->experts_used;
    const uint64_t width = decoder->options->width;
    const uint64_t whole[3] = {route->rows, used, width};
    const uint64_t column[3] = {route->rows, used, 1};
    const uint64_t wide[2] = {route->rows, used * width};
    struct builder *builder = decoder->builder;
    uint32_t weights = build_reshape(builder, route->weights, 3, column);
    uint32_t parts[EXPERTS_USED_MAX];

    y = build_binary(builder, BINARY_MUL, build_reshape(builder, y, 3, whole), weights);
    build_split(builder, parts, used, build_reshape(builder, y, 2, wide));
    for (uint32_t i = 1; i < used; i++) {
        parts[0] = build_add(builder, parts[0], parts[i], 1);
    }
    return parts[0];
}

/* x (..., width), a row for each choice of each token. */
static uint32_t repeat_tokens(const struct decoder *decoder, uint32_t x, uint64_t rows)
{
    const uint32_t used = decoder->options->experts_used;
    const uint64_t by_choice[2] = {rows * used, decoder->options->width};
    uint32_t copies[EXPERTS_USED_MAX];

    for (uint32_t i = 0; i < used; i++) {
        copies[i] = x;
    }
    return build_reshape(decoder->builder, join_columns(decoder->builder, copies, used, rows), 2,
                         by_choice);
}

uint32_t decoder_experts(const struct decoder *decoder, uint32_t x)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;
    const struct tensor like = *builder_tensor(decoder->builder, x);
    const uint64_t width = options->width;
    struct builder *builder = decoder->builder;
    struct linear router = {layout->router,    width, options->experts,
                            DECODER_DEVIATION, false, true};
    struct linear gate = {layout->gate, width, decoder->hidden, DECODER_DEVIATION, false, false};
    struct linear up = {layout->up, width, decoder->hidden, DECODER_DEVIATION, false, false};
    struct linear down = {
        layout->down, decoder->hidden, width, decoder_last_deviation(decoder), false, false};
    const uint64_t by_token[2] = {like.count / width, options->experts};

    if (builder_failed(builder)) {
        return x;
    }
    uint32_t logits = build_reshape(builder, decoder_linear(decoder, x, &router), 2, by_token);
    const struct route route = find_route(decoder, logits);

    x = repeat_tokens(decoder, x, route.rows);

    uint32_t gated = decoder_activate(decoder, expert_linear(decoder, x, route.index, &gate));
    uint32_t y = build_mul(builder, gated, expert_linear(decoder, x, route.index, &up), 1);

    y = mix_choices(decoder, expert_linear(decoder, y, route.index, &down), &route);
    return build_reshape(builder, y, like.rank, like.dims);
}
