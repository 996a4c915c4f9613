/* channel_rule.c - see channel_rule.h. */
#include "proofs/run/channel_rule.h"

#include <math.h>
#include <stdlib.h>

#include "engine/ops/contraction.h"
#include "engine/ops/element.h"

enum {
    SHIFT_MAX = 24,
    SHIFT_LEAST = 2, /* of one channel */
    SHIFT_WORTH = 3, /* of some channel, for a product to be shifted at all */
};

/* ---- the shifts --------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Of the logarithms that are finite. */
static double median_of(double *room, const double *values, uint64_t count)
{
    size_t used = 0;

    for (uint64_t k = 0; k < count; k++) {
        if (isfinite(values[k])) {
            room[used++] = values[k];
        }
    }
    qsort(room, used, sizeof(*room), by_size);
    return used == 0 ? 0.0 : room[used / 2];
}

static int within_shifts(double value)
{
    return value > SHIFT_MAX ? SHIFT_MAX : value < -SHIFT_MAX ? -SHIFT_MAX : (int)value;
}

static int choose_shift(double d, double r)
{
    int h = fabs(d) < SHIFT_LEAST ? 0 : within_shifts(floor((round(d) + 1.0) / 2.0));
    int w = fabs(r) < SHIFT_LEAST ? 0 : within_shifts(-round(r));

    if (h != 0 && (h > 0) != (w > 0) && w != 0) {
        return h;
    }
    return abs(h) > abs(w) ? h : w;
}

enum status channel_rule(int16_t *c, bool *worth, const struct channel *a, const struct channel *b,
                         uint64_t count, bool h_alone, struct error *error)
{
    double *apart = calloc((size_t)count * 3 + 1, sizeof(*apart));
    double *roots = apart + count;
    double *room = roots + count;
    double middle_d;
    double middle_r;

    if (apart == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a product");
    }
    for (uint64_t k = 0; k < count; k++) {
        apart[k] = log2(a[k].largest) - log2(b[k].largest);
        roots[k] = 0.5 * log2(b[k].squares);
    }
    middle_d = median_of(room, apart, count);
    middle_r = median_of(room, roots, count);
    *worth = false;
    for (uint64_t k = 0; k < count; k++) {
        double d = apart[k] - middle_d;
        double r = h_alone ? 0.0 : roots[k] - middle_r;

        c[k] = isfinite(d) && isfinite(roots[k]) ? (int16_t)choose_shift(d, r) : 0;
        *worth = *worth || abs(c[k]) >= SHIFT_WORTH;
    }
    free(apart);
    return STATUS_OK;
}

/* ---- the error ---------------------------------------------------------------- */

/* The numbers of a block, as QUANTIZE rounds them to its exponent. */
static double rounded_to(double x, int exponent, int bits)
{
    const double most = ldexp(1.0, bits - 1) - 1.0;
    double q = nearbyint(ldexp(x, bits - 1 - exponent));

    return ldexp(q > most ? most : q < -most ? -most : q, exponent - (bits - 1));
}

static double shifted_value(const float *x, uint64_t k, const int16_t *c, int sign)
{
    return c == NULL ? (double)x[k] : ldexp((double)x[k], -sign * c[k]);
}

/* Smallest e with |x| < 2^e for all of the numbers; EXPONENT_ZERO for zeros. */
static int exponent_of(const float *x, uint64_t first, uint64_t last, const int16_t *c, int sign)
{
    int most = EXPONENT_ZERO;

    for (uint64_t k = first; k < last; k++) {
        int exponent = EXPONENT_ZERO;

        (void)frexp(shifted_value(x, k, c, sign), &exponent);
        most = x[k] != 0.0f && exponent > most ? exponent : most;
    }
    return most;
}

void product_error_add(struct product_error *sum, const float *a, const float *b, uint64_t k,
                       const int16_t *c, uint32_t bits, uint32_t block)
{
    const struct contraction_shape shape = contraction_shape((int64_t)k, bits, block);
    const int least_a = exponent_of(a, 0, k, c, 1) - shape.window;
    const int least_b = exponent_of(b, 0, k, c, -1) - shape.window;
    double exact = 0.0;
    double ours = 0.0;
    double halves = 0.0;

    for (uint64_t first = 0; first < k; first += (uint64_t)shape.block) {
        uint64_t last = first + (uint64_t)shape.block < k ? first + (uint64_t)shape.block : k;
        int e = exponent_of(a, first, last, c, 1);
        int f = exponent_of(b, first, last, c, -1);

        e = e < least_a ? least_a : e;
        f = f < least_b ? least_b : f;
        for (uint64_t i = first; i < last; i++) {
            exact += (double)a[i] * (double)b[i];
            ours += rounded_to(shifted_value(a, i, c, 1), e, shape.bits) *
                    rounded_to(shifted_value(b, i, c, -1), f, shape.bits);
            halves += (double)real_from_bits(element_to_bf16(a[i]) << 16) *
                      (double)real_from_bits(element_to_bf16(b[i]) << 16);
        }
    }
    sum->exact += exact * exact;
    sum->ours += (ours - exact) * (ours - exact);
    sum->bfloat16 += (halves - exact) * (halves - exact);
}
