/*
 * Goal: whoever attests a false trace root is found by another verifier's node, accused and
 * convicted, whether it answers or falls silent; whoever attests the true one is not accused; and
 * an honest attestor that is accused answers what it is asked and gets the bond.
 * Method: the real node with its children beside a rival that attests what the test wants, on the
 * embedded ledger and on a chain; the money is counted to the wei.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/dispute/accuser.h"
#include "verifier/node/node_children.h"

enum {
    ROUNDS_MAX = 200000, /* minutes: a busy machine is no failure */
    LIFE_ROUNDS = 60,
    INDEX = 1, /* of the segment that the rival attests */
};

#define CLAIM_BOND  (WEI_PER_ETHER / 10)
#define ATTEST_BOND (WEI_PER_ETHER / 20)

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- the scene -------------------------------------------------------------------- */

struct scene {
    struct market market;
    struct market_node node;
    struct defendant rival;
    struct hash32 job;
    const char *path;
};

/* An honest job, and a rival that has sealed a trace root: a true one where lie is NULL. */
static void scene_open(struct scene *scene, const char *name, bool embedded, bool lies)
{
    struct defendant_lie lie = {.step = 0};
    uint64_t random = 3;
    struct job *job;
    uint32_t drawn;

    memset(scene, 0, sizeof(*scene));
    scene->path = small_path(name);
    market_open(&scene->market, embedded, name); /* skips where there is no chain: nothing before */
    scene->market.attestors = 2;
    job = defendant_job(MODEL_MLP, 31);
    if (lies) {
        lie = defendant_choose(job, 0, &random);
        lie.in_state = false;
    }
    defendant_write(scene->path, job, &lie);
    scene->job = market_commit(&scene->market, scene->path);
    drawn = market_draw(&scene->market, MARKET_RIVAL, &scene->job, INDEX);
    lie.step = INDEX * DEFENDANT_SEGMENT + drawn;
    defendant_open(&scene->rival, &scene->market, MARKET_RIVAL, &scene->job, scene->path, &lie);
    market_attest(&scene->market, MARKET_RIVAL, &scene->job, INDEX,
                  &scene->rival.server.trace.root);
    market_node_defaults(&scene->node, &scene->market, scene->path);
}

static void scene_close(struct scene *scene)
{
    market_node_close(&scene->node);
    defendant_close(&scene->rival);
    market_close(&scene->market);
}

static uint32_t count(struct scene *scene, enum game_event_kind kind)
{
    return market_count(&scene->market, kind, NULL);
}

/* One round of the node and, where it answers, of the rival. */
static void round_of_both(struct scene *scene, bool answers)
{
    struct error error;
    bool busy = false;

    error_init(&error);
    check(node_round(&scene->node.node, &busy, &error), &error);
    if (answers) {
        defendant_round(&scene->rival);
    }
    if (scene->node.node.running_count > 0) {
        (void)usleep(2000);
    } else if (!busy) {
        market_pass_time(&scene->market, 1);
    }
}

static void play_until(struct scene *scene, enum game_event_kind kind, uint32_t wanted,
                       bool answers)
{
    for (int i = 0; count(scene, kind) < wanted; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(scene, answers);
    }
}

/* The node has attested all segments, and all is revealed. */
static void reveal_all(struct scene *scene)
{
    market_node_open(&scene->node);
    market_node_settle(&scene->node);
    market_pass_time(&scene->market, MARKET_ATTEST_S + 1);
    market_reveal(&scene->market, MARKET_RIVAL, &scene->job, INDEX,
                  &scene->rival.server.trace.root);
}

static int64_t found(struct scene *scene, enum store_audit audit)
{
    char query[96];

    (void)snprintf(query, sizeof(query), "SELECT count(*) FROM reveals WHERE audit = %d", audit);
    return market_node_number(&scene->node, query);
}

static bool last_ruling(struct scene *scene)
{
    struct ledger *ledger = scene->market.ledgers[MARKET_CLIENT];
    struct ledger_entry entry = {0};
    struct error error;
    bool upheld = false;

    error_init(&error);
    check(ledger_catch_up(ledger, &error), &error);
    while (ledger_next(ledger, &entry, entry.number, 0, &error) == STATUS_OK) {
        if (entry.kind == LEDGER_EVENT && entry.event.kind == GAME_RULED) {
            upheld = entry.event.flag;
        }
    }
    return upheld;
}

