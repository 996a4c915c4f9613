/*
 * least_loss.h - the state of a bundle with the least held-out loss: --best.
 */
#ifndef PROVER_COMMANDS_LEAST_LOSS_H
#define PROVER_COMMANDS_LEAST_LOSS_H

#include "proofs/bundle/bundle.h"

/* STATUS_NOT_FOUND: the run has no held-out loss, or keeps no checkpoint of that step; the error
 * says which one it keeps. */
MUST_CHECK enum status least_loss_find(uint64_t *step, struct bundle *bundle, struct error *error);

#endif /* PROVER_COMMANDS_LEAST_LOSS_H */
