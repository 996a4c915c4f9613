/*
 * scalar_bench.c - the error of exp, log and tanh over all 2^32 inputs, in units in the last place
 * of the exact result, against the C library's double precision; near the worst error (2^-20 ulp)
 * its long double decides. Exits with 1 if an error is above 2 ulp.
 */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/support/bench.h"
#include "engine/ops/scalar.h"

#define ULP_MAX    2.0
/* Slices of the inputs, by their high bits. */
#define SLICES     4096
#define SLICE_BITS 20

struct function {
    const char *name;
    float (*ours)(float);
    double (*exact)(double);
    long double (*finer)(long double);
};

struct worst {
    double ulp;
    float x;
};

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double spacing(double exact)
{
    int exponent;

    if (fabs(exact) < 0x1p-126) {
        return 0x1p-149;
    }
    (void)frexp(exact, &exponent);
    return ldexp(1.0, exponent - 24);
}

static double error_in_ulp(const struct function *function, float x, double so_far)
{
    float got = function->ours(x);
    double exact = function->exact((double)x);

    if (isnan(exact)) {
        return isnan(got) ? 0.0 : INFINITY;
    }
    if (isinf(exact) || isinf(got)) {
        /* Infinity is right from half a spacing past the largest number on. */
        bool same_side = (got > 0.0f) == (exact > 0.0);
        return isinf(got) && same_side && fabs(exact) > (double)FLT_MAX ? 0.0 : INFINITY;
    }

    double error = fabs((double)got - exact) / spacing(exact);
    if (error > so_far - 0x1p-20) {
        long double finer = function->finer((long double)x);
        error = (double)(fabsl((long double)got - finer) / (long double)spacing(exact));
    }
    return error;
}

static struct worst worst_of_slice(const struct function *function, uint32_t slice)
{
    struct worst worst = {0.0, 0.0f};

    for (uint32_t low = 0; low >> SLICE_BITS == 0; low++) {
        float x = float_of(slice << SLICE_BITS | low);
        double error = error_in_ulp(function, x, worst.ulp);

        if (error > worst.ulp) {
            worst = (struct worst){error, x};
        }
    }
    return worst;
}

static struct worst worst_of_all(const struct function *function)
{
    struct worst worst = {0.0, 0.0f};

#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t slice = 0; slice < SLICES; slice++) {
        struct worst one = worst_of_slice(function, slice);

#pragma omp critical
        if (one.ulp > worst.ulp) {
            worst = one;
        }
    }
    return worst;
}

int main(int argc, char **argv)
{
    static const struct function functions[] = {
        {"exp", scalar_exp, exp, expl},
        {"log", scalar_log, log, logl},
        {"tanh", scalar_tanh, tanh, tanhl},
    };
    struct bench bench;
    int failures = 0;

    bench_init(&bench, "worst error over all 2^32 inputs", "the bound", argc, argv);
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
        struct worst worst = worst_of_all(&functions[f]);
        char name[BENCH_NAME_MAX];

        snprintf(name, sizeof(name), "%s, worst at %a", functions[f].name, (double)worst.x);
        bench_record(&bench, name, "ulp", worst.ulp, ULP_MAX, 0);
        failures += !(worst.ulp <= ULP_MAX);
    }
    return bench_finish(&bench) != 0 || failures != 0;
}
