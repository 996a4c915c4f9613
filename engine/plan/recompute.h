/*
 * recompute.h - a private rewrite of a tape: activations that are forgotten and made again.
 *
 * What the gradients read again and again lives from the forward operations to the backward ones.
 * The rewrite cuts the forward operations into segments. It keeps what crosses from one segment to
 * the next, and repeats the other operations of a segment where the first gradient reads what they
 * make. A step then takes less memory and more time. The same operations read the same numbers, so
 * states, loss and every tensor have the same bits; the program of the job is untouched.
 */
#ifndef ENGINE_PLAN_RECOMPUTE_H
#define ENGINE_PLAN_RECOMPUTE_H

#include "engine/tape/tape.h"

#define RECOMPUTE_PARTS_MAX 64

/* Of a tape that is a rewrite itself (chain.h). */
struct recompute_hints {
    const struct tape *source; /* what it is a rewrite of: its micro-batches are the passes */
    const bool *inside;        /* per tensor: will it take no room worth counting? NULL: none */
};

/*
 * Makes the rewrite with `parts` segments in each forward pass (each micro-batch has one), from 2
 * to RECOMPUTE_PARTS_MAX. The tensors of the tape keep their ids; those of repeated operations
 * follow. derived->origins says for each operation which of the tape's it is, and whether it is a
 * repetition (instance 1); what the tape says is a repetition stays one. hints may be NULL. The
 * caller frees the rewrite.
 */
MUST_CHECK enum status recompute_build(struct tape **derived, const struct tape *tape,
                                       const struct recompute_hints *hints, uint32_t parts,
                                       struct error *error);

#endif /* ENGINE_PLAN_RECOMPUTE_H */
