/*
 * job_header.h - inside proofs/: what job.c and job_file.c share.
 */
#ifndef PROOFS_JOB_HEADER_H
#define PROOFS_JOB_HEADER_H

#include "proofs/commit.h"
#include "proofs/job.h"
#include "proofs/sha256.h"

#define JOB_MAGIC "LSJOB\0\0\1"

/* Fills header and id from everything else. */
MUST_CHECK enum status job_header_make(struct job *job, struct error *error);

/* Are steps, segments, data and rules such as this program can run? */
MUST_CHECK enum status job_terms_check(const struct job *job, struct error *error);

#endif /* PROOFS_JOB_HEADER_H */
