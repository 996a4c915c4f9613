/*
 * tables.c - rotary tables, and the functions that tables are made with.
 *
 * Tables are data of the job, so their bits must not depend on a libm. Everything here uses
 * correctly rounded operations of binary64, sqrt included, and short series.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/models/model_writer.h"

static const double half_pi_high = 0x1.921fb54442d18p0;
static const double half_pi_low = 0x1.1a62633145c07p-54;

/* Sine and cosine for |x| <= pi/4 by their Taylor series. */
static void sine_cosine_small(double *sine, double *cosine, double x)
{
    double square = x * x;
    double s = 0.0;
    double c = 0.0;

    for (int n = 11; n > 0; n--) {
        s = (1.0 - s) * square / ((2.0 * n) * (2.0 * n + 1.0));
        c = (1.0 - c) * square / ((2.0 * n - 1.0) * (2.0 * n));
    }
    *sine = x - x * s;
    *cosine = 1.0 - c;
}

/* For 0 <= x below about 2^26. pi/2 in two parts leaves an error near 2^-80 of a turn. */
static void sine_cosine(double *sine, double *cosine, double x)
{
    double turns = (double)(int64_t)(x / half_pi_high + 0.5);
    double rest = fma(-turns, half_pi_low, fma(-turns, half_pi_high, x));
    double s;
    double c;

    sine_cosine_small(&s, &c, rest);
    switch ((int64_t)turns & 3) {
    case 0:
        *sine = s;
        *cosine = c;
        return;
    case 1:
        *sine = c;
        *cosine = -s;
        return;
    case 2:
        *sine = -s;
        *cosine = -c;
        return;
    default:
        *sine = -c;
        *cosine = s;
        return;
    }
}

double table_half_cosine(double share)
{
    double sine;
    double cosine;

    sine_cosine(&sine, &cosine, share * 2.0 * half_pi_high);
    return 0.5 - 0.5 * cosine;
}

/* ln x = exponent * ln 2 + 2 artanh((m-1)/(m+1)) for x = m * 2^exponent, by the odd series. */
double model_log(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent); /* exact */
    double y = (mantissa - 1.0) / (mantissa + 1.0);
    double square = y * y;
    double sum = 0.0;

    for (int n = 41; n > 0; n -= 2) {
        sum = sum * square + 1.0 / n;
    }
    return 2.0 * y * sum + exponent * 0x1.62e42fefa39efp-1;
}

double table_exponential(double x)
{
    double half = x / 4096.0;
    double sum = 0.0;

    for (int n = 12; n > 0; n--) {
        sum = half / n * (1.0 + sum);
    }
    /* sum is e^half - 1; squaring twelve times, (1+s)^2 - 1 = s(s+2), keeps its small digits. */
    for (int i = 0; i < 12; i++) {
        sum = sum * (sum + 2.0);
    }
    return 1.0 + sum;
}

/* Where `turns` full turns in the first positions lie among the pairs, which count from 0. */
static double pair_of_turns(double turns, uint64_t width, double base,
                            const struct rotary_scaling *scaling)
{
    double positions = scaling->positions / (turns * 4.0 * half_pi_high);

    return (double)width * model_log(positions) / (2.0 * model_log(base));
}

/* The share of a pair's own rate, between pairs that turn often and pairs that turn rarely. */
static double yarn_share(uint64_t pair, uint64_t width, double base,
                         const struct rotary_scaling *scaling)
{
    double first = pair_of_turns(scaling->high, width, base, scaling);
    double last = pair_of_turns(scaling->low, width, base, scaling);
    double share;

    if (scaling->whole_pairs) {
        first = floor(first);
        last = ceil(last);
    }
    first = first < 0.0 ? 0.0 : first;
    last = last > (double)width - 1.0 ? (double)width - 1.0 : last;
    last = first == last ? last + 0.001 : last;
    share = 1.0 - ((double)pair - first) / (last - first);
    return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
}

static double llama3_share(double rate, const struct rotary_scaling *scaling)
{
    double turns = scaling->positions * rate / (4.0 * half_pi_high);

    if (turns < scaling->low) {
        return 0.0;
    }
    return turns > scaling->high ? 1.0 : (turns - scaling->low) / (scaling->high - scaling->low);
}

/* What a pair turns by from one position to the next. */
static double stretched(double rate, uint64_t pair, uint64_t length, uint64_t width, double base,
                        const struct rotary_scaling *scaling)
{
    double share = 0.0; /* of the rate as it was */

    switch (scaling->kind) {
    case ROTARY_LONGROPE:
        return rate / (length > scaling->positions ? scaling->long_factors[pair]
                                                   : scaling->short_factors[pair]);
    case ROTARY_LINEAR:
        return rate / scaling->factor;
    case ROTARY_YARN:
        share = yarn_share(pair, width, base, scaling);
        break;
    case ROTARY_LLAMA3:
        share = llama3_share(rate, scaling);
        break;
    case ROTARY_PLAIN:
    case ROTARY_COUNT:
        return rate;
    }
    if (share == 0.0 || share == 1.0) {
        return share == 0.0 ? rate / scaling->factor : rate;
    }
    return (1.0 - share) * rate / scaling->factor + share * rate;
}

float *rotary_table(uint64_t length, uint64_t width, double base,
                    const struct rotary_scaling *scaling)
{
    double amplitude = scaling->kind >= ROTARY_YARN ? scaling->amplitude : 1.0;
    uint64_t half = width / 2;
    float *table = calloc(length * half * 2 + 1, sizeof(*table));

    if (table == NULL) {
        return NULL;
    }
    for (uint64_t j = 0; j < half; j++) {
        double rate = table_exponential(-2.0 * (double)j / (double)width * model_log(base));

        rate = stretched(rate, j, length, width, base, scaling);
        for (uint64_t t = 0; t < length; t++) {
            double sine;
            double cosine;

            sine_cosine(&sine, &cosine, (double)t * rate);
            table[(t * half + j) * 2] = (float)(amplitude * cosine);
            table[(t * half + j) * 2 + 1] = (float)(amplitude * sine);
        }
    }
    return table;
}
