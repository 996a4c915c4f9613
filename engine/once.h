/*
 * once.h - a tape in which no view is quantized twice.
 *
 * A reverse pass asks for some quantizations again: the gradient of a bias and that of its matrix
 * read the same rows, each through a QUANTIZE of its own. The tape stays as it is, for it is what
 * the job commits to; but a machine that shows nobody its temporaries may have the later reader
 * read what the earlier operation made. Then nobody reads the later one, and the plan leaves it out.
 */
#ifndef ENGINE_ONCE_H
#define ENGINE_ONCE_H

#include "engine/tape.h"

/* A tape of the same tensors and operations; only the inputs of some are others. */
struct once {
    struct tape tape; /* shares all but ops with the original, which must outlive it */
    uint32_t spared;  /* operations whose outputs nobody reads any more */
};

MUST_CHECK enum status once_build(struct once *once, const struct tape *tape, struct error *error);
void once_release(struct once *once); /* zeros are allowed */

#endif /* ENGINE_ONCE_H */
