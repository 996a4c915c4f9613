/*
 * Goal: whole jobs come to the right end on both ledgers, through one interface.
 * Method: the same plays run on an embedded ledger with a clock of the test's and on anvil, with
 * the contracts put up by ledger_evm_deploy(): a job that is done, verified and paid; one whose
 * states nobody got, void and done by another solver; one whose keeper vouches; a solver that lied
 * and is walked down to the element; handles that are closed and opened again in the middle; a
 * reorganization under a running client; a seed that is the block's own random number; a name whose
 * move was refused. Balances are exact on the embedded ledger, and to the gas on the chain.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chain/local/ledger_local.h"
#include "proofs/commit/commit.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/made_states.h"
#include "tests/support/game/rpc_server.h"
#include "tests/support/game/scene.h"

enum {
    PROCESSES = 4,
    MOVES = 60,
    COMMITS = GAME_OPEN_MAX,
    CLAIMS = 5,
    CLAIM_REQUESTS_MOST = 10,
    LOOKS_MAX = 30000, /* 5 minutes at least: a busy machine is no failure */
};

static const double CLAIM_S_MOST = 0.1;
static const struct game_bytes no_contact;
static const struct game_hashes no_path;

/* A job without a panel, whose states are made ones. */
static struct game_terms plain_terms(struct stage *stage, uint8_t header[GAME_JOB_HEADER_SIZE])
{
    struct game_terms terms = {.steps = 2,
                               .segment_steps = 1,
                               .reward = 1000,
                               .stake = WEI_PER_ETHER,
                               .bond = 4000,
                               .query_fee = 5,
                               .segment_period_s = 100000,
                               .seal_period_s = 1000,
                               .reveal_period_s = 1000,
                               .claim_period_s = 100000,
                               .clock_s = 10000,
                               .deadline_s = stage_clock(stage) + 1000000};

    made_job(header, &terms.job_id, 0);
    return terms;
}

static void start_job(struct stage *stage, struct hash32 *job, const struct game_terms *terms)
{
    STAGE_PLAY(stage, STAGE_CLIENT, ledger_open_job, job, terms, &no_contact);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_accept, job, terms, &no_path, &no_contact);
}

/* ---- whole jobs -------------------------------------------------------------------- */

/* The ledger's answer is what its events tell. */
static void see_progress(struct scene *scene)
{
    const struct job_record *record = &scene->record;
    struct ledger_job job;
    struct error error;

    error_init(&error);
    scene_read(scene);
    stage_check(ledger_get_job(scene->stage.ledgers[STAGE_OTHER], &job, &scene->job, &error),
                &error);
    assert_int_equal(job.phase, record->state.phase);
    assert_true(address_equal(&job.client, &record->client));
    assert_int_equal(job.generation, record->state.generation);
    assert_int_equal(job.segments, record->state.segments);
    assert_int_equal(job.committed, record->state.committed);
    assert_int_equal(job.drawn, record->state.drawn);
    assert_int_equal(job.leg_start, record->state.leg_start);
    assert_int_equal(job.finalized, record->state.finalized);
    assert_int_equal(job.panel, record->state.entries);
    assert_int_equal(job.refused_until_s, record->state.refused_until_s);
    assert_true(job.pool == record->pool);
    assert_true(job.missing_escrow == record->state.missing_escrow);
    assert_true(job.missing_pool == record->state.missing_pool);
    assert_int_equal(job.barred, record->state.barred);
    assert_int_equal(job.ended, record->state.ended);
    if (job.phase == GAME_PHASE_RUNNING) {
        assert_true(address_equal(&job.solver, &record->state.solver));
        assert_int_equal(job.due_s, record->state.due_s);
    } else if (job.phase == GAME_PHASE_OPEN) {
        assert_int_equal(job.opened_at_s, record->state.opened_s);
    }
}

static const struct scene_verdicts all_right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};
static const struct scene_verdicts all_unseen = {
    .unseen = {[STAGE_VERIFIER] = true, [STAGE_SECOND] = true}};

static void accept_with_panel(struct scene *scene, int solver)
{
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_enlist(scene, STAGE_SECOND, 1);
    scene_accept(scene, solver);
    see_progress(scene);
}

