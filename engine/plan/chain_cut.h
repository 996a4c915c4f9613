/*
 * chain_cut.h - a chain, and along which axis each of its operations is cut; for chain.c and
 * chain_find.c.
 *
 * One product is cut along an axis that the caller names, and every other operation as one of the
 * tensors that it shares with those that are cut already. All of them must agree about every tensor
 * that the chain makes.
 */
#ifndef ENGINE_PLAN_CHAIN_CUT_H
#define ENGINE_PLAN_CHAIN_CUT_H

#include "engine/plan/slice.h"

#define CHAIN_NONE    UINT32_MAX
#define CHAIN_OPS_MAX 64 /* of a chain */
#define CHAIN_LEVELS  2  /* sequences, and heads of one of them; or rows or columns, and nothing */

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

/* The place of an operation in a chain, or CHAIN_NONE. */
uint32_t chain_place(const struct chain *chain, uint32_t op);

/* Cuts level i along axes[i] of the product at a place of the chain; the levels have their lengths
 * and steps. False: an operation has no such axis, or there is no memory. */
MUST_CHECK bool chain_cut_levels(struct chain *chain, const struct tape *tape, uint32_t seed,
                                 const uint32_t axes[CHAIN_LEVELS]);

/* Marks the places of a chain with one level that can be cut so. Those that are not marked need
 * more than a part of what the others make. False: no memory. */
MUST_CHECK bool chain_cut_reach(bool reached[CHAIN_OPS_MAX], struct chain *chain,
                                const struct tape *tape, uint32_t seed, uint32_t axis);

bool chain_cut_is_cut(const struct chain_level *level);

/* Slices along a level. */
uint64_t chain_cut_slices(const struct chain_level *level);

/* Slice (i, j) of the operation at a place of the chain, and where its tensors lie in the
 * whole ones. */
void chain_cut_part(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
                    const struct chain *chain, const struct tape *tape, uint32_t place, uint64_t i,
                    uint64_t j);

#endif /* ENGINE_PLAN_CHAIN_CUT_H */
