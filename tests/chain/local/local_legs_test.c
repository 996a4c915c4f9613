/*
 * Goal: legs and tenures of the embedded game end by the rules of docs/PROTOCOL.md, to the wei.
 * Method: one job at a time, its numbers computed by hand: a leg that is paid, a right that came
 * late, a void and what it burns, a vouch that is early, false or good, a refusal and what it
 * holds, a solver that is 64 segments ahead, a stop, bonds in each phase. tests/chain/game/
 * history_test.c holds the contracts against the same game.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/game/vouch.h"
#include "tests/support/game/promised.h"
#include "tests/support/game/twins.h"

enum {
    CLIENT = 0,
    FIRST = 2, /* verifier, */
    SECOND = 3,
    STRANGER = 4,
    SOLVER = 5,
    SEGMENTS = 100,
    REWARD = 1000,
    FEE = 100,
    STAKE = 5000,
    BOND = 400,
    QUERY_FEE = 36,
    SEATS = 2,
    PERIOD = 50, /* of a segment */
    SEAL = 10,
    REVEAL = 5,
    CLAIM = 20,
    NOTICE = SEAL + REVEAL + CLAIM, /* of a refusal */
    DEADLINE = 100000,              /* from the opening on */
};

struct world {
    struct twins twins;
    struct signer *keeper;
    struct hash32 key;
    struct game_terms terms;
    struct game_segment segments[SEGMENTS];
    uint64_t opened_s;
};

static void learn(void *context, const struct game_event *event)
{
    struct world *world = context;

    if (event->kind == GAME_COMMITTED) {
        world->segments[event->index] = event->segment;
    } else if (event->kind == GAME_OPENED) {
        world->key = event->job;
    }
}

static struct local_job job_of(struct world *world)
{
    struct local_job job;

    assert_int_equal(local_get(&world->twins.store, &job, LOCAL_JOB, &world->key, 0), STATUS_OK);
    return job;
}

static struct hash32 hash_of(const struct world *world, uint32_t index)
{
    return game_segment_hash(&world->key, &world->segments[index]);
}

static struct local_tally tally_of(struct world *world, uint32_t index)
{
    const struct hash32 hash = hash_of(world, index);
    struct local_tally tally;

    assert_int_equal(local_get(&world->twins.store, &tally, LOCAL_TALLY, &hash, 0), STATUS_OK);
    return tally;
}

static wei owed(struct world *world, uint32_t player)
{
    const struct hash32 key = local_key_of_account(&world->twins.players[player]);
    struct local_account account;

    assert_int_equal(local_get(&world->twins.store, &account, LOCAL_ACCOUNT, &key, 0), STATUS_OK);
    return account.owed;
}

static wei burned(struct world *world)
{
    static const struct hash32 key;
    wei amount;

    assert_int_equal(local_get(&world->twins.store, &amount, LOCAL_BURNED, &key, 0), STATUS_OK);
    return amount;
}

/* GAME_REFUSED_NOT: it was done. */
static enum game_refusal_kind play(struct world *world, const struct game_move *move,
                                   uint32_t player)
{
    struct twins_outcome outcome = twins_play(&world->twins, move, player);

    assert_true(outcome.done || outcome.refusal.kind != GAME_REFUSED_NOT);
    return outcome.refusal.kind;
}

static enum game_refusal_kind simple(struct world *world, enum game_move_kind kind, wei value,
                                     uint32_t player)
{
    const struct game_move move = {.kind = kind, .key = world->key, .value = value};

    return play(world, &move, player);
}

static void must(enum game_refusal_kind refusal)
{
    if (refusal != GAME_REFUSED_NOT) {
        fail_msg("%s", game_refusal_text(refusal));
    }
}

static void wait_s(struct world *world, uint64_t seconds)
{
    world->twins.now_s += seconds;
    world->twins.height += 2;
}

static enum game_refusal_kind enlist(struct world *world, uint32_t player, uint32_t count)
{
    const struct game_move move = {
        .kind = GAME_ENLIST, .key = world->key, .count = count, .value = (wei)count * BOND};

