/*
 * decoder.c - decoders of published language models: one composer, which a row of the table of
 * layouts leads (layouts.h). What else differs is a choice (model.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/adapters.h"
#include "engine/models/decoder_core.h"
#include "engine/ops/element.h"
#include "engine/tape/builder_core.h"

/* The longest sequence: the longest row of a softmax. */
#define LENGTH_MAX (1u << 20)
/* The most elements of a rotary table, which is part of the job. */
#define ROTARY_MAX (UINT64_C(1) << 28)

static struct decoder decoder_of(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    uint64_t width = options->width;
    struct decoder decoder = {
        .writer = writer,
        .builder = writer->builder,
        .options = options,
        .layout = options->layout,
        .heads = options->heads,
        .kv_heads = options->kv_heads == 0 ? options->heads : options->kv_heads,
        .head_width = options->head_width,
        .hidden = options->hidden,
    };

    if (decoder.layout == NULL) {
        decoder.layout = layout_find(model_kind_name(options->kind));
    }
    if (decoder.head_width == 0 && options->heads != 0) {
        decoder.head_width = width / options->heads;
    }
    if (decoder.hidden == 0) { /* 8/3 of the width, on a multiple of 32, where there is a gate */
        bool gated = decoder.layout->gate != NULL || decoder.layout->gate_up != NULL;

        decoder.hidden = gated ? (width * 8 / 3 + 31) / 32 * 32 : 4 * width;
    }
    decoder.turned = options->rotary_width == 0 ? decoder.head_width : options->rotary_width;
    return decoder;
}

/* The longest sequence: of a tape that decodes more than it takes at a time. */
static uint32_t sequence_length(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;

    return options->decoding == 0 ? options->length : options->decoding;
}

/* ---- checks ------------------------------------------------------------- */

static void check_sizes(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    struct model_writer *writer = decoder->writer;
    uint32_t length = sequence_length(decoder);
    uint32_t positions = options->positions == 0 ? length : options->positions;

    model_require(writer, options->batch, "batch");
    model_require(writer, options->length, "length");
    model_require(writer, options->vocabulary, "vocabulary");
    model_require(writer, options->layers, "layers");
    model_require(writer, options->heads, "heads");
    model_require(writer, options->width, "width");
    if (builder_failed(decoder->builder)) {
        return;
    }
    if (length > LENGTH_MAX) {
        builder_fail(decoder->builder, STATUS_USAGE, "sequences of %u tokens; at most %u", length,
                     LENGTH_MAX);
    } else if (options->head_width == 0 && options->width % options->heads != 0) {
        builder_fail(decoder->builder, STATUS_USAGE, "a width of %u is not a multiple of %u heads",
                     options->width, options->heads);
    } else if (positions < length || options->length > length) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "sequences of %u tokens need as many positions, not %u", length, positions);
    } else if (!(options->norm_epsilon >= 1e-12 && options->norm_epsilon <= 1.0)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a norm's epsilon of %g; it must be from 1e-12 to 1", options->norm_epsilon);
    }
}

static void check_scaling(const struct decoder *decoder)
{
    const struct rotary_scaling *scaling = &decoder->options->rotary_scaling;
    bool changes_over = scaling->kind == ROTARY_LLAMA3 || scaling->kind == ROTARY_YARN;

    if (scaling->kind != ROTARY_PLAIN && scaling->kind != ROTARY_LONGROPE &&
        !(scaling->factor >= 1.0 && scaling->factor <= 1e6)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "angles are scaled by %g; it must be from 1 to 1e6", scaling->factor);
    } else if (changes_over && !(scaling->low > 0.0 && scaling->high > scaling->low &&
                                 scaling->high <= 1e6 && scaling->positions >= 1)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "angles are scaled between the frequencies %g and %g of %u positions: the "
                     "first must be above 0 and below the second",
                     scaling->low, scaling->high, scaling->positions);
    } else if (scaling->kind >= ROTARY_YARN &&
               !(scaling->amplitude > 0.0 && scaling->amplitude <= 1e3)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "turned numbers count %g times; it must be from above 0 to 1e3",
                     scaling->amplitude);
    } else if (scaling->kind == ROTARY_LONGROPE && 2 * scaling->pair_count != decoder->turned) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a rotation has a factor for each of %u pairs, and turns %llu numbers",
                     scaling->pair_count, (unsigned long long)decoder->turned);
    }
}

