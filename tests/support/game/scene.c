/* scene.c - see scene.h. */
#include "tests/support/game/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/keccak.h"
#include "chain/codec/uint256.h"
#include "chain/game/vouch.h"
#include "chain/job/due_submit.h"
#include "tests/support/test.h"

enum {
    CHALLENGE_MS = 60000,
    GAS_FORGIVEN = 20, /* thousandths of an ether */
};

static const struct game_bytes no_contact;
static const struct game_hashes no_path;

/* ---- the stage ------------------------------------------------------------------ */

void scene_open(struct scene *scene, enum stage_ledger ledger, const char *name)
{
    memset(scene, 0, sizeof(*scene));
    stage_open(&scene->stage, ledger, name);
    scene->terms = (struct game_terms){
        .salt = 1,
        .steps = SCENE_SEGMENTS * SCENE_STEPS,
        .segment_steps = SCENE_STEPS,
        .reward = WEI_PER_ETHER,
        .fee = WEI_PER_ETHER / 10,
        .stake = 20 * WEI_PER_ETHER,
        .bond = WEI_PER_ETHER,
        .query_fee = WEI_PER_ETHER / 1000,
        .seats = 1,
        .coverage_ppm = GAME_PPM,
        .panel_least = 1,
        .segment_period_s = SCENE_SEGMENT_S,
        .seal_period_s = SCENE_SEAL_S,
        .reveal_period_s = SCENE_REVEAL_S,
        .claim_period_s = SCENE_CLAIM_S,
        .clock_s = SCENE_CLOCK_S,
        .deadline_s = stage_clock(&scene->stage) + 1000000,
    };
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        scene->before[i] = stage_money(&scene->stage, i);
    }
}

void scene_close(struct scene *scene)
{
    job_record_free(&scene->record);
    stage_close(&scene->stage);
}

void scene_pass(struct scene *scene, uint32_t seconds)
{
    stage_pass_time(&scene->stage, seconds);
}

static const struct address *account(struct scene *scene, int player)
{
    return signer_address(scene->stage.signers[player]);
}

static int player_of(struct scene *scene, const struct address *owner)
{
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        if (address_equal(account(scene, i), owner)) {
            return i;
        }
    }
    return SCENE_STRANGER;
}

void scene_read(struct scene *scene)
{
    struct ledger *ledger = scene->stage.ledgers[STAGE_CLIENT];
    struct error error;

    error_init(&error);
    stage_check(ledger_catch_up(ledger, &error), &error);
    stage_check(job_record_follow(&scene->record, ledger, &error), &error);
}

/* ---- client and solver ------------------------------------------------------------ */

void scene_open_job(struct scene *scene)
{
    made_job(scene->header, &scene->terms.job_id, made_state(scene->shape, 0));
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_open_job, &scene->job, &scene->terms,
               &no_contact);
    job_record_init(&scene->record, &scene->job, account(scene, STAGE_CLIENT));
    scene_read(scene);
}

void scene_enlist(struct scene *scene, int player, uint32_t entries)
{
    STAGE_PLAY(&scene->stage, player, ledger_enlist, &scene->job, &scene->terms, entries, &no_path,
               &no_contact);
}

void scene_accept(struct scene *scene, int player)
{
    uint64_t now_s = stage_clock(&scene->stage);
    uint64_t from_s;

    scene_read(scene);
    from_s = scene->record.state.opened_s + scene->terms.seal_period_s + 1;
    if (scene->terms.seats > 0 && hash32_is_zero(&scene->terms.verifiers) && now_s < from_s) {
        scene_pass(scene, (uint32_t)(from_s - now_s));
    }
    STAGE_PLAY(&scene->stage, player, ledger_accept, &scene->job, &scene->terms, &no_path,
               &no_contact);
}

/* The last segment has what is left. */
static uint32_t steps_of(const struct scene *scene, uint32_t index)
{
    const uint32_t most = scene->terms.segment_steps;
    const uint64_t left = scene->terms.steps - (uint64_t)index * most;

    return left < most ? (uint32_t)left : most;
}

