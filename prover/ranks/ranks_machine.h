/*
 * ranks_machine.h - the ranks of a run as one machine: rank 0 calls it as any other, and the others
 * follow what it does.
 *
 * States lie on the ranks as engine/ranks/rank_places.h has it. What rank 0 writes into a state
 * goes to those that hold it, and what it reads comes from them. Each rank hashes its share of the
 * leaves, and rank 0 joins them; and writes its share of a checkpoint, where all see its folder.
 */
#ifndef PROVER_RANKS_RANKS_MACHINE_H
#define PROVER_RANKS_RANKS_MACHINE_H

#include "engine/plan/backend.h"
#include "prover/ranks/ranks_team.h"

/* What the backend's open() finds in the machine's options. */
struct ranks_machine_plan {
    struct ranks_team *team;
    struct digest job;
    uint64_t cross_check;       /* in every so many steps ranks check each other; 0: never */
    struct machine_options own; /* of each rank's own machine */
    const char *folder; /* where checkpoints lie, as another rank than rank 0 sees it; or NULL */
    /* Of rank 0, once: not all ranks see the folder, and why. NULL: nobody asks. */
    void (*tell)(void *context, const char *why);
    void *context;
};

extern const struct backend backend_ranks;

/* Options that open the ranks' machine; the plan must outlive it. */
struct machine_options ranks_machine_options(const struct ranks_machine_plan *plan);

/* Of a rank that is not rank 0: does what rank 0 does, until that ends the run. */
MUST_CHECK enum status ranks_machine_follow(struct machine *machine, struct error *error);

#endif /* PROVER_RANKS_RANKS_MACHINE_H */
