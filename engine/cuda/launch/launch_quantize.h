/*
 * launch_quantize.h - quantization of a view: along memory or across it, in one pass or three.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H

#include "engine/cuda/launch/launcher.h"
#include "engine/cuda/launch/selftest_tape.h"

struct quantize_args launch_quantize_args(const struct launcher *launcher, const struct op *op);
enum device_result launch_quantize(const struct launcher *launcher, const struct op *op);

uint64_t launch_quantize_scratch(const struct op *op, const struct tensor *tensors);

/* Columns of memory of k elements that a block holds; 0: they do not fit. */
uint32_t launch_columns_of(uint32_t shared_max, uint64_t k);

/* A kernel whose blocks hold view->team columns each. args begin with the view. */
enum device_result launch_columns(const struct launcher *launcher, enum cuda_kernel kernel,
                                  const struct quantize_args *view, uint32_t args_size);

#define COLUMNS_SELFTESTS 3
void launch_columns_selftest(struct selftest_tape *tape, uint32_t part);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H */
