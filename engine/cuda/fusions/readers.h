/*
 * readers.h - who makes and who reads each tensor, of the operations as they are rewritten so far.
 *
 * Found once for a tape. Where a pattern changes a few operations, these are forgotten as they were
 * and seen as they are: the cost is that of what they read, for a tape of any length.
 */
#ifndef ENGINE_CUDA_FUSIONS_READERS_H
#define ENGINE_CUDA_FUSIONS_READERS_H

#include "engine/cuda/fusions/fusion.h"

#define NEVER UINT32_MAX

struct readers_own; /* readers.c: of a tensor by its own id alone */

struct readers {
    /* Who reads a part of a tensor reads the whole, and who reads the whole reads its parts. */
    uint32_t *first;  /* per tensor: the first operation that reads it, or NEVER */
    uint32_t *last;   /* the last one */
    uint32_t *count;  /* how many operations read it */
    uint32_t *states; /* the last one that reads it to make a state or an output */
    uint32_t *maker;  /* the operation that makes it, or NEVER */
    bool *kept;       /* a next state, the loss, an output, or what turns of a loop hand on */
    bool *is_output;  /* an output: it may be read when its operation has run */
    struct readers_own *own;
    uint32_t *lists; /* the readers of each tensor, ascending */
};

/* Releases those that were found before, if any. false: no memory, and nothing to release. */
MUST_CHECK bool readers_find(struct readers *readers, const struct fusion *fusion,
                             const struct tape *tape);
void readers_release(struct readers *readers);

/* Operation `at`, which was op until now: its reading and making is forgotten. */
void readers_forget(struct readers *readers, const struct fusion *fusion, const struct op *op,
                    uint32_t at);

/* What a backward pass makes again (attention.c) is read by so many operations that did not read
 * it: numbers of rows, and operands, once more for each product that reads them. */
#define READERS_MORE 3

/* Operation `at` as it is now. All that are forgotten come before the first that is seen. */
void readers_see(struct readers *readers, const struct fusion *fusion, uint32_t at);

/* The group that was made last. */
void readers_regroup(struct readers *readers, const struct fusion *fusion);

#endif /* ENGINE_CUDA_FUSIONS_READERS_H */
