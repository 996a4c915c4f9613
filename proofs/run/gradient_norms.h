/*
 * gradient_norms.h - the norm of each step's gradient, as far as a bundle has checkpoints: a state
 * of jobs that keep it (GRADIENT_NORMS), so that each number is committed to and disputed.
 */
#ifndef PROOFS_RUN_GRADIENT_NORMS_H
#define PROOFS_RUN_GRADIENT_NORMS_H

#include "proofs/bundle/bundle.h"

/* Those of the steps before the newest checkpoint; *count is 0 where the job keeps none, or nothing
 * has been kept. The caller frees *norms. */
MUST_CHECK enum status gradient_norms_read(float **norms, uint64_t *count, struct bundle *bundle,
                                           struct error *error);

#endif /* PROOFS_RUN_GRADIENT_NORMS_H */
