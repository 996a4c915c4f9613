/* store.c - opening, versions, facts by name: see store.h. */
#include "verifier/store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "chain/sums/table_sums.h"

/* The versions before are of earlier editions of the game: nothing of them is true now. */
#define VERSION             ((int64_t)12)
#define VERSION_WITH_LEDGER ((int64_t)11) /* it kept rows of the ledger too */

static const char schema[] =
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value NOT NULL);"
    /* What the node thinks of a job outlives a reorganization. */
    "CREATE TABLE wishes (job BLOB PRIMARY KEY, wish INTEGER NOT NULL DEFAULT 0,"
    " reason TEXT NOT NULL DEFAULT '', header BLOB);"
    /* What it thinks of a segment, and of a place in its draw. */
    "CREATE TABLE choices (segment BLOB PRIMARY KEY, choice INTEGER NOT NULL,"
    " reason TEXT NOT NULL);"
    "CREATE TABLE notes (segment BLOB NOT NULL, place INTEGER NOT NULL,"
    " judgement INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',"
    " PRIMARY KEY (segment, place));"
    "CREATE TABLE retries (claim BLOB PRIMARY KEY, tries INTEGER NOT NULL,"
    " next_ms INTEGER NOT NULL, trouble TEXT NOT NULL);"
    /* A trial is about a job: its segment is the job's key. */
    "CREATE TABLE tasks (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, job BLOB NOT NULL,"
    " idx INTEGER NOT NULL,"
    " segment BLOB NOT NULL, previous BLOB NOT NULL, steps INTEGER NOT NULL, seed BLOB NOT NULL,"
    " proven INTEGER NOT NULL, extra INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,"
    " outcome INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,"
    " unavailable INTEGER NOT NULL DEFAULT 0, line_works INTEGER NOT NULL DEFAULT 0,"
    " next_ms INTEGER NOT NULL DEFAULT 0,"
    " deadline_s INTEGER NOT NULL, expiry_s INTEGER NOT NULL, begun_ms INTEGER, ended_ms INTEGER,"
    " reason TEXT NOT NULL DEFAULT '', result TEXT, UNIQUE (segment, previous, seed, proven, "
    "kind));"
    "CREATE INDEX tasks_state ON tasks (state, next_ms);"
    "CREATE TABLE actions (name TEXT PRIMARY KEY, kind INTEGER NOT NULL, job BLOB NOT NULL,"
    " segment BLOB NOT NULL, claim BLOB NOT NULL, before BLOB NOT NULL, pre BLOB NOT NULL,"
    " post BLOB NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, step INTEGER NOT NULL,"
    " due_s INTEGER NOT NULL, due_height INTEGER NOT NULL, late_s INTEGER NOT NULL,"
    " after TEXT NOT NULL, state INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0,"
    " trouble TEXT NOT NULL DEFAULT '', refusal INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX actions_state ON actions (state, due_s);"
    "CREATE TABLE mirrors (name TEXT PRIMARY KEY, good INTEGER NOT NULL DEFAULT 0,"
    " bad INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,"
    " trouble TEXT NOT NULL DEFAULT '', silent INTEGER NOT NULL DEFAULT 0,"
    " failures INTEGER NOT NULL DEFAULT 0, rest_until_ms INTEGER NOT NULL DEFAULT 0);"
    "PRAGMA user_version = 12";

/* ---- opening ------------------------------------------------------------ */

static const struct summed_table summed[] = {
    {"facts", NULL},   {"wishes", NULL}, {"choices", NULL}, {"notes", NULL},
    {"retries", NULL}, {"tasks", NULL},  {"actions", NULL}, {"mirrors", NULL},
};

static const struct table_sums sums = {"the node's database", summed,
                                       sizeof(summed) / sizeof(summed[0])};

static enum status refuse_version(int64_t version, struct error *error)
{
    if (version == VERSION_WITH_LEDGER) {
        (void)error_set(error, STATUS_BAD_FORMAT, "the node's database is of the edition before");
        error_advise(error, "start the node: lockstep verifier node");
        return STATUS_BAD_FORMAT;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "the node's database is of version %" PRId64 "; this program knows %" PRId64,
                    version, VERSION);
    error_advise(error, version > VERSION ? "use the program that wrote it, or a newer one"
                                          : "it is of an earlier edition of the game: name another"
                                            " folder with --state");
    return STATUS_REFUSED;
}

static enum status check_version(struct store *store, struct error *error)
{
    int64_t version = 0;

    TRY(database_number(&store->sql, &version, 0, error,
                        "SELECT user_version FROM pragma_user_version", ""));
    return version == VERSION ? STATUS_OK : refuse_version(version, error);
}

static enum status make_tables(struct store *store, struct error *error)
{
    TRY(database_execute(&store->sql, schema, error));
    TRY(table_sums_make(&store->sql, error));
    return table_sums_begin(&store->sql, &sums, error);
}

/* Makes what is new; holds what is not against its sums. */
static enum status check_whole(struct store *store, struct error *error)
{
    struct database *sql = &store->sql;
    int64_t tables = 0;
    int64_t marks = 0;

