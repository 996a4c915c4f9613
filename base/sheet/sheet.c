/* sheet.c - see sheet.h. */
#include "base/sheet/sheet.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/progress.h"
#include "base/io/strict_json.h"

#define ITEMS_FIRST  64
#define KEY_SIZE_MAX 256
#define CURVE_PARTS  320

const char sheet_letters[SHEET_MARKS + 1] = ".=#v+x";

void sheet_init(struct sheet *sheet)
{
    *sheet = (struct sheet){.facts = NULL};
    buffer_init(&sheet->words, SHEET_SIZE_MAX);
    buffer_add_u8(&sheet->words, 0); /* place 0 is no words */
}

void sheet_release(struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->count; i++) {
        free(sheet->items[i].squares);
    }
    free(sheet->items);
    json_decref(sheet->facts);
    buffer_release(&sheet->words);
    *sheet = (struct sheet){.facts = NULL};
}

enum status sheet_check(const struct sheet *sheet, struct error *error)
{
    return buffer_check(&sheet->words, error, "what is shown");
}

static void mark_failed(struct sheet *sheet)
{
    sheet->words.status = STATUS_NO_MEMORY;
}

/* ---- facts ----------------------------------------------------------------------------- */

void sheet_set(struct sheet *sheet, const char *name, json_t *value)
{
    if (sheet->facts == NULL) {
        sheet->facts = json_object();
    }
    if (json_object_set_new(sheet->facts, name, value) != 0) {
        sheet->lacks_facts = true;
    }
}

void sheet_merge(struct sheet *sheet, json_t *object)
{
    if (sheet->facts == NULL) {
        sheet->facts = object;
    } else if (object == NULL || json_object_update(sheet->facts, object) != 0) {
        sheet->lacks_facts = true;
    }
    if (sheet->facts == NULL) {
        sheet->lacks_facts = true;
    } else if (sheet->facts != object) {
        json_decref(object);
    }
}

/* ---- blocks ---------------------------------------------------------------------------- */

/* NULL without memory. */
static struct sheet_item *add_item(struct sheet *sheet, enum sheet_kind kind)
{
    struct sheet_item *more;

    if (sheet->count == sheet->room) {
        size_t room = sheet->room == 0 ? ITEMS_FIRST : sheet->room * 2;

        more = reallocarray(sheet->items, room, sizeof(*more));
        if (more == NULL) {
            mark_failed(sheet);
            return NULL;
        }
        sheet->items = more;
        sheet->room = room;
    }
    more = &sheet->items[sheet->count++];
    *more = (struct sheet_item){.kind = kind};
    return more;
}

/* Its place. */
static size_t keep_text(struct sheet *sheet, const char *text)
{
    size_t place = sheet->words.size;

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    buffer_add(&sheet->words, text, strlen(text) + 1);
    return place;
}

static void add_block(struct sheet *sheet, enum sheet_kind kind, enum sheet_style style,
                      const char *label)
{
    size_t place = keep_text(sheet, label);
    struct sheet_item *item = add_item(sheet, kind);

    if (item != NULL) {
        item->style = style;
        item->label = place;
    }
}

static void add_words(struct sheet *sheet, enum sheet_style style, const char *target,
                      const char *format, va_list arguments)
{
    size_t label = keep_text(sheet, target);
    size_t place = sheet->words.size;
    struct sheet_item *item;

    buffer_add_list(&sheet->words, format, arguments);
    buffer_add_u8(&sheet->words, 0);
    item = add_item(sheet, SHEET_WORDS);
    if (item != NULL) {
        item->style = style;
        item->label = label;
        item->words = place;
    }
}

void sheet_begin(struct sheet *sheet, enum sheet_kind kind, const char *label)
{
    add_block(sheet, kind, SHEET_PLAIN, label);
}

void sheet_begin_line(struct sheet *sheet, enum sheet_style style)
{
    add_block(sheet, SHEET_LINE, style, NULL);
}

void sheet_words(struct sheet *sheet, enum sheet_style style, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_words(sheet, style, NULL, format, arguments);
    va_end(arguments);
}

void sheet_add(struct sheet *sheet, enum sheet_kind kind, const char *label, const char *format,
               ...)
{
    va_list arguments;

    sheet_begin(sheet, kind, label);
    va_start(arguments, format);
    add_words(sheet, SHEET_PLAIN, NULL, format, arguments);
    va_end(arguments);
}

void sheet_line(struct sheet *sheet, enum sheet_style style, const char *format, ...)
{
    va_list arguments;

    sheet_begin_line(sheet, style);
    va_start(arguments, format);
    add_words(sheet, SHEET_PLAIN, NULL, format, arguments);
    va_end(arguments);
}