static void finish(struct scene *scene, int solver)
{
    for (uint32_t i = scene->record.state.finalized; i < SCENE_SEGMENTS; i++) {
        scene_commit(scene, solver, SCENE_STEPS);
        stage_restart(&scene->stage, solver);
        scene_end_segment(scene, i, &all_right);
        stage_restart(&scene->stage, STAGE_VERIFIER);
        see_progress(scene);
    }
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, solver), 3000);
}

/* The last segment has three rights. */
static void play_job(enum stage_ledger ledger, const char *name)
{
    struct scene scene;

    scene_open(&scene, ledger, name);
    scene_open_job(&scene);
    accept_with_panel(&scene, STAGE_SOLVER);
    finish(&scene, STAGE_SOLVER);
    scene_see(&scene, scene_party_gain(&scene, (const int[]){STAGE_VERIFIER, STAGE_SECOND}, 2),
              500);
    scene_see(&scene, scene_gain(&scene, STAGE_CLIENT), -3500);
    scene_close(&scene);
}

/* Nobody gets the states: the price of the segment and of one more burns on both sides. The client
 * puts it back, and another solver does the job. */
static void play_void(enum stage_ledger ledger, const char *name)
{
    struct scene scene;

    scene_open(&scene, ledger, name);
    scene_open_job(&scene);
    accept_with_panel(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene_end_segment(&scene, 0, &all_unseen);
    assert_true(scene.record.state.barred);
    see_progress(&scene);
    scene_see(&scene, scene_gain(&scene, STAGE_SOLVER), -2000);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_resume, &scene.job,
               scene.record.state.missing_escrow + scene.record.state.missing_pool);
    see_progress(&scene);
    assert_false(scene.record.state.barred);
    accept_with_panel(&scene, STAGE_OTHER);
    finish(&scene, STAGE_OTHER);
    scene_see(&scene, scene_gain(&scene, STAGE_SOLVER), -2000);
    scene_see(&scene, scene_gain(&scene, STAGE_CLIENT), -3500 - 2200);
    scene_close(&scene);
}

/* The panel says that it saw nothing, and the keeper that it has the states: its word counts, and
 * a refusal does not hold what it vouched for. */
static void play_vouch(enum stage_ledger ledger, const char *name)
{
    struct scene scene;

    scene_open(&scene, ledger, name);
    scene.terms.keeper = *signer_address(scene.stage.signers[STAGE_FRIEND]);
    scene_open_job(&scene);
    accept_with_panel(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(&scene, 0);
    scene_vouch(&scene, STAGE_SOLVER, STAGE_FRIEND, 0);
    assert_true(scene.record.segments[0].draw.vouched);
    STAGE_PLAY(&scene.stage, STAGE_FRIEND, ledger_refuse, &scene.job);
    see_progress(&scene);
    scene_rounds(&scene, 0, &all_unseen);
    scene_settle(&scene, STAGE_SOLVER, 0);
    assert_int_equal(scene.record.state.finalized, 1);
    scene_pass(&scene, SCENE_SEAL_S + SCENE_REVEAL_S + SCENE_CLAIM_S + 1);
    STAGE_PLAY(&scene.stage, STAGE_OTHER, ledger_release, &scene.job);
    see_progress(&scene);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_close_job, &scene.job);
    see_progress(&scene);
    scene_depart(&scene);
    scene_see(&scene, scene_gain(&scene, STAGE_SOLVER), 1000);
    scene_see(&scene, scene_gain(&scene, STAGE_CLIENT), -1000);
    scene_close(&scene);
}

static void test_jobs_on_the_embedded_ledger(void **state)
{
    (void)state;
    play_job(STAGE_EMBEDDED, "job");
    play_void(STAGE_EMBEDDED, "void");
    play_vouch(STAGE_EMBEDDED, "vouch");
}

static void test_jobs_on_a_chain(void **state)
{
    (void)state;
    play_job(STAGE_ANVIL, "job-evm");
    play_void(STAGE_ANVIL, "void-evm");
    play_vouch(STAGE_ANVIL, "vouch-evm");
}

