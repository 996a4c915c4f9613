/* bundle_pack.c - see bundle_pack.h. The journal's bytes are in pack_journal.c. */
#include "proofs/bundle/bundle_pack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/whole_file.h"
#include "proofs/bundle/pack_journal.h"
#include "proofs/bundle/stop_rule.h"
#include "proofs/commit/commit.h"
#include "proofs/format/safetensors.h"
#include "proofs/job/job_file.h"

#define PIECE_SIZE ((size_t)1 << 20)

/* ---- export ------------------------------------------------------------- */

static enum status copy_file(struct archive_writer *archive, const char *name, const char *path,
                             uint64_t size_max, struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    uint64_t size = 0;
    int descriptor = -1;
    enum status status;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %s", path);
    }
    TRY_OUT(whole_file_read_open(&descriptor, &size, error, path));
    TRY_OUT(size > size_max
                ? error_set(error, STATUS_OVER_LIMIT, "%s has %" PRIu64 " bytes", path, size)
                : archive_writer_begin(archive, error, name, size));
    for (uint64_t at = 0; at < size; at += PIECE_SIZE) {
        size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        TRY_OUT(whole_file_read_at(descriptor, error, piece, taken, at, path));
        TRY_OUT(archive_writer_add(archive, error, piece, taken));
    }
out:
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    free(piece);
    return status;
}

static enum status pack_job(struct archive_writer *archive, struct bundle *bundle,
                            struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    TRY_OUT(job_encode(&bytes, bundle->job, error));
    TRY_OUT(archive_writer_begin(archive, error, "job", bytes.size));
    TRY_OUT(archive_writer_add(archive, error, bytes.data, bytes.size));
out:
    buffer_release(&bytes);
    return status;
}

static enum status pack_journal(struct archive_writer *archive, struct bundle *bundle,
                                struct error *error)
{
    uint64_t size;

    TRY(pack_journal_size(&size, bundle, error));
    TRY(archive_writer_begin(archive, error, "journal", size));
    return pack_journal_write(archive, bundle, error);
}

static enum status pack_lock(struct archive_writer *archive, struct bundle *bundle,
                             struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, "key.lock", error));
    return bundle->encrypted && file_exists(path)
               ? copy_file(archive, "key.lock", path, ENCRYPTION_LOCK_SIZE, error)
               : STATUS_OK;
}

static enum status pack_rule(struct archive_writer *archive, struct bundle *bundle,
                             struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_file(path, bundle, STOP_RULE_FILE, error));
    return file_exists(path) ? copy_file(archive, STOP_RULE_FILE, path, STOP_RULE_SIZE, error)
                             : STATUS_OK;
}

static enum status pack_checkpoint(struct archive_writer *archive, struct bundle *bundle,
                                   uint64_t step, struct error *error)
{
    char name[BUNDLE_CONTEXT_MAX];
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(bundle_checkpoint_path(path, bundle, step, error));
    bundle_checkpoint_name(name, step);
    /* The sender finds a damaged checkpoint, where he can, not the receiver. */
    if (!bundle_is_locked(bundle)) {
        TRY_OUT(bundle_checkpoint_check(bundle, step, error));
    }
    TRY_OUT(copy_file(archive, name, path, ARCHIVE_ENTRY_MAX, error));
out:
    /* To the caller STATUS_NOT_FOUND is the end of the list of checkpoints. */
    return status == STATUS_NOT_FOUND
               ? error_set(error, STATUS_BAD_FORMAT, "%s is in the journal and not there", path)
               : status;
}

static enum status last_checkpoint(uint64_t *last, struct bundle *bundle, struct error *error)
{
    uint64_t from = 0;
    enum status status;

