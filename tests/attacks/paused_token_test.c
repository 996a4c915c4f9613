/*
 * Goal: a token that is paused in the middle of a job stops what is paid in it, and nothing else:
 * no verdict is late by it, no liar gets away, and all that is owed waits until it moves again.
 * Method: on a chain, where the registry plays for a token that its owner pauses: before a job is
 * opened, while it waits for a solver, while its segments are committed, sealed and revealed, in a
 * dispute, and when a void waits for its client. What moves no token is done meanwhile; what does
 * is refused by name, also where it is the first that an account pays and its approval is sent
 * before it. Then the pause ends, and the balances are exact.
 */
#include "tests/support/game/scene.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOKS = 200,
};

static const struct game_hashes no_path;
static const struct game_bytes no_contact;
static const struct scene_verdicts right = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT}};

static void open_scene(struct scene *scene, const char *name)
{
    scene_open(scene, STAGE_TOKEN, name);
    scene->terms.query_fee = 0;
}

/* paused, denies, tax, callback */
static void pause_token(struct scene *scene, bool paused)
{
    const struct uint256 words[] = {uint256_of(paused ? 1 : 0), uint256_of(0), uint256_of(0),
                                    uint256_of(128), uint256_of(0)};

    stage_tell_token(&scene->stage, "behave(bool,bool,uint256,bytes)", words, 5);
}

/* What is owed cannot be withdrawn, and is not lost. */
static void see_owed(struct scene *scene, int player)
{
    const struct address *account = signer_address(scene->stage.signers[player]);
    wei owed = stage_owed(&scene->stage, player);

    assert_true(owed > 0);
    assert_int_equal(SCENE_REFUSAL(scene, player, ledger_withdraw, account), GAME_WITHDRAW_FAILED);
    assert_true(stage_owed(&scene->stage, player) == owed);
}

static void withdraw_all(struct scene *scene)
{
    for (int player = 0; player < STAGE_PLAYERS; player++) {
        if (stage_owed(&scene->stage, player) > 0) {
            STAGE_PLAY(&scene->stage, player, ledger_withdraw,
                       signer_address(scene->stage.signers[player]));
        }
    }
}

/* ---- an account that has paid nothing yet ---------------------------------------------- */

/* Looks at a move while blocks go by, until it is refused. What it said before that. */
static enum game_refusal_kind follow_move(struct scene *scene, int player, const char *name,
                                          char *trouble, size_t size)
{
    struct ledger_outcome outcome = {0};
    struct error error;

    error_init(&error);
    trouble[0] = '\0';
    for (int i = 0; i < LOOKS; i++) {
        stage_work(scene->stage.ledgers[player]);
        stage_check(ledger_look(scene->stage.ledgers[player], &outcome, name, &error), &error);
        if (outcome.state == LEDGER_MOVE_REFUSED) {
            return outcome.refusal.kind;
        }
        if (outcome.trouble[0] != '\0') {
            (void)snprintf(trouble, size, "%s", outcome.trouble);
            scene_pass_blocks(scene, 1);
        }
    }
    fail_msg("'%s' is neither refused nor in trouble: '%s'", name, trouble);
    return GAME_REFUSED_NOT;
}

/* Its approval goes first, so nobody can ask whether the move would fail: it is sent and fails.
 * That is said at once, and the refusal has its name when its block is final. */
static void test_a_first_payment_of_a_paused_token_is_refused_by_name(void **state)
{
    struct scene scene;
    char trouble[256];
    struct error error;

    (void)state;
    error_init(&error);
    open_scene(&scene, "first-payment");
    scene_open_job(&scene);
    pause_token(&scene, true);
    stage_check(ledger_enlist(scene.stage.ledgers[STAGE_VERIFIER], "first", &scene.job,
                              &scene.terms, 1, &no_path, &no_contact, &error),
                &error);
    assert_int_equal(follow_move(&scene, STAGE_VERIFIER, "first", trouble, sizeof(trouble)),
                     GAME_WRONG_TOKEN);
    assert_non_null(strstr(trouble, "it failed in block"));
    assert_non_null(strstr(trouble, game_refusal_text(GAME_WRONG_TOKEN)));
    assert_int_equal(SCENE_REFUSAL(&scene, STAGE_VERIFIER, ledger_enlist, &scene.job, &scene.terms,
                                   1, &no_path, &no_contact),
                     GAME_WRONG_TOKEN);
    scene_see(&scene, scene_gain(&scene, STAGE_VERIFIER), 0);
    pause_token(&scene, false);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_see(&scene, scene_gain(&scene, STAGE_VERIFIER), -1000);
    scene_close(&scene);
}

/* ---- stages of a job ---------------------------------------------------------------------- */

