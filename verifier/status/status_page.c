/* status_page.c - see status_page.h. */
#include "verifier/status/status_page.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/web/web_page.h"

#define PLOT_WIDTH  720
#define PLOT_LEFT   64
#define LOSS_HEIGHT 130
#define BAR_HEIGHT  110
#define BOTTOM      22
#define MAP_COLUMNS 60
#define MAP_CELL    12

/* ---- the top ------------------------------------------------------------ */

static void add_card(struct buffer *page, const char *words, uint64_t number)
{
    buffer_add_format(page, "<div class=\"card\"><b>%" PRIu64 "</b><span>%s</span></div>\n", number,
                      words);
}

static void add_money_card(struct buffer *page, const char *words, wei amount)
{
    char text[WEI_TEXT_SIZE];

    wei_print(text, amount);
    buffer_add_format(page, "<div class=\"card\"><b>%s</b><span>%s</span></div>\n", text, words);
}

static void add_top(struct buffer *page, const struct node_snapshot *snapshot)
{
    const char *trouble = node_snapshot_trouble(snapshot);
    uint64_t now_s = snapshot->now_ms / 1000;
    const char *more = snapshot->fault[0] != '\0' ? snapshot->fault : snapshot->ledger_trouble;

    buffer_add_text(page, "<h1>Lockstep verifier</h1>\n<p class=\"dim\">");
    web_page_text(page, snapshot->owner[0] == '\0' ? "no ledger yet" : snapshot->owner);
    buffer_add_format(page, "</p>\n<p class=\"word %s\"><b>%s</b>",
                      trouble == NULL ? "well" : "ill", trouble == NULL ? "Well" : "Not well");
    buffer_add_format(page, "%s%s", trouble == NULL ? "" : ": ", trouble == NULL ? "" : trouble);
    if (trouble != NULL && more[0] != '\0') {
        buffer_add_text(page, ". ");
        web_page_text(page, more);
    }
    buffer_add_text(page, ". <span class=\"dim\">Started ");
    web_page_when(page, snapshot->started_ms / 1000, now_s);
    buffer_add_text(page, ", next deadline ");
    web_page_when(page, snapshot->next_deadline_s, now_s);
    buffer_add_text(page, "</span></p>\n<div class=\"cards\">\n");
    add_card(page, "jobs running", snapshot->jobs[GAME_PHASE_RUNNING]);
    add_card(page, "checks running", snapshot->tasks[TASK_RUNNING]);
    add_card(page, "checks waiting", snapshot->tasks[TASK_WAITING]);
    add_card(page, "steps proven", snapshot->steps_proven);
    add_card(page, "segments refuted", snapshot->outcomes[CHECK_REFUTED]);
    add_card(page, "claims open", snapshot->claims_open);
    add_card(page, "entries in panels", snapshot->entries);
    add_money_card(page, "earned by verdicts", snapshot->earned);
    add_money_card(page, "withdrawn", snapshot->withdrawn);
    buffer_add_text(page, "</div>\n");
}

/* ---- throughput --------------------------------------------------------- */

