/*
 * first_state.h - a first state that is given: a safetensors file, ours or of another program.
 *
 * State tensors are found by name, with or without "transformer." before it (as Hugging Face's
 * GPT-2 writes them). Moments ("m.NAME" and "v.NAME" beside a state NAME), the answers of inference
 * and states that are not binary32, such as the step number, begin as zeros where the file does not
 * have them; anything else that is missing is refused. So are tensors that no state takes (but the
 * moments of a training, and the masks and the tied head that other programs save beside GPT-2): a
 * file of another model would lose layers silently.
 * Only binary32 without NaN and infinity is taken for binary32 states; shapes must be equal.
 */
#ifndef PROOFS_JOB_FIRST_STATE_H
#define PROOFS_JOB_FIRST_STATE_H

#include "base/digest.h"
#include "engine/tape/tape.h"
#include "proofs/format/safetensors.h"

struct first_state {
    const struct tape *tape; /* borrowed */
    struct safetensors file;
    const struct safetensors_entry **entries; /* per state; NULL: zeros */
};

MUST_CHECK enum status first_state_open(struct first_state *first, const struct tape *tape,
                                        const char *path, struct error *error);
void first_state_close(struct first_state *first); /* a zero-filled one is allowed */

/* The whole tensor of state number `state`; bytes has room for it. */
MUST_CHECK enum status first_state_read(void *bytes, const struct first_state *first,
                                        uint32_t state, struct error *error);

/* The root of the state that the file gives. */
MUST_CHECK enum status first_state_root(struct digest *root, const struct first_state *first,
                                        struct error *error);

#endif /* PROOFS_JOB_FIRST_STATE_H */
