/* local_store.c - see local_store.h. */
#include "chain/local/local_store.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "chain/codec/abi.h"
#include "chain/game/fields.h"
#include "chain/game/game_tables.h"

enum {
    EDITION = 7, /* of the game */
    RECORD_SIZE_MAX = 60 * ABI_WORD_SIZE,
    KEY_SIZE = HASH32_SIZE + 8,
};

#define JOB(member, type)      FIELD(local_job, member, type)
#define ENTRY(member, type)    FIELD(local_entry, member, type)
#define TALLY(member, type)    FIELD(local_tally, member, type)
#define ROUND(member, type)    FIELD(local_round, member, type)
#define DISPUTE(member, type)  FIELD(local_dispute, member, type)
#define CLAIMANT(member, type) FIELD(local_claimant, member, type)
#define DOCKET(member, type)   FIELD(local_docket, member, type)
#define ACCOUNT(member, type)  FIELD(local_account, member, type)

static const struct field job_rows[] = {
    JOB(solver, ADDRESS),
    JOB(phase, U32),
    JOB(generation, U32),
    JOB(committed, U32),
    JOB(drawn, U32),
    JOB(leg_start, U32),
    JOB(finalized, U32),
    JOB(due_s, U64),
    JOB(client, ADDRESS),
    JOB(segments, U32),
    JOB(open_claims, U32),
    JOB(entries, U32),
    JOB(ended, BOOL),
    JOB(barred, BOOL),
    JOB(opened_at_s, U64),
    JOB(refused_until_s, U64),
    JOB(pool, WEI),
    JOB(missing_escrow, WEI),
    JOB(missing_pool, WEI),
    {offsetof(struct local_job, terms), FIELD_TUPLE, 0, 0, &game_terms_fields},
};

static const struct field entry_rows[] = {ENTRY(owner, ADDRESS), ENTRY(gone, BOOL)};

static const struct field tally_rows[] = {
    TALLY(start_s, U64),  TALLY(leg_start, U32),  TALLY(panel, U32),    TALLY(round, U32),
    TALLY(first, U32),    TALLY(from, U32),       TALLY(to, U32),       TALLY(drawn, U32),
    TALLY(rights, U32),   TALLY(unseen, U32),     TALLY(covered, BOOL), TALLY(vouched, BOOL),
    TALLY(seed, BYTES32), TALLY(places, BYTES32),
};

static const struct field round_rows[] = {ROUND(height, U64), ROUND(time_s, U64),
                                          ROUND(seed, BYTES32), ROUND(from, U32)};

static const struct field account_rows[] = {ACCOUNT(purse, WEI), ACCOUNT(owed, WEI)};

static const struct field dispute_rows[] = {
    DISPUTE(solver, ADDRESS),     DISPUTE(phase, U32),       DISPUTE(turn, U32),
    DISPUTE(outcome, U32),        DISPUTE(generation, U32),  DISPUTE(since_s, U64),
    DISPUTE(diverged, BOOL),      DISPUTE(rank, U64),        DISPUTE(clock_s, U32),
    DISPUTE(solver_left_s, U32),  DISPUTE(lead_left_s, U32), DISPUTE(queries, U32),
    DISPUTE(first, U32),          DISPUTE(count, U32),       DISPUTE(query_fee, WEI),
    DISPUTE(job, BYTES32),        DISPUTE(segment, BYTES32), DISPUTE(subject, BYTES32),
    DISPUTE(trace_root, BYTES32), DISPUTE(said, BYTES32),    DISPUTE(batch_root, BYTES32),
};

static const struct field claimant_rows[] = {
    CLAIMANT(owner, ADDRESS),
    CLAIMANT(bond, WEI),
    CLAIMANT(seat, BOOL),
};

