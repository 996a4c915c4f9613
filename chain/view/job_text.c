/* job_text.c - see job_text.h. */
#include "chain/view/job_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/log.h"
#include "base/io/progress.h"
#include "base/text_plot.h"
#include "chain/codec/hex_data.h"
#include "chain/game/terms.h"

#define LABEL_COLUMNS 10 /* "segments  " */
#define COLUMNS_MAX   100
#define CURVE_ROWS    16
#define CURVE_SHARE   3 /* of the rows that the curve has at least, should others be cut */
#define LINE_MAX_SIZE 1024

static const char marks[JOB_VIEW_MARKS + 1] = ".=#v+x";

/* ---- parts --------------------------------------------------------------------------- */

/* A label and words below each other, broken at blanks. */
static void add_wrapped(struct buffer *text, const char *label, const char *words, unsigned columns)
{
    unsigned width = columns > LABEL_COLUMNS + 16 ? columns - LABEL_COLUMNS - 1 : 16;
    char safe[LINE_MAX_SIZE];
    const char *at = safe;

    (void)log_escape(safe, sizeof(safe), words, 0);
    while (*at != '\0') {
        size_t size = strlen(at);

        if (size > width) {
            size = width;
            while (size > 0 && at[size] != ' ') {
                size--;
            }
            size = size == 0 ? width : size;
        }
        buffer_add_format(text, "%-*s%.*s\n", LABEL_COLUMNS, label, (int)size, at);
        at += size;
        at += *at == ' ';
        label = "";
    }
}

static void print_rate(char text[48], const struct job_view *view)
{
    double pace = job_view_pace(view);
    char number[PROGRESS_NUMBER_MAX];

    progress_number(number, view->tokens > 0 ? pace * (double)view->tokens : pace);
    (void)snprintf(text, 48, "%s %s/s", number, view->tokens > 0 ? "tokens" : "steps");
    if (pace <= 0) {
        text[0] = '\0';
    }
}

/* "loss 2.31  held-out 2.40  accuracy 71.2 %  1240 tokens/s  eta 1:02" */
static void print_figures(char line[LINE_MAX_SIZE], const struct job_view *view)
{
    const struct loss_curve *curve = &view->curve;
    double left_s = job_view_left_s(view);
    char rate[48];
    char eta[PROGRESS_TIME_MAX];
    size_t size = 0;

    line[0] = '\0';
    if (curve->loss.end > 0) {
        size +=
            (size_t)snprintf(line + size, LINE_MAX_SIZE - size, "loss %.4f  ", curve->loss.newest);
    }
    if (curve->held_out.end > 0) {
        size += (size_t)snprintf(line + size, LINE_MAX_SIZE - size,
                                 "held-out %.4f after step %" PRIu64 "  ", curve->held_out.newest,
                                 curve->held_out.end);
    }
    if (isfinite(curve->accuracy)) {
        size += (size_t)snprintf(line + size, LINE_MAX_SIZE - size, "accuracy %.1f %%  ",
                                 curve->accuracy * 100);
    }
    print_rate(rate, view);
    if (rate[0] != '\0') {
        size += (size_t)snprintf(line + size, LINE_MAX_SIZE - size, "%s  ", rate);
    }
    if (left_s > 0) {
        progress_time(eta, left_s);
        size += (size_t)snprintf(line + size, LINE_MAX_SIZE - size, "eta %s  ", eta);
    }
    while (size > 0 && line[size - 1] == ' ') {
        line[--size] = '\0';
    }
}

static void print_money(char line[LINE_MAX_SIZE], const struct job_view *view)
{
    const struct job_standing *standing = &view->standing;
    char escrow[WEI_TEXT_SIZE];
    char earned[WEI_TEXT_SIZE];
    char to_come[WEI_TEXT_SIZE];
    char stake[WEI_TEXT_SIZE];
    char burned[WEI_TEXT_SIZE];

    currency_print(escrow, &standing->currency, standing->escrow);
    currency_print(earned, &standing->currency, standing->earned);
    currency_print(to_come, &standing->currency, standing->to_come);
    currency_print(stake, &standing->currency, standing->stake);
    currency_print(burned, &standing->currency, standing->burned_client);
    (void)snprintf(line, LINE_MAX_SIZE,
                   "%s escrowed, what nobody earns comes back; %s earned; %s to come%s%s%s%s",
                   escrow, earned, to_come, standing->stake > 0 ? "; staked " : "",
                   standing->stake > 0 ? stake : "",
                   standing->burned_client > 0 ? "; burned of the client " : "",
                   standing->burned_client > 0 ? burned : "");
}

static void add_head(struct buffer *text, const struct job_view *view, unsigned columns)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char line[LINE_MAX_SIZE];

    hex_write(key, view->standing.key.bytes, HASH32_SIZE, true);
    (void)snprintf(line, sizeof(line),
                   "%.14s  %s  %" PRIu64 " of %" PRIu64 " steps  %u of %u segments committed, %u "
                   "final%s",
                   key, view->standing.phase, job_view_done(view), view->steps,
                   view->standing.committed, view->standing.segments, view->standing.finalized,
                   view->standing.claims > 0 ? ", CLAIMS OPEN" : "");
    add_wrapped(text, "job", line, columns);
}

