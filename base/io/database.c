/* database.c - see database.h. */
#include "base/io/database.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUSY_MS = 20000,
};

static enum status sql_failed(struct database *sql, struct error *error)
{
    const char *path = sql->database == NULL ? NULL : sqlite3_db_filename(sql->database, "main");
    int code = sqlite3_errcode(sql->database);
    enum status status = STATUS_IO;

    if (sql->foreign && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)) {
        status = STATUS_BAD_FORMAT;
    } else if (sql->foreign && code == SQLITE_NOMEM) {
        status = STATUS_NO_MEMORY;
    }
    /* Of memory that cannot be shared SQLite says only that it failed. */
    return error_set(error, status, "%s: %s", path == NULL ? "database" : path,
                     code == SQLITE_IOERR && sqlite3_system_errno(sql->database) == ENOSPC
                         ? "database or disk is full"
                         : sqlite3_errmsg(sql->database));
}

/*
 * A deleted or replaced file takes every write, and loses all of them when the last process closes
 * it. A file system that cannot tell counts as one where nothing has moved.
 */
static enum status check_place(struct database *sql, struct error *error)
{
    int moved = 0;

    if (sqlite3_file_control(sql->database, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
        moved == 0) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_GONE,
                    "%s was deleted, moved or replaced while it was in use: nothing more is "
                    "read from it or written to it",
                    sqlite3_db_filename(sql->database, "main"));
    error_advise(error, "put the file back to its place and start again");
    return STATUS_GONE;
}

/* ---- statements that are kept ------------------------------------------------ */

/* Holds only statements that nobody uses. Equal texts may be kept more than once. */
struct database_kept {
    struct {
        sqlite3_stmt *statement; /* NULL: the place is free */
        uint64_t hash;           /* of its text */
        uint64_t used;
    } places[DATABASE_KEPT_MAX];
    uint64_t uses;
};

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* NULL: no statement with this text is kept. */
static sqlite3_stmt *take_kept(struct database *sql, const char *text)
{
    sqlite3_mutex *mutex = sqlite3_db_mutex(sql->database);
    uint64_t hash = hash_of(text);
    sqlite3_stmt *found = NULL;

    sqlite3_mutex_enter(mutex);
    for (int i = 0; i < DATABASE_KEPT_MAX && sql->kept != NULL && found == NULL; i++) {
        sqlite3_stmt *kept = sql->kept->places[i].statement;

        if (kept != NULL && sql->kept->places[i].hash == hash &&
            strcmp(sqlite3_sql(kept), text) == 0) {
            found = kept;
            sql->kept->places[i].statement = NULL;
        }
    }
    sqlite3_mutex_leave(mutex);
    return found;
}

/* Replaces the least recently used statement and returns it. */
static sqlite3_stmt *keep_statement(struct database_kept *kept, sqlite3_stmt *statement)
{
    int best = 0;
    sqlite3_stmt *old;

    for (int i = 1; i < DATABASE_KEPT_MAX; i++) {
        if (kept->places[best].statement != NULL &&
            (kept->places[i].statement == NULL || kept->places[i].used < kept->places[best].used)) {
            best = i;
        }
    }
    old = kept->places[best].statement;
    kept->places[best].statement = statement;
    kept->places[best].hash = hash_of(sqlite3_sql(statement));
    kept->places[best].used = ++kept->uses;
    return old;
}

/* sqlite3 may execute a pragma while it prepares it, and not when it is run again. */
static bool may_be_kept(const char *text)
{
    return sqlite3_strnicmp(text, "PRAGMA", 6) != 0;
}

void database_done(struct database *sql, sqlite3_stmt *statement)
{
    if (statement != NULL && sql->kept != NULL && may_be_kept(sqlite3_sql(statement))) {
        sqlite3_mutex *mutex = sqlite3_db_mutex(sql->database);

        (void)sqlite3_reset(statement); /* repeats an error that was reported already */
        (void)sqlite3_clear_bindings(statement);
        sqlite3_mutex_enter(mutex);
        statement = keep_statement(sql->kept, statement);
        sqlite3_mutex_leave(mutex);
    }
    (void)sqlite3_finalize(statement);
}

static void finalize_kept(struct database *sql)
{
    for (int i = 0; i < DATABASE_KEPT_MAX && sql->kept != NULL; i++) {
        (void)sqlite3_finalize(sql->kept->places[i].statement);
    }
    free(sql->kept);
    sql->kept = NULL;
}

