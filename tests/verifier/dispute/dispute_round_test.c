/*
 * Goal: a solver that lies in one number is convicted by what it answers, or by the clock where it
 * falls silent, at every point, no matter what the node goes through. Method: the real node with
 * its children against a solver whose trace holds the lie that its committed state shows; every
 * move goes through the embedded ledger, and the money is counted to the wei. Honest solvers that
 * are accused: tests/prover/post/respond_test.c.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/commit/state_root.h"
#include "tests/support/dispute/defendant.h"
#include "verifier/dispute/dispute_case.h"
#include "verifier/dispute/dispute_send.h"

enum {
    ROUNDS_MAX = 20000,
    RUNS_SOAK = 120,
    RUNS = 5,
};

#define STAKE      (2 * WEI_PER_ETHER)
#define CLAIM_BOND (WEI_PER_ETHER / 10)

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- the play ------------------------------------------------------------- */

static void round_of_node(struct market_node *node)
{
    struct error error;
    bool busy;

    error_init(&error);
    check(node_round(&node->node, &busy, &error), &error);
    (void)usleep(2000);
}

static uint32_t count_answers(struct market *market)
{
    return market_count(market, GAME_ANSWERED, NULL) + market_count(market, GAME_REPLIED, NULL);
}

struct play {
    uint32_t silent_after; /* answers that the accused gives before it falls silent */
    uint32_t crash_every;  /* rounds between two crashes of the node; 0: none */
};

static uint64_t last_entry(struct market *market)
{
    struct ledger_entry entry = {0};
    struct error error;

    error_init(&error);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
    }
    return entry.number;
}

/* How the node lives until it crashes. */
struct life {
    uint32_t rounds;
    uint32_t rounds_max; /* 0: for ever */
    uint64_t entry;      /* the ledger's last when it began */
};

/* Its children are killed wherever they are. A life in which nothing was done was too short for
 * this machine as it is now: the next one is longer. */
static void crash_at_end(struct life *life, struct market *market, struct market_node *node,
                         const struct play *play)
{
    uint64_t entry;

    if (life->rounds_max == 0 || ++life->rounds < life->rounds_max) {
        return;
    }
    market_node_close(node);
    market_node_open(node);
    entry = last_entry(market);
    life->rounds_max = entry > life->entry ? play->crash_every : 2 * life->rounds_max;
    life->rounds = 0;
    life->entry = entry;
}

/* Until the accused is convicted and the pot paid. */
static void play_out(struct market *market, struct market_node *node, struct defendant *accused,
                     const struct play *play)
{
    uint32_t paid = market_count(market, GAME_PAID, NULL);
    uint32_t claims = market_count(market, GAME_CLAIMED, NULL);
    uint32_t answered = count_answers(market);
    struct life life = {.rounds_max = play->crash_every};
    uint32_t round = 0;

    market_node_open(node);
    while (market_count(market, GAME_PAID, NULL) == paid) {
        round_of_node(node);
        if (count_answers(market) - answered < play->silent_after) {
            defendant_round(accused);
        } else if (node->node.running_count == 0 &&
                   market_count(market, GAME_CLAIMED, NULL) > claims) {
            market_pass_time(market, MARKET_CLOCK_S / 12);
        }
        /* The pot waits for the claims that came before, which nobody answers any more. */
        if (node->node.running_count == 0 && market_count(market, GAME_CONVICTED, NULL) > 0) {
            market_pass_time(market, MARKET_CLOCK_S / 12);
        }
        /* A child may take as long as it wants: no time passes for it. */
        if (node->node.running_count == 0) {
            assert_true(++round < ROUNDS_MAX);
            if (round % 64 == 0) {
                market_pass_time(market, 1);
            }
        }
        crash_at_end(&life, market, node, play);
    }
    market_node_close(node);
    /* All that comes after an infinity is wrong too, and may be claimed as well. */
    if (accused->lie.in_trace) {
        assert_int_equal(market_count(market, GAME_CLAIMED, NULL), claims + 1);
    }
}

