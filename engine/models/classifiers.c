/* classifiers.c - the MLP and the small convolutional net. */
#include <stdio.h>

#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

/* The largest height, width and channel count that the operations over pictures take. */
#define SIDE_MAX 65535u

static uint32_t write_layer(struct model_writer *writer, const char *name, uint32_t x, uint64_t out,
                            uint64_t in)
{
    struct builder *builder = writer->builder;
    uint32_t weight;
    uint32_t bias;

    build_scope(builder, name);
    weight = write_parameter(writer, "weight", out, in,
                             init_normal(init_fan_in(in) * 1.4142135623730951));
    bias = write_parameter(writer, "bias", out, 0, INIT_AT_ZERO);
    return build_add(builder, build_linear(builder, x, weight), bias, 1);
}

static void require_picture(struct model_writer *writer)
{
    model_require(writer, writer->options->batch, "batch");
    model_require(writer, writer->options->image_height, "image-height");
    model_require(writer, writer->options->image_width, "image-width");
    model_require(writer, writer->options->channels, "channels");
    model_require(writer, writer->options->classes, "classes");
}

void write_mlp(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    uint64_t width = (uint64_t)options->image_height * options->image_width * options->channels;
    uint32_t x;
    uint32_t labels;

    require_picture(writer);
    model_require(writer, options->layers, "layers");
    model_require(writer, options->hidden, "hidden");
    write_sample_batch(writer, &x, &labels, width);
    for (uint32_t layer = 0; layer < options->layers && !builder_failed(writer->builder); layer++) {
        char name[24];

        (void)snprintf(name, sizeof(name), "layers.%u", layer);
        x = write_layer(writer, name, x, options->hidden, width);
        x = write_dropout(writer, build_map(writer->builder, MAP_RELU, x));
        width = options->hidden;
    }
    x = write_layer(writer, "head", x, options->classes, width);
    write_end(writer, x, labels);
}

/* 3x3 convolution, ReLU, 2x2 pool: (batch, high, wide, in) to (batch, high/2, wide/2, out). */
static uint32_t write_convolution(struct model_writer *writer, const char *name, uint32_t x,
                                  const uint64_t *size, uint64_t out, enum op_kind pool)
{
    struct builder *builder = writer->builder;
    int64_t image[IMAGE_ATTRIBUTES] = {(int64_t)size[0],
                                       (int64_t)size[1],
                                       (int64_t)size[2],
                                       (int64_t)size[3],
                                       3,
                                       3,
                                       1,
                                       1,
                                       1,
                                       1,
                                       1,
                                       1,
                                       1,
                                       1};
    int64_t window[MEAN_POOL_ATTRIBUTES] = {(int64_t)size[0],
                                            (int64_t)size[1],
                                            (int64_t)size[2],
                                            (int64_t)out,
                                            2,
                                            2,
                                            2,
                                            2,
                                            0,
                                            0,
                                            0,
                                            0,
                                            1,
                                            1};

    x = build_image_op(builder, OP_IM2COL, x, image);
    x = write_layer(writer, name, x, out, 9 * size[3]);
    x = build_map(builder, MAP_RELU, x);
    return build_image_op(builder, pool, x, window);
}

/* (batch, high, wide, channels) as (batch, high*wide*channels). */
static uint32_t write_flat(struct model_writer *writer, uint32_t x, uint64_t batch)
{
    struct output_shape shape =
        shape_matrix(DTYPE_F32, batch, builder_tensor(writer->builder, x)->count / batch);

    return build_expand(writer->builder, x, 1, shape.rank, shape.dims);
}

void write_convnet(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    uint64_t high = options->image_height;
    uint64_t wide = options->image_width;
    uint64_t first[4] = {options->batch, high, wide, options->channels};
    uint64_t second[4] = {options->batch, high / 2, wide / 2, options->hidden};
    uint64_t flat = (high / 2 / 2) * (wide / 2 / 2) * 2 * options->hidden;
    uint32_t x;
    uint32_t labels;

    require_picture(writer);
    model_require(writer, options->hidden, "hidden");
    model_require(writer, flat, "image-height and image-width of 4 or more, each");
    if (builder_failed(writer->builder)) {
        return;
    }
    write_sample_batch(writer, &x, &labels, high * wide * options->channels);
    x = write_convolution(writer, "conv.0", x, first, options->hidden, OP_MAX_POOL);
    x = write_convolution(writer, "conv.1", x, second, 2 * (uint64_t)options->hidden, OP_MEAN_POOL);
    x = write_dropout(writer, write_flat(writer, x, options->batch));
    x = write_layer(writer, "head", x, options->classes, flat);
    write_end(writer, x, labels);
}
