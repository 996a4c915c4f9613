/*
 * Goal: nobody gains by an attack on the game, and nobody honest is driven into a loss.
 * Method: a small version of bench/network_bench.c: every attack in settings of the grid, by the
 * rule functions of the ledgers; a rival against a keeper; solvers that are killed, or kept waiting.
 * Checks of the checker: an attack that must gain does, and rules with one fault let one gain.
 */
#include "tests/support/network/network_plays.h"
#include "tests/support/test.h"

#define SEED UINT64_C(8000)

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
    uint64_t segments = test_share(4000, 400);

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

/* What says true things without work saves the work. */
static void test_trusting_gains(void **state)
{
    const struct network_setting setting = {&network_classes[1], 100, 600, 12, 0.33, false};
    struct network network;
    struct network_gain gain = gain_of(&network, play_named("trusting verifiers"), &setting, 4000);

    (void)state;
    assert_true(network_gains(&gain));
}

/* A stake of a thousandth is nothing to lose. */
static void test_a_liar_with_no_stake_gains(void **state)
{
    const struct network_setting setting = {&network_classes[1], 100, 600, 12, 0.33, false};
    const struct network_play *lazy = play_named("lazy: all false");
    struct network_terms terms = network_terms_of(lazy, &setting);
    struct network network;
    struct network_gain gain;

    (void)state;
    terms.game.stake = terms.game.reward / 1000;
    terms.game.coverage_ppm = 1000;
    terms.watched = 0.0;
    network_init(&network, &terms, SEED);
    gain = network_play_jobs(&network, 100);
    assert_true(network_gains(&gain));
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
        cmocka_unit_test(test_no_attack_gains),
        cmocka_unit_test(test_trusting_gains),
        cmocka_unit_test(test_a_liar_with_no_stake_gains),
        cmocka_unit_test(test_a_rival_voids_nothing_that_is_vouched),
        cmocka_unit_test(test_a_killed_solver_costs_the_client_little),
        cmocka_unit_test(test_a_solver_with_a_keeper_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