/* A mirror that has what the liar says of the list of its trace. */
static void serve_first_answer(struct defendant *accused, const char *mirror, uint64_t step)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};
    char job[HEX_SIZE(DIGEST_SIZE)];
    char folder[700];
    char path[800];
    struct error error;
    size_t size = 0;

    error_init(&error);
    hex_encode(job, bundle_job(accused->bundle)->id.bytes, DIGEST_SIZE);
    (void)snprintf(folder, sizeof(folder), "%.400s/v1/jobs/%s/trace/%llu/list", mirror, job,
                   (unsigned long long)step);
    check(file_make_folder(folder, &error, 0700), &error);
    (void)snprintf(path, sizeof(path), "%s/trace", folder);
    check(trace_server_answer(bytes, &size, &accused->server, &query, &error), &error);
    check(file_write(path, &error, bytes, size, 0600), &error);
}

/* A job whose solver lies, convicted. The claimant has its bond back and a quarter of the stake. */
static void convict_of(struct market *market, struct job *job, const struct defendant_lie *cheat,
                       const struct play *play, const char *second_mirror)
{
    wei owed = market_owed(market, MARKET_VERIFIER);
    uint32_t ruled = market_count(market, GAME_RULED, NULL);
    struct market_node node;
    struct defendant accused;
    struct hash32 key;
    const char *path;
    char name[64];

    (void)snprintf(name, sizeof(name), "dispute-%02x%02x%02x%02x-%u", job->id.bytes[0],
                   job->id.bytes[1], job->id.bytes[2], job->id.bytes[3], market->moves);
    path = small_path(name);
    defendant_write(path, job, cheat);
    key = market_commit(market, path);
    market_node_defaults(&node, market, path);
    node.options.mode = NODE_DEFEND;
    defendant_open(&accused, market, MARKET_SOLVER, &key, path, cheat);
    if (second_mirror != NULL) {
        serve_first_answer(&accused, second_mirror, cheat->step);
        node.mirrors[node.options.mirror_count++] = second_mirror;
    }
    play_out(market, &node, &accused, play);
    defendant_close(&accused);
    /* And the fee of a query that nobody replied to. */
    /* Each bond comes back, and each was a quarter larger than the one before. */
    ruled = market_count(market, GAME_RULED, NULL) - ruled;
    owed = market_owed(market, MARKET_VERIFIER) - owed - ruled * CLAIM_BOND -
           ruled * (ruled - 1) / 2 * CLAIM_BOND / 4 - STAKE / GAME_POT_SHARE;
    assert_true(owed == 0 || (play->silent_after < UINT32_MAX && owed == WEI_PER_ETHER / 1000));
    assert_int_equal(market_job(market, &key).phase, GAME_PHASE_OPEN);
    assert_int_equal(market_job(market, &key).generation, 1);
}

static void convict(struct market *market, uint64_t number, enum model_kind kind, uint64_t step,
                    const struct play *play, const char *second_mirror)
{
    struct job *job = defendant_job(kind, 100 + number);
    struct defendant_lie cheat = defendant_choose(job, step, &number);

    convict_of(market, job, &cheat, play, second_mirror);
}

/* ---- tests ---------------------------------------------------------------- */

static void test_a_liar_that_answers_is_convicted_by_its_answers(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    uint64_t runs = test_share(RUNS_SOAK, RUNS);
    struct market market;

    (void)state;
    market_open(&market, true, "convict");
    market.seats = 0;
    for (uint64_t i = 0; i < runs; i++) {
        uint32_t reply = market_count(&market, GAME_REPLIED, NULL);
        uint32_t answered = market_count(&market, GAME_ANSWERED, NULL);
        uint32_t ruled = market_count(&market, GAME_RULED, NULL);

        convict(&market, i, (enum model_kind)(i % MODEL_COUNT), i * 5 % DEFENDANT_STEPS, &play,
                NULL);
        assert_int_equal(market_count(&market, GAME_ANSWERED, NULL), answered + 1);
        assert_true(market_count(&market, GAME_REPLIED, NULL) >= reply + 2);
        assert_int_equal(market_count(&market, GAME_RULED, NULL), ruled + 1);
    }
    market_close(&market);
}

