/* gpu_machine.h - what gpu-check asks of a CUDA machine beyond its table. */
#ifndef TESTS_GPU_GPU_MACHINE_H
#define TESTS_GPU_GPU_MACHINE_H

#include "engine/cuda/machine/machine.h"

/* What the machine runs on; borrowed from it. */
const struct device_facts *gpu_machine_facts(const struct machine *machine);

/* Waits for everything that was queued, and says what of it failed. */
MUST_CHECK enum status gpu_machine_wait(struct machine *machine, struct error *error);

/* Device seconds that the step takes, repeated. */
MUST_CHECK enum status gpu_machine_time(double *seconds, struct machine *machine, uint32_t steps,
                                        struct error *error);

#endif /* TESTS_GPU_GPU_MACHINE_H */