/* ---- opening ------------------------------------------------------------------ */

static enum status open_file(struct database *sql, const char *name, int flags, bool foreign,
                             struct error *error)
{
    *sql = (struct database){.foreign = foreign};
    if (sqlite3_open_v2(name, &sql->database, flags, NULL) != SQLITE_OK) {
        return error_set(error, sql_failed(sql, NULL), "cannot open %s: %s", name,
                         sqlite3_errmsg(sql->database)); /* NULL: out of memory */
    }
    sql->kept = calloc(1, sizeof(*sql->kept)); /* without memory: keeps none */
    return sqlite3_busy_timeout(sql->database, BUSY_MS) == SQLITE_OK ? STATUS_OK
                                                                     : sql_failed(sql, error);
}

enum status database_open_foreign(struct database *sql, const char *name, int flags,
                                  struct error *error)
{
    enum status status = open_file(sql, name, flags, true, error);

    if (status != STATUS_OK) {
        database_close(sql);
    }
    return status;
}

/* A new file is its owner's under any umask; SQLite's files beside it follow it. What fails here
 * fails once more when SQLite opens it, with the reason. */
static void make_private(const char *path)
{
    int file;

    if (strcmp(path, ":memory:") == 0 || path[0] == '\0') {
        return;
    }
    file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
        (void)!fchmod(file, 0600);
        (void)close(file);
    }
}

enum status database_open(struct database *sql, const char *path, const char *schema,
                          struct error *error)
{
    enum status status;

    make_private(path);
    TRY_OUT(open_file(sql, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
                      false, error));
    TRY_OUT(database_execute(sql,
                             "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                             "PRAGMA trusted_schema = OFF;",
                             error));
    TRY_OUT(database_execute(sql, schema, error));
out:
    if (status != STATUS_OK) {
        database_close(sql);
    }
    return status;
}

void database_close(struct database *sql)
{
    finalize_kept(sql);
    (void)sqlite3_close(sql->database);
    sql->database = NULL;
}

/* ---- running ------------------------------------------------------------------- */

static int bind_one(sqlite3_stmt *statement, int place, char letter, va_list *values)
{
    const struct database_blob *blob;
    const char *text;

    switch (letter) {
    case 'n':
        return sqlite3_bind_null(statement, place);
    case 'd':
        return sqlite3_bind_blob(statement, place, va_arg(*values, const struct digest *),
                                 DIGEST_SIZE, SQLITE_STATIC);
    case 'i':
        return sqlite3_bind_int64(statement, place, va_arg(*values, int64_t));
    case 't':
        text = va_arg(*values, const char *);
        return text == NULL ? sqlite3_bind_null(statement, place)
                            : sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
    case 'b':
        blob = va_arg(*values, const struct database_blob *);
        return sqlite3_bind_blob64(statement, place, blob->size == 0 ? "" : blob->bytes, blob->size,
                                   SQLITE_STATIC);
    default:
        assert(false && "unknown letter in a bind format");
        return SQLITE_MISUSE;
    }
}

static int bind_name(struct database *sql, sqlite3_stmt *statement, int place, const char *name)
{
    const struct database_name *known = sql->names;

    while (known != NULL && known->name != NULL && strcmp(known->name, name) != 0) {
        known++;
    }
    assert(known != NULL && known->name != NULL && "unknown name in a statement");
    return sqlite3_bind_int64(statement, place, known->number);
}

static int bind_all(struct database *sql, sqlite3_stmt *statement, const char *format,
                    va_list *values)
{
    int count = sqlite3_bind_parameter_count(statement);
    int result = SQLITE_OK;

    for (int place = 1; place <= count && result == SQLITE_OK; place++) {
        const char *name = sqlite3_bind_parameter_name(statement, place);

        if (name != NULL && name[0] == ':') {
            result = bind_name(sql, statement, place, name + 1);
        } else {
            result = *format == '\0' ? SQLITE_OK : bind_one(statement, place, *format++, values);
        }
    }
    assert((result != SQLITE_OK || *format == '\0') && "a bind format is too long");
    return result;
}

