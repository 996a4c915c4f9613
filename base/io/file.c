/* file.c - see file.h. */
#include "base/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/whole_file.h"

/* ---- reading ---------------------------------------------------------------------------- */

static enum status open_failed(struct error *error, const char *path)
{
    int number = errno;

    (void)error_set_errno(error, "%s", path);
    if (number == ENOENT || number == ENOTDIR) {
        if (error != NULL) {
            error->status = STATUS_NOT_FOUND;
        }
        return STATUS_NOT_FOUND;
    }
    return STATUS_IO;
}

/* The file may grow while it is read, so the bound is kept on bytes that really arrived. */
static enum status read_all(struct file_bytes *bytes, struct error *error, const char *path,
                            int descriptor, size_t capacity)
{
    for (;;) {
        ssize_t got = read(descriptor, bytes->data + bytes->size, capacity - bytes->size);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(error, "%s", path);
        }
        if (got == 0) {
            bytes->data[bytes->size] = '\0';
            return STATUS_OK;
        }
        bytes->size += (size_t)got;
        if (bytes->size == capacity) {
            return error_set(error, STATUS_OVER_LIMIT, "%s: grew while it was read", path);
        }
    }
}

static enum status read_descriptor(struct file_bytes *bytes, struct error *error, const char *path,
                                   int descriptor, size_t size_max)
{
    struct stat info;
    size_t capacity;

    if (fstat(descriptor, &info) != 0) {
        return error_set_errno(error, "%s", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return error_set(error, STATUS_REFUSED, "%s: not a regular file", path);
    }
    if ((uintmax_t)info.st_size > size_max) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: larger than %zu bytes", path, size_max);
    }
    /* One for the NUL, one to see that the file has grown. */
    capacity = (size_t)info.st_size + 2;
    bytes->data = malloc(capacity);
    if (bytes->data == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "%s: no memory for %zu bytes", path, capacity);
    }
    return read_all(bytes, error, path, descriptor, capacity - 1);
}

enum status file_read(struct file_bytes *bytes, struct error *error, const char *path,
                      size_t size_max)
{
    /* Not blocking: opening a pipe that nobody writes must not hang before it is refused. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    enum status status;

    memset(bytes, 0, sizeof(*bytes));
    if (descriptor < 0) {
        return open_failed(error, path);
    }
    status = read_descriptor(bytes, error, path, descriptor, size_max);
    close(descriptor);
    if (status != STATUS_OK) {
        file_bytes_release(bytes);
    }
    return status;
}

void file_bytes_release(struct file_bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof(*bytes));
}

bool file_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

/* ---- paths ------------------------------------------------------------------------------ */

enum status file_path_join(char *out, size_t out_size, struct error *error, const char *folder,
                           const char *name)
{
    int length = snprintf(out, out_size, "%s/%s", folder, name);

    if (length < 0 || (size_t)length >= out_size) {
        return error_set(error, STATUS_OVER_LIMIT, "path too long: %.60s/.../%.60s", folder, name);
    }
    return STATUS_OK;
}

enum status file_place(char *out, size_t out_size, struct error *error, enum file_place place,
                       const char *name)
{
    static const char *const variables[] = {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"};
    static const char *const below_home[] = {".config", ".local/share", ".local/state"};
    const char *base = getenv(variables[place]);
    const char *home = getenv("HOME");
    int length;

    /* The XDG rules: a path that is not absolute counts as unset. */
    if (base != NULL && base[0] == '/') {
        length = snprintf(out, out_size, "%s/lockstep/%s", base, name);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(out, out_size, "%s/%s/lockstep/%s", home, below_home[place], name);
    } else {
        (void)error_set(error, STATUS_NOT_FOUND, "neither %s nor HOME is a path from the root",
                        variables[place]);
        error_advise(error, "export HOME=/path/to/a/folder");
        return STATUS_NOT_FOUND;
    }
    if (length < 0 || (size_t)length >= out_size) {
        return error_set(error, STATUS_OVER_LIMIT, "the path of '%s' is too long", name);
    }
    return STATUS_OK;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void file_remove_folder(const char *path)
{
    (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

enum status file_make_folder(const char *path, struct error *error, mode_t mode)
{
    char part[FILE_PATH_MAX];
    size_t length = strlen(path);
    struct stat info;

    if (length == 0 || length >= sizeof(part)) {
        return error_set(error, STATUS_OVER_LIMIT, "not a usable path: '%.60s'", path);
    }
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST) {
            return error_set_errno(error, "%s", part);
        }
    }
    if (stat(path, &info) != 0) {
        return error_set_errno(error, "%s", path);
    }
    if (!S_ISDIR(info.st_mode)) {
        return error_set(error, STATUS_REFUSED, "%s: exists and is not a folder", path);
    }
    return STATUS_OK;
}

enum status file_private_folder(const char *path, struct error *error)
{
    struct stat info;

    TRY(file_make_folder(path, error, 0700));
    if (stat(path, &info) != 0) {
        return error_set_errno(error, "%s", path);
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "others may %s the state folder %s (mode %03o)",
                    (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "write to" : "read", path,
                    (unsigned)(info.st_mode & 0777));
    error_advise(error, "chmod 700 %s", path);
    return STATUS_REFUSED;
}

/* ---- writing ---------------------------------------------------------------------------- */

/* On failure nothing is left open or on the disk. */
static enum status write_beside(struct whole_file *file, struct error *error, const char *path,
                                const void *data, size_t size, mode_t mode)
{
    enum status status;

    TRY(whole_file_open(file, error, path, mode));
    status = whole_file_add(file, error, data, size);
    if (status != STATUS_OK) {
        whole_file_drop(file);
    }
    return status;
}

enum status file_write(const char *path, struct error *error, const void *data, size_t size,
                       mode_t mode)
{
    struct whole_file file;

    TRY(write_beside(&file, error, path, data, size, mode));
    return whole_file_keep(&file, error);
}

enum status file_write_new(const char *path, struct error *error, const void *data, size_t size,
                           mode_t mode)
{
    struct whole_file file;

    TRY(write_beside(&file, error, path, data, size, mode));
    return whole_file_keep_new(&file, error);
}

/* ---- locks ------------------------------------------------------------------------------ */

static enum status lock_refused(struct error *error, const char *path, const char *instead,
                                int descriptor)
{
    char holder[32] = "";
    ssize_t got = pread(descriptor, holder, sizeof(holder) - 1, 0);

    if (got > 0) {
        holder[strspn(holder, "0123456789")] = '\0';
        (void)error_set(error, STATUS_REFUSED, "%s: in use by process %s", path, holder);
    } else {
        (void)error_set(error, STATUS_REFUSED, "%s: in use by another process", path);
    }
    error_advise(error, "stop that process, or %s", instead);
    return STATUS_REFUSED;
}

enum status file_lock_open(struct file_lock *lock, struct error *error, const char *path,
                           const char *instead)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    enum status status;

    lock->descriptor = -1;
    if (descriptor < 0) {
        return open_failed(error, path);
    }
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        status = errno == EWOULDBLOCK ? lock_refused(error, path, instead, descriptor)
                                      : error_set_errno(error, "%s", path);
        close(descriptor);
        return status;
    }
    /* The process number is only for the error message of others. */
    if (ftruncate(descriptor, 0) == 0) {
        (void)dprintf(descriptor, "%ld\n", (long)getpid());
    }
    lock->descriptor = descriptor;
    return STATUS_OK;
}

void file_lock_close(struct file_lock *lock)
{
    if (lock->descriptor >= 0) {
        close(lock->descriptor);
        lock->descriptor = -1;
    }
}
