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
    REVEAL_END_S = COMMIT_S + 2 * PERIOD_S,
    CLAIM_END_S = COMMIT_S + 3 * PERIOD_S,
    DUE_S = COMMIT_S + 500,
    DEADLINE_S = 5000,
    SEGMENTS = 3,
    PANEL = 4,
};

static const struct address client = {{1}};
static const struct address solver = {{2}};
static const struct address verifier = {{3}};

struct scene {
    struct job_record record;
    struct ledger_clock clock;
    struct job_record_segment segments[SEGMENTS];
    struct job_record_seat seats[2];
    struct job_record_entry entries[PANEL];
    struct job_record_entry former[1];
    struct job_record_claim claims[2];
};

/* All are committed, covered and found right, and the solver is gone. */
static void scene_make(struct scene *scene, uint32_t committed)
{
    memset(scene, 0, sizeof(*scene));
    scene->record = (struct job_record){.state.phase = GAME_PHASE_RUNNING,
                                        .account = verifier,
                                        .client = client,
                                        .state.solver = solver,
                                        .state.segments = SEGMENTS + 1,
                                        .state.committed = committed,
                                        .state.drawn = committed,
                                        .state.leg_start = committed,
                                        .state.due_s = DUE_S,
                                        .segments = scene->segments,
                                        .seats = scene->seats,
                                        .entries = scene->entries,
                                        .former = scene->former,
                                        .claims = scene->claims,
                                        .state.unpaid = UINT32_MAX};
    scene->record.terms = (struct game_terms){.seats = 1,
                                              .coverage_ppm = GAME_PPM,
                                              .seal_period_s = PERIOD_S,
                                              .reveal_period_s = PERIOD_S,
                                              .claim_period_s = PERIOD_S,
                                              .deadline_s = DEADLINE_S};
    for (uint32_t i = 0; i < committed; i++) {
        scene->segments[i] = (struct job_record_segment){.committed = {.index = i,
                                                                       .time_s = COMMIT_S,
                                                                       .height = 10,
                                                                       .solver = solver,
                                                                       .panel = PANEL},
                                                         .draw = {.seed = {{1}},
                                                                  .covered = true,
                                                                  .leg_start = i,
                                                                  .start_s = COMMIT_S,
                                                                  .to = 1,
                                                                  .seats = 1,
                                                                  .rights = 1},
                                                         .seated = 1};
    }
    scene->record.state.entries = PANEL;
    for (uint32_t i = 0; i < PANEL; i++) {
        scene->entries[i].owner = (struct address){{(uint8_t)(50 + i)}};
    }
    scene->clock = (struct ledger_clock){.height = 100, .seed_delay = GAME_SEED_DELAY};
}

/* Nobody looks at them. */
static void uncover(struct scene *scene, uint32_t from)
{
    for (uint32_t i = from; i < scene->record.state.committed; i++) {
        scene->segments[i].draw = (struct job_reduced_segment){.seed = {{1}}, .start_s = COMMIT_S};
    }
    scene->record.state.leg_start = from;
}

static void refuse(struct scene *scene, uint64_t at_s)
{
    scene->record.state.refused_until_s = at_s + 3 * PERIOD_S;
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

/* A settle, and what it does. */
static void see_settle(struct scene *scene, uint64_t now_s, uint32_t index,
                       enum job_segment_wait because)
{
    struct due_move move;

    see(scene, now_s, &client, DUE_MOVE_SETTLE, index);
    assert_true(next(scene, &move, now_s, &client));
    assert_string_equal(job_segment_wait_word(move.because), job_segment_wait_word(because));
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
                                      .state.rank = rank,
                                      .state.outcome = GAME_UPHELD,
                                      .state.phase = open ? GAME_CLAIM_CALLED : GAME_CLAIM_CLOSED,
                                      .state.deadline_s = CLAIM_END_S + 50};
    scene->segments[index].open_claims += open;
}

/* ---- legs ----------------------------------------------------------------------- */

static void test_legs_are_settled_in_order_after_their_claim_time(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, SEGMENTS);
    see_nothing(&scene, CLAIM_END_S, &client);
    assert_int_equal(due_move_after(&scene.record, CLAIM_END_S), CLAIM_END_S);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        scene.record.state.finalized = i;
        see_settle(&scene, CLAIM_END_S + 1, i, JOB_SEGMENT_DUE);
    }
}

/* It goes the way of the covered one behind it. */
static void test_an_uncovered_segment_needs_no_move(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 2);
    uncover(&scene, 1);
    scene.segments[0].draw = (struct job_reduced_segment){.seed = {{1}}};
    scene.segments[1].draw =
        (struct job_reduced_segment){.covered = true, .start_s = COMMIT_S, .to = 1, .rights = 1};
    scene.record.state.leg_start = 2;
    see_nothing(&scene, CLAIM_END_S, &client);
    see_settle(&scene, CLAIM_END_S + 1, 1, JOB_SEGMENT_DUE);
}

