/*
 * sheet.h - what a page, a text and --json show, as one value.
 *
 * A sheet has named facts, for programs, and blocks, for people: sentences, cards, tables, squares,
 * plots; and figures for Prometheus. It is made once and written by five renderers. They do all
 * escaping: nothing in a sheet is markup, or steers a terminal, though strangers wrote it.
 */
#ifndef BASE_SHEET_SHEET_H
#define BASE_SHEET_SHEET_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/curve.h"

#define SHEET_SIZE_MAX ((size_t)1 << 30) /* of all words of a sheet, and of what is written of it */

/* What a block is; in brackets: what its label is. Words follow it. */
enum sheet_kind {
    SHEET_WINDOW,     /* the name of the window; in no text */
    SHEET_TITLE,      /* of all */
    SHEET_HEADING,    /* [a place that links lead to; or none] */
    SHEET_SUBHEADING, /* of a part of it */
    SHEET_SECTION,    /* begins a part that has a frame, up to SHEET_SECTION_END */
    SHEET_SECTION_END,
    SHEET_LINE,   /* a sentence or several; its style is one of the lines' */
    SHEET_ITEM,   /* a line of a list */
    SHEET_CARD,   /* a figure [what it counts] */
    SHEET_FACT,   /* a value [its name] */
    SHEET_DETAIL, /* the same, as small as can be */
    SHEET_COLUMN, /* begins or continues the headings of a table */
    SHEET_ROW,    /* begins a row of it: cells follow */
    SHEET_NOTE,   /* a row over its whole width, above the row that it is about */
    SHEET_CELL,
    SHEET_WIDE, /* a cell for sentences and long names */
    SHEET_SQUARES,
    SHEET_PLOT,
    SHEET_FIELD,  /* of a form [what to fill in]: see sheet_field() */
    SHEET_CHOICE, /* of a form [what to choose] */
    SHEET_OPTION, /* of the choice before [what is read] */
    SHEET_FOOTER, /* the last words of a page; in no text */
    SHEET_METRIC, /* a family of figures for Prometheus [its name]; in no page and no text */
    SHEET_SAMPLE, /* a figure of it: see sheet_sample() */
    SHEET_WORDS,  /* of the block before; not for sheet_begin() */
    SHEET_KINDS,
};

enum sheet_style {
    SHEET_PLAIN,
    SHEET_DIM,
    SHEET_STRONG, /* words */
    SHEET_CODE,
    SHEET_KEY,    /* "0x" and hexadecimal digits, of which the first few are shown */
    SHEET_LINK,   /* has a target */
    SHEET_WELL,   /* lines: good news, */
    SHEET_ILL,    /* bad news, */
    SHEET_OPEN,   /* neither */
    SHEET_CHOSEN, /* an option */
};

#define SHEET_MARKS 6 /* signs of squares, which differ by more than their colours */

/* The marks are empty, dotted, full, cut, barred, crossed. */
struct sheet_squares {
    const char *name; /* for readers who do not see it: "segments by state" */
    const char *unit; /* "segment" */
    const uint8_t *marks;
    uint32_t count;
    uint64_t each;                  /* units of a square */
    uint64_t total;                 /* units of all of them */
    const char *words[SHEET_MARKS]; /* what each mark means; NULL: it is not used */
    uint64_t counts[SHEET_MARKS];   /* units of each mark; all 0: the squares are counted */
};

#define SHEET_SERIES_MAX 2
#define SHEET_POINTS_MAX 600

enum sheet_form {
    SHEET_FORM_LINE,   /* over gaps too */
    SHEET_FORM_POINTS, /* the same with dots, where they are few */
    SHEET_FORM_PIECES, /* a line that is broken at gaps */
    SHEET_FORM_BARS,
};

/* Values at equal distances. */
struct sheet_series {
    const char *words; /* "held-out loss" */
    enum sheet_form form;
    double values[SHEET_POINTS_MAX]; /* NAN: there is none */
};

struct sheet_plot {
    const char *unit; /* behind a number: " ms"; "" */
    char first[40];   /* words at the two ends: "step 0", "step 60" */
    char last[40];
    bool from_zero; /* and without the few highest: single steps take long on a busy machine */
    bool is_low;    /* half as high as others */
    uint32_t count; /* of the values of each */
    uint32_t series_count;
    struct sheet_series series[SHEET_SERIES_MAX];
    /* As exact as a screen can draw them; NULL: there are the series alone. */
    const struct curve *line;
    const struct curve *points;
};

