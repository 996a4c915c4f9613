/* replay.c - see replay.h. */
#include "proofs/run/replay.h"

#include <inttypes.h>
#include <string.h>

static enum status differing_state(uint64_t step, struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "step %" PRIu64 " gives another state here than the bundle says", step);
    error_advise(error, "replay it on another machine: either the bundle is false or this machine "
                        "computes wrongly");
    return STATUS_REFUSED;
}

static enum status run_one(struct run *run, struct bundle *bundle, uint64_t step, int threads,
                           struct error *error)
{
    struct digest wanted;
    struct digest root;

    TRY(bundle_state_root(&wanted, bundle, step + 1, error));
    TRY(run->machine->backend->step(run->machine, NULL, error));
    TRY(state_root_find(&root, NULL, run->machine, threads, error));
    return digest_equal(&root, &wanted) ? STATUS_OK : differing_state(step, error);
}

enum status replay_reach(struct run *run, struct bundle *bundle, uint64_t step,
                         const struct replay_options *options, struct error *error)
{
    struct digest wanted;
    uint64_t at = 0;

    TRY(bundle_state_root(&wanted, bundle, step, error));
    TRY(bundle_restore(&at, bundle, run->machine, step, error));
    for (; at < step; at++) {
        if (stop_requested(options->stop)) {
            return error_set(error, STATUS_STOPPED, "stopped before step %" PRIu64, at);
        }
        TRY(run_one(run, bundle, at, options->threads, error));
        if (options->progress != NULL) {
            options->progress(options->progress_context, at);
        }
    }
    return STATUS_OK;
}

/* The journal may end before the traced step: then there is nothing to compare. */
static enum status compare_next(const struct trace *trace, struct bundle *bundle, uint64_t step,
                                struct error *error)
{
    struct digest wanted;
    enum status status = bundle_state_root(&wanted, bundle, step + 1, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    TRY(status);
    return digest_equal(&trace->next_root, &wanted) ? STATUS_OK : differing_state(step, error);
}

/* Puts the run's machine into the state before the step, and in trace mode. */
static enum status reach_traced(struct run *run, struct bundle *bundle, uint64_t step,
                                const struct replay_options *options, struct error *error)
{
    struct machine_options traced = run->options;

    if (step >= bundle_job(bundle)->steps) {
        return error_set(error, STATUS_USAGE, "the job has %" PRIu64 " steps; there is no %" PRIu64,
                         bundle_job(bundle)->steps, step);
    }
    TRY(replay_reach(run, bundle, step, options, error));
    traced.trace = true;
    return run_reopen(run, &traced, error);
}

enum status replay_trace(struct trace *trace, struct run *run, struct bundle *bundle, uint64_t step,
                         struct trace_opening *openings, uint32_t opening_count,
                         const struct replay_options *options, struct error *error)
{
    enum status status;

    trace->items = NULL;
    TRY(reach_traced(run, bundle, step, options, error));
    TRY(trace_run(trace, run->machine, openings, opening_count, error));
    status = compare_next(trace, bundle, step, error);
    if (status != STATUS_OK) {
        trace_release(trace);
    }
    return status;
}

enum status replay_trace_server(struct trace_server *server, struct run *run, struct bundle *bundle,
                                uint64_t step, const struct replay_options *options,
                                struct error *error)
{
    memset(server, 0, sizeof(*server));
    TRY(reach_traced(run, bundle, step, options, error));
    return trace_server_open(server, run->machine, error);
}
