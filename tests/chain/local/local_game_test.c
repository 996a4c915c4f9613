/*
 * Goal: no matter what strangers do, the embedded game keeps its promises. Method: random histories
 * (tests/support/game/history.h). After every move that is done all money is accounted for: what
 * was paid in is owed, locked, burned or paid out; and a job's numbers are in their order. At a
 * sample of the states a stranger who only makes moves that are anybody's ends the tenure within
 * the rounds, waits and clocks that the rules allow, and the job after its deadline. "make soak"
 * makes 10 million calls; one that was cut off goes on elsewhere with LOCKSTEP_FUZZ_SEED.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "tests/support/game/history.h"
#include "tests/support/game/promised.h"

enum {
    CALLS_FULL = 10000000,
    CALLS_SHARE = 40000,
    CALLS_OF_A_HISTORY = 240,
    TOLD = 250000,      /* calls from one line of progress to the next */
    ENDS_PERCENT = 2,   /* of the states that are reached: ended, to see that they can be */
    ROUNDS_MAX = 12,    /* of a draw: 64 places, 1 1 1 1 4 8 9 9 ... of them */
    PENDING_MAX = 2048, /* moves that an end takes, refused ones too */
    STRANGER = TWINS_PLAYERS - 1,
};

struct played {
    struct history history;
    uint32_t events_of[GAME_EVENT_KINDS];
    uint32_t most_open; /* segments of a job */
};

static void learn(void *context, const struct game_event *event)
{
    struct played *played = context;

    played->events_of[event->kind]++;
    history_learn(&played->history, event);
}

static void get(struct history *history, void *record, enum local_kind kind,
                const struct hash32 *key, uint64_t number)
{
    assert_int_equal(local_get(&history->twins.store, record, kind, key, number), STATUS_OK);
}

/* ---- after every move ------------------------------------------------------------- */

static void check_money(struct history *history)
{
    struct twins *twins = &history->twins;
    wei sum = promised_money(&twins->store);

    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        const struct hash32 key = local_key_of_account(&twins->players[i]);
        struct local_account account;

        get(history, &account, LOCAL_ACCOUNT, &key, 0);
        sum += account.owed;
    }
    assert_true(sum == twins->paid_in - twins->paid_out);
}

/* Returns how many of its segments are open. */
static uint32_t check_job(struct history *history, const struct hash32 *key)
{
    struct local_job job;

    get(history, &job, LOCAL_JOB, key, 0);
    assert_true(job.finalized <= job.leg_start && job.leg_start <= job.drawn);
    assert_true(job.drawn <= job.committed && job.committed <= job.segments);
    assert_true(job.committed - job.finalized <= GAME_OPEN_MAX);
    assert_true(job.drawn - job.leg_start < GAME_LEG_MAX);
    assert_true(job.missing_escrow <= (job.segments - job.finalized) * job.terms.reward);
    if (job.phase != GAME_PHASE_OPEN) {
        assert_true(!job.barred || job.phase == GAME_PHASE_CLOSED);
        assert_true(job.missing_escrow == 0 && job.missing_pool == 0);
    } else {
        assert_int_equal(job.committed, job.finalized);
        assert_int_equal(job.open_claims, 0);
        assert_int_equal(job.refused_until_s, 0);
    }
    return job.committed - job.finalized;
}

/* ---- ends ------------------------------------------------------------------------- */

/* One job that a stranger ends: when something may be done again, and how much was. */
struct ending {
    struct history *history;
    struct hash32 key;
    struct local_job job;
    uint64_t next_s; /* the first time at which a refused move may be repeated */
    uint32_t done;
    uint32_t jumps;
};

static bool try_move(struct ending *ending, const struct game_move *move)
{
    struct twins *twins = &ending->history->twins;
    struct twins_outcome outcome = twins_play(twins, move, STRANGER);
    bool waits =
        outcome.refusal.kind == GAME_TOO_EARLY || outcome.refusal.kind == GAME_STANDS_REFUSED;

    if (!outcome.done && waits && (uint64_t)outcome.refusal.number >= twins->now_s &&
        (uint64_t)outcome.refusal.number < ending->next_s) {
        ending->next_s = (uint64_t)outcome.refusal.number + 1;
    }
    ending->done += outcome.done;
    assert_true(ending->done < PENDING_MAX);
    get(ending->history, &ending->job, LOCAL_JOB, &ending->key, 0);
    return outcome.done;
}

