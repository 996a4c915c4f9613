/*
 * log.h - the log of a long-running command: one line per event, to one stream.
 *
 *     2026-03-01T12:00:00Z info prover: segment 12 committed
 *     {"time":"2026-03-01T12:00:00Z","level":"info","area":"prover","message":"..."}
 *
 * A line is written with one call, so lines of several threads do not mix. Control characters and
 * bytes that are not UTF-8 are escaped: a stranger's text can neither forge a line nor drive a
 * terminal. No call takes a secret type, on purpose.
 */
#ifndef BASE_IO_LOG_H
#define BASE_IO_LOG_H

#include <stdio.h>

enum log_level {
    LOG_LEVEL_ERROR = 0,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
};

enum log_format {
    LOG_FORMAT_PLAIN = 0,
    LOG_FORMAT_JSON,
};

#define LOG_MESSAGE_MAX 2048 /* longer messages are cut, visibly */
#define LOG_AREA_MAX    32

/* A plain value that main creates and passes down. */
struct log {
    FILE *stream;
    enum log_level level; /* less important lines are dropped */
    enum log_format format;
};

void log_init(struct log *log, FILE *stream, enum log_level level, enum log_format format);

/* log may be NULL: then nothing is written. */
void log_write(const struct log *log, enum log_level level, const char *area, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

#define log_error(log, ...) log_write((log), LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(log, ...)  log_write((log), LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(log, ...)  log_write((log), LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_write((log), LOG_LEVEL_DEBUG, __VA_ARGS__)

/* "error", "warn", "info", "debug"; 0 on success. */
int log_level_parse(enum log_level *level, const char *name);

/*
 * Writes text into out with everything escaped that is not printable UTF-8, JSON's way (\n, \u001b,
 * and for bytes that are not UTF-8 the replacement character). quotes: escape " and \ as well.
 * Always ends with NUL; returns the length, cutting at whole characters when out is too small.
 */
size_t log_escape(char *out, size_t out_size, const char *text, int quotes);

#endif /* BASE_IO_LOG_H */
