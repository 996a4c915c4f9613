/*
 * plan.h - decides where every tensor of a tape lives during a step, before anything is allocated.
 *
 * Temporaries share one block: a tensor has its place from the operation that makes it to its last
 * reader. An output that nobody reads has no place if its kernel can omit it, and an operation
 * without a needed output does not run. Where a kernel works in place, an output takes the place of
 * an input with its last reader; so the next value of a state can overwrite the state. The caller
 * may put tensors inside of another tensor, the holder: one place then serves them from the first
 * that is made to the last that is read. The caller's hooks answer for the kernels.
 *
 * What a loop reads from outside of it keeps its place until the last turn. What a turn hands to
 * the next takes the place of what it was given where a kernel works in place; else the machine
 * copies it.
 */
#ifndef ENGINE_PLAN_PLAN_H
#define ENGINE_PLAN_PLAN_H

#include "engine/tape/tape.h"

#define PLAN_ALIGNMENT 64
#define PLAN_ABSENT    UINT64_MAX

struct plan_hooks {
    const void *context; /* passed to each hook */
    bool keep_all;       /* trace: make every output of every operation */
    /* Bytes of a tensor that an operation makes; NULL: its elements. */
    uint64_t (*output_size)(const void *context, const struct op *op, uint32_t output,
                            const struct tensor *tensors);
    /* May the kernel write `output` over `input`? NULL: never. */
    bool (*in_place)(const void *context, const struct op *op, uint32_t output, uint32_t input);
    /* Can the kernel omit an output that nobody reads? NULL: never. */
    bool (*may_omit)(const void *context, enum op_kind kind);
    /* Per operation: does what it makes outlast the step? NULL: no. */
    const bool *lasting;
    /* One past the last operation of the launch that starts at `at`. The inputs of the launch keep
     * their places until it ends. NULL: at + 1. */
    uint32_t (*unit_end)(const void *context, uint32_t at);
    /* The tensor's holder and its byte offset there; the tensor itself where it has none. Both are
     * temporaries that nobody reads after the step, and a holder has no holder. NULL: no tensor has
     * one. */
    uint32_t (*holder)(const void *context, uint64_t *offset, uint32_t tensor);
    /* Per operation: do its inputs, states of whole lines that no other such operation has, lie one
     * after the other, and its output on them? Nothing takes the states' places before the output's
     * last reader. NULL: no. */
    const bool *joins;
};

struct plan {
    uint64_t temporary_size; /* bytes of the block that temporaries share */
    uint64_t state_size;     /* bytes of the block of what outlasts a step, and of inputs */
    uint64_t *places;        /* per tensor: offset in its block, or PLAN_ABSENT */
    bool *in_state;          /* per tensor: is the place in the state block? */
    bool *runs;              /* per operation */
    bool *copied;            /* per state pair: must the step copy the next value at its end? */
    bool *handed;            /* per carry of a loop: must a turn copy it for the next? */
};

MUST_CHECK enum status plan_build(struct plan *plan, const struct tape *tape,
                                  const struct plan_hooks *hooks, struct error *error);
void plan_release(struct plan *plan);

#endif /* ENGINE_PLAN_PLAN_H */
