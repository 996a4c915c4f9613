/*
 * readers.h - who makes and who reads each tensor, of the operations as they are rewritten so far.
 */
#ifndef ENGINE_CUDA_FUSIONS_READERS_H
#define ENGINE_CUDA_FUSIONS_READERS_H

#include "engine/cuda/fusions/fusion.h"

#define NEVER UINT32_MAX

struct readers {
    uint32_t *first;  /* per tensor: the first operation that reads it, or NEVER */
    uint32_t *last;   /* the last one */
    uint32_t *count;  /* how many operations read it */
    uint32_t *states; /* the last one that reads it to make a state or an output */
    uint32_t *maker;  /* the operation that makes it, or NEVER */
    bool *kept;       /* a next state, the loss or an output */
    bool *is_output;  /* an output: it may be read when its operation has run */
};

/* Releases those that were found before, if any. false: no memory, and nothing to release. */
MUST_CHECK bool readers_find(struct readers *readers, const struct fusion *fusion,
                             const struct tape *tape);
void readers_release(struct readers *readers);

#endif /* ENGINE_CUDA_FUSIONS_READERS_H */
