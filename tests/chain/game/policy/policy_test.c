/*
 * Goal: a policy agrees to what is at its limit and refuses what is past it; each refusal names the
 * term, its value, the limit and the option; no amount overflows.
 * Method: the terms that `job open` makes by default, to which all defaults agree, and from them
 * one term at a time to its limit and past it, for every limit; the largest numbers everywhere.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/game/policy/policy.h"

#define ETH  WEI_PER_ETHER
#define MOST (~(wei)0)

enum {
    SEGMENTS = 100,
    NOW_S = 1000000,
    DAY_S = 86400,
    HOUR_S = 3600,
};

static const struct policy_pace unknown;
static const struct policy_pace fast = {.segment_ms = 1};

/* `job open --reward 100eth`, and nothing else. */
static struct game_terms terms_of_default(void)
{
    return (struct game_terms){.steps = SEGMENTS * 50,
                               .segment_steps = 50,
                               .reward = ETH,
                               .fee = ETH / 10,
                               .stake = SEGMENTS * ETH,
                               .bond = ETH,
                               .seats = 1,
                               .coverage_ppm = GAME_PPM / 5,
                               .panel_least = 3,
                               .segment_period_s = DAY_S,
                               .seal_period_s = 2 * HOUR_S,
                               .reveal_period_s = HOUR_S,
                               .claim_period_s = 3 * HOUR_S,
                               .clock_s = 12 * HOUR_S,
                               .deadline_s = NOW_S + 14 * DAY_S};
}

static struct policy_locked nothing_locked(wei means)
{
    return (struct policy_locked){.means = means};
}

/* ---- seeing ------------------------------------------------------------------ */

static void see_agreed(bool agreed, const struct policy_refusal *refusal)
{
    if (!agreed) {
        fail_msg("%s", refusal->text);
    }
    assert_int_equal(refusal->term, POLICY_AGREED);
    assert_string_equal(refusal->text, "");
}

static void see_refused(bool agreed, const struct policy_refusal *refusal, enum policy_term term,
                        const char *value, const char *limit, const char *option)
{
    assert_false(agreed);
    assert_int_equal(refusal->term, term);
    assert_true(strlen(refusal->text) < POLICY_TEXT_MAX - 1);
    if (strstr(refusal->text, value) == NULL || strstr(refusal->text, limit) == NULL ||
        strstr(refusal->text, option) == NULL) {
        fail_msg("'%s' does not name %s, %s and %s", refusal->text, value, limit, option);
    }
}

/* ---- a node ------------------------------------------------------------------ */

static void test_the_defaults_of_all_roles_agree_with_each_other(void **state)
{
    const struct policy policy = policy_default();
    const struct game_terms terms = terms_of_default();
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    struct policy_refusal refusal;

    (void)state;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal);
    see_agreed(policy_claim(&refusal, &policy, &terms, terms.bond, &locked, &unknown), &refusal);
    see_agreed(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, NOW_S), &refusal);
    see_agreed(policy_open(&refusal, &policy, &terms, NOW_S), &refusal);
}

static void test_quick_terms_are_taken_only_by_one_that_was_told_so(void **state)
{
    const struct policy policies[] = {policy_default(), policy_quick()};
    const struct policy_locked locked = nothing_locked(20 * ETH);
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.seal_period_s = 30;
    terms.reveal_period_s = 20;
    terms.clock_s = 60;
    for (size_t i = 0; i < 2; i++) {
        const struct policy *policy = &policies[i];
        bool quick = i == 1;

        assert_int_equal(policy_enlist(&refusal, policy, &terms, &locked, &fast, NOW_S), quick);
        assert_int_equal(policy_claim(&refusal, policy, &terms, terms.bond, &locked, &unknown),
                         quick);
        assert_int_equal(policy_solve(&refusal, policy, &terms, terms.stake, &unknown, NOW_S),
                         quick);
        assert_int_equal(policy_open(&refusal, policy, &terms, NOW_S), quick);
    }
    terms.reveal_period_s = 9;
    assert_false(policy_open(&refusal, &policies[1], &terms, NOW_S));
}