/* From step `lie` on they are others. */
static void fill_states(const struct scene *scene, struct digest states[SCENE_STEPS],
                        uint32_t index, uint32_t lie)
{
    for (uint32_t i = 0; i < scene->terms.segment_steps; i++) {
        uint32_t number = 1 + index * scene->terms.segment_steps + i;

        states[i] =
            made_state_root(made_state(scene->shape, i < lie ? number : number + MADE_LIES));
    }
}

void scene_commit(struct scene *scene, int player, uint32_t lie)
{
    struct digest states[SCENE_STEPS];
    struct game_hashes list = {states, 0};
    uint32_t index;

    scene_read(scene);
    index = scene->record.state.committed;
    list.count = steps_of(scene, index);
    fill_states(scene, states, index, lie);
    STAGE_PLAY(&scene->stage, player, ledger_commit, &scene->job, index, &list, false);
    scene_read(scene);
    assert_int_equal(scene->record.state.committed, index + 1);
}

struct game_segment scene_segment(struct scene *scene, uint32_t index)
{
    scene_read(scene);
    assert_true(index < scene->record.state.committed);
    return scene->record.segments[index].committed;
}

struct hash32 scene_random_of(struct scene *scene, uint64_t height)
{
    const struct uint256 number = uint256_of(height);
    uint8_t bytes[UINT256_SIZE];

    if (scene->stage.anvil != NULL) {
        return anvil_word_of_block(scene->stage.rpc, height, "mixHash");
    }
    uint256_to_bytes(bytes, &number); /* while the test keeps the clock of an embedded ledger */
    return keccak256(bytes, sizeof(bytes));
}

/* The states of a segment, found again by its root. */
static struct game_hashes states_of(struct scene *scene, struct digest *states,
                                    const struct game_segment *segment)
{
    struct game_hashes list = {states, steps_of(scene, segment->index)};

    for (uint32_t lie = 0; lie <= SCENE_STEPS; lie++) {
        struct digest root;

        fill_states(scene, states, segment->index, lie);
        root = game_segment_root(&list, (uint64_t)segment->index * scene->terms.segment_steps);
        if (digest_equal(&root, &segment->root)) {
            return list;
        }
    }
    fail_msg("a segment of other states");
    return list;
}

uint32_t scene_replay(struct scene *scene, uint32_t index)
{
    struct game_segment segment = scene_segment(scene, index);
    struct digest room[SCENE_STEPS];
    struct digest truth[SCENE_STEPS];
    struct game_hashes states = states_of(scene, room, &segment);
    uint32_t step = 0;

    fill_states(scene, truth, index, SCENE_STEPS);
    while (step < states.count && digest_equal(&states.hashes[step], &truth[step])) {
        step++;
    }
    return step;
}

/* ---- seats -------------------------------------------------------------------------- */

/* A move that changes nothing: a block. */
static void pass_block(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_announce, &scene->job, &no_contact);
}

void scene_pass_blocks(struct scene *scene, uint32_t count)
{
    if (scene->stage.anvil != NULL) {
        json_decref(anvil_call(scene->stage.rpc, "anvil_mine", json_pack("[i]", (int)count)));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        pass_block(scene);
    }
}

void scene_draw(struct scene *scene, uint32_t index)
{
    struct game_segment segment = scene_segment(scene, index);
    const struct job_segment state = job_record_segment(&scene->record, index);
    char name[32];
    struct error error;
    enum status status;

    (void)stage_next_name(&scene->stage, name, sizeof(name));
    do { /* it may have to wait for its block, or fix its seed first */
        error_init(&error);
        pass_block(scene);
        status = ledger_draw(scene->stage.ledgers[STAGE_CLIENT], name, &scene->job, &segment,
                             &state.commits, &error);
    } while (status == STATUS_UNREACHABLE);
    stage_check(status, &error);
    stage_settle_down(&scene->stage, STAGE_CLIENT, name);
    scene_read(scene);
}

void scene_commit_for_two(struct scene *scene, uint32_t friends, uint32_t lie)
{
    scene->terms.seats = 2;
    scene->terms.panel_least = 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, friends);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, lie);
    scene_draw(scene, 0);
}

