/* report.c - see report.h. */
#include "verifier/audit/report.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hex.h"
#include "base/io/file.h"
#include "base/version.h"
#include "verifier/audit/citation.h"

#define PAGE_SIZE_MAX (UINT64_C(64) << 20)
#define PLOT_WIDTH    720
#define PLOT_HEIGHT   180
#define PLOT_LEFT     64
#define PLOT_BOTTOM   24
#define MAP_COLUMNS   60
#define MAP_CELL      12
#define SPIKE         4  /* values so many times above most others are left out of the plot */
#define SPIKES_IN     20 /* "most": all but one in so many */

/* ---- gathering ---------------------------------------------------------- */

void report_begin(struct report *report, const char *title, const struct job *job)
{
    memset(report, 0, sizeof(*report));
    (void)snprintf(report->title, sizeof(report->title), "%s", title);
    report->job_id = job->id;
    report->cell_steps = (job->steps + REPORT_POINTS_MAX - 1) / REPORT_POINTS_MAX;
    report->cell_count = (uint32_t)((job->steps + report->cell_steps - 1) / report->cell_steps);
    for (uint32_t i = 0; i < report->cell_count; i++) {
        struct report_cell *cell = &report->cells[i];

        cell->first = i * report->cell_steps;
        cell->count = job->steps - cell->first < report->cell_steps ? job->steps - cell->first
                                                                    : report->cell_steps;
    }
}

static double milliseconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e6;
}

/* The mean of count values; `value` is the last of them. */
static double next_mean(double mean, double value, uint64_t count)
{
    return mean + (value - mean) / (double)count;
}

enum status report_journal(struct report *report, struct bundle *bundle, struct error *error)
{
    uint64_t count = 0;
    enum status status = bundle_step_count(&count, bundle, error);

    for (uint64_t step = 0; step < count && status == STATUS_OK; step++) {
        struct report_cell *cell = &report->cells[step / report->cell_steps];
        struct bundle_step entry;
        float loss;

        if (step / report->cell_steps >= report->cell_count) {
            break;
        }
        status = bundle_step_read(&entry, bundle, step, error);
        if (status != STATUS_OK) {
            break;
        }
        memcpy(&loss, &entry.loss_bits, sizeof(loss));
        cell->journaled++;
        cell->solver_time =
            next_mean(cell->solver_time, milliseconds(entry.nanoseconds), cell->journaled);
        if (!entry.hidden && isfinite(loss)) {
            cell->losses++;
            cell->loss = next_mean(cell->loss, loss, cell->losses);
        }
    }
    return status;
}

void report_step(void *context, const struct bundle_step *entry, uint64_t nanoseconds, bool equal)
{
    struct report *report = context;
    uint64_t at = entry->step / report->cell_steps;

    if (at >= report->cell_count) {
        return;
    }
    report->cells[at].checked++;
    report->cells[at].wrong |= !equal;
    report->cells[at].replay_time = next_mean(report->cells[at].replay_time,
                                              milliseconds(nanoseconds), report->cells[at].checked);
}

void report_end(struct report *report, const struct audit_view *view)
{
    (void)snprintf(report->title, sizeof(report->title), "%s", view->path);
    (void)snprintf(report->evidence, sizeof(report->evidence), "%.255s", view->evidence);
    report->result = view->result;
    report->result.location.evidence = NULL;
}

enum report_mark report_mark(const struct report_cell *cell)
{
    if (cell->wrong) {
        return REPORT_WRONG;
    }
    if (cell->checked > 0) {
        return REPORT_CHECKED;
    }
    return cell->journaled > 0 ? REPORT_NOT_CHECKED : REPORT_NOT_RUN;
}

/* ---- text --------------------------------------------------------------- */

static void add_escaped(struct buffer *page, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '<' || byte == '>' || byte == '&' || byte == '"' || byte == '\'') {
            buffer_add_format(page, "&#%u;", byte);
        } else if (byte < ' ' || byte == 0x7f) {
            buffer_add_text(page, "?");
        } else {
            buffer_add_u8(page, byte);
        }
    }
}

