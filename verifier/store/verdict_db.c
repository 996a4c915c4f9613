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
#include "verifier/store/verdict_tables.h"

enum {
    EXPORT_VERSION = 4, /* of what is exported; those before are of earlier editions */
    ROWS_MAX = 1 << 20,
    LOCK_TRIES = 20,
    LOCK_WAIT_US = 100000,
};

struct verdict_db {
    struct database sql;
    struct file_lock lock;
    struct hash32 secret;
    char path[FILE_PATH_MAX];
    char damage[VERDICT_TABLES_TEXT_MAX]; /* what was mended when it was opened; empty: nothing */
};

/* ---- opening ------------------------------------------------------------ */

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
    (void)snprintf(made->path, sizeof(made->path), "%s", path);
    TRY_OUT(lock_database(made, path, error));
    status = verdict_tables_open(&made->sql, &made->secret, path, error);
    if (status == STATUS_BAD_FORMAT) {
        TRY_OUT(verdict_tables_save(made->damage, path, error));
        status = verdict_tables_open(&made->sql, &made->secret, path, error);
    }
    TRY_OUT(status);
    TRY_OUT(verdict_tables_keep_secret(&made->secret, path, error));
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

const char *verdict_db_damage(const struct verdict_db *verdicts)
{
    return verdicts->damage;
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

/* A row whose sum is wrong counts as lost, and gives its place to a new one. */
#define SUM_OF_VERDICT                                                                             \
    TABLE_SUMS_ROW "chain, contract, job, segment, before, root, diverged, verdict, step, pre,"    \
                   " post)"
#define SUM_OF_SEAL TABLE_SUMS_ROW "chain, contract, segment, seed, seat, verdict, step, leaves)"

static enum status damaged_database(struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "the verdict database is damaged");
}

enum status verdict_db_find(struct verdict_db_entry *entry, struct verdict_db *verdicts,
                            struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &verdicts->sql, error,
        "SELECT verdict, step, pre, post FROM verdicts WHERE chain = ? AND contract = ? AND"
        " job = ? AND segment = ? AND before = ? AND root = ? AND diverged = ? AND sum"
        " IS " SUM_OF_VERDICT,
        "tbbibbi", entry->place.chain,
        &(struct database_blob){entry->place.registry.bytes, ADDRESS_SIZE},
        &(struct database_blob){entry->job.bytes, HASH32_SIZE}, (int64_t)entry->segment,
        &(struct database_blob){entry->before.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->root.bytes, DIGEST_SIZE}, (int64_t)entry->diverged);

    if (status == STATUS_OK) {
        int verdict = sqlite3_column_int(row, 0);

        entry->verdict = (enum game_verdict)verdict;
        entry->step = (uint32_t)sqlite3_column_int64(row, 1);
        status = (verdict == GAME_VERDICT_RIGHT || verdict == GAME_VERDICT_FALSE) &&
                         database_blob_column(row, 2, entry->pre_state.bytes, DIGEST_SIZE) &&
                         database_blob_column(row, 3, entry->post_state.bytes, DIGEST_SIZE)
                     ? STATUS_OK
                     : damaged_database(error);
    }
    database_done(&verdicts->sql, row);
    return status;
}

static bool says_the_same(const struct verdict_db_entry *left, const struct verdict_db_entry *right)
{
    return left->verdict == right->verdict && left->step == right->step &&
           digest_equal(&left->pre_state, &right->pre_state) &&
           digest_equal(&left->post_state, &right->post_state);
}

static enum status insert_entry(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                                struct error *error)
{
    return database_run(
        &verdicts->sql, error,
        "INSERT OR REPLACE INTO verdicts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
        " " TABLE_SUMS_ROW "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11))",
        "tbbibbiiibb", entry->place.chain,
        &(struct database_blob){entry->place.registry.bytes, ADDRESS_SIZE},
        &(struct database_blob){entry->job.bytes, HASH32_SIZE}, (int64_t)entry->segment,
        &(struct database_blob){entry->before.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->root.bytes, DIGEST_SIZE}, (int64_t)entry->diverged,
        (int64_t)entry->verdict, (int64_t)entry->step,
        &(struct database_blob){entry->pre_state.bytes, DIGEST_SIZE},
        &(struct database_blob){entry->post_state.bytes, DIGEST_SIZE});
}

/* Inside a transaction. */
static enum status enter_verdict(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                                 bool *added, struct error *error)
{
    struct verdict_db_entry found = *entry;
    enum status status = verdict_db_find(&found, verdicts, error);

