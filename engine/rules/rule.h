/*
 * rule.h - the rules: each defines one output, element by element.
 *
 * A rule is a pure function of the operation, the position of the element, and the elements that it
 * reads from the inputs and from earlier outputs of the same operation. It takes about 1,024
 * arithmetic steps at most, or is an exact integer sum of any length. The scalar backend loops over
 * the rules; the referee calls one. op_check() has passed before any rule runs.
 *
 * Elements travel as 32 raw bits: binary32 patterns, or integers (I16 sign-extended).
 *
 * Tour 2 of 10: next read engine/tape/tape.h, how operations make a step.
 */
#ifndef ENGINE_RULES_RULE_H
#define ENGINE_RULES_RULE_H

#include <assert.h>

#include "engine/ops/op.h"

/* Changes with any rule, kind or attribute; a job names the version that it needs. */
#define RULES_VERSION 3

/* Where a rule reads elements: memory, or a function (the referee's proofs, a recorder). */
struct operand {
    const void *memory; /* NULL: call fetch */
    enum dtype dtype;
    uint64_t count;
    uint32_t (*fetch)(void *context, uint32_t tensor, uint64_t index);
    void *context;
    uint32_t tensor; /* id, for fetch */
};

struct rule_call {
    const struct op *op;
    struct operand inputs[OP_INPUTS_MAX];
    struct operand outputs[OP_OUTPUTS_MAX]; /* a rule reads only the ones before its own */
};

/*
 * The element of output number `output` at `index`, as raw bits. Sets the thread's floating-point
 * control for the rule and restores it.
 */
RULE uint32_t rule_element(const struct rule_call *call, uint32_t output, uint64_t index);

/*
 * A rule that folds a long axis may read too much for one transaction, so it can run in parts: the
 * ranges [0, part), [part, 2 part), ... of the axis, the last of them perhaps shorter. Joining the
 * values of all parts gives the element.
 *
 * A part of a sum reads only its own exponents. All parts of a sum have one exponent, which is
 * given to them: any that is not above those of the part's blocks, and not more than the window of
 * contraction.h below them, gives the same element. A block outside makes the part `unfit`.
 */
enum rule_fold {
    RULE_WHOLE = 0, /* no axis: the rule runs in one part */
    RULE_SUM,       /* a contraction: integers, modulo 2^64 */
    RULE_MAXIMUM,   /* the peak of a piece, the exponent of a block */
};

/* Elements of a part; doubled until RULE_PARTS_MAX parts suffice. A part that was doubled is an
 * axis of its own, with parts by the same rule, and so on: the shortest are never longer than this.
 * A piece is read through a view, so each of its elements may lie in a leaf of its own; sums and
 * peaks lie side by side. */
#define RULE_PART_OF_SUM       UINT64_C(1024)
#define RULE_PART_OF_PIECE     UINT64_C(2)
#define RULE_PART_OF_EXPONENTS UINT64_C(1024)
#define RULE_PARTS_MAX         2048

struct rule_axis {
    enum rule_fold fold;
    uint64_t from;   /* where it begins: 0, but of a part of a longer one */
    uint64_t length; /* elements */
    uint64_t least;  /* elements of a part that has no parts itself */
    uint64_t part;   /* elements of a part */
    uint32_t parts;  /* at most RULE_PARTS_MAX */
};

struct rule_part {
    enum rule_fold fold;
    bool settled;  /* the element is `bits`, for any sum (causal, poison) */
    uint32_t bits; /* when settled */
    bool unfit;    /* a block's exponent does not go with that of the sum */
    int exponent;  /* of the sum, the same in every part */
    int64_t value; /* of this part: the sum (two's complement), the maximum */
};

/* The axis of the element of output number `output` at index. */
void rule_axis_of(struct rule_axis *axis, const struct op *op, uint32_t output, uint64_t index);

/* Makes it a range of the axis that it was, or its part `number`. */
void rule_axis_narrow(struct rule_axis *axis, uint64_t from, uint64_t length);
void rule_axis_enter(struct rule_axis *axis, uint32_t number);

/* What all parts of an element have in common. It reads all exponents of a row, so only who has the
 * whole row asks. A maximum has exponent 0. */
struct rule_base {
    bool settled;
    uint32_t bits;     /* when settled */
    uint64_t poisoned; /* when settled to a NaN: an element of the axis that settles it */
    int exponent;
};
void rule_element_base(struct rule_base *base, const struct rule_call *call, uint32_t output,
                       uint64_t index);

/* Is the element what it is by its place alone (behind the causal edge)? Reads nothing. */
bool rule_element_is_edge(const struct rule_call *call, uint32_t output, uint64_t index);

/* Part `number` of the element's axis, or of a range of it, of a sum with this exponent. */
void rule_element_part(struct rule_part *part, const struct rule_call *call, uint32_t output,
                       uint64_t index, const struct rule_axis *axis, uint32_t number, int exponent);

/* Adds the value of other parts to this one. */
void rule_part_join(struct rule_part *part, int64_t value);

/* The element, once all parts are joined. */
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
    case DTYPE_F16:
    case DTYPE_BF16:
        return ((const uint16_t *)operand->memory)[index];
    case DTYPE_I16:
        return (uint32_t)(int32_t)((const int16_t *)operand->memory)[index];
    case DTYPE_COUNT:
        break;
    }
    __builtin_unreachable();
}

#endif /* ENGINE_RULES_RULE_H */
