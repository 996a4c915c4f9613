/*
 * fusion.h - a copy of a tape in which operations are rewritten, so that fewer passes and launches
 * make the same numbers. Patterns (pattern.h) change it, in fast mode alone:
 *
 *   - A fused group: several operations become one, the last of them. Wherever a step is cut, the
 *     group is one operation. What only its own operations read is not made at all.
 *   - A unit: a run of operations that one launch executes. Where a part of a step ends inside of
 *     it, its operations are launched one by one. The plan's places are looked at before a unit is
 *     used: no operation may write where another one of the unit reads or writes.
 *   - A view: a tensor that lies inside of another, so that nobody splits or joins the two.
 *
 * Every output that is made has the rules' bits; an output that is not made has no reader.
 */
#ifndef ENGINE_CUDA_FUSIONS_FUSION_H
#define ENGINE_CUDA_FUSIONS_FUSION_H

#include "engine/cuda/launch/launcher.h"
#include "engine/plan/lazy.h"

struct fusion_pattern; /* pattern.h */

/* What is known of the device when a tape is looked through. */
struct fusion_facts {
    uint32_t disabled;   /* as launcher.disabled */
    uint32_t shared_max; /* 0: not known, enough */
    bool in_legs;        /* steps are cut: outputs are read, and inputs arrive, between two legs */
    bool roomy;          /* limbs of parameters may wait for the backward pass: tiles.c */
};

#define GROUP_OPS_MAX 8

/* Operations that the last of them executes. */
struct fused_group {
    uint32_t count;
    uint32_t ats[GROUP_OPS_MAX];  /* where they stand, ascending */
    struct op ops[GROUP_OPS_MAX]; /* as they were, with the names that the tensors have now */
    uint32_t again; /* of attention: 1 + the operation whose rows it makes again; 0: none */
};

/* A unit of updates: the operations from `at` to before `end`. */
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
    struct squares_args sums; /* sums of those, where a tensor has several rows */
    const float *const *terms;
};

#define FUSED_RUNS_MAX 16

struct fusion {
    struct fusion_facts facts;
    struct op *ops; /* the tape's, rewritten */
    uint32_t op_count;
    uint32_t tensor_count;
    uint32_t *holders;  /* per tensor: the one inside of which it lies, or itself */
    uint64_t *offsets;  /* per tensor: bytes from there to it */
    uint32_t *ends;     /* per operation: one past the unit that starts there; at + 1: no unit */
    uint32_t *group_of; /* per operation: 1 + its group; 0: none */
    bool *apart;       /* per operation: no pattern takes it: it reads 16 bits, or lists.c has it */
    uint32_t *stretch; /* per operation: grows where a loop or a lazy run begins or ends */
    struct lazy lazy;  /* operations that some steps leave out */
    const struct fusion_pattern **patterns; /* per operation: which launches it; NULL: none */
    struct fused_group *groups;
    uint32_t group_count;
    struct fused_updates updates[FUSED_RUNS_MAX];
    uint32_t updates_count;
    struct fused_squares squares[FUSED_RUNS_MAX];
    uint32_t squares_count;
    uint64_t size; /* bytes of lists in device memory */
};

/* A copy in which every operation is alone. false: no memory; release it all the same. */
MUST_CHECK bool fusion_init(struct fusion *fusion, const struct tape *tape,
                            const struct fusion_facts *facts);
void fusion_release(struct fusion *fusion);

/* The group that operation `at` executes, or NULL. */
const struct fused_group *fusion_group(const struct fusion *fusion, uint32_t at);

bool fusion_allows(const struct fusion *fusion, enum kernel_variant variant);

/* Do operations first .. last run as often as each other, one after the other: in no loop or in
 * one, in every step or in those that need them (engine/plan/lazy.h)? Else neither a group nor a
 * unit may have both. */
bool fusion_is_stretch(const struct fusion *fusion, uint32_t first, uint32_t last);

/* Is operation `at` outside of every group and no start of a unit? */
bool fusion_may_take(const struct fusion *fusion, uint32_t at);

#endif /* ENGINE_CUDA_FUSIONS_FUSION_H */
