/*
 * bundle.h - a run on disk: the job, a journal of every step, and checkpoints.
 *
 *     RUN/job                                  the job file
 *     RUN/journal.db                           sqlite3: steps, segments, checkpoints
 *     RUN/checkpoints/000000000100.safetensors the state before step 100
 *     RUN/key.lock                             encrypted bundles: the key, under a passphrase
 *     RUN/stop.rule                            a rule that may end the run early (stop_rule.h)
 *     RUN/lock                                 held by the process that writes
 *
 * A crash at any instant leaves a bundle that a later run continues to the same bits. A checkpoint
 * appears whole or not at all, and only then enters the journal. Steps journaled after the last
 * checkpoint run again and must give the same roots.
 *
 * A reader trusts nothing. It checks the job against its own roots, the shape and every value of
 * the database, and that a checkpoint hashes to the state root in the journal. Nothing is written
 * through a symbolic link.
 *
 * An encrypted bundle keeps checkpoints, losses, times and notes under its key (encryption.h).
 * Everybody can read the job, the roots and the signatures.
 */
#ifndef PROOFS_BUNDLE_BUNDLE_H
#define PROOFS_BUNDLE_BUNDLE_H

#include "base/io/file.h"
#include "engine/plan/backend.h"
#include "proofs/format/encryption.h"
#include "proofs/job/job.h"

#define BUNDLE_CHECKPOINTS   "checkpoints" /* a folder in it */
#define BUNDLE_DEVICE_MAX    120           /* bytes of the text that names what ran a step */
#define BUNDLE_DEVICES_MAX   1000
#define BUNDLE_NOTE_NAME_MAX 64
#define BUNDLE_SIGNATURE_MAX 256

struct bundle; /* opaque */

enum bundle_mode {
    BUNDLE_READ,
    BUNDLE_WRITE, /* holds the lock: one process at a time */
};

/* Makes a new bundle in a folder that is empty or does not exist. Takes job, also on failure. */
MUST_CHECK enum status bundle_create(struct bundle **bundle, const char *path, struct job *job,
                                     struct error *error);

/* The same, encrypted. lock: the key as encryption_lock() wrote it; NULL: the owner keeps the
 * key. */
MUST_CHECK enum status bundle_create_encrypted(struct bundle **bundle, const char *path,
                                               struct job *job, const struct encryption_key *key,
                                               const uint8_t *lock, struct error *error);

MUST_CHECK enum status bundle_open(struct bundle **bundle, const char *path, enum bundle_mode mode,
                                   struct error *error);
/* Writes the pending steps, as far as it can. NULL is allowed. */
void bundle_close(struct bundle *bundle);

const struct job *bundle_job(const struct bundle *bundle);
const char *bundle_path(const struct bundle *bundle);

/* ---- encrypted bundles ----------------------------------------------------- */

bool bundle_is_encrypted(const struct bundle *bundle);

/* Encrypted, and the key was not given: encrypted parts are hidden and no step can be recorded. */
bool bundle_is_locked(const struct bundle *bundle);

/* STATUS_REFUSED: it is another bundle's key. */
MUST_CHECK enum status bundle_unlock(struct bundle *bundle, const struct encryption_key *key,
                                     struct error *error);

/* By key.lock; STATUS_NOT_FOUND: the bundle has none. */
MUST_CHECK enum status bundle_unlock_with(struct bundle *bundle, const void *passphrase,
                                          size_t passphrase_size, struct error *error);

/* The key, for a verifier. Wipe it. */
MUST_CHECK enum status bundle_key(struct encryption_key *key, const struct bundle *bundle,
                                  struct error *error);

/* ---- steps -------------------------------------------------------------- */

/* A step that was run. */
struct bundle_step {
    uint64_t step;
    struct digest root;              /* of the state after the step */
    bool hidden;                     /* the bundle is locked: the fields below are zeros */
    uint32_t loss_bits;              /* binary32; FLOAT_NAN_BITS where the tape has no loss */
    bool evaluated;                  /* the step ended with a look at held-out data, which gave: */
    uint32_t held_out_bits;          /* the loss there */
    uint32_t accuracy_bits;          /* of a classifier, 0 to 1; else FLOAT_NAN_BITS */
    uint64_t nanoseconds;            /* of the step */
    uint64_t nanoseconds_committing; /* of hashing and writing */
    uint64_t microjoules;            /* of the step; BUNDLE_ENERGY_UNKNOWN */
    uint64_t device;                 /* a row of bundle_device(); bundle_record() sets it */
};
#define BUNDLE_ENERGY_UNKNOWN ((uint64_t)INT64_MAX)

/*
 * Records a step that was run. A step that is there already must have the same root and loss:
 * STATUS_REFUSED says that this machine and the journal disagree. Entries reach the disk with
 * bundle_flush(), at the latest after BUNDLE_PENDING_MAX of them, or with the first one that comes
 * a second after the oldest.
 */
#define BUNDLE_PENDING_MAX 64
MUST_CHECK enum status bundle_record(struct bundle *bundle, const struct bundle_step *step,
                                     struct error *error);
MUST_CHECK enum status bundle_flush(struct bundle *bundle, struct error *error);

/* STATUS_NOT_FOUND: the step was not run. */
MUST_CHECK enum status bundle_step_read(struct bundle_step *entry, struct bundle *bundle,
                                        uint64_t step, struct error *error);

