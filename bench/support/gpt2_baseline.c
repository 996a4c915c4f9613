/*
 * gpt2_baseline.c - see gpt2_baseline.h. The order of the layers; gpt2_layers_fastmath.c has the
 * loops.
 *
 * Parameters, gradients and moments are four blocks with the same layout, so that the norm and the
 * update are one pass each. Activations that the backward pass needs are kept; the others share
 * memory.
 */
#include "bench/support/gpt2_baseline.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/support/gpt2_layers.h"
#include "tests/support/numeric/model_state.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* A block of floats that is cut into pieces from its front; first measured, then allocated. */
struct block {
    float *floats;
    size_t used;
};

/* Offsets into the four blocks, or addresses of activations. */
struct norm_weights {
    size_t gain;
    size_t bias;
};

struct linear_weights {
    size_t weight; /* (in, out) */
    size_t bias;
};

struct layer_weights {
    struct norm_weights norm1;
    struct linear_weights qkv;
    struct linear_weights attended;
    struct norm_weights norm2;
    struct linear_weights up;
    struct linear_weights down;
};

struct norm_kept {
    float *y;
    float *mean;
    float *rstd;
};

struct layer_kept {
    float *x; /* what the layer was given */
    struct norm_kept norm1;
    float *qkv;
    float *p;
    float *attended;
    float *middle; /* x behind the attention */
    struct norm_kept norm2;
    float *up; /* before GELU */
    float *activated;
};

struct gpt2_baseline {
    const struct gpt2_case *one;
    struct gpt2_attention attention;
    int threads;
    size_t rows;
    size_t width;
    size_t hidden;
    size_t layer_count;
    size_t step;
    struct block parameters;
    struct block gradients;
    struct block moments;
    struct block squares;
    struct block kept;
    size_t table;
    size_t positions;
    struct norm_weights last;
    struct layer_weights *weights;
    struct layer_kept *layers;
    struct norm_kept last_kept;
    float *x_last;
    float *logits;
    float *dx;
    float *dy; /* of one layer's width */
    float *dwide;
    float *dqkv;
    float *scratch;
};

/* ---- memory ------------------------------------------------------------- */

static size_t cut(struct block *block, size_t count)
{
    size_t at = block->used;

    block->used += (count + 15) / 16 * 16;
    return at;
}

static float *cut_floats(struct block *block, size_t count)
{
    size_t at = cut(block, count);

    return block->floats == NULL ? NULL : block->floats + at;
}

