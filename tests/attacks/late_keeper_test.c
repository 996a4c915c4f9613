/*
 * Goal: a solver with a panel of its own gains nothing by what it serves the keeper late.
 * Method: all of the panel are friends, who say right of what nobody else can get, so the keeper
 * refuses. Then the solver serves it: a lie in the last minutes of the refusal, what is true, or
 * all of it when the refusal is over. The keeper does what its plan says (client/keeper). Once it
 * replays, once it cannot; once it was served before it would refuse, and only a watcher looks.
 */
#include "tests/support/game/attack.h"

#include "client/keeper/keep_plan.h"

#define KEEPER STAGE_OTHER

static const int cheat_and_friend[] = {STAGE_SOLVER, STAGE_FRIEND};
static const struct keep_policy usual = {.refuses = true, .replays = true};
static const struct keep_policy careful = {.refuses = true};
static const struct scene_verdicts friends_say_right = {
    .of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT}};

enum {
    REPLAY_S = 300,
};

static void close_job(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
}

static struct keep_needs plan_keeper(struct scene *scene, const struct keep_known *known,
                                     const struct keep_policy *policy)
{
    struct job_segment segment;

    scene_read(scene);
    segment = job_record_segment(&scene->record, 0);
    return keep_plan(&segment, known, policy, stage_clock(&scene->stage));
}

/* The first segment, which lies from a step on, is drawn for a panel of friends. */
static struct keep_known commit_for_friends(struct scene *scene, uint32_t lie)
{
    struct keep_known known = {0};
    struct job_segment segment;

    scene->terms.keeper = *signer_address(scene->stage.signers[KEEPER]);
    scene->terms.query_fee = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 12);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, lie);
    scene_draw(scene, 0);
    segment = job_record_segment(&scene->record, 0);
    known.first_end_s = job_segment_reveal_end(&segment);
    known.well_s = segment.start_s;
    return known;
}

/* They say right, and the keeper has nothing. It refuses. */
static struct keep_known refuse_what_friends_say(struct scene *scene, uint32_t lie)
{
    struct keep_known known = commit_for_friends(scene, lie);

    scene_round(scene, 0, &friends_say_right, NULL);
    assert_true(plan_keeper(scene, &known, &usual).refuse);
    STAGE_PLAY(&scene->stage, KEEPER, ledger_refuse, &scene->job);
    scene_read(scene);
    return known;
}

/* So long before the refusal is over the keeper has all. */
static void serve_keeper(struct scene *scene, struct keep_known *known, uint32_t before_s)
{
    uint64_t now_s = stage_clock(&scene->stage);

    scene_pass(scene, (uint32_t)(scene->record.state.refused_until_s - before_s - now_s));
    known->has_states = true;
    known->late = true;
}

/* It vouches where its plan says so; else it replays where the plan says that, and knows. */
static void keep_segment(struct scene *scene, struct keep_known *known,
                         const struct keep_policy *policy)
{
    if (!plan_keeper(scene, known, policy).vouch && plan_keeper(scene, known, policy).replay) {
        scene_pass(scene, REPLAY_S);
        known->replayed = true;
        known->is_false = scene_replay(scene, 0) < SCENE_STEPS;
    }
    if (plan_keeper(scene, known, policy).vouch) {
        scene_vouch(scene, KEEPER, KEEPER, 0);
    }
}

/* A vouch would pay the lie at once. Who replays first claims it: that takes the whole stake. */
ATTACK(a_lie_that_reaches_the_keeper_late)
{
    struct keep_known known = refuse_what_friends_say(scene, 1);
    struct game_segment segment = scene_segment(scene, 0);
    struct hash32 claim;

    serve_keeper(scene, &known, REPLAY_S + 200);
    keep_segment(scene, &known, &usual);
    assert_true(known.is_false);
    assert_int_equal(scene->record.state.finalized, 0);
    claim = scene_claim(scene, KEEPER, 0, scene_replay(scene, 0), 0);
    scene_pass(scene, 300);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_settle, &scene->job, &segment, NULL),
                     GAME_CLAIMS_OPEN);
    scene_pass(scene, SCENE_CLOCK_S);
    scene_timeout(scene, KEEPER, &claim);
    scene_pay(scene, STAGE_CLIENT, 0);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -20000);
    scene_see(scene, scene_gain(scene, KEEPER), 5000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 5000);
}

/* A keeper that does not replay believes nobody whom it does not know: both prices burn. */
ATTACK(a_lie_that_reaches_a_keeper_that_cannot_replay)
{
    struct keep_known known = refuse_what_friends_say(scene, 1);

    serve_keeper(scene, &known, 60);
    keep_segment(scene, &known, &careful);
    scene_pass(scene, 61);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2000 - 200);
}

/* What is true and late is saved: nobody loses by a line that was slow. */
ATTACK(a_true_segment_that_reaches_the_keeper_late)
{
    struct keep_known known = refuse_what_friends_say(scene, SCENE_STEPS);

    serve_keeper(scene, &known, REPLAY_S + 200);
    keep_segment(scene, &known, &usual);
    assert_int_equal(scene->record.state.finalized, 1); /* at once: its claim time was over */
    scene_pass(scene, 201);
    STAGE_PLAY(&scene->stage, STAGE_SOLVER, ledger_release, &scene->job);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 100);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1100);
}

/* Served when the refusal is over: the first settle burns both prices, and no vouch comes after
 * that. */
ATTACK(a_segment_that_reaches_the_keeper_too_late)
{
    struct keep_known known = refuse_what_friends_say(scene, SCENE_STEPS);
    struct game_segment segment = scene_segment(scene, 0);

    serve_keeper(scene, &known, 0);
    scene_pass(scene, 1);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_settle, &scene->job, &segment, NULL),
                     GAME_WRONG_PHASE);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2000 - 200);
}

/* Served just in time the keeper vouches unseen, as it does for a panel that it cannot doubt. It
 * serves on what it has, so one who watches has a claim period to look, and takes the stake. */
ATTACK(a_lie_that_reaches_the_keeper_in_time)
{
    struct keep_known known = commit_for_friends(scene, 1);
    struct hash32 claim;

    scene_round(scene, 0, &friends_say_right, NULL);
    known.has_states = true;
    keep_segment(scene, &known, &usual);
    assert_true(scene->record.segments[0].draw.vouched);
    scene_pass(scene, SCENE_CLAIM_S / 2);
    claim = scene_claim(scene, STAGE_SECOND, 0, scene_replay(scene, 0), 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_SECOND, &claim);
    scene_pay(scene, STAGE_CLIENT, 0);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -20000);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(a_lie_that_reaches_the_keeper_late),
        ATTACK_TESTS(a_lie_that_reaches_a_keeper_that_cannot_replay),
        ATTACK_TESTS(a_true_segment_that_reaches_the_keeper_late),
        ATTACK_TESTS(a_segment_that_reaches_the_keeper_too_late),
        ATTACK_TESTS(a_lie_that_reaches_the_keeper_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