/* What a mirror has told need not be asked on the ledger. */
static void test_what_is_served_is_not_queried(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    const char *mirror = small_path("mirror");
    uint32_t alone;
    struct market market;

    (void)state;
    market_open(&market, true, "served");
    market.seats = 0;
    convict(&market, 500, MODEL_MLP, 5, &play, NULL);
    alone = market_count(&market, GAME_QUERIED, NULL);
    convict(&market, 500, MODEL_MLP, 5, &play, mirror);
    assert_int_equal(market_count(&market, GAME_QUERIED, NULL), 2 * alone - 1);
    market_close(&market);
}

/* Silent at once, after the trace root, and after the first thing that it was asked. */
static void test_a_liar_that_falls_silent_is_convicted_by_the_clock(void **state)
{
    struct market market;

    (void)state;
    market_open(&market, true, "silent");
    market.seats = 0;
    for (uint32_t answered = 0; answered < 3; answered++) {
        const struct play play = {.silent_after = answered};

        convict(&market, 1000 + answered, MODEL_MLP, 5, &play, NULL);
    }
    market_close(&market);
}

static void test_a_node_that_crashes_again_and_again_convicts(void **state)
{
    struct market market;

    (void)state;
    market_open(&market, true, "crash");
    market.seats = 0;
    for (uint32_t every = 40; every <= 120; every += 40) {
        const struct play play = {.silent_after = UINT32_MAX, .crash_every = every};

        convict(&market, 2000 + every, MODEL_MLP, 6, &play, NULL);
    }
    market_close(&market);
}

/* ---- a claim that another leads ------------------------------------------------ */

/* The rival claims what the node is about to find: it has read the commits, and checks. */
static struct hash32 claim_first(struct market *market, struct market_node *node,
                                 const struct hash32 *job, const struct defendant *accused)
{
    struct ledger *ledger = market->ledgers[MARKET_RIVAL];
    const struct hash32 salt = {{7}};
    struct store_segment segment;
    struct game_case shown;
    struct hash32 subject;
    struct error error;

    error_init(&error);
    check(store_set_header(&node->store, job, bundle_job(accused->bundle)->header, &error), &error);
    check(store_segment(&node->store, &segment, job,
                        (uint32_t)accused->lie.step / DEFENDANT_SEGMENT, &error),
          &error);
    check(
        dispute_case(&shown, &node->store, &segment, accused->lie.step % DEFENDANT_SEGMENT, &error),
        &error);
    subject = game_subject_hash(&segment.hash, shown.step, &shown.pre_state, &shown.post_state);
    check(ledger_seal_claim(ledger, "seal", &subject, &salt, &error), &error);
    market_pass_time(market, 1);
    check(ledger_claim(ledger, "claim", job, &shown, &salt, CLAIM_BOND, &error), &error);
    return game_claim_key(&subject, 0);
}

static bool has_trace(const struct market_node *node, const struct hash32 *claim)
{
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    check(dispute_folder(folder, node->cache, claim, &error), &error);
    check(file_path_join(path, sizeof(path), &error, folder, DISPUTE_FILE_TRACE), &error);
    return file_exists(path);
}

/* Rounds of the node, and of the accused, in which the market's time stands. */
static void rounds(struct market_node *node, struct defendant *accused)
{
    for (int i = 0, idle = 0; i < ROUNDS_MAX && idle < 20; i++) {
        round_of_node(node);
        defendant_round(accused);
        idle = node->node.running_count > 0 ? 0 : idle + 1;
    }
}

