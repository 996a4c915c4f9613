/* keep_page.c - see keep_page.h. */
#include "client/keeper/keep_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "client/keeper/keep_metrics.h"

void keep_page_init(struct keep_page *page)
{
    *page = (struct keep_page){0};
    (void)pthread_mutex_init(&page->sight.lock, NULL);
}

void keep_page_close(struct keep_page *page)
{
    job_page_close(page->page);
    page->page = NULL;
}

void keep_page_release(struct keep_page *page)
{
    (void)pthread_mutex_destroy(&page->sight.lock);
}

static void copy_view(void *context, struct job_view *view)
{
    struct keep_page *page = context;

    (void)pthread_mutex_lock(&page->sight.lock);
    *view = page->sight.view;
    (void)pthread_mutex_unlock(&page->sight.lock);
}

static void show_metrics(void *context, struct sheet *sheet, const struct job_view *view)
{
    struct keep_page *page = context;
    struct keeper_counts counts;

    (void)pthread_mutex_lock(&page->sight.lock);
    counts = page->counts;
    (void)pthread_mutex_unlock(&page->sight.lock);
    keep_metrics_show(sheet, &counts, view);
}

enum status keep_page_open(struct keep_page *page, const struct command_context *context,
                           const struct keeper *keeper, struct error *error)
{
    const char *place = options_text(context->options, "page");
    const struct job_page_source source = {
        .title = "Lockstep keeper", .copy = copy_view, .metrics = show_metrics, .context = page};

    (void)pthread_mutex_lock(&page->sight.lock);
    page->sight.view.steps = keeper_record(keeper)->terms.steps;
    loss_curve_init(&page->sight.view.curve, page->sight.view.steps);
    (void)pthread_mutex_unlock(&page->sight.lock);
    if (place == NULL) {
        return STATUS_OK;
    }
    TRY(job_page_open(&page->page, &source, place, error));
    log_info(context->log, "keeper", "the keeper at %s", job_page_url(page->page));
    return STATUS_OK;
}

void keep_page_take(struct keep_page *page, const struct keeper *keeper)
{
    struct keeper_counts counts = keeper_counts(keeper);

    (void)pthread_mutex_lock(&page->sight.lock);
    page->counts = counts;
    (void)snprintf(page->sight.view.keeping, sizeof(page->sight.view.keeping),
                   "%" PRIu64 " covered segments wait, %" PRIu64 " with their states here, %" PRIu64
                   " vouched on the ledger; vouches: %" PRIu64 " handed to the solver, %" PRIu64
                   " announced, %" PRIu64 " brought; replays: %" PRIu64 " right, %" PRIu64
                   " false, %" PRIu64 " failed; refusals: %" PRIu64,
                   counts.pending, counts.held, counts.noted, counts.handed, counts.announced,
                   counts.brought, counts.right, counts.wrong, counts.failed, counts.refused);
    (void)pthread_mutex_unlock(&page->sight.lock);
}
