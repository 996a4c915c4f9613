/*
 * Goal: a move of a dispute that is refused is answered by the kind of the refusal: made again,
 * sent again, with other evidence, or not at all; never without end, and never silently. Method:
 * each kind of refusal against the list of what it asks for; then the real node and its checks, in
 * this process, whose moves a doctor spoils on the disk before they are sent, on the embedded
 * ledger with a clock of the test's.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/defendant.h"
#include "verifier/dispute/dispute_send.h"
#include "verifier/status/node_views.h"

enum {
    ROUNDS_MAX = 200000, /* minutes: a busy machine is no failure */
    STEP = 6,
};

#define STAKE      (2 * WEI_PER_ETHER)
#define CLAIM_BOND (WEI_PER_ETHER / 10)

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- the list ------------------------------------------------------------------------ */

static void test_each_refusal_has_its_answer(void **state)
{
    static const enum game_refusal_kind remade[] = {GAME_WRONG_CASE, GAME_WRONG_SEGMENT,
                                                    GAME_BAD_QUERY,  GAME_NOT_QUERIED,
                                                    GAME_BAD_REPLY,  GAME_BAD_EVIDENCE};
    static const enum game_refusal_kind again[] = {GAME_REFUSED_NOT, GAME_TOO_EARLY,
                                                   GAME_WRONG_TURN, GAME_WRONG_PHASE};
    uint32_t counts[DISPUTE_OTHERWISE + 1] = {0};

    (void)state;
    for (uint32_t kind = 0; kind < GAME_REFUSAL_KINDS; kind++) {
        counts[dispute_reaction((enum game_refusal_kind)kind)]++;
    }
    for (size_t i = 0; i < sizeof(remade) / sizeof(remade[0]); i++) {
        assert_int_equal(dispute_reaction(remade[i]), DISPUTE_REMAKE);
    }
    for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
        assert_int_equal(dispute_reaction(again[i]), DISPUTE_AGAIN);
    }
    assert_int_equal(dispute_reaction(GAME_NOT_GUILTY), DISPUTE_OTHERWISE);
    assert_int_equal(dispute_reaction(GAME_TOO_LATE), DISPUTE_OVER);
    assert_int_equal(dispute_reaction(GAME_NOT_YOURS), DISPUTE_OVER);
    assert_int_equal(counts[DISPUTE_REMAKE], sizeof(remade) / sizeof(remade[0]));
    assert_int_equal(counts[DISPUTE_AGAIN], sizeof(again) / sizeof(again[0]));
    assert_int_equal(counts[DISPUTE_OTHERWISE], 1);
}

/* ---- the doctor ---------------------------------------------------------------------- */

enum spoil {
    SPOIL_PAYLOAD, /* a byte in the middle */
    SPOIL_ACQUIT,  /* sound evidence that shows no guilt */
    SPOIL_LOSE,    /* the file is gone */
};

struct doctor {
    struct check_port honest;
    struct defendant *accused;
    enum spoil spoil;
    enum dispute_kind of; /* which moves */
    uint32_t spoils_max;  /* how many of them */
    uint32_t spoilt;
    uint32_t seen;      /* that were made */
    uint32_t acquitted; /* as the last request said */
    uint64_t now_ms;
    struct check_request last; /* the one that is being answered, */
    struct dispute dispute;    /* and what it is about */
};

static enum status doctor_start(void *context, uint64_t number, const struct check_request *request,
                                struct error *error)
{
    struct doctor *doctor = context;

    doctor->last = *request;
    return doctor->honest.start(doctor->honest.context, number, request, error);
}

/* That the trace begins where it does: the accused's own trace, under its own roots. */
static void write_acquittal(struct buffer *payload, struct defendant *accused)
{
    struct trace_server *own = &accused->server;
    const struct trace_walk_case itself = {.trace_root = own->trace.root,
                                           .state_root = own->trace.state_root,
                                           .next_root = own->trace.next_root};
    struct fraud_proof conviction = {0};
    struct trace_walk walk = {0};
    struct error error;
    bool asks = false;

    error_init(&error);
    check(trace_walk_open(&walk, own, &itself, &error), &error);
    walk.end = TRACE_WALK_FIRST_STATE;
    walk.item = 0;
    check(fraud_proof_open(&conviction, &walk, NULL, &error), &error);
    check(fraud_proof_write(payload, &asks, &conviction, &(struct fraud_proof_said){0},
                            GAME_PAYLOAD_MAX, &error),
          &error);
    fraud_proof_close(&conviction);
    trace_walk_close(&walk);
}

