/*
 * held_out.h - what a job finds on held-out data, and after which steps.
 *
 * A job that does has a state HELD_OUT_LOSS of one number, and perhaps HELD_OUT_ACCURACY, whose
 * next value is a select by a schedule: the new figure, or the old one. So each state that is
 * committed holds the newest figures. docs/FORMATS.md, section 5.
 */
#ifndef PROOFS_JOB_HELD_OUT_H
#define PROOFS_JOB_HELD_OUT_H

#include "proofs/job/job.h"

struct held_out {
    uint32_t loss;     /* the state tensor; TENSOR_NONE: the job looks at no held-out data */
    uint32_t accuracy; /* likewise; TENSOR_NONE: the job is no classifier */
    const float *due;  /* the job's constant: a row for each step; what is not 0 is due */
    uint64_t rows;
    uint64_t columns;
    uint64_t column;
};

/* Borrows from the job. */
void held_out_of(struct held_out *held_out, const struct job *job);

/* Does the step look at held-out data, on the parameters that it makes? */
bool held_out_is_due(const struct held_out *held_out, uint64_t step);

#endif /* PROOFS_JOB_HELD_OUT_H */
