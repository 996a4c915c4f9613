/*
 * web_parts.h - what pages are made of: cards, tables, squares by state.
 *
 * Names, words and headings are HTML of ours; figures and texts are others' and escaped.
 */
#ifndef BASE_WEB_WEB_PARTS_H
#define BASE_WEB_WEB_PARTS_H

#include <stdbool.h>

#include "base/buffer.h"

/* A figure above its words. A row of them stands in <div class="cards">. */
void web_parts_card(struct buffer *page, const char *figure, const char *words);
void web_parts_count(struct buffer *page, uint64_t count, const char *words);

/* ---- tables ---- */

/* A row of a table of values: <table class="values">. */
void web_parts_value(struct buffer *page, const char *name, const char *text);
/* The same for a text that is HTML: between them. */
void web_parts_value_begin(struct buffer *page, const char *name);
void web_parts_value_end(struct buffer *page);

/* Begins a table with headings; the caller ends it. */
void web_parts_table(struct buffer *page, const char *const *headings, size_t count);

/* ---- squares ---- */

#define WEB_SQUARES_MARKS 6 /* signs that there are */

/* What squares show: marks index words, and the signs of the page's style, which differ by more
 * than their colours: empty, dotted, full, cut, barred, crossed. */
struct web_squares {
    const char *name; /* for readers who do not see it: "segments by state" */
    const char *unit; /* "segment" */
    const uint8_t *marks;
    uint32_t count;
    uint64_t each;            /* units of a square */
    uint64_t total;           /* units of all of them */
    const char *const *words; /* WEB_SQUARES_MARKS of them; NULL: it is not used */
};

/* The squares, the marks that occur in words, and how many units a square is. */
void web_parts_squares(struct buffer *page, const struct web_squares *squares);

#endif /* BASE_WEB_WEB_PARTS_H */
