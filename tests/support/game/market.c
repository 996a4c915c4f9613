/* market.c - see market.h. */
#include "tests/support/game/market.h"
#include "tests/support/chain/standing_segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/referee_code.h"
#include "chain/game/terms.h"
#include "chain/job/job_record.h"
#include "chain/local/ledger_local.h"
#include "tests/support/test.h"

enum {
    START_S = 1000000,
    WAIT_MS = 600000, /* a busy machine is no failure */
    LOOKS_MAX = 30000,
    ROUNDS_MAX = 20000,
    QUIET_ROUNDS = 3,
    SOON_S = 120, /* a node waits for its turn to draw */
};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static void open_players(struct market *market, bool embedded, const char *name)
{
    struct error error;

    for (uint32_t i = 0; i < MARKET_PLAYERS; i++) {
        struct ledger_options options = market->options;
        struct secret_key key = anvil_key(i);

        error_init(&error);
        market->signers[i] = signer_new(&key, &error);
        assert_non_null(market->signers[i]);
        (void)snprintf(market->folders[i], sizeof(market->folders[i]), "%s/%s-%u", test_temp_dir(),
                       name, i);
        check(file_make_folder(market->folders[i], &error, 0700), &error);
        options.signer = market->signers[i];
        options.state_dir = market->folders[i];
        check(ledger_open(&market->ledgers[i], &options, &error), &error);
        if (embedded) {
            check(ledger_local_set_clock(market->ledgers[i], market->now_s, &error), &error);
            check(ledger_local_faucet(market->ledgers[i], signer_address(market->signers[i]),
                                      1000 * WEI_PER_ETHER, &error),
                  &error);
        }
    }
}

/* Rules, examiner, seeds, referee: as the chain's operator deploys them. Returns the registry. */
static struct address deploy_court(struct rpc *rpc)
{
    const struct address partners[] = {
        anvil_deploy_examiner(rpc, 9), anvil_deploy_seeds(rpc, 9), {{0}}};
    const struct address referee = anvil_deploy_with(rpc, 9, REFEREE_CODE, partners, 3, "0x0");

    return address_of_contract(&referee, 1);
}

void market_open(struct market *market, bool embedded, const char *name)
{
    struct error error;

    error_init(&error);
    memset(market, 0, sizeof(*market));
    ledger_options_init(&market->options);
    market->options.depth = 2;
    market->options.url = market->url;
    market->now_s = START_S;
    market->seats = 1;
    market->entries[MARKET_VERIFIER] = 1;
    if (embedded) {
        (void)snprintf(market->url, sizeof(market->url), "local:%s/%s.ledger", test_temp_dir(),
                       name);
        check(ledger_local_init(market->url + 6, &error), &error);
    } else {
        market->anvil = anvil_start(NULL);
        market->rpc = anvil_rpc(market->anvil);
        (void)snprintf(market->url, sizeof(market->url), "%s", anvil_url(market->anvil));
        market->options.registry = deploy_court(market->rpc);
    }
    open_players(market, embedded, name);
}

void market_close(struct market *market)
{
    for (int i = 0; i < MARKET_PLAYERS; i++) {
        ledger_close(market->ledgers[i]);
        signer_free(market->signers[i]);
    }
    rpc_free(market->rpc);
    anvil_stop(market->anvil);
}

void market_leave(struct market *market)
{
    for (int i = 0; i < MARKET_PLAYERS; i++) {
        ledger_close(market->ledgers[i]);
        market->ledgers[i] = NULL;
    }
}

void market_return(struct market *market)
{
    struct ledger_clock clock;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < MARKET_PLAYERS; i++) {
        struct ledger_options options = market->options;

        options.signer = market->signers[i];
        options.state_dir = market->folders[i];
        check(ledger_open(&market->ledgers[i], &options, &error), &error);
    }
    check(ledger_get_clock(market->ledgers[0], &clock, &error), &error);
    market->now_s = clock.time_s;
}

void market_pass_time(struct market *market, uint32_t seconds)
{
    struct error error;

    error_init(&error);
    if (market->anvil == NULL) {
        market->now_s += seconds;
        check(ledger_local_set_clock(market->ledgers[0], market->now_s, &error), &error);
        return;
    }
    anvil_pass_time(market->rpc, seconds);
}