    *last = UINT64_MAX;
    while ((status = bundle_checkpoint_find(&from, bundle, from, error)) == STATUS_OK) {
        *last = from++;
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status pack_checkpoints(struct archive_writer *archive, struct bundle *bundle,
                                    enum bundle_pack_checkpoints which, struct error *error)
{
    uint64_t last;
    uint64_t step = 0;
    enum status status;

    TRY(last_checkpoint(&last, bundle, error));
    while ((status = bundle_checkpoint_find(&step, bundle, step, error)) == STATUS_OK) {
        if (which == BUNDLE_PACK_ALL || (which == BUNDLE_PACK_LAST && step == last) ||
            (step == 0 && bundle->job->first_state_given)) {
            TRY(pack_checkpoint(archive, bundle, step, error));
        }
        step++;
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status pack_all(struct archive_writer *archive, struct bundle *bundle,
                            enum bundle_pack_checkpoints which, struct error *error)
{
    TRY(pack_job(archive, bundle, error));
    TRY(pack_journal(archive, bundle, error));
    TRY(pack_lock(archive, bundle, error));
    TRY(pack_rule(archive, bundle, error));
    return pack_checkpoints(archive, bundle, which, error);
}

/* Inside a transaction: one view of the journal, even while another process writes it. */
static enum status pack_snapshot(struct archive_writer *archive, struct bundle *bundle,
                                 enum bundle_pack_checkpoints which, struct error *error)
{
    enum status status;

    TRY(bundle_flush(bundle, error));
    TRY(database_execute(bundle->database, "BEGIN", error));
    status = pack_all(archive, bundle, which, error);
    if (database_in_transaction(bundle->database)) {
        enum status ended = database_execute(bundle->database, "ROLLBACK", NULL);

        (void)ended; /* The transaction only read. */
    }
    return status;
}

enum status bundle_export(struct bundle *bundle, const char *path,
                          enum bundle_pack_checkpoints checkpoints, struct error *error)
{
    struct archive_writer *archive = malloc(sizeof(*archive));
    enum status status;

    if (archive == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an archive");
    }
    TRY_OUT(file_exists(path) ? error_set(error, STATUS_REFUSED, "%s: exists already", path)
                              : archive_writer_open(archive, error, path));
    status = pack_snapshot(archive, bundle, checkpoints, error);
    status = status == STATUS_OK ? archive_writer_keep(archive, error) : status;
    archive_writer_drop(archive); /* does nothing after keep */
out:
    free(archive);
    return status;
}

/* ---- import ------------------------------------------------------------- */

struct importer {
    struct bundle_import *import;
    struct archive_reader *archive;
    struct bundle *bundle;    /* NULL: the job is not read yet */
    char part[FILE_PATH_MAX]; /* the folder, until it is whole */
    uint64_t next_checkpoint; /* the next checkpoint must be of this step or later */
    bool journal_read;
    bool lock_read;
    bool rule_read;
};

static enum status misplaced_entry(struct error *error, const char *name)
{
    return error_set(error, STATUS_BAD_FORMAT, "'%s' is not what comes next in a bundle", name);
}

/* Memory grows with the bytes that arrive, not with the size that the archive announces. */
static enum status read_entry(struct buffer *bytes, struct archive_reader *archive, uint64_t size,
                              struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    enum status status = STATUS_OK;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a file of the archive");
    }
    for (uint64_t at = 0; at < size; at += PIECE_SIZE) {
        size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        TRY_OUT(archive_reader_read(archive, error, piece, taken));
        buffer_add(bytes, piece, taken);
        TRY_OUT(buffer_check(bytes, error, "a file of the archive"));
    }
out:
    free(piece);
    return status;
}

static enum status import_job(struct importer *importer, uint64_t size, struct error *error)
{
    struct buffer bytes;
    struct job *job = NULL;
    enum status status;

    if (size > JOB_FILE_SIZE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a job of %" PRIu64 " bytes", size);
    }
    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    TRY_OUT(read_entry(&bytes, importer->archive, size, error));
    TRY_OUT(job_parse(&job, bytes.data, bytes.size, error));
    TRY_OUT(bundle_create(&importer->bundle, importer->part, job, error));
    assert(importer->bundle != NULL);
    /* Nobody sees the folder before the end of the import, which syncs all of it. */
    TRY_OUT(database_execute(importer->bundle->database, "PRAGMA synchronous=OFF", error));
out:
    buffer_release(&bytes);
    return status;
}

static enum status import_lock(struct importer *importer, uint64_t size, struct error *error)
{
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    char path[FILE_PATH_MAX];

    if (size != sizeof(lock)) {
        return error_set(error, STATUS_BAD_FORMAT, "a locked key of %" PRIu64 " bytes", size);
    }
    TRY(archive_reader_read(importer->archive, error, lock, sizeof(lock)));
    TRY(bundle_file(path, importer->bundle, "key.lock", error));
    TRY(file_write_new(path, error, lock, sizeof(lock), 0600));
    importer->lock_read = true;
    return STATUS_OK;
}

static enum status import_rule(struct importer *importer, uint64_t size, struct error *error)
{
    uint8_t bytes[STOP_RULE_SIZE];
    struct stop_rule rule;

    if (size != sizeof(bytes)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s has %" PRIu64 " bytes", STOP_RULE_FILE,
                         size);
    }
    TRY(archive_reader_read(importer->archive, error, bytes, sizeof(bytes)));
    TRY(stop_rule_parse(&rule, bytes, sizeof(bytes), error));
    importer->rule_read = true;
    return stop_rule_write(importer->bundle, &rule, error);
}

/* Needs the journal and the lock. STATUS_REFUSED: the user gave another bundle's key. */
static enum status unlock_bundle(struct importer *importer, struct error *error)
{
    const struct bundle_import *import = importer->import;

    if (import->key != NULL) {
        return bundle_unlock(importer->bundle, import->key, error);
    }
    if (import->passphrase != NULL && importer->bundle->encrypted) {
        return bundle_unlock_with(importer->bundle, import->passphrase, import->passphrase_size,
                                  error);
    }
    return STATUS_OK;
}

/* The largest file that these states can take. */
static uint64_t checkpoint_size_max(const struct bundle *bundle)
{
    uint64_t plain = tape_footprint(bundle->job->tape).state + 8 + SAFETENSORS_HEADER_MAX;

    return bundle->encrypted ? plain + ENCRYPTION_HEADER_SIZE +
                                   (plain / ENCRYPTION_CHUNK_SIZE + 1) * ENCRYPTION_TAG_SIZE
                             : plain;
}

static enum status fill_file(struct whole_file *file, struct archive_reader *archive,
                             uint8_t *piece, uint64_t size, struct error *error)
{
    for (uint64_t at = 0; at < size; at += PIECE_SIZE) {
        size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        TRY(archive_reader_read(archive, error, piece, taken));
        TRY(whole_file_add(file, error, piece, taken));
    }
    return STATUS_OK;
}

static enum status write_entry(struct archive_reader *archive, const char *path, uint64_t size,
                               struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    struct whole_file file;
    enum status status;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %s", path);
    }
    TRY_OUT(whole_file_open(&file, error, path, 0644));
    status = fill_file(&file, archive, piece, size, error);
    if (status == STATUS_OK) {
        status = whole_file_keep(&file, error);
    } else {
        whole_file_drop(&file);
    }
out:
    free(piece);
    return status;
}

static enum status import_checkpoint(struct importer *importer, uint64_t step, uint64_t size,
                                     struct error *error)
{
    struct bundle *bundle = importer->bundle;
    struct digest root;
    char path[FILE_PATH_MAX];
    enum status status = bundle_state_root(&root, bundle, step, error);

    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a checkpoint before step %" PRIu64 ", to which the journal does not come",
                         step);
    }
    TRY(status);
    if (size > checkpoint_size_max(bundle)) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the checkpoint before step %" PRIu64 " has %" PRIu64
                         " bytes, more than the job's state",
                         step, size);
    }
    TRY(bundle_checkpoint_path(path, bundle, step, error));
    TRY(write_entry(importer->archive, path, size, error));
    if (bundle_is_locked(bundle)) {
        importer->import->unchecked++;
    } else {
        TRY(bundle_checkpoint_check(bundle, step, error));
    }
    importer->import->checkpoints++;
    importer->next_checkpoint = step + 1;
    return bundle_checkpoint_enter(bundle, step, &root, error);
}

