/*
 * decoder.c - decoders of published language models: one composer, and a table of what families
 * call their tensors and how they lay them out. What else differs is a choice (model.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

#define WEIGHT_DEVIATION 0.02

/* The longest sequence: the longest row of a softmax. */
#define LENGTH_MAX (1u << 20)
/* The most elements of a rotary table, which is part of the job. */
#define ROTARY_MAX (UINT64_C(1) << 28)

/* What is the same in all models of a layout. Names are without ".weight" and ".bias". */
struct layout {
    const char *embedding;
    const char *positions; /* a learned table; NULL: positions turn queries and keys */
    const char *layer;     /* the scope of layer %u */
    const char *norm;      /* before the attention */
    const char *joined;    /* query, key and value in one matrix; NULL: three */
    const char *query;
    const char *key;
    const char *value;
    const char *query_norm;
    const char *key_norm;
    const char *out;
    const char *second_norm; /* before the feed-forward layers */
    const char *gate;        /* NULL: none */
    const char *up;
    const char *down;
    const char *last_norm;
    const char *head;
    bool in_first; /* matrices are (in, out) */
    bool centred;  /* layer norms; else RMS norms */
};

static const struct layout gpt2_layout = {
    .embedding = "wte",
    .positions = "wpe",
    .layer = "h.%u",
    .norm = "ln_1",
    .joined = "attn.c_attn",
    .out = "attn.c_proj",
    .second_norm = "ln_2",
    .up = "mlp.c_fc",
    .down = "mlp.c_proj",
    .last_norm = "ln_f",
    .head = "lm_head",
    .in_first = true,
    .centred = true,
};

static const struct layout llama_layout = {
    .embedding = "model.embed_tokens",
    .layer = "model.layers.%u",
    .norm = "input_layernorm",
    .query = "self_attn.q_proj",
    .key = "self_attn.k_proj",
    .value = "self_attn.v_proj",
    .query_norm = "self_attn.q_norm",
    .key_norm = "self_attn.k_norm",
    .out = "self_attn.o_proj",
    .second_norm = "post_attention_layernorm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .last_norm = "model.norm",
    .head = "lm_head",
};

/* A model while it is written. */
struct decoder {
    struct model_writer *writer;
    struct builder *builder;
    const struct model_options *options;
    const struct layout *layout;
    uint64_t heads;
    uint64_t kv_heads;
    uint64_t head_width;
    uint64_t hidden;
    uint32_t rotary; /* the table of angles */
};

static struct decoder decoder_of(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    uint64_t width = options->width;
    struct decoder decoder = {
        .writer = writer,
        .builder = writer->builder,
        .options = options,
        .layout = options->kind == MODEL_GPT2 ? &gpt2_layout : &llama_layout,
        .heads = options->heads,
        .kv_heads = options->kv_heads == 0 ? options->heads : options->kv_heads,
        .head_width = options->head_width,
        .hidden = options->hidden,
    };

    if (decoder.head_width == 0 && options->heads != 0) {
        decoder.head_width = width / options->heads;
    }
    if (decoder.hidden == 0) { /* 8/3 of the width, on a multiple of 32, where there is a gate */
        decoder.hidden = decoder.layout->gate == NULL ? 4 * width : (width * 8 / 3 + 31) / 32 * 32;
    }
    return decoder;
}

/* ---- checks ------------------------------------------------------------- */

static void check_sizes(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    struct model_writer *writer = decoder->writer;
    uint32_t positions = options->positions == 0 ? options->length : options->positions;

    model_require(writer, options->batch, "batch");
    model_require(writer, options->length, "length");
    model_require(writer, options->vocabulary, "vocabulary");
    model_require(writer, options->layers, "layers");
    model_require(writer, options->heads, "heads");
    model_require(writer, options->width, "width");
    if (builder_failed(decoder->builder)) {
        return;
    }
    if (options->length > LENGTH_MAX) {
        builder_fail(decoder->builder, STATUS_USAGE, "sequences of %u tokens; at most %u",
                     options->length, LENGTH_MAX);
    } else if (options->head_width == 0 && options->width % options->heads != 0) {
        builder_fail(decoder->builder, STATUS_USAGE, "a width of %u is not a multiple of %u heads",
                     options->width, options->heads);
    } else if (positions < options->length) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "sequences of %u tokens need as many positions, not %u", options->length,
                     positions);
    } else if (!(options->norm_epsilon >= 1e-12 && options->norm_epsilon <= 1.0)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a norm's epsilon of %g; it must be from 1e-12 to 1", options->norm_epsilon);
    }
}

