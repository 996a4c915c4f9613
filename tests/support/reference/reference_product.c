/*
 * reference_product.c - contractions as plain sums, fast enough to train a small model with.
 *
 * B is packed into panels of PANEL columns, k by k, so that the inner loop multiplies one element
 * of A with a whole vector; a tile of TILE rows by PANEL columns stays in registers. The vectors
 * are the compiler's own, at any width; on x86-64 the same body is compiled for wider ones too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/reference/reference_core.h"

#define TILE  4
#define PANEL 16

typedef double doubles __attribute__((vector_size(PANEL / 2 * sizeof(double))));
typedef float floats __attribute__((vector_size(PANEL * sizeof(float))));

/* One batch of a contraction: rows of A (m, k) and panels of B, both of the mode's own type. */
struct product {
    const struct reference_op *run;
    int64_t batch;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t panels;
    bool single; /* float, not double */
    const void *a;
    const void *b;
    int64_t *batch_places; /* offsets in the result */
    int64_t *m_places;
    int64_t *n_places;
};

/* ---- rounding ----------------------------------------------------------- */

static float round_bfloat16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return x;
    }
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static float operand(double x, int64_t bits)
{
    return bits <= 16 ? round_bfloat16((float)x) : (float)x;
}

/* ---- the tile ----------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

/* sums[TILE][PANEL] of rows a, a+k, ... and one panel of b. */
INLINE void tile_double(double *sums, const double *a, const double *b, int64_t k)
{
    doubles sum[TILE][2] = {{{0}}};

    for (int64_t i = 0; i < k; i++) {
        doubles low;
        doubles high;

        memcpy(&low, b + i * PANEL, sizeof(low));
        memcpy(&high, b + i * PANEL + PANEL / 2, sizeof(high));
        for (int row = 0; row < TILE; row++) {
            sum[row][0] += low * a[row * k + i];
            sum[row][1] += high * a[row * k + i];
        }
    }
    memcpy(sums, sum, sizeof(sum));
}

INLINE void tile_float(float *sums, const float *a, const float *b, int64_t k)
{
    floats sum[TILE] = {{0}};

    for (int64_t i = 0; i < k; i++) {
        floats panel;

        memcpy(&panel, b + i * PANEL, sizeof(panel));
        for (int row = 0; row < TILE; row++) {
            sum[row] += panel * a[row * k + i];
        }
    }
    memcpy(sums, sum, sizeof(sum));
}

INLINE void tile_any(double *sums, const struct product *product, int64_t row, int64_t panel)
{
    float singles[TILE * PANEL];

    if (!product->single) {
        tile_double(sums, (const double *)product->a + row * product->k,
                    (const double *)product->b + panel * product->k * PANEL, product->k);
        return;
    }
    tile_float(singles, (const float *)product->a + row * product->k,
               (const float *)product->b + panel * product->k * PANEL, product->k);
    for (int i = 0; i < TILE * PANEL; i++) {
        sums[i] = singles[i];
    }
}

static void tile_plain(double *sums, const struct product *product, int64_t row, int64_t panel)
{
    tile_any(sums, product, row, panel);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void tile_avx2(double *sums, const struct product *product,
                                                      int64_t row, int64_t panel)
{
    tile_any(sums, product, row, panel);
}

__attribute__((target("avx512f"))) static void
tile_avx512(double *sums, const struct product *product, int64_t row, int64_t panel)
{
    tile_any(sums, product, row, panel);
}
#endif

static void tile(double *sums, const struct product *product, int64_t row, int64_t panel)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        tile_avx512(sums, product, row, panel);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        tile_avx2(sums, product, row, panel);
        return;
    }
#endif
    tile_plain(sums, product, row, panel);
}

/* ---- packing ------------------------------------------------------------ */

static void put(void *memory, bool single, int64_t index, double value, int64_t bits)
{
    if (single) {
        ((float *)memory)[index] = operand(value, bits);
    } else {
        ((double *)memory)[index] = value;
    }
}

/* Rows of A as they are; rows past the last, up to a whole tile, are zeros. */
static void pack_rows(const struct product *product, void *memory, const double *a, int64_t bits)
{
    for (int64_t i = 0; i < product->m * product->k; i++) {
        put(memory, product->single, i, a[i], bits);
    }
}

