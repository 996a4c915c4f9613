/* verdict_db.c - see verdict_db.h. */
#include "verifier/store/verdict_db.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/database.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/secret.h"

enum {
    VERDICT_DB_VERSION = 1,
    ROWS_MAX = 1 << 20,
    LOCK_TRIES = 20,
    LOCK_WAIT_US = 100000,
};

static const char schema[] =
    "PRAGMA synchronous = EXTRA;"
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value NOT NULL);"
    "CREATE TABLE IF NOT EXISTS verdicts (chain TEXT NOT NULL, contract BLOB NOT NULL,"
    " job BLOB NOT NULL, segment INTEGER NOT NULL, before BLOB NOT NULL, root BLOB NOT NULL,"
    " step INTEGER NOT NULL,"
    " verdict INTEGER NOT NULL, pre BLOB NOT NULL, post BLOB NOT NULL, trace BLOB NOT NULL,"
    " PRIMARY KEY (chain, contract, job, segment, before, root, step));";

#define PLACE_WHERE " FROM verdicts WHERE chain = ? AND contract = ? AND job = ? AND segment = ?"
#define ROW_WHERE   PLACE_WHERE " AND before = ? AND root = ?"

struct verdict_db {
    struct database sql;
    struct file_lock lock;
    struct hash32 secret;
};

/* ---- opening ------------------------------------------------------------ */

static enum status check_version(struct verdict_db *verdicts, struct error *error)
{
    int64_t version = 0;

    TRY(database_number(&verdicts->sql, &version, 0, error,
                        "SELECT value FROM meta WHERE name = 'version'", ""));
    if (version == 0) {
        return database_run(&verdicts->sql, error, "INSERT INTO meta VALUES ('version', ?)", "i",
                            (int64_t)VERDICT_DB_VERSION);
    }
    if (version != VERDICT_DB_VERSION) {
        (void)error_set(error, STATUS_REFUSED,
                        "the verdict database is of version %" PRId64 ", which is not known here",
                        version);
        error_advise(error, "use the program that wrote it, or a newer one");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

static enum status load_secret(struct verdict_db *verdicts, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &verdicts->sql, error,
                                        "SELECT value FROM meta WHERE name = 'secret'", "");

    if (status == STATUS_OK && !database_blob_column(row, 0, verdicts->secret.bytes, HASH32_SIZE)) {
        status = error_set(error, STATUS_BAD_FORMAT, "the verdict database's secret is damaged");
    }
    database_done(&verdicts->sql, row);
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    status = secret_random(verdicts->secret.bytes, HASH32_SIZE, error);
    return status != STATUS_OK
               ? status
               : database_run(&verdicts->sql, error, "INSERT INTO meta VALUES ('secret', ?)", "b",
                              &(struct database_blob){verdicts->secret.bytes, HASH32_SIZE});
}

/*
 * A node that is killed while it starts a child leaves the lock to that child for a moment: so try
 * for a while. sqlite's own lock keeps programs out that do not know ours.
 */
static enum status lock_database(struct verdict_db *verdicts, const char *path, struct error *error)
{
    static const char instead[] =
        "start a node with another key in another folder (--state, --account)";
    char lock_path[FILE_PATH_MAX];
    enum status status;

    if (snprintf(lock_path, sizeof(lock_path), "%s.lock", path) >= (int)sizeof(lock_path)) {
        return error_set(error, STATUS_USAGE, "the path of the verdict database is too long");
    }
    status = file_lock_open(&verdicts->lock, error, lock_path, instead);
    for (int i = 0; i < LOCK_TRIES && status == STATUS_REFUSED; i++) {
        (void)usleep(LOCK_WAIT_US);
        status = file_lock_open(&verdicts->lock, error, lock_path, instead);
    }
    if (status == STATUS_REFUSED) {
        (void)error_wrap(error, "another node uses this verdict database");
    }
    return status;
}

enum status verdict_db_open(struct verdict_db **verdicts, const char *path, struct error *error)
{
    struct verdict_db *made = calloc(1, sizeof(*made));
    enum status status;

