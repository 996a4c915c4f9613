/*
 * rules_update.c - the rules of gradient clipping and of the optimizers, one parameter at a time.
 *
 * Every output of an optimizer is computed from the inputs alone, never from another output, so a
 * dispute about it needs the fewest proofs.
 */
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

#include <math.h>

RULE uint32_t rule_clip_factor(const struct rule_call *call, uint64_t index)
{
    float norm = sqrtf(rule_input(call, 0, index));
    float limit = rule_constant(call, CLIP_LIMIT_BITS);

    if (norm != norm) {
        return FLOAT_NAN_BITS;
    }
    return real_to_bits(norm > limit ? limit / norm : 1.0f);
}

/* ---- SGD with momentum: inputs p, g, v, rate, gscale --------------------- */

static RULE float sgd_velocity(const struct rule_call *call, uint64_t index)
{
    float scaled = rule_input(call, 1, index) * rule_input(call, 4, 0);
    float gradient = fmaf(rule_constant(call, SGD_DECAY_BITS), rule_input(call, 0, index), scaled);

    return fmaf(rule_constant(call, SGD_MOMENTUM_BITS), rule_input(call, 2, index), gradient);
}

RULE uint32_t rule_sgd_velocity(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(sgd_velocity(call, index));
}

RULE uint32_t rule_sgd_parameter(const struct rule_call *call, uint64_t index)
{
    float rate = rule_input(call, 3, 0);

    return real_to_bits(fmaf(-rate, sgd_velocity(call, index), rule_input(call, 0, index)));
}

/* ---- AdamW: inputs p, g, m, v, rate, correct1, correct2, gscale ---------- */

static RULE float adamw_gradient(const struct rule_call *call, uint64_t index)
{
    return rule_input(call, 1, index) * rule_input(call, 7, 0);
}

static RULE float adamw_moment1(const struct rule_call *call, uint64_t index)
{
    float fresh = rule_constant(call, ADAMW_ONE_LESS_BETA1_BITS) * adamw_gradient(call, index);

    return fmaf(rule_constant(call, ADAMW_BETA1_BITS), rule_input(call, 2, index), fresh);
}

static RULE float adamw_moment2(const struct rule_call *call, uint64_t index)
{
    float gradient = adamw_gradient(call, index);
    float fresh = rule_constant(call, ADAMW_ONE_LESS_BETA2_BITS) * (gradient * gradient);

    return fmaf(rule_constant(call, ADAMW_BETA2_BITS), rule_input(call, 3, index), fresh);
}

RULE uint32_t rule_adamw_moment1(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(adamw_moment1(call, index));
}

RULE uint32_t rule_adamw_moment2(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(adamw_moment2(call, index));
}

RULE uint32_t rule_adamw_parameter(const struct rule_call *call, uint64_t index)
{
    float p = rule_input(call, 0, index);
    float rate = rule_input(call, 4, 0);
    float mean = adamw_moment1(call, index) * rule_input(call, 5, 0);
    float root = sqrtf(adamw_moment2(call, index) * rule_input(call, 6, 0));
    float update = mean / (root + rule_constant(call, ADAMW_EPSILON_BITS));

    update = fmaf(rule_constant(call, ADAMW_DECAY_BITS), p, update);
    return real_to_bits(fmaf(-rate, update, p));
}
