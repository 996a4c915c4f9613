/* local_marks.c - see local_marks.h. */
#include "chain/local/local_marks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "chain/codec/keccak.h"
#include "chain/local/local_store.h"

enum {
    SQL_SIZE = 1024,
};

/* What has a sum: the rows of a query. */
struct summed {
    const char *name;
    const char *columns; /* of the table; NULL: no triggers */
    const char *query;
};

#define TABLE(name, columns)                                                                       \
    {                                                                                              \
        name, columns, "SELECT " columns " FROM " name                                             \
    }

static const struct summed all[] = {
    TABLE("records", "kind, key, value"),
    TABLE("moves", "account, name, content, done, revert, height"),
    TABLE("blocks", "height, hash, time_s"),
    TABLE("event_log", "number, kind, height, block, time_s, place, topics, data"),
    TABLE("event_transactions", "block, place, hash"),
    {"schema", NULL,
     "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index')"},
};

enum {
    SUMS = sizeof(all) / sizeof(all[0]),
};

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

static void mix(uint8_t sum[HASH32_SIZE], struct keccak *keccak)
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
        sqlite3_result_error(context, "a sum of the ledger's file is damaged", -1);
        return;
    }
    memcpy(sum, sqlite3_value_blob(values[0]), HASH32_SIZE);
    keccak_init(&keccak);
    for (int i = 1; i < count; i++) {
        add_value(&keccak, values[i]);
    }
    mix(sum, &keccak);
    sqlite3_result_blob(context, sum, HASH32_SIZE, SQLITE_TRANSIENT);
}

static enum status add_function(struct database *sql, struct error *error)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;

    return sqlite3_create_function(sql->database, "lockstep_mix", -1, flags, NULL, mix_row, NULL,
                                   NULL) == SQLITE_OK
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "no memory for the marks of a ledger's file");
}

/* ---- the sums ----------------------------------------------------------------- */

/* "OLD.kind, OLD.key": each column of a list with a word before it. */
static void write_columns(char *out, size_t size, const char *word, const char *columns)
{
    size_t used = 0;

    for (const char *at = columns; *at != '\0' && used < size;) {
        size_t length = strcspn(at, ",");
        int more = snprintf(out + used, size - used, "%s%s.%.*s", at == columns ? "" : ", ", word,
                            (int)length, at);

        used += more < 0 ? size : (size_t)more;
        at += length;
        at += strspn(at, ", ");
    }
}

static enum status add_triggers(struct database *sql, const struct summed *one, struct error *error)
{
    static const struct {
        const char *event;
        bool old;
        bool new;
    } events[] = {{"INSERT", false, true}, {"DELETE", true, false}, {"UPDATE", true, true}};
    char old[SQL_SIZE / 4];
    char new[SQL_SIZE / 4];
    char text[2 * SQL_SIZE];

    write_columns(old, sizeof(old), "OLD", one->columns);
    write_columns(new, sizeof(new), "NEW", one->columns);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        const char *mixed[2] = {events[i].old ? old : NULL, events[i].new ? new : NULL};
        char sum[SQL_SIZE] = "sum";

        for (int k = 0; k < 2; k++) {
            char inner[SQL_SIZE];

            if (mixed[k] != NULL) {
                memcpy(inner, sum, sizeof(inner));
                (void)snprintf(sum, sizeof(sum), "lockstep_mix(%.600s, %s)", inner, mixed[k]);
            }
        }
        (void)snprintf(text, sizeof(text),
                       "CREATE TRIGGER IF NOT EXISTS marks_%s_%s AFTER %s ON %s BEGIN"
                       " UPDATE marks SET sum = %s WHERE name = '%s'; END",
                       one->name, events[i].event, events[i].event, one->name, sum, one->name);
        TRY(database_execute(sql, text, error));
    }
    return STATUS_OK;
}

static enum status sum_rows(uint8_t sum[HASH32_SIZE], struct database *sql,
                            const struct summed *one, struct error *error)
{
    sqlite3_stmt *rows = database_query(sql, error, one->query, "");
    enum status status = rows == NULL ? error->status : STATUS_OK;

    memset(sum, 0, HASH32_SIZE);
    while (status == STATUS_OK) {
        status = database_step(sql, rows, error);
        if (status == STATUS_OK) {
            struct keccak keccak;

            keccak_init(&keccak);
            for (int i = 0; i < sqlite3_column_count(rows); i++) {
                add_value(&keccak, sqlite3_column_value(rows, i));
            }
            mix(sum, &keccak);
        }
    }
    database_done(sql, rows);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status begin_sums(struct database *sql, struct error *error)
{
    for (size_t i = 0; i < SUMS; i++) {
        uint8_t sum[HASH32_SIZE];

        if (all[i].columns != NULL) {
            TRY(add_triggers(sql, &all[i], error));
        }
        TRY(sum_rows(sum, sql, &all[i], error));
        TRY(database_run(sql, error, "INSERT INTO marks VALUES (?, ?)", "tb", all[i].name,
                         &(struct database_blob){sum, HASH32_SIZE}));
    }
    return STATUS_OK;
}

static enum status damaged(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "%s of the ledger's file is damaged", what);
}

static enum status check_sum(struct database *sql, const struct summed *one, struct error *error)
{
    uint8_t sum[HASH32_SIZE];
    uint8_t kept[HASH32_SIZE];
    char what[64];
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY(sum_rows(sum, sql, one, error));
    TRY_OUT(
        database_first(&row, sql, error, "SELECT sum FROM marks WHERE name = ?", "t", one->name));
    if (!database_blob_column(row, 0, kept, HASH32_SIZE) || memcmp(sum, kept, HASH32_SIZE) != 0) {
        status = STATUS_NOT_FOUND;
    }
out:
    database_done(sql, row);
    if (status == STATUS_NOT_FOUND) {
        (void)snprintf(what, sizeof(what), "table %s", one->name);
        return damaged(error, what);
    }
    return status;
}

static enum status check_structure(struct database *sql, struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_first(&row, sql, error, "PRAGMA integrity_check(1)", "");

    if (status == STATUS_OK && strcmp((const char *)sqlite3_column_text(row, 0), "ok") != 0) {
        status = damaged(error, "the structure");
    }
    database_done(sql, row);
    return status;
}

enum status local_marks_open(struct database *sql, struct error *error)
{
    int64_t count = 0;
    int64_t records = 0;
    enum status status;

    TRY(add_function(sql, error));
    /* Or what REPLACE removes would not leave the sums. */
    TRY(database_execute(sql, "PRAGMA recursive_triggers = ON", error));
    TRY(database_execute(
        sql, "CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, sum BLOB NOT NULL)", error));
    TRY(check_structure(sql, error));
    TRY(database_number(sql, &count, 0, error, "SELECT count(*) FROM marks", ""));
    TRY(database_number(sql, &records, 0, error, "SELECT count(*) FROM records", ""));
    if (count == 0 && records > 0) {
        return damaged(error, "table marks");
    }
    if (count == 0) {
        TRY(database_begin(sql, error));
        return database_end(sql, begin_sums(sql, error), error);
    }
    TRY(database_run(sql, error, "BEGIN", "")); /* one moment for all */
    status = STATUS_OK;
    for (size_t i = 0; i < SUMS && status == STATUS_OK; i++) {
        status = check_sum(sql, &all[i], error);
    }
    return database_end(sql, status, error);
}
