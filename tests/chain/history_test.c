/*
 * Goal: the embedded ledger and the contract are the same game.
 * Method: random histories, most moves plausible and some absurd, are played on both: on the
 * contract by a driver that plays a whole history in one transaction, with a clock of the test's
 * own. Every event's bytes, every refusal's bytes and every balance must be equal, and the
 * contract must hold exactly what it owes, has in escrow and at stake. "make soak" plays 10,000.
 */
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/abi.h"
#include "chain/hex_data.h"
#include "chain/local_game.h"
#include "tests/contracts/harness_code.h"
#include "tests/support/anvil.h"
#include "tests/support/promised.h"

enum {
    HISTORIES_FULL = 10000,
    HISTORIES_SHARE = 150,
    HISTORIES_OF_A_REGISTRY = 50,
    HISTORIES_OF_A_CHAIN = 500,
    MOVES = 150,
    PLAYERS = 6, /* number 0 is the referee */
    JOBS = 2,
    SEGMENTS = 64,
    CLAIMS = 32,
    SEALS = 8,
    ATTESTATIONS = 32,
    ATTESTED = 8192,
    PLAIN_MOVE_MAX = 1024, /* bytes of a move without a payload, or of its events */
    SCRIPT_MAX = MOVES * (35 + PLAIN_MOVE_MAX),
    LOGS_MAX = MOVES * LOCAL_EVENTS_MAX,
};

struct sealed_claim {
    struct game_move move;
    uint32_t player;
};

/* All that the test knows of one history; it learns from the embedded side's events. */
struct history {
    uint64_t random;
    sqlite3 *database;
    struct local_store store;
    struct error error;
    struct address players[PLAYERS];
    uint64_t now_s;
    uint64_t height;
    struct hash32 jobs[JOBS];
    uint32_t job_count;
    uint64_t next_salt;
    struct {
        struct hash32 job;
        struct game_segment segment;
    } segments[SEGMENTS];
    uint32_t segment_count;
    struct hash32 claims[CLAIMS];
    uint32_t claim_count;
    struct sealed_claim seals[SEALS];
    uint32_t seal_count;
    struct {
        struct hash32 job;
        uint32_t index;
        struct address attestor;
    } attestations[ATTESTATIONS];
    uint32_t attestation_count;
    struct promised_segment attested[ATTESTED]; /* every segment of this registry */
    uint32_t attested_count;
    uint8_t script[SCRIPT_MAX];
    size_t script_size;
    /* What the embedded side told, in order: */
    struct game_log logs[LOGS_MAX];
    uint8_t log_bytes[LOGS_MAX][GAME_LOG_SIZE_MAX];
    uint32_t log_count;
    struct {
        bool done;
        uint8_t bytes[GAME_REVERT_SIZE];
        size_t size;
        uint32_t logs_before;
        enum game_move_kind kind;
    } outcomes[MOVES];
    uint32_t outcome_count;
    wei paid_in; /* of this registry, and out of it */
    wei paid_out;
    uint32_t done_of[GAME_MOVE_KINDS];
    uint32_t refused_of[GAME_REFUSAL_KINDS];
};

static uint32_t below(struct history *history, uint32_t limit)
{
    return (uint32_t)test_random_below(&history->random, limit);
}

static bool chance(struct history *history, uint32_t percent)
{
    return below(history, 100) < percent;
}

/* ---- the embedded side -------------------------------------------------------- */

static enum status fake_block_hash(void *context, struct hash32 *hash, uint64_t height)
{
    const struct history *history = context;
    uint8_t word[UINT256_SIZE];
    struct uint256 number = uint256_of(height);

    memset(hash, 0, sizeof(*hash));
    if (height < history->height && height + 256 >= history->height) {
        uint256_to_bytes(word, &number);
        *hash = keccak256(word, sizeof(word));
    }
    return STATUS_OK;
}

