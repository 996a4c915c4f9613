/*
 * machine.h - the CUDA backend's machine over any table of device calls.
 *
 * backend_cuda opens the plugin's table; tests open their own.
 */
#ifndef ENGINE_CUDA_MACHINE_MACHINE_H
#define ENGINE_CUDA_MACHINE_MACHINE_H

#include "engine/cuda/machine/machine_cuda.h"

/* As backend->open(), which it serves. */
MUST_CHECK enum status machine_cuda_open(struct machine **machine, const struct tape *tape,
                                         const struct machine_options *options,
                                         const struct cuda_config *config, struct error *error);

#endif /* ENGINE_CUDA_MACHINE_MACHINE_H */
