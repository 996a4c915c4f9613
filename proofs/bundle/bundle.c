/*
 * bundle.c - the folder of a run, its lock and its key; see bundle.h. bundle_rows.c has the rows of
 * the journal, bundle_checkpoint.c the checkpoints.
 */
#include "proofs/bundle/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proofs/bundle/bundle_parts.h"
#include "proofs/job/job_file.h"

static const char key_check_context[] = "journal/key";

const struct job *bundle_job(const struct bundle *bundle)
{
    return bundle->job;
}

const char *bundle_path(const struct bundle *bundle)
{
    return bundle->path;
}

enum status bundle_file(char *path, const struct bundle *bundle, const char *name,
                        struct error *error)
{
    return file_path_join(path, FILE_PATH_MAX, error, bundle->folder, name);
}

/* ---- what may lie in the folder ----------------------------------------- */

/* All that we write in a bundle. A part that exists already must be of this kind. */
static const struct {
    const char *name;
    bool is_folder;
} parts[] = {{"job", false},      {"journal.db", false},     {"journal.db-wal", false},
             {"lock", false},     {"journal.db-shm", false}, {"journal.db-journal", false},
             {"key.lock", false}, {STOP_RULE_FILE, false},   {BUNDLE_CHECKPOINTS, true}};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

/*
 * A folder from a stranger may hold links to files of ours: through them we would empty a lock file
 * or write into a database. So no part of a bundle may be a link.
 */
static enum status check_parts(const struct bundle *bundle, struct error *error)
{
    struct stat about;

    if (stat(bundle->path, &about) == 0 && !S_ISDIR(about.st_mode)) {
        (void)error_set(error, STATUS_USAGE, "%s is a file, and a bundle is a folder",
                        bundle->path);
        error_advise(error, "an archive becomes one by: lockstep bundle import %s", bundle->path);
        return STATUS_USAGE;
    }
    for (size_t i = 0; i < PART_COUNT; i++) {
        char path[FILE_PATH_MAX];

        TRY(bundle_file(path, bundle, parts[i].name, error));
        if (lstat(path, &about) != 0) {
            if (errno != ENOENT) {
                return error_set_errno(error, "cannot look at %s", path);
            }
        } else if (parts[i].is_folder ? !S_ISDIR(about.st_mode) : !S_ISREG(about.st_mode)) {
            return error_set(error, STATUS_BAD_FORMAT, "%s is not a plain %s", path,
                             parts[i].is_folder ? "folder" : "file");
        }
    }
    return STATUS_OK;
}

/* Is this what a crash left of a file of ours (whole_file.h)? */
static bool is_half_written(const char *name)
{
    return strncmp(name, "job.part-", 9) == 0 || strncmp(name, "key.lock.part-", 14) == 0 ||
           strncmp(name, STOP_RULE_FILE ".part-", sizeof(STOP_RULE_FILE) + 5) == 0 ||
           strstr(name, ".safetensors.part-") != NULL;
}

static bool is_part(const char *name)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (strcmp(name, parts[i].name) == 0) {
            return true;
        }
    }
    return is_half_written(name);
}

/* Guards against a wrong path: a new run's folder holds what a crash left, or nothing. */
static enum status check_empty(const struct bundle *bundle, struct error *error)
{
    DIR *folder = opendir(bundle->folder);
    enum status status = STATUS_OK;
    struct dirent *entry;

    if (folder == NULL) {
        return error_set_errno(error, "cannot read %s", bundle->path);
    }
    while (status == STATUS_OK && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !is_part(entry->d_name)) {
            status = error_set(error, STATUS_REFUSED, "%s is not empty: it holds '%.100s'",
                               bundle->path, entry->d_name);
            error_advise(error, "choose another folder");
        }
    }
    (void)closedir(folder);
    return status;
}

/* Needs the lock: a file that another process writes looks the same. */
static enum status clear_half_written(const char *path, struct error *error)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    if (folder == NULL) {
        return errno == ENOENT ? STATUS_OK : error_set_errno(error, "cannot read %s", path);
    }
    while ((entry = readdir(folder)) != NULL) {
        if (is_half_written(entry->d_name)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0); /* a file that stays is only waste */
        }
    }
    (void)closedir(folder);
    return STATUS_OK;
}

static enum status clear_all_half_written(const struct bundle *bundle, struct error *error)
{
    char checkpoints[FILE_PATH_MAX];

    TRY(bundle_file(checkpoints, bundle, BUNDLE_CHECKPOINTS, error));
    TRY(clear_half_written(bundle->folder, error));
    return clear_half_written(checkpoints, error);
}

/* ---- making, opening, closing ------------------------------------------- */

void bundle_close(struct bundle *bundle)
{
    if (bundle == NULL) {
        return;
    }
    if (journal_is_open(&bundle->journal)) {
        /* A failure here loses no more than a crash would: a later process runs the steps again. */
        enum status ignored = bundle_flush(bundle, NULL);

        (void)ignored;
    }
    journal_close(&bundle->journal);
    file_lock_close(&bundle->lock);
    encryption_key_wipe(&bundle->key);
    job_free(bundle->job);
    free(bundle);
}

