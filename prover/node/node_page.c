/* node_page.c - see node_page.h. */
#include "prover/node/node_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/web/sheet_site.h"
#include "chain/money/money_page.h"
#include "chain/view/job_view.h"
#include "prover/node/node_view.h"

struct node_page {
    struct sheet_server *web;
    json_t *view; /* NULL: there is none yet */
    uint64_t now_s;
    char path[FILE_PATH_MAX];
};

/* ---- the view ------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
    return strict_json_text_or(object, name, "");
}

static uint64_t number_of(const json_t *object, const char *name)
{
    int64_t number = strict_json_number_or_0(object, name);

    return number < 0 ? 0 : (uint64_t)number;
}

/* What is wrong, and where it is reached. */
static void add_state(struct sheet *view, const json_t *made, uint64_t now_s)
{
    const char *trouble = node_view_trouble(made, now_s);
    bool lost = number_of(made, "lost") > 0;

    sheet_begin_line(view, trouble == NULL && !lost ? SHEET_WELL : SHEET_ILL);
    sheet_words(view, SHEET_STRONG, "%s",
                trouble != NULL ? "Not well"
                : lost          ? "Works, and has lost jobs"
                                : "Well");
    sheet_words(view, SHEET_PLAIN, "%s%s. %s", trouble == NULL ? "" : ": ",
                trouble == NULL ? "" : trouble, text_of(made, "trouble"));
    if (text_of(made, "endpoints")[0] != '\0') {
        sheet_words(view, SHEET_PLAIN, " Endpoint %s. ", text_of(made, "endpoints"));
    }
    if (text_of(made, "nobody_fetches")[0] != '\0') {
        sheet_words(view, SHEET_PLAIN, " Takes only jobs without seats: %s",
                    text_of(made, "nobody_fetches"));
    } else {
        sheet_words(view, SHEET_PLAIN, " The ledger names %s", text_of(made, "contact"));
    }
    if (text_of(made, "contact_trouble")[0] != '\0') {
        sheet_words(view, SHEET_PLAIN, ". %s", text_of(made, "contact_trouble"));
    }
    sheet_words(view, SHEET_PLAIN, ". ");
    sheet_words(view, SHEET_DIM, "Started ");
    sheet_when(view, SHEET_DIM, number_of(made, "started"), now_s);
}

static void add_top(struct sheet *view, const json_t *made, uint64_t now_s)
{
    struct money money;
    bool counted = node_view_money(&money, made);

    sheet_add(view, SHEET_TITLE, NULL, "Lockstep solver");
    sheet_begin_line(view, SHEET_DIM);
    sheet_words(view, SHEET_CODE, "%s", text_of(made, "account"));
    add_state(view, made, now_s);
    sheet_add(view, SHEET_CARD, "jobs paid", "%" PRIu64, number_of(made, "paid"));
    sheet_add(view, SHEET_CARD, "jobs lost", "%" PRIu64, number_of(made, "lost"));
    if (counted) {
        money_page_cards(view, &money);
        money_page_write(view, &money);
    }
}

static void add_slots(struct sheet *view, const json_t *slots)
{
    static const char *const headings[] = {"Device", "Does", "Job"};
    const json_t *slot;
    size_t at;

    sheet_add(view, SHEET_HEADING, NULL, "Devices");
    sheet_columns(view, headings, sizeof(headings) / sizeof(headings[0]));
    json_array_foreach(slots, at, slot)
    {
        sheet_begin(view, SHEET_ROW, NULL);
        sheet_add(view, SHEET_CELL, NULL, "%s", text_of(slot, "device"));
        sheet_add(view, SHEET_CELL, NULL, "%s", text_of(slot, "does"));
        sheet_begin(view, SHEET_WIDE, NULL);
        if (text_of(slot, "job")[0] != '\0') {
            sheet_words(view, SHEET_KEY, "%s", text_of(slot, "job"));
        }
        sheet_words(view, SHEET_PLAIN, "%s", text_of(slot, "why"));
    }
}

