/*
 * network_plot.h - the plot of docs/ECONOMICS.md: the gain of a cheat over the chance of finding
 * it. One SVG file without outside assets.
 */
#ifndef BENCH_SUPPORT_NETWORK_PLOT_H
#define BENCH_SUPPORT_NETWORK_PLOT_H

#define PLOT_POINTS_MAX 25
#define PLOT_SERIES_MAX 5

struct plot_point {
    double x;
    double y;        /* as it was played */
    double half;     /* of its 95 % interval */
    double expected; /* by the closed form */
};

struct plot_series {
    char name[48];
    int count;
    double break_even;
    struct plot_point points[PLOT_POINTS_MAX];
};

/* Returns 0, or -1 when the file cannot be written. */
int plot_write(const char *path, const struct plot_series *series, int count);

#endif /* BENCH_SUPPORT_NETWORK_PLOT_H */
