/* web_plot.c - see web_plot.h. */
#include "base/web/web_plot.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io/progress.h"

#define CURVE_PARTS 320
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
static uint32_t sort_values(double values[WEB_PLOT_SERIES_MAX * WEB_PLOT_POINTS_MAX],
                            const struct web_plot *plot)
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

static bool make_scale(struct scale *scale, const struct web_plot *plot)
{
    double values[WEB_PLOT_SERIES_MAX * WEB_PLOT_POINTS_MAX];
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

static double place_x(const struct web_plot *plot, uint32_t i)
{
    return plot->count > 1 ? (double)WIDTH * i / (plot->count - 1) : WIDTH / 2.0;
}

static double place_y(const struct scale *scale, double value)
{
    value = value < scale->high ? value : scale->high;
    return HEIGHT * (scale->high - value) / (scale->high - scale->low);
}

/* ---- the drawing ------------------------------------------------------------------- */

static void add_line(struct buffer *page, const struct web_plot *plot, const struct scale *scale,
                     uint32_t s)
{
    const double *values = plot->series[s].values;
    bool is_broken = plot->series[s].form == WEB_PLOT_PIECES;
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

static void add_dots(struct buffer *page, const struct web_plot *plot, const struct scale *scale,
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

static void add_bars(struct buffer *page, const struct web_plot *plot, const struct scale *scale,
                     uint32_t s)
{
    double width = (double)WIDTH / plot->count;

    for (uint32_t i = 0; i < plot->count; i++) {
        double value = plot->series[s].values[i];

        if (isfinite(value)) {
            double top = fmin(place_y(scale, value), HEIGHT - 1); /* some is more than none */

            buffer_add_format(page,
                              "<rect class=\"bar\" x=\"%.1f\" y=\"%.2f\" width=\"%.1f\" "
                              "height=\"%.2f\"><title>%.3g%s</title></rect>\n",
                              width * i + 1, top, width - 2, HEIGHT - top, value, plot->unit);
        }
    }
}

static bool has_values(const struct web_plot *plot, uint32_t s)
{
    for (uint32_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->series[s].values[i])) {
            return true;
        }
    }
    return false;
}

/* "loss: 5.54 at first, 2.31 at last, from 2.3 to 5.54" */
static void add_description(struct buffer *page, const struct web_plot *plot)
{
    for (uint32_t s = 0; s < plot->series_count; s++) {
        const struct web_series *series = &plot->series[s];
        double low = DBL_MAX;
        double high = -DBL_MAX;
        double first = NAN;
        double last = NAN;
        char text[4][PROGRESS_NUMBER_MAX];

        for (uint32_t i = 0; i < plot->count; i++) {
            if (isfinite(series->values[i])) {
                first = isfinite(first) ? first : series->values[i];
                last = series->values[i];
                low = fmin(low, last);
                high = fmax(high, last);
            }
        }
        if (isfinite(first)) {
            progress_number(text[0], first);
            progress_number(text[1], last);
            progress_number(text[2], low);
            progress_number(text[3], high);
            buffer_add_format(page, "%s%s: %s%s at first, %s%s at last, from %s to %s",
                              s == 0 ? "" : "; ", series->words, text[0], plot->unit, text[1],
                              plot->unit, text[2], text[3]);
        }
    }
}

/* The words of the series beside a piece of their line. */
static void add_caption(struct buffer *page, const struct web_plot *plot, const struct scale *scale)
{
    buffer_add_text(page, "<figcaption>");
    for (uint32_t s = 0; s < plot->series_count; s++) {
        const struct web_series *series = &plot->series[s];

        if (!has_values(plot, s)) {
            continue;
        }
        buffer_add_format(page,
                          "<span class=\"mark\"><svg width=\"26\" height=\"12\" viewBox=\"0 0 26 "
                          "12\" aria-hidden=\"true\">");
        if (series->form == WEB_PLOT_BARS) {
            buffer_add_text(page, "<path class=\"bar\" d=\"M4 11v-6h5v6zm8 0v-10h5v10z\"/>");
        } else {
            buffer_add_format(page, "<path class=\"l%u\" d=\"M2 6h22\"/>", s);
        }
        if (series->form == WEB_PLOT_POINTS) {
            buffer_add_format(page, "<path class=\"d%u\" d=\"M13 6h0\"/>", s);
        }
        buffer_add_format(page, "</svg>%s</span> ", series->words);
    }
    if (scale->most > scale->high) {
        char most[PROGRESS_NUMBER_MAX];

        progress_number(most, scale->most);
        buffer_add_format(page, "A few are above the plot, the highest at %s%s.", most, plot->unit);
    }
    buffer_add_text(page, "</figcaption>\n");
}

static void add_axes(struct buffer *page, const struct web_plot *plot, const struct scale *scale)
{
    uint32_t ticks = (uint32_t)lround((scale->high - scale->low) / scale->part);

    buffer_add_text(page, "<div class=\"y\" aria-hidden=\"true\">");
    for (uint32_t tick = 0; tick <= ticks; tick++) {
        char text[NUMBER_SIZE];

        print_tick(text, scale->low + scale->part * tick, scale);
        buffer_add_format(page, "<span>%s%s</span>", text, plot->unit);
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

static void add_series(struct buffer *page, const struct web_plot *plot, const struct scale *scale,
                       uint32_t s)
{
    if (plot->series[s].form == WEB_PLOT_BARS) {
        add_bars(page, plot, scale, s);
        return;
    }
    add_line(page, plot, scale, s);
    if (plot->series[s].form == WEB_PLOT_POINTS) {
        add_dots(page, plot, scale, s);
    }
}

void web_plot_write(struct buffer *page, const struct web_plot *plot)
{
    struct scale scale;

    assert(plot->count <= WEB_PLOT_POINTS_MAX && plot->series_count <= WEB_PLOT_SERIES_MAX);
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
    buffer_add_format(page,
                      "</svg>\n<div class=\"x\" aria-hidden=\"true\"><span>%s</span><span>%s</span>"
                      "</div>\n</figure>\n",
                      plot->first, plot->last);
}

/* ---- the curve of a training --------------------------------------------------------- */

static void take_parts(double values[CURVE_PARTS], const struct curve *curve, uint64_t shown,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        double mean;

        values[i] = curve_part(&mean, curve, shown, i, count) ? mean : NAN;
    }
}

void web_plot_curve(struct buffer *page, const struct curve *loss, const struct curve *held_out)
{
    uint64_t shown = curve_shown(loss);
    double losses[CURVE_PARTS];
    double points[CURVE_PARTS];
    char last[32];
    struct web_plot plot = {
        .unit = "",
        .first = "step 0",
        .last = last,
        .count = shown < CURVE_PARTS ? (uint32_t)shown : CURVE_PARTS,
        .series_count = 2,
        .series = {{"loss", WEB_PLOT_LINE, losses}, {"held-out loss", WEB_PLOT_POINTS, points}}};

    (void)snprintf(last, sizeof(last), "step %" PRIu64, shown - 1);
    take_parts(losses, loss, shown, plot.count);
    take_parts(points, held_out, shown, plot.count);
    web_plot_write(page, &plot);
}
