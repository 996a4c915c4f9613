/*
 * fuse.h - what of a tape need not be made twice, or is better launched together: found when a
 * machine is opened, from the tape and the ways that are free (launch.h).
 *
 * Four kinds of changes, all for fast mode alone:
 *
 *   - operations are rewritten, in a copy. A quantization of the same view of the same tensor is
 *     read from the first, however its axes are written; and the squares of many tensors, added up
 *     one after another, are made where the last of them is added: by kernel_squares, from the
 *     numbers themselves, so that nothing of what lies between is made at all.
 *   - chains: what several operations do, one of them makes, the last; no matter where a step is
 *     cut, it is one operation. What only they would read is not made at all.
 *   - runs of operations become units, which one launch makes. A run that is cut, because a part of
 *     a step ends inside of it, is launched one by one. No unit is used in which an operation
 *     writes where another one reads or writes, but for what it makes for it: the plan is looked
 *     at.
 *
 *   - views: parts of rows lie inside of the whole, so that nobody splits it or puts it together.
 *
 * Every output that is made has the rules' bits; what is not made, nobody reads.
 */
#ifndef ENGINE_CUDA_FUSIONS_FUSE_H
#define ENGINE_CUDA_FUSIONS_FUSE_H

#include "engine/cuda/launch/launch.h"
#include "engine/plan/plan.h"

/* A run of updates; its items are those from first_item on. */
struct fused_updates {
    uint32_t at;
    uint32_t end;
    uint64_t tiles;
    const struct update_item *items; /* of the device, as all that follows */
    const uint64_t *firsts;
};

/* The sum of the squares of many tensors, made at operation `at`; the run begins at `first`. */
struct fused_squares {
    uint32_t first;
    uint32_t at;
    uint32_t term_count;
    uint64_t elements;        /* of all that is squared */
    struct squares_args rows; /* squares of rows */
    struct squares_args sums; /* of those, where a tensor has several */
    const float *const *terms;
};

#define FUSED_RUNS_MAX 16

/* What is known of the device when a tape is looked through. */
struct fusion_facts {
    uint32_t barred;     /* as launcher.barred */
    int32_t capability;  /* as the launcher's; 0: not known */
    uint32_t shared_max; /* 0: not known, enough */
    bool in_legs; /* outputs are there when their operation has run, and no input comes sooner */
};

#define CHAIN_OPS_MAX 8

/* Operations that the last of them makes. */
struct chain {
    enum device_result (*launch)(const struct launcher *launcher, const struct chain *chain);
    uint32_t count;
    uint32_t ats[CHAIN_OPS_MAX];
    struct op ops[CHAIN_OPS_MAX]; /* as they were, with the names that the tensors have now */
};

struct fusion {
    struct fusion_facts facts;
    struct op *ops; /* the tape's, rewritten */
    uint32_t op_count;
    uint32_t tensor_count;
    uint32_t *holders;  /* per tensor: the one inside of which it lies, or itself */
    uint64_t *offsets;  /* per tensor: bytes from there to it */
    uint32_t *ends;     /* per operation: where its unit ends; at + 1: alone */
    uint32_t *chain_of; /* per operation: 1 + the chain that makes it; 0: none */
    struct chain *chains;
    uint32_t chain_count;
    struct fused_updates updates[FUSED_RUNS_MAX];
    uint32_t updates_count;
    struct fused_squares squares[FUSED_RUNS_MAX];
    uint32_t squares_count;
    uint64_t size; /* bytes of the device */
};

/* Finds all that is to be found. */
MUST_CHECK enum status fusion_build(struct fusion *fusion, const struct tape *tape,
                                    const struct fusion_facts *facts, struct error *error);
void fusion_release(struct fusion *fusion);

/* The chain that operation `at` makes, or NULL. */
const struct chain *fusion_chain(const struct fusion *fusion, uint32_t at);

/* Is it an operation along rows that a warp can hold? */
bool fuse_holds_rows(const struct op *op);

/* Cuts the units that the plan's places forbid, or of which an operation is not made. */
void fusion_check(struct fusion *fusion, const struct tape *tape, const struct plan *plan,
                  const struct plan_hooks *hooks);

/* Sends the lists to device memory of fusion->size bytes. The launcher is ready but for them. */
MUST_CHECK enum status fusion_upload(enum device_result *result, struct fusion *fusion,
                                     const struct launcher *launcher, void *device_memory,
                                     struct error *error);

#endif /* ENGINE_CUDA_FUSIONS_FUSE_H */
