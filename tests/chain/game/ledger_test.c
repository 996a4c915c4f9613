/*
 * Goal: whole jobs come to the right end on both ledgers, through one interface.
 * Method: the same plays run on an embedded ledger with a clock of the test's and on anvil: a job
 * that is done, attested and paid; a solver that is convicted for silence; one that lied and is
 * walked down to the element, with the contracts put up by ledger_evm_deploy(); handles that are
 * closed and opened again in the middle; a reorganization under a running client. Balances are
 * exact.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/endian.h"
#include "chain/local/ledger_local.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/rpc_server.h"
#include "tests/support/game/stage.h"

enum {
    PROCESSES = 4,
    MOVES = 60,
    COMMITS = 300,
    CLAIMS = 5,
    CLAIM_REQUESTS_MOST = 10,
    LOOKS_MAX = 30000, /* 5 minutes at least: a busy machine is no failure */
};

static const double CLAIM_S_MOST = 0.1;

static void test_jobs_on_the_embedded_ledger(void **state)
{
    (void)state;
    stage_play_jobs(STAGE_EMBEDDED);
}

static void test_jobs_on_a_chain(void **state)
{
    (void)state;
    stage_play_jobs(STAGE_ANVIL);
}

/* The blocks with the commits are replaced by empty ones. The solver's outbox must bring the
 * commits back, and a reader of the event log must learn it. */
