/* audit.c - see audit.h. */
#include "verifier/audit/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "engine/ops/philox.h"
#include "proofs/commit/state_root.h"

/* The stream of the auditor's draws; no step of a job has so high a number. */
#define SAMPLE_STREAM UINT32_MAX

const char *audit_answer_name(enum audit_answer answer)
{
    static const char *const names[] = {"cannot-tell", "refuted", "proven"};

    return names[answer];
}

const char *audit_flaw_name(enum audit_flaw flaw)
{
    static const char *const names[] = {"none", "state", "went-on", "not-diverged"};

    return names[flaw];
}

const char *audit_flaw_words(enum audit_flaw flaw)
{
    static const char *const words[] = {
        "is true", "does not give what the journal says",
        "gives a state with a NaN or an infinity, and the run went on",
        "is said to end in a NaN or an infinity, and does not"};

    return words[flaw];
}

struct auditor {
    struct audit_result *result;
    struct bundle *bundle;
    const struct audit_options *options;
    const char *const *paths;
    size_t path_count;
    uint64_t diverged; /* the step in which the run ended, by the journal; UINT64_MAX: none */
    struct run run;
};

/* ---- which segments ----------------------------------------------------- */

/* Marks `wanted` of count segments: a partial shuffle, so every set is equally likely. */
static enum status choose(bool *chosen, uint64_t count, uint64_t wanted, uint64_t seed,
                          struct error *error)
{
    uint64_t *order = malloc((count + 1) * sizeof(*order));

    if (order == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to choose among %" PRIu64 " segments",
                         count);
    }
    for (uint64_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint64_t i = 0; i < wanted; i++) {
        struct philox_block block = philox_draw(i, SAMPLE_STREAM, SAMPLE_STREAM, seed);
        uint64_t other = i + philox_below(&block, count - i);
        uint64_t picked = order[other];

        order[other] = order[i];
        order[i] = picked;
        chosen[picked] = true;
    }
    free(order);
    return STATUS_OK;
}

/* ---- a difference is confirmed ------------------------------------------ */

/* Runs from the newest checkpoint to the end of `step` on another instruction set. */
static enum status replay_again(struct auditor *auditor, struct digest *root, bool *finite,
                                uint64_t step, struct error *error)
{
    struct machine_options options = auditor->options->machine;
    struct run second;
    uint64_t at = 0;
    enum status status;

    machine_options_other(&options);
    TRY_OUT(run_open(&second, bundle_job(auditor->bundle), auditor->paths, auditor->path_count,
                     &options, error));
    TRY_OUT(bundle_restore(&at, auditor->bundle, second.machine, step, error));
    while (at <= step) {
        TRY_OUT(stop_requested(auditor->options->stop)
                    ? error_set(error, STATUS_STOPPED, "stopped during the second replay")
                    : second.machine->backend->step(second.machine, NULL, error));
        at++;
    }
    TRY_OUT(state_root_find(root, finite, second.machine, options.thread_count, error));
out:
    run_close(&second);
    return status;
}

/* Judges a step that gave this state. A journal may be cut off after a state that is not finite,
 * before it says that the run diverged: that is no flaw. */
static enum audit_flaw judge_step(const struct auditor *auditor, const struct bundle_step *entry,
                                  const struct digest *root, bool finite)
{
    if (!digest_equal(root, &entry->root)) {
        return AUDIT_FLAW_STATE;
    }
    if (entry->step == auditor->diverged) {
        return finite ? AUDIT_FLAW_NOT_DIVERGED : AUDIT_FLAW_NONE;
    }
    return !finite && entry->step + 1 < auditor->result->steps_journaled ? AUDIT_FLAW_WENT_ON
                                                                         : AUDIT_FLAW_NONE;
}

static void locate(struct auditor *auditor)
{
    const struct audit_options *options = auditor->options;
    struct audit_result *result = auditor->result;
    const struct fault_location_request request = {.step = result->wrong_step,
                                                   .went_on = result->flaw == AUDIT_FLAW_WENT_ON,
                                                   .after = result->wrong_root,
                                                   .paths = auditor->paths,
                                                   .path_count = auditor->path_count,
                                                   .machine = &options->machine,
                                                   .sources = options->sources,
                                                   .source_count = options->source_count,
                                                   .stop = options->stop};

    run_close(&auditor->run); /* one machine at a time */
    if (options->seek && result->flaw != AUDIT_FLAW_NOT_DIVERGED) {
        fault_location_make(&result->location, auditor->bundle, &request);
    }
}