static void check_rotary(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    const struct rotary_scaling *scaling = &options->rotary_scaling;
    unsigned long long d = decoder->head_width;

    if (!(options->rotary_base > 1.0 && options->rotary_base <= 1e12)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a rotary base of %g; it must be from above 1 to 1e12", options->rotary_base);
    } else if (scaling->kind != ROTARY_PLAIN &&
               !(scaling->factor >= 1.0 && scaling->factor <= 1e6)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "angles are scaled by %g; it must be from 1 to 1e6", scaling->factor);
    } else if (scaling->kind == ROTARY_LLAMA3 &&
               !(scaling->low > 0.0 && scaling->high > scaling->low && scaling->high <= 1e6 &&
                 scaling->positions >= 1)) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "angles are scaled between the frequencies %g and %g of %u positions: the "
                     "first must be above 0 and below the second",
                     scaling->low, scaling->high, scaling->positions);
    } else if (d > ROTARY_MAX / options->length) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "a rotary table of %u tokens by %llu is too large", options->length, d);
    } else if (d % 2 != 0 || decoder->heads % decoder->kv_heads != 0) {
        builder_fail(decoder->builder, STATUS_USAGE,
                     "%u heads in %llu groups of a width of %llu: heads must divide evenly and "
                     "their width be even",
                     options->heads, (unsigned long long)decoder->kv_heads, d);
    }
}

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot == NULL ? name : dot + 1;
}

/* Each target must be a layer; the first that is none is named. */
static void check_targets(const struct decoder *decoder)
{
    const struct layout *layout = decoder->layout;
    const char *const names[] = {layout->joined, layout->query, layout->key, layout->value,
                                 layout->out,    layout->gate,  layout->up,  layout->down};
    const char *at = decoder->options->lora.targets;

    while (strcmp(at, LORA_ALL) != 0) {
        size_t length = strcspn(at, ",");
        bool found = false;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            const char *name = names[i] == NULL ? "" : last_part(names[i]);

            found =
                found || (length != 0 && strlen(name) == length && strncmp(name, at, length) == 0);
        }
        if (!found) {
            builder_fail(decoder->builder, STATUS_USAGE,
                         "no linear layer is called '%.*s'; there are %s", (int)length, at,
                         layout->joined != NULL
                             ? "c_attn, c_proj, c_fc"
                             : "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj");
            return;
        }
        if (at[length] == '\0') {
            return;
        }
        at += length + 1;
    }
}

/* ---- parts -------------------------------------------------------------- */

/* A parameter "NAME.END"; under adapters a frozen weight. */
static uint32_t write_part(const struct decoder *decoder, const char *name, const char *end,
                           uint64_t rows, uint64_t columns, struct init init)
{
    char whole[TENSOR_NAME_MAX + 1];

    (void)snprintf(whole, sizeof(whole), "%s.%s", name, end);
    return decoder->options->lora.rank != 0
               ? write_frozen(decoder->writer, whole, rows, columns)
               : write_parameter(decoder->writer, whole, rows, columns, init);
}

/* Only products and gathers read numbers of 16 bits as they are. */
static uint32_t as_real(const struct decoder *decoder, uint32_t x)
{
    return builder_tensor(decoder->builder, x)->dtype == DTYPE_F32
               ? x
               : build_cast(decoder->builder, x, DTYPE_F32);
}

static uint32_t write_vector(const struct decoder *decoder, const char *name, const char *end,
                             uint64_t width, struct init init)
{
    return as_real(decoder, write_part(decoder, name, end, width, 0, init));
}

static uint32_t write_matrix(const struct decoder *decoder, const char *name, uint64_t rows,
                             uint64_t columns, double deviation)
{
    return write_part(decoder, name, "weight", rows, columns, init_normal(deviation));
}

/* Over the last axis of x. */
static uint32_t write_norm(const struct decoder *decoder, const char *name, uint32_t x,
                           uint64_t width)
{
    float epsilon = (float)decoder->options->norm_epsilon;
    uint32_t gain = write_vector(decoder, name, "weight", width, INIT_AT_ONE);

    if (!decoder->layout->centred) {
        return build_rms_norm(decoder->builder, x, gain, epsilon);
    }
    return build_layer_norm(decoder->builder, x, gain,
                            write_vector(decoder, name, "bias", width, INIT_AT_ZERO), epsilon);
}

/* A linear layer from `in` to `out` numbers. Its weight is drawn with the deviation. */
struct linear {
    const char *name;
    uint64_t in;
    uint64_t out;
    double deviation;
    bool bias;
};

