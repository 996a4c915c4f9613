/*
 * Goal: an honest solver keeps its stake and wins the bond of every claimant, under any claim and
 * any queries, also when it is stopped and started between any two moves. Method: the real solver
 * and its answering thread on honest bundles, plain and encrypted; a claimant that claims true and
 * invented states, queries the trace and the state after it, checks the replies, and gives up. The
 * money is counted to the wei.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/local/ledger_local.h"
#include "proofs/dispute/ledger_query.h"
#include "proofs/run/replay.h"
#include "prover/confined/confined_child.h"
#include "prover/confined/tracer_child.h"
#include "prover/post/solver.h"
#include "tests/support/child_of.h"
#include "tests/support/game/market.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    ROUNDS_MAX = 200000, /* 7 minutes at least: a busy machine is no failure */
    LIFE_ROUNDS = 64,
    KILLS = 8,
};

#define CLAIM_BOND (WEI_PER_ETHER / 10)
#define QUERY_FEE  (WEI_PER_ETHER / 1000)

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static struct job *small_job(uint64_t seed)
{
    struct small_job_options options;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    return small_job_new(&options);
}

/* ---- the solver ------------------------------------------------------------ */

struct accused {
    struct market *market;
    const char *path;
    const struct encryption_key *key;
    struct hash32 job;
    struct respond *respond;
    struct solver *solver;
};

static void accused_start(struct accused *accused)
{
    struct solver_options options = {.ledger = accused->market->options,
                                     .job = accused->job,
                                     .account =
                                         *signer_address(accused->market->signers[MARKET_SOLVER]),
                                     .segment_steps = SEGMENT};
    struct machine_options machine;
    struct bundle *bundle = NULL;
    const char *const *data;
    size_t data_count = 0;
    struct error error;

    error_init(&error);
    options.ledger.signer = accused->market->signers[MARKET_SOLVER];
    options.ledger.state_dir = accused->market->folders[MARKET_SOLVER];
    check(machine_options_default(&machine, &error), &error);
    machine.thread_count = 1;
    check(bundle_open(&bundle, accused->path, BUNDLE_READ, &error), &error);
    data = small_job_data(bundle_job(bundle), &data_count);
    check(respond_open(&accused->respond, accused->path, accused->key, data, data_count, &machine,
                       &error),
          &error);
    options.respond = accused->respond;
    check(solver_new(&accused->solver, &options, job_segments(bundle_job(bundle)), &error), &error);
    bundle_close(bundle);
}

static void accused_stop(struct accused *accused)
{
    solver_free(accused->solver);
    respond_close(accused->respond);
}

/* Rounds until an event of this kind was told `count` times; crash: a new process for each few, and
 * for twice as many where they were too few for this machine as it is now. */
static void accused_until(struct accused *accused, enum game_event_kind kind, uint32_t count,
                          bool crash)
{
    struct solver_view view;
    struct error error;
    int life = LIFE_ROUNDS;

    error_init(&error);
    for (int i = 0; market_count(accused->market, kind, NULL) < count; i++) {
        assert_true(i < ROUNDS_MAX);
        check(solver_round(accused->solver, &view, &error), &error);
        (void)usleep(2000);
        if (crash && i % life == life - 1) {
            accused_stop(accused);
            accused_start(accused);
            life *= 2;
        }
    }
    if (crash) { /* right behind the move, too */
        accused_stop(accused);
        accused_start(accused);
    }
}

/* ---- the claimant ----------------------------------------------------------- */

struct claimant {
    struct market *market;
    struct hash32 job;
    struct bundle *bundle;
    struct run run;
    struct trace_server own;
    struct game_case shown;
    struct hash32 claim;
};

static struct merkle_path path_of(struct bundle *bundle, uint64_t first, uint32_t step)
{
    struct digest hashes[SEGMENT];
    struct merkle_leaves leaves;
    struct merkle_path path;
    struct digest root;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < SEGMENT; i++) {
        check(bundle_state_root(&root, bundle, first + i + 1, &error), &error);
        merkle_leaf_hash(&hashes[i], root.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, SEGMENT);
    merkle_path_build(&path, &leaves, step);
    return path;
}

