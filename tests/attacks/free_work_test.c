/*
 * Goal: neither a deadline nor a silent panel nor a client gets a solver's work for nothing.
 * Method: a solver commits before the deadline, and everything else comes after it. A client's
 * panel that enlists and never shows, with and without an allow-list. A client's verifiers who deny
 * what everybody can get, some of the panel and all of it. A client that refuses, before and after
 * its keeper has vouched, and when all was over; one that stops the job instead. Client and friend
 * are one party.
 */
#include "tests/support/game/attack.h"

#include "chain/game/allow_list.h"
#include "chain/game/vouch.h"

static const int client_and_friend[] = {STAGE_CLIENT, STAGE_FRIEND};
static const struct scene_verdicts right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT},
    .unseen = {[STAGE_FRIEND] = true}};
static const struct scene_verdicts nobody_shows;
static const struct game_bytes no_contact;

static void close_job(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
}

/* A panel of these, and a first segment that is true, served and drawn. */
static void commit_for(struct scene *scene, uint32_t friends, uint32_t verifiers)
{
    scene_open_job(scene);
    if (friends > 0) {
        scene_enlist(scene, STAGE_FRIEND, friends);
    }
    if (verifiers > 0) {
        scene_enlist(scene, STAGE_VERIFIER, verifiers);
    }
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
}

/* How long a refusal stands. */
static void pass_refusal(struct scene *scene)
{
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + SCENE_CLAIM_S + 1);
}

static void refuse(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_refuse, &scene->job);
    scene_read(scene);
}

/* ---- silence --------------------------------------------------------------------- */

ATTACK(the_deadline_robs_nobody)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 3);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_pass(scene, 2000000); /* nobody drew its seats */
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_CLIENT, ledger_release, &scene->job),
                     GAME_WRONG_INDEX);
    scene_end_segment(scene, 0, &right);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_release, &scene->job); /* nothing burns */
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_close_job, &scene->job);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 100);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1100);
}

/* The "a client's own panel sleeps": the solver waits longer, and is paid. Sleep costs the
 * sleepers nothing and brings their client nothing. */
ATTACK(a_panel_asleep)
{
    commit_for(scene, 2, 0);
    scene_rounds(scene, 0, &nobody_shows);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
    scene_pass(scene, SCENE_SEGMENT_S + 1);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_release, &scene->job);
    close_job(scene);
    scene_see(scene, scene_party_gain(scene, client_and_friend, 2), -1000);
}

ATTACK(an_allow_list_asleep)
{
    allow_list_root(&scene->terms.verifiers, signer_address(scene->stage.signers[STAGE_FRIEND]), 1);
    commit_for(scene, 2, 0);
    scene_rounds(scene, 0, &nobody_shows);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
}

/* ---- denial ---------------------------------------------------------------------- */

/* A quarter of the panel is the client's, and says that nobody can get the states: rights are twice
 * as many, under any draws. */
ATTACK(a_client_that_denies)
{
    commit_for(scene, 3, 9);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -3000); /* their bonds lie there */
}

/* The free work: all of the panel is the client's, and denies. The price burns on both
 * sides: the client has no work that it could use, since all it has seen is void. */
ATTACK(a_panel_of_the_clients_accounts)
{
    scene->terms.query_fee = 0;
    commit_for(scene, 16, 0);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
    scene_see(scene, scene_party_gain(scene, client_and_friend, 2), -2200);
}

/* Seats that a void proves right get a part of the query fee out of what burns of the stake. No
 * client names one by which its own panel would be paid for the work that it voids: the largest
 * that a ledger takes brings all of them together a segment's reward at most. */
ATTACK(a_panel_that_a_void_would_pay)
{
    const wei most = game_query_fee_max(&scene->terms);

    scene->terms.query_fee = most + 1;
    made_job(scene->header, &scene->terms.job_id, made_state(scene->shape, 0));
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_CLIENT, ledger_open_job, &scene->job, &scene->terms,
                                   &no_contact),
                     GAME_BAD_TERMS);
    scene->terms.query_fee = most;
    commit_for(scene, 16, 0);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
    assert_true(scene_gain(scene, STAGE_FRIEND) > 0);
    assert_true(scene_party_gain(scene, client_and_friend, 2) <= -1000);
}

