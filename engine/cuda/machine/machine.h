/*
 * machine.h - the CUDA backend's machine over any table of device calls.
 *
 * backend_cuda opens the plugin's table; tests open their own.
 */
#ifndef ENGINE_CUDA_MACHINE_MACHINE_H
#define ENGINE_CUDA_MACHINE_MACHINE_H

#include "engine/cuda/device/device.h"
#include "engine/plan/backend.h"

struct machine_way {
    const struct device_calls *calls; /* must outlive the machine */
    int ordinal;
    bool rules_only; /* every operation by its rules, nothing fused */
    uint32_t barred; /* ways to contract that are not to be used: paths.h */
};

/* As backend->open(), which it serves. */
MUST_CHECK enum status machine_cuda_open(struct machine **machine, const struct tape *tape,
                                         const struct machine_options *options,
                                         const struct machine_way *way, struct error *error);

/* The sentence for a device that did not open. facts: as far as opening came. */
MUST_CHECK enum status machine_cuda_trouble(const struct device_calls *calls,
                                            const struct device_facts *facts, int ordinal,
                                            enum device_result result, struct error *error);

/* What the machine runs on; borrowed from it. */
const struct device_facts *machine_cuda_facts(const struct machine *machine);

/* Waits for everything that was queued, and says what of it failed. */
MUST_CHECK enum status machine_cuda_wait(struct machine *machine, struct error *error);

/* Device seconds that the step takes, repeated: for benchmarks. */
MUST_CHECK enum status machine_cuda_time(double *seconds, struct machine *machine, uint32_t steps,
                                         struct error *error);

#endif /* ENGINE_CUDA_MACHINE_MACHINE_H */
