/*
 * sql.h - sqlite3 with less ceremony: open with our settings, run, bind by a format.
 *
 * The tables here are small and indexed, so to prepare a statement takes far longer than to run it:
 * those that were used last are kept, each connection its own. Every failure tells the file and
 * sqlite3's reason.
 */
#ifndef CHAIN_SQL_H
#define CHAIN_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SQL_KEPT_MAX 64 /* statements of one connection */

struct sql_kept;

struct sql {
    sqlite3 *database;
    struct sql_kept *kept; /* NULL: none are */
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
 * The statement of this text, its parameters bound by format, one letter each: i int64_t, t const
 * char * (NULL binds NULL), b const struct sql_blob *. NULL, and error set, on failure. What is
 * bound must stay until the caller hands the statement back (or finalizes it).
 */
sqlite3_stmt *sql_query(struct sql *sql, struct error *error, const char *text, const char *format,
                        ...);

/* STATUS_OK: there is a row. STATUS_NOT_FOUND: no more. */
MUST_CHECK enum status sql_step(struct sql *sql, sqlite3_stmt *statement, struct error *error);

/* Hands back what sql_query() gave; NULL is nothing. Its rows, and their bytes, are gone. */
void sql_done(struct sql *sql, sqlite3_stmt *statement);

/*
 * Reads up to most rows, of size bytes each, before anybody acts on one of them: what is done then
 * may change the tables. *count is right on any outcome. Hands the statement back; NULL is one that
 * could not be had, of which error tells.
 */
MUST_CHECK enum status
sql_collect(struct sql *sql, void *rows, uint32_t *count, sqlite3_stmt *statement, size_t size,
            uint32_t most, enum status (*read)(void *one, sqlite3_stmt *row, struct error *error),
            struct error *error);

/* Binds, runs to the end. */
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