    *added = status == STATUS_NOT_FOUND;
    if (status == STATUS_NOT_FOUND) {
        return insert_entry(verdicts, entry, error);
    }
    TRY(status);
    return says_the_same(&found, entry)
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED,
                           "the verdict database contradicts: segment %u was judged otherwise"
                           " before; nothing is signed",
                           entry->segment);
}

enum status verdict_db_enter(struct verdict_db *verdicts, const struct verdict_db_entry *entry,
                             struct error *error)
{
    bool added;
    enum status status = database_begin(&verdicts->sql, error);

    return status == STATUS_OK
               ? database_end(&verdicts->sql, enter_verdict(verdicts, entry, &added, error), error)
               : status;
}

/* ---- seals --------------------------------------------------------------- */

enum status verdict_db_find_seal(struct verdict_db_seal *seal, struct verdict_db *verdicts,
                                 struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &verdicts->sql, error,
        "SELECT verdict, step, leaves FROM seals WHERE chain = ? AND contract = ? AND segment = ?"
        " AND seed = ? AND seat = ? AND sum IS " SUM_OF_SEAL,
        "tbbbi", seal->place.chain,
        &(struct database_blob){seal->place.registry.bytes, ADDRESS_SIZE},
        &(struct database_blob){seal->segment.bytes, HASH32_SIZE},
        &(struct database_blob){seal->seed.bytes, HASH32_SIZE}, (int64_t)seal->seat);

    if (status == STATUS_OK) {
        int verdict = sqlite3_column_int(row, 0);

        seal->verdict = (enum game_verdict)verdict;
        seal->step = (uint32_t)sqlite3_column_int64(row, 1);
        status = verdict > GAME_VERDICT_NONE && verdict <= GAME_VERDICT_FALSE &&
                         database_blob_column(row, 2, &seal->leaves, sizeof(seal->leaves))
                     ? STATUS_OK
                     : damaged_database(error);
    }
    database_done(&verdicts->sql, row);
    return status;
}

/* Inside a transaction. */
static enum status enter_seal(struct verdict_db *verdicts, const struct verdict_db_seal *seal,
                              bool *added, struct error *error)
{
    struct verdict_db_seal found = *seal;
    enum status status = verdict_db_find_seal(&found, verdicts, error);

    *added = status == STATUS_NOT_FOUND;
    if (status == STATUS_NOT_FOUND) {
        return database_run(&verdicts->sql, error,
                            "INSERT OR REPLACE INTO seals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
                            " " TABLE_SUMS_ROW "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                            "tbbbiiib", seal->place.chain,
                            &(struct database_blob){seal->place.registry.bytes, ADDRESS_SIZE},
                            &(struct database_blob){seal->segment.bytes, HASH32_SIZE},
                            &(struct database_blob){seal->seed.bytes, HASH32_SIZE},
                            (int64_t)seal->seat, (int64_t)seal->verdict, (int64_t)seal->step,
                            &(struct database_blob){seal->leaves.tags, sizeof(seal->leaves)});
    }
    TRY(status);
    return found.verdict == seal->verdict && found.step == seal->step &&
                   memcmp(&found.leaves, &seal->leaves, sizeof(seal->leaves)) == 0
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED,
                           "the verdict database contradicts: place %u has another verdict;"
                           " nothing is signed",
                           seal->seat);
}

enum status verdict_db_seal(struct verdict_db *verdicts, const struct verdict_db_seal *seal,
                            struct error *error)
{
    bool added;
    enum status status = database_begin(&verdicts->sql, error);

    return status == STATUS_OK
               ? database_end(&verdicts->sql, enter_seal(verdicts, seal, &added, error), error)
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
    return verdict_tables_set(&verdicts->sql, "fault", "t", text, error);
}

/* ---- export and import -------------------------------------------------- */

struct row_column {
    const char *key;
    int column;
    int size; /* of a blob; 0: a number */
};

static const struct row_column verdict_columns[] = {{"contract", 1, ADDRESS_SIZE},
                                                    {"job", 2, HASH32_SIZE},
                                                    {"segment", 3, 0},
                                                    {"before", 4, DIGEST_SIZE},
                                                    {"root", 5, DIGEST_SIZE},
                                                    {"diverged", 6, 0},
                                                    {"verdict", 7, 0},
                                                    {"step", 8, 0},
                                                    {"pre_state", 9, DIGEST_SIZE},
                                                    {"post_state", 10, DIGEST_SIZE}};