static void learn(struct history *history, const struct game_event *event)
{
    if (event->kind == GAME_COMMITTED) {
        uint32_t at =
            history->segment_count < SEGMENTS ? history->segment_count++ : below(history, SEGMENTS);

        history->segments[at].job = event->job;
        history->segments[at].segment = event->segment;
        assert_true(history->attested_count < ATTESTED);
        history->attested[history->attested_count].segment =
            game_segment_hash(&event->job, &event->segment);
        history->attested[history->attested_count].job = event->job;
        history->attested[history->attested_count++].index = event->index;
    } else if (event->kind == GAME_CLAIMED || event->kind == GAME_ACCUSED) {
        uint32_t at =
            history->claim_count < CLAIMS ? history->claim_count++ : below(history, CLAIMS);

        history->claims[at] = event->claim;
    } else if (event->kind == GAME_ATTESTED) {
        uint32_t at = history->attestation_count < ATTESTATIONS ? history->attestation_count++
                                                                : below(history, ATTESTATIONS);

        history->attestations[at].job = event->job;
        history->attestations[at].index = event->index;
        history->attestations[at].attestor = event->account;
    } else if (event->kind == GAME_OPENED) {
        uint32_t at = history->job_count < JOBS ? history->job_count++ : below(history, JOBS);

        history->jobs[at] = event->job;
    }
}

static void sql(struct history *history, const char *text)
{
    assert_int_equal(sqlite3_exec(history->database, text, NULL, NULL, NULL), SQLITE_OK);
}

static void play_embedded(struct history *history, const struct game_move *move, uint32_t player)
{
    struct local_game game = {
        .store = &history->store,
        .sender = history->players[player],
        .referee = history->players[0],
        .now_s = history->now_s,
        .height = history->height,
        .block_hash = fake_block_hash,
        .context = history,
    };
    uint32_t at = history->outcome_count++;
    enum status status;

    sql(history, "SAVEPOINT move");
    status = local_game_play(&game, move);
    history->outcomes[at].done = status == STATUS_OK;
    history->outcomes[at].size = 0;
    history->outcomes[at].logs_before = history->log_count;
    history->outcomes[at].kind = move->kind;
    if (status == STATUS_OK) {
        for (uint32_t i = 0; i < game.event_count; i++) {
            game_event_encode(&history->logs[history->log_count],
                              history->log_bytes[history->log_count], &game.events[i]);
            history->log_count++;
            learn(history, &game.events[i]);
            if (game.events[i].kind == GAME_WITHDRAWN) {
                history->paid_out += game.events[i].amount;
            }
        }
        history->paid_in += move->value;
        history->done_of[move->kind]++;
        sql(history, "RELEASE move");
        return;
    }
    assert_int_equal(status, STATUS_REFUSED);
    history->refused_of[game.refusal.kind]++;
    if (game.refusal.kind != GAME_REFUSED_NOT) {
        game_refusal_encode(history->outcomes[at].bytes, &history->outcomes[at].size,
                            &game.refusal);
    }
    sql(history, "ROLLBACK TO move; RELEASE move");
}

/* ---- choosing a move ------------------------------------------------------------ */

static wei small_amount(struct history *history)
{
    return (wei)below(history, 1000) + 1;
}

static struct game_terms random_terms(struct history *history)
{
    struct game_terms terms;

    memset(&terms, 0, sizeof(terms));
    memset(terms.job_id.bytes, 0x11, DIGEST_SIZE);
    memset(terms.data_root.bytes, 0x22, DIGEST_SIZE);
    terms.salt = history->next_salt++;
    terms.segment_steps = 1 + below(history, 5);
    terms.steps = 1 + below(history, 4 * terms.segment_steps);
    terms.segment_reward = small_amount(history);
    terms.attest_fee = chance(history, 20) ? 0 : small_amount(history);
    terms.stake = 2000 + small_amount(history);
    terms.claim_bond = small_amount(history);
    terms.attest_bond = small_amount(history);
    terms.attestors = below(history, 4);
    terms.coverage_ppm = terms.attestors == 0  ? 0
                         : chance(history, 50) ? GAME_PPM
                                               : below(history, GAME_PPM + 1);
    terms.segment_period_s = 10 + below(history, 100);
    terms.attest_period_s = 5 + below(history, 20);
    terms.reveal_period_s = 5 + below(history, 20);
    terms.claim_period_s = 5 + below(history, 40);
    terms.response_period_s = 5 + below(history, 20);
    terms.deadline_s = history->now_s + 100 + below(history, 1500);
    return terms;
}

