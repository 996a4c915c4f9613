/*
 * sheet_text.c - a sheet as lines of text: values in line behind their names, tables in columns,
 * long cells on lines of their own, squares as letters. Characters that steer a terminal are
 * escaped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/log.h"
#include "base/sheet/sheet.h"

#define COLUMNS_MAX 16
#define CELL_WIDE   32 /* longer cells get lines of their own */
#define KEY_SHORT   14
#define LETTERS_MAX 100 /* of squares, in a line */

struct text {
    struct buffer *out;
    const struct sheet *sheet;
};

static enum sheet_kind kind_at(const struct text *text, size_t at)
{
    return at < text->sheet->count ? text->sheet->items[at].kind : SHEET_KINDS;
}

/* Tabs are between fields, and harmless. */
static void add_safe(struct buffer *out, const char *words)
{
    size_t size = 6 * strlen(words) + 1; /* of the longest escape */
    char *safe = malloc(size);
    char *piece = strdup(words);
    char *next = piece;

    if (safe == NULL || piece == NULL) {
        out->status = STATUS_NO_MEMORY;
        next = NULL;
    }
    while (next != NULL) {
        const char *one = strsep(&next, "\t");

        (void)log_escape(safe, size, one, 0);
        buffer_add_text(out, safe);
        buffer_add_text(out, next == NULL ? "" : "\t");
    }
    free(piece);
    free(safe);
}

/* The words of the block; returns the place behind them. */
static size_t add_words(const struct text *text, struct buffer *out, size_t at)
{
    for (at++; kind_at(text, at) == SHEET_WORDS; at++) {
        const char *words = sheet_words_of(text->sheet, at);
        char key[KEY_SHORT + 1];

        (void)snprintf(key, sizeof(key), "%s", words);
        add_safe(out, text->sheet->items[at].style == SHEET_KEY ? key : words);
    }
    return at;
}

static size_t past_words(const struct text *text, size_t at)
{
    for (at++; kind_at(text, at) == SHEET_WORDS; at++) {
    }
    return at;
}

/* ---- values ------------------------------------------------------------------------------ */

static bool is_fact(enum sheet_kind kind)
{
    return kind == SHEET_CARD || kind == SHEET_FACT || kind == SHEET_DETAIL;
}

/* All that follow each other, their values in line. */
static size_t add_facts(struct text *text, size_t at)
{
    int width = 0;

    for (size_t i = at; is_fact(kind_at(text, i)); i = past_words(text, i)) {
        int length = (int)strlen(sheet_label_of(text->sheet, i));

        width = length > width ? length : width;
    }
    while (is_fact(kind_at(text, at))) {
        const char *label = sheet_label_of(text->sheet, at);

        buffer_add_text(text->out, "  ");
        add_safe(text->out, label);
        buffer_add_format(text->out, "%*s", width - (int)strlen(label) + 2, "");
        at = add_words(text, text->out, at);
        buffer_add_text(text->out, "\n");
    }
    return at;
}

/* ---- tables ------------------------------------------------------------------------------ */

struct column {
    size_t heading; /* item */
    size_t width;   /* of the widest cell; 0: all are empty */
    bool number;    /* set against the right edge */
};

static bool is_cell(enum sheet_kind kind)
{
    return kind == SHEET_CELL || kind == SHEET_WIDE;
}

static bool is_of_table(enum sheet_kind kind)
{
    return is_cell(kind) || kind == SHEET_COLUMN || kind == SHEET_ROW || kind == SHEET_NOTE ||
           kind == SHEET_WORDS;
}

static bool is_short(const struct column *column)
{
    return column->width > 0 && column->width <= CELL_WIDE;
}

