/* plan.c - see plan.h. */
#include "verifier/status/plan.h"

#include <assert.h>
#include <math.h>

#include "chain/game/policy/economy.h"

/* ---- confidence ------------------------------------------------------------------ */

/*
 * The log of C(N-K, n) / C(N, n), which is the product over i < K of 1 - n / (N - i), and the same
 * with K and n exchanged: the shorter product is taken.
 */
static double log_missed(uint32_t segments, uint32_t bad, uint32_t samples)
{
    uint32_t factors = bad < samples ? bad : samples;
    uint32_t other = bad < samples ? samples : bad;
    double sum = 0.0;

    for (uint32_t i = 0; i < factors; i++) {
        if (other >= segments - i) {
            return -INFINITY;
        }
        sum += log1p(-(double)other / (double)(segments - i));
    }
    return sum;
}

double plan_found(uint32_t segments, uint32_t bad, uint32_t samples)
{
    assert(bad <= segments);
    assert(samples <= segments);
    return -expm1(log_missed(segments, bad, samples));
}

uint32_t plan_samples(uint32_t segments, uint32_t bad, double confidence)
{
    assert(bad > 0);
    assert(bad <= segments);
    assert(confidence < 1.0);

    uint32_t most = segments - bad + 1; /* so many cannot miss a bad one */
    uint32_t few = 0;
    uint32_t enough = 1;

    /* plan_found() never falls as samples are added; doubling first keeps its products short. */
    while (enough < most && plan_found(segments, bad, enough) < confidence) {
        few = enough + 1;
        enough = enough > most / 2 ? most : 2 * enough;
    }
    while (few < enough) {
        uint32_t middle = few + (enough - few) / 2;

        if (plan_found(segments, bad, middle) >= confidence) {
            enough = middle;
        } else {
            few = middle + 1;
        }
    }
    return few;
}

double plan_samples_of_stream(double share, double confidence)
{
    return ceil(log1p(-confidence) / log1p(-share));
}

double plan_found_by_rate(double bad, double nodes, double rate)
{
    return economy_one_of(bad * nodes, rate);
}

double plan_rate(double bad, double nodes, double confidence)
{
    assert(bad * nodes > 0.0);
    return -expm1(log1p(-confidence) / (bad * nodes));
}

/* ---- time --------------------------------------------------------------------------- */

/* Starting a child and giving it job, roots and machine (docs/TESTING.md, what checking costs). */
#define CHECK_START_S 0.03

/* A checkpoint is read, taken over and hashed: about two hashings. */
static double beside_steps(const struct plan_times *times)
{
    return CHECK_START_S + 2.0 * times->hash;
}

double plan_replay(const struct plan_times *times, double segment_steps)
{
    return 1.0 + beside_steps(times) / (times->step * segment_steps);
}

double plan_steps_least(const struct plan_times *times, double most)
{
    assert(most > 1.0);
    return ceil(beside_steps(times) / (times->step * (most - 1.0)));
}
