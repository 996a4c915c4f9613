/*
 * rule_real.h - reads a rule's operands and constants as binary32 values.
 */
#ifndef ENGINE_RULES_RULE_REAL_H
#define ENGINE_RULES_RULE_REAL_H

#include "engine/ops/element.h"
#include "engine/ops/real.h"
#include "engine/rules/rule.h"

/* The element as a binary32; one of 16 bits is widened, exactly. */
static RULE inline uint32_t operand_number(const struct operand *operand, uint64_t index)
{
    const uint32_t bits = operand_get(operand, index);

    return dtype_is_half(operand->dtype) ? element_cast(operand->dtype, DTYPE_F32, bits) : bits;
}

static RULE inline float rule_input(const struct rule_call *call, uint32_t input, uint64_t index)
{
    return real_from_bits(operand_get(&call->inputs[input], index));
}

/* An earlier output of the same operation. */
static RULE inline float rule_output(const struct rule_call *call, uint32_t output, uint64_t index)
{
    return real_from_bits(operand_get(&call->outputs[output], index));
}

static RULE inline float rule_constant(const struct rule_call *call, uint32_t attribute)
{
    return real_from_bits((uint32_t)call->op->attributes[attribute]);
}

#endif /* ENGINE_RULES_RULE_REAL_H */