/* One term that is out of range, or at its edge. */
static void spoil_terms(struct history *history, struct game_terms *terms)
{
    switch (below(history, 14)) {
    case 0:
        memset(&terms->job_id, 0, sizeof(terms->job_id));
        break;
    case 1:
        terms->steps = chance(history, 50) ? 0 : GAME_TIME_MAX + below(history, 2);
        break;
    case 2:
        terms->segment_steps = chance(history, 50) ? 0 : GAME_PERIOD_MAX + below(history, 2);
        break;
    case 3:
        terms->segment_reward = chance(history, 50) ? 0 : WEI_MAX + below(history, 2);
        break;
    case 4:
        terms->attest_fee = WEI_MAX + below(history, 2);
        break;
    case 5:
        terms->stake = chance(history, 50) ? 0 : WEI_MAX + below(history, 2);
        break;
    case 6:
        terms->claim_bond = chance(history, 50) ? 0 : terms->stake + below(history, 2);
        break;
    case 7:
        terms->attest_bond = chance(history, 50) ? 0 : WEI_MAX + below(history, 2);
        break;
    case 8:
        terms->attestors = GAME_ATTESTORS_MAX + below(history, 2);
        break;
    case 9:
        terms->coverage_ppm = GAME_PPM + below(history, 2);
        break;
    case 10:
        terms->segment_period_s = chance(history, 50) ? 0 : GAME_PERIOD_MAX + below(history, 2);
        break;
    case 11:
        terms->response_period_s = chance(history, 50) ? 0 : GAME_PERIOD_MAX + below(history, 2);
        break;
    case 12:
        terms->deadline_s = history->now_s + below(history, 2);
        break;
    default:
        terms->salt = terms->salt > 0 ? terms->salt - 1 : 0; /* the job exists already */
        break;
    }
}

static struct hash32 random_hash(struct history *history)
{
    struct hash32 hash;

    test_random_fill(&history->random, hash.bytes, sizeof(hash.bytes));
    return hash;
}

static struct digest random_digest(struct history *history)
{
    struct digest digest;

    test_random_fill(&history->random, digest.bytes, sizeof(digest.bytes));
    if (chance(history, 3)) {
        memset(&digest, 0, sizeof(digest));
    }
    return digest;
}

/* Trace roots are derived, so that a reveal can find what was sealed. */
static struct digest trace_root_of(uint32_t player, uint32_t index)
{
    struct digest digest;

    memset(digest.bytes, (int)(1 + 16 * player + index), sizeof(digest.bytes));
    return digest;
}

static uint32_t player_of(struct history *history, const struct address *address)
{
    for (uint32_t i = 0; i < PLAYERS; i++) {
        if (address_equal(&history->players[i], address)) {
            return i;
        }
    }
    return below(history, PLAYERS);
}

/* Fills the parts that are about a job or a segment; prefers what stands. */
static void choose_segment(struct history *history, struct game_move *move, struct local_job *job,
                           struct local_tally *tally)
{
    uint32_t at = 0;

    memset(tally, 0, sizeof(*tally));
    memset(job, 0, sizeof(*job));
    for (uint32_t tries = 0; tries < 4 && history->segment_count > 0; tries++) {
        struct hash32 hash;

        at = below(history, history->segment_count);
        move->key = history->segments[at].job;
        move->segment = history->segments[at].segment;
        assert_int_equal(local_get_job(&history->store, job, &move->key), STATUS_OK);
        hash = game_segment_hash(&move->key, &move->segment);
        assert_int_equal(local_get_tally(&history->store, tally, &hash), STATUS_OK);
        if (job->phase == GAME_PHASE_RUNNING && move->segment.epoch == job->epoch &&
            move->segment.index >= job->finalized) {
            return;
        }
    }
}

static void choose_job(struct history *history, struct game_move *move, struct local_job *job)
{
    memset(job, 0, sizeof(*job));
    if (history->job_count > 0) {
        move->key = history->jobs[below(history, history->job_count)];
        assert_int_equal(local_get_job(&history->store, job, &move->key), STATUS_OK);
    }
}

