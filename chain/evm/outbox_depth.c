/* outbox_depth.c - see outbox_depth.h. */
#include "chain/evm/outbox_depth.h"

#include "chain/evm/evm.h"

/* The block of the newest transaction that counts as final. STATUS_NOT_FOUND: there is none. */
static enum status newest_final(struct database *sql, uint64_t *height, struct hash32 *block,
                                struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status;

    status =
        database_first(&row, sql, error,
                       "SELECT height, block FROM intents WHERE state = ? AND block IS NOT NULL"
                       " ORDER BY height DESC LIMIT 1",
                       "i", (int64_t)OUTBOX_FINAL);
    if (status == STATUS_OK) {
        *height = (uint64_t)sqlite3_column_int64(row, 0);
        if (!database_blob_column(row, 1, block->bytes, HASH32_SIZE)) {
            status = error_set(error, STATUS_BAD_FORMAT, "the outbox's file is damaged");
        }
    }
    database_done(sql, row);
    return status;
}

static enum status reopen_from(struct database *sql, uint64_t height, uint64_t *count,
                               struct error *error)
{
    int64_t more = 0;
    enum status status;

    TRY(database_begin(sql, error));
    TRY_OUT(database_number(sql, &more, 0, error,
                            "SELECT count(*) FROM intents WHERE state = ? AND height >= ?", "ii",
                            (int64_t)OUTBOX_FINAL, (int64_t)height));
    TRY_OUT(database_run(sql, error,
                         "UPDATE intents SET state = ?, trouble = 'a reorganization deeper than the"
                         " depth took its block back' WHERE state = ? AND height >= ?",
                         "iii", (int64_t)OUTBOX_MINED, (int64_t)OUTBOX_FINAL, (int64_t)height));
    TRY_OUT(database_run(sql, error,
                         "INSERT INTO meta VALUES ('reopened', ?) ON CONFLICT (name) DO UPDATE"
                         " SET value = value + excluded.value",
                         "i", more));
out:
    status = database_end(sql, status, error);
    *count += status == STATUS_OK ? (uint64_t)more : 0;
    return status;
}

enum status outbox_depth_reopen(struct database *sql, struct rpc *rpc, uint64_t *count,
                                struct error *error)
{
    *count = 0;
    for (;;) {
        struct evm_block now;
        struct hash32 block;
        struct error trouble;
        uint64_t height = 0;
        enum status status = newest_final(sql, &height, &block, error);

        if (status != STATUS_OK) {
            return status == STATUS_NOT_FOUND ? STATUS_OK : status;
        }
        error_init(&trouble);
        status = evm_block_at(rpc, &now, height, &trouble);
        if ((status != STATUS_OK && status != STATUS_NOT_FOUND) ||
            (status == STATUS_OK && hash32_equal(&now.hash, &block))) {
            return STATUS_OK;
        }
        TRY(reopen_from(sql, height, count, error));
    }
}

enum status outbox_depth_count(struct database *sql, uint64_t *count, struct error *error)
{
    int64_t number = 0;

    TRY(database_number(sql, &number, 0, error, "SELECT value FROM meta WHERE name = 'reopened'",
                        ""));
    *count = (uint64_t)number;
    return STATUS_OK;
}

static enum status has_nonce(struct database *sql, bool *found, uint64_t nonce, struct error *error)
{
    int64_t count = 0;

    TRY(database_number(sql, &count, 0, error,
                        "SELECT count(*) FROM intents WHERE nonce = ? AND state IN (?, ?, ?)",
                        "iiii", (int64_t)nonce, (int64_t)OUTBOX_SENT, (int64_t)OUTBOX_MINED,
                        (int64_t)OUTBOX_FINAL));
    *found = count > 0;
    return STATUS_OK;
}

enum status outbox_depth_nonce(struct database *sql, uint64_t *nonce, uint64_t account_nonce,
                               struct error *error)
{
    bool taken = true;

    for (*nonce = account_nonce; taken; *nonce += taken) {
        TRY(has_nonce(sql, &taken, *nonce, error));
    }
    return STATUS_OK;
}

enum status outbox_depth_gap(struct database *sql, struct rpc *rpc, bool *gap,
                             uint64_t account_nonce, const struct address *account,
                             struct error *error)
{
    uint64_t pending_nonce;
    struct error unknown;
    int64_t behind = 0;
    bool taken;

    *gap = false;
    TRY(has_nonce(sql, &taken, account_nonce, error));
    TRY(database_number(sql, &behind, 0, error,
                        "SELECT count(*) FROM intents WHERE nonce > ? AND state = ?", "ii",
                        (int64_t)account_nonce, (int64_t)OUTBOX_SENT));
    if (taken || behind == 0) {
        return STATUS_OK;
    }
    /* A wallet with the same key may have something there. */
    error_init(&unknown);
    *gap = evm_pending_nonce(rpc, &pending_nonce, account, &unknown) == STATUS_OK &&
           pending_nonce == account_nonce;
    return STATUS_OK;
}
