/* job_status.c - see job_status.h. */
#include "chain/job/job_status.h"

#include <stdio.h>
#include <string.h>

#include "chain/game/terms.h"

const char *job_status_phase(const struct job_record *record)
{
    return record->phase == GAME_PHASE_OPEN      ? "open"
           : record->phase == GAME_PHASE_RUNNING ? "running"
           : record->cancelled                   ? "cancelled"
           : record->phase == GAME_PHASE_CLOSED  ? "closed"
                                                 : "unknown";
}

static uint64_t end_of(const struct job_segment *segment, enum job_segment_wait wait)
{
    return wait == JOB_SEGMENT_SEALING      ? job_segment_seal_end(segment)
           : wait == JOB_SEGMENT_REVEALING  ? job_segment_reveal_end(segment)
           : wait == JOB_SEGMENT_CLAIM_TIME ? job_segment_claim_end(segment)
                                            : 0;
}

void job_status_describe(struct job_status *waits, const struct job_record *record, uint32_t index,
                         uint64_t now_s)
{
    const struct job_record_segment *of = &record->segments[index];
    struct job_segment segment = job_record_segment(record, index);
    enum job_segment_wait wait = job_segment_waits_for(&segment, now_s);
    char time[TERMS_TIME_SIZE];

    waits->word = job_segment_wait_word(wait);
    waits->until_s = end_of(&segment, wait);
    terms_time(time, waits->until_s);
    switch (wait) {
    case JOB_SEGMENT_SEALING:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "verdicts: %u of %u sealed, until %s",
                       of->sealed, of->seated, time);
        break;
    case JOB_SEGMENT_REVEALING:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE,
                       "verdicts to be revealed: %u right, %u unavailable so far, until %s",
                       of->rights, of->unavailables, time);
        break;
    case JOB_SEGMENT_CLAIM_TIME:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the end of the time for claims, %s",
                       time);
        break;
    case JOB_SEGMENT_DISPUTED:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the end of %u open claims",
                       segment.job_claims);
        break;
    case JOB_SEGMENT_UNDRAWN:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "its draw, which is due");
        break;
    case JOB_SEGMENT_RENEWAL:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE,
                       "more verdicts: its score is %d, and %u makes it final",
                       job_segment_score(&segment), record->terms.seats);
        break;
    case JOB_SEGMENT_LOST:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE,
                       "forfeit, which is due: the panel did not get its states");
        break;
    case JOB_SEGMENT_PREDECESSOR:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the segments before it");
        break;
    case JOB_SEGMENT_DUE:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "finalize, which is due");
        break;
    case JOB_SEGMENT_FINAL:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "final");
        break;
    }
}

uint64_t job_status_forecast(const struct job_record *record, uint32_t index, uint64_t now_s)
{
    uint64_t final_s = now_s;

    for (uint32_t i = record->finalized; i <= index && i < record->committed; i++) {
        struct job_segment segment = job_record_segment(record, i);
        enum job_segment_wait wait = job_segment_waits_for(&segment, now_s);
        uint64_t end_s = job_segment_claim_end(&segment);

        if (wait == JOB_SEGMENT_DISPUTED || wait == JOB_SEGMENT_RENEWAL ||
            wait == JOB_SEGMENT_UNDRAWN || wait == JOB_SEGMENT_LOST) {
            return 0;
        }
        final_s = end_s > final_s ? end_s : final_s;
    }
    return final_s;
}
