/* spawn.c - see spawn.h. */
#include "base/io/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* The further file is last: its place may be that of a file which has moved by then. */
static void place_files(posix_spawn_file_actions_t *actions, const struct spawn_files *files)
{
    if (files->input < 0) {
        (void)posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    } else {
        (void)posix_spawn_file_actions_adddup2(actions, files->input, STDIN_FILENO);
    }
    (void)posix_spawn_file_actions_adddup2(actions, files->output, STDOUT_FILENO);
    if (files->further >= 0) {
        (void)posix_spawn_file_actions_adddup2(actions, files->further, SPAWN_FURTHER);
    }
}

enum status spawn_program(pid_t *process, const char *program, const char *const *words,
                          const struct spawn_files *files, struct error *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int result;

    /* A mask survives the start of a program: one that blocks SIGTERM could not be stopped. */
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    place_files(&actions, files);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    /* posix_spawnp() promises not to write to the words. */
    result = posix_spawnp(process, program, &actions, &attributes, (char *const *)(uintptr_t)words,
                          environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (result != 0) {
        *process = 0;
        return error_set(error, STATUS_IO, "cannot start %s: %s", program, strerror(result));
    }
    return STATUS_OK;
}