/* ---- moves ---------------------------------------------------------------- */

#define PLAY(market, player, call, ...)                                                            \
    do {                                                                                           \
        struct ledger_outcome play_outcome;                                                        \
        struct error play_error;                                                                   \
        char play_name[32];                                                                        \
        error_init(&play_error);                                                                   \
        (void)snprintf(play_name, sizeof(play_name), "move %u", (market)->moves++);                \
        check(call((market)->ledgers[player], play_name, __VA_ARGS__, &play_error), &play_error);  \
        check(ledger_wait((market)->ledgers[player], &play_outcome, play_name, false, WAIT_MS,     \
                          &play_error),                                                            \
              &play_error);                                                                        \
        if (play_outcome.state == LEDGER_MOVE_REFUSED) {                                           \
            fail_msg("%s: %s", play_name, game_refusal_text(play_outcome.refusal.kind));           \
        }                                                                                          \
    } while (0)

struct game_terms market_terms(struct market *market, const struct job *job)
{
    struct ledger_clock clock;
    struct game_terms of_job;
    struct error error;

    error_init(&error);
    check(ledger_get_clock(market->ledgers[0], &clock, &error), &error);
    check(terms_of_job(&of_job, job, &error), &error);
    return (struct game_terms){.job_id = of_job.job_id,
                               .program_root = of_job.program_root,
                               .data_root = of_job.data_root,
                               .first_state_root = of_job.first_state_root,
                               .salt = ++market->salt,
                               .steps = of_job.steps,
                               .segment_steps = of_job.segment_steps,
                               .reward = WEI_PER_ETHER / 10,
                               .fee = WEI_PER_ETHER / 100,
                               .stake = 2 * WEI_PER_ETHER,
                               .bond = WEI_PER_ETHER / 10,
                               .query_fee = WEI_PER_ETHER / 1000,
                               .seats = market->seats,
                               .coverage_ppm = market->seats > 0 ? GAME_PPM : 0,
                               .panel_least = market->seats,
                               .segment_period_s = 360000,
                               .seal_period_s = MARKET_SEAL_S,
                               .reveal_period_s = MARKET_REVEAL_S,
                               .claim_period_s = MARKET_CLAIM_S,
                               .clock_s = MARKET_CLOCK_S,
                               .deadline_s = clock.time_s + 1000000};
}

static void commit_one(struct market *market, const struct hash32 *key, struct bundle *bundle,
                       uint32_t index, uint32_t steps, bool diverged)
{
    uint64_t first = index * bundle_job(bundle)->segment_length;
    struct digest states[GAME_STATES_MAX];
    struct game_hashes list = {states, steps};
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < steps; i++) {
        check(bundle_state_root(&states[i], bundle, first + i + 1, &error), &error);
    }
    PLAY(market, MARKET_SOLVER, ledger_commit, key, index, &list, diverged);
}

static struct hash32 open_job(struct market *market, struct game_terms *terms,
                              const struct job *job)
{
    const struct game_bytes nowhere = {(const uint8_t *)"", 0};
    struct hash32 key;

    *terms = market_terms(market, job);
    if (market->retouch != NULL) {
        market->retouch(terms);
    }
    PLAY(market, market->client, ledger_open_job, &key, terms, &nowhere);
    return key;
}

struct hash32 market_open_job(struct market *market, const struct job *job)
{
    struct game_terms terms;

    return open_job(market, &terms, job);
}

void market_close_job(struct market *market, const struct hash32 *job)
{
    PLAY(market, market->client, ledger_close_job, job);
}

static struct hash32 accept(struct market *market, const struct bundle *bundle)
{
    const struct game_bytes nowhere = {(const uint8_t *)"", 0};
    const struct game_hashes path = {NULL, 0};
    struct game_terms terms;
    struct hash32 key = open_job(market, &terms, bundle_job(bundle));

