/* promised.c - see promised.h. */
#include "tests/support/game/promised.h"

#include <string.h>

#include "tests/support/test.h"

static wei promised_by_job(struct local_store *store, const struct hash32 *key)
{
    struct local_job job;
    wei sum = 0;

    assert_int_equal(local_get_job(store, &job, key), STATUS_OK);
    if (job.phase == GAME_PHASE_RUNNING) {
        sum += job.terms.stake;
    }
    if (job.phase == GAME_PHASE_RUNNING || job.phase == GAME_PHASE_OPEN) {
        sum += (job.segments - job.finalized) *
               (job.terms.segment_reward + (wei)job.terms.attestors * job.terms.attest_fee);
    }
    return sum;
}

static wei promised_by_claim(struct local_store *store, const struct hash32 *key)
{
    struct local_claim claim;
    struct local_job job;

    assert_int_equal(local_get_claim(store, &claim, key), STATUS_OK);
    assert_int_equal(local_get_job(store, &job, &claim.job), STATUS_OK);
    return claim.phase == GAME_CLAIM_CALLED || claim.phase == GAME_CLAIM_TRIED
               ? job.terms.claim_bond
               : 0;
}

/* The bond; and the fee, where the segment is final. Which job and index a segment's hash belongs
 * to, the test remembers from its event. */
static wei promised_by_attestation(struct local_store *store,
                                   const struct promised_segment *segments, uint32_t count,
                                   const struct hash32 *segment, const struct address *attestor)
{
    struct local_attestation attestation;

    assert_int_equal(local_get_attestation(store, &attestation, segment, attestor), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        struct hash32 standing;
        struct local_job job;

        if (!hash32_equal(&segments[i].segment, segment)) {
            continue;
        }
        assert_int_equal(local_get_job(store, &job, &segments[i].job), STATUS_OK);
        assert_int_equal(local_get_segment(store, &standing, &segments[i].job, segments[i].index),
                         STATUS_OK);
        if (attestation.phase == GAME_ATTESTATION_CLOSED) {
            return 0;
        }
        return job.terms.attest_bond + (attestation.phase == GAME_ATTESTATION_REVEALED &&
                                                segments[i].index < job.finalized &&
                                                hash32_equal(&standing, segment)
                                            ? job.terms.attest_fee
                                            : 0);
    }
    fail_msg("an attestation of a segment that nobody committed");
    return 0;
}

wei promised_money(struct local_store *store, const struct promised_segment *segments,
                   uint32_t count)
{
    sqlite3_stmt *rows = NULL;
    wei sum = 0;

    assert_int_equal(database_prepare(&rows, store->sql, store->error,
                                      "SELECT kind, key FROM records WHERE kind IN (1, 4, 5)", ""),
                     STATUS_OK);
    while (database_step(store->sql, rows, store->error) == STATUS_OK) {
        int kind = sqlite3_column_int(rows, 0);
        struct hash32 key;

        memcpy(key.bytes, sqlite3_column_blob(rows, 1), HASH32_SIZE);
        if (kind == 1) {
            sum += promised_by_job(store, &key);
        } else if (kind == 5) {
            sum += promised_by_claim(store, &key);
        } else {
            struct address attestor;

            memcpy(attestor.bytes, (const uint8_t *)sqlite3_column_blob(rows, 1) + HASH32_SIZE,
                   ADDRESS_SIZE);
            sum += promised_by_attestation(store, segments, count, &key, &attestor);
        }
    }
    database_done(store->sql, rows);
    return sum;
}
