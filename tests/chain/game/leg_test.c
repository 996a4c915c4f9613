/*
 * Goal: the rules of a leg are those of docs/PROTOCOL.md; by them nobody gains by an attack, and
 * nobody honest is driven into a loss.
 * Method: the functions by hand; then a small version of bench/network_bench.c: every attack in
 * settings of the grid, a rival against a keeper, solvers that are killed or kept waiting. Checks
 * of the checker: what must gain does, and so does a liar that nobody looks at.
 */
#include <math.h>
#include <string.h>

#include "chain/game/policy/economy.h"
#include "tests/support/network/network_leg.h"
#include "tests/support/network/network_plays.h"
#include "tests/support/test.h"

#define SEED UINT64_C(8000)

/* ---- by hand ------------------------------------------------------------------------------ */

static void test_rounds_take_what_is_missing_and_from_the_fifth_as_many_as_before(void **state)
{
    struct leg_tally tally = {.wanted = 2, .rights = 1, .drawn = 2, .to = 2, .panel = 30};

    (void)state;
    assert_int_equal(leg_seats_needed(&tally), 1); /* one is silent */
    tally.unseen = 1;                              /* the first one is as silence, */
    assert_int_equal(leg_seats_needed(&tally), 1);
    tally.unseen = 2; /* and not the second, */
    assert_int_equal(leg_seats_needed(&tally), 2);
    tally.wanted = 1; /* nor where one right is wanted */
    assert_int_equal(leg_seats_needed(&tally), 2);
    tally.wanted = 2;
    tally.vouched = true;
    assert_int_equal(leg_seats_needed(&tally), 1);
    tally =
        (struct leg_tally){.wanted = 2, .rights = 4, .unseen = 3, .drawn = 7, .to = 9, .panel = 30};
    assert_int_equal(leg_seats_needed(&tally), 0);
    tally =
        (struct leg_tally){.wanted = 2, .rights = 1, .drawn = 6, .to = 9, .round = 2, .panel = 30};
    assert_int_equal(leg_seats_needed(&tally), 1);
    tally.round = 3; /* the fifth comes */
    assert_int_equal(leg_seats_needed(&tally), 6);
    tally.drawn = 20;
    assert_int_equal(leg_seats_needed(&tally), GAME_FULL_SEATS);
    tally.panel = 20; /* nobody is left */
    assert_int_equal(leg_seats_needed(&tally), 0);
    tally.panel = 30;
    tally.to = GAME_PLACES_MAX;
    assert_int_equal(leg_seats_needed(&tally), 0);
}

