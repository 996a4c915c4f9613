/*
 * accuracy_bench.c - how near exact contraction comes to double, compared with bf16 inputs.
 *
 * Relative error |ours - exact| / |exact| in the Frobenius norm of a small matrix product, for each
 * bits and block, on the distributions of training. exact is the product of the unrounded inputs in
 * double. The peer rounds its inputs to bf16 and adds in binary32, in 32 lanes that are added
 * pairwise, which is more accurate than one running sum.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/support/bench.h"
#include "bench/support/contract_case.h"

#define ROWS    16
#define COLUMNS 48
#define LANES   32

enum rows_kind {
    ROWS_NORMAL,
    ROWS_STUDENT,   /* student-t, 3 degrees of freedom */
    ROWS_LOGNORMAL, /* sigma 2, with signs */
    ROWS_GRADIENT,  /* softmax minus one-hot over the whole row */
    ROWS_ATTENTION, /* softmax of normal scores, sigma 2 */
    ROWS_OUTLIERS,  /* every 64th channel a hundred times larger, with weights that compensate */
    ROWS_KINDS,
};

#define OUTLIER_EVERY  64
#define OUTLIER_FACTOR 100.0F

static const char *const kind_names[ROWS_KINDS] = {
    "normal", "student-t", "log-normal", "softmax gradient", "attention", "outlier channels"};

struct precision {
    const char *name;
    int bits;
    int64_t block;
};

static const struct precision precisions[] = {
    {"14/128", 14, 128}, {"14/512", 14, 512}, {"14/row", 14, 0},
    {"15/128", 15, 128}, {"16/128", 16, 128}, {"22/row", 22, 0},
};

/* ---- rows ---- */

static void softmax(float *x, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++) {
        sum += exp((double)x[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)(exp((double)x[i]) / sum);
    }
}

static void fill_student(float *row, int64_t count, uint64_t seed)
{
    float *parts = calloc((size_t)count * 3, sizeof(*parts));

    fill_normal(parts, (size_t)count * 3, seed ^ 0x5bd1e995U);
    for (int64_t i = 0; i < count; i++) {
        double square = 0;

        for (int j = 0; j < 3; j++) {
            square += (double)parts[3 * i + j] * parts[3 * i + j];
        }
        row[i] = (float)(row[i] / sqrt(square / 3));
    }
    free(parts);
}

static void fill_row(float *row, int64_t count, enum rows_kind kind, uint64_t seed)
{
    fill_normal(row, (size_t)count, seed);
    switch (kind) {
    case ROWS_NORMAL:
    case ROWS_OUTLIERS: /* see scale_channels() */
        break;
    case ROWS_STUDENT:
        fill_student(row, count, seed);
        break;
    case ROWS_LOGNORMAL:
        for (int64_t i = 0; i < count; i++) {
            row[i] = (float)(exp(2.0 * (double)row[i]) * (i % 3 == 0 ? -1 : 1));
        }
        break;
    case ROWS_GRADIENT:
    case ROWS_ATTENTION:
        for (int64_t i = 0; i < count; i++) {
            row[i] *= 2.0F;
        }
        softmax(row, count);
        if (kind == ROWS_GRADIENT) {
            row[(int64_t)(seed * 7919) % count] -= 1.0F;
        }
        break;
    case ROWS_KINDS:
        break;
    }
}

static void scale_channels(float *rows, int64_t row_count, int64_t k, float factor)
{
    for (int64_t r = 0; r < row_count; r++) {
        for (int64_t i = 0; i < k; i += OUTLIER_EVERY) {
            rows[r * k + i] *= factor;
        }
    }
}

/* ---- exact, peer, ours ---- */

static float to_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    bits += 0x7fff + ((bits >> 16) & 1);
    bits &= UINT32_C(0xffff0000);
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static float peer_dot(const float *a, const float *b, int64_t count)
{
    float lanes[LANES] = {0};

    for (int64_t i = 0; i < count; i++) {
        lanes[i % LANES] += to_bf16(a[i]) * to_bf16(b[i]);
    }
    for (int d = LANES / 2; d > 0; d /= 2) {
        for (int l = 0; l < d; l++) {
            lanes[l] += lanes[l + d];
        }
    }
    return lanes[0];
}

static double exact_dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

static double relative(const float *values, const double *exact)
{
    double error = 0;
    double norm = 0;

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        error += (values[i] - exact[i]) * (values[i] - exact[i]);
        norm += exact[i] * exact[i];
    }
    return sqrt(error / norm);
}

static void measure(struct bench *bench, enum rows_kind kind, int64_t k)
{
    float *a = calloc((size_t)(ROWS * k), sizeof(*a));
    float *b = calloc((size_t)(COLUMNS * k), sizeof(*b));
    double exact[ROWS * COLUMNS];
    float peer[ROWS * COLUMNS];

    for (int64_t r = 0; r < ROWS; r++) {
        fill_row(a + r * k, k, kind, (uint64_t)r + 100);
    }
    fill_normal(b, (size_t)(COLUMNS * k), 5);
    if (kind == ROWS_OUTLIERS) {
        scale_channels(a, ROWS, k, OUTLIER_FACTOR);
        scale_channels(b, COLUMNS, k, 1.0F / OUTLIER_FACTOR);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        exact[i] = exact_dot(a + i / COLUMNS * k, b + i % COLUMNS * k, k);
        peer[i] = peer_dot(a + i / COLUMNS * k, b + i % COLUMNS * k, k);
    }
    for (size_t p = 0; p < sizeof(precisions) / sizeof(precisions[0]); p++) {
        struct contract_shape shape = {.batch = 1,
                                       .m = ROWS,
                                       .n = COLUMNS,
                                       .k = k,
                                       .bits = precisions[p].bits,
                                       .block = precisions[p].block};
        struct contract_case one;
        char name[BENCH_NAME_MAX];

        contract_case_init(&one, &shape, isa_best(), 1);
        memcpy(one.x[0], a, (size_t)(ROWS * k) * sizeof(float));
        memcpy(one.x[1], b, (size_t)(COLUMNS * k) * sizeof(float));
        contract_case_quantize(&one);
        contract_case_multiply(&one);
        snprintf(name, sizeof(name), "%s K=%ld %s", kind_names[kind], (long)k, precisions[p].name);
        bench_record(bench, name, "relative error", relative(one.out, exact), relative(peer, exact),
                     0);
        contract_case_release(&one);
    }
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    static const int64_t lengths[] = {768, 3072, 50257};
    struct bench bench;

    bench_init(&bench, "accuracy", "bf16 inputs, binary32 sums", argc, argv);
    if (isa_best() == ISA_SCALAR) {
        fprintf(stderr, "accuracy: needs AVX2 (the bits are the same on every CPU)\n");
        return 2;
    }
    for (int kind = 0; kind < ROWS_KINDS; kind++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            measure(&bench, (enum rows_kind)kind, lengths[i]);
        }
    }
    return bench_finish(&bench);
}
