/*
 * expand.h - a step without loops, for machines that run parts of a step: each turn of a loop
 * stands there for itself.
 *
 * It takes memory and time for each micro-batch, which a loop does not.
 */
#ifndef ENGINE_PLAN_EXPAND_H
#define ENGINE_PLAN_EXPAND_H

#include "engine/plan/backend.h"

/*
 * The tensors of the tape keep their ids. expanded->origins says for each operation which of the
 * tape's it is, and in which turn. NULL: the tape has no loop. Refuses more operations than
 * REPEAT_OPS_MAX. The caller frees it.
 */
MUST_CHECK enum status expand_build(struct tape **expanded, const struct tape *tape,
                                    struct error *error);

/* Shows a step without loops to the observer of the tape that has them. */
struct expand_observer {
    const struct observer *observer;
    const struct tape *expanded;
};

/* The observer of the expanded step; context must outlive it. */
struct observer expand_observer(const struct expand_observer *context);

#endif /* ENGINE_PLAN_EXPAND_H */