/* The folder must exist. Its path is resolved: sqlite3 refuses symbolic links in it. */
static enum status find_folder(struct bundle *bundle, const char *path, struct error *error)
{
    if (snprintf(bundle->path, sizeof(bundle->path), "%s", path) >= (int)sizeof(bundle->path)) {
        return error_set(error, STATUS_OVER_LIMIT, "a path of over %zu bytes",
                         sizeof(bundle->path));
    }
    if (realpath(path, bundle->folder) == NULL) {
        return errno == ENOENT
                   ? error_set(error, STATUS_NOT_FOUND, "%s: there is no such bundle", path)
                   : error_set_errno(error, "cannot open the bundle %s", path);
    }
    return check_parts(bundle, error);
}

static enum status bundle_new(struct bundle **result, const char *path, struct error *error)
{
    struct bundle *bundle = calloc(1, sizeof(*bundle));
    enum status status;

    if (bundle == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a bundle");
    }
    bundle->lock.descriptor = -1;
    bundle->database = &bundle->journal.database;
    status = find_folder(bundle, path, error);
    if (status != STATUS_OK) {
        bundle_close(bundle);
        return status;
    }
    *result = bundle;
    return STATUS_OK;
}

static enum status lock_bundle(struct bundle *bundle, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, "lock", error));
    TRY(file_lock_open(&bundle->lock, error, path, "name another bundle"));
    return clear_all_half_written(bundle, error);
}

/* A journal without a job file is left from an attempt that crashed. */
static enum status remove_journal(const struct bundle *bundle, struct error *error)
{
    static const char *const names[] = {"journal.db",         "journal.db-wal", "journal.db-shm",
                                        "journal.db-journal", "key.lock",       STOP_RULE_FILE};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[FILE_PATH_MAX];

        TRY(bundle_file(path, bundle, names[i], error));
        if (unlink(path) != 0 && errno != ENOENT) {
            return error_set_errno(error, "cannot remove %s", path);
        }
    }
    return STATUS_OK;
}

static enum status write_lock(const struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, "key.lock", error));
    return file_write_new(path, error, lock, ENCRYPTION_LOCK_SIZE, 0600);
}

/* The job's id, encrypted, tells later which key is the bundle's. */
static enum status write_key(struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    uint8_t box[DIGEST_SIZE + ENCRYPTION_BOX_EXTRA];
    const struct database_blob blob = {box, sizeof(box)};

    if (lock != NULL) {
        TRY(write_lock(bundle, lock, error));
    }
    TRY(encryption_box(box, error, &bundle->key, key_check_context, bundle->job->id.bytes,
                       DIGEST_SIZE));
    return database_run(bundle->database, error,
                        "INSERT INTO facts VALUES ('encrypted', 1, NULL, ?)", "b", &blob);
}

/* Everything but the job file, which makes the folder a bundle. */
static enum status fill_folder(struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, BUNDLE_CHECKPOINTS, error));
    TRY(file_make_folder(path, error, 0755));
    TRY(remove_journal(bundle, error));
    TRY(bundle_file(path, bundle, "journal.db", error));
    TRY(journal_open(&bundle->journal, path, JOURNAL_CREATE, error));
    return bundle->encrypted ? write_key(bundle, lock, error) : STATUS_OK;
}

