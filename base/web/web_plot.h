/*
 * web_plot.h - a drawing of numbers, as all pages have it: lines or bars over steps or time.
 *
 * What it shows is said in words too, for readers who do not see it. Its own words have the size of
 * the page's in a window of any width.
 */
#ifndef BASE_WEB_WEB_PLOT_H
#define BASE_WEB_WEB_PLOT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/curve.h"

#define WEB_PLOT_SERIES_MAX 2
#define WEB_PLOT_POINTS_MAX 600

enum web_plot_form {
    WEB_PLOT_LINE,   /* over gaps too */
    WEB_PLOT_POINTS, /* the same with dots, where they are few */
    WEB_PLOT_PIECES, /* a line that is broken at gaps */
    WEB_PLOT_BARS,
};

/* Values at equal distances. */
struct web_series {
    const char *words; /* "held-out loss" */
    enum web_plot_form form;
    const double *values; /* NAN: there is none */
};

struct web_plot {
    const char *unit; /* behind a number: " ms"; "" */
    const char *first;
    const char *last; /* words at the two ends: "step 0", "step 60" */
    bool from_zero;   /* and without the few highest: single steps take long on a busy machine */
    bool is_low;      /* half as high as others */
    uint32_t count;   /* of the values of each */
    uint32_t series_count;
    struct web_series series[WEB_PLOT_SERIES_MAX];
};

/* Beside it stand the words of its series. Where there is no value, it says so. */
void web_plot_write(struct buffer *page, const struct web_plot *plot);

/* The loss of a training as a line, and the held-out loss as points. */
void web_plot_curve(struct buffer *page, const struct curve *loss, const struct curve *held_out);

#endif /* BASE_WEB_WEB_PLOT_H */
