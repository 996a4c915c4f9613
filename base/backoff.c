/* backoff.c - see backoff.h. */
#include "base/backoff.h"

uint64_t backoff_pause(uint64_t first, uint64_t most, uint32_t failures)
{
    uint64_t pause = first < most ? first : most;

    for (uint32_t i = 0; i < failures && pause < most; i++) {
        pause = pause > most / 2 ? most : 2 * pause;
    }
    return pause;
}