static void add_throughput(struct buffer *page, const struct node_snapshot *snapshot)
{
    double width = (double)(PLOT_WIDTH - PLOT_LEFT) / NODE_SNAPSHOT_BARS;
    double seconds = (double)snapshot->bar_ms / 1e3;
    uint64_t most = 0;

    for (size_t i = 0; i < NODE_SNAPSHOT_BARS; i++) {
        most = snapshot->bars[i].steps > most ? snapshot->bars[i].steps : most;
    }
    buffer_add_format(page,
                      "<h2>Throughput</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"steps replayed per second\">\n",
                      PLOT_WIDTH, BAR_HEIGHT);
    for (int tick = 0; tick <= 2; tick++) {
        double y = 8 + (BAR_HEIGHT - BOTTOM - 8) * (1 - tick / 2.0);

        buffer_add_format(page,
                          "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g/s</text>\n",
                          PLOT_LEFT, PLOT_WIDTH, y, y, PLOT_LEFT - 6, y + 4,
                          (double)most * tick / 2 / seconds);
    }
    for (size_t i = 0; i < NODE_SNAPSHOT_BARS && most > 0; i++) {
        const struct node_snapshot_bar *bar = &snapshot->bars[i];
        double height = (BAR_HEIGHT - BOTTOM - 8) * (double)bar->steps / (double)most;

        if (bar->checks > 0) {
            height = height < 1 ? 1 : height;
            buffer_add_format(page,
                              "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                              "height=\"%.1f\"><title>%u checks, %" PRIu64
                              " steps</title></rect>\n",
                              PLOT_LEFT + width * (double)i + 1, BAR_HEIGHT - BOTTOM - height,
                              width - 2, height, bar->checks, bar->steps);
        }
    }
    buffer_add_format(page,
                      "<text x=\"%d\" y=\"%d\">%" PRIu64 " h ago</text><text x=\"%d\" y=\"%d\" "
                      "text-anchor=\"end\">now</text>\n</svg>\n<p class=\"dim\">Steps that were "
                      "run again, per second of the clock.</p>\n",
                      PLOT_LEFT, BAR_HEIGHT - 6, snapshot->bar_ms * NODE_SNAPSHOT_BARS / 3600000,
                      PLOT_WIDTH, BAR_HEIGHT - 6);
}

/* ---- jobs --------------------------------------------------------------- */

static void add_map(struct buffer *page, const struct node_snapshot_job *job)
{
    uint32_t rows = (job->cell_count + MAP_COLUMNS - 1) / MAP_COLUMNS;

    buffer_add_format(page,
                      "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"segments verified\">\n",
                      MAP_COLUMNS * MAP_CELL, rows * MAP_CELL);
    for (uint32_t i = 0; i < job->cell_count; i++) {
        const struct node_snapshot_cell *cell = &job->cells[i];

        buffer_add_format(page,
                          "<rect class=\"m%d\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" "
                          "rx=\"2\"><title>segment %u: %u proven</title></rect>\n",
                          (int)cell->mark, i % MAP_COLUMNS * MAP_CELL, i / MAP_COLUMNS * MAP_CELL,
                          MAP_CELL - 2, MAP_CELL - 2, i * job->cell_segments, cell->proven);
    }
    buffer_add_text(page, "</svg>\n");
}

static double loss_x(const struct node_snapshot_job *job, uint32_t cell)
{
    uint32_t last = job->cell_count > 1 ? job->cell_count - 1 : 1;

    return PLOT_LEFT + (PLOT_WIDTH - PLOT_LEFT - 6) * (double)cell / last;
}

static void add_loss_line(struct buffer *page, const struct node_snapshot_job *job, double low,
                          double high)
{
    buffer_add_text(page, "<path class=\"loss\" fill=\"none\" stroke-width=\"1.5\" d=\"");
    for (uint32_t i = 0, drawn = 0; i < job->cell_count; i++) {
        if (job->cells[i].has_loss) {
            buffer_add_format(page, "%s%.1f %.1f", drawn++ > 0 ? "L" : "M", loss_x(job, i),
                              8 + (LOSS_HEIGHT - BOTTOM - 8) *
                                      (1 - (job->cells[i].loss - low) / (high - low)));
        }
    }
    buffer_add_text(page, "\"/>\n");
    for (uint32_t i = 0; i < job->cell_count; i++) {
        if (job->cells[i].has_loss) {
            buffer_add_format(
                page,
                "<circle class=\"bar\" r=\"2\" cx=\"%.1f\" cy=\"%.1f\"><title>segment %u: "
                "%.6g</title></circle>\n",
                loss_x(job, i),
                8 + (LOSS_HEIGHT - BOTTOM - 8) * (1 - (job->cells[i].loss - low) / (high - low)),
                i * job->cell_segments, job->cells[i].loss);
        }
    }
}

