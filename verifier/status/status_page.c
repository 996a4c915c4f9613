/* status_page.c - see status_page.h. */
#include "verifier/status/status_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/web/web_page.h"
#include "base/web/web_parts.h"
#include "base/web/web_plot.h"
#include "chain/money/money_page.h"

/* ---- the top ------------------------------------------------------------ */

static void add_endpoints(struct buffer *page, const struct node_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->endpoint_count; i++) {
        const struct ledger_endpoint *endpoint = &snapshot->endpoints[i];

        if (endpoint->reason[0] != '\0') {
            buffer_add_text(page, "<p class=\"word ill\">Endpoint <code>");
            web_page_text(page, endpoint->label);
            buffer_add_text(page, "</code> is ill since ");
            web_page_when(page, endpoint->since_s, snapshot->now_ms / 1000);
            buffer_add_text(page, ": ");
            web_page_text(page, endpoint->reason);
            buffer_add_text(page, ".</p>\n");
        }
    }
}

static void add_top(struct buffer *page, const struct node_snapshot *snapshot)
{
    const char *trouble = node_snapshot_trouble(snapshot);
    uint64_t now_s = snapshot->now_ms / 1000;
    const char *more = snapshot->fault[0] != '\0' ? snapshot->fault : snapshot->ledger_trouble;

    buffer_add_text(page, "<h1>Lockstep verifier</h1>\n<p class=\"dim\"><code>");
    web_page_text(page, snapshot->owner[0] == '\0' ? "no ledger yet" : snapshot->owner);
    buffer_add_format(page, "</code></p>\n<p class=\"word %s\"><b>%s</b>",
                      trouble == NULL ? "well" : "ill", trouble == NULL ? "Well" : "Not well");
    buffer_add_format(page, "%s%s", trouble == NULL ? "" : ": ", trouble == NULL ? "" : trouble);
    if (trouble != NULL && more[0] != '\0') {
        buffer_add_text(page, ". ");
        web_page_text(page, more);
    }
    buffer_add_text(page, ". <span class=\"dim\">Started ");
    web_page_when(page, snapshot->started_ms / 1000, now_s);
    if (snapshot->next_deadline_s != 0) {
        buffer_add_text(page, snapshot->next_deadline_s >= now_s
                                  ? ", the next deadline of a check is "
                                  : ", the deadline of a check was ");
        web_page_when(page, snapshot->next_deadline_s, now_s);
    }
    buffer_add_text(page, "</span></p>\n");
    add_endpoints(page, snapshot);
    buffer_add_text(page, "<div class=\"cards\">\n");
    web_parts_count(page, snapshot->jobs[GAME_PHASE_RUNNING], "jobs running");
    web_parts_count(page, snapshot->tasks[TASK_RUNNING], "checks running");
    web_parts_count(page, snapshot->tasks[TASK_WAITING], "checks waiting");
    web_parts_count(page, snapshot->steps_proven, "steps proven");
    web_parts_count(page, snapshot->outcomes[CHECK_REFUTED], "segments refuted");
    web_parts_count(page, snapshot->claims_open, "claims open");
    web_parts_count(page, snapshot->entries, "entries in panels");
    web_parts_count(page, snapshot->missed, "seats missed");
    web_parts_count(page, snapshot->bonds_lost, "bonds lost");
    if (snapshot->has_money) {
        money_page_cards(page, &snapshot->money);
    }
    buffer_add_text(page, "</div>\n");
    if (snapshot->has_money) {
        money_page_write(page, &snapshot->money);
    }
}

/* ---- throughput --------------------------------------------------------- */

static void add_throughput(struct buffer *page, const struct node_snapshot *snapshot)
{
    double rates[NODE_SNAPSHOT_BARS];
    char first[32];
    const struct web_plot plot = {.unit = "/s",
                                  .first = first,
                                  .last = "now",
                                  .from_zero = true,
                                  .is_low = true,
                                  .count = NODE_SNAPSHOT_BARS,
                                  .series_count = 1,
                                  .series = {{"steps replayed a second", WEB_PLOT_BARS, rates}}};

    for (size_t i = 0; i < NODE_SNAPSHOT_BARS; i++) {
        const struct node_snapshot_bar *bar = &snapshot->bars[i];

        rates[i] = bar->checks > 0 ? (double)bar->steps * 1e3 / (double)snapshot->bar_ms : NAN;
    }
    (void)snprintf(first, sizeof(first), "%" PRIu64 " h ago",
                   snapshot->bar_ms * NODE_SNAPSHOT_BARS / 3600000);
    buffer_add_text(page, "<h2>Throughput</h2>\n");
    web_plot_write(page, &plot);
}