    return play(world, &move, player);
}

static enum game_refusal_kind depart(struct world *world, uint32_t generation, uint32_t entry,
                                     uint32_t player)
{
    const struct game_move move = {
        .kind = GAME_DEPART, .key = world->key, .generation = generation, .entry = entry};

    return play(world, &move, player);
}

static void open_world(struct world *world, uint32_t coverage_ppm)
{
    static const struct secret_key key = {{9}};
    struct game_move move = {.kind = GAME_OPEN};
    struct error error;

    error_init(&error);
    memset(world, 0, sizeof(*world));
    twins_open_embedded(&world->twins);
    world->twins.learn = learn;
    world->twins.context = world;
    world->twins.now_s = 1000;
    world->twins.height = 10;
    world->opened_s = 1000;
    world->keeper = signer_new(&key, &error);
    assert_non_null(world->keeper);
    world->terms = (struct game_terms){.job_id = {{1}},
                                       .steps = SEGMENTS,
                                       .segment_steps = 1,
                                       .reward = REWARD,
                                       .fee = FEE,
                                       .stake = STAKE,
                                       .bond = BOND,
                                       .query_fee = QUERY_FEE,
                                       .seats = SEATS,
                                       .coverage_ppm = coverage_ppm,
                                       .panel_least = SEATS,
                                       .keeper = *signer_address(world->keeper),
                                       .segment_period_s = PERIOD,
                                       .seal_period_s = SEAL,
                                       .reveal_period_s = REVEAL,
                                       .claim_period_s = CLAIM,
                                       .clock_s = 10,
                                       .deadline_s = 1000 + DEADLINE};
    move.terms = world->terms;
    move.value = game_escrow(&move.terms);
    must(play(world, &move, CLIENT));
}

static void close_world(struct world *world)
{
    wei sum = promised_money(&world->twins.store);

    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        sum += owed(world, i);
    }
    assert_true(sum == world->twins.paid_in - world->twins.paid_out);
    signer_free(world->keeper);
    twins_close(&world->twins);
}

static void accept_job(struct world *world)
{
    must(enlist(world, FIRST, 1));
    must(enlist(world, SECOND, 1));
    wait_s(world, SEAL + 1);
    must(simple(world, GAME_ACCEPT, STAKE, SOLVER));
}

static enum game_refusal_kind commit(struct world *world)
{
    const struct digest state = {{7}};
    const struct game_move move = {.kind = GAME_COMMIT,
                                   .key = world->key,
                                   .index = job_of(world).committed,
                                   .states = {&state, 1}};

    return play(world, &move, SOLVER);
}

static void draw(struct world *world, uint32_t index)
{
    const struct game_move move = {
        .kind = GAME_DRAW, .key = world->key, .segment = world->segments[index]};

    must(play(world, &move, STRANGER));
}

static void commit_and_draw(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        must(commit(world));
        wait_s(world, 0);
        draw(world, job_of(world).committed - 1);
    }
}

static enum game_refusal_kind settle(struct world *world, uint32_t index, const uint8_t *vouch,
                                     size_t size)
{
    const struct game_move move = {.kind = GAME_SETTLE,
                                   .key = world->key,
                                   .segment = world->segments[index],
                                   .vouch = {vouch, size}};

    return play(world, &move, STRANGER);
}

static struct vouch vouch_of(struct world *world, uint32_t index)
{
    const struct hash32 hash = hash_of(world, index);
    struct vouch vouch;
    struct error error;

    error_init(&error);
    assert_int_equal(
        vouch_sign(&vouch, &world->twins.place, &world->key, &hash, world->keeper, &error),
        STATUS_OK);
    return vouch;
}

/* The place of a player's seat in the last round. */
static uint32_t seat_of(struct world *world, uint32_t index, uint32_t player)
{
    const struct local_tally tally = tally_of(world, index);
    uint32_t place = tally.from;

    while (game_place_entry(&tally.seed, place, tally.panel) != player - FIRST) {
        place++;
    }
    assert_true(place < tally.to);
    return place;
}

