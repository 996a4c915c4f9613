/* node_page.c - see node_page.h. */
#include "prover/node/node_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/web/web_page.h"
#include "base/web/web_parts.h"
#include "base/web/web_plot.h"
#include "chain/money/money_page.h"
#include "chain/view/job_view.h"
#include "prover/node/node_view.h"

struct node_page {
    struct web_server *web;
    json_t *view; /* NULL: there is none yet */
    uint64_t now_s;
    struct curve loss; /* of the job that is drawn */
    struct curve held_out;
    char path[FILE_PATH_MAX];
};

/* ---- parts of the page ---------------------------------------------------------------- */

static void add_short_key(struct buffer *page, const char *key)
{
    buffer_add_text(page, "<code title=\"");
    web_page_text(page, key);
    buffer_add_text(page, "\">");
    for (int i = 0; i < 16 && key[i] != '\0'; i++) {
        char letter[2] = {key[i], '\0'};

        web_page_text(page, letter);
    }
    buffer_add_text(page, "&#8230;</code>");
}

static void add_top(struct buffer *page, const struct node_page *shown)
{
    const char *trouble = node_view_trouble(shown->view, shown->now_s);
    int64_t lost = strict_json_number_or_0(shown->view, "lost");
    struct money money;
    bool counted = node_view_money(&money, shown->view);

    buffer_add_text(page, "<h1>Lockstep solver</h1>\n<p class=\"dim\"><code>");
    web_page_text(page, strict_json_text_or(shown->view, "account", ""));
    buffer_add_format(page, "</code></p>\n<p class=\"word %s\"><b>%s</b>%s%s. ",
                      trouble == NULL && lost == 0 ? "well" : "ill",
                      trouble != NULL ? "Not well"
                      : lost == 0     ? "Well"
                                      : "Works, and has lost jobs",
                      trouble == NULL ? "" : ": ", trouble == NULL ? "" : trouble);
    web_page_text(page, strict_json_text_or(shown->view, "trouble", ""));
    if (strict_json_text_or(shown->view, "endpoints", "")[0] != '\0') {
        buffer_add_text(page, " Endpoint ");
        web_page_text(page, strict_json_text_or(shown->view, "endpoints", ""));
        buffer_add_text(page, ". ");
    }
    if (strict_json_text_or(shown->view, "nobody_fetches", "")[0] != '\0') {
        buffer_add_text(page, " Takes only jobs without seats: ");
        web_page_text(page, strict_json_text_or(shown->view, "nobody_fetches", ""));
    } else {
        buffer_add_text(page, " The ledger names ");
        web_page_text(page, strict_json_text_or(shown->view, "contact", ""));
    }
    if (strict_json_text_or(shown->view, "contact_trouble", "")[0] != '\0') {
        buffer_add_text(page, ". ");
        web_page_text(page, strict_json_text_or(shown->view, "contact_trouble", ""));
    }
    buffer_add_text(page, ". <span class=\"dim\">Started ");
    web_page_when(page, (uint64_t)strict_json_number_or_0(shown->view, "started"), shown->now_s);
    buffer_add_text(page, "</span></p>\n<div class=\"cards\">\n");
    web_parts_count(page, (uint64_t)strict_json_number_or_0(shown->view, "paid"), "jobs paid");
    web_parts_count(page, (uint64_t)strict_json_number_or_0(shown->view, "lost"), "jobs lost");
    if (counted) {
        money_page_cards(page, &money);
    }
    buffer_add_text(page, "</div>\n");
    if (counted) {
        money_page_write(page, &money);
    }
}

