/*
 * Goal: the record of a job says what the ledger holds, also where an event leaves open which
 * segment it is about, and where a job ends before its time.
 * Method: events in the order in which a ledger tells them, made by hand.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/job/job_record.h"
#include "chain/job/job_wait.h"

enum {
    SEGMENTS = 2,
    DEADLINE_S = 100000,
};

static const struct hash32 job = {{7}};
static const struct address client = {{1}};
static const struct address solver = {{2}};
static const struct address verifier = {{3}};

struct telling {
    struct job_record record;
    uint64_t number;
};

static void tell(struct telling *telling, struct game_event event)
{
    struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                 .number = ++telling->number,
                                 .height = telling->number,
                                 .time_s = telling->number};
    struct error error;

    error_init(&error);
    event.job = job;
    entry.event = event;
    assert_int_equal(job_record_take(&telling->record, &entry, &error), STATUS_OK);
}

/* A job whose only entry is the verifier's. */
static void begin(struct telling *telling)
{
    memset(telling, 0, sizeof(*telling));
    job_record_init(&telling->record, &job, &verifier);
    tell(telling, (struct game_event){.kind = GAME_OPENED,
                                      .account = client,
                                      .terms = {.steps = SEGMENTS,
                                                .segment_steps = 1,
                                                .seats = 1,
                                                .held_ppm = 1000,
                                                .deadline_s = DEADLINE_S}});
    tell(telling, (struct game_event){.kind = GAME_ENLISTED, .account = verifier, .count = 1});
}

static void commit_for(struct telling *telling, uint32_t index, uint32_t generation, uint32_t panel)
{
    tell(telling, (struct game_event){.kind = GAME_COMMITTED,
                                      .index = index,
                                      .segment = {.index = index,
                                                  .generation = generation,
                                                  .root = {{(uint8_t)generation}},
                                                  .steps = 1,
                                                  .solver = solver,
                                                  .panel = panel}});
}

static void commit(struct telling *telling, uint32_t index, uint32_t generation)
{
    commit_for(telling, index, generation, 1);
}

/* Drawn, sealed and revealed in place 0. */
static void seat(struct telling *telling, uint32_t index, enum game_verdict verdict)
{
    struct game_event event = {.index = index, .account = verifier};

    event.kind = GAME_DRAWN;
    event.seal = (struct hash32){{9}};
    event.flag = true;
    tell(telling, event);
    event.kind = GAME_ROUND;
    event.to = 1;
    tell(telling, event);
    event.kind = GAME_SEALED_VERDICT;
    tell(telling, event);
    event.kind = GAME_REVEALED;
    event.verdict = verdict;
    tell(telling, event);
}

/* The same place of a void segment and of the one that stands: what is said in one counts there. */
static void test_verdicts_of_void_segments_count_nothing(void **state)
{
    struct telling telling;

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    assert_int_equal(telling.record.segments[0].rights, 1);
    tell(&telling, (struct game_event){.kind = GAME_CONVICTED, .account = solver});
    assert_int_equal(telling.record.seat_count, 0);
    tell(&telling, (struct game_event){.kind = GAME_DISPROVED, .account = client});
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 1);
    seat(&telling, 0, GAME_VERDICT_UNAVAILABLE);
    assert_int_equal(telling.record.segments[0].rights, 0);
    assert_int_equal(telling.record.segments[0].unavailables, 1);
    assert_int_equal(telling.record.seat_count, 1); /* its entry is drawn again */
    tell(&telling, (struct game_event){.kind = GAME_FINALIZED});
    assert_int_equal(telling.record.seat_count, 0);
    job_record_free(&telling.record);
}

static void disprove(struct telling *telling, const struct game_segment *segment)
{
    tell(telling, (struct game_event){.kind = GAME_DISPROVED,
                                      .index = segment->index,
                                      .seal = game_segment_hash(&job, segment),
                                      .account = client});
}

/* The same entry said "right" in the same place of both: the segment's hash tells them apart. */
static void test_a_right_of_a_void_segment_is_disproved_alone(void **state)
{
    struct game_segment gone;
    struct telling telling;

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    gone = telling.record.segments[0].committed;
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    tell(&telling, (struct game_event){.kind = GAME_CONVICTED, .account = solver});
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 1);
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    disprove(&telling, &gone);
    assert_int_equal(telling.record.segments[0].rights, 1);
    assert_int_equal(telling.record.seats[0].phase, GAME_SEAT_REVEALED);
    disprove(&telling, &telling.record.segments[0].committed);
    assert_int_equal(telling.record.segments[0].rights, 0);
    assert_int_equal(telling.record.seats[0].phase, GAME_SEAT_CLOSED);
    job_record_free(&telling.record);
}

/* What the client pays for again is void for all who left before. */
static void test_a_rewind_begins_a_generation(void **state)
{
    struct telling telling;

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    tell(&telling, (struct game_event){.kind = GAME_FINALIZED});
    tell(&telling, (struct game_event){.kind = GAME_RELEASED, .account = solver});
    assert_int_equal(telling.record.generation, 0);
    tell(&telling, (struct game_event){.kind = GAME_REWOUND, .index = 0});
    assert_int_equal(telling.record.generation, 1);
    assert_int_equal(telling.record.finalized, 0);
    job_record_free(&telling.record);
}

static void test_a_job_that_expires_holds_nothing_back(void **state)
{
    struct telling telling;

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    tell(&telling, (struct game_event){.kind = GAME_FINALIZED});
    assert_int_equal(telling.record.held, 1);
    tell(&telling, (struct game_event){.kind = GAME_CLOSED, .index = 1});
    assert_int_equal(telling.record.held, 0); /* it left with the solver */
    job_record_free(&telling.record);

    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        commit(&telling, i, 0);
        tell(&telling, (struct game_event){.kind = GAME_FINALIZED, .index = i});
    }
    tell(&telling, (struct game_event){.kind = GAME_CLOSED, .index = SEGMENTS});
    assert_int_equal(telling.record.held, SEGMENTS); /* until delivery */
    job_record_free(&telling.record);
}

/* Asking a smaller panel for the last state would cost fees for nothing. */
static void test_only_a_panel_that_reaches_the_score_is_asked(void **state)
{
    (void)state;
    for (uint32_t panel = 8; panel <= 12; panel++) {
        struct telling telling;
        struct job_wait wait;

        begin(&telling);
        tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
        for (uint32_t i = 0; i < SEGMENTS; i++) {
            commit_for(&telling, i, 0, panel);
            tell(&telling, (struct game_event){.kind = GAME_FINALIZED, .index = i, .amount = 1000});
        }
        tell(&telling, (struct game_event){.kind = GAME_CLOSED, .index = SEGMENTS});
        assert_int_equal(job_record_can_deny(&telling.record), panel >= 10);
        telling.record.terms.delivery_period_s = 1000;
        assert_true(job_wait_describe(&wait, &telling.record, telling.record.closed_s));
        assert_string_equal(wait.word, "delivery");
        assert_int_equal(strstr(wait.text, "ask-panel") != NULL, panel >= 10);
        job_record_free(&telling.record);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_of_void_segments_count_nothing),
        cmocka_unit_test(test_a_right_of_a_void_segment_is_disproved_alone),
        cmocka_unit_test(test_a_rewind_begins_a_generation),
        cmocka_unit_test(test_a_job_that_expires_holds_nothing_back),
        cmocka_unit_test(test_only_a_panel_that_reaches_the_score_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