static void say_unseen(struct world *world, uint32_t index, uint32_t player)
{
    const struct game_move move = {.kind = GAME_UNSEEN,
                                   .key = world->key,
                                   .index = index,
                                   .about = hash_of(world, index),
                                   .place = seat_of(world, index, player)};

    must(play(world, &move, player));
}

static void seal_right(struct world *world, uint32_t index, uint32_t player)
{
    struct game_move move = {.kind = GAME_SEAL,
                             .key = world->key,
                             .index = index,
                             .about = hash_of(world, index),
                             .place = seat_of(world, index, player)};

    move.seal = game_verdict_seal(&world->twins.players[player], &move.about, GAME_VERDICT_RIGHT, 0,
                                  &move.leaves, &move.salt);
    must(play(world, &move, player));
}

static void reveal_right(struct world *world, uint32_t index, uint32_t player)
{
    const struct game_move move = {.kind = GAME_REVEAL,
                                   .key = world->key,
                                   .index = index,
                                   .about = hash_of(world, index),
                                   .place = seat_of(world, index, player)};

    must(play(world, &move, player));
}

/* Both seats find the segment right, in its first round. */
static void find_right(struct world *world, uint32_t index)
{
    seal_right(world, index, FIRST);
    seal_right(world, index, SECOND);
    wait_s(world, SEAL + 1);
    reveal_right(world, index, FIRST);
    reveal_right(world, index, SECOND);
}

/* ---- final ---------------------------------------------------------------------- */

static void test_a_leg_of_sixteen_is_paid_at_its_end(void **state)
{
    struct world world;
    struct local_job job;

    (void)state;
    open_world(&world, 0);
    /* 3 x seats x fee for three segments: more cannot be wanted where chance covers none. */
    assert_true(job_of(&world).pool == 3 * SEATS * FEE * 3);
    accept_job(&world);
    commit_and_draw(&world, 16);
    job = job_of(&world);
    assert_int_equal(job.leg_start, 16);
    assert_false(tally_of(&world, 14).covered);
    assert_true(tally_of(&world, 15).covered);
    find_right(&world, 15);
    assert_int_equal(settle(&world, 15, NULL, 0), GAME_TOO_EARLY);
    assert_int_equal(settle(&world, 14, NULL, 0), GAME_NOT_NEEDED);
    wait_s(&world, SEAL + REVEAL + CLAIM);
    must(settle(&world, 15, NULL, 0));
    assert_true(owed(&world, SOLVER) == 16 * REWARD);
    assert_true(owed(&world, FIRST) == FEE && owed(&world, SECOND) == FEE);
    job = job_of(&world);
    assert_int_equal(job.finalized, 16);
    assert_true(job.pool == 3 * SEATS * FEE * 3 - 2 * FEE);
    close_world(&world);
}

static void test_a_right_of_a_later_round_earns_less(void **state)
{
    struct world world;
    struct local_tally tally;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    must(enlist(&world, FIRST, 16));
    commit_and_draw(&world, 1);
    tally = tally_of(&world, 0);
    assert_int_equal(tally.drawn, SEATS);
    wait_s(&world, SEAL + REVEAL + 1); /* both are silent, which costs them nothing */
    must(settle(&world, 0, NULL, 0));
    assert_int_equal(settle(&world, 0, NULL, 0), GAME_ENGAGED);
    assert_int_equal(tally_of(&world, 0).round, 0);
    wait_s(&world, 0);
    draw(&world, 0);
    tally = tally_of(&world, 0);
    assert_int_equal(tally.round, 1);
    assert_int_equal(tally.drawn, 2 * SEATS);
    for (uint32_t place = tally.from; place < tally.to; place++) {
        struct game_move move = {
            .kind = GAME_SEAL, .key = world.key, .about = hash_of(&world, 0), .place = place};

        move.seal = game_verdict_seal(&world.twins.players[FIRST], &move.about, GAME_VERDICT_RIGHT,
                                      0, &move.leaves, &move.salt);
        (void)play(&world, &move, FIRST); /* skipped places, and one of SECOND, are refused */
    }
    wait_s(&world, SEAL + 1);
    for (uint32_t place = tally.from; place < tally.to; place++) {
        const struct game_move move = {
            .kind = GAME_REVEAL, .key = world.key, .about = hash_of(&world, 0), .place = place};

        (void)play(&world, &move, FIRST);
    }
    assert_int_equal(tally_of(&world, 0).rights, SEATS);
    wait_s(&world, REVEAL + CLAIM);
    must(settle(&world, 0, NULL, 0));
    assert_true(owed(&world, FIRST) == 2 * (FEE - FEE / 8));
    assert_true(owed(&world, SOLVER) == REWARD);
    close_world(&world);
}