static const struct row_column seal_columns[] = {{"contract", 1, ADDRESS_SIZE},
                                                 {"segment", 2, HASH32_SIZE},
                                                 {"seed", 3, HASH32_SIZE},
                                                 {"seat", 4, 0},
                                                 {"verdict", 5, 0},
                                                 {"step", 6, 0},
                                                 {"leaves", 7, sizeof(struct game_leaves)}};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static json_t *row_json(sqlite3_stmt *row, const struct row_column *columns, size_t count)
{
    json_t *object = json_pack("{s:s}", "chain", (const char *)sqlite3_column_text(row, 0));

    for (size_t i = 0; object != NULL && i < count; i++) {
        const struct row_column *column = &columns[i];
        json_t *value = column->size == 0
                            ? json_integer((json_int_t)sqlite3_column_int64(row, column->column))
                            : (sqlite3_column_bytes(row, column->column) == column->size
                                   ? strict_json_bytes(sqlite3_column_blob(row, column->column),
                                                       (size_t)column->size)
                                   : NULL);

        (void)json_object_set_new(object, column->key, value);
    }
    return object;
}

static enum status export_rows(json_t **rows, struct verdict_db *verdicts, const char *text,
                               const struct row_column *columns, size_t count, struct error *error)
{
    sqlite3_stmt *row = database_query(&verdicts->sql, error, text, "");
    enum status status = row == NULL ? error->status : STATUS_OK;

    *rows = json_array();
    while (status == STATUS_OK) {
        status = database_step(&verdicts->sql, row, error);
        if (status == STATUS_OK &&
            json_array_append_new(*rows, row_json(row, columns, count)) != 0) {
            status = error_set(error, STATUS_NO_MEMORY, "no memory to export the verdict database");
        }
    }
    database_done(&verdicts->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status verdict_db_export(json_t **view, struct verdict_db *verdicts, struct error *error)
{
    json_t *rows = NULL;
    json_t *seals = NULL;
    enum status status;

    *view = NULL;
    TRY_OUT(export_rows(&rows, verdicts,
                        "SELECT * FROM verdicts ORDER BY chain, contract, job, segment, before,"
                        " root, diverged",
                        verdict_columns, COUNT_OF(verdict_columns), error));
    TRY_OUT(export_rows(&seals, verdicts,
                        "SELECT * FROM seals ORDER BY chain, contract, segment, seed, seat",
                        seal_columns, COUNT_OF(seal_columns), error));
    *view = json_pack("{s:i, s:o, s:O, s:O}", "lockstep_verdict_db", EXPORT_VERSION, "secret",
                      strict_json_digest(verdicts->secret.bytes), "verdicts", rows, "seals", seals);
    if (*view == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to export the verdict database");
    }
out:
    json_decref(rows);
    json_decref(seals);
    return status;
}

static enum status parse_place(struct ledger_place *place, const json_t *object,
                               struct error *error)
{
    const char *chain = "";

    memset(place, 0, sizeof(*place));
    TRY(strict_json_text(object, error, &chain, "chain"));
    TRY(strict_json_hex(object, error, place->registry.bytes, ADDRESS_SIZE, "contract"));
    if (strlen(chain) >= LEDGER_CHAIN_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "a row's chain makes no sense");
    }
    memcpy(place->chain, chain, strlen(chain) + 1);
    return STATUS_OK;
}

static enum status parse_entry(struct verdict_db_entry *entry, const json_t *object,
                               struct error *error)
{
    static const char *const known[] = {"chain",    "contract",  "job",       "segment",
                                        "before",   "root",      "step",      "verdict",
                                        "diverged", "pre_state", "post_state"};
    uint64_t segment = 0;
    uint64_t diverged = 0;
    uint64_t verdict = 0;
    uint64_t step = 0;

    memset(entry, 0, sizeof(*entry));
    TRY(strict_json_only(object, error, known, COUNT_OF(known)));
    TRY(parse_place(&entry->place, object, error));
    TRY(strict_json_hex(object, error, entry->job.bytes, HASH32_SIZE, "job"));
    TRY(strict_json_number(object, error, &segment, "segment", GAME_SEGMENTS_MAX));
    TRY(strict_json_hex(object, error, entry->before.bytes, DIGEST_SIZE, "before"));
    TRY(strict_json_hex(object, error, entry->root.bytes, DIGEST_SIZE, "root"));
    TRY(strict_json_number(object, error, &diverged, "diverged", 1));
    TRY(strict_json_number(object, error, &verdict, "verdict", GAME_VERDICT_FALSE));
    TRY(strict_json_number(object, error, &step, "step", GAME_STATES_MAX));
    TRY(strict_json_hex(object, error, entry->pre_state.bytes, DIGEST_SIZE, "pre_state"));
    TRY(strict_json_hex(object, error, entry->post_state.bytes, DIGEST_SIZE, "post_state"));
    entry->segment = (uint32_t)segment;
    entry->diverged = diverged != 0;
    entry->verdict = (enum game_verdict)verdict;
    entry->step = (uint32_t)step;
    return verdict == GAME_VERDICT_NONE
               ? error_set(error, STATUS_BAD_FORMAT, "a row's verdict makes no sense")
               : STATUS_OK;
}

static enum status parse_seal(struct verdict_db_seal *seal, const json_t *object,
                              struct error *error)
{
    static const char *const known[] = {"chain", "contract", "segment", "seed",
                                        "seat",  "verdict",  "step",    "leaves"};
    uint64_t seat = 0;
    uint64_t verdict = 0;
    uint64_t step = 0;

    memset(seal, 0, sizeof(*seal));
    TRY(strict_json_only(object, error, known, COUNT_OF(known)));
    TRY(parse_place(&seal->place, object, error));
    TRY(strict_json_hex(object, error, seal->segment.bytes, HASH32_SIZE, "segment"));
    TRY(strict_json_hex(object, error, seal->seed.bytes, HASH32_SIZE, "seed"));
    TRY(strict_json_number(object, error, &seat, "seat", GAME_PLACES_MAX - 1));
    TRY(strict_json_number(object, error, &verdict, "verdict", GAME_VERDICT_FALSE));
    TRY(strict_json_number(object, error, &step, "step", GAME_STATES_MAX));
    TRY(strict_json_hex(object, error, seal->leaves.tags[0], sizeof(seal->leaves), "leaves"));
    seal->seat = (uint32_t)seat;
    seal->verdict = (enum game_verdict)verdict;
    seal->step = (uint32_t)step;
    return verdict == GAME_VERDICT_NONE
               ? error_set(error, STATUS_BAD_FORMAT, "a row's verdict makes no sense")
               : STATUS_OK;
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
        TRY_OUT(verdict_tables_set(&verdicts->sql, "secret", "b", secret.bytes, error));
    }
out:
    secret_wipe(&secret, sizeof(secret));
    return status;
}

