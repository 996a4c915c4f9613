/*
 * lie.h - the least of all lies, for whoever wants to try out verifiers on a job of their own:
 * `prover run --falsify STEP` makes one number of a state wrong by one unit in the last place, and
 * who falsified a step stands by it when it is asked about.
 *
 * Nothing here makes a true step false: what stands in the bundle decides.
 */
#ifndef PROVER_LIE_H
#define PROVER_LIE_H

#include "proofs/bundle.h"
#include "proofs/teller.h"

/* The last bit of the first element of the first state of numbers. */
MUST_CHECK enum status lie_in_state(struct machine *machine, struct error *error);

/*
 * The teller is of a step of this bundle, run again. Where the bundle's state after the step is the
 * falsified one, the teller answers with that state; of any other state it stays as it is.
 */
MUST_CHECK enum status lie_stand_by(struct teller *teller, struct bundle *bundle, uint64_t step,
                                    struct error *error);

#endif /* PROVER_LIE_H */
