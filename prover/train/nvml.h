/*
 * nvml.h - what NVIDIA's management library tells of a GPU: what it is, how busy, what it used.
 *
 * libnvidia-ml.so.1 is loaded at run time (LOCKSTEP_NVML names another file; "off" means none), and
 * a machine without it is no error of ours: then nothing is known. It changes no setting.
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
    uint64_t memory;    /* bytes; 0: not told */
    int32_t capability; /* 90 for 9.0; 0: not told */
};

MUST_CHECK enum status nvml_describe(struct nvml_device *device, const struct nvml *nvml,
                                     uint32_t number, struct error *error);

/* At this moment. What an old device or driver does not tell is not known. */
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
 * NVML counts all GPUs by their place on the bus, CUDA those that it is shown, the fastest first.
 * False where the number of CUDA's `device` cannot be known: a figure of another GPU is worse than
 * none. *number is sure where there is one GPU, or where CUDA was told to count as NVML does.
 */
bool nvml_number_of(uint32_t *number, const struct nvml *nvml, uint32_t device);

#endif /* PROVER_TRAIN_NVML_H */