static void print_span(char text[32], uint64_t seconds)
{
    if (seconds < 120) {
        (void)snprintf(text, 32, "%" PRIu64 " s", seconds);
    } else if (seconds < 7200) {
        (void)snprintf(text, 32, "%" PRIu64 " min", seconds / 60);
    } else if (seconds < 172800) {
        (void)snprintf(text, 32, "%" PRIu64 " h", seconds / 3600);
    } else {
        (void)snprintf(text, 32, "%" PRIu64 " days", seconds / 86400);
    }
}

void sheet_when(struct sheet *sheet, enum sheet_style style, uint64_t when_s, uint64_t now_s)
{
    bool is_ahead = when_s >= now_s;
    char span[32];

    print_span(span, is_ahead ? when_s - now_s : now_s - when_s);
    if (when_s == 0) {
        sheet_words(sheet, style, "-");
    } else {
        sheet_words(sheet, style, "%s%s%s", is_ahead ? "in " : "", span, is_ahead ? "" : " ago");
    }
}

void sheet_key(struct sheet *sheet, const uint8_t *bytes, size_t size)
{
    char text[HEX_SIZE(KEY_SIZE_MAX)];

    hex_encode(text, bytes, size < KEY_SIZE_MAX ? size : KEY_SIZE_MAX);
    sheet_words(sheet, SHEET_KEY, "0x%s", text);
}

void sheet_link(struct sheet *sheet, const char *target, const char *words)
{
    size_t count = sheet->count;

    assert(target[0] == '#' || target[0] == '/'); /* a stranger's may be a script */
    sheet_words(sheet, SHEET_LINK, "%s", words);
    if (sheet->count > count) {
        sheet->items[count].label = keep_text(sheet, target);
    }
}

void sheet_field(struct sheet *sheet, const char *label, const char *name, const char *value)
{
    sheet_add(sheet, SHEET_FIELD, label, "%s=%s", name, value);
}

void sheet_choice(struct sheet *sheet, const char *label, const char *name)
{
    sheet_add(sheet, SHEET_CHOICE, label, "%s", name);
}

void sheet_option(struct sheet *sheet, const char *label, const char *value, bool is_chosen)
{
    add_block(sheet, SHEET_OPTION, is_chosen ? SHEET_CHOSEN : SHEET_PLAIN, label);
    sheet_words(sheet, SHEET_PLAIN, "%s", value);
}

void sheet_columns(struct sheet *sheet, const char *const *headings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sheet_add(sheet, SHEET_COLUMN, NULL, "%s", headings[i]);
    }
}

void sheet_squares(struct sheet *sheet, const struct sheet_squares *squares)
{
    struct sheet_squares *copy = malloc(sizeof(*copy) + squares->count);
    struct sheet_item *item = copy == NULL ? NULL : add_item(sheet, SHEET_SQUARES);

    if (item == NULL) {
        free(copy);
        mark_failed(sheet);
        return;
    }
    *copy = *squares;
    copy->marks = (uint8_t *)(copy + 1);
    memcpy(copy + 1, squares->marks, squares->count);
    item->squares = copy;
}

void sheet_plot(struct sheet *sheet, const struct sheet_plot *plot)
{
    struct sheet_plot *copy = malloc(sizeof(*copy) + 2 * sizeof(struct curve));
    struct sheet_item *item = copy == NULL ? NULL : add_item(sheet, SHEET_PLOT);
    struct curve *curves = copy == NULL ? NULL : (struct curve *)(copy + 1);

    if (item == NULL) {
        free(copy);
        mark_failed(sheet);
        return;
    }
    *copy = *plot;
    if (plot->line != NULL) {
        curves[0] = *plot->line;
        copy->line = &curves[0];
    }
    if (plot->points != NULL) {
        curves[1] = *plot->points;
        copy->points = &curves[1];
    }
    item->plot = copy;
}

static void take_parts(double values[SHEET_POINTS_MAX], const struct curve *curve, uint64_t shown,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        double mean;

        values[i] = curve_part(&mean, curve, shown, i, count) ? mean : NAN;
    }
}

void sheet_curve(struct sheet *sheet, const struct curve *loss, const struct curve *held_out)
{
    uint64_t shown = curve_shown(loss);
    struct sheet_plot plot = {
        .unit = "",
        .first = "step 0",
        .count = shown < CURVE_PARTS ? (uint32_t)shown : CURVE_PARTS,
        .series_count = 2,
        .series = {{"loss", SHEET_FORM_LINE, {0}}, {"held-out loss", SHEET_FORM_POINTS, {0}}},
        .line = loss,
        .points = held_out};

    (void)snprintf(plot.last, sizeof(plot.last), "step %" PRIu64, shown - 1);
    take_parts(plot.series[0].values, loss, shown, plot.count);
    take_parts(plot.series[1].values, held_out, shown, plot.count);
    sheet_plot(sheet, &plot);
}