/* One is a number, and none is words. */
static size_t measure_columns(struct column columns[COLUMNS_MAX], const struct text *text,
                              size_t at, struct buffer *cell)
{
    size_t count = 0;
    size_t column = 0;
    bool words[COLUMNS_MAX] = {false};

    for (; is_of_table(kind_at(text, at)); at++) {
        if (kind_at(text, at) == SHEET_COLUMN && count < COLUMNS_MAX) {
            columns[count++] = (struct column){.heading = at};
        }
        column = kind_at(text, at) == SHEET_ROW ? 0 : column;
        if (is_cell(kind_at(text, at)) && column < count) {
            struct column *of = &columns[column];
            size_t length;

            buffer_clear(cell);
            (void)add_words(text, cell, at);
            length = cell->size;
            of->width = length > of->width ? length : of->width;
            of->number |= length > 0;
            words[column] |= strspn(buffer_text(cell), "0123456789.") != length;
            column++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        buffer_clear(cell);
        (void)add_words(text, cell, columns[i].heading);
        columns[i].number &= !words[i];
        if (is_short(&columns[i]) && columns[i].width < cell->size) {
            columns[i].width = cell->size;
        }
    }
    return count;
}

static void trim_blanks(struct buffer *line)
{
    while (line->size > 0 && line->data[line->size - 1] == ' ') {
        line->data[--line->size] = '\0';
    }
}

static void add_cell(struct buffer *line, const struct column *column, const char *words)
{
    buffer_add_format(line, column->number ? "  %*s" : "  %-*s", (int)column->width, words);
}

static void add_headings(struct text *text, const struct column *columns, size_t count,
                         struct buffer *cell)
{
    for (size_t i = 0; i < count; i++) {
        if (is_short(&columns[i])) {
            buffer_clear(cell);
            (void)add_words(text, cell, columns[i].heading);
            add_cell(text->out, &columns[i], buffer_text(cell));
        }
    }
    trim_blanks(text->out);
    buffer_add_text(text->out, "\n");
}

/* Cells that are too long for a column. */
static void add_long(struct text *text, const struct column *columns, size_t count, size_t at,
                     struct buffer *cell)
{
    for (size_t i = 0; i < count && is_cell(kind_at(text, at)); i++, at = past_words(text, at)) {
        buffer_clear(cell);
        (void)add_words(text, cell, at);
        if (columns[i].width > CELL_WIDE && cell->size > 0) {
            buffer_add_text(text->out, "      ");
            (void)add_words(text, text->out, columns[i].heading);
            buffer_add_format(text->out, ": %s\n", buffer_text(cell));
        }
    }
}

/* Returns the place behind the row. */
static size_t add_row(struct text *text, const struct column *columns, size_t count, size_t at,
                      struct buffer *cell)
{
    size_t first = ++at;
    size_t begin = text->out->size;

    for (size_t i = 0; is_cell(kind_at(text, at)); i++, at = past_words(text, at)) {
        if (i < count && is_short(&columns[i])) {
            buffer_clear(cell);
            (void)add_words(text, cell, at);
            add_cell(text->out, &columns[i], buffer_text(cell));
        }
    }
    trim_blanks(text->out);
    if (text->out->size > begin) {
        buffer_add_text(text->out, "\n");
    }
    add_long(text, columns, count, first, cell);
    return at;
}

static size_t add_table(struct text *text, size_t at)
{
    struct column columns[COLUMNS_MAX];
    struct buffer cell;
    size_t count;

    buffer_init(&cell, SHEET_SIZE_MAX);
    count = measure_columns(columns, text, at, &cell);
    add_headings(text, columns, count, &cell);
    while (is_of_table(kind_at(text, at))) {
        if (kind_at(text, at) == SHEET_ROW) {
            at = add_row(text, columns, count, at, &cell);
        } else if (kind_at(text, at) == SHEET_NOTE) {
            buffer_add_text(text->out, "  ");
            at = add_words(text, text->out, at);
            buffer_add_text(text->out, "\n");
        } else {
            at++;
        }
    }
    buffer_release(&cell);
    return at;
}

/* ---- squares ----------------------------------------------------------------------------- */

/* As letters, several squares for each where they are many: the last mark of them. */
static void add_squares(struct text *text, const struct sheet_squares *squares)
{
    uint32_t counts[SHEET_MARKS] = {0};
    uint32_t each = (squares->count + LETTERS_MAX - 1) / LETTERS_MAX;

    for (uint32_t i = 0; i < squares->count; i += each) {
        uint8_t mark = 0;

        for (uint32_t k = i; k < i + each && k < squares->count; k++) {
            counts[squares->marks[k]]++;
            mark = squares->marks[k] > mark ? squares->marks[k] : mark;
        }
        buffer_add_u8(text->out, (uint8_t)sheet_letters[mark]);
    }
    buffer_add_text(text->out, "\n");
    for (uint8_t mark = 0; mark < SHEET_MARKS; mark++) {
        if (counts[mark] > 0) {
            buffer_add_format(text->out, "%c %u ", sheet_letters[mark], counts[mark]);
            add_safe(text->out, squares->words[mark]);
            buffer_add_text(text->out, "  ");
        }
    }
    trim_blanks(text->out);
    buffer_add_text(text->out, "\n");
}

/* ---- all ----------------------------------------------------------------------------------- */

static bool has_place(enum sheet_kind kind)
{
    return kind == SHEET_TITLE || kind == SHEET_HEADING || kind == SHEET_SUBHEADING ||
           kind == SHEET_LINE || kind == SHEET_ITEM;
}

/* Returns the place behind the block. */
static size_t add_block(struct text *text, size_t at)
{
    enum sheet_kind kind = kind_at(text, at);

    if (is_fact(kind)) {
        return add_facts(text, at);
    }
    if (kind == SHEET_COLUMN) {
        return add_table(text, at);
    }
    if (kind == SHEET_SQUARES) {
        add_squares(text, text->sheet->items[at].squares);
    }
    if (kind == SHEET_PLOT) {
        struct buffer words;

        buffer_init(&words, SHEET_SIZE_MAX);
        sheet_plot_words(&words, text->sheet->items[at].plot);
        add_safe(text->out, buffer_text(&words));
        buffer_add_text(text->out, words.size > 0 ? "\n" : "");
        buffer_release(&words);
    }
    if (!has_place(kind)) {
        return past_words(text, at);
    }
    buffer_add_text(text->out, kind == SHEET_HEADING && text->out->size > 0 ? "\n" : "");
    buffer_add_text(text->out, kind == SHEET_ITEM ? "  " : "");
    at = add_words(text, text->out, at);
    buffer_add_text(text->out, "\n");
    return at;
}

void sheet_text_write(struct buffer *out, const struct sheet *sheet)
{
    struct text text = {.out = out, .sheet = sheet};

    for (size_t at = 0; at < sheet->count;) {
        at = add_block(&text, at);
    }
    if (sheet->words.status != STATUS_OK) {
        out->status = sheet->words.status;
    }
}
