/*
 * Goal: no matter what a dispute turns on, the node ends it rightly: the accused's trace begins
 * elsewhere than the state before the step, the state after it is not where the trace ends, the
 * training is said to have diverged and did not, the sum is too long for one transaction; and where
 * the accused is right in everything, the node knows that it is not itself. Method: the real node
 * with its children against an accused whose bundle and trace lie as the case wants it, on the
 * embedded ledger; every event and the money are counted.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/rules/rule.h"
#include "proofs/dispute/trace_query.h"
#include "tests/support/dispute/defendant.h"
#include "verifier/node/node_claims.h"

enum {
    ROUNDS_MAX = 200000, /* minutes: a busy machine is no failure */
    STEP = 6,
    BATCH = 2048,
    FEW_BYTES = 11000,
};

#define STAKE      (2 * WEI_PER_ETHER)
#define CLAIM_BOND (WEI_PER_ETHER / 10)

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- the play -------------------------------------------------------------------- */

/* One round of both; time passes only where nothing else can happen. */
static void round_of_both(struct market_node *node, struct defendant *accused)
{
    struct error error;
    bool busy = false;

    error_init(&error);
    check(node_round(&node->node, &busy, &error), &error);
    defendant_round(accused);
    if (node->node.running_count > 0) {
        (void)usleep(2000);
    } else if (!busy) {
        market_pass_time(node->market, 1);
    }
}

static void play_until(struct market_node *node, struct defendant *accused,
                       enum game_event_kind kind)
{
    uint32_t before = market_count(node->market, kind, NULL);

    for (int i = 0; market_count(node->market, kind, NULL) == before; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(node, accused);
    }
}

static void see_convicted(struct market *market, const struct hash32 *key, wei owed)
{
    assert_true(market_owed(market, MARKET_VERIFIER) - owed == CLAIM_BOND + STAKE / GAME_POT_SHARE);
    assert_int_equal(market_job(market, key).generation, 1);
    assert_int_equal(market_count(market, GAME_CLAIMED, NULL), 1);
}

/* The whole of one dispute with one job, which the accused loses. */
static void convict(struct market *market, const char *name, struct job *job,
                    const struct defendant_lie *lie, uint32_t move_max)
{
    const char *path = small_path(name);
    wei owed = market_owed(market, MARKET_VERIFIER);
    struct market_node node;
    struct defendant accused;
    struct hash32 key;

    defendant_write(path, job, lie);
    key = market_commit(market, path);
    defendant_open(&accused, market, MARKET_SOLVER, &key, path, lie);
    market_node_defaults(&node, market, path);
    node.options.mode = NODE_DEFEND;
    node.options.move_max = move_max;
    market_node_open(&node);
    play_until(&node, &accused, GAME_PAID);
    market_node_close(&node);
    defendant_close(&accused);
    see_convicted(market, &key, owed);
}

/* ---- tests ----------------------------------------------------------------------- */

/* The trace is the true one, but what was committed is not where it ends. */
static void test_a_true_trace_of_a_false_state_is_convicted_by_its_end(void **state)
{
    uint64_t random = 1;
    struct job *job = defendant_job(MODEL_MLP, 11);
    struct defendant_lie lie = defendant_choose(job, STEP, &random);
    struct market market;

    (void)state;
    lie.in_trace = false;
    market_open(&market, true, "end");
    market.seats = 0;
    convict(&market, "end", job, &lie, 0);
    assert_int_equal(market_count(&market, GAME_RULED, NULL), 1);
    assert_true(market_count(&market, GAME_REPLIED, NULL) >= 1);
    market_close(&market);
}

static void test_a_trace_that_begins_elsewhere_is_convicted_by_its_beginning(void **state)
{
    uint64_t random = 2;
    struct job *job = defendant_job(MODEL_MLP, 12);
    struct defendant_lie lie = defendant_choose(job, STEP, &random);
    struct market market;

    (void)state;
    lie.trace.item = lie.state.item; /* of the state before the step */
    market_open(&market, true, "beginning");
    market.seats = 0;
    convict(&market, "beginning", job, &lie, 0);
    assert_int_equal(market_count(&market, GAME_RULED, NULL), 1);
    market_close(&market);
}

