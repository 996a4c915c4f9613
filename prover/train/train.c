/* train.c - see train.h. */
#include "prover/train/train.h"

#include <stdlib.h>
#include <time.h>

#include "proofs/commit/state_root.h"
#include "prover/train/energy.h"
#include "prover/train/fault_injection.h"

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static enum status keep_checkpoint(struct bundle *bundle, struct run *run, uint64_t step,
                                   const struct train_options *options, struct error *error)
{
    enum status status = bundle_checkpoint_write(bundle, run->machine, step, error);

    if (status == STATUS_OK && options->keep != 0) {
        status = bundle_checkpoint_prune(bundle, options->keep, options->every, error);
    }
    return status;
}

/* May the next step be under way before the root of this one is known? Not where the state that
 * this one leaves is needed: for a checkpoint, or to be falsified. */
static bool may_go_ahead(const struct train_result *result, const struct job *job,
                         const struct run *run, const struct train_options *options)
{
    const uint64_t next = result->steps + 1;

    return state_root_can_overlap(run->machine) && options->falsify == NULL && next < job->steps &&
           next % job->segment_length != 0 && !stop_requested(options->stop);
}

/* The root of this step's state, found beside the next step. */
static enum status go_ahead(struct digest *root, bool *finite, struct run *run, struct error *error)
{
    enum status status = state_root_begin(run->machine, error);

    if (status != STATUS_OK) {
        return status;
    }
    enum status stepped = run->machine->backend->step(run->machine, NULL, error);

    status = state_root_end(root, finite, run->machine, error);
    return status == STATUS_OK ? stepped : status;
}

/* *ahead: the machine has made this step already; afterwards, the next one. */
static enum status train_step(struct train_result *result, bool *ahead, struct bundle *bundle,
                              struct run *run, const struct train_options *options,
                              struct error *error)
{
    const struct job *job = bundle_job(bundle);
    struct bundle_step entry = {.step = result->steps, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    struct energy energy;
    uint64_t start;
    enum status status = STATUS_OK;
    bool finite = true;
    bool ends_segment = true;
    bool went_ahead = *ahead;

    *ahead = false;
    energy_start(&energy, options->energy ? ENERGY_FOLDER : NULL);
    energy_start_gpu(&energy, options->gpu);
    start = now_ns();
    if (!went_ahead) {
        status = run->machine->backend->step(run->machine, NULL, error);
    }
    if (status == STATUS_OK && options->falsify != NULL && entry.step == *options->falsify) {
        status = fault_injection_in_state(run->machine, error);
    }
    if (status == STATUS_OK) {
        status = run_loss(&entry.loss_bits, run, error);
    }
    entry.nanoseconds = now_ns() - start;
    start = now_ns();
    if (status == STATUS_OK && may_go_ahead(result, job, run, options)) {
        status = go_ahead(&entry.root, &finite, run, error);
        *ahead = status == STATUS_OK;
    } else if (status == STATUS_OK) {
        status = state_root_find(&entry.root, &finite, run->machine, options->threads, error);
    }
    result->diverged = status == STATUS_OK && !finite;
    entry.nanoseconds_committing = now_ns() - start;
    if (!energy_stop(&entry.microjoules, &energy)) {
        entry.microjoules = BUNDLE_ENERGY_UNKNOWN;
    }
    if (status == STATUS_OK) {
        status = bundle_record(bundle, &entry, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
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
    if (status == STATUS_OK && ends_segment && options->segment != NULL) {
        status = options->segment(options->segment_context, error);
    }
    return status;
}

/*
 * After a device has failed the states are undefined. The last good state comes from disk; the
 * steps since are run again and compared as they are journaled anew.
 */
static enum status go_back(struct train_result *result, struct bundle *bundle, struct run *run,
                           const struct train_options *options, struct error *error)
{
    uint64_t failed = result->steps;
    enum status status;

    if (options->retrying != NULL) {
        options->retrying(options->retrying_context, failed, error->text);
    }
    result->retries++;
    status = bundle_flush(bundle, error);
    return status == STATUS_OK ? bundle_restore(&result->steps, bundle, run->machine, failed, error)
                               : status;
}

enum status train(struct train_result *result, struct bundle *bundle, struct run *run,
                  const struct train_options *options, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    uint64_t diverged = UINT64_MAX;
    uint64_t retried = UINT64_MAX; /* the step that was tried again last */
    bool ahead = false;            /* the machine is a step further than the journal */
    enum status status = bundle_diverged(&diverged, bundle, error);

    *result = (struct train_result){0};
    if (status == STATUS_OK && diverged != UINT64_MAX) {
        result->steps = diverged + 1;
        result->diverged = true;
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = bundle_restore(&result->steps, bundle, run->machine, job->steps, error);
    }
    result->first = result->steps;
    while (status == STATUS_OK && result->steps < job->steps && !result->diverged) {
        if (stop_requested(options->stop) && !ahead) {
            status = STATUS_STOPPED;
        } else {
            status = train_step(result, &ahead, bundle, run, options, error);
        }
        if (status == STATUS_DEVICE && (retried == UINT64_MAX || result->steps > retried)) {
            retried = result->steps;
            status = go_back(result, bundle, run, options, error);
        }
    }
    if (status == STATUS_STOPPED) {
        enum status kept = result->steps > result->first
                               ? keep_checkpoint(bundle, run, result->steps, options, error)
                               : STATUS_OK;

        return kept != STATUS_OK
                   ? kept
                   : error_set(error, STATUS_STOPPED,
                               "stopped after step %llu of %llu; 'lockstep prover "
                               "resume' goes on",
                               (unsigned long long)result->steps, (unsigned long long)job->steps);
    }
    if (status == STATUS_OK && options->keep != 0) {
        /* A run that died between its last checkpoint and the pruning has that still to do. */
        status = bundle_checkpoint_prune(bundle, options->keep, options->every, error);
    }
    if (status == STATUS_OK) {
        status = bundle_flush(bundle, error);
    }
    return status;
}
