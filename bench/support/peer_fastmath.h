/*
 * peer_fastmath.h - the float operations as plain C loops, compiled with -O3 -march=native
 * -ffast-math (the Makefile chooses the flags by the file's name). The peer of our kernels, which
 * may neither reassociate nor approximate.
 */
#ifndef BENCH_SUPPORT_PEER_FASTMATH_H
#define BENCH_SUPPORT_PEER_FASTMATH_H

#include <stddef.h>
#include <stdint.h>

void peer_add(float *y, const float *a, const float *b, size_t count);
void peer_add_bias(float *y, const float *a, const float *bias, size_t rows, size_t columns);
void peer_gelu(float *y, const float *x, size_t count);
void peer_gelu_grad(float *dx, const float *x, const float *dy, size_t count);
void peer_silu(float *y, const float *x, size_t count);
void peer_layer_norm(float *y, float *mean, float *rstd, const float *x, const float *gain,
                     const float *bias, size_t rows, size_t columns);
void peer_layer_norm_grad(float *dx, float *product, const float *dy, const float *x,
                          const float *gain, const float *mean, const float *rstd, size_t rows,
                          size_t columns);
/* Row r sees columns 0 .. r mod columns. */
void peer_softmax_causal(float *p, const float *x, float scale, size_t rows, size_t columns);
void peer_softmax_causal_grad(float *dx, const float *p, const float *dp, float scale, size_t rows,
                              size_t columns);
void peer_softmax(float *p, const float *x, float scale, size_t rows, size_t columns);
void peer_cross_entropy(float *loss, float *most, float *sum, const float *x,
                        const uint32_t *target, size_t rows, size_t columns);
void peer_cross_entropy_grad(float *dx, const float *x, const uint32_t *target, const float *most,
                             const float *sum, const float *dloss, size_t rows, size_t columns);

struct peer_adamw {
    float beta1, beta2, epsilon, decay, rate, correct1, correct2, gradient_scale;
};

void peer_adamw(float *p, const float *g, float *m, float *v, size_t count,
                const struct peer_adamw *how);

#endif /* BENCH_SUPPORT_PEER_FASTMATH_H */
