/*
 * kernel.c - which outputs of a kernel may take the memory of an input; see kernel.h. The kernels
 * promise each line; tests/engine/cpu checks them.
 */
#include "engine/ops/kernel.h"

#define BIT(input) (1u << (input))

/* inputs[output] has a bit for each input whose memory the output may take. */
struct in_place {
    uint8_t inputs[OP_OUTPUTS_MAX];
};

static const struct in_place in_place_table[OP_KIND_COUNT] = {
    [OP_DROPOUT] = {{BIT(0)}},
    /* Not the second operand: it may be read at another index. */
    [OP_ADD] = {{BIT(0)}},
    [OP_MUL] = {{BIT(0)}},
    [OP_SCALE] = {{BIT(0)}},
    [OP_RELU] = {{BIT(0)}},
    [OP_RELU_GRAD] = {{BIT(0) | BIT(1)}},
    [OP_GELU] = {{BIT(0)}},
    [OP_GELU_GRAD] = {{BIT(0) | BIT(1)}},
    [OP_SILU] = {{BIT(0)}},
    [OP_SILU_GRAD] = {{BIT(0) | BIT(1)}},
    [OP_ROTARY] = {{BIT(0)}},
    [OP_SQUARED_ERROR] = {{BIT(0) | BIT(1)}},
    [OP_SQUARED_ERROR_GRAD] = {{BIT(0) | BIT(1) | BIT(2)}},
    /* y over x */
    [OP_LAYER_NORM] = {{[4] = BIT(0)}},
    [OP_RMS_NORM] = {{[2] = BIT(0)}},
    /* dx and product over dy and x */
    [OP_LAYER_NORM_GRAD] = {{[4] = BIT(0) | BIT(1), [5] = BIT(0) | BIT(1)}},
    [OP_RMS_NORM_GRAD] = {{[2] = BIT(0) | BIT(1), [3] = BIT(0) | BIT(1)}},
    /* exps and p over x */
    [OP_SOFTMAX] = {{[2] = BIT(0), [5] = BIT(0)}},
    /* dx over p and dp */
    [OP_SOFTMAX_GRAD] = {{[2] = BIT(0) | BIT(1)}},
    /* Not exps over x: the loss reads x again. */
    [OP_CROSS_ENTROPY_GRAD] = {{BIT(0)}},
    /* the new parameter, velocity and moments over the old */
    [OP_SGD] = {{BIT(0), BIT(2)}},
    [OP_ADAMW] = {{BIT(0), BIT(2), BIT(3)}},
    /* Not BINARY and SELECT: a view may read an element at another index. */
    [OP_MAP] = {{BIT(0)}},
    /* out over base */
    [OP_PLACE] = {{BIT(1)}},
};

bool op_in_place(enum op_kind kind, uint32_t output, uint32_t input)
{
    if (kind >= OP_KIND_COUNT || output >= OP_OUTPUTS_MAX || input >= OP_INPUTS_MAX) {
        return false;
    }
    return (in_place_table[kind].inputs[output] >> input & 1) != 0;
}