static void choose_claim(struct history *history, struct game_move *move, struct local_claim *claim)
{
    memset(claim, 0, sizeof(*claim));
    for (uint32_t tries = 0; tries < 4 && history->claim_count > 0; tries++) {
        move->key = history->claims[below(history, history->claim_count)];
        assert_int_equal(local_get_claim(&history->store, claim, &move->key), STATUS_OK);
        if (claim->phase != GAME_CLAIM_CLOSED) {
            return;
        }
    }
}

/* The next moments at which a rule changes its mind about a segment. */
static void jump_to_edge(struct history *history, const struct local_job *job,
                         const struct local_tally *tally, const struct game_segment *segment)
{
    uint64_t start_s = tally->start_s == 0 ? segment->time_s : tally->start_s;
    uint64_t edges[6];
    uint64_t wanted;

    edges[0] = start_s + job->terms.attest_period_s;
    edges[1] = edges[0] + job->terms.reveal_period_s;
    edges[2] = edges[1] + job->terms.claim_period_s;
    edges[3] = job->due_s;
    edges[4] = job->terms.deadline_s;
    edges[5] = edges[4] + job->terms.attest_period_s + job->terms.reveal_period_s +
               job->terms.claim_period_s;
    wanted = edges[chance(history, 90) ? below(history, 3) : below(history, 6)] + below(history, 2);
    if (wanted > history->now_s) {
        history->now_s = wanted;
    }
}

static void pass_time(struct history *history)
{
    history->height += chance(history, 60) ? 0 : below(history, 4);
    history->height += chance(history, 1) ? 250 + below(history, 20) : 0;
    history->now_s += chance(history, 70) ? 0 : below(history, 3);
}

/* Somebody who attested the segment of move, if the test knows one. */
static struct address an_attestor(struct history *history, const struct game_move *move)
{
    for (uint32_t tries = 0; tries < 16 && history->attestation_count > 0; tries++) {
        uint32_t at = below(history, history->attestation_count);

        if (history->attestations[at].index == move->segment.index &&
            hash32_equal(&history->attestations[at].job, &move->key)) {
            return history->attestations[at].attestor;
        }
    }
    return history->players[1 + below(history, PLAYERS - 1)];
}

static uint32_t claim_move(struct history *history, struct game_move *move)
{
    struct local_job job;
    struct local_tally tally;
    struct hash32 hash;
    struct hash32 key;
    uint32_t player = 1 + below(history, PLAYERS - 1);

    if (history->seal_count > 0 && chance(history, 60)) {
        struct sealed_claim *sealed = &history->seals[below(history, history->seal_count)];

        *move = sealed->move;
        player = chance(history, 95) ? sealed->player : player;
        if (chance(history, 80)) {
            history->height++;
        }
        if (chance(history, 70)) {
            *sealed = history->seals[--history->seal_count];
        }
        return player;
    }
    choose_segment(history, move, &job, &tally);
    move->kind = chance(history, 75) ? GAME_CLAIM : GAME_ACCUSE;
    move->value = chance(history, 95) ? job.terms.claim_bond : small_amount(history);
    move->steps = below(history, move->segment.steps + (chance(history, 10) ? 2 : 0) +
                                     (move->segment.steps == 0));
    move->pre_state = random_digest(history);
    move->post_state = random_digest(history);
    move->account = chance(history, 97) ? an_attestor(history, move) : (struct address){{0}};
    move->salt = random_hash(history);
    hash = game_segment_hash(&move->key, &move->segment);
    key = move->kind == GAME_CLAIM
              ? game_claim_key(&history->players[player], &hash, move->steps, &move->pre_state,
                               &move->post_state)
              : game_accusation_key(&history->players[player], &hash, &move->account);
    if (chance(history, 95)) {
        uint32_t at = history->seal_count < SEALS ? history->seal_count++ : below(history, SEALS);

        history->seals[at].move = *move;
        history->seals[at].player = player;
        move->kind = GAME_SEAL_CLAIM;
        move->value = 0;
        move->seal = game_claim_seal(&key, &move->salt);
    }
    return player;
}

