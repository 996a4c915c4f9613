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

static const char *const words[] = {
    [JOB_SEGMENT_FINAL] = "final",
    [JOB_SEGMENT_DISPUTED] = "disputed",
    [JOB_SEGMENT_ATTESTING] = "attesting",
    [JOB_SEGMENT_REVEALING] = "revealing",
    [JOB_SEGMENT_CLAIM_TIME] = "claim-time",
    [JOB_SEGMENT_RENEWAL] = "renewal",
    [JOB_SEGMENT_UNCOVERED] = "uncovered",
    [JOB_SEGMENT_PREDECESSOR] = "predecessor",
    [JOB_SEGMENT_DUE] = "due",
};

void job_status_describe(struct job_status *waits, const struct job_record *record, uint32_t index,
                         uint64_t now_s)
{
    const struct job_record_segment *segment = &record->segments[index];
    enum job_segment_wait wait = job_record_waits_for(record, index, now_s);
    bool must = job_record_must_be_covered(record, index);
    char time[TERMS_TIME_SIZE];

    waits->word = words[wait];
    waits->until_s = wait == JOB_SEGMENT_ATTESTING    ? job_record_attest_end(record, index)
                     : wait == JOB_SEGMENT_REVEALING  ? job_record_reveal_end(record, index)
                     : wait == JOB_SEGMENT_CLAIM_TIME ? job_record_claim_end(record, index)
                                                      : 0;
    terms_time(time, waits->until_s);
    switch (wait) {
    case JOB_SEGMENT_ATTESTING:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "attestors%s: %u of %u sealed, until %s",
                       must ? "" : " (free to come)", segment->attested + segment->revealed,
                       record->terms.attestors, time);
        break;
    case JOB_SEGMENT_REVEALING:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "attestors to reveal: %u of %u, until %s",
                       segment->revealed, segment->attested + segment->revealed, time);
        break;
    case JOB_SEGMENT_CLAIM_TIME:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the end of the time for claims, %s",
                       time);
        break;
    case JOB_SEGMENT_DISPUTED:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the end of %u open claims",
                       segment->open_claims);
        break;
    case JOB_SEGMENT_RENEWAL:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE,
                       "another round of attestors: %u of %u have revealed", segment->revealed,
                       record->terms.attestors);
        break;
    case JOB_SEGMENT_UNCOVERED:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE,
                       "nothing: the deadline is over, and %u of %u "
                       "attestors came",
                       segment->revealed, record->terms.attestors);
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
