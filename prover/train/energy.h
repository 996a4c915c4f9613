/*
 * energy.h - what the processor used, as its own counters tell (Linux powercap, RAPL), and a GPU
 * beside it (NVML).
 *
 * The counters count all that the sockets and the GPU do, ours or not, and only root may read those
 * of the sockets on most systems: what cannot be read is left out, and where nothing can be read
 * the energy is unknown, which is no error.
 */
#ifndef PROVER_TRAIN_ENERGY_H
#define PROVER_TRAIN_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

#include "prover/train/nvml.h"

#define ENERGY_FOLDER       "/sys/class/powercap"
#define ENERGY_PACKAGES_MAX 16

/* A GPU whose counters are read. */
struct energy_gpu {
    struct nvml *nvml;
    uint32_t number; /* NVML's */
};

struct energy {
    const char *folder; /* borrowed; NULL: nothing is asked */
    uint32_t package_count;
    uint64_t before[ENERGY_PACKAGES_MAX];
    const struct energy_gpu *gpu; /* borrowed; NULL: none is asked */
    struct nvml_reading gpu_before;
};

void energy_start(struct energy *energy, const char *folder);

/* After energy_start(): counts this GPU too; NULL: none. */
void energy_start_gpu(struct energy *energy, const struct energy_gpu *gpu);

/* False: unknown. Counters that came round once since the start are understood. */
bool energy_stop(uint64_t *microjoules, const struct energy *energy);

#endif /* PROVER_TRAIN_ENERGY_H */
