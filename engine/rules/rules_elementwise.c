/*
 * rules_elementwise.c - the rules of operations whose output element reads one element of each
 * input (rotary: two).
 */
#include <math.h>

#include "engine/ops/element.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

static RULE float broadcast_real(const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t at = index / (uint64_t)attributes[BROADCAST_DIV] % (uint64_t)attributes[BROADCAST_MOD];

    return rule_input(call, 1, at);
}

RULE uint32_t rule_add(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rule_input(call, 0, index) + broadcast_real(call, index));
}

RULE uint32_t rule_mul(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rule_input(call, 0, index) * broadcast_real(call, index));
}

RULE uint32_t rule_scale(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rule_input(call, 0, index) * rule_constant(call, SCALE_FACTOR_BITS));
}

RULE uint32_t rule_relu(const struct rule_call *call, uint64_t index)
{
    return element_relu(rule_input(call, 0, index));
}

RULE uint32_t rule_relu_grad(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);

    if (x != x) {
        return FLOAT_NAN_BITS;
    }
    return x > 0.0f ? real_to_bits(rule_input(call, 1, index)) : 0;
}

RULE uint32_t rule_gelu(const struct rule_call *call, uint64_t index)
{
    return element_gelu(rule_input(call, 0, index));
}

RULE uint32_t rule_gelu_grad(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);
    float dy = rule_input(call, 1, index);

    return element_gelu_grad(x, dy);
}

RULE uint32_t rule_silu(const struct rule_call *call, uint64_t index)
{
    return element_silu(rule_input(call, 0, index));
}

RULE uint32_t rule_silu_grad(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);
    float dy = rule_input(call, 1, index);

    return element_silu_grad(x, dy);
}

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

RULE uint32_t rule_squared_error(const struct rule_call *call, uint64_t index)
{
    float d = rule_input(call, 0, index) - rule_input(call, 1, index);

    return real_to_bits(d * d);
}

RULE uint32_t rule_squared_error_grad(const struct rule_call *call, uint64_t index)
{
    float d = rule_input(call, 0, index) - rule_input(call, 1, index);

    return real_to_bits((2.0f * d) * rule_input(call, 2, index));
}
