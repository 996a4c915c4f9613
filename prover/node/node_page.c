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
#include "chain/view/job_view.h"
#include "prover/node/node_view.h"

#define SQUARES_MAX 200 /* of a job: more segments share one */

struct node_page {
    struct web_server *web;
    json_t *view; /* NULL: there is none yet */
    uint64_t now_s;
    char path[FILE_PATH_MAX];
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text == NULL ? "" : text;
}

static int64_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* ---- parts of the page ---------------------------------------------------------------- */

static void add_number_card(struct buffer *page, int64_t number, const char *words)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    web_parts_card(page, text, words);
}

static void add_money_card(struct buffer *page, const json_t *view, const char *name,
                           const char *words)
{
    char text[NODE_VIEW_AMOUNT_SIZE];

    node_view_amount(text, view, name);
    web_parts_card(page, text, words);
}

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

    buffer_add_text(page, "<h1>Lockstep solver</h1>\n<p class=\"dim\">");
    web_page_text(page, text_of(shown->view, "account"));
    buffer_add_format(page, "</p>\n<p class=\"word %s\"><b>%s</b>%s%s. ",
                      trouble == NULL ? "well" : "ill", trouble == NULL ? "Well" : "Not well",
                      trouble == NULL ? "" : ": ", trouble == NULL ? "" : trouble);
    web_page_text(page, text_of(shown->view, "trouble"));
    buffer_add_text(page, " <span class=\"dim\">Started ");
    web_page_when(page, (uint64_t)number_of(shown->view, "started"), shown->now_s);
    buffer_add_text(page, "</span></p>\n<div class=\"cards\">\n");
    add_number_card(page, number_of(shown->view, "paid"), "jobs paid");
    add_money_card(page, shown->view, "earned_wei", "earned by them");
    add_money_card(page, shown->view, "purse_wei", "in the account");
    add_money_card(page, shown->view, "owed_wei", "owed to it");
    add_number_card(page, number_of(shown->view, "lost"), "jobs lost");
    buffer_add_text(page, "</div>\n");
}

static void add_slots(struct buffer *page, const json_t *slots)
{
    const json_t *slot;
    size_t at;

    buffer_add_text(page, "<h2>Devices</h2>\n<table><tr><th>Device</th><th>Does</th><th>Job</th>"
                          "</tr>\n");
    json_array_foreach(slots, at, slot)
    {
        buffer_add_text(page, "<tr><td>");
        web_page_text(page, text_of(slot, "device"));
        buffer_add_text(page, "</td><td>");
        web_page_text(page, text_of(slot, "does"));
        buffer_add_text(page, "</td><td class=\"own\">");
        if (text_of(slot, "job")[0] != '\0') {
            add_short_key(page, text_of(slot, "job"));
        }
        web_page_text(page, text_of(slot, "why"));
        buffer_add_text(page, "</td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

static const char *const mark_words[] = {"to come", "committed", "final"};
#define MARK_COUNT (sizeof(mark_words) / sizeof(mark_words[0]))

static void add_squares(struct buffer *page, const json_t *job)
{
    uint32_t segments = (uint32_t)number_of(job, "segments");
    uint8_t marks[SQUARES_MAX];
    struct web_squares squares = {.marks = marks,
                                  .each = job_view_each(segments, SQUARES_MAX),
                                  .words = mark_words,
                                  .word_count = MARK_COUNT};

    squares.count = (segments + squares.each - 1) / squares.each;
    for (uint32_t i = 0; i < squares.count; i++) {
        int64_t first = (int64_t)i * squares.each;

        marks[i] = first < number_of(job, "final") ? 2 : first < number_of(job, "committed");
    }
    web_parts_squares(page, &squares);
}

static void add_jobs(struct buffer *page, const json_t *jobs)
{
    const json_t *job;
    size_t at;

    buffer_add_text(page, "<h2>Jobs</h2>\n");
    if (json_array_size(jobs) == 0) {
        buffer_add_text(page, "<p class=\"dim\">It holds none now.</p>\n");
        return;
    }
    web_parts_key(page, mark_words, MARK_COUNT);
    json_array_foreach(jobs, at, job)
    {
        const json_t *loss = json_object_get(job, "loss");
        char reward[NODE_VIEW_AMOUNT_SIZE];
        char stake[NODE_VIEW_AMOUNT_SIZE];

        node_view_amount(reward, job, "segment_reward_wei");
        node_view_amount(stake, job, "stake_wei");
        buffer_add_text(page, "<section class=\"job\"><h3>");
        add_short_key(page, text_of(job, "job"));
        buffer_add_text(page, " ");
        web_page_text(page, text_of(job, "state"));
        buffer_add_format(
            page,
            "</h3>\n<p class=\"dim\">%" PRId64 " of %" PRId64 " steps trained, %" PRId64
            " of %" PRId64 " segments final, %" PRId64 " claims open; %s for a segment, %s staked",
            number_of(job, "trained"), number_of(job, "steps"), number_of(job, "final"),
            number_of(job, "segments"), number_of(job, "open_claims"), reward, stake);
        if (json_is_real(loss)) {
            buffer_add_format(page, ", loss %.4g", json_real_value(loss));
        }
        buffer_add_text(page, "</p>\n<p>");
        web_page_text(page, text_of(job, "trouble"));
        buffer_add_text(page, "</p>\n");
        add_squares(page, job);
        buffer_add_text(page, "</section>\n");
    }
}

static void add_offers(struct buffer *page, const json_t *offers)
{
    const json_t *offer;
    size_t at;

    if (json_array_size(offers) == 0) {
        return;
    }
    buffer_add_text(page,
                    "<h2>Open jobs</h2>\n<table><tr><th>Job</th><th>An hour earns</th></tr>\n");
    json_array_foreach(offers, at, offer)
    {
        bool refused = json_is_true(json_object_get(offer, "refused"));
        char hour[NODE_VIEW_AMOUNT_SIZE];

        node_view_amount(hour, offer, "hour_wei");
        buffer_add_text(page, "<tr><td>");
        add_short_key(page, text_of(offer, "job"));
        buffer_add_text(page, "</td><td class=\"own\">");
        web_page_text(page, refused ? "not taken: " : hour);
        web_page_text(page, refused ? text_of(offer, "why") : "");
        buffer_add_text(page, "</td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

/* ---- the site ---------------------------------------------------------------------------- */

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct node_page *page = context;

    (void)query;
    web_page_begin(answer, node_view_trouble(page->view, page->now_s) == NULL
                               ? "Lockstep solver"
                               : "! Lockstep solver");
    add_top(answer, page);
    add_slots(answer, json_object_get(page->view, "slots"));
    add_jobs(answer, json_object_get(page->view, "jobs"));
    add_offers(answer, json_object_get(page->view, "offers"));
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
                                          {"/node.json", "application/json", write_json}};

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