static void add_digest(struct buffer *page, const struct digest *digest)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, digest->bytes, DIGEST_SIZE);
    buffer_add_format(page, "<code>%s</code>", text);
}

static void add_style(struct buffer *page)
{
    buffer_add_text(
        page,
        "<style>\n"
        ":root{color-scheme:light dark;--ink:#1c2024;--dim:#667079;--line:#d9dee3;--ground:#fff;"
        "--good:#1a7f4b;--bad:#c0271d;--open:#b7791f;--loss:#2f6fd6}\n"
        "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--dim:#97a1aa;--line:#363d44;"
        "--ground:#15181b;--good:#4cc38a;--bad:#ff6369;--open:#f0b455;--loss:#7aa7f5}}\n"
        "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);"
        "max-width:46rem;margin:2rem auto;padding:0 1rem}\n"
        "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}h3{font-size:.95rem;"
        "margin:1.4rem 0 .3rem}\n"
        "a{color:inherit}code{font:.8em ui-monospace,monospace;overflow-wrap:anywhere}\n"
        ".verdict{border-left:6px solid;padding:.4rem 1rem;margin:1rem 0;font-size:1.1rem}\n"
        ".proven{border-color:var(--good)}.refuted{border-color:var(--bad)}"
        ".cannot-tell{border-color:var(--open)}\n"
        "table{border-collapse:collapse;width:100%}td{border-bottom:1px solid var(--line);"
        "padding:.25rem .5rem;vertical-align:top}td:first-child{color:var(--dim);width:13rem}\n"
        "svg{width:100%;height:auto;overflow:visible}"
        "svg text{font:11px system-ui,sans-serif;fill:var(--dim)}"
        "svg path{vector-effect:non-scaling-stroke}\n"
        ".axis{stroke:var(--line)}.a{stroke:var(--loss)}.b{stroke:var(--open)}"
        ".m0{fill:var(--line);opacity:.45}.m1{fill:var(--dim);opacity:.55}.m2{fill:var(--good)}"
        ".m3{fill:var(--bad)}.word{display:inline-block;margin:0 1em 0 0}"
        ".key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 0}"
        "\nh3 .word{margin:0 0 0 "
        "1em}.k0{background:var(--line);opacity:.45}.k1{background:var(--dim);opacity:.55}"
        ".k2{background:var(--good)}.k3{background:var(--bad)}.ka{background:var(--loss)}"
        ".kb{background:var(--open)}\n"
        "footer{color:var(--dim);margin-top:3rem;font-size:.85rem}\n"
        /* Small screens: values below their names, and plots with words of full size. */
        "@media(max-width:36rem){body{margin:1rem auto}td{display:block;padding:.1rem 0 .4rem}"
        "td:first-child{width:auto;border:0;padding:.4rem 0 0}svg text{font-size:20px}}\n"
        "</style>\n");
}

/* ---- plots -------------------------------------------------------------- */

struct series {
    const char *class;
    bool (*value)(double *value, const struct report_cell *cell);
};

struct plot {
    const char *name;
    bool from_zero; /* and without the few highest: single steps take long on a busy machine */
    const struct series *series;
    size_t series_count;
};

static bool loss_of(double *value, const struct report_cell *cell)
{
    *value = cell->loss;
    return cell->losses > 0;
}

static bool solver_time_of(double *value, const struct report_cell *cell)
{
    *value = cell->solver_time;
    return cell->journaled > 0;
}

