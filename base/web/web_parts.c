/* web_parts.c - see web_parts.h. */
#include "base/web/web_parts.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/web/web_page.h"

/* ---- cards --------------------------------------------------------------------------- */

void web_parts_card(struct buffer *page, const char *figure, const char *words)
{
    buffer_add_text(page, "<div class=\"card\"><b>");
    web_page_text(page, figure);
    buffer_add_format(page, "</b><span>%s</span></div>\n", words);
}

void web_parts_count(struct buffer *page, uint64_t count, const char *words)
{
    char figure[24];

    (void)snprintf(figure, sizeof(figure), "%" PRIu64, count);
    web_parts_card(page, figure, words);
}

/* ---- tables -------------------------------------------------------------------------- */

void web_parts_value_begin(struct buffer *page, const char *name)
{
    buffer_add_format(page, "<tr><th scope=\"row\">%s</th><td class=\"own\">", name);
}

void web_parts_value_end(struct buffer *page)
{
    buffer_add_text(page, "</td></tr>\n");
}

void web_parts_value(struct buffer *page, const char *name, const char *text)
{
    web_parts_value_begin(page, name);
    web_page_text(page, text);
    web_parts_value_end(page);
}

void web_parts_table(struct buffer *page, const char *const *headings, size_t count)
{
    buffer_add_text(page, "<table>\n<tr>");
    for (size_t i = 0; i < count; i++) {
        buffer_add_format(page, "<th scope=\"col\">%s</th>", headings[i]);
    }
    buffer_add_text(page, "</tr>\n");
}

/* ---- squares ------------------------------------------------------------------------- */

static void add_square(struct buffer *page, const struct web_squares *squares, uint32_t i)
{
    uint64_t first = i * squares->each;
    uint64_t end = first + squares->each < squares->total ? first + squares->each : squares->total;

    buffer_add_format(page, "<i class=\"m%u\" title=\"%s%s %" PRIu64, squares->marks[i],
                      squares->unit, end > first + 1 ? "s" : "", first);
    if (end > first + 1) {
        buffer_add_format(page, " to %" PRIu64, end - 1);
    }
    buffer_add_format(page, ": %s\"></i>\n", squares->words[squares->marks[i]]);
}

/* What the marks mean that stand there. */
static void add_key(struct buffer *page, const struct web_squares *squares,
                    const uint32_t counts[WEB_SQUARES_MARKS])
{
    buffer_add_text(page, "<p class=\"dim\">");
    for (uint8_t mark = 0; mark < WEB_SQUARES_MARKS; mark++) {
        if (counts[mark] > 0) {
            buffer_add_format(page, "<span class=\"mark\"><i class=\"m%u\"></i>%s</span> ", mark,
                              squares->words[mark]);
        }
    }
    if (squares->each > 1) {
        buffer_add_format(page, "A square is %" PRIu64 " %ss.", squares->each, squares->unit);
    }
    buffer_add_text(page, "</p>\n");
}

void web_parts_squares(struct buffer *page, const struct web_squares *squares)
{
    uint32_t counts[WEB_SQUARES_MARKS] = {0};
    const char *comma = ": ";

    for (uint32_t i = 0; i < squares->count; i++) {
        counts[squares->marks[i]]++;
    }
    buffer_add_format(page, "<div class=\"squares\" role=\"img\" aria-label=\"%s", squares->name);
    for (uint8_t mark = 0; mark < WEB_SQUARES_MARKS; mark++) {
        if (counts[mark] > 0) {
            buffer_add_format(page, "%s%u %s", comma, counts[mark], squares->words[mark]);
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
