/*
 * backoff.h - how long to wait before what failed is tried again: twice as long after each failure
 * in a row, up to a bound, in whatever unit the caller counts. Reads no clock and draws nothing.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/* failures: how often it had failed before this time, so 0 gives first. */
uint64_t backoff_pause(uint64_t first, uint64_t most, uint32_t failures);

#endif /* BASE_BACKOFF_H */
