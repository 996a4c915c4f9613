/*
 * contract_kernel.h - which kernel makes a product, by which tile: from the device, the shape, and
 * what is barred. Nothing is launched here.
 */
#ifndef ENGINE_CUDA_LAUNCH_CONTRACT_KERNEL_H
#define ENGINE_CUDA_LAUNCH_CONTRACT_KERNEL_H

#include "engine/cuda/launch/launch.h"
#include "engine/ops/contraction.h"

/* A kernel and its tile. */
struct contract_way {
    enum cuda_kernel kernel;
    uint32_t rows;
    uint32_t columns;
};

/* Of args, dimensions, batches and causal are read. */
enum contract_path contract_path_of(const struct launcher *launcher,
                                    const struct contraction_shape *shape,
                                    const struct contract_args *args);
struct contract_way contract_way_of(const struct launcher *launcher,
                                    const struct contraction_shape *shape,
                                    const struct contract_args *args);

/* Tiles along m or n. Those of wgmma begin at a multiple of 8 rows of all, before a batch may. */
uint64_t contract_tiles(uint64_t rows, uint64_t batches, uint64_t tile, bool by_wgmma);

#endif /* ENGINE_CUDA_LAUNCH_CONTRACT_KERNEL_H */
