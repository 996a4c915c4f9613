/*
 * event_log.h - the events of a ledger in the order in which they became known, in sqlite3.
 *
 * Entries are only added, never changed. A reorganization adds a rewind, so a reader that keeps the
 * number of its last entry learns what is void.
 */
#ifndef CHAIN_GAME_EVENT_LOG_H
#define CHAIN_GAME_EVENT_LOG_H

#include "base/io/database.h"
#include "chain/game/ledger.h"

/* Part of the schema of the file that holds the event log. */
#define EVENT_LOG_SCHEMA                                                                           \
    "CREATE TABLE IF NOT EXISTS blocks (height INTEGER PRIMARY KEY, hash BLOB NOT NULL,"           \
    " time_s INTEGER NOT NULL);"                                                                   \
    "CREATE TABLE IF NOT EXISTS event_log (number INTEGER PRIMARY KEY AUTOINCREMENT,"              \
    " kind INTEGER NOT NULL, height INTEGER NOT NULL, block BLOB NOT NULL,"                        \
    " time_s INTEGER NOT NULL, place INTEGER NOT NULL, topics BLOB NOT NULL,"                      \
    " data BLOB NOT NULL);"                                                                        \
    "CREATE TABLE IF NOT EXISTS event_transactions (block BLOB NOT NULL, place INTEGER NOT NULL,"  \
    " hash BLOB NOT NULL, PRIMARY KEY (block, place));"                                            \
    "CREATE INDEX IF NOT EXISTS event_log_by_kind ON event_log (kind, number);"                    \
    "CREATE INDEX IF NOT EXISTS event_log_by_block ON event_log (block, number);"

/* Events of one kind are found without a look at others; an embedded ledger does without. */
#define EVENT_LOG_TOPICS                                                                           \
    "CREATE INDEX IF NOT EXISTS event_log_by_topic ON event_log (substr(topics, 1, 32), number);"

struct event_log_block {
    uint64_t height;
    struct hash32 hash;
    uint64_t time_s;
};

/* The highest block; STATUS_NOT_FOUND when there is none. */
MUST_CHECK enum status event_log_top(struct database *sql, struct event_log_block *block,
                                     struct error *error);
MUST_CHECK enum status event_log_block_at(struct database *sql, struct event_log_block *block,
                                          uint64_t height, struct error *error);
MUST_CHECK enum status
event_log_add_block(struct database *sql, const struct event_log_block *block, struct error *error);
MUST_CHECK enum status event_log_add_log(struct database *sql, const struct event_log_block *block,
                                         uint32_t place, const struct game_log *log,
                                         struct error *error);

/* Forgets the blocks above height. Adds a rewind if they had entries. */
MUST_CHECK enum status event_log_rewind(struct database *sql, uint64_t height, struct error *error);

/* A hash over the logs of a block, as event_log_add_log got them. */
MUST_CHECK enum status event_log_logs_hash(struct database *sql, struct hash32 *hash,
                                           const struct event_log_block *block,
                                           struct error *error);
struct hash32 event_log_hash_of(const struct game_log *logs, const uint32_t *places, size_t count);

/* See ledger_next() and, with a topic, ledger_next_of(). What the entry's event borrows lies in
 * data. */
MUST_CHECK enum status event_log_next(struct database *sql, struct ledger_entry *entry,
                                      uint8_t data[GAME_LOG_SIZE_MAX], uint64_t after,
                                      uint64_t height_most, const struct hash32 *topic,
                                      struct error *error);

#endif /* CHAIN_GAME_EVENT_LOG_H */
