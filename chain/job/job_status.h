/* job_status.h - what a committed segment waits for, in words. */
#ifndef CHAIN_JOB_JOB_STATUS_H
#define CHAIN_JOB_JOB_STATUS_H

#include "chain/job/job_record.h"

#define JOB_STATUS_TEXT_SIZE 160

struct job_status {
    const char *word; /* job_segment_wait_word() */
    uint64_t until_s; /* 0: time alone does not end it */
    char text[JOB_STATUS_TEXT_SIZE];
};

void job_status_describe(struct job_status *waits, const struct job_record *record, uint32_t index,
                         uint64_t now_s);

/* When the segment is final if everybody moves in time and nobody claims; 0: unknown, since it is
 * disputed, needs its draw or another round, is held by a refusal or lost, or has no covered
 * segment behind it yet. */
uint64_t job_status_forecast(const struct job_record *record, uint32_t index, uint64_t now_s);

/* Does a segment hang on the word of the job's keeper, which should be here and is not? The panel
 * did not see its states, or said nothing, or another than the keeper refused. */
bool job_status_lacks_vouch(const struct job_record *record, uint32_t index, uint64_t now_s);

/* "open", "barred", "running", "refused", "closed"; "unknown" where nobody opened it. */
const char *job_status_phase(const struct job_record *record);

#endif /* CHAIN_JOB_JOB_STATUS_H */
