/* model_writer.c - see model_writer.h. */
#include "engine/models/model_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder_core.h"

double init_fan_in(uint64_t width)
{
    return width == 0 ? 0.0 : 1.0 / sqrt((double)width);
}

struct init init_normal(double deviation)
{
    struct init init = {INIT_NORMAL, 0};
    float value = (float)deviation;

    memcpy(&init.value_bits, &value, sizeof(value));
    return init;
}

void model_require(struct model_writer *writer, uint64_t value, const char *name)
{
    if (value == 0) {
        builder_fail(writer->builder, STATUS_USAGE, "a %s model needs '%s' above zero",
                     model_name(writer->options), name);
    }
}

/* ---- tensors ------------------------------------------------------------ */

static void append(struct model_writer *writer, uint32_t **ids, uint32_t *count, uint32_t *room,
                   uint32_t id)
{
    if (*count == *room) {
        uint32_t more = *room == 0 ? 64 : 2 * *room;
        void *larger = realloc(*ids, more * sizeof(**ids));

        if (larger == NULL) {
            builder_fail(writer->builder, STATUS_NO_MEMORY, "no memory for a model");
            return;
        }
        *ids = larger;
        *room = more;
    }
    (*ids)[(*count)++] = id;
}

uint32_t write_parameter(struct model_writer *writer, const char *name, uint64_t rows,
                         uint64_t columns, struct init init)
{
    uint64_t dims[2] = {rows, columns};

    return write_shaped_parameter(writer, name, columns == 0 ? 1 : 2, dims, init);
}

uint32_t write_shaped_parameter(struct model_writer *writer, const char *name, uint32_t rank,
                                const uint64_t *dims, struct init init)
{
    struct model *model = writer->model;
    uint32_t id;

    if (writer->pass != NULL) {
        return writer->pass->updated[writer->pass->parameters++];
    }
    id = build_tensor(writer->builder, name, DTYPE_F32, ROLE_STATE, rank, dims);

    if (!builder_failed(writer->builder)) {
        build_init(writer->builder, id, init);
        append(writer, &model->parameters, &model->parameter_count, &writer->parameter_room, id);
    }
    return id;
}

void write_scope(struct model_writer *writer, const char *scope)
{
    (void)snprintf(writer->scope, sizeof(writer->scope), "%s", scope);
    build_scope(writer->builder, writer->scope);
}

uint32_t write_shaped_frozen(struct model_writer *writer, const char *name, enum dtype dtype,
                             uint32_t rank, const uint64_t *dims)
{
    struct model *model = writer->model;
    uint32_t id;

    if (writer->pass != NULL) {
        return model->frozen[writer->pass->frozen++];
    }
    id = build_tensor(writer->builder, name, dtype, ROLE_DATA, rank, dims);
    if (!builder_failed(writer->builder)) {
        append(writer, &model->frozen, &model->frozen_count, &writer->frozen_room, id);
    }
    return id;
}

uint32_t write_frozen(struct model_writer *writer, const char *name, uint64_t rows,
                      uint64_t columns)
{
    const struct lora *lora = &writer->options->lora;
    uint64_t dims[2] = {rows, columns};
    char whole[TENSOR_NAME_MAX + 1];
    enum dtype dtype = DTYPE_F32;
    const char *named;
    uint32_t id;

    if (writer->pass != NULL) {
        return writer->model->frozen[writer->pass->frozen++];
    }
    if (writer->reference != NULL && lora->rank != 0) {
        return writer->model->frozen[writer->reference->frozen++];
    }
    (void)snprintf(whole, sizeof(whole), "%s%s%s", writer->scope,
                   writer->scope[0] == '\0' ? "" : ".", name);
    named = lora->find(&dtype, lora->files, whole);
    build_scope(writer->builder, "");
    id = write_shaped_frozen(writer, named, dtype, columns == 0 ? 1 : 2, dims);
    build_scope(writer->builder, writer->scope);
    return id;
}

