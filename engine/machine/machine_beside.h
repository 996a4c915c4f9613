/*
 * machine_beside.h - what need not be copied, since its parts can lie side by side from the start.
 *
 * A split along memory copies parts that are there already: its outputs lie inside of its input.
 * A concat along memory of states makes what stands in memory where the states lie one after the
 * other, so its output has their place. The kernels copy nothing onto itself. So the weights of
 * experts are joined, and the gradients of all experts taken apart, without a copy.
 */
#ifndef ENGINE_MACHINE_MACHINE_BESIDE_H
#define ENGINE_MACHINE_MACHINE_BESIDE_H

#include "engine/tape/tape.h"

struct beside {
    uint32_t *holders; /* per tensor: the one inside of which it lies, or itself */
    uint64_t *offsets; /* bytes, there */
    bool *joins;       /* per operation: does its output lie on its inputs, one after the other? */
};

/* Of a tape with loops nothing is found. lasting: as in plan.h; may be NULL. */
MUST_CHECK enum status beside_find(struct beside *beside, const struct tape *tape,
                                   const bool *lasting, struct error *error);
void beside_release(struct beside *beside); /* a zero-filled one is allowed */

#endif /* ENGINE_MACHINE_MACHINE_BESIDE_H */