    TRY(database_number(sql, &tables, 0, error, "SELECT count(*) FROM sqlite_master", ""));
    if (tables == 0) {
        TRY(database_begin(sql, error));
        return database_end(sql, make_tables(store, error), error);
    }
    TRY(table_sums_structure(sql, sums.whose, error));
    TRY(database_number(sql, &marks, 0, error,
                        "SELECT count(*) FROM sqlite_master WHERE name = 'marks'", ""));
    if (marks > 0) {
        TRY(table_sums_check(sql, &sums, error));
    }
    return check_version(store, error);
}

static enum status open_whole(struct store *store, const char *path, struct error *error)
{
    enum status status;

    TRY(table_sums_open(&store->sql, path, "PRAGMA synchronous = NORMAL", error));
    status = check_whole(store, error);
    if (status == STATUS_OK) {
        status = store_make_seen(store, error);
    }
    if (status == STATUS_IO && sqlite3_errcode(store->sql.database) == SQLITE_ERROR) {
        status = error_set(error, STATUS_BAD_FORMAT, "a table of the node's database is damaged");
    }
    if (status != STATUS_OK) {
        store_close(store);
    }
    return status;
}

/* All that matters of it follows from the ledger and the verdict database. */
static enum status open_to_write(struct store *store, const char *path, struct error *error)
{
    char aside[FILE_PATH_MAX];
    struct error damage;
    enum status status = open_whole(store, path, &damage);

    if (status != STATUS_BAD_FORMAT) {
        *error = status == STATUS_OK ? *error : damage;
        return status;
    }
    TRY(table_sums_set_aside(aside, path, error));
    (void)snprintf(store->damage, sizeof(store->damage),
                   "%.200s: it is made again from the ledger; the damaged file is %.200s",
                   damage.text, aside);
    return open_whole(store, path, error);
}

static enum status open_to_read(struct store *store, const char *path, struct error *error)
{
    enum status status;

    if (!file_exists(path)) {
        (void)error_set(error, STATUS_NOT_FOUND, "no node has worked here: %s is not there", path);
        error_advise(error, "name its folder with --state, or start one: lockstep verifier node");
        return STATUS_NOT_FOUND;
    }
    TRY(database_open(&store->sql, path, "PRAGMA query_only = ON", error));
    status = check_version(store, error);
    store->sql.names = store_names;
    if (status == STATUS_OK) {
        status = store_make_seen(store, error);
    }
    if (status == STATUS_OK) {
        status = store_catch_up(store, error);
    }
    if (status != STATUS_OK) {
        store_close(store);
    }
    return status;
}

enum status store_open(struct store *store, const char *path, enum store_mode mode,
                       struct error *error)
{
    enum status status;

    memset(store, 0, sizeof(*store));
    store->tasks_max = STORE_TASKS_MAX;
    store->mode = mode;
    status =
        mode == STORE_READ ? open_to_read(store, path, error) : open_to_write(store, path, error);
    store->sql.names = store_names;
    return status;
}

void store_close(struct store *store)
{
    database_close(&store->log);
    database_close(&store->sql);
    if (store->board != NULL) {
        board_release(store->board);
        free(store->board);
        store->board = NULL;
    }
}

enum status store_secure(struct store *store, struct error *error)
{
    return database_run(&store->sql, error, "PRAGMA wal_checkpoint(FULL)", "");
}

void store_job_text(char text[STORE_PLACE_TEXT], const struct hash32 *job)
{
    char digits[HEX_SIZE(4)];

    hex_encode(digits, job->bytes, 4);
    (void)snprintf(text, STORE_PLACE_TEXT, "job 0x%s", digits);
}

void store_place_text(char text[STORE_PLACE_TEXT], const struct hash32 *job, uint32_t index)
{
    char name[STORE_PLACE_TEXT];

    store_job_text(name, job);
    (void)snprintf(text, STORE_PLACE_TEXT, "%.20s segment %" PRIu32, name, index);
}

/* ---- facts by name ------------------------------------------------------ */

enum status store_number(struct store *store, int64_t *number, const char *name,
                         struct error *error)
{
    return database_number(&store->sql, number, 0, error, "SELECT value FROM facts WHERE name = ?",
                           "t", name);
}

enum status store_set_number(struct store *store, const char *name, int64_t number,
                             struct error *error)
{
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO facts VALUES (?, ?)", "ti",
                        name, number);
}

enum status store_count(struct store *store, const char *name, int64_t more, struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
                        " SET value = value + excluded.value",
                        "ti", name, more);
}

enum status store_text(struct store *store, char *text, const char *name, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT value FROM facts WHERE name = ?", "t", name);

    text[0] = '\0';
    if (status == STATUS_OK && sqlite3_column_text(row, 0) != NULL) {
        (void)snprintf(text, STORE_REASON_MAX, "%s", (const char *)sqlite3_column_text(row, 0));
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status store_set_text(struct store *store, const char *name, const char *text,
                           struct error *error)
{
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO facts VALUES (?, ?)", "tt",
                        name, text);
}
