/* history.c - see history.h. */
#include "tests/support/game/history.h"

#include <stdlib.h>
#include <string.h>

#include "chain/game/allow_list.h"
#include "tests/support/chain/random_terms.h"
#include "tests/support/game/made_states.h"
#include "tests/support/test.h"

static uint32_t below(struct history *history, uint32_t limit)
{
    return (uint32_t)test_random_below(&history->random, limit);
}

static bool chance(struct history *history, uint32_t percent)
{
    return below(history, 100) < percent;
}

static void get(struct history *history, void *record, enum local_kind kind,
                const struct hash32 *key, uint64_t number)
{
    assert_int_equal(local_get(&history->twins.store, record, kind, key, number), STATUS_OK);
}

/* ---- learning ------------------------------------------------------------------- */

static const struct known_segment *segment_before(const struct history *history,
                                                  const struct known_segment *known)
{
    for (uint32_t i = 0; i < history->segment_count; i++) {
        if (hash32_equal(&history->segments[i].job, &known->job) &&
            history->segments[i].segment.index + 1 == known->segment.index) {
            return &history->segments[i];
        }
    }
    return NULL;
}

static void learn_segment(struct history *history, const struct game_event *event)
{
    uint32_t at = history->segment_count < HISTORY_SEGMENTS ? history->segment_count++
                                                            : below(history, HISTORY_SEGMENTS);
    struct known_segment *known = &history->segments[at];

    known->job = event->job;
    known->segment = event->segment;
    memcpy(known->roots, event->states.hashes, event->states.count * sizeof(known->roots[0]));
}

static void learn_claim(struct history *history, const struct game_event *event)
{
    uint32_t at = history->claim_count < HISTORY_CLAIMS ? history->claim_count++
                                                        : below(history, HISTORY_CLAIMS);
    struct local_job job;

    get(history, &job, LOCAL_JOB, &event->job, 0);
    history->claims[at].key = event->claim;
    history->claims[at].subject = (struct game_subject){.client = job.client,
                                                        .salt = job.terms.salt,
                                                        .step = event->step,
                                                        .pre_state = event->pre_state,
                                                        .post_state = event->post_state};
    memcpy(history->claims[at].subject.job_header, history->header, sizeof(history->header));
}

void history_learn(struct history *history, const struct game_event *event)
{
    if (event->kind == GAME_COMMITTED) {
        learn_segment(history, event);
    } else if (event->kind == GAME_CLAIMED) {
        learn_claim(history, event);
    } else if (event->kind == GAME_OPENED) {
        uint32_t at =
            history->job_count < HISTORY_JOBS ? history->job_count++ : below(history, HISTORY_JOBS);

        history->jobs[at] = event->job;
    }
}

/* ---- choosing a move ------------------------------------------------------------ */

static wei small_amount(struct history *history)
{
    return (wei)below(history, 1000) + 1;
}

static struct game_terms some_terms(struct history *history)
{
    struct game_terms terms =
        random_terms(&history->random, history->twins.players + HISTORY_CLIENTS, HISTORY_MEMBERS,
                     history->twins.now_s);

    terms.job_id = history->job_id;
    if (chance(history, 85)) {
        terms.keeper = chance(history, 85) ? *signer_address(history->keeper)
                                           : history->twins.players[HISTORY_KEEPER];
    }
    terms.salt = chance(history, 97) ? history->next_salt++ : history->next_salt - 1;
    terms.segment_steps = 1 + below(history, HISTORY_STEPS);
    terms.steps = 1 + below(history, (chance(history, 60) ? 3 : 40) * terms.segment_steps);
    if (history->runs_ahead) {
        terms.steps += 2 * GAME_OPEN_MAX * terms.segment_steps;
    }
    return terms;
}

static uint32_t player_of(struct history *history, const struct address *address)
{
    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        if (address_equal(&history->twins.players[i], address)) {
            return i;
        }
    }
    return below(history, TWINS_PLAYERS);
}

static struct game_bytes some_contact(struct history *history)
{
    uint32_t size = chance(history, 95) ? below(history, 40) : 250 + below(history, 8);

    return (struct game_bytes){history->contact, size};
}

/* In the list of members, by one of them; or any other. */
static struct game_hashes some_path(struct history *history, uint32_t player)
{
    struct game_hashes path = {history->siblings, below(history, 3)};

