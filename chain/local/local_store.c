/* local_store.c - see local_store.h. */
#include "chain/local/local_store.h"

#include <assert.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/game/fields.h"

#define FIELDS(fields) (fields), sizeof(fields) / sizeof((fields)[0])

enum {
    RECORD_SIZE_MAX = 40 * ABI_WORD_SIZE,
    RECORD_KEY_MAX = HASH32_SIZE + ADDRESS_SIZE,
};

enum record_kind {
    RECORD_JOB = 1,
    RECORD_SEGMENT = 2,
    RECORD_TALLY = 3,
    RECORD_ATTESTATION = 4,
    RECORD_CLAIM = 5,
    RECORD_SEAL = 6,
    RECORD_ACCOUNT = 7,
    RECORD_TRIAL = 8,
};

static const struct field job_fields[] = {
    {offsetof(struct local_job, solver), FIELD_ADDRESS, 0},
    {offsetof(struct local_job, phase), FIELD_U32, 0},
    {offsetof(struct local_job, generation), FIELD_U32, 0},
    {offsetof(struct local_job, committed), FIELD_U32, 0},
    {offsetof(struct local_job, due_s), FIELD_U64, 0},
    {offsetof(struct local_job, client), FIELD_ADDRESS, 0},
    {offsetof(struct local_job, finalized), FIELD_U32, 0},
    {offsetof(struct local_job, open_claims), FIELD_U32, 0},
    {offsetof(struct local_job, ended), FIELD_BOOL, 0},
    {offsetof(struct local_job, segments), FIELD_U32, 0},
    {offsetof(struct local_job, terms.job_id), FIELD_BYTES32, 0},
    {offsetof(struct local_job, terms.program_root), FIELD_BYTES32, 0},
    {offsetof(struct local_job, terms.data_root), FIELD_BYTES32, 0},
    {offsetof(struct local_job, terms.first_state_root), FIELD_BYTES32, 0},
    {offsetof(struct local_job, terms.salt), FIELD_U64, 0},
    {offsetof(struct local_job, terms.steps), FIELD_U64, 0},
    {offsetof(struct local_job, terms.segment_steps), FIELD_U32, 0},
    {offsetof(struct local_job, terms.segment_reward), FIELD_WEI, 0},
    {offsetof(struct local_job, terms.attest_fee), FIELD_WEI, 0},
    {offsetof(struct local_job, terms.stake), FIELD_WEI, 0},
    {offsetof(struct local_job, terms.claim_bond), FIELD_WEI, 0},
    {offsetof(struct local_job, terms.attest_bond), FIELD_WEI, 0},
    {offsetof(struct local_job, terms.attestors), FIELD_U32, 0},
    {offsetof(struct local_job, terms.coverage_ppm), FIELD_U32, 0},
    {offsetof(struct local_job, terms.segment_period_s), FIELD_U32, 0},
    {offsetof(struct local_job, terms.attest_period_s), FIELD_U32, 0},
    {offsetof(struct local_job, terms.reveal_period_s), FIELD_U32, 0},
    {offsetof(struct local_job, terms.claim_period_s), FIELD_U32, 0},
    {offsetof(struct local_job, terms.response_period_s), FIELD_U32, 0},
    {offsetof(struct local_job, terms.deadline_s), FIELD_U64, 0},
};

static const struct field tally_fields[] = {
    {offsetof(struct local_tally, round), FIELD_U32, 0},
    {offsetof(struct local_tally, attested), FIELD_U32, 0},
    {offsetof(struct local_tally, revealed), FIELD_U32, 0},
    {offsetof(struct local_tally, open_claims), FIELD_U32, 0},
    {offsetof(struct local_tally, start_s), FIELD_U64, 0},
    {offsetof(struct local_tally, mandatory), FIELD_BOOL, 0},
    {offsetof(struct local_tally, seed), FIELD_BYTES32, 0},
};

static const struct field attestation_fields[] = {
    {offsetof(struct local_attestation, phase), FIELD_U32, 0},
    {offsetof(struct local_attestation, round), FIELD_U32, 0},
    {offsetof(struct local_attestation, value), FIELD_BYTES32, 0},
};

