/* shared_lock.c - see shared_lock.h. */
#include "base/io/shared_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"

#define FOLDER "/run/lock"

static enum status path_of(char path[FILE_PATH_MAX], const char *name, struct error *error)
{
    const char *folder = getenv(SHARED_LOCK_VARIABLE);
    int size;

    folder = folder == NULL || folder[0] == '\0' ? FOLDER : folder;
    size = snprintf(path, FILE_PATH_MAX, "%s/lockstep-%s.lock", folder, name);
    if (size >= FILE_PATH_MAX || strchr(name, '/') != NULL) {
        return error_set(error, STATUS_OVER_LIMIT, "no lock can be called %.60s", name);
    }
    return STATUS_OK;
}

/* A lock needs no right to write. So everybody may hold the file of another, and where a folder
 * is everybody's the kernel lets nobody open such a file as if to make it. */
static int open_or_make(const char *path)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int descriptor = open(path, flags);

    if (descriptor < 0 && errno == ENOENT) {
        descriptor = open(path, flags | O_CREAT | O_EXCL, 0444);
        descriptor = descriptor < 0 && errno == EEXIST ? open(path, flags) : descriptor;
    }
    return descriptor;
}

enum status shared_lock_take(struct shared_lock *lock, const char *name, struct error *error)
{
    char path[FILE_PATH_MAX];
    struct stat info;

    lock->descriptor = -1;
    TRY(path_of(path, name, error));
    lock->descriptor = open_or_make(path);
    if (lock->descriptor < 0) {
        return error_set_errno(error, "cannot open the lock of %s, %s", name, path);
    }
    if (fstat(lock->descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        shared_lock_drop(lock);
        return error_set(error, STATUS_IO, "%s is not a lock", path);
    }
    if (flock(lock->descriptor, LOCK_EX | LOCK_NB) == 0) {
        return STATUS_OK;
    }
    if (errno == EWOULDBLOCK) {
        (void)error_set(error, STATUS_REFUSED, "another process of Lockstep computes on %s (%s)",
                        name, path);
    } else {
        (void)error_set_errno(error, "cannot lock %s", path);
    }
    shared_lock_drop(lock);
    return error->status;
}

void shared_lock_drop(struct shared_lock *lock)
{
    if (lock->descriptor >= 0) {
        (void)close(lock->descriptor);
    }
    lock->descriptor = -1;
}
