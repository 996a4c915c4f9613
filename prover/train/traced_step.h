/*
 * traced_step.h - one step of a bundle, run again and ready for trace queries.
 *
 * The step costs one replay; every query about it after that is cheap. One struct holds one step:
 * opening another closes it. An injected fault is repeated (fault_injection.h).
 */
#ifndef PROVER_TRAIN_TRACED_STEP_H
#define PROVER_TRAIN_TRACED_STEP_H

#include "proofs/run/replay.h"

struct traced_step {
    struct bundle *bundle; /* owned; NULL: no step is ready */
    struct run run;
    struct trace_server server;
    uint64_t step;
};

/* Opens the bundle for a step, which is not run yet. key NULL: the bundle is not encrypted. Closes
 * what was open before. After a failure, here or in traced_step_run(), call traced_step_close(). */
MUST_CHECK enum status traced_step_open(struct traced_step *traced, const char *path,
                                        const struct encryption_key *key, uint64_t step,
                                        struct error *error);

/* Runs the step on `machine`, or on this computer's processor where a device has no room for a
 * second run. paths: one for each data tensor. */
MUST_CHECK enum status traced_step_run(struct traced_step *traced, const char *const *paths,
                                       size_t path_count, const struct machine_options *machine,
                                       const struct replay_options *replay, struct error *error);

void traced_step_close(struct traced_step *traced); /* a zero-filled one is fine */

#endif /* PROVER_TRAIN_TRACED_STEP_H */
