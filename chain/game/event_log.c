/* event_log.c - see event_log.h. */
#include "chain/game/event_log.h"

#include <string.h>

static enum status read_block(struct database *sql, sqlite3_stmt *row,
                              struct event_log_block *block, struct error *error)
{
    enum status status;

    if (row == NULL) {
        return error->status;
    }
    status = database_step(sql, row, error);
    if (status == STATUS_OK) {
        block->height = (uint64_t)sqlite3_column_int64(row, 0);
        block->time_s = (uint64_t)sqlite3_column_int64(row, 2);
        if (!database_blob_column(row, 1, block->hash.bytes, HASH32_SIZE)) {
            status = error_set(error, STATUS_BAD_FORMAT, "the event log is damaged");
        }
    }
    database_done(sql, row);
    return status;
}

enum status event_log_top(struct database *sql, struct event_log_block *block, struct error *error)
{
    return read_block(sql,
                      database_query(sql, error,
                                     "SELECT height, hash, time_s FROM blocks ORDER BY height DESC"
                                     " LIMIT 1",
                                     ""),
                      block, error);
}

enum status event_log_block_at(struct database *sql, struct event_log_block *block, uint64_t height,
                               struct error *error)
{
    return read_block(sql,
                      database_query(sql, error,
                                     "SELECT height, hash, time_s FROM blocks WHERE height = ?",
                                     "i", (int64_t)height),
                      block, error);
}

enum status event_log_add_block(struct database *sql, const struct event_log_block *block,
                                struct error *error)
{
    return database_run(
        sql, error, "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?)", "ibi", (int64_t)block->height,
        &(struct database_blob){block->hash.bytes, HASH32_SIZE}, (int64_t)block->time_s);
}

enum status event_log_add_log(struct database *sql, const struct event_log_block *block,
                              uint32_t place, const struct game_log *log, struct error *error)
{
    if (!hash32_is_zero(&log->transaction)) {
        TRY(database_run(sql, error, "INSERT OR REPLACE INTO event_transactions VALUES (?, ?, ?)",
                         "bib", &(struct database_blob){block->hash.bytes, HASH32_SIZE},
                         (int64_t)place,
                         &(struct database_blob){log->transaction.bytes, HASH32_SIZE}));
    }
    return database_run(
        sql, error,
        "INSERT INTO event_log (kind, height, block, time_s, place, topics, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        "iibiibb", (int64_t)LEDGER_EVENT, (int64_t)block->height,
        &(struct database_blob){block->hash.bytes, HASH32_SIZE}, (int64_t)block->time_s,
        (int64_t)place,
        &(struct database_blob){log->topics, log->topic_count * sizeof(log->topics[0])},
        &(struct database_blob){log->data.bytes, log->data.size});
}

enum status event_log_rewind(struct database *sql, uint64_t height, struct error *error)
{
    const struct hash32 nothing = {{0}};
    int64_t reply = 0;

    TRY(database_number(
        sql, &reply, 0, error,
        "SELECT count(*) FROM event_log JOIN blocks ON event_log.block = blocks.hash"
        " WHERE blocks.height > ?",
        "i", (int64_t)height));
    TRY(database_run(sql, error, "DELETE FROM blocks WHERE height > ?", "i", (int64_t)height));
    if (reply > 0) {
        TRY(database_run(sql, error,
                         "INSERT INTO event_log (kind, height, block, time_s, place, topics, data)"
                         " VALUES (?, ?, ?, 0, 0, x'', x'')",
                         "iib", (int64_t)LEDGER_REWIND, (int64_t)height,
                         &(struct database_blob){nothing.bytes, HASH32_SIZE}));
    }
    return STATUS_OK;
}

/* The log's data lie in the row. */
static enum status read_log(struct game_log *log, sqlite3_stmt *row, int topics, int data,
                            struct error *error)
{
    size_t topics_size = (size_t)sqlite3_column_bytes(row, topics);

    memset(log, 0, sizeof(*log));
    log->topic_count = (uint32_t)(topics_size / HASH32_SIZE);
    log->data.bytes = sqlite3_column_blob(row, data);
    log->data.size = (size_t)sqlite3_column_bytes(row, data);
    if (topics_size > sizeof(log->topics) || log->data.size > GAME_LOG_SIZE_MAX ||
        !database_blob_column(row, topics, log->topics, topics_size)) {
        return error_set(error, STATUS_BAD_FORMAT, "the event log is damaged");
    }
    return STATUS_OK;
}

static void hash_log(struct keccak *keccak, const struct game_log *log, uint32_t place)
{
    keccak_add(keccak, &place, sizeof(place));
    keccak_add(keccak, &log->topic_count, sizeof(log->topic_count));
    keccak_add(keccak, log->topics, log->topic_count * sizeof(log->topics[0]));
    keccak_add(keccak, &log->data.size, sizeof(log->data.size));
    keccak_add(keccak, log->data.bytes, log->data.size);
}

