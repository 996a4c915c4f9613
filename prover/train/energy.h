/*
 * energy.h - the energy that the processor (Linux powercap, RAPL) and a GPU (NVML) used, by their
 * own counters.
 *
 * The counters include the work of other programs. On most systems only root may read those of the
 * processor. A counter that cannot be read is left out; without any the energy is unknown, which is
 * not an error.
 */
#ifndef PROVER_TRAIN_ENERGY_H
#define PROVER_TRAIN_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

#include "prover/train/nvml.h"

#define ENERGY_FOLDER       "/sys/class/powercap"
#define ENERGY_PACKAGES_MAX 16

/* The GPU whose counters are read. */
struct energy_gpu {
    struct nvml *nvml;
    uint32_t number; /* NVML's */
};

struct energy {
    const char *folder; /* borrowed; NULL: no processor */
    uint32_t package_count;
    uint64_t before[ENERGY_PACKAGES_MAX];
    const struct energy_gpu *gpu; /* borrowed; NULL: no GPU */
    struct nvml_reading gpu_before;
};

void energy_start(struct energy *energy, const char *folder);

/* Call after energy_start(): counts this GPU too; NULL: none. */
void energy_start_gpu(struct energy *energy, const struct energy_gpu *gpu);

/* False: unknown. A counter may wrap once since the start. */
bool energy_stop(uint64_t *microjoules, const struct energy *energy);

#endif /* PROVER_TRAIN_ENERGY_H */