/* ---- void ----------------------------------------------------------------------- */

/* Three segments are open, and both seats of the first have not seen it. */
static void deny_first_of_three(struct world *world)
{
    open_world(world, GAME_PPM);
    accept_job(world);
    commit_and_draw(world, 3);
    say_unseen(world, 0, FIRST);
    say_unseen(world, 0, SECOND);
    wait_s(world, SEAL + REVEAL + 1);
}

static void test_a_void_burns_on_both_sides(void **state)
{
    struct world world;
    struct local_job job;
    wei pool;

    (void)state;
    deny_first_of_three(&world);
    pool = job_of(&world).pool;
    assert_int_equal(settle(&world, 0, NULL, 0), GAME_TOO_EARLY); /* 1 + U claim times: 3 */
    wait_s(&world, 3 * CLAIM - 1);
    assert_int_equal(settle(&world, 0, NULL, 0), GAME_TOO_EARLY);
    wait_s(&world, 1);
    must(settle(&world, 0, NULL, 0));
    /* The price of the three, and of one more. */
    assert_true(owed(&world, SOLVER) == STAKE - 4 * REWARD);
    assert_true(owed(&world, FIRST) == QUERY_FEE / 4 && owed(&world, SECOND) == QUERY_FEE / 4);
    assert_true(burned(&world) == 4 * REWARD - 2 * (QUERY_FEE / 4) + 4 * REWARD + 4 * SEATS * FEE);
    job = job_of(&world);
    assert_int_equal(job.phase, GAME_PHASE_OPEN);
    assert_int_equal(job.generation, 1);
    assert_true(job.barred && job.missing_escrow == 4 * REWARD);
    assert_true(job.missing_pool == 4 * SEATS * FEE && job.pool == pool - 4 * SEATS * FEE);
    assert_int_equal(enlist(&world, FIRST, 1), GAME_BARRED);
    assert_int_equal(simple(&world, GAME_ACCEPT, STAKE, SOLVER), GAME_BARRED);

    assert_int_equal(simple(&world, GAME_RESUME, 4 * REWARD, CLIENT), GAME_WRONG_VALUE);
    assert_int_equal(simple(&world, GAME_RESUME, 0, STRANGER), GAME_NOT_YOURS);
    must(simple(&world, GAME_RESUME, 4 * REWARD + 4 * SEATS * FEE, CLIENT));
    assert_int_equal(simple(&world, GAME_RESUME, 0, CLIENT), GAME_NOT_NEEDED);
    job = job_of(&world);
    assert_true(!job.barred && job.missing_escrow == 0 && job.pool == pool);
    must(simple(&world, GAME_CLOSE, 0, CLIENT));
    assert_true(owed(&world, CLIENT) == SEGMENTS * REWARD + pool);
    close_world(&world);
}

static void test_a_barred_job_is_closed_with_what_is_left(void **state)
{
    struct world world;
    wei pool;

    (void)state;
    deny_first_of_three(&world);
    wait_s(&world, 3 * CLAIM);
    must(settle(&world, 0, NULL, 0));
    pool = job_of(&world).pool;
    assert_int_equal(simple(&world, GAME_CLOSE, 0, STRANGER), GAME_NOT_YOURS);
    world.twins.now_s = world.opened_s + DEADLINE + 1;
    must(simple(&world, GAME_CLOSE, 0, STRANGER));
    assert_true(owed(&world, CLIENT) == (SEGMENTS - 4) * REWARD + pool);
    assert_int_equal(job_of(&world).phase, GAME_PHASE_CLOSED);
    close_world(&world);
}

