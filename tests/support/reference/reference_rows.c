/* reference_rows.c - sums, norms, softmax and cross-entropy in double precision. */
#include <math.h>
#include <string.h>

#include "tests/support/reference/reference_core.h"

/* Sums (or, for products, dot products) of the row's chunks into parts; returns the total. */
static double sum_parts(double *parts, const double *a, const double *b, int64_t columns,
                        int64_t visible)
{
    double total = 0.0;

    for (int64_t from = 0; from < columns; from += FOLD_CHUNK) {
        int64_t to = from + FOLD_CHUNK < visible ? from + FOLD_CHUNK : visible;
        double sum = 0.0;

        for (int64_t i = from; a != NULL && i < to; i++) {
            sum += b != NULL ? a[i] * b[i] : a[i];
        }
        parts[from / FOLD_CHUNK] = sum;
        total += sum;
    }
    return total;
}

static int64_t chunks_of(const struct reference_op *run)
{
    return (int64_t)fold_chunks((uint64_t)run->attributes[COLUMNS]);
}

void reference_row_sum(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        run->out[1][r] = sum_parts(run->out[0] + r * chunks_of(run), run->in[0] + r * columns, NULL,
                                   columns, columns);
    }
}

/* ---- norms -------------------------------------------------------------- */

void reference_layer_norm(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];
    double epsilon = reference_constant(run, NORM_EPSILON_BITS);

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        const double *x = run->in[0] + r * columns;
        double *y = run->out[4] + r * columns;
        double mean = sum_parts(run->out[0] + r * chunks_of(run), x, NULL, columns, columns);

        mean /= (double)columns;
        for (int64_t c = 0; c < columns; c++) {
            y[c] = x[c] - mean;
        }
        double square = sum_parts(run->out[2] + r * chunks_of(run), y, y, columns, columns);
        double rstd = 1.0 / sqrt(square / (double)columns + epsilon);
        for (int64_t c = 0; c < columns; c++) {
            y[c] = y[c] * rstd * run->in[1][c] + run->in[2][c];
        }
        run->out[1][r] = mean;
        run->out[3][r] = rstd;
    }
}

/*
 * With xhat = (x - mean) * rstd and g = dy * gain, where mean and rstd depend on x,
 * dx = rstd * (g - average(g) - xhat * average(g * xhat)). An RMS norm has no mean.
 */
void reference_layer_norm_grad(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        const double *dy = run->in[0] + r * columns;
        double *xhat = run->out[5] + r * columns;
        double *g = run->out[4] + r * columns;
        double rstd = run->in[4][r];

        for (int64_t c = 0; c < columns; c++) {
            xhat[c] = (run->in[1][r * columns + c] - run->in[3][r]) * rstd;
            g[c] = dy[c] * run->in[2][c];
        }
        double mean_g = sum_parts(run->out[0] + r * chunks_of(run), g, NULL, columns, columns);
        double mean_gx = sum_parts(run->out[1] + r * chunks_of(run), g, xhat, columns, columns);
        run->out[2][r] = mean_g /= (double)columns;
        run->out[3][r] = mean_gx /= (double)columns;
        for (int64_t c = 0; c < columns; c++) {
            g[c] = rstd * (g[c] - mean_g - xhat[c] * mean_gx);
            xhat[c] *= dy[c];
        }
    }
}

void reference_rms_norm(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];
    double epsilon = reference_constant(run, NORM_EPSILON_BITS);

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        const double *x = run->in[0] + r * columns;
        double square = sum_parts(run->out[0] + r * chunks_of(run), x, x, columns, columns);
        double rstd = 1.0 / sqrt(square / (double)columns + epsilon);

        for (int64_t c = 0; c < columns; c++) {
            run->out[2][r * columns + c] = x[c] * rstd * run->in[1][c];
        }
        run->out[1][r] = rstd;
    }
}

