/*
 * sql.h - sqlite3 with less ceremony: open with our settings, run, bind by a format.
 *
 * Statements are prepared, run and finalized in one go; the tables here are small and indexed.
 * Every failure tells the file and sqlite3's reason.
 */
#ifndef CHAIN_SQL_H
#define CHAIN_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sql {
    sqlite3 *database;
};

struct sql_blob {
    const void *bytes;
    size_t size;
};

/* Opens or makes the file: write-ahead log, every commit on disk, waits for other processes. */
MUST_CHECK enum status sql_open(struct sql *sql, const char *path, const char *schema,
                                struct error *error);
void sql_close(struct sql *sql);

/*
 * Prepares text and binds its parameters by format, one letter each: i int64_t, t const char *
 * (NULL binds NULL), b const struct sql_blob *. NULL, and error set, on failure. What is bound must
 * stay until the statement is finalized.
 */
sqlite3_stmt *sql_query(struct sql *sql, struct error *error, const char *text, const char *format,
                        ...);

/* STATUS_OK: there is a row. STATUS_NOT_FOUND: no more. The caller finalizes the statement. */
MUST_CHECK enum status sql_step(struct sql *sql, sqlite3_stmt *statement, struct error *error);

/* Prepares, binds, runs to the end, finalizes. */
MUST_CHECK enum status sql_run(struct sql *sql, struct error *error, const char *text,
                               const char *format, ...);

/* One number of one row; fallback when there is no row or it is NULL. */
MUST_CHECK enum status sql_number(struct sql *sql, int64_t *number, int64_t fallback,
                                  struct error *error, const char *text, const char *format, ...);

/* Copies a blob column of exactly size bytes; false when it has another size. */
MUST_CHECK bool sql_blob_column(sqlite3_stmt *statement, int column, void *bytes, size_t size);

MUST_CHECK enum status sql_begin(struct sql *sql, struct error *error); /* immediate */

/* Commits when status is STATUS_OK, else rolls back; returns the first thing that went wrong. */
MUST_CHECK enum status sql_end(struct sql *sql, enum status status, struct error *error);

#endif /* CHAIN_SQL_H */