    for (int i = 0; i < MARKET_PLAYERS; i++) {
        if (market->entries[i] > 0 && terms.seats > 0) {
            PLAY(market, i, ledger_enlist, &key, &terms, market->entries[i], &path, &nowhere);
        }
    }
    if (terms.seats > 0) { /* the panel has time to come together */
        market_pass_time(market, terms.seal_period_s + 1);
    }
    PLAY(market, MARKET_SOLVER, ledger_accept, &key, &terms, &path, &nowhere);
    return key;
}

static void commit_some(struct market *market, const struct hash32 *key, struct bundle *bundle,
                        uint32_t first, uint32_t end)
{
    const struct job *job = bundle_job(bundle);

    for (uint32_t i = first; i < end; i++) {
        uint64_t left = job->steps - i * job->segment_length;

        commit_one(market, key, bundle, i,
                   (uint32_t)(left < job->segment_length ? left : job->segment_length), false);
    }
}

struct hash32 market_accept(struct market *market, const char *path)
{
    struct bundle *bundle = NULL;
    struct hash32 key;
    struct error error;

    error_init(&error);
    check(bundle_open(&bundle, path, BUNDLE_READ, &error), &error);
    key = accept(market, bundle);
    bundle_close(bundle);
    return key;
}

void market_commit_some(struct market *market, const struct hash32 *job, const char *path,
                        uint32_t first, uint32_t end)
{
    struct bundle *bundle = NULL;
    struct error error;

    error_init(&error);
    check(bundle_open(&bundle, path, BUNDLE_READ, &error), &error);
    commit_some(market, job, bundle, first, end);
    bundle_close(bundle);
}

struct hash32 market_commit(struct market *market, const char *path)
{
    struct bundle *bundle = NULL;
    struct hash32 key;
    struct error error;

    error_init(&error);
    check(bundle_open(&bundle, path, BUNDLE_READ, &error), &error);
    key = accept(market, bundle);
    commit_some(market, &key, bundle, 0, (uint32_t)job_segments(bundle_job(bundle)));
    bundle_close(bundle);
    return key;
}

struct hash32 market_commit_diverged(struct market *market, const char *path, uint32_t index,
                                     uint32_t steps)
{
    struct bundle *bundle = NULL;
    struct hash32 key;
    struct error error;

    error_init(&error);
    check(bundle_open(&bundle, path, BUNDLE_READ, &error), &error);
    key = accept(market, bundle);
    commit_some(market, &key, bundle, 0, index);
    commit_one(market, &key, bundle, index, steps, true);
    bundle_close(bundle);
    return key;
}

void market_mine(struct market *market, const struct hash32 *job, int blocks)
{
    const struct game_bytes nowhere = {(const uint8_t *)"", 0};

    for (int i = 0; i < blocks; i++) {
        PLAY(market, MARKET_CLIENT, ledger_announce, job, &nowhere);
    }
}

uint32_t market_draw(struct market *market, enum market_player player, const struct hash32 *job,
                     uint32_t index)
{
    struct game_segment segment = market_segment(market, job, index);
    const struct game_commits commits = {segment.height, segment.time_s};
    uint32_t place = GAME_PLACES_MAX;
    struct job_record record;
    struct error error;

    error_init(&error);
    market_mine(market, job, 3); /* blocks that must be there before the draw */
    PLAY(market, MARKET_CLIENT, ledger_draw, job, &segment, &commits);
    job_record_init(&record, job, NULL);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    check(job_record_follow(&record, market->ledgers[MARKET_CLIENT], &error), &error);
    for (uint32_t i = 0; i < record.seat_count && place == GAME_PLACES_MAX; i++) {
        if (record.seats[i].index == index &&
            address_equal(&record.seats[i].owner, signer_address(market->signers[player]))) {
            place = record.seats[i].place;
        }
    }
    job_record_free(&record);
    return place;
}

static struct ledger_verdict verdict_of(struct market *market, const struct hash32 *job,
                                        uint32_t index, uint32_t place, enum game_verdict verdict,
                                        uint8_t number)
{
    struct ledger_verdict made = {.job = *job,
                                  .segment = market_segment(market, job, index),
                                  .place = place,
                                  .verdict = verdict};

    memset(made.salt.bytes, number, HASH32_SIZE);
    if (verdict == GAME_VERDICT_RIGHT) {
        memset(&made.leaves, number, sizeof(made.leaves));
    }
    return made;
}

