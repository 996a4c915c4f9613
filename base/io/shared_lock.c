/* shared_lock.c - see shared_lock.h. */
#include "base/io/shared_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/io/file.h"

#define FOLDER "/run/lock"

const char *shared_lock_folder(void)
{
    const char *folder = getenv(SHARED_LOCK_VARIABLE);

    return folder == NULL || folder[0] == '\0' ? FOLDER : folder;
}

static enum status path_of(char path[FILE_PATH_MAX], const char *name, struct error *error)
{
    int size = snprintf(path, FILE_PATH_MAX, "%s/lockstep-%s.lock", shared_lock_folder(), name);

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
        if (descriptor >= 0) {
            (void)fchmod(descriptor, 0444); /* under any umask: it is for everybody */
        }
        descriptor = descriptor < 0 && errno == EEXIST ? open(path, flags) : descriptor;
    }
    return descriptor;
}

/* The process that holds the lock of this file, as the kernel lists it; 0: it shows none, as where
 * the holder lives in another container. */
static int holder_of(const struct stat *info)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[256];
    int found = 0;

    while (locks != NULL && found <= 0 && fgets(line, sizeof(line), locks) != NULL) {
        char process[16];
        char major_hex[16];
        char minor_hex[16];
        char inode[24];

        if (sscanf(line, "%*s FLOCK %*s WRITE %15s %15[0-9a-f]:%15[0-9a-f]:%23[0-9]", process,
                   major_hex, minor_hex, inode) == 4 &&
            makedev(strtoul(major_hex, NULL, 16), strtoul(minor_hex, NULL, 16)) == info->st_dev &&
            strtoull(inode, NULL, 10) == info->st_ino) {
            found = (int)strtol(process, NULL, 10);
        }
    }
    if (locks != NULL) {
        (void)fclose(locks);
    }
    return found < 0 ? 0 : found;
}

struct holder {
    char program[32];
    unsigned long user;
};

/* The owner of a folder in /proc is root where a process keeps its memory from others, so the user
 * is read. */
static bool read_holder(struct holder *holder, int process)
{
    char path[64];
    char line[256];
    char user[16];
    bool has_name = false;
    bool has_user = false;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", process);
    file = fopen(path, "re");
    while (file != NULL && !has_user && fgets(line, sizeof(line), file) != NULL) {
        has_name = has_name || sscanf(line, "Name:\t%31s", holder->program) == 1;
        has_user = sscanf(line, "Uid:\t%*s\t%15[0-9]", user) == 1;
        holder->user = has_user ? strtoul(user, NULL, 10) : 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return has_name && has_user;
}

/* The error says who holds the lock. */
static enum status refuse_lock(struct shared_lock *lock, const struct stat *info, const char *name,
                               const char *path, struct error *error)
{
    int process = holder_of(info);
    struct holder holder;

    if (process == 0 || !read_holder(&holder, process)) {
        lock->foreign = true;
        return error_set(error, STATUS_REFUSED,
                         "another process, which this system does not show, computes on %s (%s)",
                         name, path);
    }
    lock->foreign = holder.user != geteuid();
    return error_set(error, STATUS_REFUSED,
                     "another process computes on %s: process %d (%s) of user %lu holds %s", name,
                     process, holder.program, holder.user, path);
}

enum status shared_lock_take(struct shared_lock *lock, const char *name, struct error *error)
{
    char path[FILE_PATH_MAX];
    struct stat info;

    lock->descriptor = -1;
    lock->foreign = false;
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
        (void)refuse_lock(lock, &info, name, path, error);
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