/* step is not the first of its segment. */
static void claimant_open(struct claimant *claimant, const struct accused *accused, uint64_t step)
{
    const struct replay_options replay = {.threads = 1};
    const struct job *job;
    struct error error;

    error_init(&error);
    memset(claimant, 0, sizeof(*claimant));
    claimant->market = accused->market;
    claimant->job = accused->job;
    check(bundle_open(&claimant->bundle, accused->path, BUNDLE_READ, &error), &error);
    if (accused->key != NULL) {
        check(bundle_unlock(claimant->bundle, accused->key, &error), &error);
    }
    job = bundle_job(claimant->bundle);
    small_run_open(&claimant->run, job, isa_best(), 1, false);
    check(replay_trace_server(&claimant->own, &claimant->run, claimant->bundle, step, &replay,
                              &error),
          &error);
    claimant->shown.client = *signer_address(accused->market->signers[MARKET_CLIENT]);
    claimant->shown.salt = accused->market->salt;
    memcpy(claimant->shown.job_header, job->header, sizeof(claimant->shown.job_header));
    claimant->shown.segment =
        market_segment(accused->market, &accused->job, (uint32_t)(step / SEGMENT));
    claimant->shown.step = (uint32_t)(step % SEGMENT);
    check(bundle_state_root(&claimant->shown.pre_state, claimant->bundle, step, &error), &error);
    check(bundle_state_root(&claimant->shown.post_state, claimant->bundle, step + 1, &error),
          &error);
    claimant->shown.pre_path =
        path_of(claimant->bundle, step / SEGMENT * SEGMENT, (uint32_t)(step % SEGMENT) - 1);
    claimant->shown.post_path =
        path_of(claimant->bundle, step / SEGMENT * SEGMENT, (uint32_t)(step % SEGMENT));
}

static void claimant_close(struct claimant *claimant)
{
    trace_server_close(&claimant->own);
    run_close(&claimant->run);
    bundle_close(claimant->bundle);
}

static const char *name_of(struct market *market, const char *what)
{
    static char name[64];

    (void)snprintf(name, sizeof(name), "%s %u", what, market->moves++);
    return name;
}

/* others: claims of outsiders that are open in the job. */
static void claimant_claim(struct claimant *claimant, uint32_t others)
{
    struct market *market = claimant->market;
    struct ledger *ledger = market->ledgers[MARKET_VERIFIER];
    const struct game_case *shown = &claimant->shown;
    struct hash32 hash = game_segment_hash(&claimant->job, &shown->segment);
    struct hash32 subject =
        game_subject_hash(&hash, shown->step, &shown->pre_state, &shown->post_state);
    struct hash32 salt = {{(uint8_t)++market->moves}};
    struct error error;

    error_init(&error);
    claimant->claim = game_claim_key(&subject, 0);
    check(ledger_seal_claim(ledger, name_of(market, "seal"), &subject, &salt, &error), &error);
    market_pass_time(market, 1);
    check(ledger_claim(ledger, name_of(market, "claim"), &claimant->job, shown, &salt,
                       CLAIM_BOND * (4 + others) / 4, &error),
          &error);
}

/* Makes the first query of a walk against a trace with another root. */
static void claimant_ask(struct claimant *claimant, bool next)
{
    struct trace_walk_case other = {.trace_root = claimant->own.trace.root,
                                    .state_root = claimant->shown.pre_state,
                                    .next_root = claimant->shown.post_state};
    const struct game_subject subject = game_subject_of(&claimant->shown);
    struct trace_walk walk = {0};
    struct buffer question;
    struct error error;

    error_init(&error);
    (next ? &other.next_root : &other.trace_root)->bytes[3] ^= 1;
    buffer_init(&question, LEDGER_QUERY_SIZE_MAX);
    check(trace_walk_open(&walk, &claimant->own, &other, &error), &error);
    check(ledger_query_write(&question, &walk, &error), &error);
    check(ledger_query(claimant->market->ledgers[MARKET_VERIFIER], name_of(claimant->market, "ask"),
                       &claimant->claim, &subject, question.data, question.size, QUERY_FEE, &error),
          &error);
    trace_walk_close(&walk);
    buffer_release(&question);
}

/* The last reply is that of our own run of the step. */
static void see_told_truth(struct claimant *claimant, enum trace_query_list list)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = list};
    struct ledger *ledger = claimant->market->ledgers[MARKET_CLIENT];
    struct ledger_entry entry = {0};
    struct error error;
    bool same = false;
    size_t size = 0;

    error_init(&error);
    check(trace_server_answer(bytes, &size, &claimant->own, &query, &error), &error);
    while (ledger_next(ledger, &entry, entry.number, 0, &error) == STATUS_OK) {
        if (entry.event.kind == GAME_REPLIED) {
            same = entry.event.payload.size == size &&
                   memcmp(entry.event.payload.bytes, bytes, size) == 0;
        }
    }
    assert_true(same);
}

/* ---- tests ------------------------------------------------------------------ */

