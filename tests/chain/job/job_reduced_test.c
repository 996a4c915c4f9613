/*
 * Goal: what two readers keep of a job is right where other events follow: a right that was
 * disproved does not count, and a job that is closed had a solver.
 * Method: events made by hand. tests/chain/game/history_test.c plays random games, and holds both
 * readers to each other and to the ledger.
 */
#include "tests/support/test.h"

#include "chain/job/job_reduced.h"

static const struct address solver = {{2}};

static void test_a_right_that_was_disproved_does_not_count(void **state)
{
    const struct game_event right = {.kind = GAME_REVEALED, .verdict = GAME_VERDICT_RIGHT};
    const struct game_event disproved = {.kind = GAME_DISPROVED, .entry = 5};
    struct job_reduced_segment segment = {.rights = 1}; /* of another place */
    struct job_reduced_seat seat = {.entry = 5};

    (void)state;
    job_reduced_take_segment(&segment, &right);
    job_reduced_take_seat(&seat, &segment, &right);
    assert_int_equal(segment.rights, 2);
    job_reduced_take_seat(&seat, &segment, &disproved);
    assert_int_equal(segment.rights, 1);
    assert_int_equal(seat.phase, GAME_SEAT_CLOSED);
}

/* The panel that is asked for the last state finds the solver's address by it. */
static void test_a_closed_job_keeps_its_solver(void **state)
{
    const struct game_terms terms = {.segment_period_s = 10, .deadline_s = 100};
    const struct game_event accepted = {.kind = GAME_ACCEPTED, .account = solver, .time_s = 10};
    const struct game_event committed = {.kind = GAME_COMMITTED,
                                         .segment = {.index = 0, .generation = 3, .time_s = 95}};
    const struct game_event finalized = {.kind = GAME_FINALIZED};
    const struct game_event closed = {.kind = GAME_CLOSED, .index = 1};
    struct job_reduced job = {.phase = GAME_PHASE_OPEN, .unpaid = JOB_REDUCED_PAID};

    (void)state;
    job_reduced_take(&job, &terms, &accepted);
    job_reduced_take(&job, &terms, &committed);
    assert_int_equal(job.due_s, terms.deadline_s);
    job_reduced_take(&job, &terms, &finalized);
    job_reduced_take(&job, &terms, &closed);
    assert_int_equal(job.phase, GAME_PHASE_CLOSED);
    assert_int_equal(job.committed, 1);
    assert_int_equal(job.generation, 3);
    assert_true(address_equal(&job.solver, &solver));
}

static void test_a_conviction_leaves_a_pot_until_it_is_paid(void **state)
{
    const struct game_terms terms = {.segment_period_s = 10, .deadline_s = 100};
    const struct game_event convicted = {.kind = GAME_CONVICTED};
    const struct game_event other = {.kind = GAME_PAID, .generation = 8};
    const struct game_event paid = {.kind = GAME_PAID, .generation = 7};
    struct job_reduced job = {.phase = GAME_PHASE_RUNNING,
                              .solver = solver,
                              .generation = 7,
                              .committed = 5,
                              .finalized = 2,
                              .ended = true,
                              .unpaid = JOB_REDUCED_PAID};

    (void)state;
    job_reduced_take(&job, &terms, &convicted);
    assert_int_equal(job.phase, GAME_PHASE_OPEN);
    assert_int_equal(job.committed, 2);
    assert_int_equal(job.generation, 8);
    assert_false(job.ended);
    assert_true(address_is_zero(&job.solver));
    job_reduced_take(&job, &terms, &other);
    assert_int_equal(job.unpaid, 7);
    job_reduced_take(&job, &terms, &paid);
    assert_true(job.unpaid == JOB_REDUCED_PAID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_right_that_was_disproved_does_not_count),
        cmocka_unit_test(test_a_closed_job_keeps_its_solver),
        cmocka_unit_test(test_a_conviction_leaves_a_pot_until_it_is_paid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
