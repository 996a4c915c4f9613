/* bundle.c - the folder and the journal of a run; see bundle.h. Checkpoints: bundle_state.c. */
#include "proofs/bundle.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proofs/bundle_parts.h"
#include "proofs/commit.h"

const struct job *bundle_job(const struct bundle *bundle)
{
    return bundle->job;
}

const char *bundle_path(const struct bundle *bundle)
{
    return bundle->path;
}

/* ---- opening ------------------------------------------------------------ */

static enum status make_paths(struct bundle *bundle, const char *path, char *job_path,
                              char *journal_path, char *lock_path, struct error *error)
{
    enum status status = STATUS_OK;

    if (snprintf(bundle->path, sizeof(bundle->path), "%s", path) >= (int)sizeof(bundle->path)) {
        return error_set(error, STATUS_OVER_LIMIT, "a path of over %zu bytes",
                         sizeof(bundle->path));
    }
    status = file_path_join(job_path, FILE_PATH_MAX, error, path, "job");
    if (status == STATUS_OK) {
        status = file_path_join(journal_path, FILE_PATH_MAX, error, path, "journal.db");
    }
    if (status == STATUS_OK) {
        status = file_path_join(lock_path, FILE_PATH_MAX, error, path, "lock");
    }
    return status;
}

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
    job_free(bundle->job);
    free(bundle);
}

static struct bundle *bundle_new(struct error *error)
{
    struct bundle *bundle = calloc(1, sizeof(*bundle));

    if (bundle == NULL) {
        (void)error_set(error, STATUS_NO_MEMORY, "no memory for a bundle");
        return NULL;
    }
    bundle->lock.descriptor = -1;
    return bundle;
}

/* The job file comes last: a folder without one is not a bundle, whatever a crash left in it. */
enum status bundle_create(struct bundle **result, const char *path, struct job *job,
                          struct error *error)
{
    char job_path[FILE_PATH_MAX];
    char journal_path[FILE_PATH_MAX];
    char lock_path[FILE_PATH_MAX];
    char checkpoints[FILE_PATH_MAX];
    struct bundle *bundle = bundle_new(error);
    enum status status;

    if (bundle == NULL) {
        job_free(job);
        return STATUS_NO_MEMORY;
    }
    bundle->job = job;
    status = make_paths(bundle, path, job_path, journal_path, lock_path, error);
    if (status == STATUS_OK) {
        status = file_path_join(checkpoints, sizeof(checkpoints), error, path, "checkpoints");
    }
    if (status == STATUS_OK && file_exists(job_path)) {
        status = error_set(error, STATUS_REFUSED, "%s is a bundle already", path);
        error_advise(error, "choose another folder, or resume the run that is there");
    }
    if (status == STATUS_OK) {
        status = file_make_folder(checkpoints, error, 0755);
    }
    if (status == STATUS_OK) {
        status = file_lock_open(&bundle->lock, error, lock_path);
    }
    if (status == STATUS_OK && file_exists(journal_path) && unlink(journal_path) != 0) {
        status =
            error_set_errno(error, "cannot remove %s, which no job file belongs to", journal_path);
    }
    if (status == STATUS_OK) {
        status = journal_open(&bundle->journal, journal_path, JOURNAL_CREATE, error);
    }
    if (status == STATUS_OK) {
        status = job_write(job, job_path, error);
    }
    if (status != STATUS_OK) {
        bundle_close(bundle);
        return status;
    }
    *result = bundle;
    return STATUS_OK;
}

enum status bundle_open(struct bundle **result, const char *path, enum bundle_mode mode,
                        struct error *error)
{
    char job_path[FILE_PATH_MAX];
    char journal_path[FILE_PATH_MAX];
    char lock_path[FILE_PATH_MAX];
    struct bundle *bundle = bundle_new(error);
    enum status status;

