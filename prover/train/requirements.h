/*
 * requirements.h - can this machine take this job? Checked before anything is allocated or staked.
 */
#ifndef PROVER_TRAIN_REQUIREMENTS_H
#define PROVER_TRAIN_REQUIREMENTS_H

#include "engine/plan/backend.h"
#include "proofs/job/job.h"

/* What was found on this machine. */
struct requirements {
    uint64_t memory;          /* bytes that this program may use */
    uint64_t checkpoint_size; /* bytes of one */
    uint64_t disk_needed;     /* bytes of all checkpoints to keep, and of the journal */
    uint64_t disk_free;
    double contraction_rate; /* 10^9 multiply-adds a second at 14 bits; 0: not measured */
};

/*
 * STATUS_OVER_LIMIT: the memory or the disk of the machine is too small. STATUS_REFUSED: the job
 * requires more than this machine has, unless ignored. folder is the place of the bundle, which may
 * not exist yet. found is filled as far as the check came. The rate is measured only where the job
 * requires one.
 */
MUST_CHECK enum status requirements_check(struct requirements *found, const struct job *job,
                                          const struct machine_options *machine, const char *folder,
                                          uint64_t keep, uint64_t every, bool ignore_requirements,
                                          struct error *error);

/* Multiply-adds a second, in 10^9, of an exact product at 14 bits on this machine, measured thrice:
 * what else runs here makes one figure worth little. */
struct product_rate {
    double least;
    double middle;
    double most;
};

MUST_CHECK enum status requirements_measure(struct product_rate *rate,
                                            const struct machine_options *machine,
                                            struct error *error);

#endif /* PROVER_TRAIN_REQUIREMENTS_H */
