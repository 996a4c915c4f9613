/*
 * sheet_screen.c - a sheet for a window of a terminal: no line is longer than the window, and all
 * lines fit into it where they can. Characters that steer a terminal are escaped.
 */
#include <stdio.h>
#include <string.h>

#include "base/io/log.h"
#include "base/sheet/sheet.h"
#include "base/text_plot.h"

#define LABEL_COLUMNS 10 /* "segments  " */
#define COLUMNS_MAX   100
#define COLUMNS_LEAST 16
#define PLOT_ROWS     16
#define PLOT_SHARE    3 /* of the rows that the plot has at least, should others be cut */
#define LINE_SIZE     2048
#define TEXT_SIZE_MAX ((size_t)64 << 10)

static unsigned width_of(const struct sheet_screen *screen)
{
    unsigned columns = screen->columns < COLUMNS_MAX ? screen->columns : COLUMNS_MAX;

    return columns > LABEL_COLUMNS + COLUMNS_LEAST ? columns - LABEL_COLUMNS - 1 : COLUMNS_LEAST;
}

/* A label and words below each other, broken at blanks. */
static void add_wrapped(struct buffer *text, const char *label, const char *words, unsigned width)
{
    char safe[LINE_SIZE];
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

/* Returns the place behind it. */
static size_t add_detail(struct buffer *text, const struct sheet *sheet, size_t at, unsigned width)
{
    const char *label = sheet_label_of(sheet, at);
    struct buffer words;

    buffer_init(&words, TEXT_SIZE_MAX);
    for (at++; at < sheet->count && sheet->items[at].kind == SHEET_WORDS; at++) {
        buffer_add_text(&words, sheet_words_of(sheet, at));
    }
    add_wrapped(text, label, buffer_text(&words), width);
    buffer_release(&words);
    return at;
}

/* Letters, and below them what the letters that stand there mean. Several squares share a letter
 * where they are many: their last mark. */
static void add_squares(struct buffer *text, const struct sheet_squares *squares, unsigned width)
{
    uint32_t each = (squares->count + width - 1) / width;
    char line[LINE_SIZE];
    size_t size = 0;

    for (uint32_t i = 0; i < squares->count; i += each) {
        uint8_t mark = 0;

        for (uint32_t k = i; k < i + each && k < squares->count; k++) {
            mark = squares->marks[k] > mark ? squares->marks[k] : mark;
        }
        line[size++] = sheet_letters[mark];
    }
    line[size] = '\0';
    add_wrapped(text, squares->name, line, width);
    size = 0;
    line[0] = '\0';
    for (int mark = 0; mark < SHEET_MARKS; mark++) {
        if (squares->counts[mark] > 0) {
            size +=
                (size_t)snprintf(line + size, sizeof(line) - size, "%s%c %llu %.100s",
                                 size == 0 ? "" : "  ", sheet_letters[mark],
                                 (unsigned long long)squares->counts[mark], squares->words[mark]);
        }
    }
    add_wrapped(text, "", line, width);
}

static unsigned lines_in(const struct buffer *text)
{
    unsigned count = 0;

    for (size_t i = 0; i < text->size; i++) {
        count += text->data[i] == '\n';
    }
    return count;
}

static void add_plot(struct buffer *text, const struct sheet_plot *plot,
                     const struct sheet_screen *screen, unsigned others)
{
    unsigned columns = screen->columns < COLUMNS_MAX ? screen->columns : COLUMNS_MAX;
    struct text_plot drawn = {.line = plot->line,
                              .points = plot->points,
                              .columns = columns - 1,
                              .braille = screen->utf8};

    drawn.rows = screen->rows > others + screen->rows / PLOT_SHARE ? screen->rows - others
                                                                   : screen->rows / PLOT_SHARE;
    drawn.rows = drawn.rows < PLOT_ROWS ? drawn.rows : PLOT_ROWS;
    text_plot_write(text, &drawn);
}

void sheet_screen_write(struct buffer *text, const struct sheet *sheet,
                        const struct sheet_screen *screen)
{
    const struct sheet_plot *plot = NULL;
    unsigned width = width_of(screen);
    struct buffer below; /* the plot, which has the rows that are left */

    buffer_init(&below, TEXT_SIZE_MAX);
    for (size_t at = 0; at < sheet->count;) {
        const struct sheet_item *item = &sheet->items[at];
        struct buffer *out = plot == NULL ? text : &below;

        if (item->kind == SHEET_DETAIL) {
            at = add_detail(out, sheet, at, width);
            continue;
        }
        if (item->kind == SHEET_SQUARES) {
            add_squares(out, item->squares, width);
        } else if (item->kind == SHEET_PLOT && item->plot->line != NULL && plot == NULL) {
            plot = item->plot;
        }
        at++;
    }
    if (plot != NULL) {
        add_plot(text, plot, screen, lines_in(text) + lines_in(&below) + 2);
    }
    buffer_add_text(text, buffer_text(&below));
    if (sheet->words.status != STATUS_OK || below.status != STATUS_OK) {
        text->status = sheet->words.status != STATUS_OK ? sheet->words.status : below.status;
    }
    buffer_release(&below);
}