static void spoil_move(struct doctor *doctor, const char *path)
{
    struct file_bytes bytes = {0};
    struct dispute_move move;
    struct buffer payload;
    struct buffer spoilt;
    struct error error;

    error_init(&error);
    check(file_read(&bytes, &error, path, (size_t)256 * 1024), &error);
    check(dispute_move_read(&move, bytes.data, bytes.size, &error), &error);
    if (move.kind != doctor->of) {
        file_bytes_release(&bytes);
        return;
    }
    doctor->seen++;
    doctor->acquitted = doctor->dispute.acquitted;
    if (doctor->spoilt < doctor->spoils_max) {
        doctor->spoilt++;
        buffer_init(&payload, GAME_PAYLOAD_MAX);
        buffer_init(&spoilt, (size_t)256 * 1024);
        switch (doctor->spoil) {
        case SPOIL_PAYLOAD:
            bytes.data[bytes.size - move.payload_size / 2] ^= 1;
            break;
        case SPOIL_ACQUIT:
            write_acquittal(&payload, doctor->accused);
            move.payload = payload.data;
            move.payload_size = payload.size;
            break;
        case SPOIL_LOSE:
            break;
        }
        dispute_move_write(&spoilt, &move);
        check(file_write(path, &error, spoilt.data, spoilt.size, 0600), &error);
        if (doctor->spoil == SPOIL_LOSE) {
            assert_int_equal(unlink(path), 0);
        }
        buffer_release(&payload);
        buffer_release(&spoilt);
    }
    file_bytes_release(&bytes);
}

static enum status doctor_take(void *context, uint64_t *number, struct check_result *result,
                               struct error *error)
{
    struct doctor *doctor = context;
    enum status status = doctor->honest.take(doctor->honest.context, number, result, error);
    char name[DISPUTE_NAME_MAX];
    char path[FILE_PATH_MAX];

    if (status == STATUS_OK && doctor->last.disputed && result->outcome == CHECK_PROVEN) {
        check(dispute_load(&doctor->dispute, doctor->last.folder, error), error);
        dispute_move_name(name, doctor->dispute.turn, doctor->dispute.attempt);
        check(dispute_path(path, &doctor->dispute, name, error), error);
        spoil_move(doctor, path);
    }
    return status;
}

/* Pauses pass in no time. */
static uint64_t doctor_now_ms(void *context)
{
    struct doctor *doctor = context;

    return doctor->now_ms += 30000;
}

/* ---- the scene ------------------------------------------------------------------------- */

struct scene {
    struct market market;
    struct market_node node;
    struct defendant accused;
    struct doctor doctor;
    struct hash32 job;
    wei owed;
};

static void scene_open(struct scene *scene, const char *name, enum spoil spoil,
                       enum dispute_kind of, uint32_t spoils_max)
{
    const char *path = small_path(name);
    uint64_t random = 7;
    struct job *job = defendant_job(MODEL_MLP, 41);
    struct defendant_lie lie = defendant_choose(job, STEP, &random);

    memset(scene, 0, sizeof(*scene));
    lie.trace.kind = LIE_ROWS; /* many elements of the leaf, so that there is other evidence */
    lie.state.kind = LIE_ROWS;
    market_open(&scene->market, true, name);
    scene->market.seats = 0; /* the node claims as an outsider */
    scene->owed = market_owed(&scene->market, MARKET_VERIFIER);
    defendant_write(path, job, &lie);
    scene->job = market_commit(&scene->market, path);
    defendant_open(&scene->accused, &scene->market, MARKET_SOLVER, &scene->job, path, &lie);
    market_node_defaults(&scene->node, &scene->market, path);
    scene->node.in_process = true;
    scene->node.options.mode = NODE_DEFEND;
    scene->node.options.checks_max = 1;
    market_node_open(&scene->node);
    scene->doctor = (struct doctor){.honest = scene->node.node.ports.checks,
                                    .accused = &scene->accused,
                                    .spoil = spoil,
                                    .of = of,
                                    .spoils_max = spoils_max};
    scene->node.node.ports.checks = (struct check_port){&scene->doctor, doctor_start, doctor_take};
    scene->node.node.ports.now_ms = doctor_now_ms;
    scene->node.node.ports.clock = &scene->doctor;
}

static void scene_close(struct scene *scene)
{
    market_node_close(&scene->node);
    defendant_close(&scene->accused);
    market_close(&scene->market);
}