uint32_t write_constant(struct model_writer *writer, const char *name, enum dtype dtype,
                        uint64_t rows, uint64_t columns, void *bytes)
{
    uint64_t dims[2] = {rows, columns};
    struct model *model = writer->model;
    uint32_t id;
    void *larger;

    if (writer->pass != NULL || writer->reference != NULL) {
        uint32_t *at =
            writer->pass != NULL ? &writer->pass->constants : &writer->reference->constants;

        free(bytes);
        return model->constants[(*at)++].tensor;
    }
    id = build_tensor(writer->builder, name, dtype, ROLE_CONSTANT, 2, dims);
    larger =
        realloc(model->constants, ((size_t)model->constant_count + 1) * sizeof(*model->constants));

    if (larger == NULL || bytes == NULL) {
        builder_fail(writer->builder, STATUS_NO_MEMORY, "no memory for the constant '%s'", name);
        free(bytes);
        if (larger != NULL) {
            model->constants = larger;
        }
        return 0;
    }
    model->constants = larger;
    model->constants[model->constant_count++] = (struct model_constant){id, bytes};
    return id;
}

/* ---- what a calibration chose ------------------------------------------- */

/* Written where it is first needed. Names of a calibration are whole. */
static struct shifts shift_of(struct model_writer *writer, uint32_t number)
{
    const struct calibrated_shift *shift = &writer->options->calibration->shifts[number];
    struct shifts *made = &writer->shifts[number];

    if (made->down == SHIFT_NONE) {
        int16_t *c = malloc((size_t)shift->count * sizeof(*c));

        if (c != NULL) {
            memcpy(c, shift->c, (size_t)shift->count * sizeof(*c));
        }
        build_scope(writer->builder, "");
        *made = build_equilibrate(
            writer->builder, shift->count,
            write_constant(writer, shift->name, DTYPE_I16, shift->count, 1, c), SHIFT_NONE);
        build_scope(writer->builder, writer->scope);
    }
    return *made;
}

static struct product_choice choose_product(void *context, uint32_t number)
{
    struct model_writer *writer = context;
    const struct calibration *calibration = writer->options->calibration;
    struct product_choice choice = {0, SHIFTS_NONE};

    number -= writer->first_product;
    if (number < calibration->product_count) {
        const struct calibrated_product *product = &calibration->products[number];

        choice.bits = product->bits;
        if (product->shift != CALIBRATION_NONE) {
            choice.shifts = shift_of(writer, product->shift);
        }
    }
    return choice;
}

void write_calibrated(struct model_writer *writer)
{
    const struct calibration *calibration = writer->options->calibration;

    if (calibration == NULL || calibration->product_count == 0) {
        return;
    }
    writer->shifts = malloc(((size_t)calibration->shift_count + 1) * sizeof(*writer->shifts));
    if (writer->shifts == NULL) {
        builder_fail(writer->builder, STATUS_NO_MEMORY, "no memory for a model");
        return;
    }
    write_calibrated_pass(writer);
    builder_choose(writer->builder, choose_product, writer);
}

void write_calibrated_pass(struct model_writer *writer)
{
    writer->first_product = writer->builder->product_count;
    for (uint32_t i = 0; writer->shifts != NULL && i < writer->options->calibration->shift_count;
         i++) {
        writer->shifts[i] = SHIFTS_NONE;
    }
}

/* ---- batches ------------------------------------------------------------ */

/* Everything from here to the gradients is done for each micro-batch. */
static void begin_batches(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    uint32_t times = options->evaluation ? 1 : options->accumulate;

    if (writer->pass != NULL) {
        return;
    }
    build_repeat(writer->builder, times, options->group == 0 ? times : options->group);
}

bool write_repeats(const struct model_writer *writer)
{
    return writer->options->accumulate > 1 && !writer->options->evaluation;
}

/* What batches are drawn by: the step, or the micro-batch. */
static uint32_t counter_of(struct model_writer *writer)
{
    return writer->pass != NULL ? writer->pass->counter : build_counter(writer->builder);
}