/* Is the word one of the list, which commas part? */
static bool is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* alpha / rank * B A x. */
static uint32_t write_adapter(const struct decoder *decoder, uint32_t x,
                              const struct linear *linear)
{
    const struct lora *lora = &decoder->options->lora;
    struct model_writer *writer = decoder->writer;
    struct init uniform = init_normal(init_fan_in(linear->in));
    char name[TENSOR_NAME_MAX + 1];

    uniform.kind = INIT_UNIFORM;
    (void)snprintf(name, sizeof(name), "%s.lora_A.weight", linear->name);
    uint32_t a = write_parameter(writer, name, lora->rank, linear->in, uniform);
    (void)snprintf(name, sizeof(name), "%s.lora_B.weight", linear->name);
    uint32_t b = write_parameter(writer, name, linear->out, lora->rank, INIT_AT_ZERO);

    if (lora->dropout > 0.0) {
        x = build_dropout(decoder->builder, x, lora->dropout, writer->stream++,
                          decoder->options->seed);
    }
    x = build_linear(decoder->builder, build_linear(decoder->builder, x, a), b);
    return build_scale(decoder->builder, x, (float)(lora->alpha / lora->rank));
}

static uint32_t write_linear(const struct decoder *decoder, uint32_t x, const struct linear *linear)
{
    struct builder *builder = decoder->builder;
    const struct lora *lora = &decoder->options->lora;
    bool in_first = decoder->layout->in_first;
    uint32_t weight = write_matrix(decoder, linear->name, in_first ? linear->in : linear->out,
                                   in_first ? linear->out : linear->in, linear->deviation);

    /* A bias is written before the product: parameters stand beside each other. */
    uint32_t bias = linear->bias
                        ? write_vector(decoder, linear->name, "bias", linear->out, INIT_AT_ZERO)
                        : TENSOR_NONE;
    uint32_t y =
        in_first ? build_linear_transposed(builder, x, weight) : build_linear(builder, x, weight);

    y = linear->bias ? build_add(builder, y, bias, 1) : y;
    if (lora->rank == 0 || (strcmp(lora->targets, LORA_ALL) != 0 &&
                            !is_listed(lora->targets, last_part(linear->name)))) {
        return y;
    }
    return build_add(builder, y, write_adapter(decoder, x, linear), 1);
}

/* Layers that add to the residual stream start smaller in GPT-2's layout: there are two a layer. */
static double last_deviation(const struct decoder *decoder)
{
    return decoder->layout->in_first ? WEIGHT_DEVIATION / sqrt(2.0 * decoder->options->layers)
                                     : WEIGHT_DEVIATION;
}

/* ---- attention ---------------------------------------------------------- */

/* Queries or keys: normed by head where the model does so, and turned by their positions. */
static uint32_t place_heads(const struct decoder *decoder, uint32_t x, const char *norm,
                            uint64_t heads)
{
    const struct model_options *options = decoder->options;
    uint64_t wide = heads * decoder->head_width;
    uint64_t split[4] = {options->batch, options->length, heads, decoder->head_width};
    uint64_t joined[3] = {options->batch, options->length, wide};

    if (options->head_norms) {
        x = build_reshape(decoder->builder, x, 4, split);
        x = write_norm(decoder, norm, x, decoder->head_width);
        x = build_reshape(decoder->builder, x, 3, joined);
    }
    if (decoder->layout->positions != NULL) {
        return x;
    }
    return build_rotary(decoder->builder, x, decoder->rotary, options->length, heads, true);
}

/* What the scores of a layer are multiplied by. */
static double score_scale(const struct decoder *decoder, uint32_t layer)
{
    const struct model_options *options = decoder->options;
    double scale = options->raw_scores ? 1.0 : 1.0 / sqrt((double)decoder->head_width);

    return options->layer_scores ? scale / ((double)layer + 1.0) : scale;
}

static uint32_t attention(const struct decoder *decoder, uint32_t x, uint32_t layer)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;
    uint64_t width = options->width;
    uint64_t wide = decoder->heads * decoder->head_width;
    uint64_t narrow = decoder->kv_heads * decoder->head_width;
    struct linear in = {NULL, width, wide, WEIGHT_DEVIATION, options->qkv_bias};
    struct linear out = {layout->out, wide, width, last_deviation(decoder), options->out_bias};
    uint32_t qkv[3];

    if (layout->joined != NULL) {
        in.name = layout->joined;
        in.out = 3 * wide;
        build_split(decoder->builder, qkv, 3, write_linear(decoder, x, &in));
    } else {
        in.name = layout->query;
        qkv[0] = write_linear(decoder, x, &in);
        in.out = narrow;
        in.name = layout->key;
        qkv[1] = write_linear(decoder, x, &in);
        in.name = layout->value;
        qkv[2] = write_linear(decoder, x, &in);
    }
    qkv[0] = place_heads(decoder, qkv[0], layout->query_norm, decoder->heads);
    qkv[1] = place_heads(decoder, qkv[1], layout->key_norm, decoder->kv_heads);
    x = write_attention(decoder->writer, qkv[0], qkv[1], qkv[2], decoder->heads, decoder->kv_heads,
                        score_scale(decoder, layer));
    return write_linear(decoder, x, &out);
}