static void round_of_both(struct scene *scene)
{
    struct error error;
    bool busy = false;

    error_init(&error);
    check(node_round(&scene->node.node, &busy, &error), &error);
    defendant_round(&scene->accused);
    if (scene->node.node.running_count > 0) {
        (void)usleep(2000); /* a child may take as long as it wants: no time passes for it */
    } else if (!busy) {
        market_pass_time(&scene->market, 1);
    }
}

static void play_until(struct scene *scene, enum game_event_kind kind)
{
    for (int i = 0; market_count(&scene->market, kind, NULL) == 0; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(scene);
    }
}

static int64_t moves_in(struct scene *scene, enum action_state state)
{
    char query[128];

    (void)snprintf(query, sizeof(query),
                   "SELECT count(*) FROM actions WHERE kind IN (%d, %d) AND state = %d",
                   ACTION_QUERY, ACTION_CONVICT, state);
    return market_node_number(&scene->node, query);
}

static void see_convicted(struct scene *scene, uint32_t refused)
{
    play_until(scene, GAME_PAID);
    assert_int_equal(moves_in(scene, ACTION_REFUSED), refused);
    assert_int_equal(scene->doctor.spoilt, scene->doctor.spoils_max);
    assert_true(market_owed(&scene->market, MARKET_VERIFIER) - scene->owed ==
                CLAIM_BOND + STAKE / GAME_POT_SHARE);
    assert_int_equal(market_count(&scene->market, GAME_CLAIMED, NULL), 1);
    assert_false(scene->node.node.fault);
    scene_close(scene);
}

/* ---- tests ----------------------------------------------------------------------------- */

static void test_a_query_that_is_refused_is_made_again(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "question", SPOIL_PAYLOAD, DISPUTE_QUERY, 2);
    see_convicted(&scene, 2);
}

static void test_evidence_that_is_refused_is_made_again(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "evidence", SPOIL_PAYLOAD, DISPUTE_EVIDENCE, 3);
    see_convicted(&scene, 3);
}

/* Each acquittal is another element's. */
static void test_after_an_acquittal_other_evidence_is_shown(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "acquitted", SPOIL_ACQUIT, DISPUTE_EVIDENCE, 2);
    play_until(&scene, GAME_CONVICTED);
    assert_int_equal(scene.doctor.acquitted, 2);
    see_convicted(&scene, 2);
}

static void test_a_move_that_is_lost_from_the_disk_is_made_again(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "lost", SPOIL_LOSE, DISPUTE_EVIDENCE, 2);
    see_convicted(&scene, 0);
}

/* A machine whose evidence the ledger never takes stops, says so, and blocks nothing. */
static void test_refusals_without_end_come_to_an_end(void **state)
{
    struct scene scene;
    struct error error;
    struct sheet view;
    char *text;

    (void)state;
    error_init(&error);
    scene_open(&scene, "endless", SPOIL_PAYLOAD, DISPUTE_EVIDENCE, UINT32_MAX);
    for (int i = 0; moves_in(&scene, ACTION_REFUSED) < DISPUTE_ATTEMPTS_MAX; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(&scene);
    }
    for (int i = 0; i < 50; i++) {
        round_of_both(&scene);
    }
    assert_int_equal(moves_in(&scene, ACTION_REFUSED), DISPUTE_ATTEMPTS_MAX);
    assert_int_equal(scene.doctor.seen, DISPUTE_ATTEMPTS_MAX);
    sheet_init(&view);
    check(node_status_view(&view, &scene.node.store, &error), &error);
    text = json_dumps(json_object_get(view.facts, "disputes"), JSON_COMPACT);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"turn\":\"the claimant's\""));
    assert_non_null(strstr(text, "\"state\":\"refused\""));
    assert_non_null(strstr(text, "no other is tried in this turn"));
    free(text);
    sheet_release(&view);
    market_pass_time(&scene.market, MARKET_CLOCK_S + 1);
    for (int i = 0; i < 20; i++) {
        round_of_both(&scene);
    }
    assert_int_equal(market_count(&scene.market, GAME_CONVICTED, NULL), 0);
    assert_int_equal(market_node_number(&scene.node, "SELECT count(*) FROM retries WHERE trouble"
                                                     " LIKE '%our clock ran out%'"),
                     1);
    scene_close(&scene);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_refusal_has_its_answer),
        cmocka_unit_test(test_a_query_that_is_refused_is_made_again),
        cmocka_unit_test(test_evidence_that_is_refused_is_made_again),
        cmocka_unit_test(test_after_an_acquittal_other_evidence_is_shown),
        cmocka_unit_test(test_a_move_that_is_lost_from_the_disk_is_made_again),
        cmocka_unit_test(test_refusals_without_end_come_to_an_end),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
