/* audit.c - see audit.h. */
#include "verifier/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/philox.h"
#include "proofs/trace.h"

/* The stream of the auditor's draws; steps of a job never use step numbers this high. */
#define SAMPLE_STREAM UINT32_MAX

const char *audit_answer_name(enum audit_answer answer)
{
    static const char *const names[] = {"cannot-tell", "refuted", "proven"};

    return names[answer];
}

struct auditor {
    struct audit_result *result;
    struct bundle *bundle;
    const struct audit_options *options;
    const char *const *paths;
    size_t path_count;
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
static enum status replay_again(struct auditor *auditor, struct digest *root, uint64_t step,
                                struct error *error)
{
    struct machine_options options = auditor->options->machine;
    struct run second;
    uint64_t at = 0;
    enum status status;

    machine_options_other(&options);
    status = run_open(&second, bundle_job(auditor->bundle), auditor->paths, auditor->path_count,
                      &options, error);
    if (status == STATUS_OK) {
        status = bundle_restore(&at, auditor->bundle, second.machine, step, error);
    }
    while (status == STATUS_OK && at <= step) {
        status = stop_requested(auditor->options->stop)
                     ? error_set(error, STATUS_STOPPED, "stopped during the second replay")
                     : second.machine->backend->step(second.machine, NULL, error);
        at++;
    }
    if (status == STATUS_OK) {
        status = machine_state_root(root, second.machine, error);
    }
    run_close(&second);
    return status;
}

static enum status judge_difference(struct auditor *auditor, const struct bundle_step *entry,
                                    const struct digest *ours, struct error *error)
{
    struct digest again;
    enum status status = replay_again(auditor, &again, entry->step, error);

    if (status != STATUS_OK) {
        (void)error_wrap(error, "step %" PRIu64 " looks wrong, but the second replay failed",
                         entry->step);
        return status;
    }
    if (!digest_equal(&again, ours)) {
        (void)error_set(error, STATUS_DEVICE,
                        "two replays of step %" PRIu64 " on this machine disagree with each other",
                        entry->step);
        error_advise(error, "this machine computes wrongly: test its memory, and audit elsewhere");
        return STATUS_DEVICE;
    }
    auditor->result->answer = AUDIT_REFUTED;
    auditor->result->wrong_step = entry->step;
    auditor->result->wrong_root = entry->root;
    auditor->result->true_root = again;
    return STATUS_OK;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- replaying ---------------------------------------------------------- */

/* STATUS_OK with answer REFUTED ends the audit. counted: is this step one of those wanted? */
static enum status replay_step(struct auditor *auditor, uint64_t step, bool counted,
                               struct error *error)
{
    struct machine *machine = auditor->run.machine;
    struct bundle_step entry;
    struct digest root;
    uint32_t loss = 0;
    uint64_t start = now_ns();
    enum status status = bundle_step_read(&entry, auditor->bundle, step, error);

    if (status == STATUS_OK && stop_requested(auditor->options->stop)) {
        status = error_set(error, STATUS_STOPPED, "stopped before step %" PRIu64, step);
    }
    if (status == STATUS_OK) {
        status = machine->backend->step(machine, NULL, error);
    }
    if (status == STATUS_OK) {
        status = machine_state_root(&root, machine, error);
    }
    if (status == STATUS_OK) {
        status = run_loss(&loss, &auditor->run, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (!digest_equal(&root, &entry.root)) {
        status = judge_difference(auditor, &entry, &root, error);
        if (status == STATUS_OK && auditor->options->told != NULL) {
            auditor->options->told(auditor->options->told_context, &entry, now_ns() - start, false);
        }
        return status;
    }
    if (counted && auditor->options->told != NULL) {
        auditor->options->told(auditor->options->told_context, &entry, now_ns() - start, true);
    }
    auditor->result->steps_checked += counted;
    if (counted && auditor->options->progress != NULL) {
        auditor->options->progress(auditor->options->progress_context,
                                   auditor->result->steps_checked, auditor->result->steps_wanted);
    }
    return STATUS_OK;
}

static uint64_t segment_end(const struct auditor *auditor, uint64_t segment)
{
    uint64_t end = job_segment_end(bundle_job(auditor->bundle), segment);

    return end < auditor->result->steps_journaled ? end : auditor->result->steps_journaled;
}

/*
 * Segments in order. Where the machine already stands at a segment's first step it goes straight
 * on; otherwise it takes up the newest checkpoint before it.
 */
static enum status replay_segments(struct auditor *auditor, const bool *chosen, uint64_t count,
                                   struct error *error)
{
    uint64_t length = bundle_job(auditor->bundle)->segment_length;
    uint64_t at = UINT64_MAX; /* the step that the machine is ready for */
    enum status status = STATUS_OK;

    for (uint64_t segment = 0; segment < count && status == STATUS_OK; segment++) {
        uint64_t first = segment * length;

        if (!chosen[segment]) {
            continue;
        }
        if (at != first) {
            status = bundle_restore(&at, auditor->bundle, auditor->run.machine, first, error);
        }
        while (status == STATUS_OK && at < segment_end(auditor, segment) &&
               auditor->result->answer != AUDIT_REFUTED) {
            status = replay_step(auditor, at, at >= first, error);
            at++;
        }
        if (auditor->result->answer == AUDIT_REFUTED) {
            break;
        }
    }
    return status;
}

static enum status audit_all(struct auditor *auditor, struct error *error)
{
    const struct job *job = bundle_job(auditor->bundle);
    struct audit_result *result = auditor->result;
    uint64_t count;
    uint64_t wanted;
    bool *chosen;
    enum status status = bundle_step_count(&result->steps_journaled, auditor->bundle, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (result->steps_journaled > job->steps) {
        return error_set(error, STATUS_BAD_FORMAT, "the journal has more steps than the job");
    }
    if (result->steps_journaled == 0) {
        return error_set(error, STATUS_NOT_FOUND, "the journal holds no step: nothing to check");
    }
    count = (result->steps_journaled + job->segment_length - 1) / job->segment_length;
    wanted = auditor->options->sample == 0 || auditor->options->sample > count
                 ? count
                 : auditor->options->sample;
    chosen = calloc(count + 1, sizeof(*chosen));
    if (chosen == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %" PRIu64 " segments", count);
    }
    status = choose(chosen, count, wanted, auditor->options->sample_seed, error);
    for (uint64_t i = 0; i < count; i++) {
        result->steps_wanted += chosen[i] ? segment_end(auditor, i) - i * job->segment_length : 0;
    }
    if (status == STATUS_OK) {
        status = run_open(&auditor->run, job, auditor->paths, auditor->path_count,
                          &auditor->options->machine, error);
    }
    if (status == STATUS_OK) {
        status = replay_segments(auditor, chosen, count, error);
    }
    run_close(&auditor->run);
    free(chosen);
    return status;
}

void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options)
{
    struct auditor auditor = {result, bundle, options, paths, path_count, {0}};
    enum status status;

    memset(result, 0, sizeof(*result));
    error_init(&result->reason);
    result->steps_of_job = bundle_job(bundle)->steps;
    status = audit_all(&auditor, &result->reason);
    if (status == STATUS_OK && result->answer != AUDIT_REFUTED &&
        result->steps_checked == result->steps_wanted) {
        result->answer = AUDIT_PROVEN;
    }
}
