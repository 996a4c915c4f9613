/* status_page.c - see status_page.h. */
#include "verifier/status/status_page.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/hex.h"
#include "base/version.h"

#define PLOT_WIDTH  720
#define PLOT_LEFT   64
#define LOSS_HEIGHT 130
#define BAR_HEIGHT  110
#define BOTTOM      22
#define MAP_COLUMNS 60
#define MAP_CELL    12

/* ---- text --------------------------------------------------------------- */

static void add_escaped(struct buffer *page, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '<' || byte == '>' || byte == '&' || byte == '"' || byte == '\'') {
            buffer_add_format(page, "&#%u;", byte);
        } else if (byte < ' ' || byte >= 0x7f) {
            buffer_add_text(page, "?");
        } else {
            buffer_add_u8(page, byte);
        }
    }
}

static void add_key(struct buffer *page, const struct hash32 *key)
{
    char text[HEX_SIZE(HASH32_SIZE)];

    hex_encode(text, key->bytes, HASH32_SIZE);
    buffer_add_format(page, "<code title=\"%s\">%.16s&#8230;</code>", text, text);
}

/* "4 min 10 s ago", or "in 4 min 10 s". */
static void add_span(struct buffer *page, uint64_t seconds)
{
    if (seconds < 120) {
        buffer_add_format(page, "%" PRIu64 " s", seconds);
    } else if (seconds < 7200) {
        buffer_add_format(page, "%" PRIu64 " min", seconds / 60);
    } else if (seconds < 172800) {
        buffer_add_format(page, "%" PRIu64 " h", seconds / 3600);
    } else {
        buffer_add_format(page, "%" PRIu64 " days", seconds / 86400);
    }
}

static void add_when(struct buffer *page, uint64_t when_s, uint64_t now_s)
{
    if (when_s == 0) {
        buffer_add_text(page, "&#8212;");
    } else if (when_s >= now_s) {
        buffer_add_text(page, "in ");
        add_span(page, when_s - now_s);
    } else {
        add_span(page, now_s - when_s);
        buffer_add_text(page, " ago");
    }
}

static void add_style(struct buffer *page)
{
    buffer_add_text(
        page,
        "<style>\n"
        ":root{color-scheme:light dark;--ink:#1c2024;--dim:#667079;--line:#d9dee3;--ground:#fff;"
        "--card:#f6f8fa;--good:#1a7f4b;--bad:#c0271d;--open:#b7791f;--loss:#2f6fd6}\n"
        "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--dim:#97a1aa;--line:#363d44;"
        "--ground:#15181b;--card:#1d2125;--good:#4cc38a;--bad:#ff6369;--open:#f0b455;"
        "--loss:#7aa7f5}}\n"
        "*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);"
        "background:var(--ground);max-width:52rem;margin:1.5rem auto;padding:0 1rem;"
        "overflow-wrap:anywhere}\n"
        "h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}"
        "h3{font-size:.95rem;margin:0}\n"
        "code{font:.85em ui-monospace,monospace;}.dim{color:var(--dim)}\n"
        ".word{border-left:6px solid;padding:.4rem 1rem;margin:1rem 0;background:var(--card)}"
        ".well{border-color:var(--good)}.ill{border-color:var(--bad)}\n"
        ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:.6rem}"
        ".card{background:var(--card);border-radius:.4rem;padding:.5rem .8rem}"
        ".card b{display:block;font-size:1.35rem;font-weight:600;"
        "font-variant-numeric:tabular-nums}.card span{color:var(--dim);font-size:.85rem}\n"
        ".job{border:1px solid var(--line);border-radius:.4rem;padding:.7rem .9rem;"
        "margin:0 0 .8rem}.job p{margin:.2rem 0 .5rem}.job svg+p{margin-top:.8rem}\n"
        "table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{border-bottom:1px solid "
        "var(--line);padding:.25rem .5rem .25rem 0;vertical-align:top;text-align:left}"
        "th{color:var(--dim);font-weight:500}\n"
        /* A column is as wide as its words; names and sentences have a row of their own. */
        "td,th{overflow-wrap:normal}.own{overflow-wrap:anywhere}"
        ".more "
        "td{border-bottom:0;padding-bottom:0}svg{display:block;width:100%;height:auto;overflow:"
        "visible}"
        "svg path{vector-effect:non-scaling-stroke}svg text{font:11px system-ui,sans-serif;"
        "fill:var(--dim)}.axis{stroke:var(--line)}.loss{stroke:var(--loss)}.bar{fill:var(--loss)}\n"
        ".m0{fill:var(--line);opacity:.45}.m1{fill:var(--dim);opacity:.55}.m2{fill:var(--good)}"
        ".m3{fill:var(--loss)}.m4{fill:var(--open)}.m5{fill:var(--bad)}.key{display:inline-block;"
        "width:.8em;height:.8em;"
        "margin:0 .35em 0 0;border-radius:2px}.mark{display:inline-block;margin-right:1em}"
        ".k0{background:var(--line);opacity:.45}.k1{background:var(--dim);opacity:.55}"
        ".k2{background:var(--good)}.k3{background:var(--loss)}.k4{background:var(--open)}"
        ".k5{background:var(--bad)}\n"
        "footer{color:var(--dim);margin:2.5rem 0 1rem;font-size:.85rem}\n"
        /* Small screens: plots keep the size of their words. */
        "@media(max-width:36rem){svg text{font-size:20px}svg circle{display:none}}\n"
        "</style>\n");
}

