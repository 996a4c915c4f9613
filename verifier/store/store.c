/* store.c - opening, versions, facts by name: see store.h. */
#include "verifier/store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io/file.h"

/* One script for each version; the n-th brings a file from version n-1 to n. */
static const char *const migrations[] = {
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value NOT NULL);"
    "CREATE TABLE jobs (key BLOB PRIMARY KEY, client BLOB NOT NULL, id BLOB NOT NULL,"
    " terms BLOB NOT NULL, phase INTEGER NOT NULL, solver BLOB, epoch INTEGER NOT NULL DEFAULT 0,"
    " finalized INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE segments (job BLOB NOT NULL, idx INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " root BLOB NOT NULL, steps INTEGER NOT NULL, time_s INTEGER NOT NULL,"
    " height INTEGER NOT NULL, solver BLOB NOT NULL, hash BLOB NOT NULL UNIQUE,"
    " previous BLOB NOT NULL, diverged INTEGER NOT NULL, seed BLOB, round_s INTEGER NOT NULL,"
    " attested INTEGER NOT NULL DEFAULT 0, revealed INTEGER NOT NULL DEFAULT 0,"
    " mine INTEGER NOT NULL DEFAULT 0, void INTEGER NOT NULL DEFAULT 0,"
    " choice INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',"
    " PRIMARY KEY (job, idx, epoch));"
    "CREATE INDEX segments_choice ON segments (choice, void);"
    "CREATE INDEX segments_mine ON segments (mine);"
    "CREATE TABLE claims (key BLOB PRIMARY KEY, job BLOB NOT NULL, segment BLOB NOT NULL,"
    " idx INTEGER NOT NULL, epoch INTEGER NOT NULL, step INTEGER NOT NULL, pre BLOB NOT NULL,"
    " post BLOB NOT NULL, phase INTEGER NOT NULL, turn INTEGER NOT NULL,"
    " deadline_s INTEGER NOT NULL, outcome TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE payments (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, amount TEXT NOT NULL);"
    "CREATE TABLE tasks (number INTEGER PRIMARY KEY, job BLOB NOT NULL, idx INTEGER NOT NULL,"
    " previous BLOB NOT NULL, root BLOB NOT NULL, steps INTEGER NOT NULL,"
    " traced_step INTEGER NOT NULL,"
    " extra INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, outcome INTEGER NOT NULL DEFAULT 0,"
    " attempts INTEGER NOT NULL DEFAULT 0, next_ms INTEGER NOT NULL DEFAULT 0,"
    " deadline_s INTEGER NOT NULL, expiry_s INTEGER NOT NULL, covered INTEGER NOT NULL,"
    " begun_ms INTEGER, ended_ms INTEGER, reason TEXT NOT NULL DEFAULT '', result TEXT,"
    " UNIQUE (job, idx, previous, root, traced_step));"
    "CREATE INDEX tasks_state ON tasks (state, next_ms);"
    "CREATE TABLE actions (name TEXT PRIMARY KEY, kind INTEGER NOT NULL, segment BLOB NOT NULL,"
    " claim BLOB NOT NULL, before BLOB NOT NULL, pre BLOB NOT NULL, post BLOB NOT NULL,"
    " step INTEGER NOT NULL, due_s INTEGER NOT NULL, due_height INTEGER NOT NULL,"
    " late_s INTEGER NOT NULL, after TEXT NOT NULL, state INTEGER NOT NULL DEFAULT 0,"
    " tries INTEGER NOT NULL DEFAULT 0, trouble TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX actions_state ON actions (state, due_s);"
    "CREATE TABLE mirrors (name TEXT PRIMARY KEY, good INTEGER NOT NULL DEFAULT 0,"
    " bad INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,"
    " trouble TEXT NOT NULL DEFAULT '');",
    /* The event log is read again: an older program skipped some of it. */
    "ALTER TABLE actions ADD COLUMN attestor BLOB NOT NULL DEFAULT"
    " X'0000000000000000000000000000000000000000';"
    "ALTER TABLE actions ADD COLUMN refusal INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE claims ADD COLUMN attestor BLOB NOT NULL DEFAULT"
    " X'0000000000000000000000000000000000000000';"
    "ALTER TABLE claims ADD COLUMN accused INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE claims ADD COLUMN asked BLOB;"
    "CREATE TABLE reveals (segment BLOB NOT NULL, attestor BLOB NOT NULL, root BLOB NOT NULL,"
    " stands INTEGER NOT NULL DEFAULT 1, doubt INTEGER NOT NULL DEFAULT 0,"
    " reason TEXT NOT NULL DEFAULT '', PRIMARY KEY (segment, attestor));"
    "CREATE INDEX reveals_doubt ON reveals (doubt);"
    "CREATE TABLE accusations (key BLOB PRIMARY KEY, segment BLOB NOT NULL,"
    " attestor BLOB NOT NULL);"
    "CREATE TABLE efforts (claim BLOB PRIMARY KEY, tries INTEGER NOT NULL,"
    " next_ms INTEGER NOT NULL, trouble TEXT NOT NULL);"
    "DELETE FROM jobs; DELETE FROM segments; DELETE FROM claims; DELETE FROM payments;"
    "DELETE FROM facts WHERE name = 'cursor';",
    /* Everybody's claims and the mandatory segments. The event log is read again. */
    "ALTER TABLE segments ADD COLUMN mandatory INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN finalized_s INTEGER NOT NULL DEFAULT 0;"
    "DROP TABLE accusations;"
    "CREATE TABLE disputes (key BLOB PRIMARY KEY, segment BLOB NOT NULL, attestor BLOB NOT NULL,"
    " deadline_s INTEGER NOT NULL, open INTEGER NOT NULL DEFAULT 1);"
    "CREATE INDEX disputes_segment ON disputes (segment, open);"
    "DELETE FROM jobs; DELETE FROM segments; DELETE FROM claims; DELETE FROM payments;"
    "DELETE FROM reveals; DELETE FROM facts WHERE name = 'cursor';",
    /* How mirrors did lately: see mirrors.h. */
    "ALTER TABLE mirrors ADD COLUMN silent INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE mirrors ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE mirrors ADD COLUMN rest_until_ms INTEGER NOT NULL DEFAULT 0;",
    /* Other words for the same. */
    "ALTER TABLE efforts RENAME TO retries; ALTER TABLE reveals RENAME COLUMN doubt TO audit;"
    "ALTER TABLE claims RENAME COLUMN asked TO queried;"
    "ALTER TABLE claims RENAME COLUMN epoch TO generation;"
    "ALTER TABLE jobs RENAME COLUMN epoch TO generation;"
    "ALTER TABLE segments RENAME COLUMN epoch TO generation;",
};

