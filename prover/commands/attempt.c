/* attempt.c - see attempt.h. */
#include "prover/commands/attempt.h"

#include <inttypes.h>
#include <stdio.h>

#include "proofs/job/job_facts.h"
#include "prover/commands/access.h"
#include "prover/train/device_lock.h"
#include "prover/train/program_digest.h"

/* ---- the bundle ------------------------------------------------------------------- */

uint64_t attempt_keep(const struct command_context *context, const struct job *job)
{
    return options_given(context->options, "keep") ? options_number(context->options, "keep")
                                                   : job_keep_default(job);
}

/* Gives the bundle what it needs before its first step: notes, a first state. */
static enum status prepare_bundle(struct command_context *context, struct attempt *attempt,
                                  struct error *error)
{
    const char *first_state = options_text(context->options, "first-state");

    TRY(access_remember(attempt->bundle, context->options, error));
    TRY(program_digest_note(attempt->bundle, error));
    if (attempt->is_new && !stop_rule_is_none(&attempt->rule)) {
        TRY(stop_rule_write(attempt->bundle, &attempt->rule, error));
    }
    if (first_state != NULL) {
        TRY(bundle_give_first_state(attempt->bundle, first_state, error));
    }
    return attempt->with_ledger ? session_remember(&attempt->session, attempt->bundle, error)
                                : session_forgo(attempt->bundle, error);
}

/* Leaves the bundle to the process that trains: this one reads it from now on. */
static enum status hand_over(struct attempt *attempt, struct error *error)
{
    char folder[FILE_PATH_MAX];
    struct encryption_key key = {{0}};
    bool encrypted = bundle_is_encrypted(attempt->bundle);
    enum status status;

    (void)snprintf(folder, sizeof(folder), "%s", bundle_path(attempt->bundle));
    if (encrypted) {
        TRY_OUT(bundle_key(&key, attempt->bundle, error));
    }
    TRY_OUT(bundle_flush(attempt->bundle, error));
    bundle_close(attempt->bundle);
    attempt->bundle = NULL;
    TRY_OUT(bundle_open(&attempt->bundle, folder, BUNDLE_READ, error));
    status = encrypted ? bundle_unlock(attempt->bundle, &key, error) : STATUS_OK;
out:
    encryption_key_wipe(&key);
    return status;
}

/* ---- the process that trains -------------------------------------------------------- */

static struct confined_plan plan_of(const struct command_context *context,
                                    const struct attempt *attempt, bool measures)
{
    const struct options *options = context->options;
    struct confined_plan plan = {.machine = attempt->machine,
                                 .measures = measures,
                                 .keeps_unpaid = attempt->with_ledger,
                                 .keep = attempt_keep(context, bundle_job(attempt->bundle)),
                                 .every = options_number(options, "keep-every"),
                                 .falsifies = options_given(options, "falsify"),
                                 .falsify = options_number(options, "falsify"),
                                 .ranks = attempt->launch.place.rank_count,
                                 .mpi = attempt->launch.place.mpi,
                                 .cross_check = attempt->launch.cross_check,
                                 .listener = attempt->launch.listener};

    (void)snprintf(plan.folder, sizeof(plan.folder), "%s", bundle_path(attempt->bundle));
    return plan;
}

/* Waits until it has the data and the machine. *step_ns: as trainer_ready() says. */
static enum status start_trainer(uint64_t *step_ns, struct attempt *attempt,
                                 const struct command_context *context, bool measures,
                                 struct error *error)
{
    struct confined_plan plan = plan_of(context, attempt, measures);
    enum status status;

    if (bundle_is_encrypted(attempt->bundle)) {
        TRY_OUT(bundle_key(&plan.key, attempt->bundle, error));
        plan.has_key = true;
    }
    TRY_OUT(trainer_open(&attempt->trainer, &plan, (const char *const *)attempt->data.of,
                         attempt->data.count, error));
    TRY_OUT(trainer_ready(step_ns, attempt->trainer, &attempt->stop, error));
out:
    encryption_key_wipe(&plan.key);
    return status;
}

enum status attempt_begin(uint64_t *step_ns, struct attempt *attempt,
                          struct command_context *context, struct error *error)
{
    char folder[FILE_PATH_MAX];
    uint64_t steps = 0;
    enum status status;