static enum status prepare_statement(sqlite3_stmt **statement, struct database *sql,
                                     struct error *error, const char *text, const char *format,
                                     va_list *values)
{
    int result = SQLITE_OK;

    *statement = NULL;
    if (!database_in_transaction(sql)) { /* a transaction looks at its beginning and its end */
        TRY(check_place(sql, error));
    }
    *statement = take_kept(sql, text);
    if (*statement == NULL) {
        result = sqlite3_prepare_v2(sql->database, text, -1, statement, NULL);
    }
    if (result == SQLITE_OK) {
        result = bind_all(sql, *statement, format, values);
    }
    if (result != SQLITE_OK) {
        enum status status = sql_failed(sql, error);

        (void)sqlite3_finalize(*statement);
        *statement = NULL;
        return status;
    }
    return STATUS_OK;
}

/* A list of values can be opened only in the function that is given them. */
#define PREPARE(status, statement)                                                                 \
    do {                                                                                           \
        va_list values;                                                                            \
                                                                                                   \
        va_start(values, format);                                                                  \
        (status) = prepare_statement((statement), sql, error, text, format, &values);              \
        va_end(values);                                                                            \
    } while (0)

enum status database_prepare(sqlite3_stmt **statement, struct database *sql, struct error *error,
                             const char *text, const char *format, ...)
{
    enum status status;

    PREPARE(status, statement);
    return status;
}

enum status database_first(sqlite3_stmt **row, struct database *sql, struct error *error,
                           const char *text, const char *format, ...)
{
    enum status status;

    PREPARE(status, row);
    return status == STATUS_OK ? database_step(sql, *row, error) : status;
}

sqlite3_stmt *database_query(struct database *sql, struct error *error, const char *text,
                             const char *format, ...)
{
    sqlite3_stmt *statement;
    enum status status;

    PREPARE(status, &statement);
    return status == STATUS_OK ? statement : NULL;
}

enum status database_step(struct database *sql, sqlite3_stmt *statement, struct error *error)
{
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
        return STATUS_OK;
    case SQLITE_DONE:
        return STATUS_NOT_FOUND;
    default:
        return sql_failed(sql, error);
    }
}

enum status database_collect(struct database *sql, void *rows, uint32_t *count,
                             sqlite3_stmt *statement, size_t size, uint32_t most,
                             enum status (*read)(void *one, sqlite3_stmt *row, struct error *error),
                             struct error *error)
{
    enum status status = statement == NULL ? error->status : STATUS_OK;

    *count = 0;
    while (status == STATUS_OK && *count < most) {
        TRY_OUT(database_step(sql, statement, error));
        TRY_OUT(read((uint8_t *)rows + *count * size, statement, error));
        ++*count;
    }
out:
    database_done(sql, statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status database_run(struct database *sql, struct error *error, const char *text,
                         const char *format, ...)
{
    enum status status;
    sqlite3_stmt *statement;

    PREPARE(status, &statement);
    while (status == STATUS_OK) {
        status = database_step(sql, statement, error);
    }
    database_done(sql, statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status database_execute(struct database *sql, const char *text, struct error *error)
{
    return sqlite3_exec(sql->database, text, NULL, NULL, NULL) == SQLITE_OK
               ? STATUS_OK
               : sql_failed(sql, error);
}

enum status database_number(struct database *sql, int64_t *number, int64_t fallback,
                            struct error *error, const char *text, const char *format, ...)
{
    enum status status;
    sqlite3_stmt *statement;

    PREPARE(status, &statement);
    if (status != STATUS_OK) {
        return status;
    }
    *number = fallback;
    status = database_step(sql, statement, error);
    if (status == STATUS_OK && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        *number = sqlite3_column_int64(statement, 0);
    }
    database_done(sql, statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

bool database_blob_column(sqlite3_stmt *statement, int column, void *bytes, size_t size)
{
    const void *blob = sqlite3_column_blob(statement, column);

    if ((size_t)sqlite3_column_bytes(statement, column) != size) {
        return false;
    }
    if (size > 0) {
        memcpy(bytes, blob, size);
    }
    return true;
}

bool database_in_transaction(const struct database *sql)
{
    return sqlite3_get_autocommit(sql->database) == 0;
}

enum status database_begin(struct database *sql, struct error *error)
{
    return database_run(sql, error, "BEGIN IMMEDIATE", "");
}

enum status database_end(struct database *sql, enum status status, struct error *error)
{
    if (status == STATUS_OK) {
        status = check_place(sql, error);
    }
    if (status == STATUS_OK) {
        status = database_run(sql, error, "COMMIT", "");
    }
    if (status != STATUS_OK) {
        (void)sqlite3_exec(sql->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}
