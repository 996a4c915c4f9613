/*
 * Goal: a solver is paid for legs whose end was looked at, and for nothing else; a solver that
 * stops, sleeps or runs away loses more than it gains, and the client can go on from what is final.
 * Method: a solver that draws out of order, that counts on chance to look at nothing, that stops
 * before the last segment or before the deadline, that commits all that it may and goes, that
 * accepts and sleeps. Friends who would have a lie void before it is convicted, and a claim of a
 * friend against a refusal. Everybody's money is counted to the end.
 */
#include "tests/support/game/attack.h"

static const int solver_and_friend[] = {STAGE_SOLVER, STAGE_FRIEND};
static const struct scene_verdicts right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};
static const struct scene_verdicts unseen = {
    .unseen = {[STAGE_VERIFIER] = true, [STAGE_SECOND] = true, [STAGE_FRIEND] = true}};

/* A job of so many segments, of which chance looks at none, and a solver that has it. */
static void accept_uncovered(struct scene *scene, uint32_t segments)
{
    scene->terms.steps = (uint64_t)segments * SCENE_STEPS;
    scene->terms.coverage_ppm = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 4);
    scene_accept(scene, STAGE_SOLVER);
}

static void commit(struct scene *scene, int player, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        scene_commit(scene, player, SCENE_STEPS);
    }
}

static void close_job(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
}

static void release(struct scene *scene)
{
    scene_pass(scene, SCENE_SEGMENT_S + 1);
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_release, &scene->job);
    scene_read(scene);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_OPEN);
}

/* ---- what is looked at ------------------------------------------------------------- */

/* Fifteen in a row may stay unseen; the sixteenth ends the leg with any seed. */
ATTACK(endless_luck)
{
    accept_uncovered(scene, 40);
    commit(scene, STAGE_SOLVER, GAME_LEG_MAX);
    for (uint32_t i = 0; i < GAME_LEG_MAX; i++) {
        scene_draw(scene, i);
        assert_int_equal(scene->record.segments[i].draw.covered, i == GAME_LEG_MAX - 1);
    }
    scene_rounds(scene, GAME_LEG_MAX - 1, &right);
    scene_settle(scene, STAGE_SOLVER, GAME_LEG_MAX - 1);
    assert_int_equal(scene->record.state.finalized, GAME_LEG_MAX);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000 * GAME_LEG_MAX);
}

/* Draws come in order, so no leg can leave out the draw that it does not like. */
ATTACK(skipped_draws)
{
    struct game_segment second;

    accept_uncovered(scene, 20);
    commit(scene, STAGE_SOLVER, 2);
    second = scene_segment(scene, 1);
    scene_pass_blocks(scene, 4);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_draw, &scene->job, &second,
                                   &(struct game_commits){second.height, second.time_s}),
                     GAME_WRONG_INDEX);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_settle, &scene->job, &second, NULL),
                     GAME_NOT_DRAWN);
    scene_pass(scene, SCENE_SEGMENT_S + 1);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_release, &scene->job),
                     GAME_WRONG_INDEX);
}

/* ---- who stops ----------------------------------------------------------------------- */

/* The "the last segment never comes": what nobody looked at is not paid, and an eighth of
 * the stake burns. The next solver goes on, with a panel of its own. */
ATTACK(the_last_segment_never_comes)
{
    accept_uncovered(scene, SCENE_SEGMENTS);
    commit(scene, STAGE_SOLVER, SCENE_SEGMENTS - 1);
    for (uint32_t i = 0; i < SCENE_SEGMENTS - 1; i++) {
        scene_draw(scene, i);
    }
    release(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2500);
    assert_int_equal(scene->record.state.committed, 0);
    scene_enlist(scene, STAGE_SECOND, 4);
    scene_accept(scene, STAGE_OTHER);
    commit(scene, STAGE_OTHER, SCENE_SEGMENTS);
    for (uint32_t i = 0; i < SCENE_SEGMENTS - 1; i++) {
        scene_draw(scene, i);
    }
    scene_end_segment(scene, SCENE_SEGMENTS - 1, &right);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 3000);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 300);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0); /* of the first tenure */
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -3300);
}

/* Who would stop behind the last draw that can still be: near the deadline all are looked at. */
ATTACK(stopping_before_the_deadline)
{
    scene->terms.deadline_s = stage_clock(&scene->stage) + SCENE_SEAL_S + 5 * SCENE_SEGMENT_S;
    accept_uncovered(scene, 20);
    commit(scene, STAGE_SOLVER, 1);
    scene_draw(scene, 0);
    assert_false(scene->record.segments[0].draw.covered);
    while (stage_clock(&scene->stage) + SCENE_SEGMENT_S <= scene->terms.deadline_s) {
        scene_pass(scene, SCENE_SEGMENT_S - 60);
        commit(scene, STAGE_SOLVER, 1);
        scene_draw(scene, scene->record.state.committed - 1);
        if (scene->record.state.leg_start > 0) {
            break;
        }
    }
    assert_int_equal(scene->record.state.leg_start, scene->record.state.committed);
    assert_true(scene->record.segments[scene->record.state.committed - 1].committed.time_s +
                    SCENE_SEGMENT_S >
                scene->terms.deadline_s);
}

ATTACK(accept_and_sleep)
{
    accept_uncovered(scene, SCENE_SEGMENTS);
    release(scene);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2500);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 0);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
}