    *verdicts = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the verdict database");
    }
    made->lock.descriptor = -1;
    TRY_OUT(lock_database(made, path, error));
    TRY_OUT(database_open(&made->sql, path, schema, error));
    TRY_OUT(database_run(&made->sql, error, "PRAGMA locking_mode = EXCLUSIVE", ""));
    TRY_OUT(database_begin(&made->sql, error));
    status = check_version(made, error);
    status = status == STATUS_OK ? load_secret(made, error) : status;
    TRY_OUT(database_end(&made->sql, status, error));
    *verdicts = made;
    return STATUS_OK;
out:
    verdict_db_close(made);
    return status;
}

void verdict_db_close(struct verdict_db *verdicts)
{
    if (verdicts != NULL) {
        database_close(&verdicts->sql);
        file_lock_close(&verdicts->lock);
        secret_wipe(&verdicts->secret, sizeof(verdicts->secret));
        free(verdicts);
    }
}

struct hash32 verdict_db_derive(const struct verdict_db *verdicts, const char *words,
                                const void *bytes, size_t size)
{
    struct keccak keccak;

    keccak_init(&keccak);
    keccak_add(&keccak, verdicts->secret.bytes, HASH32_SIZE);
    keccak_add(&keccak, words, strlen(words) + 1);
    keccak_add(&keccak, bytes, size);
    return keccak_end(&keccak);
}

/* ---- rows --------------------------------------------------------------- */

/* The columns from verdict on. */
static enum status read_row(struct verdict_db_entry *entry, sqlite3_stmt *row, int column,
                            struct error *error)
{
    int verdict = sqlite3_column_int(row, column);

    if ((verdict != VERDICT_DB_PROVEN && verdict != VERDICT_DB_REFUTED) ||
        !database_blob_column(row, column + 1, entry->pre_state.bytes, DIGEST_SIZE) ||
        !database_blob_column(row, column + 2, entry->post_state.bytes, DIGEST_SIZE) ||
        !database_blob_column(row, column + 3, entry->trace_root.bytes, DIGEST_SIZE)) {
        return error_set(error, STATUS_BAD_FORMAT, "the verdict database is damaged");
    }
    entry->verdict = (enum verdict_db_verdict)verdict;
    return STATUS_OK;
}

enum status verdict_db_find(struct verdict_db_entry *entry, struct verdict_db *verdicts,
                            struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &verdicts->sql, error, "SELECT verdict, pre, post, trace" ROW_WHERE " AND step = ?",
        "tbbibbi", entry->place.chain,
        &(struct database_blob){entry->place.registry.bytes, ADDRESS_SIZE},
        &(struct database_blob){entry->job.bytes, HASH32_SIZE}, (int64_t)entry->segment,
        &(struct database_blob){entry->before.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->root.bytes, DIGEST_SIZE}, (int64_t)entry->step);

    if (status == STATUS_OK) {
        status = read_row(entry, row, 0, error);
    }
    database_done(&verdicts->sql, row);
    return status;
}

enum status verdict_db_find_proven(struct verdict_db_entry *entry, struct verdict_db *verdicts,
                                   struct error *error)
{
    sqlite3_stmt *row;
    enum status status;

    TRY_OUT(database_first(&row, &verdicts->sql, error,
                           "SELECT verdict, pre, post, trace, before" PLACE_WHERE
                           " AND root = ? AND step = ? AND verdict = ?",
                           "tbbibii", entry->place.chain,
                           &(struct database_blob){entry->place.registry.bytes, ADDRESS_SIZE},
                           &(struct database_blob){entry->job.bytes, HASH32_SIZE},
                           (int64_t)entry->segment,
                           &(struct database_blob){entry->root.bytes, DIGEST_SIZE},
                           (int64_t)entry->step, (int64_t)VERDICT_DB_PROVEN));
    TRY_OUT(read_row(entry, row, 0, error));
    if (!database_blob_column(row, 4, entry->before.bytes, DIGEST_SIZE)) {
        status = error_set(error, STATUS_BAD_FORMAT, "the verdict database is damaged");
        goto out;
    }
    status = database_step(&verdicts->sql, row, error); /* a second row? */
    status = status == STATUS_OK          ? STATUS_NOT_FOUND
             : status == STATUS_NOT_FOUND ? STATUS_OK
                                          : status;
out:
    database_done(&verdicts->sql, row);
    return status;
}