/* ---- figures --------------------------------------------------------------------------- */

void sheet_metric(struct sheet *sheet, const char *name, const char *type, const char *help)
{
    sheet_add(sheet, SHEET_METRIC, name, "%s", type);
    sheet_words(sheet, SHEET_PLAIN, "%s", help);
}

void sheet_sample(struct sheet *sheet, const char *format, ...)
{
    va_list arguments;

    sheet_begin(sheet, SHEET_SAMPLE, NULL);
    va_start(arguments, format);
    add_words(sheet, SHEET_PLAIN, NULL, format, arguments);
    va_end(arguments);
}

void sheet_sample_label(struct sheet *sheet, const char *name, const char *value)
{
    size_t count = sheet->count;

    sheet_words(sheet, SHEET_PLAIN, "%s", value);
    if (sheet->count > count) {
        sheet->items[count].label = keep_text(sheet, name);
    }
}

void sheet_figure(struct sheet *sheet, const char *name, const char *type, const char *help,
                  double value)
{
    sheet_metric(sheet, name, type, help);
    sheet_sample(sheet, "%.17g", value);
}

/* ---- lines as printf writes them --------------------------------------------------------- */

/* Does the last line go on? Its label says so. */
static bool goes_on(const struct sheet *sheet)
{
    size_t at = sheet->count;

    while (at > 0 && sheet->items[at - 1].kind == SHEET_WORDS) {
        at--;
    }
    return at > 0 && sheet->items[at - 1].kind == SHEET_LINE && sheet->items[at - 1].label != 0;
}

static void end_line(struct sheet *sheet)
{
    size_t at = sheet->count;

    while (sheet->items[at - 1].kind == SHEET_WORDS) {
        at--;
    }
    sheet->items[at - 1].label = 0;
}

void sheet_print_list(struct sheet *sheet, const char *format, va_list arguments)
{
    struct buffer text;
    char *at;
    char *end;

    buffer_init(&text, SHEET_SIZE_MAX);
    buffer_add_list(&text, format, arguments);
    at = (char *)text.data;
    if (text.status != STATUS_OK) {
        mark_failed(sheet);
    }
    while (at != NULL && *at != '\0' && sheet->words.status == STATUS_OK) {
        if (!goes_on(sheet)) {
            add_block(sheet, SHEET_LINE, SHEET_PLAIN, "...");
        }
        end = strchr(at, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        sheet_words(sheet, SHEET_PLAIN, "%s", at);
        if (end != NULL && sheet->words.status == STATUS_OK) {
            end_line(sheet);
        }
        at = end == NULL ? NULL : end + 1;
    }
    buffer_release(&text);
}

void sheet_print(struct sheet *sheet, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    sheet_print_list(sheet, format, arguments);
    va_end(arguments);
}

/* ---- for renderers ------------------------------------------------------------------------ */

const char *sheet_label_of(const struct sheet *sheet, size_t item)
{
    return buffer_text(&sheet->words) + sheet->items[item].label;
}

const char *sheet_words_of(const struct sheet *sheet, size_t item)
{
    return buffer_text(&sheet->words) + sheet->items[item].words;
}

void sheet_json_write(struct buffer *text, const struct sheet *sheet)
{
    if (sheet->lacks_facts) {
        text->status = STATUS_NO_MEMORY;
    } else if (sheet->facts == NULL) {
        buffer_add_text(text, "{}");
    } else {
        (void)!strict_json_write(text, NULL, sheet->facts, JSON_COMPACT);
    }
}

/* "loss: 5.54 at first, 2.31 at last, from 2.3 to 5.54" */
void sheet_plot_words(struct buffer *text, const struct sheet_plot *plot)
{
    for (uint32_t s = 0; s < plot->series_count; s++) {
        const double *values = plot->series[s].values;
        double low = DBL_MAX;
        double high = -DBL_MAX;
        double first = NAN;
        double last = NAN;
        char words[4][PROGRESS_NUMBER_MAX];

        for (uint32_t i = 0; i < plot->count; i++) {
            if (isfinite(values[i])) {
                first = isfinite(first) ? first : values[i];
                last = values[i];
                low = fmin(low, last);
                high = fmax(high, last);
            }
        }
        if (isfinite(first)) {
            progress_number(words[0], first);
            progress_number(words[1], last);
            progress_number(words[2], low);
            progress_number(words[3], high);
            buffer_add_format(text, "%s%s: %s%s at first, %s%s at last, from %s to %s",
                              s == 0 ? "" : "; ", plot->series[s].words, words[0], plot->unit,
                              words[1], plot->unit, words[2], words[3]);
        }
    }
}
