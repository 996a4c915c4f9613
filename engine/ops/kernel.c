/*
 * kernel.c - which outputs of a kernel may take the memory of an input; see kernel.h. The kernels
 * promise what op_list.h says; tests/engine/cpu checks them.
 */
#include "engine/ops/kernel.h"

#include "engine/ops/view.h"

/* A set of inputs. */
enum {
    NEW = 0,
    OVER_0 = 1 << 0,
    OVER_1 = 1 << 1,
    OVER_2 = 1 << 2,
    OVER_3 = 1 << 3,
    OVER_01 = OVER_0 | OVER_1,
};

#define OP_PLAN(cut, launch, ...)                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define OP_PLAN_ROWS(tensors, launch, ...)                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define IN_PLACE(NAME, text, spec, rules, gradient, plan, ...) [OP_##NAME] = plan,

/* For each output the inputs whose memory it may take. */
static const uint8_t in_place[OP_KIND_COUNT][OP_OUTPUTS_MAX] = {OP_LIST(IN_PLACE)};

bool op_in_place(const struct op *op, uint32_t output, uint32_t input)
{
    if (op->kind >= OP_KIND_COUNT || output >= OP_OUTPUTS_MAX || input >= OP_INPUTS_MAX) {
        return false;
    }
    /* A view may read an element at another index. */
    return (in_place[op->kind][output] >> input & 1) != 0 &&
           (op->kind != OP_BINARY || binary_lies_alike(op, input));
}
