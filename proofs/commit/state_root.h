/*
 * state_root.h - the root of the state that a machine holds.
 *
 * Hashing is the cost of a committed step beside the step itself. So one parallel region hashes all
 * tensors, in pieces that stay in a core's cache while the search for NaN and infinity reads them
 * too; and where a core is idle, it hashes beside the next step (state_pieces.h). The root does not
 * depend on the number of threads. On the CPU the root of a state that no
 * step changes is noted, and found again only after a write.
 *
 * Tour 5 of 10: next read prover/train/train.h, who makes the steps.
 */
#ifndef PROOFS_COMMIT_STATE_ROOT_H
#define PROOFS_COMMIT_STATE_ROOT_H

#include "base/digest.h"
#include "engine/plan/backend.h"

/* Threads 0: as many as OpenMP would use. *finite says whether no binary32 state holds a NaN or an
 * infinity; it may be NULL. */
MUST_CHECK enum status state_root_find(struct digest *root, bool *finite, struct machine *machine,
                                       int threads, struct error *error);

/* The same with the defaults. */
MUST_CHECK enum status state_root_of(struct digest *root, struct machine *machine,
                                     struct error *error);

/*
 * The same in two halves, with steps between them: where the machine hashes beside its steps, or
 * where its threads leave a core idle. The root is that of the state at state_root_begin(), no
 * matter what steps follow. One at a time; a failure ends it, and state_root_end() must follow
 * before the machine is closed. threads: of the machine. *waited_ns: how long a step in between
 * waited for the hash, of its own time.
 */
bool state_root_can_overlap(const struct machine *machine, int threads);
MUST_CHECK enum status state_root_begin(struct machine *machine, int threads, struct error *error);
MUST_CHECK enum status state_root_end(struct digest *root, bool *finite, uint64_t *waited_ns,
                                      struct machine *machine, struct error *error);

/*
 * Calls take with a state's bytes, borrowed for the call: the backend's own where they are on the
 * host, else a copy.
 */
MUST_CHECK enum status state_root_visit(struct machine *machine, uint32_t tensor,
                                        enum status (*take)(void *context,
                                                            const struct tensor *tensor,
                                                            const void *bytes, struct error *error),
                                        void *context, struct error *error);

#endif /* PROOFS_COMMIT_STATE_ROOT_H */