/* Zeroed, and on large pages where the system has them: the same as ours gets. */
static bool allocate(struct block *block, size_t count)
{
    size_t size = (count * sizeof(float) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

    block->floats = aligned_alloc(HUGE_PAGE, size);
    block->used = 0;
    if (block->floats == NULL) {
        return false;
    }
    (void)madvise(block->floats, size, MADV_HUGEPAGE);
    memset(block->floats, 0, size);
    return true;
}

static struct norm_weights cut_norm(struct block *block, size_t width)
{
    struct norm_weights norm = {.gain = cut(block, width)};

    norm.bias = cut(block, width);
    return norm;
}

static struct linear_weights cut_linear(struct block *block, size_t in, size_t out)
{
    struct linear_weights linear = {.weight = cut(block, in * out)};

    linear.bias = cut(block, out);
    return linear;
}

/* Every piece in the order of the tape's parameters. */
static void lay_out_weights(struct gpt2_baseline *b, struct block *block)
{
    const struct model_options *options = &b->one->model.options;

    b->table = cut(block, options->vocabulary * b->width);
    b->positions = cut(block, options->positions * b->width);
    for (size_t i = 0; i < b->layer_count; i++) {
        struct layer_weights *layer = &b->weights[i];

        layer->norm1 = cut_norm(block, b->width);
        layer->qkv = cut_linear(block, b->width, 3 * b->width);
        layer->attended = cut_linear(block, b->width, b->width);
        layer->norm2 = cut_norm(block, b->width);
        layer->up = cut_linear(block, b->width, b->hidden);
        layer->down = cut_linear(block, b->hidden, b->width);
    }
    b->last = cut_norm(block, b->width);
}

static struct norm_kept cut_norm_kept(struct block *block, size_t rows, size_t width)
{
    struct norm_kept kept = {.y = cut_floats(block, rows * width)};

    kept.mean = cut_floats(block, rows);
    kept.rstd = cut_floats(block, rows);
    return kept;
}

static void lay_out_kept(struct gpt2_baseline *b, struct block *block)
{
    const struct model_options *options = &b->one->model.options;
    size_t rows = b->rows;
    size_t attend = gpt2_attend_scratch_size(&b->attention);
    size_t sums = gpt2_scratch_size(b->threads, b->hidden);

    for (size_t i = 0; i < b->layer_count; i++) {
        struct layer_kept *layer = &b->layers[i];

        layer->x = cut_floats(block, rows * b->width);
        layer->norm1 = cut_norm_kept(block, rows, b->width);
        layer->qkv = cut_floats(block, rows * 3 * b->width);
        layer->p = cut_floats(block, rows * options->heads * options->length);
        layer->attended = cut_floats(block, rows * b->width);
        layer->middle = cut_floats(block, rows * b->width);
        layer->norm2 = cut_norm_kept(block, rows, b->width);
        layer->up = cut_floats(block, rows * b->hidden);
        layer->activated = cut_floats(block, rows * b->hidden);
    }
    b->x_last = cut_floats(block, rows * b->width);
    b->last_kept = cut_norm_kept(block, rows, b->width);
    b->logits = cut_floats(block, rows * options->vocabulary);
    b->dx = cut_floats(block, rows * b->width);
    b->dy = cut_floats(block, rows * b->width);
    b->dwide = cut_floats(block, rows * b->hidden);
    b->dqkv = cut_floats(block, rows * 3 * b->width);
    b->scratch = cut_floats(block, attend > sums ? attend : sums);
}

/* The first state, tensor by tensor: the pieces were cut in the same order. */
static void read_first_state(struct gpt2_baseline *b)
{
    const struct model *model = &b->one->model;
    struct block walk = {.floats = b->parameters.floats};

    for (uint32_t i = 0; i < model->parameter_count; i++) {
        uint32_t id = model->parameters[i];

        model_first_state(cut_floats(&walk, model->tape->tensors[id].count), model, id);
    }
    assert(walk.used == b->parameters.used);
}

struct gpt2_baseline *gpt2_baseline_new(const struct gpt2_case *one, int threads)
{
    const struct model_options *options = &one->model.options;
    struct gpt2_baseline *b = calloc(1, sizeof(*b));
    bool fits;

    if (b == NULL) {
        return NULL;
    }
    b->one = one;
    b->threads = threads;
    b->rows = gpt2_case_rows(one);
    b->width = options->width;
    b->hidden = 4 * b->width;
    b->layer_count = options->layers;
    b->attention =
        (struct gpt2_attention){options->batch, options->length, options->heads, b->width, threads};
    b->weights = calloc(b->layer_count, sizeof(*b->weights));
    b->layers = calloc(b->layer_count, sizeof(*b->layers));
    fits = b->weights != NULL && b->layers != NULL;
    if (fits) {
        struct block measured = {0};

        lay_out_weights(b, &measured);
        fits = allocate(&b->parameters, measured.used) && allocate(&b->gradients, measured.used) &&
               allocate(&b->moments, measured.used) && allocate(&b->squares, measured.used);
        b->parameters.used = measured.used;
        measured = (struct block){0};
        lay_out_kept(b, &measured);
        fits = fits && allocate(&b->kept, measured.used);
    }
    if (!fits) {
        gpt2_baseline_free(b);
        return NULL;
    }
    lay_out_kept(b, &b->kept);
    read_first_state(b);
    return b;
}

void gpt2_baseline_free(struct gpt2_baseline *baseline)
{
    if (baseline == NULL) {
        return;
    }
    free(baseline->parameters.floats);
    free(baseline->gradients.floats);
    free(baseline->moments.floats);
    free(baseline->squares.floats);
    free(baseline->kept.floats);
    free(baseline->weights);
    free(baseline->layers);
    free(baseline);
}

/* ---- linear layers ------------------------------------------------------ */

/* y = x weight + y */
static void linear(const struct gpt2_baseline *b, float *y, const float *x,
                   const struct linear_weights *at, size_t in, size_t out, float beta)
{
    struct gpt2_product product = {.m = b->rows,
                                   .n = out,
                                   .k = in,
                                   .a = x,
                                   .b = b->parameters.floats + at->weight,
                                   .c = y,
                                   .beta = beta};

    gpt2_multiply(b->threads, &product);
}

/* dx = dy weight^T, dweight = x^T dy */
static void linear_backward(const struct gpt2_baseline *b, float *dx, const float *dy,
                            const float *x, const struct linear_weights *at, size_t in, size_t out)
{
    struct gpt2_product inputs = {.b_transposed = true,
                                  .m = b->rows,
                                  .n = in,
                                  .k = out,
                                  .a = dy,
                                  .b = b->parameters.floats + at->weight,
                                  .c = dx};
    struct gpt2_product weights = {.a_transposed = true,
                                   .m = in,
                                   .n = out,
                                   .k = b->rows,
                                   .a = x,
                                   .b = dy,
                                   .c = b->gradients.floats + at->weight};

    gpt2_multiply(b->threads, &weights);
    gpt2_multiply(b->threads, &inputs);
}

static void bias_backward(const struct gpt2_baseline *b, const float *dy,
                          const struct linear_weights *at, size_t out)
{
    gpt2_column_sums(b->threads, b->gradients.floats + at->bias, dy, b->rows, out);
}

static void norm(const struct gpt2_baseline *b, const struct norm_kept *kept, const float *x,
                 const struct norm_weights *at)
{
    const float *weights = b->parameters.floats;

    gpt2_norm(b->threads, kept->y, kept->mean, kept->rstd, x, weights + at->gain,
              weights + at->bias, b->rows, b->width);
}

static void norm_backward(const struct gpt2_baseline *b, const struct norm_kept *kept,
                          const float *x, const struct norm_weights *at, bool accumulate)
{
    gpt2_norm_backward(b->threads, b->dx, b->gradients.floats + at->gain,
                       b->gradients.floats + at->bias, b->scratch, b->dy, x, kept->mean, kept->rstd,
                       b->parameters.floats + at->gain, b->rows, b->width, accumulate);
}

/* ---- layers ------------------------------------------------------------- */

static void forward_layer(const struct gpt2_baseline *b, size_t i, float *out)
{
    const struct layer_weights *at = &b->weights[i];
    const struct layer_kept *kept = &b->layers[i];
    const float *weights = b->parameters.floats;

    norm(b, &kept->norm1, kept->x, &at->norm1);
    gpt2_prefill(b->threads, kept->qkv, NULL, weights + at->qkv.bias, b->rows, 3 * b->width);
    linear(b, kept->qkv, kept->norm1.y, &at->qkv, b->width, 3 * b->width, 1.0f);
    gpt2_attend(&b->attention, kept->attended, kept->p, kept->qkv);
    gpt2_prefill(b->threads, kept->middle, kept->x, weights + at->attended.bias, b->rows, b->width);
    linear(b, kept->middle, kept->attended, &at->attended, b->width, b->width, 1.0f);
    norm(b, &kept->norm2, kept->middle, &at->norm2);
    linear(b, kept->up, kept->norm2.y, &at->up, b->width, b->hidden, 0.0f);
    gpt2_bias_gelu(b->threads, kept->activated, kept->up, weights + at->up.bias, b->rows,
                   b->hidden);
    gpt2_prefill(b->threads, out, kept->middle, weights + at->down.bias, b->rows, b->width);
    linear(b, out, kept->activated, &at->down, b->hidden, b->width, 1.0f);
}

static void backward_layer(const struct gpt2_baseline *b, size_t i)
{
    const struct layer_weights *at = &b->weights[i];
    const struct layer_kept *kept = &b->layers[i];

    bias_backward(b, b->dx, &at->down, b->width);
    linear_backward(b, b->dwide, b->dx, kept->activated, &at->down, b->hidden, b->width);
    gpt2_gelu_backward(b->threads, b->dwide, b->gradients.floats + at->up.bias, b->scratch,
                       kept->up, b->rows, b->hidden);
    linear_backward(b, b->dy, b->dwide, kept->norm2.y, &at->up, b->width, b->hidden);
    norm_backward(b, &kept->norm2, kept->middle, &at->norm2, true);
    bias_backward(b, b->dx, &at->attended, b->width);
    linear_backward(b, b->dy, b->dx, kept->attended, &at->attended, b->width, b->width);
    gpt2_attend_backward(&b->attention, b->dqkv, b->scratch, b->dy, kept->p, kept->qkv);
    bias_backward(b, b->dqkv, &at->qkv, 3 * b->width);
    linear_backward(b, b->dy, b->dqkv, kept->norm1.y, &at->qkv, b->width, 3 * b->width);
    norm_backward(b, &kept->norm1, kept->x, &at->norm1, true);
}

/* ---- the step ----------------------------------------------------------- */

static double head(const struct gpt2_baseline *b)
{
    size_t vocabulary = b->one->model.options.vocabulary;
    const float *table = b->parameters.floats + b->table;
    struct gpt2_product forward = {.b_transposed = true,
                                   .m = b->rows,
                                   .n = vocabulary,
                                   .k = b->width,
                                   .a = b->last_kept.y,
                                   .b = table,
                                   .c = b->logits};
    struct gpt2_product weights = {.a_transposed = true,
                                   .m = vocabulary,
                                   .n = b->width,
                                   .k = b->rows,
                                   .a = b->logits,
                                   .b = b->last_kept.y,
                                   .c = b->gradients.floats + b->table};
    struct gpt2_product inputs = {
        .m = b->rows, .n = b->width, .k = vocabulary, .a = b->logits, .b = table, .c = b->dy};
    double loss;

    norm(b, &b->last_kept, b->x_last, &b->last);
    gpt2_multiply(b->threads, &forward);
    loss = gpt2_cross_entropy(b->threads, b->logits, b->one->targets, b->rows, vocabulary);
    gpt2_multiply(b->threads, &weights);
    gpt2_multiply(b->threads, &inputs);
    norm_backward(b, &b->last_kept, b->x_last, &b->last, false);
    return loss;
}

static void update(struct gpt2_baseline *b)
{
    const struct model *model = &b->one->model;
    const struct model_options *options = &model->options;
    size_t count = b->parameters.used;
    double length = sqrt(gpt2_square_sum(b->threads, b->gradients.floats, count));
    struct gpt2_adamw adamw = {.rate = (float)options->rate,
                               .beta1 = (float)options->beta1,
                               .beta2 = (float)options->beta2,
                               .epsilon = (float)options->epsilon};
    struct block walk = {0};

    b->step++;
    adamw.correct1 = (float)(1.0 / (1.0 - pow(options->beta1, (double)b->step)));
    adamw.correct2 = (float)(1.0 / (1.0 - pow(options->beta2, (double)b->step)));
    adamw.scale = length > options->clip ? (float)(options->clip / length) : 1.0f;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct tensor *tensor = &model->tape->tensors[model->parameters[i]];
        size_t at = cut(&walk, tensor->count);

        adamw.decay = tensor->rank > 1 ? (float)options->decay : 0.0f;
        gpt2_update(b->threads, b->parameters.floats + at, b->moments.floats + at,
                    b->squares.floats + at, b->gradients.floats + at, tensor->count, &adamw);
    }
}

double gpt2_baseline_step(struct gpt2_baseline *b)
{
    const struct model_options *options = &b->one->model.options;
    double loss;

    gpt2_flush_subnormals(b->threads, true);
    gpt2_embed(b->threads, b->layers[0].x, b->parameters.floats + b->table,
               b->parameters.floats + b->positions, b->one->tokens, options->batch, options->length,
               b->width);
    for (size_t i = 0; i < b->layer_count; i++) {
        forward_layer(b, i, i + 1 < b->layer_count ? b->layers[i + 1].x : b->x_last);
    }
    loss = head(b);
    for (size_t i = b->layer_count; i-- > 0;) {
        backward_layer(b, i);
    }
    gpt2_embed_backward(b->threads, b->gradients.floats + b->table,
                        b->gradients.floats + b->positions, b->dx, b->one->tokens, options->batch,
                        options->length, b->width);
    update(b);
    gpt2_flush_subnormals(b->threads, false);
    return loss;
}
