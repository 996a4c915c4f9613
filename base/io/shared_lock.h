/*
 * shared_lock.h - a lock that all of Lockstep's processes on a machine share, those of other users
 * too: who computes on a device.
 *
 * It is advice: nothing but our own programs looks at it. The lock is a file in /run/lock, or where
 * the environment variable LOCKSTEP_LOCKS says; the kernel drops it when its holder ends.
 */
#ifndef BASE_IO_SHARED_LOCK_H
#define BASE_IO_SHARED_LOCK_H

#include <stdbool.h>

#include "base/error.h"

#define SHARED_LOCK_VARIABLE "LOCKSTEP_LOCKS"

struct shared_lock {
    int descriptor; /* -1: not held */
    bool foreign;   /* it was refused, and no process of this user is known to hold it */
};

/*
 * name: such as "cpu" or "cuda:0". Never waits: STATUS_REFUSED when another process holds it, and
 * the error names that process and its user where the kernel shows them.
 *
 * Any user of the machine can hold a lock for ever, and need not be a process of Lockstep. So what
 * has money at stake must not wait for a foreign holder.
 */
MUST_CHECK enum status shared_lock_take(struct shared_lock *lock, const char *name,
                                        struct error *error);
const char *shared_lock_folder(void);            /* where the files of all locks are */
void shared_lock_drop(struct shared_lock *lock); /* one that is not held is fine */

#endif /* BASE_IO_SHARED_LOCK_H */
