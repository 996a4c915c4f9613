/*
 * fuse_core.h - what the files that look for something to fuse share: fuse.c and fuse_*.c. Nobody
 * else includes it.
 */
#ifndef ENGINE_CUDA_FUSIONS_FUSE_CORE_H
#define ENGINE_CUDA_FUSIONS_FUSE_CORE_H

#include "engine/cuda/fusions/fuse.h"
#include "engine/ops/contraction.h"

/* ---- what is read where ------------------------------------------------------------ */

#define NEVER UINT32_MAX

struct readers {
    uint32_t *first;  /* per tensor: the first operation that reads it, or NEVER */
    uint32_t *last;   /* the last one */
    uint32_t *count;  /* how many operations read it */
    uint32_t *states; /* the last one that reads it to make a state or an output */
    uint32_t *maker;  /* the operation that makes it, or NEVER */
    bool *kept;       /* a next state, the loss or an output */
    bool *asked;      /* an output: it may be read when its operation has run */
};

/* Of the operations as they are rewritten so far. */
MUST_CHECK bool readers_find(struct readers *readers, const struct fusion *fusion,
                             const struct tape *tape);
void readers_release(struct readers *readers);

/* ---- views --------------------------------------------------------------------------- */

/* Axes of a view that say something: those of one step are gone, neighbours that run on are one. */
struct plain_view {
    int64_t dims[6];
    int64_t strides[6];
    int count;
    int rows; /* how many of them are rows */
};

struct plain_view fuse_view_of(const struct op *quantize);

/* Is it the view of so many rows and columns as they lie, row after row? */
bool fuse_view_is_rows(const struct op *quantize, int64_t rows, int64_t columns);

/* ---- chains ---------------------------------------------------------------------------- */

/* May operation `at` still be taken into a chain? */
bool chain_may_take(const struct fusion *fusion, uint32_t at);

/*
 * Can these operations, the last of which is the maker, be one? Nobody else reads what they make
 * but `made`; and of `made` nobody reads anything before the maker is done, nor asks for it between
 * legs. ats: ascending.
 */
bool chain_closed(const struct fusion *fusion, const struct readers *readers, const uint32_t *ats,
                  uint32_t count, const uint32_t *made, uint32_t made_count);

/*
 * Has `maker`, at the last of ats, make them: its inputs and outputs are all that is read and made.
 * Its kind says what the plan may do with it (write in place, leave outputs out, give scratch). The
 * readers are found anew by the caller.
 */
MUST_CHECK bool
chain_add(struct fusion *fusion, const uint32_t *ats, uint32_t count, const struct op *maker,
          enum device_result (*launch)(const struct launcher *, const struct chain *));

/* ---- those who look -------------------------------------------------------------------- */

/*
 * Each finds what one way spares, in a fusion that others have changed before; the readers are
 * those of now, and whoever changes operations and looks on finds them anew. false: no memory.
 */
#define FINDER(name)                                                                               \
    MUST_CHECK bool name(struct fusion *fusion, const struct tape *tape, struct readers *readers)

FINDER(fuse_find_views);
FINDER(fuse_find_entropy);
FINDER(fuse_find_lists);
FINDER(fuse_find_attention);
FINDER(fuse_find_epilogues);
FINDER(fuse_find_sums);
FINDER(fuse_find_strips);

/* The lists of updates and squares, for the device; host NULL: only how much they take. */
void fuse_lists_write(struct fusion *fusion, const struct launcher *launcher, uint8_t *host,
                      uint8_t *device);

/* Does operation `at` read a first input of a causal softmax without what that hides? Nobody has to
 * write it for `at`. */
bool fuse_sees_causally(const struct fusion *fusion, uint32_t at);

/* Has what a mask hides in p and ds left unwritten where nobody reads it: when all is found. */
void fuse_leave_hidden(struct fusion *fusion, const struct readers *readers);

#endif /* ENGINE_CUDA_FUSIONS_FUSE_CORE_H */