/* A data tensor; of a further pass the one of held-out data, which the first one of them makes. */
static uint32_t write_data(struct model_writer *writer, uint32_t *id, uint32_t *held_out,
                           const char *name, const struct tensor *like)
{
    char scoped[TENSOR_NAME_MAX + 1];
    bool beside = writer->pass != NULL;
    uint32_t *made = beside ? held_out : id;

    if (beside && *held_out != TENSOR_NONE) {
        return *held_out;
    }
    (void)snprintf(scoped, sizeof(scoped), "%s%s", beside ? "held_out." : "", name);
    *made = build_tensor(writer->builder, scoped, like->dtype, ROLE_DATA, like->rank, like->dims);
    return *made;
}

static void seed_attributes(struct model_writer *writer, struct op *op, uint32_t stream)
{
    op_attribute(op, stream);
    op_attribute(op, writer->options->seed & UINT32_MAX);
    op_attribute(op, writer->options->seed >> 32);
}

/* Sequences of a data tensor, drawn by the next stream, and what stands one place ahead. */
static void draw_tokens(struct model_writer *writer, uint32_t data, uint32_t *tokens,
                        uint32_t *targets)
{
    const struct model_options *options = writer->options;
    struct output_shape shape = shape_matrix(DTYPE_U32, options->batch, options->length);
    struct output_shape shapes[2] = {shape, shape};
    uint32_t inputs[2] = {data, counter_of(writer)};
    struct op op = op_begin(OP_BATCH_TOKENS, 2, inputs);

    op_attribute(&op, options->batch);
    op_attribute(&op, options->length);
    seed_attributes(writer, &op, writer->stream);
    op.output_count = 2;
    build_op(writer->builder, &op, shapes);
    *tokens = op.outputs[0];
    *targets = op.outputs[1];
}

/* Rows of a data tensor, from the place that stands so far ahead; what stands past a row's end.
 * Those of training are drawn by the next stream, others are taken in their order. */
static uint32_t draw_rows(struct model_writer *writer, uint32_t data, uint32_t ahead, uint32_t past)
{
    const struct model_options *options = writer->options;
    struct output_shape shape = shape_matrix(DTYPE_U32, options->batch, options->length);
    uint32_t inputs[2] = {data, counter_of(writer)};
    struct op op = op_begin(OP_BATCH_ROWS, 2, inputs);

    op_attribute(&op, options->batch);
    op_attribute(&op, options->length);
    seed_attributes(writer, &op, writer->stream);
    op_attribute(&op, options->preference == 0.0 ? 1 : 2);
    op_attribute(&op, ahead);
    op_attribute(&op, past);
    op_attribute(&op, writer->pass == NULL && !options->evaluation);
    op.output_count = 1;
    build_op(writer->builder, &op, &shape);
    return op.outputs[0];
}

/* Tokens, targets, mask and reach: four draws of the same rows. */
static void write_packed_batch(struct model_writer *writer, uint32_t *tokens, uint32_t *targets)
{
    const struct model_options *options = writer->options;
    struct model *model = writer->model;
    struct tensor like = {
        .dtype = options->data_dtype, .rank = 2, .dims = {options->data_count, options->length}};
    uint32_t data = write_data(writer, &model->data, &model->held_out, "tokens", &like);

    like.dtype = DTYPE_U8;
    uint32_t mask = write_data(writer, &model->mask, &model->held_out_mask, "mask", &like);

    like.dtype = options->reach_dtype;
    uint32_t reach = write_data(writer, &model->reach, &model->held_out_reach, "reach", &like);

    begin_batches(writer);
    *tokens = draw_rows(writer, data, 0, 0);
    *targets = draw_rows(writer, data, 1, TARGET_IGNORED);
    writer->mask = draw_rows(writer, mask, 1, 0);
    writer->reach = draw_rows(writer, reach, 0, 0);
    writer->tokens = *tokens;
    writer->stream++;
}

