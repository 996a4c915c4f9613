/*
 * store_seen.c - the ledger as the node saw it, in memory: see store.h.
 *
 * The tables are of the connection alone (TEMP): they roll back with the node's own, are in no
 * file of the node, and are read by the same statements. A node fills them again when it starts,
 * from the ledger. A process that only looks reads the same event log, as far as the node has.
 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "chain/game/event_log.h"
#include "verifier/store/store.h"

static const char seen_schema[] =
    "CREATE TEMP TABLE jobs (key BLOB PRIMARY KEY, client BLOB NOT NULL, id BLOB NOT NULL,"
    " keeper BLOB NOT NULL, terms BLOB NOT NULL, phase INTEGER NOT NULL, solver BLOB,"
    " generation INTEGER NOT NULL DEFAULT 0, segments INTEGER NOT NULL,"
    " committed INTEGER NOT NULL DEFAULT 0,"
    " drawn INTEGER NOT NULL DEFAULT 0, leg_start INTEGER NOT NULL DEFAULT 0,"
    " finalized INTEGER NOT NULL DEFAULT 0, finalized_s INTEGER NOT NULL DEFAULT 0,"
    " closed_s INTEGER NOT NULL DEFAULT 0, due_s INTEGER NOT NULL DEFAULT 0,"
    " refused_until_s INTEGER NOT NULL DEFAULT 0, barred INTEGER NOT NULL DEFAULT 0,"
    /* Entries of ours that ever were. */
    " enlisted INTEGER NOT NULL DEFAULT 0, unpaid INTEGER NOT NULL);"
    "CREATE TEMP TABLE contacts (job BLOB NOT NULL, owner BLOB NOT NULL, url TEXT NOT NULL,"
    " number INTEGER NOT NULL, PRIMARY KEY (job, owner));"
    /* What the keeper announced: it has a segment's states. */
    "CREATE TEMP TABLE vouches (segment BLOB PRIMARY KEY, signature BLOB NOT NULL);"
    /* enlisted: a number of its own. An entry that departs gives its place to the last one. */
    "CREATE TEMP TABLE entries (job BLOB NOT NULL, generation INTEGER NOT NULL, number INTEGER NOT "
    "NULL,"
    " owner BLOB NOT NULL, ours INTEGER NOT NULL, enlisted INTEGER NOT NULL,"
    " gone INTEGER NOT NULL DEFAULT 0, lost_s INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY (job, generation, number));"
    "CREATE INDEX temp.entries_ours ON entries (ours, gone);"
    "CREATE TEMP TABLE segments (job BLOB NOT NULL, idx INTEGER NOT NULL, generation INTEGER NOT "
    "NULL,"
    " root BLOB NOT NULL, steps INTEGER NOT NULL, time_s INTEGER NOT NULL,"
    " height INTEGER NOT NULL, solver BLOB NOT NULL, panel INTEGER NOT NULL,"
    " diverged INTEGER NOT NULL, hash BLOB NOT NULL UNIQUE, previous BLOB NOT NULL,"
    " states BLOB NOT NULL, seed BLOB, covered INTEGER NOT NULL DEFAULT 0,"
    " leg_start INTEGER NOT NULL DEFAULT 0, start_s INTEGER NOT NULL,"
    " round INTEGER NOT NULL DEFAULT 0, places INTEGER NOT NULL DEFAULT 0,"
    " rights INTEGER NOT NULL DEFAULT 0, unseen INTEGER NOT NULL DEFAULT 0,"
    " vouched INTEGER NOT NULL DEFAULT 0, over_height INTEGER NOT NULL DEFAULT 0,"
    " over_s INTEGER NOT NULL DEFAULT 0, void INTEGER NOT NULL DEFAULT 0,"
    " choice INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX temp.segments_job ON segments (job, idx, void);"
    "CREATE INDEX temp.segments_choice ON segments (choice, void);"
    "CREATE TEMP TABLE seats (segment BLOB NOT NULL, place INTEGER NOT NULL, entry INTEGER NOT "
    "NULL,"
    " owner BLOB NOT NULL, ours INTEGER NOT NULL, round INTEGER NOT NULL,"
    " phase INTEGER NOT NULL DEFAULT 0, verdict INTEGER NOT NULL DEFAULT 0, leaves BLOB, salt BLOB,"
    " seal BLOB,"
    " PRIMARY KEY (segment, place));"
    "CREATE INDEX temp.seats_ours ON seats (ours, phase);"
    "CREATE INDEX temp.seats_verdict ON seats (verdict, phase);"
    "CREATE TEMP TABLE disputes (key BLOB PRIMARY KEY, job BLOB NOT NULL, segment BLOB NOT NULL,"
    " subject BLOB NOT NULL, idx INTEGER NOT NULL, generation INTEGER NOT NULL,"
    " step INTEGER NOT NULL, pre BLOB NOT NULL, post BLOB NOT NULL, rank BLOB NOT NULL,"
    " phase INTEGER NOT NULL, turn INTEGER NOT NULL, turns INTEGER NOT NULL DEFAULT 0,"
    " deadline_s INTEGER NOT NULL DEFAULT 0, lead BLOB NOT NULL, trace BLOB NOT NULL,"
    " ours INTEGER NOT NULL, lost INTEGER NOT NULL DEFAULT 0, bond TEXT NOT NULL DEFAULT '0',"
    " lost_s INTEGER NOT NULL DEFAULT 0, outsiders INTEGER NOT NULL DEFAULT 0,"
    " outcome INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX temp.disputes_segment ON disputes (segment, phase);"
    "CREATE INDEX temp.disputes_job ON disputes (job, phase);"
    "CREATE INDEX temp.disputes_subject ON disputes (subject);"
    /* The last entry of the event log that these follow from, and the last rewind. */
    "CREATE TEMP TABLE position (number INTEGER NOT NULL, rewound INTEGER NOT NULL);"
    "INSERT INTO position VALUES (0, 0);";

