/* attend.c - see attend.h. */
#include "engine/decode/attend.h"

#include <omp.h>
#include <string.h>

#include "engine/ops/float_control.h"
#include "engine/ops/fold.h"
#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

/* Attention that reads fewer elements runs on one thread. */
#define SERIAL_ELEMENTS 32768

struct heads {
    size_t rows; /* tokens of the tape */
    size_t heads;
    size_t kv_heads;
    size_t width; /* of a head */
};

static struct heads heads_of(const struct token_tape *tape, const struct model_attention *attention)
{
    const struct tensor *query = &tape->model.tape->tensors[attention->query];

    return (struct heads){.rows = (size_t)query->dims[1],
                          .heads = attention->heads,
                          .kv_heads = attention->kv_heads,
                          .width = (size_t)(query->dims[2] / attention->heads)};
}

void attend_keep(const struct attend *attend, const struct kept_layer *layer,
                 const struct token_tape *tape, const struct model_attention *attention)
{
    const struct heads of = heads_of(tape, attention);
    const float *key = tape->memory[attention->key];
    const float *value = tape->memory[attention->value];

    for (size_t row = 0; row < of.rows; row++) {
        for (size_t head = 0; head < of.kv_heads; head++) {
            const size_t from = (row * of.kv_heads + head) * of.width;
            const size_t to = (head * attend->context + attend->before + row) * of.width;

            memcpy(layer->keys + to, key + from, of.width * sizeof(*key));
            memcpy(layer->values + to, value + from, of.width * sizeof(*value));
        }
    }
}

/* Scores become shares, which sum to one. */
static void softmax_of(float *scores, size_t count, const struct model_attention *attention,
                       const struct token_kernels *kernels)
{
    float scale = attention->scale;
    float maximum;
    float inverse;
    struct fold parts;

    if (attention->cap != 0.0f) {
        for (size_t t = 0; t < count; t++) {
            scores[t] = scalar_tanh(scores[t] * (scale / attention->cap));
        }
        scale = attention->cap;
    }
    maximum = scores[0] * scale;
    for (size_t t = 1; t < count; t++) {
        maximum = fold_maximum(maximum, scores[t] * scale);
    }
    kernels->exponentials(scores, count, scale, maximum);
    fold_init(&parts);
    for (size_t from = 0; from < count; from += FOLD_CHUNK) {
        const size_t to = count - from < FOLD_CHUNK ? count : from + FOLD_CHUNK;
        struct fold chunk;

        fold_init(&chunk);
        for (size_t t = from; t < to; t++) {
            fold_add(&chunk, scores[t]);
        }
        fold_add(&parts, fold_total(&chunk));
    }
    inverse = 1.0f / fold_total(&parts);
    for (size_t t = 0; t < count; t++) {
        scores[t] = scores[t] * inverse;
    }
}

/* One head of one token. */
static void attend_head(const struct attend *attend, const struct kept_layer *layer,
                        const struct token_tape *tape, const struct model_attention *attention,
                        size_t row, size_t head, float *scores)
{
    const struct heads of = heads_of(tape, attention);
    const struct token_kernels *kernels = attend->team->kernels;
    const size_t kv = head / (of.heads / of.kv_heads) * attend->context * of.width;
    const size_t at = (row * of.heads + head) * of.width;
    const size_t count = attend->before + row + 1;
    const struct token_product product = {.y = scores,
                                          .matrix = layer->keys + kv,
                                          .dtype = DTYPE_F32,
                                          .row_stride = of.width,
                                          .rows = count,
                                          .x = (const float *)tape->memory[attention->query] + at,
                                          .vectors = 1,
                                          .k = of.width};

    kernels->product(&product);
    softmax_of(scores, count, attention, kernels);
    kernels->weighted_sum((float *)tape->memory[attention->out] + at, layer->values + kv, scores,
                          count, of.width);
}

void attend_all(const struct attend *attend, const struct kept_layer *layer,
                struct token_tape *tape, const struct model_attention *attention)
{
    const struct heads of = heads_of(tape, attention);
    const size_t pieces = of.rows * of.heads;
    const size_t work = pieces * (attend->before + of.rows) * of.width;
    const int threads = work < SERIAL_ELEMENTS ? 1 : attend->team->thread_count;

#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (size_t piece = 0; piece < pieces; piece++) {
        const uint64_t control = float_control_take();
        float *scores = attend->scores + (size_t)omp_get_thread_num() * attend->context;

        attend_head(attend, layer, tape, attention, piece / of.heads, piece % of.heads, scores);
        float_control_give_back(control);
    }
}