/* One digit of "squares" for each square: its mark. */
static void add_squares(struct sheet *view, const json_t *job)
{
    uint8_t marks[JOB_VIEW_CELLS_MAX];
    const char *digits = text_of(job, "squares");
    struct sheet_squares squares = {.name = "segments by state",
                                    .unit = "segment",
                                    .marks = marks,
                                    .total = number_of(job, "segments")};

    squares.each = job_view_each((uint32_t)squares.total, JOB_VIEW_CELLS_MAX);
    for (int i = 0; i < JOB_VIEW_MARKS; i++) {
        squares.words[i] = job_view_mark_word((enum job_view_mark)i);
    }
    while (squares.count < JOB_VIEW_CELLS_MAX && digits[squares.count] >= '0' &&
           digits[squares.count] < '0' + JOB_VIEW_MARKS) {
        marks[squares.count] = (uint8_t)(digits[squares.count] - '0');
        squares.count++;
    }
    sheet_squares(view, &squares);
}

/* From points of a step and its value; NULL without memory. */
static struct curve *take_points(const json_t *job, const char *name)
{
    struct curve *curve = malloc(sizeof(*curve));
    const json_t *point;
    size_t at;

    if (curve == NULL) {
        return NULL;
    }
    curve_init(curve, number_of(job, "steps"));
    json_array_foreach(json_object_get(job, name), at, point)
    {
        curve_add(curve, (uint64_t)json_integer_value(json_array_get(point, 0)),
                  json_number_value(json_array_get(point, 1)));
    }
    return curve;
}

static void add_curve(struct sheet *view, const json_t *job)
{
    struct curve *loss = take_points(job, "losses");
    struct curve *held_out = take_points(job, "held_out_losses");

    if (loss != NULL && held_out != NULL && loss->end > 0) {
        sheet_curve(view, loss, held_out);
    }
    free(loss);
    free(held_out);
}

static void add_job(struct sheet *view, const json_t *job, const struct currency *currency)
{
    const json_t *loss = json_object_get(job, "loss");
    char reward[NODE_VIEW_AMOUNT_SIZE];
    char stake[NODE_VIEW_AMOUNT_SIZE];

    node_view_amount(reward, currency, job, "segment_reward_wei");
    node_view_amount(stake, currency, job, "stake_wei");
    sheet_begin(view, SHEET_SECTION, NULL);
    sheet_begin(view, SHEET_SUBHEADING, NULL);
    sheet_words(view, SHEET_KEY, "%s", text_of(job, "job"));
    sheet_words(view, SHEET_PLAIN, " %s", text_of(job, "state"));
    sheet_begin_line(view, SHEET_PLAIN);
    sheet_words(view, SHEET_STRONG, "%s", text_of(job, "title"));
    sheet_line(view, SHEET_PLAIN, "%s", text_of(job, "about"));
    sheet_line(view, SHEET_DIM,
               "%" PRIu64 " of %" PRIu64 " steps trained, %" PRIu64 " of %" PRIu64
               " segments final, %" PRIu64 " claims open; %s for a segment, %s staked",
               number_of(job, "trained"), number_of(job, "steps"), number_of(job, "final"),
               number_of(job, "segments"), number_of(job, "open_claims"), reward, stake);
    if (json_is_real(loss)) {
        sheet_words(view, SHEET_PLAIN, ", loss %.4g", json_real_value(loss));
    }
    if (text_of(job, "trouble")[0] != '\0') {
        sheet_line(view, SHEET_ILL, "%s", text_of(job, "trouble"));
    }
    add_squares(view, job);
    add_curve(view, job);
    sheet_begin(view, SHEET_SECTION_END, NULL);
}

static void add_jobs(struct sheet *view, const json_t *made, const struct currency *currency)
{
    const json_t *jobs = json_object_get(made, "jobs");
    const json_t *job;
    size_t at;

    sheet_add(view, SHEET_HEADING, NULL, "Jobs");
    if (json_array_size(jobs) == 0) {
        sheet_line(view, SHEET_DIM, "It holds none now.");
    }
    json_array_foreach(jobs, at, job)
    {
        add_job(view, job, currency);
    }
}

