/* secret.c - see secret.h. */
#include "base/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (size + page - 1) / page * page;
}

void *secret_alloc(size_t size, struct error *error)
{
    size_t pages = whole_pages(size);
    void *memory = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        (void)error_set_errno(error, "cannot get %zu bytes for a secret", pages);
        return NULL;
    }
    if (mlock(memory, pages) != 0) {
        (void)error_set_errno(error, "cannot lock %zu bytes of memory for a secret", pages);
        error_advise(error, "raise the limit of locked memory: ulimit -l 64");
        munmap(memory, pages);
        return NULL;
    }
    if (madvise(memory, pages, MADV_DONTDUMP) != 0 ||
        madvise(memory, pages, MADV_WIPEONFORK) != 0) {
        (void)error_set_errno(error, "cannot keep a secret out of core dumps and children");
        munmap(memory, pages);
        return NULL;
    }
    return memory;
}

void secret_free(void *memory, size_t size)
{
    if (memory != NULL) {
        secret_wipe(memory, size);
        munmap(memory, whole_pages(size));
    }
}

void secret_wipe(void *memory, size_t size)
{
    explicit_bzero(memory, size);
}

bool secret_equal(const void *left, const void *right, size_t size)
{
    const volatile uint8_t *a = left;
    const volatile uint8_t *b = right;
    uint8_t difference = 0;

    for (size_t i = 0; i < size; i++) {
        difference |= a[i] ^ b[i];
    }
    return difference == 0;
}

enum status secret_forbid_dumps(struct error *error)
{
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) != 0) {
        return error_set_errno(error, "cannot switch core dumps off");
    }
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return error_set_errno(error, "cannot keep other processes from reading this one");
    }
    return STATUS_OK;
}

enum status secret_random(void *bytes, size_t size, struct error *error)
{
    uint8_t *at = bytes;

    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return error_set_errno(error, "the system gives no random bytes");
        }
        at += got;
        size -= (size_t)got;
    }
    return STATUS_OK;
}