/* A claim, an answer, two queries, two replies; then the claimant is silent. */
static void play(struct market *market, const char *path, const struct encryption_key *key,
                 uint64_t step, bool crash)
{
    struct accused accused = {.market = market, .path = path, .key = key};
    uint32_t answered = market_count(market, GAME_ANSWERED, NULL);
    uint32_t reply = market_count(market, GAME_REPLIED, NULL);
    uint32_t ruled = market_count(market, GAME_RULED, NULL);
    struct claimant claimant;
    wei owed;

    accused.job = market_commit(market, path);
    owed = market_owed(market, MARKET_SOLVER);
    accused_start(&accused);
    claimant_open(&claimant, &accused, step);
    claimant_claim(&claimant, 0);
    accused_until(&accused, GAME_ANSWERED, answered + 1, crash);
    for (int next = 0; next < 2; next++) {
        claimant_ask(&claimant, next == 1);
        accused_until(&accused, GAME_REPLIED, reply + 1 + (uint32_t)next, crash);
        see_told_truth(&claimant, next == 1 ? TRACE_QUERY_NEXT_STATE : TRACE_QUERY_TRACE);
    }
    market_pass_time(market, MARKET_CLOCK_S + 1);
    accused_until(&accused, GAME_RULED, ruled + 1, crash);
    assert_int_equal(market_count(market, GAME_CONVICTED, NULL), 0);
    assert_true(market_owed(market, MARKET_SOLVER) - owed == CLAIM_BOND / 2 + 2 * QUERY_FEE);
    assert_int_equal(market_job(market, &accused.job).phase, GAME_PHASE_RUNNING);
    claimant_close(&claimant);
    accused_stop(&accused);
}

static void test_a_false_claim_loses_its_bond_to_the_solver(void **state)
{
    const char *path = small_path("honest");
    struct market market;

    (void)state;
    market_open(&market, true, "honest");
    bundle_close(small_bundle_new(path, small_job(1), NULL, STEPS));
    play(&market, path, NULL, 6, false);
    market_close(&market);
}

static void test_a_solver_that_is_restarted_answers_all_the_same(void **state)
{
    const char *path = small_path("restarted");
    struct market market;

    (void)state;
    market_open(&market, true, "restarted");
    bundle_close(small_bundle_new(path, small_job(2), NULL, STEPS));
    play(&market, path, NULL, 11, true);
    market_close(&market);
}

static void test_an_encrypted_bundle_is_defended_too(void **state)
{
    const char *path = small_path("encrypted");
    struct encryption_key key;
    struct market market;

    (void)state;
    memset(&key, 7, sizeof(key));
    market_open(&market, true, "encrypted");
    bundle_close(small_bundle_new(path, small_job(3), &key, STEPS));
    play(&market, path, &key, 5, false);
    market_close(&market);
}

/* Kills each child that answers, at another moment of its life, and lets the last ones live. */
struct killer {
    atomic_bool ends;
    uint32_t killed;
};

static void *kill_children(void *context)
{
    struct killer *killer = context;

    while (!atomic_load(&killer->ends) && killer->killed < KILLS) {
        pid_t child = child_of(getpid(), CONFINED_TRACER);

        if (child == 0) {
            (void)usleep(1000);
        } else {
            (void)usleep(killer->killed * 5000);
            (void)kill(child, SIGKILL);
            killer->killed++;
        }
    }
    return NULL;
}

static void test_what_answers_may_be_killed_and_the_answer_is_made_in_time(void **state)
{
    const char *path = small_path("killed");
    struct killer killer = {.killed = 0};
    struct market market;
    pthread_t thread;

    (void)state;
    market_open(&market, true, "killed");
    bundle_close(small_bundle_new(path, small_job(8), NULL, STEPS));
    assert_int_equal(pthread_create(&thread, NULL, kill_children, &killer), 0);
    play(&market, path, NULL, 7, false);
    atomic_store(&killer.ends, true);
    (void)pthread_join(thread, NULL);
    assert_true(killer.killed > 2);
    market_close(&market);
}

/* ---- the order of answers ---------------------------------------------------- */

/* Three steps are requested at once. An answer with a later deadline is never ready before one with
 * an earlier deadline. */
