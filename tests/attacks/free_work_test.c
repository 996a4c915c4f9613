/*
 * Goal: neither a deadline nor a silent panel nor a client robs a solver of work that it did in
 * time. Method: a solver commits before the deadline, and everything else comes after it. A panel
 * that enlists and never shows, with and without an allow-list. A client's verifiers who deny what
 * everybody can get. Who was absent pays.
 */
#include "tests/support/game/attack.h"

#include "chain/game/allow_list.h"

static const struct scene_verdicts all_right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};
static const struct scene_verdicts nobody_shows;

ATTACK(the_deadline_robs_nobody)
{
    char name[32];
    struct error error;

    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 3);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_pass(scene, 2000000); /* nobody drew its seats */
    error_init(&error);
    stage_check(ledger_expire(scene->stage.ledgers[STAGE_CLIENT],
                              stage_next_name(&scene->stage, name, sizeof(name)), &scene->job,
                              &error),
                &error);
    assert_int_equal(stage_refused(&scene->stage, STAGE_CLIENT, name), GAME_WRONG_INDEX);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &all_right);
    scene_finalize(scene, STAGE_SOLVER, 0);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_expire, &scene->job);
    scene_leave(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 100);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1100);
}

/* Both entries are absent; then nobody is left to draw. The solver loses nothing, and who slept
 * pays two fees for each absence. */
ATTACK(a_panel_asleep)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 2);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &nobody_shows);
    scene_forfeit(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.phase, GAME_PHASE_OPEN);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 0);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_cancel, &scene->job);
    scene_leave(scene);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -400);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 400); /* it lost the time */
}

/* A client that names its own verifiers and lets them sleep blocks nothing. */
ATTACK(an_allow_list_asleep)
{
    allow_list_root(&scene->terms.verifiers, signer_address(scene->stage.signers[STAGE_FRIEND]), 1);
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 2);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &nobody_shows);
    scene_finalize(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
}

/* A third of the panel is the client's, and says that nobody can get the states. */
ATTACK(a_client_that_denies)
{
    struct scene_verdicts verdicts = all_right;

    verdicts.of[STAGE_FRIEND] = GAME_VERDICT_UNAVAILABLE;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 8);
    scene_enlist(scene, STAGE_FRIEND, 4);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &verdicts);
    scene_finalize(scene, STAGE_SOLVER, 0); /* four of them cannot make -10 */
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
    assert_true(scene_gain(scene, STAGE_FRIEND) <= -4000); /* their bonds lie there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(the_deadline_robs_nobody),
        ATTACK_TESTS(a_panel_asleep),
        ATTACK_TESTS(an_allow_list_asleep),
        ATTACK_TESTS(a_client_that_denies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
