/*
 * Goal: a cheat gets back at most a quarter of the stake, a true claimant is paid first, and
 * nobody's sleep closes a true claim. Method: a cheat whose friend claims against it, before and
 * after an honest seat. Two lies and a friend. A friend that leads a true claim and defaults.
 * Verdicts of others after a conviction.
 */
#include "tests/support/game/attack.h"

static const int cheat_and_friend[] = {STAGE_SOLVER, STAGE_FRIEND};

static void commit_lies(struct scene *scene, uint32_t coverage_ppm)
{
    scene->terms.coverage_ppm = coverage_ppm;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1);
}

/* Nobody else looked: the friend has a quarter, half is burned, a quarter is the client's. */
ATTACK(a_cheat_that_claims_against_itself)
{
    struct hash32 claim;

    commit_lies(scene, 0);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 1, 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_FRIEND, &claim);
    scene_pay(scene, STAGE_FRIEND, 0);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -15000);
}

/* The friend is first by an hour; the seat that the draw chose is paid. */
ATTACK(the_friend_claims_first)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .false_step = 1};
    struct hash32 claim;

    commit_lies(scene, GAME_PPM);
    scene_draw(scene, 0);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 1, 0);
    scene_answer(scene, STAGE_SOLVER, &claim);
    scene_round(scene, 0, &verdicts, NULL); /* joins the same claim */
    scene_read(scene);
    assert_int_equal(job_record_open_claims(&scene->record), 1);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_VERIFIER, &claim); /* the friend is silent: the seat leads */
    scene_read(scene);
    assert_int_equal(job_record_open_claims(&scene->record), 1);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
}

/* Claims about the second lie begin before the first's; both are proven; the alarm is paid. */
ATTACK(two_lies_and_a_friend)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .false_step = 1};
    struct hash32 friends;
    struct hash32 alarm = {{0}};

    commit_lies(scene, GAME_PPM);
    scene_draw(scene, 0);
    scene_round(scene, 0, &verdicts, &alarm);
    friends = scene_claim(scene, STAGE_FRIEND, 0, 2, 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_FRIEND, &friends); /* convicts first */
    scene_timeout(scene, STAGE_VERIFIER, &alarm); /* and this ranks before it */
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_see(scene, scene_party_gain(scene, cheat_and_friend, 2), -20000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 5000);
}

/* What a default refuted may be claimed again. */
ATTACK(a_leader_that_defaults)
{
    struct hash32 claim;

    commit_lies(scene, 0);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 1, 0);
    scene_answer(scene, STAGE_SOLVER, &claim);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_SOLVER, &claim);
    scene_read(scene);
    assert_int_equal(job_record_open_claims(&scene->record), 0);
    assert_int_equal(scene->record.claims[0].state.outcome, GAME_REFUTED);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(a_cheat_that_claims_against_itself),
        ATTACK_TESTS(the_friend_claims_first),
        ATTACK_TESTS(two_lies_and_a_friend),
        ATTACK_TESTS(a_leader_that_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
