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

#define COLUMNS_SELFTESTS 3
void launch_columns_selftest(struct selftest_tape *tape, uint32_t part);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H */
