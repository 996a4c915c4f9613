/*
 * init.c - see init.h.
 *
 * The normal pair of a block, in binary64 (every operation rounds once, none is contracted):
 *
 *   1. m = (word1*2^32 + word0) >> 11, plus 1: 1 .. 2^53. u = m * 2^-53, exact, in (0, 1].
 *   2. m = f * 2^e with f in [1, 2); where f >= FOUR_THIRDS, halve f and add 1 to e.
 *      s = (f-1) / (f+1); t = s*s;
 *      P = 1/23; P = P*t + 1/21; P = P*t + 1/19; ... ; P = P*t + 1/1   (1/k is rounded once)
 *      ln u = (e - 53) * LN2 + (2*s) * P
 *   3. radius = sqrt(-2 * ln u)
 *   4. v = (word3*2^32 + word2) >> 11: 0 .. 2^53-1; quadrant = v >> 51; w = v mod 2^51;
 *      a = (w - 2^50) * 2^-51 * HALF_PI, in [-pi/4, pi/4): the integer is exact, one rounding
 *   5. t = a*a; sine and cosine by Taylor's series, Horner's scheme from the last term:
 *      S = 1; for k = 17, 15, ..., 3: S = 1 - S * t / (k*(k-1));  sine = a * S
 *      C = 1; for k = 16, 14, ..., 2: C = 1 - C * t / (k*(k-1));  cosine = C
 *      (product, then quotient, then difference)
 *   6. quadrant 0: (cosine, sine), 1: (-sine, cosine), 2: (-cosine, -sine), 3: (sine, -cosine),
 *      each times radius: elements 2j and 2j+1.
 *
 * Each series ends where the next term is below 2^-56 of the sum, so only rounding errors remain.
 */
#include "engine/tape/init.h"

#include <assert.h>
#include <math.h>

#include "engine/ops/float_control.h"
#include "engine/ops/philox.h"
#include "engine/ops/real.h"

/* To nearest. */
#define LN2         0x1.62e42fefa39efp-1
#define HALF_PI     0x1.921fb54442d18p+0
#define FOUR_THIRDS 0x1.5555555555555p+0

#define LOG_LAST    23
#define SINE_LAST   17
#define COSINE_LAST 16

struct normal_pair {
    double first;
    double second;
};

/* The upper 53 bits of two words. */
static uint64_t upper_bits(uint32_t low, uint32_t high)
{
    return ((uint64_t)high << 32 | low) >> 11;
}

/* ln(m * 2^-53) for m in 1 .. 2^53; the argument is exact as an integer. */
static double log_of(uint64_t m)
{
    int e = 63 - __builtin_clzll(m);
    double f = (double)m / (double)(UINT64_C(1) << e); /* in [1, 2) */

    if (f >= FOUR_THIRDS) {
        f = f * 0.5;
        e++;
    }

    double s = (f - 1.0) / (f + 1.0);
    double t = s * s;
    double p = 1.0 / LOG_LAST;

    for (int k = LOG_LAST - 2; k >= 1; k -= 2) {
        p = p * t + 1.0 / k;
    }
    return (double)(e - 53) * LN2 + 2.0 * s * p;
}

static double taylor_cosine(double t, int last)
{
    double sum = 1.0;

    for (int k = last; k >= 2; k -= 2) {
        sum = 1.0 - sum * t / (double)(k * (k - 1));
    }
    return sum;
}

static struct normal_pair normal_pair_of(const struct philox_block *block)
{
    double radius = sqrt(-2.0 * log_of(upper_bits(block->words[0], block->words[1]) + 1));
    uint64_t v = upper_bits(block->words[2], block->words[3]);
    int64_t w = (int64_t)(v & ((UINT64_C(1) << 51) - 1)) - (INT64_C(1) << 50);
    double a = (double)w * 0x1p-51 * HALF_PI;
    double t = a * a;
    double sine = radius * (a * taylor_cosine(t, SINE_LAST));
    double cosine = radius * taylor_cosine(t, COSINE_LAST);

    switch (v >> 51) {
    case 0:
        return (struct normal_pair){cosine, sine};
    case 1:
        return (struct normal_pair){-sine, cosine};
    case 2:
        return (struct normal_pair){-cosine, -sine};
    default:
        return (struct normal_pair){sine, -cosine};
    }
}

static void fill_constant(float *out, uint64_t count, float value)
{
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        out[i] = value;
    }
}

static float uniform_at(uint64_t i, double limit, uint64_t seed, uint32_t stream)
{
    struct philox_block block = philox_draw(i, stream, INIT_STEP, seed);
    int32_t k = (int32_t)(block.words[0] >> 8);

    /* 25 bits times 24 bits is exact in binary64: only the conversion rounds. */
    return (float)((double)(2 * k + 1 - (1 << 24)) * 0x1p-24 * limit);
}

/* Each thread's floating-point control is its own: see float_control.h. */
static void fill_uniform(float *out, uint64_t count, double limit, uint64_t seed, uint32_t stream)
{
#pragma omp parallel
    {
        uint64_t control = float_control_take();

#pragma omp for
        for (uint64_t i = 0; i < count; i++) {
            out[i] = uniform_at(i, limit, seed, stream);
        }
        float_control_give_back(control);
    }
}

static void fill_normal(float *out, uint64_t count, double std, uint64_t seed, uint32_t stream)
{
#pragma omp parallel
    {
        uint64_t control = float_control_take();

#pragma omp for
        for (uint64_t j = 0; j < count / 2 + count % 2; j++) {
            struct philox_block block = philox_draw(j, stream, INIT_STEP, seed);
            struct normal_pair pair = normal_pair_of(&block);

            out[2 * j] = (float)(pair.first * std);
            if (2 * j + 1 < count) {
                out[2 * j + 1] = (float)(pair.second * std);
            }
        }
        float_control_give_back(control);
    }
}

bool init_is_sound(const struct init *init)
{
    bool has_value =
        init->kind == INIT_CONSTANT || init->kind == INIT_UNIFORM || init->kind == INIT_NORMAL;

    return (unsigned)init->kind <= INIT_NORMAL && (has_value || init->value_bits == 0) &&
           (init->value_bits & UINT32_C(0x7f800000)) != UINT32_C(0x7f800000);
}

bool init_is_nonzero(const struct init *init)
{
    return init->kind == INIT_ONES || (init->value_bits & UINT32_C(0x7fffffff)) != 0;
}

void init_fill(float *out, uint64_t count, const struct init *init, uint64_t seed, uint32_t stream)
{
    float value = real_from_bits(init->value_bits);

    switch (init->kind) {
    case INIT_NONE:
        break;
    case INIT_ZEROS:
        fill_constant(out, count, 0.0f);
        return;
    case INIT_ONES:
        fill_constant(out, count, 1.0f);
        return;
    case INIT_CONSTANT:
        fill_constant(out, count, value);
        return;
    case INIT_UNIFORM:
        fill_uniform(out, count, value, seed, stream);
        return;
    case INIT_NORMAL:
        fill_normal(out, count, value, seed, stream);
        return;
    }
    assert(!"no rule of initialization");
}