static void add_slots(struct buffer *page, const json_t *slots)
{
    static const char *const headings[] = {"Device", "Does", "Job"};
    const json_t *slot;
    size_t at;

    buffer_add_text(page, "<h2>Devices</h2>\n");
    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    json_array_foreach(slots, at, slot)
    {
        buffer_add_text(page, "<tr><td>");
        web_page_text(page, strict_json_text_or(slot, "device", ""));
        buffer_add_text(page, "</td><td>");
        web_page_text(page, strict_json_text_or(slot, "does", ""));
        buffer_add_text(page, "</td><td class=\"own\">");
        if (strict_json_text_or(slot, "job", "")[0] != '\0') {
            add_short_key(page, strict_json_text_or(slot, "job", ""));
        }
        web_page_text(page, strict_json_text_or(slot, "why", ""));
        buffer_add_text(page, "</td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

/* One digit of "squares" for each square: its mark. */
static void add_squares(struct buffer *page, const json_t *job)
{
    const char *words[WEB_SQUARES_MARKS];
    uint8_t marks[JOB_VIEW_CELLS_MAX];
    const char *digits = strict_json_text_or(job, "squares", "");
    struct web_squares squares = {.name = "segments by state",
                                  .unit = "segment",
                                  .marks = marks,
                                  .total = (uint64_t)strict_json_number_or_0(job, "segments"),
                                  .words = words};

    squares.each = job_view_each((uint32_t)squares.total, JOB_VIEW_CELLS_MAX);
    for (int i = 0; i < JOB_VIEW_MARKS; i++) {
        words[i] = job_view_mark_word((enum job_view_mark)i);
    }
    while (squares.count < JOB_VIEW_CELLS_MAX && digits[squares.count] >= '0' &&
           digits[squares.count] < '0' + JOB_VIEW_MARKS) {
        marks[squares.count] = (uint8_t)(digits[squares.count] - '0');
        squares.count++;
    }
    web_parts_squares(page, &squares);
}

/* From points of a step and its value. */
static void take_points(struct curve *curve, const json_t *job, const char *name)
{
    const json_t *point;
    size_t at;

    curve_init(curve, (uint64_t)strict_json_number_or_0(job, "steps"));
    json_array_foreach(json_object_get(job, name), at, point)
    {
        curve_add(curve, (uint64_t)json_integer_value(json_array_get(point, 0)),
                  json_number_value(json_array_get(point, 1)));
    }
}

static void add_curve(struct buffer *page, struct node_page *shown, const json_t *job)
{
    take_points(&shown->loss, job, "losses");
    take_points(&shown->held_out, job, "held_out_losses");
    if (shown->loss.end > 0) {
        web_plot_curve(page, &shown->loss, &shown->held_out);
    }
}

static void add_names(struct buffer *page, const json_t *job)
{
    buffer_add_text(page, "<p><b>");
    web_page_text(page, strict_json_text_or(job, "title", ""));
    buffer_add_text(page, "</b></p>\n<p>");
    web_page_text(page, strict_json_text_or(job, "about", ""));
    buffer_add_text(page, "</p>\n");
}

static void add_jobs(struct buffer *page, struct node_page *shown)
{
    const struct currency currency = node_view_currency(shown->view);
    const json_t *jobs = json_object_get(shown->view, "jobs");
    const json_t *job;
    size_t at;

    buffer_add_text(page, "<h2>Jobs</h2>\n");
    if (json_array_size(jobs) == 0) {
        buffer_add_text(page, "<p class=\"dim\">It holds none now.</p>\n");
        return;
    }
    json_array_foreach(jobs, at, job)
    {
        const json_t *loss = json_object_get(job, "loss");
        char reward[NODE_VIEW_AMOUNT_SIZE];
        char stake[NODE_VIEW_AMOUNT_SIZE];

        node_view_amount(reward, &currency, job, "segment_reward_wei");
        node_view_amount(stake, &currency, job, "stake_wei");
        buffer_add_text(page, "<section class=\"job\"><h3>");
        add_short_key(page, strict_json_text_or(job, "job", ""));
        buffer_add_text(page, " ");
        web_page_text(page, strict_json_text_or(job, "state", ""));
        buffer_add_text(page, "</h3>\n");
        add_names(page, job);
        buffer_add_format(
            page,
            "<p class=\"dim\">%" PRId64 " of %" PRId64 " steps trained, %" PRId64 " of %" PRId64
            " segments final, %" PRId64 " claims open; %s for a segment, %s staked",
            strict_json_number_or_0(job, "trained"), strict_json_number_or_0(job, "steps"),
            strict_json_number_or_0(job, "final"), strict_json_number_or_0(job, "segments"),
            strict_json_number_or_0(job, "open_claims"), reward, stake);
        if (json_is_real(loss)) {
            buffer_add_format(page, ", loss %.4g", json_real_value(loss));
        }
        buffer_add_text(page, "</p>\n");
        if (strict_json_text_or(job, "trouble", "")[0] != '\0') {
            buffer_add_text(page, "<p class=\"word ill\">");
            web_page_text(page, strict_json_text_or(job, "trouble", ""));
            buffer_add_text(page, "</p>\n");
        }
        add_squares(page, job);
        add_curve(page, shown, job);
        buffer_add_text(page, "</section>\n");
    }
}

static void add_offers(struct buffer *page, const json_t *view)
{
    const struct currency currency = node_view_currency(view);
    const json_t *offers = json_object_get(view, "offers");
    static const char *const headings[] = {"Job", "An hour earns"};
    const json_t *offer;
    size_t at;

    if (json_array_size(offers) == 0) {
        return;
    }
    buffer_add_text(page, "<h2>Open jobs</h2>\n");
    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    json_array_foreach(offers, at, offer)
    {
        bool refused = json_is_true(json_object_get(offer, "refused"));
        char hour[NODE_VIEW_AMOUNT_SIZE];

        node_view_amount(hour, &currency, offer, "hour_wei");
        buffer_add_text(page, "<tr><td>");
        add_short_key(page, strict_json_text_or(offer, "job", ""));
        buffer_add_text(page, "</td><td class=\"own\">");
        web_page_text(page, refused ? "not taken: "
                            : strict_json_text_or(offer, "hour_wei", "")[0] != '\0'
                                ? hour
                                : "not measured yet");
        web_page_text(page, refused ? strict_json_text_or(offer, "why", "") : "");
        buffer_add_text(page, "</td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

/* ---- the site ---------------------------------------------------------------------------- */

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    struct node_page *page = context;

    (void)query;
    web_page_begin(answer, node_view_trouble(page->view, page->now_s) == NULL
                               ? "Lockstep solver"
                               : "! Lockstep solver");
    add_top(answer, page);
    add_slots(answer, json_object_get(page->view, "slots"));
    add_jobs(answer, page);
    add_offers(answer, page->view);
    web_page_end(answer, page->now_s,
                 "A job is paid when every segment is final and the money is "
                 "withdrawn.");
}

static void write_json(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct node_page *page = context;

    (void)query;
    (void)!strict_json_write(answer, NULL, page->view, JSON_COMPACT);
}

static void add_gauge(struct buffer *answer, const char *name, const char *help, int64_t value)
{
    buffer_add_format(answer, "# HELP %s %s\n# TYPE %s gauge\n%s %" PRId64 "\n", name, help, name,
                      name, value);
}

static int64_t sum_of_jobs(const json_t *view, const char *name)
{
    const json_t *job;
    int64_t sum = 0;
    size_t at;

    json_array_foreach(json_object_get(view, "jobs"), at, job)
    {
        sum += strict_json_number_or_0(job, name);
    }
    return sum;
}

static void write_metrics(struct buffer *answer, void *context, const struct web_query *query)
{
    const json_t *view = ((const struct node_page *)context)->view;

    (void)query;
    add_gauge(answer, "lockstep_solver_alive_time_seconds", "The node's last sign of life.",
              strict_json_number_or_0(view, "alive"));
    add_gauge(answer, "lockstep_solver_jobs", "Jobs that are begun and not paid.",
              (int64_t)json_array_size(json_object_get(view, "jobs")));
    add_gauge(answer, "lockstep_solver_jobs_paid", "Jobs that are paid.",
              strict_json_number_or_0(view, "paid"));
    add_gauge(answer, "lockstep_solver_jobs_lost", "Jobs that are lost.",
              strict_json_number_or_0(view, "lost"));
    add_gauge(answer, "lockstep_solver_open_claims", "Claims that are open in its jobs.",
              sum_of_jobs(view, "open_claims"));
    add_gauge(answer, "lockstep_solver_refused_segments",
              "Segments that a client or a keeper refuses, void when claims have had their time.",
              sum_of_jobs(view, "refused_segments"));
}

static enum status look(void *context, uint64_t now_ms, struct error *error)
{
    struct node_page *page = context;

    json_decref(page->view);
    page->view = NULL;
    page->now_s = now_ms / 1000;
    return node_view_read(&page->view, page->path, error);
}

static const char *trouble(void *context)
{
    const struct node_page *page = context;

    return node_view_trouble(page->view, page->now_s);
}

static const struct web_route routes[] = {{"/", WEB_SERVER_PAGE, write_page},
                                          {"/node.json", "application/json", write_json},
                                          {"/metrics", WEB_SERVER_METRICS, write_metrics}};

enum status node_page_open(struct node_page **page, const char *path,
                           const struct listen_place *place, struct error *error)
{
    struct node_page *made = calloc(1, sizeof(*made));
    const struct web_site site = {.routes = routes,
                                  .route_count = sizeof(routes) / sizeof(routes[0]),
                                  .size_max = 4 * (size_t)NODE_VIEW_SIZE_MAX,
                                  .look = look,
                                  .trouble = trouble,
                                  .context = made};
    enum status status;

    *page = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    (void)snprintf(made->path, sizeof(made->path), "%s", path);
    status = web_server_open(&made->web, &site, place, error);
    if (status != STATUS_OK) {
        node_page_close(made);
        return status;
    }
    *page = made;
    return STATUS_OK;
}

void node_page_close(struct node_page *page)
{
    if (page != NULL) {
        web_server_close(page->web);
        json_decref(page->view);
        free(page);
    }
}

void node_page_url(char url[WEB_SERVER_URL_MAX], const struct node_page *page,
                   const struct listen_place *place)
{
    web_server_url(url, page->web, place);
}