static const struct field claim_fields[] = {
    {offsetof(struct local_claim, claimant), FIELD_ADDRESS, 0},
    {offsetof(struct local_claim, phase), FIELD_U32, 0},
    {offsetof(struct local_claim, turn), FIELD_U32, 0},
    {offsetof(struct local_claim, generation), FIELD_U32, 0},
    {offsetof(struct local_claim, deadline_s), FIELD_U64, 0},
    {offsetof(struct local_claim, turns), FIELD_U32, 0},
    {offsetof(struct local_claim, job), FIELD_BYTES32, 0},
    {offsetof(struct local_claim, segment), FIELD_BYTES32, 0},
    {offsetof(struct local_claim, attestor), FIELD_ADDRESS, 0},
    {offsetof(struct local_claim, trace_root), FIELD_BYTES32, 0},
};

static const struct field trial_fields[] = {
    {offsetof(struct local_trial, said), FIELD_BYTES32, 0},
};

static const struct field account_fields[] = {
    {offsetof(struct local_account, purse), FIELD_WEI, 0},
    {offsetof(struct local_account, owed), FIELD_WEI, 0},
};

static const struct field hash_fields[] = {{0, FIELD_BYTES32, 0}};
static const struct field height_fields[] = {{0, FIELD_U64, 0}};

enum status local_store_open(struct local_store *store, struct database *sql, struct error *error)
{
    *store = (struct local_store){.sql = sql, .error = error};
    return database_execute(
        sql,
        "CREATE TABLE IF NOT EXISTS records (kind INTEGER NOT NULL, key BLOB NOT NULL,"
        " value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID",
        error);
}

struct record_key {
    enum record_kind kind;
    uint8_t bytes[RECORD_KEY_MAX];
    size_t size;
};

static struct record_key key_of(enum record_kind kind, const void *bytes, size_t size)
{
    struct record_key key = {.kind = kind, .size = size};

    memcpy(key.bytes, bytes, size);
    return key;
}

static struct record_key key_of_pair(enum record_kind kind, const struct hash32 *first,
                                     const void *second, size_t second_size)
{
    struct record_key key = key_of(kind, first->bytes, HASH32_SIZE);

    assert(second_size <= RECORD_KEY_MAX - HASH32_SIZE);
    memcpy(key.bytes + HASH32_SIZE, second, second_size);
    key.size += second_size;
    return key;
}