    (void)snprintf(folder, sizeof(folder), "%s", bundle_path(attempt->bundle));
    TRY_OUT(prepare_bundle(context, attempt, error));
    TRY_OUT(hand_over(attempt, error));
    TRY_OUT(bundle_step_count(&steps, attempt->bundle, error));
    TRY_OUT(ranks_launch_begin(&attempt->launch, error));
    TRY_OUT(start_trainer(step_ns, attempt, context, attempt->with_ledger && steps == 0, error));
    ranks_launch_met(&attempt->launch);
out:
    if (status != STATUS_OK && attempt->is_new) {
        trainer_close(attempt->trainer);
        attempt->trainer = NULL;
        bundle_close(attempt->bundle);
        attempt->bundle = NULL;
        file_remove_folder(folder);
    }
    return status;
}

/* ---- training ------------------------------------------------------------------------ */

static void log_retry(void *context, uint64_t step, const char *why)
{
    const struct run_progress *shown = context;

    log_warn(shown->log, "device",
             "step %" PRIu64 " failed (%s): retrying from the last good state", step, why);
}

static void log_damage(void *context, uint64_t count, const char *why)
{
    const struct run_progress *shown = context;

    log_warn(shown->log, "bundle", "skipped %" PRIu64 " damaged checkpoints: %s", count, why);
}

static void log_alone(void *context, const char *why)
{
    const struct run_progress *shown = context;

    log_warn(shown->log, "ranks",
             "rank 0 alone writes the checkpoints, since not all ranks see their folder: %s", why);
}

void attempt_keep_signature(void *context, uint64_t segment, const uint8_t *signature, size_t size)
{
    const struct attempt *attempt = context;

    if (attempt->trainer != NULL) { /* once nobody trains, all are kept */
        trainer_sign(attempt->trainer, segment, signature, size);
    }
}

/* One that was ended from outside is started again, as often as it gets further. The other ranks
 * of one that had some have ended with it. */
static enum status train_on(struct train_result *result, struct command_context *context,
                            struct attempt *attempt, const struct trainer_watch *watch,
                            const struct run_progress *shown, struct error *error)
{
    uint64_t first = UINT64_MAX;
    bool died = true;

    for (;;) {
        enum status status = trainer_run(result, &died, attempt->trainer, watch, error);

        trainer_close(attempt->trainer);
        attempt->trainer = NULL;
        if (!died || shown->steps == first || stop_requested(&attempt->stop) ||
            attempt->launch.place.rank_count > 1) {
            return status;
        }
        log_warn(context->log, "device", "%s; another goes on from the last checkpoint",
                 error->text);
        error_init(error);
        first = shown->steps;
        TRY(start_trainer(&(uint64_t){0}, attempt, context, false, error));
        TRY(watch->final == NULL ? STATUS_OK : session_sign(&attempt->session, error));
    }
}

static enum status train_with(struct train_result *result, struct command_context *context,
                              struct attempt *attempt, struct error *error)
{
    struct session *session = attempt->with_ledger ? &attempt->session : NULL;
    struct bundle *bundle = attempt->bundle;
    struct gpu_meter meter;
    struct run_progress shown = {.session = session,
                                 .meter = &meter,
                                 .notify = &attempt->notify,
                                 .log = context->log,
                                 .sight = attempt->sight};
    const struct trainer_watch watch = {.context = &shown,
                                        .progress = run_progress_step,
                                        .segment = session == NULL ? NULL : run_progress_segment,
                                        .final = session == NULL ? NULL : run_progress_final,
                                        .retrying = log_retry,
                                        .damaged = log_damage,
                                        .alone = log_alone,
                                        .stop = &attempt->stop};
    enum status status;

    TRY(run_progress_open(&shown, bundle, error));
    (void)gpu_meter_open(&meter, &attempt->machine, bundle_job(bundle)->segment_length, NULL,
                         context->log);
    status = train_on(result, context, attempt, &watch, &shown, error);
    run_progress_close(&shown);
    gpu_meter_close(&meter);
    return status;
}

enum status attempt_train(struct train_result *result, struct attempt *attempt,
                          struct command_context *context, struct error *error)
{
    struct device_lock lock = {.count = 0};
    struct error why;
    enum status status;

    error_init(&why);
    if (device_lock_take(&lock, &attempt->machine, &why) != STATUS_OK) {
        log_info(context->log, "device", "this run is not alone, and slower: %s", why.text);
    }
    status = train_with(result, context, attempt, error);
    device_lock_drop(&lock);
    return status;
}
