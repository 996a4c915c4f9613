/*
 * launch_quantize.h - quantization of a view: along memory or across it, in one pass or three.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H

#include "engine/cuda/launch/launcher.h"
#include "engine/cuda/launch/selftest_tape.h"

struct quantize_args launch_quantize_args(const struct launcher *launcher, const struct op *op);
enum device_result launch_quantize(const struct launcher *launcher, const struct op *op);

/*
 * A quantization of columns that fusions/tiles.c has made more of: TILES_WIDTH numbers are a row of
 * the matrix. Its outputs are followed by those of the rows' quantization, and by sums of columns.
 * Its inputs are followed by those of cross-entropy: targets, slopes, maxima, sums (TILES_ENTROPY);
 * or of a norm: gain, bias, mean, rstd (TILES_LAYER_NORM), gain, rstd (TILES_RMS_NORM), mean, rstd
 * (TILES_SLOPES). Behind mean and rstd there may be dy, of which both sums are the last outputs.
 */
enum { TILES_WIDTH = QUANTIZE_ATTRIBUTES, TILES_FUNCTION, TILES_ATTRIBUTES };

_Static_assert(TILES_ATTRIBUTES <= OP_ATTRIBUTES_MAX, "an operation has room for them");

#define TILES_ALONG 3 /* the first output of the rows' quantization, or of two sums of dy */

bool launch_has_tiles(const struct op *op);
bool launch_tiles_along(struct op *along, const struct op *op);
enum device_result launch_tiles(const struct launcher *launcher, const struct op *op);

uint64_t launch_quantize_scratch(const struct op *op, const struct tensor *tensors);

#define COLUMNS_SELFTESTS 3
void launch_columns_selftest(struct selftest_tape *tape, uint32_t part);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_QUANTIZE_H */
