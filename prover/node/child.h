/*
 * child.h - this program again, as a child that does one thing: trains, measures, serves.
 *
 * A child holds no key and gets none. It ends with its parent, however that ends, so what it left
 * on disk is all that a restarted node finds.
 */
#ifndef PROVER_NODE_CHILD_H
#define PROVER_NODE_CHILD_H

#include "base/cli/child_words.h"
#include "base/io/spawn.h"

struct child_options {
    const char *out; /* file for its output; NULL: none is kept */
    const char *log; /* file for what it says; is appended to */
    bool yields;     /* it gets only the processor time that nobody else wants */
};

MUST_CHECK enum status child_start(pid_t *process, const struct child_words *words,
                                   const struct child_options *options, struct error *error);

#endif /* PROVER_NODE_CHILD_H */
