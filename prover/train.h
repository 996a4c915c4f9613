/*
 * train.h - runs a bundle's job from where it stands to its end, committing to every step.
 *
 * After each step the state is hashed and journaled; at the end of each segment a checkpoint is
 * kept. A stop between two steps loses nothing; a crash loses at most the steps since the last
 * checkpoint, and these are run again to the same roots.
 */
#ifndef PROVER_TRAIN_H
#define PROVER_TRAIN_H

#include "base/stop.h"
#include "proofs/run.h"

struct train_options {
    uint64_t keep;  /* newest checkpoints that stay; 0: all */
    uint64_t every; /* and one of so many segments; 0: none */
    int threads;    /* to hash with; 0: as many as OpenMP would use */
    bool energy;    /* ask the processor what it used, where it tells */
    struct stop *stop;
    /* Told after each step; NULL: nobody. */
    void (*progress)(void *context, const struct bundle_step *step);
    void *progress_context;
};

/* What became of it. */
struct train_result {
    uint64_t first; /* the step that was taken up */
    uint64_t steps; /* how many are done, from the start of the job */
    bool diverged;  /* the last of them met a NaN or an infinity */
};

/* STATUS_STOPPED: the user wished it; result says how far it went. */
MUST_CHECK enum status train(struct train_result *result, struct bundle *bundle, struct run *run,
                             const struct train_options *options, struct error *error);

#endif /* PROVER_TRAIN_H */