static uint32_t dispute_move(struct history *history, struct game_move *move)
{
    struct local_claim claim;
    struct local_job job;
    uint32_t kind = below(history, 100);

    choose_claim(history, move, &claim);
    assert_int_equal(local_get_job(&history->store, &job, &claim.job), STATUS_OK);
    if (claim.phase == GAME_CLAIM_CALLED ? kind < 50 : kind < 5) {
        move->kind = GAME_ANSWER;
        move->root = random_digest(history);
        return player_of(history, &job.solver);
    }
    if (kind < 75) {
        move->kind = kind < 68 ? GAME_PASS_TURN : GAME_RULE;
        move->turn = below(history, chance(history, 97) ? 2 : 4);
        move->upheld = chance(history, 50);
        return chance(history, 95) ? 0 : below(history, PLAYERS);
    }
    if (kind < 92) {
        move->kind = GAME_TIMEOUT;
        if (chance(history, 30) && claim.deadline_s > history->now_s) {
            history->now_s = claim.deadline_s + below(history, 2);
        }
    } else {
        move->kind = GAME_LAPSE;
    }
    return below(history, PLAYERS);
}

static uint32_t attestation_move(struct history *history, struct game_move *move)
{
    struct local_job job;
    struct local_tally tally;
    struct hash32 hash;
    uint32_t kind = below(history, 100);
    uint32_t player = 1 + below(history, PLAYERS - 1);

    choose_segment(history, move, &job, &tally);
    hash = game_segment_hash(&move->key, &move->segment);
    if (chance(history, 8) || (kind >= 85 && chance(history, 25))) {
        jump_to_edge(history, &job, &tally, &move->segment);
    }
    if (kind >= 35 && chance(history, 90)) {
        struct address attestor = an_attestor(history, move);

        player = player_of(history, &attestor);
    }
    move->root = trace_root_of(player, move->segment.index);
    move->account = history->players[player];
    if (kind < 35) {
        move->kind = GAME_ATTEST;
        move->value = chance(history, 97) ? job.terms.attest_bond : 0;
        move->seal = game_attest_seal(&history->players[player], &hash, &move->root);
        history->height += chance(history, 80) ? 2 : 0;
    } else if (kind < 65) {
        move->kind = GAME_REVEAL;
        if (chance(history, 60)) {
            jump_to_edge(history, &job, &tally, &move->segment);
        }
        if (chance(history, 3)) {
            move->root = random_digest(history);
        }
    } else if (kind < 75) {
        move->kind = GAME_SETTLE;
    } else if (kind < 80) {
        move->kind = GAME_DRAW;
    } else if (kind < 85) {
        move->kind = GAME_RENEW;
    } else {
        move->kind = GAME_FINALIZE;
    }
    return player;
}

static uint32_t solver_move(struct history *history, struct game_move *move)
{
    struct local_job job;
    uint32_t kind = below(history, 100);

    choose_job(history, move, &job);
    if (job.phase == GAME_PHASE_OPEN && kind < 80) {
        move->kind = GAME_ACCEPT;
        move->value = chance(history, 95) ? job.terms.stake : small_amount(history);
        return 1 + below(history, PLAYERS - 1);
    }
    if (kind < 80) {
        move->kind = chance(history, 92) ? GAME_COMMIT : GAME_COMMIT_DIVERGED;
        move->index = job.committed + (chance(history, 3) ? 1 : 0);
        move->root = random_digest(history);
        move->steps = below(history, 6);
        return player_of(history, &job.solver);
    }
    if (kind < 83) {
        move->kind = GAME_CANCEL;
        return player_of(history, &job.client);
    }
    if (kind < 93) {
        move->kind = GAME_RELEASE;
        history->now_s =
            chance(history, 30) && job.due_s > history->now_s ? job.due_s + 1 : history->now_s;
    } else {
        move->kind = GAME_EXPIRE;
        if (chance(history, 5)) {
            struct local_tally tally = {0};

            jump_to_edge(history, &job, &tally, &(struct game_segment){0});
        }
    }
    return below(history, PLAYERS);
}

/* Makes room for a new job. */
static bool a_job_is_over(struct history *history)
{
    uint32_t at = below(history, history->job_count);
    struct local_job job;

    assert_int_equal(local_get_job(&history->store, &job, &history->jobs[at]), STATUS_OK);
    if (job.phase != GAME_PHASE_CLOSED || !chance(history, 30)) {
        return false;
    }
    history->jobs[at] = history->jobs[--history->job_count];
    return true;
}

