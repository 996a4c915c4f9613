/*
 * Goal: what `job open` and `verifier plan` say of cheats is true.
 * Method: random play of the same game, place by place and round by round; properties at
 * the break-even; the ends of each range.
 */
#include <math.h>
#include <stdbool.h>

#include "chain/game/game.h"
#include "chain/game/policy/economy.h"
#include "tests/support/test.h"

static void assert_near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance * fmax(1.0, fabs(wanted)))) {
        fail_msg("%.17g, wanted %.17g", got, wanted);
    }
}

static double coin(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

static struct economy some_economy(uint64_t *random)
{
    return (struct economy){.segments = (double)(1 + test_random_below(random, 100)),
                            .reward = 1.0 + coin(random),
                            .cost = coin(random),
                            .fee = 0.2 * coin(random),
                            .stake = 20.0 * coin(random),
                            .seats = (double)test_random_below(random, 4),
                            .panel = (double)(4 + test_random_below(random, 80)),
                            .coverage = coin(random),
                            .saved = coin(random),
                            .watchers = (double)test_random_below(random, 5),
                            .extra = 0.3 * coin(random),
                            .open_segments = (double)(1 + test_random_below(random, 4)),
                            .gas = 0.01 * coin(random)};
}

/* What the panel makes of a false segment, as docs/PROTOCOL.md plays it, one place after the other:
 * a bag of entries of which each has a seat once, some of them partners. */
enum fate {
    FINAL,
    VOID,
    CONVICTED,
};

struct bag {
    uint32_t panel;
    uint32_t partners;
    uint32_t place;
    bool drawn[128];
};

/* The next entry that has no seat yet; false: no place is left. */
static bool next_seat(struct bag *bag, uint32_t *entry, uint64_t *random)
{
    for (; bag->place < GAME_PLACES_MAX; bag->place++) {
        *entry = (uint32_t)test_random_below(random, bag->panel);
        if (!bag->drawn[*entry]) {
            bag->drawn[*entry] = true;
            bag->place++;
            return true;
        }
    }
    return false;
}

/* One unseen counts as silence, where more than one right is wanted. */
static int enough(int wanted, int unseen)
{
    return wanted + unseen - (unseen > 0 && wanted > 1);
}

static enum fate fate_of(const struct economy *economy, double partners, bool served,
                         uint64_t *random)
{
    struct bag bag = {.panel = (uint32_t)economy->panel,
                      .partners = (uint32_t)lround(partners * economy->panel)};
    int wanted = (int)economy->seats;
    int rights = 0;
    int unseen = 0;

    for (int round = 1; rights < enough(wanted, unseen) && bag.place < GAME_PLACES_MAX; round++) {
        int told = rights + unseen;
        int least = round < 5 ? 1 : told < 9 ? told : 9;
        int seats = enough(wanted, unseen) - rights;
        uint32_t entry;

        seats = seats < least ? least : seats;
        for (; seats > 0 && next_seat(&bag, &entry, random); seats--) {
            if (entry < bag.partners) {
                rights++;
            } else if (served) {
                return CONVICTED; /* by its alarm */
            } else {
                unseen++;
            }
        }
    }
    return rights >= enough(wanted, unseen) || (rights > 0 && rights >= 2 * unseen) ? FINAL : VOID;
}

/* What becomes of one false segment: of a panel, and of those that watch. */
static enum fate found(const struct economy *economy, double partners, bool served,
                       uint64_t *random)
{
    enum fate fate = FINAL;

    if (coin(random) < economy->coverage) {
        fate = economy->seats == 0.0 ? FINAL : fate_of(economy, partners, served, random);
    }
    for (int watcher = 0; served && watcher < (int)economy->watchers; watcher++) {
        fate = coin(random) < economy->extra ? CONVICTED : fate;
    }
    return fate;
}

/* What a solver that cheats in `bad` segments has more than an honest one, in one play. Convicted,
 * it claims against itself and has a quarter of the stake back. */
static double play(const struct economy *economy, double partners, bool served, int bad,
                   uint64_t *random)
{
    const double lost[] = {
        [VOID] = fmin(economy->stake, economy->reward * (1.0 + economy->open_segments)),
        [CONVICTED] = economy->stake * (1.0 - 1.0 / GAME_POT_SHARE)};
    double more = 0.0;

    for (int i = 0; i < bad; i++) {
        enum fate fate = found(economy, partners, served, random);

        more += economy->saved * economy->cost;
        if (fate != FINAL) {
            return more - lost[fate] - economy->reward * economy->open_segments;
        }
    }
    return more;
}

static void test_advantage_of_a_cheat_is_the_mean_of_random_play(void **state)
{
    uint64_t random = 11;
    uint64_t plays = test_share(1000000, 40000);

    (void)state;
    for (int trial = 0; trial < 24; trial++) {
        struct economy economy = some_economy(&random);
        double partners = trial % 6 == 0 ? 0.5 : coin(&random);
        bool served = trial % 2 == 0;
        int bad = (int)(1 + test_random_below(&random, 6));
        struct economy_cheat cheat;
        double sum = 0.0;
        double squares = 0.0;

        economy_cheat(&cheat, &economy, partners, served);
        for (uint64_t i = 0; i < plays; i++) {
            double more = play(&economy, partners, served, bad, &random);

            sum += more;
            squares += more * more;
        }
        double mean = sum / (double)plays;
        double error = sqrt(fmax(0.0, squares / (double)plays - mean * mean) / (double)plays);
        double unseen = 10.0 * cheat.loss / (double)plays; /* a rare conviction may not come */

        /* Five standard errors: one false alarm in about 70,000 runs of this test. */
        assert_true(fabs(mean - economy_advantage(&cheat, bad)) <= 5.0 * error + unseen + 1e-9);
        assert_true((economy_advantage(&cheat, bad) > 0.0) == (cheat.value > 0.0));
    }
}

static void test_break_even_is_where_cheating_gains_nothing(void **state)
{
    uint64_t random = 13;

    (void)state;
    for (int trial = 0; trial < 1000; trial++) {
        struct economy economy = some_economy(&random);
        double partners = coin(&random);
        struct economy_cheat cheat;

        economy_cheat(&cheat, &economy, partners, true);
        if (cheat.detection == 0.0 || economy_stake_least(&economy, partners) == 0.0) {
            continue;
        }
        economy.stake = economy_stake_least(&economy, partners);
        economy_cheat(&cheat, &economy, partners, true);
        assert_near(cheat.value, 0.0, 1e-12);
        assert_near(economy_advantage(&cheat, 17), 0.0, 1e-9);
    }
}

/* Served or not, as is better for the cheat. */
static double best_value(const struct economy *economy, double partners)
{
    struct economy_cheat served;
    struct economy_cheat hidden;

    economy_cheat(&served, economy, partners, true);
    economy_cheat(&hidden, economy, partners, false);
    return fmax(served.value, hidden.value);
}

static void test_least_coverage_is_where_a_watched_cheat_gains_nothing(void **state)
{
    uint64_t random = 17;
    int met = 0;

    (void)state;
    for (int trial = 0; trial < 1000; trial++) {
        struct economy economy = some_economy(&random);
        double partners = coin(&random);

        economy.watchers = 0.0;
        if (isinf(economy_coverage_least(&economy, partners))) {
            economy.coverage = 1.0;
            assert_true(best_value(&economy, partners) >= -1e-12);
            continue;
        }
        met++;
        economy.coverage = economy_coverage_least(&economy, partners);
        assert_near(best_value(&economy, partners), 0.0, 1e-12);
    }
    assert_true(met > 100);
}

static void test_without_detection_every_cheat_pays(void **state)
{
    const struct economy economy = {
        .stake = 1e9, .cost = 2.0, .saved = 0.5, .reward = 3.0, .open_segments = 1.0};
    struct economy_cheat cheat;

    (void)state;
    economy_cheat(&cheat, &economy, 0.3, true);
    assert_near(cheat.detection, 0.0, 0);
    assert_near(cheat.value, 1.0, 0);
    assert_true(isinf(economy_stake_least(&economy, 0.3)));
    assert_near(economy_advantage(&cheat, 10), 10.0, 1e-15);
}

static double passes(double seats, double panel, double partners, bool served)
{
    const struct economy economy = {.seats = seats, .panel = panel};

    return economy_passes(&economy, partners, served);
}

static void test_a_panel_of_partners_passes_anything_and_one_without_nothing(void **state)
{
    (void)state;
    for (int count = 1; count <= 8; count++) {
        double seats = count;

        assert_near(passes(seats, 12, 0.0, true), 0.0, 0);
        assert_near(passes(seats, 12, 0.0, false), 0.0, 0);
        assert_near(passes(seats, 12, 1.0, true), 1.0, 0);
        assert_near(passes(seats, 12, 1.0, false), 1.0, 1e-12);
        for (int part = 1; part < 20; part++) {
            double s = part / 20.0;

            assert_true(passes(seats, 12, s, true) <= passes(seats, 12, s, false) + 1e-12);
        }
    }
}

/* By hand: seats are drawn without replacement. */
static void test_a_small_panel_is_drawn_without_replacement(void **state)
{
    (void)state;
    assert_near(passes(2, 12, 5.0 / 12, true), 5.0 / 12 * 4.0 / 11, 1e-12);
    assert_near(passes(3, 12, 2.0 / 12, true), 0.0, 0);
    assert_near(passes(1, 1, 1.0, false), 1.0, 0);
    /* One partner of two: it sits first, or the other does, and then one right meets one unseen. */
    assert_near(passes(1, 2, 0.5, false), 0.5, 1e-9);
    /* Two of three: right at once; unseen first, then both: R = 2 = 2 U. */
    assert_near(passes(1, 3, 2.0 / 3, false), 1.0, 1e-9);
    /* One of four, two seats: it never has twice the unseens. */
    assert_near(passes(2, 4, 0.25, false), 0.0, 0);
}

static void test_nothing_that_is_hidden_passes_a_keeper(void **state)
{
    const struct economy economy = {.seats = 1, .panel = 12, .kept = true};

    (void)state;
    assert_near(economy_passes(&economy, 0.45, false), 0.0, 0);
    assert_near(economy_passes(&economy, 0.5, true), 0.5, 1e-12);
}

static void test_a_leg_ends_with_a_covered_segment_or_the_sixteenth(void **state)
{
    double chance = 1.0;
    double mean = 0.0;

    (void)state;
    for (int i = 0; i < GAME_LEG_MAX; i++) {
        mean += chance;
        chance *= 0.8;
    }
    assert_near(economy_leg(0.2), mean, 1e-12);
    assert_near(economy_leg(0.0), GAME_LEG_MAX, 0);
    assert_near(economy_leg(1.0), 1.0, 1e-12);
}

static void test_open_segments_follow_from_the_periods(void **state)
{
    (void)state;
    assert_near(economy_open_segments(1.0, 3600, 6 * 3600, 24), 7.0, 1e-12);
    assert_near(economy_open_segments(1.0, 60, 6 * 3600, 24), 24.0, 0);
    assert_near(economy_open_segments(0.2, 0, 6 * 3600, 64), 64.0, 0);
    assert_near(economy_open_segments(0.2, 1, 6 * 3600, 2), GAME_LEG_MAX, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advantage_of_a_cheat_is_the_mean_of_random_play),
        cmocka_unit_test(test_break_even_is_where_cheating_gains_nothing),
        cmocka_unit_test(test_least_coverage_is_where_a_watched_cheat_gains_nothing),
        cmocka_unit_test(test_without_detection_every_cheat_pays),
        cmocka_unit_test(test_a_panel_of_partners_passes_anything_and_one_without_nothing),
        cmocka_unit_test(test_a_small_panel_is_drawn_without_replacement),
        cmocka_unit_test(test_nothing_that_is_hidden_passes_a_keeper),
        cmocka_unit_test(test_a_leg_ends_with_a_covered_segment_or_the_sixteenth),
        cmocka_unit_test(test_open_segments_follow_from_the_periods),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
