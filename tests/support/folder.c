/* folder.c - see folder.h. */
#include "tests/support/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    DESCRIPTORS_MAX = 16,
};

static int remove_any(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int remove_inside(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    return walk->level == 0 ? 0 : remove(path);
}

void folder_remove(const char *path)
{
    (void)nftw(path, remove_any, DESCRIPTORS_MAX, FTW_DEPTH | FTW_PHYS);
}

void folder_empty(const char *path)
{
    (void)nftw(path, remove_inside, DESCRIPTORS_MAX, FTW_DEPTH | FTW_PHYS);
}

void folder_make(char path[FOLDER_PATH_MAX])
{
    struct stat info;

    (void)snprintf(path, FOLDER_PATH_MAX, "%s/lockstep-fuzz-XXXXXX",
                   stat("/dev/shm", &info) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(path) == NULL) {
        perror(path);
        abort();
    }
}

static char *path_of_program(void)
{
    static char path[FOLDER_PATH_MAX];

    return path;
}

static void remove_that_of_program(void)
{
    folder_remove(path_of_program());
}

const char *folder_of_program(void)
{
    char *path = path_of_program();

    if (path[0] == '\0') {
        folder_make(path);
        (void)atexit(remove_that_of_program);
    }
    return path;
}