static void check_rotary(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    unsigned long long d = decoder->head_width;
    double local = options->rotary_local_base;

    check_scaling(decoder);
    if (!(options->rotary_base > 1.0 && options->rotary_base <= 1e12)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a rotary base of %g; it must be from above 1 to 1e12", options->rotary_base);
    } else if (!(local == 0.0 || (local > 1.0 && local <= 1e12))) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a local rotary base of %g; it must be from above 1 to 1e12", local);
    } else if (d > ROTARY_MAX / sequence_length(decoder)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a rotary table of %u tokens by %llu is too large", sequence_length(decoder),
                     d);
    } else if (d % 2 != 0 || decoder->heads % decoder->kv_heads != 0) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "%u heads in %llu groups of a width of %llu: heads must divide evenly and "
                     "their width be even",
                     options->heads, (unsigned long long)decoder->kv_heads, d);
    } else if (decoder->turned % 2 != 0 || decoder->turned > d) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a rotation turns %llu of a head's %llu numbers: it must be even, and no more",
                     (unsigned long long)decoder->turned, d);
    }
}

/* ---- parts -------------------------------------------------------------- */

/* A parameter "NAME.END"; under adapters, and where nothing is trained, a frozen weight, but of
 * what is trained whole. */
static uint32_t write_part(const struct decoder *decoder, const char *name, const char *end,
                           uint64_t rows, uint64_t columns, struct init init)
{
    const struct lora *lora = &decoder->options->lora;
    char whole[TENSOR_NAME_MAX + 1];

    (void)snprintf(whole, sizeof(whole), "%s.%s", name, end);
    return (lora->rank != 0 && !adapters_leave(decoder->options, name)) ||
                   decoder->options->decoding != 0 || decoder->options->receipt != NULL ||
                   decoder->writer->reference != NULL
               ? write_frozen(decoder->writer, whole, rows, columns)
               : write_parameter(decoder->writer, whole, rows, columns, init);
}

/* Only products and gathers read numbers of 16 bits as they are. */
uint32_t decoder_real(const struct decoder *decoder, uint32_t x)
{
    return builder_tensor(decoder->builder, x)->dtype == DTYPE_F32
               ? x
               : build_cast(decoder->builder, x, DTYPE_F32);
}

static uint32_t write_vector(const struct decoder *decoder, const char *name, const char *end,
                             uint64_t width, struct init init)
{
    return decoder_real(decoder, write_part(decoder, name, end, width, 0, init));
}

uint32_t decoder_matrix(const struct decoder *decoder, const char *name, uint64_t rows,
                        uint64_t columns, double deviation)
{
    return write_part(decoder, name, "weight", rows, columns, init_normal(deviation));
}

/* x times a factor; a factor of 0 stands for none. */
static uint32_t scale_numbers(const struct decoder *decoder, uint32_t x, double factor)
{
    return factor == 0.0 || factor == 1.0 ? x : build_scale(decoder->builder, x, (float)factor);
}

/* cap * tanh(x / cap); a cap of 0 stands for none. */
static uint32_t cap_numbers(const struct decoder *decoder, uint32_t x, double cap)
{
    if (cap == 0.0) {
        return x;
    }
    x = build_scale(decoder->builder, x, (float)(1.0 / cap));
    return build_scale(decoder->builder, build_map(decoder->builder, MAP_TANH, x), (float)cap);
}

/* Over the last axis of x; no name stands for no norm. */
static uint32_t write_norm(const struct decoder *decoder, const char *name, uint32_t x,
                           uint64_t width)
{
    static const uint64_t one = 1;
    float epsilon = (float)decoder->options->norm_epsilon;
    bool above = decoder->layout->gain_above_one;

    if (name == NULL) {
        return x;
    }
    uint32_t gain =
        write_vector(decoder, name, "weight", width, above ? INIT_AT_ZERO : INIT_AT_ONE);

    if (above) {
        gain = build_add(decoder->builder, gain, build_fill(decoder->builder, 1.0f, 1, &one), 1);
    }
    if (!decoder->layout->centred) {
        return build_rms_norm(decoder->builder, x, gain, epsilon);
    }
    return build_layer_norm(decoder->builder, x, gain,
                            write_vector(decoder, name, "bias", width, INIT_AT_ZERO), epsilon);
}

