/* replay.c - see replay.h. */
#include "proofs/run/replay.h"

#include <inttypes.h>
#include <string.h>

static enum status differs(uint64_t step, struct error *error)
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
    enum status status = bundle_state_root(&wanted, bundle, step + 1, error);

    if (status == STATUS_OK) {
        status = run->machine->backend->step(run->machine, NULL, error);
    }
    if (status == STATUS_OK) {
        status = state_root_find(&root, NULL, run->machine, threads, error);
    }
    return status == STATUS_OK && !digest_equal(&root, &wanted) ? differs(step, error) : status;
}

enum status replay_reach(struct run *run, struct bundle *bundle, uint64_t step,
                         const struct replay_options *options, struct error *error)
{
    struct digest wanted;
    uint64_t at = 0;
    enum status status = bundle_state_root(&wanted, bundle, step, error);

    if (status == STATUS_OK) {
        status = bundle_restore(&at, bundle, run->machine, step, error);
    }
    while (status == STATUS_OK && at < step) {
        if (stop_requested(options->stop)) {
            return error_set(error, STATUS_STOPPED, "stopped before step %" PRIu64, at);
        }
        status = run_one(run, bundle, at, options->threads, error);
        at++;
        if (status == STATUS_OK && options->progress != NULL) {
            options->progress(options->progress_context, at - 1);
        }
    }
    return status;
}

/* The journal may end before the step that is traced; nothing is known of what comes after it. */
static enum status compare_next(const struct trace *trace, struct bundle *bundle, uint64_t step,
                                struct error *error)
{
    struct digest wanted;
    enum status status = bundle_state_root(&wanted, bundle, step + 1, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    return status == STATUS_OK && !digest_equal(&trace->next_root, &wanted) ? differs(step, error)
                                                                            : status;
}

/* Puts the run's machine into the state before the step, and in trace mode. */
static enum status reach_traced(struct run *run, struct bundle *bundle, uint64_t step,
                                const struct replay_options *options, struct error *error)
{
    struct machine_options traced = run->options;
    enum status status;

    if (step >= bundle_job(bundle)->steps) {
        return error_set(error, STATUS_USAGE, "the job has %" PRIu64 " steps; there is no %" PRIu64,
                         bundle_job(bundle)->steps, step);
    }
    status = replay_reach(run, bundle, step, options, error);
    traced.trace = true;
    return status == STATUS_OK ? run_reopen(run, &traced, error) : status;
}

enum status replay_trace(struct trace *trace, struct run *run, struct bundle *bundle, uint64_t step,
                         struct trace_opening *openings, uint32_t opening_count,
                         const struct replay_options *options, struct error *error)
{
    enum status status;

    trace->items = NULL;
    status = reach_traced(run, bundle, step, options, error);
    if (status == STATUS_OK) {
        status = trace_run(trace, run->machine, openings, opening_count, error);
    }
    if (status == STATUS_OK) {
        status = compare_next(trace, bundle, step, error);
        if (status != STATUS_OK) {
            trace_release(trace);
        }
    }
    return status;
}

enum status replay_trace_server(struct trace_server *server, struct run *run, struct bundle *bundle,
                                uint64_t step, const struct replay_options *options,
                                struct error *error)
{
    enum status status;

    memset(server, 0, sizeof(*server));
    status = reach_traced(run, bundle, step, options, error);
    return status == STATUS_OK ? trace_server_open(server, run->machine, error) : status;
}
