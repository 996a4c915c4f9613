/*
 * emulator_halves.c - mma .m16n8k16 of halves with sums in binary32, by a unit of which a test says
 * how it adds: how many bits it keeps behind the first bit of the largest number, what becomes of
 * bits behind them, and whether all numbers are aligned at once or in pairs. See emulator.h.
 */
#include <stdlib.h>

#include "engine/ops/element.h"
#include "tests/support/device/emulator_core.h"

#define UNIT_K 16
#define UNIT_N 8

static const struct emulated_unit usual_unit = {UNIT_BITS_LEAST, UNIT_CUTS, false};
static struct emulated_unit unit = {UNIT_BITS_LEAST, UNIT_CUTS, false};
static uint64_t lost;

void emulator_unit(const struct emulated_unit *wanted)
{
    unit = wanted == NULL ? usual_unit : *wanted;
    lost = 0;
}

uint64_t emulator_unit_lost(void)
{
    return lost;
}

/* ---- halves ------------------------------------------------------------------- */

uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t all = (uint64_t)b << 32 | a;
    uint32_t picked = 0;

    for (uint32_t i = 0; i < 4; i++) {
        picked |= (uint32_t)(all >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    }
    return picked;
}

static uint32_t each_half(uint32_t a, uint32_t b, float sign)
{
    const uint32_t low =
        element_to_f16(element_from_f16(a & 0xffff) + sign * element_from_f16(b & 0xffff));
    const uint32_t high =
        element_to_f16(element_from_f16(a >> 16) + sign * element_from_f16(b >> 16));

    return high << 16 | low;
}

uint32_t halves_add(uint32_t a, uint32_t b)
{
    return each_half(a, b, 1.0f);
}

uint32_t halves_subtract(uint32_t a, uint32_t b)
{
    return each_half(a, b, -1.0f);
}

/* ---- the unit ------------------------------------------------------------------- */

/* The power of two of x's first bit; of 0, one that no other is below. */
static int first_bit(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return x == 0.0 ? -1000 : (int)(bits >> 52 & 0x7ff) - 1023;
}

static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;

    memcpy(&power, &bits, sizeof(power));
    return power;
}

/* x without what is below 2^last. */
static double cut_below(double x, int last)
{
    const double scaled = x * power_of_two(-last);
    int64_t whole = (int64_t)scaled;

    if ((double)whole == scaled) {
        return x;
    }
    lost++;
    if (unit.cut == UNIT_DOWN && scaled < 0) {
        whole--;
    } else if (unit.cut == UNIT_ODD && whole % 2 == 0) {
        whole += scaled < 0 ? -1 : 1;
    }
    return (double)whole * power_of_two(last);
}

/* A sum of numbers that are aligned to the largest. */
static double aligned_sum(const double *numbers, uint32_t count)
{
    double sum = 0.0;
    int first = -1000;

    for (uint32_t i = 0; i < count; i++) {
        const int own = first_bit(numbers[i]);

        first = own > first ? own : first;
    }
    if (first == -1000) {
        return 0.0;
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += cut_below(numbers[i], first - unit.bits);
    }
    return sum;
}

static double sum_in_pairs(double numbers[UNIT_K], double start)
{
    for (uint32_t count = UNIT_K; count > 1; count /= 2) {
        for (uint32_t i = 0; i < count / 2; i++) {
            const double pair[2] = {numbers[2 * i], numbers[2 * i + 1]};

            numbers[i] = aligned_sum(pair, 2);
        }
    }
    const double last[2] = {numbers[0], start};

    return aligned_sum(last, 2);
}

/* What binary32 holds of it. */
static float as_real(double sum)
{
    return sum == 0.0 ? 0.0f : (float)cut_below(sum, first_bit(sum) - 23);
}

/* Results of one row, one by one: b[k][n]. */
static void sums_of_row(float sums[UNIT_N], const float *a, float b[UNIT_K][UNIT_N])
{
    for (uint32_t n = 0; n < UNIT_N; n++) {
        double numbers[UNIT_K + 1];

        for (uint32_t k = 0; k < UNIT_K; k++) {
            numbers[k] = (double)a[k] * b[k][n];
        }
        numbers[UNIT_K] = sums[n];
        sums[n] =
            as_real(unit.pairs ? sum_in_pairs(numbers, sums[n]) : aligned_sum(numbers, UNIT_K + 1));
    }
}

/*
 * The same where all are aligned at once and no number has a bit behind the last; false where one
 * has. It is written so that a compiler makes vectors of the loops over n: most of the time of
 * emulated halves goes here.
 */
