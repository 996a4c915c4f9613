/*
 * lazy.h - operations whose results are chosen in some steps only.
 *
 * A select of one condition for all its elements drops one of its operands. What nothing else reads
 * but the operand that a condition of zero drops need not be made where the condition is zero: the
 * step has the same bits without it. So what a tape computes for every hundredth step costs nothing
 * in the others. A trace holds it in every step, because it holds all that a tape computes.
 */
#ifndef ENGINE_PLAN_LAZY_H
#define ENGINE_PLAN_LAZY_H

#include "engine/tape/tape.h"

struct lazy {
    uint32_t condition; /* a tensor of one element, made before the first of them; or TENSOR_NONE */
    bool *ops;          /* per operation: is it one of them? NULL where there is no condition */
};

/* Finds the operations that the condition of the tape's last such select decides about. */
MUST_CHECK enum status lazy_find(struct lazy *lazy, const struct tape *tape, struct error *error);
void lazy_release(struct lazy *lazy); /* a zero-filled one is allowed */

/* Does the condition hold, as select reads it? bytes: those of the condition. */
bool lazy_holds(const struct tensor *condition, const void *bytes);

#endif /* ENGINE_PLAN_LAZY_H */
