/*
 * bundle.c - the folder of a run, its lock and its key; see bundle.h. The journal's rows:
 * bundle_rows.c; checkpoints: bundle_state.c.
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

/* Everything that we write in a bundle, and what it must be where it is there already. */
static const struct {
    const char *name;
    bool is_folder;
} parts[] = {{"job", false},      {"journal.db", false},     {"journal.db-wal", false},
             {"lock", false},     {"journal.db-shm", false}, {"journal.db-journal", false},
             {"key.lock", false}, {"checkpoints", true}};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

/*
 * A folder from a stranger may hold links to files of ours: a lock is emptied and a database
 * written through them. No part of a bundle is ever a link.
 */
static enum status check_parts(const struct bundle *bundle, struct error *error)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        char path[FILE_PATH_MAX];
        struct stat about;
        enum status status = bundle_file(path, bundle, parts[i].name, error);

        if (status != STATUS_OK) {
            return status;
        }
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

/* What a crash left of a file of ours (whole_file.h). */
static bool is_half_written(const char *name)
{
    return strncmp(name, "job.part-", 9) == 0 || strncmp(name, "key.lock.part-", 14) == 0 ||
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

/* Nobody's folder is filled with a run by a slip of the hand: it holds what a crash left, or
 * nothing. */
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

/* Needs the lock: a file that is being written looks the same. */
static enum status clear_half_written(const char *path, struct error *error)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    if (folder == NULL) {
        return errno == ENOENT ? STATUS_OK : error_set_errno(error, "cannot read %s", path);
    }
    while ((entry = readdir(folder)) != NULL) {
        if (is_half_written(entry->d_name)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0); /* waste, if it stays */
        }
    }
    (void)closedir(folder);
    return STATUS_OK;
}

static enum status clear_all_half_written(const struct bundle *bundle, struct error *error)
{
    char checkpoints[FILE_PATH_MAX];
    enum status status = bundle_file(checkpoints, bundle, "checkpoints", error);

    if (status == STATUS_OK) {
        status = clear_half_written(bundle->folder, error);
    }
    return status == STATUS_OK ? clear_half_written(checkpoints, error) : status;
}

/* ---- making, opening, closing ------------------------------------------- */

void bundle_close(struct bundle *bundle)
{
    if (bundle == NULL) {
        return;
    }
    if (bundle->journal.database != NULL) {
        /* A failure here loses no more than a crash would: these steps are run again. */
        enum status ignored = bundle_flush(bundle, NULL);

        (void)ignored;
        journal_close(&bundle->journal);
    }
    file_lock_close(&bundle->lock);
    encryption_key_wipe(&bundle->key);
    job_free(bundle->job);
    free(bundle);
}

/* The folder must be there. sqlite3 wants its path without links, and so do we. */
static enum status bundle_new(struct bundle **result, const char *path, struct error *error)
{
    struct bundle *bundle = calloc(1, sizeof(*bundle));
    enum status status = STATUS_OK;

    if (bundle == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a bundle");
    }
    bundle->lock.descriptor = -1;
    if (snprintf(bundle->path, sizeof(bundle->path), "%s", path) >= (int)sizeof(bundle->path)) {
        status =
            error_set(error, STATUS_OVER_LIMIT, "a path of over %zu bytes", sizeof(bundle->path));
    } else if (realpath(path, bundle->folder) == NULL) {
        status = errno == ENOENT
                     ? error_set(error, STATUS_NOT_FOUND, "%s: there is no such bundle", path)
                     : error_set_errno(error, "cannot open the bundle %s", path);
    } else {
        status = check_parts(bundle, error);
    }
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
    enum status status = bundle_file(path, bundle, "lock", error);

    if (status == STATUS_OK) {
        status = file_lock_open(&bundle->lock, error, path);
    }
    return status == STATUS_OK ? clear_all_half_written(bundle, error) : status;
}

