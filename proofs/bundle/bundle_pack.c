/* bundle_pack.c - see bundle_pack.h. The journal's bytes are in pack_journal.c. */
#include "proofs/bundle/bundle_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/whole_file.h"
#include "proofs/bundle/pack_parts.h"
#include "proofs/commit/commit.h"
#include "proofs/format/safetensors.h"

#define PIECE_SIZE ((size_t)1 << 20)

/* ---- export ------------------------------------------------------------- */

static enum status copy_file(struct archive_writer *archive, const char *name, const char *path,
                             uint64_t size_max, struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    uint64_t size = 0;
    int descriptor = -1;
    enum status status = piece == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "no memory for %s", path)
                             : whole_file_read_open(&descriptor, &size, error, path);

    if (status == STATUS_OK && size > size_max) {
        status = error_set(error, STATUS_OVER_LIMIT, "%s has %" PRIu64 " bytes", path, size);
    }
    if (status == STATUS_OK) {
        status = archive_writer_begin(archive, error, name, size);
    }
    for (uint64_t at = 0; status == STATUS_OK && at < size; at += PIECE_SIZE) {
        size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        status = whole_file_read_at(descriptor, error, piece, taken, at, path);
        if (status == STATUS_OK) {
            status = archive_writer_add(archive, error, piece, taken);
        }
    }
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
    status = job_encode(&bytes, bundle->job, error);
    if (status == STATUS_OK) {
        status = archive_writer_begin(archive, error, "job", bytes.size);
    }
    if (status == STATUS_OK) {
        status = archive_writer_add(archive, error, bytes.data, bytes.size);
    }
    buffer_release(&bytes);
    return status;
}

static enum status pack_journal(struct archive_writer *archive, struct bundle *bundle,
                                struct error *error)
{
    uint64_t size = 0;
    enum status status = pack_journal_size(&size, bundle, error);

    if (status == STATUS_OK) {
        status = archive_writer_begin(archive, error, "journal", size);
    }
    return status == STATUS_OK ? pack_journal_write(archive, bundle, error) : status;
}

static enum status pack_lock(struct archive_writer *archive, struct bundle *bundle,
                             struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status = bundle_file(path, bundle, "key.lock", error);

    if (status != STATUS_OK || !bundle->sealed || !file_exists(path)) {
        return status;
    }
    return copy_file(archive, "key.lock", path, ENCRYPTION_LOCK_SIZE, error);
}