static void test_a_policy_without_limits_agrees_to_anything(void **state)
{
    const struct policy none = {0};
    const struct policy_locked locked = {.all = MOST, .job = MOST, .client = MOST, .solver = MOST};
    const struct policy_pace pace = {.segment_ms = UINT64_MAX, .left_ms = UINT64_MAX};
    struct game_terms terms = {.bond = WEI_MAX, .stake = WEI_MAX, .deadline_s = UINT64_MAX};
    struct policy_refusal refusal;

    (void)state;
    see_agreed(policy_enlist(&refusal, &none, &terms, &locked, &pace, NOW_S), &refusal);
    see_agreed(policy_claim(&refusal, &none, &terms, terms.bond, &locked, &pace), &refusal);
    see_agreed(policy_solve(&refusal, &none, &terms, 0, &pace, NOW_S), &refusal);
}

static void test_a_node_wants_a_fee_and_a_small_bond(void **state)
{
    const struct policy policy = policy_default();
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.fee = 0;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                POLICY_FEE, "fee of a seat is 0", "1 gwei", "--fee-min");
    terms.fee = WEI_PER_GWEI - 1;
    assert_false(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S));
    terms.fee = WEI_PER_GWEI;
    terms.bond = 20 * WEI_PER_GWEI;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal);
    terms.bond++;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                POLICY_BOND, "20.000000001 gwei", "20 fees", "--bond-fees-max");
}

static void test_a_node_wants_its_replay_paid(void **state)
{
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    const struct policy_pace pace = {.segment_ms = 1800 * 1000};
    struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    policy.price = ETH / 5; /* half an hour costs a tenth, and 1.3 times that is wanted */
    terms.fee = ETH / 100 * 13;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal);
    terms.fee--;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal,
                POLICY_FEE, "0.129999999999999999 eth", "costs 0.1 eth", "--cost-cover");
}

/* Nobody buys ten minutes for a gwei. */
static void test_a_node_that_was_told_no_price_has_one(void **state)
{
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    const struct policy_pace pace = {.segment_ms = 600 * 1000};
    const struct policy policies[] = {policy_default(), policy_quick()};
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        terms.fee = 65000 * WEI_PER_GWEI; /* 0.0003 ether an hour */
        terms.bond = 20 * terms.fee;
        see_agreed(policy_enlist(&refusal, &policies[i], &terms, &locked, &pace, NOW_S), &refusal);
        terms.fee--;
        terms.bond = 20 * terms.fee;
        see_refused(policy_enlist(&refusal, &policies[i], &terms, &locked, &pace, NOW_S), &refusal,
                    POLICY_FEE, "0.000064999999999999 eth", "costs 0.00005 eth", "--cost-cover");
    }
}

/* 200,000 gas for 5 gwei are a thousandth of a coin. */
static void test_a_node_wants_its_gas_paid(void **state)
{
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    struct policy_pace pace = {.segment_ms = 1, .gas_price = 5 * WEI_PER_GWEI};
    struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    policy.price = 0;
    terms.fee = 1300000 * WEI_PER_GWEI;
    terms.bond = 20 * terms.fee;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal);
    pace.gas_price++;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal,
                POLICY_FEE, "0.0013 eth", "gas included", "--cost-cover");
    pace = (struct policy_pace){.segment_ms = 1, .gas_price = 5 * WEI_PER_GWEI};
    policy.currency = currency_of_token("USDC", 18);
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal,
                POLICY_FEE, "in a token", "costs in it", "--token-price");
    policy.token_price = ETH; /* the token is worth as much */
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal);
    policy.token_price++;
    assert_false(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S));
}

static void test_a_node_enlists_nowhere_unmeasured(void **state)
{
    const struct policy policy = policy_default();
    const struct policy none = {0};
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    const struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &unknown, NOW_S), &refusal,
                POLICY_PACE, "the pace of this machine", "is not known", "measured");
    assert_string_equal(policy_term_word(refusal.term), "pace");
    assert_false(policy_enlist(&refusal, &none, &terms, &locked, &unknown, NOW_S));
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, NULL, NOW_S), &refusal);
}