static void pack_panels(const struct product *product, void *memory, const double *b, int64_t bits)
{
    for (int64_t n = 0; n < product->n; n++) {
        int64_t panel = n / PANEL * product->k * PANEL + n % PANEL;

        for (int64_t k = 0; k < product->k; k++) {
            put(memory, product->single, panel + k * PANEL, b[n * product->k + k], bits);
        }
    }
}

/* ---- contract ----------------------------------------------------------- */

/* The offset of each index of two axes, computed once instead of per element. */
static int64_t *axis_places(const int64_t *dims, const int64_t *strides)
{
    int64_t *places = reference_room((size_t)(dims[0] * dims[1]), sizeof(*places));

    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        places[i] = i / dims[1] * strides[0] + i % dims[1] * strides[1];
    }
    return places;
}

static void store_tile(const struct product *product, const double *sums, int64_t row,
                       int64_t panel)
{
    int64_t causal = product->run->attributes[CONTRACT_CAUSAL];
    int64_t rows = product->m - row < TILE ? product->m - row : TILE;
    int64_t first = panel * PANEL;
    int64_t columns = product->n - first < PANEL ? product->n - first : PANEL;

    for (int64_t i = 0; i < rows; i++) {
        double *out = product->run->out[0] + product->batch_places[product->batch] +
                      product->m_places[row + i];
        int64_t seen = causal > 0 ? (row + i) % causal : INT64_MAX;

        for (int64_t j = 0; j < columns; j++) {
            out[product->n_places[first + j]] = first + j > seen ? 0.0 : sums[i * PANEL + j];
        }
    }
}

static void multiply_batch(const struct product *product)
{
    int64_t tiles = (product->m + TILE - 1) / TILE;

#pragma omp parallel for schedule(dynamic, 4) if (tiles * product->panels * product->k > 16384)
    for (int64_t row = 0; row < tiles * TILE; row += TILE) {
        for (int64_t panel = 0; panel < product->panels; panel++) {
            double sums[TILE * PANEL];

            tile(sums, product, row, panel);
            store_tile(product, sums, row, panel);
        }
    }
}

void reference_contract(const struct reference_op *run)
{
    const int64_t *dims = &run->attributes[CONTRACT_DIMS];
    const int64_t *strides = &run->attributes[CONTRACT_STRIDES];
    int64_t bits = run->attributes[CONTRACT_BITS];
    struct product product = {.run = run,
                              .m = dims[2] * dims[3],
                              .n = dims[4] * dims[5],
                              .k = run->attributes[CONTRACT_K],
                              .single = run->reference->mode == REFERENCE_BFLOAT16};
    size_t size = product.single ? sizeof(float) : sizeof(double);
    void *a;
    void *b;

    product.panels = (product.n + PANEL - 1) / PANEL;
    a = reference_room((size_t)((product.m + TILE) * product.k), size);
    b = reference_room((size_t)(product.panels * PANEL * product.k), size);
    product.a = a;
    product.b = b;
    product.batch_places = axis_places(dims, strides);
    product.m_places = axis_places(dims + 2, strides + 2);
    product.n_places = axis_places(dims + 4, strides + 4);
    for (product.batch = 0; product.batch < dims[0] * dims[1]; product.batch++) {
        pack_rows(&product, a, run->in[0] + product.batch * product.m * product.k, bits);
        pack_panels(&product, b, run->in[2] + product.batch * product.n * product.k, bits);
        multiply_batch(&product);
    }
    free(a);
    free(b);
    free(product.batch_places);
    free(product.m_places);
    free(product.n_places);
}

/* ---- the rest ----------------------------------------------------------- */