static enum status judge_difference(struct auditor *auditor, const struct bundle_step *entry,
                                    const struct digest *ours, enum audit_flaw flaw,
                                    struct error *error)
{
    struct digest again;
    bool finite = true;
    enum status status = replay_again(auditor, &again, &finite, entry->step, error);

    if (status != STATUS_OK) {
        (void)error_wrap(error, "step %" PRIu64 " looks wrong, but the second replay failed",
                         entry->step);
        return status;
    }
    if (!digest_equal(&again, ours) || judge_step(auditor, entry, &again, finite) != flaw) {
        (void)error_set(error, STATUS_DEVICE,
                        "two replays of step %" PRIu64 " on this machine disagree with each other",
                        entry->step);
        error_advise(error, "this machine computes wrongly: test its memory, and audit elsewhere");
        return STATUS_DEVICE;
    }
    auditor->result->answer = AUDIT_REFUTED;
    auditor->result->flaw = flaw;
    auditor->result->wrong_step = entry->step;
    auditor->result->wrong_root = entry->root;
    auditor->result->true_root = again;
    locate(auditor);
    return STATUS_OK;
}

/* ---- replaying ---------------------------------------------------------- */

/* STATUS_OK with answer REFUTED ends the audit. counted: the step is in a chosen segment. */
static enum status replay_step(struct auditor *auditor, uint64_t step, bool counted,
                               struct error *error)
{
    struct machine *machine = auditor->run.machine;
    struct bundle_step entry;
    enum audit_flaw flaw;
    struct digest root;
    bool finite = true;
    uint32_t loss = 0;
    uint64_t start = steady_ns();
    uint64_t end;

    TRY(bundle_step_read(&entry, auditor->bundle, step, error));
    if (stop_requested(auditor->options->stop)) {
        return error_set(error, STATUS_STOPPED, "stopped before step %" PRIu64, step);
    }
    TRY(machine->backend->step(machine, NULL, error));
    TRY(state_root_find(&root, &finite, machine, auditor->run.options.thread_count, error));
    TRY(run_loss(&loss, &auditor->run, error));

    end = steady_ns();
    flaw = judge_step(auditor, &entry, &root, finite);
    if (flaw != AUDIT_FLAW_NONE) {
        TRY(judge_difference(auditor, &entry, &root, flaw, error));
        if (auditor->options->on_step != NULL) {
            auditor->options->on_step(auditor->options->step_context, &entry, end - start, false);
        }
        return STATUS_OK;
    }
    if (counted && auditor->options->on_step != NULL) {
        auditor->options->on_step(auditor->options->step_context, &entry, end - start, true);
    }
    auditor->result->steps_checked += counted;
    if (counted && auditor->options->progress != NULL) {
        auditor->options->progress(auditor->options->progress_context,
                                   auditor->result->steps_checked, auditor->result->steps_due);
    }
    return STATUS_OK;
}

static uint64_t segment_end(const struct auditor *auditor, uint64_t segment)
{
    uint64_t end = job_segment_end(bundle_job(auditor->bundle), segment);

    return end < auditor->result->steps_journaled ? end : auditor->result->steps_journaled;
}

/*
 * Segments in order. A machine that stands at the segment's first step goes on; any other loads the
 * newest checkpoint before it.
 */
static enum status replay_segments(struct auditor *auditor, const bool *chosen, uint64_t count,
                                   struct error *error)
{
    uint64_t length = bundle_job(auditor->bundle)->segment_length;
    uint64_t at = UINT64_MAX; /* the step that the machine is ready for */

    for (uint64_t segment = 0; segment < count; segment++) {
        uint64_t first = segment * length;

        if (!chosen[segment]) {
            continue;
        }
        if (at != first) {
            TRY(bundle_restore(&at, auditor->bundle, auditor->run.machine, first, error));
        }
        while (at < segment_end(auditor, segment) && auditor->result->answer != AUDIT_REFUTED) {
            TRY(replay_step(auditor, at, at >= first, error));
            at++;
        }
        if (auditor->result->answer == AUDIT_REFUTED) {
            break;
        }
    }
    return STATUS_OK;
}

