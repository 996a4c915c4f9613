/* court.c - see court.h. */
#include "tests/support/game/court.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/commit/commit.h"
#include "tests/support/test.h"

enum {
    CLOCK = 1000000,
    HEIGHT = 1000,
    SEGMENTS = 2,
    PERIOD_S = 1000,
    JOBS_OF_A_CHAIN = 200,
};

static void learn(void *context, const struct game_event *event)
{
    struct court *court = context;

    if (event->kind == GAME_QUERIED) {
        assert_true(event->payload.size <= sizeof(court->queried_bytes));
        court->queried = *event;
        memcpy(court->queried_bytes, event->payload.bytes, event->payload.size);
        court->queried.payload.bytes = court->queried_bytes;
    }
}

static void begin(struct court *court)
{
    court->twins.learn = learn;
    court->twins.context = court;
    court->twins.now_s = CLOCK;
    court->twins.height = HEIGHT;
}

void court_open(struct court *court)
{
    memset(court, 0, sizeof(*court));
    twins_open(&court->twins);
    twins_new_court(&court->twins);
    begin(court);
}

void court_open_direct(struct court *court)
{
    memset(court, 0, sizeof(*court));
    twins_open_direct(&court->twins);
    twins_new_court(&court->twins);
    begin(court);
}

void court_open_embedded(struct court *court)
{
    memset(court, 0, sizeof(*court));
    twins_open_embedded(&court->twins);
    begin(court);
}

void court_close(struct court *court)
{
    twins_close(&court->twins);
}

struct court *court_new(void)
{
    struct court *court = (anvil_need(), calloc(1, sizeof(*court)));

    assert_non_null(court);
    court_open(court);
    return court;
}

void court_free(struct court *court)
{
    court_compare(court);
    court_close(court);
    free(court);
}

/* ---- moves ------------------------------------------------------------------------ */

void court_done(struct court *court, const struct game_move *move, uint32_t player)
{
    struct twins_outcome outcome = twins_play(&court->twins, move, player);

    if (!outcome.done) {
        fail_msg("%s is refused: %s (%llu)", game_move_name(move->kind),
                 game_refusal_text(outcome.refusal.kind),
                 (unsigned long long)outcome.refusal.number);
    }
}

void court_refused(struct court *court, const struct game_move *move, uint32_t player,
                   enum game_refusal_kind kind)
{
    struct twins_outcome outcome = twins_play(&court->twins, move, player);

    if (outcome.done || outcome.refusal.kind != kind) {
        fail_msg("%s is %s, not refused because %s", game_move_name(move->kind),
                 outcome.done ? "done" : game_refusal_text(outcome.refusal.kind),
                 game_refusal_text(kind));
    }
}

void court_compare(struct court *court)
{
    (void)twins_compare(&court->twins, promised_money(&court->twins.store));
    if (court->jobs > JOBS_OF_A_CHAIN) {
        twins_restart_chain(&court->twins);
        twins_new_court(&court->twins);
        court->jobs = 0;
    }
}

wei court_owed(struct court *court, uint32_t player)
{
    const struct hash32 key = local_key_of_account(&court->twins.players[player]);
    struct local_account account;

    assert_int_equal(local_get(&court->twins.store, &account, LOCAL_ACCOUNT, &key, 0), STATUS_OK);
    return account.owed;
}

struct game_move court_move(const struct court *court, enum game_move_kind kind,
                            const uint8_t *payload, size_t size)
{
    struct game_move move = {.kind = kind, .key = court->claim};

    if (kind == GAME_REPLY) {
        move.queried = court->queried.payload;
    } else {
        move.subject = game_subject_of(&court->shown);
        move.value = kind == GAME_QUERY ? court->terms.query_fee : 0;
    }
    move.payload = (struct game_bytes){payload, size};
    return move;
}

void court_timeout(struct court *court)
{
    struct game_move move = {.kind = GAME_TIMEOUT, .key = court->claim};

    court->twins.now_s += COURT_CLOCK + 1;
    court_done(court, &move, COURT_EVE);
}

void court_pay(struct court *court)
{
    struct game_move move = {.kind = GAME_PAY, .key = court->job};

    court_done(court, &move, COURT_EVE);
}

/* ---- a job ------------------------------------------------------------------------ */

static void make_header(struct court *court)
{
    uint8_t *header = court->shown.job_header;
    const struct evidence_context *context = &court->context;
    struct digest first = {{7}};

    memset(header, 0x5a, sizeof(court->shown.job_header));
    endian_store_be64(header + 12, COURT_STEPS * SEGMENTS);
    endian_store_be64(header + 20, COURT_STEPS);
    memcpy(header + 56, context->program.bytes, DIGEST_SIZE);
    memcpy(header + 120, context->constants.bytes, DIGEST_SIZE);
    memcpy(header + 152, context->data.bytes, DIGEST_SIZE);
    first = court->first_step ? context->before : first;
    memcpy(header + 184, first.bytes, DIGEST_SIZE);
}

static void make_terms(struct court *court)
{
    court->terms = (struct game_terms){.salt = court->salt++,
                                       .steps = COURT_STEPS * SEGMENTS,
                                       .segment_steps = COURT_STEPS,
                                       .reward = 1000,
                                       .stake = 50000,
                                       .bond = 701,
                                       .query_fee = COURT_QUERY_FEE,
                                       .segment_period_s = PERIOD_S,
                                       .seal_period_s = PERIOD_S,
                                       .reveal_period_s = PERIOD_S,
                                       .claim_period_s = 20 * PERIOD_S,
                                       .clock_s = COURT_CLOCK,
                                       .deadline_s = court->twins.now_s + 100 * PERIOD_S};
    commit_job_id(&court->terms.job_id, court->shown.job_header, sizeof(court->shown.job_header));
    court->shown.salt = court->terms.salt;
    court->shown.client = court->twins.players[COURT_CLIENT];
    court->job = game_job_key(&court->twins.place, &court->shown.client, &court->terms.job_id,
                              court->terms.salt);
}