struct hash32 event_log_hash_of(const struct game_log *logs, const uint32_t *places, size_t count)
{
    struct keccak keccak;

    keccak_init(&keccak);
    for (size_t i = 0; i < count; i++) {
        hash_log(&keccak, &logs[i], places[i]);
    }
    return keccak_end(&keccak);
}

enum status event_log_logs_hash(struct database *sql, struct hash32 *hash,
                                const struct event_log_block *block, struct error *error)
{
    /* After a rewind a block can come a second time: its newest entries count. */
    sqlite3_stmt *rows = database_query(
        sql, error,
        "SELECT place, topics, data FROM event_log WHERE block = ? AND number >"
        " (SELECT coalesce(max(number), 0) FROM event_log WHERE kind = ? AND height < ?)"
        " ORDER BY number",
        "bii", &(struct database_blob){block->hash.bytes, HASH32_SIZE}, (int64_t)LEDGER_REWIND,
        (int64_t)block->height);
    enum status status = rows == NULL ? error->status : STATUS_OK;
    struct keccak keccak;

    keccak_init(&keccak);
    while (status == STATUS_OK) {
        struct game_log log;

        status = database_step(sql, rows, error);
        if (status == STATUS_OK) {
            status = read_log(&log, rows, 1, 2, error);
        }
        if (status == STATUS_OK) {
            hash_log(&keccak, &log, (uint32_t)sqlite3_column_int64(rows, 0));
        }
    }
    database_done(sql, rows);
    *hash = keccak_end(&keccak);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status read_entry(struct ledger_entry *entry, sqlite3_stmt *row,
                              uint8_t data[GAME_LOG_SIZE_MAX], struct error *error)
{
    struct game_log log;

    memset(entry, 0, sizeof(*entry));
    entry->number = (uint64_t)sqlite3_column_int64(row, 0);
    entry->kind = (enum ledger_entry_kind)sqlite3_column_int(row, 1);
    entry->height = (uint64_t)sqlite3_column_int64(row, 2);
    entry->time_s = (uint64_t)sqlite3_column_int64(row, 3);
    if (entry->kind == LEDGER_REWIND) {
        return STATUS_OK;
    }
    if (!database_blob_column(row, 6, entry->transaction.bytes, HASH32_SIZE)) {
        entry->transaction = (struct hash32){{0}};
    }
    TRY(read_log(&log, row, 4, 5, error));
    if (log.data.size > 0) {
        memcpy(data, log.data.bytes, log.data.size); /* the row's bytes go with the row */
    }
    log.data.bytes = data;
    return game_event_decode(&entry->event, &log);
}

#define ENTRY                                                                                      \
    "SELECT number, kind, height, time_s, topics, data, (SELECT hash FROM event_transactions AS"   \
    " made WHERE made.block = entry.block AND made.place = entry.place) FROM event_log AS entry"   \
    " WHERE "
#define STANDS                                                                                     \
    "(EXISTS (SELECT 1 FROM blocks WHERE blocks.height = entry.height AND hash = entry.block) AND" \
    " NOT EXISTS (SELECT 1 FROM event_log WHERE number > entry.number AND kind = ? AND height <"   \
    " entry.height)) "

enum status event_log_next(struct database *sql, struct ledger_entry *entry,
                           uint8_t data[GAME_LOG_SIZE_MAX], uint64_t after, uint64_t height_most,
                           const struct hash32 *topic, struct error *error)
{
    const struct database_blob wanted = {topic, HASH32_SIZE};
    sqlite3_stmt *rows =
        topic == NULL
            ? database_query(sql, error,
                             ENTRY "number > ? AND (kind = ? OR " STANDS ") ORDER BY number", "iii",
                             (int64_t)after, (int64_t)LEDGER_REWIND, (int64_t)LEDGER_REWIND)
            : database_query(sql, error,
                             ENTRY "substr(topics, 1, 32) = ? AND number > ? AND " STANDS
                                   "ORDER BY number",
                             "bii", &wanted, (int64_t)after, (int64_t)LEDGER_REWIND);
    enum status status = rows == NULL ? error->status : STATUS_BAD_FORMAT;

    /* A log that does not decode, with numbers out of range, is skipped: nobody could take part in
     * such a job. */
    while (status == STATUS_BAD_FORMAT) {
        status = database_step(sql, rows, error);
        if (status == STATUS_OK) {
            status = read_entry(entry, rows, data, error);
            status = status == STATUS_NOT_FOUND ? STATUS_BAD_FORMAT : status;
        }
    }
    database_done(sql, rows);
    if (status == STATUS_OK && entry->kind == LEDGER_EVENT && entry->height > height_most) {
        return STATUS_NOT_FOUND;
    }
    return status;
}
