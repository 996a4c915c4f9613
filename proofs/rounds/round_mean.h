/*
 * round_mean.h - the mean of a round as a job of one step, and its bundle.
 *
 * Data: of each owner that gave a state, in the agreement's order, the averaged tensors in the
 * tape's order. States: the averaged tensors, which begin as the round did. For each of them:
 *
 *     sum  = x1 + x2, then + x3, ...        in binary32
 *     mean = sum * (1 / K)                  with 1 / K rounded to binary32
 *
 * and with an outer step, for parameters, beside a state outer.NAME that begins as zeros:
 *
 *     d = start - mean;  v = momentum * v + d;  next = start - rate * (d + momentum * v)
 *
 * Its header follows from the trees of the states (round_trees.h), so a checker makes the job once
 * more without a state at hand, and audits the bundle with the states.
 */
#ifndef PROOFS_ROUNDS_ROUND_MEAN_H
#define PROOFS_ROUNDS_ROUND_MEAN_H

#include "proofs/job/job.h"
#include "proofs/rounds/round_record.h"

#define ROUND_MEAN_FOLDER "mean.run"
#define ROUND_START_FILE  "start.safetensors"

/* What a mean is of. All borrowed. */
struct round_mean {
    const struct rounds *rounds;
    const struct round_record *record; /* its owners, and their trees */
    const struct tape *tape;           /* of the jobs */
    const struct digest *start;        /* trees of their first state, for each state of the tape */
    const struct digest *velocity;     /* trees likewise; NULL: zeros */
    const char *folder;                /* of the rounds */
};

/* How many owners gave a state. */
uint32_t round_mean_count(const struct round_record *record);

/* The job of the mean. */
MUST_CHECK enum status round_mean_job(struct job **job, const struct round_mean *mean,
                                      struct error *error);

/* The files of its data tensors, in their order: paths has room for job->data_count, each of
 * FILE_PATH_MAX bytes in one block that the caller frees with round_mean_paths_free(). */
MUST_CHECK enum status round_mean_paths(char ***paths, const struct job *job,
                                        const struct round_mean *mean, struct error *error);
void round_mean_paths_free(char **paths);

/* Takes the step and leaves its bundle in the folder; one that is whole already is taken as it is.
 * before: the bundle of the mean before, for the velocity; NULL: there is none. *root: of the
 * state after the step. */
MUST_CHECK enum status round_mean_make(struct digest *root, const struct round_mean *mean,
                                       const char *before, int threads, struct error *error);

/* The trees of what the mean's checkpoint after (step 1) or before (step 0) its step holds: for
 * each state of the jobs' tape, zeros where it has none. velocity may be NULL. */
MUST_CHECK enum status round_mean_trees(struct digest *trees, struct digest *velocity,
                                        const char *checkpoint, const struct tape *tape,
                                        struct error *error);

#endif /* PROOFS_ROUNDS_ROUND_MEAN_H */
