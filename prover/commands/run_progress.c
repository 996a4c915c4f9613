/* run_progress.c - see run_progress.h. */
#include "prover/commands/run_progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "proofs/run/step_time.h"

/* ---- the page ------------------------------------------------------------------------ */

static void copy_view(void *context, struct job_view *view)
{
    struct run_sight *sight = context;

    (void)pthread_mutex_lock(&sight->lock);
    *view = sight->view;
    (void)pthread_mutex_unlock(&sight->lock);
    if (sight->poster != NULL) {
        poster_show(sight->poster, &view->standing);
    }
}

static enum status open_page(struct run_sight *sight, struct command_context *context,
                             struct error *error)
{
    const char *place = options_text(context->options, "page");
    const struct job_page_source source = {
        .title = "Lockstep solver", .copy = copy_view, .context = sight};

    if (place == NULL) {
        return STATUS_OK;
    }
    TRY(job_page_open(&sight->page, &source, place, error));
    log_info(context->log, "status", "the job at %s", job_page_url(sight->page));
    return STATUS_OK;
}

enum status run_sight_open(struct run_sight **sight, struct command_context *context,
                           struct bundle *bundle, struct poster *poster, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    struct run_sight *made = calloc(1, sizeof(*made));

    *sight = made;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the curve of the loss");
    }
    (void)pthread_mutex_init(&made->lock, NULL);
    made->poster = poster;
    made->view.steps = job->steps;
    job_card_of(&made->view.card, job);
    made->view.tokens = step_time_tokens(job->tape);
    (void)snprintf(made->view.curve_words, sizeof(made->view.curve_words),
                   "As this run computes it.");
    loss_curve_init(&made->view.curve, job->steps);
    TRY(loss_curve_recall(&made->view.curve, bundle, error));
    return open_page(made, context, error);
}

void run_sight_close(struct run_sight *sight)
{
    if (sight != NULL) {
        job_page_close(sight->page);
        (void)pthread_mutex_destroy(&sight->lock);
        free(sight);
    }
}

/* ---- the line ------------------------------------------------------------------------ */

enum status run_progress_open(struct run_progress *run, struct bundle *bundle, struct error *error)
{
    TRY(bundle_step_count(&run->steps, bundle, error));
    run->trains = bundle_job(bundle)->tape->loss != TENSOR_NONE;
    progress_init(&run->progress, stderr, run->trains ? "training" : "running", "steps", run->steps,
                  bundle_job(bundle)->steps, steady_seconds());
    run->progress.line = &run->sight->view.curve.loss;
    run->progress.points = &run->sight->view.curve.held_out;
    run->tokens = run->sight->view.tokens;
    return STATUS_OK;
}

void run_progress_close(struct run_progress *run)
{
    progress_finish(&run->progress, run->steps, "", steady_seconds());
}

/* Posting counts the time that training waited for it and the processor time of its thread. */
static void note_of(char note[PROGRESS_NOTE_MAX], const struct run_progress *run, double loss)
{
    struct time_split split = run->split;
    struct solver_view view = {0};
    double spent_s = 0.0;
    const struct curve *held_out = &run->sight->view.curve.held_out;
    char number[PROGRESS_NUMBER_MAX];
    char figure[32] = "";
    char pace[64] = "";
    int size = 0;

    if (run->trains) {
        (void)snprintf(figure, sizeof(figure), "loss %.4f", loss);
    }
    if (held_out->end > 0) {
        size = snprintf(pace, sizeof(pace), "  held-out %.4f", held_out->newest);
    }
    if (run->tokens > 0 && run->progress.rate > 0) {
        progress_number(number, run->progress.rate * (double)run->tokens);
        (void)snprintf(pace + size, sizeof(pace) - (size_t)size, "  %s tokens/s", number);
    }
    if (run->session == NULL) {
        (void)snprintf(note, PROGRESS_NOTE_MAX, "%s%s  committing %.1f %%", figure, pace,
                       time_split_percent(&split, split.committing_ns));
        return;
    }
    poster_look(run->session->poster, &view, &spent_s);
    split.posting_ns += (uint64_t)(spent_s * 1e9);
    (void)snprintf(note, PROGRESS_NOTE_MAX,
                   "%s%s  committing %.1f %%  posting %.1f %%  final %u/%" PRIu64 "%s", figure,
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
    (void)pthread_mutex_lock(&run->sight->lock);
    loss_curve_add(&run->sight->view.curve, step);
    run->sight->view.trained = run->steps;
    run->sight->view.curve_pace = run->progress.rate;
    (void)pthread_mutex_unlock(&run->sight->lock);
    note_of(note, run, (double)loss);
    progress_update(&run->progress, run->steps, note, steady_seconds());
}

uint32_t run_progress_final(void *context)
{
    struct run_progress *run = context;
    struct solver_view view = {0};
    double spent_s;

    poster_look(run->session->poster, &view, &spent_s);
    return view.finalized;
}

enum status run_progress_segment(void *context, struct error *error)
{
    struct run_progress *run = context;
    double start = steady_seconds();
    enum status status = session_add(run->session, error);

    run->split.posting_ns += (uint64_t)((steady_seconds() - start) * 1e9);
    return status;
}