static void test_a_node_takes_no_seat_that_waits_for_days(void **state)
{
    const struct policy policy = policy_default();
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.segment_period_s = 2 * DAY_S;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal);
    terms.segment_period_s++;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                POLICY_SEGMENT_PERIOD, "is 172801s", "2d at most", "--segment-period-max");
}

static void test_a_node_wants_time(void **state)
{
    const struct policy policy = policy_default();
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    const struct {
        enum policy_term term;
        size_t at;
        uint32_t least;
        const char *limit;
        const char *option;
    } periods[] = {
        {POLICY_SEAL_PERIOD, offsetof(struct game_terms, seal_period_s), 600, "10m",
         "--seal-period-min"},
        {POLICY_REVEAL_PERIOD, offsetof(struct game_terms, reveal_period_s), 600, "10m",
         "--reveal-period-min"},
        {POLICY_CLOCK, offsetof(struct game_terms, clock_s), 3600, "1h", "--clock-min"},
    };
    struct policy_refusal refusal;

    (void)state;
    for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
        struct game_terms terms = terms_of_default();
        uint32_t *period_s = (uint32_t *)(void *)((uint8_t *)&terms + periods[i].at);

        *period_s = periods[i].least;
        see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal);
        *period_s = 1;
        see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                    periods[i].term, "is 1s", periods[i].limit, periods[i].option);
        *period_s = periods[i].least - 1;
        assert_false(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S));
    }
}

static void test_periods_outlast_what_a_check_takes_here(void **state)
{
    const struct policy policy = policy_default();
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    struct policy_pace pace = {.segment_ms = 4 * HOUR_S * 1000};
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.seal_period_s = 12 * HOUR_S;
    terms.deadline_s = NOW_S + DAY_S;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal);
    pace.segment_ms++;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal,
                POLICY_SEAL_PERIOD, "12h", "3 times", "--clock-factor");
    terms.seal_period_s = DAY_S;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &pace, NOW_S), &refusal,
                POLICY_CLOCK, "12h", "3 times", "--clock-factor");
    see_refused(policy_claim(&refusal, &policy, &terms, terms.bond, &locked, &pace), &refusal,
                POLICY_CLOCK, "12h", "3 times", "--clock-factor");
    see_refused(policy_solve(&refusal, &policy, &terms, MOST, &pace, NOW_S), &refusal, POLICY_CLOCK,
                "12h", "3 times", "--clock-factor");
}

/* ---- locks ------------------------------------------------------------------- */

static void see_room(const struct policy_locked *before, size_t at, wei most, const char *option)
{
    const struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_locked locked = *before;
    wei *amount = (wei *)(void *)((uint8_t *)&locked + at);
    struct policy_refusal refusal;

    *amount = most - terms.bond;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal);
    see_agreed(policy_claim(&refusal, &policy, &terms, terms.bond, &locked, &unknown), &refusal);
    (*amount)++;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                POLICY_BOND, "is 1 eth", "locked", option);
    assert_true(refusal.for_now);
    see_refused(policy_claim(&refusal, &policy, &terms, terms.bond, &locked, &unknown), &refusal,
                POLICY_BOND, "is 1 eth", "locked", option);
    *amount = MOST;
    assert_false(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S));
}

static void test_what_is_locked_is_counted_in_all_and_for_job_and_party(void **state)
{
    const struct policy_locked empty = nothing_locked(200 * ETH);

    (void)state;
    see_room(&empty, offsetof(struct policy_locked, all), 4 * ETH, "--lock-max");
    see_room(&empty, offsetof(struct policy_locked, job), 2 * ETH, "--lock-job-max");
    see_room(&empty, offsetof(struct policy_locked, client), 2 * ETH, "--lock-party-max");
    see_room(&empty, offsetof(struct policy_locked, solver), 2 * ETH, "--lock-party-max");
}

static void test_a_bond_that_never_fits_is_refused_for_good(void **state)
{
    const struct policy policy = policy_default();
    const struct game_terms terms = terms_of_default();
    const struct policy_locked locked = nothing_locked(10 * ETH);
    struct policy_refusal refusal;

    (void)state;
    assert_false(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S));
    assert_false(refusal.for_now);
}

