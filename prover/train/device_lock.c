/* device_lock.c - see device_lock.h. */
#include "prover/train/device_lock.h"

#include <stdio.h>

static void name_of(char name[16], const struct machine_options *machine, uint32_t number)
{
    if (machine->backend != &backend_cuda) {
        (void)snprintf(name, 16, "cpu");
    } else {
        (void)snprintf(name, 16, "cuda:%u",
                       machine->device_count > 1 ? machine->devices[number] : machine->device);
    }
}

enum status device_lock_take(struct device_lock *lock, const struct machine_options *machine,
                             struct error *error)
{
    uint32_t count =
        machine->backend == &backend_cuda && machine->device_count > 1 ? machine->device_count : 1;

    lock->foreign = false;
    for (lock->count = 0; lock->count < count; lock->count++) {
        char name[16];
        enum status status;

        name_of(name, machine, lock->count);
        status = shared_lock_take(&lock->locks[lock->count], name, error);
        if (status != STATUS_OK) {
            lock->foreign = lock->locks[lock->count].foreign;
            device_lock_drop(lock);
            return status;
        }
    }
    return STATUS_OK;
}

void device_lock_drop(struct device_lock *lock)
{
    for (uint32_t i = 0; i < lock->count; i++) {
        shared_lock_drop(&lock->locks[i]);
    }
    lock->count = 0;
}
