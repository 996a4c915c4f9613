/*
 * fast_clock.c - a clock that runs FAST_CLOCK times as fast for a program, so that a test sees the
 * end of a wait of minutes in seconds.
 *
 * It makes build/tests/fast_clock.so, for LD_PRELOAD. Only the steady clock is another
 * (base/steady.h); the time of day, and how long the program sleeps, are not. Not for programs that
 * wait until a moment of that clock: the kernel has its own.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t began_ns;
static uint64_t times = 1;

static uint64_t real_ns(void)
{
    struct timespec now;

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAST_CLOCK");

    began_ns = real_ns();
    times = text == NULL ? 1 : strtoull(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t shown_ns;

    if (clock != CLOCK_MONOTONIC) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    shown_ns = began_ns + (real_ns() - began_ns) * times;
    now->tv_sec = (time_t)(shown_ns / 1000000000u);
    now->tv_nsec = (long)(shown_ns % 1000000000u);
    return 0;
}
