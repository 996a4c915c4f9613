/* bundle_parts.h - the inside of a bundle, for this folder alone. */
#ifndef PROOFS_BUNDLE_BUNDLE_PARTS_H
#define PROOFS_BUNDLE_BUNDLE_PARTS_H

#include "base/io/file.h"
#include "proofs/bundle/journal.h"
#include "proofs/format/encryption.h"
#include "proofs/job/job.h"

#define BUNDLE_CONTEXT_MAX 64

/* The file of a rule that may end the run early (stop_rule.h). */
#define STOP_RULE_FILE "stop.rule"

/* The record of a step, plain or encrypted: loss, held_out, accuracy (4 each), then nanoseconds,
 * nanoseconds_committing, microjoules and device (8 each). */
#define BUNDLE_STEP_BYTES 44
#define BUNDLE_STEP_BOX   (BUNDLE_STEP_BYTES + ENCRYPTION_BOX_EXTRA)
#define BUNDLE_TEXT_BOX   (FILE_PATH_MAX + ENCRYPTION_BOX_EXTRA)

struct bundle_step;

struct bundle {
    char path[FILE_PATH_MAX];   /* as the user gave it */
    char folder[FILE_PATH_MAX]; /* without symbolic links */
    struct job *job;            /* owned */
    struct file_lock lock;
    struct journal journal;
    struct database *database; /* the journal's */
    uint64_t device;           /* row of the device that runs the steps */
    uint32_t pending;          /* steps in the transaction that is open */
    uint64_t pending_since_ns;
    bool encrypted;
    bool has_key;
    struct encryption_key key;
    uint32_t damaged;
    struct error damage; /* of the newest damaged checkpoint */
};

/* The path of a part of the bundle; path has room for FILE_PATH_MAX bytes. */
MUST_CHECK enum status bundle_file(char *path, const struct bundle *bundle, const char *name,
                                   struct error *error);

/* "checkpoints/000000000100.safetensors"; also the context under which it is encrypted. */
void bundle_checkpoint_name(char name[BUNDLE_CONTEXT_MAX], uint64_t step);

/* STATUS_REFUSED, with advice, where the bundle is locked. */
MUST_CHECK enum status bundle_require_key(const struct bundle *bundle, struct error *error);

/* NULL where the bundle is not encrypted. It must not be locked. */
const struct encryption_key *bundle_encryption_key(const struct bundle *bundle);

void bundle_step_pack(uint8_t bytes[BUNDLE_STEP_BYTES], const struct bundle_step *step);
void bundle_step_unpack(struct bundle_step *step, const uint8_t bytes[BUNDLE_STEP_BYTES]);

/* Records a step unchecked. box holds its encrypted record, of BUNDLE_STEP_BOX bytes; NULL:
 * plain. */
MUST_CHECK enum status bundle_step_insert(struct bundle *bundle, const struct bundle_step *step,
                                          const uint8_t *box, struct error *error);

/* Records the checkpoint of a file that exists. */
MUST_CHECK enum status bundle_checkpoint_enter(struct bundle *bundle, uint64_t step,
                                               const struct digest *root, struct error *error);

#endif /* PROOFS_BUNDLE_BUNDLE_PARTS_H */