/* All that may be open, and none of it served. Its whole stake burns, with as much of the escrow
 * and fees of 65 segments: that is the most that a client can lose by one tenure. */
ATTACK(commit_all_and_abandon)
{
    const struct digest states[SCENE_STEPS] = {{{1}}, {{2}}, {{3}}};
    const struct game_hashes list = {states, SCENE_STEPS};

    scene->terms.steps = UINT64_C(70) * SCENE_STEPS;
    scene->terms.query_fee = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_enlist(scene, STAGE_SECOND, 2);
    scene_accept(scene, STAGE_SOLVER);
    commit(scene, STAGE_SOLVER, GAME_OPEN_MAX);
    assert_int_equal(
        SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_commit, &scene->job, GAME_OPEN_MAX, &list, false),
        GAME_FULL);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &unseen);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -20000 - 6500);
}

/* ---- claims -------------------------------------------------------------------------- */

/* Friends deny what one seat has found false, to burn two prices in place of a stake: a claim that
 * is open comes first. */
ATTACK(a_void_to_save_a_liar)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .unseen = {[STAGE_FRIEND] = true},
                                      .false_step = 1};
    struct hash32 alarm = {{0}};
    struct game_segment segment;

    scene_commit_for_two(scene, 1, 1);
    scene_round(scene, 0, &verdicts, &alarm);
    segment = scene_segment(scene, 0);
    scene_pass(scene, 2 * SCENE_CLAIM_S + 1);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_settle, &scene->job, &segment, NULL),
                     GAME_CLAIMS_OPEN);
    scene_see_convicted(scene, &alarm);
}

/* A friend's claim holds a refusal up, once: its bond is lost, and then all is void. No claim comes
 * after the refusal. */
ATTACK(a_refusal_blocked_by_an_own_claim)
{
    struct game_segment segment;
    struct hash32 claim;

    scene->terms.query_fee = 0;
    scene_commit_for_two(scene, 1, SCENE_STEPS);
    segment = scene_segment(scene, 0);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_refuse, &scene->job);
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + SCENE_CLAIM_S - 120);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 1, 0);
    scene_answer(scene, STAGE_SOLVER, &claim);
    scene_pass(scene, SCENE_CLOCK_S + 121);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_CLIENT, ledger_settle, &scene->job, &segment, NULL),
                     GAME_CLAIMS_OPEN);
    scene_timeout(scene, STAGE_CLIENT, &claim);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, solver_and_friend, 2), -2000 - 500);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2000 - 400);
}

/* ---- after a void ---------------------------------------------------------------------- */

/* The client puts back what burned, and another solver does the job. */
ATTACK(a_job_that_goes_on_after_a_void)
{
    static const struct game_hashes no_path;
    static const struct game_bytes no_contact;

    scene->terms.query_fee = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 3);
    scene_accept(scene, STAGE_SOLVER);
    commit(scene, STAGE_SOLVER, 2);
    scene_end_segment(scene, 0, &right);
    scene_draw(scene, 1);
    scene_rounds(scene, 1, &unseen);
    scene_settle(scene, STAGE_OTHER, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000 - 2000);
    assert_int_equal(scene->record.state.finalized, 1);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SECOND, ledger_enlist, &scene->job, &scene->terms,
                                   1, &no_path, &no_contact),
                     GAME_BARRED);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_resume, &scene->job,
               scene->record.state.missing_escrow + scene->record.state.missing_pool);
    scene_enlist(scene, STAGE_SECOND, 3);
    scene_accept(scene, STAGE_OTHER);
    commit(scene, STAGE_OTHER, 2);
    scene_end_segment(scene, 1, &right);
    scene_end_segment(scene, 2, &right);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 2000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 100);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 400);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -3000 - 500 - 2200);
}

/* A refusal lets a leg be final whose next round was closed, and not drawn. The tenure ends, and
 * the refusal with it: the round stays undrawn, and the seats of the next tenure are asked about
 * what is open alone. */
ATTACK(a_round_of_what_is_final)
{
    struct game_segment segment;
    struct game_commits over;

    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 3);
    scene_accept(scene, STAGE_SOLVER);
    commit(scene, STAGE_SOLVER, 1);
    scene_draw(scene, 0);
    segment = scene_segment(scene, 0);
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + 1);
    scene_settle(scene, STAGE_OTHER, 0);
    over = (struct game_commits){scene->record.segments[0].draw.over_height,
                                 scene->record.segments[0].draw.over_s};
    assert_true(over.height > segment.height);
    scene_pass(scene, GAME_WAITS_MAX * SCENE_CLAIM_S);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_refuse, &scene->job);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    release(scene);
    scene_enlist(scene, STAGE_SECOND, 3);
    scene_accept(scene, STAGE_OTHER);
    scene_pass_blocks(scene, 2);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_FRIEND, ledger_draw, &scene->job, &segment, &over),
                     GAME_ALREADY_DRAWN);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(endless_luck),
        ATTACK_TESTS(skipped_draws),
        ATTACK_TESTS(the_last_segment_never_comes),
        ATTACK_TESTS(stopping_before_the_deadline),
        ATTACK_TESTS(accept_and_sleep),
        ATTACK_TESTS(commit_all_and_abandon),
        ATTACK_TESTS(a_void_to_save_a_liar),
        ATTACK_TESTS(a_refusal_blocked_by_an_own_claim),
        ATTACK_TESTS(a_job_that_goes_on_after_a_void),
        ATTACK_TESTS(a_round_of_what_is_final),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