/* A ledger may say more than fits into memory: beyond 64 MiB it lies in a file without a name. */
static const char limits[] = "PRAGMA temp_store = FILE; PRAGMA temp.cache_size = -65536;"
                             " PRAGMA temp.journal_mode = MEMORY";

/* ---- making and emptying ------------------------------------------------------------ */

enum status store_make_seen(struct store *store, struct error *error)
{
    TRY(database_execute(&store->sql, limits, error));
    TRY(database_execute(&store->sql, seen_schema, error));
    store->is_seen = true;
    return STATUS_OK;
}

static enum status forget_seen(struct store *store, struct error *error)
{
    return database_execute(&store->sql,
                            "DELETE FROM jobs; DELETE FROM contacts; DELETE FROM entries;"
                            " DELETE FROM vouches; DELETE FROM segments; DELETE FROM seats;"
                            " DELETE FROM disputes",
                            error);
}

/* ---- the place in the event log ------------------------------------------------------- */

enum status store_position(struct store *store, uint64_t *number, struct error *error)
{
    int64_t found = 0;
    enum status status =
        database_number(&store->sql, &found, 0, error, "SELECT number FROM position", "");

    *number = (uint64_t)found;
    return status;
}

static enum status set_position(struct store *store, uint64_t number, struct error *error)
{
    return database_run(&store->sql, error, "UPDATE position SET number = ?", "i", (int64_t)number);
}

/* How far the node ever was, for those who look, and for a node that starts. */
static enum status keep_cursor(struct store *store, uint64_t number, struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT INTO facts VALUES ('cursor', ?) ON CONFLICT (name) DO UPDATE SET"
                        " value = excluded.value WHERE excluded.value > value",
                        "i", (int64_t)number);
}

/* Reading the event log again passes a rewind again: it counts once. */
static enum status take_rewind(struct store *store, const struct ledger_entry *entry,
                               struct error *error)
{
    int64_t known = 0;

    TRY(store_number(store, &known, "rewound", error));
    if (known >= (int64_t)entry->number) {
        return set_position(store, entry->number, error);
    }
    TRY(forget_seen(store, error));
    TRY(database_execute(&store->sql, "DELETE FROM choices; DELETE FROM notes", error));
    TRY(store_set_number(store, "rewound", (int64_t)entry->number, error));
    TRY(store_set_number(store, "cursor", 0, error));
    return set_position(store, 0, error);
}

enum status store_take(struct store *store, const struct ledger_entry *entry,
                       const struct address *own, struct error *error)
{
    if (entry->kind == LEDGER_REWIND) {
        return take_rewind(store, entry, error);
    }
    TRY(store_take_event(store, entry, own, error));
    TRY(set_position(store, entry->number, error));
    return keep_cursor(store, entry->number, error);
}