/* ---- jobs --------------------------------------------------------------- */

static void add_map(struct buffer *page, const struct node_snapshot_job *job)
{
    static const char *const words[WEB_SQUARES_MARKS] = {"not committed", "not checked", "proven",
                                                         "being checked", "no answer",   "refuted"};
    uint8_t marks[NODE_SNAPSHOT_CELLS_MAX];
    const struct web_squares squares = {.name = "segments by what this node found",
                                        .unit = "segment",
                                        .marks = marks,
                                        .count = job->cell_count,
                                        .each = job->cell_segments,
                                        .total = job->segment_count,
                                        .words = words};

    for (uint32_t i = 0; i < job->cell_count; i++) {
        marks[i] = (uint8_t)job->cells[i].mark;
    }
    web_parts_squares(page, &squares);
}

static void add_loss(struct buffer *page, const struct node_snapshot_job *job)
{
    double losses[NODE_SNAPSHOT_CELLS_MAX];
    char last[40];
    bool has_any = false;
    const struct web_plot plot = {
        .unit = "",
        .first = "segment 0",
        .last = last,
        .is_low = true,
        .count = job->cell_count,
        .series_count = 1,
        .series = {{"loss after the segments that were proven here", WEB_PLOT_POINTS, losses}}};

    for (uint32_t i = 0; i < job->cell_count; i++) {
        losses[i] = job->cells[i].has_loss ? job->cells[i].loss : NAN;
        has_any = has_any || job->cells[i].has_loss;
    }
    (void)snprintf(last, sizeof(last), "segment %u", job->segment_count - 1);
    if (has_any) {
        web_plot_write(page, &plot);
    }
}

static void add_jobs(struct buffer *page, const struct node_snapshot *snapshot)
{
    static const char *const phases[NODE_SNAPSHOT_PHASES] = {"unknown", "open", "running",
                                                             "closed"};
    uint64_t all = 0;

    for (size_t i = 0; i < NODE_SNAPSHOT_PHASES; i++) {
        all += snapshot->jobs[i];
    }
    buffer_add_text(page, "<h2>Jobs</h2>\n");
    if (snapshot->job_count == 0) {
        buffer_add_text(page, "<p class=\"dim\">There are none on the ledger.</p>\n");
        return;
    }
    for (uint32_t i = 0; i < snapshot->job_count; i++) {
        const struct node_snapshot_job *job = &snapshot->job[i];

        buffer_add_text(page, "<section class=\"job\"><h3>");
        web_page_key(page, job->key.bytes, HASH32_SIZE);
        buffer_add_format(page,
                          " %s</h3>\n<p class=\"dim\">%" PRIu64
                          " steps in %u segments: %u committed, %u proven here, %u refuted, %u "
                          "final, %u being checked</p>\n",
                          job->phase < NODE_SNAPSHOT_PHASES ? phases[job->phase] : phases[0],
                          job->steps, job->segment_count, job->committed, job->proven, job->refuted,
                          job->finalized, job->being_checked);
        add_map(page, job);
        add_loss(page, job);
        buffer_add_text(page, "</section>\n");
    }
    if (all > snapshot->job_count) {
        buffer_add_format(page, "<p class=\"dim\">and %" PRIu64 " others</p>\n",
                          all - snapshot->job_count);
    }
}

/* ---- claims and mirrors ------------------------------------------------- */

/* A name, and what is said about it: over the whole width, above the row of its numbers. */
static void begin_own_row(struct buffer *page)
{
    buffer_add_text(page, "<tr class=\"more\"><td class=\"own\" colspan=\"5\">");
}