static void test_a_limit_may_be_an_amount(void **state)
{
    const struct game_terms terms = terms_of_default();
    const struct policy_locked locked = nothing_locked(0);
    struct policy policy = {.lock_all = {.set = true, .amount = ETH}};
    struct policy_refusal refusal;

    (void)state;
    see_agreed(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal);
    policy.lock_all.amount--;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                POLICY_BOND, "is 1 eth", "at most", "--lock-max");
}

/* A node with 100 ether at its defaults: under any terms it never locks more than two. */
static void test_a_node_at_its_defaults_risks_little(void **state)
{
    const struct policy policy = policy_default();
    struct policy_locked locked = nothing_locked(100 * ETH);
    struct policy_refusal refusal;
    struct game_terms terms = terms_of_default();

    (void)state;
    for (uint32_t jobs = 0; jobs < 1000; jobs++) { /* each of another client and another solver */
        terms.bond = ETH / 64 * (jobs % 64 + 1);
        terms.fee = terms.bond;
        locked.job = 0;
        for (int again = 0; again < 64; again++) {
            locked.client = locked.solver = locked.job;
            if (policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S) ||
                policy_claim(&refusal, &policy, &terms, terms.bond, &locked, &unknown)) {
                locked.all += terms.bond;
                locked.job += terms.bond;
            }
            assert_true(locked.job <= ETH);
            assert_true(locked.all <= 2 * ETH);
        }
    }
}

/* ---- how long ---------------------------------------------------------------- */

/* At the default terms: 14 days until the deadline, 12 rounds of 3 hours (64 places: 1, 1, 1, 1,
 * 4, 8, 9, 9, 9, 9, 9 and what is left), each behind the 192 seconds of its seed, four claim
 * periods, 17 clocks. */
static void test_the_time_of_a_lock_counts_all_that_can_hold_it(void **state)
{
    struct game_terms terms = terms_of_default();

    (void)state;
    assert_int_equal(policy_lock_time(&terms, NOW_S),
                     14 * DAY_S + (12 * 3 + 4 * 3 + 17 * 12) * HOUR_S + 12 * 192);
    assert_int_equal(policy_lock_time(&terms, terms.deadline_s),
                     policy_lock_time(&terms, UINT64_MAX));
    assert_int_equal(policy_lock_time(&terms, NOW_S) - policy_lock_time(&terms, UINT64_MAX),
                     14 * DAY_S);
    terms.seats = 0; /* then nobody draws, and nobody says unseen */
    assert_int_equal(policy_lock_time(&terms, NOW_S), 14 * DAY_S + (3 + 3 + 17 * 12) * HOUR_S);
    terms.deadline_s = UINT64_MAX;
    assert_true(policy_lock_time(&terms, 0) == UINT64_MAX);
}

/* Each is made the longest, up to the 30 days and a second past them. */
static void test_terms_that_hold_bond_and_stake_for_long_are_refused(void **state)
{
    const struct policy policies[] = {policy_default(), policy_quick()};
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    const struct {
        enum policy_term term;
        size_t at;
        uint32_t times;
        const char *name;
    } periods[] = {
        {POLICY_SEAL_PERIOD, offsetof(struct game_terms, seal_period_s), 12, "the seal period"},
        {POLICY_REVEAL_PERIOD, offsetof(struct game_terms, reveal_period_s), 12,
         "the reveal period"},
        {POLICY_CLAIM_PERIOD, offsetof(struct game_terms, claim_period_s), 4, "the claim period"},
        {POLICY_CLOCK, offsetof(struct game_terms, clock_s), 17, "the clock"},
    };
    struct policy_refusal refusal;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(periods) / sizeof(periods[0]); i++) {
        const struct policy *policy = &policies[i % 2];
        struct game_terms terms = terms_of_default();
        uint32_t *period_s = (uint32_t *)(void *)((uint8_t *)&terms + periods[i / 2].at);
        uint32_t room_s;

        terms.deadline_s = NOW_S + DAY_S;
        room_s = 30 * DAY_S - (uint32_t)policy_lock_time(&terms, NOW_S);
        *period_s += room_s / periods[i / 2].times;
        terms.deadline_s += room_s % periods[i / 2].times;
        see_agreed(policy_enlist(&refusal, policy, &terms, &locked, &fast, NOW_S), &refusal);
        see_agreed(policy_solve(&refusal, policy, &terms, terms.stake, &unknown, NOW_S), &refusal);
        see_agreed(policy_open(&refusal, policy, &terms, NOW_S), &refusal);
        terms.deadline_s++;
        see_refused(policy_enlist(&refusal, policy, &terms, &locked, &fast, NOW_S), &refusal,
                    periods[i / 2].term, periods[i / 2].name, "2592001s in all",
                    "30d at most (--lock-time-max)");
        see_refused(policy_solve(&refusal, policy, &terms, terms.stake, &unknown, NOW_S), &refusal,
                    periods[i / 2].term, periods[i / 2].name, "2592001s in all",
                    "30d at most (--lock-time-max)");
        assert_false(policy_open(&refusal, policy, &terms, NOW_S));
        see_agreed(policy_enlist(&refusal, policy, &terms, &locked, &fast, NOW_S + 1), &refusal);
    }
}

