/*
 * chain_find.h - which operations of a tape are a chain; for chain.c alone, but for the limits.
 */
#ifndef ENGINE_PLAN_CHAIN_FIND_H
#define ENGINE_PLAN_CHAIN_FIND_H

#include "engine/plan/chain_cut.h"

#define CHAINS_MAX 8 /* that large tensors join */

/* Which chains run in slices. */
struct chain_limits {
    /* Bytes of the largest tensor of a slice, where a slice of more than one head is possible. What
     * fits as a whole is no chain. 0: there are no slices. */
    uint64_t room;
    /* Nor are rows of so many elements and fewer. */
    uint64_t columns;
    /* Does a cross-entropy run in slices too? One of its products is made once more. */
    bool losses;
};

struct chain_finder {
    const struct tape *tape;
    struct chain_limits limits;
    uint32_t *makers;      /* per tensor: the operation that makes it, or CHAIN_NONE */
    uint32_t *reader_from; /* per tensor and one more: its first place in readers */
    uint32_t *readers;     /* operations, tensor by tensor, in order */
    bool *lasting; /* per tensor: a next state, the loss, an output, or of a loop's carries */
    bool *seen;    /* per operation: did a search reach it? */
};

/* False: no memory. Close it in any case. */
MUST_CHECK bool chain_finder_open(struct chain_finder *finder, const struct tape *tape,
                                  const struct chain_limits *limits);
void chain_finder_close(struct chain_finder *finder);

/* The chains around the first product at *at or behind it that makes one; *at becomes the
 * operation behind it. Returns how many; 0 at the end of the tape. */
uint32_t chain_find(struct chain chains[CHAINS_MAX], struct chain_finder *finder, uint32_t *at);

/* Is a tensor that an own operation makes read by others, as a whole? */
bool chain_leaves(const struct chain *chain, const struct chain_finder *finder, uint32_t id);

#endif /* ENGINE_PLAN_CHAIN_FIND_H */