static void add_claims(struct buffer *page, const struct node_snapshot *snapshot)
{
    static const char *const phases[] = {"not on the ledger yet", "waits behind another",
                                         "waits for an answer", "in dispute", "closed"};
    static const char *const headings[] = {"Segment", "Step", "Move", "State", "Next deadline"};

    buffer_add_text(page, "<h2>Claims</h2>\n");
    if (snapshot->claim_count == 0) {
        buffer_add_text(page, "<p class=\"dim\">This node has made none.</p>\n");
        return;
    }
    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    for (uint32_t i = 0; i < snapshot->claim_count; i++) {
        const struct node_snapshot_claim *claim = &snapshot->claim[i];
        bool closed = claim->phase == GAME_CLAIM_CLOSED;

        begin_own_row(page);
        web_page_key(page, claim->key.bytes, HASH32_SIZE);
        if (claim->trouble[0] != '\0') {
            buffer_add_text(page, " <span class=\"dim\">");
            web_page_text(page, claim->trouble);
            buffer_add_text(page, "</span>");
        }
        buffer_add_format(page, "</td></tr>\n<tr><td>%u</td><td>%u</td><td>%s</td><td>",
                          claim->index, claim->step, action_state_name(claim->move));
        web_page_text(page, closed                             ? claim->outcome
                            : claim->phase < GAME_CLAIM_CLOSED ? phases[claim->phase]
                                                               : "unknown");
        buffer_add_text(page, "</td><td>");
        web_page_when(page, closed ? 0 : claim->deadline_s, snapshot->now_ms / 1000);
        buffer_add_text(page, "</td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

/* Why they earned nothing, and what to do. */
static void add_missed(struct buffer *page, const struct node_snapshot *snapshot)
{
    static const char *const headings[] = {"Segment", "Place"};

    if (snapshot->missed_count == 0) {
        return;
    }
    buffer_add_text(page, "<h2>Seats missed</h2>\n");
    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    for (uint32_t i = 0; i < snapshot->missed_count; i++) {
        const struct node_snapshot_missed *seat = &snapshot->missed_seat[i];

        begin_own_row(page);
        web_page_key(page, seat->job.bytes, HASH32_SIZE);
        buffer_add_text(page, " <span class=\"dim\">");
        web_page_text(page, seat->reason);
        buffer_add_format(page, "</span></td></tr>\n<tr><td>%u</td><td>%u</td></tr>\n", seat->index,
                          seat->place);
    }
    buffer_add_text(page, "</table>\n");
}

static void add_mirrors(struct buffer *page, const struct node_snapshot *snapshot)
{
    static const char *const headings[] = {"State", "Good", "Bad", "Silent", "MB"};

    if (snapshot->mirror_count == 0) {
        return;
    }
    buffer_add_text(page, "<h2>Mirrors</h2>\n");
    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    for (uint32_t i = 0; i < snapshot->mirror_count; i++) {
        const struct node_snapshot_mirror *mirror = &snapshot->mirror[i];

        begin_own_row(page);
        buffer_add_text(page, "<code>");
        web_page_text(page, mirror->name);
        buffer_add_text(page, "</code>");
        if (mirror->trouble[0] != '\0') {
            buffer_add_text(page, " <span class=\"dim\">last trouble: ");
            web_page_text(page, mirror->trouble);
            buffer_add_text(page, "</span>");
        }
        buffer_add_text(page, "</td></tr>\n<tr><td>");
        if (mirror->rests) {
            buffer_add_text(page, "asked last, again ");
            web_page_when(page, mirror->rest_until_s, snapshot->now_ms / 1000);
        } else {
            buffer_add_text(page, mirror->failures > 0 ? "on trial" : "good");
        }
        buffer_add_format(page,
                          "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64
                          "</td><td>%.1f</td></tr>\n",
                          mirror->good, mirror->bad, mirror->silent, (double)mirror->bytes / 1e6);
    }
    buffer_add_text(page, "</table>\n");
}

/* ---- the page ----------------------------------------------------------- */

void status_page_write(struct buffer *page, const struct node_snapshot *snapshot)
{
    char title[40];

    (void)snprintf(title, sizeof(title), "%sLockstep verifier",
                   node_snapshot_trouble(snapshot) == NULL ? "" : "! ");
    web_page_begin(page, title);
    add_top(page, snapshot);
    add_jobs(page, snapshot);
    add_claims(page, snapshot);
    add_missed(page, snapshot);
    add_throughput(page, snapshot);
    add_mirrors(page, snapshot);
    web_page_end(page, snapshot->now_ms / 1000,
                 "A step is called proven only where this node ran it again and every bit of the "
                 "state after it was the same.");
}
