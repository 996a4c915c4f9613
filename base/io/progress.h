/*
 * progress.h - the progress of long work: one line that redraws itself on a terminal, below a curve
 * where there is one, and plain lines at intervals elsewhere.
 *
 *     training  [##########..........]  512/1024  50.0 %  3.21 steps/s  eta 2:39  loss 3.1416
 *
 * The caller passes time in, so a test needs no clock. Nothing is kept outside the struct.
 */
#ifndef BASE_IO_PROGRESS_H
#define BASE_IO_PROGRESS_H

#include "base/curve.h"
#include "base/io/screen.h"

#define PROGRESS_NOTE_MAX 96
#define PROGRESS_LINE_MAX 256

struct progress {
    struct screen screen;       /* its stream NULL: silent */
    const struct curve *line;   /* drawn on a terminal (base/text_plot.h); borrowed; NULL: none */
    const struct curve *points; /* the same */
    const char *title;
    const char *unit; /* "steps" */
    uint64_t total;   /* 0: unknown */
    double started_s;
    double drawn_s;      /* when a line was last written; negative: never */
    double rate;         /* units per second, smoothed */
    double rate_s;       /* when it was last measured */
    uint64_t rate_count; /* and at which count */
    uint64_t first;      /* the count at the start */
};

/* first is the count where resumed work goes on. Borrows title and unit. Looks whether stream is a
 * terminal, and before each line at its width. */
void progress_init(struct progress *progress, FILE *stream, const char *title, const char *unit,
                   uint64_t first, uint64_t total, double now_s);

/* Reports that count units are done; draws at most ten times a second on a terminal, and elsewhere
 * every ten seconds. note is appended ("loss 3.14"), cut where it is too long. */
void progress_update(struct progress *progress, uint64_t count, const char *note, double now_s);

/* Draws the last state and leaves the line. */
void progress_finish(struct progress *progress, uint64_t count, const char *note, double now_s);

/* The line itself, without control characters, at most columns wide: a bar gives way to the first
 * field of the note, and what does not fit goes by whole fields, which two blanks part. */
void progress_line(char line[PROGRESS_LINE_MAX], const struct progress *progress, uint64_t count,
                   const char *note);

/* "0:07", "2:39", "1:02:03", "12 d" */
#define PROGRESS_TIME_MAX 32
void progress_time(char text[PROGRESS_TIME_MAX], double seconds);

/* Four digits, and all that stand before the point: "3.21", "43214". */
#define PROGRESS_NUMBER_MAX 32
void progress_number(char text[PROGRESS_NUMBER_MAX], double number);

#endif /* BASE_IO_PROGRESS_H */