static enum status check_new(const struct bundle *bundle, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, "job", error));
    if (file_exists(path)) {
        (void)error_set(error, STATUS_REFUSED, "%s is a bundle already", bundle->path);
        error_advise(error, "choose another folder, or resume the run that is there");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

/* The job file comes last: a folder without one is not a bundle, no matter what a crash left in
 * it. */
static enum status create_bundle(struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(check_empty(bundle, error));
    TRY(check_new(bundle, error)); /* Before the lock, which a run in there may hold. */
    TRY(lock_bundle(bundle, error));
    TRY(check_new(bundle, error)); /* Another process may have made a bundle meanwhile. */
    TRY(fill_folder(bundle, lock, error));
    TRY(bundle_file(path, bundle, "job", error));
    return job_write(bundle->job, path, error);
}

enum status bundle_create_encrypted(struct bundle **result, const char *path, struct job *job,
                                    const struct encryption_key *key, const uint8_t *lock,
                                    struct error *error)
{
    struct bundle *bundle = NULL;
    enum status status;

    TRY_OUT(file_make_folder(path, error, 0755));
    TRY_OUT(bundle_new(&bundle, path, error));
    bundle->job = job;
    job = NULL;
    if (key != NULL) {
        bundle->encrypted = true;
        bundle->has_key = true;
        bundle->key = *key;
    }
    TRY_OUT(create_bundle(bundle, lock, error));
    *result = bundle;
    return STATUS_OK;
out:
    job_free(job);
    bundle_close(bundle);
    return status;
}

enum status bundle_create(struct bundle **bundle, const char *path, struct job *job,
                          struct error *error)
{
    return bundle_create_encrypted(bundle, path, job, NULL, NULL, error);
}

static enum status find_encrypted(struct bundle *bundle, struct error *error)
{
    sqlite3_stmt *row = NULL;
    uint64_t value = 0;
    enum status status;

    TRY_OUT(database_first(&row, bundle->database, error,
                           "SELECT value FROM facts WHERE name = 'encrypted'", ""));
    TRY_OUT(journal_number(&value, &bundle->journal, row, 0, 1, error));
out:
    database_done(bundle->database, row);
    bundle->encrypted = value == 1;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status open_parts(struct bundle *bundle, enum bundle_mode mode, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, "job", error));
    if (!file_exists(path)) {
        return error_set(error, STATUS_NOT_FOUND, "%s is not a bundle: it holds no job",
                         bundle->path);
    }
    if (mode == BUNDLE_WRITE) {
        TRY(lock_bundle(bundle, error));
    }
    TRY(job_read(&bundle->job, path, error));
    TRY(bundle_file(path, bundle, "journal.db", error));
    TRY(journal_open(&bundle->journal, path, mode == BUNDLE_WRITE ? JOURNAL_WRITE : JOURNAL_READ,
                     error));
    return find_encrypted(bundle, error);
}

enum status bundle_open(struct bundle **result, const char *path, enum bundle_mode mode,
                        struct error *error)
{
    struct bundle *bundle = NULL;
    enum status status;

    TRY(bundle_new(&bundle, path, error));
    status = open_parts(bundle, mode, error);
    if (status != STATUS_OK) {
        bundle_close(bundle);
        return status;
    }
    *result = bundle;
    return STATUS_OK;
}

/* ---- encrypted bundles ----------------------------------------------------- */

bool bundle_is_encrypted(const struct bundle *bundle)
{
    return bundle->encrypted;
}

bool bundle_is_locked(const struct bundle *bundle)
{
    return bundle->encrypted && !bundle->has_key;
}

const struct encryption_key *bundle_encryption_key(const struct bundle *bundle)
{
    return bundle->encrypted ? &bundle->key : NULL;
}

/* The job's id, as the key opens it from the journal. */
static enum status open_id(struct digest *id, struct bundle *bundle,
                           const struct encryption_key *key, struct error *error)
{
    uint8_t box[DIGEST_SIZE + ENCRYPTION_BOX_EXTRA];
    sqlite3_stmt *row = NULL;
    size_t size;
    enum status status;

    TRY_OUT(database_first(&row, bundle->database, error,
                           "SELECT encrypted FROM facts WHERE name = 'encrypted'", ""));
    TRY_OUT(journal_bytes(box, &size, &bundle->journal, row, 0, sizeof(box), sizeof(box), error));
    TRY_OUT(encryption_box_open(id->bytes, error, key, key_check_context, box, sizeof(box)));
out:
    database_done(bundle->database, row);
    return status;
}

enum status bundle_unlock(struct bundle *bundle, const struct encryption_key *key,
                          struct error *error)
{
    struct digest id;

    if (!bundle->encrypted) {
        return STATUS_OK; /* nothing needs the key */
    }
    if (open_id(&id, bundle, key, error) != STATUS_OK || !digest_equal(&id, &bundle->job->id)) {
        return error_set(error, STATUS_REFUSED, "%s: this is not the key of this bundle",
                         bundle->path);
    }
    bundle->key = *key;
    bundle->has_key = true;
    return STATUS_OK;
}

enum status bundle_unlock_with(struct bundle *bundle, const void *passphrase,
                               size_t passphrase_size, struct error *error)
{
    char path[FILE_PATH_MAX];
    struct file_bytes lock = {0};
    struct encryption_key key;
    enum status status;

    TRY(bundle_file(path, bundle, "key.lock", error));
    status = file_read(&lock, error, path, ENCRYPTION_LOCK_SIZE);
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no passphrase opens this bundle",
                        bundle->path);
        error_advise(error, "use its key: --bundle-key FILE");
    }
    TRY(status);
    status = encryption_unlock(&key, error, lock.data, lock.size, passphrase, passphrase_size);
    file_bytes_release(&lock);
    TRY(status);
    status = bundle_unlock(bundle, &key, error);
    encryption_key_wipe(&key);
    return status;
}

enum status bundle_key(struct encryption_key *key, const struct bundle *bundle, struct error *error)
{
    if (!bundle->encrypted || !bundle->has_key) {
        return error_set(error, STATUS_REFUSED, "%s %s", bundle->path,
                         bundle->encrypted ? "is locked" : "is not encrypted and has no key");
    }
    *key = bundle->key;
    return STATUS_OK;
}