static void test_what_is_covered_gets_rounds_under_any_deadline(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 2);
    scene.segments[0].draw.rights = 0;
    scene.segments[1].draw.rights = 0;
    see_nothing(&scene, REVEAL_END_S, &client);
    see_settle(&scene, REVEAL_END_S + 1, 0, JOB_SEGMENT_ROUND);
    scene.segments[0].draw.start_s = REVEAL_END_S + 1;
    see_settle(&scene, REVEAL_END_S + 1, 1, JOB_SEGMENT_ROUND);
    see_settle(&scene, DEADLINE_S + 1, 0, JOB_SEGMENT_ROUND);
}

/* Nobody is left to be drawn, and the wait grows with what was not seen. */
static void test_where_the_panel_is_used_up_what_it_said_decides(void **state)
{
    static const uint32_t waits[] = {1, 2, 3, 4};

    (void)state;
    for (uint32_t rights = 0; rights <= 3; rights++) {
        for (uint32_t unseen = 0; unseen <= 3; unseen++) {
            bool passes =
                rights > unseen || (rights > 0 && rights >= 2 * unseen) || rights + unseen == 0;
            uint32_t wait = rights + unseen == 0 ? 4 : waits[unseen];
            uint64_t end_s = REVEAL_END_S + wait * PERIOD_S;
            struct scene scene;

            scene_make(&scene, 1);
            scene.segments[0].draw.to = GAME_PLACES_MAX;
            scene.segments[0].draw.rights = rights;
            scene.segments[0].draw.unseen = unseen;
            scene.record.state.due_s = DEADLINE_S;
            see_nothing(&scene, end_s, &client);
            see_settle(&scene, end_s + 1, 0, passes ? JOB_SEGMENT_DUE : JOB_SEGMENT_LOST);
        }
    }
}

/* All have had a seat: no round follows. Who closed one lets the next be drawn, a block later. */
static void test_a_round_needs_somebody_to_draw(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.segments[0].draw.rights = 0;
    see_settle(&scene, REVEAL_END_S + 1, 0, JOB_SEGMENT_ROUND);
    scene.segments[0].draw.over_height = scene.clock.height;
    see_nothing(&scene, REVEAL_END_S + 1, &client);
    scene.clock.height += GAME_SEED_DELAY;
    see(&scene, REVEAL_END_S + 1, &client, DUE_MOVE_DRAW, 0);
    scene.segments[0].draw.over_height = 0;
    scene.segments[0].draw.seats = PANEL;
    see_nothing(&scene, REVEAL_END_S + 4 * PERIOD_S, &client);
    see_settle(&scene, REVEAL_END_S + 4 * PERIOD_S + 1, 0, JOB_SEGMENT_DUE);
}

static void test_a_job_without_seats_waits_for_claims_alone(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.record.terms.seats = 0;
    scene.segments[0].draw =
        (struct job_reduced_segment){.covered = true, .start_s = COMMIT_S, .to = GAME_PLACES_MAX};
    see_nothing(&scene, CLAIM_END_S, &client);
    see_settle(&scene, CLAIM_END_S + 1, 0, JOB_SEGMENT_DUE);
}

/* ---- draws ---------------------------------------------------------------------- */

static void test_segments_are_drawn_in_order_when_their_block_is_there(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 2);
    uncover(&scene, 0);
    scene.record.state.drawn = 0;
    scene.segments[0].draw.seed = (struct hash32){{0}};
    scene.segments[1].draw.seed = (struct hash32){{0}};
    scene.clock.height = 10;
    see_nothing(&scene, COMMIT_S, &client);
    scene.clock.height = 11;
    see(&scene, COMMIT_S, &client, DUE_MOVE_DRAW, 0);
    scene.segments[0].committed.height = 90; /* the second waits for the first */
    scene.clock.height = 90;
    see_nothing(&scene, COMMIT_S, &client);
    scene.record.state.drawn = 1;
    see(&scene, COMMIT_S, &client, DUE_MOVE_DRAW, 1);
}

static void test_without_a_panel_no_block_is_waited_for(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    uncover(&scene, 0);
    scene.record.terms.seats = 0;
    scene.record.state.drawn = 0;
    scene.clock.height = 10;
    see_nothing(&scene, COMMIT_S, &client);
    scene.segments[0].committed.panel = 0;
    see(&scene, COMMIT_S, &client, DUE_MOVE_DRAW, 0);
}

/* ---- claims --------------------------------------------------------------------- */

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
    scene.record.state.finalized = 1;
    see_nothing(&scene, CLAIM_END_S + 50, &client);
    assert_int_equal(due_move_after(&scene.record, CLAIM_END_S + 50), CLAIM_END_S + 50);
}