int scene_seat(struct scene *scene, uint32_t index, uint32_t n, uint32_t *place)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        const struct job_record_seat *seat = &scene->record.seats[i];

        if (seat->index == index && seat->round == scene->record.segments[index].draw.round &&
            found++ == n) {
            *place = seat->place;
            return player_of(scene, &seat->owner);
        }
    }
    return -1;
}

static struct ledger_verdict verdict_of(struct scene *scene, uint32_t index, uint32_t place,
                                        int player, const struct scene_verdicts *verdicts)
{
    struct ledger_verdict verdict = {.job = scene->job,
                                     .segment = scene_segment(scene, index),
                                     .place = place,
                                     .verdict = verdicts->of[player],
                                     .step = verdicts->false_step,
                                     .salt = {{(uint8_t)(1 + place), (uint8_t)player}}};
    struct hash32 hash = game_segment_hash(&scene->job, &verdict.segment);
    struct digest room[SCENE_STEPS];
    struct game_hashes states;

    if (verdict.verdict != GAME_VERDICT_FALSE) {
        verdict.step = 0;
    }
    if (verdict.verdict != GAME_VERDICT_RIGHT || verdicts->made_up[player]) {
        return verdict;
    }
    states = states_of(scene, room, &verdict.segment);
    for (uint32_t i = 0; verdicts->lazy[player] && i < states.count; i++) {
        room[i] = room[states.count - 1];
    }
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        struct hash32 right = made_right_hash(
            account(scene, verdicts->copies[player] > 0 ? verdicts->copies[player] : player),
            &scene->record.segments[index].draw.seed, &hash, &states, i);

        game_leaves_set(&verdict.leaves, i, &right);
    }
    return verdict;
}

/* The case that a step of a segment is false. */
static void case_of(struct scene *scene, struct game_case *shown, uint32_t index, uint32_t step)
{
    struct game_segment segment = scene_segment(scene, index);
    struct game_segment previous = {0};
    struct digest room[SCENE_STEPS];
    struct digest before[SCENE_STEPS];
    struct game_hashes states = states_of(scene, room, &segment);
    struct game_hashes earlier = {before, 0};

    if (index > 0) {
        previous = scene_segment(scene, index - 1);
        earlier = states_of(scene, before, &previous);
    }
    made_states_case(shown, scene->header, &segment, &states, index == 0 ? NULL : &previous,
                     &earlier, step);
    shown->client = *account(scene, STAGE_CLIENT);
    shown->salt = scene->terms.salt;
}

static struct hash32 claim_key_of(struct scene *scene, const struct game_case *shown)
{
    struct hash32 hash = game_segment_hash(&scene->job, &shown->segment);
    struct hash32 subject =
        game_subject_hash(&hash, shown->step, &shown->pre_state, &shown->post_state);

    return game_claim_key(&subject, 0);
}

static void reveal(struct scene *scene, uint32_t index, const struct ledger_verdict *verdict,
                   int player, struct hash32 *claim)
{
    struct game_case shown;

    if (verdict->verdict != GAME_VERDICT_FALSE) {
        STAGE_PLAY(&scene->stage, player, ledger_reveal, verdict);
        return;
    }
    case_of(scene, &shown, index, verdict->step);
    STAGE_PLAY(&scene->stage, player, ledger_alarm, verdict, &shown);
    if (claim != NULL) {
        *claim = claim_key_of(scene, &shown);
    }
}

static void seal(struct scene *scene, uint32_t index, uint32_t place, int player,
                 const struct scene_verdicts *verdicts)
{
    struct ledger_verdict verdict = verdict_of(scene, index, place, player, verdicts);

    if (verdicts->unseen[player]) {
        STAGE_PLAY(&scene->stage, player, ledger_unseen, &scene->job, &verdict.segment, place);
    } else if (verdict.verdict != GAME_VERDICT_NONE) {
        STAGE_PLAY(&scene->stage, player, ledger_seal, &verdict);
    }
}

void scene_round(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts,
                 struct hash32 *claim)
{
    uint32_t place = 0;
    int player;