static void test_a_deadline_that_is_far_is_refused(void **state)
{
    const struct policy policy = policy_default();
    const struct policy_locked locked = nothing_locked(1000 * ETH);
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.deadline_s = NOW_S + 3650 * DAY_S;
    see_refused(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S), &refusal,
                POLICY_DEADLINE, "the time until the deadline is 3650d", "30d at most",
                "--lock-time-max");
    assert_false(refusal.for_now);
    assert_false(policy_open(&refusal, &policy, &terms, NOW_S));
    assert_string_equal(policy_term_option(refusal.term), "--deadline");
    see_agreed(policy_claim(&refusal, &policy, &terms, terms.bond, &locked, &unknown), &refusal);
}

/* ---- a solver ---------------------------------------------------------------- */

static void test_a_solver_wants_a_reward_for_its_stake(void **state)
{
    const struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.stake = 4 * SEGMENTS * ETH;
    see_agreed(policy_solve(&refusal, &policy, &terms, 0, &unknown, NOW_S), &refusal);
    terms.stake++;
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &unknown, NOW_S), &refusal, POLICY_STAKE,
                "400.000000000000000001 eth", "4 times", "--stake-rewards-max");
    terms.reward = 1;
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &unknown, NOW_S), &refusal,
                POLICY_REWARD, "is 1 wei", "1 gwei", "--reward-min");
}

static void test_a_solver_may_limit_its_stake(void **state)
{
    const struct game_terms terms = terms_of_default();
    struct policy policy = policy_default();
    struct policy_refusal refusal;

    (void)state;
    policy.stake_max = (struct policy_cap){.set = true, .is_share = true, .share_ppm = 500000};
    see_agreed(policy_solve(&refusal, &policy, &terms, 2 * terms.stake, &unknown, NOW_S), &refusal);
    see_refused(policy_solve(&refusal, &policy, &terms, 2 * terms.stake - 2, &unknown, NOW_S),
                &refusal, POLICY_STAKE, "100 eth", "at most", "--stake-max");
}

static void test_a_solver_wants_time(void **state)
{
    const struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_pace pace = {.segment_ms = HOUR_S * 1000};
    struct policy_refusal refusal;

    (void)state;
    terms.deadline_s = NOW_S + 15 * DAY_S;
    pace.left_ms = (uint64_t)12 * DAY_S * 1000; /* a quarter more is 15 days */
    see_agreed(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S), &refusal);
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S + 1), &refusal,
                POLICY_DEADLINE, "1295999s", "1.25 times", "--time-spare");
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &pace, UINT64_MAX), &refusal,
                POLICY_DEADLINE, "is 0s", "1.25 times", "--time-spare");
    terms.segment_period_s = HOUR_S + HOUR_S / 4;
    see_agreed(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S), &refusal);
    terms.segment_period_s--;
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S), &refusal,
                POLICY_SEGMENT_PERIOD, "4499s", "1.25 times", "--time-spare");
    terms.clock_s = 1;
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S), &refusal, POLICY_CLOCK,
                "is 1s", "1h", "--clock-min");
}

