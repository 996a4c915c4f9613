/*
 * energy.h - what the processor used, as its own counters tell (Linux powercap, RAPL).
 *
 * The counters count all that the sockets do, ours or not, and only root may read them on most
 * systems: where they cannot be read, the energy is unknown, which is no error.
 */
#ifndef PROVER_ENERGY_H
#define PROVER_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

#define ENERGY_FOLDER       "/sys/class/powercap"
#define ENERGY_PACKAGES_MAX 16

struct energy {
    const char *folder; /* borrowed; NULL: nothing is asked */
    uint32_t package_count;
    uint64_t before[ENERGY_PACKAGES_MAX];
};

void energy_start(struct energy *energy, const char *folder);

/* False: unknown. Counters that came round once since the start are understood. */
bool energy_stop(uint64_t *microjoules, const struct energy *energy);

#endif /* PROVER_ENERGY_H */
