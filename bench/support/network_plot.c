/* network_plot.c - see network_plot.h. */
#include "bench/support/network_plot.h"

#include <stdio.h>

#define WIDTH  760
#define HEIGHT 440
#define LEFT   62
#define RIGHT  30
#define TOP    34
#define BOTTOM 52
#define X_MAX  0.25
#define Y_MIN  (-36.0)
#define Y_MAX  12.0

/* Each series also has its own mark, for readers without colour. */
static const char *const colours[PLOT_SERIES_MAX] = {"#0072b2", "#009e73", "#d55e00", "#6a3d9a",
                                                     "#a05a00"};

static double across(double x)
{
    return LEFT + x / X_MAX * (WIDTH - LEFT - RIGHT);
}

static double down(double y)
{
    return TOP + (Y_MAX - y) / (Y_MAX - Y_MIN) * (HEIGHT - TOP - BOTTOM);
}

static void write_axes(FILE *file)
{
    for (int percent = 0; percent <= 25; percent += 5) {
        double x = across(percent / 100.0);

        fprintf(file,
                "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' class='g'/>"
                "<text x='%.1f' y='%d' text-anchor='middle'>%d %%</text>\n",
                x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, percent);
    }
    for (int y = -36; y <= 12; y += 12) {
        fprintf(file,
                "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' class='%s'/>"
                "<text x='%d' y='%.1f' text-anchor='end'>%d</text>\n",
                LEFT, down(y), WIDTH - RIGHT, down(y), y == 0 ? "z" : "g", LEFT - 8, down(y) + 4,
                y);
    }
    fprintf(file,
            "<text x='%d' y='%d' text-anchor='middle'>the chance that a false segment is "
            "found</text>\n",
            (WIDTH + LEFT) / 2, HEIGHT - 12);
    fprintf(file,
            "<text x='%d' y='18'>What cheating in ten segments brings more than honesty, in costs "
            "of a segment</text>\n",
            LEFT);
}

static void write_mark(FILE *file, int kind, double x, double y)
{
    switch (kind) {
    case 0:
        fprintf(file, "<circle cx='%.1f' cy='%.1f' r='3'/>", x, y);
        break;
    case 1:
        fprintf(file, "<rect x='%.1f' y='%.1f' width='6' height='6'/>", x - 3, y - 3);
        break;
    case 2:
        fprintf(file, "<path d='M%.1f %.1fl4 7h-8z'/>", x, y - 4);
        break;
    case 3:
        fprintf(file, "<path d='M%.1f %.1fl4 4l-4 4l-4 -4z'/>", x, y - 4);
        break;
    default:
        fprintf(file, "<path d='M%.1f %.1fl-4 -7h8z'/>", x, y + 4);
        break;
    }
}

static void write_series(FILE *file, const struct plot_series *series, int kind)
{
    fprintf(file, "<g stroke='%s' fill='%s'><path fill='none' stroke-width='1.5' d='",
            colours[kind], colours[kind]);
    for (int i = 0; i < series->count; i++) {
        fprintf(file, "%c%.1f %.1f", i == 0 ? 'M' : 'L', across(series->points[i].x),
                down(series->points[i].expected));
    }
    fprintf(file, "'/>\n");
    for (int i = 0; i < series->count; i++) {
        const struct plot_point *point = &series->points[i];

        fprintf(file, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>", across(point->x),
                down(point->y - point->half), across(point->x), down(point->y + point->half));
        write_mark(file, kind, across(point->x), down(point->y));
        fprintf(file, "\n");
    }

    double y = down(-23.0) + 18.0 * kind;

    write_mark(file, kind, LEFT + 16, y - 4);
    fprintf(file, "<text x='%d' y='%.1f' stroke='none'>%s: nothing from %.1f %%</text></g>\n",
            LEFT + 28, y, series->name, 100.0 * series->break_even);
}

int plot_write(const char *path, const struct plot_series *series, int count)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        return -1;
    }
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
            "font-size='12'>\n<title>Cheating against the chance of being found: closed form "
            "(lines) and simulation (marks, 95 %% intervals)</title>\n"
            "<style>.g{stroke:#ddd}.z{stroke:#000}</style>\n"
            "<rect width='%d' height='%d' fill='#fff'/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    write_axes(file);
    for (int i = 0; i < count; i++) {
        write_series(file, &series[i], i);
    }
    fprintf(file, "</svg>\n");
    return fclose(file) == 0 ? 0 : -1;
}
