/*
 * replay.h - a bundle's steps run again: to any step, and that step in trace mode.
 *
 * Replay loads the nearest checkpoint and runs the steps after it. Each must give the root that the
 * journal names for it. STATUS_REFUSED: one does not; to know more, a verifier runs that step in
 * trace mode.
 */
#ifndef PROOFS_RUN_REPLAY_H
#define PROOFS_RUN_REPLAY_H

#include "base/io/stop.h"
#include "proofs/dispute/trace_server.h"
#include "proofs/run/run.h"

struct replay_options {
    int threads;       /* to hash with; 0: as many as OpenMP would use */
    struct stop *stop; /* NULL: never */
    /* Called after each step; NULL: not. */
    void (*progress)(void *context, uint64_t step);
    void *progress_context;
};

/*
 * Puts the run's machine into the state before `step`, which may be the number of all steps.
 * STATUS_NOT_FOUND: the bundle does not go that far, or has no state to begin from.
 */
MUST_CHECK enum status replay_reach(struct run *run, struct bundle *bundle, uint64_t step,
                                    const struct replay_options *options, struct error *error);

/*
 * Traces a step: fills trace and the openings as trace_run() does, and compares the states at both
 * ends with the journal, as far as it goes. Afterwards the run's machine is in trace mode and holds
 * the state after the step.
 */
MUST_CHECK enum status replay_trace(struct trace *trace, struct run *run, struct bundle *bundle,
                                    uint64_t step, struct trace_opening *openings,
                                    uint32_t opening_count, const struct replay_options *options,
                                    struct error *error);

/*
 * Opens a trace server for a step. The state before the step must be the journal's; the state after
 * it is not compared, for a verifier disputes the steps that differ. Afterwards the run's machine
 * is in trace mode and belongs to the trace server until trace_server_close().
 */
MUST_CHECK enum status replay_trace_server(struct trace_server *server, struct run *run,
                                           struct bundle *bundle, uint64_t step,
                                           const struct replay_options *options,
                                           struct error *error);

#endif /* PROOFS_RUN_REPLAY_H */
