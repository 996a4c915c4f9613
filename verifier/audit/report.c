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
#include "base/web/web_page.h"
#include "base/web/web_parts.h"
#include "base/web/web_plot.h"
#include "verifier/audit/citation.h"

#define PAGE_SIZE_MAX (UINT64_C(64) << 20)

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

static double milliseconds_of(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e6;
}

/* The mean of count values; `value` is the last of them. */
static double next_mean(double mean, double value, uint64_t count)
{
    return mean + (value - mean) / (double)count;
}

static void add_figure(struct report_mean *mean, uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    if (isfinite(value)) {
        mean->count++;
        mean->value = next_mean(mean->value, value, mean->count);
    }
}

enum status report_journal(struct report *report, struct bundle *bundle, struct error *error)
{
    uint64_t count = 0;
    enum status status = bundle_step_count(&count, bundle, error);

    for (uint64_t step = 0; step < count && status == STATUS_OK; step++) {
        struct report_cell *cell = &report->cells[step / report->cell_steps];
        struct bundle_step entry;

        if (step / report->cell_steps >= report->cell_count) {
            break;
        }
        status = bundle_step_read(&entry, bundle, step, error);
        if (status != STATUS_OK) {
            break;
        }
        cell->journaled++;
        cell->solver_time =
            next_mean(cell->solver_time, milliseconds_of(entry.nanoseconds), cell->journaled);
        if (!entry.hidden) {
            add_figure(&cell->loss, entry.loss_bits);
        }
        if (!entry.hidden && entry.evaluated) {
            add_figure(&cell->held_out, entry.held_out_bits);
        }
    }
    return status;
}

void report_step(void *context, const struct audit_step *step)
{
    struct report *report = context;
    uint64_t at = step->entry->step / report->cell_steps;
    struct report_cell *cell;

    if (at >= report->cell_count) {
        return;
    }
    cell = &report->cells[at];
    cell->checked++;
    cell->wrong |= step->figures == NULL;
    cell->replay_time =
        next_mean(cell->replay_time, milliseconds_of(step->nanoseconds), cell->checked);
    if (step->figures != NULL) {
        add_figure(&cell->true_loss, step->figures->loss_bits);
    }
    if (step->figures != NULL && step->figures->evaluated != 0) {
        add_figure(&cell->true_held_out, step->figures->held_out_bits);
    }
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

/* ---- plots -------------------------------------------------------------- */

struct report_plot {
    const char *unit;
    bool from_zero;
    struct report_series {
        const char *words;
        enum web_plot_form form;
        bool (*value)(double *value, const struct report_cell *cell);
    } series[WEB_PLOT_SERIES_MAX];
};

static bool loss_of(double *value, const struct report_cell *cell)
{
    *value = cell->true_loss.value;
    return cell->true_loss.count > 0;
}

static bool held_loss_of(double *value, const struct report_cell *cell)
{
    *value = cell->true_held_out.value;
    return cell->true_held_out.count > 0;
}

/* The solver's word counts where nobody looked. */
static bool told_loss_of(double *value, const struct report_cell *cell)
{
    *value = cell->loss.value;
    return cell->loss.count > 0 && cell->checked == 0;
}

static bool told_held_loss_of(double *value, const struct report_cell *cell)
{
    *value = cell->held_out.value;
    return cell->held_out.count > 0 && cell->checked == 0;
}

static bool has_held_out(const struct report *report)
{
    for (uint32_t i = 0; i < report->cell_count; i++) {
        if (report->cells[i].held_out.count + report->cells[i].true_held_out.count > 0) {
            return true;
        }
    }
    return false;
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

static void add_plot(struct buffer *page, const struct report *report,
                     const struct report_plot *shown)
{
    double values[WEB_PLOT_SERIES_MAX][REPORT_POINTS_MAX];
    char last[40];
    struct web_plot plot = {.unit = shown->unit,
                            .first = "step 0",
                            .last = last,
                            .from_zero = shown->from_zero,
                            .count = report->cell_count,
                            .series_count = WEB_PLOT_SERIES_MAX};

    (void)snprintf(last, sizeof(last), "step %" PRIu64, report->result.steps_of_job - 1);
    for (uint32_t s = 0; s < WEB_PLOT_SERIES_MAX; s++) {
        plot.series[s] =
            (struct web_series){shown->series[s].words, shown->series[s].form, values[s]};
        for (uint32_t i = 0; i < report->cell_count; i++) {
            if (!shown->series[s].value(&values[s][i], &report->cells[i])) {
                values[s][i] = NAN;
            }
        }
    }
    web_plot_write(page, &plot);
}

static void add_map(struct buffer *page, const struct report *report)
{
    enum { NOT_RUN, NOT_CHECKED, SAME, SOME_SAME, OTHER = 5 };
    static const uint8_t signs[] = {[REPORT_NOT_RUN] = NOT_RUN,
                                    [REPORT_NOT_CHECKED] = NOT_CHECKED,
                                    [REPORT_CHECKED] = SAME,
                                    [REPORT_WRONG] = OTHER};
    static const char *const words[WEB_SQUARES_MARKS] = {
        [NOT_RUN] = "not run",
        [NOT_CHECKED] = "not checked",
        [SAME] = "run again: the same bits",
        [SOME_SAME] = "some of them run again: the same bits",
        [OTHER] = "run again: other bits"};
    uint8_t marks[REPORT_POINTS_MAX];
    const struct web_squares squares = {.name = "steps by what the audit did",
                                        .unit = "step",
                                        .marks = marks,
                                        .count = report->cell_count,
                                        .each = report->cell_steps,
                                        .total = report->result.steps_of_job,
                                        .words = words};

    for (uint32_t i = 0; i < report->cell_count; i++) {
        const struct report_cell *cell = &report->cells[i];
        enum report_mark mark = report_mark(cell);

        marks[i] = mark == REPORT_CHECKED && cell->checked < cell->count ? SOME_SAME : signs[mark];
    }
    web_parts_squares(page, &squares);
}

/* ---- sections ----------------------------------------------------------- */

static void add_verdict(struct buffer *page, const struct report *report)
{
    static const char *const classes[] = {
        [AUDIT_PROVEN] = "well", [AUDIT_REFUTED] = "ill", [AUDIT_CANNOT_TELL] = "open"};
    const struct audit_result *result = &report->result;

    buffer_add_format(page, "<p class=\"word %s\">", classes[result->answer]);
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
                          result->wrong_step, check_flaw_words(result->flaw));
        break;
    case AUDIT_CANNOT_TELL:
        buffer_add_text(page, "<b>Cannot tell.</b> ");
        web_page_text(page, result->reason.text);
        buffer_add_text(page, ".");
        if (result->reason.advice[0] != '\0') {
            buffer_add_text(page, " Try: ");
            web_page_text(page, result->reason.advice);
            buffer_add_text(page, ".");
        }
        break;
    }
    buffer_add_text(page, "</p>\n");
}