/* It joins, and has run the step before the leader's clock is over; then it leads, and convicts. */
static void test_who_waits_behind_a_leader_is_ready_when_that_one_sleeps(void **state)
{
    const struct address *verifier;
    struct job *job = defendant_job(MODEL_MLP, 4000);
    uint64_t random = 4000;
    const struct defendant_lie cheat = defendant_choose(job, 5, &random);
    const char *path = small_path("followed");
    struct market_node node;
    struct defendant accused;
    struct market market;
    struct hash32 claim;
    struct hash32 key;

    (void)state;
    market_open(&market, true, "followed-market");
    market.seats = 0;
    verifier = signer_address(market.signers[MARKET_VERIFIER]);
    defendant_write(path, job, &cheat);
    key = market_commit(&market, path);
    market_node_defaults(&node, &market, path);
    node.options.mode = NODE_DEFEND;
    defendant_open(&accused, &market, MARKET_SOLVER, &key, path, &cheat);
    market_node_open(&node);
    round_of_node(&node);
    claim = claim_first(&market, &node, &key, &accused);
    for (int i = 0; i < ROUNDS_MAX && market_count(&market, GAME_CLAIMED, verifier) == 0; i++) {
        round_of_node(&node);
        market_pass_time(&market, node.node.running_count == 0);
    }
    rounds(&node, &accused);
    assert_int_equal(market_count(&market, GAME_ANSWERED, NULL), 1);
    assert_int_equal(market_count(&market, GAME_QUERIED, NULL), 0);
    assert_true(has_trace(&node, &claim));
    market_pass_time(&market, MARKET_CLOCK_S + 1);
    for (int i = 0; i < ROUNDS_MAX && market_count(&market, GAME_CONVICTED, NULL) == 0; i++) {
        rounds(&node, &accused);
    }
    assert_int_equal(market_count(&market, GAME_DEFAULTED, NULL), 1);
    assert_int_equal(market_count(&market, GAME_CONVICTED, NULL), 1);
    market_node_close(&node);
    defendant_close(&accused);
    market_close(&market);
}

/* The first step after which the state is not finite. */
static uint64_t find_divergence(const struct job *job)
{
    struct run run;
    struct digest root;
    struct error error;
    bool finite = true;
    uint64_t step = 0;

    error_init(&error);
    small_run_open(&run, job, isa_best(), 1, false);
    small_run_begin(&run);
    for (; finite; step++) {
        small_run_step(&run);
        check(state_root_find(&root, &finite, run.machine, 1, &error), &error);
    }
    run_close(&run);
    return step - 1;
}

static void test_a_training_that_went_on_after_an_infinity_is_convicted(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    struct small_job_options options;
    struct defendant_lie cheat = {0};
    struct market market;
    struct job *job;

    (void)state;
    market_open(&market, true, "infinite");
    market.seats = 0;
    small_job_diverging(&options);
    options.steps = DEFENDANT_STEPS;
    options.segment_length = DEFENDANT_SEGMENT;
    job = small_job_new(&options);
    cheat.step = find_divergence(job);
    assert_true(cheat.step < DEFENDANT_STEPS - 1);
    convict_of(&market, job, &cheat, &play, NULL);
    assert_int_equal(market_count(&market, GAME_ANSWERED, NULL), 1);
    market_close(&market);
}

static void test_a_liar_is_convicted_on_a_chain(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    struct market market;

    (void)state;
    market_open(&market, false, "chain");
    market.seats = 0;
    convict(&market, 3000, MODEL_MLP, 6, &play, NULL);
    market_close(&market);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_liar_that_answers_is_convicted_by_its_answers),
        cmocka_unit_test(test_what_is_served_is_not_queried),
        cmocka_unit_test(test_a_liar_that_falls_silent_is_convicted_by_the_clock),
        cmocka_unit_test(test_a_node_that_crashes_again_and_again_convicts),
        cmocka_unit_test(test_who_waits_behind_a_leader_is_ready_when_that_one_sleeps),
        cmocka_unit_test(test_a_training_that_went_on_after_an_infinity_is_convicted),
        cmocka_unit_test(test_a_liar_is_convicted_on_a_chain),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