/* A conviction of a lower rank overtakes what nobody has answered; then the stake is paid. */
static void test_an_overtaken_claim_is_lapsed_and_the_pot_is_paid(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 0);
    scene.record.state.phase = GAME_PHASE_OPEN;
    scene.record.state.generation = 1;
    scene.record.state.unpaid = 0;
    claim(&scene, 0, 5, false);
    claim(&scene, 1, 6, true);
    see(&scene, COMMIT_S, &client, DUE_MOVE_LAPSE, 1);
    scene.claims[1].state.rank = 4; /* it began earlier, and goes on */
    see_nothing(&scene, CLAIM_END_S + 50, &client);
    see(&scene, CLAIM_END_S + 51, &client, DUE_MOVE_TIMEOUT, 1);
    scene.claims[1].state.phase = GAME_CLAIM_CLOSED;
    see(&scene, COMMIT_S, &client, DUE_MOVE_PAY, 0);
    scene.record.state.unpaid = UINT32_MAX;
    see_nothing(&scene, COMMIT_S, &client);
}

/* ---- refusals and vouches --------------------------------------------------------- */

static void test_what_was_refused_is_void_when_claims_have_had_their_time(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 2);
    scene.segments[1].draw.rights = 0; /* no round opens for it any more */
    refuse(&scene, CLAIM_END_S);
    see_nothing(&scene, CLAIM_END_S + 3 * PERIOD_S, &client);
    assert_int_equal(due_move_after(&scene.record, CLAIM_END_S + 1), CLAIM_END_S + 3 * PERIOD_S);
    see_settle(&scene, CLAIM_END_S + 3 * PERIOD_S + 1, 0, JOB_SEGMENT_LOST);
}

static void test_what_was_over_at_the_refusal_is_paid_first(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    refuse(&scene, CLAIM_END_S + 1);
    see_settle(&scene, CLAIM_END_S + 1, 0, JOB_SEGMENT_DUE);
    scene.record.state.finalized =
        1; /* nothing was held: then the solver goes, and loses nothing */
    see_nothing(&scene, CLAIM_END_S + 1 + 3 * PERIOD_S, &client);
    see(&scene, CLAIM_END_S + 2 + 3 * PERIOD_S, &solver, DUE_MOVE_RELEASE, 0);
}

static void test_a_refused_tail_that_nobody_looks_at_is_void(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 2);
    uncover(&scene, 0);
    refuse(&scene, COMMIT_S);
    see_nothing(&scene, COMMIT_S + 3 * PERIOD_S, &client);
    scene.record.state.drawn = 1; /* the rest may be covered: it is drawn first */
    see(&scene, COMMIT_S + 3 * PERIOD_S + 1, &client, DUE_MOVE_DRAW, 1);
    scene.record.state.drawn = 2;
    see_settle(&scene, COMMIT_S + 3 * PERIOD_S + 1, 0, JOB_SEGMENT_LOST);
}

/* The vouch goes to the ledger at once: after the refusal anybody may make the segment void. */
static void test_a_vouch_saves_from_a_refusal(void **state)
{
    struct scene scene;
    struct due_move move;

    (void)state;
    scene_make(&scene, 1);
    scene.segments[0].has_vouch = true;
    assert_false(next(&scene, &move, COMMIT_S, &client));
    refuse(&scene, COMMIT_S);
    see_settle(&scene, COMMIT_S, 0, JOB_SEGMENT_VOUCH);
    assert_true(next(&scene, &move, COMMIT_S, &client));
    assert_true(move.vouched);
    scene.segments[0].draw.vouched = true;
    see_nothing(&scene, CLAIM_END_S, &client);
    see_settle(&scene, CLAIM_END_S + 1, 0, JOB_SEGMENT_DUE);
    assert_true(next(&scene, &move, CLAIM_END_S + 1, &client));
    assert_false(move.vouched); /* the ledger has it */
}

static void test_a_vouch_makes_unseen_silence(void **state)
{
    struct scene scene;
    struct due_move move;

    (void)state;
    scene_make(&scene, 1);
    scene.segments[0].draw.unseen = 3;
    scene.segments[0].draw.to = GAME_PLACES_MAX;
    see_nothing(&scene, CLAIM_END_S + 1, &client);
    scene.segments[0].has_vouch = true;
    see_settle(&scene, CLAIM_END_S + 1, 0, JOB_SEGMENT_DUE);
    assert_true(next(&scene, &move, CLAIM_END_S + 1, &client));
    assert_true(move.vouched);
    scene.segments[0].draw.unseen = 0; /* then it would change nothing */
    assert_true(next(&scene, &move, CLAIM_END_S + 1, &client));
    assert_false(move.vouched);
}

/* ---- the job ---------------------------------------------------------------------- */

