/*
 * contract_kernel.h - which kernel makes a product, by which tile: from the device, the shape, and
 * the variants that are disabled. Nothing is launched here.
 */
#ifndef ENGINE_CUDA_LAUNCH_CONTRACT_KERNEL_H
#define ENGINE_CUDA_LAUNCH_CONTRACT_KERNEL_H

#include "engine/cuda/launch/launcher.h"
#include "engine/cuda/launch/selftest_tape.h"

/* A kernel and its tile. */
struct contract_kernel {
    enum cuda_kernel kernel;
    uint32_t rows;
    uint32_t columns;
};

/* Of args, dimensions and batches are read. */
enum kernel_variant contract_variant_of(const struct launcher *launcher,
                                        const struct contraction_shape *shape);
struct contract_kernel contract_kernel_of(const struct launcher *launcher,
                                          const struct contraction_shape *shape,
                                          const struct contract_args *args);

/*
 * Does a kernel that holds an operand on chip multiply by halves? Where they are quicker, or where
 * the units of bytes are barred with mma.
 */
bool contract_by_halves(const struct launcher *launcher, enum unit_family family, int bits);

/* 2^this elements of one block have sums in 32 bits. */
uint32_t contract_reach_log(const struct contraction_shape *shape, enum kernel_variant variant);

/* Tiles along m or n. Those of wgmma begin at a multiple of 8 rows of all, before a batch may. */
uint64_t contract_tiles(uint64_t rows, uint64_t batches, uint64_t tile, bool by_wgmma);

/* Small products. Each runs other kernels of a variant, or other parts of them. */
#define WGMMA_SELFTESTS 4
#define MMA_SELFTESTS   5
#define HALF_SELFTESTS  7
#define PLAIN_SELFTESTS 2
void contract_wgmma_selftest(struct selftest_tape *tape, uint32_t part);
void contract_mma_selftest(struct selftest_tape *tape, uint32_t part);
void contract_half_selftest(struct selftest_tape *tape, uint32_t part);
void contract_plain_selftest(struct selftest_tape *tape, uint32_t part);
void contract_timed(struct selftest_tape *tape, int bits, int64_t processors);

#endif /* ENGINE_CUDA_LAUNCH_CONTRACT_KERNEL_H */
