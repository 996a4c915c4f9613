/* strips.h - strips of rows in shared memory: what attention.c asks about them. */
#ifndef ENGINE_CUDA_FUSIONS_STRIPS_H
#define ENGINE_CUDA_FUSIONS_STRIPS_H

#include "engine/cuda/fusions/fusion.h"

/* Rows of a strip of k elements, held STRIP_K_MAX at a time, that a block has room for: 32, 16, or
 * 0. */
uint32_t strips_rows_of(uint32_t shared_max, uint64_t k);

#endif /* ENGINE_CUDA_FUSIONS_STRIPS_H */
