/* job_wait.h - what a job as a whole waits for, in words, and until when. */
#ifndef CHAIN_JOB_JOB_WAIT_H
#define CHAIN_JOB_JOB_WAIT_H

#include <jansson.h>

#include "chain/job/job_status.h"

struct job_wait {
    const char *word; /* for programs: "solver", "client", "commit", "release", "refusal", "close",
                       * job_segment_wait_word() */
    int64_t segment;  /* -1: it is about the job */
    uint64_t until_s; /* 0: time alone does not end it */
    char text[3 * JOB_STATUS_TEXT_SIZE];
};

/* False: the job waits for nothing. */
bool job_wait_describe(struct job_wait *wait, const struct job_record *record, uint64_t now_s);

/* For scripts; the caller's. null where the text is empty. */
json_t *job_wait_json(const struct job_wait *wait);

/* It is closed: all that is left is to fetch bonds and what is owed. */
bool job_wait_is_over(const struct job_record *record);

#endif /* CHAIN_JOB_JOB_WAIT_H */
