/*
 * fetch_pace.h - how many bytes a second all transfers of a set of mirrors fetch together.
 *
 * Who received bytes waits until they are paid for, so nothing comes unpaid but one read of each
 * transfer and what its socket holds. Time in which nothing came pays for nothing. Several threads
 * may use one pace.
 */
#ifndef PROOFS_MIRROR_FETCH_PACE_H
#define PROOFS_MIRROR_FETCH_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fetch_pace {
    uint64_t bytes_max;          /* a second; 0: no limit */
    _Atomic uint64_t paid_at_ns; /* when all that came is paid for */
};

/* Waits until these bytes are paid for, or until the transfer is stopped. */
void fetch_pace_pay(struct fetch_pace *pace, size_t bytes, bool (*stopped)(void *context),
                    void *context);

/* How much a transfer may read at once: a fraction of a second's bytes. */
size_t fetch_pace_read_max(const struct fetch_pace *pace);

/* Fewer bytes a second are silence: where many share a narrow pace, less than a trickle. */
uint64_t fetch_pace_trickle(const struct fetch_pace *pace);

#endif /* PROOFS_MIRROR_FETCH_PACE_H */