void market_seal(struct market *market, enum market_player player, const struct hash32 *job,
                 uint32_t index, uint32_t place, enum game_verdict verdict, uint8_t number)
{
    struct ledger_verdict made = verdict_of(market, job, index, place, verdict, number);

    PLAY(market, player, ledger_seal, &made);
}

void market_reveal(struct market *market, enum market_player player, const struct hash32 *job,
                   uint32_t index, uint32_t place, enum game_verdict verdict, uint8_t number)
{
    struct ledger_verdict made = verdict_of(market, job, index, place, verdict, number);

    PLAY(market, player, ledger_reveal, &made);
}

void market_answer(struct market *market, enum market_player player, const struct hash32 *claim,
                   const struct digest *trace_root)
{
    PLAY(market, player, ledger_answer, claim, trace_root);
}

void market_timeout(struct market *market, enum market_player player, const struct hash32 *claim)
{
    PLAY(market, player, ledger_timeout, claim);
}

struct game_segment market_segment(struct market *market, const struct hash32 *job, uint32_t index)
{
    struct game_segment segment;
    struct error error;

    for (int i = 0; i < LOOKS_MAX; i++) {
        error_init(&error);
        (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
        if (standing_segment(market->ledgers[MARKET_CLIENT], &segment, job, index, &error) ==
            STATUS_OK) {
            return segment;
        }
        (void)usleep(10000);
    }
    fail_msg("segment %u is not on the ledger", index);
    return segment;
}

struct ledger_job market_job(struct market *market, const struct hash32 *job)
{
    struct ledger_job found;
    struct error error;

    error_init(&error);
    check(ledger_get_job(market->ledgers[MARKET_CLIENT], &found, job, &error), &error);
    return found;
}

void market_settle(struct market *market, const struct hash32 *job, uint32_t index)
{
    struct game_segment segment = market_segment(market, job, index);

    PLAY(market, MARKET_SOLVER, ledger_settle, job, &segment, NULL);
}

static void look_at_money(struct market *market, enum market_player player, wei *purse, wei *owed)
{
    struct error error;

    error_init(&error);
    check(ledger_get_account(market->ledgers[MARKET_CLIENT], purse, owed,
                             signer_address(market->signers[player]), &error),
          &error);
}

wei market_owed(struct market *market, enum market_player player)
{
    wei purse = 0;
    wei owed = 0;

    look_at_money(market, player, &purse, &owed);
    return owed;
}

wei market_money(struct market *market, enum market_player player)
{
    wei purse = 0;
    wei owed = 0;

    look_at_money(market, player, &purse, &owed);
    return purse + owed;
}

uint32_t market_count(struct market *market, enum game_event_kind kind,
                      const struct address *account)
{
    struct ledger_entry entry = {0};
    struct error error;
    uint32_t count = 0;

    error_init(&error);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        count += entry.kind == LEDGER_EVENT && entry.event.kind == kind &&
                 (account == NULL || address_equal(account, &entry.event.account));
    }
    return count;
}

/* ---- the node ------------------------------------------------------------- */

static uint64_t now_ms(void *context)
{
    struct timespec now;

    (void)context;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void market_node_defaults(struct market_node *node, struct market *market, const char *mirror)
{
    static const char *const data[] = {"fixtures/images/shapes.npy",
                                       "fixtures/images/shapes-labels.npy",
                                       "fixtures/text/village.u8"};

    memset(node, 0, sizeof(*node));
    node->market = market;
    node->ledger = market->ledgers[MARKET_VERIFIER];
    node->mirrors[0] = mirror;
    (void)snprintf(node->cache, sizeof(node->cache), "%.500s/cache",
                   market->folders[MARKET_VERIFIER]);
    node->options = (struct node_options){.mode = NODE_ACT,
                                          .entries = 1,
                                          .extra = 1.0,
                                          .checks_max = 2,
                                          .reach = 16,
                                          .mirrors = node->mirrors,
                                          .mirror_count = mirror == NULL ? 0 : 1,
                                          .data = data,
                                          .data_count = 3,
                                          .cache = node->cache,
                                          .memory_max = (uint64_t)2 << 30,
                                          .disk_max = (uint64_t)1 << 30,
                                          .mirror_timeout_s = 5,
                                          .check_time_s = 600,
                                          .threads = 1,
                                          .grace_s = MARKET_GRACE_S};
}

static enum status start_check(void *context, uint64_t number, const struct check_request *request,
                               struct error *error)
{
    struct market_checks *checks = context;
    struct check_request *copy;

    if (checks->count == MARKET_CHECKS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "all checkers are busy");
    }
    copy = malloc(sizeof(*copy));
    assert_non_null(copy);
    *copy = *request;
    checks->requests[checks->count] = copy;
    checks->numbers[checks->count++] = number;
    return STATUS_OK;
}