bool decoder_has_adapter(const struct decoder *decoder, const char *name, bool linear)
{
    return decoder->writer->reference == NULL && adapters_have(decoder->options, name, linear);
}

static uint32_t multiply_weight(const struct decoder *decoder, uint32_t x, uint32_t weight,
                                bool wide)
{
    return wide ? build_linear_wide(decoder->builder, x, weight)
                : build_linear(decoder->builder, x, weight);
}

uint32_t decoder_linear(const struct decoder *decoder, uint32_t x, const struct linear *linear)
{
    struct builder *builder = decoder->builder;
    bool in_first = decoder->layout->in_first;
    uint32_t weight = decoder_matrix(decoder, linear->name, in_first ? linear->in : linear->out,
                                     in_first ? linear->out : linear->in, linear->deviation);

    /* A bias is written before the product: parameters stand beside each other. */
    uint32_t bias = linear->bias
                        ? write_vector(decoder, linear->name, "bias", linear->out, INIT_AT_ZERO)
                        : TENSOR_NONE;
    uint32_t y = in_first ? build_linear_transposed(builder, x, weight)
                          : multiply_weight(decoder, x, weight, linear->wide);

    y = linear->bias ? build_add(builder, y, bias, 1) : y;
    if (!decoder_has_adapter(decoder, linear->name, true)) {
        return y;
    }
    return build_add(
        builder, y,
        write_adapter(decoder->writer, x,
                      &(struct adapted){linear->name, linear->in, linear->out, linear->wide}),
        1);
}

/* Layers that add to the residual stream start smaller in GPT-2's layout: there are two a layer. */
double decoder_last_deviation(const struct decoder *decoder)
{
    return decoder->layout->in_first ? DECODER_DEVIATION / sqrt(2.0 * decoder->options->layers)
                                     : DECODER_DEVIATION;
}

/* ---- attention ---------------------------------------------------------- */

static bool has_flag(const struct decoder *decoder, uint32_t layer, enum layer_flag flag)
{
    return layer < LAYERS_LISTED_MAX && (decoder->options->layer_flags[layer] & flag) != 0;
}

/* x (batch, length, heads * head_width), whose heads are turned, or their first elements. */
static uint32_t turn_heads(const struct decoder *decoder, uint32_t x, uint32_t table,
                           uint64_t heads)
{
    struct builder *builder = decoder->builder;
    const uint64_t length = decoder->options->length;
    const uint64_t width = decoder->head_width;
    const uint64_t turned = decoder->turned;
    const uint64_t rows = decoder->options->batch * length * heads;
    const bool halves = !decoder->layout->neighbours;
    const struct move first = {
        {1, 1, 1, (int64_t)rows, (int64_t)turned}, {0, 0, 0, (int64_t)width, 1}, 0};
    const uint64_t part[3] = {decoder->options->batch, length, heads * turned};
    const uint64_t whole[3] = {decoder->options->batch, length, heads * width};

    if (turned == width) {
        return build_rotary(builder, x, table, length, heads, halves);
    }
    uint32_t y = build_move(builder, x, &first, 3, part);

    y = build_rotary(builder, y, table, length, heads, halves);
    return build_place(builder, y, x, &first, 3, whole);
}

/* Queries or keys: normed where the model does so, and turned by their positions. */
static uint32_t place_heads(const struct decoder *decoder, uint32_t x, const char *norm,
                            uint64_t heads, uint32_t layer)
{
    const struct model_options *options = decoder->options;
    uint64_t wide = heads * decoder->head_width;
    uint64_t split[4] = {options->batch, options->length, heads, decoder->head_width};
    uint64_t joined[3] = {options->batch, options->length, wide};
    bool local = has_flag(decoder, layer, LAYER_LOCAL) && options->rotary_local_base != 0.0;

    if (options->head_norms && decoder->layout->wide_norms) {
        x = write_norm(decoder, norm, x, wide);
    } else if (options->head_norms) {
        x = build_reshape(decoder->builder, x, 4, split);
        x = write_norm(decoder, norm, x, decoder->head_width);
        x = build_reshape(decoder->builder, x, 3, joined);
    }
    if (decoder->layout->positions != NULL || has_flag(decoder, layer, LAYER_UNTURNED)) {
        return x;
    }
    return turn_heads(decoder, x, local ? decoder->rotary_local : decoder->rotary, heads);
}

