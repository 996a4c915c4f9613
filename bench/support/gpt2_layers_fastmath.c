/*
 * gpt2_layers_fastmath.c - see gpt2_layers.h. Compiled with -O3 -march=native -ffast-math.
 *
 * Nothing here is reproducible; only benchmarks may link it.
 */
#include "bench/support/gpt2_layers.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Floats that two threads never share a cache line over. */
#define LINE        16
/* Rows of scores computed at a time; the columns right of a block's diagonal are not computed. */
#define QUERY_BLOCK 128

void openblas_set_num_threads(int threads);

static size_t rounded(size_t count)
{
    return (count + LINE - 1) / LINE * LINE;
}

size_t gpt2_scratch_size(int threads, size_t columns)
{
    return (size_t)threads * 2 * rounded(columns);
}

void gpt2_flush_subnormals(int threads, bool flush)
{
    openblas_set_num_threads(1);
#if defined(__x86_64__)
    /* The default control word, with flush-to-zero and denormals-are-zero. */
#pragma omp parallel num_threads(threads)
    _mm_setcsr(flush ? 0x1f80 | 0x8040 : 0x1f80);
#else
    (void)threads;
    (void)flush;
#endif
}

/* ---- products ----------------------------------------------------------- */

static void multiply(const struct gpt2_product *p, size_t m, size_t n, const float *a,
                     const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
                p->b_transposed ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)p->k,
                1.0f, a, (blasint)(p->a_transposed ? p->m : p->k), b,
                (blasint)(p->b_transposed ? p->k : p->n), p->beta, c, (blasint)p->n);
}

void gpt2_multiply(int threads, const struct gpt2_product *product)
{
    bool by_rows = product->m >= product->n;
    size_t count = by_rows ? product->m : product->n;

#pragma omp parallel num_threads(threads)
    {
        size_t share = rounded((count + (size_t)threads - 1) / (size_t)threads);
        size_t begin = share * (size_t)omp_get_thread_num();
        size_t end = begin + share < count ? begin + share : count;

        if (begin < end && by_rows) {
            multiply(product, end - begin, product->n,
                     product->a + begin * (product->a_transposed ? 1 : product->k), product->b,
                     product->c + begin * product->n);
        } else if (begin < end) {
            multiply(product, product->m, end - begin, product->a,
                     product->b + begin * (product->b_transposed ? product->k : 1),
                     product->c + begin);
        }
    }
}

/* ---- sums over rows and columns ----------------------------------------- */

void gpt2_prefill(int threads, float *out, const float *before, const float *bias, size_t rows,
                  size_t columns)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t row = 0; row < rows; row++) {
        float *to = out + row * columns;

        if (before == NULL) {
            memcpy(to, bias, columns * sizeof(*to));
            continue;
        }
#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            to[i] = before[row * columns + i] + bias[i];
        }
    }
}

void gpt2_column_sums(int threads, float *sums, const float *x, size_t rows, size_t columns)
{
    const size_t block = 256;

#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t from = 0; from < columns; from += block) {
        size_t count = columns - from < block ? columns - from : block;
        float sum[256] = {0};

        for (size_t row = 0; row < rows; row++) {
            const float *at = x + row * columns + from;

#pragma omp simd
            for (size_t i = 0; i < count; i++) {
                sum[i] += at[i];
            }
        }
        memcpy(sums + from, sum, count * sizeof(*sums));
    }
}

/* out = the sum of the threads' parts. */
static void gather_parts(float *out, const float *parts, size_t stride, int threads, size_t columns)
{
    memcpy(out, parts, columns * sizeof(*out));
    for (int thread = 1; thread < threads; thread++) {
        const float *part = parts + (size_t)thread * stride;

#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            out[i] += part[i];
        }
    }
}

/* ---- layer norm --------------------------------------------------------- */

void gpt2_norm(int threads, float *y, float *mean, float *rstd, const float *x, const float *gain,
               const float *bias, size_t rows, size_t columns)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t row = 0; row < rows; row++) {
        const float *in = x + row * columns;
        float *out = y + row * columns;
        float sum = 0;
        float square = 0;

#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < columns; i++) {
            sum += in[i];
        }
        sum /= (float)columns;
