/* train.c - see train.h. */
#include "prover/train/train.h"

#include <stdlib.h>

#include "base/steady.h"
#include "proofs/bundle/stop_rule.h"
#include "proofs/commit/state_root.h"
#include "prover/train/energy.h"
#include "prover/train/fault_injection.h"

static enum status prune_checkpoints(struct bundle *bundle, const struct train_options *options,
                                     struct error *error)
{
    uint64_t least = options->keep_least == NULL ? 0 : options->keep_least(options->keep_context);

    return options->keep == 0
               ? STATUS_OK
               : bundle_checkpoint_prune(bundle, options->keep > least ? options->keep : least,
                                         options->every, error);
}

static enum status keep_checkpoint(struct bundle *bundle, struct run *run, uint64_t step,
                                   const struct train_options *options, struct error *error)
{
    TRY(bundle_checkpoint_write(bundle, run->machine, step, error));
    return prune_checkpoints(bundle, options, error);
}

/* A step that the machine has made while the root of the one before was found. */
struct ahead {
    bool made;
    uint64_t nanoseconds;
};

/* May the machine make the next step before the root of this one is known? Not where the state
 * between them is needed: for a checkpoint, or for a fault to inject. */
static bool may_go_ahead(const struct train_result *result, const struct job *job,
                         const struct run *run, const struct train_options *options)
{
    const uint64_t next = result->steps + 1;

    return state_root_can_overlap(run->machine, options->threads) && options->falsify == NULL &&
           next < job->steps && next % job->segment_length != 0 && !stop_requested(options->stop);
}

/* Finds the root of this step's state while the machine makes the next step. What the step waits
 * for the hash is no time of the step. */
static enum status go_ahead(struct bundle_step *entry, bool *finite, struct ahead *ahead,
                            struct run *run, const struct train_options *options,
                            struct error *error)
{
    const uint64_t start = steady_ns();
    uint64_t waited = 0;
    uint64_t before;
    uint64_t after;
    enum status stepped;

    TRY(state_root_begin(run->machine, options->threads, error));
    before = steady_ns();
    stepped = run->machine->backend->step(run->machine, NULL, error);
    after = steady_ns();
    TRY(state_root_end(&entry->root, finite, &waited, run->machine, error));
    ahead->made = stepped == STATUS_OK;
    ahead->nanoseconds = after - before - waited;
    entry->nanoseconds_committing = before - start + waited + (steady_ns() - after);
    return stepped;
}

/* Makes one step and finds its root. *ahead: the machine has made this step already; afterwards,
 * the next one. */
static enum status compute_step(struct bundle_step *entry, bool *finite, struct ahead *ahead,
                                const struct train_result *result, const struct job *job,
                                struct run *run, const struct train_options *options,
                                struct error *error)
{
    const struct ahead done = *ahead;
    uint64_t start = steady_ns();

    *ahead = (struct ahead){0};
    if (!done.made) {
        TRY(run->machine->backend->step(run->machine, NULL, error));
    }
    if (options->falsify != NULL && entry->step == *options->falsify) {
        TRY(fault_injection_in_state(run->machine, error));
    }
    TRY(run_loss(&entry->loss_bits, run, error));
    TRY(run_held_out(&entry->evaluated, &entry->held_out_bits, &entry->accuracy_bits, run,
                     entry->step, error));
    entry->nanoseconds = steady_ns() - start + done.nanoseconds;
    if (may_go_ahead(result, job, run, options)) {
        return go_ahead(entry, finite, ahead, run, options, error);
    }
    start = steady_ns();
    TRY(state_root_find(&entry->root, finite, run->machine, options->threads, error));
    entry->nanoseconds_committing = steady_ns() - start;
    return STATUS_OK;
}

