/*
 * rules_general.c - the rules of the kinds that work element by element: function codes, views,
 * moves, places, casts, rotary.
 */
#include "engine/ops/element.h"
#include "engine/ops/view.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

/* Where an operand with these strides is read for the output's element at index. */
static RULE uint64_t place_of_view(const struct rule_call *call, uint32_t dims_at,
                                   uint32_t strides_at, uint64_t index)
{
    return view_place(&call->op->attributes[dims_at], &call->op->attributes[strides_at], index);
}

RULE uint32_t rule_map(const struct rule_call *call, uint64_t index)
{
    enum map_function function = (enum map_function)call->op->attributes[MAP_FUNCTION];

    return real_to_bits(
        element_map(function, rule_input(call, 0, index), rule_constant(call, MAP_CONSTANT_BITS)));
}

RULE uint32_t rule_binary(const struct rule_call *call, uint64_t index)
{
    enum binary_function function = (enum binary_function)call->op->attributes[BINARY_FUNCTION];
    float a = rule_input(call, 0, place_of_view(call, BINARY_DIMS, BINARY_A_STRIDES, index));
    float b = rule_input(call, 1, place_of_view(call, BINARY_DIMS, BINARY_B_STRIDES, index));

    return real_to_bits(element_binary(function, a, b));
}

RULE uint32_t rule_select(const struct rule_call *call, uint64_t index)
{
    uint64_t at = place_of_view(call, SELECT_DIMS, SELECT_C_STRIDES, index);
    /* -0 is 0 too. */
    bool first = (operand_get(&call->inputs[0], at) & UINT32_C(0x7fffffff)) != 0;

    at = place_of_view(call, SELECT_DIMS, first ? SELECT_A_STRIDES : SELECT_B_STRIDES, index);
    return operand_get(&call->inputs[first ? 1 : 2], at);
}

RULE uint32_t rule_move(const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    int64_t at = attributes[MOVE_OFFSET];

    for (uint32_t axis = MOVE_AXES; axis > 0; axis--) {
        uint64_t length = (uint64_t)attributes[MOVE_DIMS + axis - 1];

        at += (int64_t)(index % length) * attributes[MOVE_STRIDES + axis - 1];
        index /= length;
    }
    return operand_get(&call->inputs[0], (uint64_t)at);
}

static RULE uint64_t stride_size(const int64_t *attributes, uint32_t axis)
{
    int64_t stride = attributes[MOVE_STRIDES + axis];

    return (uint64_t)(stride < 0 ? -stride : stride);
}

/* The axis of the largest stride among those not in the set `placed`; MOVE_AXES: none is left. */
static RULE uint32_t widest_axis(const int64_t *attributes, uint32_t placed)
{
    uint32_t widest = MOVE_AXES;

    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        if ((placed >> axis & 1) == 0 && attributes[MOVE_DIMS + axis] > 1 &&
            (widest == MOVE_AXES ||
             stride_size(attributes, axis) > stride_size(attributes, widest))) {
            widest = axis;
        }
    }
    return widest;
}

/* The element of x that is placed at the output's element `index`; x's count: none is. */
static RULE uint64_t placed_element(const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t inner[MOVE_AXES]; /* elements of x under each axis */
    int64_t left = (int64_t)index - attributes[MOVE_OFFSET];
    uint64_t count = 1;
    uint64_t at = 0;
    uint32_t placed = 0;

    /* From the first element addressed on, all distances are above zero. */
    for (uint32_t axis = MOVE_AXES; axis > 0; axis--) {
        int64_t length = attributes[MOVE_DIMS + axis - 1];
        int64_t stride = attributes[MOVE_STRIDES + axis - 1];

        inner[axis - 1] = count;
        count *= (uint64_t)length;
        left -= stride < 0 ? (length - 1) * stride : 0;
    }
    if (left < 0) {
        return count;
    }
    for (;;) {
        uint32_t axis = widest_axis(attributes, placed);

        if (axis == MOVE_AXES) {
            return left == 0 ? at : count;
        }
        uint64_t length = (uint64_t)attributes[MOVE_DIMS + axis];
        uint64_t size = stride_size(attributes, axis);
        uint64_t place = (uint64_t)left / size;

        if (place >= length) {
            return count;
        }
        left -= (int64_t)(place * size);
        at += (attributes[MOVE_STRIDES + axis] < 0 ? length - 1 - place : place) * inner[axis];
        placed |= 1u << axis;
    }
}

RULE uint32_t rule_place(const struct rule_call *call, uint64_t index)
{
    uint64_t at = placed_element(call, index);

    if (at < call->inputs[0].count) {
        return operand_get(&call->inputs[0], at);
    }
    return operand_get(&call->inputs[1], call->inputs[1].count == 1 ? 0 : index);
}

RULE uint32_t rule_cast(const struct rule_call *call, uint64_t index)
{
    return element_cast(call->inputs[0].dtype, call->outputs[0].dtype,
                        operand_get(&call->inputs[0], index));
}

/* ---- rotary: one element reads a pair ------------------------------------------ */

RULE uint32_t rule_rotary(const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t width = (uint64_t)attributes[ROTARY_WIDTH];
    uint64_t across = width * (uint64_t)attributes[ROTARY_HEADS];
    uint64_t t = index / across % (uint64_t)attributes[ROTARY_LENGTH];
    uint64_t place = index % width; /* in its head */
    uint64_t apart = attributes[ROTARY_HALVES] != 0 ? width / 2 : 1;
    uint64_t pair = apart == 1 ? place / 2 : place % apart; /* width 2 is the same pair in both */
    uint64_t first = index - place + (apart == 1 ? 2 * pair : pair);
    float x0 = rule_input(call, 0, first);
    float x1 = rule_input(call, 0, first + apart);
    float c = rule_input(call, 1, t * width + 2 * pair);
    float s = rule_input(call, 1, t * width + 2 * pair + 1);

    s = attributes[ROTARY_INVERSE] != 0 ? -s : s;
    if (index == first) {
        return real_to_bits(fmaf(x0, c, -(x1 * s)));
    }
    return real_to_bits(fmaf(x0, s, x1 * c));
}
