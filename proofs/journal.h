/*
 * journal.h - the sqlite3 file of a bundle. Inside proofs/ only; see bundle.h for what it holds.
 *
 * A journal from outside is hostile: it must carry our application id and exactly our tables, be
 * free of triggers and views, and every value that is read has its type and length checked.
 */
#ifndef PROOFS_JOURNAL_H
#define PROOFS_JOURNAL_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/digest.h"
#include "base/error.h"

/* "LSJR", and the version of the tables. */
#define JOURNAL_APPLICATION_ID 0x4c534a52
#define JOURNAL_VERSION        1

struct journal {
    sqlite3 *database;
    char path[4096];
};

enum journal_mode {
    JOURNAL_CREATE,
    JOURNAL_WRITE,
    JOURNAL_READ,
};

MUST_CHECK enum status journal_open(struct journal *journal, const char *path,
                                    enum journal_mode mode, struct error *error);
void journal_close(struct journal *journal);

/* Runs statements without results. */
MUST_CHECK enum status journal_run(struct journal *journal, const char *sql, struct error *error);

/*
 * Prepares one statement and binds numbers and digests by position: 'i' takes a uint64_t below
 * 2^63, 'd' a const struct digest *, 't' a const char *. The caller finalizes *statement.
 */
MUST_CHECK enum status journal_prepare(sqlite3_stmt **statement, struct journal *journal,
                                       struct error *error, const char *sql, const char *types,
                                       ...);

/* STATUS_OK: a row is there; STATUS_NOT_FOUND: there is none (any more). */
MUST_CHECK enum status journal_next(struct journal *journal, sqlite3_stmt *statement,
                                    struct error *error);

/* Runs a statement that gives no row, and finalizes it. */
MUST_CHECK enum status journal_finish(struct journal *journal, sqlite3_stmt *statement,
                                      struct error *error);

/* A column that must be a number from 0 to maximum, or a digest. */
MUST_CHECK enum status journal_number(uint64_t *number, struct journal *journal,
                                      sqlite3_stmt *statement, int column, uint64_t maximum,
                                      struct error *error);
MUST_CHECK enum status journal_digest(struct digest *digest, struct journal *journal,
                                      sqlite3_stmt *statement, int column, struct error *error);

#endif /* PROOFS_JOURNAL_H */