    if (bundle == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = make_paths(bundle, path, job_path, journal_path, lock_path, error);
    if (status == STATUS_OK && !file_exists(job_path)) {
        status = error_set(error, STATUS_NOT_FOUND, "%s is not a bundle: it holds no job", path);
    }
    if (status == STATUS_OK && mode == BUNDLE_WRITE) {
        status = file_lock_open(&bundle->lock, error, lock_path);
    }
    if (status == STATUS_OK) {
        status = job_read(&bundle->job, job_path, error);
    }
    if (status == STATUS_OK) {
        status = journal_open(&bundle->journal, journal_path,
                              mode == BUNDLE_WRITE ? JOURNAL_WRITE : JOURNAL_READ, error);
    }
    if (status != STATUS_OK) {
        bundle_close(bundle);
        return status;
    }
    *result = bundle;
    return STATUS_OK;
}

/* ---- steps -------------------------------------------------------------- */

enum status bundle_flush(struct bundle *bundle, struct error *error)
{
    enum status status = STATUS_OK;

    if (bundle->pending > 0) {
        status = journal_run(&bundle->journal, "COMMIT", error);
        bundle->pending = 0;
    }
    return status;
}

static enum status compare_step(const struct bundle_step *known, const struct bundle_step *step,
                                struct error *error)
{
    if (digest_equal(&known->root, &step->root) && known->loss_bits == step->loss_bits) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "step %llu does not give what the journal says it gave before",
                    (unsigned long long)step->step);
    error_advise(error, "either the bundle was changed or this machine computes wrongly: check the "
                        "bundle with 'lockstep audit' on another machine");
    return STATUS_REFUSED;
}

static enum status begin(struct bundle *bundle, struct error *error)
{
    enum status status = STATUS_OK;

    if (bundle->pending >= BUNDLE_PENDING_MAX) {
        status = bundle_flush(bundle, error);
    }
    if (status == STATUS_OK && bundle->pending == 0) {
        status = journal_run(&bundle->journal, "BEGIN IMMEDIATE", error);
    }
    return status;
}

enum status bundle_record(struct bundle *bundle, const struct bundle_step *step,
                          struct error *error)
{
    struct bundle_step known;
    sqlite3_stmt *statement = NULL;
    enum status status = bundle_step_read(&known, bundle, step->step, NULL);

    assert(bundle->lock.descriptor >= 0);
    if (status == STATUS_OK) {
        return compare_step(&known, step, error);
    }
    status = begin(bundle, error);
    if (status == STATUS_OK) {
        status = journal_prepare(&statement, &bundle->journal, error,
                                 "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", "iidiii",
                                 step->step, (uint64_t)step->loss_bits, &step->root,
                                 step->nanoseconds, step->nanoseconds_committing, bundle->device);
    }
    if (status == STATUS_OK) {
        status = journal_finish(&bundle->journal, statement, error);
        bundle->pending++;
    }
    return status;
}

enum status bundle_step_read(struct bundle_step *entry, struct bundle *bundle, uint64_t step,
                             struct error *error)
{
    struct journal *journal = &bundle->journal;
    sqlite3_stmt *statement = NULL;
    uint64_t loss = 0;
    enum status status = journal_prepare(&statement, journal, error,
                                         "SELECT loss, root, nanoseconds, committing FROM steps "
                                         "WHERE step = ?",
                                         "i", step);

    if (status == STATUS_OK) {
        status = journal_next(journal, statement, error);
    }
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "step %llu is not in the journal",
                        (unsigned long long)step);
    }
    if (status == STATUS_OK) {
        status = journal_number(&loss, journal, statement, 0, UINT32_MAX, error);
    }
    if (status == STATUS_OK) {
        status = journal_digest(&entry->root, journal, statement, 1, error);
    }
    if (status == STATUS_OK) {
        status = journal_number(&entry->nanoseconds, journal, statement, 2, INT64_MAX, error);
    }
    if (status == STATUS_OK) {
        status =
            journal_number(&entry->nanoseconds_committing, journal, statement, 3, INT64_MAX, error);
    }
    entry->step = step;
    entry->loss_bits = (uint32_t)loss;
    (void)sqlite3_finalize(statement);
    return status;
}

enum status bundle_step_count(uint64_t *count, struct bundle *bundle, struct error *error)
{
    struct journal *journal = &bundle->journal;
    sqlite3_stmt *statement = NULL;
    enum status status =
        journal_prepare(&statement, journal, error, "SELECT step FROM steps ORDER BY step", "");