static void test_silence_is_final_and_denial_waits(void **state)
{
    static const struct {
        uint32_t rights;
        uint32_t unseen;
        bool vouched;
        bool is_final;
        uint32_t waits;
    } tallies[] = {
        {1, 0, false, true, 1},  {0, 0, false, true, 4}, {0, 1, false, false, 2},
        {0, 1, true, true, 1},   {2, 1, false, true, 2}, {1, 1, false, false, 2},
        {4, 2, false, true, 3},  {3, 2, false, true, 3}, {5, 3, false, true, 4},
        {10, 9, false, true, 4}, {0, 0, true, true, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(tallies) / sizeof(tallies[0]); i++) {
        struct leg_tally tally = {.wanted = 1,
                                  .rights = tallies[i].rights,
                                  .unseen = tallies[i].unseen,
                                  .vouched = tallies[i].vouched};

        assert_int_equal(leg_is_final(&tally), tallies[i].is_final);
        assert_int_equal(leg_waits(&tally), tallies[i].waits);
    }
    assert_int_equal(leg_waits(&(struct leg_tally){.wanted = 0}), 1);
}

static void test_a_void_burns_the_same_price_on_both_sides(void **state)
{
    const struct game_terms terms = {.reward = 100,
                                     .stake = 1000,
                                     .fee = 10,
                                     .seats = 2,
                                     .coverage_ppm = GAME_PPM / 2,
                                     .query_fee = 40};
    struct leg_void lost = leg_void(&terms, 500, 4, 9, 3, false);

    (void)state;
    assert_int_equal(lost.priced, 5);
    assert_int_equal(lost.stake, 500);
    assert_int_equal(lost.escrow, 500);
    assert_int_equal(lost.pool, 50);
    assert_int_equal(lost.each, 10);
    lost = leg_void(&terms, 500, 4, 4, 3, true); /* no segment is left for the one more */
    assert_int_equal(lost.stake, 500);
    assert_int_equal(lost.escrow, 400);
    assert_int_equal(lost.pool, 150);
    assert_int_equal(lost.each, 0);
    lost = leg_void(&terms, 70, 20, 40, 30, false); /* the stake has less, and the pool */
    assert_int_equal(lost.stake, 1000);
    assert_int_equal(lost.escrow, 1000);
    assert_int_equal(lost.pool, 70);
    assert_int_equal(lost.each, 70 / 30); /* of what burns beyond the price of what was trained */
}

/* Under all terms: the seats that deny have no more of a void than one reward, and nothing of what
 * was trained; a claimant that makes all of its queries pays no more than a conviction brings. */
static void test_a_query_fee_pays_no_panel_and_prices_no_lie(void **state)
{
    uint64_t random = 20261129;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct game_terms terms = {.reward = 1 + test_random_below(&random, 100000),
                                   .stake = 1 + test_random_below(&random, 1000000)};
        struct leg_void lost;

        terms.query_fee = game_query_fee_max(&terms);
        assert_true(GAME_QUERIES_MAX * terms.query_fee <= terms.stake / GAME_POT_SHARE);
        for (uint32_t unseen = 1; unseen <= GAME_PLACES_MAX; unseen++) {
            /* A client whose own panel denies pays what was trained, also where no segment is
             * left. */
            const uint32_t left = 10 + (uint32_t)test_random_below(&random, 3);
            const wei price = 10 * (wei)terms.reward;

            lost =
                leg_void(&terms, test_random_below(&random, terms.reward), 10, left, unseen, false);
            assert_true(unseen * lost.each <= terms.reward);
            assert_true(lost.escrow + lost.pool - unseen * lost.each >=
                        (price < lost.stake ? price : lost.stake));
        }
    }
}

static void test_a_leg_has_sixteen_segments_at_most(void **state)
{
    const struct game_terms terms = {
        .seats = 1, .segment_period_s = 10, .deadline_s = 1000, .coverage_ppm = 0};
    const struct hash32 seed = {{1}};
    struct game_segment segment = {.index = 14};

    (void)state;
    assert_false(leg_is_covered(&terms, &segment, 100, 0, &seed, false));
    assert_true(leg_is_covered(&terms, &segment, 100, 0, &seed, true));
    assert_true(leg_is_covered(&terms, &segment, 15, 0, &seed, false));
    segment.time_s = 991; /* the next could come after the deadline */
    assert_true(leg_is_covered(&terms, &segment, 100, 0, &seed, false));
    segment.time_s = 0;
    segment.index = 15;
    assert_true(leg_is_covered(&terms, &segment, 100, 0, &seed, false));
    assert_false(leg_is_covered(&terms, &segment, 100, 1, &seed, false));
    segment.diverged = true;
    assert_true(leg_is_covered(&terms, &segment, 100, 1, &seed, false));
}

static void test_a_right_of_a_later_round_gets_seven_eighths(void **state)
{
    const struct game_terms terms = {.fee = 80};

    (void)state;
    assert_int_equal(leg_fee(&terms, 1000, 3, false), 80);
    assert_int_equal(leg_fee(&terms, 1000, 3, true), 70);
    assert_int_equal(leg_fee(&terms, 100, 3, false), 33);
    assert_int_equal(leg_fee(&terms, 100, 3, true), 29);
}

/* ---- played ------------------------------------------------------------------------------- */

