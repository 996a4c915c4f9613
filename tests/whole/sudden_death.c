/*
 * sudden_death.c - kills a program at a chosen call to the system, so that a test of crashes can
 * choose an instant by a number and find it again.
 *
 * It makes build/tests/sudden_death.so, for LD_PRELOAD. Calls that change what others see (files
 * and connections; not what is said on the first three descriptors) are counted. SUDDEN_DEATH=N:
 * the program dies by SIGKILL before its N-th, N odd, or just behind it, N even. SUDDEN_TALLY=FILE:
 * the count stands there, 8 bytes in this machine's order, also after a death. SUDDEN_DISK=1: only
 * calls about files count. SUDDEN_FULL=FILE: while FILE exists, writing says that the disk is full.
 * All are about the process itself and not about its children. A child for checks, whose first
 * argument begins with --, is spared. SUDDEN_IN=WORD: all are about the process of which WORD is
 * the first or the second argument, however deep it stands; with SUDDEN_OF=TEXT of those alone of
 * which an argument holds TEXT.
 *
 * Not one of tests/support: linked into a program it would be that program's own write().
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint64_t counted_here;
static _Atomic uint64_t *counted = &counted_here;
static uint64_t fatal;
static const char *full;
static bool disk_alone;

static bool is_about(const char *text, int count, char **arguments)
{
    bool found = text == NULL;

    for (int i = 1; i < count && !found; i++) {
        found = strstr(arguments[i], text) != NULL;
    }
    return found;
}

static bool is_meant(int count, char **arguments)
{
    const char *word = getenv("SUDDEN_IN");

    if (word == NULL) {
        return count < 2 || strncmp(arguments[1], "--", 2) != 0;
    }
    return is_about(getenv("SUDDEN_OF"), count, arguments) &&
           ((count > 1 && strcmp(arguments[1], word) == 0) ||
            (count > 2 && strcmp(arguments[2], word) == 0));
}

/* GNU: a constructor is given what main() is. */
__attribute__((constructor)) static void begin(int count, char **arguments)
{
    const char *number = getenv("SUDDEN_DEATH");
    const char *tally = getenv("SUDDEN_TALLY");

    if (!is_meant(count, arguments)) {
        return;
    }
    disk_alone = getenv("SUDDEN_DISK") != NULL;
    fatal = number == NULL ? 0 : strtoull(number, NULL, 10);
    full = getenv("SUDDEN_FULL");
    (void)unsetenv("SUDDEN_DEATH"); /* it is about this process, not about its children */
    (void)unsetenv("SUDDEN_TALLY");
    if (tally != NULL) {
        int file = open(tally, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        void *mapped = MAP_FAILED;

        if (file >= 0 && syscall(SYS_ftruncate, file, sizeof(*counted)) == 0) {
            mapped = mmap(NULL, sizeof(*counted), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        }
        if (mapped == MAP_FAILED) {
            abort();
        }
        counted = mapped;
    }
}

static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

static uint64_t enter(void)
{
    uint64_t number = atomic_fetch_add(counted, 1) + 1;

    if (number == fatal && number % 2 == 1) {
        die();
    }
    return number;
}

static long leave(uint64_t number, long result)
{
    int kept = errno;

    if (number == fatal && number != 0) {
        die();
    }
    errno = kept;
    return result;
}

static bool is_full(void)
{
    if (full == NULL || access(full, F_OK) != 0) {
        return false;
    }
    errno = ENOSPC;
    return true;
}

/* What is said on the first three descriptors goes to the test, not to the disk. */
static bool is_talk(int file)
{
    return file <= STDERR_FILENO;
}

ssize_t write(int file, const void *bytes, size_t size)
{
    if (is_talk(file)) {
        return syscall(SYS_write, file, bytes, size);
    }
    uint64_t number = enter();

    return is_full() ? -1 : leave(number, syscall(SYS_write, file, bytes, size));
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at)
{
    uint64_t number = enter();

    return is_full() ? -1 : leave(number, syscall(SYS_pwrite64, file, bytes, size, at));
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    return pwrite64(file, bytes, size, at);
}

ssize_t send(int socket, const void *bytes, size_t size, int flags)
{
    uint64_t number = disk_alone ? 0 : enter();

    return leave(number, syscall(SYS_sendto, socket, bytes, size, flags, NULL, 0));
}

int fsync(int file)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_fsync, file));
}

int fdatasync(int file)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_fdatasync, file));
}

int ftruncate64(int file, off64_t size)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_ftruncate, file, size));
}

int ftruncate(int file, off_t size)
{
    return ftruncate64(file, size);
}

int unlink(const char *path)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int link(const char *from, const char *to)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int rename(const char *from, const char *to)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    uint64_t number = enter();

    return (int)leave(number, syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
