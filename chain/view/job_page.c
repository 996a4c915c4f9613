/* job_page.c - see job_page.h. */
#include "chain/view/job_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/progress.h"
#include "base/web/sheet_site.h"
#include "chain/codec/hex_data.h"
#include "chain/view/job_text.h"

#define PAGE_SIZE_MAX ((size_t)1 << 20)

struct job_page {
    struct sheet_server *web;
    struct job_page_source source;
    struct job_view view;
    char url[WEB_SERVER_URL_MAX];
};

/* ---- parts --------------------------------------------------------------------------- */

static void add_number_card(struct sheet *view, double number, const char *words)
{
    char figure[PROGRESS_NUMBER_MAX];

    progress_number(figure, number);
    sheet_add(view, SHEET_CARD, words, "%s", figure);
}

static void add_amount_card(struct sheet *view, const struct currency *currency, wei amount,
                            const char *words)
{
    char figure[WEI_TEXT_SIZE];

    currency_print_about(figure, currency, amount);
    sheet_add(view, SHEET_CARD, words, "%s", figure);
}

static bool is_ill(const struct job_view *job)
{
    return job->trouble[0] != '\0' || job->standing.alert[0] != '\0' || job->standing.claims > 0;
}

static void add_names(struct sheet *view, const struct job_view *job, const char *title)
{
    char words[JOB_CARD_WORDS_MAX];
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    /* Of several windows it is seen which one needs a look. */
    sheet_add(view, SHEET_WINDOW, NULL, "%s%.0f %% %s", is_ill(job) ? "! " : "",
              job->steps == 0 ? 0 : floor(100 * (double)job_view_done(job) / (double)job->steps),
              title);
    sheet_add(view, SHEET_TITLE, NULL, "%s%s%s", title, job->card.title[0] == '\0' ? "" : ": ",
              job->card.title);
    job_card_words(words, &job->card);
    sheet_line(view, SHEET_DIM, "%s", words);
    if (job->standing.read) {
        hex_write(key, job->standing.key.bytes, HASH32_SIZE, true);
        sheet_begin_line(view, SHEET_DIM);
        sheet_words(view, SHEET_CODE, "%s", key);
    }
}

static void add_state(struct sheet *view, const struct job_view *job)
{
    const struct job_standing *standing = &job->standing;

    sheet_begin_line(view, is_ill(job) ? SHEET_ILL : SHEET_WELL);
    sheet_words(view, SHEET_STRONG, "%s", standing->read ? standing->phase : job_view_word(job));
    if (standing->waits) {
        sheet_words(view, SHEET_PLAIN, ", waits for %s", standing->wait.text);
        if (standing->wait.until_s > standing->now_s) {
            sheet_words(view, SHEET_DIM, " (");
            sheet_when(view, SHEET_DIM, standing->wait.until_s, standing->now_s);
            sheet_words(view, SHEET_DIM, ")");
        }
    }
    if (standing->alert[0] != '\0') {
        sheet_words(view, SHEET_PLAIN, ". %s", standing->alert);
    }
    if (job->trouble[0] != '\0') {
        sheet_words(view, SHEET_PLAIN, ". %s", job->trouble);
    }
    if (standing->endpoints[0] != '\0') {
        sheet_words(view, SHEET_PLAIN, ". Endpoint %s", standing->endpoints);
    }
}

static void add_figures(struct sheet *view, const struct job_view *job)
{
    const struct loss_curve *curve = &job->curve;
    double pace = job_view_pace(job);
    double left_s = job_view_left_s(job);
    char text[64];

    (void)snprintf(text, sizeof(text), "of %" PRIu64 " steps done", job->steps);
    sheet_add(view, SHEET_CARD, text, "%" PRIu64, job_view_done(job));
    if (curve->loss.end > 0) {
        add_number_card(view, curve->loss.newest, "loss");
    }
    if (curve->held_out.end > 0) {
        add_number_card(view, curve->held_out.newest, "held-out loss");
    }
    if (isfinite(curve->accuracy)) {
        add_number_card(view, curve->accuracy * 100, "% held-out accuracy");
    }
    if (pace > 0) {
        add_number_card(view, job->tokens > 0 ? pace * (double)job->tokens : pace,
                        job->tokens > 0 ? "tokens a second" : "steps a second");
    }
    if (left_s > 0) {
        progress_time(text, left_s);
        sheet_add(view, SHEET_CARD, job_card_trains(&job->card) ? "left to train" : "left to run",
                  "%s", text);
    }
    if (job->standing.read) {
        add_amount_card(view, &job->standing.currency, job->standing.earned, "earned");
        add_amount_card(view, &job->standing.currency, job->standing.burned_client,
                        "burned of the client");
    }
}

static void add_segments(struct sheet *view, const struct job_standing *standing)
{
    struct sheet_squares squares;

    job_view_map(&squares, standing);
    sheet_add(view, SHEET_HEADING, NULL, "Segments");
    sheet_line(view, SHEET_PLAIN, "%u of %u committed, %u final; %u claims open.",
               standing->committed, standing->segments, standing->finalized, standing->claims);
    if (standing->forecast_s != 0) {
        sheet_words(view, SHEET_PLAIN, " Segment %u is final ", standing->finalized);
        sheet_when(view, SHEET_PLAIN, standing->forecast_s, standing->now_s);
        sheet_words(view, SHEET_PLAIN, " at the earliest.");
    }
    sheet_squares(view, &squares);
}

