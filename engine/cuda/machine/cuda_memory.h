/*
 * cuda_memory.h - device memory of a machine: planned, allocated and placed once, when it is
 * opened.
 */
#ifndef ENGINE_CUDA_MACHINE_CUDA_MEMORY_H
#define ENGINE_CUDA_MACHINE_CUDA_MEMORY_H

#include "engine/cuda/machine/machine_cuda.h"

/* Fuses the tape, plans it, and says how large each block is. Touches no device. */
MUST_CHECK enum status cuda_memory_plan(struct machine_cuda *cuda, struct error *error);

/* Bytes of all blocks, as planned. */
uint64_t cuda_memory_size(const struct machine_cuda *cuda);

/* Allocates what was planned, places the tensors, and sends what every step reads. */
MUST_CHECK enum status cuda_memory_open(struct machine_cuda *cuda, struct error *error);

/* Releases all of it; the device is still open, where it was opened. */
void cuda_memory_close(struct machine_cuda *cuda);

#endif /* ENGINE_CUDA_MACHINE_CUDA_MEMORY_H */
