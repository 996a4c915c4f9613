/* web_parts.c - see web_parts.h. */
#include "base/web/web_parts.h"

#include <float.h>
#include <inttypes.h>

#include "base/web/web_page.h"

#define COLUMNS     40
#define CELL        12
#define PLOT_WIDTH  720
#define PLOT_HEIGHT 220
#define PLOT_LEFT   64
#define PLOT_TOP    8
#define PLOT_BOTTOM 28
#define PLOT_PARTS  320
#define TICKS       4

/* ---- cards and squares --------------------------------------------------------------- */

void web_parts_card(struct buffer *page, const char *figure, const char *words)
{
    buffer_add_text(page, "<div class=\"card\"><b>");
    web_page_text(page, figure);
    buffer_add_format(page, "</b><span>%s</span></div>\n", words);
}

void web_parts_squares(struct buffer *page, const struct web_squares *squares)
{
    buffer_add_format(page, "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"segments\">",
                      COLUMNS * CELL, (squares->count + COLUMNS - 1) / COLUMNS * CELL);
    for (uint32_t i = 0; i < squares->count; i++) {
        buffer_add_format(page,
                          "<rect class=\"m%u\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\">"
                          "<title>segment %" PRIu64 ": %s</title></rect>",
                          squares->marks[i], i % COLUMNS * CELL, i / COLUMNS * CELL, CELL - 2,
                          CELL - 2, (uint64_t)i * squares->each, squares->words[squares->marks[i]]);
    }
    buffer_add_text(page, "</svg>\n");
}

void web_parts_key(struct buffer *page, const char *const *words, uint32_t word_count)
{
    buffer_add_text(page, "<p class=\"dim\">");
    for (uint32_t i = 0; i < word_count; i++) {
        if (words[i] != NULL) {
            buffer_add_format(page,
                              "<span class=\"mark\"><span class=\"key k%u\"></span>%s</span> ", i,
                              words[i]);
        }
    }
    buffer_add_text(page, "</p>\n");
}

/* ---- the curve ----------------------------------------------------------------------- */

struct web_plot {
    uint64_t shown;
    double low;
    double high;
};

static double place_x(uint32_t part)
{
    return PLOT_LEFT + (PLOT_WIDTH - PLOT_LEFT - 4) * (part + 0.5) / PLOT_PARTS;
}

static double place_y(const struct web_plot *plot, double value)
{
    return PLOT_TOP +
           (PLOT_HEIGHT - PLOT_BOTTOM - PLOT_TOP) * (plot->high - value) / (plot->high - plot->low);
}

static void add_axes(struct buffer *page, const struct web_plot *plot)
{
    for (int tick = 0; tick <= TICKS; tick++) {
        double value = plot->low + (plot->high - plot->low) * tick / TICKS;
        double y = place_y(plot, value);

        buffer_add_format(page,
                          "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
                          PLOT_LEFT, PLOT_WIDTH, y, y);
        if (tick % 2 == 0) { /* words of a small screen are large */
            buffer_add_format(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                              PLOT_LEFT - 6, y + 4, value);
        }
    }
    buffer_add_format(page,
                      "<text x=\"%d\" y=\"%d\">step 0</text><text x=\"%d\" y=\"%d\" "
                      "text-anchor=\"end\">step %" PRIu64 "</text>\n",
                      PLOT_LEFT, PLOT_HEIGHT - 4, PLOT_WIDTH, PLOT_HEIGHT - 4, plot->shown);
}

static void add_path(struct buffer *page, const struct web_plot *plot, const struct curve *curve,
                     const char *class, bool crosses)
{
    uint32_t drawn = 0;
    double mean;

    buffer_add_format(page, "<path class=\"%s\" fill=\"none\" stroke-width=\"1.5\" d=\"", class);
    for (uint32_t i = 0; i < PLOT_PARTS; i++) {
        if (curve_part(&mean, curve, plot->shown, i, PLOT_PARTS)) {
            buffer_add_format(page, "%s%.1f %.1f", drawn++ > 0 ? "L" : "M", place_x(i),
                              place_y(plot, mean));
            buffer_add_text(page, crosses ? "m-4-4l8 8m0-8l-8 8m4-4" : drawn == 1 ? "h.1" : "");
        }
    }
    buffer_add_text(page, "\"/>\n");
}

void web_parts_curve(struct buffer *page, const struct curve *line, const struct curve *points)
{
    struct web_plot plot = {.shown = curve_shown(line), .low = DBL_MAX, .high = -DBL_MAX};

    curve_range(&plot.low, &plot.high, line, plot.shown, PLOT_PARTS);
    if (points != NULL) {
        curve_range(&plot.low, &plot.high, points, plot.shown, PLOT_PARTS);
    }
    if (plot.high < plot.low) {
        return;
    }
    curve_spread(&plot.low, &plot.high);
    buffer_add_format(page, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"loss\">\n",
                      PLOT_WIDTH, PLOT_HEIGHT);
    add_axes(page, &plot);
    add_path(page, &plot, line, "loss", false);
    if (points != NULL && points->end > 0) {
        add_path(page, &plot, points, "held", true);
    }
    buffer_add_text(page, "</svg>\n");
}
