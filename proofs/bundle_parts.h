/*
 * bundle_parts.h - the inside of a bundle, for bundle.c and bundle_state.c.
 */
#ifndef PROOFS_BUNDLE_PARTS_H
#define PROOFS_BUNDLE_PARTS_H

#include "proofs/bundle.h"
#include "proofs/journal.h"

struct bundle {
    char path[FILE_PATH_MAX];
    struct job *job; /* owned */
    struct file_lock lock;
    struct journal journal;
    uint64_t device;  /* row of the device that runs the steps */
    uint32_t pending; /* steps in the transaction that is open */
};

#endif /* PROOFS_BUNDLE_PARTS_H */
