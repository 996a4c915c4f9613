/*
 * Goal: nobody gains by waiting, by coming first, or by what a chain takes back.
 * Method: a cheat that lets the block of its seed pass; a panel of the client that sleeps past the
 * deadline; a stake that is to be pulled out from under a claim; a partner's alarm before the
 * honest one; a chain that is reorganized after a reveal.
 */
#include "tests/support/game/attack.h"

#include <stdio.h>
#include <string.h>

static const int cheat_and_friend[] = {STAGE_SOLVER, STAGE_FRIEND};
enum {
    GROUND = 8, /* segments */
};

static const int client_and_friend[] = {STAGE_CLIENT, STAGE_FRIEND};

/* One segment in a million is covered, and its seed is gone: a late one always covers. */
ATTACK(waiting_for_a_late_draw)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .false_step = 1};
    struct hash32 alarm = {{0}};

    scene->terms.coverage_ppm = 1;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1);
    scene_pass_blocks(scene, GAME_SEED_BLOCKS + 40);
    scene_draw(scene, 0);
    assert_true(scene->record.segments[0].draw.covered);
    scene_round(scene, 0, &verdicts, &alarm);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_see_convicted(scene, &alarm);
}

/* Who makes the block of its own commit knows that block's random number first, and would leave
 * commits out until one is not covered. It learns nothing about any: what covers them is of a block
 * behind it. */
ATTACK(a_commit_ground_with_the_proposers_random)
{
    scene->terms.steps = GROUND * (uint64_t)SCENE_STEPS;
    scene->terms.coverage_ppm = GAME_PPM / 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    for (uint32_t i = 0; i < GROUND; i++) {
        struct game_segment segment;
        struct hash32 known;
        struct hash32 hash;

        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
        segment = scene_segment(scene, i);
        hash = game_segment_hash(&scene->job, &segment);
        known = scene_random_of(scene, segment.height);
        known = game_seed(&known, &hash);
        scene_draw(scene, i);
        assert_false(hash32_equal(&known, &scene->record.segments[i].draw.seed));
    }
}

/* The verifier has its seat at once, and its whole fee. */
static bool first_round(const struct scene *scene)
{
    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        if (scene->record.seats[i].state.phase == GAME_SEAT_REVEALED) {
            return scene->record.seats[i].round == 0;
        }
    }
    return false;
}

/* Eleven of twelve entries are the client's, and sleep until the deadline is over. One that shows
 * is enough, and none is too: the solver is paid, and who slept loses nothing and gains nothing. */
ATTACK(a_panel_asleep_past_the_deadline)
{
    static const struct scene_verdicts one_right = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT}};
    int64_t fee;

    scene->terms.deadline_s = stage_clock(&scene->stage) + SCENE_SEAL_S + 1800;
    scene_commit_for_two(scene, 11, SCENE_STEPS);
    scene_rounds(scene, 0, &one_right);
    assert_true(stage_clock(&scene->stage) > scene->terms.deadline_s);
    fee = scene->record.segments[0].draw.rights == 0 ? 0 : first_round(scene) ? 100 : 87;
    scene_settle(scene, STAGE_SOLVER, 0);
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_release, &scene->job);
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_close_job, &scene->job);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    assert_true(scene_gain(scene, STAGE_VERIFIER) >= fee - 20);
    scene_see(scene,
              scene_party_gain(scene, client_and_friend, 2) + scene_gain(scene, STAGE_VERIFIER),
              -1000);
}

/* While an alarm is open nobody can take back a stake or an alarm's bond. */
ATTACK(a_bond_withdrawn_during_a_dispute)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .false_step = 1};
    struct hash32 alarm = {{0}};

    scene->terms.deadline_s = stage_clock(&scene->stage) + SCENE_SEAL_S + 1400;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1);
    scene_draw(scene, 0);
    scene_round(scene, 0, &verdicts, &alarm);
    scene_pass(scene, SCENE_CLOCK_S / 2); /* the deadline is over */
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_release, &scene->job),
                     GAME_WRONG_INDEX);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_CLIENT, ledger_close_job, &scene->job),
                     GAME_WRONG_PHASE);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_VERIFIER, ledger_depart, &scene->job, 0, 0),
                     GAME_NOT_NEEDED);
    scene_pass(scene, SCENE_CLOCK_S);
    scene_see_convicted(scene, &alarm);
}

/* A partner with a seat alarms at the same step, and may be the first: a quarter is all that comes
 * back, and the honest seat loses nothing. */
ATTACK(a_shield_at_the_lowest_step)
{
    struct scene_verdicts verdicts = {
        .of = {[STAGE_FRIEND] = GAME_VERDICT_FALSE, [STAGE_VERIFIER] = GAME_VERDICT_FALSE},
        .false_step = 1};
    struct hash32 alarm = {{0}};

    scene->terms.seats = 2;
    scene->terms.panel_least = 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 1);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1);
    scene_draw(scene, 0);
    scene_round(scene, 0, &verdicts, &alarm);
    scene_read(scene);
    assert_int_equal(job_record_open_claims(&scene->record), 1);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_VERIFIER, &alarm);
    scene_pay(scene, STAGE_CLIENT, 0);
    assert_true(scene_party_gain(scene, cheat_and_friend, 2) <= -15000);
    assert_true(scene_gain(scene, STAGE_VERIFIER) >= -10); /* gas */
}

/* The chain takes back a seal and its reveal; a seat that copied the tags it saw there is convicted
 * of them, and the honest seat says the same again. */
static void test_a_reorganization_between_seal_and_reveal(void **state)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT}};
    struct scene scene;
    json_t *snapshot;

    (void)state;
    scene_open(&scene, STAGE_ANVIL, "reorganization-evm");
    scene.terms.seats = 2;
    scene.terms.panel_least = 2;
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_FRIEND, 1);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(&scene, 0);
    snapshot = anvil_call(scene.stage.rpc, "evm_snapshot", NULL);
    scene_round(&scene, 0, &verdicts, NULL); /* seals and reveals, and the friend looks */
    json_decref(anvil_call(scene.stage.rpc, "evm_revert", json_pack("[o]", snapshot)));
    for (int i = 0; i < STAGE_PLAYERS; i++) { /* nobody remembers what it sent */
        char *dir = scene.stage.state_dirs[i];

        (void)snprintf(dir + strlen(dir), sizeof(scene.stage.state_dirs[i]) - strlen(dir), "-new");
        stage_restart(&scene.stage, i);
    }
    job_record_free(&scene.record);
    job_record_init(&scene.record, &scene.job, signer_address(scene.stage.signers[STAGE_CLIENT]));
    verdicts.of[STAGE_FRIEND] = GAME_VERDICT_RIGHT;
    verdicts.copies[STAGE_FRIEND] = STAGE_VERIFIER;
    scene_round(&scene, 0, &verdicts, NULL);
    assert_int_equal(scene.record.segments[0].draw.rights, 2);
    assert_int_equal(scene_challenge(&scene, STAGE_SECOND, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    assert_int_equal(scene_challenge(&scene, STAGE_SECOND, 0, STAGE_VERIFIER, 7), GAME_NOT_GUILTY);
    scene_see(&scene, scene_gain(&scene, STAGE_FRIEND), -1000);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(waiting_for_a_late_draw),
        ATTACK_TESTS(a_commit_ground_with_the_proposers_random),
        ATTACK_TESTS(a_panel_asleep_past_the_deadline),
        ATTACK_TESTS(a_bond_withdrawn_during_a_dispute),
        ATTACK_TESTS(a_shield_at_the_lowest_step),
        cmocka_unit_test(test_a_reorganization_between_seal_and_reveal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