static struct merkle_path path_of(const struct digest *states, uint32_t step)
{
    struct digest hashes[COURT_STEPS];
    struct merkle_leaves leaves;
    struct merkle_path path;

    for (uint32_t i = 0; i < COURT_STEPS; i++) {
        merkle_leaf_hash(&hashes[i], states[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, COURT_STEPS);
    merkle_path_build(&path, &leaves, step);
    return path;
}

static void commit_segment(struct court *court, const struct digest *states, uint32_t index,
                           bool diverged)
{
    struct game_move move = {.kind = GAME_COMMIT,
                             .key = court->job,
                             .index = index,
                             .states = {states, COURT_STEPS},
                             .diverged = diverged};

    court->shown.previous = court->shown.segment;
    court->shown.segment = (struct game_segment){
        .index = index,
        .root = game_segment_root(&move.states, (uint64_t)index * COURT_STEPS),
        .steps = COURT_STEPS,
        .time_s = court->twins.now_s,
        .height = court->twins.height,
        .solver = court->twins.players[COURT_SOLVER],
        .diverged = diverged};
    court_done(court, &move, COURT_SOLVER);
}

void court_commit(struct court *court, const struct evidence_context *context, uint32_t index,
                  uint32_t step)
{
    struct digest states[SEGMENTS * COURT_STEPS];
    uint32_t place = index * COURT_STEPS + step;
    struct game_move move = {.kind = GAME_OPEN};

    court->context = *context;
    court->jobs++;
    memset(&court->shown, 0, sizeof(court->shown));
    court->first_step = place == 0;
    make_header(court);
    make_terms(court);
    move.terms = court->terms;
    move.value = game_escrow(&court->terms);
    court_done(court, &move, COURT_CLIENT);
    move = (struct game_move){.kind = GAME_ACCEPT, .key = court->job, .value = court->terms.stake};
    court_done(court, &move, COURT_SOLVER);

    for (uint32_t i = 0; i < SEGMENTS * COURT_STEPS; i++) {
        memset(states[i].bytes, (int)i + 1, DIGEST_SIZE);
    }
    states[place] = context->after;
    if (place > 0) {
        states[place - 1] = context->before;
    }
    court->shown.step = step;
    court->shown.pre_state = context->before;
    court->shown.post_state = context->after;
    court->shown.post_path = path_of(&states[(size_t)index * COURT_STEPS], step);
    if (place > 0) {
        court->shown.pre_path = path_of(&states[(size_t)(place - 1) / COURT_STEPS * COURT_STEPS],
                                        (place - 1) % COURT_STEPS);
    }
    for (uint32_t i = 0; i <= index; i++) {
        commit_segment(court, &states[(size_t)i * COURT_STEPS], i, context->diverged && i == index);
    }
    if (step > 0 || index == 0) {
        memset(&court->shown.previous, 0, sizeof(court->shown.previous));
    }
}

/* ---- claims ----------------------------------------------------------------------- */

struct game_move court_seal(struct court *court)
{
    struct hash32 hash = game_segment_hash(&court->job, &court->shown.segment);
    struct hash32 subject = game_subject_hash(&hash, court->shown.step, &court->shown.pre_state,
                                              &court->shown.post_state);
    struct game_move claim = {
        .kind = GAME_CLAIM, .key = court->job, .value = court->terms.bond, .shown = court->shown};
    struct game_move seal = {.kind = GAME_SEAL_CLAIM};
    uint32_t round;

    assert_int_equal(local_get(&court->twins.store, &round, LOCAL_SUBJECT, &subject, 0), STATUS_OK);
    court->claim = game_claim_key(&subject, round);
    seal.seal = game_claim_seal(&court->twins.players[COURT_CLAIMANT], &subject, &claim.salt);
    court_done(court, &seal, COURT_CLAIMANT);
    court->twins.height++;
    return claim;
}

void court_claim(struct court *court)
{
    struct game_move claim = court_seal(court);

    court_done(court, &claim, COURT_CLAIMANT);
}

void court_answer(struct court *court)
{
    struct game_move move = {
        .kind = GAME_ANSWER, .key = court->claim, .root = court->context.trace};

    court_done(court, &move, COURT_SOLVER);
}

void court_bring(struct court *court, const struct evidence_context *context, uint32_t index,
                 uint32_t step)
{
    court_commit(court, context, index, step);
    court_claim(court);
    court_answer(court);
}

void court_convict(struct court *court, const struct buffer *evidence,
                   enum game_refusal_kind refusal)
{
    struct game_move move = court_move(court, GAME_CONVICT, evidence->data, evidence->size);

    if (refusal == GAME_REFUSED_NOT) {
        court_done(court, &move, COURT_CLAIMANT);
    } else {
        court_refused(court, &move, COURT_CLAIMANT, refusal);
    }
}

void court_tell_refused(const struct court *court)
{
    print_message("mutants refused: %u queries, %u replies, %u of evidence\n",
                  court->twins.refused_of[GAME_BAD_QUERY], court->twins.refused_of[GAME_BAD_REPLY],
                  court->twins.refused_of[GAME_BAD_EVIDENCE] +
                      court->twins.refused_of[GAME_NOT_GUILTY]);
}
