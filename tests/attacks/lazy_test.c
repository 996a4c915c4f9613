/*
 * Goal: a seat that did not replay earns nothing by saying right.
 * Method: one that fetched the last state alone, of a segment and of one with a single step; one
 * that knows all leaves which a step leaves alone, of states that change almost nothing.
 */
#include "tests/support/game/attack.h"

#include "chain/game/economy.h"

static const struct scene_verdicts lazy = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_FRIEND] = GAME_VERDICT_RIGHT},
    .lazy = {[STAGE_FRIEND] = true}};

/* The eighth leaf is of the state before: a right cannot be made of what is served. */
ATTACK(the_last_state_is_not_enough)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_round(scene, 0, &lazy, NULL);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
}

/* A segment of one step has no state before its last: a right says no more than that the state can
 * be had. It is covered, and one seat that replays convicts; the lazy one is not paid. */
ATTACK(a_last_segment_of_one_step)
{
    struct scene_verdicts verdicts = lazy;
    struct hash32 alarm = {{0}};
    uint32_t last = SCENE_SEGMENTS - 1;

    scene->terms.steps = last * SCENE_STEPS + 1;
    scene->terms.coverage_ppm = 0;
    scene->terms.seats = 2;
    scene->terms.panel_least = 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 1);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    for (uint32_t i = 0; i < last; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    }
    scene_commit(scene, STAGE_SOLVER, 0);
    scene_draw(scene, last);
    verdicts.of[STAGE_VERIFIER] = GAME_VERDICT_FALSE;
    scene_round(scene, last, &verdicts, &alarm);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, last, STAGE_FRIEND, 7), GAME_NOT_GUILTY);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_VERIFIER, &alarm);
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 5000);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_cancel, &scene->job);
    scene_leave(scene);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
}

enum {
    SEEDS = 4000,
    TENSORS = 100,
    BOND_FEES = 10, /* of the default terms */
};

/* In how many of SEEDS draws are all eight leaves in tensors that no step changes? */
static uint32_t count_lucky(uint32_t changing)
{
    uint32_t lucky = 0;

    for (uint32_t n = 0; n < SEEDS; n++) {
        struct hash32 seed = {{[24] = (uint8_t)(n >> 8), [25] = (uint8_t)n}};
        uint32_t known = 0;

        for (uint32_t i = 0; i < GAME_LEAVES; i++) {
            known += game_right_tensor(&seed, i, TENSORS) >= changing;
        }
        lucky += known == GAME_LEAVES;
    }
    return lucky;
}

/* A fee where all eight are known, the bond otherwise: with two changing tensors of a hundred that
 * loses; with three also where only half of the rights are looked at. */
static void test_a_state_that_changes_almost_nothing(void **state)
{
    (void)state;
    assert_int_equal(count_lucky(0), SEEDS); /* frozen whole: there is nothing to compute */
    for (uint32_t changing = 1; changing <= TENSORS; changing++) {
        double known = 1.0 - (double)changing / TENSORS;
        double odds = known * known * known * known * known * known * known * known;
        double lucky = count_lucky(changing) / (double)SEEDS;
        double gain = lucky - (1.0 - lucky) * BOND_FEES;

        assert_true(lucky > odds - 0.04 && lucky < odds + 0.04);
        if (changing >= 2) {
            assert_true(gain < 0.0);
        }
        if (changing >= 3) {
            assert_true(lucky + 0.5 * (1.0 - lucky) - 0.5 * (1.0 - lucky) * BOND_FEES < 0.0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(the_last_state_is_not_enough),
        ATTACK_TESTS(a_last_segment_of_one_step),
        cmocka_unit_test(test_a_state_that_changes_almost_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
