/*
 * decoding.c - what differs in a tape that goes on with a text: it has no attention of its own.
 *
 * Attention over keys and values that were kept reads a tensor that grows, and a tape has no such
 * tensor. So its result is an input, and the model says from which queries, keys and values it
 * follows.
 */
#include <stdlib.h>

#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

uint32_t write_attention_outside(struct model_writer *writer, const uint32_t qkv[3], uint64_t heads,
                                 uint64_t kv_heads, double scale, double cap)
{
    struct builder *builder = writer->builder;
    struct model *model = writer->model;
    const struct tensor shape = *builder_tensor(builder, qkv[0]);
    struct model_attention *larger;

    if (builder_failed(builder)) {
        return 0;
    }
    larger = realloc(model->attentions, (model->attention_count + 1) * sizeof(*larger));
    if (larger == NULL) {
        builder_fail(builder, STATUS_NO_MEMORY, "no memory for a model");
        return 0;
    }
    model->attentions = larger;
    uint32_t out =
        build_tensor(builder, "attention", DTYPE_F32, ROLE_INPUT, shape.rank, shape.dims);

    model->attentions[model->attention_count++] =
        (struct model_attention){.query = qkv[0],
                                 .key = qkv[1],
                                 .value = qkv[2],
                                 .out = out,
                                 .heads = (uint32_t)heads,
                                 .kv_heads = (uint32_t)kv_heads,
                                 .scale = (float)scale,
                                 .cap = (float)cap};
    return out;
}

uint32_t write_rows_of_places(struct model_writer *writer, uint32_t table)
{
    struct builder *builder = writer->builder;
    const uint64_t dims[2] = {writer->options->length, builder_tensor(builder, table)->dims[1]};

    return build_reshape(builder, build_gather(builder, table, writer->model->places), 2, dims);
}
