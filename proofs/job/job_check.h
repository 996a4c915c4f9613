/*
 * job_check.h - what a job must be: its terms, its constants, and a program that can do its steps.
 *
 * A job that would train nothing is refused before anybody stakes on it: a state that is neither
 * given nor drawn, states that all begin as zeros, a schedule that ends before the job, and a
 * parameter that no gradient reaches. The error names the tensor or the operation.
 */
#ifndef PROOFS_JOB_JOB_CHECK_H
#define PROOFS_JOB_JOB_CHECK_H

#include "base/error.h"
#include "proofs/job/job.h"

/* Is it made for the rules of this program? */
MUST_CHECK enum status job_check_rules(const struct job *job, struct error *error);

/* Rules, steps, segments, and the numbers of data tensors, states and inputs. */
MUST_CHECK enum status job_check_terms(const struct job *job, struct error *error);

/* A title or a name from outside: printable ASCII without blanks at its ends, at most JOB_TITLE_MAX
 * bytes. what: "title". */
MUST_CHECK enum status job_check_text(const char *text, const char *what, struct error *error);

/* No constant holds a NaN or an infinity. */
MUST_CHECK enum status job_check_constants(const struct job *job, struct error *error);

/* Can the program do the job's steps, and do they train? */
MUST_CHECK enum status job_check_program(const struct job *job, struct error *error);

#endif /* PROOFS_JOB_JOB_CHECK_H */