/* The root of the state before a step. */
MUST_CHECK enum status bundle_state_root(struct digest *root, struct bundle *bundle, uint64_t step,
                                         struct error *error);

/* How many steps the journal has without a gap from the first. */
MUST_CHECK enum status bundle_step_count(uint64_t *count, struct bundle *bundle,
                                         struct error *error);

/*
 * The root of a segment whose steps are all journaled. The step that diverged ends its segment;
 * later segments are STATUS_NOT_FOUND.
 */
MUST_CHECK enum status bundle_segment_root(struct digest *root, struct bundle *bundle,
                                           uint64_t segment, struct error *error);

/* Keeps the signature under which the segment's root was posted; a segment has one. */
MUST_CHECK enum status bundle_segment_sign(struct bundle *bundle, uint64_t segment,
                                           const uint8_t *signature, size_t signature_size,
                                           struct error *error);
/* signature has room for BUNDLE_SIGNATURE_MAX bytes; root is the root that was signed.
 * STATUS_NOT_FOUND: there is no signature. */
MUST_CHECK enum status bundle_segment_signature(struct digest *root, uint8_t *signature,
                                                size_t *signature_size, struct bundle *bundle,
                                                uint64_t segment, struct error *error);

/* ---- how the run stands ------------------------------------------------- */

/* A run that meets a NaN or an infinity ends, legally, at that step. */
MUST_CHECK enum status bundle_set_diverged(struct bundle *bundle, uint64_t step,
                                           struct error *error);
/* *step is UINT64_MAX where the run did not diverge. */
MUST_CHECK enum status bundle_diverged(uint64_t *step, struct bundle *bundle, struct error *error);

/*
 * Notes for the owner, such as where the data lies. No root covers them: they are hints. text has
 * room for FILE_PATH_MAX bytes; STATUS_NOT_FOUND: there is no such note, or the bundle is locked.
 */
#define BUNDLE_NOTE_REGISTRY "ledger.registry" /* where a solver was paid: */
#define BUNDLE_NOTE_CHAIN    "ledger.chain"
#define BUNDLE_NOTE_JOB      "ledger.job"
#define BUNDLE_NOTE_ACCOUNT  "ledger.account"
#define BUNDLE_NOTE_PROGRAM  "program" /* SHA-256 of the program that trained last */
MUST_CHECK enum status bundle_set_note(struct bundle *bundle, const char *name, const char *text,
                                       struct error *error);
MUST_CHECK enum status bundle_note(char *text, struct bundle *bundle, const char *name,
                                   struct error *error);

/* Names the device that runs the steps from now on; a longer text is cut. */
MUST_CHECK enum status bundle_set_device(struct bundle *bundle, const char *device,
                                         struct error *error);
/* name has room for BUNDLE_DEVICE_MAX bytes. */
MUST_CHECK enum status bundle_device(char *name, struct bundle *bundle, uint64_t device,
                                     struct error *error);

/* ---- checkpoints -------------------------------------------------------- */

/*
 * Writes the state in machine, which is the one before `step`, and records the checkpoint.
 * STATUS_REFUSED: the journal, or the job, has another root for that state.
 */
MUST_CHECK enum status bundle_checkpoint_write(struct bundle *bundle, struct machine *machine,
                                               uint64_t step, struct error *error);

/* Writes the first state of a job that gives one. STATUS_REFUSED: the file holds another state. */
MUST_CHECK enum status bundle_give_first_state(struct bundle *bundle, const char *path,
                                               struct error *error);

/*
 * Puts machine into the state before *step: the newest checkpoint at or before `most`, or the first
 * state where there is none. The state must hash to the root in the journal, or the job. A damaged
 * checkpoint is passed over for an older one.
 */
MUST_CHECK enum status bundle_restore(uint64_t *step, struct bundle *bundle,
                                      struct machine *machine, uint64_t most, struct error *error);

/* How many checkpoints the last bundle_restore() passed over, and what is wrong with the newest. */
uint32_t bundle_damaged(const struct bundle *bundle, const char **why);

/* The first checkpoint at or after step `from`; STATUS_NOT_FOUND: there is none. */
MUST_CHECK enum status bundle_checkpoint_find(uint64_t *step, struct bundle *bundle, uint64_t from,
                                              struct error *error);

/* Where a checkpoint lies; path has room for FILE_PATH_MAX bytes. */
MUST_CHECK enum status bundle_checkpoint_path(char *path, const struct bundle *bundle,
                                              uint64_t step, struct error *error);

/* Compares the root of a checkpoint with the journal's, without a machine. STATUS_BAD_FORMAT: it
 * is another state; STATUS_REFUSED: the bundle is locked. */
MUST_CHECK enum status bundle_checkpoint_check(struct bundle *bundle, uint64_t step,
                                               struct error *error);

/* The same, and the checkpoint stays open, for who reads its tensors. */
struct safetensors;
MUST_CHECK enum status bundle_checkpoint_open(struct safetensors *file, struct bundle *bundle,
                                              uint64_t step, struct error *error);

/* Removes checkpoints except the newest `keep` and those of every `every`-th segment (0: none). */
MUST_CHECK enum status bundle_checkpoint_prune(struct bundle *bundle, uint64_t keep, uint64_t every,
                                               struct error *error);

#endif /* PROOFS_BUNDLE_BUNDLE_H */