#define VERSION ((int64_t)(sizeof(migrations) / sizeof(migrations[0])))

/* ---- opening ------------------------------------------------------------ */

static enum status too_new(int64_t version, struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "the node's database is of version %" PRId64 "; this program knows %" PRId64,
                    version, VERSION);
    error_advise(error, "use the program that wrote it, or a newer one");
    return STATUS_REFUSED;
}

/* Inside a transaction. */
static enum status migrate(struct store *store, struct error *error)
{
    int64_t version = 0;

    TRY(database_number(&store->sql, &version, 0, error,
                        "SELECT user_version FROM pragma_user_version", ""));
    if (version > VERSION) {
        return too_new(version, error);
    }
    for (; version < VERSION; version++) {
        char text[64];
        char *why = NULL;

        if (sqlite3_exec(store->sql.database, migrations[version], NULL, NULL, &why) != SQLITE_OK) {
            (void)error_set(error, STATUS_IO,
                            "cannot bring the node's database to version %" PRId64 ": %s",
                            version + 1, why == NULL ? "no memory" : why);
            sqlite3_free(why);
            return STATUS_IO;
        }
        (void)snprintf(text, sizeof(text), "PRAGMA user_version = %" PRId64, version + 1);
        TRY(database_run(&store->sql, error, text, ""));
    }
    return STATUS_OK;
}

static enum status check_readable(struct store *store, struct error *error)
{
    int64_t version = 0;

    TRY(database_number(&store->sql, &version, 0, error,
                        "SELECT user_version FROM pragma_user_version", ""));
    if (version > VERSION) {
        return too_new(version, error);
    }
    if (version < VERSION) {
        (void)error_set(error, STATUS_REFUSED, "the node's database is of an older version");
        error_advise(error, "start the node once: it brings its database up to date");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

enum status store_open(struct store *store, const char *path, enum store_mode mode,
                       struct error *error)
{
    enum status status;

    memset(store, 0, sizeof(*store));
    store->tasks_max = STORE_TASKS_MAX;
    if (mode == STORE_READ && !file_exists(path)) {
        (void)error_set(error, STATUS_NOT_FOUND, "no node has worked here: %s is not there", path);
        error_advise(error, "name its folder with --state, or start one: lockstep verifier run");
        return STATUS_NOT_FOUND;
    }
    status = database_open(
        &store->sql, path,
        mode == STORE_READ ? "PRAGMA query_only = ON" : "PRAGMA synchronous = NORMAL", error);
    if (status != STATUS_OK) {
        return status;
    }
    store->sql.names = store_names;
    if (mode == STORE_READ) {
        TRY_OUT(check_readable(store, error));
    } else {
        TRY_OUT(database_begin(&store->sql, error));
        TRY_OUT(database_end(&store->sql, migrate(store, error), error));
    }
    return STATUS_OK;
out:
    store_close(store);
    return status;
}

void store_close(struct store *store)
{
    database_close(&store->sql);
}

enum status store_begin(struct store *store, struct error *error)
{
    return database_begin(&store->sql, error);
}

enum status store_end(struct store *store, enum status status, struct error *error)
{
    return database_end(&store->sql, status, error);
}

enum status store_secure(struct store *store, struct error *error)
{
    return database_run(&store->sql, error, "PRAGMA wal_checkpoint(FULL)", "");
}

void store_place_text(char text[STORE_PLACE_TEXT], const struct hash32 *job, uint32_t index)
{
    (void)snprintf(text, STORE_PLACE_TEXT, "job %02x%02x segment %" PRIu32, job->bytes[0],
                   job->bytes[1], index);
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
