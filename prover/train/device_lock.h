/*
 * device_lock.h - the shared locks (base/io/shared_lock.h) of the devices that a machine computes
 * on, so that two trainings do not share one unawares.
 */
#ifndef PROVER_TRAIN_DEVICE_LOCK_H
#define PROVER_TRAIN_DEVICE_LOCK_H

#include "base/io/shared_lock.h"
#include "engine/plan/backend.h"

struct device_lock {
    struct shared_lock locks[MACHINE_DEVICES_MAX];
    uint32_t count;
    bool foreign; /* the last take was refused by what another user, or nobody known, runs */
};

/* All of them or none; STATUS_REFUSED names the device that another process computes on. */
MUST_CHECK enum status device_lock_take(struct device_lock *lock,
                                        const struct machine_options *machine, struct error *error);
void device_lock_drop(struct device_lock *lock); /* a zero-filled one is allowed */

#endif /* PROVER_TRAIN_DEVICE_LOCK_H */
