/* job_watch.c - see job_watch.h. */
#include "client/watch/job_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/progress.h"
#include "base/io/screen.h"
#include "base/io/stop.h"
#include "base/steady.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "chain/job/job_states.h"
#include "chain/view/job_page.h"
#include "chain/view/job_text.h"
#include "client/watch/watch_keep.h"
#include "client/watch/watch_mirrors.h"

#define GLANCE_S 0.25 /* at the window, and at what the mirrors gave */

const struct option_spec job_watch_options[JOB_WATCH_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    JOB_SOURCE_OPTIONS,
    {.name = "once",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "look once and end",
     .command_line_only = true},
    CHAIN_POLL_OPTION("how often to look at the ledger"),
    JOB_PAGE_OPTION,
    {.name = "folder",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "keep the state at the end of each committed segment here, checked against its root; "
             "'job serve --folder' serves the same folder"},
    {.name = "keep-max",
     .heading = "keeping",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "64G",
     .help = "with --folder: bytes of states; the oldest go once newer ones are whole"},
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "with --folder: serve what is kept, until Ctrl-C; 'job fetch --mirror' takes it"},
};

struct job_watcher {
    struct command_context *context;
    struct job_source source;
    struct stop stop;
    struct screen screen;
    struct watch_sight sight;
    struct watch_mirrors *mirrors;
    struct watch_keep *keep; /* NULL: nothing is kept */
    struct job_page *page;   /* NULL: none is served */
    uint64_t hosts_read;     /* how far the ledger was read when hosts were looked for */
    uint64_t shown_read;     /* and when the last line was printed */
    uint64_t shown_end;      /* of the curve */
    char shown_copies[JOB_VIEW_WORDS_MAX];
    bool shown;
};

/* ---- looking --------------------------------------------------------------------------- */

static enum status tell_keep(struct job_watcher *watching, struct error *error)
{
    const struct job_record *record = &watching->source.record;
    uint32_t count = record->state.committed;
    struct job_states_place places[WATCH_KEEP_STATES_MAX];

    if (watching->keep == NULL) {
        return STATUS_OK;
    }
    count = count < WATCH_KEEP_STATES_MAX ? count : WATCH_KEEP_STATES_MAX;
    TRY(job_states_last_ends(places, count, watching->source.ledger, record, error));
    watch_keep_tell(watching->keep, places, count, &watching->source.mirrors);
    return STATUS_OK;
}

static enum status find_hosts(struct job_watcher *watching, struct error *error)
{
    if (watching->hosts_read == watching->source.record.read) {
        return STATUS_OK;
    }
    TRY(job_source_add_contacts(&watching->source, error));
    watch_mirrors_add(watching->mirrors, &watching->source.mirrors);
    TRY(tell_keep(watching, error));
    watching->hosts_read = watching->source.record.read;
    return STATUS_OK;
}

static enum status look_at_ledger(struct job_watcher *watching, struct error *error)
{
    struct job_source *source = &watching->source;
    struct ledger_clock clock;

    TRY(ledger_catch_up(source->ledger, error));
    TRY(job_record_follow(&source->record, source->ledger, error));
    TRY(ledger_get_clock(source->ledger, &clock, error));
    TRY(find_hosts(watching, error));
    watch_mirrors_tell(watching->mirrors, &source->record);
    (void)pthread_mutex_lock(&watching->sight.lock);
    job_standing_take(&watching->sight.view.standing, &source->record, clock.time_s);
    ledger_ill_endpoints(source->ledger, watching->sight.view.standing.endpoints,
                         sizeof(watching->sight.view.standing.endpoints));
    watching->sight.view.card = source->record.card;
    watching->sight.view.trouble[0] = '\0';
    (void)pthread_mutex_unlock(&watching->sight.lock);
    return STATUS_OK;
}

/* A ledger that cannot be reached now is shown, and waited for. */
static enum status look_on(struct job_watcher *watching, struct error *error)
{
    struct error why;
    enum status status;

    error_init(&why);
    status = look_at_ledger(watching, &why);
    if (status != STATUS_UNREACHABLE || !watching->shown) {
        *error = why;
        return status;
    }
    (void)pthread_mutex_lock(&watching->sight.lock);
    (void)snprintf(watching->sight.view.trouble, sizeof(watching->sight.view.trouble), "%.300s",
                   why.text);
    (void)pthread_mutex_unlock(&watching->sight.lock);
    return STATUS_OK;
}