static struct network_gain gain_of(struct network *network, const struct network_play *play,
                                   const struct network_setting *setting, uint64_t segments)
{
    const struct network_terms terms = network_terms_of(play, setting);

    network_init(network, &terms, SEED);
    return network_play_jobs(network, network_jobs(setting, segments));
}

static const struct network_play *play_named(const char *name)
{
    for (size_t i = 0; i < network_play_count; i++) {
        if (strcmp(network_plays[i].name, name) == 0) {
            return &network_plays[i];
        }
    }
    fail_msg("no play is named %s", name);
    return NULL;
}

static void test_no_attack_gains(void **state)
{
    uint64_t segments = test_share(4000, 120);

    (void)state;
    for (size_t i = 0; i < network_play_count; i++) {
        for (uint32_t number = 0; number < NETWORK_SETTINGS; number++) {
            struct network_setting setting;
            struct network network;
            struct network_gain gain;

            if (!network_setting(&setting, &network_plays[i], number) || setting.segments > 100) {
                continue;
            }
            gain = gain_of(&network, &network_plays[i], &setting, segments);
            assert_true(network_is_sound(&network));
            if (network_gains(&gain) && !network_plays[i].may_gain) {
                fail_msg("%s gains %g in setting %u", network_plays[i].name, gain.mean, number);
            }
        }
    }
}

static struct hash32 random_seed(uint64_t *random)
{
    struct hash32 seed;

    for (size_t i = 0; i < sizeof(seed.bytes); i++) {
        seed.bytes[i] = (uint8_t)test_random(random);
    }
    return seed;
}

/* How often a panel passes a false segment: places of seeds, against draws without replacement. */
static double passed_share(const struct network_setting *setting, bool served, uint64_t legs)
{
    const struct network_terms terms = network_terms_of(play_named("lazy: all false"), setting);
    struct network network;
    uint64_t random = SEED;
    uint64_t passed = 0;

    network_init(&network, &terms, SEED);
    for (uint64_t i = 0; i < legs; i++) {
        struct network_leg leg = {.wanted = terms.game.seats,
                                  .seed = random_seed(&random),
                                  .attacks = true,
                                  .is_false = true,
                                  .serves_seats = served};

        network_leg_play(&network, &leg);
        passed += leg.is_final && leg.alarm_s == NETWORK_NEVER;
    }
    return (double)passed / (double)legs;
}

static void test_lies_pass_as_often_as_the_closed_form_says(void **state)
{
    static const double shares[] = {0.25, 0.45, 0.6};
    static const uint32_t panels[] = {12, 24, 100};
    uint64_t legs = test_share(200000, 10000);

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        const struct network_setting setting = {
            &network_classes[i % 2 + 1], 100, 600, panels[i % 3], shares[i / 3], false};
        uint32_t partners = (uint32_t)(setting.share * setting.panel);
        const struct economy economy = {.seats = 2, .panel = setting.panel};

        for (int served = 0; served < 2; served++) {
            double wanted = economy_passes(&economy, (double)partners / setting.panel, served > 0);
            double got = passed_share(&setting, served > 0, legs);

            if (fabs(got - wanted) > 5.0 * sqrt(wanted * (1.0 - wanted) / (double)legs) + 1e-4) {
                fail_msg("%u of %u pass %g, wanted %g", partners, setting.panel, got, wanted);
            }
        }
    }
}

/* It saves the work of a replay, and nobody can convict it. */
static void test_trusting_verifiers_gain(void **state)
{
    const struct network_setting setting = {&network_classes[1], 100, 600, 12, 0.33, false};
    struct network network;
    struct network_gain gain = gain_of(&network, play_named("trusting verifiers"), &setting, 4000);

    (void)state;
    assert_true(network_gains(&gain));
}

/* Each round has a seed of its own. So who says unseen does not know whose seats come, and gains
 * nothing up to a third of a panel, however well it plays: docs/ECONOMICS.md, 4. */
