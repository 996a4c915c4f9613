/* page_plot.c - see page_plot.h. */
#include "base/sheet/page_plot.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/curve.h"
#include "base/io/progress.h"
#include "base/sheet/page_frame.h"

#define WIDTH       1000 /* of the drawing, before it is stretched */
#define HEIGHT      100
#define PARTS       4  /* that the range is about cut into */
#define DOTS_MAX    60 /* more would hide the line */
#define SPIKE       4  /* values so many times above most others are left out of the plot */
#define SPIKES_IN   20 /* "most": all but one in so many */
#define NUMBER_SIZE 32

struct scale {
    double low;
    double high;
    double part; /* between two lines of the axis */
    double most; /* the highest value, which may be above the plot */
};

/* ---- the scale --------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* All values in order; their number. */
static uint32_t sort_values(double values[SHEET_SERIES_MAX * SHEET_POINTS_MAX],
                            const struct sheet_plot *plot)
{
    uint32_t count = 0;

    for (uint32_t s = 0; s < plot->series_count; s++) {
        for (uint32_t i = 0; i < plot->count; i++) {
            if (isfinite(plot->series[s].values[i])) {
                values[count++] = plot->series[s].values[i];
            }
        }
    }
    qsort(values, count, sizeof(values[0]), by_size);
    return count;
}

/* Widens the range to round numbers: 1, 2 or 5 times a power of ten apart. */
static void round_scale(struct scale *scale)
{
    double part = (scale->high - scale->low) / PARTS;
    double ten = pow(10, floor(log10(part)));

    scale->part = part <= ten       ? ten
                  : part <= 2 * ten ? 2 * ten
                  : part <= 5 * ten ? 5 * ten
                                    : 10 * ten;
    scale->low = floor(scale->low / scale->part) * scale->part;
    scale->high = ceil(scale->high / scale->part) * scale->part;
}

static bool make_scale(struct scale *scale, const struct sheet_plot *plot)
{
    double values[SHEET_SERIES_MAX * SHEET_POINTS_MAX];
    uint32_t count = sort_values(values, plot);
    double usual;

    if (count == 0) {
        return false;
    }
    usual = values[count - 1 - count / SPIKES_IN];
    scale->low = plot->from_zero ? 0 : values[0];
    scale->most = scale->high = values[count - 1];
    if (plot->from_zero && scale->most > SPIKE * usual) {
        scale->high = 1.5 * usual;
    }
    curve_spread(&scale->low, &scale->high);
    scale->low = plot->from_zero ? 0 : scale->low;
    round_scale(scale);
    return true;
}

/* With as many digits as tell the lines of the axis apart. */
static void print_tick(char text[NUMBER_SIZE], double value, const struct scale *scale)
{
    int digits = (int)-floor(log10(scale->part));

    if (fabs(value) < scale->part / 2) {
        (void)snprintf(text, NUMBER_SIZE, "0");
    } else if (digits > 6 || fabs(value) >= 1e7) {
        (void)snprintf(text, NUMBER_SIZE, "%.4g", value);
    } else {
        (void)snprintf(text, NUMBER_SIZE, "%.*f", digits > 0 ? digits : 0, value);
    }
}

static double place_x(const struct sheet_plot *plot, uint32_t i)
{
    return plot->count > 1 ? (double)WIDTH * i / (plot->count - 1) : WIDTH / 2.0;
}

static double place_y(const struct scale *scale, double value)
{
    value = value < scale->high ? value : scale->high;
    return HEIGHT * (scale->high - value) / (scale->high - scale->low);
}

/* ---- the drawing ------------------------------------------------------------------- */

static void add_line(struct buffer *page, const struct sheet_plot *plot, const struct scale *scale,
                     uint32_t s)
{
    const double *values = plot->series[s].values;
    bool is_broken = plot->series[s].form == SHEET_FORM_PIECES;
    bool is_drawing = false;

    buffer_add_format(page, "<path class=\"l%u\" d=\"", s);
    for (uint32_t i = 0; i < plot->count; i++) {
        if (isfinite(values[i])) {
            /* A lone value is a stroke of no length: the ends of strokes are round. */
            buffer_add_format(page, "%s%.1f %.2f%s", is_drawing ? "L" : "M", place_x(plot, i),
                              place_y(scale, values[i]), is_drawing ? "" : "h0");
        }
        is_drawing = isfinite(values[i]) || (is_drawing && !is_broken);
    }
    buffer_add_text(page, "\"/>\n");
}

static void add_dots(struct buffer *page, const struct sheet_plot *plot, const struct scale *scale,
                     uint32_t s)
{
    const double *values = plot->series[s].values;
    uint32_t count = 0;

    for (uint32_t i = 0; i < plot->count; i++) {
        count += isfinite(values[i]) ? 1 : 0;
    }
    if (count == 0 || count > DOTS_MAX) {
        return;
    }
    buffer_add_format(page, "<path class=\"d%u\" d=\"", s);
    for (uint32_t i = 0; i < plot->count; i++) {
        if (isfinite(values[i])) {
            buffer_add_format(page, "M%.1f %.2fh0", place_x(plot, i), place_y(scale, values[i]));
        }
    }
    buffer_add_text(page, "\"/>\n");
}