/* Squares as letters, and below them what the letters that stand there mean. */
static void add_segments(struct buffer *text, const struct job_view *view, unsigned columns)
{
    unsigned width = columns > LABEL_COLUMNS + 16 ? columns - LABEL_COLUMNS - 1 : 16;
    unsigned each = (view->standing.cell_count + width - 1) / width;
    char line[LINE_MAX_SIZE];
    size_t size = 0;

    each = each == 0 ? 1 : each;
    for (uint32_t i = 0; i < view->standing.cell_count && size < width; i += each) {
        uint8_t mark = view->standing.cells[i];

        for (uint32_t k = i; k < i + each && k < view->standing.cell_count; k++) {
            mark = view->standing.cells[k] == JOB_VIEW_DISPUTED ? JOB_VIEW_DISPUTED : mark;
        }
        line[size++] = marks[mark];
    }
    line[size] = '\0';
    add_wrapped(text, "segments", line, columns);
    size = 0;
    for (int mark = 0; mark < JOB_VIEW_MARKS; mark++) {
        if (view->standing.marks[mark] > 0) {
            size += (size_t)snprintf(line + size, sizeof(line) - size, "%s%c %u %s",
                                     size == 0 ? "" : "  ", marks[mark], view->standing.marks[mark],
                                     job_view_mark_word((enum job_view_mark)mark));
        }
    }
    add_wrapped(text, "", line, columns);
}

static void add_mirrors(struct buffer *text, const struct job_view *view, unsigned columns)
{
    char line[LINE_MAX_SIZE];

    for (uint32_t i = 0; i < view->mirrors.count; i++) {
        const struct mirror *mirror = &view->mirrors.mirrors[i];

        if (mirror->note.trouble[0] != '\0') {
            (void)snprintf(line, sizeof(line), "%.200s%s: %s", mirror->url,
                           mirror->dropped ? " (dropped)" : "", mirror->note.trouble);
            add_wrapped(text, "mirror", line, columns);
        }
    }
}

/* What stands below the curve. */
static void add_rest(struct buffer *text, const struct job_view *view, unsigned columns)
{
    char line[LINE_MAX_SIZE];
    char period[TERMS_PERIOD_SIZE];

    print_figures(line, view);
    add_wrapped(text, job_card_trains(&view->card) ? "training" : "steps", line, columns);
    add_wrapped(text, "curve", view->curve_words, columns);
    if (view->standing.read) {
        add_segments(text, view, columns);
        print_money(line, view);
        add_wrapped(text, "money", line, columns);
    }
    add_wrapped(text, "alert", view->standing.alert, columns);
    if (view->standing.waits) {
        (void)snprintf(line, sizeof(line), "for %s", view->standing.wait.text);
        add_wrapped(text, "waits", line, columns);
    }
    if (view->standing.forecast_s != 0) {
        terms_period(period, view->standing.forecast_s > view->standing.now_s
                                 ? view->standing.forecast_s - view->standing.now_s
                                 : 0);
        (void)snprintf(line, sizeof(line), "segment %u is final in %s at the earliest",
                       view->standing.finalized, period);
        add_wrapped(text, "forecast", line, columns);
    }
    add_wrapped(text, "copies", view->copies, columns);
    add_wrapped(text, "keeper", view->keeping, columns);
    add_wrapped(text, "fetching", view->download, columns);
    add_mirrors(text, view, columns);
    add_wrapped(text, "trouble", view->trouble, columns);
}

static unsigned lines_in(const struct buffer *text)
{
    unsigned count = 0;

    for (size_t i = 0; i < text->size; i++) {
        count += text->data[i] == '\n';
    }
    return count;
}

void job_text_write(struct buffer *text, const struct job_view *view, unsigned columns,
                    unsigned rows, bool utf8)
{
    struct buffer rest;
    struct text_plot plot = {.line = &view->curve.loss,
                             .points = &view->curve.held_out,
                             .columns = columns - 1,
                             .braille = utf8};
    unsigned others;

    columns = columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
    plot.columns = columns - 1;
    buffer_init(&rest, JOB_TEXT_SIZE_MAX);
    add_rest(&rest, view, columns);
    if (view->standing.read) {
        add_head(text, view, columns);
    }
    others = lines_in(text) + lines_in(&rest) + 2;
    plot.rows = rows > others + rows / CURVE_SHARE ? rows - others : rows / CURVE_SHARE;
    plot.rows = plot.rows < CURVE_ROWS ? plot.rows : CURVE_ROWS;
    text_plot_write(text, &plot);
    buffer_add_text(text, buffer_text(&rest));
    buffer_release(&rest);
}

