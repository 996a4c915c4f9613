/*
 * Goal: a job that nobody can replay in time, and bytes that come in a trickle, cost honest nodes
 * nothing, hide no lie, and earn a solver nothing that it would not have otherwise.
 * Method: seats are silent, since their replay is late: of a true job, and of a lie that one of
 * them finds hours later. Seats that cannot have the bytes in time: those with a fast line say
 * unseen, the others nothing; once a friend has been served whole. Client and solver of the slow
 * job are one party.
 */
#include "tests/support/game/attack.h"

static const int client_and_solver[] = {STAGE_CLIENT, STAGE_SOLVER};
static const int cheat_and_friend[] = {STAGE_SOLVER, STAGE_FRIEND};
static const struct scene_verdicts nobody_is_in_time;

/* The first segment, which lies from a step on, is drawn for twelve entries. */
static void commit_for_twelve(struct scene *scene, uint32_t friends, uint32_t lie)
{
    scene->terms.panel_least = 12;
    scene->terms.query_fee = 40 * WEI_PER_ETHER / 1000;
    scene_open_job(scene);
    if (friends > 0) {
        scene_enlist(scene, STAGE_FRIEND, friends);
    }
    scene_enlist(scene, STAGE_VERIFIER, 6 - friends);
    scene_enlist(scene, STAGE_SECOND, 6);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, lie);
    scene_draw(scene, 0);
}

static void close_job(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
}

/* ---- a slow job ------------------------------------------------------------------- */

/* No seat is ever in time: all is final, later. Client and solver pay each other, and nobody else
 * loses or gains anything. */
ATTACK(a_slow_job)
{
    scene->terms.segment_period_s = 40 * SCENE_SEGMENT_S;
    commit_for_twelve(scene, 0, SCENE_STEPS);
    for (uint32_t i = 0;; i++) {
        scene_rounds(scene, i, &nobody_is_in_time);
        scene_settle(scene, STAGE_SOLVER, i);
        if (i + 1 == SCENE_SEGMENTS) {
            break;
        }
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
        scene_draw(scene, i + 1);
    }
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 0);
    scene_see(scene, scene_party_gain(scene, client_and_solver, 2), 0);
}

/* Silence of a whole panel buys it time, not the solver: a seat that is ready three claim periods
 * later claims what it found, and has a quarter of the stake. */
ATTACK(a_slow_job_hides_no_lie)
{
    struct game_segment segment;
    struct job_segment waiting;
    struct hash32 claim;
    uint64_t now_s;

    commit_for_twelve(scene, 0, 1);
    for (;;) {
        scene_round(scene, 0, &nobody_is_in_time, NULL);
        now_s = stage_clock(&scene->stage);
        waiting = job_record_segment(&scene->record, 0);
        if (job_segment_waits_for(&waiting, now_s) != JOB_SEGMENT_ROUND) {
            break;
        }
        scene_next_round(scene, STAGE_SOLVER, 0);
    }
    scene_pass(scene, 3 * SCENE_CLAIM_S);
    segment = scene_segment(scene, 0);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_settle, &scene->job, &segment, NULL),
                     GAME_TOO_EARLY);
    claim = scene_claim(scene, STAGE_VERIFIER, 0, scene_replay(scene, 0), 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_VERIFIER, &claim);
    scene_pay(scene, STAGE_CLIENT, 0);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 5000);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 0);
}

/* ---- a trickle ---------------------------------------------------------------------- */

/* Bytes that come too slowly are bytes that are not there. Whose own line is fast says so; whose
 * line may be at fault says nothing, and takes nothing from what the others say. */
ATTACK(a_trickle)
{
    static const struct scene_verdicts some_say_so = {.unseen = {[STAGE_VERIFIER] = true}};
    int64_t unseen = 0;

    commit_for_twelve(scene, 0, 1);
    scene_rounds(scene, 0, &some_say_so);
    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        unseen += scene->record.seats[i].state.phase == GAME_SEAT_UNSEEN;
    }
    assert_true(unseen > 0);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2200);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 10 * unseen);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 0);
}

/* Two friends have all at once. Three rights are wanted, and two are less than twice what is told
 * against them. */
ATTACK(a_trickle_beside_two_friends)
{
    static const struct scene_verdicts friends_are_served = {
        .of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT}, .unseen = {[STAGE_SECOND] = true}};

    scene->terms.seats = 3;
    commit_for_twelve(scene, 2, 1);
    scene_rounds(scene, 0, &friends_are_served);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -2000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    assert_true(scene_gain(scene, STAGE_SECOND) >= -20); /* gas; a part of it comes back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(a_slow_job),
        ATTACK_TESTS(a_slow_job_hides_no_lie),
        ATTACK_TESTS(a_trickle),
        ATTACK_TESTS(a_trickle_beside_two_friends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
