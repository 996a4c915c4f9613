/* board_page.c - see board_page.h. */
#include "verifier/status/board_page.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/sheet/sheet.h"
#include "chain/game/policy/policy.h"
#include "chain/game/terms.h"
#include "chain/job/board.h"
#include "chain/job/job_status.h"
#include "chain/view/job_view.h"
#include "proofs/run/known_pace.h"

#define PAGE_SIZE_MAX ((size_t)16 << 20)
#define SILENT_S      300
#define SQUARES_MAX   160 /* of a job: more segments share one */
#define WORDS_MAX     100 /* of a search */
#define ALARMS_MAX    8   /* that are shown */

struct board_page {
    struct web_server *web;
    struct board_view *view;
    uint64_t now_s;
};

/* A job that is shown, and what it is sorted by. */
struct shown_job {
    const struct job_record *job;
    wei reward; /* of a segment, today */
    wei hour;   /* of this machine; 0: not known */
    wei million;
    uint64_t number; /* in the order of opening */
};

/* Under the lock. */
static bool is_silent(const struct board_page *page)
{
    return page->view->followed_s + SILENT_S < page->now_s;
}

/* ---- choosing ------------------------------------------------------------------------- */

static bool has_words(const char *text, const char *words)
{
    size_t length = strlen(words);

    for (; strlen(text) >= length; text++) {
        if (strncasecmp(text, words, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Words are a part of the title, the model, a key, a job id or an address. */
static bool is_found(const struct job_record *job, const char *words)
{
    char text[HEX_SIZE(HASH32_SIZE)];
    char address[ADDRESS_TEXT_SIZE];

    if (has_words(job->card.title, words) || has_words(job->card.model, words)) {
        return true;
    }
    words += strncmp(words, "0x", 2) == 0 ? 2 : 0;
    hex_encode(text, job->key.bytes, HASH32_SIZE);
    if (has_words(text, words)) {
        return true;
    }
    hex_encode(text, job->terms.job_id.bytes, DIGEST_SIZE);
    if (has_words(text, words)) {
        return true;
    }
    address_print(address, &job->client);
    if (has_words(address, words)) {
        return true;
    }
    address_print(address, &job->state.solver);
    return has_words(address, words);
}

static bool is_wanted(const struct job_record *job, const char *is, uint64_t now_s)
{
    const char *phase = board_phase(job, now_s);

    return strcmp(is, "open") == 0      ? strcmp(phase, "open") == 0
           : strcmp(is, "running") == 0 ? job->state.phase == GAME_PHASE_RUNNING
           : strcmp(is, "over") == 0
               ? job->state.phase == GAME_PHASE_CLOSED || strcmp(phase, "expired") == 0
               : true;
}

static struct shown_job look_at(const struct job_record *job, uint64_t number, const char *device)
{
    struct shown_job shown = {.job = job, .number = number, .reward = job->terms.reward};
    const struct game_terms *terms = &job->terms;
    struct known_pace known;
    struct policy_pace pace;
    struct error none;

    error_init(&none);
    if (known_pace_find(&known, &terms->job_id, device, &none) == STATUS_OK && known.step_ns > 0) {
        pace.segment_ms = (uint64_t)((double)known.step_ns * terms->segment_steps / 1e6) + 1;
        shown.hour = policy_hour(shown.reward, &pace);
        shown.million = known.tokens == 0 || known.tokens > UINT64_MAX / terms->segment_steps
                            ? 0
                            : shown.reward * 1000000 / (known.tokens * terms->segment_steps);
    }
    return shown;
}

static int order(wei left, wei right)
{
    return (left < right) - (left > right); /* most first */
}

static int by_newest(const void *left, const void *right)
{
    return order(((const struct shown_job *)left)->number,
                 ((const struct shown_job *)right)->number);
}

static int by_hour(const void *left, const void *right)
{
    int first =
        order(((const struct shown_job *)left)->hour, ((const struct shown_job *)right)->hour);

    return first != 0 ? first : by_newest(left, right);
}

static int by_reward(const void *left, const void *right)
{
    const struct shown_job *a = left;
    const struct shown_job *b = right;
    int first = order(a->reward * a->job->state.segments, b->reward * b->job->state.segments);

    return first != 0 ? first : by_newest(left, right);
}

/* Least first: who has little finds what it can afford. */
static int by_stake(const void *left, const void *right)
{
    int first = order(((const struct shown_job *)right)->job->terms.stake,
                      ((const struct shown_job *)left)->job->terms.stake);

    return first != 0 ? first : by_newest(left, right);
}

static int by_deadline(const void *left, const void *right)
{
    int first = order(((const struct shown_job *)right)->job->terms.deadline_s,
                      ((const struct shown_job *)left)->job->terms.deadline_s);

    return first != 0 ? first : by_newest(left, right);
}

static const struct {
    const char *name;
    const char *words;
    int (*compare)(const void *left, const void *right);
} sorts[] = {{"newest", "newest", by_newest},
             {"hour", "an hour earns most", by_hour},
             {"reward", "highest reward", by_reward},
             {"stake", "smallest stake", by_stake},
             {"deadline", "nearest deadline", by_deadline}};
#define SORT_COUNT (sizeof(sorts) / sizeof(sorts[0]))

static const struct {
    const char *name;
    const char *words;
} kinds[] = {{"", "all"}, {"open", "open"}, {"running", "running"}, {"over", "over"}};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* What the query asks for; unknown words mean the first of their kind. */
struct wish {
    char words[WORDS_MAX];
    size_t kind;
    size_t sort;
};

static struct wish read_wish(const struct web_query *query)
{
    const char *words = web_query_text(query, "q");
    const char *is = web_query_text(query, "is");
    const char *sort = web_query_text(query, "sort");
    struct wish wish = {.kind = 0};

    (void)snprintf(wish.words, sizeof(wish.words), "%s", words == NULL ? "" : words);
    for (size_t i = 0; i < KIND_COUNT && is != NULL; i++) {
        wish.kind = strcmp(kinds[i].name, is) == 0 ? i : wish.kind;
    }
    for (size_t i = 0; i < SORT_COUNT && sort != NULL; i++) {
        wish.sort = strcmp(sorts[i].name, sort) == 0 ? i : wish.sort;
    }
    return wish;
}

/* ---- a job -------------------------------------------------------------------------------- */

static void add_reward(struct sheet *view, const struct shown_job *shown)
{
    const struct job_record *job = shown->job;
    char text[WEI_TEXT_SIZE];

    currency_print_about(text, &job->currency, shown->reward * job->state.segments);
    sheet_add(view, SHEET_DETAIL, "Reward", "%s", text);
    if (shown->hour > 0) {
        currency_print_about(text, &job->currency, shown->hour);
        sheet_add(view, SHEET_DETAIL, "An hour of this machine", "%s", text);
    }
    if (shown->million > 0) {
        currency_print_about(text, &job->currency, shown->million);
        sheet_add(view, SHEET_DETAIL, "A million tokens", "%s", text);
    }
}

static void add_terms(struct sheet *view, const struct job_record *job)
{
    const struct game_terms *terms = &job->terms;
    char text[WEI_TEXT_SIZE];

    currency_print_about(text, &job->currency, terms->stake);
    sheet_add(view, SHEET_DETAIL, "Stake", "%s", text);
    sheet_add(view, SHEET_DETAIL, "Steps", "%" PRIu64 " in %u segments", terms->steps,
              job->state.segments);
    if (terms->seats == 0) {
        sheet_add(view, SHEET_DETAIL, "Verified", "by nobody who is paid");
    } else {
        sheet_add(view, SHEET_DETAIL, "Verified", "%.3g %% of the segments, by %u each",
                  terms->coverage_ppm / 1e4, terms->seats);
        sheet_add(view, SHEET_DETAIL, "Panel", "%u enlisted, %u needed", job->state.entries,
                  terms->panel_least);
    }
    terms_period(text, terms->segment_period_s);
    sheet_add(view, SHEET_DETAIL, "Time for a segment", "%s", text);
    terms_period(text, terms->clock_s);
    sheet_add(view, SHEET_DETAIL, "Time in a dispute", "%s", text);
}

static void add_squares(struct sheet *view, const struct job_record *job, uint64_t now_s)
{
    uint8_t squares[SQUARES_MAX];
    uint32_t marks[JOB_VIEW_MARKS];
    /* What is trained and not committed is not known here. */
    const struct sheet_squares shown = {
        .name = "segments by state",
        .unit = "segment",
        .marks = squares,
        .count = job_view_squares(squares, SQUARES_MAX, marks, job, now_s),
        .each = job_view_each(job->state.segments, SQUARES_MAX),
        .total = job->state.segments,
        .words = {"to come", "committed", "final", "being verified", NULL, "disputed or lost"}};

    sheet_squares(view, &shown);
}

static void add_progress(struct sheet *view, const struct job_record *job, uint64_t now_s)
{
    uint64_t forecast_s = job->state.finalized < job->state.committed
                              ? job_status_forecast(job, job->state.finalized, now_s)
                              : 0;

    sheet_line(view, SHEET_DIM, "%u of %u segments committed, %u final; %u claims open. ",
               job->state.committed, job->state.segments, job->state.finalized,
               job_record_open_claims(job));
    if (job->state.phase == GAME_PHASE_RUNNING && job->state.committed < job->state.segments &&
        !job->state.ended) {
        sheet_words(view, SHEET_PLAIN, "The next commit is due ");
        sheet_when(view, SHEET_PLAIN, job->state.due_s, now_s);
        sheet_words(view, SHEET_PLAIN, ". ");
    }
    if (job->state.finalized < job->state.committed) {
        sheet_words(view, SHEET_PLAIN, "Segment %u is final ", job->state.finalized);
        if (forecast_s == 0) {
            sheet_words(view, SHEET_PLAIN, "nobody can say when. ");
        } else {
            sheet_when(view, SHEET_PLAIN, forecast_s, now_s);
            sheet_words(view, SHEET_PLAIN, " at the earliest. ");
        }
    }
    add_squares(view, job, now_s);
}

/* What its client says of it. */
static void add_card(struct sheet *view, const struct job_card *card)
{
    char words[JOB_CARD_WORDS_MAX];

    job_card_words(words, card);
    if (card->title[0] != '\0') {
        sheet_begin_line(view, SHEET_PLAIN);
        sheet_words(view, SHEET_STRONG, "%s", card->title);
    }
    if (words[0] != '\0') {
        sheet_line(view, SHEET_PLAIN, "%s", words);
    }
}

static void add_party(struct sheet *view, const char *name, const struct address *party)
{
    char text[ADDRESS_TEXT_SIZE];

    address_print(text, party);
    sheet_line(view, SHEET_DIM, "%s ", name);
    sheet_words(view, SHEET_CODE, "%s", text);
}

static void add_job(struct sheet *view, const struct shown_job *shown, uint64_t now_s)
{
    const struct job_record *job = shown->job;

    sheet_begin(view, SHEET_SECTION, NULL);
    sheet_begin(view, SHEET_SUBHEADING, NULL);
    sheet_key(view, job->key.bytes, HASH32_SIZE);
    sheet_words(view, SHEET_PLAIN, " %s", board_phase(job, now_s));
    add_card(view, &job->card);
    add_reward(view, shown);
    add_terms(view, job);
    if (job->state.phase == GAME_PHASE_OPEN) {
        sheet_begin(view, SHEET_DETAIL, "Deadline");
        sheet_when(view, SHEET_PLAIN, job->terms.deadline_s, now_s);
    }
    add_party(view, "Client", &job->client);
    if (job->state.phase == GAME_PHASE_RUNNING || job->state.committed > 0) {
        add_party(view, "Solver", &job->state.solver);
        add_progress(view, job, now_s);
    }
    sheet_begin(view, SHEET_SECTION_END, NULL);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void add_choices(struct sheet *view, const struct wish *wish)
{
    sheet_field(view, "Title, model, key, job id or address", "q", wish->words);
    sheet_choice(view, "Which jobs", "is");
    for (size_t i = 0; i < KIND_COUNT; i++) {
        sheet_option(view, kinds[i].words, kinds[i].name, i == wish->kind);
    }
    sheet_choice(view, "Order", "sort");
    for (size_t i = 0; i < SORT_COUNT; i++) {
        sheet_option(view, sorts[i].words, sorts[i].name, i == wish->sort);
    }
}

static void add_top(struct sheet *view, const struct board_page *shown)
{
    const struct board_view *board = shown->view;

    sheet_add(view, SHEET_TITLE, NULL, "Lockstep jobs");
    if (is_silent(shown)) {
        sheet_line(view, SHEET_ILL, "The ledger cannot be followed. It was read last ");
        sheet_when(view, SHEET_PLAIN, board->followed_s, shown->now_s);
        sheet_words(view, SHEET_PLAIN, ".");
    }
    for (size_t kind = 1; kind < KIND_COUNT; kind++) {
        uint64_t count = 0;

        for (uint32_t i = 0; i < board->board->count; i++) {
            count += is_wanted(&board->board->jobs[i], kinds[kind].name, board->clock.time_s);
        }
        sheet_add(view, SHEET_CARD, kinds[kind].words, "%" PRIu64, count);
    }
    sheet_add(view, SHEET_CARD, "alarms", "%u", board->alarm_count);
}

static void add_alarms(struct sheet *view, const struct board_view *board)
{
    if (board->alarm_count > 0) {
        sheet_begin_line(view, SHEET_ILL);
        sheet_words(view, SHEET_STRONG, "Alarms");
    }
    for (uint32_t i = 0; i < board->alarm_count && i < ALARMS_MAX; i++) {
        const struct watch_alarm *alarm = &board->alarms[i];

        sheet_begin(view, SHEET_ITEM, NULL);
        sheet_key(view, alarm->job.bytes, HASH32_SIZE);
        sheet_words(view, SHEET_PLAIN, " segment%s %u", alarm->last == alarm->index ? "" : "s",
                    alarm->index);
        if (alarm->last != alarm->index) {
            sheet_words(view, SHEET_PLAIN, " to %u", alarm->last);
        }
        sheet_words(view, SHEET_PLAIN, ": %s", alarm->text);
    }
    if (board->alarm_count > ALARMS_MAX) {
        sheet_line(view, SHEET_PLAIN, "and %u others, which 'lockstep watch' prints",
                   board->alarm_count - ALARMS_MAX);
    }
}

static void add_jobs(struct sheet *view, const struct board_view *board, const struct wish *wish,
                     struct shown_job *shown)
{
    uint64_t now_s = board->clock.time_s;
    uint32_t count = 0;

    for (uint32_t i = 0; i < board->board->count; i++) {
        const struct job_record *job = &board->board->jobs[i];

        if (is_wanted(job, kinds[wish->kind].name, now_s) && is_found(job, wish->words)) {
            shown[count++] = look_at(job, i, board->device);
        }
    }
    qsort(shown, count, sizeof(*shown), sorts[wish->sort].compare);
    if (count == 0) {
        sheet_line(view, SHEET_DIM, "No such job is on the ledger.");
    }
    for (uint32_t i = 0; i < count && i < BOARD_PAGE_JOBS_MAX; i++) {
        add_job(view, &shown[i], now_s);
    }
    if (count > BOARD_PAGE_JOBS_MAX) {
        sheet_line(view, SHEET_DIM, "and %u others: search for them", count - BOARD_PAGE_JOBS_MAX);
    }
}

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct board_page *page = context;
    struct wish wish = read_wish(query);
    struct shown_job *shown;
    struct sheet view;
    uint64_t now_s;

    sheet_init(&view);
    sheet_add(&view, SHEET_WINDOW, NULL, "Lockstep jobs");
    (void)pthread_mutex_lock(&page->view->lock);
    now_s = page->view->clock.time_s;
    shown = calloc((size_t)page->view->board->count + 1, sizeof(*shown));
    add_top(&view, page);
    add_alarms(&view, page->view);
    add_choices(&view, &wish);
    if (shown != NULL) {
        add_jobs(&view, page->view, &wish, shown);
    }
    (void)pthread_mutex_unlock(&page->view->lock);
    free(shown);
    sheet_add(&view, SHEET_FOOTER, NULL, "Everything here follows from the events of the ledger.");
    sheet_page_write(answer, &view, now_s);
    sheet_release(&view);
}

/* ---- the site ------------------------------------------------------------------- */

static enum status look(void *context, uint64_t now_ms, struct error *error)
{
    struct board_page *page = context;

    (void)error;
    page->now_s = now_ms / 1000;
    return STATUS_OK;
}

static const char *trouble(void *context)
{
    const struct board_page *page = context;
    bool silent;

    (void)pthread_mutex_lock(&page->view->lock);
    silent = is_silent(page);
    (void)pthread_mutex_unlock(&page->view->lock);
    return silent ? "the ledger is not followed" : NULL;
}

static const struct web_route routes[] = {{"/", WEB_SERVER_PAGE, write_page}};

enum status board_page_open(struct board_page **page, struct board_view *view,
                            const struct listen_place *place, struct error *error)
{
    struct board_page *made = calloc(1, sizeof(*made));
    const struct web_site site = {.routes = routes,
                                  .route_count = sizeof(routes) / sizeof(routes[0]),
                                  .size_max = PAGE_SIZE_MAX,
                                  .look = look,
                                  .trouble = trouble,
                                  .context = made};
    enum status status;

    *page = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the jobs");
    }
    made->view = view;
    status = web_server_open(&made->web, &site, place, error);
    if (status != STATUS_OK) {
        board_page_close(made);
        return status;
    }
    *page = made;
    return STATUS_OK;
}

void board_page_close(struct board_page *page)
{
    if (page != NULL) {
        web_server_close(page->web);
        free(page);
    }
}

void board_page_url(char url[WEB_SERVER_URL_MAX], const struct board_page *page,
                    const struct listen_place *place)
{
    web_server_url(url, page->web, place);
}
