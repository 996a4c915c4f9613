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
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/endian.h"
#include "chain/ledger.h"
#include "chain/ledger_evm.h"
#include "chain/ledger_local.h"
#include "chain/registry_code.h"
#include "tests/support/anvil.h"
#include "tests/support/walk.h"

enum {
    CLIENT = 0,
    SOLVER = 1,
    VERIFIER = 2,
    PLAYERS = 3,
    SEGMENTS = 3,
    PROCESSES = 4,
    MOVES = 60,
    COMMITS = 300,
    CLAIMS = 5,
    WAIT_MS = 20000,
    LOCAL_START_S = 1000000,
};

static const double CLAIM_S_MOST = 0.1;

struct world {
    struct anvil *anvil; /* NULL: embedded */
    struct rpc *rpc;
    struct ledger_options options;
    struct signer *signers[PLAYERS];
    struct ledger *ledgers[PLAYERS];
    char url[600];
    char state_dirs[PLAYERS][600];
    uint64_t now_s; /* embedded */
    uint32_t moves;
};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* One round; weather is allowed. */
static void work(struct ledger *ledger)
{
    struct error error;
    enum status status = ledger_work(ledger, &error);

    assert_true(status == STATUS_OK || status == STATUS_UNREACHABLE);
}

static void open_player(struct world *world, int player)
{
    struct ledger_options options = world->options;
    struct error error;

    error_init(&error);
    options.signer = world->signers[player];
    options.state_dir = world->state_dirs[player];
    check(ledger_open(&world->ledgers[player], &options, &error), &error);
}

/* A registry with nobody to judge, or with the referee. */
static void make_registry(struct world *world, bool judged, const char *name)
{
    static const struct address nobody;
    char state_dir[700];
    struct ledger_options options = world->options;
    struct secret_key key = anvil_key(9);
    struct error error;

    error_init(&error);
    if (!judged) {
        world->options.registry = anvil_deploy(world->rpc, 9, REGISTRY_CODE, &nobody, "0x0");
        return;
    }
    (void)snprintf(state_dir, sizeof(state_dir), "%s/%s-deploy", test_temp_dir(), name);
    options.state_dir = state_dir;
    options.signer = signer_new(&key, &error);
    assert_non_null(options.signer);
    check(ledger_evm_deploy(&options, NULL, "all", &world->options.registry,
                            &world->options.first_height, WAIT_MS / 1000, &error),
          &error);
    signer_free((struct signer *)options.signer);
}

static void set_up_with(struct world *world, bool embedded, bool judged, const char *name)
{
    static const struct address nobody;
    struct error error;

    error_init(&error);
    memset(world, 0, sizeof(*world));
    ledger_options_init(&world->options);
    world->options.depth = 2;
    world->options.url = world->url;
    if (embedded) {
        (void)snprintf(world->url, sizeof(world->url), "local:%s/%s.ledger", test_temp_dir(), name);
        check(ledger_local_init(world->url + 6, judged ? NULL : &nobody, &error), &error);
        world->now_s = LOCAL_START_S;
    } else {
        world->anvil = anvil_start(NULL);
        world->rpc = anvil_rpc(world->anvil);
        (void)snprintf(world->url, sizeof(world->url), "%s", anvil_url(world->anvil));
        make_registry(world, judged, name);
    }
    for (int i = 0; i < PLAYERS; i++) {
        struct secret_key key = anvil_key((uint32_t)i);

        world->signers[i] = signer_new(&key, &error);
        assert_non_null(world->signers[i]);
        (void)snprintf(world->state_dirs[i], sizeof(world->state_dirs[i]), "%s/%s-%d",
                       test_temp_dir(), name, i);
        open_player(world, i);
        if (embedded) {
            check(ledger_local_set_clock(world->ledgers[i], world->now_s, &error), &error);
            check(ledger_local_faucet(world->ledgers[i], signer_address(world->signers[i]),
                                      1000 * WEI_PER_ETHER, &error),
                  &error);
        }
    }
}

static void set_up(struct world *world, bool embedded, const char *name)
{
    set_up_with(world, embedded, false, name);
}

static void tear_down(struct world *world)
{
    for (int i = 0; i < PLAYERS; i++) {
        ledger_close(world->ledgers[i]);
        signer_free(world->signers[i]);
    }
    rpc_free(world->rpc);
    anvil_stop(world->anvil);
}

