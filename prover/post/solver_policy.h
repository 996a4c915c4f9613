/*
 * solver_policy.h - may a solver stake on a job, and commit to one more segment? Checks its limits
 * (chain/game/policy/policy.h) against the terms and the time that the job's steps take on this
 * machine.
 */
#ifndef PROVER_POST_SOLVER_POLICY_H
#define PROVER_POST_SOLVER_POLICY_H

#include "chain/game/policy/policy.h"
#include "chain/job/job_record.h"
#include "proofs/run/run.h"

struct solver_policy {
    struct policy limits; /* zeros: no limits */
    struct policy_pace pace;
};

/* Takes the pace from the last steps of the journal; zeros where there are none that can be
 * read. */
MUST_CHECK enum status solver_policy_read_pace(struct solver_policy *policy, struct bundle *bundle,
                                               struct error *error);

/* Of a job that has no step yet; step_ns: of one, with its hash; 0: not known, which leaves zeros. */
void solver_policy_set_pace(struct solver_policy *policy, const struct job *job, uint64_t step_ns);

/* STATUS_REFUSED: the limits forbid the stake, for the reason in error. */
MUST_CHECK enum status solver_policy_check(const struct solver_policy *policy,
                                           struct ledger *ledger, const struct job_record *record,
                                           struct error *error);

/* May one more segment be open? ahead: how many that nobody vouched for may be, where the stake
 * covers them; 0: as many as the ledger takes. A commit that is due waits for nothing. */
bool solver_policy_has_room(const struct job_record *record, uint32_t ahead, uint64_t now_s);

#endif /* PROVER_POST_SOLVER_POLICY_H */