#pragma omp simd reduction(+ : square)
        for (size_t i = 0; i < columns; i++) {
            square += (in[i] - sum) * (in[i] - sum);
        }
        mean[row] = sum;
        rstd[row] = 1.0f / sqrtf(square / (float)columns + 1e-5f);
#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            out[i] = (in[i] - sum) * rstd[row] * gain[i] + bias[i];
        }
    }
}

static void norm_row_backward(float *dx, float *dgain, float *dbias, const float *dy,
                              const float *x, float mean, float rstd, const float *gain,
                              size_t columns, bool accumulate)
{
    float g_sum = 0;
    float gx_sum = 0;
    float keep = accumulate ? 1.0f : 0.0f;

#pragma omp simd reduction(+ : g_sum, gx_sum)
    for (size_t i = 0; i < columns; i++) {
        float normal = (x[i] - mean) * rstd;
        float g = dy[i] * gain[i];

        g_sum += g;
        gx_sum += g * normal;
        dgain[i] += dy[i] * normal;
        dbias[i] += dy[i];
    }
    g_sum /= (float)columns;
    gx_sum /= (float)columns;
    if (!accumulate) {
        memset(dx, 0, columns * sizeof(*dx));
    }
#pragma omp simd
    for (size_t i = 0; i < columns; i++) {
        float normal = (x[i] - mean) * rstd;

        dx[i] = keep * dx[i] + (dy[i] * gain[i] - g_sum - normal * gx_sum) * rstd;
    }
}

void gpt2_norm_backward(int threads, float *dx, float *dgain, float *dbias, float *scratch,
                        const float *dy, const float *x, const float *mean, const float *rstd,
                        const float *gain, size_t rows, size_t columns, bool accumulate)
{
    size_t stride = 2 * rounded(columns);

    memset(scratch, 0, (size_t)threads * stride * sizeof(*scratch));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t row = 0; row < rows; row++) {
        float *part = scratch + (size_t)omp_get_thread_num() * stride;
        size_t at = row * columns;

        norm_row_backward(dx + at, part, part + stride / 2, dy + at, x + at, mean[row], rstd[row],
                          gain, columns, accumulate);
    }
    gather_parts(dgain, scratch, stride, threads, columns);
    gather_parts(dbias, scratch + stride / 2, stride, threads, columns);
}

/* ---- GELU --------------------------------------------------------------- */

/* 2*sqrt(2/pi), and 0.044715 of it: x * sigmoid(2u) is x * (1 + tanh u) / 2. */
#define GELU_LINEAR 1.5957691216f
#define GELU_CUBIC  0.0713548162f

void gpt2_bias_gelu(int threads, float *y, float *x, const float *bias, size_t rows, size_t columns)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t row = 0; row < rows; row++) {
        float *in = x + row * columns;
        float *out = y + row * columns;

#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            float value = in[i] + bias[i];

            in[i] = value;
            out[i] = value / (1.0f + expf(-value * (GELU_LINEAR + GELU_CUBIC * value * value)));
        }
    }
}

void gpt2_gelu_backward(int threads, float *dy, float *dbias, float *scratch, const float *x,
                        size_t rows, size_t columns)
{
    size_t stride = rounded(columns);

    memset(scratch, 0, (size_t)threads * stride * sizeof(*scratch));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t row = 0; row < rows; row++) {
        float *sums = scratch + (size_t)omp_get_thread_num() * stride;
        const float *in = x + row * columns;
        float *gradient = dy + row * columns;

#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            float value = in[i];
            float square = value * value;
            float s = 1.0f / (1.0f + expf(-value * (GELU_LINEAR + GELU_CUBIC * square)));
            float slope = value * (GELU_LINEAR + 3.0f * GELU_CUBIC * square);
            float g = gradient[i] * (s + s * (1.0f - s) * slope);

            gradient[i] = g;
            sums[i] += g;
        }
    }
    gather_parts(dbias, scratch, stride, threads, columns);
}

/* ---- attention ---------------------------------------------------------- */

