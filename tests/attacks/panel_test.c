/*
 * Goal: a panel is made of those who are there, and of none who left; and nobody honest in it can
 * be driven into a loss. Method: entries that enlist and go by the dozen before a job begins;
 * entries of a tenure that is over; a solver that accepts before anybody else could enlist;
 * verifiers that are never served, come too late or never come; friends who say that they saw
 * nothing, to empty the pool.
 */
#include "tests/support/game/attack.h"

static const struct game_hashes no_path;
static const struct game_bytes no_contact;
static const struct scene_verdicts right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT},
    .unseen = {[STAGE_FRIEND] = true}};

enum {
    DEAD = 16,
};

/* All entries of a player go, each of which gives its number to another. */
static void depart_all(struct scene *scene, int player)
{
    const struct address *owner = signer_address(scene->stage.signers[player]);

    scene_read(scene);
    for (uint32_t i = 0; i < scene->record.state.entries;) {
        if (address_equal(&scene->record.entries[i].owner, owner)) {
            STAGE_PLAY(&scene->stage, player, ledger_depart, &scene->job,
                       scene->record.state.generation, i);
            scene_read(scene);
        } else {
            i++;
        }
    }
}

/* The "dead entries": an entry that goes before a job begins leaves no number behind. */
ATTACK(dead_entries)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, DEAD);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_enlist(scene, STAGE_FRIEND, DEAD);
    depart_all(scene, STAGE_FRIEND);
    assert_int_equal(scene->record.state.entries, 2);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    assert_int_equal(scene_segment(scene, 0).panel, 2);
    scene_end_segment(scene, 0, &right);
    assert_int_equal(scene->record.state.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), -2000 + 100);
}

/* Nobody goes while a solver relies on the panel; and who was in one before is not in the next. */
ATTACK(entries_of_a_tenure_that_is_over)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, DEAD);
    scene_accept(scene, STAGE_SOLVER);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_FRIEND, ledger_depart, &scene->job, 0, 0),
                     GAME_ENGAGED);
    scene_pass(scene, SCENE_SEGMENT_S + 1);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_release, &scene->job);
    scene_pass(scene, SCENE_SEAL_S + 1);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_OTHER, ledger_accept, &scene->job, &scene->terms,
                                   &no_path, &no_contact),
                     GAME_PANEL_SHORT);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_accept(scene, STAGE_OTHER);
    scene_depart(scene); /* the bonds of the first tenure, at any time */
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
    scene_commit(scene, STAGE_OTHER, SCENE_STEPS);
    assert_int_equal(scene_segment(scene, 0).panel, 2);
    scene_end_segment(scene, 0, &right);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), -20000 + 1000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), -2000 + 100);
}

/* A solver and friends would be the whole panel if they came first. Others have a seal period. */
ATTACK(a_panel_captured_in_the_block_of_the_opening)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 2);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_SOLVER, ledger_accept, &scene->job, &scene->terms,
                                   &no_path, &no_contact),
                     GAME_TOO_EARLY);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    assert_int_equal(scene_segment(scene, 0).panel, 4);
    for (int player = 0; player < STAGE_PLAYERS; player++) {
        if (player == STAGE_CLIENT || player == STAGE_SOLVER) {
            assert_int_equal(SCENE_REFUSAL(scene, player, ledger_enlist, &scene->job, &scene->terms,
                                           1, &no_path, &no_contact),
                             GAME_SELF_DEALING);
        }
    }
}

/* The "blind enlistment": a node whose replay is late, or that never saw the job, has its
 * whole bond back. The client that counted on penalties has nothing of it. */
ATTACK(blind_enlistment)
{
    static const struct scene_verdicts one_comes = {.of = {[STAGE_SECOND] = GAME_VERDICT_RIGHT}};

    scene->terms.steps = SCENE_STEPS;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 6);
    scene_enlist(scene, STAGE_SECOND, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_end_segment(scene, 0, &one_comes);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT) + scene_gain(scene, STAGE_SECOND), -1000);
}

/* The "stripped seats": who sealed and came too late to reveal loses the fee, no more. */
ATTACK(a_seat_that_is_kept_late)
{
    uint32_t place = 0;
    struct ledger_verdict verdict = {.verdict = GAME_VERDICT_RIGHT, .salt = {{7}}};

    scene->terms.steps = SCENE_STEPS;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 3);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    verdict.job = scene->job;
    verdict.segment = scene_segment(scene, 0);
    for (uint32_t n = 0; scene_seat(scene, 0, n, &place) == STAGE_VERIFIER; n++) {
        verdict.place = place;
        STAGE_PLAY(&scene->stage, STAGE_VERIFIER, ledger_seal, &verdict);
    }
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + 1);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_VERIFIER, ledger_reveal, &verdict), GAME_TOO_LATE);
    scene_pass(scene, 4 * SCENE_CLAIM_S + 1);
    scene_settle(scene, STAGE_SOLVER, 0); /* nobody said anything: it is final */
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1000);
}

/* What says that it saw nothing is never paid by the client, however often it is drawn. */
ATTACK(a_pool_drained_by_denials)
{
    static const int all[] = {STAGE_CLIENT, STAGE_VERIFIER};

    scene->terms.steps = SCENE_STEPS;
    scene->terms.query_fee = 40 * WEI_PER_ETHER / 1000;
    scene->terms.seats = GAME_SEATS_MAX;
    scene->terms.panel_least = GAME_SEATS_MAX;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 4);
    scene_enlist(scene, STAGE_VERIFIER, 12);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_end_segment(scene, 0, &right);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
    scene_see(scene, scene_party_gain(scene, all, 2), -1000);
    assert_true(scene_gain(scene, STAGE_CLIENT) >= -1000 - 12 * 100); /* each right at most */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(dead_entries),
        ATTACK_TESTS(entries_of_a_tenure_that_is_over),
        ATTACK_TESTS(a_panel_captured_in_the_block_of_the_opening),
        ATTACK_TESTS(blind_enlistment),
        ATTACK_TESTS(a_seat_that_is_kept_late),
        ATTACK_TESTS(a_pool_drained_by_denials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
