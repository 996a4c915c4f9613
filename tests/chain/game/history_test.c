/*
 * Goal: the embedded ledger and the contract are the same game.
 * Method: random histories, most moves plausible and some absurd, are played on both: on the
 * contract by a driver that plays a whole history in one transaction, with a clock of the test's
 * own. Every event's bytes, every refusal's bytes and every balance must be equal, and the
 * contract must hold exactly what it owes, has in escrow and at stake. "make soak" plays 10,000.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/game/promised.h"
#include "tests/support/game/twins.h"

enum {
    HISTORIES_FULL = 10000,
    HISTORIES_SHARE = 150,
    HISTORIES_OF_A_REGISTRY = 50,
    HISTORIES_OF_A_CHAIN = 500,
    MOVES = TWINS_MOVES,
    PLAYERS = TWINS_PLAYERS, /* number 0 is the referee */
    JOBS = 2,
    SEGMENTS = 64,
    CLAIMS = 32,
    SEALS = 8,
    ATTESTATIONS = 32,
    ATTESTED = 8192,
};

struct sealed_claim {
    struct game_move move;
    uint32_t player;
};

/* All that the test knows of one history; it learns from the embedded side's events. */
struct history {
    uint64_t random;
    struct twins twins;
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
};

static uint32_t below(struct history *history, uint32_t limit)
{
    return (uint32_t)test_random_below(&history->random, limit);
}

static bool chance(struct history *history, uint32_t percent)
{
    return below(history, 100) < percent;
}

/* ---- learning ------------------------------------------------------------------- */

static void learn(void *context, const struct game_event *event)
{
    struct history *history = context;

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
    terms.deadline_s = history->twins.now_s + 100 + below(history, 1500);
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
        terms->deadline_s = history->twins.now_s + below(history, 2);
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
        if (address_equal(&history->twins.players[i], address)) {
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
        assert_int_equal(local_get_job(&history->twins.store, job, &move->key), STATUS_OK);
        hash = game_segment_hash(&move->key, &move->segment);
        assert_int_equal(local_get_tally(&history->twins.store, tally, &hash), STATUS_OK);
        if (job->phase == GAME_PHASE_RUNNING && move->segment.generation == job->generation &&
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
        assert_int_equal(local_get_job(&history->twins.store, job, &move->key), STATUS_OK);
    }
}

static void choose_claim(struct history *history, struct game_move *move, struct local_claim *claim)
{
    memset(claim, 0, sizeof(*claim));
    for (uint32_t tries = 0; tries < 4 && history->claim_count > 0; tries++) {
        move->key = history->claims[below(history, history->claim_count)];
        assert_int_equal(local_get_claim(&history->twins.store, claim, &move->key), STATUS_OK);
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
    if (wanted > history->twins.now_s) {
        history->twins.now_s = wanted;
    }
}

static void pass_time(struct history *history)
{
    history->twins.height += chance(history, 60) ? 0 : below(history, 4);
    history->twins.height += chance(history, 1) ? 250 + below(history, 20) : 0;
    history->twins.now_s += chance(history, 70) ? 0 : below(history, 3);
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
    return history->twins.players[1 + below(history, PLAYERS - 1)];
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
            history->twins.height++;
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
              ? game_claim_key(&history->twins.players[player], &hash, move->steps,
                               &move->pre_state, &move->post_state)
              : game_accusation_key(&history->twins.players[player], &hash, &move->account);
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
    assert_int_equal(local_get_job(&history->twins.store, &job, &claim.job), STATUS_OK);
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
        if (chance(history, 30) && claim.deadline_s > history->twins.now_s) {
            history->twins.now_s = claim.deadline_s + below(history, 2);
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
    move->account = history->twins.players[player];
    if (kind < 35) {
        move->kind = GAME_ATTEST;
        move->value = chance(history, 97) ? job.terms.attest_bond : 0;
        move->seal = game_attest_seal(&history->twins.players[player], &hash, &move->root);
        history->twins.height += chance(history, 80) ? 2 : 0;
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
        history->twins.now_s = chance(history, 30) && job.due_s > history->twins.now_s
                                   ? job.due_s + 1
                                   : history->twins.now_s;
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

    assert_int_equal(local_get_job(&history->twins.store, &job, &history->jobs[at]), STATUS_OK);
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
        move->account = chance(history, 95) ? history->twins.players[below(history, PLAYERS)]
                                            : (struct address){{0}};
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

/* ---- histories -------------------------------------------------------------------- */

static void play_history(struct history *history)
{
    struct twins *twins = &history->twins;

    history->job_count = 0;
    history->segment_count = 0;
    history->claim_count = 0;
    history->seal_count = 0;
    history->attestation_count = 0;
    for (uint32_t i = 0; i < MOVES; i++) {
        struct game_move move;
        uint32_t player = choose_move(history, &move);

        (void)twins_play(twins, &move, player);
    }
    (void)twins_compare(twins,
                        promised_money(&twins->store, history->attested, history->attested_count));
}

static void show_coverage(const struct history *history)
{
    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        print_message("%8u %s\n", history->twins.done_of[i],
                      game_move_name((enum game_move_kind)i));
    }
    for (int i = 0; i < GAME_REFUSAL_KINDS; i++) {
        print_message("%8u refused: %s\n", history->twins.refused_of[i],
                      game_refusal_text((enum game_refusal_kind)i));
    }
}

static void test_both_ledgers_play_the_same_histories(void **state)
{
    struct history *history = (anvil_need(), calloc(1, sizeof(*history)));
    uint64_t count = test_share(HISTORIES_FULL, HISTORIES_SHARE);
    struct twins *twins = &history->twins;

    (void)state;
    assert_non_null(history);
    history->random = 20260301;
    twins_open(twins);
    twins->learn = learn;
    twins->context = history;
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0 && i % HISTORIES_OF_A_CHAIN == 0) {
            twins_restart_chain(twins);
        }
        if (i % HISTORIES_OF_A_REGISTRY == 0) {
            twins_new_registry(twins);
            history->attested_count = 0;
        }
        twins->now_s = 1000000 + 10000 * i;
        twins->height = 1000 + 1000 * i;
        play_history(history);
    }
    show_coverage(history);
    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        /* A handful of histories need not meet the rare moves. */
        assert_true(count < HISTORIES_SHARE || twins->done_of[i] > 0 ||
                    game_move_is_of_referee((enum game_move_kind)i));
    }
    twins_close(twins);
    free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ledgers_play_the_same_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
