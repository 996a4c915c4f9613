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
#include "engine/ops/contraction.h"

#define ROWS    16
#define COLUMNS 48
#define LANES   32

#define CHANNELS   768  /* of rows whose channels have their own sizes */
#define SINK_SCORE 8.0F /* how much more the first key of an attention sink is wanted */

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

/* ---- channels of their own sizes, and shifts ---- */

/* How much larger each element of K is in A and in B: channels, or tokens that are summed. */
struct channels {
    const char *name;
    bool sink; /* rows of A are probabilities, most of which go to the first element */
    double a[CHANNELS];
    double b[CHANNELS];
};

static void spread_channels(float *a, float *b, const struct channels *channels)
{
    for (int64_t row = 0; row < ROWS && channels->sink; row++) {
        a[row * CHANNELS] += SINK_SCORE;
        softmax(a + row * CHANNELS, CHANNELS);
    }
    for (int64_t i = 0; i < ROWS * CHANNELS; i++) {
        a[i] = (float)(a[i] * channels->a[i % CHANNELS]);
    }
    for (int64_t i = 0; i < COLUMNS * CHANNELS; i++) {
        b[i] = (float)(b[i] * channels->b[i % CHANNELS]);
    }
}

static int channel_top(const float *x, int64_t rows, int64_t k)
{
    int top = EXPONENT_ZERO;

    for (int64_t row = 0; row < rows; row++) {
        int exponent;
        uint32_t bits;

        memcpy(&bits, &x[row * CHANNELS + k], sizeof(bits));
        exponent = exponent_of_bits(bits);
        top = exponent > top ? exponent : top;
    }
    return top;
}

/* As a quantize with c does: the tops of a channel in A and in B become alike. */
static void equilibrate(float *a, float *b)
{
    for (int64_t k = 0; k < CHANNELS; k++) {
        int apart = channel_top(a, ROWS, k) - channel_top(b, COLUMNS, k);
        int c = (apart - (apart & 1)) / 2;

        for (int64_t row = 0; row < ROWS; row++) {
            a[row * CHANNELS + k] = quantize_shifted(a[row * CHANNELS + k], quantize_factor(c));
        }
        for (int64_t row = 0; row < COLUMNS; row++) {
            b[row * CHANNELS + k] = quantize_shifted(b[row * CHANNELS + k], quantize_factor(-c));
        }
    }
}

static void measure_channels(struct bench *bench, const struct channels *channels)
{
    static const struct contract_shape shape = {
        .batch = 1, .m = ROWS, .n = COLUMNS, .k = CHANNELS, .bits = 14, .block = 128};
    double exact[ROWS * COLUMNS];
    float peer[ROWS * COLUMNS];

    for (int shifted = 0; shifted < 2; shifted++) {
        struct contract_case one;
        char name[BENCH_NAME_MAX];

        contract_case_init(&one, &shape, isa_best(), 1);
        fill_normal(one.x[0], ROWS * CHANNELS, 100);
        fill_normal(one.x[1], COLUMNS * CHANNELS, 5);
        spread_channels(one.x[0], one.x[1], channels);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const float *a = one.x[0] + i / COLUMNS * CHANNELS;
            const float *b = one.x[1] + i % COLUMNS * CHANNELS;

            exact[i] = exact_dot(a, b, CHANNELS);
            peer[i] = peer_dot(a, b, CHANNELS);
        }
        if (shifted == 1) {
            equilibrate(one.x[0], one.x[1]);
        }
        contract_case_quantize(&one);
        contract_case_multiply(&one);
        snprintf(name, sizeof(name), "%s 14/128%s", channels->name, shifted == 1 ? " shifted" : "");
        bench_record(bench, name, "relative error", relative(one.out, exact), relative(peer, exact),
                     0);
        contract_case_release(&one);
    }
}

static void measure_all_channels(struct bench *bench)
{
    static const struct {
        const char *name;
        uint32_t every; /* one element of so many has other sizes: */
        uint32_t at;    /* the first of them */
        double a;
        double b;
    } table[] = {
        {"6 channels x10", 128, 17, 10, 0.1},
        {"6 channels x100", 128, 17, 100, 0.01},
        {"6 channels x1000", 128, 17, 1000, 0.001},
        {"2 massive tokens x10", 500, 0, 10, 0.1},
        {"2 massive tokens x100", 500, 0, 100, 0.01},
        {"2 massive tokens x1000", 500, 0, 1000, 0.001},
        {"6 channels' weights x10", 128, 17, 1, 10},
        {"6 channels' weights x100", 128, 17, 1, 100},
        {"6 channels' weights x1000", 128, 17, 1, 1000},
        {"6 tokens' gradients x10", 128, 17, 10, 1},
        {"6 tokens' gradients x100", 128, 17, 100, 1},
        {"6 tokens' gradients x1000", 128, 17, 1000, 1},
        {"attention sink", CHANNELS, 0, 1, 0.001},
        {"log-normal channels", 0, 0, 0, 0},
    };
    struct channels channels;
    float sizes[CHANNELS];

    fill_normal(sizes, CHANNELS, 77);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        channels.name = table[i].name;
        channels.sink = table[i].every == CHANNELS;
        for (uint32_t k = 0; k < CHANNELS; k++) {
            const bool other = table[i].every != 0 && k % table[i].every == table[i].at;
            const double size = table[i].every == 0 ? exp(2.0 * (double)sizes[k]) : 1.0;

            channels.a[k] = other ? table[i].a : size;
            channels.b[k] = other ? table[i].b : 1.0 / size;
        }
        measure_channels(bench, &channels);
    }
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
    measure_all_channels(&bench);
    return bench_finish(&bench);
}
