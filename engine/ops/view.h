/*
 * view.h - how BINARY and SELECT read their operands: through VIEW_AXES axes with strides (op.h).
 *
 * Rules, kernels, fusions and gradients ask here whether an operand lies as the output does, or is
 * read in turns, element i at (i/div) % mod: what most operands of a step are. Attributes have
 * passed op_check().
 */
#ifndef ENGINE_OPS_VIEW_H
#define ENGINE_OPS_VIEW_H

#include "engine/ops/op.h"

/* Where an operand is read for the output's element at index. */
static RULE inline uint64_t view_place(const int64_t *dims, const int64_t *strides, uint64_t index)
{
    uint64_t at = 0;

    for (uint32_t axis = VIEW_AXES; axis > 0; axis--) {
        const uint64_t length = (uint64_t)dims[axis - 1];

        if (length > 1) {
            at += index % length * (uint64_t)strides[axis - 1];
            index /= length;
        }
    }
    return at;
}

/* Element i of the output reads element (i/div) % mod. */
struct view_turns {
    uint64_t div;
    uint64_t mod;
};

/* Sets the strides of an operand that lies as the output does. */
void view_dense(int64_t strides[VIEW_AXES], const int64_t *dims);

/* Does an operand with these strides lie as the output does? */
bool view_lies_alike(const int64_t *dims, const int64_t *strides);

/*
 * False: the operand is read in another way. An operand that lies alike has div 1 and mod the
 * output's count; one of one element has div 1 and mod 1.
 */
bool view_is_turns(struct view_turns *turns, const int64_t *dims, const int64_t *strides);

/* As view_lies_alike(), of an operand of a BINARY. */
bool binary_lies_alike(const struct op *op, uint32_t operand);

/* As view_is_turns(). */
bool binary_is_turns(struct view_turns *turns, const struct op *op, uint32_t operand);

/* Is op a BINARY of x and dy: the gradient of a function of x? */
static inline bool binary_is_gradient(const struct op *op)
{
    const int64_t function = op->attributes[BINARY_FUNCTION];

    return op->kind == OP_BINARY && (function == BINARY_RELU_GRAD || function == BINARY_GELU_GRAD ||
                                     function == BINARY_SILU_GRAD);
}

/*
 * Makes op a BINARY of count elements whose first operand lies as the output, and whose second is
 * read in turns; div * mod divides count. Where mod is count, dims are 1 1 1 count and the strides
 * of both 0 0 0 1. Inputs and outputs are the caller's.
 */
void binary_set(struct op *op, enum binary_function function, uint64_t count, uint64_t div,
                uint64_t mod);

#endif /* ENGINE_OPS_VIEW_H */
