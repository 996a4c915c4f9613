/*
 * Goal: what readers keep of a job is right where other events follow: a right that was disproved
 * counts as one that had no states, a tenure ends with its panel, legs begin where they should, and
 * no time runs for a solver that has as much open as may be.
 * Method: events made by hand. tests/chain/game/history_test.c plays random games, and holds the
 * readers to each other and to the ledger.
 */
#include "tests/support/test.h"

#include "chain/job/job_reduced.h"

static const struct address solver = {{2}};
static const struct game_terms terms = {
    .steps = 80, .segment_steps = 1, .segment_period_s = 10, .deadline_s = 100};

static void take(struct job_reduced *job, const struct game_event *event, uint64_t time_s)
{
    const struct ledger_entry entry = {.kind = LEDGER_EVENT, .time_s = time_s, .event = *event};

    job_reduced_take(job, &terms, &entry);
}

static void commit(struct job_reduced *job, uint64_t time_s)
{
    const struct game_event committed = {.kind = GAME_COMMITTED,
                                         .segment = {.index = job->committed, .time_s = time_s}};

    take(job, &committed, time_s);
}

static void draw(struct job_reduced *job, bool covered)
{
    const struct game_event drawn = {.kind = GAME_DRAWN, .index = job->drawn, .flag = covered};

    take(job, &drawn, 50);
}

static void test_a_right_that_was_disproved_counts_as_unseen(void **state)
{
    const struct game_event right = {.kind = GAME_REVEALED, .verdict = GAME_VERDICT_RIGHT};
    const struct game_event disproved = {.kind = GAME_DISPROVED, .entry = 5};
    struct job_reduced_segment segment = {.rights = 1}; /* of another place */
    struct job_reduced_seat seat = {.entry = 5};

    (void)state;
    job_reduced_take_segment(&segment, 0, &right);
    job_reduced_take_seat(&seat, &segment, &right);
    assert_int_equal(segment.rights, 2);
    job_reduced_take_seat(&seat, &segment, &disproved);
    assert_int_equal(segment.rights, 1);
    assert_int_equal(segment.unseen, 1);
    assert_int_equal(seat.phase, GAME_SEAT_CLOSED);
}

static void test_who_says_unseen_has_no_verdict(void **state)
{
    const struct game_event unseen = {.kind = GAME_SAID_UNSEEN};
    const struct game_event vouched = {.kind = GAME_VOUCHED};
    struct job_reduced_segment segment = {0};
    struct job_reduced_seat seat = {0};

    (void)state;
    job_reduced_take_segment(&segment, 0, &unseen);
    job_reduced_take_seat(&seat, &segment, &unseen);
    job_reduced_take_segment(&segment, 0, &vouched);
    assert_int_equal(segment.unseen, 1);
    assert_true(segment.vouched);
    assert_int_equal(seat.phase, GAME_SEAT_UNSEEN);
    assert_int_equal(seat.verdict, GAME_VERDICT_NONE);
}

static void test_a_leg_ends_with_a_covered_segment(void **state)
{
    const struct game_event covered = {.kind = GAME_DRAWN, .index = 2, .flag = true};
    struct job_reduced_segment segment = {0};
    struct job_reduced job = {.phase = GAME_PHASE_RUNNING, .leg_start = 1, .drawn = 1};

    (void)state;
    for (int i = 0; i < 4; i++) {
        commit(&job, 20);
    }
    draw(&job, false);
    job_reduced_take_segment(&segment, job.leg_start, &covered);
    draw(&job, true);
    assert_int_equal(segment.leg_start, 1);
    assert_int_equal(job.leg_start, 3);
    draw(&job, false);
    assert_int_equal(job.leg_start, 3);
    assert_int_equal(job.drawn, 4);
}

static void test_a_closed_job_keeps_its_solver(void **state)
{
    const struct game_event accepted = {.kind = GAME_ACCEPTED, .account = solver, .time_s = 10};
    const struct game_event finalized = {.kind = GAME_FINALIZED};
    const struct game_event closed = {.kind = GAME_CLOSED, .index = 1};
    struct job_reduced job = {.phase = GAME_PHASE_OPEN, .unpaid = JOB_REDUCED_PAID};

    (void)state;
    take(&job, &accepted, 5);
    commit(&job, 95);
    assert_int_equal(job.due_s, terms.deadline_s);
    take(&job, &finalized, 96);
    take(&job, &closed, 96);
    assert_int_equal(job.phase, GAME_PHASE_CLOSED);
    assert_int_equal(job.committed, 1);
    assert_true(address_equal(&job.solver, &solver));
}

