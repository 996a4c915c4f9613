/* peer_fastmath.c - see peer_fastmath.h. The loops are written for the compiler to vectorize. */
#include "bench/support/peer_fastmath.h"

#include <math.h>

#define GELU_OUTER 0.7978845608f
#define GELU_INNER 0.044715f

void peer_add(float *restrict y, const float *restrict a, const float *restrict b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        y[i] = a[i] + b[i];
    }
}

void peer_add_bias(float *restrict y, const float *restrict a, const float *restrict bias,
                   size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < columns; c++) {
            y[r * columns + c] = a[r * columns + c] + bias[c];
        }
    }
}

void peer_gelu(float *restrict y, const float *restrict x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float u = GELU_OUTER * (x[i] + GELU_INNER * x[i] * x[i] * x[i]);
        y[i] = 0.5f * x[i] * (1.0f + tanhf(u));
    }
}

void peer_gelu_grad(float *restrict dx, const float *restrict x, const float *restrict dy,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float square = x[i] * x[i];
        float t = tanhf(GELU_OUTER * (x[i] + GELU_INNER * x[i] * square));
        float slope = GELU_OUTER * (1.0f + 3.0f * GELU_INNER * square);
        dx[i] = (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * slope) * dy[i];
    }
}

void peer_silu(float *restrict y, const float *restrict x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        y[i] = x[i] / (1.0f + expf(-x[i]));
    }
}

void peer_layer_norm(float *restrict y, float *restrict mean, float *restrict rstd,
                     const float *restrict x, const float *restrict gain,
                     const float *restrict bias, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        const float *restrict in = x + r * columns;
        float *restrict out = y + r * columns;
        float sum = 0.0f;
        float square = 0.0f;

        for (size_t c = 0; c < columns; c++) {
            sum += in[c];
        }
        mean[r] = sum / (float)columns;
        for (size_t c = 0; c < columns; c++) {
            square += (in[c] - mean[r]) * (in[c] - mean[r]);
        }
        rstd[r] = 1.0f / sqrtf(square / (float)columns + 1e-5f);
        for (size_t c = 0; c < columns; c++) {
            out[c] = (in[c] - mean[r]) * rstd[r] * gain[c] + bias[c];
        }
    }
}

void peer_layer_norm_grad(float *restrict dx, float *restrict product, const float *restrict dy,
                          const float *restrict x, const float *restrict gain,
                          const float *restrict mean, const float *restrict rstd, size_t rows,
                          size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * columns;
        float sum_g = 0.0f;
        float sum_gx = 0.0f;

        for (size_t c = 0; c < columns; c++) {
            float g = dy[at + c] * gain[c];
            sum_g += g;
            sum_gx += g * (x[at + c] - mean[r]) * rstd[r];
        }
        sum_g /= (float)columns;
        sum_gx /= (float)columns;
        for (size_t c = 0; c < columns; c++) {
            float xhat = (x[at + c] - mean[r]) * rstd[r];
            float d = dy[at + c];
            dx[at + c] = rstd[r] * (d * gain[c] - sum_g - xhat * sum_gx);
            product[at + c] = d * xhat;
        }
    }
}

static inline void softmax_row(float *restrict p, const float *restrict x, float scale, size_t seen)
{
    float most = -INFINITY;
    float sum = 0.0f;

    for (size_t c = 0; c < seen; c++) {
        float v = x[c] * scale;
        most = v > most ? v : most;
    }
    for (size_t c = 0; c < seen; c++) {
        p[c] = expf(x[c] * scale - most);
        sum += p[c];
    }
    for (size_t c = 0; c < seen; c++) {
        p[c] *= 1.0f / sum;
    }
}

void peer_softmax(float *restrict p, const float *restrict x, float scale, size_t rows,
                  size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        softmax_row(p + r * columns, x + r * columns, scale, columns);
    }
}

void peer_softmax_causal(float *restrict p, const float *restrict x, float scale, size_t rows,
                         size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        size_t seen = r % columns + 1;

        softmax_row(p + r * columns, x + r * columns, scale, seen);
        for (size_t c = seen; c < columns; c++) {
            p[r * columns + c] = 0.0f;
        }
    }
}

void peer_softmax_causal_grad(float *restrict dx, const float *restrict p, const float *restrict dp,
                              float scale, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * columns;
        size_t seen = r % columns + 1;
        float dot = 0.0f;

        for (size_t c = 0; c < seen; c++) {
            dot += p[at + c] * dp[at + c];
        }
        for (size_t c = 0; c < seen; c++) {
            dx[at + c] = p[at + c] * (dp[at + c] - dot) * scale;
        }
        for (size_t c = seen; c < columns; c++) {
            dx[at + c] = 0.0f;
        }
    }
}

void peer_cross_entropy(float *restrict loss, float *restrict most, float *restrict sum,
                        const float *restrict x, const uint32_t *restrict target, size_t rows,
                        size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        const float *restrict in = x + r * columns;
        float highest = -INFINITY;
        float total = 0.0f;

        for (size_t c = 0; c < columns; c++) {
            highest = in[c] > highest ? in[c] : highest;
        }
        for (size_t c = 0; c < columns; c++) {
            total += expf(in[c] - highest);
        }
        most[r] = highest;
        sum[r] = total;
        loss[r] = logf(total) - (in[target[r]] - highest);
    }
}

void peer_cross_entropy_grad(float *restrict dx, const float *restrict x,
                             const uint32_t *restrict target, const float *restrict most,
                             const float *restrict sum, const float *restrict dloss, size_t rows,
                             size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        const float *restrict in = x + r * columns;
        float *restrict out = dx + r * columns;
        float factor = dloss[r] / sum[r];

        for (size_t c = 0; c < columns; c++) {
            out[c] = expf(in[c] - most[r]) * factor;
        }
        out[target[r]] -= dloss[r];
    }
}

void peer_adamw(float *restrict p, const float *restrict g, float *restrict m, float *restrict v,
                size_t count, const struct peer_adamw *how)
{
    struct peer_adamw h = *how;

    for (size_t i = 0; i < count; i++) {
        float gradient = g[i] * h.gradient_scale;
        m[i] = h.beta1 * m[i] + (1.0f - h.beta1) * gradient;
        v[i] = h.beta2 * v[i] + (1.0f - h.beta2) * gradient * gradient;
        float update = m[i] * h.correct1 / (sqrtf(v[i] * h.correct2) + h.epsilon);
        p[i] -= h.rate * (update + h.decay * p[i]);
    }
}