static const struct field docket_rows[] = {
    DOCKET(pot, WEI),    DOCKET(best, U64),      DOCKET(open, U32),        DOCKET(opened, U32),
    DOCKET(active, U32), DOCKET(outsiders, U32), DOCKET(convicted, BOOL),  DOCKET(winner, ADDRESS),
    DOCKET(alarm, U32),  DOCKET(other, U32),     DOCKET(alarm_count, U32), DOCKET(other_count, U32),
};
static const struct field hash_rows[] = {{0, FIELD_BYTES32, 0, 0, NULL}};
static const struct field amount_rows[] = {{0, FIELD_WEI, 0, 0, NULL}};
static const struct field u32_rows[] = {{0, FIELD_U32, 0, 0, NULL}};
static const struct field u64_rows[] = {{0, FIELD_U64, 0, 0, NULL}};

static const struct {
    size_t size;
    struct fields fields;
} kinds[LOCAL_KINDS] = {
    [LOCAL_JOB] = {sizeof(struct local_job), FIELDS(job_rows)},
    [LOCAL_SEGMENT] = {sizeof(struct hash32), FIELDS(hash_rows)},
    [LOCAL_ENTRY] = {sizeof(struct local_entry), FIELDS(entry_rows)},
    [LOCAL_TALLY] = {sizeof(struct local_tally), FIELDS(tally_rows)},
    [LOCAL_SEAT] = {sizeof(struct hash32), FIELDS(hash_rows)},
    [LOCAL_ACCOUNT] = {sizeof(struct local_account), FIELDS(account_rows)},
    [LOCAL_BURNED] = {sizeof(wei), FIELDS(amount_rows)},
    [LOCAL_SEAL] = {sizeof(uint64_t), FIELDS(u64_rows)},
    [LOCAL_DISPUTE] = {sizeof(struct local_dispute), FIELDS(dispute_rows)},
    [LOCAL_CLAIMANT] = {sizeof(struct local_claimant), FIELDS(claimant_rows)},
    [LOCAL_SUBJECT] = {sizeof(uint32_t), FIELDS(u32_rows)},
    [LOCAL_DOCKET] = {sizeof(struct local_docket), FIELDS(docket_rows)},
    [LOCAL_ALARMS] = {sizeof(struct hash32), FIELDS(hash_rows)},
    [LOCAL_OTHERS] = {sizeof(struct hash32), FIELDS(hash_rows)},
    [LOCAL_ROUND] = {sizeof(struct local_round), FIELDS(round_rows)},
    [LOCAL_FIXED] = {sizeof(uint64_t), FIELDS(u64_rows)},
};

/* A file without any record is new. One that has records and no edition has the first. */
static enum status check_edition(struct database *sql, struct error *error)
{
    int64_t edition = 0;
    int64_t records = 0;

    TRY(database_number(sql, &edition, 0, error, "SELECT user_version FROM pragma_user_version",
                        ""));
    TRY(database_number(sql, &records, 0, error, "SELECT count(*) FROM records", ""));
    if (edition == EDITION) {
        return STATUS_OK;
    }
    if (edition == 0 && records == 0) {
        return database_execute(sql, "PRAGMA user_version = 7", error);
    }
    (void)error_set(error, STATUS_REFUSED,
                    "this ledger file is of another edition of the game than this program plays");
    error_advise(error, "finish its jobs with the program that made it; a new ledger: 'lockstep "
                        "ledger init'");
    return STATUS_REFUSED;
}

enum status local_store_open(struct local_store *store, struct database *sql, struct error *error)
{
    *store = (struct local_store){.sql = sql, .error = error};
    TRY(database_execute(
        sql,
        "CREATE TABLE IF NOT EXISTS records (kind INTEGER NOT NULL, key BLOB NOT NULL,"
        " value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID",
        error));
    return check_edition(sql, error);
}

struct hash32 local_key_of_account(const struct address *account)
{
    struct hash32 key = {{0}};

    memcpy(key.bytes + HASH32_SIZE - ADDRESS_SIZE, account->bytes, ADDRESS_SIZE);
    return key;
}

