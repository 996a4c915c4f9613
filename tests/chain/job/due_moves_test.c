/*
 * Goal: of a job whose solver has vanished everything that anybody may do is found, in an order in
 * which the ledger takes it and nobody loses what it has earned; and nothing else is.
 * Method: records as the event log would make them, and every second that matters. That ledgers
 * take the moves is tests/whole/solver_timeout_test.py's.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/job/due_moves.h"

enum {
    COMMIT_S = 1000,
    PERIOD_S = 100,
    CLAIM_END_S = COMMIT_S + 3 * PERIOD_S,
    DUE_S = COMMIT_S + 500,
    DEADLINE_S = 5000,
    SEGMENTS = 3,
};

static const struct address client = {{1}};
static const struct address solver = {{2}};
static const struct address verifier = {{3}};

struct scene {
    struct job_record record;
    struct ledger_clock clock;
    struct job_record_segment segments[SEGMENTS];
    struct job_record_seat seats[2];
    struct job_entry entries[2];
    struct job_record_claim claims[2];
};

/* All are committed, and the solver is gone. */
static void scene_make(struct scene *scene, uint32_t committed)
{
    memset(scene, 0, sizeof(*scene));
    scene->record = (struct job_record){.phase = GAME_PHASE_RUNNING,
                                        .client = client,
                                        .solver = solver,
                                        .segment_count = SEGMENTS,
                                        .committed = committed,
                                        .due_s = DUE_S,
                                        .segments = scene->segments,
                                        .seats = scene->seats,
                                        .entries = scene->entries,
                                        .claims = scene->claims,
                                        .unpaid = UINT32_MAX};
    scene->record.terms = (struct game_terms){.seats = 1,
                                              .coverage_ppm = GAME_PPM,
                                              .seal_period_s = PERIOD_S,
                                              .reveal_period_s = PERIOD_S,
                                              .claim_period_s = PERIOD_S,
                                              .deadline_s = DEADLINE_S};
    for (uint32_t i = 0; i < committed; i++) {
        scene->segments[i] = (struct job_record_segment){
            .committed = {.index = i, .time_s = COMMIT_S, .height = 10, .solver = solver},
            .seed = {{1}},
            .covered = true,
            .start_s = COMMIT_S,
            .round = 1,
            .seated = 1,
            .rights = 1};
    }
    scene->clock = (struct ledger_clock){.height = 100, .seed_delay = GAME_SEED_DELAY};
}

static bool next(struct scene *scene, struct due_move *move, uint64_t now_s,
                 const struct address *account)
{
    scene->clock.time_s = now_s;
    return due_move_next(move, &scene->record, &scene->clock, account);
}

static void see(struct scene *scene, uint64_t now_s, const struct address *account,
                enum due_move_kind kind, uint32_t index)
{
    struct due_move move;

    assert_true(next(scene, &move, now_s, account));
    assert_string_equal(due_move_name(move.kind), due_move_name(kind));
    assert_int_equal(move.index, index);
}

static void see_nothing(struct scene *scene, uint64_t now_s, const struct address *account)
{
    struct due_move move;

    assert_false(next(scene, &move, now_s, account));
}

static void claim(struct scene *scene, uint32_t index, uint64_t rank, bool open)
{
    struct job_record_claim *made = &scene->claims[scene->record.claim_count];

    *made = (struct job_record_claim){.key = {{(uint8_t)++scene->record.claim_count}},
                                      .index = index,
                                      .solver = solver,
                                      .rank = rank,
                                      .open = open,
                                      .outcome = GAME_UPHELD,
                                      .phase = GAME_CLAIM_CALLED,
                                      .deadline_s = CLAIM_END_S + 50};
    scene->segments[index].open_claims += open;
}

static void test_segments_are_finalized_in_order_after_their_claim_time(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, SEGMENTS);
    see_nothing(&scene, CLAIM_END_S, &client);
    assert_int_equal(due_move_after(&scene.record, CLAIM_END_S), CLAIM_END_S);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        scene.record.finalized = i;
        see(&scene, CLAIM_END_S + 1, &client, DUE_MOVE_FINALIZE, i);
    }
}