static uint32_t choose_move(struct history *history, struct game_move *move)
{
    uint32_t kind = below(history, 100);
    uint32_t player;

    memset(move, 0, sizeof(*move));
    pass_time(history);
    if (history->job_count < JOBS || kind < 2 || a_job_is_over(history)) {
        move->kind = GAME_OPEN;
        move->terms = random_terms(history);
        if (chance(history, 20)) {
            spoil_terms(history, &move->terms);
        }
        move->value = game_escrow(&move->terms);
        if (chance(history, 3) || move->value > WEI_PER_ETHER) {
            move->value = small_amount(history);
        }
        return 1 + below(history, 2);
    }
    if (kind < 33) {
        player = solver_move(history, move);
    } else if (kind < 62) {
        player = attestation_move(history, move);
    } else if (kind < 77) {
        player = claim_move(history, move);
    } else if (kind < 95) {
        player = dispute_move(history, move);
    } else {
        move->kind = GAME_WITHDRAW;
        move->account =
            chance(history, 95) ? history->players[below(history, PLAYERS)] : (struct address){{0}};
        return below(history, PLAYERS);
    }
    if (chance(history, 1)) {
        move->value += 1; /* money where none, or another amount, belongs */
    }
    if (move->value > WEI_PER_ETHER) {
        move->value = small_amount(history); /* more than the driver has */
    }
    if (chance(history, 1)) {
        move->segment.root.bytes[0] ^= 1;
    }
    return player;
}

/* ---- the contract's side --------------------------------------------------------- */

static void put_number(uint8_t *to, size_t size, wei value)
{
    for (size_t i = 0; i < size; i++) {
        to[size - 1 - i] = (uint8_t)(value >> (8 * i));
    }
}

static void write_script(struct history *history, const struct game_move *move, uint32_t player)
{
    uint8_t *to = history->script + history->script_size;
    size_t size;

    put_number(to, 8, history->now_s);
    put_number(to + 8, 8, history->height);
    to[16] = (uint8_t)player;
    put_number(to + 17, 16, move->value);
    game_move_encode(to + 35, &size, move);
    put_number(to + 33, 2, size);
    history->script_size += 35 + size;
}

static json_t *play_on_contract(struct history *history, struct rpc *rpc,
                                const struct address *driver)
{
    size_t room = history->script_size + 256;
    uint8_t *bytes = malloc(room);
    char *data = malloc(2 * room + 3);
    struct abi_writer writer;
    json_t *receipt;
    size_t base;
    size_t place;

    assert_non_null(bytes);
    assert_non_null(data);
    abi_writer_init(&writer, bytes, room);
    abi_put_selector(&writer, "play(bytes)");
    base = writer.used;
    place = abi_put_offset(&writer);
    abi_set_offset(&writer, place, base);
    abi_put_blob(&writer, history->script, history->script_size);
    assert_int_equal(abi_writer_finish(&writer), STATUS_OK);
    hex_write(data, bytes, writer.used, true);
    receipt = anvil_send(rpc, 0, driver, data, "0x8ac7230489e80000"); /* 10 ether */
    free(bytes);
    free(data);
    return receipt;
}

/* The log's data lie in data, which has GAME_LOG_SIZE_MAX. */
static void read_log(struct game_log *log, uint8_t *data, const json_t *entry)
{
    const json_t *topics = json_object_get(entry, "topics");

    memset(log, 0, sizeof(*log));
    log->topic_count = (uint32_t)json_array_size(topics);
    assert_true(log->topic_count <= GAME_TOPICS_MAX);
    for (uint32_t i = 0; i < log->topic_count; i++) {
        assert_int_equal(rpc_value_hash(&log->topics[i], json_array_get(topics, i), "topic", NULL),
                         STATUS_OK);
    }
    log->data.bytes = data;
    assert_int_equal(rpc_value_data(data, GAME_LOG_SIZE_MAX, &log->data.size,
                                    json_object_get(entry, "data"), "data", NULL),
                     STATUS_OK);
}

