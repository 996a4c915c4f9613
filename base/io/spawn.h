/*
 * spawn.h - starts a program as a child that has the files it is given and no others of ours.
 *
 * The child gets our environment and stderr, and no blocked signal: it must not inherit what a
 * daemon waits for in its own way. All other descriptors of ours are close-on-exec. Nothing here
 * waits for the child or ends it; its caller does.
 */
#ifndef BASE_IO_SPAWN_H
#define BASE_IO_SPAWN_H

#include <sys/types.h>

#include "base/error.h"

#define SPAWN_SELF "/proc/self/exe" /* the program that runs */

/* Where the child finds the further file, as a descriptor and as a path. */
#define SPAWN_FURTHER      9
#define SPAWN_FURTHER_PATH "/dev/fd/9"

/* Borrows descriptors of the caller, none of them a standard one. */
struct spawn_files {
    int input; /* -1: none, which reads as an empty file */
    int output;
    int further; /* -1: none */
};

/* words: the child's command line, with its name, up to NULL. A program without a slash is looked
 * for as a shell does. A failure leaves *process 0. */
MUST_CHECK enum status spawn_program(pid_t *process, const char *program, const char *const *words,
                                     const struct spawn_files *files, struct error *error);

#endif /* BASE_IO_SPAWN_H */