    if (player >= HISTORY_CLIENTS && player < HISTORY_CLIENTS + HISTORY_MEMBERS &&
        chance(history, 90)) {
        allow_list_path(history->siblings, &path.count, history->twins.players + HISTORY_CLIENTS,
                        HISTORY_MEMBERS, player - HISTORY_CLIENTS);
    }
    return path;
}

static void look_at_jobs(struct history *history)
{
    for (uint32_t i = 0; i < history->job_count; i++) {
        get(history, &history->states[i], LOCAL_JOB, &history->jobs[i], 0);
    }
}

/* NULL: its place has another job. */
static const struct local_job *find_job(const struct history *history, const struct hash32 *key)
{
    for (uint32_t i = 0; i < history->job_count; i++) {
        if (hash32_equal(&history->jobs[i], key)) {
            return &history->states[i];
        }
    }
    return NULL;
}

/* Prefers one that is not over. */
static void choose_job(struct history *history, struct game_move *move, struct local_job *job)
{
    memset(job, 0, sizeof(*job));
    for (uint32_t tries = 0; tries < 3 && history->job_count > 0; tries++) {
        bool first = history->runs_ahead && chance(history, 90);
        uint32_t at = first ? 0 : below(history, history->job_count);

        move->key = history->jobs[at];
        *job = history->states[at];
        if (job->phase != GAME_PHASE_CLOSED) {
            break;
        }
    }
}

static const struct known_segment *recent_segment(struct history *history)
{
    uint32_t count = history->segment_count;
    uint32_t back = below(history, count < 24 || chance(history, 20) ? count : 24);

    return &history->segments[count - 1 - back];
}

/* The next to be drawn, or the end of the first leg. */
static bool is_next(struct history *history, const struct local_job *job,
                    const struct known_segment *known)
{
    struct local_tally tally;
    struct hash32 hash;

    if (known->segment.index >= job->leg_start) {
        return known->segment.index == job->drawn;
    }
    hash = game_segment_hash(&known->job, &known->segment);
    get(history, &tally, LOCAL_TALLY, &hash, 0);
    return tally.covered && tally.leg_start == job->finalized;
}

static bool stands(const struct local_job *job, const struct game_segment *segment)
{
    return job != NULL && job->phase == GAME_PHASE_RUNNING &&
           segment->generation == job->generation && segment->index >= job->finalized;
}

/* Fills the parts that are about a job or a segment; prefers what stands. NULL: there is none. */
static const struct known_segment *choose_segment(struct history *history, struct game_move *move,
                                                  struct local_job *job, struct local_tally *tally)
{
    const struct known_segment *known = NULL;
    struct hash32 hash;

    memset(tally, 0, sizeof(*tally));
    memset(job, 0, sizeof(*job));
    for (uint32_t tries = 0; tries < 24 && history->segment_count > 0; tries++) {
        const struct local_job *now;

        known = recent_segment(history);
        now = find_job(history, &known->job);
        if (stands(now, &known->segment) &&
            (tries > 16 || chance(history, 10) || is_next(history, now, known))) {
            break;
        }
    }
    if (known != NULL) {
        move->key = known->job;
        move->segment = known->segment;
        get(history, job, LOCAL_JOB, &move->key, 0);
        hash = game_segment_hash(&move->key, &move->segment);
        get(history, tally, LOCAL_TALLY, &hash, 0);
    }
    return known;
}

static void jump_to(struct history *history, uint64_t time_s)
{
    uint64_t wanted = time_s + below(history, 2);

    if (wanted > history->twins.now_s && wanted < history->twins.now_s + 100000) {
        history->twins.now_s = wanted;
    }
}

/* Its last second, or the one after. */
static void jump_to_week(struct history *history, uint64_t time_s)
{
    uint64_t wanted = time_s + GAME_FIX_AFTER_S + below(history, 2);

    history->twins.now_s = wanted > history->twins.now_s ? wanted : history->twins.now_s;
}

/* The next moments at which a rule changes its mind about a segment. */
static void jump_to_edge(struct history *history, const struct local_job *job,
                         const struct local_tally *tally, const struct game_segment *segment,
                         uint32_t edge)
{
    uint64_t time_s = tally->start_s == 0 ? segment->time_s : tally->start_s;

    time_s += job->terms.seal_period_s;
    time_s += edge > 0 ? job->terms.reveal_period_s : 0;
    time_s += edge > 1 ? (edge - 1) * job->terms.claim_period_s : 0;
    jump_to(history, time_s);
}

