/*
 * spawn.h - starts a program as a child that has the files it is given and no others of ours, and
 * looks after its end.
 *
 * The child gets our environment, and no blocked signal: it must not inherit what a daemon waits
 * for in its own way. All other descriptors of ours are close-on-exec.
 */
#ifndef BASE_IO_SPAWN_H
#define BASE_IO_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define SPAWN_SELF "/proc/self/exe" /* the program that runs */

/* Where the child finds the further file, as a descriptor and as a path. */
#define SPAWN_FURTHER      9
#define SPAWN_FURTHER_PATH "/dev/fd/9"

/* A standard file that this process was started without gets one that neither reads nor writes, so
 * that nothing which is opened later stands in its place: a file, or a pipe to a child, would get
 * our log. Call it first in main(). */
void spawn_hold_standard(void);

/* Borrows descriptors of the caller, none of them a standard one; -1: none, which reads as an empty
 * file and takes all that is written. */
struct spawn_files {
    int input;
    int output;
    int log; /* its stderr; 0: ours */
    int further;
    bool tied;   /* the child ends with the thread that started it, however that ends */
    bool yields; /* it gets only the processor time that nobody else wants */
};

/* words: the child's command line, with its name, up to NULL. A program without a slash is looked
 * for as a shell does. A failure leaves *process 0. */
MUST_CHECK enum status spawn_program(pid_t *process, const char *program, const char *const *words,
                                     const struct spawn_files *files, struct error *error);

/* Has it ended? Then *process is 0, and *how as waitpid() says it; a child that somebody else
 * waited for ended with code 126. Never waits. A process 0 has not ended. */
bool spawn_ended(pid_t *process, int *how);

/* The exit code, or 128 and the signal that ended it. */
int spawn_code(int how);

#define SPAWN_FOR_EVER UINT32_MAX

/* Sends the signal (0: none), waits so long for the end, and then kills it. Returns how it ended,
 * as spawn_ended() tells it; 0 where there was no child. */
int spawn_end(pid_t *process, int signal, uint32_t wait_ms);

#endif /* BASE_IO_SPAWN_H */