/* A journal that no job file belongs to is what a crash left of an earlier attempt. */
static enum status remove_journal(const struct bundle *bundle, struct error *error)
{
    static const char *const names[] = {"journal.db", "journal.db-wal", "journal.db-shm",
                                        "journal.db-journal", "key.lock"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[FILE_PATH_MAX];
        enum status status = bundle_file(path, bundle, names[i], error);

        if (status == STATUS_OK && unlink(path) != 0 && errno != ENOENT) {
            status = error_set_errno(error, "cannot remove %s", path);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* That the bundle is sealed, and by which key: the job's id, sealed, can be opened by it alone. */
static enum status write_key(struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    uint8_t box[DIGEST_SIZE + ENCRYPTION_BOX_EXTRA];
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;

    if (lock != NULL) {
        char path[FILE_PATH_MAX];

        status = bundle_file(path, bundle, "key.lock", error);
        if (status == STATUS_OK) {
            status = file_write_new(path, error, lock, ENCRYPTION_LOCK_SIZE, 0600);
        }
    }
    if (status == STATUS_OK) {
        status = encryption_box(box, error, &bundle->key, key_check_context, bundle->job->id.bytes,
                                DIGEST_SIZE);
    }
    if (status == STATUS_OK) {
        status = journal_prepare(&statement, &bundle->journal, error,
                                 "INSERT INTO facts VALUES ('sealed', 1, NULL, ?)", "b", box,
                                 sizeof(box));
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

/* Everything but the job file, which makes the folder a bundle. */
static enum status fill(struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status = bundle_file(path, bundle, "checkpoints", error);

    if (status == STATUS_OK) {
        status = file_make_folder(path, error, 0755);
    }
    if (status == STATUS_OK) {
        status = remove_journal(bundle, error);
    }
    if (status == STATUS_OK) {
        status = bundle_file(path, bundle, "journal.db", error);
    }
    if (status == STATUS_OK) {
        status = journal_open(&bundle->journal, path, JOURNAL_CREATE, error);
    }
    if (status == STATUS_OK && bundle->sealed) {
        status = write_key(bundle, lock, error);
    }
    return status;
}

/* Once the lock is held: another process may have made a bundle here a moment ago. */
static enum status check_new(const struct bundle *bundle, struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status = bundle_file(path, bundle, "job", error);

    if (status == STATUS_OK && file_exists(path)) {
        status = error_set(error, STATUS_REFUSED, "%s is a bundle already", bundle->path);
        error_advise(error, "choose another folder, or resume the run that is there");
    }
    return status;
}

/* The job file comes last: a folder without one is not a bundle, whatever a crash left in it. */
static enum status create(struct bundle *bundle, const uint8_t *lock, struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status = check_empty(bundle, error);

    if (status == STATUS_OK) {
        status = check_new(bundle, error); /* before the lock: that one may be in use, in there */
    }
    if (status == STATUS_OK) {
        status = lock_bundle(bundle, error);
    }
    if (status == STATUS_OK) {
        status = check_new(bundle, error);
    }
    if (status == STATUS_OK) {
        status = fill(bundle, lock, error);
    }
    if (status == STATUS_OK) {
        status = bundle_file(path, bundle, "job", error);
    }
    return status == STATUS_OK ? job_write(bundle->job, path, error) : status;
}

enum status bundle_create_sealed(struct bundle **result, const char *path, struct job *job,
                                 const struct encryption_key *key, const uint8_t *lock,
                                 struct error *error)
{
    struct bundle *bundle = NULL;
    enum status status = file_make_folder(path, error, 0755);

    if (status == STATUS_OK) {
        status = bundle_new(&bundle, path, error);
    }
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    bundle->job = job;
    if (key != NULL) {
        bundle->sealed = true;
        bundle->has_key = true;
        bundle->key = *key;
    }
    status = create(bundle, lock, error);
    if (status != STATUS_OK) {
        bundle_close(bundle);
        return status;
    }
    *result = bundle;
    return STATUS_OK;
}

enum status bundle_create(struct bundle **bundle, const char *path, struct job *job,
                          struct error *error)
{
    return bundle_create_sealed(bundle, path, job, NULL, NULL, error);
}

/* Does the journal say that the bundle is sealed? */
static enum status find_sealed(struct bundle *bundle, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    uint64_t value = 0;
    enum status status = journal_prepare(&statement, &bundle->journal, error,
                                         "SELECT value FROM facts WHERE name = 'sealed'", "");

    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK) {
        status = journal_number(&value, &bundle->journal, statement, 0, 1, error);
    }
    (void)sqlite3_finalize(statement);
    bundle->sealed = value == 1;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status open_parts(struct bundle *bundle, enum bundle_mode mode, struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status = bundle_file(path, bundle, "job", error);

    if (status == STATUS_OK && !file_exists(path)) {
        status =
            error_set(error, STATUS_NOT_FOUND, "%s is not a bundle: it holds no job", bundle->path);
    }
    if (status == STATUS_OK && mode == BUNDLE_WRITE) {
        status = lock_bundle(bundle, error);
    }
    if (status == STATUS_OK) {
        status = job_read(&bundle->job, path, error);
    }
    if (status == STATUS_OK) {
        status = bundle_file(path, bundle, "journal.db", error);
    }
    if (status == STATUS_OK) {
        status = journal_open(&bundle->journal, path,
                              mode == BUNDLE_WRITE ? JOURNAL_WRITE : JOURNAL_READ, error);
    }
    return status == STATUS_OK ? find_sealed(bundle, error) : status;
}

enum status bundle_open(struct bundle **result, const char *path, enum bundle_mode mode,
                        struct error *error)
{
    struct bundle *bundle = NULL;
    enum status status = bundle_new(&bundle, path, error);

    if (status != STATUS_OK) {
        return status;
    }
    status = open_parts(bundle, mode, error);
    if (status != STATUS_OK) {
        bundle_close(bundle);
        return status;
    }
    *result = bundle;
    return STATUS_OK;
}

/* ---- sealed bundles ----------------------------------------------------- */

bool bundle_is_sealed(const struct bundle *bundle)
{
    return bundle->sealed;
}

bool bundle_is_locked(const struct bundle *bundle)
{
    return bundle->sealed && !bundle->has_key;
}

const struct encryption_key *bundle_sealing_key(const struct bundle *bundle)
{
    return bundle->sealed ? &bundle->key : NULL;
}

enum status bundle_unlock(struct bundle *bundle, const struct encryption_key *key,
                          struct error *error)
{
    uint8_t box[DIGEST_SIZE + ENCRYPTION_BOX_EXTRA];
    struct digest id;
    sqlite3_stmt *statement = NULL;
    size_t size = 0;
    enum status status;

    if (!bundle->sealed) {
        return STATUS_OK; /* nothing needs the key */
    }
    status = journal_prepare(&statement, &bundle->journal, error,
                             "SELECT sealed FROM facts WHERE name = 'sealed'", "");
    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK) {
        status = journal_bytes(box, &size, &bundle->journal, statement, 0, sizeof(box), sizeof(box),
                               error);
    }
    (void)sqlite3_finalize(statement);
    if (status == STATUS_OK) {
        status = encryption_box_open(id.bytes, error, key, key_check_context, box, sizeof(box));
    }
    if (status != STATUS_OK || !digest_equal(&id, &bundle->job->id)) {
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
    enum status status = bundle_file(path, bundle, "key.lock", error);

    if (status == STATUS_OK) {
        status = file_read(&lock, error, path, ENCRYPTION_LOCK_SIZE);
    }
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no passphrase opens this bundle",
                        bundle->path);
        error_advise(error, "use its key: --key FILE");
    }
    if (status == STATUS_OK) {
        status = encryption_unlock(&key, error, lock.data, lock.size, passphrase, passphrase_size);
    }
    file_bytes_release(&lock);
    if (status == STATUS_OK) {
        status = bundle_unlock(bundle, &key, error);
        encryption_key_wipe(&key);
    }
    return status;
}

enum status bundle_key(struct encryption_key *key, const struct bundle *bundle, struct error *error)
{
    if (!bundle->sealed || !bundle->has_key) {
        return error_set(error, STATUS_REFUSED, "%s %s", bundle->path,
                         bundle->sealed ? "is locked" : "is not sealed and has no key");
    }
    *key = bundle->key;
    return STATUS_OK;
}