/* Keeps this share of the chosen segments, and counts their steps. */
static void deal_out(struct auditor *auditor, bool *chosen, uint64_t count, uint64_t wanted)
{
    const struct audit_options *options = auditor->options;
    struct audit_result *result = auditor->result;
    uint64_t shares = options->share_count == 0 ? 1 : options->share_count;
    uint64_t first = wanted / shares * options->share +
                     (options->share < wanted % shares ? options->share : wanted % shares);
    uint64_t end = first + wanted / shares + (options->share < wanted % shares);
    uint64_t at = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t steps = segment_end(auditor, i) - i * bundle_job(auditor->bundle)->segment_length;

        if (!chosen[i]) {
            continue;
        }
        chosen[i] = at >= first && at < end;
        at++;
        result->steps_wanted += steps;
        result->steps_due += chosen[i] ? steps : 0;
    }
}

static enum status look_at_journal(struct auditor *auditor, struct error *error)
{
    struct audit_result *result = auditor->result;

    TRY(bundle_step_count(&result->steps_journaled, auditor->bundle, error));
    TRY(bundle_diverged(&auditor->diverged, auditor->bundle, error));
    if (result->steps_journaled > bundle_job(auditor->bundle)->steps) {
        return error_set(error, STATUS_BAD_FORMAT, "the journal has more steps than the job");
    }
    if (result->steps_journaled == 0) {
        return error_set(error, STATUS_NOT_FOUND, "the journal holds no step: nothing to check");
    }
    return STATUS_OK;
}

static enum status audit_all(struct auditor *auditor, struct error *error)
{
    const struct job *job = bundle_job(auditor->bundle);
    struct audit_result *result = auditor->result;
    uint64_t count;
    uint64_t wanted;
    bool *chosen;
    enum status status;

    TRY(look_at_journal(auditor, error));
    count = (result->steps_journaled + job->segment_length - 1) / job->segment_length;
    wanted = auditor->options->sample == 0 || auditor->options->sample > count
                 ? count
                 : auditor->options->sample;
    chosen = calloc(count + 1, sizeof(*chosen));
    if (chosen == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %" PRIu64 " segments", count);
    }
    TRY_OUT(choose(chosen, count, wanted, auditor->options->sample_seed, error));
    deal_out(auditor, chosen, count, wanted);
    if (result->steps_due > 0) {
        TRY_OUT(run_open(&auditor->run, job, auditor->paths, auditor->path_count,
                         &auditor->options->machine, error));
        TRY_OUT(replay_segments(auditor, chosen, count, error));
    }
    run_close(&auditor->run); /* before more is read */
    TRY_OUT(checkpoint_audit_run(
        &result->checkpoints, auditor->bundle,
        result->steps_journaled == job->steps && auditor->diverged == UINT64_MAX,
        auditor->options->share, auditor->options->share_count, auditor->options->stop, error));
out:
    run_close(&auditor->run);
    free(chosen);
    return status;
}

void audit_conclude(struct audit_result *result)
{
    const struct broken_checkpoint *last = &result->checkpoints.last;

    if (result->answer == AUDIT_PROVEN && last->name[0] != '\0') {
        result->answer = AUDIT_CANNOT_TELL;
        (void)error_set(&result->reason, STATUS_BAD_FORMAT,
                        "the steps are true, but the last checkpoint, %s, is not there whole: %s",
                        last->name, last->why);
        error_advise(&result->reason, "get the bundle again from its solver");
    }
}

void audit_result_release(struct audit_result *result)
{
    fault_location_release(&result->location);
}

void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options)
{
    struct auditor auditor = {result, bundle, options, paths, path_count, UINT64_MAX, {0}};
    enum status status;

    memset(result, 0, sizeof(*result));
    error_init(&result->reason);
    result->job_id = bundle_job(bundle)->id;
    result->steps_of_job = bundle_job(bundle)->steps;
    status = audit_all(&auditor, &result->reason);
    if (status == STATUS_OK && result->answer != AUDIT_REFUTED &&
        result->steps_checked == result->steps_due) {
        result->answer = AUDIT_PROVEN;
    }
    if (options->share_count == 0) {
        audit_conclude(result);
    }
}
