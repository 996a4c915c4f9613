/*
 * gpt2_layers.h - the layers of a GPT-2 step as they are usually written for a CPU: sgemm, and
 * loops that the compiler may reorder as it likes.
 *
 * A peer to be measured against, not a definition of anything: results depend on the compiler, the
 * CPU and the number of threads. Rows are tokens; all matrices are row-major and dense unless a
 * leading dimension is given. Threads are OpenMP's; sgemm runs with one thread in each of them, so
 * that two pools never compete for the same cores.
 */
#ifndef BENCH_SUPPORT_GPT2_LAYERS_H
#define BENCH_SUPPORT_GPT2_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpt2_product {
    bool a_transposed;
    bool b_transposed;
    size_t m;
    size_t n;
    size_t k;
    const float *a;
    const float *b;
    float *c;
    float beta; /* c = op(a) op(b) + beta c */
};

struct gpt2_attention {
    size_t batch;
    size_t length;
    size_t heads;
    size_t width; /* of all heads together */
    int threads;
};

struct gpt2_adamw {
    float rate;
    float beta1;
    float beta2;
    float epsilon;
    float decay;
    float correct1;
    float correct2;
    float scale; /* of the gradient */
};

/* Floats of scratch that the layers with partial sums per thread want, at most. */
size_t gpt2_scratch_size(int threads, size_t columns);

/* Subnormals flushed on every thread, as a program linked with -ffast-math has it; or not. */
void gpt2_flush_subnormals(int threads, bool flush);

void gpt2_multiply(int threads, const struct gpt2_product *product);

/* out = (before or nothing) + bias in every row: what a product with beta 1 is added to. */
void gpt2_prefill(int threads, float *out, const float *before, const float *bias, size_t rows,
                  size_t columns);
void gpt2_column_sums(int threads, float *sums, const float *x, size_t rows, size_t columns);

void gpt2_norm(int threads, float *y, float *mean, float *rstd, const float *x, const float *gain,
               const float *bias, size_t rows, size_t columns);
/* dx += (or =, without accumulate) the gradient of x; scratch holds sums per thread. */
void gpt2_norm_backward(int threads, float *dx, float *dgain, float *dbias, float *scratch,
                        const float *dy, const float *x, const float *mean, const float *rstd,
                        const float *gain, size_t rows, size_t columns, bool accumulate);

/* x += bias; y = gelu(x), the tanh form. */
void gpt2_bias_gelu(int threads, float *y, float *x, const float *bias, size_t rows,
                    size_t columns);
/* dy becomes dx. */
void gpt2_gelu_backward(int threads, float *dy, float *dbias, float *scratch, const float *x,
                        size_t rows, size_t columns);

/* qkv is (tokens, 3*width); the backward pass needs p (batch, heads, length, length). */
void gpt2_attend(const struct gpt2_attention *shape, float *out, float *p, const float *qkv);
void gpt2_attend_backward(const struct gpt2_attention *shape, float *dqkv, float *scratch,
                          const float *dout, const float *p, const float *qkv);
size_t gpt2_attend_scratch_size(const struct gpt2_attention *shape);

/* Mean loss; the logits become their gradient. */
double gpt2_cross_entropy(int threads, float *logits, const uint32_t *targets, size_t rows,
                          size_t columns);

/* x = table[token] + positions[t]; and the gradients, added to dtable and written to dpositions. */
void gpt2_embed(int threads, float *x, const float *table, const float *positions,
                const uint32_t *tokens, size_t batch, size_t length, size_t width);
void gpt2_embed_backward(int threads, float *dtable, float *dpositions, const float *dx,
                         const uint32_t *tokens, size_t batch, size_t length, size_t width);

double gpt2_square_sum(int threads, const float *x, size_t count);
void gpt2_update(int threads, float *p, float *m, float *v, const float *g, size_t count,
                 const struct gpt2_adamw *adamw);

#endif /* BENCH_SUPPORT_GPT2_LAYERS_H */
