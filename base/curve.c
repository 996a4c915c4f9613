/* curve.c - see curve.h. */
#include "base/curve.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define YOUNGEST 16 /* the least share of the steps that is shown */

static uint64_t cells_of(const struct curve *curve)
{
    return curve->total < CURVE_CELLS ? curve->total : CURVE_CELLS;
}

/* The first cell at or after `at` of `of` equal parts of the first `shown` steps. */
static uint64_t cell_at(const struct curve *curve, uint64_t shown, uint64_t at, uint64_t of)
{
    double cells = (double)cells_of(curve) * ((double)shown / (double)curve->total);

    return (uint64_t)ceil(cells * (double)at / (double)of);
}

void curve_init(struct curve *curve, uint64_t total)
{
    memset(curve, 0, sizeof(*curve));
    curve->total = total == 0 ? 1 : total;
}

void curve_add(struct curve *curve, uint64_t step, double value)
{
    struct curve_cell *cell;

    if (!isfinite(value) || step >= curve->total) {
        return;
    }
    cell = &curve->cells[curve->total < CURVE_CELLS
                             ? step
                             : (uint64_t)((double)step / (double)curve->total * CURVE_CELLS)];
    cell->sum += value;
    cell->count++;
    if (step >= curve->end) {
        curve->end = step + 1;
        curve->newest = value;
    }
}

uint64_t curve_shown(const struct curve *curve)
{
    uint64_t shown = curve->total;

    for (int share = 1; share < YOUNGEST && shown / 2 > curve->end; share *= 2) {
        shown /= 2;
    }
    return shown;
}

bool curve_part(double *mean, const struct curve *curve, uint64_t shown, uint32_t part,
                uint32_t parts)
{
    uint64_t end = cell_at(curve, shown, (uint64_t)part + 1, parts);
    uint64_t count = 0;
    double sum = 0;

    for (uint64_t i = cell_at(curve, shown, part, parts); i < end && i < cells_of(curve); i++) {
        sum += curve->cells[i].sum;
        count += curve->cells[i].count;
    }
    *mean = count == 0 ? 0 : sum / (double)count;
    return count > 0;
}

void curve_range(double *low, double *high, const struct curve *curve, uint64_t shown,
                 uint32_t parts)
{
    double mean;

    for (uint32_t i = 0; i < parts; i++) {
        if (curve_part(&mean, curve, shown, i, parts)) {
            *low = fmin(*low, mean);
            *high = fmax(*high, mean);
        }
    }
}

void curve_spread(double *low, double *high)
{
    if (*high - *low < 1e-9 * fmax(1, fabs(*high))) {
        double around = fmax(1, fabs(*low)) * 1e-3;

        *low -= around;
        *high += around;
    }
}
