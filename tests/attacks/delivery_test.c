/*
 * Goal: a part of the reward waits for delivery, and nobody gains by holding back a state or an
 * acknowledgement.
 * Method: a client that says nothing; a solver that keeps the last state to itself; a client that
 * asks although everybody can get it; a new solver that finds a final segment poisoned.
 */
#include "tests/support/game/attack.h"

static const struct scene_verdicts all_right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};
static const struct scene_verdicts unavailable = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_UNAVAILABLE, [STAGE_SECOND] = GAME_VERDICT_UNAVAILABLE}};

/* A whole job; 600 of 3,000 are held. */
static void finish_job(struct scene *scene)
{
    scene->terms.held_ppm = 200000;
    scene->terms.coverage_ppm = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 6);
    scene_enlist(scene, STAGE_SECOND, 6);
    scene_accept(scene, STAGE_SOLVER);
    for (int i = 0; i < SCENE_SEGMENTS; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    }
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_draw(scene, i);
    }
    scene_rounds(scene, SCENE_SEGMENTS - 1, &all_right); /* the last one is always covered */
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_finalize(scene, STAGE_SOLVER, i);
    }
    assert_int_equal(scene->record.phase, GAME_PHASE_CLOSED);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 2400);
}

ATTACK(no_acknowledgement)
{
    char name[32];
    struct error error;

    finish_job(scene);
    error_init(&error);
    stage_check(ledger_deliver(scene->stage.ledgers[STAGE_SOLVER],
                               stage_next_name(&scene->stage, name, sizeof(name)), &scene->job,
                               &error),
                &error);
    assert_int_equal(stage_refused(&scene->stage, STAGE_SOLVER, name), GAME_TOO_EARLY);
    scene_pass(scene, SCENE_DELIVERY_S + 1);
    STAGE_PLAY(&scene->stage, STAGE_SOLVER, ledger_deliver, &scene->job);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -3100);
}

ATTACK(an_acknowledgement)
{
    finish_job(scene);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_acknowledge, &scene->job);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
}

static void ask(struct scene *scene, const struct scene_verdicts *verdicts)
{
    struct game_segment segment;

    finish_job(scene);
    segment = scene_segment(scene, SCENE_SEGMENTS - 1);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_ask_panel, &scene->job, &scene->terms, &segment);
    scene_draw(scene, SCENE_SEGMENTS - 1);
    for (int i = 0; i < 6; i++) {
        scene_round(scene, SCENE_SEGMENTS - 1, verdicts, NULL);
        scene_renew(scene, SCENE_SEGMENTS - 1);
        if (scene->record.segments[SCENE_SEGMENTS - 1].ended) {
            break;
        }
    }
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_deliver, &scene->job);
}

/* Ransom: the solver keeps the last state. The client gets the held part back. */
ATTACK(ransom_of_the_last_state)
{
    ask(scene, &unavailable);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 2400);
    scene_leave(scene);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2500); /* and a fee for the first round */
}

ATTACK(asking_for_what_is_there)
{
    ask(scene, &all_right);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
}

/* A new solver that finds that nobody has the final state steps back for a sixty-fourth. */
ATTACK(a_poisoned_final_segment)
{
    scene->terms.coverage_ppm = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1); /* nobody looked */
    scene_draw(scene, 0);
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + SCENE_CLAIM_S + 1);
    scene_finalize(scene, STAGE_SOLVER, 0);
    scene_pass(scene, SCENE_SEGMENT_S + 1);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_release, &scene->job);
    scene_accept(scene, STAGE_OTHER);
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_step_back, &scene->job);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), -313); /* 20 / 64 ether */
    scene_read(scene);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_rewind, &scene->job, &scene->terms, 0, 1);
    scene_read(scene);
    assert_int_equal(scene->record.finalized, 0);
    scene_accept(scene, STAGE_OTHER);
    scene_commit(scene, STAGE_OTHER, SCENE_STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(no_acknowledgement),       ATTACK_TESTS(an_acknowledgement),
        ATTACK_TESTS(ransom_of_the_last_state), ATTACK_TESTS(asking_for_what_is_there),
        ATTACK_TESTS(a_poisoned_final_segment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