static void test_a_solver_wants_its_work_paid_where_it_knows_the_price(void **state)
{
    const struct policy_pace pace = {.segment_ms = HOUR_S * 1000};
    const struct game_terms terms = terms_of_default();
    struct policy policy = policy_default();
    struct policy_refusal refusal;

    (void)state;
    policy.price = ETH / 13 * 10;
    see_agreed(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S), &refusal);
    policy.price = ETH;
    see_refused(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S), &refusal, POLICY_REWARD,
                "is 1 eth", "1.3 times", "--cost-cover");
}

/* ---- a client ---------------------------------------------------------------- */

static void test_a_client_hears_of_terms_that_nobody_takes(void **state)
{
    struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.reveal_period_s = 1;
    assert_false(policy_open(&refusal, &policy, &terms, NOW_S));
    assert_string_equal(policy_term_option(refusal.term), "--reveal-period");
    assert_string_equal(policy_term_word(refusal.term), "reveal");
    terms.seats = 0; /* then nobody reveals */
    see_agreed(policy_open(&refusal, &policy, &terms, NOW_S), &refusal);
    terms.stake *= 5;
    assert_false(policy_open(&refusal, &policy, &terms, NOW_S));
    assert_string_equal(policy_term_option(refusal.term), "--stake");
}

/* ---- the largest numbers ------------------------------------------------------- */

static void test_no_amount_overflows(void **state)
{
    const struct policy_pace pace = {.segment_ms = UINT64_MAX, .left_ms = UINT64_MAX};
    const struct policy_locked locked = {MOST, MOST, MOST, MOST, MOST};
    struct policy policy = policy_default();
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    terms.bond = terms.stake = WEI_MAX;
    assert_false(policy_enlist(&refusal, &policy, &terms, NULL, &fast, NOW_S));
    assert_false(policy_solve(&refusal, &policy, &terms, MOST, &unknown, NOW_S));
    terms.fee = terms.reward = MOST;
    assert_false(policy_enlist(&refusal, &policy, &terms, &locked, &fast, NOW_S));
    see_agreed(policy_enlist(&refusal, &policy, &terms, NULL, &fast, NOW_S), &refusal);
    see_agreed(policy_solve(&refusal, &policy, &terms, 0, &unknown, NOW_S), &refusal);
    policy.price = MOST;
    policy.cost_cover = UINT32_MAX;
    terms.fee = terms.reward = MOST - 1;
    assert_false(policy_enlist(&refusal, &policy, &terms, NULL, &pace, NOW_S));
    assert_int_equal(refusal.term, POLICY_FEE);
    assert_false(policy_solve(&refusal, &policy, &terms, 0, &pace, NOW_S));
    assert_int_equal(refusal.term, POLICY_REWARD);
    policy.price = 0;
    policy.lock_time_max_s = 0;
    policy.clock_factor = UINT32_MAX;
    terms.seal_period_s = terms.clock_s = GAME_PERIOD_MAX;
    assert_false(policy_enlist(&refusal, &policy, &terms, NULL, &pace, NOW_S));
    assert_int_equal(refusal.term, POLICY_SEAL_PERIOD);
    assert_false(policy_claim(&refusal, &policy, &terms, terms.bond, NULL, &pace));
    assert_int_equal(refusal.term, POLICY_CLOCK);
}

/* A segment in half an hour for one ether is two an hour. */
static void test_a_solver_wants_its_hour_paid(void **state)
{
    struct policy policy = {.hour_least = 2 * ETH, .price = ETH};
    struct policy_pace pace = {.segment_ms = HOUR_S * 500};
    struct game_terms terms = terms_of_default();
    struct policy_refusal refusal;

    (void)state;
    assert_true(policy_hour(ETH, &pace) == 2 * ETH);
    assert_true(policy_hour(ETH, &unknown) == 0);
    terms.reward = 3 * ETH / 2;
    see_agreed(policy_solve(&refusal, &policy, &terms, MOST, &pace, NOW_S), &refusal);
    terms.reward--;
    see_refused(policy_solve(&refusal, &policy, &terms, MOST, &pace, NOW_S), &refusal,
                POLICY_REWARD, "costs 1 eth", "2 eth beyond", "--hour-min");
    see_agreed(policy_solve(&refusal, &policy, &terms, MOST, &unknown, NOW_S), &refusal);
    policy.price = 0;
    terms.reward = ETH;
    see_agreed(policy_solve(&refusal, &policy, &terms, MOST, &pace, NOW_S), &refusal);
    pace.segment_ms++;
    see_refused(policy_solve(&refusal, &policy, &terms, MOST, &pace, NOW_S), &refusal,
                POLICY_REWARD, "--hour-min", "an hour", "this machine");
}