static void check_outcome(struct history *history, const struct game_log *log, uint32_t at)
{
    struct abi_reader reader;
    const uint8_t *result;
    size_t size;
    bool done;

    abi_reader_init(&reader, log->data.bytes, log->data.size);
    assert_int_equal(abi_get_bool(&reader, &done), STATUS_OK);
    assert_int_equal(abi_get_blob(&reader, &result, &size), STATUS_OK);
    if (done != history->outcomes[at].done || size != history->outcomes[at].size ||
        (size > 0 && memcmp(result, history->outcomes[at].bytes, size) != 0)) {
        struct game_refusal theirs;
        struct game_refusal ours;

        game_refusal_decode(&theirs, result, size);
        game_refusal_decode(&ours, history->outcomes[at].bytes, history->outcomes[at].size);
        fail_msg("move %u (%s): the contract %s \"%s\" %llu, the embedded ledger %s \"%s\" %llu",
                 at, game_move_name(history->outcomes[at].kind), done ? "did it" : "refused",
                 game_refusal_text(theirs.kind), (unsigned long long)theirs.number,
                 history->outcomes[at].done ? "did it" : "refused", game_refusal_text(ours.kind),
                 (unsigned long long)ours.number);
    }
}

/* The sums of the embedded side: what each is owed, and what must lie in the contract. */
static void check_balances(struct history *history, const struct game_log *log)
{
    struct abi_reader reader;
    struct uint256 held;
    wei contract = 0;
    wei sum = 0;

    abi_reader_init(&reader, log->data.bytes, log->data.size);
    assert_int_equal(abi_get_uint256(&reader, &held), STATUS_OK);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        struct local_account account;
        struct uint256 owed;
        struct uint256 ours;

        assert_int_equal(abi_get_uint256(&reader, &owed), STATUS_OK);
        assert_int_equal(local_get_account(&history->store, &account, &history->players[i]),
                         STATUS_OK);
        ours = wei_to_uint256(account.owed);
        assert_int_equal(uint256_compare(&owed, &ours), 0);
        sum += account.owed;
    }
    assert_true(wei_from_uint256(&contract, &held));
    assert_true(contract == history->paid_in - history->paid_out);
    assert_true(contract ==
                sum + promised_money(&history->store, history->attested, history->attested_count));
}

static void compare(struct history *history, const json_t *receipt)
{
    const json_t *logs = json_object_get(receipt, "logs");
    const struct hash32 outcome = keccak256("Outcome(bool,bytes)", strlen("Outcome(bool,bytes)"));
    uint32_t at_log = 0;
    uint32_t at_move = 0;
    size_t count = json_array_size(logs);

    for (size_t i = 0; i < count; i++) {
        uint8_t data[GAME_LOG_SIZE_MAX];
        struct game_log log;

        read_log(&log, data, json_array_get(logs, i));
        if (i + 1 == count) {
            check_balances(history, &log);
        } else if (hash32_equal(&log.topics[0], &outcome)) {
            uint32_t until = at_move + 1 < history->outcome_count
                                 ? history->outcomes[at_move + 1].logs_before
                                 : history->log_count;

            check_outcome(history, &log, at_move);
            assert_int_equal(at_log, until);
            at_move++;
        } else {
            assert_true(at_log < history->log_count);
            assert_int_equal(log.topic_count, history->logs[at_log].topic_count);
            assert_memory_equal(log.topics, history->logs[at_log].topics, sizeof(log.topics));
            assert_int_equal(log.data.size, history->logs[at_log].data.size);
            assert_memory_equal(log.data.bytes, history->log_bytes[at_log], log.data.size);
            at_log++;
        }
    }
    assert_int_equal(at_log, history->log_count);
    assert_int_equal(at_move, history->outcome_count);
}

/* ---- histories -------------------------------------------------------------------- */

static void open_store(struct history *history)
{
    assert_int_equal(sqlite3_open(":memory:", &history->database), SQLITE_OK);
    assert_int_equal(local_store_open(&history->store, history->database, &history->error),
                     STATUS_OK);
}

static void close_store(struct history *history)
{
    local_store_close(&history->store);
    (void)sqlite3_close(history->database);
}