struct sheet_item {
    enum sheet_kind kind;
    enum sheet_style style;
    size_t label; /* places in words; what a squares' or a plot's words were is copied */
    size_t words;
    union {
        struct sheet_squares *squares; /* owned */
        struct sheet_plot *plot;       /* owned */
    };
};

/* Read it by the functions below. */
struct sheet {
    json_t *facts;    /* an object; NULL: none yet */
    bool lacks_facts; /* one could not be made: there is no JSON */
    struct buffer words;
    struct sheet_item *items;
    size_t count;
    size_t room;
};

void sheet_init(struct sheet *sheet);
void sheet_release(struct sheet *sheet);

/* ---- facts, for programs ---- */

/* Takes the reference. NULL is lack of memory. */
void sheet_set(struct sheet *sheet, const char *name, json_t *value);
/* All of an object, likewise. */
void sheet_merge(struct sheet *sheet, json_t *object);

/* ---- blocks, for people ---- */

void sheet_begin(struct sheet *sheet, enum sheet_kind kind, const char *label);
void sheet_begin_line(struct sheet *sheet, enum sheet_style style);

/* Adds to the block that was begun last. */
void sheet_words(struct sheet *sheet, enum sheet_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "4 min ago", "in 4 min", or a dash for 0. */
void sheet_when(struct sheet *sheet, enum sheet_style style, uint64_t when_s, uint64_t now_s);
void sheet_key(struct sheet *sheet, const uint8_t *bytes, size_t size);
/* target: a place of the same page or server, "#b1" or "/v1/jobs.json". */
void sheet_link(struct sheet *sheet, const char *target, const char *words);

/* A block and its words. */
void sheet_add(struct sheet *sheet, enum sheet_kind kind, const char *label, const char *format,
               ...) __attribute__((format(printf, 4, 5)));
void sheet_line(struct sheet *sheet, enum sheet_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A field to fill in, of a form; then choices, each with its options. */
void sheet_field(struct sheet *sheet, const char *label, const char *name, const char *value);
void sheet_choice(struct sheet *sheet, const char *label, const char *name);
void sheet_option(struct sheet *sheet, const char *label, const char *value, bool is_chosen);
void sheet_columns(struct sheet *sheet, const char *const *headings, size_t count);
void sheet_squares(struct sheet *sheet, const struct sheet_squares *squares);
void sheet_plot(struct sheet *sheet, const struct sheet_plot *plot);
/* The loss of a training as a line, and the held-out loss as points. */
void sheet_curve(struct sheet *sheet, const struct curve *loss, const struct curve *held_out);

/* A family of figures, with its type ("gauge") and what it counts. Its samples follow. */
void sheet_metric(struct sheet *sheet, const char *name, const char *type, const char *help);
/* A figure of the family, and then its labels. */
void sheet_sample(struct sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sheet_sample_label(struct sheet *sheet, const char *name, const char *value);
/* A family of one figure without a label. */
void sheet_figure(struct sheet *sheet, const char *name, const char *type, const char *help,
                  double value);

/* Lines as printf writes them: each ends with a line feed, which may come in a later call. */
void sheet_print(struct sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sheet_print_list(struct sheet *sheet, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* ---- the renderers ---- */

/* now_s 0: a page to keep, without moment and script. */
void sheet_page_write(struct buffer *page, const struct sheet *sheet, uint64_t now_s);
void sheet_text_write(struct buffer *text, const struct sheet *sheet);
/* A window of a terminal. */
struct sheet_screen {
    unsigned columns;
    unsigned rows;
    bool utf8; /* other characters than ASCII too */
};

/* Details behind their names, broken at blanks; squares as letters; a plot of curves as high as the
 * others leave room for. Other blocks are left out. */
void sheet_screen_write(struct buffer *text, const struct sheet *sheet,
                        const struct sheet_screen *screen);
/* The text format of Prometheus, version 0.0.4. */
void sheet_metrics_write(struct buffer *text, const struct sheet *sheet);
/* One line without its end. */
void sheet_json_write(struct buffer *text, const struct sheet *sheet);

/* STATUS_NO_MEMORY or STATUS_OVER_LIMIT where something is missing in it. */
MUST_CHECK enum status sheet_check(const struct sheet *sheet, struct error *error);

/* ---- for renderers ---- */

extern const char sheet_letters[SHEET_MARKS + 1]; /* for marks */
const char *sheet_label_of(const struct sheet *sheet, size_t item);
const char *sheet_words_of(const struct sheet *sheet, size_t item);
void sheet_plot_words(struct buffer *text, const struct sheet_plot *plot);

#endif /* BASE_SHEET_SHEET_H */
