/*
 * hashing.h - roots of what a machine holds, made where it lies, and the search for numbers that
 * are not finite; beside the next step, on a lane of their own.
 */
#ifndef ENGINE_CUDA_MACHINE_HASHING_H
#define ENGINE_CUDA_MACHINE_HASHING_H

#include "engine/cuda/machine/machine_cuda.h"

/* Bytes of the blocks that hashing needs. */
void cuda_hash_sizes(uint64_t sizes[BLOCK_COUNT], struct machine_cuda *cuda);

enum status cuda_hash_begin(struct machine *machine, const uint32_t *tensors, uint32_t count,
                            struct error *error);
enum status cuda_hash_end(struct machine *machine, struct digest *roots, bool *diverged,
                          struct error *error);
enum status cuda_leaves_roots(struct machine *machine, struct digest *roots,
                              const uint32_t *tensors, uint32_t count, struct error *error);
enum status cuda_diverged(struct machine *machine, bool *diverged, struct error *error);

/* What is queued from now on may write what is being hashed. */
enum device_result cuda_hash_join(struct machine_cuda *cuda);

#endif /* ENGINE_CUDA_MACHINE_HASHING_H */