/* The step in a checkpoint's name; false: it is no checkpoint's name. */
static bool step_of_entry(uint64_t *step, const char *name)
{
    char wanted[BUNDLE_CONTEXT_MAX];

    if (strncmp(name, "checkpoints/", 12) != 0 || strspn(name + 12, "0123456789") != 12) {
        return false;
    }
    *step = strtoull(name + 12, NULL, 10);
    bundle_checkpoint_name(wanted, *step);
    return strcmp(wanted, name) == 0;
}

/* The archive's names are compared with ours, and never used as paths. */
static enum status import_entry(struct importer *importer, const char *name, uint64_t size,
                                struct error *error)
{
    uint64_t step;

    if (importer->bundle == NULL) {
        return strcmp(name, "job") == 0 ? import_job(importer, size, error)
                                        : misplaced_entry(error, name);
    }
    if (!importer->journal_read) {
        importer->journal_read = true;
        return strcmp(name, "journal") == 0
                   ? pack_journal_read(importer->bundle, importer->archive, size, error)
                   : misplaced_entry(error, name);
    }
    if (strcmp(name, "key.lock") == 0 && importer->bundle->encrypted && !importer->lock_read &&
        !importer->rule_read && importer->next_checkpoint == 0) {
        TRY(import_lock(importer, size, error));
        return unlock_bundle(importer, error);
    }
    if (strcmp(name, STOP_RULE_FILE) == 0 && !importer->rule_read &&
        importer->next_checkpoint == 0) {
        return import_rule(importer, size, error);
    }
    if (!step_of_entry(&step, name) || step < importer->next_checkpoint) {
        return misplaced_entry(error, name);
    }
    if (importer->import->key != NULL && importer->next_checkpoint == 0) {
        TRY(unlock_bundle(importer, error));
    }
    return import_checkpoint(importer, step, size, error);
}