    scene_read(scene);
    for (uint32_t n = 0; (player = scene_seat(scene, index, n, &place)) >= 0; n++) {
        seal(scene, index, place, player, verdicts);
    }
    scene_pass(scene, scene->terms.seal_period_s + 1);
    for (uint32_t n = 0; (player = scene_seat(scene, index, n, &place)) >= 0; n++) {
        struct ledger_verdict verdict = verdict_of(scene, index, place, player, verdicts);

        if (verdict.verdict != GAME_VERDICT_NONE && !verdicts->unseen[player]) {
            reveal(scene, index, &verdict, player, claim);
        }
    }
    scene_pass(scene, scene->terms.reveal_period_s + 1);
    scene_read(scene);
}

static enum game_seat_phase seat_phase(const struct scene *scene, uint32_t index, uint32_t place)
{
    for (uint32_t i = scene->record.seat_count; i-- > 0;) {
        const struct job_record_seat *seat = &scene->record.seats[i];

        if (seat->index == index && seat->place == place) {
            return seat->state.phase;
        }
    }
    return GAME_SEAT_CLOSED;
}

void scene_say(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts)
{
    const struct job_segment segment = job_record_segment(&scene->record, index);
    const bool sealing = stage_clock(&scene->stage) <= job_segment_seal_end(&segment);
    uint32_t place = 0;
    int player;

    for (uint32_t n = 0; (player = scene_seat(scene, index, n, &place)) >= 0; n++) {
        const enum game_seat_phase phase = seat_phase(scene, index, place);

        if (sealing && phase == GAME_SEAT_NONE) {
            seal(scene, index, place, player, verdicts);
        } else if (!sealing && phase == GAME_SEAT_SEALED && player != SCENE_STRANGER) {
            struct ledger_verdict verdict = verdict_of(scene, index, place, player, verdicts);

            reveal(scene, index, &verdict, player, NULL);
        }
    }
}

void scene_rounds(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts)
{
    scene_rounds_after(scene, index, verdicts, verdicts);
}

void scene_rounds_after(struct scene *scene, uint32_t index, const struct scene_verdicts *first,
                        const struct scene_verdicts *later)
{
    struct job_segment segment;
    uint64_t now_s;

    for (int i = 0; i < GAME_PLACES_MAX; i++) {
        scene_round(scene, index, i == 0 ? first : later, NULL);
        segment = job_record_segment(&scene->record, index);
        now_s = stage_clock(&scene->stage);
        if (job_segment_waits_for(&segment, now_s) != JOB_SEGMENT_ROUND) {
            break;
        }
        scene_next_round(scene, STAGE_CLIENT, index);
    }
    segment = job_record_segment(&scene->record, index);
    if (job_segment_claim_end(&segment) >= now_s) {
        scene_pass(scene, (uint32_t)(job_segment_claim_end(&segment) - now_s) + 1);
    }
}

void scene_settle(struct scene *scene, int player, uint32_t index)
{
    struct game_segment segment = scene_segment(scene, index);

    STAGE_PLAY(&scene->stage, player, ledger_settle, &scene->job, &segment, NULL);
    scene_read(scene);
}

void scene_next_round(struct scene *scene, int player, uint32_t index)
{
    scene_settle(scene, player, index);
    scene_draw(scene, index);
}

void scene_vouch(struct scene *scene, int player, int keeper, uint32_t index)
{
    struct game_segment segment = scene_segment(scene, index);
    struct hash32 hash = game_segment_hash(&scene->job, &segment);
    struct vouch vouch;
    struct game_bytes signature = {vouch.signature, GAME_VOUCH_SIZE};
    struct error error;

    error_init(&error);
    stage_check(vouch_sign(&vouch, ledger_get_game(scene->stage.ledgers[player]), &scene->job,
                           &hash, scene->stage.signers[keeper], &error),
                &error);
    STAGE_PLAY(&scene->stage, player, ledger_settle, &scene->job, &segment, &signature);
    scene_read(scene);
}

void scene_end_segment(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts)
{
    scene_draw(scene, index);
    scene_rounds(scene, index, verdicts);
    scene_settle(scene, STAGE_SOLVER, index);
}

