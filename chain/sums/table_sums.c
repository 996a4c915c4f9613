/* table_sums.c - see table_sums.h. */
#include "chain/sums/table_sums.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "chain/codec/keccak.h"

enum {
    COLUMNS_SIZE = 1024,
    SQL_SIZE = 4 * COLUMNS_SIZE,
    ASIDE_MAX = 1000, /* damaged files beside one; the last is replaced */
};

static const struct summed_table schema = {"schema", NULL};

/* ---- the hash of a row -------------------------------------------------------- */

static void add_value(struct keccak *keccak, sqlite3_value *value)
{
    uint8_t head[9];
    uint64_t size = (uint64_t)sqlite3_value_bytes(value);

    head[0] = (uint8_t)sqlite3_value_type(value);
    if (head[0] == SQLITE_INTEGER) {
        endian_store_be64(head + 1, (uint64_t)sqlite3_value_int64(value));
        keccak_add(keccak, head, sizeof(head));
        return;
    }
    endian_store_be64(head + 1, size);
    keccak_add(keccak, head, sizeof(head));
    if (size > 0) {
        keccak_add(keccak, sqlite3_value_blob(value), size);
    }
}

static void mix_hash(uint8_t sum[HASH32_SIZE], struct keccak *keccak)
{
    const struct hash32 hash = keccak_end(keccak);

    for (int i = 0; i < HASH32_SIZE; i++) {
        sum[i] ^= hash.bytes[i];
    }
}

/* lockstep_mix(SUM, COLUMN...): the sum with this row, or without it if it has it. */
static void mix_row(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint8_t sum[HASH32_SIZE];
    struct keccak keccak;

    if (count < 2 || sqlite3_value_bytes(values[0]) != HASH32_SIZE) {
        sqlite3_result_error(context, "a sum of the file is damaged", -1);
        return;
    }
    memcpy(sum, sqlite3_value_blob(values[0]), HASH32_SIZE);
    keccak_init(&keccak);
    for (int i = 1; i < count; i++) {
        add_value(&keccak, values[i]);
    }
    mix_hash(sum, &keccak);
    sqlite3_result_blob(context, sum, HASH32_SIZE, SQLITE_TRANSIENT);
}

enum status table_sums_ready(struct database *sql, struct error *error)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;

    if (sqlite3_create_function(sql->database, "lockstep_mix", -1, flags, NULL, mix_row, NULL,
                                NULL) != SQLITE_OK) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the sums of a file");
    }
    /* Or what REPLACE removes would not leave the sums. */
    return database_execute(sql, "PRAGMA recursive_triggers = ON", error);
}

/* ---- files --------------------------------------------------------------------- */

/* What database_open() would call a failure of the disk. */
static enum status probe_file(const char *path, struct error *error)
{
    struct database sql;
    int64_t tables = 0;
    enum status status;

    if (!file_exists(path)) {
        return STATUS_OK;
    }
    TRY(database_open_foreign(&sql, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error));
    status = database_number(&sql, &tables, 0, error, "SELECT count(*) FROM sqlite_master", "");
    database_close(&sql);
    return status;
}

enum status table_sums_open(struct database *sql, const char *path, const char *schema_text,
                            struct error *error)
{
    enum status status;

    TRY(probe_file(path, error));
    TRY(database_open(sql, path, schema_text, error));
    sql->foreign = true;
    status = table_sums_ready(sql, error);
    if (status != STATUS_OK) {
        database_close(sql);
    }
    return status;
}

enum status table_sums_set_aside(char aside[FILE_PATH_MAX], const char *path, struct error *error)
{
    static const char *const ends[] = {"-wal", "-shm", ""};
    char from[FILE_PATH_MAX];
    char to[FILE_PATH_MAX];

    if (strlen(path) + sizeof(".damaged-1000-wal") > FILE_PATH_MAX) {
        return error_set(error, STATUS_USAGE, "the path of a database is too long");
    }
    (void)snprintf(aside, FILE_PATH_MAX, "%s.damaged", path);
    for (int i = 2; i < ASIDE_MAX && file_exists(aside); i++) {
        (void)snprintf(aside, FILE_PATH_MAX, "%s.damaged-%d", path, i);
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)snprintf(from, sizeof(from), "%s%s", path, ends[i]);
        (void)snprintf(to, sizeof(to), "%s%s", aside, ends[i]);
        if (rename(from, to) != 0 && errno != ENOENT) {
            return error_set_errno(error, "cannot move %s to %s", from, to);
        }
    }
    return STATUS_OK;
}

/* ---- triggers ------------------------------------------------------------------ */

static enum status list_columns(char columns[COLUMNS_SIZE], struct database *sql,
                                const struct summed_table *table, struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status = STATUS_OK;
    int size;

    if (table->columns != NULL) {
        size = snprintf(columns, COLUMNS_SIZE, "%s", table->columns);
    } else {
        status = database_first(&row, sql, error,
                                "SELECT group_concat(name, ', ') FROM pragma_table_info(?)", "t",
                                table->name);
        size = snprintf(columns, COLUMNS_SIZE, "%s",
                        status == STATUS_OK && sqlite3_column_text(row, 0) != NULL
                            ? (const char *)sqlite3_column_text(row, 0)
                            : "NULL");
    }
    database_done(sql, row);
    if (status == STATUS_OK && size >= COLUMNS_SIZE) {
        status = error_set(error, STATUS_OVER_LIMIT, "table %s has too many columns for a sum",
                           table->name);
    }
    return status;
}

