/*
 * ranks_cross.h - ranks that check each other: in every K-th step one drawn group is computed by a
 * second rank too, and rank 0 compares the hashes of both ranks' sums before it notes the step.
 *
 * A group's sums leave a rank only in the largest subtree that holds it, so that subtree is made
 * again: one group where there are as many ranks as groups.
 */
#ifndef PROVER_RANKS_RANKS_CROSS_H
#define PROVER_RANKS_RANKS_CROSS_H

#include "engine/ranks/rank_step.h"
#include "prover/ranks/ranks_team.h"

#define RANKS_TAG_CROSS 0x4352

/* What rank 0 says before the step. */
struct ranks_drawn {
    uint32_t subtree; /* of the plan; RANKS_NOBODY: nothing is checked in this step */
    uint32_t second;  /* the rank that makes its sums too */
};

/* Before the first step: can all that may be drawn be made again? every: 0: nothing is drawn. */
MUST_CHECK enum status ranks_cross_check(const struct ranks_plan *plan, uint64_t every,
                                         struct error *error);

/* In every K-th step a group and a second rank, which nobody can foresee. every: 0: never. */
MUST_CHECK enum status ranks_cross_draw(struct ranks_drawn *drawn, const struct ranks_team *team,
                                        const struct ranks_plan *plan, uint64_t every,
                                        struct error *error);

/* Is it something that can be drawn? */
MUST_CHECK bool ranks_cross_is_sound(const struct ranks_drawn *drawn,
                                     const struct ranks_plan *plan);

/* Before the step: the second rank makes the sums; the others do nothing. data: as
 * rank_step_open_again() takes it. */
MUST_CHECK enum status ranks_cross_before(struct digest *again, const struct ranks_drawn *drawn,
                                          const struct rank_step *step, const void *const *data,
                                          const struct machine_options *options,
                                          struct error *error);

/* Behind the step: rank 0 compares. STATUS_REFUSED: the two ranks differ; both are named. */
MUST_CHECK enum status ranks_cross_after(struct ranks_team *team, const struct ranks_drawn *drawn,
                                         const struct rank_step *step, const struct digest *again,
                                         struct error *error);

#endif /* PROVER_RANKS_RANKS_CROSS_H */