static void test_what_is_covered_gets_rounds_whatever_the_deadline(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 2);
    scene.segments[0].rights = 0;
    scene.segments[1].rights = 0;
    see_nothing(&scene, COMMIT_S + 2 * PERIOD_S, &client);
    see(&scene, COMMIT_S + 2 * PERIOD_S + 1, &client, DUE_MOVE_RENEW, 0);
    scene.segments[0].start_s = COMMIT_S + 2 * PERIOD_S + 1;
    see(&scene, COMMIT_S + 2 * PERIOD_S + 1, &client, DUE_MOVE_RENEW, 1);
    see(&scene, DEADLINE_S + 1, &client, DUE_MOVE_RENEW, 0);
}

static void test_where_the_panel_sleeps_more_must_find_it_right_than_cannot_get_it(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.segments[0].ended = true;
    for (uint32_t rights = 0; rights <= 3; rights++) {
        for (uint32_t unavailables = 0; unavailables <= 3; unavailables++) {
            scene.segments[0].rights = rights;
            scene.segments[0].unavailables = unavailables;
            see(&scene, DEADLINE_S + 1, &client,
                rights > unavailables ? DUE_MOVE_FINALIZE : DUE_MOVE_FORFEIT, 0);
        }
    }
    scene.record.terms.verifiers.bytes[0] = 1; /* the client's own do not block */
    scene.segments[0].rights = 0;
    see(&scene, DEADLINE_S + 1, &client, DUE_MOVE_FINALIZE, 0);
}

static void test_states_that_nobody_gets_are_forfeited(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.segments[0].rights = 0;
    scene.segments[0].unavailables = 10;
    scene.segments[0].ended = true;
    see(&scene, CLAIM_END_S + 1, &client, DUE_MOVE_FORFEIT, 0);
}

static void test_what_is_not_drawn_is_drawn_at_once(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.record.terms.coverage_ppm = GAME_PPM / 2;
    scene.segments[0].rights = 0;
    scene.segments[0].covered = false;
    scene.segments[0].seed = (struct hash32){{0}};
    see(&scene, COMMIT_S, &client, DUE_MOVE_DRAW, 0);
    scene.segments[0].seed = (struct hash32){{1}};
    see_nothing(&scene, CLAIM_END_S, &client);
    see(&scene, CLAIM_END_S + 1, &client, DUE_MOVE_FINALIZE, 0);
}

static void test_claims_are_ended_before_what_they_hold_up(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, SEGMENTS);
    claim(&scene, 0, 1, true);
    see_nothing(&scene, CLAIM_END_S + 50, &client);
    see(&scene, CLAIM_END_S + 51, &client, DUE_MOVE_TIMEOUT, 0);
    /* One on a later segment holds the first up as its own does. */
    scene.segments[0].open_claims = 0;
    scene.claims[0].index = 1;
    scene.segments[1].open_claims = 1;
    see_nothing(&scene, CLAIM_END_S + 50, &client);
    scene.record.finalized = 1;
    see_nothing(&scene, CLAIM_END_S + 50, &client);
    assert_int_equal(due_move_after(&scene.record, CLAIM_END_S + 50), CLAIM_END_S + 50);
}

/* A conviction of a lower rank overtakes what nobody has answered; then the stake is paid. */
static void test_an_overtaken_claim_is_lapsed_and_the_pot_is_paid(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 0);
    scene.record.segment_count = SEGMENTS;
    scene.record.phase = GAME_PHASE_OPEN;
    scene.record.generation = 1;
    scene.record.unpaid = 0;
    claim(&scene, 0, 5, false);
    claim(&scene, 1, 6, true);
    see(&scene, COMMIT_S, &client, DUE_MOVE_LAPSE, 1);
    scene.claims[1].rank = 4; /* it began earlier, and goes on */
    see_nothing(&scene, CLAIM_END_S + 50, &client);
    see(&scene, CLAIM_END_S + 51, &client, DUE_MOVE_TIMEOUT, 1);
    scene.claims[1].open = false;
    see(&scene, COMMIT_S, &client, DUE_MOVE_PAY, 0);
    scene.record.unpaid = UINT32_MAX;
    see_nothing(&scene, COMMIT_S, &client);
}