static void pass_time(struct history *history)
{
    history->twins.height += chance(history, 60) ? 0 : below(history, 4);
    history->twins.height += chance(history, 1) ? 250 + below(history, 20) : 0;
    history->twins.now_s += chance(history, 70) ? 0 : below(history, 3);
}

/* ---- the panel -------------------------------------------------------------------- */

static uint32_t panel_move(struct history *history, struct game_move *move,
                           const struct local_job *job, uint32_t enlists)
{
    struct local_entry entry = {0};
    uint32_t kind = below(history, 100);
    uint32_t player;

    if (kind < enlists) {
        move->kind = GAME_ENLIST;
        move->count = chance(history, 95) ? 1 + below(history, 6) : below(history, 20);
        move->value = move->count * job->terms.bond;
        player = HISTORY_CLIENTS +
                 below(history, TWINS_PLAYERS - HISTORY_CLIENTS - (chance(history, 5) ? 0 : 1));
        move->path = some_path(history, player);
        move->contact = some_contact(history);
        return player;
    }
    if (kind < 90) {
        move->kind = GAME_DEPART;
        move->generation = job->generation - (chance(history, 40) ? below(history, 3) : 0);
        for (uint32_t tries = 0; tries < 8; tries++) {
            move->entry = below(history, chance(history, 50) ? 8 : job->entries + 1);
            get(history, &entry, LOCAL_ENTRY, &move->key,
                (uint64_t)move->generation << 32 | move->entry);
            if (!entry.gone && !address_is_zero(&entry.owner)) {
                break;
            }
        }
        return chance(history, 95) ? player_of(history, &entry.owner)
                                   : below(history, TWINS_PLAYERS);
    }
    move->kind = GAME_ANNOUNCE;
    move->contact = some_contact(history);
    return below(history, TWINS_PLAYERS);
}

/* What a seat says follows from its place, so that a reveal finds what was sealed. NONE: that it
 * could not get the states. */
static enum game_verdict verdict_of(const struct history *history, const struct hash32 *segment,
                                    uint32_t place)
{
    uint32_t number = (uint32_t)(segment->bytes[place % HASH32_SIZE] + 41 * place) % 100;

    if (number < history->patience) {
        return GAME_VERDICT_RIGHT;
    }
    return number % 3 == 0 ? GAME_VERDICT_FALSE : GAME_VERDICT_NONE;
}

static void fill_leaves(struct history *history, struct game_move *move,
                        const struct known_segment *known, const struct local_tally *tally,
                        const struct address *owner, const struct hash32 *segment)
{
    const struct game_hashes states = {known->roots, known->segment.steps};

    (void)history;
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        /* Every other place lies about its last leaves. */
        struct hash32 hash = move->place % 2 == 0 || i < 4
                                 ? made_right_hash(owner, &tally->seed, segment, &states, i)
                                 : *segment;

        game_leaves_set(&move->leaves, i, &hash);
    }
}

static void fill_case(struct history *history, struct game_move *move,
                      const struct known_segment *known, const struct local_job *job, uint32_t step)
{
    const struct known_segment *before = segment_before(history, known);
    const struct game_hashes states = {known->roots, known->segment.steps};
    const struct game_hashes previous = {before == NULL ? NULL : before->roots,
                                         before == NULL ? 0 : before->segment.steps};

    made_states_case(&move->shown, history->header, &known->segment, &states,
                     before == NULL ? NULL : &before->segment, &previous, step);
    move->shown.client = job->client;
    move->shown.salt = job->terms.salt;
    if (chance(history, 4)) {
        uint8_t *bytes[] = {move->shown.job_header,
                            move->shown.pre_state.bytes,
                            move->shown.post_state.bytes,
                            move->shown.segment.root.bytes,
                            move->shown.previous.root.bytes,
                            move->shown.post_path.siblings[0].bytes,
                            move->shown.pre_path.siblings[0].bytes};

        bytes[below(history, 7)][5] ^= 1;
    }
}

/* A place of the last round that was drawn and says nothing yet, sealed or not, if there is one. */
static uint32_t choose_place(struct history *history, const struct local_tally *tally,
                             const struct hash32 *segment, bool sealed)
{
    uint32_t span = tally->to > tally->from ? tally->to - tally->from : 1;
    uint32_t place = tally->from;

    for (uint32_t tries = 0; tries < 40; tries++) {
        struct hash32 seat;

        place = tally->from + below(history, span);
        get(history, &seat, LOCAL_SEAT, segment, place);
        if (local_get_place(tally, place) == LOCAL_PLACE_DRAWN && hash32_is_zero(&seat) != sealed) {
            break;
        }
    }
    return place;
}