static bool says_the_same(const struct verdict_db_entry *left, const struct verdict_db_entry *right)
{
    return left->verdict == right->verdict && digest_equal(&left->pre_state, &right->pre_state) &&
           digest_equal(&left->post_state, &right->post_state) &&
           digest_equal(&left->trace_root, &right->trace_root);
}

static enum status contradicts(const struct verdict_db_entry *entry, const char *what,
                               struct error *error)
{
    return error_set(error, STATUS_REFUSED,
                     "the verdict database contradicts: segment %u step %u %s; nothing is signed",
                     entry->segment, entry->step, what);
}

/* Does a row of another step of the segment contradict entry? */
static enum status check_others(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                                struct error *error)
{
    int64_t others = 0;

    TRY(database_number(
        &verdicts->sql, &others, 0, error,
        "SELECT count(*)" ROW_WHERE " AND step <> ? AND (verdict = ? OR ?)", "tbbibbiii",
        entry->place.chain, &(struct database_blob){entry->place.registry.bytes, ADDRESS_SIZE},
        &(struct database_blob){entry->job.bytes, HASH32_SIZE}, (int64_t)entry->segment,
        &(struct database_blob){entry->before.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->root.bytes, DIGEST_SIZE}, (int64_t)entry->step,
        (int64_t)VERDICT_DB_REFUTED, (int64_t)(entry->verdict == VERDICT_DB_REFUTED)));
    if (others == 0) {
        return STATUS_OK;
    }
    return contradicts(entry,
                       entry->verdict == VERDICT_DB_PROVEN
                           ? "is in a segment that was refuted before"
                           : "is in a segment that was judged otherwise before",
                       error);
}

static enum status insert(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                          struct error *error)
{
    return database_run(
        &verdicts->sql, error, "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "tbbibbiibbb", entry->place.chain,
        &(struct database_blob){entry->place.registry.bytes, ADDRESS_SIZE},
        &(struct database_blob){entry->job.bytes, HASH32_SIZE}, (int64_t)entry->segment,
        &(struct database_blob){entry->before.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->root.bytes, DIGEST_SIZE}, (int64_t)entry->step,
        (int64_t)entry->verdict, &(struct database_blob){entry->pre_state.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->post_state.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->trace_root.bytes, DIGEST_SIZE});
}

/* Inside a transaction. */
static enum status enter(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                         bool *added, struct error *error)
{
    struct verdict_db_entry found = *entry;
    enum status status = verdict_db_find(&found, verdicts, error);

    *added = false;
    if (status == STATUS_OK) {
        return says_the_same(&found, entry)
                   ? STATUS_OK
                   : contradicts(entry, "was judged otherwise before", error);
    }
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    TRY(check_others(verdicts, entry, error));
    TRY(insert(verdicts, entry, error));
    *added = true;
    return STATUS_OK;
}

enum status verdict_db_enter(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                             struct error *error)
{
    bool added;
    enum status status = database_begin(&verdicts->sql, error);

    return status == STATUS_OK
               ? database_end(&verdicts->sql, enter(verdicts, entry, &added, error), error)
               : status;
}

/* ---- the machine -------------------------------------------------------- */

