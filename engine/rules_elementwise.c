/*
 * rules_elementwise.c - the rules of operations whose output element reads one element of each
 * input (rotary: two). docs/ARITHMETIC.md states the same in mathematics.
 */
#include "engine/rule_real.h"
#include "engine/rules.h"
#include "engine/scalar.h"

#include <math.h>

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
    float x = rule_input(call, 0, index);

    return x != x ? FLOAT_NAN_BITS : x > 0.0f ? real_to_bits(x) : 0;
}

RULE uint32_t rule_relu_grad(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);

    if (x != x) {
        return FLOAT_NAN_BITS;
    }
    return x > 0.0f ? real_to_bits(rule_input(call, 1, index)) : 0;
}

/* x / (1 + exp(-2u)): see scalar.h. */
RULE uint32_t rule_gelu(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);
    float z = x * fmaf(SCALAR_GELU_W3, x * x, SCALAR_GELU_W1);

    return real_to_bits(x / (1.0f + scalar_exp(z)));
}

RULE uint32_t rule_gelu_grad(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);
    float dy = rule_input(call, 1, index);

    /* NaN passes both comparisons. */
    x = x < -SCALAR_GELU_FLAT ? -SCALAR_GELU_FLAT : x;
    x = x > SCALAR_GELU_FLAT ? SCALAR_GELU_FLAT : x;
    float square = x * x;
    float z = x * fmaf(SCALAR_GELU_W3, square, SCALAR_GELU_W1);
    float e = scalar_exp(z);
    float s = 1.0f / (1.0f + e);
    float slope = fmaf(SCALAR_GELU_D3, square, SCALAR_GELU_W1); /* dz/dx */
    float m = (x * s) * (e * s);                                /* e * s = 1 - s, exact in ratio */

    return real_to_bits(fmaf(-m, slope, s) * dy);
}

RULE uint32_t rule_silu(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);

    return real_to_bits(x / (1.0f + scalar_exp(-x)));
}

RULE uint32_t rule_silu_grad(const struct rule_call *call, uint64_t index)
{
    float x = rule_input(call, 0, index);
    float dy = rule_input(call, 1, index);

    x = x < -SCALAR_SILU_FLAT ? -SCALAR_SILU_FLAT : x;
    x = x > SCALAR_SILU_FLAT ? SCALAR_SILU_FLAT : x;
    float e = scalar_exp(-x);
    float s = 1.0f / (1.0f + e);

    return real_to_bits(fmaf(x * s, e * s, s) * dy);
}

RULE uint32_t rule_rotary(const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t width = (uint64_t)attributes[ROTARY_WIDTH];
    uint64_t across = width * (uint64_t)attributes[ROTARY_HEADS];
    uint64_t t = index / across % (uint64_t)attributes[ROTARY_LENGTH];
    uint64_t pair = index & ~UINT64_C(1); /* across and width are even */
    uint64_t angle = t * width + (pair % across) % width;
    float x0 = rule_input(call, 0, pair);
    float x1 = rule_input(call, 0, pair + 1);
    float c = rule_input(call, 1, angle);
    float s = rule_input(call, 1, angle + 1);

    s = attributes[ROTARY_INVERSE] != 0 ? -s : s;
    if (index == pair) {
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
