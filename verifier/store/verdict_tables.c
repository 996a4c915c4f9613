/* verdict_tables.c - see verdict_tables.h. */
#include "verifier/store/verdict_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "base/secret.h"

enum {
    PATH_SIZE = FILE_PATH_MAX + 16,
    TEXT_SIZE = 1024,
};

/* A table, and its rows in both orders: reading one ends at a page that cannot be read. */
struct table {
    const char *name;
    const char *columns;
    const char *parameters;
    const char *forward;
    const char *backward;
};

static const struct table all[] = {
    {"meta", "name, value", "?, ?", "name", "name DESC"},
    {"verdicts", "chain, contract, job, segment, before, root, diverged, verdict, step, pre, post",
     "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", "chain, contract, job, segment, before, root, diverged",
     "chain DESC, contract DESC, job DESC, segment DESC, before DESC, root DESC, diverged DESC"},
    {"seals", "chain, contract, segment, seed, seat, verdict, step, leaves",
     "?, ?, ?, ?, ?, ?, ?, ?", "chain, contract, segment, seed, seat",
     "chain DESC, contract DESC, segment DESC, seed DESC, seat DESC"},
};

enum {
    TABLES = sizeof(all) / sizeof(all[0]),
};

static const char schema[] =
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE verdicts (chain TEXT NOT NULL, contract BLOB NOT NULL,"
    " job BLOB NOT NULL, segment INTEGER NOT NULL, before BLOB NOT NULL, root BLOB NOT NULL,"
    " diverged INTEGER NOT NULL, verdict INTEGER NOT NULL, step INTEGER NOT NULL,"
    " pre BLOB NOT NULL, post BLOB NOT NULL, sum BLOB NOT NULL,"
    " PRIMARY KEY (chain, contract, job, segment, before, root, diverged)) WITHOUT ROWID;"
    "CREATE TABLE seals (chain TEXT NOT NULL, contract BLOB NOT NULL, segment BLOB NOT NULL,"
    " seed BLOB NOT NULL, seat INTEGER NOT NULL, verdict INTEGER NOT NULL, step INTEGER NOT NULL,"
    " leaves BLOB NOT NULL, sum BLOB NOT NULL,"
    " PRIMARY KEY (chain, contract, segment, seed, seat)) WITHOUT ROWID";

static enum status say_damaged(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "%s of the verdict database is damaged", what);
}

/* ---- the secret's second copy ------------------------------------------------- */

struct kept_secret {
    struct hash32 secret;
    struct hash32 sum;
};

static enum status path_beside(char out[PATH_SIZE], const char *path, const char *end,
                               struct error *error)
{
    return snprintf(out, PATH_SIZE, "%s%s", path, end) < PATH_SIZE
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "the path of the verdict database is too long");
}

static struct hash32 sum_of(const struct hash32 *secret)
{
    struct keccak keccak;

    keccak_init(&keccak);
    keccak_add(&keccak, secret->bytes, HASH32_SIZE);
    return keccak_end(&keccak);
}

/* false: there is no sound copy. */
static bool read_kept(struct hash32 *secret, const char *path)
{
    struct file_bytes bytes;
    struct kept_secret kept;
    struct error ignored;
    struct hash32 sum;
    char place[PATH_SIZE];
    bool sound = false;

    error_init(&ignored);
    if (path_beside(place, path, ".secret", &ignored) != STATUS_OK ||
        file_read(&bytes, &ignored, place, sizeof(kept)) != STATUS_OK) {
        return false;
    }
    if (bytes.size == sizeof(kept)) {
        memcpy(&kept, bytes.data, sizeof(kept));
        sum = sum_of(&kept.secret);
        sound = hash32_equal(&sum, &kept.sum);
        *secret = sound ? kept.secret : *secret;
        secret_wipe(&kept, sizeof(kept));
        secret_wipe(bytes.data, bytes.size);
    }
    file_bytes_release(&bytes);
    return sound;
}

