/* language.c - GPT-2 and a Llama-style decoder, with the names and layouts of published weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

#define GPT2_DEVIATION 0.02

/* The longest sequence: the longest row of a softmax. */
#define LENGTH_MAX (1u << 20)
/* The most elements of a rotary table, which is part of the job. */
#define ROTARY_MAX (UINT64_C(1) << 28)

static void require_language(struct model_writer *writer)
{
    const struct model_options *options = writer->options;

    model_require(writer, options->batch, "batch");
    model_require(writer, options->length, "length");
    model_require(writer, options->vocabulary, "vocabulary");
    model_require(writer, options->layers, "layers");
    model_require(writer, options->heads, "heads");
    model_require(writer, options->width, "width");
    if (options->length > LENGTH_MAX) {
        builder_fail(writer->builder, STATUS_USAGE, "sequences of %u tokens; at most %u",
                     options->length, LENGTH_MAX);
    }
    if (options->heads != 0 && options->width % options->heads != 0) {
        builder_fail(writer->builder, STATUS_USAGE, "a width of %u is not a multiple of %u heads",
                     options->width, options->heads);
    }
}

/* ---- GPT-2 -------------------------------------------------------------- */

static uint32_t gpt2_norm(struct model_writer *writer, const char *name, uint32_t x)
{
    char gain[32];
    char bias[32];

    (void)snprintf(gain, sizeof(gain), "%s.weight", name);
    (void)snprintf(bias, sizeof(bias), "%s.bias", name);
    uint32_t gain_id = write_parameter(writer, gain, writer->options->width, 0, INIT_AT_ONE);
    uint32_t bias_id = write_parameter(writer, bias, writer->options->width, 0, INIT_AT_ZERO);
    return build_layer_norm(writer->builder, x, gain_id, bias_id, 1e-5f);
}

/* The published layout of GPT-2's linear weights is (in, out). */
static uint32_t gpt2_linear(struct model_writer *writer, const char *name, uint32_t x, uint64_t in,
                            uint64_t out, double deviation)
{
    char weight[32];
    char bias[32];

    (void)snprintf(weight, sizeof(weight), "%s.weight", name);
    (void)snprintf(bias, sizeof(bias), "%s.bias", name);
    uint32_t weight_id = write_parameter(writer, weight, in, out, init_normal(deviation));
    uint32_t bias_id = write_parameter(writer, bias, out, 0, INIT_AT_ZERO);
    return build_add(writer->builder, build_linear_transposed(writer->builder, x, weight_id),
                     bias_id, 1);
}

static uint32_t gpt2_block(struct model_writer *writer, uint32_t x, uint32_t layer)
{
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint64_t width = options->width;
    uint64_t hidden = options->hidden == 0 ? 4 * width : options->hidden;
    /* Two layers of every block add to the residual stream, so their weights start smaller. */
    double last = GPT2_DEVIATION / sqrt(2.0 * options->layers);
    uint32_t qkv[3];
    uint32_t y;
    char scope[24];

    (void)snprintf(scope, sizeof(scope), "h.%u", layer);
    build_scope(builder, scope);
    y = gpt2_norm(writer, "ln_1", x);
    y = gpt2_linear(writer, "attn.c_attn", y, width, 3 * width, GPT2_DEVIATION);
    build_split(builder, qkv, 3, y);
    y = write_attention(writer, qkv[0], qkv[1], qkv[2], options->heads, options->heads);
    y = gpt2_linear(writer, "attn.c_proj", y, width, width, last);
    x = build_add(builder, x, write_dropout(writer, y), 1);
    y = gpt2_norm(writer, "ln_2", x);
    y = gpt2_linear(writer, "mlp.c_fc", y, width, hidden, GPT2_DEVIATION);
    y = build_unary(builder, OP_GELU, y);
    y = gpt2_linear(writer, "mlp.c_proj", y, hidden, width, last);
    return build_add(builder, x, write_dropout(writer, y), 1);
}

/* The first `length` rows of the position table. */
static uint32_t gpt2_positions(struct model_writer *writer, uint32_t table)
{
    const struct model_options *options = writer->options;
    uint32_t *index;

    if (options->positions == 0 || options->positions == options->length) {
        return table;
    }
    index = calloc((size_t)options->length + 1, sizeof(*index));
    for (uint32_t t = 0; index != NULL && t < options->length; t++) {
        index[t] = t;
    }
    return build_gather(writer->builder, table,
                        write_constant(writer, "positions", DTYPE_U32, 1, options->length, index));
}

void write_gpt2(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint32_t positions = options->positions == 0 ? options->length : options->positions;
    uint32_t tokens;
    uint32_t targets;

    require_language(writer);
    if (positions < options->length) {
        builder_fail(builder, STATUS_USAGE, "sequences of %u tokens need as many positions, not %u",
                     options->length, positions);
    }
    if (builder_failed(builder)) {
        return;
    }
    write_token_batch(writer, &tokens, &targets);
    uint32_t wte = write_parameter(writer, "wte.weight", options->vocabulary, options->width,
                                   init_normal(GPT2_DEVIATION));
    uint32_t wpe = write_parameter(writer, "wpe.weight", positions, options->width,
                                   init_normal(GPT2_DEVIATION));
    uint32_t x =
        build_add(builder, build_gather(builder, wte, tokens), gpt2_positions(writer, wpe), 1);
    x = write_dropout(writer, x);
    for (uint32_t layer = 0; layer < options->layers && !builder_failed(builder); layer++) {
        x = gpt2_block(writer, x, layer);
    }
    build_scope(builder, "");
    x = gpt2_norm(writer, "ln_f", x);
    write_end(writer, build_linear(builder, x, wte), targets);
}

