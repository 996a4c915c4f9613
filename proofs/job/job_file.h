/*
 * job_file.h - a job as a file: the header, then what its roots commit to and a reader needs: the
 * tape, the constants, and how the first state is drawn. docs/FORMATS.md has every byte.
 *
 * The data stays outside; its roots are in the file. A file from outside is hostile: it is bounded,
 * the header commits to every byte that follows it, and the reader recomputes every root in the
 * header but that of the first state. The first state is checked where it is drawn or loaded
 * (bundle.h).
 */
#ifndef PROOFS_JOB_JOB_FILE_H
#define PROOFS_JOB_JOB_FILE_H

#include "base/buffer.h"
#include "base/error.h"
#include "proofs/job/job.h"

#define JOB_FILE_SIZE_MAX (UINT64_C(1) << 30)

/* The bytes of the job file. */
MUST_CHECK enum status job_encode(struct buffer *bytes, const struct job *job, struct error *error);

/* The version of the rules in the header of a file, if the file is the job of that id and this
 * program does not know its rules; else 0. The id binds the header alone. */
uint32_t job_unknown_rules(const char *path, const struct digest *id);

/* Makes a checked job of untrusted bytes; refuses rules that this program does not know. */
MUST_CHECK enum status job_parse(struct job **job, const uint8_t *bytes, size_t size,
                                 struct error *error);

MUST_CHECK enum status job_read(struct job **job, const char *path, struct error *error);
/* Never replaces a file. */
MUST_CHECK enum status job_write(const struct job *job, const char *path, struct error *error);

/*
 * Completes a new job of which everything but header and id is set: checks it, draws the first
 * state where none is given, commits to all of it.
 */
MUST_CHECK enum status job_complete(struct job *job, struct error *error);

#endif /* PROOFS_JOB_JOB_FILE_H */
