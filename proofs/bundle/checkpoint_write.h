/*
 * checkpoint_write.h - writes a state as a checkpoint: from a machine that holds it, or from a
 * first state that is given. For bundles, and for a server of a state without one.
 */
#ifndef PROOFS_BUNDLE_CHECKPOINT_WRITE_H
#define PROOFS_BUNDLE_CHECKPOINT_WRITE_H

#include "engine/plan/backend.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/job/first_state.h"

/* Everything is borrowed. */
struct checkpoint_write {
    const struct job *job;
    uint64_t step; /* the state before it */
    const struct digest *root;
    struct machine *machine; /* NULL: first */
    const struct first_state *first;
    const struct encryption_key *key; /* NULL: the file is not encrypted; else `context` names it */
    const char *context;
    const char *pieces; /* NULL, or where the list of the hashes of its pieces goes */
};

/* The root must be that of the state. The file appears whole or not at all, and after the list. */
MUST_CHECK enum status checkpoint_write(const struct checkpoint_write *what, const char *path,
                                        struct error *error);

#endif /* PROOFS_BUNDLE_CHECKPOINT_WRITE_H */