/* What the scores of a layer are multiplied by. */
static double score_scale(const struct decoder *decoder, uint32_t layer)
{
    const struct model_options *options = decoder->options;
    double scale = options->raw_scores ? 1.0 : 1.0 / sqrt((double)decoder->head_width);

    scale = options->score_scale == 0.0 ? scale : options->score_scale;
    return options->layer_scores ? scale / ((double)layer + 1.0) : scale;
}

/* Queries, keys and values of one matrix. */
static void write_joined(const struct decoder *decoder, uint32_t qkv[3], uint32_t x,
                         struct linear *in)
{
    const struct model_options *options = decoder->options;
    const uint64_t widths[3] = {decoder->heads * decoder->head_width,
                                decoder->kv_heads * decoder->head_width,
                                decoder->kv_heads * decoder->head_width};
    const uint64_t by_head[4] = {options->batch, options->length, decoder->heads,
                                 3 * decoder->head_width};
    const uint64_t wide[3] = {options->batch, options->length, widths[0]};
    const bool heads = decoder->layout->order == JOINED_HEADS;

    in->name = decoder->layout->joined;
    in->out = widths[0] + widths[1] + widths[2];
    x = decoder_linear(decoder, x, in);
    if (!heads) {
        build_split_widths(decoder->builder, qkv, widths, 3, x);
        return;
    }
    x = build_reshape(decoder->builder, x, 4, by_head);
    build_split(decoder->builder, qkv, 3, x);
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = build_reshape(decoder->builder, qkv[i], 3, wide);
    }
}

static uint32_t attention(const struct decoder *decoder, uint32_t x, uint32_t layer)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;
    uint64_t width = options->width;
    uint64_t wide = decoder->heads * decoder->head_width;
    uint64_t narrow = decoder->kv_heads * decoder->head_width;
    struct linear in = {NULL, width, wide, DECODER_DEVIATION, options->qkv_bias, false};
    struct linear out = {layout->out,       wide, width, decoder_last_deviation(decoder),
                         options->out_bias, false};
    uint32_t qkv[3];

    if (layout->joined != NULL) {
        write_joined(decoder, qkv, x, &in);
    } else {
        in.name = layout->query;
        qkv[0] = decoder_linear(decoder, x, &in);
        in.out = narrow;
        in.name = layout->key;
        qkv[1] = decoder_linear(decoder, x, &in);
        in.name = layout->value;
        qkv[2] = decoder_linear(decoder, x, &in);
    }
    qkv[0] = place_heads(decoder, qkv[0], layout->query_norm, decoder->heads, layer);
    qkv[1] = place_heads(decoder, qkv[1], layout->key_norm, decoder->kv_heads, layer);
    x = options->decoding != 0
            ? write_attention_outside(decoder->writer, qkv, decoder->heads, decoder->kv_heads,
                                      score_scale(decoder, layer), options->score_cap)
            : write_attention(decoder->writer, qkv[0], qkv[1], qkv[2], decoder->heads,
                              decoder->kv_heads, score_scale(decoder, layer), options->score_cap);
    return decoder_linear(decoder, x, &out);
}

/* ---- feed-forward layers ------------------------------------------------ */

uint32_t decoder_activate(const struct decoder *decoder, uint32_t x)
{
    switch (decoder->options->activation) {
    case ACTIVATION_SILU:
        return build_map(decoder->builder, MAP_SILU, x);
    case ACTIVATION_GELU:
        return build_map(decoder->builder, MAP_GELU_ERF, x);
    case ACTIVATION_RELU:
        return build_map(decoder->builder, MAP_RELU, x);
    case ACTIVATION_GELU_TANH:
    case ACTIVATION_COUNT:
        break;
    }
    return build_map(decoder->builder, MAP_GELU, x);
}