/* ---- the keeper ------------------------------------------------------------------- */

static void test_a_vouch_makes_unseen_silence(void **state)
{
    struct world world;
    struct vouch vouch;
    struct vouch other;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    must(commit(&world));
    wait_s(&world, 0);
    vouch = vouch_of(&world, 0);
    assert_int_equal(settle(&world, 0, vouch.signature, GAME_VOUCH_SIZE), GAME_NOT_DRAWN);
    draw(&world, 0);
    commit_and_draw(&world, 1);
    other = vouch_of(&world, 1);
    assert_int_equal(settle(&world, 0, other.signature, GAME_VOUCH_SIZE), GAME_WRONG_VOUCH);
    assert_int_equal(settle(&world, 0, vouch.signature, GAME_VOUCH_SIZE - 1), GAME_WRONG_VOUCH);
    say_unseen(&world, 0, FIRST);
    say_unseen(&world, 0, SECOND);
    /* In the seal period: it stays, and does nothing else. The same again is too early. */
    must(settle(&world, 0, vouch.signature, GAME_VOUCH_SIZE));
    assert_true(tally_of(&world, 0).vouched);
    assert_int_equal(settle(&world, 0, vouch.signature, GAME_VOUCH_SIZE), GAME_TOO_EARLY);
    wait_s(&world, SEAL + REVEAL + CLAIM + 1);
    must(settle(&world, 0, NULL, 0));
    assert_int_equal(job_of(&world).finalized, 1);
    assert_true(owed(&world, SOLVER) == REWARD && burned(&world) == 0);
    close_world(&world);
}

static void test_a_vouch_of_high_s_is_none(void **state)
{
    /* The order of the group, less s: the second form of a signature. */
    static const uint8_t order[32] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
                                      0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b,
                                      0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41};
    struct world world;
    struct vouch vouch;
    int borrow = 0;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    commit_and_draw(&world, 1);
    vouch = vouch_of(&world, 0);
    for (int i = 31; i >= 0; i--) {
        int digit = order[i] - vouch.signature[32 + i] - borrow;

        borrow = digit < 0;
        vouch.signature[32 + i] = (uint8_t)digit;
    }
    vouch.signature[64] = (uint8_t)(27 + 28 - vouch.signature[64]);
    assert_int_equal(settle(&world, 0, vouch.signature, GAME_VOUCH_SIZE), GAME_WRONG_VOUCH);
    close_world(&world);
}

/* ---- refusals --------------------------------------------------------------------- */

static void test_a_refusal_voids_what_is_not_vouched(void **state)
{
    struct world world;
    struct vouch vouch;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    assert_int_equal(simple(&world, GAME_REFUSE, 0, CLIENT), GAME_NOT_NEEDED);
    commit_and_draw(&world, 3);
    assert_int_equal(simple(&world, GAME_REFUSE, 0, STRANGER), GAME_NOT_YOURS);
    find_right(&world, 0);
    must(simple(&world, GAME_REFUSE, 0, CLIENT));
    assert_int_equal(simple(&world, GAME_REFUSE, 0, CLIENT), GAME_NOT_NEEDED);
    assert_int_equal(commit(&world), GAME_STANDS_REFUSED);
    assert_int_equal(simple(&world, GAME_RELEASE, 0, STRANGER), GAME_WRONG_INDEX);
    /* The first is vouched for: it ends as if nothing was said. */
    vouch = vouch_of(&world, 0);
    must(settle(&world, 0, vouch.signature, GAME_VOUCH_SIZE));
    assert_int_equal(settle(&world, 1, NULL, 0), GAME_TOO_EARLY);
    wait_s(&world, NOTICE + 1);
    assert_int_equal(settle(&world, 1, NULL, 0), GAME_WRONG_INDEX); /* a leg is open before it */
    must(settle(&world, 0, NULL, 0));
    assert_true(owed(&world, SOLVER) == REWARD);
    must(settle(&world, 1, NULL, 0));
    /* Two were open: three prices. Nobody said unseen. */
    assert_true(owed(&world, SOLVER) == REWARD + STAKE - 3 * REWARD);
    assert_true(burned(&world) == 2 * 3 * REWARD + 3 * SEATS * FEE);
    assert_int_equal(job_of(&world).finalized, 1);
    close_world(&world);
}