void reference_rms_norm_grad(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        const double *dy = run->in[0] + r * columns;
        double *xhat = run->out[3] + r * columns;
        double *g = run->out[2] + r * columns;
        double rstd = run->in[3][r];

        for (int64_t c = 0; c < columns; c++) {
            xhat[c] = run->in[1][r * columns + c] * rstd;
            g[c] = dy[c] * run->in[2][c];
        }
        double mean_gx = sum_parts(run->out[0] + r * chunks_of(run), g, xhat, columns, columns);
        run->out[1][r] = mean_gx /= (double)columns;
        for (int64_t c = 0; c < columns; c++) {
            g[c] = rstd * (g[c] - xhat[c] * mean_gx);
            xhat[c] *= dy[c];
        }
    }
}

/* ---- extremes and single elements --------------------------------------- */

void reference_reduce(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];
    double sign = run->attributes[REDUCE_FUNCTION] == REDUCE_MIN ? -1.0 : 1.0;

    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        const double *x = run->in[0] + r * columns;
        int64_t best = 0;
        int64_t own = 0;

        for (int64_t c = 0; c < columns; c++) {
            int64_t part = r * chunks_of(run) + c / FOLD_CHUNK;

            own = c % FOLD_CHUNK == 0 || sign * x[c] > sign * x[own] ? c : own;
            best = sign * x[c] > sign * x[best] ? c : best;
            run->out[0][part] = x[own];
            run->out[1][part] = (double)own;
        }
        run->out[2][r] = x[best];
        run->out[3][r] = (double)best;
    }
}

void reference_gather_elements(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        double column = run->in[1][r];

        run->out[0][r] = NAN;
        if (column < (double)columns) {
            run->out[0][r] = run->in[0][r * columns + (int64_t)column];
        }
    }
}

void reference_gather_elements_grad(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        int64_t row = i / columns;

        run->out[0][i] = run->in[0][row] == (double)(i % columns) ? run->in[1][row] : 0.0;
    }
}

void reference_take(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        double column = run->in[1][i];
        int64_t row = i / run->attributes[TAKE_WIDTH];

        run->out[0][i] =
            column < (double)columns ? run->in[0][row * columns + (int64_t)column] : NAN;
    }
}

void reference_scatter(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

    memcpy(run->out[0], run->in[2], (size_t)run->out_count[0] * sizeof(double));
    for (int64_t i = 0; i < run->in_count[0]; i++) {
        int64_t row = i / run->attributes[SCATTER_WIDTH];

        if (run->in[0][i] < (double)columns) {
            double *place = &run->out[0][row * columns + (int64_t)run->in[0][i]];

            *place = run->attributes[SCATTER_FUNCTION] == SCATTER_ADD ? *place + run->in[1][i]
                                                                      : run->in[1][i];
        }
    }
}

/* Each element goes behind those that are before it. */
void reference_sort(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];
    double sign = run->attributes[SORT_DESCENDING] != 0 ? -1.0 : 1.0;

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        int64_t first = i / columns * columns;
        double own = sign * run->in[0][i];
        int64_t place = 0;

        for (int64_t at = first; at < first + columns; at++) {
            double other = sign * run->in[0][at];

            place += other < own || (other == own && at < i);
        }
        run->out[0][i] = (double)place;
        run->out[1][first + place] = (double)(i - first);
        run->out[2][first + place] = run->in[0][i];
    }
}

/* ---- softmax and cross-entropy ------------------------------------------ */

/* The columns that a row sees, from .. end - 1. */
struct seen {
    int64_t from;
    int64_t end;
};

static struct seen seen_of(const struct reference_op *run, int64_t row)
{
    int64_t period = run->attributes[SOFTMAX_CAUSAL];
    int slot = run->op->kind == OP_SOFTMAX ? 1 : 2;
    struct seen seen = {0, period == 0 ? run->attributes[COLUMNS] : row % period + 1};

