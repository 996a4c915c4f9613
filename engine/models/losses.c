/*
 * losses.c - the loss of a batch: the cross-entropy, and what a recipe adds to it.
 *
 * A row of logits x with the target t has the cross-entropy c = lse - x[t], where lse is the
 * logarithm of the sum of exp(x). So lse is c + x[t], of kinds that have gradients. A recipe's loss
 * of a row is
 *
 *     (1 - smoothing) * c + smoothing * (lse - mean of x) + z_loss * lse^2
 */
#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

static uint32_t write_number(struct builder *builder, float value)
{
    static const uint64_t one = 1;

    return build_fill(builder, value, 1, &one);
}

/* 0 of the type of targets. */
static uint32_t write_first_token(struct builder *builder)
{
    struct output_shape shape = shape_vector(DTYPE_U32, 1);
    struct op op = op_begin(OP_FILL, 0, NULL);

    op_attribute(&op, 0);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* The recipe's loss of each row, shaped as the targets. Every target is a token. */
static uint32_t write_rows(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    const struct recipe *recipe = &writer->options->recipe;
    struct builder *builder = writer->builder;
    const struct tensor shape = *builder_tensor(builder, logits);
    const uint64_t vocabulary = shape.rank == 0 ? 1 : shape.dims[shape.rank - 1];
    uint32_t chosen = build_gather_elements(builder, logits, targets);
    const struct tensor like = *builder_tensor(builder, chosen);
    uint32_t rows = build_reshape(builder, build_cross_entropy_rows(builder, logits, targets),
                                  like.rank, like.dims);
    uint32_t sums = build_add(builder, rows, chosen, 1); /* lse */

    if (recipe->smoothing > 0.0) {
        uint32_t mean = build_scale(builder, build_row_sum(builder, logits, vocabulary),
                                    (float)(-1.0 / (double)vocabulary));
        uint32_t spread = build_add(builder, sums, mean, 1);

        rows = build_add(builder, build_scale(builder, rows, (float)(1.0 - recipe->smoothing)),
                         build_scale(builder, spread, (float)recipe->smoothing), 1);
    }
    if (recipe->z_loss > 0.0) {
        rows = build_add(
            builder, rows,
            build_scale(builder, build_mul(builder, sums, sums, 1), (float)recipe->z_loss), 1);
    }
    return rows;
}

/* Of rows that a mask leaves out the target is nothing; here it is the first token, and then the
 * row counts +0. */
static uint32_t write_recipe_loss(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    struct builder *builder = writer->builder;
    uint32_t mask = writer->mask;

    if (mask == TENSOR_NONE) {
        return build_mean(builder, write_rows(writer, logits, targets));
    }
    targets = build_select(builder, mask, targets, write_first_token(builder));

    uint32_t rows = write_rows(writer, logits, targets);

    rows = build_select(builder, mask, rows, write_number(builder, 0.0f));
    rows = build_row_sum(builder, rows, builder_tensor(builder, rows)->count);
    return write_repeats(writer) ? rows : build_mul(builder, rows, build_share(builder, mask), 1);
}

uint32_t write_loss(struct model_writer *writer, uint32_t logits, uint32_t targets)
{
    const struct recipe *recipe = &writer->options->recipe;
    struct builder *builder = writer->builder;
    uint32_t share;

    if (!writer->options->evaluation && (recipe->smoothing > 0.0 || recipe->z_loss > 0.0)) {
        return builder_failed(builder) ? 0 : write_recipe_loss(writer, logits, targets);
    }
    if (writer->mask == TENSOR_NONE) {
        return build_cross_entropy(builder, logits, targets);
    }
    share =
        write_repeats(writer) ? write_number(builder, 1.0f) : build_share(builder, writer->mask);
    return build_cross_entropy_masked(builder, logits, targets, writer->mask, share);
}