static void pass_time(struct world *world, uint32_t seconds)
{
    struct error error;

    if (world->anvil == NULL) {
        world->now_s += seconds;
        check(ledger_local_set_clock(world->ledgers[0], world->now_s, &error), &error);
        return;
    }
    json_decref(anvil_call(world->rpc, "evm_increaseTime", json_pack("[i]", (int)seconds)));
    json_decref(anvil_call(world->rpc, "evm_mine", NULL));
}

static uint64_t clock_s(struct world *world)
{
    struct ledger_clock clock;
    struct error error;

    check(ledger_get_clock(world->ledgers[0], &clock, &error), &error);
    return clock.time_s;
}

static const char *next_name(struct world *world, char *name, size_t size)
{
    (void)snprintf(name, size, "move %u", world->moves++);
    return name;
}

/* Waits until the move is done, and that it was not refused. */
static void settle_down(struct world *world, int player, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;

    error_init(&error);
    check(ledger_wait(world->ledgers[player], &outcome, name, false, WAIT_MS, &error), &error);
    if (outcome.state == LEDGER_MOVE_REFUSED) {
        fail_msg("%s: refused: %s (%llu)", name, game_refusal_text(outcome.refusal.kind),
                 (unsigned long long)outcome.refusal.number);
    }
}

static enum game_refusal_kind refused(struct world *world, int player, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;

    check(ledger_wait(world->ledgers[player], &outcome, name, false, WAIT_MS, &error), &error);
    assert_int_equal(outcome.state, LEDGER_MOVE_REFUSED);
    return outcome.refusal.kind;
}

/* Submits call(ledger, name, ...) as a player and waits. */
#define PLAY(world, player, call, ...)                                                             \
    do {                                                                                           \
        char play_name[32];                                                                        \
        struct error play_error;                                                                   \
        check(call((world)->ledgers[player], next_name(world, play_name, sizeof(play_name)),       \
                   __VA_ARGS__, &play_error),                                                      \
              &play_error);                                                                        \
        settle_down(world, player, play_name);                                                     \
    } while (0)

static struct game_terms usual_terms(struct world *world)
{
    struct game_terms terms = {
        .salt = 1,
        .steps = 25,
        .segment_steps = 10,
        .segment_reward = 3 * WEI_PER_ETHER,
        .attest_fee = WEI_PER_ETHER / 10,
        .stake = 20 * WEI_PER_ETHER,
        .claim_bond = WEI_PER_ETHER,
        .attest_bond = WEI_PER_ETHER / 2,
        .attestors = 1,
        .coverage_ppm = GAME_PPM,
        .segment_period_s = 3600,
        .attest_period_s = 600,
        .reveal_period_s = 600,
        .claim_period_s = 600,
        .response_period_s = 600,
        .deadline_s = clock_s(world) + 100000,
    };

    memset(terms.job_id.bytes, 0xab, DIGEST_SIZE);
    return terms;
}

static struct digest root_of(uint8_t number)
{
    struct digest digest;

    memset(digest.bytes, number, DIGEST_SIZE);
    return digest;
}

static struct game_segment segment_of(struct world *world, int player, const struct hash32 *job,
                                      uint32_t index)
{
    struct game_segment segment;
    struct error error;

    for (int i = 0; i < 200; i++) {
        enum status status;

        work(world->ledgers[player]);
        status = ledger_get_segment(world->ledgers[player], &segment, job, index, &error);
        if (status == STATUS_OK) {
            return segment;
        }
        usleep(10000);
    }
    fail_msg("segment %u is not in the journal", index);
    return segment;
}

static wei owed_to(struct world *world, int player)
{
    struct error error;
    wei purse;
    wei owed;

    check(ledger_get_account(world->ledgers[0], &purse, &owed,
                             signer_address(world->signers[player]), &error),
          &error);
    return owed;
}

static void restart(struct world *world, int player)
{
    ledger_close(world->ledgers[player]);
    open_player(world, player);
}

