/* journal.c - see journal.h. */
#include "proofs/bundle/journal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* The statements that make the tables. A journal's schema must be these texts, byte for byte. */
static const struct {
    const char *name;
    const char *sql;
} tables[] = {
    {"facts", "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER, text TEXT,"
              " encrypted BLOB) STRICT"},
    {"devices",
     "CREATE TABLE devices (device INTEGER PRIMARY KEY, name TEXT, encrypted BLOB) STRICT"},
    {"steps", "CREATE TABLE steps (step INTEGER PRIMARY KEY, root BLOB NOT NULL, loss INTEGER,"
              " held_out INTEGER, accuracy INTEGER, nanoseconds INTEGER, committing INTEGER,"
              " microjoules INTEGER, device INTEGER, encrypted BLOB) STRICT"},
    {"segments", "CREATE TABLE segments (segment INTEGER PRIMARY KEY, root BLOB NOT NULL,"
                 " signature BLOB NOT NULL) STRICT"},
    {"checkpoints", "CREATE TABLE checkpoints (step INTEGER PRIMARY KEY, root BLOB NOT NULL)"
                    " STRICT"},
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))
/* The index that sqlite3 makes for the text key of facts. */
#define INDEX_NAME  "sqlite_autoindex_facts_1"

enum status journal_number(uint64_t *number, struct journal *journal, sqlite3_stmt *statement,
                           int column, uint64_t maximum, struct error *error)
{
    int type = sqlite3_column_type(statement, column);
    sqlite3_int64 value = sqlite3_column_int64(statement, column);

    if (type != SQLITE_INTEGER || value < 0 || (uint64_t)value > maximum) {
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
    int type = sqlite3_column_type(statement, column);
    const void *bytes = sqlite3_column_blob(statement, column);

    if (type != SQLITE_BLOB || bytes == NULL ||
        sqlite3_column_bytes(statement, column) != DIGEST_SIZE) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %s is not a root of %d bytes",
                         journal->path, sqlite3_column_name(statement, column), DIGEST_SIZE);
    }
    memcpy(digest->bytes, bytes, DIGEST_SIZE);
    return STATUS_OK;
}

bool journal_is_null(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL;
}

enum status journal_bytes(void *bytes, size_t *size, struct journal *journal,
                          sqlite3_stmt *statement, int column, size_t size_least, size_t size_most,
                          struct error *error)
{
    int type = sqlite3_column_type(statement, column);
    const void *found = sqlite3_column_blob(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);

    if (type != SQLITE_BLOB || length < size_least || length > size_most ||
        (found == NULL && length > 0)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %s is not of %zu to %zu bytes",
                         journal->path, sqlite3_column_name(statement, column), size_least,
                         size_most);
    }
    if (length > 0) {
        memcpy(bytes, found, length);
    }
    *size = length;
    return STATUS_OK;
}

enum status journal_text(char *text, size_t text_size, struct journal *journal,
                         sqlite3_stmt *statement, int column, struct error *error)
{
    /* The type comes first: reading a value may convert it, and then its type is undefined. */
    int type = sqlite3_column_type(statement, column);
    const unsigned char *found = sqlite3_column_text(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);
    bool good = type == SQLITE_TEXT && found != NULL && length < text_size;

    for (size_t i = 0; good && i < length; i++) {
        good = found[i] >= ' ' && found[i] != 0x7f;
    }
    if (!good) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %s is not a plain text of under %zu bytes",
                         journal->path, sqlite3_column_name(statement, column), text_size);
    }
    memcpy(text, found, length);
    text[length] = '\0';
    return STATUS_OK;
}

/* ---- opening ------------------------------------------------------------ */

static enum status read_pragma(uint64_t *number, struct journal *journal, const char *pragma,
                               struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY_OUT(database_first(&row, &journal->database, error, pragma, ""));
    TRY_OUT(journal_number(number, journal, row, 0, INT64_MAX, error));
out:
    database_done(&journal->database, row);
    return status;
}

/* One row of the schema: a table of ours, by its text, or the one index. */
static bool is_ours(sqlite3_stmt *row, uint32_t *seen)
{
    const char *type = (const char *)sqlite3_column_text(row, 0);
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const char *sql = (const char *)sqlite3_column_text(row, 2);

    if (type == NULL || name == NULL) {
        return false;
    }
    if (strcmp(type, "index") == 0) {
        return strcmp(name, INDEX_NAME) == 0 && sql == NULL;
    }
    for (uint32_t i = 0; i < TABLE_COUNT; i++) {
        if (strcmp(type, "table") == 0 && strcmp(name, tables[i].name) == 0 && sql != NULL &&
            strcmp(sql, tables[i].sql) == 0 && (*seen & 1u << i) == 0) {
            *seen |= 1u << i;
            return true;
        }
    }
    return false;
}

static enum status not_ours(struct journal *journal, struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "%s: not a journal of Lockstep", journal->path);
}

static enum status check_schema(struct journal *journal, struct error *error)
{
    sqlite3_stmt *row = NULL;
    uint32_t seen = 0;
    enum status status;

