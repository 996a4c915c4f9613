/*
 * state_pieces.h - the root of states that lie on the host, hashed piece by piece: all at once by
 * the caller's threads, or beside the machine's next step by threads of their own.
 *
 * Beside a step the states are hashed where they are. The machine asks before the step overwrites
 * the first of them (machine_guard); then the caller's threads hash what is left. So there is no
 * second copy, and neither the number of threads nor the moment changes the root.
 */
#ifndef PROOFS_COMMIT_STATE_PIECES_H
#define PROOFS_COMMIT_STATE_PIECES_H

#include "base/digest.h"
#include "engine/plan/backend.h"

struct state_pieces;

/* Lists the pieces of the machine's states, which must all be readable on the host; *pieces is NULL
 * where they are not. threads: of the caller; 0: as many as OpenMP would use. */
MUST_CHECK enum status state_pieces_new(struct state_pieces **pieces, struct machine *machine,
                                        int threads, struct error *error);
void state_pieces_free(struct state_pieces *pieces); /* ends its threads; NULL is allowed */

/* Starts up to `helpers` threads that hash; the machine may make a step meanwhile. */
void state_pieces_start(struct state_pieces *pieces, int helpers);

/* Hashes what is left, and finds the root. *finite says whether no binary32 state holds a NaN or an
 * infinity. */
MUST_CHECK enum status state_pieces_finish(struct digest *root, bool *finite,
                                           struct state_pieces *pieces);

/* How long the machine waited in its step, because states were not hashed yet. */
uint64_t state_pieces_waited_ns(const struct state_pieces *pieces);

#endif /* PROOFS_COMMIT_STATE_PIECES_H */