static void do_job(struct world *world)
{
    struct game_terms terms = usual_terms(world);
    struct game_segment segments[SEGMENTS];
    struct ledger_job seen;
    struct hash32 job;
    struct error error;
    struct digest root;

    PLAY(world, CLIENT, ledger_open_job, &job, &terms);
    PLAY(world, SOLVER, ledger_accept, &job, &terms);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        root = root_of((uint8_t)(1 + i));
        PLAY(world, SOLVER, ledger_commit, &job, i, &root);
        restart(world, SOLVER);
    }
    pass_time(world, 2);
    pass_time(world, 2);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        segments[i] = segment_of(world, VERIFIER, &job, i);
        assert_int_equal(segments[i].steps, i == 2 ? 5 : 10);
        root = root_of((uint8_t)(100 + i));
        PLAY(world, VERIFIER, ledger_attest, &job, &terms, &segments[i], &root);
    }
    pass_time(world, 601);
    restart(world, VERIFIER);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        root = root_of((uint8_t)(100 + i));
        PLAY(world, VERIFIER, ledger_reveal, &job, &segments[i], &root);
    }
    check(ledger_finalize(world->ledgers[SOLVER], "early", &job, &segments[0], &error), &error);
    assert_int_equal(refused(world, SOLVER, "early"), GAME_TOO_EARLY);
    pass_time(world, 1200);
    check(ledger_finalize(world->ledgers[SOLVER], "early", &job, &segments[0], &error), &error);
    settle_down(world, SOLVER, "early"); /* the same name, tried again */
    for (uint32_t i = 1; i < SEGMENTS; i++) {
        PLAY(world, SOLVER, ledger_finalize, &job, &segments[i]);
    }
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        PLAY(world, CLIENT, ledger_settle, &job, &segments[i],
             signer_address(world->signers[VERIFIER]));
    }
    check(ledger_get_job(world->ledgers[VERIFIER], &seen, &job, &error), &error);
    assert_int_equal(seen.phase, GAME_PHASE_CLOSED);
    assert_int_equal(seen.finalized, SEGMENTS);
    assert_true(seen.terms.stake == terms.stake);
    assert_true(owed_to(world, SOLVER) == 29 * WEI_PER_ETHER);
    assert_true(owed_to(world, CLIENT) == 0);
    assert_true(owed_to(world, VERIFIER) == 3 * (WEI_PER_ETHER / 2 + WEI_PER_ETHER / 10));
    PLAY(world, SOLVER, ledger_withdraw, signer_address(world->signers[SOLVER]));
    PLAY(world, VERIFIER, ledger_withdraw, signer_address(world->signers[VERIFIER]));
    assert_true(owed_to(world, SOLVER) == 0);
}

static void convict_silence(struct world *world)
{
    struct game_terms terms = usual_terms(world);
    struct ledger_whistle whistle;
    struct ledger_claim seen_claim;
    struct ledger_job seen;
    struct hash32 claim;
    struct hash32 job;
    struct error error;
    struct digest root = root_of(9);

    PLAY(world, CLIENT, ledger_open_job, &job, &terms);
    PLAY(world, SOLVER, ledger_accept, &job, &terms);
    PLAY(world, SOLVER, ledger_commit, &job, 0, &root);
    memset(&whistle, 0, sizeof(whistle));
    whistle.job = job;
    whistle.segment = segment_of(world, VERIFIER, &job, 0);
    whistle.step = 7;
    whistle.pre_state = root_of(3);
    whistle.post_state = root_of(4);
    memset(whistle.salt.bytes, 0x77, HASH32_SIZE);
    PLAY(world, VERIFIER, ledger_seal_claim, &claim, &whistle);
    pass_time(world, 2);
    PLAY(world, VERIFIER, ledger_claim, &terms, &whistle);
    check(ledger_get_claim(world->ledgers[SOLVER], &seen_claim, &claim, &error), &error);
    assert_int_equal(seen_claim.phase, GAME_CLAIM_CALLED);
    assert_int_equal(seen_claim.turn, GAME_TURN_ACCUSED);
    assert_true(address_equal(&seen_claim.claimant, signer_address(world->signers[VERIFIER])));
    pass_time(world, 601);
    PLAY(world, CLIENT, ledger_timeout, &claim);
    check(ledger_get_job(world->ledgers[SOLVER], &seen, &job, &error), &error);
    assert_int_equal(seen.phase, GAME_PHASE_OPEN);
    assert_int_equal(seen.epoch, 1);
    assert_int_equal(seen.committed, 0);
    assert_true(owed_to(world, VERIFIER) == 11 * WEI_PER_ETHER);
    assert_true(owed_to(world, CLIENT) == 10 * WEI_PER_ETHER);
    assert_true(owed_to(world, SOLVER) == 0);
}

/* What the journal tells must add up to the play. */
static void count_events(struct world *world, uint32_t counts[GAME_EVENT_KINDS])
{
    struct ledger_entry entry = {0};
    struct error error;

    memset(counts, 0, GAME_EVENT_KINDS * sizeof(counts[0]));
    work(world->ledgers[CLIENT]);
    while (ledger_next(world->ledgers[CLIENT], &entry, entry.number, 0, &error) == STATUS_OK) {
        assert_int_equal(entry.kind, LEDGER_EVENT);
        counts[entry.event.kind]++;
    }
}

