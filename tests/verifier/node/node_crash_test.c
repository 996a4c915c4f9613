/*
 * Goal: a node that is killed at any instant loses nothing, doubles nothing, and signs nothing that
 * is false; a node whose machine is at fault, or whose children lie, signs nothing at all.
 * Method: a whole job, honest or not, with a node that is killed -9 again and again at random
 * instants and started again; the ledger must show what it shows without a kill. Then nodes over
 * children that are made up, which answer what the test wants.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
    KILLS_SOAK = 300,
    KILLS = 24,
    KILLS_OF_A_JOB = 8,
};

static struct job *small_mlp(uint64_t seed)
{
    struct small_job_options options;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    return small_job_new(&options);
}

/* ---- kills ---------------------------------------------------------------- */

/* In a process of its own, with a ledger handle of its own: rounds until it is killed. */
static void serve_until_killed(struct market *market, const char *mirror)
{
    struct ledger_options options = market->options;
    struct market_node node;
    struct error error;

    error_init(&error);
    options.signer = market->signers[MARKET_VERIFIER];
    options.state_dir = market->folders[MARKET_VERIFIER];
    market_node_defaults(&node, market, mirror);
    if (ledger_open(&node.ledger, &options, &error) != STATUS_OK ||
        market_node_try_open(&node, &error) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    for (;;) {
        bool busy = false;

        if (node_round(&node.node, &busy, &error) != STATUS_OK) {
            (void)fprintf(stderr, "%s\n", error.text);
            _exit(2);
        }
        (void)usleep(500);
    }
}

/* Lives for a random while; time passes for it as for everybody. */
static void live_and_die(struct market *market, const char *mirror, uint64_t *random)
{
    int result = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        serve_until_killed(market, mirror);
    }
    for (uint64_t left = test_random_below(random, 30); left > 0; left--) {
        (void)usleep(5000);
        market_pass_time(market, 1);
    }
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result)); /* it did not end by itself */
}

static void finish_job(struct market *market, const char *mirror, uint32_t then_s)
{
    struct market_node node;

    market_node_defaults(&node, market, mirror);
    market_node_open(&node);
    market_node_settle(&node);
    market_pass_time(market, MARKET_SEAL_S + 1);
    market_node_settle(&node);
    market_pass_time(market, then_s);
    market_node_settle(&node);
    market_node_close(&node);
}

static void play_with_kills(struct market *market, uint64_t number, uint64_t *random)
{
    bool honest = number % 2 == 0;
    const struct address *own = signer_address(market->signers[MARKET_VERIFIER]);
    uint32_t sealed = market_count(market, GAME_SEALED_VERDICT, own);
    uint32_t revealed = market_count(market, GAME_REVEALED, own);
    uint32_t claimed = market_count(market, GAME_CLAIMED, own);
    char name[32];
    const char *path;
    struct hash32 job;

    (void)snprintf(name, sizeof(name), "killed-%llu", (unsigned long long)number);
    path = small_path(name);
    cheat_bundle_new(path, small_mlp(500 + number), honest ? CHEAT_NOT : CHEAT_ULP, 9, random);
    job = market_commit(market, path);
    for (int i = 0; i < KILLS_OF_A_JOB; i++) {
        live_and_die(market, path, random);
    }
    finish_job(market, path, honest ? 0 : MARKET_CLOCK_S + 1);
    if (honest) {
        assert_int_equal(market_count(market, GAME_SEALED_VERDICT, own) - sealed, SEGMENTS);
        assert_int_equal(market_count(market, GAME_REVEALED, own) - revealed, SEGMENTS);
        assert_int_equal(market_count(market, GAME_CLAIMED, own), claimed);
    } else {
        assert_int_equal(market_count(market, GAME_CLAIMED, own) - claimed, 1);
        assert_int_equal(market_job(market, &job).generation, 1);
    }
}

static void test_a_node_that_is_killed_loses_and_doubles_nothing(void **state)
{
    uint64_t random = 77;
    uint64_t jobs = test_share(KILLS_SOAK, KILLS) / KILLS_OF_A_JOB + 1;
    struct market market;

    (void)state;
    market_open(&market, true, "killing");
    for (uint64_t i = 0; i < jobs; i++) {
        play_with_kills(&market, i, &random);
    }
    market_close(&market);
}

