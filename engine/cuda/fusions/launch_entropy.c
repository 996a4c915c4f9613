/* launch_entropy.c - rows of logits in one launch; see entropy_body.h, fuse_entropy.c. */
#include "engine/cuda/launch/launch_core.h"

#define THREADS_OF_PROCESSOR 1536 /* at once, of all devices from 7.5 on but one */

static uint32_t shared_of(uint32_t shared_max)
{
    return shared_max == 0 ? 48 * 1024 : shared_max;
}

bool launch_entropy_fits(uint32_t shared_max, uint64_t columns)
{
    return fold_chunks(columns) <= ENTROPY_CHUNKS_MAX &&
           ENTROPY_SHARED(columns) + ENTROPY_SHARED_STATIC <= shared_of(shared_max);
}

/* Warps that have one or two chunks each, all of them as many as can be. */
static uint32_t warps_of(uint32_t chunks)
{
    const uint32_t turns = (chunks + ENTROPY_WARPS_MAX - 1) / ENTROPY_WARPS_MAX;

    return (chunks + turns - 1) / turns;
}

/* Blocks that lie on the device side by side: each goes from row to row. */
static uint32_t blocks_of(const struct launcher *launcher, uint64_t rows, uint32_t threads,
                          uint64_t shared)
{
    uint64_t beside = shared_of(launcher->shared_max) / (shared + ENTROPY_SHARED_STATIC);
    uint64_t blocks;

    beside = beside > THREADS_OF_PROCESSOR / threads ? THREADS_OF_PROCESSOR / threads : beside;
    beside = beside == 0 ? 1 : beside;
    blocks = launcher->processors == 0 ? launcher->block_count : launcher->processors * beside;
    return (uint32_t)(rows < blocks ? rows : blocks);
}

/* The quantization's, but that it begins with x. */
static struct quantize_args quantize_args_of(const struct launcher *launcher, const struct op *op,
                                             const struct op *quantize)
{
    struct op from_x = *quantize;
    struct quantize_args args;

    from_x.inputs[0] = op->inputs[0];
    args = launch_quantize_args(launcher, &from_x);
    args.peaks = output_memory(launcher, op, ENTROPY_PEAKS);
    args.exponents = output_memory(launcher, op, ENTROPY_EXPONENTS);
    return args;
}

enum device_result launch_entropy(const struct launcher *launcher, const struct chain *chain)
{
    const uint32_t last = chain->count - 1;
    const struct op *op = &launcher->tape->ops[chain->ats[last]];
    struct entropy_args args = {.quantize = quantize_args_of(launcher, op, &chain->ops[last]),
                                .targets = input_memory(launcher, op, 1),
                                .dloss = input_memory(launcher, op, 2),
                                .dx = output_memory(launcher, op, ENTROPY_DX),
                                .loss = output_memory(launcher, op, ENTROPY_LOSS),
                                .maximum = output_memory(launcher, op, ENTROPY_MAX),
                                .sum = output_memory(launcher, op, ENTROPY_SUM)};
    const uint64_t shared = ENTROPY_SHARED(args.quantize.k);
    const uint32_t threads = CUDA_WARP * warps_of((uint32_t)fold_chunks(args.quantize.k));
    const struct device_launch launch = {
        .kernel = KERNEL_ENTROPY,
        .grid = {blocks_of(launcher, args.quantize.rows, threads, shared), 1, 1},
        .block = threads,
        .shared_size = (uint32_t)shared,
        .arguments_size = sizeof(args),
        .arguments = &args};

    assert(launcher->packed && launch_entropy_fits(launcher->shared_max, args.quantize.k));
    return launcher->calls->launch(launcher->device, &launch);
}
