/* report.c - see report.h. */
#include "verifier/audit/report.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hex.h"
#include "base/io/file.h"
#include "base/sheet/sheet.h"
#include "engine/ops/real.h"
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
    const float value = real_from_bits(bits);

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

/* ---- plots -------------------------------------------------------------- */

struct report_plot {
    const char *unit;
    bool from_zero;
    struct report_series {
        const char *words;
        enum sheet_form form;
        bool (*value)(double *value, const struct report_cell *cell);
    } series[SHEET_SERIES_MAX];
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

/* A job without one makes states of states. */
static bool has_loss(const struct report *report)
{
    for (uint32_t i = 0; i < report->cell_count; i++) {
        if (report->cells[i].loss.count + report->cells[i].true_loss.count > 0) {
            return true;
        }
    }
    return false;
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

static void add_plot(struct sheet *view, const struct report *report,
                     const struct report_plot *shown)
{
    struct sheet_plot plot = {.unit = shown->unit,
                              .first = "step 0",
                              .from_zero = shown->from_zero,
                              .count = report->cell_count,
                              .series_count = SHEET_SERIES_MAX};

    (void)snprintf(plot.last, sizeof(plot.last), "step %" PRIu64, report->result.steps_of_job - 1);
    for (uint32_t s = 0; s < SHEET_SERIES_MAX; s++) {
        struct sheet_series *series = &plot.series[s];

        series->words = shown->series[s].words;
        series->form = shown->series[s].form;
        for (uint32_t i = 0; i < report->cell_count; i++) {
            if (!shown->series[s].value(&series->values[i], &report->cells[i])) {
                series->values[i] = NAN;
            }
        }
    }
    sheet_plot(view, &plot);
}

static void add_map(struct sheet *view, const struct report *report)
{
    enum { NOT_RUN, NOT_CHECKED, SAME, SOME_SAME, OTHER = 5 };
    static const uint8_t signs[] = {[REPORT_NOT_RUN] = NOT_RUN,
                                    [REPORT_NOT_CHECKED] = NOT_CHECKED,
                                    [REPORT_CHECKED] = SAME,
                                    [REPORT_WRONG] = OTHER};
    uint8_t marks[REPORT_POINTS_MAX];
    const struct sheet_squares squares = {
        .name = "steps by what the audit did",
        .unit = "step",
        .marks = marks,
        .count = report->cell_count,
        .each = report->cell_steps,
        .total = report->result.steps_of_job,
        .words = {[NOT_RUN] = "not run",
                  [NOT_CHECKED] = "not checked",
                  [SAME] = "run again: the same bits",
                  [SOME_SAME] = "some of them run again: the same bits",
                  [OTHER] = "run again: other bits"}};

    for (uint32_t i = 0; i < report->cell_count; i++) {
        const struct report_cell *cell = &report->cells[i];
        enum report_mark mark = report_mark(cell);

        marks[i] = mark == REPORT_CHECKED && cell->checked < cell->count ? SOME_SAME : signs[mark];
    }
    sheet_squares(view, &squares);
}

/* ---- sections ----------------------------------------------------------- */

static void add_verdict(struct sheet *view, const struct report *report)
{
    static const enum sheet_style tones[] = {
        [AUDIT_PROVEN] = SHEET_WELL, [AUDIT_REFUTED] = SHEET_ILL, [AUDIT_CANNOT_TELL] = SHEET_OPEN};
    const struct audit_result *result = &report->result;

    sheet_begin_line(view, tones[result->answer]);
    switch (result->answer) {
    case AUDIT_PROVEN:
        sheet_words(view, SHEET_STRONG, "Proven.");
        sheet_words(view, SHEET_PLAIN,
                    " %" PRIu64 " of %" PRIu64 " steps were run again and gave the same bits.%s",
                    result->steps_checked, result->steps_of_job,
                    result->steps_checked < result->steps_of_job
                        ? " At the others nobody has looked."
                        : "");
        break;
    case AUDIT_REFUTED:
        sheet_words(view, SHEET_STRONG, "Refuted.");
        sheet_words(view, SHEET_PLAIN,
                    " Step %" PRIu64 " %s. A second replay with other instructions agrees.",
                    result->wrong_step, check_flaw_words(result->flaw));
        break;
    case AUDIT_CANNOT_TELL:
        sheet_words(view, SHEET_STRONG, "Cannot tell.");
        sheet_words(view, SHEET_PLAIN, " %s.", result->reason.text);
        if (result->reason.advice[0] != '\0') {
            sheet_words(view, SHEET_PLAIN, " Try: %s.", result->reason.advice);
        }
        break;
    }
}

static void add_element(struct sheet *view, const char *whose,
                        const struct fault_location *location, uint32_t bits)
{
    char value[FAULT_LOCATION_VALUE_MAX];
    char hex[FAULT_LOCATION_VALUE_MAX];

    fault_location_value(value, location->dtype, bits);
    fault_location_bits(hex, location->dtype, bits);
    sheet_add(view, SHEET_FACT, whose, "%s ", value);
    sheet_words(view, SHEET_CODE, "%s", hex);
}

static void add_evidence(struct sheet *view, const struct report *report)
{
    const struct fault_location *location = &report->result.location;

    sheet_begin(view, SHEET_FACT, "Evidence");
    sheet_words(view, SHEET_CODE, "%s", report->evidence);
    sheet_words(view, SHEET_PLAIN, " (%s, %zu bytes), to be judged by anybody: ",
                fault_location_kind_name(location->kind), location->evidence_size);
    sheet_words(view, SHEET_CODE, "lockstep audit --verify-evidence");
    sheet_words(view, SHEET_PLAIN, "; on the ledger: ");
    sheet_words(view, SHEET_CODE, "lockstep verifier claim --evidence");
}

/* What differs, and the evidence. */
static void add_difference(struct sheet *view, const struct report *report)
{
    const struct fault_location *location = &report->result.location;
    char text[FAULT_LOCATION_TEXT_MAX];

    if (location->tensor_known) {
        fault_location_place(text, location);
        sheet_add(view, SHEET_FACT, "First difference", "%s", text);
    }
    if (location->op_known) {
        sheet_add(view, SHEET_FACT, "Made by operation", "%u (%s)%s%s", location->op,
                  location->op_name, location->instance[0] == '\0' ? "" : ", ", location->instance);
    }
    if (location->element_known) {
        add_element(view, "The solver's value", location, location->found);
        if (location->wanted_known) {
            add_element(view, "The true value", location, location->wanted);
        }
    }
    if (report->evidence[0] != '\0') {
        add_evidence(view, report);
    }
    if (location->lacking[0] != '\0') {
        sheet_add(view, SHEET_FACT, "What is lacking", "%s", location->lacking);
    }
}

/* What the signed report says of the job. */
static void add_about(struct sheet *view, const json_t *about)
{
    char value[CITATION_VALUE_MAX];
    const char *label;

    for (size_t i = 0; about != NULL && citation_line(&label, value, about, i); i++) {
        if (label != NULL && strcmp(label, "Job") != 0) { /* which is there already */
            bool is_root =
                strlen(value) >= 40 && strspn(value, "0123456789abcdefABCDEFx") == strlen(value);

            sheet_begin(view, SHEET_FACT, label);
            sheet_words(view, is_root ? SHEET_CODE : SHEET_PLAIN, "%s", value);
        }
    }
}

static void add_bytes(struct sheet *view, const char *name, const uint8_t *bytes, size_t size)
{
    char text[HEX_SIZE(BUNDLE_SIGNATURE_MAX)];

    hex_encode(text, bytes, size);
    sheet_begin(view, SHEET_FACT, name);
    sheet_words(view, SHEET_CODE, "%s", size == 0 ? "none is in the bundle" : text);
}

static void add_facts(struct sheet *view, const struct report *report)
{
    const struct audit_result *result = &report->result;
    char text[64];

    add_bytes(view, "Job", report->job_id.bytes, DIGEST_SIZE);
    sheet_add(view, SHEET_FACT, "Steps of the job", "%" PRIu64, result->steps_of_job);
    sheet_add(view, SHEET_FACT, "Steps in the journal", "%" PRIu64, result->steps_journaled);
    sheet_add(view, SHEET_FACT, "Steps run again", "%" PRIu64, result->steps_checked);
    sheet_add(view, SHEET_FACT, "Replayed on", "%s", report->device);
    sheet_add(view, SHEET_FACT, "Time of the audit", "%.1f s", report->seconds);
    if (result->answer == AUDIT_REFUTED) {
        (void)snprintf(text, sizeof(text), "State after step %" PRIu64 ", journal",
                       result->wrong_step);
        add_bytes(view, text, result->wrong_root.bytes, DIGEST_SIZE);
        add_bytes(view, "and as two replays gave it", result->true_root.bytes, DIGEST_SIZE);
        /* The solver's name under the segment. */
        add_bytes(view, "The signature that this refutes", result->signature,
                  result->signature_size);
        add_difference(view, report);
    }
    add_about(view, report->about);
}

static void add_unchecked(struct sheet *view, const struct report *report)
{
    const struct audit_result *result = &report->result;
    uint64_t unchecked = result->steps_of_job - result->steps_checked;
    uint64_t not_run = result->steps_of_job - result->steps_journaled;

    sheet_add(view, SHEET_SUBHEADING, NULL, "What was not checked");
    if (unchecked > 0) {
        sheet_add(view, SHEET_ITEM, NULL, "%" PRIu64 " step%s, of which nothing is known",
                  unchecked, unchecked == 1 ? "" : "s");
        if (not_run > 0) {
            sheet_words(view, SHEET_PLAIN, "; the solver had not run %" PRIu64 " of them", not_run);
        }
        sheet_words(view, SHEET_PLAIN, "%s",
                    result->answer == AUDIT_REFUTED
                        ? ". What follows a false step is not looked at."
                        : ".");
    }
    sheet_add(view, SHEET_ITEM, NULL,
              "Times, energy and names of devices: they are the solver's words.");
    sheet_add(view, SHEET_ITEM, NULL, "Whether the data is good, and whether the model is.");
    if (json_object_get(report->about, "ledger") != NULL) {
        sheet_add(view, SHEET_ITEM, NULL, "What the solver says of the ledger: nobody asked it.");
    }
}

static void add_broken(struct sheet *view, const char *what, const struct broken_checkpoint *broken)
{
    sheet_add(view, SHEET_ITEM, NULL, "%s ", what);
    sheet_words(view, SHEET_CODE, "%s", broken->name);
    sheet_words(view, SHEET_PLAIN, " is broken: %s", broken->why);
}

static void add_checkpoints(struct sheet *view, const struct checkpoint_audit *checkpoints)
{
    sheet_add(view, SHEET_SUBHEADING, NULL, "Checkpoints");
    sheet_add(view, SHEET_ITEM, NULL, "%" PRIu64 " hold the state that was committed to",
              checkpoints->checked);
    if (checkpoints->locked > 0) {
        sheet_add(view, SHEET_ITEM, NULL, "%" PRIu64 " are encrypted; nobody looked at them",
                  checkpoints->locked);
    }
    for (size_t i = 0; i < checkpoints->broken_count && i < BROKEN_CHECKPOINTS_MAX; i++) {
        add_broken(view, "Checkpoint", &checkpoints->broken[i]);
    }
    if (checkpoints->broken_count > BROKEN_CHECKPOINTS_MAX) {
        sheet_add(view, SHEET_ITEM, NULL, "%" PRIu64 " more are broken",
                  checkpoints->broken_count - BROKEN_CHECKPOINTS_MAX);
    }
    if (checkpoints->last.name[0] != '\0') {
        add_broken(view, "The last checkpoint", &checkpoints->last);
    }
}

/* A table of all audits, with links to each. */
static void add_list(struct sheet *view, const struct report *reports, size_t count)
{
    static const char *const headings[] = {"Verdict", "Bundle"};

    sheet_columns(view, headings, sizeof(headings) / sizeof(headings[0]));
    for (size_t i = 0; i < count; i++) {
        char target[32];

        (void)snprintf(target, sizeof(target), "#b%zu", i);
        sheet_begin(view, SHEET_ROW, NULL);
        sheet_add(view, SHEET_CELL, NULL, "%s", audit_answer_name(reports[i].result.answer));
        sheet_begin(view, SHEET_WIDE, NULL);
        sheet_link(view, target, reports[i].title);
    }
}

static void add_report(struct sheet *view, const struct report *report, size_t number)
{
    static const struct report_plot losses = {
        .unit = "",
        .series = {{"replayed", SHEET_FORM_PIECES, loss_of},
                   {"the solver's words, not checked", SHEET_FORM_LINE, told_loss_of}}};
    static const struct report_plot held_out = {
        .unit = "",
        .series = {{"replayed", SHEET_FORM_POINTS, held_loss_of},
                   {"the solver's words, not checked", SHEET_FORM_POINTS, told_held_loss_of}}};
    static const struct report_plot times = {
        .unit = " ms",
        .from_zero = true,
        .series = {{"solver", SHEET_FORM_LINE, solver_time_of},
                   {"replay", SHEET_FORM_PIECES, replay_time_of}}};
    char place[32];

    (void)snprintf(place, sizeof(place), "b%zu", number);
    sheet_add(view, SHEET_HEADING, place, "%s", report->title);
    add_verdict(view, report);
    add_facts(view, report);
    if (report->cell_count == 0) { /* the bundle did not open */
        return;
    }
    sheet_add(view, SHEET_SUBHEADING, NULL, "Where it was checked");
    add_map(view, report);
    if (has_loss(report)) {
        sheet_add(view, SHEET_SUBHEADING, NULL, "Loss");
        add_plot(view, report, &losses);
    }
    if (has_held_out(report)) {
        sheet_add(view, SHEET_SUBHEADING, NULL, "Held-out loss");
        add_plot(view, report, &held_out);
    }
    sheet_add(view, SHEET_SUBHEADING, NULL, "Time of a step, in milliseconds");
    add_plot(view, report, &times);
    add_checkpoints(view, &report->result.checkpoints);
    add_unchecked(view, report);
}

enum status report_write(const char *path, const struct report *reports, size_t count,
                         struct error *error)
{
    struct buffer page;
    struct sheet view;
    enum status status;

    buffer_init(&page, PAGE_SIZE_MAX);
    sheet_init(&view);
    sheet_add(&view, SHEET_WINDOW, NULL, "Lockstep audit");
    sheet_add(&view, SHEET_TITLE, NULL, "Lockstep audit");
    if (count > 1) {
        add_list(&view, reports, count);
    }
    for (size_t i = 0; i < count; i++) {
        add_report(&view, &reports[i], i);
    }
    sheet_add(&view, SHEET_FOOTER, NULL,
              "A step is called checked only where it was run again, whole, and every bit of the "
              "state after it was compared.");
    sheet_page_write(&page, &view, 0);
    sheet_release(&view);
    status = buffer_check(&page, error, "the report");
    if (status == STATUS_OK) {
        status = file_write(path, error, page.data, page.size, 0644);
    }
    buffer_release(&page);
    return status;
}