/* The entry at the move's place. */
static void get_seated(struct history *history, struct local_entry *entry,
                       const struct game_move *move, const struct local_tally *tally)
{
    const struct hash32 segment = game_segment_hash(&move->key, &move->segment);
    struct local_round round = {.seed = tally->seed};

    for (uint32_t i = 1; i <= tally->round && move->place >= tally->first; i++) {
        struct local_round later;

        get(history, &later, LOCAL_ROUND, &segment, i);
        round = move->place >= later.from ? later : round;
    }
    get(history, entry, LOCAL_ENTRY, &move->key,
        (uint64_t)move->segment.generation << 32 |
            game_place_entry(&round.seed, move->place, tally->panel));
}

/* Has settle closed its last round? */
static bool round_is_over(struct history *history, const struct game_move *move,
                          const struct local_tally *tally)
{
    const struct hash32 segment = game_segment_hash(&move->key, &move->segment);
    struct local_round next;

    get(history, &next, LOCAL_ROUND, &segment, tally->round + 1);
    return next.height != 0;
}

/* A seat of a segment: its verdict, or what its place would say. */
static uint32_t seat_move(struct history *history, struct game_move *move,
                          const struct known_segment *known, const struct local_job *job,
                          const struct local_tally *tally, bool reveals)
{
    struct hash32 segment = game_segment_hash(&move->key, &move->segment);
    struct local_entry entry = {0};
    enum game_verdict verdict;

    move->index = move->segment.index;
    move->about = segment;
    move->place =
        chance(history, 95) ? choose_place(history, tally, &segment, reveals) : below(history, 66);
    if (tally->panel > 0) {
        get_seated(history, &entry, move, tally);
    }
    verdict = verdict_of(history, &segment, move->place);
    memset(move->salt.bytes, chance(history, 98) ? 7 : 8, HASH32_SIZE);
    if (known != NULL && verdict == GAME_VERDICT_RIGHT) {
        fill_leaves(history, move, known, tally, &entry.owner, &segment);
    }
    if (verdict == GAME_VERDICT_NONE) {
        move->kind = chance(history, 80) || !reveals ? GAME_UNSEEN : GAME_REVEAL;
    } else if (!reveals) {
        move->kind = GAME_SEAL;
        move->seal = game_verdict_seal(
            &entry.owner, &segment, verdict,
            verdict == GAME_VERDICT_FALSE ? move->place % (move->segment.steps + 1) : 0,
            verdict == GAME_VERDICT_RIGHT ? &move->leaves : NULL, &move->salt);
    } else if (verdict != GAME_VERDICT_FALSE || known == NULL) {
        move->kind = GAME_REVEAL;
    } else {
        move->kind = GAME_ALARM;
        fill_case(history, move, known, job, move->place % (move->segment.steps + 1));
    }
    return chance(history, 97) ? player_of(history, &entry.owner) : below(history, TWINS_PLAYERS);
}

static void challenge_move(struct history *history, struct game_move *move,
                           const struct known_segment *known, const struct local_tally *tally)
{
    const struct game_hashes states = {known->roots, known->segment.steps};
    struct hash32 segment = game_segment_hash(&move->key, &move->segment);
    struct local_entry entry = {0};

    move->kind = GAME_CHALLENGE;
    for (uint32_t tries = 0; tries < 30; tries++) {
        move->place = below(history, tally->to + 1);
        if (local_get_place(tally, move->place) == LOCAL_PLACE_RIGHT) {
            break;
        }
    }
    if (tally->panel > 0) {
        get_seated(history, &entry, move, tally);
    }
    fill_leaves(history, move, known, tally, &entry.owner, &segment);
    memset(move->salt.bytes, chance(history, 98) ? 7 : 8, HASH32_SIZE);
    move->index = below(history, GAME_LEAVES + (chance(history, 5) ? 2 : 0));
    buffer_clear(&history->payload);
    if (tally->panel > 0) {
        made_leaf_proof(&history->payload, &tally->seed, &states, move->index % GAME_LEAVES);
    }
    if (chance(history, 10) && history->payload.size > 0) {
        history->payload.data[below(history, (uint32_t)history->payload.size)] ^= 1;
    }
    move->payload = (struct game_bytes){history->payload.data, history->payload.size};
    move->seal_salt = segment;
}

