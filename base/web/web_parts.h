/*
 * web_parts.h - what status pages draw alike: cards, squares by state, the curve of a training.
 */
#ifndef BASE_WEB_WEB_PARTS_H
#define BASE_WEB_WEB_PARTS_H

#include "base/buffer.h"
#include "base/curve.h"

/* A figure above its words; the figure is escaped, the words are HTML. A row of them stands in
 * <div class="cards">. */
void web_parts_card(struct buffer *page, const char *figure, const char *words);

/* What the squares show: marks index words, and the colours of the page's style. */
struct web_squares {
    const uint8_t *marks;
    uint32_t count;
    uint32_t each;            /* segments of a square */
    const char *const *words; /* of each mark; NULL: it is not used */
    uint32_t word_count;
};

void web_parts_squares(struct buffer *page, const struct web_squares *squares);
/* The colours and their words. */
void web_parts_key(struct buffer *page, const char *const *words, uint32_t word_count);

/* The loss as a line, and the held-out loss as crosses on a line; points may be NULL. Nothing where
 * there is no value. */
void web_parts_curve(struct buffer *page, const struct curve *line, const struct curve *points);

#endif /* BASE_WEB_WEB_PARTS_H */
