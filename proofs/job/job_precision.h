/*
 * job_precision.h - with how many bits a job computes its products, and what was chosen for single
 * ones: proofs/run/calibrate.h. All of it stands in the tape.
 */
#ifndef PROOFS_JOB_JOB_PRECISION_H
#define PROOFS_JOB_JOB_PRECISION_H

#include <jansson.h>
#include <stdio.h>

#include "engine/tape/tape.h"

/* {"bits": 14, "shifted": [names of the shifts], "wide": [second operands of products with 22]} */
json_t *job_precision_json(const struct tape *tape);
void job_precision_print(FILE *out, const struct tape *tape);

#endif /* PROOFS_JOB_JOB_PRECISION_H */
