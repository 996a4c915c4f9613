/* progress.c - see progress.h. */
#include "base/io/progress.h"

#include <string.h>

#include "base/io/log.h"
#include "base/text_plot.h"

#define TERMINAL_INTERVAL_S 0.1
#define PLAIN_INTERVAL_S    10.0
#define RATE_INTERVAL_S     1.0
#define RATE_SMOOTHING      0.3  /* weight of the newest measurement */
#define RATE_LEAST          1e-6 /* below it the work rests: no rate and no end are told */
#define COLUMNS_MIN         40   /* of a line; what is narrower cuts it */
#define BAR_CELLS           20
#define BAR_CELLS_MIN       5 /* a shorter bar shows nothing */
#define PLOT_COLUMNS        100
#define PLOT_ROWS           16
#define TEXT_MAX            (64u << 10)

void progress_init(struct progress *progress, FILE *stream, const char *title, const char *unit,
                   uint64_t first, uint64_t total, double now_s)
{
    memset(progress, 0, sizeof(*progress));
    screen_init(&progress->screen, stream);
    progress->title = title;
    progress->unit = unit;
    progress->first = first;
    progress->total = total;
    progress->started_s = now_s;
    progress->rate_s = now_s;
    progress->rate_count = first;
    progress->drawn_s = -1;
}

void progress_time(char text[PROGRESS_TIME_MAX], double seconds)
{
    unsigned long long whole = seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 1000000000;

    if (whole >= 100 * 3600) {
        snprintf(text, PROGRESS_TIME_MAX, "%llu d", whole / 86400);
    } else if (whole >= 3600) {
        snprintf(text, PROGRESS_TIME_MAX, "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60,
                 whole % 60);
    } else {
        snprintf(text, PROGRESS_TIME_MAX, "%llu:%02llu", whole / 60, whole % 60);
    }
}

/* "  [##....]", or nothing where there are no cells */
static void bar_text(char bar[BAR_CELLS + 5], double share, int cells)
{
    int full = (int)(share * cells);

    bar[0] = '\0';
    if (cells > 0) {
        memcpy(bar, "  [", 3);
        for (int i = 0; i < cells; i++) {
            bar[3 + i] = i < full ? '#' : '.';
        }
        memcpy(bar + 3 + cells, "]", 2);
    }
}

void progress_number(char text[PROGRESS_NUMBER_MAX], double number)
{
    (void)snprintf(text, PROGRESS_NUMBER_MAX, number >= 1000 && number < 1e15 ? "%.0f" : "%.4g",
                   number);
}

