/* whole_file.c - see whole_file.h. */
#include "base/io/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_TRIES 100 /* random names that are taken, before we give up */
#define PART       ".part-"
#define DRAWN      6 /* letters behind it */

bool whole_file_is_part(const char *name)
{
    const size_t length = strlen(name);
    const size_t tail = strlen(PART) + DRAWN;

    return length > tail && memcmp(name + length - tail, PART, strlen(PART)) == 0;
}

int whole_file_make_part(char *path, mode_t mode, bool folder)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    char *end = path + strlen(path) - DRAWN;
    uint8_t drawn[DRAWN];

    for (int tries = 0; tries < PART_TRIES; tries++) {
        int made;

        if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn)) {
            return -1;
        }
        for (size_t i = 0; i < sizeof(drawn); i++) {
            end[i] = letters[drawn[i] % 32];
        }
        made = folder ? mkdir(path, mode) : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (made >= 0 || errno != EEXIST) {
            return made;
        }
    }
    return -1;
}

enum status whole_file_open(struct whole_file *file, struct error *error, const char *path,
                            mode_t mode)
{
    size_t length = strlen(path);
    struct stat made;

    file->descriptor = -1;
    file->mode = mode;
    if (length == 0 || length >= sizeof(file->path)) {
        return error_set(error, STATUS_OVER_LIMIT, "a path of %zu bytes: '%.60s...'", length, path);
    }
    memcpy(file->path, path, length + 1);
    (void)snprintf(file->part_path, sizeof(file->part_path), "%s" PART "XXXXXX", path);
    file->descriptor = whole_file_make_part(file->part_path, mode, false);
    if (file->descriptor < 0) {
        return error_set_errno(error, "cannot make '%s'", path);
    }
    if (fstat(file->descriptor, &made) != 0) {
        enum status status = error_set_errno(error, "cannot make '%s'", path);

        whole_file_drop(file);
        return status;
    }
    /* The umask may take from group and others, never from the owner. */
    file->mode = (made.st_mode & mode) | (mode & 0700);
    return STATUS_OK;
}

enum status whole_file_add(struct whole_file *file, struct error *error, const void *data,
                           size_t data_size)
{
    const char *bytes = data;

    while (data_size > 0) {
        ssize_t written = write(file->descriptor, bytes, data_size);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return error_set_errno(error, "cannot write '%s'", file->path);
        }
        bytes += written;
        data_size -= (size_t)written;
    }
    return STATUS_OK;
}

enum status whole_file_room(uint64_t *first, struct whole_file *file, struct error *error,
                            uint64_t data_size)
{
    off_t here = lseek(file->descriptor, 0, SEEK_CUR);

    if (here < 0 || ftruncate(file->descriptor, here + (off_t)data_size) != 0) {
        return error_set_errno(error, "cannot write '%s'", file->path);
    }
    *first = (uint64_t)here;
    return STATUS_OK;
}

/* The folder that path lies in; "." where path has none. */
static enum status folder_of(char *out, size_t out_size, struct error *error, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);

    if (length >= out_size) {
        return error_set(error, STATUS_OVER_LIMIT, "path too long: %.60s...", path);
    }
    if (slash == NULL) {
        snprintf(out, out_size, ".");
    } else if (length == 0) {
        snprintf(out, out_size, "/");
    } else {
        memcpy(out, path, length);
        out[length] = '\0';
    }
    return STATUS_OK;
}

enum status whole_file_sync_folder(const char *path, struct error *error)
{
    char folder[WHOLE_FILE_PATH_MAX];
    enum status status = STATUS_OK;
    int descriptor;

    TRY(folder_of(folder, sizeof(folder), error, path));
    descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        return error_set_errno(error, "%s", folder);
    }
    /* Some file systems cannot sync a folder and say so with EINVAL; they need no sync. */
    if (fsync(descriptor) != 0 && errno != EINVAL) {
        status = error_set_errno(error, "%s", folder);
    }
    close(descriptor);
    return status;
}

/* Syncs the file, sets its mode and closes it. */
static enum status finish_file(struct whole_file *file, struct error *error)
{
    int descriptor = file->descriptor;
    enum status status = STATUS_OK;

    if (fchmod(descriptor, file->mode) != 0 || fsync(descriptor) != 0) {
        status = error_set_errno(error, "cannot write '%s'", file->path);
    }
    file->descriptor = -1;
    if (close(descriptor) != 0 && status == STATUS_OK) {
        status = error_set_errno(error, "cannot write '%s'", file->path);
    }
    return status;
}

enum status whole_file_keep(struct whole_file *file, struct error *error)
{
    enum status status = finish_file(file, error);

    if (status == STATUS_OK && rename(file->part_path, file->path) != 0) {
        status = error_set_errno(error, "cannot write '%s'", file->path);
    }
    if (status != STATUS_OK) {
        (void)unlink(file->part_path);
        return status;
    }
    /* A rename is lost in a crash until the folder that holds the name is synced. */
    return whole_file_sync_folder(file->path, error);
}

/* As rename, but never replaces a file; errno says why not. */
static bool move_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return true;
    }
    /* File systems that cannot say "no replace" refuse a second link to a name that is there. */
    if ((errno != EINVAL && errno != ENOSYS) || link(from, to) != 0) {
        return false;
    }
    (void)unlink(from);
    return true;
}

enum status whole_file_keep_new(struct whole_file *file, struct error *error)
{
    enum status status = finish_file(file, error);

    if (status == STATUS_OK && !move_new(file->part_path, file->path)) {
        status = errno == EEXIST
                     ? error_set(error, STATUS_REFUSED, "%s: exists already", file->path)
                     : error_set_errno(error, "cannot write '%s'", file->path);
    }
    if (status != STATUS_OK) {
        (void)unlink(file->part_path);
        return status;
    }
    return whole_file_sync_folder(file->path, error);
}

void whole_file_drop(struct whole_file *file)
{
    if (file->descriptor >= 0) {
        close(file->descriptor);
        unlink(file->part_path);
        file->descriptor = -1;
    }
}

enum status whole_file_read_open(int *descriptor, uint64_t *size, struct error *error,
                                 const char *path)
{
    struct stat stat;

    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*descriptor < 0) {
        enum status status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO;

        error_set_errno(error, "cannot open '%s'", path);
        if (error != NULL) {
            error->status = status;
        }
        return status;
    }
    if (fstat(*descriptor, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        close(*descriptor);
        *descriptor = -1;
        return error_set(error, STATUS_BAD_FORMAT, "'%s' is not a regular file", path);
    }
    *size = (uint64_t)stat.st_size;
    return STATUS_OK;
}

enum status whole_file_read_at(int descriptor, struct error *error, void *data, size_t data_size,
                               uint64_t offset, const char *path)
{
    char *bytes = data;

    while (data_size > 0) {
        ssize_t got = pread(descriptor, bytes, data_size, (off_t)offset);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(error, "cannot read '%s'", path);
        }
        if (got == 0) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' ends at byte %llu", path,
                             (unsigned long long)offset);
        }
        bytes += got;
        data_size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return STATUS_OK;
}

enum status whole_file_write_at(int descriptor, struct error *error, const void *data,
                                size_t data_size, uint64_t offset, const char *path)
{
    const char *bytes = data;

    while (data_size > 0) {
        ssize_t written = pwrite(descriptor, bytes, data_size, (off_t)offset);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return error_set_errno(error, "cannot write '%s'", path);
        }
        bytes += written;
        data_size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return STATUS_OK;
}
