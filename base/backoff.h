/*
 * backoff.h - how long to wait before the next attempt: twice as long after each failure in a row,
 * up to a bound, in the caller's unit. Reads no clock and no random number.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/* failures: how many came before this one, so 0 gives first. */
static inline uint64_t backoff_pause(uint64_t first, uint64_t most, uint32_t failures)
{
    uint64_t pause = first < most ? first : most;

    for (uint32_t i = 0; i < failures && pause < most; i++) {
        pause = pause > most / 2 ? most : 2 * pause;
    }
    return pause;
}

#endif /* BASE_BACKOFF_H */