/* The contract reads it out of the header that the ledger shows. */
static void test_a_seed_is_of_the_random_number_of_its_block(void **state)
{
    struct game_segment segment;
    struct scene scene;
    struct hash32 random;
    struct hash32 hash;
    struct hash32 seed;
    char height[32];
    json_t *block;

    (void)state;
    scene_open(&scene, STAGE_ANVIL, "seed");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(&scene, 0);
    segment = scene_segment(&scene, 0);
    (void)snprintf(height, sizeof(height), "0x%llx", (unsigned long long)segment.height + 1);
    block = anvil_call(scene.stage.rpc, "eth_getBlockByNumber", json_pack("[s, b]", height, 0));
    assert_int_equal(rpc_value_hash(&random, json_object_get(block, "mixHash"), "mixHash", NULL),
                     STATUS_OK);
    json_decref(block);
    hash = game_segment_hash(&scene.job, &segment);
    seed = game_seed(&random, &hash);
    assert_true(hash32_equal(&seed, &scene.record.segments[0].draw.seed));
    scene_close(&scene);
}

/* The blocks with the commits are replaced by empty ones. The solver's outbox must bring the
 * commits back, and a reader of the event log must learn it. */
static void test_a_reorganization_under_a_running_client(void **state)
{
    const struct digest root = made_state_root(1);
    const struct game_hashes states = {&root, 1};
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct stage stage;
    struct game_terms terms;
    struct ledger_entry entry = {0};
    struct ledger_job seen;
    struct hash32 job;
    struct error error;
    uint32_t rewinds = 0;
    uint32_t standing = 0;
    json_t *before;
    json_t *after;

    (void)state;
    stage_open(&stage, STAGE_ANVIL, "reorg");
    terms = plain_terms(&stage, header);
    start_job(&stage, &job, &terms);
    stage_pass_time(&stage, 1);
    stage_pass_time(&stage, 1);
    STAGE_PLAY(&stage, STAGE_SOLVER, ledger_commit, &job, 0, &states, false);
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
                           const struct game_terms *terms,
                           const uint8_t header[GAME_JOB_HEADER_SIZE])
{
    const struct digest root = made_state_root(1);
    const struct game_hashes states = {&root, 1};
    struct meter meter = *most;

    most->requests = 0;
    most->seconds = 1e9;
    for (uint32_t i = 0; i < CLAIMS; i++) {
        const struct hash32 salt = {{(uint8_t)(1 + i)}};
        struct game_segment segment = stage_segment(stage, STAGE_VERIFIER, job, i);
        struct game_segment previous = {0};
        struct ledger_outcome outcome;
        struct game_case shown;
        struct hash32 subject;
        struct error error;
        char name[32];

        if (i > 0) {
            previous = stage_segment(stage, STAGE_VERIFIER, job, i - 1);
        }
        made_states_case(&shown, header, &segment, &states, i == 0 ? NULL : &previous, &states, 0);
        shown.client = *signer_address(stage->signers[STAGE_CLIENT]);
        shown.salt = terms->salt;
        subject = game_segment_hash(job, &segment);
        subject = game_subject_hash(&subject, 0, &shown.pre_state, &shown.post_state);
        STAGE_PLAY(stage, STAGE_VERIFIER, ledger_seal_claim, &subject, &salt);
        stage_pass_time(stage, 1);
        (void)snprintf(name, sizeof(name), "whistle %u", i);
        meter_begin(&meter);
        stage_check(ledger_claim(stage->ledgers[STAGE_VERIFIER], name, job, &shown, &salt,
                                 game_claim_bond(terms, i), &error),
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
    const struct digest root = made_state_root(1);
    const struct game_hashes states = {&root, 1};
    struct ledger_job seen = {0};
    struct error error;

    meter_begin(meter);
    for (uint32_t i = 0; i < COMMITS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "commit %u", i);
        stage_check(
            ledger_commit(stage->ledgers[STAGE_SOLVER], name, job, i, &states, false, &error),
            &error);
    }
    while (seen.committed < COMMITS) {
        stage_work(stage->ledgers[STAGE_SOLVER]);
        stage_check(ledger_get_job(stage->ledgers[STAGE_SOLVER], &seen, job, &error), &error);
    }
    meter_end(meter);
}

/*
 * A move costs few requests, also on a busy machine. How long that takes depends on it: "make soak"
 * asks for a thousand commits a minute, and for a claim in a tenth of a second from the decision to
 * the pool.
 */
static void test_commits_and_claims_are_quick(void **state)
{
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct stage stage;
    struct game_terms terms;
    struct meter meter;
    struct hash32 job;

    (void)state;
    stage_open(&stage, STAGE_ANVIL, "quick");
    terms = plain_terms(&stage, header);
    terms.steps = COMMITS;
    start_job(&stage, &job, &terms);
    meter_open(&meter, &stage);
    measure_commits(&meter, &stage, &job);
    print_message("%d commits in %.2f s and %u requests\n", COMMITS, meter.seconds, meter.requests);
    assert_true(test_soak_minutes() == 0 || 60 * COMMITS / meter.seconds > 1000);

    measure_claims(&meter, &stage, &job, &terms, header);
    print_message("a claim was signed and sent in %.0f ms and %u requests\n", 1000 * meter.seconds,
                  meter.requests);
    assert_true(meter.requests <= CLAIM_REQUESTS_MOST);
    assert_true(test_soak_minutes() == 0 || meter.seconds < CLAIM_S_MOST);
    stage_close(&stage);
    meter_close(&meter);
}

/* ---- refusals ----------------------------------------------------------------------- */

static void test_what_cannot_be_is_refused(void **state)
{
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct ledger_options options;
    struct ledger *ledger;
    struct stage stage;
    struct game_move move = {.kind = GAME_RELEASE};
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
    options.url = stage.url;
    stage_check(ledger_open(&ledger, &options, &error), &error);
    assert_int_equal(ledger_submit(ledger, "x", &move, &error), STATUS_USAGE); /* no key */
    ledger_close(ledger);
    assert_int_equal(ledger_submit(stage.ledgers[0], "", &move, &error), STATUS_USAGE);
    terms = plain_terms(&stage, header);
    terms.reward = 900 * WEI_PER_ETHER; /* more than the purse holds */
    assert_int_equal(ledger_open_job(stage.ledgers[0], "rich", &job, &terms, &no_contact, &error),
                     STATUS_REFUSED);
    assert_int_equal(ledger_get_job(stage.ledgers[0], &(struct ledger_job){0}, &job, &error),
                     STATUS_NOT_FOUND);
    stage_close(&stage);
}

/* A name stands for one move; but after the rules refused it, it is free for another. */
static void play_names(enum stage_ledger ledger, const char *folder)
{
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct game_terms terms;
    struct stage stage;
    struct hash32 job;
    struct error error;

    error_init(&error);
    stage_open(&stage, ledger, folder);
    terms = plain_terms(&stage, header);
    STAGE_PLAY(&stage, STAGE_CLIENT, ledger_open_job, &job, &terms, &no_contact);
    stage_check(ledger_release(stage.ledgers[STAGE_SOLVER], "try", &job, &error), &error);
    assert_int_equal(stage_refused(&stage, STAGE_SOLVER, "try"), GAME_WRONG_PHASE);
    for (int again = 0; again < 2; again++) { /* the same once more is nothing */
        stage_check(ledger_accept(stage.ledgers[STAGE_SOLVER], "try", &job, &terms, &no_path,
                                  &no_contact, &error),
                    &error);
        stage_settle_down(&stage, STAGE_SOLVER, "try");
    }
    assert_int_equal(ledger_release(stage.ledgers[STAGE_SOLVER], "try", &job, &error),
                     STATUS_REFUSED);
    stage_close(&stage);
}

static void test_a_name_is_free_after_a_refusal(void **state)
{
    (void)state;
    play_names(STAGE_EMBEDDED, "names");
    play_names(STAGE_ANVIL, "names-evm");
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
    const struct game_hashes states = {&walk->context.after, 1};
    struct hash32 job;

    memset(shown, 0, sizeof(*shown));
    *terms = plain_terms(stage, shown->job_header);
    memset(shown->job_header, 0, sizeof(shown->job_header));
    memcpy(shown->job_header + 56, walk->context.program.bytes, DIGEST_SIZE);
    memcpy(shown->job_header + 184, walk->context.before.bytes, DIGEST_SIZE);
    terms->steps = 1;
    commit_job_id(&terms->job_id, shown->job_header, sizeof(shown->job_header));
    shown->client = *signer_address(stage->signers[STAGE_CLIENT]);
    shown->salt = terms->salt;
    shown->pre_state = walk->context.before;
    shown->post_state = walk->context.after;
    start_job(stage, &job, terms);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_commit, &job, 0, &states, false);
    shown->segment = stage_segment(stage, STAGE_VERIFIER, &job, 0);
    return job;
}

