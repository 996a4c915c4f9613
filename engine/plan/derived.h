/*
 * derived.h - a tape that a rewrite makes of another one: the same states, tensors and loss, and no
 * operation yet.
 */
#ifndef ENGINE_PLAN_DERIVED_H
#define ENGINE_PLAN_DERIVED_H

#include "engine/tape/tape.h"

/* With room for so many operations and tensors; free it with tape_free(). NULL: no memory. */
struct tape *derived_new(const struct tape *tape, size_t ops, size_t tensors);

#endif /* ENGINE_PLAN_DERIVED_H */
