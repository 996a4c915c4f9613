/*
 * requirements.h - can this machine take this job? Asked before anything is allocated or staked.
 */
#ifndef PROVER_TRAIN_REQUIREMENTS_H
#define PROVER_TRAIN_REQUIREMENTS_H

#include "engine/plan/backend.h"
#include "proofs/job/job.h"

struct requirements {
    uint64_t memory;          /* bytes that this program may use */
    uint64_t checkpoint_size; /* bytes of one */
    uint64_t disk_needed;     /* bytes of all that are to be kept, and of the journal */
    uint64_t disk_free;
    double contraction_rate; /* 10^9 multiply-adds a second at 14 bits; 0: not measured */
};

/*
 * STATUS_OVER_LIMIT: the memory or the disk of the machine is too small, and by how much;
 * STATUS_REFUSED: the client asks for more than this machine is, unless ignored. folder is where
 * the bundle is or will be; fit is filled as far as it came. The rate is measured only where the
 * job asks for one.
 */
MUST_CHECK enum status requirements_check(struct requirements *fit, const struct job *job,
                                          const struct machine_options *machine, const char *folder,
                                          uint64_t keep, uint64_t every, bool ignore_requirements,
                                          struct error *error);

/* Multiply-adds a second, in 10^9, of an exact product at 14 bits on this machine. */
MUST_CHECK enum status requirements_measure(double *rate, const struct machine_options *machine,
                                            struct error *error);

#endif /* PROVER_TRAIN_REQUIREMENTS_H */