static uint32_t feed_forward(const struct decoder *decoder, uint32_t x)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;
    struct linear in = {layout->up,        options->width,    decoder->hidden,
                        DECODER_DEVIATION, options->mlp_bias, false};
    struct linear gate = in;
    struct linear out = {layout->down,      decoder->hidden,
                         options->width,    decoder_last_deviation(decoder),
                         options->mlp_bias, false};

    if (layout->router != NULL) {
        return decoder_experts(decoder, x);
    }
    if (layout->gate == NULL && layout->gate_up == NULL) {
        x = decoder_activate(decoder, decoder_linear(decoder, x, &in));
        return decoder_linear(decoder, x, &out);
    }
    uint32_t parts[2]; /* the gate, the layer up */

    if (layout->gate_up != NULL) {
        gate.name = layout->gate_up;
        gate.out = 2 * decoder->hidden;
        build_split(decoder->builder, parts, 2, decoder_linear(decoder, x, &gate));
    } else {
        gate.name = layout->gate;
        parts[0] = decoder_linear(decoder, x, &gate);
        parts[1] = decoder_linear(decoder, x, &in);
    }
    x = build_mul(decoder->builder, decoder_activate(decoder, parts[0]), parts[1], 1);
    return decoder_linear(decoder, x, &out);
}

/* ---- the whole ---------------------------------------------------------- */

/* The rows of the position table: the first `length`, or where each token stands in its example. */
static uint32_t learned_positions(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    const uint32_t first = decoder->layout->positions_first;
    uint32_t rows =
        first + (options->positions == 0 ? sequence_length(decoder) : options->positions);
    uint32_t table = decoder_matrix(decoder, decoder->layout->positions, rows, options->width,
                                    DECODER_DEVIATION);
    uint32_t *index;

    if (decoder->writer->reach != TENSOR_NONE && first != 0) {
        const uint64_t starts[2] = {first, 0};
        const uint64_t counts[2] = {rows - first, options->width};
        static const int64_t steps[2] = {1, 1};

        table = build_slice(decoder->builder, decoder_real(decoder, table), starts, counts, steps);
    }
    if (decoder->writer->reach != TENSOR_NONE) {
        return build_gather(decoder->builder, table, decoder->writer->reach);
    }
    if (rows == options->length) {
        return decoder_real(decoder, table);
    }
    index = calloc((size_t)options->length + 1, sizeof(*index));
    for (uint32_t t = 0; index != NULL && t < options->length; t++) {
        index[t] = first + t;
    }
    return build_gather(
        decoder->builder, table,
        write_constant(decoder->writer, "positions", DTYPE_U32, 1, options->length, index));
}

static uint32_t write_rotary(const struct decoder *decoder, const char *name, double base,
                             const struct rotary_scaling *scaling)
{
    const uint32_t length = sequence_length(decoder);
    uint32_t table = write_constant(decoder->writer, name, DTYPE_F32, length, decoder->turned,
                                    rotary_table(length, decoder->turned, base, scaling));

    return decoder->options->decoding == 0 ? table : write_rows_of_places(decoder->writer, table);
}

/* As transformers has it: the root of the width, in the type that holds the embedding. */
static double embedding_scale(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    float root = (float)sqrt((double)options->width);

    if (!decoder->layout->root_of_width) {
        return options->embedding_scale;
    }
    if (options->embedding_type == DTYPE_F16) {
        return (double)element_from_f16(element_to_f16(root));
    }
    return (double)(options->embedding_type == DTYPE_BF16
                        ? real_from_bits(element_to_bf16(root) << 16)
                        : root);
}

/* The rows of the embedding, with its adapter. */
static uint32_t gather_tokens(const struct decoder *decoder, uint32_t table, uint32_t tokens)
{
    uint32_t x = write_token_rows(decoder->writer, table, tokens);

    return decoder_has_adapter(decoder, decoder->layout->embedding, false)
               ? build_add(decoder->builder, x,
                           write_token_adapter(decoder->writer, decoder->layout, tokens), 1)
               : x;
}

/* What enters the first layer. *table is the embedding, which a head may share. */
static uint32_t embed(struct decoder *decoder, uint32_t *table, uint32_t tokens)
{
    static const struct rotary_scaling plain = {.kind = ROTARY_PLAIN};
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;
    uint32_t x;

    if (layout->positions == NULL) {
        decoder->rotary =
            write_rotary(decoder, "rotary", options->rotary_base, &options->rotary_scaling);
        if (options->rotary_local_base != 0.0) {
            decoder->rotary_local =
                write_rotary(decoder, "rotary_local", options->rotary_local_base, &plain);
        }
    }
    *table = decoder_matrix(decoder, layout->embedding, options->vocabulary, options->width,
                            DECODER_DEVIATION);
    if (layout->positions == NULL) {
        x = gather_tokens(decoder, *table, tokens);
        return scale_numbers(decoder, x, embedding_scale(decoder));
    }
    uint32_t positions = learned_positions(decoder);

    x = build_add(decoder->builder, gather_tokens(decoder, *table, tokens), positions, 1);
    return write_dropout(decoder->writer, x);
}