/* ---- for those who look ---------------------------------------------------------------- */

/* Whose entries and claims are ours: the fact "owner" begins with it. */
static enum status read_owner(struct store *store, struct address *own, struct error *error)
{
    char owner[STORE_REASON_MAX];

    TRY(store_text(store, owner, "owner", error));
    owner[ADDRESS_TEXT_SIZE - 1] = '\0';
    memset(own, 0, sizeof(*own));
    return owner[0] == '\0' || address_parse(own, owner) == STATUS_OK ? STATUS_OK
                                                                      : store_damaged(error);
}

enum status store_set_event_log(struct store *store, const char *path, struct error *error)
{
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO facts VALUES ('event_log', ?)",
                        "t", path == NULL ? "" : path);
}

/* STATUS_NOT_FOUND: the node has read nothing yet. */
static enum status open_event_log(struct store *store, struct error *error)
{
    char path[FILE_PATH_MAX] = "";
    sqlite3_stmt *row;
    enum status status;

    if (store->log.database != NULL) {
        return STATUS_OK;
    }
    status = database_first(&row, &store->sql, error,
                            "SELECT value FROM facts WHERE name = 'event_log' AND value <> ''", "");
    if (status == STATUS_OK) {
        (void)snprintf(path, sizeof(path), "%s", (const char *)sqlite3_column_text(row, 0));
    }
    database_done(&store->sql, row);
    if (status != STATUS_OK) {
        return status;
    }
    if (!file_exists(path)) {
        (void)error_set(error, STATUS_UNREACHABLE,
                        "the event log that the node follows is not there: %s", path);
        error_advise(error, "start the node: it names its ledger's again");
        return STATUS_UNREACHABLE;
    }
    return database_open(&store->log, path, "PRAGMA query_only = ON", error);
}

/* A rewind that the node has taken since: what was seen before it is void. */
static enum status follow_rewind(struct store *store, struct error *error)
{
    int64_t rewound = 0;
    int64_t known = 0;

    TRY(store_number(store, &rewound, "rewound", error));
    TRY(database_number(&store->sql, &known, 0, error, "SELECT rewound FROM position", ""));
    if (rewound == known) {
        return STATUS_OK;
    }
    TRY(forget_seen(store, error));
    return database_run(&store->sql, error, "UPDATE position SET number = 0, rewound = ?", "i",
                        rewound);
}

static enum status follow_log(struct store *store, uint8_t *data, struct error *error)
{
    struct address own;
    int64_t cursor = 0;
    uint64_t number = 0;
    enum status status = STATUS_OK;

    TRY(read_owner(store, &own, error));
    TRY(follow_rewind(store, error));
    TRY(store_number(store, &cursor, "cursor", error));
    TRY(store_position(store, &number, error));
    while (status == STATUS_OK && (int64_t)number < cursor) {
        struct ledger_entry entry;

        status = event_log_next(&store->log, &entry, data, number, UINT64_MAX, NULL, error);
        if (status == STATUS_OK && entry.kind == LEDGER_EVENT) {
            status = store_take_event(store, &entry, &own, error);
        }
        if (status == STATUS_OK) {
            number = entry.number;
        }
    }
    TRY(status == STATUS_NOT_FOUND ? STATUS_OK : status);
    return set_position(store, number, error);
}

static enum status follow_whole(struct store *store, struct error *error)
{
    uint8_t *data = malloc(GAME_LOG_SIZE_MAX);
    enum status status = data == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "no memory to follow the ledger")
                             : database_run(&store->sql, error, "BEGIN", "");

    if (status == STATUS_OK) {
        status = database_end(&store->sql, follow_log(store, data, error), error);
    }
    free(data);
    return status;
}

enum status store_catch_up(struct store *store, struct error *error)
{
    enum status status;

    if (store->mode == STORE_WRITE) {
        return STATUS_OK; /* its own events come to it */
    }
    /* The flag holds for tables of the connection too. */
    TRY(database_execute(&store->sql, "PRAGMA query_only = OFF", error));
    status = store->is_seen ? STATUS_OK : store_make_seen(store, error);
    if (status == STATUS_OK) {
        status = open_event_log(store, error);
    }
    if (status == STATUS_OK) {
        status = follow_whole(store, error);
    }
    status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
    TRY(status);
    return database_execute(&store->sql, "PRAGMA query_only = ON", error);
}
