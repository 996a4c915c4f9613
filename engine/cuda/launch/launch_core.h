/*
 * launch_core.h - what the files that launch kernels share: launch.c and launch_*.c. Nobody else
 * includes it, but for fuse_*.c, which name the launches of what they find.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_CORE_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_CORE_H

#include <assert.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/kernels/packed.h"

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

/* May this way be used: one of enum contract_path or of enum launch_way? */
static inline bool launch_way_free(const struct launcher *launcher, uint32_t way)
{
    return (launcher->barred >> way & 1) == 0;
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

/* k >> this is the block of k. */
static inline uint32_t block_log_of(const struct contraction_shape *shape)
{
    return shape->blocks == 1 ? 40 : (uint32_t)ceil_log2((uint64_t)shape->block);
}

static inline struct packed packed_for(const struct contraction_shape *shape, uint64_t rows)
{
    return packed_of(shape->bits, rows, (uint64_t)shape->k, (uint64_t)shape->blocks);
}

/* ---- launch_fused.c: each where its way is free and it takes the operation ---------- */

/* Results of one row by one row, or sums of rows (b NULL): without tiles. */
bool launch_dots_takes(const struct launcher *launcher, uint64_t m, uint64_t n, uint64_t batches,
                       uint64_t k);
enum device_result launch_dots(const struct launcher *launcher, struct dots_args *args);

/* Quantization of a view across memory, in one look. 0 columns: it does not fit. */
uint32_t launch_columns_fit(const struct launcher *launcher, const struct quantize_args *args);
enum device_result launch_columns(const struct launcher *launcher, struct quantize_args *args);

/* The same of rows of k elements; and their sums alone, as fuse_sums.c found them. */
uint32_t launch_columns_of(uint32_t shared_max, uint64_t k);
enum device_result launch_column_sums(const struct launcher *launcher, const struct chain *chain);

/* Rows that a warp can hold; quantize NULL: and no more than that. */
bool launch_held_takes(const struct launcher *launcher, const struct op *op);
enum device_result launch_held(const struct launcher *launcher, const struct rows_args *rows,
                               const struct quantize_args *quantize);

/* ---- launch_strips.c ---- */

/* Rows of a strip of K elements that a block has room for: 32, 16, or 0. */
uint32_t strip_rows_of(uint32_t shared_max, uint64_t k);

/* What fuse_strips.c found: a quantization across memory and its product. */
enum device_result launch_strip_columns(const struct launcher *launcher, const struct chain *chain);

/* ---- launch_attention.c: what fuse_attention.c found ---- */
enum device_result launch_attention(const struct launcher *launcher, const struct chain *chain);

/* launch.c: an operand whose limbs lie in memory; a product's arguments but for its operands. */
struct packed_operand launch_operand(const struct contraction_shape *shape, uint64_t rows,
                                     const uint8_t *planes);
struct contract_args launch_contract_args(const struct launcher *launcher, const struct op *op);

/* launch.c: results to out, or to what the epilogue makes of them; NULL: there is none. */
enum device_result launch_contract(const struct launcher *launcher, const struct op *op, void *out,
                                   const struct epilogue *epilogue);

/* launch.c: the arguments of these kinds. */
struct rows_args launch_rows_args(const struct launcher *launcher, const struct op *op);
struct quantize_args launch_quantize_args(const struct launcher *launcher, const struct op *op);

/* launch_entropy.c: do rows of so many columns fit? shared_max as the launcher's. */
bool launch_entropy_fits(uint32_t shared_max, uint64_t columns);
enum device_result launch_entropy(const struct launcher *launcher, const struct chain *chain);

/* What fuse.h found: a unit from `at` on, and the sum of squares that is made at `at`. */
enum device_result launch_updates(const struct launcher *launcher, const struct fused_updates *run);
enum device_result launch_squares(const struct launcher *launcher, const struct fused_squares *run);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_CORE_H */
