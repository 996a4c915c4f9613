/*
 * job_precision.h - with how many bits a job computes its products, and what was chosen for single
 * ones: proofs/run/calibrate.h. All of it stands in the tape.
 */
#ifndef PROOFS_JOB_JOB_PRECISION_H
#define PROOFS_JOB_JOB_PRECISION_H

#include <jansson.h>

#include "base/buffer.h"
#include "engine/tape/tape.h"

/* {"bits": 14, "shifted": [names of the shifts], "wide": [second operands of products with 22]} */
json_t *job_precision_json(const struct tape *tape);
/* Lines, each with its end. */
void job_precision_print(struct buffer *out, const struct tape *tape);

#endif /* PROOFS_JOB_JOB_PRECISION_H */
