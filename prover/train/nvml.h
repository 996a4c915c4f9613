/*
 * nvml.h - reads the name, use and energy of a GPU from NVIDIA's management library.
 *
 * libnvidia-ml.so.1 is loaded at run time; LOCKSTEP_NVML names another file, "off" means none.
 * Without the library nothing is known. Nothing here changes a setting.
 */
#ifndef PROVER_TRAIN_NVML_H
#define PROVER_TRAIN_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define NVML_LIBRARY     "libnvidia-ml.so.1"
#define NVML_NAME_MAX    96
#define NVML_DEVICES_MAX 64

struct nvml;

/* STATUS_NOT_FOUND: there is no library. STATUS_DEVICE: it does not start, and why. */
MUST_CHECK enum status nvml_open(struct nvml **nvml, struct error *error);
void nvml_close(struct nvml *nvml); /* NULL is allowed */

uint32_t nvml_count(const struct nvml *nvml);

struct nvml_device {
    char name[NVML_NAME_MAX];
    uint64_t memory;    /* bytes; 0: unknown */
    int32_t capability; /* 90 for 9.0; 0: unknown */
};

MUST_CHECK enum status nvml_describe(struct nvml_device *device, const struct nvml *nvml,
                                     uint32_t number, struct error *error);

/* The present values. Old devices and drivers lack some. */
struct nvml_reading {
    bool has_energy;
    bool has_use;
    bool has_memory;
    uint64_t microjoules; /* since the driver was loaded */
    uint32_t use;         /* percent of the time in which something ran, lately */
    uint64_t memory_used; /* bytes, by everybody */
};

void nvml_read(struct nvml_reading *reading, const struct nvml *nvml, uint32_t number);

/*
 * The NVML number of CUDA's `device`. NVML orders all GPUs by bus; CUDA orders the visible ones,
 * fastest first. False: the number is not certain, and a figure of another GPU is worse than none.
 * It is certain with a single GPU, or where CUDA orders by bus as well.
 */
bool nvml_number_of(uint32_t *number, const struct nvml *nvml, uint32_t device);

#endif /* PROVER_TRAIN_NVML_H */