/* ---- false attestations ------------------------------------------------------------- */

static void see_rival_convicted(struct scene *scene, wei owed)
{
    assert_int_equal(count(scene, GAME_ACCUSED), 1);
    assert_int_equal(count(scene, GAME_CONVICTED), 0); /* the solver is left alone */
    assert_true(last_ruling(scene));
    assert_true(market_owed(&scene->market, MARKET_VERIFIER) - owed == CLAIM_BOND + ATTEST_BOND);
    assert_int_equal(found(scene, STORE_AUDIT_FALSE), 1);
    assert_int_equal(market_job(&scene->market, &scene->job).generation, 0);
}

/* In the node's own account of the ledger only what stands is counted: a place is free again. */
static void see_place_freed(struct scene *scene, bool answers)
{
    static const char query[] =
        "SELECT count(*) FROM segments s WHERE idx = 1 AND NOT void AND revealed = (SELECT count(*)"
        " FROM reveals WHERE segment = s.hash AND stands) AND EXISTS (SELECT 1 FROM reveals WHERE"
        " segment = s.hash AND NOT stands)";

    for (int i = 0; market_node_number(&scene->node, query) == 0; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(scene, answers);
    }
}

static void convict_rival(const char *name, bool embedded, bool answers)
{
    struct scene scene;
    wei owed;

    scene_open(&scene, name, embedded, true);
    owed = market_owed(&scene.market, MARKET_VERIFIER);
    reveal_all(&scene);
    play_until(&scene, answers ? GAME_RULED : GAME_QUERIED, 1, answers);
    if (!answers) {
        market_pass_time(&scene.market, MARKET_RESPONSE_S + 1);
        play_until(&scene, GAME_RULED, 1, answers);
    }
    see_rival_convicted(&scene, owed);
    assert_int_equal(count(&scene, GAME_REPLIED) > 0, answers);
    /* Nothing is accused twice, now or after the database is read anew. */
    for (int i = 0; i < 30; i++) {
        round_of_both(&scene, answers);
    }
    assert_int_equal(count(&scene, GAME_ACCUSED), 1);
    see_place_freed(&scene, answers);
    scene_close(&scene);
}

static void test_a_false_attestation_is_convicted_by_its_answers(void **state)
{
    (void)state;
    convict_rival("false", true, true);
}

static void test_a_false_attestor_that_falls_silent_is_convicted_by_the_clock(void **state)
{
    (void)state;
    convict_rival("silent", true, false);
}

static void test_a_false_attestation_is_convicted_on_a_chain(void **state)
{
    (void)state;
    convict_rival("chain", false, true);
}

/* Through a new process before every few rounds, and a database that is lost on the way. */
static void test_an_accusation_survives_crashes_and_a_lost_database(void **state)
{
    struct scene scene;
    char path[700];
    int life = LIFE_ROUNDS;
    int crashes = 0;
    int rounds = 0;
    wei owed;

    (void)state;
    scene_open(&scene, "crashes", true, true);
    owed = market_owed(&scene.market, MARKET_VERIFIER);
    reveal_all(&scene);
    for (int i = 0; count(&scene, GAME_RULED) == 0; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(&scene, true);
        /* The later lives are longer: a busy machine must get something done in one of them. */
        if (++rounds == life) {
            rounds = 0;
            life = ++crashes < 3 ? life : 2 * life;
            market_node_close(&scene.node);
            if (crashes == 2) {
                static const char *const ends[] = {"", "-wal", "-shm"};

                for (int end = 0; end < 3; end++) {
                    (void)snprintf(path, sizeof(path), "%s/node.db%s",
                                   scene.market.folders[MARKET_VERIFIER], ends[end]);
                    (void)unlink(path);
                }
            }
            market_node_open(&scene.node);
        }
    }
    see_rival_convicted(&scene, owed);
    scene_close(&scene);
}

