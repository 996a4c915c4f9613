/*
 * train.h - runs a bundle's job from where it stands to its end, committing to every step.
 *
 * After each step the state is hashed and journaled; at the end of each segment a checkpoint is
 * kept. A stop between two steps loses nothing; a crash loses at most the steps since the last
 * checkpoint, and these are run again to the same roots. So does a step that the device fails: it
 * is tried once more from the last good state, and every step since must give the root that the
 * journal has. A machine that gives another is not to be trusted, and the run ends.
 */
#ifndef PROVER_TRAIN_TRAIN_H
#define PROVER_TRAIN_TRAIN_H

#include "base/io/stop.h"
#include "proofs/run/run.h"

struct energy_gpu;

struct train_options {
    uint64_t keep;  /* newest checkpoints that stay; 0: all */
    uint64_t every; /* and one of so many segments; 0: none */
    int threads;    /* to hash with; 0: as many as OpenMP would use */
    bool energy;    /* ask the processor what it used, where it tells */
    /* A step whose state is made wrong by one ulp in one element, and then trained on: to try out
     * those who are to find it. NULL: none. */
    const uint64_t *falsify;
    struct stop *stop;
    /* Told after each step; NULL: nobody. */
    void (*progress)(void *context, const struct bundle_step *step);
    void *progress_context;
    /* Told after each segment, which is journaled then; what it returns but STATUS_OK ends the run.
     * NULL: nobody. */
    enum status (*segment)(void *context, struct error *error);
    void *segment_context;
    /* Told when a device has failed a step that is tried again; NULL: nobody. */
    void (*retrying)(void *context, uint64_t step, const char *why);
    void *retrying_context;
    const struct energy_gpu *gpu; /* whose energy counts too (energy.h); NULL: none */
};

/* What became of it. */
struct train_result {
    uint64_t first;   /* the step that was taken up */
    uint64_t steps;   /* how many are done, from the start of the job */
    uint64_t retries; /* of steps that a device has failed */
    bool diverged;    /* the last of them met a NaN or an infinity */
};

/* STATUS_STOPPED: the user wished it; result says how far it went. */
MUST_CHECK enum status train(struct train_result *result, struct bundle *bundle, struct run *run,
                             const struct train_options *options, struct error *error);

#endif /* PROVER_TRAIN_TRAIN_H */
