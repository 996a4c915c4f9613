/*
 * held_out.c - the figures of a model on held-out data, as a part of its tape.
 *
 * Behind the update the model is written once more for each batch, on the parameters that the
 * update made. The figures are states. Their next values are chosen: the new figure where the step
 * is due, by a constant with a row for each step, or else the old one. What only that choice reads
 * is needed in those steps alone, and machines leave it out in all others (engine/plan/lazy.h).
 */
#include <stdlib.h>

#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

/* 1 for each step after which the figures are due, the last one among them; else 0. */
static float *due_table(const struct model_options *options)
{
    float *table = calloc((size_t)options->steps + 1, sizeof(*table));

    for (uint32_t step = 0; table != NULL && step < options->steps; step++) {
        bool due = (step + 1) % options->held_out.every == 0 || step + 1 == options->steps;

        table[step] = due ? 1.0f : 0.0f;
    }
    return table;
}

/* The number that a batch is drawn by: it is the same in every step. */
static uint32_t write_counter(struct model_writer *writer, uint32_t number)
{
    struct op op = op_begin(OP_FILL, 0, NULL);
    struct output_shape shape = shape_vector(DTYPE_U32, 1);

    op_attribute(&op, number);
    op.output_count = 1;
    build_op(writer->builder, &op, &shape);
    return op.outputs[0];
}

static uint32_t add(struct model_writer *writer, uint32_t sum, uint32_t term)
{
    return sum == TENSOR_NONE ? term : build_add(writer->builder, sum, term, 1);
}

/* 1 where the largest of the logits is the target's, else 0. */
static uint32_t write_right(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    struct builder *builder = writer->builder;
    uint32_t answer = 0;

    (void)build_extreme(builder, REDUCE_MAX, logits, &answer);
    /* One after the other: compilers differ in the order of a call's arguments. */
    uint32_t wanted = build_cast(builder, targets, DTYPE_F32);
    uint32_t given = build_cast(builder, answer, DTYPE_F32);

    return build_binary(builder, BINARY_EQUAL, given, wanted);
}

/* Sums over the targets that the mask counts, and their number. */
static void write_packed_end(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    static const uint64_t one = 1;
    struct builder *builder = writer->builder;
    struct held_out_pass *pass = writer->pass;
    uint32_t share = build_fill(builder, 1.0f, 1, &one);

    pass->loss = add(writer, pass->loss,
                     build_cross_entropy_masked(builder, logits, targets, writer->mask, share));
    uint32_t right = write_right(writer, logits, targets);
    uint32_t none = build_fill(builder, 0.0f, 1, &one);

    right = build_select(builder, writer->mask, right, none);
    pass->accuracy = add(writer, pass->accuracy, build_marked(builder, right));
    pass->marked = add(writer, pass->marked, build_marked(builder, writer->mask));
}

void write_held_out_end(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    struct builder *builder = writer->builder;
    struct held_out_pass *pass = writer->pass;
    bool classifies = writer->options->kind == MODEL_MLP || writer->options->kind == MODEL_CONVNET;

    if (writer->options->packed) {
        write_packed_end(writer, logits, targets);
        return;
    }
    pass->loss = add(writer, pass->loss, build_cross_entropy(builder, logits, targets));
    if (classifies) {
        uint32_t right = write_right(writer, logits, targets);

        pass->accuracy = add(writer, pass->accuracy, build_mean(builder, right));
    }
}

void write_held_out_loss(struct model_writer *writer, uint32_t loss)
{
    writer->pass->loss = add(writer, writer->pass->loss, loss);
}

/* The state of that name: the mean over all batches, or over all targets, where it is due. */
static void write_figure(struct model_writer *writer, const char *name, uint32_t due, uint32_t sum,
                         uint32_t marked)
{
    static const struct tensor one = {.rank = 1, .dims = {1}, .count = 1};
    struct builder *builder = writer->builder;
    uint32_t figure = write_zeros(writer, name, &one);
    uint32_t mean = 0;

    if (writer->options->packed) {
        mean = build_mul(builder, sum, build_share_of(builder, marked), 1);
    } else {
        mean = build_scale(builder, sum, 1.0f / (float)writer->options->held_out.batches);
    }
    build_after(builder, figure, build_select(builder, due, mean, figure));
}

/* What the update made of each parameter. */
static uint32_t *find_updated(struct model_writer *writer)
{
    const struct model *model = writer->model;
    uint32_t *updated = calloc((size_t)model->parameter_count + 1, sizeof(*updated));

    if (updated == NULL) {
        builder_fail(writer->builder, STATUS_NO_MEMORY, "no memory for a model");
    }
    for (uint32_t i = 0; updated != NULL && i < model->parameter_count; i++) {
        updated[i] = builder_after(writer->builder, model->parameters[i]);
    }
    return updated;
}

void write_held_out(struct model_writer *writer, void (*write_model)(struct model_writer *))
{
    const struct model_options *options = writer->options;
    struct model_options held_out = *options;
    struct held_out_pass pass = {
        .loss = TENSOR_NONE, .accuracy = TENSOR_NONE, .marked = TENSOR_NONE};
    uint32_t due;

    if (builder_failed(writer->builder)) {
        return;
    }
    due = build_schedule(
        writer->builder,
        write_constant(writer, "held_out.due", DTYPE_F32, options->steps, 1, due_table(options)), 1,
        0);
    pass.counter = write_counter(writer, 0);
    pass.updated = find_updated(writer);
    held_out.dropout = held_out.lora.dropout = 0.0;
    held_out.masked = false;
    held_out.data_count = options->held_out.count;
    held_out.data_dtype = options->held_out.dtype;
    writer->options = &held_out;
    writer->mask = writer->reach = TENSOR_NONE;
    writer->pass = &pass;
    for (uint32_t i = 0; i < options->held_out.batches && !builder_failed(writer->builder); i++) {
        pass.parameters = pass.frozen = pass.constants = 0;
        if ((options->packed || options->graph != NULL) && i > 0) {
            pass.counter = write_counter(writer, i);
        }
        write_calibrated_pass(writer);
        write_model(writer);
    }
    writer->pass = NULL;
    if (!builder_failed(writer->builder)) {
        write_figure(writer, HELD_OUT_LOSS, due, pass.loss, pass.marked);
        if (pass.accuracy != TENSOR_NONE) {
            write_figure(writer, HELD_OUT_ACCURACY, due, pass.accuracy, pass.marked);
        }
    }
    writer->options = options;
    free(pass.updated);
}