    TRY_OUT(database_prepare(&row, &journal->database, error,
                             "SELECT type, name, sql FROM sqlite_schema", ""));
    while ((status = database_step(&journal->database, row, error)) == STATUS_OK) {
        if (!is_ours(row, &seen)) {
            status = not_ours(journal, error);
            goto out;
        }
    }
    if (status == STATUS_NOT_FOUND) {
        status = seen == (1u << TABLE_COUNT) - 1
                     ? STATUS_OK
                     : error_set(error, STATUS_BAD_FORMAT, "%s: a table of the journal is missing",
                                 journal->path);
    }
out:
    database_done(&journal->database, row);
    return status;
}

static enum status check_ours(struct journal *journal, struct error *error)
{
    uint64_t application = 0;
    uint64_t version = 0;

    TRY(read_pragma(&application, journal, "PRAGMA application_id", error));
    TRY(read_pragma(&version, journal, "PRAGMA user_version", error));
    if (application != JOURNAL_APPLICATION_ID) {
        return not_ours(journal, error);
    }
    if (version != JOURNAL_VERSION) {
        return error_set(error, STATUS_REFUSED, "%s: version %llu of the journal; known is %d",
                         journal->path, (unsigned long long)version, JOURNAL_VERSION);
    }
    return check_schema(journal, error);
}

static enum status create_tables(struct journal *journal, struct error *error)
{
    char sql[160];

    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA journal_mode=WAL; BEGIN; PRAGMA application_id=%d; "
                   "PRAGMA user_version=%d",
                   JOURNAL_APPLICATION_ID, JOURNAL_VERSION);
    TRY(database_execute(&journal->database, sql, error));
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        TRY(database_execute(&journal->database, tables[i].sql, error));
    }
    return database_execute(&journal->database, "COMMIT", error);
}

/* Before the first statement: nothing of a hostile schema may run. */
static void disarm_schema(sqlite3 *handle)
{
    (void)sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, JOURNAL_VALUE_MAX);
}

static enum status set_up(struct journal *journal, enum journal_mode mode, struct error *error)
{
    disarm_schema(journal->database.database);
    TRY(database_execute(&journal->database, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0",
                         error));
    if (mode != JOURNAL_READ) {
        TRY(database_execute(&journal->database, "PRAGMA synchronous=FULL", error));
    }
    return mode == JOURNAL_CREATE ? create_tables(journal, error) : check_ours(journal, error);
}

static enum status open_as(struct journal *journal, const char *name, int flags,
                           enum journal_mode mode, struct error *error)
{
    enum status status;

    TRY(database_open_foreign(&journal->database, name, flags | SQLITE_OPEN_NOFOLLOW, error));
    status = set_up(journal, mode, error);
    if (status != STATUS_OK) {
        journal_close(journal);
    }
    return status;
}

/*
 * A reader shares the log with writers through a file beside the database, which it must be able to
 * make. On a read-only medium there are no writers, so sqlite3 may take the file as it is; but not
 * beside a log, which it would ignore.
 */
static enum status open_unchanging(struct journal *journal, struct error *error)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    char name[3 * FILE_PATH_MAX + 32] = "file:";
    size_t length = strlen(name);
    char log[FILE_PATH_MAX + 8];

    (void)snprintf(log, sizeof(log), "%s-wal", journal->path);
    if (file_exists(log)) {
        return error_set(error, STATUS_IO,
                         "%s: cannot be read together with its log in a folder without the right "
                         "to write",
                         journal->path);
    }
    length += text_escape(name + length, sizeof(name) - length - 1, journal->path, plain);
    (void)snprintf(name + length, sizeof(name) - length, "?immutable=1");
    return open_as(journal, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, JOURNAL_READ, error);
}

enum status journal_open(struct journal *journal, const char *path, enum journal_mode mode,
                         struct error *error)
{
    int flags = mode == JOURNAL_CREATE  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                : mode == JOURNAL_WRITE ? SQLITE_OPEN_READWRITE
                                        : SQLITE_OPEN_READONLY;
    enum status status;

    journal->database = (struct database){0};
    if (snprintf(journal->path, sizeof(journal->path), "%s", path) >= (int)sizeof(journal->path)) {
        return error_set(error, STATUS_OVER_LIMIT, "a path of over %zu bytes",
                         sizeof(journal->path));
    }
    status = open_as(journal, path, flags, mode, error);
    if (status == STATUS_IO && mode == JOURNAL_READ && access(path, R_OK) == 0) {
        char folder[FILE_PATH_MAX];
        char *slash;

        (void)snprintf(folder, sizeof(folder), "%s", path);
        slash = strrchr(folder, '/');
        *(slash == NULL ? folder : slash) = '\0';
        if (access(folder[0] == '\0' ? "." : folder, W_OK) != 0) {
            status = open_unchanging(journal, error);
        }
    }
    return status;
}

bool journal_is_open(const struct journal *journal)
{
    return journal->database.database != NULL;
}

void journal_close(struct journal *journal)
{
    database_close(&journal->database);
}
