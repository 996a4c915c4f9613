/*
 * Goal: a verdict of right costs a replay, and a bond stands behind it until the end.
 * Method: a verifier that guesses the leaves is challenged with one of them, by a stranger and by
 * its friend, and then all are silent; a true right cannot be; the bond of an entry with a duty
 * cannot be withdrawn; the seal of a claim does not live long; verdicts of right lose nothing when
 * the solver is convicted.
 */
#include "tests/support/game/attack.h"

static const struct scene_verdicts all_right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_FRIEND] = GAME_VERDICT_RIGHT}};

static void commit_for(struct scene *scene, int verifier)
{
    scene_open_job(scene);
    scene_enlist(scene, verifier, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
}

ATTACK(a_guessed_right)
{
    struct scene_verdicts verdicts = all_right;

    verdicts.made_up[STAGE_FRIEND] = true;
    commit_for(scene, STAGE_FRIEND);
    scene_round(scene, 0, &verdicts, NULL);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 500);
    scene_read(scene);
    assert_int_equal(scene->record.segments[0].draw.rights, 0);
    assert_int_equal(scene->record.segments[0].draw.unseen, 1);
}

/* A challenge that is seen on its way cannot be copied: the guesser's friend has sealed none. */
ATTACK(a_challenge_that_is_copied)
{
    struct scene_verdicts verdicts = all_right;

    verdicts.made_up[STAGE_FRIEND] = true;
    commit_for(scene, STAGE_FRIEND);
    scene_round(scene, 0, &verdicts, NULL);
    assert_int_equal(scene_challenge_unsealed(scene, STAGE_OTHER, 0, STAGE_FRIEND, 7),
                     GAME_NOT_SEALED);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 500);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 0);
}

/* Guessing and challenging oneself: a party takes half of its own bond back. */
ATTACK(a_guess_that_its_friend_challenges)
{
    static const int party[] = {STAGE_FRIEND, STAGE_OTHER};
    struct scene_verdicts verdicts = all_right;

    verdicts.made_up[STAGE_FRIEND] = true;
    commit_for(scene, STAGE_FRIEND);
    scene_round(scene, 0, &verdicts, NULL);
    assert_int_equal(scene_challenge(scene, STAGE_OTHER, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    scene_see(scene, scene_party_gain(scene, party, 2), -500);
}

/* Partners guess so that rights are told, are disproved by each other, and all others sleep: what
 * was disproved counts against the segment, so nothing is final. */
ATTACK(disproved_partners_and_then_silence)
{
    struct scene_verdicts verdicts = all_right;

    verdicts.made_up[STAGE_FRIEND] = true;
    commit_for(scene, STAGE_FRIEND);
    scene_round(scene, 0, &verdicts, NULL);
    assert_int_equal(scene_challenge(scene, STAGE_OTHER, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    scene_pass(scene, 2 * SCENE_CLAIM_S + 1); /* one claim time more */
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_OPEN);
    assert_true(scene->record.state.barred);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
}

ATTACK(a_true_right_stands)
{
    commit_for(scene, STAGE_VERIFIER);
    scene_round(scene, 0, &all_right, NULL);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, 0, STAGE_VERIFIER, 7), GAME_NOT_GUILTY);
    scene_read(scene);
    assert_int_equal(scene->record.segments[0].draw.rights, 1);
}

/* Who said something stays with its bond until the job is closed or the tenure ends. */
ATTACK(a_bond_withdrawn_too_early)
{
    commit_for(scene, STAGE_FRIEND);
    scene_round(scene, 0, &all_right, NULL);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_FRIEND, ledger_depart, &scene->job, 0, 0),
                     GAME_ENGAGED);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_OTHER, ledger_depart, &scene->job, 0, 0),
                     GAME_NOT_YOURS);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
}

/* A solver forges the trace of a true step and is convicted by its own friend, to rob those who
 * said right: they lose nothing. */
ATTACK(a_conviction_of_a_true_step)
{
    struct hash32 claim;

    commit_for(scene, STAGE_VERIFIER);
    scene_round(scene, 0, &all_right, NULL);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 1, 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_FRIEND, &claim);
    scene_pay(scene, STAGE_FRIEND, 0);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER) + scene_gain(scene, STAGE_FRIEND), -15000);
}

/* Nobody keeps a seal in store for a claim to come. */
ATTACK(a_rolling_seal)
{
    struct hash32 subject = {{1}};
    struct hash32 salt = {{2}};
    struct game_bytes nothing = {0};

    commit_for(scene, STAGE_VERIFIER);
    STAGE_PLAY(&scene->stage, STAGE_FRIEND, ledger_seal_claim, &subject, &salt);
    for (int i = 0; i <= GAME_SEAL_BLOCKS; i++) {
        STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_announce, &scene->job, &nothing);
    }
    /* It is dead: the same may be sealed again, which a living one forbids. */
    STAGE_PLAY(&scene->stage, STAGE_FRIEND, ledger_seal_claim, &subject, &salt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(a_guessed_right),
        ATTACK_TESTS(a_challenge_that_is_copied),
        ATTACK_TESTS(a_guess_that_its_friend_challenges),
        ATTACK_TESTS(disproved_partners_and_then_silence),
        ATTACK_TESTS(a_true_right_stands),
        ATTACK_TESTS(a_bond_withdrawn_too_early),
        ATTACK_TESTS(a_conviction_of_a_true_step),
        ATTACK_TESTS(a_rolling_seal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
