/* job_text.c - see job_text.h. */
#include "chain/view/job_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/progress.h"
#include "chain/codec/hex_data.h"
#include "chain/codec/wei_json.h"
#include "chain/game/terms.h"

#define POINTS_MAX    100
#define LINE_MAX_SIZE 1024

/* ---- parts --------------------------------------------------------------------------- */

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

static void add_detail(struct sheet *sheet, const char *label, const char *words)
{
    if (words[0] != '\0') {
        sheet_add(sheet, SHEET_DETAIL, label, "%s", words);
    }
}

static void add_head(struct sheet *sheet, const struct job_view *view)
{
    const struct job_standing *standing = &view->standing;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, standing->key.bytes, HASH32_SIZE, true);
    sheet_add(sheet, SHEET_DETAIL, "job",
              "%.14s  %s  %" PRIu64 " of %" PRIu64 " steps  %u of %u segments committed, %u "
              "final%s",
              key, standing->phase, job_view_done(view), view->steps, standing->committed,
              standing->segments, standing->finalized, standing->claims > 0 ? ", CLAIMS OPEN" : "");
}

static void add_segments(struct sheet *sheet, const struct job_standing *standing)
{
    struct sheet_squares squares;

    job_view_map(&squares, standing);
    squares.name = "segments";
    sheet_squares(sheet, &squares);
}

static void add_mirrors(struct sheet *sheet, const struct job_view *view)
{
    for (uint32_t i = 0; i < view->mirrors.count; i++) {
        const struct mirror *mirror = &view->mirrors.mirrors[i];

        if (mirror->note.trouble[0] != '\0') {
            sheet_add(sheet, SHEET_DETAIL, "mirror", "%.200s%s: %s", mirror->url,
                      mirror->dropped ? " (dropped)" : "", mirror->note.trouble);
        }
    }
}

static void add_waits(struct sheet *sheet, const struct job_standing *standing)
{
    char period[TERMS_PERIOD_SIZE];

    add_detail(sheet, "alert", standing->alert);
    if (standing->waits) {
        sheet_add(sheet, SHEET_DETAIL, "waits", "for %s", standing->wait.text);
    }
    if (standing->forecast_s != 0) {
        terms_period(period, standing->forecast_s > standing->now_s
                                 ? standing->forecast_s - standing->now_s
                                 : 0);
        sheet_add(sheet, SHEET_DETAIL, "forecast", "segment %u is final in %s at the earliest",
                  standing->finalized, period);
    }
}

void job_text_show(struct sheet *sheet, const struct job_view *view)
{
    char line[LINE_MAX_SIZE];

    if (view->standing.read) {
        add_head(sheet, view);
    }
    sheet_curve(sheet, &view->curve.loss, &view->curve.held_out);
    print_figures(line, view);
    add_detail(sheet, job_card_trains(&view->card) ? "training" : "steps", line);
    add_detail(sheet, "curve", view->curve_words);
    if (view->standing.read) {
        add_segments(sheet, &view->standing);
        print_money(line, view);
        add_detail(sheet, "money", line);
    }
    add_waits(sheet, &view->standing);
    add_detail(sheet, "copies", view->copies);
    add_detail(sheet, "keeper", view->keeping);
    add_detail(sheet, "fetching", view->download);
    add_mirrors(sheet, view);
    add_detail(sheet, "trouble", view->trouble);
    sheet_merge(sheet, job_text_json(view));
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
                     currency_json(&standing->currency), "escrow_wei", wei_json(standing->escrow),
                     "earned_wei", wei_json(standing->earned), "pool_wei", wei_json(standing->pool),
                     "to_come_wei", wei_json(standing->to_come), "missing_wei",
                     wei_json(standing->missing), "burned_client_wei",
                     wei_json(standing->burned_client), "burned_solver_wei",
                     wei_json(standing->burned_solver), "staked_wei", wei_json(standing->stake));
}

json_t *job_text_curve(const struct curve *curve)
{
    uint32_t parts = curve->total < POINTS_MAX ? (uint32_t)curve->total : POINTS_MAX;
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