void local_store_mark(uint8_t mark[LOCAL_MARK_SIZE], enum local_kind kind, const void *key,
                      size_t key_size, const void *words, size_t words_size)
{
    const uint8_t kind_byte = (uint8_t)kind;
    struct keccak keccak;
    struct hash32 hash;

    keccak_init(&keccak);
    keccak_add(&keccak, &kind_byte, 1);
    keccak_add(&keccak, key, key_size);
    if (words_size > 0) {
        keccak_add(&keccak, words, words_size);
    }
    hash = keccak_end(&keccak);
    memcpy(mark, hash.bytes, LOCAL_MARK_SIZE);
}

/* The words before the mark. False: the mark is not theirs. */
static bool find_words(struct abi_reader *reader, enum local_kind kind, const uint8_t key[KEY_SIZE],
                       const uint8_t *value, size_t size)
{
    uint8_t mark[LOCAL_MARK_SIZE];

    if (size < LOCAL_MARK_SIZE) {
        return false;
    }
    size -= LOCAL_MARK_SIZE;
    local_store_mark(mark, kind, key, KEY_SIZE, value, size);
    abi_reader_init(reader, value, size);
    return memcmp(mark, value + size, LOCAL_MARK_SIZE) == 0;
}

struct hash32 local_key_of_commits(uint64_t height, uint64_t time_s)
{
    struct hash32 key = {{0}};

    endian_store_be64(key.bytes, height);
    endian_store_be64(key.bytes + 8, time_s);
    return key;
}

static void write_key(uint8_t bytes[KEY_SIZE], const struct hash32 *key, uint64_t number)
{
    memcpy(bytes, key->bytes, HASH32_SIZE);
    endian_store_be64(bytes + HASH32_SIZE, number);
}

enum status local_get(struct local_store *store, void *record, enum local_kind kind,
                      const struct hash32 *key, uint64_t number)
{
    uint8_t key_bytes[KEY_SIZE];
    const struct database_blob key_blob = {key_bytes, sizeof(key_bytes)};
    struct abi_reader reader;
    sqlite3_stmt *row = NULL;
    enum status status;

    memset(record, 0, kinds[kind].size);
    write_key(key_bytes, key, number);
    TRY_OUT(database_first(&row, store->sql, store->error,
                           "SELECT value FROM records WHERE kind = ? AND key = ?", "ib",
                           (int64_t)kind, &key_blob));
    if (!find_words(&reader, kind, key_bytes, sqlite3_column_blob(row, 0),
                    (size_t)sqlite3_column_bytes(row, 0)) ||
        fields_decode(&reader, record, &kinds[kind].fields) != STATUS_OK ||
        reader.at != reader.size) {
        status = error_set(store->error, STATUS_BAD_FORMAT,
                           "a record of the ledger's file is "
                           "damaged");
        error_advise(store->error, LOCAL_DAMAGE_ADVICE);
    }
out:
    database_done(store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status local_put(struct local_store *store, const void *record, enum local_kind kind,
                      const struct hash32 *key, uint64_t number)
{
    uint8_t key_bytes[KEY_SIZE];
    const struct database_blob key_blob = {key_bytes, sizeof(key_bytes)};
    uint8_t bytes[RECORD_SIZE_MAX + LOCAL_MARK_SIZE];
    struct database_blob value = {.bytes = bytes};
    struct byte_writer writer;

    write_key(key_bytes, key, number);
    byte_writer_init(&writer, bytes, RECORD_SIZE_MAX);
    fields_encode(&writer, record, &kinds[kind].fields);
    assert(!writer.overflowed);
    local_store_mark(bytes + writer.used, kind, key_bytes, KEY_SIZE, bytes, writer.used);
    value.size = writer.used + LOCAL_MARK_SIZE;
    return database_run(store->sql, store->error, "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
                        "ibb", (int64_t)kind, &key_blob, &value);
}
