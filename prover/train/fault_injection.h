/*
 * fault_injection.h - the least of all lies, for whoever wants to try out verifiers on a job of
 * their own: `prover run --falsify STEP` makes one number of a state wrong by one unit in the last
 * place, and who falsified a step stands by it when it is asked about.
 *
 * Nothing here makes a true step false: what stands in the bundle decides.
 */
#ifndef PROVER_TRAIN_FAULT_INJECTION_H
#define PROVER_TRAIN_FAULT_INJECTION_H

#include "proofs/bundle/bundle.h"
#include "proofs/dispute/trace_server.h"

/* The last bit of the first element of the first state of numbers. */
MUST_CHECK enum status fault_injection_in_state(struct machine *machine, struct error *error);

/*
 * The trace server is of a step of this bundle, run again. Where the bundle's state after the step
 * is the falsified one, the trace server answers with that state; of any other state it stays as it
 * is.
 */
MUST_CHECK enum status fault_injection_stand_by(struct trace_server *server, struct bundle *bundle,
                                                uint64_t step, struct error *error);

#endif /* PROVER_TRAIN_FAULT_INJECTION_H */
