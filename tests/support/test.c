/* test.c - see test.h. */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/folder.h"

#define TEMP_PATH_MAX 512

void test_skip(const char *format, ...)
{
    va_list arguments;

    printf("skip: ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    skip();
}

unsigned test_soak_minutes(void)
{
    const char *minutes = getenv("SOAK_MINUTES");

    return minutes == NULL ? 0 : (unsigned)strtoul(minutes, NULL, 10);
}

uint64_t test_share(uint64_t full_count, uint64_t share_count)
{
    if (test_soak_minutes() > 0) {
        return full_count;
    }
    if (getenv("TEST_QUICK") != NULL) {
        return share_count < 10 ? 1 : share_count / 10;
    }
    return share_count;
}

void test_choose(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
}

const char *test_program(void)
{
    const char *program = getenv("TEST_LOCKSTEP");

    return program == NULL ? "build/lockstep" : program;
}

static char *temp_path(void)
{
    static char path[TEMP_PATH_MAX];

    return path;
}

static void remove_temp_dir(void)
{
    folder_remove(temp_path());
}

const char *test_temp_dir(void)
{
    char *path = temp_path();

    if (path[0] == '\0') {
        const char *root = getenv("TMPDIR");
        int length = snprintf(path, TEMP_PATH_MAX, "%s/lockstep-test-XXXXXX",
                              root != NULL && root[0] != '\0' ? root : "/tmp");

        if (length < 0 || length >= TEMP_PATH_MAX || mkdtemp(path) == NULL) {
            path[0] = '\0';
            fail_msg("cannot make a temporary folder");
        }
        atexit(remove_temp_dir);
    }
    return path;
}

uint64_t test_random(uint64_t *state)
{
    uint64_t mixed;

    *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = *state;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t test_random_below(uint64_t *state, uint64_t limit)
{
    return test_random(state) % limit;
}

void test_random_fill(uint64_t *state, void *bytes, size_t size)
{
    uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++) {
        at[i] = (uint8_t)test_random(state);
    }
}
