/*
 * held_out_job.h - what a job does to its held-out data, as a job of its own.
 *
 * The program is the part of the job's program that makes its held-out figures, reading a state
 * as it stands instead of what an update makes of it. The same operations on the same numbers give
 * the same bits as the job itself gave after the step that made that state.
 */
#ifndef PROOFS_JOB_HELD_OUT_JOB_H
#define PROOFS_JOB_HELD_OUT_JOB_H

#include "base/error.h"
#include "proofs/job/job.h"

/* The data tensors of held-out data are named so. */
#define HELD_OUT_DATA "held_out."

/*
 * Makes tape and constants for job_from_tape(): steps that find the figures, and every state but
 * the moments. One step takes the batches that the job looks at. Of packed rows each step takes one
 * batch, in their order, and adds to sums that are states too: after the last of *steps the figures
 * are over all rows. rows: of the held-out data; 0: as many as the job has. The caller frees both,
 * each constant too. STATUS_REFUSED: the job has no held-out part, or too few rows for it.
 */
MUST_CHECK enum status held_out_cut(struct tape **tape, void ***constants, uint32_t *constant_count,
                                    uint64_t *steps, const struct job *job, uint64_t rows,
                                    struct error *error);

#endif /* PROOFS_JOB_HELD_OUT_JOB_H */