static void test_a_reorganization_under_a_running_client(void **state)
{
    struct stage stage;
    struct game_terms terms;
    struct ledger_entry entry = {0};
    struct ledger_job seen;
    struct hash32 job;
    struct error error;
    struct digest root = stage_root(1);
    uint32_t rewinds = 0;
    uint32_t standing = 0;
    json_t *before;
    json_t *after;

    (void)state;
    stage_open(&stage, STAGE_ANVIL, "reorg");
    terms = stage_terms(&stage);
    STAGE_PLAY(&stage, STAGE_CLIENT, ledger_open_job, &job, &terms);
    STAGE_PLAY(&stage, STAGE_SOLVER, ledger_accept, &job, &terms);
    stage_pass_time(&stage, 1);
    stage_pass_time(&stage, 1);
    STAGE_PLAY(&stage, STAGE_SOLVER, ledger_commit, &job, 0, &root);
    (void)stage_segment(&stage, STAGE_VERIFIER, &job, 0);
    before = anvil_call(stage.rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    json_decref(anvil_call(stage.rpc, "anvil_reorg", json_pack("[i, []]", 1)));
    after = anvil_call(stage.rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    assert_string_not_equal(json_string_value(json_object_get(before, "hash")),
                            json_string_value(json_object_get(after, "hash")));
    json_decref(before);
    json_decref(after);
    stage_check(ledger_get_job(stage.ledgers[STAGE_CLIENT], &seen, &job, &error), &error);
    assert_int_equal(seen.committed, 0);
    for (int i = 0; i < 50 && seen.committed == 0; i++) {
        stage_work(stage.ledgers[STAGE_SOLVER]);
        json_decref(anvil_call(stage.rpc, "evm_mine", NULL));
        stage_check(ledger_get_job(stage.ledgers[STAGE_CLIENT], &seen, &job, &error), &error);
    }
    assert_int_equal(seen.committed, 1);
    (void)stage_segment(&stage, STAGE_VERIFIER, &job, 0);
    while (ledger_next(stage.ledgers[STAGE_VERIFIER], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        rewinds += entry.kind == LEDGER_REWIND ? 1 : 0;
        standing += entry.kind == LEDGER_EVENT && entry.event.kind == GAME_COMMITTED ? 1 : 0;
    }
    assert_int_equal(rewinds, 1);
    assert_int_equal(standing, 1);
    stage_close(&stage);
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What the moves cost that were sent through an endpoint that counts. */
struct meter {
    struct rpc *chain;
    struct rpc_server *server;
    uint32_t requests;
    double seconds;
};

/* The solver and the verifier use this endpoint from now on. */
static void meter_open(struct meter *meter, struct stage *stage)
{
    memset(meter, 0, sizeof(*meter));
    meter->chain = anvil_rpc(stage->anvil);
    meter->server = rpc_server_start_answering(rpc_server_pass_on, meter->chain);
    (void)snprintf(stage->url, sizeof(stage->url), "%s", rpc_server_url(meter->server));
    stage_restart(stage, STAGE_SOLVER);
    stage_restart(stage, STAGE_VERIFIER);
}

static void meter_close(struct meter *meter)
{
    rpc_server_stop(meter->server);
    rpc_free(meter->chain);
}

static void meter_begin(struct meter *meter)
{
    meter->requests = rpc_server_request_count(meter->server);
    meter->seconds = seconds();
}

static void meter_end(struct meter *meter)
{
    meter->requests = rpc_server_request_count(meter->server) - meter->requests;
    meter->seconds = seconds() - meter->seconds;
}

/* From the decision to the pool: the most requests, and the best time. */
static void measure_claims(struct meter *most, struct stage *stage, const struct hash32 *job,
                           const struct game_terms *terms)
{
    struct meter meter = *most;

    most->requests = 0;
    most->seconds = 1e9;
    for (uint32_t i = 0; i < CLAIMS; i++) {
        struct ledger_whistle whistle = {.job = *job};
        struct ledger_outcome outcome;
        struct hash32 claim;
        struct error error;
        char name[32];

        whistle.segment = stage_segment(stage, STAGE_VERIFIER, job, i);
        STAGE_PLAY(stage, STAGE_VERIFIER, ledger_seal_claim, &claim, &whistle);
        stage_pass_time(stage, 1);
        (void)snprintf(name, sizeof(name), "whistle %u", i);
        meter_begin(&meter);
        stage_check(ledger_claim(stage->ledgers[STAGE_VERIFIER], name, terms, &whistle, &error),
                    &error);
        meter_end(&meter);
        stage_check(ledger_look(stage->ledgers[STAGE_VERIFIER], &outcome, name, &error), &error);
        assert_false(hash32_is_zero(&outcome.transaction)); /* signed, and sent */
        stage_settle_down(stage, STAGE_VERIFIER, name);
        most->requests = meter.requests > most->requests ? meter.requests : most->requests;
        most->seconds = meter.seconds < most->seconds ? meter.seconds : most->seconds;
    }
}

static void measure_commits(struct meter *meter, struct stage *stage, const struct hash32 *job)
{
    struct ledger_job seen = {0};
    struct digest root = stage_root(1);
    struct error error;

    meter_begin(meter);
    for (uint32_t i = 0; i < COMMITS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "commit %u", i);
        stage_check(ledger_commit(stage->ledgers[STAGE_SOLVER], name, job, i, &root, &error),
                    &error);
    }
    while (seen.committed < COMMITS) {
        stage_work(stage->ledgers[STAGE_SOLVER]);
        stage_check(ledger_get_job(stage->ledgers[STAGE_SOLVER], &seen, job, &error), &error);
    }
    meter_end(meter);
}

/*
 * A move costs few requests, whatever the machine is busy with. How long that takes depends on it:
 * "make soak" asks for a thousand commits a minute, and for a claim in a tenth of a second from the
 * decision to the pool.
 */
static void test_commits_and_claims_are_quick(void **state)
{
    struct stage stage;
    struct game_terms terms;
    struct meter meter;
    struct hash32 job;

    (void)state;
    stage_open(&stage, STAGE_ANVIL, "quick");
    terms = stage_terms(&stage);
    terms.steps = COMMITS;
    terms.segment_steps = 1;
    terms.segment_reward = 1;
    terms.coverage_ppm = 0;
    STAGE_PLAY(&stage, STAGE_CLIENT, ledger_open_job, &job, &terms);
    STAGE_PLAY(&stage, STAGE_SOLVER, ledger_accept, &job, &terms);
    meter_open(&meter, &stage);
    measure_commits(&meter, &stage, &job);
    print_message("%d commits in %.2f s and %u requests\n", COMMITS, meter.seconds, meter.requests);
    assert_true(test_soak_minutes() == 0 || 60 * COMMITS / meter.seconds > 1000);

    measure_claims(&meter, &stage, &job, &terms);
    print_message("a claim was signed and sent in %.0f ms and %u requests\n", 1000 * meter.seconds,
                  meter.requests);
    assert_true(meter.requests <= CLAIM_REQUESTS_MOST);
    assert_true(test_soak_minutes() == 0 || meter.seconds < CLAIM_S_MOST);
    stage_close(&stage);
    meter_close(&meter);
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct ledger_options options;
    struct ledger *ledger;
    struct stage stage;
    struct game_move move = {.kind = GAME_EXPIRE};
    struct game_terms terms;
    struct hash32 job;
    struct error error;

    (void)state;
    error_init(&error);
    ledger_options_init(&options);
    options.url = "local:/nowhere/at/all";
    assert_int_equal(ledger_open(&ledger, &options, &error), STATUS_NOT_FOUND);
    assert_string_not_equal(error.advice, "");
    options.url = "gopher://x";
    assert_int_equal(ledger_open(&ledger, &options, &error), STATUS_USAGE);
    options.url = "http://127.0.0.1:1";
    assert_int_equal(ledger_open(&ledger, &options, &error), STATUS_USAGE); /* no registry */
    stage_open(&stage, STAGE_EMBEDDED, "refusals");
    assert_int_equal(ledger_local_init(stage.url + 6, &error),
                     STATUS_REFUSED);
    options.url = stage.url;
    stage_check(ledger_open(&ledger, &options, &error), &error);
    assert_int_equal(ledger_submit(ledger, "x", &move, &error), STATUS_USAGE); /* no key */
    ledger_close(ledger);
    assert_int_equal(ledger_submit(stage.ledgers[0], "", &move, &error), STATUS_USAGE);
    terms = stage_terms(&stage);
    terms.segment_reward = 900 * WEI_PER_ETHER; /* more than the purse holds */
    assert_int_equal(ledger_open_job(stage.ledgers[0], "rich", &job, &terms, &error),
                     STATUS_REFUSED);
    assert_int_equal(ledger_get_job(stage.ledgers[0], &(struct ledger_job){0}, &job, &error),
                     STATUS_NOT_FOUND);
    stage_close(&stage);
}

static struct game_move numbered_seal(uint32_t process, uint32_t number)
{
    struct game_move move = {.kind = GAME_SEAL_CLAIM};

    move.seal.bytes[0] = (uint8_t)(1 + process);
    move.seal.bytes[1] = (uint8_t)number;
    return move;
}

/* In a process of its own: submits its moves, in an order of its own, until it is killed. */
static void submit_moves(const struct stage *stage, uint32_t process)
{
    struct secret_key key = anvil_key(process % STAGE_PLAYERS);
    struct ledger_options options = stage->options;
    struct ledger *ledger;
    struct error error;

    options.signer = signer_new(&key, &error);
    if (options.signer == NULL || ledger_open(&ledger, &options, &error) != STATUS_OK) {
        _exit(1);
    }
    for (uint32_t i = 0; i < MOVES; i++) {
        struct game_move move = numbered_seal(process, i);
        char name[32];

        (void)snprintf(name, sizeof(name), "%u/%u", process, i);
        if (ledger_submit(ledger, name, &move, &error) != STATUS_OK) {
            _exit(1);
        }
    }
    ledger_close(ledger);
    _exit(0);
}

static pid_t start_process(const struct stage *stage, uint32_t process)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        submit_moves(stage, process);
    }
    return child;
}

/* Several processes share the file; each is killed once at some instant and started again, and
 * submits everything from the beginning. Every move must be there once. */
static void test_processes_that_die_share_an_embedded_ledger(void **state)
{
    struct stage stage;
    struct ledger_entry entry = {0};
    struct error error;
    pid_t children[PROCESSES];
    uint64_t random = 3;
    uint32_t counts[PROCESSES][MOVES] = {{0}};
    uint64_t last_height = 0;

    (void)state;
    stage_open(&stage, STAGE_EMBEDDED, "shared");
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = start_process(&stage, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        usleep((useconds_t)test_random_below(&random, 60000));
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
        children[i] = start_process(&stage, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int result = -1;

        (void)waitpid(children[i], &result, 0);
        assert_int_equal(result, 0);
    }
    while (ledger_next(stage.ledgers[0], &entry, entry.number, 0, &error) == STATUS_OK) {
        assert_true(entry.height > last_height); /* a move is a block */
        last_height = entry.height;
        counts[entry.event.seal.bytes[0] - 1][entry.event.seal.bytes[1]]++;
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        for (uint32_t j = 0; j < MOVES; j++) {
            assert_int_equal(counts[i][j], 1);
        }
    }
    stage_close(&stage);
}

/* ---- before the referee ----------------------------------------------------------- */

/* The last event of a kind, waited for; what it borrows is the ledger's. */
static struct ledger_entry last_event(struct stage *stage, int player, enum game_event_kind kind,
                                      uint64_t after)
{
    struct error error;

    for (int i = 0; i < LOOKS_MAX; i++) {
        struct ledger_entry entry = {.number = after};

        stage_work(stage->ledgers[player]);
        while (ledger_next(stage->ledgers[player], &entry, entry.number, 0, &error) == STATUS_OK) {
            if (entry.kind == LEDGER_EVENT && entry.event.kind == kind) {
                return entry;
            }
        }
        usleep(10000);
    }
    fail_msg("%s is not in the journal", game_event_name(kind));
    return (struct ledger_entry){0};
}

/* A job of one segment of one step, whose step the walk's liar made. */
static struct hash32 open_disputed(struct stage *stage, struct game_case *shown,
                                   struct game_terms *terms, const struct walk *walk)
{
    struct digest root;
    struct hash32 job;

    memset(shown, 0, sizeof(*shown));
    endian_store_be64(shown->job_header + 12, 1);
    endian_store_be64(shown->job_header + 20, 1);
    memcpy(shown->job_header + 56, walk->context.program.bytes, DIGEST_SIZE);
    memcpy(shown->job_header + 184, walk->context.before.bytes, DIGEST_SIZE);
    *terms = stage_terms(stage);
    terms->steps = 1;
    terms->segment_steps = 1;
    terms->attestors = 0;
    terms->coverage_ppm = 0;
    commit_job_id(&terms->job_id, shown->job_header, sizeof(shown->job_header));
    shown->client = *signer_address(stage->signers[STAGE_CLIENT]);
    shown->salt = terms->salt;
    shown->pre_state = walk->context.before;
    shown->post_state = walk->context.after;
    commit_list_root(&root, COMMIT_SEGMENT, 0, &walk->context.after, 1);
    STAGE_PLAY(stage, STAGE_CLIENT, ledger_open_job, &job, terms);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_accept, &job, terms);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_commit, &job, 0, &root);
    shown->segment = stage_segment(stage, STAGE_VERIFIER, &job, 0);
    return job;
}