static void play_walk(struct stage *stage, struct walk *walk, const struct hash32 *claim,
                      const struct game_subject *subject)
{
    uint64_t queried = 0;
    uint64_t reply = 0;

    while (walk_query(walk)) {
        struct ledger_entry entry;

        STAGE_PLAY(stage, STAGE_VERIFIER, ledger_query, claim, subject, walk->question.data,
                   walk->question.size, 5);
        stage_restart(stage, STAGE_SOLVER);
        entry = last_event(stage, STAGE_SOLVER, GAME_QUERIED, queried);
        queried = entry.number;
        walk_answer(walk, &entry.event.payload);
        STAGE_PLAY(stage, STAGE_SOLVER, ledger_reply, claim, &entry.event.payload, walk->reply,
                   walk->reply_size);
        stage_restart(stage, STAGE_VERIFIER);
        entry = last_event(stage, STAGE_VERIFIER, GAME_REPLIED, reply);
        reply = entry.number;
        stage_check(
            trace_walk_take(&walk->walk, entry.event.payload.bytes, entry.event.payload.size, NULL),
            NULL);
    }
}

static void expect_claim(struct stage *stage, const struct hash32 *key, enum game_claim_phase phase,
                         enum game_turn turn)
{
    struct ledger_claim claim;
    struct error error;