/* Fetches the page every five seconds; the title says when that fails. */
static void add_script(struct buffer *page)
{
    buffer_add_text(page,
                    "<script>\n"
                    "setInterval(async()=>{try{const r=await fetch(location.pathname,"
                    "{cache:'no-store'});if(!r.ok)throw r;const d=new DOMParser().parseFromString("
                    "await r.text(),'text/html');document.querySelector('main').replaceWith("
                    "d.querySelector('main'));document.title=d.title}catch(e){document.title="
                    "'no answer - Lockstep verifier';document.querySelector('main').style.opacity="
                    "'.5'}},5000)\n"
                    "</script>\n");
}

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
    add_escaped(page, snapshot->owner[0] == '\0' ? "no ledger yet" : snapshot->owner);
    buffer_add_format(page, "</p>\n<p class=\"word %s\"><b>%s</b>",
                      trouble == NULL ? "well" : "ill", trouble == NULL ? "Well" : "Not well");
    buffer_add_format(page, "%s%s", trouble == NULL ? "" : ": ", trouble == NULL ? "" : trouble);
    if (trouble != NULL && more[0] != '\0') {
        buffer_add_text(page, ". ");
        add_escaped(page, more);
    }
    buffer_add_text(page, ". <span class=\"dim\">Started ");
    add_when(page, snapshot->started_ms / 1000, now_s);
    buffer_add_text(page, ", next deadline ");
    add_when(page, snapshot->next_deadline_s, now_s);
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
        add_key(page, &job->key);
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
        add_key(page, &claim->key);
        if (claim->trouble[0] != '\0') {
            buffer_add_text(page, " <span class=\"dim\">");
            add_escaped(page, claim->trouble);
            buffer_add_text(page, "</span>");
        }
        buffer_add_format(page, "</td></tr>\n<tr><td>%u</td><td>%u</td><td>%s</td><td>",
                          claim->index, claim->step, action_state_name(claim->move));
        add_escaped(page, closed                             ? claim->outcome
                          : claim->phase < GAME_CLAIM_CLOSED ? phases[claim->phase]
                                                             : "unknown");
        buffer_add_text(page, "</td><td>");
        add_when(page, closed ? 0 : claim->deadline_s, snapshot->now_ms / 1000);
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
        add_escaped(page, mirror->name);
        buffer_add_text(page, "</code>");
        if (mirror->trouble[0] != '\0') {
            buffer_add_text(page, " <span class=\"dim\">last trouble: ");
            add_escaped(page, mirror->trouble);
            buffer_add_text(page, "</span>");
        }
        buffer_add_text(page, "</td></tr>\n<tr><td>");
        if (mirror->rests) {
            buffer_add_text(page, "asked last, again ");
            add_when(page, mirror->rest_until_s, snapshot->now_ms / 1000);
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
    time_t now = (time_t)(snapshot->now_ms / 1000);
    struct tm parts = {0};
    char moment[40];

    (void)gmtime_r(&now, &parts);
    (void)strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S UTC", &parts);
    buffer_add_format(page,
                      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width\">\n"
                      "<link rel=\"icon\" href=\"data:,\">\n"
                      "<title>%sLockstep verifier</title>\n",
                      node_snapshot_trouble(snapshot) == NULL ? "" : "! ");
    add_style(page);
    buffer_add_text(page, "</head>\n<body>\n<main>\n");
    add_top(page, snapshot);
    add_jobs(page, snapshot);
    add_claims(page, snapshot);
    add_throughput(page, snapshot);
    add_mirrors(page, snapshot);
    buffer_add_format(page,
                      "<footer>%s, lockstep " LOCKSTEP_VERSION
                      ". A step is called proven only where this node ran it again and every bit "
                      "of the state after it was the same.</footer>\n</main>\n",
                      moment);
    add_script(page);
    buffer_add_text(page, "</body>\n</html>\n");
}