static void test_what_waited_long_enough_is_not_held(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    commit_and_draw(&world, 1);
    find_right(&world, 0);
    wait_s(&world, REVEAL + CLAIM);
    must(simple(&world, GAME_REFUSE, 0, CLIENT)); /* a second too late */
    must(settle(&world, 0, NULL, 0));
    assert_true(owed(&world, SOLVER) == REWARD);
    /* It found nothing to hold: the solver may go. */
    assert_int_equal(simple(&world, GAME_RELEASE, 0, STRANGER), GAME_STANDS_REFUSED);
    wait_s(&world, NOTICE + 1);
    must(simple(&world, GAME_RELEASE, 0, STRANGER));
    assert_true(owed(&world, SOLVER) == REWARD + STAKE && burned(&world) == 0);
    close_world(&world);
}

/* A seat of the player in the last round says right, and nobody else says anything. */
static void say_one_right(struct world *world, uint32_t index, uint32_t player)
{
    struct game_move move = {
        .key = world->key, .index = index, .about = hash_of(world, index), .place = 0};

    move.seal = game_verdict_seal(&world->twins.players[player], &move.about, GAME_VERDICT_RIGHT, 0,
                                  &move.leaves, &move.salt);
    move.kind = GAME_SEAL;
    while (play(world, &move, player) != GAME_REFUSED_NOT) {
        move.place++;
        assert_true(move.place < GAME_PLACES_MAX);
    }
    wait_s(world, SEAL + 1);
    move.kind = GAME_REVEAL;
    must(play(world, &move, player));
}

/* A refusal lets a leg be final whose next round was closed and not drawn. The tenure ends, and the
 * refusal with it: nobody draws that round in the next one. */
static void test_what_is_final_has_no_other_round(void **state)
{
    struct game_move move = {.kind = GAME_DRAW};
    struct world world;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    must(enlist(&world, FIRST, 16));
    commit_and_draw(&world, 1);
    say_one_right(&world, 0, FIRST);
    wait_s(&world, REVEAL);
    must(settle(&world, 0, NULL, 0)); /* one right is missing */
    move.key = world.key;
    move.segment = world.segments[0];
    wait_s(&world, CLAIM + 1);
    must(simple(&world, GAME_REFUSE, 0, CLIENT));
    assert_int_equal(play(&world, &move, STRANGER), GAME_STANDS_REFUSED);
    must(settle(&world, 0, NULL, 0));
    assert_int_equal(job_of(&world).finalized, 1);
    assert_int_equal(play(&world, &move, STRANGER), GAME_ALREADY_DRAWN);
    wait_s(&world, NOTICE + 1);
    must(simple(&world, GAME_RELEASE, 0, STRANGER));
    accept_job(&world);
    assert_int_equal(play(&world, &move, STRANGER), GAME_ALREADY_DRAWN);
    assert_int_equal(tally_of(&world, 0).round, 0);
    close_world(&world);
}

static void test_the_last_second_of_the_claim_time_is_held(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    commit_and_draw(&world, 1);
    find_right(&world, 0);
    wait_s(&world, REVEAL + CLAIM - 1);
    must(simple(&world, GAME_REFUSE, 0, CLIENT));
    wait_s(&world, NOTICE + 1);
    must(settle(&world, 0, NULL, 0));
    assert_int_equal(job_of(&world).phase, GAME_PHASE_OPEN);
    assert_true(owed(&world, SOLVER) == STAKE - 2 * REWARD);
    close_world(&world);
}