void job_text_line(struct buffer *text, const struct job_view *view)
{
    char line[LINE_MAX_SIZE];

    print_figures(line, view);
    buffer_add_format(text,
                      "%s  %" PRIu64 " of %" PRIu64 " steps  %u of %u segments committed, %u "
                      "final%s%s%s%s%s%s",
                      view->standing.phase, job_view_done(view), view->steps,
                      view->standing.committed, view->standing.segments, view->standing.finalized,
                      line[0] == '\0' ? "" : "  ", line,
                      view->standing.alert[0] == '\0' ? "" : "  ALERT ", view->standing.alert,
                      view->standing.waits ? "  waits for " : "",
                      view->standing.waits ? view->standing.wait.text : "");
}

/* ---- JSON ---------------------------------------------------------------------------- */

static json_t *amount_json(wei amount)
{
    char text[WEI_TEXT_SIZE];

    wei_print_plain(text, amount);
    return json_string(text);
}

static json_t *number_or_null(bool known, double number)
{
    return known && isfinite(number) ? json_real(number) : json_null();
}

static json_t *marks_json(const struct job_view *view)
{
    json_t *json = json_object();

    for (int mark = 0; mark < JOB_VIEW_MARKS; mark++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%s", job_view_mark_word((enum job_view_mark)mark));
        for (char *at = name; *at != '\0'; at++) {
            *at = *at == ' ' ? '_' : *at;
        }
        (void)json_object_set_new(json, name, json_integer(view->standing.marks[mark]));
    }
    return json;
}

static json_t *money_json(const struct job_view *view)
{
    const struct job_standing *standing = &view->standing;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "currency",
                     currency_json(&standing->currency), "escrow_wei",
                     amount_json(standing->escrow), "earned_wei", amount_json(standing->earned),
                     "pool_wei", amount_json(standing->pool), "to_come_wei",
                     amount_json(standing->to_come), "missing_wei", amount_json(standing->missing),
                     "burned_client_wei", amount_json(standing->burned_client), "burned_solver_wei",
                     amount_json(standing->burned_solver), "staked_wei",
                     amount_json(standing->stake));
}

json_t *job_text_curve(const struct curve *curve)
{
    uint32_t parts = curve->total < COLUMNS_MAX ? (uint32_t)curve->total : COLUMNS_MAX;
    json_t *points = json_array();
    double mean;

    for (uint32_t i = 0; i < parts; i++) {
        if (curve_part(&mean, curve, curve->total, i, parts)) {
            double step = (double)curve->total * (i + 0.5) / parts;

            (void)json_array_append_new(points, json_pack("[I, f]", (json_int_t)step, mean));
        }
    }
    return points;
}

static json_t *training_json(const struct job_view *view)
{
    const struct loss_curve *curve = &view->curve;
    double pace = job_view_pace(view);

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "loss",
                     number_or_null(curve->loss.end > 0, curve->loss.newest), "held_out_loss",
                     number_or_null(curve->held_out.end > 0, curve->held_out.newest), "accuracy",
                     number_or_null(true, curve->accuracy), "steps_per_second",
                     number_or_null(pace > 0, pace), "tokens_per_second",
                     number_or_null(pace > 0 && view->tokens > 0, pace * (double)view->tokens),
                     "seconds_left", number_or_null(pace > 0, job_view_left_s(view)), "losses",
                     job_text_curve(&curve->loss), "held_out_losses",
                     job_text_curve(&curve->held_out), "curve_is",
                     view->curve_words[0] == '\0' ? json_null() : json_string(view->curve_words),
                     "curve_proven", 0);
}

static json_t *mirrors_json(const struct job_view *view)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->mirrors.count; i++) {
        const struct mirror *mirror = &view->mirrors.mirrors[i];

        (void)json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:s}", "url", mirror->url,
                                                    "bytes", (json_int_t)mirror->note.bytes,
                                                    "dropped", (int)mirror->dropped, "trouble",
                                                    mirror->note.trouble));
    }
    return list;
}

json_t *job_text_json(const struct job_view *view)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, view->standing.key.bytes, HASH32_SIZE, true);
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:I, s:o, "
        "s:s, s:s, s:s, s:s}",
        "job", key, "phase", view->standing.read ? view->standing.phase : job_view_word(view),
        "time", (json_int_t)view->standing.now_s, "steps", (json_int_t)view->steps, "steps_done",
        (json_int_t)job_view_done(view), "segments", (int)view->standing.segments, "committed",
        (int)view->standing.committed, "final", (int)view->standing.finalized, "open_claims",
        (int)view->standing.claims, "segments_by_state", marks_json(view), "money",
        money_json(view), "training", training_json(view), "waits_for",
        job_wait_json(&view->standing.wait), "final_not_before",
        (json_int_t)view->standing.forecast_s, "mirrors", mirrors_json(view), "copies",
        view->copies, "keeping", view->keeping, "trouble", view->trouble, "alert",
        view->standing.alert);
}