/* Row r of a block sees columns 0 .. first + r; the rest of the block's rectangle becomes 0. */
static void softmax_block(float *scores, size_t stride, size_t first, size_t rows, float scale)
{
    for (size_t row = 0; row < rows; row++) {
        float *x = scores + row * stride;
        size_t seen = first + row + 1;
        float most = x[0];
        float sum = 0;

#pragma omp simd reduction(max : most)
        for (size_t i = 0; i < seen; i++) {
            most = x[i] > most ? x[i] : most;
        }
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < seen; i++) {
            x[i] = expf((x[i] - most) * scale);
            sum += x[i];
        }
        sum = 1.0f / sum;
#pragma omp simd
        for (size_t i = 0; i < seen; i++) {
            x[i] *= sum;
        }
        memset(x + seen, 0, (first + rows - seen) * sizeof(*x));
    }
}

void gpt2_attend(const struct gpt2_attention *shape, float *out, float *p, const float *qkv)
{
    size_t length = shape->length;
    size_t width = shape->width;
    size_t d = width / shape->heads;
    float scale = 1.0f / sqrtf((float)d);
    blasint wide = (blasint)(3 * width);

#pragma omp parallel for schedule(dynamic) num_threads(shape->threads)
    for (size_t head = 0; head < shape->batch * shape->heads; head++) {
        size_t token = head / shape->heads * length;
        const float *q = qkv + token * 3 * width + head % shape->heads * d;
        const float *k = q + width;
        const float *v = k + width;

        for (size_t from = 0; from < length; from += QUERY_BLOCK) {
            size_t rows = length - from < QUERY_BLOCK ? length - from : QUERY_BLOCK;
            blasint columns = (blasint)(from + rows);
            float *scores = p + (head * length + from) * length;

            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, columns, (blasint)d,
                        1.0f, q + from * 3 * width, wide, k, wide, 0.0f, scores, (blasint)length);
            softmax_block(scores, length, from, rows, scale);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)d,
                        columns, 1.0f, scores, (blasint)length, v, wide, 0.0f,
                        out + (token + from) * width + head % shape->heads * d, (blasint)width);
        }
    }
}

size_t gpt2_attend_scratch_size(const struct gpt2_attention *shape)
{
    return (size_t)shape->threads * QUERY_BLOCK * shape->length;
}

/* dp becomes the gradient of the scores. */
static void softmax_block_backward(float *dp, const float *p, size_t stride, size_t rows,
                                   size_t columns, float scale)
{
    for (size_t row = 0; row < rows; row++) {
        float *dx = dp + row * stride;
        const float *y = p + row * stride;
        float dot = 0;

#pragma omp simd reduction(+ : dot)
        for (size_t i = 0; i < columns; i++) {
            dot += dx[i] * y[i];
        }
#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            dx[i] = y[i] * (dx[i] - dot) * scale;
        }
    }
}

/* One block of queries of one head: dq is written, dk and dv are added to. */
static void attend_block_backward(const struct gpt2_attention *shape, float *dqkv, float *dp,
                                  const float *dout, const float *p, const float *qkv, size_t from,
                                  size_t rows)
{
    size_t width = shape->width;
    blasint d = (blasint)(width / shape->heads);
    blasint wide = (blasint)(3 * width);
    blasint length = (blasint)shape->length;
    blasint m = (blasint)rows;
    blasint n = (blasint)(from + rows);
    const float *k = qkv + width;
    float scale = 1.0f / sqrtf((float)d);

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, d, m, 1.0f, p, length, dout,
                (blasint)width, 1.0f, dqkv + 2 * width, wide);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, d, 1.0f, dout, (blasint)width,
                k + width, wide, 0.0f, dp, length);
    softmax_block_backward(dp, p, shape->length, rows, (size_t)n, scale);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, d, n, 1.0f, dp, length, k, wide, 0.0f,
                dqkv + from * 3 * width, wide);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, d, m, 1.0f, dp, length,
                qkv + from * 3 * width, wide, 1.0f, dqkv + width, wide);
}

