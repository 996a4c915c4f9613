/*
 * train.h - runs a bundle's job from its last checkpoint to its end, committing to every step.
 *
 * A bundle's rule (stop_rule.h) may end it earlier, at the end of a segment.
 *
 * After each step the state is hashed and journaled; each segment ends with a checkpoint. A stop
 * between two steps loses nothing. After a crash the steps since the last checkpoint are run again.
 * When the device fails a step, the run goes back to the last checkpoint and tries that step once
 * more. Steps that are run again must give the journal's roots; a machine that gives others is not
 * trusted, and the run ends.
 *
 * Tour 6 of 10: next read proofs/commit/trace.h, what a disputed step shows.
 */
#ifndef PROVER_TRAIN_TRAIN_H
#define PROVER_TRAIN_TRAIN_H

#include "base/io/stop.h"
#include "proofs/run/run.h"

struct energy_gpu;

struct train_options {
    uint64_t keep;  /* newest checkpoints that stay; 0: all */
    uint64_t every; /* also keep one of so many segments; 0: none */
    /* How many of the newest must stay, even where keep says fewer: of segments that are not final;
     * or NULL. */
    uint64_t (*keep_least)(void *context);
    void *keep_context;
    int threads; /* to hash with; 0: as many as OpenMP would use */
    bool energy; /* read the processor's energy counters, where they exist */
    /* Inject a fault into the state after this step (fault_injection.h) and train on, to test
     * verifiers. NULL: none. */
    const uint64_t *falsify;
    struct stop *stop;
    /* Called after each step; or NULL. */
    void (*progress)(void *context, const struct bundle_step *step);
    void *progress_context;
    /* Called after each segment, once it is journaled. A failure ends the run. Or NULL. */
    enum status (*segment)(void *context, struct error *error);
    void *segment_context;
    /* Called before a step that the device failed is retried; or NULL. */
    void (*retrying)(void *context, uint64_t step, const char *why);
    void *retrying_context;
    const struct energy_gpu *gpu; /* its energy counts too (energy.h); NULL: none */
};

/* What a run did. */
struct train_result {
    uint64_t first;   /* the step that it began with */
    uint64_t steps;   /* how many are done, from the start of the job */
    uint64_t retries; /* of steps that the device failed */
    bool diverged;    /* the last step met a NaN or an infinity */
};

/* STATUS_STOPPED: the user stopped it; result says how far it went. */
MUST_CHECK enum status train(struct train_result *result, struct bundle *bundle, struct run *run,
                             const struct train_options *options, struct error *error);

#endif /* PROVER_TRAIN_TRAIN_H */