enum status verdict_tables_keep_secret(const struct hash32 *secret, const char *path,
                                       struct error *error)
{
    struct kept_secret kept = {*secret, sum_of(secret)};
    char place[PATH_SIZE];
    struct hash32 before;
    enum status status = path_beside(place, path, ".secret", error);

    if (read_kept(&before, path) && secret_equal(&before, secret, sizeof(before))) {
        goto out;
    }
    if (status == STATUS_OK) {
        status = file_write(place, error, &kept, sizeof(kept), 0600);
    }
out:
    secret_wipe(&before, sizeof(before));
    secret_wipe(&kept, sizeof(kept));
    return status;
}

/* ---- meta ---------------------------------------------------------------------- */

enum status verdict_tables_set(struct database *sql, const char *name, const char *format,
                               const void *value, struct error *error)
{
    static const char text[] =
        "INSERT OR REPLACE INTO meta VALUES (?1, ?2, " TABLE_SUMS_ROW "?1, ?2))";

    switch (format[0]) {
    case 'i':
        return database_run(sql, error, text, "ti", name, *(const int64_t *)value);
    case 'b':
        return database_run(sql, error, text, "tb", name,
                            &(struct database_blob){value, HASH32_SIZE});
    default:
        return database_run(sql, error, text, "tt", name, (const char *)value);
    }
}

static enum status make_tables(struct database *sql, const struct hash32 *secret,
                               struct error *error)
{
    const int64_t version = VERDICT_TABLES_VERSION;

    TRY(database_execute(sql, schema, error));
    TRY(verdict_tables_set(sql, "version", "i", &version, error));
    return verdict_tables_set(sql, "secret", "b", secret, error);
}

static enum status make_new(struct database *sql, const char *path, struct error *error)
{
    struct hash32 secret;
    enum status status =
        read_kept(&secret, path) ? STATUS_OK : secret_random(secret.bytes, HASH32_SIZE, error);

    if (status == STATUS_OK) {
        status = make_tables(sql, &secret, error);
    }
    secret_wipe(&secret, sizeof(secret));
    return status;
}

/* ---- checking ------------------------------------------------------------------ */

static enum status refuse_version(int64_t version, struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "the verdict database is of version %" PRId64 ", which is not known here",
                    version);
    error_advise(error,
                 version > VERDICT_TABLES_VERSION
                     ? "use the program that wrote it, or a newer one"
                     : "it is of an earlier edition of the game: name another folder with"
                       " --state; of a build without sums: 'verifier verdicts export' there, "
                       "'import' here");
    return STATUS_REFUSED;
}

/* The tables before version 5 had no sums. */
static enum status refuse_old(struct database *sql, struct error *error)
{
    int64_t old = 0;
    int64_t version = 0;

    TRY(database_number(sql, &old, 0, error,
                        "SELECT count(*) FROM sqlite_master WHERE name = 'meta' AND sql ="
                        " 'CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL)'",
                        ""));
    if (old == 0) {
        return STATUS_OK;
    }
    TRY(database_number(sql, &version, 0, error, "SELECT value FROM meta WHERE name = 'version'",
                        ""));
    return refuse_version(version, error);
}

static enum status check_rows(struct database *sql, struct error *error)
{
    for (int i = 0; i < TABLES; i++) {
        char text[TEXT_SIZE];
        int64_t bad = 0;

        (void)snprintf(text, sizeof(text),
                       "SELECT count(*) FROM %s WHERE sum IS NOT " TABLE_SUMS_ROW "%s)",
                       all[i].name, all[i].columns);
        TRY(database_number(sql, &bad, 0, error, text, ""));
        if (bad > 0) {
            return say_damaged(error, all[i].name);
        }
    }
    return STATUS_OK;
}

