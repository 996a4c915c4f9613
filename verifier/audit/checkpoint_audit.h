/*
 * checkpoint_audit.h - hashes the checkpoints of a bundle and compares them with the journal.
 *
 * A replay proves the journal, not the files beside it. The last checkpoint is the trained model:
 * a bundle without a true one is not proven. An earlier one only shortens a replay: a broken one is
 * named, and the answer stays.
 */
#ifndef VERIFIER_AUDIT_CHECKPOINT_AUDIT_H
#define VERIFIER_AUDIT_CHECKPOINT_AUDIT_H

#include "base/io/stop.h"
#include "proofs/bundle/bundle.h"

#define BROKEN_CHECKPOINTS_MAX     8
#define BROKEN_CHECKPOINT_NAME_MAX 40
#define BROKEN_CHECKPOINT_WHY_MAX  512

struct broken_checkpoint {
    char name[BROKEN_CHECKPOINT_NAME_MAX]; /* of its file; "": none is broken */
    char why[BROKEN_CHECKPOINT_WHY_MAX];
};

struct checkpoint_audit {
    uint64_t checked; /* have their committed root */
    uint64_t locked;  /* encrypted, and the bundle is locked: nobody looked */
    uint64_t broken_count;
    struct broken_checkpoint broken[BROKEN_CHECKPOINTS_MAX]; /* the earliest, in order */
    struct broken_checkpoint last; /* the last one, where it is broken or missing; in no list */
};

/*
 * whole: the run came to its end; a bundle that then lists checkpoints, but not the last, lacks it.
 * stop: NULL is allowed. A failure says nothing about the checkpoints.
 */
MUST_CHECK enum status checkpoint_audit_run(struct checkpoint_audit *audit, struct bundle *bundle,
                                            bool whole, struct stop *stop, struct error *error);

#endif /* VERIFIER_AUDIT_CHECKPOINT_AUDIT_H */
