/*
 * fault_injection.h - a small fault to test verifiers with. `prover run --falsify STEP` changes one
 * number of a state by one unit in the last place; trace replies about that step repeat the fault.
 *
 * Replies about an honest step stay honest: the bundle decides.
 */
#ifndef PROVER_TRAIN_FAULT_INJECTION_H
#define PROVER_TRAIN_FAULT_INJECTION_H

#include "proofs/bundle/bundle.h"
#include "proofs/dispute/trace_server.h"

/* Flips the last bit of the first element of the first binary32 state; of a job that has none, adds
 * one to the first i32. */
MUST_CHECK enum status fault_injection_in_state(struct machine *machine, struct error *error);

/*
 * Prepares the trace server of a step of this bundle. Where the bundle's state after the step has
 * the fault, the server replies with that state; otherwise it stays honest.
 */
MUST_CHECK enum status fault_injection_stand_by(struct trace_server *server, struct bundle *bundle,
                                                uint64_t step, struct error *error);

#endif /* PROVER_TRAIN_FAULT_INJECTION_H */