/* Its seal, by the same player; most then wait for a block. */
static void seal_challenge(struct history *history, const struct game_move *challenge,
                           uint32_t player)
{
    struct hash32 segment = game_segment_hash(&challenge->key, &challenge->segment);
    struct hash32 subject = game_challenge_hash(&segment, challenge->place, challenge->index);
    struct game_move move = {
        .kind = GAME_SEAL_CLAIM,
        .seal = game_claim_seal(&history->twins.players[player], &subject, &challenge->seal_salt)};

    if (chance(history, 92)) {
        (void)twins_play(&history->twins, &move, player);
    }
    history->twins.height += chance(history, 92) ? 1 : 0;
    history->twins.height += chance(history, 3) ? 32 : 0;
}

/* Nothing, or the keeper's word about the segment; some are of another, or no signature. */
static struct game_bytes some_vouch(struct history *history, const struct game_move *move)
{
    struct hash32 segment = game_segment_hash(&move->key, &move->segment);
    struct signature signature;
    struct hash32 digest;
    struct error error;
    size_t size = GAME_VOUCH_SIZE;

    if (chance(history, 80)) {
        return (struct game_bytes){NULL, 0};
    }
    error_init(&error);
    segment.bytes[0] ^= chance(history, 5);
    digest = game_vouch_digest(&history->twins.place, &move->key, &segment);
    assert_int_equal(signer_sign(history->keeper, &signature, &digest, &error), STATUS_OK);
    signature_to_bytes(history->vouch, &signature);
    if (chance(history, 15)) {
        history->vouch[below(history, GAME_VOUCH_SIZE)] ^= (uint8_t)(1 << below(history, 8));
        size = chance(history, 70) ? size : below(history, sizeof(history->vouch) + 1);
    }
    return (struct game_bytes){history->vouch, size};
}

/* What is due after the reveals: another round, or the end. */
static void settle_move(struct history *history, struct game_move *move,
                        const struct local_job *job, const struct local_tally *tally)
{
    move->kind = GAME_SETTLE;
    move->vouch = some_vouch(history, move);
    if (job->refused_until_s != 0 && chance(history, 40)) {
        jump_to(history, job->refused_until_s);
    } else if (chance(history, 70)) {
        jump_to_edge(history, job, tally, &move->segment, 1 + below(history, 3 + tally->unseen));
    }
}

/* Of a commit that nobody drew for a week, sometimes; or of one that never was. */
static void fix_move(struct history *history, struct game_move *move)
{
    move->kind = GAME_FIX;
    if (chance(history, 30)) {
        move->segment.time_s -= GAME_FIX_AFTER_S;
    } else if (chance(history, 60)) {
        jump_to_week(history, move->segment.time_s);
    }
}

static uint32_t segment_move(struct history *history, struct game_move *move)
{
    struct local_job job;
    struct local_tally tally;
    const struct known_segment *known = choose_segment(history, move, &job, &tally);
    uint32_t kind = below(history, 100);
    uint64_t seal_end_s = tally.start_s + job.terms.seal_period_s;
    uint64_t reveal_end_s = seal_end_s + job.terms.reveal_period_s;

    if (known == NULL || kind == 99 || (move->segment.index >= job.drawn && kind < 80) ||
        (kind >= 12 && kind < 80 && round_is_over(history, move, &tally))) {
        move->kind = GAME_DRAW;
        history->twins.height += chance(history, 80) ? 2 : 0;
        if (chance(history, 8)) {
            fix_move(history, move);
        }
        return below(history, TWINS_PLAYERS);
    }
    if (kind < 12 && tally.rights > 0) {
        uint32_t player = below(history, TWINS_PLAYERS);

        challenge_move(history, move, known, &tally);
        if (history->twins.outcome_count + 2 <= TWINS_MOVES) {
            seal_challenge(history, move, player);
        }
        return player;
    }
    if (tally.panel > 0 && history->twins.now_s <= reveal_end_s && kind < 94) {
        if (history->twins.now_s <= seal_end_s && kind < 34) {
            jump_to_edge(history, &job, &tally, &move->segment, 0);
        }
        return seat_move(history, move, known, &job, &tally,
                         history->twins.now_s > seal_end_s || kind > 90);
    }
    settle_move(history, move, &job, &tally);
    return below(history, TWINS_PLAYERS);
}

/* ---- disputes ---------------------------------------------------------------------- */

