/*
 * rules_general.c - the rules of the general kinds: one function code, operands read through views.
 */
#include "engine/ops/element.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

/* Where an operand with these strides is read for the output's element at index. */
static RULE uint64_t view_place(const struct rule_call *call, uint32_t dims_at, uint32_t strides_at,
                                uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t at = 0;

    for (uint32_t axis = VIEW_AXES; axis > 0; axis--) {
        uint64_t length = (uint64_t)attributes[dims_at + axis - 1];

        at += index % length * (uint64_t)attributes[strides_at + axis - 1];
        index /= length;
    }
    return at;
}

RULE uint32_t rule_map(const struct rule_call *call, uint64_t index)
{
    enum map_function function = (enum map_function)call->op->attributes[MAP_FUNCTION];

    return real_to_bits(element_map(function, rule_input(call, 0, index)));
}

RULE uint32_t rule_binary(const struct rule_call *call, uint64_t index)
{
    enum binary_function function = (enum binary_function)call->op->attributes[BINARY_FUNCTION];
    float a = rule_input(call, 0, view_place(call, BINARY_DIMS, BINARY_A_STRIDES, index));
    float b = rule_input(call, 1, view_place(call, BINARY_DIMS, BINARY_B_STRIDES, index));

    return real_to_bits(element_binary(function, a, b));
}

RULE uint32_t rule_select(const struct rule_call *call, uint64_t index)
{
    uint64_t at = view_place(call, SELECT_DIMS, SELECT_C_STRIDES, index);
    /* -0 is 0 too. */
    bool first = (operand_get(&call->inputs[0], at) & UINT32_C(0x7fffffff)) != 0;

    at = view_place(call, SELECT_DIMS, first ? SELECT_A_STRIDES : SELECT_B_STRIDES, index);
    return operand_get(&call->inputs[first ? 1 : 2], at);
}
