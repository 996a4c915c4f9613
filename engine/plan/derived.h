/*
 * derived.h - a tape that a rewrite makes of another one: the same states, tensors and loss, and
 * no operation yet. A rewrite keeps the loops, and what a turn hands to the next keeps its ids.
 */
#ifndef ENGINE_PLAN_DERIVED_H
#define ENGINE_PLAN_DERIVED_H

#include "engine/tape/tape.h"

/* With room for so many operations and tensors; free it with tape_free(). NULL: no memory. */
struct tape *derived_new(const struct tape *tape, size_t ops, size_t tensors);

/* A rewrite that grows: how many operations and tensors there is room for. */
struct derived_room {
    uint32_t ops;
    uint32_t tensors;
};

/* Makes room for so many more. False: no memory. */
MUST_CHECK bool derived_grow(struct tape *derived, struct derived_room *room, uint32_t ops,
                             uint32_t tensors);

/* Adds an operation, for which there is room: which of the tape's it is, and whether again. */
void derived_put(struct tape *derived, const struct op *op, uint32_t item, bool again);

/* Adds a temporary tensor of a type and shape; returns its id. */
uint32_t derived_tensor(struct tape *derived, const struct tensor *like);

/* Is an operation of a rewrite a repetition? False of a tape that is no rewrite. */
bool derived_is_again(const struct tape *tape, uint32_t op);

/* Gives the rewrite the tape's loops, when it has all operations: where it begins and ends each
 * one, derived->origins says. False: no memory. */
MUST_CHECK bool derived_take_loops(struct tape *derived, const struct tape *tape);

/* Marks the tensors that a turn of a loop is given, and those that it hands on. */
void derived_mark_carries(bool *marks, const struct tape *tape);

#endif /* ENGINE_PLAN_DERIVED_H */