/* ---- showing --------------------------------------------------------------------------- */

static void draw_view(struct job_watcher *watching, bool last)
{
    struct screen *screen = &watching->screen;
    const struct sheet_screen window = {screen->columns, screen->rows, screen->utf8};
    struct buffer text;
    struct sheet sheet;

    sheet_init(&sheet);
    job_text_show(&sheet, &watching->sight.view);
    buffer_init(&text, JOB_TEXT_SIZE_MAX);
    sheet_screen_write(&text, &sheet, &window);
    sheet_release(&sheet);
    (last ? screen_finish : screen_draw)(screen, buffer_text(&text));
    buffer_release(&text);
}

static int show_line(struct job_watcher *watching)
{
    struct buffer text;
    int code;

    buffer_init(&text, JOB_TEXT_SIZE_MAX);
    job_text_line(&text, &watching->sight.view);
    code = command_say(watching->context, job_text_json(&watching->sight.view), "%s\n",
                       buffer_text(&text));
    buffer_release(&text);
    return code;
}

/* Without a terminal: a line for each change. */
static int show_news(struct job_watcher *watching)
{
    const struct job_view *view = &watching->sight.view;
    bool is_news;
    int code = COMMAND_OK;

    /* What the threads write, they write under the lock: what is shown is of one moment. */
    (void)pthread_mutex_lock(&watching->sight.lock);
    if (watching->keep != NULL) {
        struct serve_counts counts = watch_keep_counts(watching->keep);

        watching->sight.view.served = counts.requests;
        watching->sight.view.served_bytes = counts.bytes;
    }
    /* An event, a loss or a copy is news; the passing of time is not. */
    is_news = !watching->shown || watching->shown_read != watching->source.record.read ||
              watching->shown_end != view->curve.loss.end ||
              strcmp(watching->shown_copies, view->copies) != 0;
    if (watching->screen.terminal) {
        draw_view(watching, false);
    } else if (is_news) {
        code = show_line(watching);
    }
    watching->shown_read = watching->source.record.read;
    watching->shown_end = view->curve.loss.end;
    memcpy(watching->shown_copies, view->copies, sizeof(watching->shown_copies));
    watching->shown = true;
    (void)pthread_mutex_unlock(&watching->sight.lock);
    return code;
}

static int show_once(struct job_watcher *watching)
{
    const struct sheet_screen window = {SCREEN_COLUMNS, SCREEN_ROWS, false};
    struct buffer text;
    struct sheet sheet;
    int code;

    sheet_init(&sheet);
    job_text_show(&sheet, &watching->sight.view);
    buffer_init(&text, JOB_TEXT_SIZE_MAX);
    sheet_screen_write(&text, &sheet, &window);
    code = command_say(watching->context, json_incref(sheet.facts), "%s", buffer_text(&text));
    buffer_release(&text);
    sheet_release(&sheet);
    return code;
}

/* The last picture stays. */
static int show_last(struct job_watcher *watching)
{
    int code = COMMAND_OK;

    (void)pthread_mutex_lock(&watching->sight.lock);
    if (watching->screen.terminal) {
        draw_view(watching, true);
    } else if (options_flag(watching->context->options, "once")) {
        code = show_once(watching);
    }
    (void)pthread_mutex_unlock(&watching->sight.lock);
    return code;
}

static void copy_view(void *context, struct job_view *view)
{
    struct watch_sight *sight = context;

    (void)pthread_mutex_lock(&sight->lock);
    *view = sight->view;
    (void)pthread_mutex_unlock(&sight->lock);
}

static enum status open_page(struct job_watcher *watching, struct error *error)
{
    const char *place = options_text(watching->context->options, "page");
    const struct job_page_source source = {
        .title = "Lockstep job", .copy = copy_view, .context = &watching->sight};

    if (place == NULL) {
        return STATUS_OK;
    }
    TRY(job_page_open(&watching->page, &source, place, error));
    log_info(watching->context->log, "watch", "the job at %s", job_page_url(watching->page));
    return STATUS_OK;
}