static uint32_t claim_move(struct history *history, struct game_move *move)
{
    struct local_job job;
    struct local_tally tally;
    struct local_docket docket;
    const struct known_segment *known;
    uint32_t player = 1 + below(history, TWINS_PLAYERS - 1);
    struct hash32 segment;
    struct hash32 subject;

    if (history->seal_count > 0 && chance(history, 60)) {
        struct sealed_claim *sealed = &history->seals[below(history, history->seal_count)];

        *move = sealed->move;
        player = chance(history, 95) ? sealed->player : player;
        get(history, &job, LOCAL_JOB, &move->key, 0);
        get(history, &docket, LOCAL_DOCKET, &move->key, job.generation);
        move->value = chance(history, 95) ? game_claim_bond(&job.terms, docket.outsiders)
                                          : small_amount(history);
        history->twins.height += chance(history, 80) ? 1 : 0;
        history->twins.height += chance(history, 3) ? 32 : 0;
        if (job.refused_until_s != 0 && chance(history, 40)) {
            jump_to(history, job.refused_until_s);
        }
        if (chance(history, 70)) {
            *sealed = history->seals[--history->seal_count];
        }
        return player;
    }
    known = choose_segment(history, move, &job, &tally);
    if (known == NULL) {
        return player;
    }
    move->kind = GAME_CLAIM;
    /* Few steps, so that claimants join. */
    fill_case(history, move, known, &job,
              chance(history, 97) ? below(history, known->segment.steps) : known->segment.steps);
    test_random_fill(&history->random, move->salt.bytes, sizeof(move->salt.bytes));
    segment = game_segment_hash(&move->key, &move->shown.segment);
    subject = game_subject_hash(&segment, move->shown.step, &move->shown.pre_state,
                                &move->shown.post_state);
    if (chance(history, 95)) {
        uint32_t at = history->seal_count < HISTORY_SEALS ? history->seal_count++
                                                          : below(history, HISTORY_SEALS);

        history->seals[at].move = *move;
        history->seals[at].player = player;
        move->kind = GAME_SEAL_CLAIM;
        move->seal = game_claim_seal(&history->twins.players[player], &subject, &move->salt);
        if (chance(history, 5)) {
            (void)twins_play(&history->twins, move, player); /* and once more */
        }
    }
    return player;
}

static const struct known_claim *choose_claim(struct history *history, struct game_move *move,
                                              struct local_dispute *dispute)
{
    const struct known_claim *known = NULL;

    memset(dispute, 0, sizeof(*dispute));
    for (uint32_t tries = 0; tries < 4 && history->claim_count > 0; tries++) {
        known = &history->claims[below(history, history->claim_count)];
        move->key = known->key;
        get(history, dispute, LOCAL_DISPUTE, &move->key, 0);
        if (dispute->phase != GAME_CLAIM_CLOSED) {
            break;
        }
    }
    return known;
}

static void trial_move(struct history *history, struct game_move *move,
                       const struct known_claim *known, const struct local_dispute *dispute)
{
    static const uint8_t nonsense[64];

    move->payload = (struct game_bytes){nonsense, below(history, sizeof(nonsense))};
    if ((dispute->turn == GAME_TURN_ACCUSED) != chance(history, 5)) {
        move->kind = GAME_REPLY;
        move->queried = (struct game_bytes){nonsense, 40};
        return;
    }
    move->kind = chance(history, 50) ? GAME_QUERY : GAME_CONVICT;
    move->subject = known->subject;
    move->value = move->kind == GAME_QUERY ? dispute->query_fee : 0;
    if (chance(history, 10)) {
        move->subject.step++;
    }
}

static uint32_t dispute_move(struct history *history, struct game_move *move)
{
    struct local_dispute dispute;
    struct local_docket docket;
    struct local_claimant lead;
    const struct known_claim *known = choose_claim(history, move, &dispute);
    uint32_t kind = below(history, 100);

    get(history, &docket, LOCAL_DOCKET, &dispute.job, dispute.generation);
    if (known == NULL || kind >= (docket.convicted ? 50 : 92)) {
        move->kind = kind % 4 != 0 ? GAME_LAPSE : GAME_PAY;
        if (move->kind == GAME_PAY) {
            move->key = dispute.job;
            move->generation = dispute.generation;
        }
        return below(history, TWINS_PLAYERS);
    }
    get(history, &lead, LOCAL_CLAIMANT, &move->key, dispute.first);
    if (dispute.phase == GAME_CLAIM_CALLED ? kind < 50 : kind < 5) {
        move->kind = GAME_ANSWER;
        memset(move->root.bytes, chance(history, 97) ? 5 : 0, DIGEST_SIZE);
        return chance(history, 97) ? player_of(history, &dispute.solver)
                                   : below(history, TWINS_PLAYERS);
    }
    if (kind < 60) {
        trial_move(history, move, known, &dispute);
        return player_of(history,
                         dispute.turn == GAME_TURN_ACCUSED ? &dispute.solver : &lead.owner);
    }
    move->kind = GAME_TIMEOUT;
    if (chance(history, 40)) {
        jump_to(history,
                dispute.since_s + (dispute.turn == GAME_TURN_ACCUSED ? dispute.solver_left_s
                                                                     : dispute.lead_left_s));
    }
    return below(history, TWINS_PLAYERS);
}

