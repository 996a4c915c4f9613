/*
 * calibrate.h - one step of a job, watched, to choose for each of its products what suits its
 * numbers.
 *
 * Products over channels are looked at: a layer's, its input's gradient, an attention's scores.
 * Where channels differ much, channel_rule.h says by what they are shifted; a shift that brings no
 * gain is left out. Products that share their first operand share the shift; where some of them
 * have frozen weights, those choose, and are quantized once for each direction. What is then still
 * farther from double precision than operands of bfloat16 gets 22 bits. Sums over tokens shift by
 * each step's own numbers (builder.h) and are not looked at.
 */
#ifndef PROOFS_RUN_CALIBRATE_H
#define PROOFS_RUN_CALIBRATE_H

#include "engine/models/model.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_make.h"
#include "proofs/run/run.h"

/*
 * Runs the first step of the job, of one micro-batch and not calibrated, on the CPU. first: the
 * given first state, else NULL. paths: as run_open() takes them, and their roots are not compared.
 * STATUS_OVER_LIMIT: this machine has not the memory. The caller releases the calibration, also
 * after a failure.
 */
MUST_CHECK enum status calibrate(struct calibration *calibration, const struct job *job,
                                 const char *const *paths, size_t path_count,
                                 const struct first_state *first, struct error *error);

/*
 * The same of the job that these options and terms make. The optimizer and the number of
 * micro-batches say nothing of the products: the smallest are taken. files: of the job's data, in
 * the tape's order. first_state: where a given one lies.
 */
MUST_CHECK enum status calibrate_model(struct calibration *calibration,
                                       const struct model_options *given,
                                       const struct job_terms *terms, const char *const *files,
                                       size_t count, const char *first_state, struct error *error);
void calibration_release(struct calibration *calibration);

#endif /* PROOFS_RUN_CALIBRATE_H */