/* Nothing but finite numbers, says the step; the solver has none to show and loses by the clock. */
static void test_a_divergence_that_is_none_is_convicted(void **state)
{
    const char *path = small_path("no-divergence");
    struct defendant_lie honest = {.step = 5};
    struct market market;
    struct market_node node;
    struct defendant accused;
    struct hash32 key;
    wei owed;

    (void)state;
    market_open(&market, true, "no-divergence");
    market.seats = 0;
    owed = market_owed(&market, MARKET_VERIFIER);
    defendant_write(path, defendant_job(MODEL_MLP, 13), &honest);
    key = market_commit_diverged(&market, path, 1, 2); /* steps 4 and 5 */
    defendant_open(&accused, &market, MARKET_SOLVER, &key, path, &honest);
    market_node_defaults(&node, &market, path);
    node.options.mode = NODE_DEFEND;
    market_node_open(&node);
    play_until(&node, &accused, GAME_QUERIED);
    assert_int_equal(market_count(&market, GAME_ANSWERED, NULL), 1);
    market_pass_time(&market, MARKET_CLOCK_S + 1);
    play_until(&node, &accused, GAME_PAID);
    market_node_close(&node);
    defendant_close(&accused);
    /* The fee of the query that nobody replied to comes back too. */
    see_convicted(&market, &key, owed + WEI_PER_ETHER / 1000);
    assert_int_equal(market_count(&market, GAME_REPLIED, NULL), 0);
    market_close(&market);
}

/* Was the last question one for parts? */
static bool queried_for_parts(struct market *market)
{
    struct ledger_entry entry = {0};
    struct error error;
    bool found = false;

    error_init(&error);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        if (entry.kind == LEDGER_EVENT && entry.event.kind == GAME_QUERIED) {
            found = entry.event.payload.bytes[0] == TRACE_QUERY_PARTS;
        }
    }
    return found;
}

/* With few bytes to a move, the accused is asked for the parts of the sum over the rows of a large
 * batch, and convicted by one of them. */
static void test_a_sum_that_is_too_long_for_a_move_is_queried_in_parts(void **state)
{
    struct small_job_options options;
    uint64_t random = 4;
    struct defendant_lie lie;
    struct market market;
    struct job *job;

    (void)state;
    small_job_of_kind(&options, MODEL_MLP);
    options.model.batch = BATCH;
    job = defendant_job_of(&options, 14);
    lie = defendant_choose(job, STEP, &random);
    lie.trace = (struct lie){.item = defendant_longest_sum(job->tape, BATCH), .element = 3};
    market_open(&market, true, "parts");
    market.seats = 0;
    convict(&market, "parts", job, &lie, FEW_BYTES);
    assert_true(queried_for_parts(&market));
    assert_int_equal(market_count(&market, GAME_RULED, NULL), 1);
    market_close(&market);
}

/* As a check whose two replays are wrong alike would make it. */
static struct action claim_against_truth(struct market *market, const struct hash32 *job,
                                         struct bundle *bundle)
{
    struct action seal = {.kind = ACTION_CLAIM, .job = *job, .step = STEP % DEFENDANT_SEGMENT};
    struct game_segment segment = market_segment(market, job, STEP / DEFENDANT_SEGMENT);
    struct error error;

    error_init(&error);
    seal.segment = game_segment_hash(job, &segment);
    check(bundle_state_root(&seal.before, bundle, DEFENDANT_SEGMENT, &error), &error);
    check(bundle_state_root(&seal.pre_state, bundle, STEP, &error), &error);
    check(bundle_state_root(&seal.post_state, bundle, STEP + 1, &error), &error);
    seal.late_s = market->now_s + 100000;
    seal.claim = game_subject_hash(&seal.segment, seal.step, &seal.pre_state, &seal.post_state);
    action_name(seal.name, ACTION_CLAIM, &seal.claim);
    return seal;
}

/* Of a job that is true. */
struct truth {
    struct market market;
    struct market_node node;
    struct defendant accused;
    struct hash32 job;
    struct hash32 claim;
    char others[FILE_PATH_MAX]; /* where a liar's bundle will be */
};

/* The claim is made, and answered; and the node has found that the accused is right. */
static void truth_open(struct truth *truth, const char *name, uint64_t seed)
{
    const char *path = small_path(name);
    struct defendant_lie honest = {.step = STEP};
    struct action seal;
    struct error error;

    error_init(&error);
    memset(truth, 0, sizeof(*truth));
    market_open(&truth->market, true, name);
    truth->market.seats = 0;
    (void)snprintf(truth->others, sizeof(truth->others), "%.900s-other", path);
    defendant_write(path, defendant_job(MODEL_MLP, seed), &honest);
    truth->job = market_commit(&truth->market, path);
    defendant_open(&truth->accused, &truth->market, MARKET_SOLVER, &truth->job, path, &honest);
    market_node_defaults(&truth->node, &truth->market, path);
    truth->node.options.mode = NODE_DEFEND;
    truth->node.options.extra = 0.0; /* the claim is not of its making */
    market_node_open(&truth->node);
    seal = claim_against_truth(&truth->market, &truth->job, truth->accused.bundle);
    truth->claim = game_claim_key(&seal.claim, 0);
    check(store_set_header(&truth->node.store, &truth->job,
                           bundle_job(truth->accused.bundle)->header, &error),
          &error);
    check(node_plan_claim(&truth->node.node, &seal, 0, &error), &error);
    for (int i = 0; !truth->node.node.fault; i++) {
        assert_true(i < ROUNDS_MAX);
        round_of_both(&truth->node, &truth->accused);
    }
    assert_int_equal(market_count(&truth->market, GAME_ANSWERED, NULL), 1);
}