static void add_offers(struct sheet *view, const json_t *made, const struct currency *currency)
{
    static const char *const headings[] = {"Job", "An hour earns"};
    const json_t *offers = json_object_get(made, "offers");
    const json_t *offer;
    size_t at;

    if (json_array_size(offers) == 0) {
        return;
    }
    sheet_add(view, SHEET_HEADING, NULL, "Open jobs");
    sheet_columns(view, headings, sizeof(headings) / sizeof(headings[0]));
    json_array_foreach(offers, at, offer)
    {
        bool refused = json_is_true(json_object_get(offer, "refused"));
        char hour[NODE_VIEW_AMOUNT_SIZE];

        node_view_amount(hour, currency, offer, "hour_wei");
        sheet_begin(view, SHEET_ROW, NULL);
        sheet_begin(view, SHEET_CELL, NULL);
        sheet_words(view, SHEET_KEY, "%s", text_of(offer, "job"));
        sheet_add(view, SHEET_WIDE, NULL, "%s%s",
                  refused                                 ? "not taken: "
                  : text_of(offer, "hour_wei")[0] != '\0' ? hour
                                                          : "not measured yet",
                  refused ? text_of(offer, "why") : "");
    }
}

void node_page_show(struct sheet *view, json_t *made, uint64_t now_s)
{
    const struct currency currency = node_view_currency(made);

    sheet_merge(view, json_incref(made));
    sheet_add(view, SHEET_WINDOW, NULL, "%sLockstep solver",
              node_view_trouble(made, now_s) == NULL ? "" : "! ");
    add_top(view, made, now_s);
    add_slots(view, json_object_get(made, "slots"));
    add_jobs(view, made, &currency);
    add_offers(view, made, &currency);
    sheet_add(view, SHEET_FOOTER, NULL,
              "A job is paid when every segment is final and the money is withdrawn.");
}

/* ---- the site ---------------------------------------------------------------------------- */

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

static void show_figures(struct sheet *sheet, const json_t *view)
{
    sheet_figure(sheet, "lockstep_solver_alive_time_seconds", "gauge",
                 "The node's last sign of life.", (double)strict_json_number_or_0(view, "alive"));
    sheet_figure(sheet, "lockstep_solver_jobs", "gauge", "Jobs that are begun and not paid.",
                 (double)json_array_size(json_object_get(view, "jobs")));
    sheet_figure(sheet, "lockstep_solver_jobs_paid", "gauge", "Jobs that are paid.",
                 (double)strict_json_number_or_0(view, "paid"));
    sheet_figure(sheet, "lockstep_solver_jobs_lost", "gauge", "Jobs that are lost.",
                 (double)strict_json_number_or_0(view, "lost"));
    sheet_figure(sheet, "lockstep_solver_open_claims", "gauge", "Claims that are open in its jobs.",
                 (double)sum_of_jobs(view, "open_claims"));
    sheet_figure(
        sheet, "lockstep_solver_refused_segments", "gauge",
        "Segments that a client or a keeper refuses, void when claims have had their time.",
        (double)sum_of_jobs(view, "refused_segments"));
}

static enum status show_node(void *context, struct sheet *sheet, uint64_t now_ms,
                             struct error *error)
{
    struct node_page *page = context;

    json_decref(page->view);
    page->view = NULL;
    page->now_s = now_ms / 1000;
    TRY(node_view_read(&page->view, page->path, error));
    node_page_show(sheet, page->view, page->now_s);
    show_figures(sheet, page->view);
    return STATUS_OK;
}

static const char *trouble(void *context)
{
    const struct node_page *page = context;

    return node_view_trouble(page->view, page->now_s);
}

enum status node_page_open(struct node_page **page, const char *path,
                           const struct listen_place *place, struct error *error)
{
    struct node_page *made = calloc(1, sizeof(*made));
    const struct sheet_site site = {.json = "/node.json",
                                    .has_metrics = true,
                                    .size_max = 4 * (size_t)NODE_VIEW_SIZE_MAX,
                                    .show = show_node,
                                    .trouble = trouble,
                                    .context = made};
    enum status status;

    *page = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    (void)snprintf(made->path, sizeof(made->path), "%s", path);
    status = sheet_server_open(&made->web, &site, place, error);
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
        sheet_server_close(page->web);
        json_decref(page->view);
        free(page);
    }
}

void node_page_url(char url[WEB_SERVER_URL_MAX], const struct node_page *page,
                   const struct listen_place *place)
{
    web_server_url(url, sheet_server_web(page->web), place);
}
