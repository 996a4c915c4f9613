/* journal.c - see journal.h. */
#include "proofs/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writers of other processes hold the database for a transaction's length, not longer. */
#define BUSY_MS 10000

static const char schema[] =
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER, text TEXT) STRICT;"
    "CREATE TABLE steps (step INTEGER PRIMARY KEY, loss INTEGER NOT NULL, root BLOB NOT NULL,"
    " nanoseconds INTEGER NOT NULL, committing INTEGER NOT NULL, device INTEGER NOT NULL) STRICT;"
    "CREATE TABLE devices (device INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;"
    "CREATE TABLE checkpoints (step INTEGER PRIMARY KEY, root BLOB NOT NULL) STRICT;";

static enum status sqlite_error(struct journal *journal, struct error *error)
{
    int code = sqlite3_errcode(journal->database);
    enum status status = code == SQLITE_NOMEM                              ? STATUS_NO_MEMORY
                         : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? STATUS_BAD_FORMAT
                                                                           : STATUS_IO;

    return error_set(error, status, "%s: %s", journal->path, sqlite3_errmsg(journal->database));
}

enum status journal_run(struct journal *journal, const char *sql, struct error *error)
{
    if (sqlite3_exec(journal->database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return sqlite_error(journal, error);
    }
    return STATUS_OK;
}

enum status journal_prepare(sqlite3_stmt **statement, struct journal *journal, struct error *error,
                            const char *sql, const char *types, ...)
{
    va_list arguments;
    bool good = sqlite3_prepare_v2(journal->database, sql, -1, statement, NULL) == SQLITE_OK;

    va_start(arguments, types);
    for (int i = 0; good && types[i] != '\0'; i++) {
        int code = SQLITE_MISUSE;

        if (types[i] == 'i') {
            code =
                sqlite3_bind_int64(*statement, i + 1, (sqlite3_int64)va_arg(arguments, uint64_t));
        } else if (types[i] == 'd') {
            code = sqlite3_bind_blob(*statement, i + 1, va_arg(arguments, const struct digest *),
                                     DIGEST_SIZE, SQLITE_TRANSIENT);
        } else if (types[i] == 't') {
            code = sqlite3_bind_text(*statement, i + 1, va_arg(arguments, const char *), -1,
                                     SQLITE_TRANSIENT);
        }
        good = code == SQLITE_OK;
    }
    va_end(arguments);
    if (!good) {
        enum status status = sqlite_error(journal, error);

        (void)sqlite3_finalize(*statement);
        *statement = NULL;
        return status;
    }
    return STATUS_OK;
}

enum status journal_next(struct journal *journal, sqlite3_stmt *statement, struct error *error)
{
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW) {
        return STATUS_OK;
    }
    if (code == SQLITE_DONE) {
        return STATUS_NOT_FOUND;
    }
    return sqlite_error(journal, error);
}

enum status journal_finish(struct journal *journal, sqlite3_stmt *statement, struct error *error)
{
    enum status status = journal_next(journal, statement, error);

    (void)sqlite3_finalize(statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status journal_number(uint64_t *number, struct journal *journal, sqlite3_stmt *statement,
                           int column, uint64_t maximum, struct error *error)
{
    sqlite3_int64 value = sqlite3_column_int64(statement, column);

    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER || value < 0 ||
        (uint64_t)value > maximum) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %s is not a number from 0 to %llu",
                         journal->path, sqlite3_column_name(statement, column),
                         (unsigned long long)maximum);
    }
    *number = (uint64_t)value;
    return STATUS_OK;
}

enum status journal_digest(struct digest *digest, struct journal *journal, sqlite3_stmt *statement,
                           int column, struct error *error)
{
    const void *bytes = sqlite3_column_blob(statement, column);

    if (sqlite3_column_type(statement, column) != SQLITE_BLOB || bytes == NULL ||
        sqlite3_column_bytes(statement, column) != DIGEST_SIZE) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %s is not a root of %d bytes",
                         journal->path, sqlite3_column_name(statement, column), DIGEST_SIZE);
    }
    memcpy(digest->bytes, bytes, DIGEST_SIZE);
    return STATUS_OK;
}

