/* page_squares.c - see page_squares.h. */
#include "base/sheet/page_squares.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/sheet/page_frame.h"

static void add_square(struct buffer *page, const struct sheet_squares *squares, uint32_t i)
{
    uint64_t first = i * squares->each;
    uint64_t end = first + squares->each < squares->total ? first + squares->each : squares->total;

    buffer_add_format(page, "<i class=\"m%u\" title=\"", squares->marks[i]);
    page_frame_text(page, squares->unit);
    buffer_add_format(page, "%s %" PRIu64, end > first + 1 ? "s" : "", first);
    if (end > first + 1) {
        buffer_add_format(page, " to %" PRIu64, end - 1);
    }
    buffer_add_text(page, ": ");
    page_frame_text(page, squares->words[squares->marks[i]]);
    buffer_add_text(page, "\"></i>\n");
}

/* What the marks mean that stand there. */
static void add_key(struct buffer *page, const struct sheet_squares *squares,
                    const uint32_t counts[SHEET_MARKS])
{
    buffer_add_text(page, "<p class=\"dim\">");
    for (uint8_t mark = 0; mark < SHEET_MARKS; mark++) {
        if (counts[mark] > 0) {
            buffer_add_format(page, "<span class=\"mark\"><i class=\"m%u\"></i>", mark);
            page_frame_text(page, squares->words[mark]);
            buffer_add_text(page, "</span> ");
        }
    }
    if (squares->each > 1) {
        buffer_add_format(page, "A square is %" PRIu64 " ", squares->each);
        page_frame_text(page, squares->unit);
        buffer_add_text(page, "s.");
    }
    buffer_add_text(page, "</p>\n");
}

void page_squares_write(struct buffer *page, const struct sheet_squares *squares)
{
    uint32_t counts[SHEET_MARKS] = {0};
    const char *comma = ": ";

    for (uint32_t i = 0; i < squares->count; i++) {
        counts[squares->marks[i]]++;
    }
    buffer_add_text(page, "<div class=\"squares\" role=\"img\" aria-label=\"");
    page_frame_text(page, squares->name);
    for (uint8_t mark = 0; mark < SHEET_MARKS; mark++) {
        if (counts[mark] > 0) {
            buffer_add_format(page, "%s%u ", comma, counts[mark]);
            page_frame_text(page, squares->words[mark]);
            comma = ", ";
        }
    }
    buffer_add_text(page, "\">\n");
    for (uint32_t i = 0; i < squares->count; i++) {
        add_square(page, squares, i);
    }
    buffer_add_text(page, "</div>\n");
    add_key(page, squares, counts);
}
