/*
 * program_digest.h - which program trained: the SHA-256 of the file that runs. A build has the same
 * bytes anywhere, so somebody with the source can tell which version a bundle's solver says it ran.
 */
#ifndef PROVER_TRAIN_PROGRAM_DIGEST_H
#define PROVER_TRAIN_PROGRAM_DIGEST_H

#include "proofs/bundle/bundle.h"

/* Notes it in the journal. No root covers a note: a solver says what it likes. */
MUST_CHECK enum status program_digest_note(struct bundle *bundle, struct error *error);

#endif /* PROVER_TRAIN_PROGRAM_DIGEST_H */