/* Nobody comes in, and everybody goes out. */
static void test_a_pause_while_a_job_waits_for_a_solver(void **state)
{
    struct scene scene;
    struct hash32 job;

    (void)state;
    open_scene(&scene, "pause-open");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 2);
    scene_enlist(&scene, STAGE_OTHER, 1); /* it has paid before */
    scene_pass(&scene, SCENE_SEAL_S + 1);
    pause_token(&scene, true);
    job = scene.job;
    scene.terms.salt++;
    assert_int_equal(
        SCENE_REFUSAL(&scene, STAGE_CLIENT, ledger_open_job, &job, &scene.terms, &no_contact),
        GAME_WRONG_TOKEN);
    scene.terms.salt--;
    assert_int_equal(SCENE_REFUSAL(&scene, STAGE_OTHER, ledger_accept, &scene.job, &scene.terms,
                                   &no_path, &no_contact),
                     GAME_WRONG_TOKEN);
    assert_int_equal(SCENE_REFUSAL(&scene, STAGE_VERIFIER, ledger_enlist, &scene.job, &scene.terms,
                                   1, &no_path, &no_contact),
                     GAME_WRONG_TOKEN);
    STAGE_PLAY(&scene.stage, STAGE_VERIFIER, ledger_depart, &scene.job, 0, 0);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_close_job, &scene.job);
    scene_depart(&scene);
    see_owed(&scene, STAGE_CLIENT);
    see_owed(&scene, STAGE_VERIFIER);
    pause_token(&scene, false);
    withdraw_all(&scene);
    for (int player = 0; player < STAGE_PLAYERS; player++) {
        scene_see(&scene, scene_gain(&scene, player), 0);
    }
    scene_close(&scene);
}

/* From the first commit to the end of the job nothing is paid in. */
static void test_a_pause_while_a_job_runs(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "pause-running");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 2);
    scene_accept(&scene, STAGE_SOLVER);
    pause_token(&scene, true);
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
        scene_end_segment(&scene, i, &right);
        see_owed(&scene, STAGE_SOLVER);
    }
    assert_int_equal(scene.record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(&scene);
    pause_token(&scene, false);
    withdraw_all(&scene);
    scene_see(&scene, scene_gain(&scene, STAGE_SOLVER), 3000);
    scene_see(&scene, scene_gain(&scene, STAGE_VERIFIER), 400); /* the last segment has both */
    scene_see(&scene, scene_gain(&scene, STAGE_CLIENT), -3400);
    scene_close(&scene);
}

/* ---- disputes -------------------------------------------------------------------------------- */

/* A seat's alarm has its bond there already. */
static void test_a_pause_saves_no_liar_from_an_alarm(void **state)
{
    const struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                            .false_step = 1};
    struct hash32 alarm = {{0}};
    struct scene scene;

    (void)state;
    open_scene(&scene, "pause-alarm");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, 1);
    pause_token(&scene, true);
    scene_draw(&scene, 0);
    scene_round(&scene, 0, &verdicts, &alarm);
    scene_pass(&scene, SCENE_CLOCK_S + 1);
    scene_see_convicted(&scene, &alarm);
    see_owed(&scene, STAGE_VERIFIER);
    scene_close(&scene);
}

/* The bond of an outsider comes from what it is owed, where its tokens cannot move. */
static void test_a_pause_saves_no_liar_from_who_is_owed_a_bond(void **state)
{
    struct hash32 claim;
    struct scene scene;

    (void)state;
    open_scene(&scene, "pause-claim");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_SECOND, 1);
    STAGE_PLAY(&scene.stage, STAGE_SECOND, ledger_depart, &scene.job, 0, 0);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, 1);
    pause_token(&scene, true);
    see_owed(&scene, STAGE_SECOND);
    claim = scene_claim(&scene, STAGE_SECOND, 0, scene_replay(&scene, 0), 0);
    assert_true(stage_owed(&scene.stage, STAGE_SECOND) == 0);
    scene_pass(&scene, SCENE_CLOCK_S + 1);
    scene_timeout(&scene, STAGE_SECOND, &claim);
    scene_pay(&scene, STAGE_CLIENT, 0);
    pause_token(&scene, false);
    withdraw_all(&scene);
    scene_see(&scene, scene_gain(&scene, STAGE_SOLVER), -20000);
    scene_see(&scene, scene_gain(&scene, STAGE_SECOND), 5000);
    scene_close(&scene);
}

/* ---- a void ---------------------------------------------------------------------------------- */

/* The client cannot put back what burned while its tokens stand still; it can close the job. */
static void test_a_pause_after_a_void(void **state)
{
    static const struct scene_verdicts unseen = {.unseen = {[STAGE_VERIFIER] = true}};
    struct scene scene;
    wei missing;

    (void)state;
    open_scene(&scene, "pause-void");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 3);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, 0);
    pause_token(&scene, true);
    scene_draw(&scene, 0);
    scene_rounds(&scene, 0, &unseen);
    scene_settle(&scene, STAGE_CLIENT, 0);
    assert_true(scene.record.state.barred);
    missing = scene.record.state.missing_escrow + scene.record.state.missing_pool;
    assert_int_equal(SCENE_REFUSAL(&scene, STAGE_CLIENT, ledger_resume, &scene.job, missing),
                     GAME_WRONG_TOKEN);
    pause_token(&scene, false);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_resume, &scene.job, missing);
    pause_token(&scene, true);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_close_job, &scene.job);
    scene_depart(&scene);
    pause_token(&scene, false);
    withdraw_all(&scene);
    scene_see(&scene, scene_gain(&scene, STAGE_SOLVER), -2000);
    scene_see(&scene, scene_gain(&scene, STAGE_CLIENT), -2200);
    scene_see(&scene, scene_gain(&scene, STAGE_VERIFIER), 0);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_first_payment_of_a_paused_token_is_refused_by_name),
        cmocka_unit_test(test_a_pause_while_a_job_waits_for_a_solver),
        cmocka_unit_test(test_a_pause_while_a_job_runs),
        cmocka_unit_test(test_a_pause_saves_no_liar_from_an_alarm),
        cmocka_unit_test(test_a_pause_saves_no_liar_from_who_is_owed_a_bond),
        cmocka_unit_test(test_a_pause_after_a_void),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
