/*
 * Goal: jobs of 3, 10 and 20 segments, whose stake is the whole price and whose legs may be longer
 * than they are, neither stop an honest solver nor let anybody gain by their shortness.
 * Method: the solver commits as our program does by its defaults (prover/post/solver_policy).
 * Chance looks at a fifth of the segments, at none or at all. Once everybody is honest; once the
 * client's panel denies all, and once a solver lies from its first commit to its last. Client and
 * friend are one party.
 */
#include "tests/support/game/attack.h"

#include "chain/game/policy/economy.h"
#include "prover/post/solver_policy.h"

enum {
    REWARD = 1000, /* thousandths of an ether */
    FEE = 40,
    SEATS = 2,
};

static const int client_and_friend[] = {STAGE_CLIENT, STAGE_FRIEND};
static const struct scene_verdicts right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};
static const struct scene_verdicts denied = {.unseen = {[STAGE_FRIEND] = true}};

/* ---- the terms and the solver -------------------------------------------------------- */

/* On a chain each move takes long: "make soak" has time for twenty segments. */
static bool takes_too_long(const struct scene *scene)
{
    return scene->stage.anvil != NULL && test_soak_minutes() == 0;
}

/* As `job open` has them without a keeper. friends: all of the panel is the client's. */
static void accept_short_job(struct scene *scene, uint32_t segments, uint32_t coverage_ppm,
                             bool friends)
{
    scene->terms.steps = (uint64_t)segments * SCENE_STEPS;
    scene->terms.stake = segments * scene->terms.reward;
    scene->terms.fee = FEE * WEI_PER_ETHER / 1000;
    scene->terms.seats = SEATS;
    scene->terms.panel_least = SEATS;
    scene->terms.coverage_ppm = coverage_ppm;
    scene->terms.query_fee = 0;
    scene->terms.segment_period_s = 24 * SCENE_SEGMENT_S;
    scene->terms.deadline_s += UINT64_C(1000) * scene->terms.segment_period_s;
    scene_open_job(scene);
    scene_enlist(scene, friends ? STAGE_FRIEND : STAGE_VERIFIER, 8);
    if (!friends) {
        scene_enlist(scene, STAGE_SECOND, 8);
    }
    scene_accept(scene, STAGE_SOLVER);
    scene_read(scene);
}

/* All that the solver commits without waiting. */
static void commit_ahead(struct scene *scene, uint32_t lie)
{
    while (
        scene->record.state.committed < scene->record.state.segments &&
        solver_policy_has_room(&scene->record, ECONOMY_AHEAD_USUAL, stage_clock(&scene->stage))) {
        scene_commit(scene, STAGE_SOLVER, lie);
    }
}

/* Draws the first leg; the segment that ends it. There must be one, or the solver waits in vain. */
static uint32_t draw_leg(struct scene *scene)
{
    uint32_t index = scene->record.state.drawn;

    for (;;) {
        assert_true(index < scene->record.state.committed);
        scene_draw(scene, index);
        if (scene->record.segments[index].draw.covered) {
            return index;
        }
        index++;
    }
}

static void end_leg(struct scene *scene, const struct scene_verdicts *verdicts)
{
    uint32_t index = draw_leg(scene);

    scene_rounds(scene, index, verdicts);
    scene_settle(scene, STAGE_SOLVER, index);
}

/* ---- everybody is honest ---------------------------------------------------------------- */

/* What the panel earns the client pays, and the solver has its whole price. */
static void play_honest(struct scene *scene, uint32_t segments, uint32_t coverage_ppm)
{
    const int payer_and_panel[] = {STAGE_CLIENT, STAGE_VERIFIER, STAGE_SECOND};
    const int64_t price = (int64_t)segments * REWARD;

    accept_short_job(scene, segments, coverage_ppm, false);
    while (scene->record.state.phase == GAME_PHASE_RUNNING) {
        commit_ahead(scene, SCENE_STEPS);
        end_leg(scene, &right);
    }
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), price);
    scene_see(scene, scene_party_gain(scene, payer_and_panel, 3), -price);
    assert_true(scene_gain(scene, STAGE_CLIENT) <= -price - 3 * FEE); /* of the last segment */
}

/* Three segments are fewer than a leg may have: the solver stakes on all at once, or it would wait
 * for a draw that never comes. */
ATTACK(three_segments_of_which_chance_looks_at_none)
{
    play_honest(scene, 3, 0);
}

ATTACK(ten_segments_of_which_chance_looks_at_a_fifth)
{
    play_honest(scene, 10, 200000);
}

ATTACK(twenty_segments_of_which_chance_looks_at_none)
{
    if (!takes_too_long(scene)) {
        play_honest(scene, 20, 0);
    }
}

/* ---- a client that wants the work for nothing ----------------------------------------------- */

/* What was open burns on both sides, and one segment more: never more than the stake, which is the
 * price. The client has paid for all that it saw. */
static void deny_job(struct scene *scene, uint32_t segments)
{
    int64_t open;
    int64_t price;

    accept_short_job(scene, segments, GAME_PPM, true);
    commit_ahead(scene, SCENE_STEPS);
    open = scene->record.state.committed;
    assert_true(open <= ECONOMY_AHEAD_USUAL);
    price = open < segments ? (open + 1) * REWARD : (int64_t)segments * REWARD;
    end_leg(scene, &denied);
    assert_true(scene->record.state.barred);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -price);
    assert_true(scene_party_gain(scene, client_and_friend, 2) <= -price);
    assert_true(scene_party_gain(scene, client_and_friend, 2) <= -open * REWARD);
}

ATTACK(three_segments_that_are_denied)
{
    deny_job(scene, 3);
}

ATTACK(ten_segments_that_are_denied)
{
    deny_job(scene, 10);
}

ATTACK(twenty_segments_that_are_denied)
{
    if (!takes_too_long(scene)) {
        deny_job(scene, 20);
    }
}

/* ---- a solver that lies ---------------------------------------------------------------------- */

/* Its stake is what it could have saved by all of its lies, and the last segment is looked at
 * without chance. */
ATTACK(three_segments_that_are_lies)
{
    struct scene_verdicts verdicts = {
        .of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE, [STAGE_SECOND] = GAME_VERDICT_FALSE}};
    struct hash32 alarm = {{0}};

    accept_short_job(scene, 3, 0, false);
    commit_ahead(scene, 1);
    assert_int_equal(draw_leg(scene), 2);
    verdicts.false_step = scene_replay(scene, 2);
    scene_round(scene, 2, &verdicts, &alarm);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_VERIFIER, &alarm);
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -3 * REWARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(three_segments_of_which_chance_looks_at_none),
        ATTACK_TESTS(ten_segments_of_which_chance_looks_at_a_fifth),
        ATTACK_TESTS(twenty_segments_of_which_chance_looks_at_none),
        ATTACK_TESTS(three_segments_that_are_denied),
        ATTACK_TESTS(ten_segments_that_are_denied),
        ATTACK_TESTS(twenty_segments_that_are_denied),
        ATTACK_TESTS(three_segments_that_are_lies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