static enum status open_keep(struct job_watcher *watching, struct error *error)
{
    const struct command_context *context = watching->context;
    const struct watch_keep_options options = {
        .sight = &watching->sight,
        .stop = &watching->stop,
        .log = watching->screen.terminal ? NULL : context->log,
        .area = "watch",
        .terms = &watching->source.record.terms,
        .folder = options_text(context->options, "folder"),
        .place = options_text(context->options, "serve"),
        .bytes_max = options_number(context->options, "keep-max")};

    if (options.folder == NULL) {
        return options.place == NULL
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE,
                               "--serve serves what --folder FOLDER keeps; name that too");
    }
    return watch_keep_open(&watching->keep, &options, error);
}

/* ---- the command ----------------------------------------------------------------------- */

/* Until the next look; what the mirrors give meanwhile is shown. False: a stop is requested. */
static bool wait_poll(struct job_watcher *watching, int *code)
{
    double end_s = steady_seconds() + (double)options_number(watching->context->options, "poll");

    while (*code == COMMAND_OK && steady_seconds() < end_s) {
        if (stop_wait(&watching->stop, GLANCE_S)) {
            return false;
        }
        *code = show_news(watching);
    }
    return *code == COMMAND_OK;
}

/* Did the mirrors give what they have? */
static bool rests_now(struct job_watcher *watching)
{
    return watch_mirrors_rest(watching->mirrors) &&
           (watching->keep == NULL || watch_keep_rest(watching->keep));
}

/* The job is over, and all that can be fetched is here. A watch with a page stays, and so does one
 * that serves. */
static bool is_done(struct job_watcher *watching)
{
    return watching->page == NULL && options_text(watching->context->options, "serve") == NULL &&
           watching->sight.view.standing.over && rests_now(watching);
}

static enum status follow_job(struct job_watcher *watching, int *code, struct error *error)
{
    do {
        TRY(look_on(watching, error));
        *code = show_news(watching);
    } while (*code == COMMAND_OK && !is_done(watching) && wait_poll(watching, code));
    return STATUS_OK;
}

static enum status look_once(struct job_watcher *watching, struct error *error)
{
    TRY(look_at_ledger(watching, error));
    while (!rests_now(watching) && !stop_wait(&watching->stop, GLANCE_S)) {
    }
    return STATUS_OK;
}

static enum status watch_job(struct job_watcher *watching, int *code, struct error *error)
{
    const struct options *options = watching->context->options;
    struct job_source *source = &watching->source;
    bool once = options_flag(options, "once");
    const struct watch_mirrors_options mirrors = {.sight = &watching->sight,
                                                  .stop = &watching->stop,
                                                  .terms = &source->record.terms,
                                                  .mirrors = &source->mirrors,
                                                  .poll_s =
                                                      (double)options_number(options, "poll")};

    TRY(job_source_open(source, options->arguments[0], watching->context, NULL, error));
    watching->sight.view.steps = source->record.terms.steps;
    loss_curve_init(&watching->sight.view.curve, source->record.terms.steps);
    TRY(stop_open(&watching->stop, error));
    TRY(watch_mirrors_open(&watching->mirrors, &mirrors, error));
    TRY(open_page(watching, error));
    /* The screen only once everything else is open: an error then stands on a plain terminal. */
    screen_init(&watching->screen, once ? NULL : command_people(watching->context));
    TRY(open_keep(watching, error));
    TRY(once ? look_once(watching, error) : follow_job(watching, code, error));
    return STATUS_OK;
}

int job_watch_run(struct command_context *context)
{
    struct job_watcher *watching = calloc(1, sizeof(*watching));
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    if (watching == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory to watch");
        return command_fail(context, &error);
    }
    watching->context = context;
    watching->stop.descriptor = -1;
    (void)pthread_mutex_init(&watching->sight.lock, NULL);
    status = watch_job(watching, &code, &error);
    if (code == COMMAND_OK && watching->sight.view.standing.read) {
        /* The last picture stays on the terminal when the watch is over. */
        code = show_last(watching);
    }
    /* The threads end before what they use is closed. */
    job_page_close(watching->page);
    watch_keep_close(watching->keep);
    watch_mirrors_close(watching->mirrors);
    stop_close(&watching->stop);
    job_source_close(&watching->source);
    (void)pthread_mutex_destroy(&watching->sight.lock);
    free(watching);
    return status == STATUS_OK ? code : command_fail(context, &error);
}
