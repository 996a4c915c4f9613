/*
 * Goal: the figures of `lockstep verifier plan` are true.
 * Method: every small population by counting all samples; numbers from the literature; random play
 * of the same game; shares so small that a naive formula would give nothing.
 */
#include <math.h>
#include <stdbool.h>

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

/* ---- money ------------------------------------------------------------------------- */

static double coin(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

static struct plan_terms some_terms(uint64_t *random)
{
    return (struct plan_terms){.reward = 1.0 + coin(random),
                               .fee = 0.2 * coin(random),
                               .stake = 20.0 * coin(random),
                               .bond = coin(random),
                               .attestors = (double)test_random_below(random, 4),
                               .coverage = coin(random),
                               .cost = coin(random),
                               .gas = 0.01 * coin(random),
                               .saved = coin(random),
                               .honest = coin(random),
                               .watchers = (double)test_random_below(random, 5),
                               .extra = 0.3 * coin(random),
                               .accomplice = coin(random),
                               .open_segments = (double)(1 + test_random_below(random, 4))};
}

/* Is one cheated segment convicted? As PROTOCOL.md plays it: drawn, seats, secret samples. */
static bool convicted(const struct plan_terms *terms, uint64_t *random)
{
    bool found = false;

    if (coin(random) < terms->coverage) {
        for (int seat = 0; seat < (int)terms->attestors; seat++) {
            found |= coin(random) < terms->honest;
        }
    }
    for (int watcher = 0; watcher < (int)terms->watchers; watcher++) {
        found |= coin(random) < terms->extra;
    }
    return found;
}

/* What a solver that cheats in `bad` segments has more than an honest one, in one play. */
static double play(const struct plan_terms *terms, int bad, uint64_t *random)
{
    double more = 0.0;

    for (int i = 0; i < bad; i++) {
        more += terms->saved * terms->cost;
        if (convicted(terms, random)) {
            double friend_has = coin(random) < terms->accomplice ? 0.5 * terms->stake : 0.0;

            return more - terms->stake + friend_has - terms->reward * terms->open_segments;
        }
    }
    return more;
}

static void test_advantage_of_a_cheat_is_the_mean_of_random_play(void **state)
{
    uint64_t random = 11;
    uint64_t plays = test_share(1000000, 60000);

    (void)state;
    for (int trial = 0; trial < 20; trial++) {
        struct plan_terms terms = some_terms(&random);
        int bad = (int)(1 + test_random_below(&random, 6));
        struct plan_economy economy;
        double sum = 0.0;
        double squares = 0.0;

        plan_economy(&economy, &terms);
        for (uint64_t i = 0; i < plays; i++) {
            double more = play(&terms, bad, &random);

            sum += more;
            squares += more * more;
        }
        double mean = sum / (double)plays;
        double error = sqrt(fmax(0.0, squares / (double)plays - mean * mean) / (double)plays);
        double unseen = 10.0 * economy.loss / (double)plays; /* a rare conviction may not come */

        /* Five standard errors: one false alarm in about 90,000 runs of this test. */
        assert_true(fabs(mean - plan_advantage(&economy, bad)) <= 5.0 * error + unseen + 1e-9);
        assert_true((plan_advantage(&economy, bad) > 0.0) == (economy.value > 0.0));
    }
}

static void test_break_even_is_where_cheating_gains_nothing(void **state)
{
    uint64_t random = 13;

    (void)state;
    for (int trial = 0; trial < 1000; trial++) {
        struct plan_terms terms = some_terms(&random);
        struct plan_economy economy;

        plan_economy(&economy, &terms);
        if (economy.detection == 0.0 || economy.stake_least == 0.0) {
            continue;
        }
        terms.stake = economy.stake_least;
        plan_economy(&economy, &terms);
        assert_near(economy.value, 0.0, 1e-12);
        assert_near(plan_advantage(&economy, 17), 0.0, 1e-9);
        assert_near(economy.detection, economy.detection_least, 1e-9);
    }
}

static void test_without_detection_every_cheat_pays(void **state)
{
    const struct plan_terms terms = {
        .stake = 1e9, .cost = 2.0, .saved = 0.5, .reward = 3.0, .open_segments = 1.0};
    struct plan_economy economy;

    (void)state;
    plan_economy(&economy, &terms);
    assert_near(economy.detection, 0.0, 0);
    assert_near(economy.value, 1.0, 0);
    assert_true(isinf(economy.stake_least));
    assert_near(plan_advantage(&economy, 10), 10.0, 1e-15);
}

/* A claim by a friend brings half of the stake back: twice the stake is needed then. */
static void test_accomplice_halves_the_stake(void **state)
{
    struct plan_terms terms = {.stake = 10.0,
                               .cost = 1.0,
                               .saved = 1.0,
                               .attestors = 1.0,
                               .honest = 0.25,
                               .coverage = 1.0};
    struct plan_economy alone;
    struct plan_economy helped;

    (void)state;
    plan_economy(&alone, &terms);
    terms.accomplice = 1.0;
    plan_economy(&helped, &terms);
    assert_near(alone.stake_least, 4.0, 1e-12);
    assert_near(helped.stake_least, 8.0, 1e-12);
}

/*
 * The inspection game in Dresher's form (as told by Avenhaus, von Stengel and Zamir, "Inspection
 * games", Handbook of Game Theory 3, 2002): in the mixed equilibrium each side makes the other
 * indifferent. Checked on the 2 x 2 matrix itself.
 */
static void test_equilibrium_leaves_both_sides_indifferent(void **state)
{
    const struct plan_terms terms = {
        .stake = 8.0, .cost = 1.0, .saved = 0.5, .reward = 2.0, .open_segments = 1.0};
    struct plan_equilibrium both;

    (void)state;
    plan_equilibrium(&both, &terms);
    /* Watcher: checking pays half of the stake when it meets a cheat, and costs a replay. */
    assert_near(both.cheat_rate * (0.5 * terms.stake) - terms.cost, 0.0, 1e-15);
    /* Solver: cheating saves half a unit, and when it is checked takes stake and reward. */
    assert_near(terms.saved * terms.cost - both.check_rate * (terms.stake + terms.reward), 0.0,
                1e-15);
    assert_near(both.cheat_rate, 0.25, 1e-15);
    assert_near(both.check_rate, 0.05, 1e-15);
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
        cmocka_unit_test(test_advantage_of_a_cheat_is_the_mean_of_random_play),
        cmocka_unit_test(test_break_even_is_where_cheating_gains_nothing),
        cmocka_unit_test(test_without_detection_every_cheat_pays),
        cmocka_unit_test(test_accomplice_halves_the_stake),
        cmocka_unit_test(test_equilibrium_leaves_both_sides_indifferent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
