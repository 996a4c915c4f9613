/* run_progress.c - see run_progress.h. */
#include "prover/commands/run_progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/run/step_time.h"

enum status run_progress_open(struct run_progress *run, struct bundle *bundle, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    enum status status;

    TRY(bundle_step_count(&run->steps, bundle, error));
    run->curve = malloc(sizeof(*run->curve));
    if (run->curve == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the curve of the loss");
    }
    loss_curve_init(run->curve, job->steps);
    status = loss_curve_recall(run->curve, bundle, error);
    if (status != STATUS_OK) {
        free(run->curve);
        run->curve = NULL;
        return status;
    }
    progress_init(&run->progress, stderr, "training", "steps", run->steps, job->steps,
                  progress_now());
    run->progress.line = &run->curve->loss;
    run->progress.points = &run->curve->held_out;
    run->tokens = step_time_tokens(job->tape);
    return STATUS_OK;
}

void run_progress_close(struct run_progress *run)
{
    if (run->curve != NULL) {
        progress_finish(&run->progress, run->steps, "", progress_now());
        free(run->curve);
        run->curve = NULL;
    }
}

/* Posting counts the time that training waited for it and the processor time of its thread. */
static void note_of(char note[PROGRESS_NOTE_MAX], const struct run_progress *run, double loss)
{
    struct time_split split = run->split;
    struct solver_view view = {0};
    double spent_s = 0.0;
    const struct curve *held_out = &run->curve->held_out;
    char pace[64] = "";
    int size = 0;

    if (held_out->end > 0) {
        size = snprintf(pace, sizeof(pace), "  held-out %.4f", held_out->newest);
    }
    if (run->tokens > 0 && run->progress.rate > 0) {
        (void)snprintf(pace + size, sizeof(pace) - (size_t)size, "  %.4g tokens/s",
                       run->progress.rate * (double)run->tokens);
    }
    if (run->session == NULL) {
        (void)snprintf(note, PROGRESS_NOTE_MAX, "loss %.4f%s  committing %.1f %%", loss, pace,
                       time_split_percent(&split, split.committing_ns));
        return;
    }
    poster_look(run->session->poster, &view, &spent_s);
    split.posting_ns += (uint64_t)(spent_s * 1e9);
    (void)snprintf(note, PROGRESS_NOTE_MAX,
                   "loss %.4f%s  committing %.1f %%  posting %.1f %%  final %u/%" PRIu64 "%s", loss,
                   pace, time_split_percent(&split, split.committing_ns),
                   time_split_percent(&split, split.posting_ns), view.finalized,
                   job_segments(bundle_job(run->session->bundle)),
                   view.trouble[0] == '\0' ? "" : "  (ledger waits)");
}

void run_progress_step(void *context, const struct bundle_step *step)
{
    struct run_progress *run = context;
    char note[PROGRESS_NOTE_MAX];
    float loss;

    memcpy(&loss, &step->loss_bits, sizeof(loss));
    run->steps = step->step + 1;
    notify_alive(run->notify);
    gpu_meter_step(run->meter, step, run->log);
    run->split.training_ns += step->nanoseconds;
    run->split.committing_ns += step->nanoseconds_committing;
    loss_curve_add(run->curve, step);
    note_of(note, run, (double)loss);
    progress_update(&run->progress, run->steps, note, progress_now());
}

enum status run_progress_segment(void *context, struct error *error)
{
    struct run_progress *run = context;
    double start = progress_now();
    enum status status = session_add(run->session, error);

    run->split.posting_ns += (uint64_t)((progress_now() - start) * 1e9);
    return status;
}
