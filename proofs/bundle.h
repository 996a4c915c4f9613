/*
 * bundle.h - a run on disk: the job, a journal of every step, and checkpoints.
 *
 *     RUN/job                                  the job file
 *     RUN/journal.db                           sqlite3: steps, segments, checkpoints
 *     RUN/checkpoints/000000000100.safetensors the state before step 100
 *     RUN/lock                                 held by the process that writes
 *
 * A crash at any instant leaves a bundle that can be continued to the same bits: a checkpoint
 * appears whole or not at all and is entered in the journal only then; steps that were journaled
 * after the last checkpoint are run again and must give the same roots. A reader trusts nothing:
 * the job is checked against its own roots, the database's shape and every value are checked, and a
 * checkpoint must hash to the state root that the journal names.
 */
#ifndef PROOFS_BUNDLE_H
#define PROOFS_BUNDLE_H

#include "base/file.h"
#include "engine/backend.h"
#include "proofs/job.h"

#define BUNDLE_DEVICE_MAX 120 /* bytes of the text that names what ran a step */

struct bundle; /* opaque */

enum bundle_mode {
    BUNDLE_READ,
    BUNDLE_WRITE, /* holds the lock: one process at a time */
};

/* Makes a new bundle; path must not exist. Takes job, also on failure. */
MUST_CHECK enum status bundle_create(struct bundle **bundle, const char *path, struct job *job,
                                     struct error *error);
MUST_CHECK enum status bundle_open(struct bundle **bundle, const char *path, enum bundle_mode mode,
                                   struct error *error);
/* Writes what is still pending, as far as it can. NULL is allowed. */
void bundle_close(struct bundle *bundle);

const struct job *bundle_job(const struct bundle *bundle);
const char *bundle_path(const struct bundle *bundle);

/* ---- steps -------------------------------------------------------------- */

/* What is known of a step that was run. */
struct bundle_step {
    uint64_t step;
    uint32_t loss_bits;              /* binary32; FLOAT_NAN_BITS where the tape has no loss */
    struct digest root;              /* of the state after the step */
    uint64_t nanoseconds;            /* of the step */
    uint64_t nanoseconds_committing; /* of hashing and writing */
};

/*
 * Enters a step that was run. A step that is there already must have the same root and loss:
 * STATUS_REFUSED says that this machine and the journal disagree. Entries reach the disk with
 * bundle_flush(), at the latest after BUNDLE_PENDING_MAX of them.
 */
#define BUNDLE_PENDING_MAX 64
MUST_CHECK enum status bundle_record(struct bundle *bundle, const struct bundle_step *step,
                                     struct error *error);
MUST_CHECK enum status bundle_flush(struct bundle *bundle, struct error *error);

/* STATUS_NOT_FOUND: the step was not run. */
MUST_CHECK enum status bundle_step_read(struct bundle_step *entry, struct bundle *bundle,
                                        uint64_t step, struct error *error);

/* How many steps are journaled without a gap from the first. */
MUST_CHECK enum status bundle_step_count(uint64_t *count, struct bundle *bundle,
                                         struct error *error);

/* The root of a segment all of whose steps are journaled. */
MUST_CHECK enum status bundle_segment_root(struct digest *root, struct bundle *bundle,
                                           uint64_t segment, struct error *error);

/* ---- how the run stands ------------------------------------------------- */

/* A run that met a NaN or an infinity has ended, legally, at that step. */
MUST_CHECK enum status bundle_set_diverged(struct bundle *bundle, uint64_t step,
                                           struct error *error);
/* *step is UINT64_MAX where the run did not diverge. */
MUST_CHECK enum status bundle_diverged(uint64_t *step, struct bundle *bundle, struct error *error);
/*
 * Small notes for the owner's comfort, such as where the data lies: not committed to, and worth no
 * more than a hint. text has room for FILE_PATH_MAX bytes; STATUS_NOT_FOUND: there is no such note.
 */
MUST_CHECK enum status bundle_set_note(struct bundle *bundle, const char *name, const char *text,
                                       struct error *error);
MUST_CHECK enum status bundle_note(char *text, struct bundle *bundle, const char *name,
                                   struct error *error);

/* What runs the steps from now on, for people. */
MUST_CHECK enum status bundle_set_device(struct bundle *bundle, const char *device,
                                         struct error *error);

/* ---- checkpoints -------------------------------------------------------- */

/* Writes the state that machine holds, which is the one before `step`, and enters it. */
MUST_CHECK enum status bundle_checkpoint_write(struct bundle *bundle, struct machine *machine,
                                               uint64_t step, struct error *error);

/*
 * Puts machine into the state before *step, which is the newest checkpoint at or before `most`; the
 * first state where there is none. The state is hashed and must be the one that the journal, or
 * the job, names; a checkpoint that is damaged is passed over for an older one.
 */
MUST_CHECK enum status bundle_restore(uint64_t *step, struct bundle *bundle,
                                      struct machine *machine, uint64_t most, struct error *error);

/* Removes checkpoints but the newest `keep` and those of every `every`-th segment (0: none). */
MUST_CHECK enum status bundle_checkpoint_prune(struct bundle *bundle, uint64_t keep, uint64_t every,
                                               struct error *error);

#endif /* PROOFS_BUNDLE_H */
