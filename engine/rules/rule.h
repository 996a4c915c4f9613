/*
 * rule.h - the definition of every output: one element from input elements.
 *
 * A rule is a pure function of the operation, of the position of the element, and of the input
 * elements (and earlier outputs of the same operation) that it reads. It takes at most about 1,024
 * arithmetic steps, or is an exact integer sum of any length. The scalar backend loops the rules,
 * the referee calls one. A rule never sees an index it could not check: op_check() has passed.
 *
 * Elements travel as 32 raw bits: binary32 patterns, or integers (I16 sign-extended).
 */
#ifndef ENGINE_RULES_RULE_H
#define ENGINE_RULES_RULE_H

#include <assert.h>

#include "engine/ops/op.h"

/* Changes with any rule, kind or attribute; a job names the version that it was made for. */
#define RULES_VERSION 1

/* Where a rule reads elements: plain memory, or a function (the referee's proofs, a recorder). */
struct operand {
    const void *memory; /* NULL: ask fetch */
    enum dtype dtype;
    uint64_t count;
    uint32_t (*fetch)(void *context, uint32_t tensor, uint64_t index);
    void *context;
    uint32_t tensor; /* id, for fetch */
};

struct rule_call {
    const struct op *op;
    struct operand inputs[OP_INPUTS_MAX];
    struct operand outputs[OP_OUTPUTS_MAX]; /* a rule may read outputs before its own */
};

/*
 * The element of output number `output` at `index`, as raw bits. Whatever the calling thread's
 * floating-point control is: it is set for the rule and given back.
 */
RULE uint32_t rule_element(const struct rule_call *call, uint32_t output, uint64_t index);

/*
 * A rule that folds a long axis can be taken in parts, where all that it reads is too much to look
 * at in one go. The parts are always the same ones: the ranges [0, part), [part, 2 part), ..., the
 * last of which may be shorter. Every part knows everything but its range, and what they come to
 * joins to the whole.
 */
enum rule_fold {
    RULE_WHOLE = 0, /* no axis: all at once */
    RULE_SUM,       /* a contraction: integers, modulo 2^64 */
    RULE_MAXIMUM,   /* the peak of a piece */
};

#define RULE_PART_OF_SUM     UINT64_C(1024) /* elements; more where there would be too many parts */
#define RULE_PART_OF_MAXIMUM UINT64_C(16)
#define RULE_PARTS_MAX       2048

struct rule_axis {
    enum rule_fold fold;
    uint64_t length; /* elements */
    uint64_t part;   /* elements of a part */
    uint32_t parts;  /* at most RULE_PARTS_MAX */
};

struct rule_part {
    enum rule_fold fold;
    bool settled;  /* no sum can change the element (causal, poison): it is bits */
    uint32_t bits; /* when settled */
    int exponent;  /* of the sum, the same in every part */
    int64_t value; /* of this part: the sum (two's complement), the maximum */
};

/* The axis of the element of output number `output` at index. */
void rule_axis_of(struct rule_axis *axis, const struct op *op, uint32_t output, uint64_t index);

/* The part over [from, to) of an element that has an axis. What does not depend on the range is
 * read whatever the range is; an empty one reads nothing else. */
void rule_element_range(struct rule_part *part, const struct rule_call *call, uint32_t output,
                        uint64_t index, uint64_t from, uint64_t to);

/* The same of part `number` of the axis. */
void rule_element_part(struct rule_part *part, const struct rule_call *call, uint32_t output,
                       uint64_t index, uint32_t number);

/* Puts the value of other parts to it. */
void rule_part_join(struct rule_part *part, int64_t value);

/* The element, when part is joined with all others. */
RULE uint32_t rule_part_finish(const struct rule_part *part);

static RULE inline uint32_t operand_get(const struct operand *operand, uint64_t index)
{
    if (operand->memory == NULL) {
        assert(operand->fetch != NULL);
        return operand->fetch(operand->context, operand->tensor, index);
    }
    switch (operand->dtype) {
    case DTYPE_F32:
    case DTYPE_U32:
    case DTYPE_I32:
        return ((const uint32_t *)operand->memory)[index];
    case DTYPE_U8:
        return ((const uint8_t *)operand->memory)[index];
    case DTYPE_U16:
        return ((const uint16_t *)operand->memory)[index];
    case DTYPE_I16:
        return (uint32_t)(int32_t)((const int16_t *)operand->memory)[index];
    case DTYPE_COUNT:
        break;
    }
    __builtin_unreachable();
}

#endif /* ENGINE_RULES_RULE_H */