static enum status pack_checkpoint(struct archive_writer *archive, struct bundle *bundle,
                                   uint64_t step, struct error *error)
{
    char name[BUNDLE_CONTEXT_MAX];
    char path[FILE_PATH_MAX];
    enum status status = bundle_checkpoint_path(path, bundle, step, error);

    bundle_checkpoint_name(name, step);
    /* What the owner can check here should not be found out by whoever it is sent to. */
    if (status == STATUS_OK && !bundle_is_locked(bundle)) {
        status = bundle_checkpoint_check(bundle, step, error);
    }
    if (status == STATUS_OK) {
        status = copy_file(archive, name, path, ARCHIVE_ENTRY_MAX, error);
    }
    /* The journal names it: that it is gone is not the end of the list. */
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
    uint64_t last = UINT64_MAX;
    uint64_t step = 0;
    enum status status = last_checkpoint(&last, bundle, error);

    while (status == STATUS_OK &&
           (status = bundle_checkpoint_find(&step, bundle, step, error)) == STATUS_OK) {
        if (which == BUNDLE_PACK_ALL || (which == BUNDLE_PACK_LAST && step == last) ||
            (step == 0 && bundle->job->first_state_given)) {
            status = pack_checkpoint(archive, bundle, step, error);
        }
        step++;
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status pack_all(struct archive_writer *archive, struct bundle *bundle,
                            enum bundle_pack_checkpoints which, struct error *error)
{
    enum status status = pack_job(archive, bundle, error);

    if (status == STATUS_OK) {
        status = pack_journal(archive, bundle, error);
    }
    if (status == STATUS_OK) {
        status = pack_lock(archive, bundle, error);
    }
    return status == STATUS_OK ? pack_checkpoints(archive, bundle, which, error) : status;
}

enum status bundle_export(struct bundle *bundle, const char *path,
                          enum bundle_pack_checkpoints checkpoints, struct error *error)
{
    struct archive_writer *archive = malloc(sizeof(*archive));
    enum status status;

    if (archive == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an archive");
    }
    status = file_exists(path) ? error_set(error, STATUS_REFUSED, "%s: exists already", path)
                               : archive_writer_open(archive, error, path);
    if (status == STATUS_OK) {
        status = bundle_flush(bundle, error);
        /* One view of the journal, whoever goes on writing it. */
        if (status == STATUS_OK) {
            status = journal_run(&bundle->journal, "BEGIN", error);
        }
        if (status == STATUS_OK) {
            status = pack_all(archive, bundle, checkpoints, error);
        }
        if (journal_in_transaction(&bundle->journal)) {
            enum status ended = journal_run(&bundle->journal, "ROLLBACK", NULL);

            (void)ended; /* it was only read */
        }
        if (status == STATUS_OK) {
            status = archive_writer_keep(archive, error);
        } else {
            archive_writer_drop(archive);
        }
    }
    free(archive);
    return status;
}

/* ---- import ------------------------------------------------------------- */

struct importer {
    struct bundle_import *import;
    struct archive_reader *archive;
    struct bundle *bundle;    /* NULL until the job was read */
    char part[FILE_PATH_MAX]; /* the folder, until it is whole */
    uint64_t next_checkpoint; /* the least step that may come */
    bool journal_read;
    bool lock_read;
};

static enum status misplaced(struct error *error, const char *name)
{
    return error_set(error, STATUS_BAD_FORMAT, "'%s' is not what comes next in a bundle", name);
}

/* The memory grows with what really comes, not with what is announced. */
static enum status read_entry(struct buffer *bytes, struct archive_reader *archive, uint64_t size,
                              struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    enum status status = STATUS_OK;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a file of the archive");
    }
    for (uint64_t at = 0; status == STATUS_OK && at < size; at += PIECE_SIZE) {
        size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        status = archive_reader_read(archive, error, piece, taken);
        if (status == STATUS_OK) {
            buffer_add(bytes, piece, taken);
            status = buffer_check(bytes, error, "a file of the archive");
        }
    }
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
    status = read_entry(&bytes, importer->archive, size, error);
    if (status == STATUS_OK) {
        status = job_parse(&job, bytes.data, bytes.size, error);
    }
    buffer_release(&bytes);
    if (status == STATUS_OK) {
        status = bundle_create(&importer->bundle, importer->part, job, error);
    }
    /* Nobody sees the folder before the end, where all of it is synced at once. */
    return status == STATUS_OK
               ? journal_run(&importer->bundle->journal, "PRAGMA synchronous=OFF", error)
               : status;
}

static enum status import_lock(struct importer *importer, uint64_t size, struct error *error)
{
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    char path[FILE_PATH_MAX];
    enum status status;

    if (size != sizeof(lock)) {
        return error_set(error, STATUS_BAD_FORMAT, "a locked key of %" PRIu64 " bytes", size);
    }
    status = archive_reader_read(importer->archive, error, lock, sizeof(lock));
    if (status == STATUS_OK) {
        status = bundle_file(path, importer->bundle, "key.lock", error);
    }
    if (status == STATUS_OK) {
        status = file_write_new(path, error, lock, sizeof(lock), 0600);
    }
    importer->lock_read = true;
    return status;
}

/* Once journal and lock are there; a key that does not fit is the user's to correct. */
static enum status unlock(struct importer *importer, struct error *error)
{
    const struct bundle_import *import = importer->import;

    if (import->key != NULL) {
        return bundle_unlock(importer->bundle, import->key, error);
    }
    if (import->passphrase != NULL && importer->bundle->sealed) {
        return bundle_unlock_with(importer->bundle, import->passphrase, import->passphrase_size,
                                  error);
    }
    return STATUS_OK;
}

/* The most that a file with these states can have. */
static uint64_t checkpoint_size_max(const struct bundle *bundle)
{
    uint64_t plain = tape_footprint(bundle->job->tape).state + 8 + SAFETENSORS_HEADER_MAX;

    return bundle->sealed ? plain + ENCRYPTION_HEADER_SIZE +
                                (plain / ENCRYPTION_CHUNK_SIZE + 1) * ENCRYPTION_TAG_SIZE
                          : plain;
}

static enum status write_entry(struct archive_reader *archive, const char *path, uint64_t size,
                               struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    struct whole_file file;
    enum status status = piece == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "no memory for %s", path)
                             : whole_file_open(&file, error, path, 0644);

    if (status != STATUS_OK) {
        free(piece);
        return status;
    }
    for (uint64_t at = 0; status == STATUS_OK && at < size; at += PIECE_SIZE) {
        size_t taken = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;

        status = archive_reader_read(archive, error, piece, taken);
        if (status == STATUS_OK) {
            status = whole_file_add(&file, error, piece, taken);
        }
    }
    if (status == STATUS_OK) {
        status = whole_file_keep(&file, error);
    } else {
        whole_file_drop(&file);
    }
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
    if (status == STATUS_OK && size > checkpoint_size_max(bundle)) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the checkpoint before step %" PRIu64 " has %" PRIu64
                         " bytes, more than the job's state",
                         step, size);
    }
    if (status == STATUS_OK) {
        status = bundle_checkpoint_path(path, bundle, step, error);
    }
    if (status == STATUS_OK) {
        status = write_entry(importer->archive, path, size, error);
    }
    if (status == STATUS_OK && !bundle_is_locked(bundle)) {
        status = bundle_checkpoint_check(bundle, step, error);
    } else if (status == STATUS_OK) {
        importer->import->unchecked++;
    }
    importer->import->checkpoints++;
    importer->next_checkpoint = step + 1;
    return status == STATUS_OK ? bundle_checkpoint_enter(bundle, step, &root, error) : status;
}