static size_t progress_head(char *line, size_t size, const struct progress *progress,
                            uint64_t count, int cells)
{
    char bar[BAR_CELLS + 5];
    char eta[PROGRESS_TIME_MAX] = "?";
    char pace[PROGRESS_NUMBER_MAX];
    double rate = progress->rate < RATE_LEAST ? 0 : progress->rate;
    double share;
    int length;

    progress_number(pace, rate);
    if (progress->total == 0) {
        length = snprintf(line, size, "%s  %llu %s  %s %s/s", progress->title,
                          (unsigned long long)count, progress->unit, pace, progress->unit);
    } else {
        share = count >= progress->total ? 1 : (double)count / (double)progress->total;
        bar_text(bar, share, cells);
        if (share >= 1 || rate > 0) {
            progress_time(eta, share >= 1 ? 0 : (double)(progress->total - count) / rate);
        }
        length = snprintf(line, size, "%s%s  %llu/%llu  %.1f %%  %s %s/s  eta %s", progress->title,
                          bar, (unsigned long long)count, (unsigned long long)progress->total,
                          share * 100, pace, progress->unit, eta);
    }
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

/* Cuts line to width: before the first field that does not fit, or inside it where it is the only
 * one. */
static void cut_fields(char *line, size_t width)
{
    size_t at = width;

    if (strlen(line) <= width) {
        return;
    }
    while (at > 0 && strncmp(line + at, "  ", 2) != 0) {
        at--;
    }
    while (at > 0 && line[at - 1] == ' ') {
        at--;
    }
    line[at > 0 ? at : width] = '\0';
}

/* A full row would wrap. */
static size_t width_of(const struct progress *progress)
{
    unsigned columns = progress->screen.columns;

    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
    return !progress->screen.terminal || columns >= PROGRESS_LINE_MAX ? PROGRESS_LINE_MAX - 1
                                                                      : columns - 1;
}

void progress_line(char line[PROGRESS_LINE_MAX], const struct progress *progress, uint64_t count,
                   const char *note)
{
    char safe[PROGRESS_NOTE_MAX] = "";
    size_t width = width_of(progress);
    int cells = BAR_CELLS;
    size_t needed; /* the head and the first field of the note */

    if (note != NULL) {
        log_escape(safe, sizeof(safe), note, 0);
    }
    needed = strstr(safe, "  ") == NULL ? strlen(safe) : (size_t)(strstr(safe, "  ") - safe);
    needed += needed > 0 ? 2 : 0;
    needed += progress_head(line, PROGRESS_LINE_MAX, progress, count, cells);
    if (needed > width) {
        size_t over = needed - width;

        /* In fives, or the bar would change with every digit. */
        cells = over + BAR_CELLS_MIN <= BAR_CELLS ? (BAR_CELLS - (int)over) / 5 * 5 : 0;
    }
    needed = progress_head(line, PROGRESS_LINE_MAX, progress, count, cells);
    if (safe[0] != '\0') {
        (void)snprintf(line + needed, PROGRESS_LINE_MAX - needed, "  %s", safe);
    }
    cut_fields(line, width);
}

static void measure_rate(struct progress *progress, uint64_t count, double now_s)
{
    double passed = now_s - progress->rate_s;
    double newest;

    if (passed <= 0 || count < progress->rate_count) {
        return;
    }
    newest = (double)(count - progress->rate_count) / passed;
    if (progress->rate_s <= progress->started_s) {
        progress->rate = newest; /* the first measurement stands alone, and grows */
    }
    if (passed >= RATE_INTERVAL_S) {
        progress->rate += RATE_SMOOTHING * (newest - progress->rate);
        progress->rate_s = now_s;
        progress->rate_count = count;
    }
}

/* The curve, as high as the window leaves room for. */
static void add_curve(struct buffer *text, const struct progress *progress)
{
    const struct screen *screen = &progress->screen;
    const struct text_plot plot = {
        .line = progress->line,
        .points = progress->points,
        .columns = screen->columns - 1 < PLOT_COLUMNS ? screen->columns - 1 : PLOT_COLUMNS,
        .rows = screen->rows - 4 < PLOT_ROWS ? screen->rows - 4 : PLOT_ROWS,
        .braille = screen->utf8};

    if (progress->line != NULL) {
        text_plot_write(text, &plot);
    }
}

static void draw_line(struct progress *progress, uint64_t count, const char *note, double now_s,
                      bool last)
{
    char line[PROGRESS_LINE_MAX];
    struct buffer text;

    (void)screen_measure(&progress->screen);
    progress_line(line, progress, count, note);
    if (progress->screen.terminal) {
        buffer_init(&text, TEXT_MAX);
        add_curve(&text, progress);
        buffer_add_text(&text, line);
        (last ? screen_finish : screen_draw)(&progress->screen, buffer_text(&text));
        buffer_release(&text);
    } else {
        fprintf(progress->screen.stream, "%s\n", line);
        fflush(progress->screen.stream);
    }
    progress->drawn_s = now_s;
}

void progress_update(struct progress *progress, uint64_t count, const char *note, double now_s)
{
    double interval = progress->screen.terminal ? TERMINAL_INTERVAL_S : PLAIN_INTERVAL_S;

    if (progress->screen.stream == NULL) {
        return;
    }
    measure_rate(progress, count, now_s);
    if (progress->drawn_s < 0 || now_s - progress->drawn_s >= interval) {
        draw_line(progress, count, note, now_s, false);
    }
}

void progress_finish(struct progress *progress, uint64_t count, const char *note, double now_s)
{
    if (progress->screen.stream == NULL) {
        return;
    }
    /* The last line shows the mean rate of the whole work. */
    if (now_s > progress->started_s && count >= progress->first) {
        progress->rate = (double)(count - progress->first) / (now_s - progress->started_s);
    }
    draw_line(progress, count, note, now_s, true);
}