/* Fills record, which the caller has zeroed, when there is one. */
static enum status get(struct local_store *store, void *record, const struct record_key *key,
                       const struct field *fields, size_t field_count)
{
    const struct database_blob key_blob = {key->bytes, key->size};
    struct abi_reader reader;
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY_OUT(database_first(&row, store->sql, store->error,
                           "SELECT value FROM records WHERE kind = ? AND key = ?", "ib",
                           (int64_t)key->kind, &key_blob));
    abi_reader_init(&reader, sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
    status = fields_decode(&reader, record, fields, field_count);
    if (status != STATUS_OK || reader.at != reader.size) {
        status = error_set(store->error, STATUS_BAD_FORMAT, "the ledger's file is damaged");
    }
out:
    database_done(store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status put(struct local_store *store, const void *record, const struct record_key *key,
                       const struct field *fields, size_t field_count)
{
    const struct database_blob key_blob = {key->bytes, key->size};
    uint8_t bytes[RECORD_SIZE_MAX];
    struct database_blob value = {.bytes = bytes};
    struct abi_writer writer;

    abi_writer_init(&writer, bytes, sizeof(bytes));
    fields_encode(&writer, record, fields, field_count);
    assert(!writer.overflowed);
    value.size = writer.used;
    return database_run(store->sql, store->error, "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
                        "ibb", (int64_t)key->kind, &key_blob, &value);
}

enum status local_get_job(struct local_store *store, struct local_job *job,
                          const struct hash32 *key)
{
    struct record_key record = key_of(RECORD_JOB, key->bytes, HASH32_SIZE);

    memset(job, 0, sizeof(*job));
    return get(store, job, &record, FIELDS(job_fields));
}

enum status local_put_job(struct local_store *store, const struct local_job *job,
                          const struct hash32 *key)
{
    struct record_key record = key_of(RECORD_JOB, key->bytes, HASH32_SIZE);

    return put(store, job, &record, FIELDS(job_fields));
}

enum status local_get_tally(struct local_store *store, struct local_tally *tally,
                            const struct hash32 *segment)
{
    struct record_key record = key_of(RECORD_TALLY, segment->bytes, HASH32_SIZE);

    memset(tally, 0, sizeof(*tally));
    return get(store, tally, &record, FIELDS(tally_fields));
}

enum status local_put_tally(struct local_store *store, const struct local_tally *tally,
                            const struct hash32 *segment)
{
    struct record_key record = key_of(RECORD_TALLY, segment->bytes, HASH32_SIZE);

    return put(store, tally, &record, FIELDS(tally_fields));
}

enum status local_get_attestation(struct local_store *store, struct local_attestation *attestation,
                                  const struct hash32 *segment, const struct address *attestor)
{
    struct record_key record =
        key_of_pair(RECORD_ATTESTATION, segment, attestor->bytes, ADDRESS_SIZE);

    memset(attestation, 0, sizeof(*attestation));
    return get(store, attestation, &record, FIELDS(attestation_fields));
}

enum status local_put_attestation(struct local_store *store,
                                  const struct local_attestation *attestation,
                                  const struct hash32 *segment, const struct address *attestor)
{
    struct record_key record =
        key_of_pair(RECORD_ATTESTATION, segment, attestor->bytes, ADDRESS_SIZE);

    return put(store, attestation, &record, FIELDS(attestation_fields));
}

enum status local_get_claim(struct local_store *store, struct local_claim *claim,
                            const struct hash32 *key)
{
    struct record_key record = key_of(RECORD_CLAIM, key->bytes, HASH32_SIZE);

    memset(claim, 0, sizeof(*claim));
    return get(store, claim, &record, FIELDS(claim_fields));
}

enum status local_put_claim(struct local_store *store, const struct local_claim *claim,
                            const struct hash32 *key)
{
    struct record_key record = key_of(RECORD_CLAIM, key->bytes, HASH32_SIZE);

    return put(store, claim, &record, FIELDS(claim_fields));
}

enum status local_get_trial(struct local_store *store, struct local_trial *trial,
                            const struct hash32 *claim)
{
    struct record_key record = key_of(RECORD_TRIAL, claim->bytes, HASH32_SIZE);

    memset(trial, 0, sizeof(*trial));
    return get(store, trial, &record, FIELDS(trial_fields));
}

enum status local_put_trial(struct local_store *store, const struct local_trial *trial,
                            const struct hash32 *claim)
{
    struct record_key record = key_of(RECORD_TRIAL, claim->bytes, HASH32_SIZE);

    return put(store, trial, &record, FIELDS(trial_fields));
}

enum status local_get_account(struct local_store *store, struct local_account *account,
                              const struct address *address)
{
    struct record_key record = key_of(RECORD_ACCOUNT, address->bytes, ADDRESS_SIZE);

    memset(account, 0, sizeof(*account));
    return get(store, account, &record, FIELDS(account_fields));
}

enum status local_put_account(struct local_store *store, const struct local_account *account,
                              const struct address *address)
{
    struct record_key record = key_of(RECORD_ACCOUNT, address->bytes, ADDRESS_SIZE);

    return put(store, account, &record, FIELDS(account_fields));
}

static struct record_key segment_key(const struct hash32 *job, uint32_t index)
{
    const uint8_t bytes[4] = {(uint8_t)(index >> 24), (uint8_t)(index >> 16), (uint8_t)(index >> 8),
                              (uint8_t)index};

    return key_of_pair(RECORD_SEGMENT, job, bytes, sizeof(bytes));
}

enum status local_get_segment(struct local_store *store, struct hash32 *hash,
                              const struct hash32 *job, uint32_t index)
{
    struct record_key record = segment_key(job, index);

    memset(hash, 0, sizeof(*hash));
    return get(store, hash, &record, FIELDS(hash_fields));
}

enum status local_put_segment(struct local_store *store, const struct hash32 *hash,
                              const struct hash32 *job, uint32_t index)
{
    struct record_key record = segment_key(job, index);

    return put(store, hash, &record, FIELDS(hash_fields));
}

enum status local_get_seal(struct local_store *store, uint64_t *height, const struct hash32 *seal)
{
    struct record_key record = key_of(RECORD_SEAL, seal->bytes, HASH32_SIZE);

    *height = 0;
    return get(store, height, &record, FIELDS(height_fields));
}

enum status local_put_seal(struct local_store *store, uint64_t height, const struct hash32 *seal)
{
    struct record_key record = key_of(RECORD_SEAL, seal->bytes, HASH32_SIZE);

    return put(store, &height, &record, FIELDS(height_fields));
}
