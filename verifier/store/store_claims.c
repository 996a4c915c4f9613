/* store_claims.c - what was claimed before, and how finding the next move goes: see store.h. */
#include <string.h>

#include "verifier/store/store.h"

enum status store_outsiders(struct store *store, uint32_t *count, const struct hash32 *job,
                            struct error *error)
{
    const struct job_record *record = board_find(store->board, job);

    (void)error;
    *count = record == NULL ? 0 : job_record_outsiders(record);
    return STATUS_OK;
}

enum status store_is_disputed(struct store *store, bool *disputed, bool *mine,
                              const struct hash32 *subject, struct error *error)
{
    const struct database_blob key = {subject->bytes, HASH32_SIZE};
    int64_t found = 0;
    int64_t ours = 0;

    TRY(database_number(&store->sql, &found, 0, error,
                        "SELECT count(*) FROM disputes WHERE subject = ? AND"
                        " (phase <> :claim_closed OR outcome = :upheld)",
                        "b", &key));
    TRY(database_number(&store->sql, &ours, 0, error,
                        "SELECT count(*) FROM disputes WHERE subject = ? AND (ours OR lost)", "b",
                        &key));
    *disputed = found > 0;
    *mine = ours > 0;
    return STATUS_OK;
}

/* ---- retries ------------------------------------------------------------------ */

enum status store_retry(struct store *store, struct store_retry *retry, const struct hash32 *claim,
                        struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT tries, next_ms FROM retries WHERE claim = ?", "b",
                                        &(struct database_blob){claim->bytes, HASH32_SIZE});

    memset(retry, 0, sizeof(*retry));
    if (status == STATUS_OK) {
        retry->tries = (uint32_t)sqlite3_column_int64(row, 0);
        retry->next_ms = (uint64_t)sqlite3_column_int64(row, 1);
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status store_set_retry(struct store *store, const struct hash32 *claim,
                            const struct store_retry *retry, const char *trouble,
                            struct error *error)
{
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO retries VALUES (?, ?, ?, ?)",
                        "biit", &(struct database_blob){claim->bytes, HASH32_SIZE},
                        (int64_t)retry->tries, (int64_t)retry->next_ms, trouble);
}

enum status store_end_retry(struct store *store, const struct hash32 *claim, struct error *error)
{
    return database_run(&store->sql, error, "DELETE FROM retries WHERE claim = ?", "b",
                        &(struct database_blob){claim->bytes, HASH32_SIZE});
}