/* Takes what a job's disputes say of its time: those whose clock runs, or all claimants. */
static uint32_t end_claims(struct ending *ending, bool play)
{
    struct local_store *store = &ending->history->twins.store;
    struct hash32 keys[64];
    uint32_t claimants = 0;
    sqlite3_stmt *rows = NULL;
    uint32_t count = 0;

    assert_int_equal(database_prepare(&rows, store->sql, store->error,
                                      "SELECT key FROM records WHERE kind = ?", "i",
                                      (int64_t)LOCAL_DISPUTE),
                     STATUS_OK);
    while (database_step(store->sql, rows, store->error) == STATUS_OK && count < 64) {
        memcpy(keys[count++].bytes, sqlite3_column_blob(rows, 0), HASH32_SIZE);
    }
    database_done(store->sql, rows);
    for (uint32_t i = 0; i < count; i++) {
        struct game_move timeout = {.kind = GAME_TIMEOUT, .key = keys[i]};
        struct local_dispute dispute;

        get(ending->history, &dispute, LOCAL_DISPUTE, &keys[i], 0);
        if (!hash32_equal(&dispute.job, &ending->key) ||
            dispute.generation != ending->job.generation || dispute.phase == GAME_CLAIM_CLOSED) {
            continue;
        }
        claimants += dispute.count - dispute.first;
        if (play && dispute.phase != GAME_CLAIM_WAITING) {
            (void)try_move(ending, &timeout);
        }
    }
    return claimants;
}

/* One move of anybody's about each segment that is not final. */
static void end_segments(struct ending *ending)
{
    struct history *history = ending->history;

    for (uint32_t i = 0; i < history->segment_count; i++) {
        const struct known_segment *known = &history->segments[i];
        struct game_move move = {
            .kind = GAME_SETTLE, .key = ending->key, .segment = known->segment};

        if (ending->job.phase != GAME_PHASE_RUNNING || !hash32_equal(&known->job, &ending->key) ||
            known->segment.generation != ending->job.generation ||
            known->segment.index < ending->job.finalized) {
            continue;
        }
        if (known->segment.index == ending->job.drawn) {
            move.kind = GAME_DRAW;
            history->twins.height += 2;
        }
        (void)try_move(ending, &move);
        if (move.kind == GAME_SETTLE) { /* it may have closed a round */
            move.kind = GAME_DRAW;
            history->twins.height += 2;
            (void)try_move(ending, &move);
        }
    }
}

static uint64_t longest_s(const struct ending *ending, uint32_t claimants)
{
    const struct game_terms *terms = &ending->job.terms;
    const uint64_t round_s = terms->seal_period_s + terms->reveal_period_s;

    return ROUNDS_MAX * round_s + GAME_WAITS_MAX * terms->claim_period_s +
           (round_s + terms->claim_period_s) + terms->segment_period_s +
           (claimants + UINT64_C(1)) * terms->clock_s;
}

static void check_ended(struct ending *ending)
{
    struct game_move close = {.kind = GAME_CLOSE, .key = ending->key};
    struct history *history = ending->history;
    wei before = history->twins.paid_out;

    if (ending->job.phase == GAME_PHASE_OPEN) {
        history->twins.now_s = history->twins.now_s > ending->job.terms.deadline_s
                                   ? history->twins.now_s
                                   : ending->job.terms.deadline_s + 1;
        assert_true(try_move(ending, &close));
    }
    assert_int_equal(ending->job.phase, GAME_PHASE_CLOSED);
    assert_true(ending->job.pool == 0 && before == history->twins.paid_out);
    check_money(history);
}

/* From here on nobody moves but a stranger. */
static void check_it_ends(struct history *history, const struct hash32 *key)
{
    struct ending ending = {.history = history, .key = *key};
    const uint64_t start_s = history->twins.now_s;
    uint64_t most_s;

    get(history, &ending.job, LOCAL_JOB, key, 0);
    most_s = longest_s(&ending, end_claims(&ending, false));
    while (ending.job.phase == GAME_PHASE_RUNNING) {
        struct game_move release = {.kind = GAME_RELEASE, .key = *key};
        uint32_t done = ending.done;

        ending.next_s = UINT64_MAX;
        (void)end_claims(&ending, true);
        end_segments(&ending);
        if (ending.job.phase == GAME_PHASE_RUNNING) {
            (void)try_move(&ending, &release);
        }
        if (done == ending.done && ending.job.phase == GAME_PHASE_RUNNING) {
            assert_true(ending.next_s != UINT64_MAX);
            history->twins.now_s = ending.next_s;
            ending.jumps++;
        }
    }
    /* Each jump goes a second beyond what it waits for. */
    assert_true(history->twins.now_s - start_s <= most_s + ending.jumps);
    check_ended(&ending);
}