/* A void burns the price of what is open, and of one more. */
static void test_a_solver_has_no_more_open_than_its_stake(void **state)
{
    struct game_terms terms = terms_of_default();

    (void)state;
    assert_int_equal(policy_ahead(&terms, 24), 24);
    terms.stake = 21 * ETH;
    assert_int_equal(policy_ahead(&terms, 24), 20);
    terms.stake--;
    assert_int_equal(policy_ahead(&terms, 24), 19);
    terms.stake = 1; /* a leg can be as long as this */
    assert_int_equal(policy_ahead(&terms, 24), GAME_LEG_MAX);
    terms.stake = MOST;
    assert_int_equal(policy_ahead(&terms, 1), GAME_LEG_MAX);
    assert_int_equal(policy_ahead(&terms, 60), 60);
}

static void test_what_is_in_force_is_told(void **state)
{
    const struct policy policy = policy_default();
    const struct policy none = {0};
    char text[POLICY_TEXT_MAX];

    (void)state;
    policy_describe_node(text, &policy);
    assert_non_null(strstr(text, "2 % in all, 1 % in a job, 1 % for a party, 20 fees"));
    assert_non_null(strstr(text, "for 30d;"));
    assert_true(strlen(text) < POLICY_TEXT_MAX - 1);
    policy_describe_solver(text, &policy);
    assert_non_null(strstr(text, "4 whole rewards"));
    assert_non_null(strstr(text, "for 30d;"));
    policy_describe_node(text, &none);
    assert_non_null(strstr(text, "any in all"));
    assert_non_null(strstr(text, "for any time;"));
    assert_true(strlen(text) < POLICY_TEXT_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_defaults_of_all_roles_agree_with_each_other),
        cmocka_unit_test(test_quick_terms_are_taken_only_by_one_that_was_told_so),
        cmocka_unit_test(test_a_policy_without_limits_agrees_to_anything),
        cmocka_unit_test(test_a_node_wants_a_fee_and_a_small_bond),
        cmocka_unit_test(test_a_node_wants_its_replay_paid),
        cmocka_unit_test(test_a_node_that_was_told_no_price_has_one),
        cmocka_unit_test(test_a_node_wants_its_gas_paid),
        cmocka_unit_test(test_a_node_enlists_nowhere_unmeasured),
        cmocka_unit_test(test_a_node_takes_no_seat_that_waits_for_days),
        cmocka_unit_test(test_a_node_wants_time),
        cmocka_unit_test(test_periods_outlast_what_a_check_takes_here),
        cmocka_unit_test(test_what_is_locked_is_counted_in_all_and_for_job_and_party),
        cmocka_unit_test(test_a_bond_that_never_fits_is_refused_for_good),
        cmocka_unit_test(test_a_limit_may_be_an_amount),
        cmocka_unit_test(test_a_node_at_its_defaults_risks_little),
        cmocka_unit_test(test_the_time_of_a_lock_counts_all_that_can_hold_it),
        cmocka_unit_test(test_terms_that_hold_bond_and_stake_for_long_are_refused),
        cmocka_unit_test(test_a_deadline_that_is_far_is_refused),
        cmocka_unit_test(test_a_solver_wants_a_reward_for_its_stake),
        cmocka_unit_test(test_a_solver_may_limit_its_stake),
        cmocka_unit_test(test_a_solver_wants_time),
        cmocka_unit_test(test_a_solver_wants_its_work_paid_where_it_knows_the_price),
        cmocka_unit_test(test_a_client_hears_of_terms_that_nobody_takes),
        cmocka_unit_test(test_no_amount_overflows),
        cmocka_unit_test(test_a_solver_wants_its_hour_paid),
        cmocka_unit_test(test_a_solver_has_no_more_open_than_its_stake),
        cmocka_unit_test(test_what_is_in_force_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
