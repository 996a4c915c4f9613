/*
 * vouch_intake.h - takes in what the keepers of jobs vouch for:
 *
 *     PUT vouch/HASH     a vouch (FORMATS 13), HASH being that of its segment
 *
 * Anybody may send one: it is kept beside the bundle (chain/job/vouch_box.h) only where the ledger
 * knows the segment, it is not final, and the keeper of its job has signed.
 */
#ifndef PROVER_SERVE_VOUCH_INTAKE_H
#define PROVER_SERVE_VOUCH_INTAKE_H

#include "prover/serve/content_tree.h"

/* The tree for a server that takes vouches in too; borrows it. A bundle that nobody guards takes
 * none. */
struct serve_source vouch_intake_source(struct content_tree *tree);

#endif /* PROVER_SERVE_VOUCH_INTAKE_H */