static enum status import_row(struct verdict_db *verdicts, const json_t *object, bool is_seal,
                              bool *added, struct error *error)
{
    struct verdict_db_entry entry;
    struct verdict_db_seal seal;

    if (is_seal) {
        TRY(parse_seal(&seal, object, error));
        return enter_seal(verdicts, &seal, added, error);
    }
    TRY(parse_entry(&entry, object, error));
    return enter_verdict(verdicts, &entry, added, error);
}

static enum status import_rows(uint64_t *added, struct verdict_db *verdicts, const json_t *rows,
                               bool are_seals, struct error *error)
{
    enum status status = STATUS_OK;

    for (size_t i = 0; i < json_array_size(rows) && status == STATUS_OK; i++) {
        bool new_row = false;

        status = import_row(verdicts, json_array_get(rows, i), are_seals, &new_row, error);
        *added += new_row;
        if (status != STATUS_OK) {
            (void)error_wrap(error, "%s number %zu", are_seals ? "seal" : "verdict", i);
        }
    }
    return status;
}

enum status verdict_db_import(uint64_t *added, struct verdict_db *verdicts, const json_t *view,
                              struct error *error)
{
    static const char *const known[] = {"lockstep_verdict_db", "secret", "verdicts", "seals"};
    struct hash32 before = verdicts->secret;
    const json_t *rows = NULL;
    const json_t *seals = NULL;
    uint64_t version = 0;
    enum status status;

    TRY(strict_json_only(view, error, known, sizeof(known) / sizeof(known[0])));
    TRY(strict_json_number(view, error, &version, "lockstep_verdict_db", UINT32_MAX));
    if (version != EXPORT_VERSION) {
        return error_set(error, STATUS_REFUSED,
                         "an export of version %" PRIu64 ", which is not known here", version);
    }
    TRY(strict_json_array(view, error, &rows, "verdicts", ROWS_MAX));
    TRY(strict_json_array(view, error, &seals, "seals", ROWS_MAX));
    *added = 0;
    TRY(database_begin(&verdicts->sql, error));
    status = take_secret(verdicts, view, error);
    if (status == STATUS_OK) {
        status = import_rows(added, verdicts, rows, false, error);
    }
    if (status == STATUS_OK) {
        status = import_rows(added, verdicts, seals, true, error);
    }
    status = database_end(&verdicts->sql, status, error);
    if (status == STATUS_OK) {
        status = verdict_tables_keep_secret(&verdicts->secret, verdicts->path, error);
    } else {
        verdicts->secret = before;
        *added = 0;
    }
    secret_wipe(&before, sizeof(before));
    return status;
}