enum status verdict_db_fault(struct verdict_db *verdicts, char text[VERDICT_DB_FAULT_MAX],
                             struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &verdicts->sql, error,
                                        "SELECT value FROM meta WHERE name = 'fault'", "");

    text[0] = '\0';
    if (status == STATUS_OK) {
        (void)snprintf(text, VERDICT_DB_FAULT_MAX, "%s", (const char *)sqlite3_column_text(row, 0));
    }
    database_done(&verdicts->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status verdict_db_set_fault(struct verdict_db *verdicts, const char *text, struct error *error)
{
    return database_run(&verdicts->sql, error, "INSERT OR REPLACE INTO meta VALUES ('fault', ?)",
                        "t", text);
}

/* ---- export and import -------------------------------------------------- */

static json_t *hex_of(const void *bytes, size_t size)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, bytes, size);
    return json_string(text);
}

static json_t *row_json(sqlite3_stmt *row)
{
    static const struct {
        const char *key;
        int column;
        int size;
    } blobs[] = {{"contract", 1, ADDRESS_SIZE},  {"job", 2, HASH32_SIZE},
                 {"before", 4, DIGEST_SIZE},     {"root", 5, DIGEST_SIZE},
                 {"pre_state", 8, DIGEST_SIZE},  {"post_state", 9, DIGEST_SIZE},
                 {"trace_root", 10, DIGEST_SIZE}};
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:s}", "chain", (const char *)sqlite3_column_text(row, 0), "segment",
        (json_int_t)sqlite3_column_int64(row, 3), "step", (json_int_t)sqlite3_column_int64(row, 6),
        "verdict", sqlite3_column_int(row, 7) == VERDICT_DB_PROVEN ? "proven" : "refuted");

    for (size_t i = 0; object != NULL && i < sizeof(blobs) / sizeof(blobs[0]); i++) {
        if (sqlite3_column_bytes(row, blobs[i].column) == blobs[i].size) {
            (void)json_object_set_new(
                object, blobs[i].key,
                hex_of(sqlite3_column_blob(row, blobs[i].column), (size_t)blobs[i].size));
        }
    }
    return object;
}

enum status verdict_db_export(json_t **view, struct verdict_db *verdicts, struct error *error)
{
    json_t *rows = json_array();
    sqlite3_stmt *row =
        database_query(&verdicts->sql, error,
                       "SELECT * FROM verdicts ORDER BY chain, contract, job, segment,"
                       " before, root, step",
                       "");
    enum status status = row == NULL ? error->status : STATUS_OK;

    while (status == STATUS_OK) {
        status = database_step(&verdicts->sql, row, error);
        if (status == STATUS_OK && json_array_append_new(rows, row_json(row)) != 0) {
            status = error_set(error, STATUS_NO_MEMORY, "no memory to export the verdict database");
        }
    }
    database_done(&verdicts->sql, row);
    if (status != STATUS_NOT_FOUND) {
        json_decref(rows);
        return status;
    }
    *view = json_pack("{s:i, s:o, s:o}", "lockstep_verdict_db", VERDICT_DB_VERSION, "secret",
                      hex_of(verdicts->secret.bytes, HASH32_SIZE), "verdicts", rows);
    return *view != NULL
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "no memory to export the verdict database");
}

static enum status parse_row(struct verdict_db_entry *entry, const json_t *object,
                             struct error *error)
{
    static const char *const known[] = {"chain",     "contract",   "job",       "segment",
                                        "before",    "root",       "step",      "verdict",
                                        "pre_state", "post_state", "trace_root"};
    const char *chain = "";
    const char *verdict = "";
    uint64_t segment = 0;
    uint64_t step = 0;