/* ---- client and solver ------------------------------------------------------------- */

static void commit_move(struct history *history, struct game_move *move,
                        const struct local_job *job)
{
    uint64_t rest = job->terms.steps - (uint64_t)job->committed * job->terms.segment_steps;
    uint32_t steps = rest < job->terms.segment_steps ? (uint32_t)rest : job->terms.segment_steps;

    move->kind = GAME_COMMIT;
    move->index = job->committed + (chance(history, 3) ? 1 : 0);
    move->diverged = chance(history, history->runs_ahead ? 0 : 8);
    steps = job->committed >= job->segments ? 1 : steps;
    steps = move->diverged ? 1 + below(history, steps) : steps;
    steps = steps < HISTORY_STEPS ? steps : HISTORY_STEPS;
    steps += chance(history, 2) ? 1 : 0;
    for (uint32_t i = 0; i < steps; i++) {
        history->roots[i] = made_state_root(below(history, MADE_STATES));
    }
    if (chance(history, 2)) {
        memset(&history->roots[below(history, steps)], 0, DIGEST_SIZE);
    }
    move->states = (struct game_hashes){history->roots, chance(history, 1) ? 0 : steps};
}

static uint32_t solver_move(struct history *history, struct game_move *move,
                            const struct local_job *job)
{
    uint32_t kind = below(history, 100);
    uint32_t player;

    if (job->phase == GAME_PHASE_OPEN && kind < 90) {
        move->kind = GAME_ACCEPT;
        move->value = chance(history, 97) ? job->terms.stake : small_amount(history);
        player = chance(history, 80) ? TWINS_PLAYERS - 1 : below(history, TWINS_PLAYERS);
        move->path = some_path(history, player);
        move->contact = some_contact(history);
        if (chance(history, 70)) {
            jump_to(history, job->opened_at_s + job->terms.seal_period_s);
        }
        return player;
    }
    if (kind < (history->runs_ahead ? 99 : 88)) {
        commit_move(history, move, job);
        return chance(history, 97) ? player_of(history, &job->solver)
                                   : below(history, TWINS_PLAYERS);
    }
    move->kind = GAME_RELEASE;
    if (chance(history, 8)) {
        jump_to(history, chance(history, 70) ? job->due_s : job->terms.deadline_s);
    }
    return below(history, TWINS_PLAYERS);
}

static uint32_t client_move(struct history *history, struct game_move *move,
                            const struct local_job *job)
{
    const bool open = job->phase == GAME_PHASE_OPEN;
    uint32_t kind = below(history, 100);

    if (open && kind < (job->barred ? 90 : 10)) {
        move->kind = GAME_RESUME;
        move->value = job->missing_escrow + job->missing_pool;
    } else if (open && kind < 95) {
        move->kind = GAME_CLOSE;
        if (chance(history, 60)) {
            jump_to(history, job->terms.deadline_s);
            return below(history, TWINS_PLAYERS);
        }
    } else if (kind < 50) {
        move->kind = GAME_REFUSE;
        if (address_equal(&job->terms.keeper, &history->twins.players[HISTORY_KEEPER])) {
            return HISTORY_KEEPER;
        }
    } else if (kind < 80) {
        move->kind = GAME_STOP;
    } else {
        move->kind = GAME_ANNOUNCE;
    }
    return chance(history, 95) ? player_of(history, &job->client) : below(history, TWINS_PLAYERS);
}

/* What brings a job to its next segment. */
static uint32_t work_move(struct history *history, struct game_move *move,
                          const struct local_job *job)
{
    const bool open = job->phase == GAME_PHASE_OPEN;

    if (job->barred ? chance(history, 90) : chance(history, open || history->runs_ahead ? 3 : 10)) {
        return client_move(history, move, job);
    }
    if (open && job->entries < job->terms.panel_least && chance(history, 80)) {
        return panel_move(history, move, job, 90);
    }
    if (open && chance(history, 8)) {
        return panel_move(history, move, job, 40);
    }
    return solver_move(history, move, job);
}