void write_token_batch(struct model_writer *writer, uint32_t *tokens, uint32_t *targets)
{
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint64_t dims[2] = {options->batch, options->length};

    if (options->inference) {
        *tokens = build_tensor(builder, "tokens", DTYPE_U32, ROLE_INPUT, 2, dims);
        *targets = TENSOR_NONE;
        writer->model->input = *tokens;
        if (options->decoding != 0) { /* learned positions follow it as they follow a reach */
            writer->reach = build_tensor(builder, "places", DTYPE_U32, ROLE_INPUT, 2, dims);
            writer->model->places = writer->reach;
        }
        return;
    }
    if (options->receipt != NULL) {
        *tokens = write_constant(writer, "tokens", DTYPE_U32, 1, options->length,
                                 receipt_row_tokens(options->receipt));
        writer->tokens = *tokens;
        *targets = TENSOR_NONE;
        return;
    }
    if (writer->reference != NULL) {
        *tokens = writer->reference->tokens;
        *targets = writer->reference->targets;
        return;
    }
    if (options->packed) {
        write_packed_batch(writer, tokens, targets);
        return;
    }
    const struct tensor like = {
        .dtype = options->data_dtype, .rank = 1, .dims = {options->data_count}};
    uint32_t data =
        write_data(writer, &writer->model->data, &writer->model->held_out, "data", &like);
    if (options->masked) {
        writer->model->mask =
            build_tensor(builder, "mask", DTYPE_U8, ROLE_DATA, 1, &options->data_count);
    }
    begin_batches(writer);
    draw_tokens(writer, data, tokens, targets);
    if (options->masked) { /* the same draw: the targets' places */
        uint32_t places;

        draw_tokens(writer, writer->model->mask, &places, &writer->mask);
    }
    writer->stream++;
}

void write_sample_batch(struct model_writer *writer, uint32_t *x, uint32_t *labels, uint64_t width)
{
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint64_t dims[2] = {options->batch, width};
    uint64_t samples[TENSOR_RANK_MAX] = {options->data_count, width};
    uint32_t rank = options->sample_rank == 0 ? 2 : 1 + options->sample_rank;
    struct output_shape shapes[2] = {shape_matrix(DTYPE_F32, options->batch, width),
                                     shape_vector(DTYPE_U32, options->batch)};

    if (options->inference) {
        *x = build_tensor(builder, "samples", DTYPE_F32, ROLE_INPUT, 2, dims);
        *labels = TENSOR_NONE;
        writer->model->input = *x;
        return;
    }
    for (uint32_t i = 0; i < options->sample_rank; i++) {
        samples[1 + i] = options->sample_dims[i];
    }
    struct tensor like = {.dtype = options->data_dtype, .rank = rank};
    const struct tensor label = {.dtype = DTYPE_U8, .rank = 1, .dims = {options->data_count}};
    struct model *model = writer->model;

    memcpy(like.dims, samples, sizeof(samples));
    uint32_t data = write_data(writer, &model->data, &model->held_out, "data", &like);
    uint32_t answers =
        write_data(writer, &model->labels, &model->held_out_labels, "labels", &label);
    begin_batches(writer);
    uint32_t inputs[3] = {data, answers, counter_of(writer)};
    struct op op = op_begin(OP_BATCH_SAMPLES, 3, inputs);
    op_attribute(&op, options->batch);
    op_attribute(&op, width);
    seed_attributes(writer, &op, writer->stream++);
    op_attribute_float(&op, options->data_dtype == DTYPE_U8 ? 1.0f / 255.0f : 1.0f);
    op.output_count = 2;
    build_op(builder, &op, shapes);
    *x = op.outputs[0];
    *labels = op.outputs[1];
}

uint32_t write_dropout(struct model_writer *writer, uint32_t x)
{
    const struct model_options *options = writer->options;

    if (options->inference || options->evaluation || options->dropout == 0.0 ||
        writer->reference != NULL) {
        return x;
    }
    return build_dropout(writer->builder, x, options->dropout, writer->stream++, options->seed);
}