static void test_a_third_of_a_panel_farms_no_fees(void **state)
{
    struct network_setting setting = {&network_classes[1], 100, 3600, 100, 0.33, false};
    const struct network_play *reads = play_named("fee farming, reads the seed");
    struct network network;
    struct network_gain gain = gain_of(&network, reads, &setting, 4000);

    (void)state;
    assert_false(network_gains(&gain));
    gain = gain_of(&network, play_named("fee farming"), &setting, 4000);
    assert_false(network_gains(&gain));
    setting.share = 0.45; /* from about 40 % on */
    gain = gain_of(&network, reads, &setting, 4000);
    assert_true(network_gains(&gain));
    setting.keeper = true;
    gain = gain_of(&network, reads, &setting, 4000);
    assert_false(network_gains(&gain));
}

/* Nobody honest looks. */
static void test_a_liar_that_owns_the_panel_gains(void **state)
{
    const struct network_setting setting = {&network_classes[1], 100, 600, 12, 1.0, false};
    const struct network_terms usual = network_terms_of(play_named("lazy: all false"), &setting);
    struct network_terms terms = usual;
    struct network network;
    struct network_gain gain;

    (void)state;
    terms.watched = 0.0;
    network_init(&network, &terms, SEED);
    gain = network_play_jobs(&network, 100);
    assert_true(network_gains(&gain));
    assert_int_equal(network.passed, network.falses);
    network_init(&network, &usual, SEED); /* a tenth of the segments is watched */
    gain = network_play_jobs(&network, 100);
    assert_false(network_gains(&gain));
}

/* With more than half of the panel a rival voids honest legs, but none that is vouched. */
static void test_a_rival_voids_nothing_that_is_vouched(void **state)
{
    static const struct network_play rival = {.name = "rival", .panel = PANEL_DENYING};
    struct network_setting setting = {&network_classes[1], 100, 3600, 24, 0.6, false};
    struct network network;

    (void)state;
    (void)gain_of(&network, &rival, &setting, 10000);
    assert_true(network.voided > 0);
    setting.keeper = true;
    (void)gain_of(&network, &rival, &setting, 10000);
    assert_int_equal(network.voids, 0);
}

static void test_a_killed_solver_costs_the_client_little(void **state)
{
    (void)state;
    for (int keeper = 0; keeper < 2; keeper++) {
        double burned = 0.0;
        int whole = 0;
        int kills = (int)test_share(2000, 200);

        for (int i = 0; i < kills; i++) {
            struct network_kill kill = network_kill(keeper > 0, SEED + (uint64_t)i);

            burned += kill.burned;
            whole += !kill.voided;
            assert_true(kill.open <= GAME_OPEN_MAX);
        }
        assert_true(burned / kills <= 8.0);
        assert_true(keeper == 0 || whole >= kills * 17 / 20);
    }
}

static void test_a_solver_with_a_keeper_does_not_wait(void **state)
{
    (void)state;
    assert_true(network_busy(true, SEED) >= 0.95);
    assert_true(network_busy(false, SEED) < 0.95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_take_what_is_missing_and_from_the_fifth_as_many_as_before),
        cmocka_unit_test(test_silence_is_final_and_denial_waits),
        cmocka_unit_test(test_a_void_burns_the_same_price_on_both_sides),
        cmocka_unit_test(test_a_query_fee_pays_no_panel_and_prices_no_lie),
        cmocka_unit_test(test_a_leg_has_sixteen_segments_at_most),
        cmocka_unit_test(test_a_right_of_a_later_round_gets_seven_eighths),
        cmocka_unit_test(test_no_attack_gains),
        cmocka_unit_test(test_lies_pass_as_often_as_the_closed_form_says),
        cmocka_unit_test(test_trusting_verifiers_gain),
        cmocka_unit_test(test_a_third_of_a_panel_farms_no_fees),
        cmocka_unit_test(test_a_liar_that_owns_the_panel_gains),
        cmocka_unit_test(test_a_rival_voids_nothing_that_is_vouched),
        cmocka_unit_test(test_a_killed_solver_costs_the_client_little),
        cmocka_unit_test(test_a_solver_with_a_keeper_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
