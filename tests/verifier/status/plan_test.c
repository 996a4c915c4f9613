/*
 * Goal: the figures of `lockstep verifier plan` are true.
 * Method: every small population by counting all samples; numbers from the literature; shares so
 * small that a naive formula would give nothing.
 */
#include <math.h>

#include "tests/support/test.h"
#include "verifier/status/plan.h"

#define POPULATION_MAX 12

static void assert_near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance * fmax(1.0, fabs(wanted)))) {
        fail_msg("%.17g, wanted %.17g", got, wanted);
    }
}

/* ---- confidence ------------------------------------------------------------------ */

/* Counts the samples that meet a bad one, among all subsets; the bad ones are the first. */
static double found_by_counting(uint32_t segments, uint32_t bad, uint32_t samples)
{
    uint32_t hits = 0;
    uint32_t all = 0;

    for (uint32_t subset = 0; subset < UINT32_C(1) << segments; subset++) {
        if ((uint32_t)__builtin_popcount(subset) != samples) {
            continue;
        }
        all++;
        hits += (subset & ((UINT32_C(1) << bad) - 1)) != 0;
    }
    return (double)hits / (double)all;
}

static void test_chance_is_the_count_of_all_samples(void **state)
{
    (void)state;
    for (uint32_t segments = 1; segments <= POPULATION_MAX; segments++) {
        for (uint32_t bad = 0; bad <= segments; bad++) {
            for (uint32_t samples = 0; samples <= segments; samples++) {
                assert_near(plan_found(segments, bad, samples),
                            found_by_counting(segments, bad, samples), 1e-13);
            }
        }
    }
}

static void test_samples_are_the_fewest_that_do(void **state)
{
    static const double wishes[] = {0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999999};

    (void)state;
    for (uint32_t segments = 1; segments <= 60; segments++) {
        for (uint32_t bad = 1; bad <= segments; bad++) {
            for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
                uint32_t samples = plan_samples(segments, bad, wishes[i]);

                assert_true(samples <= segments);
                assert_true(plan_found(segments, bad, samples) >= wishes[i]);
                assert_true(samples == 0 || plan_found(segments, bad, samples - 1) < wishes[i]);
            }
        }
    }
}

/* One step in a million is found by looking at all: a share of the confidence and no less. */
static void test_one_poisoned_step_needs_the_share_itself(void **state)
{
    (void)state;
    assert_int_equal(plan_samples(1000000, 1, 0.99), 990000);
    assert_near(plan_found(1000000, 1, 1000), 0.001, 1e-12);
    assert_int_equal(plan_samples(PLAN_SEGMENTS_MAX, (PLAN_SEGMENTS_MAX + 1) / 2, 0.5), 1);
    assert_near(plan_found(PLAN_SEGMENTS_MAX, 1, 1), 1.0 / PLAN_SEGMENTS_MAX, 1e-15);
}

/*
 * Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
 * Statistics 12 (1941): the first-order one-sided sizes, as tabulated since: 22 for 90/90, 59 for
 * 95/95, 459 for 99/99; 299 for a share of 1 % at 95 % is discovery sampling's known figure.
 */
static void test_streams_need_what_wilks_found(void **state)
{
    (void)state;
    assert_near(plan_samples_of_stream(0.10, 0.90), 22, 0);
    assert_near(plan_samples_of_stream(0.05, 0.95), 59, 0);
    assert_near(plan_samples_of_stream(0.01, 0.95), 299, 0);
    assert_near(plan_samples_of_stream(0.01, 0.99), 459, 0);
}

/* 1 - 1e-18 is 1 in binary64: a formula with pow() would ask for infinitely many samples. */
static void test_tiny_shares_are_not_rounded_away(void **state)
{
    double samples = plan_samples_of_stream(1e-18, 0.95);

    (void)state;
    assert_near(samples / (-log(0.05) * 1e18), 1.0, 1e-9);
    assert_near(plan_found_by_rate(1, 1, 1e-18) / 1e-18, 1.0, 1e-12);
    assert_near(plan_rate(1e12, 1e6, 0.5) / (log(2.0) * 1e-18), 1.0, 1e-12);
    /* 1e-20 of detection, half of it from each side. */
    assert_near(plan_found_by_rate(2, 1, 5e-21) / 1e-20, 1.0, 1e-12);
}

static void test_rate_and_chance_are_inverse(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        double bad = (double)(1 + test_random_below(&random, 1000));
        double nodes = (double)(1 + test_random_below(&random, 1000));
        double wish = (double)(1 + test_random_below(&random, 999)) / 1000.0;

        assert_near(plan_found_by_rate(bad, nodes, plan_rate(bad, nodes, wish)), wish, 1e-12);
    }
    assert_near(plan_found_by_rate(1, 3, 0.0), 0.0, 0);
    assert_near(plan_found_by_rate(1, 3, 1.0), 1.0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chance_is_the_count_of_all_samples),
        cmocka_unit_test(test_samples_are_the_fewest_that_do),
        cmocka_unit_test(test_one_poisoned_step_needs_the_share_itself),
        cmocka_unit_test(test_streams_need_what_wilks_found),
        cmocka_unit_test(test_tiny_shares_are_not_rounded_away),
        cmocka_unit_test(test_rate_and_chance_are_inverse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
