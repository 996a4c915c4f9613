/*
 * Goal: a user who watches a ledger is told what each segment waits for, when it can be final, and
 * of each deadline and bond in time; and of nothing else. Method: events made by hand, looked at
 * from chosen moments.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/job/job_status.h"
#include "verifier/status/watch.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

enum {
    START_S = 1000,
    SEAL_S = 100,
    REVEAL_S = 50,
    CLAIM_S = 25,
    PERIOD_S = 500,
    PANEL = 20, /* entries */
    DEADLINE_S = 100000,
};

static struct board watch;
static struct watch_alarm alarms[WATCH_ALARMS_MAX];
static uint64_t number;

static void take(const struct game_event *event)
{
    const struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                       .number = ++number,
                                       .height = number,
                                       .time_s = START_S,
                                       .event = *event};
    struct error error;

    error_init(&error);
    OK(board_take(&watch, &entry, &error));
}

static struct address keeper; /* of the next job */

static struct game_event about(enum game_event_kind kind, uint32_t index)
{
    struct game_event event = {.kind = kind, .job = {{1}}, .index = index};

    return event;
}

static void open_job(uint32_t seats)
{
    struct game_event event = about(GAME_OPENED, 0);

    event.terms = (struct game_terms){.steps = 40,
                                      .segment_steps = 10,
                                      .reward = 1,
                                      .seats = seats,
                                      .keeper = keeper,
                                      .coverage_ppm = GAME_PPM,
                                      .segment_period_s = PERIOD_S,
                                      .seal_period_s = SEAL_S,
                                      .reveal_period_s = REVEAL_S,
                                      .claim_period_s = CLAIM_S,
                                      .clock_s = 60,
                                      .deadline_s = DEADLINE_S};
    take(&event);
    event = about(GAME_ENLISTED, 0);
    event.account = (struct address){{5}};
    event.count = PANEL;
    take(&event);
    event = about(GAME_ACCEPTED, 0);
    event.account = (struct address){{9}};
    event.time_s = START_S + PERIOD_S;
    take(&event);
}

static void commit(uint32_t index)
{
    struct game_event event = about(GAME_COMMITTED, index);

    event.segment =
        (struct game_segment){.index = index, .steps = 10, .time_s = START_S, .panel = PANEL};
    event.segment.root.bytes[0] = (uint8_t)(index + 1);
    event.time_s = START_S + PERIOD_S;
    take(&event);
}

/* The draw, and a round of one place. */
static void draw(uint32_t index)
{
    struct game_event event = about(GAME_DRAWN, index);

    event.flag = true;
    event.seal.bytes[0] = 77;
    take(&event);
    event = about(GAME_ROUND, index);
    event.round = 1;
    event.to = 1;
    event.time_s = START_S;
    take(&event);
}

static void seal(uint32_t index)
{
    struct game_event event = about(GAME_SEALED_VERDICT, index);

    take(&event);
}

static void reveal(uint32_t index, enum game_verdict verdict)
{
    struct game_event event = about(GAME_REVEALED, index);

    event.verdict = (uint32_t)verdict;
    take(&event);
}

static void say_unseen(uint32_t index)
{
    struct game_event event = about(GAME_SAID_UNSEEN, index);

    take(&event);
}

static uint32_t look(uint64_t now_s, uint64_t margin_s)
{
    return watch_alarms(alarms, &watch, now_s, margin_s);
}

static int begin(void **state)
{
    (void)state;
    number = 0;
    watch = (struct board){.most = WATCH_JOBS_MAX};
    return 0;
}

static int end(void **state)
{
    (void)state;
    board_release(&watch);
    return 0;
}

/* ---- forecasts ---------------------------------------------------------- */

static void test_a_forecast_waits_for_the_segments_before(void **state)
{
    const struct job_record *job;
    const uint64_t end_s = START_S + SEAL_S + REVEAL_S + CLAIM_S;

    (void)state;
    open_job(1);
    commit(0);
    commit(1);
    job = &watch.jobs[0];
    assert_int_equal(job_status_forecast(job, 0, START_S), 0); /* its draw may bring anything */
    draw(0);
    draw(1);
    assert_int_equal(job_status_forecast(job, 0, START_S), end_s);
    assert_int_equal(job_status_forecast(job, 1, START_S), end_s);
    /* Nobody came for segment 0: it needs another round, and 1 waits for it. */
    seal(1);
    reveal(1, GAME_VERDICT_RIGHT);
    assert_int_equal(job_status_forecast(job, 0, end_s + 1), 0);
    assert_int_equal(job_status_forecast(job, 1, end_s + 1), 0);
}