/* What was revealed at the place, as everybody reads it. */
static void find_revealed(struct ledger *ledger, struct ledger_challenge *challenge)
{
    struct ledger_entry entry = {0};
    struct error error;

    error_init(&error);
    stage_check(ledger_catch_up(ledger, &error), &error);
    while (ledger_next(ledger, &entry, entry.number, 0, &error) == STATUS_OK) {
        const struct game_event *event = &entry.event;

        if (entry.kind != LEDGER_REWIND && event->kind == GAME_REVEALED &&
            event->index == challenge->segment.index && event->place == challenge->place) {
            challenge->leaves = event->leaves;
            challenge->salt = event->seal;
        }
    }
}

/* seals: first, as the rules want it. */
static enum game_refusal_kind challenge_right(struct scene *scene, int player, uint32_t index,
                                              int owner, uint32_t which, bool seals)
{
    struct ledger_challenge challenge = {
        .job = scene->job, .segment = scene_segment(scene, index), .which = which};
    struct ledger *ledger = scene->stage.ledgers[player];
    struct ledger_outcome outcome;
    struct digest room[SCENE_STEPS];
    struct game_hashes states = states_of(scene, room, &challenge.segment);
    struct buffer shown;
    char name[32];
    struct error error;
    int found;

    error_init(&error);
    for (uint32_t n = 0; (found = scene_seat(scene, index, n, &challenge.place)) != owner; n++) {
        assert_true(found >= 0);
    }
    find_revealed(ledger, &challenge);
    buffer_init(&shown, GAME_PAYLOAD_MAX);
    made_leaf_proof(&shown, &scene->record.segments[index].draw.seed, &states, which);
    memset(challenge.seal_salt.bytes, (int)scene->stage.moves, HASH32_SIZE);
    if (seals) {
        STAGE_PLAY(&scene->stage, player, ledger_seal_challenge, &challenge);
        pass_block(scene);
    }
    stage_check(ledger_challenge(ledger, stage_next_name(&scene->stage, name, sizeof(name)),
                                 &challenge, shown.data, shown.size, &error),
                &error);
    buffer_release(&shown);
    stage_check(ledger_wait(ledger, &outcome, name, false, CHALLENGE_MS, &error), &error);
    return outcome.state == LEDGER_MOVE_REFUSED ? outcome.refusal.kind : GAME_REFUSED_NOT;
}

enum game_refusal_kind scene_challenge(struct scene *scene, int player, uint32_t index, int owner,
                                       uint32_t which)
{
    return challenge_right(scene, player, index, owner, which, true);
}

enum game_refusal_kind scene_challenge_unsealed(struct scene *scene, int player, uint32_t index,
                                                int owner, uint32_t which)
{
    return challenge_right(scene, player, index, owner, which, false);
}

/* ---- claims --------------------------------------------------------------------------- */

struct hash32 scene_claim(struct scene *scene, int player, uint32_t index, uint32_t step,
                          uint32_t others)
{
    struct hash32 salt = {{0x77, (uint8_t)player, (uint8_t)index, (uint8_t)step}};
    struct game_case shown;
    struct hash32 hash;
    struct hash32 subject;

    case_of(scene, &shown, index, step);
    hash = game_segment_hash(&scene->job, &shown.segment);
    subject = game_subject_hash(&hash, step, &shown.pre_state, &shown.post_state);
    STAGE_PLAY(&scene->stage, player, ledger_seal_claim, &subject, &salt);
    scene_pass(scene, 2);
    STAGE_PLAY(&scene->stage, player, ledger_claim, &scene->job, &shown, &salt,
               game_claim_bond(&scene->terms, others));
    return claim_key_of(scene, &shown);
}

void scene_answer(struct scene *scene, int player, const struct hash32 *claim)
{
    struct digest root = {{0x42}};

    STAGE_PLAY(&scene->stage, player, ledger_answer, claim, &root);
}

void scene_timeout(struct scene *scene, int player, const struct hash32 *claim)
{
    STAGE_PLAY(&scene->stage, player, ledger_timeout, claim);
}

void scene_pay(struct scene *scene, int player, uint32_t generation)
{
    STAGE_PLAY(&scene->stage, player, ledger_pay, &scene->job, generation);
}

