/*
 * small_job.h - small jobs on the committed fixtures, and runs of them, for tests of bundles.
 *
 * A failure ends the program with an error. Run from the root of the repository.
 */
#ifndef TESTS_SUPPORT_NUMERIC_SMALL_JOB_H
#define TESTS_SUPPORT_NUMERIC_SMALL_JOB_H

#include "engine/models/model.h"
#include "proofs/commit/commit.h"
#include "proofs/run/run.h"

#define SMALL_JOB_STEPS   20
#define SMALL_JOB_SEGMENT 5

struct small_job_options {
    struct model_options model;
    uint64_t steps;
    uint64_t segment_length;
    const struct digest *first_state; /* given; NULL: drawn */
};

/* The smallest useful language model; its state is about 20 KiB. */
void small_job_defaults(struct small_job_options *options);

/* A job whose loss and state are infinite after a few steps. */
void small_job_diverging(struct small_job_options *options);

/* One of the four small models. */
void small_job_of_kind(struct small_job_options *options, enum model_kind kind);

struct job *small_job_new(const struct small_job_options *options);

/* An MLP for so many steps. */
struct job *small_job_of_steps(uint64_t steps, uint64_t segment_length);

/* The files of the job's data; count gets how many. */
const char *const *small_job_data(const struct job *job, size_t *count);

/* Opens a run on the fixtures. trace: in trace mode. */
void small_run_open(struct run *run, const struct job *job, enum isa isa, int threads, bool trace);

/* Writes the job's first state into the run's machine. */
void small_run_begin(struct run *run);
void small_run_step(struct run *run);

/* Runs steps first to end - 1 into the bundle, with a checkpoint after each segment and at the end;
 * the run's machine must hold the state before `first`. */
void small_bundle_fill(struct bundle *bundle, struct run *run, uint64_t first, uint64_t end);

/* A new bundle of the job, run up to step `end`. key NULL: it is not encrypted. Takes job. */
struct bundle *small_bundle_new(const char *path, struct job *job, const struct encryption_key *key,
                                uint64_t end);

/* A new path in the test's folder; valid until the program ends. */
const char *small_path(const char *name);

#endif /* TESTS_SUPPORT_NUMERIC_SMALL_JOB_H */