static void play_both(bool embedded)
{
    uint32_t counts[GAME_EVENT_KINDS];
    struct world world;

    set_up(&world, embedded, embedded ? "job" : "job-evm");
    do_job(&world);
    count_events(&world, counts);
    assert_int_equal(counts[GAME_COMMITTED], SEGMENTS);
    assert_int_equal(counts[GAME_REVEALED], SEGMENTS);
    assert_int_equal(counts[GAME_FINALIZED], SEGMENTS);
    assert_int_equal(counts[GAME_CLOSED], 1);
    assert_int_equal(counts[GAME_WITHDRAWN], 2);
    tear_down(&world);
    set_up(&world, embedded, embedded ? "silence" : "silence-evm");
    convict_silence(&world);
    count_events(&world, counts);
    assert_int_equal(counts[GAME_CONVICTED], 1);
    tear_down(&world);
}

static void test_jobs_on_the_embedded_ledger(void **state)
{
    (void)state;
    play_both(true);
}

static void test_jobs_on_a_chain(void **state)
{
    (void)state;
    play_both(false);
}

/* The blocks with the commits are replaced by empty ones. The solver's outbox must bring the
 * commits back, and a reader of the journal must be told. */
static void test_a_reorganization_under_a_running_client(void **state)
{
    struct world world;
    struct game_terms terms;
    struct ledger_entry entry = {0};
    struct ledger_job seen;
    struct hash32 job;
    struct error error;
    struct digest root = root_of(1);
    uint32_t rewinds = 0;
    uint32_t standing = 0;
    json_t *before;
    json_t *after;

    (void)state;
    set_up(&world, false, "reorg");
    terms = usual_terms(&world);
    PLAY(&world, CLIENT, ledger_open_job, &job, &terms);
    PLAY(&world, SOLVER, ledger_accept, &job, &terms);
    pass_time(&world, 1);
    pass_time(&world, 1);
    PLAY(&world, SOLVER, ledger_commit, &job, 0, &root);
    (void)segment_of(&world, VERIFIER, &job, 0);
    before = anvil_call(world.rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    json_decref(anvil_call(world.rpc, "anvil_reorg", json_pack("[i, []]", 1)));
    after = anvil_call(world.rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    assert_string_not_equal(json_string_value(json_object_get(before, "hash")),
                            json_string_value(json_object_get(after, "hash")));
    json_decref(before);
    json_decref(after);
    check(ledger_get_job(world.ledgers[CLIENT], &seen, &job, &error), &error);
    assert_int_equal(seen.committed, 0);
    for (int i = 0; i < 50 && seen.committed == 0; i++) {
        work(world.ledgers[SOLVER]);
        json_decref(anvil_call(world.rpc, "evm_mine", NULL));
        check(ledger_get_job(world.ledgers[CLIENT], &seen, &job, &error), &error);
    }
    assert_int_equal(seen.committed, 1);
    (void)segment_of(&world, VERIFIER, &job, 0);
    while (ledger_next(world.ledgers[VERIFIER], &entry, entry.number, 0, &error) == STATUS_OK) {
        rewinds += entry.kind == LEDGER_REWIND ? 1 : 0;
        standing += entry.kind == LEDGER_EVENT && entry.event.kind == GAME_COMMITTED ? 1 : 0;
    }
    assert_int_equal(rewinds, 1);
    assert_int_equal(standing, 1);
    tear_down(&world);
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* From the decision to the pool; the best of a few, since the machine may be busy with others. */
static double quickest_claim(struct world *world, const struct hash32 *job,
                             const struct game_terms *terms)
{
    double best = 1e9;

    for (uint32_t i = 0; i < CLAIMS; i++) {
        struct ledger_whistle whistle = {.job = *job};
        struct ledger_outcome outcome;
        struct hash32 claim;
        struct error error;
        char name[32];
        double taken;

        whistle.segment = segment_of(world, VERIFIER, job, i);
        PLAY(world, VERIFIER, ledger_seal_claim, &claim, &whistle);
        pass_time(world, 1);
        (void)snprintf(name, sizeof(name), "whistle %u", i);
        taken = seconds();
        check(ledger_claim(world->ledgers[VERIFIER], name, terms, &whistle, &error), &error);
        taken = seconds() - taken;
        check(ledger_look(world->ledgers[VERIFIER], &outcome, name, &error), &error);
        assert_false(hash32_is_zero(&outcome.transaction)); /* signed, and sent */
        settle_down(world, VERIFIER, name);
        best = taken < best ? taken : best;
    }
    return best;
}

/* A thousand commits a minute, and a claim in a tenth of a second from the decision to the pool. */
static void test_commits_and_claims_are_quick(void **state)
{
    struct world world;
    struct game_terms terms;
    struct ledger_job seen = {0};
    struct hash32 job;
    struct error error;
    struct digest root = root_of(1);
    double start;
    double taken;

    (void)state;
    set_up(&world, false, "quick");
    terms = usual_terms(&world);
    terms.steps = COMMITS;
    terms.segment_steps = 1;
    terms.segment_reward = 1;
    terms.coverage_ppm = 0;
    PLAY(&world, CLIENT, ledger_open_job, &job, &terms);
    PLAY(&world, SOLVER, ledger_accept, &job, &terms);
    start = seconds();
    for (uint32_t i = 0; i < COMMITS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "commit %u", i);
        check(ledger_commit(world.ledgers[SOLVER], name, &job, i, &root, &error), &error);
    }
    while (seen.committed < COMMITS) {
        work(world.ledgers[SOLVER]);
        check(ledger_get_job(world.ledgers[SOLVER], &seen, &job, &error), &error);
    }
    taken = seconds() - start;
    print_message("%d commits in %.2f s: %.0f a minute\n", COMMITS, taken, 60 * COMMITS / taken);
    assert_true(60 * COMMITS / taken > 1000);

    taken = quickest_claim(&world, &job, &terms);
    print_message("a claim was signed and sent in %.0f ms\n", 1000 * taken);
    assert_true(taken < CLAIM_S_MOST);
    tear_down(&world);
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct ledger_options options;
    struct ledger *ledger;
    struct world world;
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
    set_up(&world, true, "refusals");
    assert_int_equal(ledger_local_init(world.url + 6, signer_address(world.signers[0]), &error),
                     STATUS_REFUSED);
    options.url = world.url;
    check(ledger_open(&ledger, &options, &error), &error);
    assert_int_equal(ledger_submit(ledger, "x", &move, &error), STATUS_USAGE); /* no key */
    ledger_close(ledger);
    assert_int_equal(ledger_submit(world.ledgers[0], "", &move, &error), STATUS_USAGE);
    terms = usual_terms(&world);
    terms.segment_reward = 900 * WEI_PER_ETHER; /* more than the purse holds */
    assert_int_equal(ledger_open_job(world.ledgers[0], "rich", &job, &terms, &error),
                     STATUS_REFUSED);
    assert_int_equal(ledger_get_job(world.ledgers[0], &(struct ledger_job){0}, &job, &error),
                     STATUS_NOT_FOUND);
    tear_down(&world);
}

static struct game_move numbered_seal(uint32_t process, uint32_t number)
{
    struct game_move move = {.kind = GAME_SEAL_CLAIM};

    move.seal.bytes[0] = (uint8_t)(1 + process);
    move.seal.bytes[1] = (uint8_t)number;
    return move;
}

/* In a process of its own: submits its moves, in an order of its own, until it is killed. */
static void submit_moves(const struct world *world, uint32_t process)
{
    struct secret_key key = anvil_key(process % PLAYERS);
    struct ledger_options options = world->options;
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

static pid_t start_process(const struct world *world, uint32_t process)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        submit_moves(world, process);
    }
    return child;
}

/* Several processes share the file; each is killed once at some instant and started again, and
 * submits everything from the beginning. Every move must be there once. */
static void test_processes_that_die_share_an_embedded_ledger(void **state)
{
    struct world world;
    struct ledger_entry entry = {0};
    struct error error;
    pid_t children[PROCESSES];
    uint64_t random = 3;
    uint32_t counts[PROCESSES][MOVES] = {{0}};
    uint64_t last_height = 0;

    (void)state;
    set_up(&world, true, "shared");
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = start_process(&world, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        usleep((useconds_t)test_random_below(&random, 60000));
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
        children[i] = start_process(&world, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int result = -1;

        (void)waitpid(children[i], &result, 0);
        assert_int_equal(result, 0);
    }
    while (ledger_next(world.ledgers[0], &entry, entry.number, 0, &error) == STATUS_OK) {
        assert_true(entry.height > last_height); /* a move is a block */
        last_height = entry.height;
        counts[entry.event.seal.bytes[0] - 1][entry.event.seal.bytes[1]]++;
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        for (uint32_t j = 0; j < MOVES; j++) {
            assert_int_equal(counts[i][j], 1);
        }
    }
    tear_down(&world);
}

/* ---- before the referee ----------------------------------------------------------- */

/* The last event of a kind, waited for; what it borrows is the ledger's. */
static struct ledger_entry last_event(struct world *world, int player, enum game_event_kind kind,
                                      uint64_t after)
{
    struct error error;

    for (int i = 0; i < 200; i++) {
        struct ledger_entry entry = {.number = after};

        work(world->ledgers[player]);
        while (ledger_next(world->ledgers[player], &entry, entry.number, 0, &error) == STATUS_OK) {
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
static struct hash32 open_disputed(struct world *world, struct game_case *shown,
                                   struct game_terms *terms, const struct walk *walk)
{
    struct digest root;
    struct hash32 job;

    memset(shown, 0, sizeof(*shown));
    endian_store_be64(shown->job_header + 12, 1);
    endian_store_be64(shown->job_header + 20, 1);
    memcpy(shown->job_header + 56, walk->context.program.bytes, DIGEST_SIZE);
    memcpy(shown->job_header + 184, walk->context.before.bytes, DIGEST_SIZE);
    *terms = usual_terms(world);
    terms->steps = 1;
    terms->segment_steps = 1;
    terms->attestors = 0;
    terms->coverage_ppm = 0;
    commit_job_id(&terms->job_id, shown->job_header, sizeof(shown->job_header));
    shown->client = *signer_address(world->signers[CLIENT]);
    shown->salt = terms->salt;
    shown->pre_state = walk->context.before;
    shown->post_state = walk->context.after;
    commit_list_root(&root, COMMIT_SEGMENT, 0, &walk->context.after, 1);
    PLAY(world, CLIENT, ledger_open_job, &job, terms);
    PLAY(world, SOLVER, ledger_accept, &job, terms);
    PLAY(world, SOLVER, ledger_commit, &job, 0, &root);
    shown->segment = segment_of(world, VERIFIER, &job, 0);
    return job;
}

static void play_dispute(struct world *world, struct walk *walk)
{
    struct ledger_whistle whistle = {.step = 0};
    struct game_terms terms;
    struct game_case shown;
    struct buffer evidence;
    struct hash32 claim;
    uint64_t asked = 0;
    uint64_t told = 0;

    whistle.job = open_disputed(world, &shown, &terms, walk);
    whistle.segment = shown.segment;
    whistle.pre_state = shown.pre_state;
    whistle.post_state = shown.post_state;
    PLAY(world, VERIFIER, ledger_seal_claim, &claim, &whistle);
    pass_time(world, 2);
    PLAY(world, VERIFIER, ledger_claim, &terms, &whistle);
    PLAY(world, SOLVER, ledger_answer, &claim, &walk->context.trace);
    while (walk_question(walk)) {
        struct ledger_entry entry;

        PLAY(world, VERIFIER, ledger_ask, &claim, &shown, walk->question.data, walk->question.size);
        restart(world, SOLVER);
        entry = last_event(world, SOLVER, GAME_ASKED, asked);
        asked = entry.number;
        walk_answer(walk, &entry.event.payload);
        PLAY(world, SOLVER, ledger_tell, &claim, &entry.event.payload, walk->told, walk->told_size);
        restart(world, VERIFIER);
        entry = last_event(world, VERIFIER, GAME_TOLD, told);
        told = entry.number;
        check(hunt_take(&walk->hunt, entry.event.payload.bytes, entry.event.payload.size, NULL),
              NULL);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, walk);
    PLAY(world, VERIFIER, ledger_convict, &claim, &shown, evidence.data, evidence.size);
    buffer_release(&evidence);
    assert_true(owed_to(world, VERIFIER) == terms.claim_bond + terms.stake / 2);
    assert_true(owed_to(world, SOLVER) == 0);
}

static void test_dispute_is_played_through_the_interface_of_both(void **state)
{
    (void)state;
    for (int embedded = 1; embedded >= 0; embedded--) {
        struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
        struct world world;
        struct walk walk;

        walk_open(&walk, &lie, false);
        set_up_with(&world, embedded == 1, true, embedded == 1 ? "court" : "court-evm");
        play_dispute(&world, &walk);
        tear_down(&world);
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
