/*
 * store_seen.c - how a node and those who only look follow the ledger: see store.h.
 *
 * The state of the jobs is the board's (chain/job/board.h). A node lets it take each event, and
 * keeps how far it is. A process that only looks reads the same event log, as far as the node has.
 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "chain/game/event_log.h"
#include "verifier/store/store.h"
#include "verifier/store/store_tables.h"

/* Each has cost its client gas: the memory of a node ends it, and not a limit. */
#define JOBS_MAX (1u << 24)

enum status store_make_seen(struct store *store, struct error *error)
{
    store->board = calloc(1, sizeof(*store->board));
    if (store->board == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the jobs of the ledger");
    }
    store->board->whole = true;
    store->board->most = JOBS_MAX;
    return store_tables_make(&store->sql, store->board, error);
}

/* ---- the place in the event log ------------------------------------------------------- */

uint64_t store_position(const struct store *store)
{
    return store->board->read;
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
        store->board->rewound = (uint64_t)known;
        return board_take(store->board, entry, error);
    }
    TRY(database_execute(&store->sql, "DELETE FROM choices; DELETE FROM notes", error));
    TRY(store_set_number(store, "rewound", (int64_t)entry->number, error));
    TRY(store_set_number(store, "cursor", 0, error));
    return board_take(store->board, entry, error);
}

enum status store_take(struct store *store, const struct ledger_entry *entry,
                       const struct address *own, struct error *error)
{
    store->taken = true;
    store->board->account = *own;
    if (entry->kind == LEDGER_REWIND) {
        return take_rewind(store, entry, error);
    }
    TRY(board_take(store->board, entry, error));
    return keep_cursor(store, entry->number, error);
}

/* Nothing was read: what the file of the node does not know, the board must not know either. */
static enum status forget_seen(struct store *store, uint64_t rewound, struct error *error)
{
    store->board->rewound = rewound;
    return board_restart(store->board, error);
}

enum status store_begin(struct store *store, struct error *error)
{
    store->taken = false;
    return database_begin(&store->sql, error);
}

enum status store_end(struct store *store, enum status status, struct error *error)
{
    struct error ignored;

    status = database_end(&store->sql, status, error);
    if (status != STATUS_OK && store->taken) {
        error_init(&ignored);
        (void)!forget_seen(store, 0, &ignored);
    }
    return status;
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

/* A rewind that the node has taken since makes void what was seen before it. */
static enum status follow_log(struct store *store, uint8_t *data, struct error *error)
{
    struct board *board = store->board;
    int64_t rewound = 0;
    int64_t cursor = 0;
    enum status status = STATUS_OK;

    TRY(read_owner(store, &board->account, error));
    TRY(store_number(store, &rewound, "rewound", error));
    TRY(store_number(store, &cursor, "cursor", error));
    if ((uint64_t)rewound != board->rewound) {
        TRY(forget_seen(store, (uint64_t)rewound, error));
    }
    while (status == STATUS_OK && (int64_t)board->read < cursor) {
        struct ledger_entry entry;

        status = event_log_next(&store->log, &entry, data, board->read, UINT64_MAX, NULL, error);
        if (status == STATUS_OK) {
            status = board_take(board, &entry, error);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status follow_whole(struct store *store, struct error *error)
{
    uint8_t *data = malloc(GAME_LOG_SIZE_MAX);
    enum status status = data == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "no memory to follow the ledger")
                             : database_run(&store->sql, error, "BEGIN", "");

    if (status == STATUS_OK) {
        store->taken = true;
        status = store_end(store, follow_log(store, data, error), error);
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
    status = open_event_log(store, error);
    if (status == STATUS_OK) {
        status = follow_whole(store, error);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