static void add_loss(struct buffer *page, const struct node_snapshot_job *job)
{
    double low = DBL_MAX;
    double high = -DBL_MAX;

    for (uint32_t i = 0; i < job->cell_count; i++) {
        if (job->cells[i].has_loss) {
            low = fmin(low, job->cells[i].loss);
            high = fmax(high, job->cells[i].loss);
        }
    }
    if (high < low) {
        return;
    }
    if (high - low < 1e-9 * fmax(1, fabs(high))) {
        high = low + fmax(1, fabs(low)) * 1e-3;
    }
    buffer_add_format(page,
                      "<p class=\"dim\">Loss after the segments that were proven here</p>\n"
                      "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"loss\">\n",
                      PLOT_WIDTH, LOSS_HEIGHT);
    for (int tick = 0; tick <= 2; tick++) {
        double y = 8 + (LOSS_HEIGHT - BOTTOM - 8) * (1 - tick / 2.0);

        buffer_add_format(page,
                          "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                          PLOT_LEFT, PLOT_WIDTH, y, y, PLOT_LEFT - 6, y + 4,
                          low + (high - low) * tick / 2);
    }
    add_loss_line(page, job, low, high);
    buffer_add_format(page,
                      "<text x=\"%d\" y=\"%d\">step 0</text><text x=\"%d\" y=\"%d\" "
                      "text-anchor=\"end\">step %" PRIu64 "</text>\n</svg>\n",
                      PLOT_LEFT, LOSS_HEIGHT - 6, PLOT_WIDTH, LOSS_HEIGHT - 6, job->steps);
}

static void add_jobs(struct buffer *page, const struct node_snapshot *snapshot)
{
    static const char *const phases[NODE_SNAPSHOT_PHASES] = {"unknown", "open", "running",
                                                             "closed"};
    static const char *const words[NODE_SNAPSHOT_MARKS] = {
        "not committed", "not checked", "proven", "being checked", "no answer", "refuted"};
    uint64_t all = 0;

    for (size_t i = 0; i < NODE_SNAPSHOT_PHASES; i++) {
        all += snapshot->jobs[i];
    }
    buffer_add_text(page, "<h2>Jobs</h2>\n");
    if (snapshot->job_count == 0) {
        buffer_add_text(page, "<p class=\"dim\">There are none on the ledger.</p>\n");
        return;
    }
    buffer_add_text(page, "<p class=\"dim\">");
    for (int mark = 0; mark < NODE_SNAPSHOT_MARKS; mark++) {
        buffer_add_format(page, "<span class=\"mark\"><span class=\"key k%d\"></span>%s</span> ",
                          mark, words[mark]);
    }
    buffer_add_text(page, "</p>\n");
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
    static const char *const phases[] = {"not on the ledger yet", "waiting", "called", "on trial",
                                         "closed"};

    buffer_add_text(page, "<h2>Claims</h2>\n");
    if (snapshot->claim_count == 0) {
        buffer_add_text(page, "<p class=\"dim\">This node has made none.</p>\n");
        return;
    }
    buffer_add_text(
        page,
        "<table><tr><th>Segment</th><th>Step</th><th>Move</th><th>State</th><th>Next deadline</th>"
        "</tr>\n");
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

static void add_mirrors(struct buffer *page, const struct node_snapshot *snapshot)
{
    if (snapshot->mirror_count == 0) {
        return;
    }
    buffer_add_text(page, "<h2>Mirrors</h2>\n<table><tr><th>State</th><th>Good</th>"
                          "<th>Bad</th><th>Silent</th><th>MB</th></tr>\n");
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
    add_throughput(page, snapshot);
    add_mirrors(page, snapshot);
    web_page_end(page, snapshot->now_ms / 1000,
                 "A step is called proven only where this node ran it again and every bit of the "
                 "state after it was the same.");
}