uint32_t write_token_rows(struct model_writer *writer, uint32_t table, uint32_t tokens)
{
    static const uint64_t one[1] = {1};
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint32_t x = build_gather(builder, table, tokens);

    if (builder_failed(builder) || options->padding == 0 || options->inference ||
        options->evaluation || writer->reference != NULL || writer->pass != NULL ||
        builder_tensor(builder, table)->role == ROLE_DATA) {
        return x;
    }
    const struct tensor shape = *builder_tensor(builder, tokens);
    const uint64_t column[3] = {shape.dims[0], shape.dims[1], 1};
    uint32_t padding = build_fill(builder, (float)(options->padding - 1), 1, one);
    uint32_t is =
        build_binary(builder, BINARY_EQUAL, build_cast(builder, tokens, DTYPE_F32), padding);

    return build_select(builder, build_reshape(builder, is, 3, column), build_stop(builder, x), x);
}

/* ---- attention ---------------------------------------------------------- */

/*
 * Heads are columns side by side, so a head is a view and no data moves. The query heads that share
 * a key head are rows of one product: row (group, t) of batch (b, key head).
 */
uint32_t write_attention(struct model_writer *writer, uint32_t q, uint32_t k, uint32_t v,
                         uint64_t heads, uint64_t kv_heads, double scale, double cap)
{
    struct builder *builder = writer->builder;
    const struct tensor shape = *builder_tensor(builder, q);
    uint64_t batch = shape.dims[0];
    uint64_t length = shape.dims[1];
    uint64_t wide = shape.dims[2];
    uint64_t d = wide / heads;
    uint64_t group = heads / kv_heads;
    uint64_t kv_wide = kv_heads * d;
    struct view q_rows = {{batch, kv_heads, group, length, 1, d},
                          {length * wide, group * d, d, wide, 0, 1}};
    struct view k_rows = {{batch, kv_heads, 1, length, 1, d},
                          {length * kv_wide, d, 0, kv_wide, 0, 1}};
    struct view v_columns = {{batch, kv_heads, 1, d, 1, length},
                             {length * kv_wide, d, 0, 1, 0, kv_wide}};
    uint64_t square = length * length;
    uint64_t score_strides[6] = {heads * square, group * square, square, length, 0, 1};
    uint64_t score_dims[4] = {batch, heads, length, length};
    struct view p_rows = {{batch, kv_heads, group, length, 1, length},
                          {heads * square, group * square, square, length, 0, 1}};
    uint64_t out_strides[6] = {length * wide, group * d, d, wide, 0, 1};
    uint32_t scores;
    uint32_t p;

    if (builder_failed(builder)) {
        return 0;
    }
    scores = build_contract(builder, q, &q_rows, k, &k_rows, score_strides, length, 4, score_dims);
    if (cap != 0.0) {
        scores = build_map(builder, MAP_TANH, build_scale(builder, scores, (float)(scale / cap)));
        scale = cap;
    }
    p = build_softmax(builder, scores, (float)scale, length, writer->reach);
    p = write_dropout(writer, p);
    return build_contract(builder, p, &p_rows, v, &v_columns, out_strides, 0, 3, shape.dims);
}

/* ---- the end ------------------------------------------------------------ */

uint32_t write_zeros(struct model_writer *writer, const char *name, const struct tensor *like)
{
    uint32_t id =
        build_tensor(writer->builder, name, DTYPE_F32, ROLE_STATE, like->rank, like->dims);

    build_init(writer->builder, id, (struct init){.kind = INIT_ZEROS});
    return id;
}

static void write_answers(struct model_writer *writer, uint32_t logits, uint32_t loss)
{
    struct builder *builder = writer->builder;
    const struct tensor answer = *builder_tensor(builder, logits);
    const struct tensor one = {.rank = 1, .dims = {1}, .count = 1};
    uint32_t answers = write_zeros(writer, "answers", &answer);
    uint32_t sum = write_zeros(writer, "loss_sum", &one);

    build_after(builder, answers, logits);
    build_after(builder, sum, build_add(builder, sum, loss, 1));
    writer->model->output = logits;
}

