/*
 * replay.h - a bundle's steps run again: to any step, and there in trace mode.
 *
 * The nearest checkpoint is loaded and the steps after it are run. Each must give the root that
 * the journal names for it; where one does not, STATUS_REFUSED says so, and a verifier that wants
 * to know more runs that very step in trace mode.
 */
#ifndef PROOFS_RUN_REPLAY_H
#define PROOFS_RUN_REPLAY_H

#include "base/io/stop.h"
#include "proofs/dispute/trace_server.h"
#include "proofs/run/run.h"

struct replay_options {
    int threads;       /* to hash with; 0: as many as OpenMP would use */
    struct stop *stop; /* NULL: never */
    /* Told after each step; NULL: nobody. */
    void (*progress)(void *context, uint64_t step);
    void *progress_context;
};

/*
 * Puts the run's machine into the state before `step`, which may be the number of all steps.
 * STATUS_NOT_FOUND: the bundle is not that far, or has no state to begin from.
 */
MUST_CHECK enum status replay_reach(struct run *run, struct bundle *bundle, uint64_t step,
                                    const struct replay_options *options, struct error *error);

/*
 * Traces a step: trace and the openings are filled as trace_run() does, and the states at both ends
 * are compared with the journal, as far as it goes. Afterwards the run's machine is one in trace
 * mode and holds the state after the step.
 */
MUST_CHECK enum status replay_trace(struct trace *trace, struct run *run, struct bundle *bundle,
                                    uint64_t step, struct trace_opening *openings,
                                    uint32_t opening_count, const struct replay_options *options,
                                    struct error *error);

/*
 * Opens a trace server for a step, whose state before it must be the journal's. Afterwards the
 * run's machine is one in trace mode and the trace server's until trace_server_close(). What the
 * step gives is not compared with the journal: a verifier disputes what it does not get itself.
 */
MUST_CHECK enum status replay_trace_server(struct trace_server *server, struct run *run,
                                           struct bundle *bundle, uint64_t step,
                                           const struct replay_options *options,
                                           struct error *error);

#endif /* PROOFS_RUN_REPLAY_H */