    TRY(strict_json_only(object, error, known, sizeof(known) / sizeof(known[0])));
    memset(entry, 0, sizeof(*entry));
    TRY(strict_json_text(object, error, &chain, "chain"));
    TRY(strict_json_text(object, error, &verdict, "verdict"));
    TRY(strict_json_number(object, error, &segment, "segment", GAME_SEGMENTS_MAX));
    TRY(strict_json_number(object, error, &step, "step", GAME_PERIOD_MAX));
    const struct {
        uint8_t *bytes;
        size_t size;
        const char *key;
    } blobs[] = {{entry->place.registry.bytes, ADDRESS_SIZE, "contract"},
                 {entry->job.bytes, HASH32_SIZE, "job"},
                 {entry->before.bytes, DIGEST_SIZE, "before"},
                 {entry->root.bytes, DIGEST_SIZE, "root"},
                 {entry->pre_state.bytes, DIGEST_SIZE, "pre_state"},
                 {entry->post_state.bytes, DIGEST_SIZE, "post_state"},
                 {entry->trace_root.bytes, DIGEST_SIZE, "trace_root"}};
    for (size_t i = 0; i < sizeof(blobs) / sizeof(blobs[0]); i++) {
        TRY(strict_json_hex(object, error, blobs[i].bytes, blobs[i].size, blobs[i].key));
    }

    entry->verdict = strcmp(verdict, "proven") == 0 ? VERDICT_DB_PROVEN : VERDICT_DB_REFUTED;
    if (strlen(chain) >= LEDGER_CHAIN_MAX ||
        (entry->verdict == VERDICT_DB_REFUTED && strcmp(verdict, "refuted") != 0)) {
        return error_set(error, STATUS_BAD_FORMAT, "a row's chain or verdict makes no sense");
    }
    memcpy(entry->place.chain, chain, strlen(chain) + 1);
    entry->segment = (uint32_t)segment;
    entry->step = (uint32_t)step;
    return STATUS_OK;
}

static enum status take_secret(struct verdict_db *verdicts, const json_t *view, struct error *error)
{
    struct hash32 secret;
    int64_t rows = 0;
    enum status status;

    TRY_OUT(strict_json_hex(view, error, secret.bytes, HASH32_SIZE, "secret"));
    TRY_OUT(database_number(&verdicts->sql, &rows, 0, error, "SELECT count(*) FROM verdicts", ""));
    if (rows == 0) {
        verdicts->secret = secret;
        TRY_OUT(database_run(&verdicts->sql, error,
                             "UPDATE meta SET value = ? WHERE name = 'secret'", "b",
                             &(struct database_blob){secret.bytes, HASH32_SIZE}));
    }
out:
    secret_wipe(&secret, sizeof(secret));
    return status;
}

static enum status import_rows(uint64_t *added, struct verdict_db *verdicts, const json_t *rows,
                               struct error *error)
{
    enum status status = STATUS_OK;

    *added = 0;
    for (size_t i = 0; i < json_array_size(rows) && status == STATUS_OK; i++) {
        struct verdict_db_entry entry;
        bool new_row = false;

        status = parse_row(&entry, json_array_get(rows, i), error);
        if (status == STATUS_OK) {
            status = enter(verdicts, &entry, &new_row, error);
        }
        *added += new_row;
        if (status != STATUS_OK) {
            (void)error_wrap(error, "verdict number %zu", i);
        }
    }
    return status;
}

enum status verdict_db_import(uint64_t *added, struct verdict_db *verdicts, const json_t *view,
                              struct error *error)
{
    static const char *const known[] = {"lockstep_verdict_db", "secret", "verdicts"};
    struct hash32 before = verdicts->secret;
    const json_t *rows = NULL;
    uint64_t version = 0;
    enum status status;

    TRY(strict_json_only(view, error, known, sizeof(known) / sizeof(known[0])));
    TRY(strict_json_number(view, error, &version, "lockstep_verdict_db", UINT32_MAX));
    if (version != VERDICT_DB_VERSION) {
        return error_set(error, STATUS_REFUSED,
                         "an export of version %" PRIu64 ", which is not known here", version);
    }
    TRY(strict_json_array(view, error, &rows, "verdicts", ROWS_MAX));
    TRY(database_begin(&verdicts->sql, error));
    status = take_secret(verdicts, view, error);
    if (status == STATUS_OK) {
        status = import_rows(added, verdicts, rows, error);
    }
    status = database_end(&verdicts->sql, status, error);
    if (status != STATUS_OK) {
        verdicts->secret = before;
        *added = 0;
    }
    secret_wipe(&before, sizeof(before));
    return status;
}