    error_init(&error);
    stage_check(ledger_get_claim(stage->ledgers[STAGE_CLIENT], &claim, key, &error), &error);
    assert_int_equal(claim.phase, phase);
    assert_int_equal(claim.turn, turn);
    assert_int_equal(claim.claimants, 1);
    assert_true(address_equal(&claim.lead, signer_address(stage->signers[STAGE_VERIFIER])));
    assert_true(address_equal(&claim.solver, signer_address(stage->signers[STAGE_SOLVER])));
    assert_true(claim.rank == (GAME_RANK_OUTSIDER | 1));
    assert_true(phase == GAME_CLAIM_CLOSED ? claim.deadline_s == 0
                                           : claim.deadline_s > stage_clock(stage));
}

static void play_dispute(struct stage *stage, struct walk *walk)
{
    const struct hash32 salt = {{7}};
    struct game_subject subject;
    struct game_terms terms;
    struct game_case shown;
    struct buffer evidence;
    struct hash32 claimed;
    struct hash32 claim;
    struct hash32 job;
    wei fees;

    job = open_disputed(stage, &shown, &terms, walk);
    subject = game_subject_of(&shown);
    claimed = game_segment_hash(&job, &shown.segment);
    claimed = game_subject_hash(&claimed, 0, &shown.pre_state, &shown.post_state);
    claim = game_claim_key(&claimed, 0);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_seal_claim, &claimed, &salt);
    stage_pass_time(stage, 2);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_claim, &job, &shown, &salt, terms.bond);
    expect_claim(stage, &claim, GAME_CLAIM_CALLED, GAME_TURN_ACCUSED);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_answer, &claim, &walk->context.trace);
    expect_claim(stage, &claim, GAME_CLAIM_TRIED, GAME_TURN_CLAIMANT);
    play_walk(stage, walk, &claim, &subject);
    fees = stage_owed(stage, STAGE_SOLVER);
    assert_true(fees > 0 && fees % terms.query_fee == 0);
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, walk);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_convict, &claim, &subject, evidence.data,
               evidence.size);
    buffer_release(&evidence);
    assert_true(stage_owed(stage, STAGE_VERIFIER) == terms.bond);
    STAGE_PLAY(stage, STAGE_CLIENT, ledger_pay, &job, 0);
    assert_true(stage_owed(stage, STAGE_VERIFIER) == terms.bond + terms.stake / 4);
    assert_true(stage_owed(stage, STAGE_CLIENT) == terms.stake / 4);
    assert_true(stage_owed(stage, STAGE_SOLVER) == fees);
}

static void test_dispute_is_played_through_the_interface_of_both(void **state)
{
    (void)state;
    for (int embedded = 1; embedded >= 0; embedded--) {
        struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
        struct stage stage;
        struct walk walk;

        walk_open(&walk, &lie, 0);
        stage_open(&stage, embedded == 1 ? STAGE_EMBEDDED : STAGE_ANVIL,
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
        cmocka_unit_test(test_a_seed_is_of_the_random_number_of_its_block),
        cmocka_unit_test(test_a_reorganization_under_a_running_client),
        cmocka_unit_test(test_processes_that_die_share_an_embedded_ledger),
        cmocka_unit_test(test_commits_and_claims_are_quick),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_a_name_is_free_after_a_refusal),
        cmocka_unit_test(test_dispute_is_played_through_the_interface_of_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
