/* crash_images.c - see crash_images.h. */
#include "tests/support/node/crash_images.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

enum {
    DATABASES_MAX = 256,
};

/* Hooks of sqlite3 have no other way to find it. */
static struct {
    bool watching;
    bool failed;
    char folder[400];
    char prefix[64];
    char images[500];
    uint32_t count;
    sqlite3 *databases[DATABASES_MAX];
    int changes[DATABASES_MAX]; /* at the last commit */
} here;

/* In a process of its own: this one would lose its locks on files that it opens and closes. */
static bool shell(const char *command)
{
    int result = 0;
    pid_t child = fork();

    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result) &&
           WEXITSTATUS(result) == 0;
}

void crash_images_take(void)
{
    char command[2048];

    if (!here.watching) {
        return;
    }
    (void)snprintf(command, sizeof(command), "mkdir -p '%s/%u' && cp -a '%s/%s'* '%s/%u/'",
                   here.images, here.count, here.folder, here.prefix, here.images, here.count);
    here.failed = here.failed || !shell(command);
    here.count++;
}

static int before_commit(void *context)
{
    int *changes = context;
    sqlite3 *database = here.databases[changes - here.changes];
    int now = sqlite3_total_changes(database);

    if (now != *changes) {
        *changes = now;
        crash_images_take();
    }
    return 0;
}

static int watch_database(sqlite3 *database, const char **error, const void *api)
{
    (void)error;
    (void)api;
    for (uint32_t i = 0; i < DATABASES_MAX; i++) {
        /* One that was closed may come again at the same place. */
        if (here.databases[i] == NULL || here.databases[i] == database) {
            here.databases[i] = database;
            here.changes[i] = 0;
            (void)sqlite3_commit_hook(database, before_commit, &here.changes[i]);
            return SQLITE_OK;
        }
    }
    here.failed = true;
    return SQLITE_OK;
}

void crash_images_begin(const char *folder, const char *prefix)
{
    memset(&here, 0, sizeof(here));
    (void)snprintf(here.folder, sizeof(here.folder), "%s", folder);
    (void)snprintf(here.prefix, sizeof(here.prefix), "%s", prefix);
    (void)snprintf(here.images, sizeof(here.images), "%s/images of %s", folder, prefix);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch_database), SQLITE_OK);
}

void crash_images_end(void)
{
    char command[1024];

    (void)sqlite3_cancel_auto_extension((void (*)(void))watch_database);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", here.images);
    assert_true(shell(command));
    assert_false(here.failed);
}

void crash_images_watch(bool watching)
{
    here.watching = watching;
}

uint32_t crash_images_count(void)
{
    return here.count;
}

void crash_images_restore(uint32_t image)
{
    char command[2048];

    assert_in_range(image, 0, here.count - 1);
    (void)snprintf(command, sizeof(command), "rm -rf '%s/%s'* && cp -a '%s/%u/.' '%s/'",
                   here.folder, here.prefix, here.images, image, here.folder);
    assert_true(shell(command));
}
