/*
 * bench.h - measures ours and a peer in turn, and reports medians in a table and a JSON file.
 * Taking turns exposes both sides alike to a falling clock or a busy machine.
 *
 *     struct bench bench;
 *     struct bench_case one = {.name = "256 x 256", .unit = "GFLOP/s", .work = 0.0335,
 *                              .ours = run_ours, .peer = run_peer, .context = &matrices};
 *
 *     bench_init(&bench, "contraction", "OpenBLAS sgemm", argc, argv);
 *     bench_compare(&bench, &one);
 *     return bench_finish(&bench);
 */
#ifndef BENCH_SUPPORT_BENCH_H
#define BENCH_SUPPORT_BENCH_H

#include <stddef.h>

#define BENCH_ROWS_MAX 256
#define BENCH_NAME_MAX 96
#define BENCH_UNIT_MAX 24

struct bench_row {
    char name[BENCH_NAME_MAX];
    char unit[BENCH_UNIT_MAX];
    double ours;
    double peer;  /* 0 where there is no peer */
    double ratio; /* above 1: ours is better, in any unit; 0 where there is no peer */
};

struct bench {
    const char *title;
    const char *peer_name;
    const char *json_path; /* NULL: only the table */
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t row_count;
};

struct bench_case {
    const char *name;
    const char *unit; /* of work per second: "GFLOP/s"; ignored without work: then seconds */
    double work;      /* what one call does, in that unit times a second; 0: measure seconds */
    void (*ours)(void *context);
    void (*peer)(void *context);  /* NULL where there is none */
    void (*reset)(void *context); /* before every call, not timed; NULL where none is needed */
    void *context;
    double seconds_min; /* how long to measure each side at least; 0: 0.5 s */
};

/*
 * First thing in main: it may start the program again, to tell OpenMP how to wait. argv[1], when
 * given, is where the JSON goes. Borrows the texts until bench_finish.
 */
void bench_init(struct bench *bench, const char *title, const char *peer_name, int argc,
                char **argv);

/* Calls each side once to warm up, then in turn at least 5 times each and for seconds_min. */
void bench_compare(struct bench *bench, const struct bench_case *one);

/* Adds a row that the caller measured. more_is_better: is a larger number better? */
void bench_record(struct bench *bench, const char *name, const char *unit, double ours, double peer,
                  int more_is_better);

/* Prints the table, writes the JSON file; returns the exit code of the program. */
int bench_finish(struct bench *bench);

/* What a stretch of work took: by the wall clock, and of all threads of its process together. */
struct bench_time {
    double seconds;
    double processor;
};

/* Monotonic seconds. */
double bench_now(void);

/* Both clocks now; and since then. A busy machine lengthens the first and hardly the second. */
struct bench_time bench_clocks(void);
struct bench_time bench_since(const struct bench_time *start);

#endif /* BENCH_SUPPORT_BENCH_H */
