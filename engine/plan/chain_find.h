/*
 * chain_find.h - which operations of a tape are a chain, and how they are cut; for chain.c alone,
 * but for the limits.
 */
#ifndef ENGINE_PLAN_CHAIN_FIND_H
#define ENGINE_PLAN_CHAIN_FIND_H

#include "engine/plan/slice.h"

#define CHAIN_NONE    UINT32_MAX
#define CHAIN_OPS_MAX 64 /* of a chain */
#define CHAINS_MAX    8  /* that large tensors join */
#define CHAIN_LEVELS  2  /* sequences, and heads of one of them */

/* Which chains run in slices. */
struct chain_limits {
    /* Bytes of the largest tensor of a slice, where a slice of more than one head is possible. What
     * fits as a whole is no chain. 0: there are no slices. */
    uint64_t room;
    /* Nor are rows of so many elements and fewer. */
    uint64_t columns;
};

/* How the operations of a chain are cut at one level: unit u of the chain is the units u*per ..
 * (u+1)*per-1 of the operation's axis. */
struct chain_level {
    uint64_t length; /* units */
    uint64_t step;   /* units of one slice; length: it is not cut here */
    uint32_t axes[CHAIN_OPS_MAX];
    uint64_t per[CHAIN_OPS_MAX];
};

enum chain_part {
    CHAIN_OWN,  /* it stands in this chain alone */
    CHAIN_FEED, /* it makes what has no parts that can be copied: integers and exponents */
    CHAIN_AGAIN /* it makes again what an earlier chain made, or feeds such an operation */
};

struct chain {
    uint32_t count;
    uint32_t ops[CHAIN_OPS_MAX]; /* in order */
    enum chain_part parts[CHAIN_OPS_MAX];
    uint32_t first; /* its first and its last own operation */
    uint32_t last;
    uint64_t elements; /* of a large tensor */
    struct chain_level levels[CHAIN_LEVELS];
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

/* The place of an operation in a chain, or CHAIN_NONE. */
uint32_t chain_place(const struct chain *chain, uint32_t op);

/* Is a tensor that an own operation makes read by others, as a whole? */
bool chain_leaves(const struct chain *chain, const struct chain_finder *finder, uint32_t id);

/* Slices along a level. */
uint64_t chain_slices(const struct chain_level *level);

/* Slice (i, j) of the operation at a place of the chain, and where its tensors lie in the
 * whole ones. */
void chain_cut(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
               const struct chain *chain, const struct tape *tape, uint32_t place, uint64_t i,
               uint64_t j);

#endif /* ENGINE_PLAN_CHAIN_FIND_H */
