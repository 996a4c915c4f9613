/*
 * Goal: a solver that serves nobody, or commits to states that nobody can make, is not paid.
 * Method: it commits to roots, and serves nothing. Once the panel says that the states are
 * unavailable; once an outsider claims, and the solver is silent; then it serves its friends alone,
 * who hold one entry of twelve, or of three. Client's and verifiers' money is counted.
 */
#include "tests/support/game/attack.h"

static const struct scene_verdicts unavailable = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_UNAVAILABLE, [STAGE_SECOND] = GAME_VERDICT_UNAVAILABLE}};

static void commit_for_a_panel(struct scene *scene)
{
    scene->terms.panel_least = 12;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 7);
    scene_enlist(scene, STAGE_SECOND, 7);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 0);
    scene_draw(scene, 0);
}

ATTACK(thirty_two_bytes)
{
    commit_for_a_panel(scene);
    scene_rounds(scene, 0, &unavailable);
    scene_forfeit(scene, STAGE_CLIENT, 0);
    assert_int_equal(scene->record.phase, GAME_PHASE_OPEN);
    assert_int_equal(scene->record.finalized, 0);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_cancel, &scene->job);
    scene_leave(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2500); /* an eighth of its stake */
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 0);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 0);
}

/* The states are on the ledger, so anybody can claim them: no root is out of reach. */
ATTACK(random_roots_and_a_claim)
{
    struct hash32 claim;

    commit_for_a_panel(scene);
    claim = scene_claim(scene, STAGE_OTHER, 0, 1, 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_OTHER, &claim);
    scene_pay(scene, STAGE_OTHER, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 5000); /* a quarter; half is burned */
    scene_read(scene);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_cancel, &scene->job);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 5000);
}

/* Friends say right with the leaves that the solver hands them. Where they are few the score falls
 * all the same; the attackers never end better than nothing for false work. */
static void serve_friends_alone(struct scene *scene, uint32_t others)
{
    static const int attackers[] = {STAGE_SOLVER, STAGE_FRIEND};
    struct scene_verdicts verdicts = unavailable;
    struct job_segment segment;
    bool is_refused;

    verdicts.of[STAGE_FRIEND] = GAME_VERDICT_RIGHT;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, others);
    scene_enlist(scene, STAGE_FRIEND, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 0);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &verdicts);
    scene_read(scene);
    segment = job_record_segment(&scene->record, 0);
    if (job_segment_score(&segment) >= 1) { /* the friend was drawn first: one in all the entries */
        scene_finalize(scene, STAGE_SOLVER, 0);
        return;
    }
    is_refused = job_segment_score(&segment) <= GAME_SCORE_VOID; /* else the panel is exhausted */
    scene_forfeit(scene, STAGE_CLIENT, 0);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_cancel, &scene->job);
    scene_leave(scene);
    assert_true(scene_party_gain(scene, attackers, 2) <= (is_refused ? -2500 : 0));
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 0);
}

ATTACK(serving_friends_alone)
{
    serve_friends_alone(scene, 11);
}

/* No score of -10 is in reach: one right among two denials does not make it final either. */
ATTACK(serving_one_friend_of_a_small_panel)
{
    serve_friends_alone(scene, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(thirty_two_bytes),
        ATTACK_TESTS(random_roots_and_a_claim),
        ATTACK_TESTS(serving_friends_alone),
        ATTACK_TESTS(serving_one_friend_of_a_small_panel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