/* A rival with three of five entries stops nobody whose keeper has what it wants. */
ATTACK(a_rival_voids_nothing_that_is_vouched)
{
    static const struct scene_verdicts one_right = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT},
                                                    .unseen = {[STAGE_FRIEND] = true}};

    scene->terms.keeper = *signer_address(scene->stage.signers[STAGE_OTHER]);
    scene->terms.seats = 4;
    scene->terms.panel_least = 4;
    commit_for(scene, 12, 8);
    scene_vouch(scene, STAGE_SECOND, STAGE_OTHER, 0); /* anybody may bring it */
    assert_true(scene->record.segments[0].draw.vouched);
    scene_rounds(scene, 0, &one_right);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND),
              -12000); /* bonds; what it said earns nothing */
}

/* Nobody else can vouch, and nobody for another segment. */
ATTACK(a_vouch_of_somebody_else)
{
    struct game_segment segment;
    struct hash32 hash;
    struct vouch vouch;
    struct game_bytes bytes = {vouch.signature, GAME_VOUCH_SIZE};
    struct error error;

    scene->terms.keeper = *signer_address(scene->stage.signers[STAGE_OTHER]);
    commit_for(scene, 0, 2);
    segment = scene_segment(scene, 0);
    hash = game_segment_hash(&scene->job, &segment);
    for (int player = 0; player < STAGE_PLAYERS; player++) {
        if (player == STAGE_OTHER) {
            hash.bytes[0] ^= 1;
        }
        stage_check(vouch_sign(&vouch, ledger_get_game(scene->stage.ledgers[0]), &scene->job, &hash,
                               scene->stage.signers[player], &error),
                    &error);
        assert_int_equal(
            SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_settle, &scene->job, &segment, &bytes),
            GAME_WRONG_VOUCH);
    }
    scene_vouch(scene, STAGE_SOLVER, STAGE_OTHER, 0);
    assert_true(scene->record.segments[0].draw.vouched);
}

/* ---- refusal --------------------------------------------------------------------- */

/* Refusing without a keeper's word costs the client what it costs the solver, and the fees. */
ATTACK(free_work_by_a_refusal)
{
    const struct digest states[SCENE_STEPS] = {{{1}}, {{2}}, {{3}}};
    const struct game_hashes list = {states, SCENE_STEPS};

    commit_for(scene, 0, 2);
    refuse(scene);
    assert_int_equal(
        SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_commit, &scene->job, 1, &list, false),
        GAME_STANDS_REFUSED); /* nobody makes a void dearer now */
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_CLIENT, ledger_refuse, &scene->job),
                     GAME_NOT_NEEDED);
    scene_round(scene, 0, &right, NULL);
    pass_refusal(scene);
    scene_settle(scene, STAGE_OTHER, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2200);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
}

/* Whose keeper has vouched cannot take its word back. */
ATTACK(a_refusal_of_what_is_vouched)
{
    scene->terms.keeper = *signer_address(scene->stage.signers[STAGE_OTHER]);
    commit_for(scene, 0, 2);
    refuse(scene);
    scene_vouch(scene, STAGE_SOLVER, STAGE_OTHER, 0);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    pass_refusal(scene);
    STAGE_PLAY(&scene->stage, STAGE_SOLVER, ledger_release, &scene->job); /* nothing burns */
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 100);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1100);
}

/* A refusal in the second before the settle: the claim time was over, so it says nothing. */
ATTACK(a_refusal_that_comes_too_late)
{
    commit_for(scene, 0, 2);
    scene_rounds(scene, 0, &right);
    refuse(scene);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    pass_refusal(scene);
    STAGE_PLAY(&scene->stage, STAGE_SOLVER, ledger_release, &scene->job);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1100);
}

/* The client ends the job, to have what was committed for nothing. What was committed is paid, and
 * the next is the last. */
ATTACK(a_stop_instead_of_a_refusal)
{
    scene->terms.steps = 6 * SCENE_STEPS;
    commit_for(scene, 0, 4);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_stop, &scene->job);
    scene_read(scene);
    assert_int_equal(scene->record.state.segments, 2);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_SOLVER, 0);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_end_segment(scene, 1, &right);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2000 - 100 - 300); /* three for the last */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(the_deadline_robs_nobody),
        ATTACK_TESTS(a_panel_asleep),
        ATTACK_TESTS(an_allow_list_asleep),
        ATTACK_TESTS(a_client_that_denies),
        ATTACK_TESTS(a_panel_of_the_clients_accounts),
        ATTACK_TESTS(a_panel_that_a_void_would_pay),
        ATTACK_TESTS(a_rival_voids_nothing_that_is_vouched),
        ATTACK_TESTS(a_vouch_of_somebody_else),
        ATTACK_TESTS(free_work_by_a_refusal),
        ATTACK_TESTS(a_refusal_of_what_is_vouched),
        ATTACK_TESTS(a_refusal_that_comes_too_late),
        ATTACK_TESTS(a_stop_instead_of_a_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