static bool whole_sums_of_row(float sums[UNIT_N], const float *a, float b[UNIT_K][UNIT_N])
{
    const double to_whole = 0x1.8p52; /* added and taken away again: what is left is whole */
    double numbers[UNIT_K + 1][UNIT_N];
    double most[UNIT_N] = {0};
    double scales[UNIT_N];
    double all[UNIT_N] = {0};
    double rest[UNIT_N] = {0};

    for (uint32_t n = 0; n < UNIT_N; n++) {
        numbers[UNIT_K][n] = sums[n];
    }
    for (uint32_t k = 0; k < UNIT_K; k++) {
        for (uint32_t n = 0; n < UNIT_N; n++) {
            numbers[k][n] = (double)a[k] * b[k][n];
        }
    }
    for (uint32_t k = 0; k <= UNIT_K; k++) {
        for (uint32_t n = 0; n < UNIT_N; n++) {
            const double own = fabs(numbers[k][n]);

            most[n] = own > most[n] ? own : most[n];
        }
    }
    for (uint32_t n = 0; n < UNIT_N; n++) {
        scales[n] = most[n] == 0.0 ? 1.0 : power_of_two(unit.bits - first_bit(most[n]));
    }
    for (uint32_t k = 0; k <= UNIT_K; k++) {
        for (uint32_t n = 0; n < UNIT_N; n++) {
            const double scaled = numbers[k][n] * scales[n];
            const double whole = (scaled + to_whole) - to_whole;

            all[n] += whole;
            rest[n] += fabs(scaled - whole);
        }
    }
    for (uint32_t n = 0; n < UNIT_N; n++) {
        if (rest[n] != 0.0) {
            return false;
        }
    }
    for (uint32_t n = 0; n < UNIT_N; n++) {
        sums[n] = as_real(all[n] / scales[n]);
    }
    return true;
}

/* Zeros by numbers, to sums of which the unit keeps all: rows that a tensor has not are so. */
static bool adds_nothing(float sums[UNIT_N], const float *a)
{
    float all = 0.0f;

    for (uint32_t k = 0; k < UNIT_K; k++) {
        all += fabsf(a[k]);
    }
    if (all != 0.0f || unit.bits < UNIT_BITS_LEAST) {
        return false;
    }
    for (uint32_t n = 0; n < UNIT_N; n++) {
        sums[n] += 0.0f; /* no sum is -0 */
    }
    return true;
}

static void halves_into(float *to, uint32_t word)
{
    if ((word & 0x7c00) == 0x7c00 || (word >> 16 & 0x7c00) == 0x7c00) {
        emulator_give_up("a product of a half that is no number");
    }
    to[0] = element_from_f16(word & 0xffff);
    to[1] = element_from_f16(word >> 16);
}

/*
 * mma .m16n8k16, from the tables of the PTX ISA. With g = lane / 4 and t = lane % 4, word i of A
 * has the halves of row g (+ 8 for odd i), columns 2 t and the next (+ 8 for i >= 2); word i of B
 * those of column g, rows 2 t and the next (+ 8 for i = 1); sums lie as those of bytes.
 */
static void products_of_halves(struct warp *warp, uint32_t half)
{
    float a[16][UNIT_K];
    float b[UNIT_K][UNIT_N];
    float sums[16][UNIT_N];

    for (uint32_t lane = 0; lane < WARP; lane++) {
        const uint32_t *words = warp->offers[half][lane].words;
        const uint32_t g = lane / 4;
        const uint32_t at = lane % 4 * 2;

        for (uint32_t i = 0; i < 4; i++) {
            halves_into(&a[g + i % 2 * 8][at + i / 2 * 8], words[i]);
            memcpy(&sums[g + i / 2 * 8][at + i % 2], &words[6 + i], sizeof(float));
        }
        for (uint32_t i = 0; i < 2; i++) {
            float pair[2];

            halves_into(pair, words[4 + i]);
            b[at + i * 8][g] = pair[0];
            b[at + i * 8 + 1][g] = pair[1];
        }
    }
    for (uint32_t m = 0; m < 16; m++) {
        if (adds_nothing(sums[m], a[m])) {
            continue;
        }
        if (unit.pairs || !whole_sums_of_row(sums[m], a[m], b)) {
            sums_of_row(sums[m], a[m], b);
        }
    }
    memcpy(warp->products[half], sums, sizeof(sums));
}

void multiply_halves(int32_t *sums, const uint32_t *a, const uint32_t *b)
{
    race_meet(RACE_MEET_PRODUCT, RACE_SITE);

    struct offer offer = {.words = {a[0], a[1], a[2], a[3], b[0], b[1], (uint32_t)sums[0],
                                    (uint32_t)sums[1], (uint32_t)sums[2], (uint32_t)sums[3]}};
    const uint32_t half = emulator_meet(&offer, products_of_halves);
    const uint32_t lane = emulator->current % WARP;

    for (uint32_t i = 0; i < 4; i++) {
        sums[i] = emulator->warps[emulator->current / WARP]
                      .products[half][lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
}