/* "OLD.kind, OLD.key": each column of a list with a word before it. */
static void write_columns(char out[COLUMNS_SIZE], const char *word, const char *columns)
{
    size_t used = 0;

    for (const char *at = columns; *at != '\0' && used < COLUMNS_SIZE;) {
        size_t length = strcspn(at, ",");
        int more = snprintf(out + used, COLUMNS_SIZE - used, "%s%s.%.*s", at == columns ? "" : ", ",
                            word, (int)length, at);

        used += more < 0 ? COLUMNS_SIZE : (size_t)more;
        at += length;
        at += strspn(at, ", ");
    }
}

static enum status add_triggers(struct database *sql, const struct summed_table *table,
                                struct error *error)
{
    static const struct {
        const char *event;
        bool old;
        bool new;
    } events[] = {{"INSERT", false, true}, {"DELETE", true, false}, {"UPDATE", true, true}};
    char columns[COLUMNS_SIZE];
    char old[COLUMNS_SIZE];
    char new[COLUMNS_SIZE];

    TRY(list_columns(columns, sql, table, error));
    write_columns(old, "OLD", columns);
    write_columns(new, "NEW", columns);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        const char *word = events[i].event;
        bool both = events[i].old && events[i].new;
        char text[SQL_SIZE];
        int size =
            snprintf(text, sizeof(text),
                     "CREATE TRIGGER IF NOT EXISTS marks_%s_%s AFTER %s ON %s BEGIN"
                     " UPDATE marks SET sum = lockstep_mix(%s%s%s%s) WHERE name = '%s'; END",
                     table->name, word, word, table->name, both ? "lockstep_mix(sum, " : "sum, ",
                     events[i].old ? old : new, both ? "), " : "", both ? new : "", table->name);

        if (size >= (int)sizeof(text)) {
            return error_set(error, STATUS_OVER_LIMIT, "table %s has too many columns for a sum",
                             table->name);
        }
        TRY(database_execute(sql, text, error));
    }
    return STATUS_OK;
}

/* ---- the sums ----------------------------------------------------------------- */

static enum status sum_rows(uint8_t sum[HASH32_SIZE], struct database *sql,
                            const struct summed_table *table, struct error *error)
{
    char columns[COLUMNS_SIZE];
    char text[SQL_SIZE];
    sqlite3_stmt *rows;
    enum status status;

    if (table == &schema) {
        (void)snprintf(text, sizeof(text),
                       "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type IN"
                       " ('table', 'index')");
    } else {
        TRY(list_columns(columns, sql, table, error));
        (void)snprintf(text, sizeof(text), "SELECT %s FROM %s", columns, table->name);
    }
    rows = database_query(sql, error, text, "");
    status = rows == NULL ? error->status : STATUS_OK;
    memset(sum, 0, HASH32_SIZE);
    while (status == STATUS_OK) {
        status = database_step(sql, rows, error);
        if (status == STATUS_OK) {
            struct keccak keccak;

            keccak_init(&keccak);
            for (int i = 0; i < sqlite3_column_count(rows); i++) {
                add_value(&keccak, sqlite3_column_value(rows, i));
            }
            mix_hash(sum, &keccak);
        }
    }
    database_done(sql, rows);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status put_sum(struct database *sql, const struct summed_table *table,
                           struct error *error)
{
    uint8_t sum[HASH32_SIZE];

    TRY(sum_rows(sum, sql, table, error));
    return database_run(sql, error, "INSERT INTO marks VALUES (?, ?)", "tb", table->name,
                        &(struct database_blob){sum, HASH32_SIZE});
}

enum status table_sums_make(struct database *sql, struct error *error)
{
    return database_execute(
        sql, "CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, sum BLOB NOT NULL)", error);
}

enum status table_sums_begin(struct database *sql, const struct table_sums *sums,
                             struct error *error)
{
    for (size_t i = 0; i < sums->count; i++) {
        TRY(add_triggers(sql, &sums->tables[i], error));
        TRY(put_sum(sql, &sums->tables[i], error));
    }
    return put_sum(sql, &schema, error);
}

static enum status check_sum(struct database *sql, const struct summed_table *table,
                             const char *whose, struct error *error)
{
    uint8_t sum[HASH32_SIZE];
    uint8_t kept[HASH32_SIZE];
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY(sum_rows(sum, sql, table, error));
    TRY_OUT(
        database_first(&row, sql, error, "SELECT sum FROM marks WHERE name = ?", "t", table->name));
    if (!database_blob_column(row, 0, kept, HASH32_SIZE) || memcmp(sum, kept, HASH32_SIZE) != 0) {
        status = STATUS_NOT_FOUND;
    }
out:
    database_done(sql, row);
    return status == STATUS_NOT_FOUND ? error_set(error, STATUS_BAD_FORMAT,
                                                  "table %s of %s is damaged", table->name, whose)
                                      : status;
}

enum status table_sums_structure(struct database *sql, const char *whose, struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_first(&row, sql, error, "PRAGMA integrity_check(1)", "");

    if (status == STATUS_OK && strcmp((const char *)sqlite3_column_text(row, 0), "ok") != 0) {
        status = error_set(error, STATUS_BAD_FORMAT, "the structure of %s is damaged", whose);
    }
    database_done(sql, row);
    return status;
}

enum status table_sums_check(struct database *sql, const struct table_sums *sums,
                             struct error *error)
{
    enum status status = STATUS_OK;

    TRY(database_run(sql, error, "BEGIN", "")); /* one moment for all */
    for (size_t i = 0; i < sums->count && status == STATUS_OK; i++) {
        status = check_sum(sql, &sums->tables[i], sums->whose, error);
    }
    status = status == STATUS_OK ? check_sum(sql, &schema, sums->whose, error) : status;
    return database_end(sql, status, error);
}