static bool replay_time_of(double *value, const struct report_cell *cell)
{
    *value = cell->replay_time;
    return cell->checked > 0;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

/*
 * The range of the values; *most is the highest of all. A few very long times would flatten the
 * plot: the range ends below them, and the page says how many are left out.
 */
static bool plot_range(double *low, double *high, double *most, const struct report *report,
                       const struct plot *plot)
{
    double values[2 * REPORT_POINTS_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < report->cell_count; i++) {
        for (size_t s = 0; s < plot->series_count; s++) {
            count += plot->series[s].value(&values[count], &report->cells[i]);
        }
    }
    if (count == 0) {
        return false;
    }
    qsort(values, count, sizeof(values[0]), by_size);
    *low = plot->from_zero ? 0 : values[0];
    *most = *high = values[count - 1];
    if (plot->from_zero && *most > SPIKE * values[count - 1 - count / SPIKES_IN]) {
        *high = 1.5 * values[count - 1 - count / SPIKES_IN];
    }
    if (*high - *low < 1e-9 * fmax(1, fabs(*high))) {
        *high = *low + fmax(1, fabs(*low)) * 1e-3;
    }
    return true;
}

static double place_x(const struct report *report, uint32_t cell)
{
    uint32_t last = report->cell_count > 1 ? report->cell_count - 1 : 1;

    return PLOT_LEFT + (PLOT_WIDTH - PLOT_LEFT - 8) * (double)cell / last;
}

static double place_y(double value, double low, double high)
{
    value = value < high ? value : high;
    return 8 + (PLOT_HEIGHT - PLOT_BOTTOM - 8) * (1 - (value - low) / (high - low));
}

static void add_line(struct buffer *page, const struct report *report, const struct series *series,
                     double low, double high)
{
    bool drawing = false;

    buffer_add_format(page, "<path class=\"%s\" fill=\"none\" stroke-width=\"1.5\" d=\"",
                      series->class);
    for (uint32_t i = 0; i < report->cell_count; i++) {
        double value;

        if (!series->value(&value, &report->cells[i])) {
            drawing = false;
            continue;
        }
        /* A lone point is drawn as a short stroke: otherwise nobody sees it. */
        buffer_add_format(page, "%s%.1f %.1f%s", drawing ? "L" : "M", place_x(report, i),
                          place_y(value, low, high), drawing ? "" : "h1");
        drawing = true;
    }
    buffer_add_text(page, "\"/>\n");
}

static void add_plot(struct buffer *page, const struct report *report, const struct plot *plot)
{
    double low;
    double high;
    double most;

    if (!plot_range(&low, &high, &most, report, plot)) {
        buffer_add_text(page, "<p>There is nothing to plot.</p>\n");
        return;
    }
    buffer_add_format(page, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
                      PLOT_WIDTH, PLOT_HEIGHT, plot->name);
    for (int tick = 0; tick <= 4; tick++) {
        double value = low + (high - low) * tick / 4;
        double y = place_y(value, low, high);

        buffer_add_format(page,
                          "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n",
                          PLOT_LEFT, PLOT_WIDTH - 8, y, y, PLOT_LEFT - 6, y + 4, value);
    }
    buffer_add_format(page,
                      "<text x=\"%d\" y=\"%d\">step 0</text><text x=\"%d\" y=\"%d\" "
                      "text-anchor=\"end\">step %" PRIu64 "</text>\n",
                      PLOT_LEFT, PLOT_HEIGHT - 6, PLOT_WIDTH - 8, PLOT_HEIGHT - 6,
                      report->result.steps_of_job - 1);
    for (size_t s = 0; s < plot->series_count; s++) {
        add_line(page, report, &plot->series[s], low, high);
    }
    buffer_add_text(page, "</svg>\n");
    if (most > high) {
        buffer_add_format(page, "<p>A few are above the plot, the highest at %.3g ms.</p>\n", most);
    }
}

/* A square is paler when only a part of it was run again. */
static double shade(const struct report_cell *cell)
{
    return report_mark(cell) == REPORT_CHECKED && cell->checked < cell->count
               ? 0.3 + 0.5 * (double)cell->checked / (double)cell->count
               : 1;
}

static void add_squares(struct buffer *page, const struct report *report)
{
    for (uint32_t i = 0; i < report->cell_count; i++) {
        const struct report_cell *cell = &report->cells[i];
        char paler[40] = "";

        if (shade(cell) < 1) {
            (void)snprintf(paler, sizeof(paler), " fill-opacity=\"%.2f\"", shade(cell));
        }
        buffer_add_format(page,
                          "<rect class=\"m%d\"%s x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" "
                          "rx=\"2\"><title>steps %" PRIu64 " to %" PRIu64 ": %" PRIu64
                          " of %" PRIu64 " checked</title></rect>\n",
                          report_mark(cell), paler, i % MAP_COLUMNS * MAP_CELL,
                          i / MAP_COLUMNS * MAP_CELL, MAP_CELL - 2, MAP_CELL - 2, cell->first,
                          cell->first + cell->count - 1, cell->checked, cell->count);
    }
}

static void add_map(struct buffer *page, const struct report *report)
{
    static const char *const words[] = {"not run", "not checked", "run again: the same bits",
                                        "run again: other bits"};
    uint32_t rows = (report->cell_count + MAP_COLUMNS - 1) / MAP_COLUMNS;

    buffer_add_format(page,
                      "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"Which steps were run "
                      "again\">\n",
                      MAP_COLUMNS * MAP_CELL, rows * MAP_CELL);
    add_squares(page, report);
    buffer_add_text(page, "</svg>\n<p>");
    for (int mark = REPORT_NOT_RUN; mark <= REPORT_WRONG; mark++) {
        buffer_add_format(page, "<span class=\"word\"><span class=\"key k%d\"></span>%s</span> ",
                          mark, words[mark]);
    }
    buffer_add_format(page, "</p>\n<p>A square is %" PRIu64 " step%s%s</p>\n", report->cell_steps,
                      report->cell_steps == 1 ? "" : "s",
                      report->cell_steps == 1 ? "."
                                              : "; paler, where only some of them were run again.");
}

/* ---- sections ----------------------------------------------------------- */

static void add_verdict(struct buffer *page, const struct report *report)
{
    const struct audit_result *result = &report->result;

    buffer_add_format(page, "<p class=\"verdict %s\">", audit_answer_name(result->answer));
    switch (result->answer) {
    case AUDIT_PROVEN:
        buffer_add_format(page,
                          "<b>Proven.</b> %" PRIu64 " of %" PRIu64
                          " steps were run again and gave the same bits.%s",
                          result->steps_checked, result->steps_of_job,
                          result->steps_checked < result->steps_of_job
                              ? " At the others nobody has looked."
                              : "");
        break;
    case AUDIT_REFUTED:
        buffer_add_format(page,
                          "<b>Refuted.</b> Step %" PRIu64
                          " %s. A second replay with other instructions agrees.",
                          result->wrong_step, audit_flaw_words(result->flaw));
        break;
    case AUDIT_CANNOT_TELL:
        buffer_add_text(page, "<b>Cannot tell.</b> ");
        add_escaped(page, result->reason.text);
        buffer_add_text(page, ".");
        if (result->reason.advice[0] != '\0') {
            buffer_add_text(page, " Try: ");
            add_escaped(page, result->reason.advice);
            buffer_add_text(page, ".");
        }
        break;
    }
    buffer_add_text(page, "</p>\n");
}

static void add_value(struct buffer *page, const char *whose, const struct fault_location *location,
                      uint32_t bits)
{
    char value[FAULT_LOCATION_VALUE_MAX];
    char hex[FAULT_LOCATION_VALUE_MAX];

    fault_location_value(value, location->dtype, bits);
    fault_location_bits(hex, location->dtype, bits);
    buffer_add_format(page, "<tr><td>%s</td><td>%s <code>%s</code></td></tr>\n", whose, value, hex);
}

/* What differs, and the evidence. */
static void add_difference(struct buffer *page, const struct report *report)
{
    const struct fault_location *location = &report->result.location;
    char place[FAULT_LOCATION_TEXT_MAX];

    if (location->tensor_known) {
        fault_location_place(place, location);
        buffer_add_text(page, "<tr><td>First difference</td><td>");
        add_escaped(page, place);
        buffer_add_text(page, "</td></tr>\n");
    }
    if (location->op_known) {
        buffer_add_format(page, "<tr><td>Made by operation</td><td>%u (%s)%s%s</td></tr>\n",
                          location->op, location->op_name,
                          location->instance[0] == '\0' ? "" : ", ", location->instance);
    }
    if (location->element_known) {
        add_value(page, "The solver's value", location, location->found);
        if (location->wanted_known) {
            add_value(page, "The true value", location, location->wanted);
        }
    }
    if (report->evidence[0] != '\0') {
        buffer_add_text(page, "<tr><td>Evidence</td><td><code>");
        add_escaped(page, report->evidence);
        buffer_add_format(page,
                          "</code> (%s, %zu bytes), to be judged by anybody: <code>lockstep audit "
                          "--evidence</code>; on the ledger: <code>lockstep verifier claim "
                          "--evidence</code></td></tr>\n",
                          fault_location_kind_name(location->kind), location->evidence_size);
    }
    if (location->lacking[0] != '\0') {
        buffer_add_text(page, "<tr><td>What is lacking</td><td>");
        add_escaped(page, location->lacking);
        buffer_add_text(page, "</td></tr>\n");
    }
}

/* What the signed report says of the job. */
static void add_about(struct buffer *page, const json_t *about)
{
    char value[CITATION_VALUE_MAX];
    const char *label;

    for (size_t i = 0; about != NULL && citation_line(&label, value, about, i); i++) {
        if (label != NULL && strcmp(label, "Job") != 0) { /* which is there already */
            buffer_add_format(page, "<tr><td>%s</td><td>", label);
            add_escaped(page, value);
            buffer_add_text(page, "</td></tr>\n");
        }
    }
}

static void add_facts(struct buffer *page, const struct report *report)
{
    const struct audit_result *result = &report->result;

    buffer_add_text(page, "<table>\n<tr><td>Job</td><td>");
    add_digest(page, &report->job_id);
    buffer_add_format(page,
                      "</td></tr>\n<tr><td>Steps of the job</td><td>%" PRIu64
                      "</td></tr>\n<tr><td>Steps in the journal</td><td>%" PRIu64
                      "</td></tr>\n<tr><td>Steps run again</td><td>%" PRIu64
                      "</td></tr>\n<tr><td>Replayed on</td><td>",
                      result->steps_of_job, result->steps_journaled, result->steps_checked);
    add_escaped(page, report->device);
    buffer_add_format(page, "</td></tr>\n<tr><td>Time of the audit</td><td>%.1f s</td></tr>\n",
                      report->seconds);
    if (result->answer == AUDIT_REFUTED) {
        buffer_add_format(page, "<tr><td>State after step %" PRIu64 ", journal</td><td>",
                          result->wrong_step);
        add_digest(page, &result->wrong_root);
        buffer_add_text(page, "</td></tr>\n<tr><td>and as two replays gave it</td><td>");
        add_digest(page, &result->true_root);
        buffer_add_text(page, "</td></tr>\n");
        add_difference(page, report);
    }
    add_about(page, report->about);
    buffer_add_text(page, "</table>\n");
}

static void add_unchecked(struct buffer *page, const struct report *report)
{
    const struct audit_result *result = &report->result;
    uint64_t unchecked = result->steps_of_job - result->steps_checked;
    uint64_t not_run = result->steps_of_job - result->steps_journaled;

    buffer_add_text(page, "<h3>What was not checked</h3>\n<ul>\n");
    if (unchecked > 0) {
        buffer_add_format(page, "<li>%" PRIu64 " step%s, of which nothing is known", unchecked,
                          unchecked == 1 ? "" : "s");
        if (not_run > 0) {
            buffer_add_format(page, "; the solver had not run %" PRIu64 " of them", not_run);
        }
        buffer_add_text(page, result->answer == AUDIT_REFUTED
                                  ? ". What follows a false step is not looked at.</li>\n"
                                  : ".</li>\n");
    }
    buffer_add_text(page,
                    "<li>Times, energy and names of devices: they are the solver's words.</li>\n"
                    "<li>Whether the data is good, and whether the model is.</li>\n");
    if (json_object_get(report->about, "ledger") != NULL) {
        buffer_add_text(page, "<li>What the solver says of the ledger: nobody asked it.</li>\n");
    }
    buffer_add_text(page, "</ul>\n");
}

static void add_broken(struct buffer *page, const char *what,
                       const struct broken_checkpoint *broken)
{
    buffer_add_format(page, "<li>%s <code>", what);
    add_escaped(page, broken->name);
    buffer_add_text(page, "</code> is broken: ");
    add_escaped(page, broken->why);
    buffer_add_text(page, "</li>\n");
}

static void add_checkpoints(struct buffer *page, const struct checkpoint_audit *checkpoints)
{
    buffer_add_format(page,
                      "<h3>Checkpoints</h3>\n<ul>\n<li>%" PRIu64
                      " hold the state that was committed to</li>\n",
                      checkpoints->checked);
    if (checkpoints->locked > 0) {
        buffer_add_format(page, "<li>%" PRIu64 " are encrypted; nobody looked at them</li>\n",
                          checkpoints->locked);
    }
    for (size_t i = 0; i < checkpoints->broken_count && i < BROKEN_CHECKPOINTS_MAX; i++) {
        add_broken(page, "Checkpoint", &checkpoints->broken[i]);
    }
    if (checkpoints->broken_count > BROKEN_CHECKPOINTS_MAX) {
        buffer_add_format(page, "<li>%" PRIu64 " more are broken</li>\n",
                          checkpoints->broken_count - BROKEN_CHECKPOINTS_MAX);
    }
    if (checkpoints->last.name[0] != '\0') {
        add_broken(page, "The last checkpoint", &checkpoints->last);
    }
    buffer_add_text(page, "</ul>\n");
}

/* A table of all audits, with links to each. */
static void add_list(struct buffer *page, const struct report *reports, size_t count)
{
    buffer_add_text(page, "<table>\n");
    for (size_t i = 0; i < count; i++) {
        const char *answer = audit_answer_name(reports[i].result.answer);

        buffer_add_format(page, "<tr><td>%s</td><td><a href=\"#b%zu\">", answer, i);
        add_escaped(page, reports[i].title);
        buffer_add_text(page, "</a></td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

static void add_report(struct buffer *page, const struct report *report, size_t number)
{
    static const struct series loss[] = {{"a", loss_of}};
    static const struct series times[] = {{"a", solver_time_of}, {"b", replay_time_of}};
    const struct plot loss_plot = {.name = "Loss by step", .series = loss, .series_count = 1};
    const struct plot time_plot = {.name = "Time of a step, in milliseconds",
                                   .from_zero = true,
                                   .series = times,
                                   .series_count = 2};

    buffer_add_format(page, "<section>\n<h2 id=\"b%zu\">", number);
    add_escaped(page, report->title);
    buffer_add_text(page, "</h2>\n");
    add_verdict(page, report);
    add_facts(page, report);
    if (report->cell_count == 0) { /* the bundle did not open */
        buffer_add_text(page, "</section>\n");
        return;
    }
    buffer_add_text(page, "<h3>Where it was checked</h3>\n");
    add_map(page, report);
    buffer_add_text(page, "<h3>Loss, as journaled</h3>\n");
    add_plot(page, report, &loss_plot);
    buffer_add_text(page,
                    "<h3>Time of a step, ms <span class=\"word\"><span class=\"key ka\"></span>"
                    "solver</span> <span class=\"word\"><span class=\"key kb\"></span>"
                    "replay</span></h3>\n");
    add_plot(page, report, &time_plot);
    add_checkpoints(page, &report->result.checkpoints);
    add_unchecked(page, report);
    buffer_add_text(page, "</section>\n");
}

enum status report_write(const char *path, const struct report *reports, size_t count,
                         struct error *error)
{
    struct buffer page;
    enum status status;

    buffer_init(&page, PAGE_SIZE_MAX);
    buffer_add_text(&page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width\">\n"
                           "<title>Lockstep audit</title>\n");
    add_style(&page);
    buffer_add_text(&page, "</head>\n<body>\n<h1>Lockstep audit</h1>\n");
    if (count > 1) {
        add_list(&page, reports, count);
    }
    for (size_t i = 0; i < count; i++) {
        add_report(&page, &reports[i], i);
    }
    buffer_add_text(&page, "<footer>Made by lockstep " LOCKSTEP_VERSION
                           ". A step is called checked only where it was run again, whole, and "
                           "every bit of the state after it was compared.</footer>\n"
                           "</body>\n</html>\n");
    status = buffer_check(&page, error, "the report");
    if (status == STATUS_OK) {
        status = file_write(path, error, page.data, page.size, 0644);
    }
    buffer_release(&page);
    return status;
}
