/*
 * launcher.h - what a launch needs to know of a device and a tape, and the two ways to make a grid.
 *
 * The files of this folder turn one operation into launches of kernels. No memory is allocated and
 * nothing waits: the machine plans scratch of launch_scratch_size() and hands everything in.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCHER_H
#define ENGINE_CUDA_LAUNCH_LAUNCHER_H

#include <assert.h>

#include "engine/cuda/device/device.h"
#include "engine/cuda/kernels/args.h"
#include "engine/cuda/kernels/packed.h"
#include "engine/tape/tape.h"

/*
 * Kernel variants: different kernels for the same work, and fusions of several operations. All give
 * the same bits. Each is tested on a device before it is used, and can be disabled by name.
 */
enum kernel_variant {
    /* Kernels that contract, fastest first. */
    VARIANT_WGMMA, /* sm_90a, 14 bits */
    VARIANT_MMA,   /* from sm_75 on */
    VARIANT_HALF,  /* by halves with sums in binary32 */
    VARIANT_PLAIN, /* without tensor cores; never disabled */
    CONTRACT_VARIANTS,
    /* Variants that spare passes over memory, or launches. */
    VARIANT_DOTS = CONTRACT_VARIANTS, /* sums of rows without tiles */
    VARIANT_LISTS,                    /* many tensors at once: updates, squares of gradients */
    VARIANT_COLUMNS,                  /* quantization across memory in one pass */
    VARIANT_HELD,                     /* rows held in registers, and quantized at once */
    VARIANT_STRIPS,    /* operands across memory are held on chip and multiplied at once */
    VARIANT_ATTENTION, /* rows of attention, from product to product, on chip */
    VARIANT_EPILOGUE,  /* element-wise operations where their operand is made */
    VARIANT_ENTROPY,   /* rows of logits held in shared memory, up to their gradient's limbs */
    VARIANT_VIEWS,     /* parts of rows are read and written where the whole lies */
    VARIANT_TILES,     /* limbs of both views of a tensor, and sums of columns, from one read */
    VARIANT_COUNT
};

/*
 * Kernels that multiply by bytes or by halves, by family and width: which takes less time a device
 * is asked. QUICKER is the bit of launcher.quicker where halves do.
 */
enum unit_family {
    UNITS_PRODUCTS,  /* what CONTRACT_VARIANTS are for */
    UNITS_STRIPS,    /* VARIANT_STRIPS */
    UNITS_ATTENTION, /* VARIANT_ATTENTION */
    UNIT_FAMILIES
};

enum unit_width {
    WIDTH_NARROW, /* 14 bits */
    WIDTH_WIDE,   /* 15 and 16 */
    WIDTH_THREE,  /* 22 */
    UNIT_WIDTHS
};

#define QUICKER(family, width) (1u << ((family)*UNIT_WIDTHS + (width)))

static inline enum unit_width unit_width_of(int bits)
{
    return bits == 14 ? WIDTH_NARROW : bits == 22 ? WIDTH_THREE : WIDTH_WIDE;
}

struct launcher {
    const struct device_calls *calls;
    struct device *device;
    const struct tape *tape;
    const struct op *ops; /* the tape's operations in device memory */
    void *const *memory;  /* per tensor, device memory; NULL: not there */
    uint8_t *scratch;     /* device memory */
    uint32_t block_count; /* blocks that fill the device some times over */
    int32_t capability;   /* of the device; 0: not known, nothing special */
    uint32_t processors;  /* multiprocessors; 0: not known, k is never split */
    uint32_t shared_max;  /* bytes that a block may have; 0: not known, enough */
    uint32_t disabled;    /* bits 1 << enum kernel_variant */
    uint32_t quicker;     /* by halves: bits QUICKER */
    bool gives_up;        /* kernels whose barriers never end go on, and give nonsense */
    bool packed;          /* fast mode: q tensors are packed.h's planes */
    bool rules_only; /* every operation by its rules: for tests, and where kernels are in doubt */
};

static inline enum device_result launch_grid(const struct launcher *launcher,
                                             enum cuda_kernel kernel, uint64_t blocks,
                                             uint32_t block_threads, const void *arguments,
                                             uint32_t arguments_size)
{
    const struct device_launch launch = {.kernel = kernel,
                                         .grid = {(uint32_t)blocks, 1, 1},
                                         .block = block_threads,
                                         .arguments_size = arguments_size,
                                         .arguments = arguments};

    return launcher->calls->launch(launcher->device, &launch);
}

/* For kernels that stride: blocks for all the work, but no more than fill the device. */
static inline enum device_result launch_work(const struct launcher *launcher,
                                             enum cuda_kernel kernel, uint64_t items,
                                             uint64_t items_per_block, uint32_t block_threads,
                                             const void *arguments, uint32_t arguments_size)
{
    uint64_t blocks = (items + items_per_block - 1) / items_per_block;

    if (blocks > launcher->block_count) {
        blocks = launcher->block_count;
    }
    return launch_grid(launcher, kernel, blocks, block_threads, arguments, arguments_size);
}

#define LAUNCH_WORK(launcher, kernel, items, per_block, args)                                      \
    launch_work(launcher, kernel, items, per_block, BLOCK_THREADS, &(args), (uint32_t)sizeof(args))

static inline bool launch_allows(const struct launcher *launcher, enum kernel_variant variant)
{
    return (launcher->disabled >> variant & 1) == 0;
}

static inline const void *input_memory(const struct launcher *launcher, const struct op *op,
                                       uint32_t input)
{
    assert(launcher->memory[op->inputs[input]] != NULL);
    return launcher->memory[op->inputs[input]];
}

static inline void *output_memory(const struct launcher *launcher, const struct op *op,
                                  uint32_t output)
{
    return launcher->memory[op->outputs[output]];
}

/* Can memory be read and written by 16 bytes? */
static inline bool launch_is_aligned(const void *memory)
{
    return (uintptr_t)memory % 16 == 0;
}

/* k >> this is the block of k. */
static inline uint32_t block_log_of(const struct contraction_shape *shape)
{
    return shape->blocks == 1 ? 40 : (uint32_t)ceil_log2((uint64_t)shape->block);
}

static inline struct packed packed_for(const struct contraction_shape *shape, uint64_t rows)
{
    return packed_of(shape->bits, rows, (uint64_t)shape->k, (uint64_t)shape->blocks);
}

#endif /* ENGINE_CUDA_LAUNCH_LAUNCHER_H */
