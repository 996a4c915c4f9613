/*
 * build_normal.c - normalization over a batch, over groups and over instances; see builder.h.
 *
 * No kind of its own: groups that lie in one piece are rows of a layer norm, and statistics across
 * a batch are exact contractions. So gradients and rules are those of their parts.
 */
#include "engine/tape/builder_core.h"

/* Statistics keep more bits than products need: what they scale is often far from 0. */
#define STATISTICS_PRECISION ((struct precision){22, 0})

static uint64_t count_of(const struct builder *builder, uint32_t id)
{
    return builder_tensor(builder, id)->count;
}

/* The mean over all elements of each channel. */
static uint32_t build_channel_mean(struct builder *builder, uint32_t x, uint64_t inner,
                                   uint64_t channels)
{
    const struct precision precision = builder->precision;
    float share = (float)((double)channels / (double)count_of(builder, x));

    builder->precision = STATISTICS_PRECISION;
    uint32_t sum = build_reduce(builder, x, inner, channels);

    builder->precision = precision;
    return build_scale(builder, sum, share);
}

/* y[i] * gain[c] + bias[c] */
static uint32_t build_affine(struct builder *builder, uint32_t y, uint32_t gain, uint32_t bias,
                             uint64_t inner)
{
    return build_add(builder, build_mul(builder, y, gain, inner), bias, inner);
}

uint32_t build_batch_norm(struct builder *builder, uint32_t x, uint32_t gain, uint32_t bias,
                          uint64_t inner, float epsilon, uint32_t statistics[2])
{
    static const uint64_t one = 1;
    uint64_t channels = count_of(builder, gain);
    uint32_t mean = build_channel_mean(builder, x, inner, channels);
    uint32_t centred = build_add(builder, x, build_scale(builder, mean, -1.0f), inner);
    uint32_t square = build_mul(builder, centred, centred, 1);
    uint32_t variance = build_channel_mean(builder, square, inner, channels);
    uint32_t above = build_add(builder, variance, build_fill(builder, epsilon, 1, &one), 1);
    uint32_t rstd = build_map(builder, MAP_RSQRT, above);

    if (statistics != NULL) {
        statistics[0] = mean;
        statistics[1] = variance;
    }
    return build_affine(builder, build_mul(builder, centred, rstd, inner), gain, bias, inner);
}

uint32_t build_group_norm(struct builder *builder, uint32_t x, uint32_t gain, uint32_t bias,
                          uint64_t inner, uint64_t groups, float epsilon)
{
    uint64_t channels = count_of(builder, gain);
    uint64_t count = count_of(builder, x);
    uint64_t columns = groups == 0 ? 0 : channels / groups * inner;

    if (columns == 0 || channels % groups != 0 || count % (channels * inner) != 0) {
        builder_fail(builder, STATUS_USAGE,
                     "%llu elements are not whole pictures of %llu channels of %llu in %llu groups",
                     (unsigned long long)count, (unsigned long long)channels,
                     (unsigned long long)inner, (unsigned long long)groups);
        return 0;
    }
    uint64_t rows = count / columns;
    uint32_t inputs[3] = {x, build_fill(builder, 1.0f, 1, &columns),
                          build_fill(builder, 0.0f, 1, &columns)};
    struct op op = op_begin(OP_LAYER_NORM, 3, inputs);
    struct output_shape parts = shape_matrix(DTYPE_F32, rows, fold_chunks(columns));
    struct output_shape number = shape_vector(DTYPE_F32, rows);
    struct output_shape shapes[5] = {parts, number, parts, number, shape_like(builder, x)};

    op_attribute(&op, rows);
    op_attribute(&op, columns);
    op_attribute_float(&op, epsilon);
    op.output_count = 5;
    build_op(builder, &op, shapes);
    return build_affine(builder, op.outputs[4], gain, bias, inner);
}
