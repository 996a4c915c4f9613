/*
 * average.h - the mean of several states: each number of a parameter, in binary64, rounded once.
 * Moments, counters and figures have no mean, and are left out.
 */
#ifndef PROOFS_BUNDLE_AVERAGE_H
#define PROOFS_BUNDLE_AVERAGE_H

#include "proofs/bundle/bundle.h"
#include "proofs/format/safetensors.h"

#define AVERAGE_STATES_MAX 64

/* Writes the mean of the parameters to a new file at path. A state that lacks one, or has it of
 * another type or shape, is refused. */
MUST_CHECK enum status average_write(const char *path, const struct tape *tape,
                                     const struct safetensors *states, uint32_t count,
                                     struct error *error);

/* The same of `count` checkpoints of a bundle, of which the one after `step` steps is the last.
 * steps: after how many steps each is, the newest first. */
MUST_CHECK enum status average_write_bundle(const char *path, uint64_t steps[AVERAGE_STATES_MAX],
                                            struct bundle *bundle, uint64_t step, uint32_t count,
                                            struct error *error);

#endif /* PROOFS_BUNDLE_AVERAGE_H */