    if (period > 0 && (int)run->op->input_count > slot) {
        int64_t sequences = run->in_count[slot] / period;
        int64_t heads = run->attributes[ROWS] / (sequences * period);
        int64_t sequence = row / period / heads;
        double reach = run->in[slot][sequence * period + row % period];

        seen.from = reach < (double)(seen.end - 1) ? seen.end - 1 - (int64_t)reach : 0;
    }
    return seen;
}

/* Outputs 0 to 4: max_part, max, exps, sum_part, sum of row r. */
static void exponentials(const struct reference_op *run, int64_t r, double scale, struct seen seen)
{
    int64_t columns = run->attributes[COLUMNS];
    int64_t chunks = chunks_of(run);
    const double *x = run->in[0] + r * columns;
    double *exps = run->out[2] + r * columns;
    double *tops = run->out[0] + r * chunks;
    double *sums = run->out[3] + r * chunks;

    for (int64_t k = 0; k < chunks; k++) {
        tops[k] = -INFINITY;
        sums[k] = 0.0;
    }
    run->out[1][r] = -INFINITY;
    run->out[4][r] = 0.0;
    for (int64_t c = seen.from; c < seen.end; c++) {
        double v = x[c] * scale;

        tops[c / FOLD_CHUNK] = fmax(tops[c / FOLD_CHUNK], v);
        run->out[1][r] = fmax(run->out[1][r], v);
    }
    for (int64_t c = 0; c < columns; c++) {
        bool is_seen = seen.from <= c && c < seen.end;

        exps[c] = is_seen ? exp(x[c] * scale - run->out[1][r]) : 0.0;
        sums[c / FOLD_CHUNK] += exps[c];
        run->out[4][r] += exps[c];
    }
}

void reference_softmax(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];
    double scale = reference_constant(run, SOFTMAX_SCALE_BITS);

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        exponentials(run, r, scale, seen_of(run, r));
        for (int64_t i = r * columns; i < (r + 1) * columns; i++) {
            run->out[5][i] = run->out[2][i] / run->out[4][r];
        }
    }
}

void reference_softmax_grad(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];
    double scale = reference_constant(run, SOFTMAX_SCALE_BITS);

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        const double *p = run->in[0] + r * columns;
        const double *dp = run->in[1] + r * columns;
        double *parts = run->out[0] + r * chunks_of(run);
        struct seen seen = seen_of(run, r);
        double dot = 0.0;

        for (int64_t k = 0; k < chunks_of(run); k++) {
            parts[k] = 0.0;
        }
        for (int64_t c = seen.from; c < seen.end; c++) {
            parts[c / FOLD_CHUNK] += p[c] * dp[c];
            dot += p[c] * dp[c];
        }
        run->out[1][r] = dot;
        for (int64_t c = 0; c < columns; c++) {
            bool is_seen = seen.from <= c && c < seen.end;

            run->out[2][r * columns + c] = is_seen ? p[c] * (dp[c] - dot) * scale : 0.0;
        }
    }
}

void reference_cross_entropy(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        double target = run->in[1][r];

        exponentials(run, r, 1.0, (struct seen){0, columns});
        run->out[5][r] = target == (double)TARGET_IGNORED ? 0.0 : NAN;
        if (target < (double)columns) {
            double x = run->in[0][r * columns + (int64_t)target];

            run->out[5][r] = log(run->out[4][r]) - (x - run->out[1][r]);
        }
    }
}

void reference_cross_entropy_grad(const struct reference_op *run)
{
    int64_t columns = run->attributes[COLUMNS];

#pragma omp parallel for
    for (int64_t r = 0; r < run->attributes[ROWS]; r++) {
        double target = run->in[1][r];

        for (int64_t c = 0; c < columns; c++) {
            double x = run->in[0][r * columns + c];
            double p = exp(x - run->in[2][r]) / run->in[3][r];

            p -= (double)c == target ? 1.0 : 0.0;
            p *= run->in[4][r];
            run->out[0][r * columns + c] = target < (double)columns           ? p
                                           : target == (double)TARGET_IGNORED ? 0.0
                                                                              : NAN;
        }
    }
}
