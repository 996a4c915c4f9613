/*
 * emulated.c - the whole program as an emulator can run it: linked with --wrap=posix_spawnp.
 *
 * What trains and what replays is a child, this program, started as /proc/self/exe. Under qemu that
 * is qemu. EMULATED names what to start in its place: a script that calls qemu again.
 */
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

int __real_posix_spawnp(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments,
                        char *const *environment);
int __wrap_posix_spawnp(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments,
                        char *const *environment);

int __wrap_posix_spawnp(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments,
                        char *const *environment)
{
    const char *emulated = getenv("EMULATED");

    path = emulated != NULL && strcmp(path, "/proc/self/exe") == 0 ? emulated : path;
    return __real_posix_spawnp(process, path, actions, attributes, arguments, environment);
}
