/*
 * receipt_state.h - the model that a receipt is held against: a folder as it is published, or a
 * state of a bundle.
 *
 * A state is written as the folder that `bundle export --hf --merge` makes of it, in TMPDIR, for as
 * long as it is needed: so a receipt of a bundle is that of the exported folder, byte for byte. The
 * checkpoint is held to the root that the bundle's journal has, and the folder that the training
 * began with to the roots of the job.
 */
#ifndef PROOFS_RECEIPT_RECEIPT_STATE_H
#define PROOFS_RECEIPT_RECEIPT_STATE_H

#include "proofs/bundle/bundle.h"
#include "proofs/receipt/receipt_job.h"

struct receipt_state {
    char folder[FILE_PATH_MAX]; /* of the model */
    struct bundle *bundle;      /* NULL: the folder was published */
    uint64_t step;              /* the state before it */
    struct digest root;         /* of that state */
    char scratch[FILE_PATH_MAX];
};

bool receipt_state_is_bundle(const char *path);

/* path: a published folder, or a bundle. base: what its training began with; NULL: a seed. step: of
 * a bundle; UINT64_MAX: the newest checkpoint. */
MUST_CHECK enum status receipt_state_open(struct receipt_state *state, const char *path,
                                          const char *base, uint64_t step, struct error *error);

/* The same, of the newest checkpoint that makes the weights which the receipt names. Where none
 * does, *found is false and nothing is open. Of a published folder it is true without a look. */
MUST_CHECK enum status receipt_state_find(struct receipt_state *state, bool *found,
                                          const char *path, const char *base,
                                          const struct receipt *receipt, struct error *error);

void receipt_state_close(struct receipt_state *state); /* a zero-filled one is allowed */

#endif /* PROOFS_RECEIPT_RECEIPT_STATE_H */
