/*
 * steady.h - a clock that only goes forward, also where somebody sets the machine's time: for spans
 * and limits of time, not for dates. It counts from some moment of this machine's.
 */
#ifndef BASE_STEADY_H
#define BASE_STEADY_H

#include <stdint.h>
#include <time.h>

static inline uint64_t steady_ns(void)
{
    struct timespec now;

    /* Fails only for clocks that a system lacks; every one of ours has this. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t steady_ms(void)
{
    return steady_ns() / 1000000;
}

static inline double steady_seconds(void)
{
    return 1e-9 * (double)steady_ns();
}

/* The moment in so many seconds, for what waits until a moment of this clock. */
static inline struct timespec steady_after(double seconds)
{
    uint64_t moment_ns = steady_ns() + (uint64_t)(seconds * 1e9);

    return (struct timespec){.tv_sec = (time_t)(moment_ns / 1000000000u),
                             .tv_nsec = (long)(moment_ns % 1000000000u)};
}

#endif /* BASE_STEADY_H */
