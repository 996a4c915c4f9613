/*
 * Goal: whoever watches a ledger is told what each segment waits for, when it can be final, and of
 * each deadline, bond and contradiction in time; and of nothing else.
 * Method: events made by hand, looked at from chosen moments.
 */
#include "tests/support/test.h"

#include <string.h>

#include "verifier/status/watch.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

enum {
    START_S = 1000,
    ATTEST_S = 100,
    REVEAL_S = 50,
    CLAIM_S = 25,
    PERIOD_S = 500,
    DEADLINE_S = 100000,
};

static struct watch watch;
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
    OK(watch_take(&watch, &entry, &error));
}

static struct game_event about(enum game_event_kind kind, uint32_t index)
{
    struct game_event event = {.kind = kind, .job = {{1}}, .index = index};

    return event;
}

static void open_job(uint32_t attestors)
{
    struct game_event event = about(GAME_OPENED, 0);

    event.terms = (struct game_terms){.steps = 40,
                                      .segment_steps = 10,
                                      .segment_reward = 1,
                                      .attestors = attestors,
                                      .coverage_ppm = GAME_PPM,
                                      .segment_period_s = PERIOD_S,
                                      .attest_period_s = ATTEST_S,
                                      .reveal_period_s = REVEAL_S,
                                      .claim_period_s = CLAIM_S,
                                      .response_period_s = 60,
                                      .deadline_s = DEADLINE_S};
    take(&event);
    event = about(GAME_ACCEPTED, 0);
    event.account = (struct address){{9}};
    event.time_s = START_S + PERIOD_S;
    take(&event);
}

static void commit(uint32_t index)
{
    struct game_event event = about(GAME_COMMITTED, index);

    event.segment = (struct game_segment){.index = index, .steps = 10, .time_s = START_S};
    event.segment.root.bytes[0] = (uint8_t)(index + 1);
    event.time_s = START_S + PERIOD_S;
    take(&event);
    event = about(GAME_DRAWN, index);
    event.flag = true;
    take(&event);
}

static void attest(uint32_t index, uint8_t account)
{
    struct game_event event = about(GAME_ATTESTED, index);

    event.account.bytes[0] = account;
    take(&event);
}

static void reveal(uint32_t index, uint8_t account, uint8_t root)
{
    struct game_event event = about(GAME_REVEALED, index);

    event.account.bytes[0] = account;
    event.root.bytes[0] = root;
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
    watch_init(&watch);
    return 0;
}

static int end(void **state)
{
    (void)state;
    watch_free(&watch);
    return 0;
}

/* ---- forecasts ---------------------------------------------------------- */

static void test_a_forecast_waits_for_the_segments_before(void **state)
{
    const struct job_record *job;
    const uint64_t end_s = START_S + ATTEST_S + REVEAL_S + CLAIM_S;

    (void)state;
    open_job(1);
    commit(0);
    commit(1);
    job = &watch.jobs[0];
    assert_int_equal(watch_forecast(job, 0, START_S), end_s);
    assert_int_equal(watch_forecast(job, 1, START_S), end_s);
    /* Nobody came for segment 0: it needs another round, and 1 waits for it. */
    attest(1, 5);
    reveal(1, 5, 1);
    assert_int_equal(watch_forecast(job, 0, end_s + 1), 0);
    assert_int_equal(watch_forecast(job, 1, end_s + 1), 0);
}

static void test_watch_without_trouble_is_silent(void **state)
{
    (void)state;
    assert_int_equal(look(START_S, 10), 0);
    open_job(1);
    commit(0);
    attest(0, 5);
    assert_int_equal(look(START_S, 10), 0);
    reveal(0, 5, 1);
    assert_int_equal(look(START_S + ATTEST_S + REVEAL_S, 10), 0);
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
    assert_int_equal(look(START_S + PERIOD_S + 1, 0), 1);
    assert_non_null(strstr(alarms[0].text, "is late"));
    for (uint32_t i = 0; i < 4; i++) {
        commit(i);
    }
    assert_int_equal(look(START_S + PERIOD_S + 1, 0), 0); /* all there */
}