/* The step of a checkpoint's name; false: it is none. */
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

/* Names are compared with the few that there are: no path of the archive is ever followed. */
static enum status import_entry(struct importer *importer, const char *name, uint64_t size,
                                struct error *error)
{
    uint64_t step;
    enum status status;

    if (importer->bundle == NULL) {
        return strcmp(name, "job") == 0 ? import_job(importer, size, error)
                                        : misplaced(error, name);
    }
    if (!importer->journal_read) {
        importer->journal_read = true;
        return strcmp(name, "journal") == 0
                   ? pack_journal_read(importer->bundle, importer->archive, size, error)
                   : misplaced(error, name);
    }
    if (strcmp(name, "key.lock") == 0 && importer->bundle->sealed && !importer->lock_read &&
        importer->next_checkpoint == 0) {
        status = import_lock(importer, size, error);
        return status == STATUS_OK ? unlock(importer, error) : status;
    }
    if (!step_of_entry(&step, name) || step < importer->next_checkpoint) {
        return misplaced(error, name);
    }
    status = importer->import->key != NULL && importer->next_checkpoint == 0
                 ? unlock(importer, error)
                 : STATUS_OK;
    return status == STATUS_OK ? import_checkpoint(importer, step, size, error) : status;
}

static enum status import_all(struct importer *importer, struct error *error)
{
    char name[ARCHIVE_NAME_MAX + 1];
    uint64_t size;
    enum status status;

    while ((status = archive_reader_next(importer->archive, error, name, &size)) == STATUS_OK) {
        status = import_entry(importer, name, size, error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (status == STATUS_NOT_FOUND && !importer->journal_read) {
        return error_set(error, STATUS_BAD_FORMAT, "the archive holds no bundle");
    }
    return status == STATUS_NOT_FOUND
               ? journal_run(&importer->bundle->journal,
                             "PRAGMA synchronous=FULL; PRAGMA wal_checkpoint(TRUNCATE)", error)
               : status;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

static enum status put_in_place(const char *part, const char *folder, struct error *error)
{
    int failed = renameat2(AT_FDCWD, part, AT_FDCWD, folder, RENAME_NOREPLACE);

    /* Not every file system can; a folder that is there and not empty is never replaced. */
    if (failed != 0 && errno == EINVAL) {
        failed = rename(part, folder);
    }
    if (failed != 0) {
        return errno == EEXIST || errno == ENOTEMPTY
                   ? error_set(error, STATUS_REFUSED, "%s: exists already", folder)
                   : error_set_errno(error, "cannot make %s", folder);
    }
    return file_sync_folder(folder, error);
}

enum status bundle_import_archive(const char *folder, struct archive_reader *archive,
                                  struct bundle_import *import, struct error *error)
{
    struct importer importer = {.import = import, .archive = archive};
    enum status status;
    size_t name_size = strlen(folder);
    int length;

    import->checkpoints = 0;
    import->unchecked = 0;
    while (name_size > 1 && folder[name_size - 1] == '/') {
        name_size--; /* the part stands beside the folder, not in it */
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
    /* Closing brings the journal's log into the journal. */
    bundle_close(importer.bundle);
    if (status == STATUS_OK) {
        status = put_in_place(importer.part, folder, error);
    }
    if (status != STATUS_OK) {
        (void)nftw(importer.part, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
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
    status = archive_reader_open(archive, error, path, import->size_max);
    if (status == STATUS_OK) {
        status = bundle_import_archive(folder, archive, import, error);
        archive_reader_close(archive);
        if (status != STATUS_OK) {
            (void)error_wrap(error, "%s", path);
        }
    }
    free(archive);
    return status;
}
