/*
 * round_job.h - the jobs of owners that may be averaged, and the job of an owner in a round.
 *
 * The first round runs the jobs as they were given. In round r a job begins with the mean of the
 * round before, and draws its batches with a seed that is r - 1 larger, so that it does not read
 * the same rows again. All else is as it was given: from the given job and the mean, anybody makes
 * the same job.
 */
#ifndef PROOFS_ROUNDS_ROUND_JOB_H
#define PROOFS_ROUNDS_ROUND_JOB_H

#include "base/error.h"
#include "proofs/job/job.h"

/* Can the last states be averaged, and do they begin alike? Says of which tensor they differ.
 * names: how the two owners are called. */
MUST_CHECK enum status round_job_check_alike(const struct job *job, const char *name,
                                             const struct job *other, const char *other_name,
                                             struct error *error);

/* Refuses what no mean is defined for: parameters, and with moments moments, that are not binary32;
 * a job that trains nothing. */
MUST_CHECK enum status round_job_check(const struct job *job, const char *name, bool moments,
                                       struct error *error);

/* The job of round number `round`, from 1, which begins with the state of that root. */
MUST_CHECK enum status round_job_make(struct job **made, const struct job *given, uint32_t round,
                                      const struct digest *start, struct error *error);

#endif /* PROOFS_ROUNDS_ROUND_JOB_H */
