/*
 * evidence_file.h - evidence that is carried about: the job's header, which step, what the accused
 * committed to, and the evidence, in one file that anybody can check without a ledger.
 *
 * Reading checks all that the file can show by itself: P and Q stand under the segment roots, or
 * P is the job's first state. What it cannot show is that the accused posted those roots and this
 * trace: that is what a ledger knows. docs/FORMATS.md, section 9.5, has the bytes.
 */
#ifndef PROOFS_DISPUTE_EVIDENCE_FILE_H
#define PROOFS_DISPUTE_EVIDENCE_FILE_H

#include "proofs/dispute/evidence.h"
#include "proofs/job/job.h"

#define EVIDENCE_FILE_SIZE_MAX (EVIDENCE_SIZE_MAX + 8192)

/* Where a state root stands: a segment root and the path in it. */
struct evidence_place {
    struct digest segment; /* its root */
    struct merkle_path path;
};

struct evidence_file {
    uint8_t header[JOB_HEADER_SIZE];
    struct digest job_id; /* of the header */
    uint64_t step;
    struct evidence_context context;
    bool placed; /* the places are known: of Q; of P too, unless the step is the first */
    struct evidence_place after;
    struct evidence_place before;
    const uint8_t *evidence; /* borrowed */
    size_t size;
};

/* The roots of a job's header; the context's other fields are left alone. STATUS_BAD_FORMAT: not a
 * job's header. STATUS_REFUSED: of rules that this program does not know. */
MUST_CHECK enum status evidence_context_of_job(struct evidence_context *context,
                                               const uint8_t header[JOB_HEADER_SIZE],
                                               struct error *error);

/* Borrows bytes for as long as the file is used. */
MUST_CHECK enum status evidence_file_read(struct evidence_file *file, const uint8_t *bytes,
                                          size_t size, struct error *error);

/* job_id and the roots of the job in the context need not be set. */
MUST_CHECK enum status evidence_file_write(struct buffer *bytes, const struct evidence_file *file,
                                           struct error *error);

#endif /* PROOFS_DISPUTE_EVIDENCE_FILE_H */
