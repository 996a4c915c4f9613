/*
 * child.h - this program again, as a child that does one thing: trains, measures, serves.
 *
 * A child holds no key and gets none. It ends with its parent, however that ends, so what it left
 * on disk is all that a restarted node finds.
 */
#ifndef PROVER_NODE_CHILD_H
#define PROVER_NODE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define CHILD_WORDS_MAX 200

struct child_process {
    pid_t process; /* 0: none */
};

/* The words of a command line, borrowed; begins with what follows the program's name. */
struct child_words {
    const char *words[CHILD_WORDS_MAX + 1];
    size_t count;
};
void child_add(struct child_words *words, const char *word); /* more than the most are a bug */

struct child_options {
    const char *out; /* file for its output; NULL: none is kept */
    const char *log; /* file for what it says; is appended to */
    bool yields;     /* it gets only the processor time that nobody else wants */
};

MUST_CHECK enum status child_start(struct child_process *child, const struct child_words *words,
                                   const struct child_options *options, struct error *error);

/* Has it ended? Then *code is its exit code, or 128 and the signal that ended it. Never waits. */
bool child_ended(struct child_process *child, int *code);

/* Asks it to stop, waits so long, and kills it. One that is none is fine. */
void child_stop(struct child_process *child, int wait_ms);

#endif /* PROVER_NODE_CHILD_H */