static struct address read_player(struct rpc *rpc, const struct address *driver, uint32_t number)
{
    char to[ADDRESS_TEXT_SIZE];
    char data[80];
    uint8_t word[ABI_WORD_SIZE];
    struct abi_reader reader;
    struct address address;
    json_t *result;
    size_t size;

    address_print(to, driver);
    (void)snprintf(data, sizeof(data), "0x%08x%064x", abi_selector("players(uint256)"), number);
    result =
        anvil_call(rpc, "eth_call", json_pack("[{s:s, s:s}, s]", "to", to, "data", data, "latest"));
    assert_int_equal(rpc_value_data(word, sizeof(word), &size, result, "player", NULL), STATUS_OK);
    json_decref(result);
    abi_reader_init(&reader, word, size);
    assert_int_equal(abi_get_address(&reader, &address), STATUS_OK);
    return address;
}

static void play_history(struct history *history, struct rpc *rpc, const struct address *driver)
{
    json_t *receipt;

    history->script_size = 0;
    history->log_count = 0;
    history->outcome_count = 0;
    history->job_count = 0;
    history->segment_count = 0;
    history->claim_count = 0;
    history->seal_count = 0;
    history->attestation_count = 0;
    for (uint32_t i = 0; i < MOVES; i++) {
        struct game_move move;
        uint32_t player = choose_move(history, &move);

        write_script(history, &move, player);
        play_embedded(history, &move, player);
    }
    receipt = play_on_contract(history, rpc, driver);
    compare(history, receipt);
    json_decref(receipt);
}

static void show_coverage(const struct history *history)
{
    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        print_message("%8u %s\n", history->done_of[i], game_move_name((enum game_move_kind)i));
    }
    for (int i = 0; i < GAME_REFUSAL_KINDS; i++) {
        print_message("%8u refused: %s\n", history->refused_of[i],
                      game_refusal_text((enum game_refusal_kind)i));
    }
}

struct chain {
    struct anvil *anvil;
    struct rpc *rpc;
    struct address driver;
};

static void stop_chain(struct chain *chain)
{
    if (chain->anvil != NULL) {
        rpc_free(chain->rpc);
        anvil_stop(chain->anvil);
    }
}

/* Anvil keeps every block in memory: thousands of these want a fresh one from time to time. */
static void start_chain(struct chain *chain, struct history *history)
{
    static const char *const arguments[] = {"--hardfork", "cancun", "--balance", "1000000000",
                                            NULL};

    stop_chain(chain);
    chain->anvil = anvil_start(arguments);
    chain->rpc = anvil_rpc(chain->anvil);
    chain->driver = anvil_deploy(chain->rpc, 0, DRIVER_CODE, NULL, "0x0");
    for (uint32_t i = 0; i < PLAYERS; i++) {
        history->players[i] = read_player(chain->rpc, &chain->driver, i);
    }
}

static void start_registry(struct chain *chain, struct history *history)
{
    char restart[16];

    (void)snprintf(restart, sizeof(restart), "0x%08x", abi_selector("restart()"));
    json_decref(anvil_send(chain->rpc, 0, &chain->driver, restart, "0x0"));
    close_store(history);
    open_store(history);
    history->attested_count = 0;
    history->paid_in = 0;
    history->paid_out = 0;
}

static void test_both_ledgers_play_the_same_histories(void **state)
{
    struct chain chain = {0};
    struct history *history = calloc(1, sizeof(*history));
    uint64_t count = test_share(HISTORIES_FULL, HISTORIES_SHARE);

    (void)state;
    assert_non_null(history);
    history->random = 20260301;
    open_store(history);
    for (uint64_t i = 0; i < count; i++) {
        if (i % HISTORIES_OF_A_CHAIN == 0) {
            start_chain(&chain, history);
        }
        if (i % HISTORIES_OF_A_REGISTRY == 0) {
            start_registry(&chain, history);
        }
        history->now_s = 1000000 + 10000 * i;
        history->height = 1000 + 1000 * i;
        play_history(history, chain.rpc, &chain.driver);
    }
    show_coverage(history);
    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        assert_true(history->done_of[i] > 0 || game_move_is_of_referee((enum game_move_kind)i));
    }
    close_store(history);
    free(history);
    stop_chain(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ledgers_play_the_same_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
