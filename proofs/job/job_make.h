/* job_make.h - makes a job of a model, or of a tape and its constants. */
#ifndef PROOFS_JOB_JOB_MAKE_H
#define PROOFS_JOB_JOB_MAKE_H

#include "base/error.h"
#include "engine/models/model.h"
#include "proofs/job/job.h"

/* The terms of a job that a model does not hold. */
struct job_terms {
    uint64_t steps;
    uint64_t segment_length;
    struct job_requirements requirements;
    const struct digest *data_roots; /* in the order of the tape's data tensors; copied */
    uint32_t data_count;
    uint64_t seed;          /* of a first state that is drawn; a model brings its own */
    bool first_state_given; /* not drawn; first_state_root is its root */
    struct digest first_state_root;
    const char *title; /* for people, as in job.h; NULL: none */
    const char *model;
    const char *notes; /* job_notes.h; NULL: none */
};

/*
 * Makes a job of a model: draws the first state, once, to commit to it. Takes the model's tape and
 * constants, also on failure: the model keeps only its parameters and options.
 */
MUST_CHECK enum status job_from_model(struct job **job, struct model *model,
                                      const struct job_terms *terms, struct error *error);

/*
 * Makes a job of a checked tape and its constants, in the order of the tape's constant tensors. A
 * first state that is not given is drawn by the tape's rules from the seed. Takes tape, constants
 * and each of them, also on failure.
 */
MUST_CHECK enum status job_from_tape(struct job **job, struct tape *tape, void **constants,
                                     uint32_t constant_count, const struct job_terms *terms,
                                     struct error *error);

#endif /* PROOFS_JOB_JOB_MAKE_H */
