/*
 * derived.h - a tape that a rewrite makes of another one: the same states, tensors and loss, and no
 * operation yet. A rewrite keeps the loops, and what a turn hands to the next keeps its ids.
 */
#ifndef ENGINE_PLAN_DERIVED_H
#define ENGINE_PLAN_DERIVED_H

#include "engine/tape/tape.h"

/* With room for so many operations and tensors; free it with tape_free(). NULL: no memory. */
struct tape *derived_new(const struct tape *tape, size_t ops, size_t tensors);

/* Gives the rewrite the tape's loops, when it has all operations: where it begins and ends each
 * one, derived->origins says. False: no memory. */
MUST_CHECK bool derived_take_loops(struct tape *derived, const struct tape *tape);

/* Marks the tensors that a turn of a loop is given, and those that it hands on. */
void derived_mark_carries(bool *marks, const struct tape *tape);

#endif /* ENGINE_PLAN_DERIVED_H */
