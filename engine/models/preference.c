/*
 * preference.c - the loss of preference pairs (DPO), as a part of a model's tape.
 *
 * Rows 2i and 2i+1 of a batch are a chosen and a rejected answer. The log-probability of a row is
 * the sum of -cross-entropy over the targets that its mask counts; c and r of the two. The
 * reference is the model without adapters, or, where all weights are trained, the model of weights
 * that are data: its forward pass is written once more, on the same rows, and no gradient passes
 * through it. With z = -beta * ((c - r) - (c_ref - r_ref)) the loss of a pair is softplus(z), and
 * that of a batch the mean over its pairs.
 */
#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

/* -log-probability of each row. */
static uint32_t write_row_losses(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    struct builder *builder = writer->builder;
    struct op ignored = op_begin(OP_FILL, 0, NULL);
    struct output_shape shape = shape_vector(DTYPE_U32, 1);

    op_attribute(&ignored, TARGET_IGNORED);
    ignored.output_count = 1;
    build_op(builder, &ignored, &shape);
    targets = build_select(builder, writer->mask, targets, ignored.outputs[0]);
    return build_row_sum(builder, build_cross_entropy_rows(builder, logits, targets),
                         writer->options->length);
}

/* c - r of each pair: the difference of losses the other way round. */
static uint32_t write_differences(struct model_writer *writer, uint32_t losses)
{
    static const uint64_t chosen[1] = {0};
    static const uint64_t rejected[1] = {1};
    static const int64_t steps[1] = {2};
    const uint64_t pairs[1] = {writer->options->batch / 2};
    struct builder *builder = writer->builder;
    uint32_t r = build_slice(builder, losses, rejected, pairs, steps);
    uint32_t c = build_slice(builder, losses, chosen, pairs, steps);

    return build_binary(builder, BINARY_SUB, r, c);
}

/* max(x, 0) + log(1 + exp(-|x|)). Where all begins, x is 0: there max passes half of the gradient,
 * and the size of x none, so the slope is the true one, a half. */
static uint32_t write_softplus(struct builder *builder, uint32_t x)
{
    static const uint64_t one = 1;
    uint32_t size = build_map(builder, MAP_ABS, x);
    uint32_t small = build_map(builder, MAP_EXP, build_map(builder, MAP_NEG, size));
    uint32_t unit = build_fill(builder, 1.0f, 1, &one);
    uint32_t log = build_map(builder, MAP_LOG, build_binary(builder, BINARY_ADD, small, unit));
    uint32_t zero = build_fill(builder, 0.0f, 1, &one);

    return build_binary(builder, BINARY_ADD, build_binary(builder, BINARY_MAX, x, zero), log);
}

uint32_t write_preference_loss(struct model_writer *writer, uint32_t logits, uint32_t targets,
                               void (*write_model)(struct model_writer *))
{
    struct builder *builder = writer->builder;
    uint32_t own = write_differences(writer, write_row_losses(writer, logits, targets));
    struct reference_pass reference = {.tokens = writer->tokens, .targets = targets};
    uint32_t theirs;

    writer->reference = &reference;
    write_model(writer);
    writer->reference = NULL;
    if (builder_failed(builder)) {
        return 0;
    }
    theirs = write_differences(writer, write_row_losses(writer, reference.logits, targets));
    uint32_t margin = build_binary(builder, BINARY_SUB, own, build_stop(builder, theirs));

    writer->mask = TENSOR_NONE; /* of pairs each counts as much */
    return build_mean(
        builder,
        write_softplus(builder, build_scale(builder, margin, -(float)writer->options->preference)));
}