static void test_watch_without_trouble_is_silent(void **state)
{
    (void)state;
    assert_int_equal(look(START_S, 10), 0);
    open_job(1);
    commit(0);
    assert_int_equal(look(START_S, 10), 0);
    draw(0);
    seal(0);
    assert_int_equal(look(START_S, 10), 0);
    reveal(0, GAME_VERDICT_RIGHT);
    assert_int_equal(look(START_S + SEAL_S + REVEAL_S, 10), 0);
}

/* ---- deadlines and bonds ------------------------------------------------ */

static void test_watch_reports_a_late_solver_before_and_after(void **state)
{
    (void)state;
    open_job(0);
    assert_int_equal(look(START_S + PERIOD_S - 11, 10), 0);
    assert_int_equal(look(START_S + PERIOD_S - 10, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_SOLVER_LATE);
    assert_int_equal(alarms[0].due_s, START_S + PERIOD_S);
    assert_non_null(strstr(alarms[0].text, "little time"));
    /* Most of a period that is short is no alarm. */
    assert_int_equal(look(START_S + PERIOD_S - PERIOD_S / 3 - 1, 3600), 0);
    assert_int_equal(look(START_S + PERIOD_S - PERIOD_S / 3, 3600), 1);
    assert_int_equal(look(START_S + PERIOD_S + 1, 0), 1);
    assert_non_null(strstr(alarms[0].text, "is late"));
    for (uint32_t i = 0; i < 4; i++) {
        commit(i);
    }
    assert_int_equal(look(START_S + PERIOD_S + 1, 0), 0); /* all there */
}

static void test_watch_reports_missing_verdicts(void **state)
{
    (void)state;
    open_job(1);
    commit(0);
    draw(0);
    assert_int_equal(look(START_S + SEAL_S - 11, 10), 0);
    assert_int_equal(look(START_S + SEAL_S - 10, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_PANEL);
    assert_int_equal(alarms[0].due_s, START_S + SEAL_S);
    assert_string_equal(alarms[0].text, "only 0 of 1 verdicts are sealed");
    assert_int_equal(look(START_S + SEAL_S + REVEAL_S + 1, 0), 1);
    assert_string_equal(
        alarms[0].text,
        "0 rights and 0 unseen, and 1 rights make it final: it needs another round");
    seal(0);
    reveal(0, GAME_VERDICT_RIGHT);
    assert_int_equal(look(START_S + SEAL_S + REVEAL_S + 1, 0), 0);
}

static void test_watch_reports_a_panel_that_cannot_get_the_states(void **state)
{
    (void)state;
    open_job(1);
    commit(0);
    draw(0);
    say_unseen(0);
    assert_int_equal(look(START_S + SEAL_S, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_UNSEEN);
    assert_non_null(strstr(alarms[0].text, "1 of the panel cannot get its states, and 0 find"));
}

/* Who left the job to a keeper learns that it sleeps, that somebody refused, and what is void. */
static void test_watch_reports_a_keeper_a_refusal_and_a_void(void **state)
{
    struct game_event event = about(GAME_REFUSED, 0);

    (void)state;
    keeper = (struct address){{8}};
    open_job(1);
    keeper = (struct address){{0}};
    commit(0);
    draw(0);
    assert_int_equal(look(START_S + SEAL_S + REVEAL_S + CLAIM_S, 0), 1);
    assert_int_equal(alarms[0].kind, WATCH_PANEL); /* another round */
    assert_int_equal(look(START_S + SEAL_S + REVEAL_S + CLAIM_S + 1, 0), 2);
    assert_int_equal(alarms[0].kind, WATCH_KEEPER);
    reveal(0, GAME_VERDICT_RIGHT); /* then its word is not needed */
    assert_int_equal(look(START_S + SEAL_S + REVEAL_S + CLAIM_S + 1, 0), 0);
    event.account = (struct address){{8}};
    event.time_s = START_S + 2 * PERIOD_S;
    take(&event);
    assert_int_equal(look(START_S + 1, 0), 1);
    assert_int_equal(alarms[0].kind, WATCH_REFUSED);
    assert_int_equal(alarms[0].due_s, START_S + 2 * PERIOD_S);
    assert_non_null(strstr(alarms[0].text, "the keeper refuses"));
    event = about(GAME_VOIDED, 0);
    event.count = 2;
    take(&event);
    assert_int_equal(look(START_S + 2 * PERIOD_S, 0), 1);
    assert_int_equal(alarms[0].kind, WATCH_BARRED);
}

static void test_one_cause_in_many_segments_is_one_alarm(void **state)
{
    (void)state;
    open_job(1);
    for (uint32_t i = 0; i < 4; i++) {
        commit(i);
        draw(i);
        if (i != 2) {
            say_unseen(i);
        }
    }
    assert_int_equal(look(START_S + SEAL_S - 10, 10), 3);
    assert_int_equal(alarms[0].kind, WATCH_UNSEEN);
    assert_int_equal(alarms[0].index, 0);
    assert_int_equal(alarms[0].last, 1);
    assert_int_equal(alarms[1].kind, WATCH_PANEL);
    assert_int_equal(alarms[1].index, 2);
    assert_int_equal(alarms[1].last, 2);
    assert_int_equal(alarms[2].kind, WATCH_UNSEEN);
    assert_int_equal(alarms[2].index, 3);
    assert_int_equal(alarms[2].last, 3);
}

static void test_watch_follows_whose_turn_it_is(void **state)
{
    struct game_event event = about(GAME_CLAIMED, 0);

    (void)state;
    open_job(0);
    commit(0);
    event.claim = (struct hash32){{3}};
    event.account.bytes[0] = 6;
    event.step = 7;
    take(&event);
    assert_int_equal(job_status_forecast(&watch.jobs[0], 0, START_S), 0);
    assert_int_equal(look(START_S, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_CLAIMED); /* it waits, and nobody's clock runs */
    assert_string_equal(alarms[0].text, "step 7 of it is said to be false");
    assert_memory_equal(&alarms[0].claim, &event.claim, sizeof(event.claim));
    event.kind = GAME_TURN_PASSED;
    event.phase = GAME_CLAIM_CALLED;
    event.turn = GAME_TURN_ACCUSED;
    event.time_s = START_S + 60;
    take(&event);
    assert_int_equal(look(START_S + 49, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_CLAIMED);
    assert_int_equal(look(START_S + 50, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_TURN);
    assert_string_equal(alarms[0].text, "it is the turn of the solver");
    event.kind = GAME_ANSWERED;
    take(&event);
    event.kind = GAME_TURN_PASSED;
    event.phase = GAME_CLAIM_TRIED;
    event.turn = GAME_TURN_CLAIMANT;
    event.time_s = START_S + 120;
    take(&event);
    assert_int_equal(look(START_S + 121, 0), 1);
    assert_non_null(strstr(alarms[0].text, "the claimant, whose clock has run out"));
    event.turn = GAME_TURN_ACCUSED;
    event.time_s = START_S + 180;
    take(&event);
    assert_int_equal(look(START_S + 175, 10), 1);
    assert_string_equal(alarms[0].text, "it is the turn of the solver");
    event.kind = GAME_RULED;
    event.outcome = GAME_REFUTED;
    take(&event);
    assert_int_equal(look(START_S + 175, 10), 0);
}

static void test_watch_a_conviction_opens_the_job_again(void **state)
{
    struct game_event event = about(GAME_CONVICTED, 0);

    (void)state;
    open_job(0);
    commit(0);
    take(&event);
    assert_int_equal(look(START_S, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_CONVICTED);
    event = about(GAME_ACCEPTED, 0);
    event.time_s = START_S + PERIOD_S;
    take(&event);
    assert_int_equal(look(START_S, 10), 0);
}

/* ---- the event log ------------------------------------------------------- */

static void test_watch_a_rewind_reads_the_event_log_again(void **state)
{
    struct ledger_entry rewind = {.kind = LEDGER_REWIND, .number = 50};
    struct error error;

    (void)state;
    error_init(&error);
    open_job(0);
    OK(board_take(&watch, &rewind, &error));
    assert_int_equal(watch.read, 0);
    assert_int_equal(watch.count, 0);
    open_job(0);
    OK(board_take(&watch, &rewind, &error)); /* passed again: it was dealt with */
    assert_int_equal(watch.count, 1);
    assert_int_equal(watch.read, 50);
}

static void test_watch_jobs_beyond_the_maximum_are_counted(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WATCH_JOBS_MAX + 3; i++) {
        struct game_event event = {.kind = GAME_OPENED};

        memcpy(event.job.bytes, &i, sizeof(i));
        take(&event);
    }
    assert_int_equal(watch.count, WATCH_JOBS_MAX);
    assert_int_equal(watch.left_out, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_forecast_waits_for_the_segments_before, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_without_trouble_is_silent, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_reports_a_late_solver_before_and_after, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_watch_reports_missing_verdicts, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_reports_a_panel_that_cannot_get_the_states,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_watch_reports_a_keeper_a_refusal_and_a_void, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_one_cause_in_many_segments_is_one_alarm, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_follows_whose_turn_it_is, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_a_conviction_opens_the_job_again, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_a_rewind_reads_the_event_log_again, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_jobs_beyond_the_maximum_are_counted, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