static enum status import_all(struct importer *importer, struct error *error)
{
    char name[ARCHIVE_NAME_MAX + 1];
    uint64_t size;
    enum status status;

    while ((status = archive_reader_next(importer->archive, error, name, &size)) == STATUS_OK) {
        TRY(import_entry(importer, name, size, error));
    }
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    if (!importer->journal_read) {
        return error_set(error, STATUS_BAD_FORMAT, "the archive holds no bundle");
    }
    return database_execute(importer->bundle->database,
                            "PRAGMA synchronous=FULL; PRAGMA wal_checkpoint(TRUNCATE)", error);
}

static enum status put_in_place(const char *part, const char *folder, struct error *error)
{
    int failed = renameat2(AT_FDCWD, part, AT_FDCWD, folder, RENAME_NOREPLACE);

    /* Some file systems cannot. rename() never replaces a folder that is not empty. */
    if (failed != 0 && errno == EINVAL) {
        failed = rename(part, folder);
    }
    if (failed != 0) {
        return errno == EEXIST || errno == ENOTEMPTY
                   ? error_set(error, STATUS_REFUSED, "%s: exists already", folder)
                   : error_set_errno(error, "cannot make %s", folder);
    }
    return whole_file_sync_folder(folder, error);
}

static enum status import_archive(const char *folder, struct archive_reader *archive,
                                  struct bundle_import *import, struct error *error)
{
    struct importer importer = {.import = import, .archive = archive};
    enum status status;
    size_t name_size = strlen(folder);
    int length;

    import->checkpoints = 0;
    import->unchecked = 0;
    while (name_size > 1 && folder[name_size - 1] == '/') {
        name_size--; /* The part lies beside the folder, not in it. */
    }
    length = snprintf(importer.part, sizeof(importer.part), "%.*s.import-XXXXXX",
                      (int)(name_size < FILE_PATH_MAX ? name_size : FILE_PATH_MAX), folder);
    if (length < 0 || (size_t)length >= sizeof(importer.part)) {
        return error_set(error, STATUS_OVER_LIMIT, "the path of '%.100s...' is too long", folder);
    }
    if (file_exists(folder)) {
        return error_set(error, STATUS_REFUSED, "%s: exists already", folder);
    }
    if (whole_file_make_part(importer.part, 0755, true) < 0) {
        return error_set_errno(error, "cannot make %s", importer.part);
    }
    status = import_all(&importer, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "byte %" PRIu64 " of what is in it", archive->unpacked);
    }
    /* Closing merges the journal's log into the journal. */
    bundle_close(importer.bundle);
    if (status == STATUS_OK) {
        status = put_in_place(importer.part, folder, error);
    }
    if (status != STATUS_OK) {
        file_remove_folder(importer.part);
    }
    return status;
}

enum status bundle_import(const char *folder, const char *path, struct bundle_import *import,
                          struct error *error)
{
    struct archive_reader *archive = malloc(sizeof(*archive));
    enum status status;

    if (archive == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an archive");
    }
    TRY_OUT(archive_reader_open(archive, error, path, import->size_max));
    status = import_archive(folder, archive, import, error);
    archive_reader_close(archive);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
    }
out:
    free(archive);
    return status;
}