static void add_element(struct buffer *page, const char *whose,
                        const struct fault_location *location, uint32_t bits)
{
    char value[FAULT_LOCATION_VALUE_MAX];
    char hex[FAULT_LOCATION_VALUE_MAX];

    fault_location_value(value, location->dtype, bits);
    fault_location_bits(hex, location->dtype, bits);
    web_parts_value_begin(page, whose);
    buffer_add_format(page, "%s <code>%s</code>", value, hex);
    web_parts_value_end(page);
}

static void add_evidence(struct buffer *page, const struct report *report)
{
    const struct fault_location *location = &report->result.location;

    web_parts_value_begin(page, "Evidence");
    buffer_add_text(page, "<code>");
    web_page_text(page, report->evidence);
    buffer_add_format(page,
                      "</code> (%s, %zu bytes), to be judged by anybody: <code>lockstep audit "
                      "--evidence</code>; on the ledger: <code>lockstep verifier claim "
                      "--evidence</code>",
                      fault_location_kind_name(location->kind), location->evidence_size);
    web_parts_value_end(page);
}

/* What differs, and the evidence. */
static void add_difference(struct buffer *page, const struct report *report)
{
    const struct fault_location *location = &report->result.location;
    char text[FAULT_LOCATION_TEXT_MAX];

    if (location->tensor_known) {
        fault_location_place(text, location);
        web_parts_value(page, "First difference", text);
    }
    if (location->op_known) {
        (void)snprintf(text, sizeof(text), "%u (%s)%s%s", location->op, location->op_name,
                       location->instance[0] == '\0' ? "" : ", ", location->instance);
        web_parts_value(page, "Made by operation", text);
    }
    if (location->element_known) {
        add_element(page, "The solver's value", location, location->found);
        if (location->wanted_known) {
            add_element(page, "The true value", location, location->wanted);
        }
    }
    if (report->evidence[0] != '\0') {
        add_evidence(page, report);
    }
    if (location->lacking[0] != '\0') {
        web_parts_value(page, "What is lacking", location->lacking);
    }
}

/* What the signed report says of the job. */
static void add_about(struct buffer *page, const json_t *about)
{
    char value[CITATION_VALUE_MAX];
    const char *label;

    for (size_t i = 0; about != NULL && citation_line(&label, value, about, i); i++) {
        if (label != NULL && strcmp(label, "Job") != 0) { /* which is there already */
            bool is_root =
                strlen(value) >= 40 && strspn(value, "0123456789abcdefABCDEFx") == strlen(value);

            web_parts_value_begin(page, label);
            buffer_add_text(page, is_root ? "<code>" : "");
            web_page_text(page, value);
            buffer_add_text(page, is_root ? "</code>" : "");
            web_parts_value_end(page);
        }
    }
}

