/*
 * first_state.h - a first state that is given: a safetensors file, ours or of another program, a
 * folder of Hugging Face, or of adapters of PEFT.
 *
 * State tensors are found by name, with or without "transformer." before it (as Hugging Face's
 * GPT-2 writes them). A state that the file lacks begins as zeros if it is a moment ("m.NAME" or
 * "v.NAME" beside a state NAME), an answer of inference, or not binary32, such as the step number.
 * Any other missing state is refused, but for a part of an adapter beside modules that are trained
 * whole: it is drawn by the tape's rule, with the seed of its batches.
 *
 * A tensor that no state takes is refused too: the file of another model would lose layers
 * silently. Excepted are moments, the example of a graph, and the masks and the tied head that
 * other programs save beside GPT-2.
 *
 * Shapes must be equal. A binary32 state takes binary32 and what widens to it exactly (binary16,
 * bfloat16), without NaN and infinity.
 */
#ifndef PROOFS_JOB_FIRST_STATE_H
#define PROOFS_JOB_FIRST_STATE_H

#include "base/digest.h"
#include "engine/tape/tape.h"
#include "proofs/format/weights.h"

struct first_state {
    const struct tape *tape; /* borrowed */
    struct weights weights;
    const struct weights_entry **entries; /* per state; NULL: zeros */
};

MUST_CHECK enum status first_state_open(struct first_state *first, const struct tape *tape,
                                        const char *path, struct error *error);
void first_state_close(struct first_state *first); /* a zero-filled one is allowed */

/*
 * Refuses the weights of a Llama that would silently be another network: of this program under
 * other rules ("lockstep.rules" in the metadata); of another program, without "lockstep.job", where
 * the tape pairs neighbours (published weights pair the halves of a head), or where the user has
 * not stated the base of the rotation and the epsilon of the norms, which no weight file holds.
 * A tape states both itself. A file that cannot be read passes.
 */
MUST_CHECK enum status first_state_check_origin(const struct tape *tape, const char *path,
                                                bool stated, struct error *error);

/*
 * The same for weights under adapters, which are the count data tensors in `frozen` and not states:
 * each is there, of that type and shape, and finite, and nothing else is. No frozen tensor: nothing
 * is checked.
 */
MUST_CHECK enum status first_state_check_frozen(const struct weights *weights,
                                                const struct tape *tape, const uint32_t *frozen,
                                                uint32_t count, struct error *error);

/* The whole tensor of state number `state`; bytes has room for it. */
MUST_CHECK enum status first_state_read(void *bytes, const struct first_state *first,
                                        uint32_t state, struct error *error);

/* Is the state what is trained: no moment, no counter, no answer, no figure of a step? */
bool first_state_is_parameter(const struct tape *tape, uint32_t state);

/* Is the state of use to the training alone: a moment, or a counter? */
bool first_state_is_of_training(const struct tape *tape, uint32_t state);

/* The root of the state that the file gives; refuses a training that begins with zeros alone. */
MUST_CHECK enum status first_state_root(struct digest *root, const struct first_state *first,
                                        struct error *error);

#endif /* PROOFS_JOB_FIRST_STATE_H */