/* ---- opening ------------------------------------------------------------ */

static enum status ask_number(uint64_t *number, struct journal *journal, const char *sql,
                              struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = journal_prepare(&statement, journal, error, sql, "");

    if (status == STATUS_OK) {
        status = journal_next(journal, statement, error);
    }
    if (status == STATUS_OK) {
        status = journal_number(number, journal, statement, 0, INT64_MAX, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

/* Somebody else's database can hold triggers and views that run on our statements: none may. */
static enum status check_ours(struct journal *journal, struct error *error)
{
    uint64_t application = 0;
    uint64_t version = 0;
    uint64_t tables = 0;
    uint64_t others = 0;
    enum status status = ask_number(&application, journal, "PRAGMA application_id", error);

    if (status == STATUS_OK) {
        status = ask_number(&version, journal, "PRAGMA user_version", error);
    }
    if (status == STATUS_OK) {
        status = ask_number(&tables, journal,
                            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                            "('facts', 'steps', 'devices', 'checkpoints')",
                            error);
    }
    if (status == STATUS_OK) {
        status = ask_number(&others, journal,
                            "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', "
                            "'index') OR sql LIKE '%VIRTUAL%'",
                            error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (application != JOURNAL_APPLICATION_ID || tables != 4 || others != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: not a journal of Lockstep", journal->path);
    }
    if (version != JOURNAL_VERSION) {
        return error_set(error, STATUS_REFUSED, "%s: version %llu of the journal; known is %d",
                         journal->path, (unsigned long long)version, JOURNAL_VERSION);
    }
    return STATUS_OK;
}

static enum status set_up(struct journal *journal, enum journal_mode mode, struct error *error)
{
    enum status status;

    (void)sqlite3_busy_timeout(journal->database, BUSY_MS);
    (void)sqlite3_db_config(journal->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(journal->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(journal->database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(journal->database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_limit(journal->database, SQLITE_LIMIT_LENGTH, 1 << 20);
    if (mode == JOURNAL_CREATE) {
        char sql[160];

        (void)snprintf(sql, sizeof(sql),
                       "PRAGMA journal_mode=WAL; PRAGMA application_id=%d; PRAGMA user_version=%d",
                       JOURNAL_APPLICATION_ID, JOURNAL_VERSION);
        status = journal_run(journal, sql, error);
        if (status == STATUS_OK) {
            status = journal_run(journal, schema, error);
        }
    } else {
        status = check_ours(journal, error);
    }
    if (status == STATUS_OK && mode != JOURNAL_READ) {
        status = journal_run(journal, "PRAGMA synchronous=FULL", error);
    }
    return status;
}

enum status journal_open(struct journal *journal, const char *path, enum journal_mode mode,
                         struct error *error)
{
    int flags = mode == JOURNAL_CREATE  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                : mode == JOURNAL_WRITE ? SQLITE_OPEN_READWRITE
                                        : SQLITE_OPEN_READONLY;
    enum status status;

    journal->database = NULL;
    if (snprintf(journal->path, sizeof(journal->path), "%s", path) >= (int)sizeof(journal->path)) {
        return error_set(error, STATUS_OVER_LIMIT, "a path of over %zu bytes",
                         sizeof(journal->path));
    }
    if (sqlite3_open_v2(path, &journal->database, flags | SQLITE_OPEN_NOFOLLOW, NULL) !=
        SQLITE_OK) {
        status = journal->database == NULL
                     ? error_set(error, STATUS_NO_MEMORY, "no memory for a database")
                     : sqlite_error(journal, error);
    } else {
        status = set_up(journal, mode, error);
    }
    if (status != STATUS_OK) {
        journal_close(journal);
    }
    return status;
}

void journal_close(struct journal *journal)
{
    (void)sqlite3_close(journal->database);
    journal->database = NULL;
}