/* Makes room for a new job. */
static bool a_job_is_over(struct history *history)
{
    uint32_t at = below(history, history->job_count);

    if (history->states[at].phase != GAME_PHASE_CLOSED || !chance(history, 15)) {
        return false;
    }
    history->jobs[at] = history->jobs[--history->job_count];
    return true;
}

static uint32_t open_move(struct history *history, struct game_move *move)
{
    move->kind = GAME_OPEN;
    move->terms = some_terms(history);
    move->contact = some_contact(history);
    if (chance(history, 20)) {
        random_terms_spoil(&move->terms, &history->random, history->twins.now_s);
    }
    move->value = game_escrow(&move->terms);
    if (chance(history, 3)) {
        move->value = small_amount(history);
    }
    return below(history, HISTORY_CLIENTS);
}

/* No segment of it waits for its end. */
static bool is_idle(const struct local_job *job)
{
    return job->phase == GAME_PHASE_OPEN ||
           (job->phase == GAME_PHASE_RUNNING && job->committed == job->finalized);
}

uint32_t history_choose(struct history *history, struct game_move *move)
{
    uint32_t kind = below(history, 100);
    uint32_t player;
    struct local_job job;

    memset(move, 0, sizeof(*move));
    pass_time(history);
    look_at_jobs(history);
    choose_job(history, move, &job);
    if (history->job_count < HISTORY_JOBS || kind < 1 || a_job_is_over(history)) {
        player = open_move(history, move);
    } else if (kind < 22 || (is_idle(&job) && kind < 80) || (history->runs_ahead && kind < 85)) {
        player = work_move(history, move, &job);
    } else if (kind < 28) {
        player = panel_move(history, move, &job, 40);
    } else if (kind < 97 - history->hostility) {
        player = segment_move(history, move);
    } else if (kind < 97 - history->hostility / 2) {
        player = claim_move(history, move);
    } else if (kind < 97) {
        player = dispute_move(history, move);
    } else {
        move->kind = GAME_WITHDRAW;
        move->account = chance(history, 95) ? history->twins.players[below(history, TWINS_PLAYERS)]
                                            : (struct address){{0}};
        player = below(history, TWINS_PLAYERS);
    }
    if ((move->kind == GAME_ENLIST || move->kind == GAME_CLAIM) && chance(history, 25)) {
        move->value = chance(history, 80) ? 0 : move->value / 2; /* from what is owed */
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

uint64_t history_seed(uint64_t usual)
{
    const char *seed = getenv("LOCKSTEP_FUZZ_SEED");

    return seed == NULL ? usual : strtoull(seed, NULL, 10);
}

void history_init(struct history *history, uint64_t random)
{
    static const struct secret_key key = {{1, 2, 3}};
    struct error error;

    error_init(&error);
    history->random = random;
    history->keeper = signer_new(&key, &error);
    assert_non_null(history->keeper);
    buffer_init(&history->payload, 1 << 16);
    made_job(history->header, &history->job_id, 0);
}

void history_release(struct history *history)
{
    signer_free(history->keeper);
    buffer_release(&history->payload);
}

void history_begin(struct history *history)
{
    struct twins *twins = &history->twins;

    history->job_count = 0;
    history->segment_count = 0;
    history->claim_count = 0;
    history->seal_count = 0;
    history->patience = 20 + 15 * below(history, 6);
    history->runs_ahead = chance(history, 10);
    history->hostility = history->runs_ahead ? 0 : chance(history, 50) ? 6 : 40;
    for (uint32_t i = 0; i < HISTORY_JOBS; i++) {
        struct game_move move = {.kind = GAME_OPEN};

        move.terms = some_terms(history);
        move.value = game_escrow(&move.terms);
        if (!twins_play(twins, &move, i % HISTORY_CLIENTS).done) {
            continue;
        }
        for (uint32_t player = HISTORY_CLIENTS; player < TWINS_PLAYERS - 1; player++) {
            struct game_move enlist = {
                .kind = GAME_ENLIST, .key = history->jobs[history->job_count - 1], .count = 3};

            enlist.value = 3 * move.terms.bond;
            enlist.path = some_path(history, player);
            (void)twins_play(twins, &enlist, player);
        }
    }
}
