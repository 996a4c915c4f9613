/* job_page.c - see job_page.h. */
#include "chain/view/job_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/progress.h"
#include "base/io/strict_json.h"
#include "base/web/web_page.h"
#include "base/web/web_parts.h"
#include "base/web/web_plot.h"
#include "chain/codec/hex_data.h"
#include "chain/game/terms.h"
#include "chain/view/job_text.h"

#define PAGE_SIZE_MAX ((size_t)1 << 20)
#define TITLE_MAX     100

struct job_page {
    struct web_server *web;
    struct job_page_source source;
    struct job_view view;
    uint64_t now_s;
    char url[WEB_SERVER_URL_MAX];
};

/* ---- parts --------------------------------------------------------------------------- */

static void add_number_card(struct buffer *page, double number, const char *words)
{
    char figure[PROGRESS_NUMBER_MAX];

    progress_number(figure, number);
    web_parts_card(page, figure, words);
}

static void add_amount_card(struct buffer *page, const struct currency *currency, wei amount,
                            const char *words)
{
    char figure[WEI_TEXT_SIZE];

    currency_print_about(figure, currency, amount);
    web_parts_card(page, figure, words);
}

static bool is_ill(const struct job_view *view)
{
    return view->trouble[0] != '\0' || view->standing.alert[0] != '\0' || view->standing.claims > 0;
}

/* "70 % Lockstep job": of several windows it is seen which one needs a look. */
static void print_title(char title[TITLE_MAX], const struct job_page *shown)
{
    const struct job_view *view = &shown->view;

    (void)snprintf(
        title, TITLE_MAX, "%s%.0f %% %s", is_ill(view) ? "! " : "",
        view->steps == 0 ? 0 : floor(100 * (double)job_view_done(view) / (double)view->steps),
        shown->source.title);
}

static void add_names(struct buffer *page, const struct job_page *shown)
{
    const struct job_view *view = &shown->view;
    char words[JOB_CARD_WORDS_MAX];

    buffer_add_format(page, "<h1>%s", shown->source.title);
    if (view->card.title[0] != '\0') {
        buffer_add_text(page, ": ");
        web_page_text(page, view->card.title);
    }
    buffer_add_text(page, "</h1>\n<p class=\"dim\">");
    job_card_words(words, &view->card);
    web_page_text(page, words);
    buffer_add_text(page, "</p>\n");
    if (view->standing.read) {
        char key[HEX_DATA_SIZE(HASH32_SIZE)];

        hex_write(key, view->standing.key.bytes, HASH32_SIZE, true);
        buffer_add_format(page, "<p class=\"dim\"><code>%s</code></p>\n", key);
    }
}

static void add_top(struct buffer *page, const struct job_page *shown)
{
    const struct job_view *view = &shown->view;

    add_names(page, shown);
    buffer_add_format(page, "<p class=\"word %s\"><b>", is_ill(view) ? "ill" : "well");
    web_page_text(page, view->standing.read ? view->standing.phase : "training");
    buffer_add_text(page, "</b>");
    if (view->standing.waits) {
        buffer_add_text(page, ", waits for ");
        web_page_text(page, view->standing.wait.text);
        if (view->standing.wait.until_s > view->standing.now_s) {
            buffer_add_text(page, " <span class=\"dim\">(");
            web_page_when(page, view->standing.wait.until_s, view->standing.now_s);
            buffer_add_text(page, ")</span>");
        }
    }
    if (view->standing.alert[0] != '\0') {
        buffer_add_text(page, ". ");
        web_page_text(page, view->standing.alert);
    }
    if (view->trouble[0] != '\0') {
        buffer_add_text(page, ". ");
        web_page_text(page, view->trouble);
    }
    if (view->standing.endpoints[0] != '\0') {
        buffer_add_text(page, ". Endpoint ");
        web_page_text(page, view->standing.endpoints);
    }
    buffer_add_text(page, "</p>\n");
}