static void test_watch_reports_missing_attestors(void **state)
{
    (void)state;
    open_job(2);
    commit(0);
    attest(0, 5);
    assert_int_equal(look(START_S + ATTEST_S - 10, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_UNCOVERED);
    assert_string_equal(alarms[0].text, "only 1 of 2 attestors have come");
    reveal(0, 5, 1);
    assert_int_equal(look(START_S + ATTEST_S + REVEAL_S + 1, 0), 1);
    assert_non_null(strstr(alarms[0].text, "another round"));
    commit(1);
    commit(2);
    commit(3);
    assert_int_equal(look(DEADLINE_S + 1, 0), 4);
    assert_non_null(strstr(alarms[0].text, "never be final"));
}

static void test_watch_reports_a_seal_without_a_reveal(void **state)
{
    (void)state;
    open_job(1);
    commit(0);
    attest(0, 5);
    assert_int_equal(look(START_S + ATTEST_S + REVEAL_S - 11, 10), 0);
    assert_int_equal(look(START_S + ATTEST_S + REVEAL_S - 10, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_REVEAL_DUE);
    reveal(0, 5, 1);
    assert_int_equal(look(START_S + ATTEST_S + REVEAL_S - 10, 10), 0);
}

static void test_watch_follows_whose_turn_it_is(void **state)
{
    struct game_event event = about(GAME_CLAIMED, 0);

    (void)state;
    open_job(0);
    commit(0);
    event.claim = (struct hash32){{3}};
    event.account.bytes[0] = 6;
    event.time_s = START_S + 60;
    take(&event);
    assert_int_equal(watch_forecast(&watch.jobs[0], 0, START_S), 0);
    assert_int_equal(look(START_S + 49, 10), 0);
    assert_int_equal(look(START_S + 50, 10), 1);
    assert_int_equal(alarms[0].kind, WATCH_TURN);
    assert_string_equal(alarms[0].text, "it is the turn of the solver");
    event.kind = GAME_ANSWERED;
    event.time_s = START_S + 120;
    take(&event);
    assert_int_equal(look(START_S + 61, 10), 0);
    assert_int_equal(look(START_S + 121, 0), 1);
    assert_non_null(strstr(alarms[0].text, "the claimant, whose time is over"));
    event.kind = GAME_TURN_PASSED;
    event.turn = GAME_TURN_ACCUSED;
    event.time_s = START_S + 180;
    take(&event);
    assert_int_equal(look(START_S + 175, 10), 1);
    assert_string_equal(alarms[0].text, "it is the turn of the solver");
    event.kind = GAME_RULED;
    take(&event);
    assert_int_equal(look(START_S + 175, 10), 0);
    assert_int_equal(watch.claim_count, 0);
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

/* ---- contradictions ----------------------------------------------------- */

static void test_watch_two_traces_of_one_step_disagree(void **state)
{
    const struct hash32 seed = {{0}};
    uint32_t contradictions = 0;
    struct game_event event = about(GAME_CONVICTED, 0);

    (void)state;
    open_job(64);
    commit(0);
    commit(1);
    for (uint8_t account = 1; account <= 40; account++) {
        struct address address = {{account}};
        uint32_t step = game_sampled_step(&seed, &address, 10);

        /* Honest: the trace root is a function of the step. Account 33 lies. */
        attest(0, account);
        reveal(0, account, (uint8_t)(account == 33 ? 200 : 100 + step));
        /* The same words about another segment contradict nobody. */
        attest(1, account);
        reveal(1, account, (uint8_t)(50 + step));
    }
    for (uint32_t i = 0; i < look(START_S, 0); i++) {
        if (alarms[i].kind == WATCH_DISAGREEMENT) {
            contradictions++;
            assert_int_equal(alarms[i].index, 0);
            assert_non_null(strstr(alarms[i].text, "0x21")); /* account 33 is in each of them */
        }
    }
    assert_true(contradictions > 0);
    take(&event); /* what is void is no longer told */
    for (uint32_t i = 0; i < look(START_S, 0); i++) {
        assert_int_not_equal(alarms[i].kind, WATCH_DISAGREEMENT);
    }
}

static void test_watch_a_rewind_reads_the_event_log_again(void **state)
{
    struct ledger_entry rewind = {.kind = LEDGER_REWIND, .number = 50};
    struct error error;

    (void)state;
    error_init(&error);
    open_job(0);
    OK(watch_take(&watch, &rewind, &error));
    assert_int_equal(watch.read, 0);
    assert_int_equal(watch.job_count, 0);
    open_job(0);
    OK(watch_take(&watch, &rewind, &error)); /* passed again: it was dealt with */
    assert_int_equal(watch.job_count, 1);
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
    assert_int_equal(watch.job_count, WATCH_JOBS_MAX);
    assert_int_equal(watch.jobs_left_out, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_forecast_waits_for_the_segments_before, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_without_trouble_is_silent, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_reports_a_late_solver_before_and_after, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_watch_reports_missing_attestors, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_reports_a_seal_without_a_reveal, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_follows_whose_turn_it_is, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_a_conviction_opens_the_job_again, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_two_traces_of_one_step_disagree, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_a_rewind_reads_the_event_log_again, begin, end),
        cmocka_unit_test_setup_teardown(test_watch_jobs_beyond_the_maximum_are_counted, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