/* Somebody else was first: the bond comes back, and nothing is left open. */
static void test_an_accusation_that_comes_second_gives_its_bond_back(void **state)
{
    struct ledger_accusation first = {.salt.bytes = {1}};
    struct ledger *ledger;
    struct game_terms terms;
    struct hash32 claim;
    struct scene scene;
    struct error error;
    wei owed;

    (void)state;
    error_init(&error);
    scene_open(&scene, "second", true, true);
    ledger = scene.market.ledgers[MARKET_CLIENT];
    owed = market_owed(&scene.market, MARKET_VERIFIER);
    reveal_all(&scene);
    first.job = scene.job;
    first.segment = market_segment(&scene.market, &scene.job, INDEX);
    first.attestor = *signer_address(scene.market.signers[MARKET_RIVAL]);
    terms = market_job(&scene.market, &scene.job).terms;
    check(ledger_seal_accusation(ledger, "seal", &claim, &first, &error), &error);
    market_pass_time(&scene.market, 1);
    check(ledger_accuse(ledger, "accuse", &terms, &first, &error), &error);
    play_until(&scene, GAME_QUERIED, 1, false); /* the node's own accusation stands beside it */
    /* The rival is convicted by the first: made so here by the rules of the game, since only an
     * honest claimant could do it with evidence. The turn of the first claimant is over, so the
     * rival would win that one; the node's question is not answered, and the node wins. */
    market_pass_time(&scene.market, MARKET_RESPONSE_S + 1);
    play_until(&scene, GAME_RULED, 1, false);
    assert_true(last_ruling(&scene));
    assert_true(market_owed(&scene.market, MARKET_VERIFIER) - owed == CLAIM_BOND + ATTEST_BOND);
    check(ledger_lapse(ledger, "lapse", &claim, &error), &error);
    assert_int_equal(count(&scene, GAME_LAPSED), 1);
    scene_close(&scene);
}

/* ---- true ones ------------------------------------------------------------------------- */

static void test_a_true_attestation_is_not_accused(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "true", true, false);
    reveal_all(&scene);
    for (int i = 0; found(&scene, STORE_AUDIT_TRUE) == 0; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(&scene, true);
    }
    market_node_settle(&scene.node);
    assert_int_equal(count(&scene, GAME_REVEALED), 4); /* three of its own, and the rival's */
    assert_int_equal(count(&scene, GAME_SEALED), 0);
    /* Another trace than its own was made for that, and is not attested. */
    assert_int_equal(market_count(&scene.market, GAME_ATTESTED,
                                  signer_address(scene.market.signers[MARKET_VERIFIER])),
                     3);
    scene_close(&scene);
}

/* As a program without attestation audits left it: reveals that it passed over are read anew. */
static void test_an_older_database_learns_to_audit(void **state)
{
    static const char older[] =
        "DROP TABLE reveals; DROP TABLE disputes; DROP TABLE retries;"
        "ALTER TABLE segments RENAME COLUMN generation TO epoch;"
        "ALTER TABLE claims RENAME COLUMN generation TO epoch;"
        "ALTER TABLE jobs RENAME COLUMN generation TO epoch;"
        "ALTER TABLE segments DROP COLUMN mandatory; ALTER TABLE jobs DROP COLUMN finalized_s;"
        "ALTER TABLE actions DROP COLUMN attestor; ALTER TABLE actions DROP COLUMN refusal;"
        "ALTER TABLE claims DROP COLUMN attestor; ALTER TABLE claims DROP COLUMN accused;"
        "ALTER TABLE claims DROP COLUMN queried; ALTER TABLE mirrors DROP COLUMN silent;"
        "ALTER TABLE mirrors DROP COLUMN failures; ALTER TABLE mirrors DROP COLUMN rest_until_ms;"
        "PRAGMA user_version = 1";
    struct scene scene;
    int64_t proven;
    wei owed;

    (void)state;
    scene_open(&scene, "older", true, true);
    owed = market_owed(&scene.market, MARKET_VERIFIER);
    scene.node.options.audit_share = 0.0;
    reveal_all(&scene);
    market_node_settle(&scene.node);
    proven = market_node_number(&scene.node, "SELECT count(*) FROM tasks WHERE outcome = 1");
    assert_int_equal(sqlite3_exec(scene.node.store.sql.database, older, NULL, NULL, NULL),
                     SQLITE_OK);
    market_node_close(&scene.node);
    scene.node.options.audit_share = 1.0;
    market_node_open(&scene.node);
    assert_int_equal(
        market_node_number(&scene.node, "SELECT count(*) FROM tasks WHERE outcome = 1"), proven);
    play_until(&scene, GAME_RULED, 1, true);
    see_rival_convicted(&scene, owed);
    assert_int_equal(market_count(&scene.market, GAME_ATTESTED,
                                  signer_address(scene.market.signers[MARKET_VERIFIER])),
                     3);
    scene_close(&scene);
}