/* Its own release would cost the solver an eighth of its stake: it waits for the deadline. */
static void test_a_late_solver_is_released_by_others(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 1);
    scene.record.state.finalized = 1;
    see_nothing(&scene, DUE_S, &client);
    assert_int_equal(due_move_after(&scene.record, DUE_S), DUE_S);
    see(&scene, DUE_S + 1, &client, DUE_MOVE_RELEASE, 0);
    see_nothing(&scene, DUE_S + 1, &solver);
    see_nothing(&scene, DEADLINE_S, &solver);
    see(&scene, DEADLINE_S + 1, &solver, DUE_MOVE_RELEASE, 0);
    /* What the panel looks at comes first, and a tail is no reason to wait. */
    scene.record.state.finalized = 0;
    see_settle(&scene, DUE_S + 1, 0, JOB_SEGMENT_DUE);
    uncover(&scene, 0);
    see(&scene, DUE_S + 1, &client, DUE_MOVE_RELEASE, 0);
    scene.record.state.drawn = 0;
    see(&scene, DUE_S + 1, &client, DUE_MOVE_DRAW, 0);
}

static void test_an_open_job_is_closed_after_its_deadline(void **state)
{
    struct scene scene;

    (void)state;
    scene_make(&scene, 0);
    scene.record.state.phase = GAME_PHASE_OPEN;
    see_nothing(&scene, DEADLINE_S, &client);
    assert_int_equal(due_move_after(&scene.record, DEADLINE_S), DEADLINE_S);
    see(&scene, DEADLINE_S + 1, &verifier, DUE_MOVE_CLOSE, 0);
    scene.record.state.phase = GAME_PHASE_CLOSED;
    see_nothing(&scene, DEADLINE_S + 1, &client);
    scene.record.state.phase = GAME_PHASE_NONE;
    see_nothing(&scene, DEADLINE_S + 1, &client);
}

static void test_who_collects_takes_back_what_is_its_own(void **state)
{
    struct due_move move;
    struct scene scene;

    (void)state;
    scene_make(&scene, 0);
    scene.entries[2].owner = verifier;
    see_nothing(&scene, COMMIT_S, &verifier); /* it is still drawn */
    scene.record.state.phase = GAME_PHASE_CLOSED;
    scene.record.state.generation = 4;
    see(&scene, COMMIT_S, &verifier, DUE_MOVE_DEPART, 0);
    assert_true(next(&scene, &move, COMMIT_S, &verifier));
    assert_int_equal(move.entry, 2);
    assert_int_equal(move.generation, 4);
    see_nothing(&scene, COMMIT_S, &solver);
    scene.entries[2].gone = true;
    see_nothing(&scene, COMMIT_S, &verifier);
}

static void test_bonds_of_earlier_tenures_come_back_at_any_time(void **state)
{
    struct due_move move;
    struct scene scene;

    (void)state;
    scene_make(&scene, 0);
    scene.former[0] = (struct job_record_entry){.generation = 2, .number = 7};
    scene.record.former_count = 1;
    see(&scene, COMMIT_S, &verifier, DUE_MOVE_DEPART, 0);
    assert_true(next(&scene, &move, COMMIT_S, &verifier));
    assert_int_equal(move.entry, 7);
    assert_int_equal(move.generation, 2);
    see_nothing(&scene, COMMIT_S, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legs_are_settled_in_order_after_their_claim_time),
        cmocka_unit_test(test_an_uncovered_segment_needs_no_move),
        cmocka_unit_test(test_what_is_covered_gets_rounds_under_any_deadline),
        cmocka_unit_test(test_where_the_panel_is_used_up_what_it_said_decides),
        cmocka_unit_test(test_a_round_needs_somebody_to_draw),
        cmocka_unit_test(test_a_job_without_seats_waits_for_claims_alone),
        cmocka_unit_test(test_segments_are_drawn_in_order_when_their_block_is_there),
        cmocka_unit_test(test_without_a_panel_no_block_is_waited_for),
        cmocka_unit_test(test_claims_are_ended_before_what_they_hold_up),
        cmocka_unit_test(test_an_overtaken_claim_is_lapsed_and_the_pot_is_paid),
        cmocka_unit_test(test_what_was_refused_is_void_when_claims_have_had_their_time),
        cmocka_unit_test(test_what_was_over_at_the_refusal_is_paid_first),
        cmocka_unit_test(test_a_refused_tail_that_nobody_looks_at_is_void),
        cmocka_unit_test(test_a_vouch_saves_from_a_refusal),
        cmocka_unit_test(test_a_vouch_makes_unseen_silence),
        cmocka_unit_test(test_a_late_solver_is_released_by_others),
        cmocka_unit_test(test_an_open_job_is_closed_after_its_deadline),
        cmocka_unit_test(test_who_collects_takes_back_what_is_its_own),
        cmocka_unit_test(test_bonds_of_earlier_tenures_come_back_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