void scene_see_convicted(struct scene *scene, const struct hash32 *alarm)
{
    scene_timeout(scene, STAGE_VERIFIER, alarm);
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 5000);
}

/* ---- the end ---------------------------------------------------------------------------- */

/* The first due move that gives an entry back. record: of this player. */
static bool depart_one(struct scene *scene, int player, struct job_record *record)
{
    struct ledger_clock clock = {.time_s = stage_clock(&scene->stage), .height = UINT32_MAX};
    struct ledger *ledger = scene->stage.ledgers[player];
    struct due_move move;
    char name[LEDGER_NAME_MAX];
    struct error error;

    error_init(&error);
    stage_check(ledger_catch_up(ledger, &error), &error);
    stage_check(job_record_follow(record, ledger, &error), &error);
    if (!due_move_next(&move, record, &clock, account(scene, player)) ||
        move.kind != DUE_MOVE_DEPART) {
        return false;
    }
    stage_check(due_submit(name, ledger, record, &move, &error), &error);
    stage_settle_down(&scene->stage, player, name);
    return true;
}

void scene_depart(struct scene *scene)
{
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        struct job_record record; /* keeps the seats of one account */

        job_record_init(&record, &scene->job, account(scene, i));
        while (depart_one(scene, i, &record)) {
        }
        job_record_free(&record);
    }
}

int64_t scene_gain_of(wei now, wei before)
{
    const wei unit = WEI_PER_ETHER / 1000;

    /* Gas makes it a little less; round to the nearest. */
    return now >= before ? (int64_t)((now - before + unit / 2) / unit)
                         : -(int64_t)((before - now + unit / 2) / unit);
}

int64_t scene_gain(struct scene *scene, int player)
{
    return scene_gain_of(stage_money(&scene->stage, player), scene->before[player]);
}

/* Rounded once: a share of a pool is no whole thousandth. */
int64_t scene_party_gain(struct scene *scene, const int *players, uint32_t count)
{
    wei now = 0;
    wei before = 0;

    for (uint32_t i = 0; i < count; i++) {
        now += stage_money(&scene->stage, players[i]);
        before += scene->before[players[i]];
    }
    return scene_gain_of(now, before);
}

void scene_see(struct scene *scene, int64_t gain, int64_t wanted)
{
    bool pays_gas = scene->stage.anvil != NULL && address_is_zero(&scene->stage.token);
    int64_t forgiven = pays_gas ? GAS_FORGIVEN : 0;

    if (gain > wanted || gain < wanted - forgiven) {
        fail_msg("a gain of %lld thousandths, wanted %lld", (long long)gain, (long long)wanted);
    }
}

/* ---- whole jobs ------------------------------------------------------------------------- */

static void restart_all(struct scene *scene)
{
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        stage_restart(&scene->stage, i);
    }
}

static void do_job(struct scene *scene)
{
    static const struct scene_verdicts right = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT}};

    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_accept(scene, STAGE_SOLVER);
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
        restart_all(scene);
    }
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_end_segment(scene, i, &right);
        restart_all(scene);
    }
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    STAGE_PLAY(&scene->stage, STAGE_SOLVER, ledger_withdraw, account(scene, STAGE_SOLVER));
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 400); /* the last segment has both */
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -3400);
    assert_true(stage_owed(&scene->stage, STAGE_SOLVER) == 0);
}

static void convict_silence(struct scene *scene)
{
    struct hash32 claim;

    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1);
    claim = scene_claim(scene, STAGE_SECOND, 0, 1, 0);
    restart_all(scene);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_CLIENT, &claim);
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_read(scene);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_OPEN);
    assert_int_equal(scene->record.state.generation, 1);
    assert_int_equal(scene->record.state.committed, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 5000);
}

void scene_play_jobs(enum stage_ledger ledger)
{
    struct scene scene;

    scene_open(&scene, ledger, ledger == STAGE_EMBEDDED ? "job" : "job-evm");
    do_job(&scene);
    scene_close(&scene);
    scene_open(&scene, ledger, ledger == STAGE_EMBEDDED ? "silence" : "silence-evm");
    convict_silence(&scene);
    scene_close(&scene);
}