static void truth_close(struct truth *truth)
{
    market_node_close(&truth->node);
    defendant_close(&truth->accused);
    market_close(&truth->market);
}

/* Another solver lies, and the node, opened again, looks at everything. */
static void add_a_lie(struct truth *truth, uint64_t seed)
{
    struct job *job = defendant_job(MODEL_MLP, seed);
    uint64_t random = 5;
    struct defendant_lie lie = defendant_choose(job, STEP, &random);

    defendant_write(truth->others, job, &lie);
    (void)market_commit(&truth->market, truth->others);
    truth->node.options.extra = 1.0;
    truth->node.mirrors[truth->node.options.mirror_count++] = truth->others;
    market_node_close(&truth->node);
    market_node_open(&truth->node);
}

/* Two replays were wrong alike, and the accused is right: the node finds out, whistles no more, and
 * loses its bond as it should. */
static void test_a_claim_against_the_truth_is_the_last_one(void **state)
{
    char fault[STORE_REASON_MAX];
    struct truth truth;
    struct error error;
    wei owed;

    (void)state;
    error_init(&error);
    truth_open(&truth, "truth", 15);
    owed = market_owed(&truth.market, MARKET_SOLVER);
    check(store_text(&truth.node.store, fault, "fault", &error), &error);
    assert_non_null(strstr(fault, "the accused is right"));
    /* A lie elsewhere is not claimed by a machine that cannot be believed, nor after a new
     * start. */
    add_a_lie(&truth, 16);
    assert_true(truth.node.node.fault);
    for (int i = 0; i < 50; i++) {
        round_of_both(&truth.node, &truth.accused);
    }
    assert_int_equal(market_count(&truth.market, GAME_CLAIMED, NULL), 1);
    assert_int_equal(market_count(&truth.market, GAME_CONVICTED, NULL), 0);
    market_node_close(&truth.node);
    /* What it owes the solver for that, the solver gets. */
    market_pass_time(&truth.market, MARKET_CLOCK_S + 1);
    market_timeout(&truth.market, MARKET_SOLVER, &truth.claim);
    assert_true(market_owed(&truth.market, MARKET_SOLVER) - owed == CLAIM_BOND / 2);
    assert_int_equal(market_job(&truth.market, &truth.job).phase, GAME_PHASE_RUNNING);
    market_node_open(&truth.node);
    truth_close(&truth);
}

static void lose_database(struct truth *truth)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[700];

    for (int end = 0; end < 3; end++) {
        (void)snprintf(path, sizeof(path), "%s/node.db%s", truth->market.folders[MARKET_VERIFIER],
                       ends[end]);
        (void)unlink(path);
    }
}

/* While that claim is still open: it is no new fault, with the database or without. */
static void test_a_fault_that_was_looked_into_is_not_found_again(void **state)
{
    struct truth truth;
    struct error error;

    (void)state;
    error_init(&error);
    for (int lost = 0; lost < 2; lost++) {
        truth_open(&truth, lost ? "looked-lost" : "looked", 17);
        check(node_forget_fault(&truth.node.store, truth.node.verdicts, &error), &error);
        if (lost) {
            market_node_close(&truth.node);
            lose_database(&truth);
            market_node_open(&truth.node);
        }
        add_a_lie(&truth, 18);
        for (int i = 0; market_count(&truth.market, GAME_CLAIMED, NULL) < 2; i++) {
            assert_true(i < ROUNDS_MAX);
            assert_false(truth.node.node.fault);
            round_of_both(&truth.node, &truth.accused);
        }
        assert_int_equal(market_count(&truth.market, GAME_RULED, NULL), 0);
        truth_close(&truth);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_true_trace_of_a_false_state_is_convicted_by_its_end),
        cmocka_unit_test(test_a_trace_that_begins_elsewhere_is_convicted_by_its_beginning),
        cmocka_unit_test(test_a_divergence_that_is_none_is_convicted),
        cmocka_unit_test(test_a_sum_that_is_too_long_for_a_move_is_queried_in_parts),
        cmocka_unit_test(test_a_claim_against_the_truth_is_the_last_one),
        cmocka_unit_test(test_a_fault_that_was_looked_into_is_not_found_again),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
