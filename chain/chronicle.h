/*
 * chronicle.h - the events of a ledger in the order in which they became known, in sqlite3.
 *
 * Entries are only ever added. A reorganization adds a rewind, so that a reader who kept nothing
 * but the number of its last entry learns what to take back. Nobody rewrites what was told.
 */
#ifndef CHAIN_CHRONICLE_H
#define CHAIN_CHRONICLE_H

#include "chain/ledger.h"
#include "chain/sql.h"

/* To be part of the schema of the file that holds the chronicle. */
#define CHRONICLE_SCHEMA                                                                           \
    "CREATE TABLE IF NOT EXISTS blocks (height INTEGER PRIMARY KEY, hash BLOB NOT NULL,"           \
    " time_s INTEGER NOT NULL);"                                                                   \
    "CREATE TABLE IF NOT EXISTS chronicle (number INTEGER PRIMARY KEY AUTOINCREMENT,"              \
    " kind INTEGER NOT NULL, height INTEGER NOT NULL, block BLOB NOT NULL,"                        \
    " time_s INTEGER NOT NULL, place INTEGER NOT NULL, topics BLOB NOT NULL,"                      \
    " data BLOB NOT NULL);"                                                                        \
    "CREATE INDEX IF NOT EXISTS chronicle_by_kind ON chronicle (kind, number);"                    \
    "CREATE INDEX IF NOT EXISTS chronicle_by_block ON chronicle (block, number);"

struct chronicle_block {
    uint64_t height;
    struct hash32 hash;
    uint64_t time_s;
};

/* The highest block; STATUS_NOT_FOUND when there is none. */
MUST_CHECK enum status chronicle_top(struct sql *sql, struct chronicle_block *block,
                                     struct error *error);
MUST_CHECK enum status chronicle_block_at(struct sql *sql, struct chronicle_block *block,
                                          uint64_t height, struct error *error);
MUST_CHECK enum status chronicle_add_block(struct sql *sql, const struct chronicle_block *block,
                                           struct error *error);
MUST_CHECK enum status chronicle_add_log(struct sql *sql, const struct chronicle_block *block,
                                         uint32_t place, const struct game_log *log,
                                         struct error *error);

/* Forgets the blocks above height, and tells so when anything was told of them. */
MUST_CHECK enum status chronicle_rewind(struct sql *sql, uint64_t height, struct error *error);

/* A hash over the logs that stand in a block, as chronicle_add_log was given them. */
MUST_CHECK enum status chronicle_logs_hash(struct sql *sql, struct hash32 *hash,
                                           const struct chronicle_block *block,
                                           struct error *error);
struct hash32 chronicle_hash_of(const struct game_log *logs, const uint32_t *places, size_t count);

/* See ledger_next(). What the entry's event borrows lies in payload. */
MUST_CHECK enum status chronicle_next(struct sql *sql, struct ledger_entry *entry,
                                      uint8_t payload[GAME_TOLD_MAX], uint64_t after,
                                      uint64_t height_most, struct error *error);

#endif /* CHAIN_CHRONICLE_H */