static void add_party(struct sheet *view, const char *name, const struct address *address)
{
    char text[ADDRESS_TEXT_SIZE];

    address_print(text, address);
    sheet_begin(view, SHEET_FACT, name);
    sheet_words(view, SHEET_CODE, "%s", text);
}

static void add_money(struct sheet *view, const struct job_standing *standing)
{
    const struct {
        const char *name;
        wei amount;
    } amounts[] = {{"Escrow, with fees", standing->escrow},
                   {"Earned by solvers", standing->earned},
                   {"For segments to come", standing->to_come},
                   {"For verifiers", standing->pool},
                   {"Staked", standing->stake},
                   {"Burned of the client", standing->burned_client},
                   {"Burned of solvers, or paid to seats", standing->burned_solver},
                   {"Missing, until the client resumes", standing->missing}};
    const size_t count = sizeof(amounts) / sizeof(amounts[0]) - (standing->missing == 0);

    sheet_add(view, SHEET_HEADING, NULL, "Money");
    for (size_t i = 0; i < count; i++) {
        char text[WEI_TEXT_SIZE];

        currency_print(text, &standing->currency, amounts[i].amount);
        sheet_add(view, SHEET_FACT, amounts[i].name, "%s", text);
    }
    add_party(view, "Client", &standing->client);
    if (!address_is_zero(&standing->solver)) {
        add_party(view, "Solver", &standing->solver);
    }
}

static void add_fact(struct sheet *view, const char *name, const char *text)
{
    if (text[0] != '\0') {
        sheet_add(view, SHEET_FACT, name, "%s", text);
    }
}

static void add_copies(struct sheet *view, const struct job_view *job)
{
    if (job->copies[0] == '\0' && job->keeping[0] == '\0' && job->download[0] == '\0' &&
        job->mirrors.count == 0 && job->served == 0) {
        return;
    }
    sheet_add(view, SHEET_HEADING, NULL, "Mirrors and downloads");
    add_fact(view, "Copies", job->copies);
    add_fact(view, "Keeper", job->keeping);
    add_fact(view, "Coming now", job->download);
    if (job->served > 0) {
        sheet_add(view, SHEET_FACT, "Downloaded from here", "%" PRIu64 " requests, %.1f MB",
                  job->served, (double)job->served_bytes / 1e6);
    }
    for (uint32_t i = 0; i < job->mirrors.count; i++) {
        const struct mirror *mirror = &job->mirrors.mirrors[i];

        sheet_begin(view, SHEET_FACT, mirror->dropped ? "Dropped mirror" : "Mirror");
        sheet_words(view, SHEET_CODE, "%s", mirror->url);
        sheet_words(view, SHEET_DIM, " %.1f MB fetched. %s", (double)mirror->note.bytes / 1e6,
                    mirror->note.trouble);
    }
}

void job_page_show(struct sheet *view, const struct job_view *job, const char *title)
{
    sheet_merge(view, job_text_json(job));
    add_names(view, job, title);
    add_state(view, job);
    add_figures(view, job);
    sheet_add(view, SHEET_HEADING, NULL, "Training");
    sheet_curve(view, &job->curve.loss, &job->curve.held_out);
    sheet_line(view, SHEET_DIM, "%s", job->curve_words);
    if (job->standing.read) {
        add_segments(view, &job->standing);
        add_money(view, &job->standing);
    }
    add_copies(view, job);
    sheet_add(view, SHEET_FOOTER, NULL, "Segments and money follow from the events of the ledger.");
}

/* ---- the site ------------------------------------------------------------------------ */

static enum status show_job(void *context, struct sheet *sheet, uint64_t now_ms,
                            struct error *error)
{
    struct job_page *page = context;

    (void)now_ms;
    (void)error;
    page->source.copy(page->source.context, &page->view);
    job_page_show(sheet, &page->view, page->source.title);
    if (page->source.metrics != NULL) {
        page->source.metrics(page->source.context, sheet, &page->view);
    }
    return STATUS_OK;
}

static const char *trouble(void *context)
{
    const struct job_page *page = context;

    return page->view.trouble[0] == '\0' ? NULL : page->view.trouble;
}

enum status job_page_open(struct job_page **page, const struct job_page_source *source,
                          const char *place, struct error *error)
{
    struct job_page *made = calloc(1, sizeof(*made));
    const struct sheet_site site = {.json = "/job.json",
                                    .has_metrics = source->metrics != NULL,
                                    .size_max = PAGE_SIZE_MAX,
                                    .show = show_job,
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
        status = sheet_server_open(&made->web, &site, &listen, error);
    }
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    web_server_url(made->url, sheet_server_web(made->web), &listen);
    *page = made;
    return STATUS_OK;
}

void job_page_close(struct job_page *page)
{
    if (page != NULL) {
        sheet_server_close(page->web);
        free(page);
    }
}

const char *job_page_url(const struct job_page *page)
{
    return page->url;
}
