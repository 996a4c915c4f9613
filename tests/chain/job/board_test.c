/*
 * Goal: a board gives each event to the job that it is about, also one that names a claim alone,
 * and begins again after a rewind.
 * Method: events made by hand: many jobs, each with a claim. tests/chain/game/history_test.c holds
 * the records to the ledger.
 */
#include "tests/support/test.h"

#include "chain/job/board.h"

#define JOBS 3000u

static struct hash32 hash_of(uint32_t number, uint8_t mark)
{
    const uint32_t place = number * 40503u & 1023; /* spread, and shared by three */
    struct hash32 hash = {{0, 0, 0, 0, mark}};

    memcpy(hash.bytes, &place, sizeof(place));
    memcpy(hash.bytes + 8, &number, sizeof(number));
    return hash;
}

static void take(struct board *board, const struct game_event *event)
{
    const struct ledger_entry entry = {
        .kind = LEDGER_EVENT, .number = board->read + 1, .event = *event};
    struct error error;

    error_init(&error);
    assert_int_equal(board_take(board, &entry, &error), STATUS_OK);
}

static void open_jobs(struct board *board)
{
    for (uint32_t i = 0; i < JOBS; i++) {
        const struct game_event opened = {
            .kind = GAME_OPENED, .job = hash_of(i, 1), .terms = {.steps = 4, .segment_steps = 2}};
        const struct game_event accepted = {.kind = GAME_ACCEPTED, .job = hash_of(i, 1)};
        const struct game_event committed = {
            .kind = GAME_COMMITTED, .job = hash_of(i, 1), .segment = {.generation = 1}};

        take(board, &opened);
        take(board, &accepted);
        take(board, &committed);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        const struct game_event claimed = {
            .kind = GAME_CLAIMED, .job = hash_of(i, 1), .claim = hash_of(i, 2)};

        take(board, &claimed);
    }
}

static uint32_t open_claims(const struct board *board, uint32_t number)
{
    const struct hash32 key = hash_of(number, 1);
    const struct job_record *job = board_find(board, &key);

    assert_non_null(job);
    assert_int_equal(job->claim_count, 1);
    return job_record_claim_is_open(&job->claims[0]);
}

static void test_an_event_of_a_claim_is_about_its_job_alone(void **state)
{
    struct board board = {0};

    (void)state;
    open_jobs(&board);
    for (uint32_t i = 0; i < JOBS; i += 2) {
        const struct game_event ruled = {
            .kind = GAME_RULED, .claim = hash_of(i, 2), .outcome = GAME_REFUTED};

        take(&board, &ruled);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        assert_int_equal(open_claims(&board, i), i % 2);
    }
    board_release(&board);
}

static void test_events_of_unknown_claims_and_jobs_are_nobodys(void **state)
{
    const struct game_event ruled = {.kind = GAME_RULED, .claim = hash_of(1, 3)};
    const struct game_event committed = {.kind = GAME_COMMITTED, .job = hash_of(1, 3)};
    struct board board = {0};

    (void)state;
    take(&board, &ruled);
    take(&board, &committed);
    assert_int_equal(board.count, 0);
    open_jobs(&board);
    take(&board, &ruled);
    take(&board, &committed);
    for (uint32_t i = 0; i < JOBS; i++) {
        assert_int_equal(open_claims(&board, i), 1);
    }
    board_release(&board);
}

static void test_a_rewind_forgets_claims_too(void **state)
{
    const struct ledger_entry rewind = {.kind = LEDGER_REWIND, .number = 4 * JOBS + 1};
    struct board board = {0};
    struct error error;

    (void)state;
    error_init(&error);
    open_jobs(&board);
    assert_int_equal(board_take(&board, &rewind, &error), STATUS_OK);
    assert_int_equal(board.count, 0);
    assert_int_equal(board.key_count, 0);
    open_jobs(&board);
    assert_int_equal(open_claims(&board, 0), 1);
    board_release(&board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_of_a_claim_is_about_its_job_alone),
        cmocka_unit_test(test_events_of_unknown_claims_and_jobs_are_nobodys),
        cmocka_unit_test(test_a_rewind_forgets_claims_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