/* The settle that makes room lets the time run again, from its own block. */
static void test_no_time_runs_while_as_much_is_open_as_may_be(void **state)
{
    const struct game_event finalized = {.kind = GAME_FINALIZED, .index = 3};
    struct job_reduced job = {.phase = GAME_PHASE_RUNNING};

    (void)state;
    for (int i = 0; i < GAME_OPEN_MAX - 1; i++) {
        commit(&job, 20);
    }
    assert_int_equal(job.due_s, 30);
    commit(&job, 21);
    assert_int_equal(job.due_s, 0);
    take(&job, &finalized, 60);
    assert_int_equal(job.due_s, 70);
    for (int i = 0; i < 4; i++) {
        commit(&job, 65);
    }
    assert_int_equal(job.due_s, 0);
    job.refused_until_s = 80; /* no commit can come */
    take(&job, &(struct game_event){.kind = GAME_FINALIZED, .index = 4}, 61);
    assert_int_equal(job.due_s, 0);
}

static void test_every_tenure_has_a_generation_and_a_panel(void **state)
{
    static const enum game_event_kind ends[] = {GAME_VOIDED, GAME_CONVICTED, GAME_RELEASED};

    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct game_event end = {.kind = ends[i], .escrow = 30, .pool = 4};
        struct job_reduced job = {.phase = GAME_PHASE_RUNNING,
                                  .solver = solver,
                                  .generation = 7,
                                  .committed = 5,
                                  .drawn = 4,
                                  .leg_start = 3,
                                  .finalized = 2,
                                  .entries = 9,
                                  .due_s = 40,
                                  .refused_until_s = 50,
                                  .ended = true,
                                  .unpaid = JOB_REDUCED_PAID};

        take(&job, &end, 60);
        assert_int_equal(job.phase, GAME_PHASE_OPEN);
        assert_int_equal(job.generation, 8);
        assert_int_equal(job.committed, 2);
        assert_int_equal(job.drawn, 2);
        assert_int_equal(job.leg_start, 2);
        assert_int_equal(job.entries, 0);
        assert_int_equal(job.due_s, 0);
        assert_int_equal(job.refused_until_s, 0);
        assert_int_equal(job.opened_s, 60);
        assert_false(job.ended);
        assert_true(address_is_zero(&job.solver));
        assert_int_equal(job.barred, ends[i] == GAME_VOIDED);
        assert_true(job.missing_escrow == (job.barred ? 30 : 0));
        assert_true(job.missing_pool == (job.barred ? 4 : 0));
        take(&job, &(struct game_event){.kind = GAME_RESUMED, .escrow = 30, .pool = 4}, 70);
        assert_int_equal(job.opened_s, 70);
        assert_false(job.barred);
        assert_true(job.missing_escrow + job.missing_pool == 0);
    }
}

static void test_an_open_panel_has_no_gaps(void **state)
{
    const struct game_event gone = {.kind = GAME_GONE, .generation = 1, .entry = 3};
    const struct game_event earlier = {.kind = GAME_GONE, .generation = 0, .entry = 3};
    struct job_reduced job = {.phase = GAME_PHASE_OPEN, .generation = 1};

    (void)state;
    take(&job, &(struct game_event){.kind = GAME_ENLISTED, .generation = 1, .count = 8}, 10);
    take(&job, &gone, 11);
    assert_int_equal(job.entries, 7);
    take(&job, &earlier, 12);
    assert_int_equal(job.entries, 7);
    take(&job, &(struct game_event){.kind = GAME_ACCEPTED, .account = solver}, 13);
    take(&job, &gone, 14); /* a bond that was lost: the number stays */
    assert_int_equal(job.entries, 7);
}

static void test_a_conviction_leaves_a_pot_until_it_is_paid(void **state)
{
    const struct game_event convicted = {.kind = GAME_CONVICTED};
    const struct game_event other = {.kind = GAME_PAID, .generation = 8};
    const struct game_event paid = {.kind = GAME_PAID, .generation = 7};
    struct job_reduced job = {
        .phase = GAME_PHASE_RUNNING, .generation = 7, .unpaid = JOB_REDUCED_PAID};

    (void)state;
    take(&job, &convicted, 1);
    take(&job, &other, 2);
    assert_int_equal(job.unpaid, 7);
    take(&job, &paid, 3);
    assert_true(job.unpaid == JOB_REDUCED_PAID);
}

static void test_a_client_stops_a_job_early(void **state)
{
    struct job_reduced job = {0};

    (void)state;
    take(&job, &(struct game_event){.kind = GAME_OPENED}, 1);
    assert_int_equal(job.segments, 80);
    take(&job, &(struct game_event){.kind = GAME_STOPPED, .count = 5}, 2);
    assert_int_equal(job.segments, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_right_that_was_disproved_counts_as_unseen),
        cmocka_unit_test(test_who_says_unseen_has_no_verdict),
        cmocka_unit_test(test_a_leg_ends_with_a_covered_segment),
        cmocka_unit_test(test_a_closed_job_keeps_its_solver),
        cmocka_unit_test(test_no_time_runs_while_as_much_is_open_as_may_be),
        cmocka_unit_test(test_every_tenure_has_a_generation_and_a_panel),
        cmocka_unit_test(test_an_open_panel_has_no_gaps),
        cmocka_unit_test(test_a_conviction_leaves_a_pot_until_it_is_paid),
        cmocka_unit_test(test_a_client_stops_a_job_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
