/*
 * confined_child.h - what each child of confined.h does first: it reads its plan and gives up all
 * that it does not need.
 */
#ifndef PROVER_CONFINED_CONFINED_CHILD_H
#define PROVER_CONFINED_CONFINED_CHILD_H

#include "prover/confined/confined_wire.h"

#define CONFINED_CHILD_SOCKET 0 /* its input; what it is told comes from here */

struct confined_child {
    struct confined_plan plan;
    char (*data)[FILE_PATH_MAX];
    const char **paths; /* of each data tensor; NULL: not known */
};

/* Is this process such a child? word: what for. */
bool confined_child_asked(int argc, char *const *argv, const char *word);

/* Reads the plan; confined_child_confine() follows. false: there is no plan. */
MUST_CHECK bool confined_child_begin(struct confined_child *child);
void confined_child_end(struct confined_child *child); /* wipes the bundle's key */

/* Limits this process, while it has one thread, and on the CPU keeps it from all but these files.
 * quarters: of the machine's memory, which the work may take beside the machine. */
void confined_child_confine(const struct confined_plan *plan, const char *const *data,
                            uint32_t quarters);

/* A command that is gone has ended this process, or is about to. */
void confined_child_say(const struct confined_message *message, const void *bytes);

#endif /* PROVER_CONFINED_CONFINED_CHILD_H */
