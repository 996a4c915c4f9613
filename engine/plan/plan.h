/*
 * plan.h - where every tensor of a tape lives during a step, decided before anything is allocated.
 *
 * Temporaries share one block: a tensor holds its place from the operation that makes it to its
 * last reader. An output that nobody reads has no place where the kernels can do without it, and an
 * operation none of whose outputs is needed is left out. Where a kernel may work in place, an
 * output takes over the place of an input that dies with it; so the next value of a state can be
 * written over the state. A tensor may lie inside of another, where the caller says so: then one
 * place is taken when the first of them is made, and given back when none of them is read any more.
 * Nothing here knows instruction sets: the caller's hooks answer.
 */
#ifndef ENGINE_PLAN_PLAN_H
#define ENGINE_PLAN_PLAN_H

#include "engine/tape/tape.h"

#define PLAN_ALIGNMENT 64
#define PLAN_ABSENT    UINT64_MAX

struct plan_hooks {
    const void *context; /* given to each hook */
    bool keep_all;       /* trace: every output of every operation is made */
    /* Bytes of a tensor that an operation makes; NULL: its elements. */
    uint64_t (*output_size)(const void *context, const struct op *op, uint32_t output,
                            const struct tensor *tensors);
    /* May the kernel write `output` over `input`? NULL: never. */
    bool (*in_place)(const void *context, enum op_kind kind, uint32_t output, uint32_t input);
    /* Does the kernel accept that an unread output is not there? NULL: never. */
    bool (*may_omit)(const void *context, enum op_kind kind);
    /* Behind the last of the operations that one launch makes from `at` on: nothing that they read
     * dies before. NULL: at + 1. */
    uint32_t (*unit_end)(const void *context, uint32_t at);
    /* The tensor inside of which another one lies, and at which byte; itself where it lies alone.
     * Both are temporaries that nobody reads behind the step, and neither's holder lies in another.
     * NULL: all lie alone. */
    uint32_t (*holder)(const void *context, uint64_t *offset, uint32_t tensor);
};

struct plan {
    uint64_t temporary_size; /* bytes of the block that temporaries share */
    uint64_t state_size;     /* bytes of the block of states, constants and inputs */
    uint64_t *places;        /* per tensor: offset in its block, or PLAN_ABSENT */
    bool *in_state;          /* per tensor: is the place in the state block? */
    bool *runs;              /* per operation */
    bool *copied;            /* per state pair: must the next value be copied at the end? */
};

MUST_CHECK enum status plan_build(struct plan *plan, const struct tape *tape,
                                  const struct plan_hooks *hooks, struct error *error);
void plan_release(struct plan *plan);

#endif /* ENGINE_PLAN_PLAN_H */