/* After the notice of a refusal the claims that are open end, and no other comes. */
static void test_no_claim_follows_the_notice_of_a_refusal(void **state)
{
    struct game_move claim = {.kind = GAME_CLAIM, .value = BOND};
    struct game_move seal = {.kind = GAME_SEAL_CLAIM};
    struct world world;
    struct hash32 subject;
    struct hash32 hash;

    (void)state;
    open_world(&world, GAME_PPM);
    accept_job(&world);
    commit_and_draw(&world, 1);
    must(simple(&world, GAME_REFUSE, 0, CLIENT));
    claim.key = world.key;
    claim.shown.segment = world.segments[0];
    hash = hash_of(&world, 0);
    subject = game_subject_hash(&hash, 0, &claim.shown.pre_state, &claim.shown.post_state);
    seal.seal = game_claim_seal(&world.twins.players[STRANGER], &subject, &claim.salt);
    for (uint32_t late = 0; late < 2; late++) {
        must(play(&world, &seal, STRANGER));
        wait_s(&world, late == 0 ? NOTICE : 1);
        /* In time, it is looked at: it is not about this job. */
        assert_int_equal(play(&world, &claim, STRANGER),
                         late == 0 ? GAME_WRONG_CASE : GAME_TOO_LATE);
        world.twins.height += GAME_SEAL_BLOCKS + 1;
    }
    close_world(&world);
}

static void test_a_refused_tail_is_void(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 0);
    accept_job(&world);
    commit_and_draw(&world, 2);
    must(simple(&world, GAME_REFUSE, 0, CLIENT));
    assert_int_equal(settle(&world, 1, NULL, 0), GAME_TOO_EARLY);
    wait_s(&world, NOTICE + 1);
    must(settle(&world, 1, NULL, 0));
    assert_true(burned(&world) == 2 * 3 * REWARD); /* without coverage no fees are priced */
    assert_true(job_of(&world).barred);
    close_world(&world);
}

/* ---- solvers ----------------------------------------------------------------------- */

static void test_a_solver_waits_when_sixty_four_are_open(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 0);
    accept_job(&world);
    commit_and_draw(&world, 15);
    assert_int_not_equal(job_of(&world).due_s, 0);
    commit_and_draw(&world, 1);
    find_right(&world, 15);
    commit_and_draw(&world, 48);
    assert_int_equal(job_of(&world).due_s, 0);
    assert_int_equal(commit(&world), GAME_FULL);
    wait_s(&world, 10 * PERIOD); /* nothing is late */
    assert_int_equal(simple(&world, GAME_RELEASE, 0, STRANGER), GAME_WRONG_INDEX);
    must(settle(&world, 15, NULL, 0));
    assert_int_equal(job_of(&world).due_s, world.twins.now_s + PERIOD);
    must(commit(&world));
    close_world(&world);
}

static void test_a_late_solver_loses_an_eighth(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 0);
    accept_job(&world);
    commit_and_draw(&world, 1);
    wait_s(&world, PERIOD);
    assert_int_equal(simple(&world, GAME_RELEASE, 0, STRANGER), GAME_TOO_EARLY);
    wait_s(&world, 1);
    must(simple(&world, GAME_RELEASE, 0, STRANGER));
    assert_true(owed(&world, SOLVER) == STAKE - STAKE / 8 && burned(&world) == STAKE / 8);
    assert_int_equal(job_of(&world).committed, 0); /* the tail is void, and its price stays */
    assert_false(job_of(&world).barred);
    must(simple(&world, GAME_CLOSE, 0, CLIENT));
    assert_true(owed(&world, CLIENT) == SEGMENTS * REWARD + 3 * SEATS * FEE * 3);
    close_world(&world);
}