static enum status train_step(struct train_result *result, struct ahead *ahead,
                              struct bundle *bundle, struct run *run,
                              const struct train_options *options, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    struct bundle_step entry = {.step = result->steps, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    struct energy energy;
    enum status status = STATUS_OK;
    bool finite = true;
    bool ends_segment = true;

    energy_start(&energy, options->energy ? ENERGY_FOLDER : NULL);
    energy_start_gpu(&energy, options->gpu);
    TRY(compute_step(&entry, &finite, ahead, result, job, run, options, error));
    result->diverged = !finite;
    if (!energy_stop(&entry.microjoules, &energy)) {
        entry.microjoules = BUNDLE_ENERGY_UNKNOWN;
    }
    TRY(bundle_record(bundle, &entry, error));
    result->steps++;
    if (result->diverged) {
        status = bundle_set_diverged(bundle, entry.step, error);
    } else if (result->steps % job->segment_length == 0 || result->steps == job->steps) {
        status = keep_checkpoint(bundle, run, result->steps, options, error);
    } else {
        ends_segment = false;
    }
    if (options->progress != NULL) {
        options->progress(options->progress_context, &entry);
    }
    TRY(status);
    return ends_segment && options->segment != NULL
               ? options->segment(options->segment_context, error)
               : STATUS_OK;
}

/*
 * After a device failure the state is undefined. Restores the last checkpoint; the steps since are
 * run again, and each must give the root that the journal has.
 */
static enum status go_back(struct train_result *result, struct bundle *bundle, struct run *run,
                           const struct train_options *options, struct error *error)
{
    uint64_t failed = result->steps;

    if (options->retrying != NULL) {
        options->retrying(options->retrying_context, failed, error->text);
    }
    result->retries++;
    TRY(bundle_flush(bundle, error));
    return bundle_restore(&result->steps, bundle, run->machine, failed, error);
}

/* Does the bundle's rule end the run here? Only at the end of a segment. */
static enum status look_at_rule(bool *ended, struct stop_watch *watch, struct bundle *bundle,
                                uint64_t steps, struct error *error)
{
    const struct job *job = bundle_job(bundle);

    *ended = false;
    if (stop_rule_is_none(&watch->rule) || steps % job->segment_length != 0) {
        return STATUS_OK;
    }
    TRY(stop_watch_follow(watch, bundle, steps, error));
    *ended = stop_watch_end(watch, job) <= steps;
    return STATUS_OK;
}

/* From the restored state to the end of the job, a divergence, a stop or a failure. */
static enum status train_steps(struct train_result *result, struct bundle *bundle, struct run *run,
                               const struct train_options *options, struct error *error)
{
    const uint64_t steps = bundle_job(bundle)->steps;
    struct stop_watch watch;
    struct stop_rule rule;
    bool ended = false;
    uint64_t retried = UINT64_MAX; /* the last step that was retried */
    struct ahead ahead = {0};      /* made: the machine is a step further than the journal */

    TRY(stop_rule_read(&rule, bundle, error));
    stop_watch_init(&watch, &rule);
    TRY(look_at_rule(&ended, &watch, bundle, result->steps, error));
    while (result->steps < steps && !result->diverged && !ended) {
        enum status status;

        if (stop_requested(options->stop) && !ahead.made) {
            return STATUS_STOPPED;
        }
        status = train_step(result, &ahead, bundle, run, options, error);
        if (status == STATUS_DEVICE && (retried == UINT64_MAX || result->steps > retried)) {
            retried = result->steps;
            status = go_back(result, bundle, run, options, error);
        }
        TRY(status);
        TRY(look_at_rule(&ended, &watch, bundle, result->steps, error));
    }
    return STATUS_OK;
}

enum status train(struct train_result *result, struct bundle *bundle, struct run *run,
                  const struct train_options *options, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    uint64_t diverged = UINT64_MAX;
    enum status status;

    *result = (struct train_result){0};
    TRY(bundle_diverged(&diverged, bundle, error));
    if (diverged != UINT64_MAX) {
        result->steps = diverged + 1;
        result->diverged = true;
        return STATUS_OK;
    }
    TRY(bundle_restore(&result->steps, bundle, run->machine, job->steps, error));
    result->first = result->steps;
    status = train_steps(result, bundle, run, options, error);
    if (status == STATUS_STOPPED) {
        if (result->steps > result->first) {
            TRY(keep_checkpoint(bundle, run, result->steps, options, error));
        }
        return error_set(error, STATUS_STOPPED,
                         "stopped after step %llu of %llu; 'lockstep prover resume' goes on",
                         (unsigned long long)result->steps, (unsigned long long)job->steps);
    }
    TRY(status);
    /* A crash between the last checkpoint and its pruning leaves one too many. */
    TRY(prune_checkpoints(bundle, options, error));
    return bundle_flush(bundle, error);
}
