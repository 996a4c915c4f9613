/*
 * hoist.h - a private rewrite of a tape: what is the same is made once.
 *
 * Two operations of one kind, with the same attributes and inputs, make the same bits: the second
 * goes, and its readers read the first. So the weights of a step of many micro-batches are
 * quantized once. And what depends on constants, data and states that never change is the same in
 * every step: a machine makes it in the first step and keeps it. So are the frozen weights below an
 * adapter. Both take memory to save time; the program of the job is untouched.
 */
#ifndef ENGINE_PLAN_HOIST_H
#define ENGINE_PLAN_HOIST_H

#include "engine/tape/tape.h"

/*
 * Makes the rewrite, of a tape or of one that recompute.h has rewritten (its repetitions stay). The
 * tensors keep their ids. derived->origins says for each operation which of the tape's it is. The
 * caller frees it.
 */
MUST_CHECK enum status hoist_build(struct tape **derived, const struct tape *tape,
                                   struct error *error);

/* Marks the operations that depend on nothing that a step changes. */
MUST_CHECK enum status hoist_find_lasting(bool *lasting, const struct tape *tape,
                                          struct error *error);

#endif /* ENGINE_PLAN_HOIST_H */
