/*
 * sandbox.h - what a process may ask of the system while it works on a stranger's bytes.
 *
 * From its start it runs no program, makes no process, traces and signals nobody, and opens sockets
 * to the network only where its plan says so. Where the kernel has landlock it reads the system's
 * libraries and what its plan names, and writes to what its plan names for that alone. A process of
 * root keeps no capability but the right to read and write those files. What tries more is ended by
 * the kernel (SIGSYS), except for files, which it cannot open then.
 *
 * Only for a process that computes on the CPU: the drivers of a GPU do what they like.
 */
#ifndef BASE_SANDBOX_SANDBOX_H
#define BASE_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#define SANDBOX_PATHS_MAX 1024

/* Files and folders, borrowed. What is not there, an empty path, and one beyond the maximum is
 * passed over: opening it fails later, by its name. */
struct sandbox_plan {
    const char *reads[SANDBOX_PATHS_MAX];
    size_t read_count;
    const char *writes[SANDBOX_PATHS_MAX];
    size_t write_count;
    const char *changes[SANDBOX_PATHS_MAX];
    size_t change_count;
    bool network;
};

void sandbox_add_read(struct sandbox_plan *plan, const char *path);
void sandbox_add_write(struct sandbox_plan *plan, const char *path); /* and read */
/* What is there may be read and written; nothing is made, removed or renamed. */
void sandbox_add_change(struct sandbox_plan *plan, const char *path);

/* What this system can enforce. */
struct sandbox_means {
    bool calls; /* seccomp filters, on a processor whose calls are known here */
    bool files; /* landlock */
};

struct sandbox_means sandbox_means(void);

/* Wipes the passphrases and secrets that the environment holds (LOCKSTEP_PASSPHRASE,
 * LOCKSTEP_RANKS_SECRET), as sandbox_begin(). */
void sandbox_forget_passphrases(void);

/* Of this process, while it has one thread, for good. What cannot be enforced is left out. */
void sandbox_begin(const struct sandbox_plan *plan);

/* Of this process and all its threads: nothing is fetched any more. */
void sandbox_network(void);

#endif /* BASE_SANDBOX_SANDBOX_H */