static void add_digest(struct buffer *page, const char *name, const struct digest *digest)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, digest->bytes, DIGEST_SIZE);
    web_parts_value_begin(page, name);
    buffer_add_format(page, "<code>%s</code>", text);
    web_parts_value_end(page);
}

static void add_number(struct buffer *page, const char *name, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    web_parts_value(page, name, text);
}

/* What the refutation is about: the solver's name under the segment. */
static void add_signature(struct buffer *page, const struct audit_result *result)
{
    char text[HEX_SIZE(BUNDLE_SIGNATURE_MAX)] = "none is in the bundle";

    if (result->signature_size > 0) {
        hex_encode(text, result->signature, result->signature_size);
    }
    web_parts_value_begin(page, "The signature that this refutes");
    buffer_add_format(page, "<code>%s</code>", text);
    web_parts_value_end(page);
}

static void add_facts(struct buffer *page, const struct report *report)
{
    const struct audit_result *result = &report->result;
    char text[64];

    buffer_add_text(page, "<table class=\"values\">\n");
    add_digest(page, "Job", &report->job_id);
    add_number(page, "Steps of the job", result->steps_of_job);
    add_number(page, "Steps in the journal", result->steps_journaled);
    add_number(page, "Steps run again", result->steps_checked);
    web_parts_value(page, "Replayed on", report->device);
    (void)snprintf(text, sizeof(text), "%.1f s", report->seconds);
    web_parts_value(page, "Time of the audit", text);
    if (result->answer == AUDIT_REFUTED) {
        (void)snprintf(text, sizeof(text), "State after step %" PRIu64 ", journal",
                       result->wrong_step);
        add_digest(page, text, &result->wrong_root);
        add_digest(page, "and as two replays gave it", &result->true_root);
        add_signature(page, result);
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
    web_page_text(page, broken->name);
    buffer_add_text(page, "</code> is broken: ");
    web_page_text(page, broken->why);
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
    static const char *const headings[] = {"Verdict", "Bundle"};

    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    for (size_t i = 0; i < count; i++) {
        const char *answer = audit_answer_name(reports[i].result.answer);

        buffer_add_format(page, "<tr><td>%s</td><td class=\"own\"><a href=\"#b%zu\">", answer, i);
        web_page_text(page, reports[i].title);
        buffer_add_text(page, "</a></td></tr>\n");
    }
    buffer_add_text(page, "</table>\n");
}

static void add_report(struct buffer *page, const struct report *report, size_t number)
{
    static const struct report_plot losses = {
        .unit = "",
        .series = {{"replayed", WEB_PLOT_PIECES, loss_of},
                   {"the solver's words, not checked", WEB_PLOT_LINE, told_loss_of}}};
    static const struct report_plot held_out = {
        .unit = "",
        .series = {{"replayed", WEB_PLOT_POINTS, held_loss_of},
                   {"the solver's words, not checked", WEB_PLOT_POINTS, told_held_loss_of}}};
    static const struct report_plot times = {
        .unit = " ms",
        .from_zero = true,
        .series = {{"solver", WEB_PLOT_LINE, solver_time_of},
                   {"replay", WEB_PLOT_PIECES, replay_time_of}}};

    buffer_add_format(page, "<section>\n<h2 id=\"b%zu\">", number);
    web_page_text(page, report->title);
    buffer_add_text(page, "</h2>\n");
    add_verdict(page, report);
    add_facts(page, report);
    if (report->cell_count == 0) { /* the bundle did not open */
        buffer_add_text(page, "</section>\n");
        return;
    }
    buffer_add_text(page, "<h3>Where it was checked</h3>\n");
    add_map(page, report);
    buffer_add_text(page, "<h3>Loss</h3>\n");
    add_plot(page, report, &losses);
    if (has_held_out(report)) {
        buffer_add_text(page, "<h3>Held-out loss</h3>\n");
        add_plot(page, report, &held_out);
    }
    buffer_add_text(page, "<h3>Time of a step, in milliseconds</h3>\n");
    add_plot(page, report, &times);
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
    web_page_begin(&page, "Lockstep audit");
    buffer_add_text(&page, "<h1>Lockstep audit</h1>\n");
    if (count > 1) {
        add_list(&page, reports, count);
    }
    for (size_t i = 0; i < count; i++) {
        add_report(&page, &reports[i], i);
    }
    web_page_end(&page, 0,
                 "A step is called checked only where it was run again, whole, and every bit of "
                 "the state after it was compared.");
    status = buffer_check(&page, error, "the report");
    if (status == STATUS_OK) {
        status = file_write(path, error, page.data, page.size, 0644);
    }
    buffer_release(&page);
    return status;
}
