/* event_file.c - see event_file.h. */
#include "tests/support/chain/event_file.h"

#include "chain/game/event_log.h"
#include "tests/support/test.h"

void event_file_open(struct database *log, const char *path)
{
    struct error error;

    error_init(&error);
    assert_int_equal(database_open(log, path, EVENT_LOG_SCHEMA, &error), STATUS_OK);
}

struct game_terms event_file_terms(uint32_t segments, uint32_t segment_steps)
{
    return (struct game_terms){.steps = (uint64_t)segments * segment_steps,
                               .segment_steps = segment_steps,
                               .reward = 1,
                               .seats = 1,
                               .coverage_ppm = GAME_PPM,
                               .segment_period_s = 1,
                               .seal_period_s = 1,
                               .reveal_period_s = 1,
                               .claim_period_s = 1,
                               .clock_s = 1,
                               .deadline_s = 2000000000};
}

void event_file_add(struct database *log, const struct game_event *event, uint64_t number)
{
    const struct event_log_block block = {
        .height = number, .hash = {{(uint8_t)number}}, .time_s = number};
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_log line;
    struct error error;

    error_init(&error);
    game_event_encode(&line, bytes, event);
    assert_int_equal(event_log_add_block(log, &block, &error), STATUS_OK);
    assert_int_equal(event_log_add_log(log, &block, 0, &line, &error), STATUS_OK);
}
