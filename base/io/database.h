/*
 * database.h - sqlite3 with less ceremony: open with our settings, run, bind by a format.
 *
 * Preparing a statement takes far longer than running it on our small, indexed tables. Each
 * connection therefore keeps its last statements. Every error names the file and sqlite3's
 * reason.
 *
 * A file that was deleted, moved or replaced while it is open is STATUS_GONE, for each statement
 * outside a transaction and for each commit.
 */
#ifndef BASE_IO_DATABASE_H
#define BASE_IO_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

#define DATABASE_KEPT_MAX 64 /* statements of one connection */

struct database_kept;

/* A number that has a name in the texts of statements: ":task_done". */
struct database_name {
    const char *name;
    int64_t number;
};

struct database {
    sqlite3 *database;
    struct database_kept *kept;        /* NULL: keeps none */
    bool foreign;                      /* a damaged file is STATUS_BAD_FORMAT, not STATUS_IO */
    const struct database_name *names; /* ends with a NULL name; NULL: there are none */
};

struct database_blob {
    const void *bytes;
    size_t size;
};

/* Opens the file, or makes it, with mode 0600: write-ahead log, every commit on disk, waits for
 * other processes. */
MUST_CHECK enum status database_open(struct database *sql, const char *path, const char *schema,
                                     struct error *error);

/*
 * Opens a file that somebody else may have made, as the flags of sqlite3_open_v2() say. It gets
 * none of our settings but the wait for other processes: the caller makes it safe.
 */
MUST_CHECK enum status database_open_foreign(struct database *sql, const char *name, int flags,
                                             struct error *error);
/* A database that is zero, or closed, may be closed. */
void database_close(struct database *sql);

/*
 * The statement of this text, its parameters bound by format, one letter each: i int64_t, t const
 * char * (NULL binds NULL), b const struct database_blob *, d const struct digest *, n nothing:
 * NULL. A parameter ":name" takes its number from sql->names; a text that also has "?1" has all of
 * those before its first name. What is bound must stay until the caller hands the statement back
 * (or finalizes it).
 */
MUST_CHECK enum status database_prepare(sqlite3_stmt **statement, struct database *sql,
                                        struct error *error, const char *text, const char *format,
                                        ...);

/* Prepares, and steps to the first row. STATUS_NOT_FOUND: there is none. Hand *row back always. */
MUST_CHECK enum status database_first(sqlite3_stmt **row, struct database *sql, struct error *error,
                                      const char *text, const char *format, ...);

/* As database_prepare(); NULL, and error set, on failure. */
sqlite3_stmt *database_query(struct database *sql, struct error *error, const char *text,
                             const char *format, ...);

/* STATUS_OK: there is a row. STATUS_NOT_FOUND: no more. */
MUST_CHECK enum status database_step(struct database *sql, sqlite3_stmt *statement,
                                     struct error *error);

/* Hands back a statement of database_query(); accepts NULL. Its rows and their bytes are gone. */
void database_done(struct database *sql, sqlite3_stmt *statement);

/*
 * Reads up to most rows, of size bytes each, before the caller acts on one of them: acting may
 * change the tables. *count is right on any outcome. Hands the statement back. NULL is a statement
 * that database_query() failed to make; error is set already.
 */
MUST_CHECK enum status database_collect(struct database *sql, void *rows, uint32_t *count,
                                        sqlite3_stmt *statement, size_t size, uint32_t most,
                                        enum status (*read)(void *one, sqlite3_stmt *row,
                                                            struct error *error),
                                        struct error *error);

/* Binds, runs to the end. */
MUST_CHECK enum status database_run(struct database *sql, struct error *error, const char *text,
                                    const char *format, ...);

/* Runs the statements of a text one after another; none gives a row that anybody reads. */
MUST_CHECK enum status database_execute(struct database *sql, const char *text,
                                        struct error *error);

/* One number of one row; fallback when there is no row or it is NULL. */
MUST_CHECK enum status database_number(struct database *sql, int64_t *number, int64_t fallback,
                                       struct error *error, const char *text, const char *format,
                                       ...);

/* Copies a blob column of exactly size bytes; false when it has another size. */
MUST_CHECK bool database_blob_column(sqlite3_stmt *statement, int column, void *bytes, size_t size);

/* A failure inside a transaction may have ended it already. */
bool database_in_transaction(const struct database *sql);
MUST_CHECK enum status database_begin(struct database *sql, struct error *error); /* immediate */

/* Commits when status is STATUS_OK, else rolls back; returns the first failure. */
MUST_CHECK enum status database_end(struct database *sql, enum status status, struct error *error);

#endif /* BASE_IO_DATABASE_H */
