/*
 * quantizer.h - what a QUANTIZE operation reads, and which one quantizes a tensor's rows or made an
 * operand. Every pattern asks here.
 */
#ifndef ENGINE_CUDA_FUSIONS_QUANTIZER_H
#define ENGINE_CUDA_FUSIONS_QUANTIZER_H

#include "engine/cuda/fusions/readers.h"
#include "engine/ops/contraction.h"

/* A view without axes of one step; neighbouring axes that run on are one. */
struct plain_view {
    int64_t dims[6];
    int64_t strides[6];
    int count;
    int rows; /* how many of the axes are rows */
};

struct plain_view quantizer_view(const struct op *quantize);

/* Do two make the same integers of the same elements in the same order? */
bool quantizer_same(const struct op *a, const struct op *b);

/* Does op quantize tensor x as so many rows of so many columns, one row after another? */
bool quantizes_rows(const struct op *op, uint32_t x, int64_t rows, int64_t columns);

/* Does op quantize the columns of x, which is so many matrices of rows of so many columns, one
 * after another, each with more than one row? */
bool quantizes_columns(const struct op *op, uint32_t x, int64_t matrices, int64_t rows,
                       int64_t columns);

/* Is a block a whole piece of 128 elements, or all of the row? */
bool quantizes_pieces(const struct op *quantize);

/* Who quantizes these rows by pieces, and may be taken? The first such operation, or NEVER. */
uint32_t quantizer_of_rows(const struct fusion *fusion, const struct readers *readers, uint32_t x,
                           int64_t rows, int64_t columns);

/* The same for x as an operation along rows makes it. */
uint32_t quantizer_of_result(const struct fusion *fusion, const struct readers *readers,
                             const struct op *op, uint32_t output);

/* Who quantized the operand whose q is this input of op, and may be taken? Or NEVER. */
uint32_t quantizer_of_operand(const struct fusion *fusion, const struct readers *readers,
                              const struct op *op, uint32_t input);

#endif /* ENGINE_CUDA_FUSIONS_QUANTIZER_H */
