/*
 * machine_rewrite.h - which private rewrites of a tape a machine runs in its place.
 *
 * Chains in slices (chain.h), forgotten activations (recompute.h) and what is made once (hoist.h)
 * go together in one order. Sizes alone decide, so that one job takes the same way on every
 * machine with the same kernels; and all ways give the same bits.
 */
#ifndef ENGINE_MACHINE_MACHINE_REWRITE_H
#define ENGINE_MACHINE_MACHINE_REWRITE_H

#include "engine/plan/backend.h"

/* Of a rewrite that takes no less memory nothing is left. NULL: the tape as it is. The caller frees
 * it. */
MUST_CHECK enum status machine_rewrite(struct tape **rewrite, const struct tape *tape,
                                       const struct machine_options *options, struct error *error);

#endif /* ENGINE_MACHINE_MACHINE_REWRITE_H */