static enum status load_secret(struct database *sql, struct hash32 *secret, struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, sql, error, "SELECT value FROM meta WHERE name = 'secret'", "");

    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && !database_blob_column(row, 0, secret->bytes, HASH32_SIZE))) {
        status = say_damaged(error, "the secret");
    }
    database_done(sql, row);
    return status;
}

/* In a transaction. */
static enum status check_file(struct database *sql, const char *path, struct error *error)
{
    int64_t tables = 0;
    int64_t version = 0;

    TRY(database_number(sql, &tables, 0, error, "SELECT count(*) FROM sqlite_master", ""));
    if (tables == 0) {
        return make_new(sql, path, error);
    }
    TRY(refuse_old(sql, error));
    TRY(table_sums_structure(sql, "the verdict database", error));
    TRY(check_rows(sql, error));
    TRY(database_number(sql, &version, 0, error, "SELECT value FROM meta WHERE name = 'version'",
                        ""));
    if (version == 0) {
        return say_damaged(error, "the version");
    }
    return version == VERDICT_TABLES_VERSION ? STATUS_OK : refuse_version(version, error);
}

/* A table or column that is missing is damage, though SQLite takes our statement to be wrong. */
static enum status explain_status(const struct database *sql, enum status status,
                                  struct error *error)
{
    return status == STATUS_IO && sqlite3_errcode(sql->database) == SQLITE_ERROR
               ? say_damaged(error, "a table")
               : status;
}

static enum status put_in_place(char aside[FILE_PATH_MAX], const char *path, const char *saved,
                                struct error *error)
{
    TRY(table_sums_set_aside(aside, path, error));
    return rename(saved, path) == 0 ? STATUS_OK
                                    : error_set_errno(error, "cannot move %s to %s", saved, path);
}

enum status verdict_tables_open(struct database *sql, struct hash32 *secret, const char *path,
                                struct error *error)
{
    char aside[FILE_PATH_MAX];
    char saved[PATH_SIZE];
    enum status status;

    TRY(path_beside(saved, path, ".saved", error));
    if (file_exists(saved)) {
        TRY(put_in_place(aside, path, saved, error));
    }
    TRY(table_sums_open(sql, path, "PRAGMA synchronous = EXTRA", error));
    TRY_OUT(database_run(sql, error, "PRAGMA locking_mode = EXCLUSIVE", ""));
    TRY_OUT(database_begin(sql, error));
    status = check_file(sql, path, error);
    status =
        status == STATUS_OK ? load_secret(sql, secret, error) : explain_status(sql, status, error);
    TRY_OUT(database_end(sql, status, error));
    return STATUS_OK;
out:
    database_close(sql);
    return status;
}

/* ---- saving -------------------------------------------------------------------- */

struct saving {
    struct database from;
    struct database to;
    uint64_t kept;
    uint64_t lost; /* rows that can be read, and are not as they were written */
};

static enum status keep_row(struct saving *saving, const struct table *table, sqlite3_stmt *row,
                            struct error *error)
{
    const int columns = sqlite3_column_count(row) - 1; /* the last says whether it is sound */
    sqlite3_stmt *into;
    char text[TEXT_SIZE];
    enum status status;

