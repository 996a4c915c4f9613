/*
 * race_hooks.c - the functions that gcc and clang call at every access of code that is compiled
 * with -fsanitize=thread. Accesses of code that no emulated thread runs are not looked at.
 */
#include "tests/race/race_core.h"

#define ACCESS(kind, size, access)                                                                 \
    void __tsan_##kind##size(void *at);                                                            \
    void __tsan_##kind##size(void *at)                                                             \
    {                                                                                              \
        if (race.inside && race.thread != RACE_HOST) {                                             \
            race_aligned(at, size, RACE_SITE);                                                     \
            race_access(at, size, access, RACE_SITE);                                              \
        }                                                                                          \
    }                                                                                              \
    void __tsan_unaligned_##kind##size(void *at);                                                  \
    void __tsan_unaligned_##kind##size(void *at)                                                   \
    {                                                                                              \
        if (race.inside && race.thread != RACE_HOST) {                                             \
            race_aligned(at, size, RACE_SITE);                                                     \
            race_access(at, size, access, RACE_SITE);                                              \
        }                                                                                          \
    }                                                                                              \
    void __tsan_volatile_##kind##size(void *at);                                                   \
    void __tsan_volatile_##kind##size(void *at)                                                    \
    {                                                                                              \
        __tsan_##kind##size(at);                                                                   \
    }

#define ACCESSES(size)                                                                             \
    ACCESS(read, size, RACE_READ)                                                                  \
    ACCESS(write, size, RACE_WRITE)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, unsigned long size);
void __tsan_write_range(void *at, unsigned long size);
void __tsan_func_entry(void *site);
void __tsan_func_exit(void);
void __tsan_init(void);

void __tsan_read_range(void *at, unsigned long size)
{
    if (race.inside && race.thread != RACE_HOST) {
        race_access(at, size, RACE_READ, RACE_SITE);
    }
}

void __tsan_write_range(void *at, unsigned long size)
{
    if (race.inside && race.thread != RACE_HOST) {
        race_access(at, size, RACE_WRITE, RACE_SITE);
    }
}

void __tsan_func_entry(void *site)
{
    (void)site;
}

void __tsan_func_exit(void)
{
}

void __tsan_init(void)
{
}