/* Names the gradients, and hands their sums on. */
static void accumulate(struct model_writer *writer, uint32_t *gradients, const uint32_t *parameters)
{
    struct builder *builder = writer->builder;
    char name[TENSOR_NAME_MAX + 8];

    for (uint32_t i = 0; i < writer->model->parameter_count && !builder_failed(builder); i++) {
        const char *parameter = builder_tensor(builder, parameters[i])->name;

        if (gradients[i] == TENSOR_NONE) {
            builder_fail(builder, STATUS_REFUSED, "no gradient reaches '%s'", parameter);
            return;
        }
        (void)snprintf(name, sizeof(name), "g.%s", parameter);
        gradients[i] = build_accumulated(builder, name, gradients[i]);
    }
}

/*
 * The loss of the step is the mean of the micro-batches', and so are the gradients. Under a mask it
 * is the mean over all targets of the step, however they are spread over micro-batches: sums are
 * divided by their number at the end.
 */
static void write_gradients(struct model_writer *writer, uint32_t *gradients,
                            const uint32_t *parameters, uint32_t loss)
{
    struct builder *builder = writer->builder;
    uint32_t count = writer->model->parameter_count;
    float share = 1.0f / (float)writer->options->accumulate;
    bool many = write_repeats(writer);
    bool sums = many && writer->mask != TENSOR_NONE;
    uint32_t marked = TENSOR_NONE;

    build_gradients(builder, gradients, many && !sums ? build_scale(builder, loss, share) : loss,
                    parameters, count);
    accumulate(writer, gradients, parameters);
    loss = build_accumulated(builder, "losses", loss);
    if (sums) {
        marked = build_accumulated(builder, "marked", build_marked(builder, writer->mask));
    }
    build_repeat_end(builder);
    if (sums) {
        uint32_t of_step = build_share_of(builder, marked);

        for (uint32_t i = 0; i < count && !builder_failed(builder); i++) {
            gradients[i] = build_mul(builder, gradients[i], of_step, 1);
        }
        loss = build_mul(builder, loss, of_step, 1);
    } else if (many) {
        loss = build_scale(builder, loss, share);
    }
    build_output(builder, "loss", loss);
    build_loss(builder, loss);
}

/* Where losses of micro-batches are sums over targets, a penalty counts once for each of them. */
static uint32_t write_penalty(struct model_writer *writer, uint32_t loss)
{
    uint32_t penalty = writer->penalty;

    if (penalty == TENSOR_NONE) {
        return loss;
    }
    if (write_repeats(writer) && writer->mask != TENSOR_NONE) {
        penalty =
            build_mul(writer->builder, penalty, build_marked(writer->builder, writer->mask), 1);
    }
    return build_add(writer->builder, loss, penalty, 1);
}

void write_end(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    struct builder *builder = writer->builder;
    struct model *model = writer->model;
    uint32_t loss;

    build_scope(builder, "");
    if (builder_failed(builder)) {
        return;
    }
    if (writer->pass != NULL) {
        write_held_out_end(writer, logits, targets);
        return;
    }
    if (writer->reference != NULL) {
        writer->reference->logits = logits;
        return;
    }
    if (writer->options->inference) {
        build_output(builder, "logits", logits);
        model->output = logits;
        return;
    }
    loss = write_loss(writer, logits, targets);
    if (writer->options->evaluation) {
        build_output(builder, "loss", loss);
        build_loss(builder, loss);
        if (!builder_failed(builder)) {
            write_answers(writer, logits, loss);
        }
        return;
    }
    write_training(writer, write_penalty(writer, loss));
}

void write_training(struct model_writer *writer, uint32_t loss)
{
    struct builder *builder = writer->builder;
    struct model *model = writer->model;
    uint32_t count = model->parameter_count;
    uint32_t *ids = NULL;

    if (builder_failed(builder)) {
        return;
    }
    ids = calloc((size_t)count * 2 + 1, sizeof(*ids));
    if (ids == NULL) {
        builder_fail(builder, STATUS_NO_MEMORY, "no memory for a model");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        ids[count + i] = model->parameters[i];
    }
    write_gradients(writer, ids, ids + count, loss);
    if (!builder_failed(builder)) {
        write_updates(writer, ids);
    }
    free(ids);
}
