/*
 * solver_policy.h - what a solver asks of a job before it stakes: its limits (chain/game/policy.h),
 * and how long the job's steps take on this machine.
 */
#ifndef PROVER_POST_SOLVER_POLICY_H
#define PROVER_POST_SOLVER_POLICY_H

#include "chain/game/policy.h"
#include "chain/job/job_record.h"
#include "proofs/run/run.h"

struct solver_policy {
    struct policy limits; /* zeros: none */
    struct policy_pace pace;
};

/* The pace by the last steps of the journal; zeros where there are none, or they are encrypted. */
MUST_CHECK enum status solver_policy_read_pace(struct solver_policy *policy, struct bundle *bundle,
                                               struct error *error);

/* The pace by steps that are run here, for about a second, at least two. The states of run are
 * undefined afterwards. A machine that fails leaves zeros. */
void solver_policy_measure_pace(struct solver_policy *policy, struct run *run);

/* May the stake of the job be locked? STATUS_REFUSED: no, for the reason in error. */
MUST_CHECK enum status solver_policy_ask(const struct solver_policy *policy, struct ledger *ledger,
                                         const struct job_record *record, struct error *error);

#endif /* PROVER_POST_SOLVER_POLICY_H */