static void add_figures(struct buffer *page, const struct job_view *view)
{
    const struct loss_curve *curve = &view->curve;
    double pace = job_view_pace(view);
    double left_s = job_view_left_s(view);
    char text[64];

    buffer_add_text(page, "<div class=\"cards\">\n");
    (void)snprintf(text, sizeof(text), "of %" PRIu64 " steps done", view->steps);
    web_parts_count(page, job_view_done(view), text);
    if (curve->loss.end > 0) {
        add_number_card(page, curve->loss.newest, "loss");
    }
    if (curve->held_out.end > 0) {
        add_number_card(page, curve->held_out.newest, "held-out loss");
    }
    if (isfinite(curve->accuracy)) {
        add_number_card(page, curve->accuracy * 100, "% held-out accuracy");
    }
    if (pace > 0) {
        add_number_card(page, view->tokens > 0 ? pace * (double)view->tokens : pace,
                        view->tokens > 0 ? "tokens a second" : "steps a second");
    }
    if (left_s > 0) {
        progress_time(text, left_s);
        web_parts_card(page, text, "left to train");
    }
    if (view->standing.read) {
        add_amount_card(page, &view->standing.currency, view->standing.earned, "earned");
        add_amount_card(page, &view->standing.currency, view->standing.burned_client,
                        "burned of the client");
    }
    buffer_add_text(page, "</div>\n");
}

static void add_curve(struct buffer *page, const struct job_view *view)
{
    buffer_add_text(page, "<h2>Training</h2>\n");
    web_plot_curve(page, &view->curve.loss, &view->curve.held_out);
    buffer_add_text(page, "<p class=\"dim own\">");
    web_page_text(page, view->curve_words);
    buffer_add_text(page, "</p>\n");
}

static void add_segments(struct buffer *page, const struct job_view *view)
{
    const char *words[WEB_SQUARES_MARKS];
    const struct web_squares squares = {.name = "segments by state",
                                        .unit = "segment",
                                        .marks = view->standing.cells,
                                        .count = view->standing.cell_count,
                                        .each = view->standing.cell_segments,
                                        .total = view->standing.segments,
                                        .words = words};

    for (int i = 0; i < JOB_VIEW_MARKS; i++) {
        words[i] = job_view_mark_word((enum job_view_mark)i);
    }
    buffer_add_format(page, "<h2>Segments</h2>\n<p>%u of %u committed, %u final; %u claims open.",
                      view->standing.committed, view->standing.segments, view->standing.finalized,
                      view->standing.claims);
    if (view->standing.forecast_s != 0) {
        buffer_add_format(page, " Segment %u is final ", view->standing.finalized);
        web_page_when(page, view->standing.forecast_s, view->standing.now_s);
        buffer_add_text(page, " at the earliest.");
    }
    buffer_add_text(page, "</p>\n");
    web_parts_squares(page, &squares);
}

static void add_amount_fact(struct buffer *page, const struct currency *currency, const char *name,
                            wei amount)
{
    char text[WEI_TEXT_SIZE];

    currency_print(text, currency, amount);
    web_parts_value(page, name, text);
}

static void add_party(struct buffer *page, const char *name, const struct address *address)
{
    char text[ADDRESS_TEXT_SIZE];

    address_print(text, address);
    web_parts_value_begin(page, name);
    buffer_add_format(page, "<code>%s</code>", text);
    web_parts_value_end(page);
}

static void add_money(struct buffer *page, const struct job_view *view)
{
    static const struct address nobody;

    buffer_add_text(page, "<h2>Money</h2>\n<table class=\"values\">\n");
    add_amount_fact(page, &view->standing.currency, "Escrow, with fees", view->standing.escrow);
    add_amount_fact(page, &view->standing.currency, "Earned by solvers", view->standing.earned);
    add_amount_fact(page, &view->standing.currency, "For segments to come", view->standing.to_come);
    add_amount_fact(page, &view->standing.currency, "For verifiers", view->standing.pool);
    add_amount_fact(page, &view->standing.currency, "Staked", view->standing.stake);
    add_amount_fact(page, &view->standing.currency, "Burned of the client",
                    view->standing.burned_client);
    add_amount_fact(page, &view->standing.currency, "Burned of solvers, or paid to seats",
                    view->standing.burned_solver);
    if (view->standing.missing > 0) {
        add_amount_fact(page, &view->standing.currency, "Missing, until the client resumes",
                        view->standing.missing);
    }
    add_party(page, "Client", &view->standing.client);
    if (!address_equal(&view->standing.solver, &nobody)) {
        add_party(page, "Solver", &view->standing.solver);
    }
    buffer_add_text(page, "</table>\n");
}