/* The solver itself gets its whole stake back by waiting. */
static void test_a_late_solver_is_released_by_others(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.record.finalized = 1;
    see_nothing(&scene, DUE_S, &client);
    assert_int_equal(due_move_after(&scene.record, DUE_S), DUE_S);
    see(&scene, DUE_S + 1, &client, DUE_MOVE_RELEASE, 0);
    see_nothing(&scene, DUE_S + 1, &solver);
    see_nothing(&scene, DEADLINE_S, &solver);
    see(&scene, DEADLINE_S + 1, &solver, DUE_MOVE_EXPIRE, 0);
    /* What it has committed comes first. */
    scene.record.finalized = 0;
    see(&scene, DUE_S + 1, &client, DUE_MOVE_FINALIZE, 0);
    see(&scene, DEADLINE_S + 1, &client, DUE_MOVE_FINALIZE, 0);
}

static void test_an_open_job_expires_after_its_deadline(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 0);
    scene.record.phase = GAME_PHASE_OPEN;
    see_nothing(&scene, DEADLINE_S, &client);
    assert_int_equal(due_move_after(&scene.record, DEADLINE_S), DEADLINE_S);
    see(&scene, DEADLINE_S + 1, &verifier, DUE_MOVE_EXPIRE, 0);
    scene.record.phase = GAME_PHASE_CLOSED;
    see_nothing(&scene, DEADLINE_S + 1, &client);
    scene.record.phase = GAME_PHASE_NONE;
    see_nothing(&scene, DEADLINE_S + 1, &client);
}

static void test_who_collects_takes_back_what_is_its_own(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.record.finalized = 1;
    scene.record.phase = GAME_PHASE_CLOSED;
    scene.entries[0] = (struct job_entry){.owner = verifier};
    scene.entries[1] = (struct job_entry){.owner = client};
    scene.record.entry_count = 2;
    see(&scene, CLAIM_END_S, &client, DUE_MOVE_LEAVE, 0);
    see_nothing(&scene, CLAIM_END_S, &solver);
    scene.record.asked = true; /* until the panel has answered, nobody goes */
    see(&scene, CLAIM_END_S, &verifier, DUE_MOVE_RENEW, 0);
    scene.record.segments[0].ended = true;
    see_nothing(&scene, CLAIM_END_S, &verifier);
    scene.record.delivered = true;
    see(&scene, CLAIM_END_S, &verifier, DUE_MOVE_LEAVE, 0);
    scene.entries[0].gone = true;
    see_nothing(&scene, CLAIM_END_S, &verifier);
}

static void test_a_held_part_is_delivered_after_its_period(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.record.finalized = 1;
    scene.record.phase = GAME_PHASE_CLOSED;
    scene.record.closed_s = COMMIT_S;
    scene.record.held = 1;
    scene.record.terms.held_ppm = 1;
    scene.record.terms.delivery_period_s = PERIOD_S;
    see_nothing(&scene, COMMIT_S + PERIOD_S, &client);
    assert_int_equal(due_move_after(&scene.record, COMMIT_S), COMMIT_S + PERIOD_S);
    see(&scene, COMMIT_S + PERIOD_S + 1, &client, DUE_MOVE_DELIVER, 0);
    scene.record.delivered = true;
    see_nothing(&scene, COMMIT_S + PERIOD_S + 1, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_are_finalized_in_order_after_their_claim_time),
        cmocka_unit_test(test_what_is_covered_gets_rounds_whatever_the_deadline),
        cmocka_unit_test(test_where_the_panel_sleeps_more_must_find_it_right_than_cannot_get_it),
        cmocka_unit_test(test_what_is_not_drawn_is_drawn_at_once),
        cmocka_unit_test(test_states_that_nobody_gets_are_forfeited),
        cmocka_unit_test(test_claims_are_ended_before_what_they_hold_up),
        cmocka_unit_test(test_an_overtaken_claim_is_lapsed_and_the_pot_is_paid),
        cmocka_unit_test(test_a_late_solver_is_released_by_others),
        cmocka_unit_test(test_an_open_job_expires_after_its_deadline),
        cmocka_unit_test(test_who_collects_takes_back_what_is_its_own),
        cmocka_unit_test(test_a_held_part_is_delivered_after_its_period),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