static void test_answer_with_the_earliest_deadline_is_made_first(void **state)
{
    static const struct respond_request requests[] = {{.step = 2, .deadline_s = 3000},
                                                      {.step = 5, .deadline_s = 1000},
                                                      {.step = 9, .deadline_s = 2000}};
    static const uint32_t order[] = {1, 2, 0};
    static uint8_t bytes[RESPOND_BYTES_MAX];
    struct accused accused = {.path = small_path("order")};
    struct market market;
    bool ready[3] = {false};

    (void)state;
    market_open(&market, true, "order");
    bundle_close(small_bundle_new(accused.path, small_job(5), NULL, STEPS));
    accused.market = &market;
    accused.job = market_commit(&market, accused.path);
    accused_start(&accused);
    assert_true(respond_forecast(accused.respond, 5) == 0); /* nobody knows yet */
    respond_want(accused.respond, requests, 3);
    for (int i = 0; !ready[0]; i++) {
        assert_true(i < ROUNDS_MAX);
        /* From the last to the first: an answer that is ready now was ready before. */
        for (int k = 2; k >= 0; k--) {
            struct error error;
            size_t size = 0;

            error_init(&error);
            if (respond_get(accused.respond, bytes, &size, &requests[order[k]], &error) ==
                STATUS_OK) {
                assert_int_equal(size, DIGEST_SIZE);
                for (int before = 0; before < k; before++) {
                    check(respond_get(accused.respond, bytes, &size, &requests[order[before]],
                                      &error),
                          &error);
                }
                ready[order[k]] = true;
            }
        }
        (void)usleep(1000);
    }
    assert_true(ready[0] && ready[1] && ready[2]);
    assert_true(respond_forecast(accused.respond, 5) > 0);
    /* A request that is not repeated is forgotten. */
    respond_want(accused.respond, requests, 1);
    {
        struct error error;
        size_t size;

        error_init(&error);
        assert_int_equal(respond_get(accused.respond, bytes, &size, &requests[1], &error),
                         STATUS_NOT_FOUND);
        check(respond_get(accused.respond, bytes, &size, &requests[0], &error), &error);
    }
    accused_stop(&accused);
    market_close(&market);
}

/* A step that the bundle has not keeps nobody waiting, however urgent it is. */
static void test_an_answer_that_fails_does_not_hold_up_the_others(void **state)
{
    static const struct respond_request requests[] = {{.step = STEPS + 7, .deadline_s = 10},
                                                      {.step = 5, .deadline_s = 1000}};
    static uint8_t bytes[RESPOND_BYTES_MAX];
    struct accused accused = {.path = small_path("failing")};
    struct market market;
    enum status first = STATUS_NOT_FOUND;
    enum status second = STATUS_NOT_FOUND;
    struct error error;
    size_t size;

    (void)state;
    error_init(&error);
    market_open(&market, true, "failing");
    bundle_close(small_bundle_new(accused.path, small_job(6), NULL, STEPS));
    accused.market = &market;
    accused.job = market_commit(&market, accused.path);
    accused_start(&accused);
    for (int i = 0; first == STATUS_NOT_FOUND || second == STATUS_NOT_FOUND; i++) {
        enum status got;

        assert_true(i < ROUNDS_MAX);
        respond_want(accused.respond, requests, 2);
        got = respond_get(accused.respond, bytes, &size, &requests[0], &error);
        first = got == STATUS_NOT_FOUND ? first : got;
        got = respond_get(accused.respond, bytes, &size, &requests[1], &error);
        second = got == STATUS_NOT_FOUND ? second : got;
        (void)usleep(1000);
    }
    assert_int_not_equal(first, STATUS_OK);
    assert_int_equal(second, STATUS_OK);
    accused_stop(&accused);
    market_close(&market);
}

/* By the test's clock no second is left, and replays take longer than that. */
static void test_a_deadline_that_cannot_be_met_is_said_aloud(void **state)
{
    const char *path = small_path("hopeless");
    struct accused accused;
    struct claimant first;
    struct claimant second;
    struct solver_view view;
    struct market market;
    struct error error;

    (void)state;
    error_init(&error);
    market_open(&market, true, "hopeless");
    bundle_close(small_bundle_new(path, small_job(7), NULL, STEPS));
    accused = (struct accused){.market = &market, .path = path};
    accused.job = market_commit(&market, path);
    accused_start(&accused);
    claimant_open(&first, &accused, 6);
    claimant_claim(&first, 0);
    accused_until(&accused, GAME_ANSWERED, 1, false);
    claimant_open(&second, &accused, 10);
    claimant_claim(&second, 1);
    market_pass_time(&market, MARKET_CLOCK_S);
    check(solver_round(accused.solver, &view, &error), &error);
    assert_int_equal(view.hopeless, 1);
    if (view.awaited > 0) { /* else it was there before the round was over */
        assert_non_null(strstr(view.trouble, "will not be answered in time"));
    }
    /* It tries all the same, and here time stands still. */
    accused_until(&accused, GAME_ANSWERED, 2, false);
    claimant_close(&first);
    claimant_close(&second);
    accused_stop(&accused);
    market_close(&market);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_false_claim_loses_its_bond_to_the_solver),
        cmocka_unit_test(test_a_solver_that_is_restarted_answers_all_the_same),
        cmocka_unit_test(test_an_encrypted_bundle_is_defended_too),
        cmocka_unit_test(test_what_answers_may_be_killed_and_the_answer_is_made_in_time),
        cmocka_unit_test(test_answer_with_the_earliest_deadline_is_made_first),
        cmocka_unit_test(test_an_answer_that_fails_does_not_hold_up_the_others),
        cmocka_unit_test(test_a_deadline_that_cannot_be_met_is_said_aloud),
    };

    if (confined_child_asked(argc, argv, CONFINED_TRACER)) {
        return tracer_child_serve();
    }
    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
