/*
 * launch.h - which kernels an operation becomes, with which grids and arguments.
 *
 * A kind without a kernel of its own is served by its rules, output after output, as is every
 * operation whose tensors a kernel does not take.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_H

#include "engine/cuda/launch/launcher.h"

/*
 * A cross-entropy's gradient that makes the losses and its own quantization too
 * (fusions/entropy.c) has these outputs, and these attributes behind its own.
 */
enum entropy_output {
    ENTROPY_DX,
    ENTROPY_PEAKS,
    ENTROPY_EXPONENTS,
    ENTROPY_Q,
    ENTROPY_LOSS,
    ENTROPY_MAX,
    ENTROPY_SUM,
    ENTROPY_OUTPUTS
};
enum { ENTROPY_BITS = CROSS_ENTROPY_ATTRIBUTES, ENTROPY_BLOCK, ENTROPY_ATTRIBUTES };

/* Is op within what the kernels count with? (Rows of a contraction below 2^32 elements.) */
bool launch_takes(const struct op *op);

/* Operation `at`, alone. */
enum device_result launch_op(const struct launcher *launcher, uint32_t at);

/* Bytes of scratch for one operation. */
uint64_t launch_scratch_size(const struct op *op, const struct tensor *tensors, bool packed);

/* Bytes of an output; packed q tensors are larger than their elements. */
uint64_t launch_output_size(const struct op *op, uint32_t output, const struct tensor *tensors,
                            bool packed);

/* As kernel.h's op_in_place(), for the kernels of this folder. */
bool launch_in_place(const struct op *op, uint32_t output, uint32_t input);

/* May unread outputs of this kind be left out? */
bool launch_may_omit(enum op_kind kind);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_H */
