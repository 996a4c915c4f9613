/*
 * job_header.h - inside proofs/: what job.c and job_file.c share.
 */
#ifndef PROOFS_JOB_JOB_HEADER_H
#define PROOFS_JOB_JOB_HEADER_H

#include "proofs/commit/commit.h"
#include "proofs/hash/sha256.h"
#include "proofs/job/job.h"

#define JOB_MAGIC          "LSJOB\0\0\1"
#define JOB_BODY_DIGEST_AT 88

/* Everything that stands behind the header in a job file. */
MUST_CHECK enum status job_body_encode(struct buffer *bytes, const struct job *job,
                                       struct error *error);

/* Fills header and id from everything else; body is the SHA-256 of the encoded body. */
MUST_CHECK enum status job_header_make(struct job *job, const struct digest *body,
                                       struct error *error);

/* Are the constants numbers that a state may hold? */
MUST_CHECK enum status job_constants_check(const struct job *job, struct error *error);

/* Are steps, segments, data and rules such as this program can run? */
MUST_CHECK enum status job_terms_check(const struct job *job, struct error *error);

#endif /* PROOFS_JOB_JOB_HEADER_H */