/* Output 2 is x through the view; peaks and exponents have no meaning here. */
void reference_quantize(const struct reference_op *run)
{
    const int64_t *dims = &run->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &run->attributes[QUANTIZE_STRIDES];
    int64_t k = dims[4] * dims[5];
    int64_t rows = run->out_count[2] / k;

    int64_t *places = axis_places(dims + 4, strides + 4);

#pragma omp parallel for if (rows * k > 4096)
    for (int64_t row = 0; row < rows; row++) {
        int64_t place = row % dims[3] * strides[3] + row / dims[3] % dims[2] * strides[2] +
                        row / dims[3] / dims[2] % dims[1] * strides[1] +
                        row / dims[3] / dims[2] / dims[1] * strides[0];

        for (int64_t i = 0; i < k; i++) {
            run->out[2][row * k + i] = run->in[0][place + places[i]];
        }
    }
    free(places);
}

/* Shifts cancel in the product, so the reference has none. */
void reference_equilibrate(const struct reference_op *run)
{
    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = 0;
        run->out[1][i] = 0;
    }
}

/* One term of a sum in the mode's arithmetic. */
static double sum_up(const struct reference_op *run, double sum, double x, int64_t bits)
{
    return run->reference->mode == REFERENCE_BFLOAT16 ? (float)sum + operand(x, bits) : sum + x;
}

void reference_contract_ones(const struct reference_op *run)
{
    int64_t k = run->attributes[ONES_K];

    for (int64_t row = 0; row < run->attributes[ONES_ROWS]; row++) {
        double sum = 0.0;

        for (int64_t i = 0; i < k; i++) {
            sum = sum_up(run, sum, run->in[0][row * k + i], run->attributes[ONES_BITS]);
        }
        run->out[0][row] = sum;
    }
}

void reference_contract_onehot(const struct reference_op *run)
{
    int64_t k = run->attributes[ONEHOT_K];
    int64_t width = run->attributes[ONEHOT_WIDTH];

    memset(run->out[0], 0, (size_t)run->out_count[0] * sizeof(double));
    for (int64_t i = 0; i < k; i++) {
        double word = run->in[0][i];

        for (int64_t c = 0; word < (double)run->attributes[ONEHOT_VOCABULARY] && c < width; c++) {
            double *sum = &run->out[0][(int64_t)word * width + c];

            *sum = sum_up(run, *sum, run->in[1][c * k + i], run->attributes[ONEHOT_BITS]);
        }
    }
}

/* ---- experts ------------------------------------------------------------ */

static double dot_up(const struct reference_op *run, double sum, double a, double b, int64_t bits)
{
    return run->reference->mode == REFERENCE_BFLOAT16
               ? (float)sum + (float)operand(a, bits) * (float)operand(b, bits)
               : sum + a * b;
}

void reference_contract_chosen(const struct reference_op *run)
{
    int64_t k = run->attributes[CHOSEN_K];
    int64_t width = run->attributes[CHOSEN_WIDTH];

    for (int64_t r = 0; r < run->attributes[CHOSEN_ROWS]; r++) {
        double expert = run->in[2][r];

        for (int64_t n = 0; n < width; n++) {
            double sum = expert < (double)run->attributes[CHOSEN_EXPERTS] ? 0.0 : NAN;

            for (int64_t i = 0; !isnan(sum) && i < k; i++) {
                sum = dot_up(run, sum, run->in[0][r * k + i],
                             run->in[3][((int64_t)expert * width + n) * k + i],
                             run->attributes[CHOSEN_BITS]);
            }
            run->out[0][r * width + n] = sum;
        }
    }
}

void reference_contract_chosen_rows(const struct reference_op *run)
{
    int64_t k = run->attributes[CHOSEN_SUM_K];
    int64_t m_count = run->attributes[CHOSEN_SUM_M];
    int64_t n_count = run->attributes[CHOSEN_SUM_N];

    memset(run->out[0], 0, (size_t)run->out_count[0] * sizeof(double));
    for (int64_t i = 0; i < k; i++) {
        double expert = run->in[0][i];

        for (int64_t m = 0; expert < (double)run->attributes[CHOSEN_SUM_EXPERTS] && m < m_count;
             m++) {
            for (int64_t n = 0; n < n_count; n++) {
                double *sum = &run->out[0][((int64_t)expert * m_count + m) * n_count + n];

                *sum = dot_up(run, *sum, run->in[1][m * k + i], run->in[3][n * k + i],
                              run->attributes[CHOSEN_SUM_BITS]);
            }
        }
    }
}