static void add_bars(struct buffer *page, const struct sheet_plot *plot, const struct scale *scale,
                     uint32_t s)
{
    double width = (double)WIDTH / plot->count;

    for (uint32_t i = 0; i < plot->count; i++) {
        double value = plot->series[s].values[i];

        if (isfinite(value)) {
            double top = fmin(place_y(scale, value), HEIGHT - 1); /* some is more than none */

            buffer_add_format(page,
                              "<rect class=\"bar\" x=\"%.1f\" y=\"%.2f\" width=\"%.1f\" "
                              "height=\"%.2f\"><title>%.3g",
                              width * i + 1, top, width - 2, HEIGHT - top, value);
            page_frame_text(page, plot->unit);
            buffer_add_text(page, "</title></rect>\n");
        }
    }
}

static bool has_values(const struct sheet_plot *plot, uint32_t s)
{
    for (uint32_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->series[s].values[i])) {
            return true;
        }
    }
    return false;
}

static void add_description(struct buffer *page, const struct sheet_plot *plot)
{
    struct buffer words;

    buffer_init(&words, SHEET_SIZE_MAX);
    sheet_plot_words(&words, plot);
    page_frame_text(page, buffer_text(&words));
    buffer_release(&words);
}

/* The words of the series beside a piece of their line. */
static void add_caption(struct buffer *page, const struct sheet_plot *plot,
                        const struct scale *scale)
{
    buffer_add_text(page, "<figcaption>");
    for (uint32_t s = 0; s < plot->series_count; s++) {
        const struct sheet_series *series = &plot->series[s];

        if (!has_values(plot, s)) {
            continue;
        }
        buffer_add_format(page,
                          "<span class=\"mark\"><svg width=\"26\" height=\"12\" viewBox=\"0 0 26 "
                          "12\" aria-hidden=\"true\">");
        if (series->form == SHEET_FORM_BARS) {
            buffer_add_text(page, "<path class=\"bar\" d=\"M4 11v-6h5v6zm8 0v-10h5v10z\"/>");
        } else {
            buffer_add_format(page, "<path class=\"l%u\" d=\"M2 6h22\"/>", s);
        }
        if (series->form == SHEET_FORM_POINTS) {
            buffer_add_format(page, "<path class=\"d%u\" d=\"M13 6h0\"/>", s);
        }
        buffer_add_text(page, "</svg>");
        page_frame_text(page, series->words);
        buffer_add_text(page, "</span> ");
    }
    if (scale->most > scale->high) {
        char most[PROGRESS_NUMBER_MAX];

        progress_number(most, scale->most);
        buffer_add_format(page, "A few are above the plot, the highest at %s", most);
        page_frame_text(page, plot->unit);
        buffer_add_text(page, ".");
    }
    buffer_add_text(page, "</figcaption>\n");
}

static void add_axes(struct buffer *page, const struct sheet_plot *plot, const struct scale *scale)
{
    uint32_t ticks = (uint32_t)lround((scale->high - scale->low) / scale->part);

    buffer_add_text(page, "<div class=\"y\" aria-hidden=\"true\">");
    for (uint32_t tick = 0; tick <= ticks; tick++) {
        char text[NUMBER_SIZE];

        print_tick(text, scale->low + scale->part * tick, scale);
        buffer_add_format(page, "<span>%s", text);
        page_frame_text(page, plot->unit);
        buffer_add_text(page, "</span>");
    }
    buffer_add_format(page,
                      "</div>\n<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                      "role=\"img\" aria-label=\"",
                      WIDTH, HEIGHT);
    add_description(page, plot);
    buffer_add_text(page, "\">\n<path class=\"axis\" d=\"");
    for (uint32_t tick = 0; tick <= ticks; tick++) {
        buffer_add_format(page, "M0 %.2fh%d", (double)HEIGHT * tick / ticks, WIDTH);
    }
    buffer_add_text(page, "\"/>\n");
}

static void add_series(struct buffer *page, const struct sheet_plot *plot,
                       const struct scale *scale, uint32_t s)
{
    if (plot->series[s].form == SHEET_FORM_BARS) {
        add_bars(page, plot, scale, s);
        return;
    }
    add_line(page, plot, scale, s);
    if (plot->series[s].form == SHEET_FORM_POINTS) {
        add_dots(page, plot, scale, s);
    }
}

void page_plot_write(struct buffer *page, const struct sheet_plot *plot)
{
    struct scale scale;

    assert(plot->count <= SHEET_POINTS_MAX && plot->series_count <= SHEET_SERIES_MAX);
    if (!make_scale(&scale, plot)) {
        buffer_add_text(page, "<p class=\"dim\">There is nothing to plot.</p>\n");
        return;
    }
    buffer_add_format(page, "<figure class=\"plot%s\">\n", plot->is_low ? " low" : "");
    add_caption(page, plot, &scale);
    add_axes(page, plot, &scale);
    for (uint32_t s = 0; s < plot->series_count; s++) {
        if (has_values(plot, s)) {
            add_series(page, plot, &scale, s);
        }
    }
    buffer_add_text(page, "</svg>\n<div class=\"x\" aria-hidden=\"true\"><span>");
    page_frame_text(page, plot->first);
    buffer_add_text(page, "</span><span>");
    page_frame_text(page, plot->last);
    buffer_add_text(page, "</span></div>\n</figure>\n");
}