/* ---- Llama -------------------------------------------------------------- */

static uint32_t llama_norm(struct model_writer *writer, const char *name, uint32_t x)
{
    uint32_t gain = write_parameter(writer, name, writer->options->width, 0, INIT_AT_ONE);

    return build_rms_norm(writer->builder, x, gain, (float)writer->options->norm_epsilon);
}

static uint32_t llama_linear(struct model_writer *writer, const char *name, uint32_t x,
                             uint64_t out, uint64_t in)
{
    return build_linear(writer->builder, x,
                        write_parameter(writer, name, out, in, init_normal(GPT2_DEVIATION)));
}

static uint32_t llama_attention(struct model_writer *writer, uint32_t x, uint32_t table)
{
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint64_t width = options->width;
    uint64_t d = width / options->heads;
    uint64_t kv_heads = options->kv_heads == 0 ? options->heads : options->kv_heads;
    uint32_t q = llama_linear(writer, "self_attn.q_proj.weight", x, width, width);
    uint32_t k = llama_linear(writer, "self_attn.k_proj.weight", x, kv_heads * d, width);
    uint32_t v = llama_linear(writer, "self_attn.v_proj.weight", x, kv_heads * d, width);

    q = build_rotary(builder, q, table, options->length, options->heads, true);
    k = build_rotary(builder, k, table, options->length, kv_heads, true);
    x = write_attention(writer, q, k, v, options->heads, kv_heads);
    return llama_linear(writer, "self_attn.o_proj.weight", x, width, width);
}

static uint32_t llama_feed_forward(struct model_writer *writer, uint32_t x)
{
    struct builder *builder = writer->builder;
    uint64_t width = writer->options->width;
    /* The usual 8/3 of the width, on a multiple of 32. */
    uint64_t hidden =
        writer->options->hidden == 0 ? (width * 8 / 3 + 31) / 32 * 32 : writer->options->hidden;
    uint32_t gate = llama_linear(writer, "mlp.gate_proj.weight", x, hidden, width);
    uint32_t up = llama_linear(writer, "mlp.up_proj.weight", x, hidden, width);

    x = build_mul(builder, build_unary(builder, OP_SILU, gate), up, 1);
    return llama_linear(writer, "mlp.down_proj.weight", x, width, hidden);
}

void write_llama(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    uint64_t kv_heads = options->kv_heads == 0 ? options->heads : options->kv_heads;
    uint32_t tokens;
    uint32_t targets;

    require_language(writer);
    if (builder_failed(builder)) {
        return;
    }
    if (!(options->rotary_base > 1.0 && options->rotary_base <= 1e12) ||
        !(options->norm_epsilon >= 1e-12 && options->norm_epsilon <= 1.0)) {
        builder_fail(
            builder, STATUS_USAGE,
            "a rotary base of %g and a norm's epsilon of %g; the base must be from above 1 "
            "to 1e12, the epsilon from 1e-12 to 1",
            options->rotary_base, options->norm_epsilon);
        return;
    }
    uint64_t d = options->width / options->heads;
    if (d * options->length > ROTARY_MAX) {
        builder_fail(builder, STATUS_USAGE, "a rotary table of %u tokens by %llu is too large",
                     options->length, (unsigned long long)d);
        return;
    }
    if (d % 2 != 0 || options->heads % kv_heads != 0) {
        builder_fail(builder, STATUS_USAGE,
                     "%u heads in %llu groups of a width of %llu: heads must divide evenly and "
                     "their width be even",
                     options->heads, (unsigned long long)kv_heads, (unsigned long long)d);
        return;
    }
    write_token_batch(writer, &tokens, &targets);
    uint32_t table = write_constant(writer, "rotary", DTYPE_F32, options->length, d,
                                    rotary_table(options->length, d, options->rotary_base));
    uint32_t x =
        build_gather(builder,
                     write_parameter(writer, "model.embed_tokens.weight", options->vocabulary,
                                     options->width, init_normal(GPT2_DEVIATION)),
                     tokens);
    for (uint32_t layer = 0; layer < options->layers && !builder_failed(builder); layer++) {
        char scope[28];

        (void)snprintf(scope, sizeof(scope), "model.layers.%u", layer);
        build_scope(builder, scope);
        uint32_t y = llama_norm(writer, "input_layernorm.weight", x);
        x = build_add(builder, x, write_dropout(writer, llama_attention(writer, y, table)), 1);
        y = llama_norm(writer, "post_attention_layernorm.weight", x);
        x = build_add(builder, x, write_dropout(writer, llama_feed_forward(writer, y)), 1);
    }
    build_scope(builder, "");
    x = llama_norm(writer, "model.norm.weight", x);
    write_end(writer,
              llama_linear(writer, "lm_head.weight", x, options->vocabulary, options->width),
              targets);
}
