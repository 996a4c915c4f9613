/*
 * known_pace.h - remembers how long a step of a job took on a device of this machine, so that a
 * list of jobs can say what an hour would earn without running them.
 *
 * One small file for each job and device, in the folder "paces" of the state folder. It is advice
 * and says nothing about bits.
 */
#ifndef PROOFS_RUN_KNOWN_PACE_H
#define PROOFS_RUN_KNOWN_PACE_H

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

struct known_pace {
    uint64_t step_ns; /* with the hashing of its state */
    uint64_t tokens;  /* (or samples) of a step; 0: it draws none */
};

/* device: as --device names it. What is there is replaced. */
MUST_CHECK enum status known_pace_note(const struct known_pace *pace, const struct digest *job_id,
                                       const char *device, struct error *error);

/* STATUS_NOT_FOUND: that job was not measured on that device. */
MUST_CHECK enum status known_pace_find(struct known_pace *pace, const struct digest *job_id,
                                       const char *device, struct error *error);

#endif /* PROOFS_RUN_KNOWN_PACE_H */