static void test_what_is_not_in_the_share_is_passed_over(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "share", true, true);
    scene.node.options.audit_share = 0.0;
    reveal_all(&scene);
    market_node_settle(&scene.node);
    /* Where both drew the same step, the roots are compared all the same. */
    assert_int_equal(found(&scene, STORE_AUDIT_NEW) + found(&scene, STORE_AUDIT_QUEUED), 0);
    assert_int_equal(count(&scene, GAME_ACCUSED), found(&scene, STORE_AUDIT_FALSE));
    scene_close(&scene);
}

/* A machine whose two traces disagree accuses nobody. */
static void test_two_traces_that_disagree_are_a_fault(void **state)
{
    struct check_request *request = calloc(1, sizeof(*request));
    struct check_result *result = calloc(1, sizeof(*result));
    struct store_segment segment;
    struct scene scene;
    struct error error;

    (void)state;
    error_init(&error);
    free(request);
    scene_open(&scene, "fault", true, true);
    reveal_all(&scene);
    check(store_segment(&scene.node.store, &segment, &scene.job, INDEX, &error), &error);
    check(node_request(&scene.node.node, &request, &segment, &error), &error);
    request->traced = true;
    request->traced_step = (uint32_t)scene.rival.lie.step % DEFENDANT_SEGMENT;
    request->audited = true;
    request->audited_root = scene.rival.server.trace.root;
    check_run(result, request, NULL);
    assert_int_equal(result->outcome, CHECK_PROVEN);
    assert_true(result->confirmed);
    request->disagree = true;
    check_run(result, request, NULL);
    assert_int_equal(result->outcome, CHECK_FAULT);
    assert_false(result->confirmed);
    free(request);
    free(result);
    scene_close(&scene);
}

/* ---- accused ourselves ------------------------------------------------------------------- */

/* The node answers, through a restart, and when the accuser has no more to say it says so. */
static void test_a_false_accusation_is_answered_and_pays_the_node(void **state)
{
    struct accuser accuser;
    struct defendant_lie honest = {0};
    struct scene scene;
    uint32_t drawn;
    wei owed;

    (void)state;
    scene_open(&scene, "accused", true, false);
    drawn = market_draw(&scene.market, MARKET_VERIFIER, &scene.job, INDEX);
    defendant_close(&scene.rival); /* another step: the one that the node drew */
    honest.step = INDEX * DEFENDANT_SEGMENT + drawn;
    defendant_open(&scene.rival, &scene.market, MARKET_RIVAL, &scene.job, scene.path, &honest);
    market_node_open(&scene.node);
    market_node_settle(&scene.node);
    market_pass_time(&scene.market, MARKET_ATTEST_S + 1);
    market_node_settle(&scene.node);
    assert_int_equal(count(&scene, GAME_REVEALED), 3);
    owed = market_owed(&scene.market, MARKET_VERIFIER);
    accuser_open(&accuser, &scene.rival, MARKET_VERIFIER);
    accuser_accuse(&accuser);
    accuser_query(&accuser);
    market_node_close(&scene.node);
    market_node_open(&scene.node);
    play_until(&scene, GAME_REPLIED, 1, false);
    market_pass_time(&scene.market, MARKET_RESPONSE_S + 1);
    play_until(&scene, GAME_RULED, 1, false);
    assert_false(last_ruling(&scene));
    assert_true(market_owed(&scene.market, MARKET_VERIFIER) - owed == CLAIM_BOND);
    assert_int_equal(
        market_node_number(&scene.node, "SELECT count(*) FROM facts WHERE name = 'fault'"), 0);
    scene_close(&scene);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_false_attestation_is_convicted_by_its_answers),
        cmocka_unit_test(test_a_false_attestor_that_falls_silent_is_convicted_by_the_clock),
        cmocka_unit_test(test_a_false_attestation_is_convicted_on_a_chain),
        cmocka_unit_test(test_an_accusation_survives_crashes_and_a_lost_database),
        cmocka_unit_test(test_an_accusation_that_comes_second_gives_its_bond_back),
        cmocka_unit_test(test_a_true_attestation_is_not_accused),
        cmocka_unit_test(test_an_older_database_learns_to_audit),
        cmocka_unit_test(test_what_is_not_in_the_share_is_passed_over),
        cmocka_unit_test(test_two_traces_that_disagree_are_a_fault),
        cmocka_unit_test(test_a_false_accusation_is_answered_and_pays_the_node),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(&dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