void gpt2_attend_backward(const struct gpt2_attention *shape, float *dqkv, float *scratch,
                          const float *dout, const float *p, const float *qkv)
{
    size_t length = shape->length;
    size_t width = shape->width;
    size_t d = width / shape->heads;

#pragma omp parallel for schedule(dynamic) num_threads(shape->threads)
    for (size_t head = 0; head < shape->batch * shape->heads; head++) {
        size_t token = head / shape->heads * length;
        size_t at = token * 3 * width + head % shape->heads * d;
        float *dp = scratch + (size_t)omp_get_thread_num() * QUERY_BLOCK * length;

        for (size_t row = 0; row < length; row++) {
            memset(dqkv + at + row * 3 * width + width, 0, d * sizeof(float));
            memset(dqkv + at + row * 3 * width + 2 * width, 0, d * sizeof(float));
        }
        for (size_t from = 0; from < length; from += QUERY_BLOCK) {
            size_t rows = length - from < QUERY_BLOCK ? length - from : QUERY_BLOCK;

            attend_block_backward(shape, dqkv + at, dp,
                                  dout + (token + from) * width + head % shape->heads * d,
                                  p + (head * length + from) * length, qkv + at, from, rows);
        }
    }
}

/* ---- the ends ----------------------------------------------------------- */

double gpt2_cross_entropy(int threads, float *logits, const uint32_t *targets, size_t rows,
                          size_t columns)
{
    double total = 0;
    float share = 1.0f / (float)rows;

#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : total)
    for (size_t row = 0; row < rows; row++) {
        float *x = logits + row * columns;
        float aim = x[targets[row]];
        float most = x[0];
        float sum = 0;

#pragma omp simd reduction(max : most)
        for (size_t i = 0; i < columns; i++) {
            most = x[i] > most ? x[i] : most;
        }
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < columns; i++) {
            x[i] = expf(x[i] - most);
            sum += x[i];
        }
        total += log((double)sum) - (double)(aim - most);
        sum = share / sum;
#pragma omp simd
        for (size_t i = 0; i < columns; i++) {
            x[i] *= sum;
        }
        x[targets[row]] -= share;
    }
    return total / (double)rows;
}

void gpt2_embed(int threads, float *x, const float *table, const float *positions,
                const uint32_t *tokens, size_t batch, size_t length, size_t width)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t row = 0; row < batch * length; row++) {
        const float *token = table + (size_t)tokens[row] * width;
        const float *position = positions + row % length * width;

#pragma omp simd
        for (size_t i = 0; i < width; i++) {
            x[row * width + i] = token[i] + position[i];
        }
    }
}

/* Threads take columns, so that no two write to the same element. */
void gpt2_embed_backward(int threads, float *dtable, float *dpositions, const float *dx,
                         const uint32_t *tokens, size_t batch, size_t length, size_t width)
{
#pragma omp parallel num_threads(threads)
    {
        size_t share = rounded((width + (size_t)threads - 1) / (size_t)threads);
        size_t begin = share * (size_t)omp_get_thread_num();
        size_t end = begin + share < width ? begin + share : width;

        for (size_t row = 0; row < batch * length; row++) {
            float *token = dtable + (size_t)tokens[row] * width;
            float *position = dpositions + row % length * width;
            const float *gradient = dx + row * width;
            float keep = row < length ? 0.0f : 1.0f;

#pragma omp simd
            for (size_t i = begin; i < end; i++) {
                token[i] += gradient[i];
                position[i] = keep * position[i] + gradient[i];
            }
        }
    }
}

double gpt2_square_sum(int threads, const float *x, size_t count)
{
    const size_t block = 4096;
    double total = 0;

#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : total)
    for (size_t from = 0; from < count; from += block) {
        size_t end = count - from < block ? count : from + block;
        float sum = 0;

#pragma omp simd reduction(+ : sum)
        for (size_t i = from; i < end; i++) {
            sum += x[i] * x[i];
        }
        total += (double)sum;
    }
    return total;
}

void gpt2_update(int threads, float *p, float *m, float *v, const float *g, size_t count,
                 const struct gpt2_adamw *adamw)
{
    const struct gpt2_adamw a = *adamw;

#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (size_t i = 0; i < count; i++) {
        float gradient = g[i] * a.scale;
        float mean = a.beta1 * m[i] + (1.0f - a.beta1) * gradient;
        float square = a.beta2 * v[i] + (1.0f - a.beta2) * gradient * gradient;

        m[i] = mean;
        v[i] = square;
        p[i] -= a.rate *
                (mean * a.correct1 / (sqrtf(square * a.correct2) + a.epsilon) + a.decay * p[i]);
    }
}