/* ---- made-up children ------------------------------------------------------ */

/* Answers each check at once, with what the test wants. */
struct oracle {
    struct check_result answer;
    uint64_t pending[64];
    bool fits; /* a refuted answer is about the segment, by its first state */
    uint32_t indexes[64];
    struct digest states[64];
    uint32_t count;
    uint32_t queried;
};

static enum status oracle_start(void *context, uint64_t number, const struct check_request *request,
                                struct error *error)
{
    struct oracle *oracle = context;

    (void)error;
    oracle->indexes[oracle->count] = request->index;
    oracle->states[oracle->count] = request->segments[request->segment_count - 1].states[0];
    oracle->pending[oracle->count++] = number;
    oracle->queried++;
    return STATUS_OK;
}

static enum status oracle_take(void *context, uint64_t *number, struct check_result *result,
                               struct error *error)
{
    struct oracle *oracle = context;

    (void)error;
    if (oracle->count == 0) {
        return STATUS_NOT_FOUND;
    }
    *number = oracle->pending[--oracle->count];
    *result = oracle->answer;
    if (oracle->fits) {
        result->index = oracle->indexes[oracle->count];
        result->post_state = oracle->states[oracle->count];
    }
    return STATUS_OK;
}

static void open_with_oracle(struct market_node *node, struct oracle *oracle)
{
    market_node_open(node);
    node->node.ports.checks =
        (struct check_port){.context = oracle, .start = oracle_start, .take = oracle_take};
}

static struct hash32 commit_one(struct market *market, const char *name)
{
    uint64_t random = 1;
    const char *path = small_path(name);

    cheat_bundle_new(path, small_mlp(42), CHEAT_NOT, 0, &random);
    return market_commit(market, path);
}

static void test_a_fault_of_this_machine_stops_the_pen(void **state)
{
    struct oracle *oracle = calloc(1, sizeof(*oracle));
    char fault[STORE_REASON_MAX];
    struct market_node node;
    struct market market;
    struct error error;

    (void)state;
    error_init(&error);
    market_open(&market, true, "fault");
    (void)commit_one(&market, "fault-run");
    oracle->answer.outcome = CHECK_FAULT;
    (void)snprintf(oracle->answer.reason, sizeof(oracle->answer.reason), "they disagree");
    market_node_defaults(&node, &market, "/nowhere");
    open_with_oracle(&node, oracle);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), 0);
    assert_int_equal(market_count(&market, GAME_SEALED, NULL), 0);
    assert_int_equal(store_text(&node.store, fault, "fault", &error), STATUS_OK);
    assert_non_null(strstr(fault, "they disagree"));
    /* The evidence is kept, and a start does not make it good. */
    assert_true(market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 3 AND result"
                                          " LIKE '%they disagree%'") > 0);
    market_node_close(&node);
    oracle->answer.outcome = CHECK_PROVEN;
    oracle->queried = 0;
    open_with_oracle(&node, oracle);
    market_node_settle(&node);
    assert_int_equal(oracle->queried, 0);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), 0);
    market_node_close(&node);
    market_close(&market);
    free(oracle);
}

static void lose(struct market *market, const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (int end = 0; end < 3; end++) {
        char path[700];

        (void)snprintf(path, sizeof(path), "%s/%s%s", market->folders[MARKET_VERIFIER], name,
                       ends[end]);
        (void)unlink(path);
    }
}

/* Either file is enough to remember it; only a person makes the node forget. */
static void test_a_fault_outlives_a_lost_database_and_a_lost_book(void **state)
{
    static const char *const lost[] = {"node.db", "verdicts.db", "node.db"};
    struct oracle *oracle = calloc(1, sizeof(*oracle));
    struct market_node node;
    struct market market;
    struct error error;

    (void)state;
    error_init(&error);
    market_open(&market, true, "lost-fault");
    (void)commit_one(&market, "lost-fault-run");
    oracle->answer.outcome = CHECK_FAULT;
    market_node_defaults(&node, &market, "/nowhere");
    open_with_oracle(&node, oracle);
    market_node_settle(&node);
    assert_true(node.node.fault);
    oracle->answer.outcome = CHECK_PROVEN;
    oracle->queried = 0;
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        market_node_close(&node);
        lose(&market, lost[i]);
        open_with_oracle(&node, oracle);
        market_node_settle(&node);
        assert_true(node.node.fault);
        assert_int_equal(oracle->queried, 0);
        assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), 0);
    }
    assert_int_equal(node_forget_fault(&node.store, node.verdicts, &error), STATUS_OK);
    market_node_close(&node);
    open_with_oracle(&node, oracle);
    assert_false(node.node.fault);
    market_node_settle(&node);
    assert_true(oracle->queried > 0);
    market_node_close(&node);
    market_close(&market);
    free(oracle);
}

