/*
 * emulated.c - the whole program as an emulator can run it: linked with --wrap=execvp.
 *
 * What trains and what replays is a child, this program, started as /proc/self/exe. Under qemu that
 * is qemu. EMULATED names what to start in its place: a script that calls qemu again.
 */
#include <stdlib.h>
#include <string.h>

int __real_execvp(const char *path, char *const *arguments);
int __wrap_execvp(const char *path, char *const *arguments);

int __wrap_execvp(const char *path, char *const *arguments)
{
    const char *emulated = getenv("EMULATED");

    path = emulated != NULL && strcmp(path, "/proc/self/exe") == 0 ? emulated : path;
    return __real_execvp(path, arguments);
}