/* x, and what a half of a layer adds to it. */
static uint32_t add_to(const struct decoder *decoder, uint32_t x, uint32_t y)
{
    y = scale_numbers(decoder, write_dropout(decoder->writer, y), decoder->options->residual_scale);
    return build_add(decoder->builder, x, y, 1);
}

static uint32_t write_layer(const struct decoder *decoder, uint32_t x, uint32_t layer)
{
    const struct layout *layout = decoder->layout;
    uint64_t width = decoder->options->width;
    uint32_t normed = write_norm(decoder, layout->norm, x, width);
    uint32_t y = attention(decoder, normed, layer);

    y = write_norm(decoder, layout->after_attention, y, width);
    uint32_t after = add_to(decoder, x, y);

    if (!layout->parallel || decoder->options->sequential) {
        y = write_norm(decoder, layout->second_norm, after, width);
    } else { /* both halves may share a norm */
        y = layout->second_norm == NULL ? normed
                                        : write_norm(decoder, layout->second_norm, x, width);
    }
    y = write_norm(decoder, layout->after_feed_forward, feed_forward(decoder, y), width);
    return add_to(decoder, after, y);
}

/* The last norm, and the parameters of the head, which may share the embedding. */
static uint32_t begin_head(const struct decoder *decoder, struct decoder_head *head, uint32_t x,
                           uint32_t embedding)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;

    x = write_norm(decoder, layout->last_norm, x, options->width);
    head->weight = options->tied_head ? embedding
                                      : decoder_matrix(decoder, layout->head, options->vocabulary,
                                                       options->width, DECODER_DEVIATION);
    head->shift = layout->head_bias ? write_vector(decoder, layout->head, "bias",
                                                   options->vocabulary, INIT_AT_ZERO)
                                    : TENSOR_NONE;
    return x;
}

uint32_t decoder_logits(const struct decoder *decoder, uint32_t x, const struct decoder_head *head)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;
    uint32_t y = build_linear(decoder->builder, x, head->weight);

    y = head->shift == TENSOR_NONE ? y : build_add(decoder->builder, y, head->shift, 1);
    if (decoder_has_adapter(decoder, layout->head, false)) {
        const struct adapted adapted = {layout->head, options->width, options->vocabulary, false};

        y = build_add(decoder->builder, y, write_adapter(decoder->writer, x, &adapted), 1);
    }
    return cap_numbers(decoder, scale_numbers(decoder, y, options->logit_scale),
                       options->logit_cap);
}

void write_decoder(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    struct decoder decoder = decoder_of(writer);
    uint32_t tokens;
    uint32_t targets;
    uint32_t embedding;
    struct decoder_head head;

    check_sizes(&decoder);
    if (!builder_failed(writer->builder) && decoder.layout->positions == NULL) {
        check_rotary(&decoder);
    }
    if (!builder_failed(writer->builder) && options->lora.rank != 0) {
        adapters_check(writer, decoder.layout);
    }
    decoder_check_experts(&decoder);
    if (builder_failed(writer->builder)) {
        return;
    }
    write_token_batch(writer, &tokens, &targets);
    uint32_t x = embed(&decoder, &embedding, tokens);

    for (uint32_t layer = 0; layer < options->layers && !builder_failed(writer->builder); layer++) {
        char scope[MODEL_SCOPE_MAX];

        (void)snprintf(scope, sizeof(scope), decoder.layout->layer, layer);
        write_scope(writer, scope);
        x = write_layer(&decoder, x, layer);
    }
    write_scope(writer, "");
    writer->penalty = decoder_balance(&decoder);
    x = begin_head(&decoder, &head, x, embedding);
    if (options->receipt != NULL) {
        decoder_write_receipt(&decoder, x, &head);
        return;
    }
    write_end(writer, decoder_logits(&decoder, x, &head), targets);
}