static enum status take_check(void *context, uint64_t *number, struct check_result *result,
                              struct error *error)
{
    struct market_checks *checks = context;

    (void)error;
    if (checks->count == 0) {
        return STATUS_NOT_FOUND;
    }
    checks->count--;
    *number = checks->numbers[checks->count];
    check_run(result, checks->requests[checks->count], &dispute_child, NULL);
    free(checks->requests[checks->count]);
    return STATUS_OK;
}

enum status market_node_try_open(struct market_node *node, struct error *error)
{
    struct node_ports ports = {
        .ledger = node->ledger, .store = &node->store, .keep = node->keep, .now_ms = now_ms};
    const char *folder = node->market->folders[MARKET_VERIFIER];
    char path[700];
    enum status status;

    (void)snprintf(path, sizeof(path), "%s/verdicts.db", folder);
    status = verdict_db_open(&node->verdicts, path, error);
    if (status == STATUS_OK) {
        (void)snprintf(path, sizeof(path), "%s/node.db", folder);
        status = store_open(&node->store, path, STORE_WRITE, error);
    }
    if (status == STATUS_OK && !node->in_process) {
        status = workers_open(&node->workers, node->options.checks_max + NODE_PLACES_BESIDE,
                              node->options.check_time_s, node->program, error);
    }
    if (status == STATUS_OK) {
        ports.verdicts = node->verdicts;
        ports.checks = node->in_process
                           ? (struct check_port){&node->checks, start_check, take_check}
                           : workers_port(node->workers);
        status = node_open(&node->node, &node->options, &ports, error);
    }
    return status;
}

void market_node_open(struct market_node *node)
{
    struct error error;

    error_init(&error);
    check(market_node_try_open(node, &error), &error);
}

void market_node_close(struct market_node *node)
{
    node_close(&node->node);
    workers_close(node->workers);
    for (; node->checks.count > 0; node->checks.count--) {
        free(node->checks.requests[node->checks.count - 1]);
    }
    store_close(&node->store);
    verdict_db_close(node->verdicts);
    node->workers = NULL;
    node->verdicts = NULL;
}

int64_t market_node_number(struct market_node *node, const char *query)
{
    int64_t number = 0;
    struct error error;

    error_init(&error);
    check(database_number(&node->store.sql, &number, 0, &error, query, ""), &error);
    return number;
}

static bool is_quiet(struct market_node *node)
{
    char query[256];

    (void)snprintf(query, sizeof(query),
                   "SELECT (SELECT count(*) FROM tasks WHERE state = 1) + (SELECT count(*) FROM"
                   " actions WHERE state = 1 OR (state = 0 AND (due_s < %llu OR tries > 0)))",
                   (unsigned long long)node->node.clock.time_s + SOON_S);
    return market_node_number(node, query) == 0;
}

void market_node_settle(struct market_node *node)
{
    int quiet = 0;

    for (int i = 0; i < ROUNDS_MAX && quiet < QUIET_ROUNDS;) {
        struct error error;
        bool busy = false;

        error_init(&error);
        check(node_round(&node->node, &busy, &error), &error);
        quiet = busy || !is_quiet(node) ? 0 : quiet + 1;
        if (node->node.running_count > 0) {
            (void)usleep(2000); /* a child may take as long as it wants: no time passes for it */
        } else {
            i++;
            market_pass_time(node->market, 1);
        }
    }
    assert_int_equal(quiet, QUIET_ROUNDS);
}