static void add_copies(struct buffer *page, const struct job_view *view)
{
    if (view->copies[0] == '\0' && view->keeping[0] == '\0' && view->download[0] == '\0' &&
        view->mirrors.count == 0 && view->served == 0) {
        return;
    }
    buffer_add_text(page, "<h2>Mirrors and downloads</h2>\n<table class=\"values\">\n");
    if (view->copies[0] != '\0') {
        web_parts_value(page, "Copies", view->copies);
    }
    if (view->keeping[0] != '\0') {
        web_parts_value(page, "Keeper", view->keeping);
    }
    if (view->download[0] != '\0') {
        web_parts_value(page, "Coming now", view->download);
    }
    if (view->served > 0) {
        char text[80];

        (void)snprintf(text, sizeof(text), "%" PRIu64 " requests, %.1f MB", view->served,
                       (double)view->served_bytes / 1e6);
        web_parts_value(page, "Downloaded from here", text);
    }
    for (uint32_t i = 0; i < view->mirrors.count; i++) {
        const struct mirror *mirror = &view->mirrors.mirrors[i];

        web_parts_value_begin(page, mirror->dropped ? "Dropped mirror" : "Mirror");
        buffer_add_text(page, "<code>");
        web_page_text(page, mirror->url);
        buffer_add_format(page, "</code> <span class=\"dim\">%.1f MB fetched. ",
                          (double)mirror->note.bytes / 1e6);
        web_page_text(page, mirror->note.trouble);
        buffer_add_text(page, "</span>");
        web_parts_value_end(page);
    }
    buffer_add_text(page, "</table>\n");
}

/* ---- the site ------------------------------------------------------------------------ */

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct job_page *page = context;
    const struct job_view *view = &page->view;
    char title[TITLE_MAX];

    (void)query;
    print_title(title, page);
    web_page_begin(answer, title);
    add_top(answer, page);
    add_figures(answer, view);
    add_curve(answer, view);
    if (view->standing.read) {
        add_segments(answer, view);
        add_money(answer, view);
    }
    add_copies(answer, view);
    web_page_end(answer, page->now_s, "Segments and money follow from the events of the ledger.");
}

static void write_json(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct job_page *page = context;
    json_t *json = job_text_json(&page->view);

    (void)query;
    (void)!strict_json_write(answer, NULL, json, JSON_COMPACT);
    json_decref(json);
}

static void write_metrics(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct job_page *page = context;

    (void)query;
    page->source.metrics(page->source.context, answer, &page->view);
}

static enum status look(void *context, uint64_t now_ms, struct error *error)
{
    struct job_page *page = context;

    (void)error;
    page->now_s = now_ms / 1000;
    page->source.copy(page->source.context, &page->view);
    return STATUS_OK;
}

static const char *trouble(void *context)
{
    const struct job_page *page = context;

    return page->view.trouble[0] == '\0' ? NULL : page->view.trouble;
}

/* The metrics are the last one. */
static const struct web_route routes[] = {
    {"/", WEB_SERVER_PAGE, write_page},
    {"/job.json", "application/json", write_json},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", write_metrics}};

enum status job_page_open(struct job_page **page, const struct job_page_source *source,
                          const char *place, struct error *error)
{
    struct job_page *made = calloc(1, sizeof(*made));
    const struct web_site site = {.routes = routes,
                                  .route_count = sizeof(routes) / sizeof(routes[0]) -
                                                 (source->metrics == NULL),
                                  .size_max = PAGE_SIZE_MAX,
                                  .look = look,
                                  .trouble = trouble,
                                  .context = made};
    struct listen_place listen;
    enum status status;

    *page = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    made->source = *source;
    status = listen_place_read(&listen, place, error);
    if (status == STATUS_OK) {
        status = web_server_open(&made->web, &site, &listen, error);
    }
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    web_server_url(made->url, made->web, &listen);
    *page = made;
    return STATUS_OK;
}

void job_page_close(struct job_page *page)
{
    if (page != NULL) {
        web_server_close(page->web);
        free(page);
    }
}

const char *job_page_url(const struct job_page *page)
{
    return page->url;
}
