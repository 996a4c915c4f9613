/*
 * drawn_job.h - small jobs with much data, of which a step reads little, for tests of rows of data.
 *
 * A failure ends the program with an error.
 */
#ifndef TESTS_SUPPORT_PROOFS_DRAWN_JOB_H
#define TESTS_SUPPORT_PROOFS_DRAWN_JOB_H

#include "tests/support/numeric/small_job.h"

#define DRAWN_JOB_DATA 6 /* data tensors, at the most */

struct drawn_job {
    struct job *job;
    const char *paths[DRAWN_JOB_DATA]; /* a file for each data tensor, in the tape's order */
    uint8_t *bytes[DRAWN_JOB_DATA];    /* the elements */
    uint64_t sizes[DRAWN_JOB_DATA];
    uint32_t count;
};

/*
 * The model's options want data_count; with held_out.batches the held-out data is as long as the
 * other. Tokens lie in flat files, samples and packed rows in .npy.
 */
void drawn_job_new(struct drawn_job *drawn, const struct small_job_options *options);
void drawn_job_release(struct drawn_job *drawn);

#endif /* TESTS_SUPPORT_PROOFS_DRAWN_JOB_H */