/* As it was before, afterwards. */
static void try_ends(struct history *history)
{
    struct twins *twins = &history->twins;
    const uint64_t now_s = twins->now_s;
    const uint64_t height = twins->height;
    const wei paid_in = twins->paid_in;
    struct error error;

    error_init(&error);
    twins->learn = NULL;
    for (uint32_t i = 0; i < history->job_count; i++) {
        struct local_job job;

        get(history, &job, LOCAL_JOB, &history->jobs[i], 0);
        if (job.phase == GAME_PHASE_CLOSED) {
            continue;
        }
        assert_int_equal(database_execute(&twins->sql, "SAVEPOINT here", &error), STATUS_OK);
        check_it_ends(history, &history->jobs[i]);
        assert_int_equal(database_execute(&twins->sql, "ROLLBACK TO here; RELEASE here", &error),
                         STATUS_OK);
        twins->now_s = now_s;
        twins->height = height;
        assert_true(twins->paid_in == paid_in);
    }
    twins->learn = learn;
}

/* ---- histories -------------------------------------------------------------------- */

static uint32_t made(const struct twins *twins)
{
    uint32_t sum = 0;

    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        sum += twins->done_of[i];
    }
    for (int i = 0; i < GAME_REFUSAL_KINDS; i++) {
        sum += twins->refused_of[i];
    }
    return sum;
}

static void play_history(struct played *played)
{
    struct history *history = &played->history;

    history_begin(history);
    for (uint32_t i = 0; i < CALLS_OF_A_HISTORY; i++) {
        struct game_move move;
        uint32_t player = history_choose(history, &move);

        if (twins_play(&history->twins, &move, player).done) {
            check_money(history);
            for (uint32_t k = 0; k < history->job_count; k++) {
                uint32_t open = check_job(history, &history->jobs[k]);

                played->most_open = open > played->most_open ? open : played->most_open;
            }
        }
        if (test_random_below(&history->random, 100) < ENDS_PERCENT) {
            try_ends(history);
        }
    }
}

static void show(const struct played *played)
{
    const struct twins *twins = &played->history.twins;

    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        print_message("%8u %s\n", twins->done_of[i], game_move_name((enum game_move_kind)i));
    }
    for (int i = 0; i < GAME_REFUSAL_KINDS; i++) {
        print_message("%8u refused: %s\n", twins->refused_of[i],
                      game_refusal_text((enum game_refusal_kind)i));
    }
    for (int i = 0; i < GAME_EVENT_KINDS; i++) {
        print_message("%8u events: %s\n", played->events_of[i],
                      game_event_name((enum game_event_kind)i));
    }
}

/* What a made state cannot bring about: tests/chain/game/trial_test.c plays it. */
static bool needs_a_trace(enum game_event_kind kind)
{
    return kind == GAME_QUERIED || kind == GAME_REPLIED;
}

static void test_random_moves_break_no_promise(void **state)
{
    struct played *played = calloc(1, sizeof(*played));
    struct twins *twins = &played->history.twins;
    uint64_t wanted = test_share(CALLS_FULL, CALLS_SHARE);
    uint64_t told = 0;

    (void)state;
    assert_non_null(played);
    history_init(&played->history, history_seed(20261128));
    twins_open_embedded(twins);
    twins->learn = learn;
    twins->context = played;
    for (uint64_t i = 0; made(twins) < wanted; i++) {
        twins_new_store(twins);
        twins->now_s = 1000000 + 10000 * i;
        twins->height = 1000 + 1000 * i;
        play_history(played);
        if (made(twins) / TOLD > told) {
            told = made(twins) / TOLD;
            print_message("%u calls\n", made(twins));
        }
    }
    show(played);
    print_message("at most %u segments open\n", played->most_open);
    for (int i = 0; i < GAME_EVENT_KINDS; i++) {
        /* A handful of histories need not meet the rare ones. */
        assert_true(wanted < CALLS_SHARE || played->events_of[i] > 0 ||
                    needs_a_trace((enum game_event_kind)i));
    }
    assert_true(wanted < CALLS_SHARE || played->most_open == GAME_OPEN_MAX);
    twins_close(twins);
    history_release(&played->history);
    free(played);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_moves_break_no_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