/* ---- feed-forward layers ------------------------------------------------ */

static uint32_t activate(const struct decoder *decoder, uint32_t x)
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
    struct linear in = {layout->up, options->width, decoder->hidden, WEIGHT_DEVIATION,
                        options->mlp_bias};
    struct linear gate = in;
    struct linear out = {layout->down, decoder->hidden, options->width, last_deviation(decoder),
                         options->mlp_bias};

    if (layout->gate == NULL) {
        x = activate(decoder, write_linear(decoder, x, &in));
    } else {
        gate.name = layout->gate;
        uint32_t opened = write_linear(decoder, x, &gate);
        uint32_t up = write_linear(decoder, x, &in);

        x = build_mul(decoder->builder, activate(decoder, opened), up, 1);
    }
    return write_linear(decoder, x, &out);
}

/* ---- the whole ---------------------------------------------------------- */

/* The rows of the position table: the first `length`, or where each token stands in its example. */
static uint32_t learned_positions(const struct decoder *decoder)
{
    const struct model_options *options = decoder->options;
    uint32_t rows = options->positions == 0 ? options->length : options->positions;
    uint32_t table =
        write_matrix(decoder, decoder->layout->positions, rows, options->width, WEIGHT_DEVIATION);
    uint32_t *index;

    if (decoder->writer->reach != TENSOR_NONE) {
        return build_gather(decoder->builder, table, decoder->writer->reach);
    }
    if (rows == options->length) {
        return as_real(decoder, table);
    }
    index = calloc((size_t)options->length + 1, sizeof(*index));
    for (uint32_t t = 0; index != NULL && t < options->length; t++) {
        index[t] = t;
    }
    return build_gather(
        decoder->builder, table,
        write_constant(decoder->writer, "positions", DTYPE_U32, 1, options->length, index));
}

/* What enters the first layer. *table is the embedding, which a head may share. */
static uint32_t embed(struct decoder *decoder, uint32_t *table, uint32_t tokens)
{
    const struct model_options *options = decoder->options;
    const struct layout *layout = decoder->layout;

    if (layout->positions == NULL) {
        decoder->rotary = write_constant(
            decoder->writer, "rotary", DTYPE_F32, options->length, decoder->head_width,
            rotary_table(options->length, decoder->head_width, options->rotary_base,
                         &options->rotary_scaling));
    }
    *table = write_matrix(decoder, layout->embedding, options->vocabulary, options->width,
                          WEIGHT_DEVIATION);
    if (layout->positions == NULL) {
        return build_gather(decoder->builder, *table, tokens);
    }
    uint32_t positions = learned_positions(decoder);
    uint32_t x =
        build_add(decoder->builder, build_gather(decoder->builder, *table, tokens), positions, 1);

    return write_dropout(decoder->writer, x);
}

static uint32_t write_layer(const struct decoder *decoder, uint32_t x, uint32_t layer)
{
    uint64_t width = decoder->options->width;
    uint32_t y = attention(decoder, write_norm(decoder, decoder->layout->norm, x, width), layer);

    x = build_add(decoder->builder, x, write_dropout(decoder->writer, y), 1);
    y = feed_forward(decoder, write_norm(decoder, decoder->layout->second_norm, x, width));
    return build_add(decoder->builder, x, write_dropout(decoder->writer, y), 1);
}

void write_decoder(struct model_writer *writer)
{
    const struct model_options *options = writer->options;
    struct decoder decoder = decoder_of(writer);
    uint32_t tokens;
    uint32_t targets;
    uint32_t head;

    check_sizes(&decoder);
    if (!builder_failed(writer->builder) && decoder.layout->positions == NULL) {
        check_rotary(&decoder);
    }
    if (!builder_failed(writer->builder) && options->lora.rank != 0) {
        check_targets(&decoder);
    }
    if (builder_failed(writer->builder)) {
        return;
    }
    write_token_batch(writer, &tokens, &targets);
    uint32_t x = embed(&decoder, &head, tokens);

    for (uint32_t layer = 0; layer < options->layers && !builder_failed(writer->builder); layer++) {
        char scope[MODEL_SCOPE_MAX];

        (void)snprintf(scope, sizeof(scope), decoder.layout->layer, layer);
        write_scope(writer, scope);
        x = write_layer(&decoder, x, layer);
    }
    write_scope(writer, "");
    x = write_norm(&decoder, decoder.layout->last_norm, x, options->width);
    if (!options->tied_head) {
        head = write_matrix(&decoder, decoder.layout->head, options->vocabulary, options->width,
                            WEIGHT_DEVIATION);
    }
    write_end(writer, build_linear(writer->builder, x, head), targets);
}