/* A child that was taken over by what it read answers with claims about what nobody asked. */
static void test_answers_about_other_segments_claim_nothing(void **state)
{
    static const uint32_t indexes[] = {3, 77, UINT32_MAX};
    struct oracle *oracle = calloc(1, sizeof(*oracle));
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "lies");
    for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "lying-%zu", i);
        (void)commit_one(&market, name);
        oracle->answer.outcome = CHECK_REFUTED;
        oracle->answer.flaw = CHECK_FLAW_STATE;
        oracle->answer.index = indexes[i];
        market_node_defaults(&node, &market, "/nowhere");
        open_with_oracle(&node, oracle);
        market_node_settle(&node);
        assert_int_equal(market_count(&market, GAME_SEALED, NULL), 0);
        market_node_close(&node);
    }
    market_close(&market);
    free(oracle);
}

/* The book remembers that the segment was proven: the same node does not claim it later. */
static void test_the_book_stands_before_the_pen(void **state)
{
    struct oracle *oracle = calloc(1, sizeof(*oracle));
    char path[700];
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "book");
    (void)commit_one(&market, "book-run");
    oracle->answer.outcome = CHECK_PROVEN;
    oracle->answer.has_leaves = true;
    market_node_defaults(&node, &market, "/nowhere");
    open_with_oracle(&node, oracle);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), SEGMENTS);
    market_node_close(&node);
    /* The database is lost, the book is not. Now the children say the opposite. */
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {"", "-wal", "-shm"};

        (void)snprintf(path, sizeof(path), "%s/node.db%s", market.folders[MARKET_VERIFIER],
                       ends[i]);
        (void)unlink(path);
    }
    oracle->answer.outcome = CHECK_REFUTED;
    oracle->answer.flaw = CHECK_FLAW_STATE;
    oracle->fits = true;
    open_with_oracle(&node, oracle);
    market_node_settle(&node);
    assert_true(market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 2") > 0);
    assert_int_equal(market_count(&market, GAME_SEALED, NULL), 0);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), SEGMENTS);
    market_node_close(&node);
    market_close(&market);
    free(oracle);
}

/* The database is lost, the seals are on the ledger: they are revealed all the same. */
static void test_a_lost_database_does_not_lose_a_reveal(void **state)
{
    uint64_t random = 1;
    const char *mirror = small_path("again-run");
    char path[700];
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "again");
    cheat_bundle_new(mirror, small_mlp(43), CHEAT_NOT, 0, &random);
    (void)market_commit(&market, mirror);
    market_node_defaults(&node, &market, mirror);
    market_node_open(&node);
    market_node_settle(&node);
    market_node_close(&node);
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {"", "-wal", "-shm"};

        (void)snprintf(path, sizeof(path), "%s/node.db%s", market.folders[MARKET_VERIFIER],
                       ends[i]);
        (void)unlink(path);
    }
    market_node_open(&node);
    market_node_settle(&node);
    market_pass_time(&market, MARKET_SEAL_S + 1);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), SEGMENTS);
    assert_int_equal(market_count(&market, GAME_REVEALED, NULL), SEGMENTS);
    market_node_close(&node);
    market_close(&market);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_that_is_killed_loses_and_doubles_nothing),
        cmocka_unit_test(test_a_fault_of_this_machine_stops_the_pen),
        cmocka_unit_test(test_a_fault_outlives_a_lost_database_and_a_lost_book),
        cmocka_unit_test(test_answers_about_other_segments_claim_nothing),
        cmocka_unit_test(test_the_book_stands_before_the_pen),
        cmocka_unit_test(test_a_lost_database_does_not_lose_a_reveal),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