static void test_a_stop_makes_the_next_segment_the_last(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 0);
    accept_job(&world);
    commit_and_draw(&world, 2);
    assert_int_equal(simple(&world, GAME_STOP, 0, SOLVER), GAME_NOT_YOURS);
    must(simple(&world, GAME_STOP, 0, CLIENT));
    assert_int_equal(simple(&world, GAME_STOP, 0, CLIENT), GAME_NOT_NEEDED);
    assert_true(owed(&world, CLIENT) == (SEGMENTS - 3) * REWARD);
    commit_and_draw(&world, 1);
    assert_true(tally_of(&world, 2).covered);
    assert_int_equal(commit(&world), GAME_WRONG_INDEX);
    find_right(&world, 2);
    /* The last wants three rights: the two of the panel say right, and no other can be drawn. */
    wait_s(&world, REVEAL + CLAIM);
    must(settle(&world, 2, NULL, 0));
    assert_int_equal(job_of(&world).phase, GAME_PHASE_CLOSED);
    assert_true(owed(&world, SOLVER) == 3 * REWARD + STAKE);
    assert_true(owed(&world, CLIENT) == (SEGMENTS - 3) * REWARD + 3 * SEATS * FEE * 3 - 2 * FEE);
    close_world(&world);
}

/* ---- bonds ------------------------------------------------------------------------- */

static void test_bonds_can_be_had_back(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 0);
    assert_int_equal(enlist(&world, CLIENT, 1), GAME_SELF_DEALING);
    must(enlist(&world, FIRST, 2));
    must(enlist(&world, SECOND, 1));
    assert_int_equal(depart(&world, 0, 0, SECOND), GAME_NOT_YOURS);
    must(depart(&world, 0, 0, FIRST)); /* the last takes its number */
    assert_int_equal(job_of(&world).entries, 2);
    assert_int_equal(depart(&world, 0, 2, SECOND), GAME_NOT_YOURS);
    must(depart(&world, 0, 0, SECOND));
    must(enlist(&world, SECOND, 1));
    assert_true(owed(&world, FIRST) == BOND && owed(&world, SECOND) == BOND);
    wait_s(&world, SEAL);
    assert_int_equal(simple(&world, GAME_ACCEPT, STAKE, SOLVER), GAME_TOO_EARLY);
    wait_s(&world, 1);
    must(simple(&world, GAME_ACCEPT, STAKE, SOLVER));
    assert_int_equal(depart(&world, 0, 0, FIRST), GAME_ENGAGED);
    wait_s(&world, PERIOD + 1);
    must(simple(&world, GAME_RELEASE, 0, STRANGER));
    /* Each tenure has its own panel: this one is empty, and the old one can go at any time. */
    assert_int_equal(job_of(&world).entries, 0);
    must(depart(&world, 0, 0, FIRST));
    assert_int_equal(depart(&world, 0, 0, FIRST), GAME_NOT_NEEDED);
    assert_int_equal(depart(&world, 1, 0, FIRST), GAME_NOT_YOURS);
    must(enlist(&world, FIRST, 1));
    must(simple(&world, GAME_CLOSE, 0, CLIENT));
    must(depart(&world, 1, 0, FIRST));
    must(depart(&world, 0, 1, SECOND));
    assert_true(owed(&world, FIRST) == 3 * BOND && owed(&world, SECOND) == 2 * BOND);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_leg_of_sixteen_is_paid_at_its_end),
        cmocka_unit_test(test_a_right_of_a_later_round_earns_less),
        cmocka_unit_test(test_a_void_burns_on_both_sides),
        cmocka_unit_test(test_a_barred_job_is_closed_with_what_is_left),
        cmocka_unit_test(test_a_vouch_makes_unseen_silence),
        cmocka_unit_test(test_a_vouch_of_high_s_is_none),
        cmocka_unit_test(test_a_refusal_voids_what_is_not_vouched),
        cmocka_unit_test(test_what_waited_long_enough_is_not_held),
        cmocka_unit_test(test_what_is_final_has_no_other_round),
        cmocka_unit_test(test_the_last_second_of_the_claim_time_is_held),
        cmocka_unit_test(test_no_claim_follows_the_notice_of_a_refusal),
        cmocka_unit_test(test_a_refused_tail_is_void),
        cmocka_unit_test(test_a_solver_waits_when_sixty_four_are_open),
        cmocka_unit_test(test_a_late_solver_loses_an_eighth),
        cmocka_unit_test(test_a_stop_makes_the_next_segment_the_last),
        cmocka_unit_test(test_bonds_can_be_had_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