    (void)snprintf(text, sizeof(text), "INSERT OR IGNORE INTO %s VALUES (%s, ?)", table->name,
                   table->parameters);
    into = database_query(&saving->to, error, text, "");
    status = into == NULL ? error->status : STATUS_OK;
    for (int i = 0; i < columns && status == STATUS_OK; i++) {
        if (sqlite3_bind_value(into, i + 1, sqlite3_column_value(row, i)) != SQLITE_OK) {
            status = error_set(error, STATUS_NO_MEMORY, "no memory to save the verdict database");
        }
    }
    if (status == STATUS_OK) {
        status = database_step(&saving->to, into, error);
        saving->kept += (uint64_t)sqlite3_changes(saving->to.database);
    }
    database_done(&saving->to, into);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Reads until the end, or until a page that cannot be read. */
static enum status keep_rows(struct saving *saving, const struct table *table, const char *order,
                             uint64_t *lost, struct error *error)
{
    struct error unreadable;
    char text[TEXT_SIZE];
    sqlite3_stmt *row;
    enum status status = STATUS_OK;

    error_init(&unreadable);
    (void)snprintf(text, sizeof(text), "SELECT *, sum IS " TABLE_SUMS_ROW "%s) FROM %s ORDER BY %s",
                   table->columns, table->name, order);
    row = database_query(&saving->from, &unreadable, text, "");
    while (row != NULL && status == STATUS_OK &&
           database_step(&saving->from, row, &unreadable) == STATUS_OK) {
        if (sqlite3_column_int(row, sqlite3_column_count(row) - 1) != 0) {
            status = keep_row(saving, table, row, error);
        } else {
            ++*lost;
        }
    }
    database_done(&saving->from, row);
    return status;
}

static enum status copy_rows(struct saving *saving, const char *path, const char *part,
                             struct error *error)
{
    struct error ignored;
    struct hash32 secret;
    uint64_t again;
    enum status status;

    error_init(&ignored);
    if (database_open_foreign(&saving->from, path, SQLITE_OPEN_READWRITE, &ignored) != STATUS_OK ||
        table_sums_ready(&saving->from, &ignored) != STATUS_OK) {
        database_close(&saving->from); /* no row of it can be read */
    }
    TRY_OUT(table_sums_open(&saving->to, part, "PRAGMA synchronous = EXTRA", error));
    TRY_OUT(database_begin(&saving->to, error));
    TRY_OUT(database_execute(&saving->to, schema, error));
    for (int i = 0; i < TABLES && saving->from.database != NULL; i++) {
        again = 0;
        TRY_OUT(keep_rows(saving, &all[i], all[i].forward, &saving->lost, error));
        TRY_OUT(keep_rows(saving, &all[i], all[i].backward, &again, error));
    }
    status = load_secret(&saving->to, &secret, error);
    if (status == STATUS_BAD_FORMAT && read_kept(&secret, path)) {
        status = verdict_tables_set(&saving->to, "secret", "b", &secret, error);
    }
    TRY_OUT(status);
    TRY_OUT(verdict_tables_set(&saving->to, "version", "i",
                               &(const int64_t){VERDICT_TABLES_VERSION}, error));
    status = database_end(&saving->to, STATUS_OK, error);
out:
    secret_wipe(&secret, sizeof(secret));
    database_close(&saving->from);
    database_close(&saving->to);
    return status;
}

enum status verdict_tables_save(char text[VERDICT_TABLES_TEXT_MAX], const char *path,
                                struct error *error)
{
    struct saving saving = {.lost = 0};
    char aside[FILE_PATH_MAX];
    char part[PATH_SIZE];
    char saved[PATH_SIZE];
    enum status status;

    TRY(path_beside(part, path, ".part", error));
    TRY(path_beside(saved, path, ".saved", error));
    (void)remove(part);
    status = copy_rows(&saving, path, part, error);
    if (status == STATUS_BAD_FORMAT) {
        error_advise(error,
                     "put a copy of before in its place, or import an export into a new folder"
                     " (verifier verdicts import); verdicts that are sealed and not revealed are"
                     " lost with the secret");
    }
    TRY(status);
    if (rename(part, saved) != 0) {
        return error_set_errno(error, "cannot move %s to %s", part, saved);
    }
    TRY(put_in_place(aside, path, saved, error));
    (void)snprintf(text, VERDICT_TABLES_TEXT_MAX,
                   "the verdict database was damaged: %" PRIu64 " rows are kept, %" PRIu64
                   " or more are lost; what they said is found again by checks; the damaged file is"
                   " %.500s",
                   saving.kept, saving.lost, aside);
    return STATUS_OK;
}