    *count = 0;
    while (status == STATUS_OK) {
        uint64_t step = 0;

        status = journal_next(journal, statement, error);
        if (status == STATUS_OK) {
            status = journal_number(&step, journal, statement, 0, INT64_MAX, error);
        }
        if (status == STATUS_OK && step != *count) {
            break; /* a gap: what follows it counts for nothing */
        }
        *count += status == STATUS_OK;
    }
    (void)sqlite3_finalize(statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status bundle_segment_root(struct digest *root, struct bundle *bundle, uint64_t segment,
                                struct error *error)
{
    uint64_t first = segment * bundle->job->segment_length;
    uint64_t end;
    struct commit_roots roots;
    enum status status = STATUS_OK;

    if (segment >= job_segments(bundle->job)) {
        return error_set(error, STATUS_USAGE, "the job has %llu segments; there is no number %llu",
                         (unsigned long long)job_segments(bundle->job),
                         (unsigned long long)segment);
    }
    end = job_segment_end(bundle->job, segment);
    commit_roots_init(&roots, COMMIT_SEGMENT, first);
    for (uint64_t step = first; step < end && status == STATUS_OK; step++) {
        struct bundle_step entry;

        status = bundle_step_read(&entry, bundle, step, error);
        if (status == STATUS_OK) {
            status = commit_roots_add(&roots, &entry.root);
        }
    }
    if (status == STATUS_OK) {
        commit_roots_end(&roots, root);
    }
    return status;
}

/* ---- how the run stands ------------------------------------------------- */

enum status bundle_set_diverged(struct bundle *bundle, uint64_t step, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = bundle_flush(bundle, error);

    if (status == STATUS_OK) {
        status =
            journal_prepare(&statement, &bundle->journal, error,
                            "INSERT OR REPLACE INTO facts VALUES ('diverged', ?, NULL)", "i", step);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

enum status bundle_diverged(uint64_t *step, struct bundle *bundle, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = journal_prepare(&statement, &bundle->journal, error,
                                         "SELECT value FROM facts WHERE name = 'diverged'", "");

    *step = UINT64_MAX;
    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK) {
        status = journal_number(step, &bundle->journal, statement, 0, JOB_STEPS_MAX, error);
    }
    (void)sqlite3_finalize(statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status bundle_set_note(struct bundle *bundle, const char *name, const char *text,
                            struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = bundle_flush(bundle, error);

    if (status == STATUS_OK) {
        status =
            journal_prepare(&statement, &bundle->journal, error,
                            "INSERT OR REPLACE INTO facts VALUES (?, NULL, ?)", "tt", name, text);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

enum status bundle_note(char *text, struct bundle *bundle, const char *name, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = journal_prepare(&statement, &bundle->journal, error,
                                         "SELECT text FROM facts WHERE name = ?", "t", name);

    text[0] = '\0';
    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK) {
        const unsigned char *found = sqlite3_column_text(statement, 0);

        if (found == NULL || sqlite3_column_bytes(statement, 0) >= FILE_PATH_MAX) {
            status =
                error_set(error, STATUS_BAD_FORMAT, "the journal's note '%s' is not a text", name);
        } else {
            (void)snprintf(text, FILE_PATH_MAX, "%s", (const char *)found);
        }
    }
    (void)sqlite3_finalize(statement);
    return status;
}

enum status bundle_set_device(struct bundle *bundle, const char *device, struct error *error)
{
    struct journal *journal = &bundle->journal;
    char name[BUNDLE_DEVICE_MAX];
    sqlite3_stmt *statement = NULL;
    enum status status = bundle_flush(bundle, error);

    (void)snprintf(name, sizeof(name), "%s", device);
    if (status == STATUS_OK) {
        status = journal_prepare(&statement, journal, error,
                                 "INSERT OR IGNORE INTO devices (name) VALUES (?)", "t", name);
    }
    if (status == STATUS_OK) {
        status = journal_finish(journal, statement, error);
    }
    if (status == STATUS_OK) {
        status = journal_prepare(&statement, journal, error,
                                 "SELECT device FROM devices WHERE name = ?", "t", name);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = journal_next(journal, statement, error);
    if (status == STATUS_OK) {
        status = journal_number(&bundle->device, journal, statement, 0, INT64_MAX, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}