static void play_dispute(struct stage *stage, struct walk *walk)
{
    struct ledger_whistle whistle = {.step = 0};
    struct game_terms terms;
    struct game_case shown;
    struct buffer evidence;
    struct hash32 claim;
    uint64_t queried = 0;
    uint64_t reply = 0;

    whistle.job = open_disputed(stage, &shown, &terms, walk);
    whistle.segment = shown.segment;
    whistle.pre_state = shown.pre_state;
    whistle.post_state = shown.post_state;
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_seal_claim, &claim, &whistle);
    stage_pass_time(stage, 2);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_claim, &terms, &whistle);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_answer, &claim, &walk->context.trace);
    while (walk_query(walk)) {
        struct ledger_entry entry;

        STAGE_PLAY(stage, STAGE_VERIFIER, ledger_query, &claim, &shown, walk->question.data,
                   walk->question.size);
        stage_restart(stage, STAGE_SOLVER);
        entry = last_event(stage, STAGE_SOLVER, GAME_QUERIED, queried);
        queried = entry.number;
        walk_answer(walk, &entry.event.payload);
        STAGE_PLAY(stage, STAGE_SOLVER, ledger_reply, &claim, &entry.event.payload, walk->reply,
                   walk->reply_size);
        stage_restart(stage, STAGE_VERIFIER);
        entry = last_event(stage, STAGE_VERIFIER, GAME_REPLIED, reply);
        reply = entry.number;
        stage_check(
            trace_walk_take(&walk->walk, entry.event.payload.bytes, entry.event.payload.size, NULL),
            NULL);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, walk);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_convict, &claim, &shown, evidence.data, evidence.size);
    buffer_release(&evidence);
    assert_true(stage_owed(stage, STAGE_VERIFIER) == terms.claim_bond + terms.stake / 2);
    assert_true(stage_owed(stage, STAGE_SOLVER) == 0);
}

static void test_dispute_is_played_through_the_interface_of_both(void **state)
{
    (void)state;
    for (int embedded = 1; embedded >= 0; embedded--) {
        struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
        struct stage stage;
        struct walk walk;

        walk_open(&walk, &lie, 0);
        stage_open_judged(&stage, embedded == 1 ? STAGE_EMBEDDED : STAGE_ANVIL,
                          embedded == 1 ? "court" : "court-evm");
        play_dispute(&stage, &walk);
        stage_close(&stage);
        walk_close(&walk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_on_the_embedded_ledger),
        cmocka_unit_test(test_jobs_on_a_chain),
        cmocka_unit_test(test_a_reorganization_under_a_running_client),
        cmocka_unit_test(test_processes_that_die_share_an_embedded_ledger),
        cmocka_unit_test(test_commits_and_claims_are_quick),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_dispute_is_played_through_the_interface_of_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
