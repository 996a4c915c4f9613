/* promised.c - see promised.h. */
#include "tests/support/game/promised.h"

#include <string.h>

#include "base/endian.h"
#include "tests/support/test.h"

/* Of the last job that an entry was of: entries of one job stand together. */
struct known_bond {
    struct hash32 job;
    wei bond;
};

static wei promised_by_job(const struct local_job *job)
{
    wei sum = job->pool;

    if (job->phase == GAME_PHASE_RUNNING) {
        sum += job->terms.stake;
    }
    if (job->phase == GAME_PHASE_RUNNING || job->phase == GAME_PHASE_OPEN) {
        sum += (job->segments - job->finalized) * job->terms.reward - job->missing_escrow;
    }
    return sum;
}

static wei promised_by_entry(struct local_store *store, const struct hash32 *key,
                             const struct local_entry *entry, struct known_bond *known)
{
    struct local_job job;

    if (!hash32_equal(&known->job, key)) {
        assert_int_equal(local_get(store, &job, LOCAL_JOB, key, 0), STATUS_OK);
        *known = (struct known_bond){.job = *key, .bond = job.terms.bond};
    }
    return entry->gone || address_is_zero(&entry->owner) ? 0 : known->bond;
}

/* The bonds of the claimants that are left, and the fee of a query that waits for its reply. */
static wei promised_by_dispute(struct local_store *store, const struct hash32 *key,
                               const struct local_dispute *dispute)
{
    wei sum = dispute->phase == GAME_CLAIM_TRIED && dispute->turn == GAME_TURN_ACCUSED
                  ? dispute->query_fee
                  : 0;

    for (uint32_t i = dispute->first; i < dispute->count; i++) {
        struct local_claimant claimant;

        assert_int_equal(local_get(store, &claimant, LOCAL_CLAIMANT, key, i), STATUS_OK);
        sum += claimant.bond;
    }
    return dispute->phase == GAME_CLAIM_CLOSED ? 0 : sum;
}

static wei promised_by(struct local_store *store, enum local_kind kind, const struct hash32 *key,
                       uint64_t number, struct known_bond *known)
{
    union {
        struct local_job job;
        struct local_entry entry;
        struct local_dispute dispute;
        struct local_docket docket;
        wei burned;
    } record;

    assert_int_equal(local_get(store, &record, kind, key, number), STATUS_OK);
    switch ((int)kind) {
    case LOCAL_JOB:
        return promised_by_job(&record.job);
    case LOCAL_ENTRY:
        return promised_by_entry(store, key, &record.entry, known);
    case LOCAL_DISPUTE:
        return promised_by_dispute(store, key, &record.dispute);
    case LOCAL_DOCKET:
        return record.docket.pot;
    default:
        return record.burned;
    }
}

wei promised_money(struct local_store *store)
{
    struct known_bond known = {.bond = 0};
    sqlite3_stmt *rows = NULL;
    wei sum = 0;

    assert_int_equal(database_prepare(&rows, store->sql, store->error,
                                      "SELECT kind, key FROM records WHERE kind IN (?, ?, ?, ?, ?)",
                                      "iiiii", (int64_t)LOCAL_JOB, (int64_t)LOCAL_ENTRY,
                                      (int64_t)LOCAL_DISPUTE, (int64_t)LOCAL_DOCKET,
                                      (int64_t)LOCAL_BURNED),
                     STATUS_OK);
    while (database_step(store->sql, rows, store->error) == STATUS_OK) {
        const uint8_t *bytes = sqlite3_column_blob(rows, 1);
        struct hash32 key;

        memcpy(key.bytes, bytes, HASH32_SIZE);
        sum += promised_by(store, (enum local_kind)sqlite3_column_int(rows, 0), &key,
                           endian_load_be64(bytes + HASH32_SIZE), &known);
    }
    database_done(store->sql, rows);
    return sum;
}
