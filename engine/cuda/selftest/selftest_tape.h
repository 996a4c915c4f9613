/*
 * selftest_tape.h - small tapes, as the files that prove a way build them: proof.c and proof_*.c.
 * Nobody else includes it.
 */
#ifndef ENGINE_CUDA_SELFTEST_SELFTEST_TAPE_H
#define ENGINE_CUDA_SELFTEST_SELFTEST_TAPE_H

#include <assert.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/selftest/selftest.h"
#include "engine/ops/contraction.h"

#define TENSORS_MAX 128
#define OPS_MAX     32

/* A tape in the making; tensors that no operation makes are given. */
struct proof {
    struct tape tape;
    struct tensor tensors[TENSORS_MAX];
    struct op ops[OPS_MAX];
    struct fusion fusion;
    bool made[TENSORS_MAX];
    bool needed[TENSORS_MAX]; /* by an operation that is made, or to be compared */
    uint64_t sizes[TENSORS_MAX];
    void *host[TENSORS_MAX];
    void *device[TENSORS_MAX];
};

/* ---- building ------------------------------------------------------------------- */

static inline uint32_t give(struct proof *proof, enum dtype dtype, uint64_t count)
{
    const uint32_t id = proof->tape.tensor_count++;

    assert(id < TENSORS_MAX);
    proof->tensors[id] =
        (struct tensor){.dtype = dtype, .rank = 1, .dims = {count}, .count = count};
    return id;
}

static inline struct op *add_op(struct proof *proof, enum op_kind kind)
{
    struct op *op = &proof->ops[proof->tape.op_count++];

    assert(proof->tape.op_count <= OPS_MAX);
    op->kind = kind;
    return op;
}

static inline void add_input(struct op *op, uint32_t id)
{
    op->inputs[op->input_count++] = id;
}

static inline uint32_t add_output(struct proof *proof, struct op *op, enum dtype dtype,
                                  uint64_t count)
{
    const uint32_t id = give(proof, dtype, count);

    proof->tensors[id].role = ROLE_OUTPUT;
    op->outputs[op->output_count++] = id;
    proof->made[id] = true;
    return id;
}

/* One that nobody has to see: it may be left out, or lie in a layout of its own. */
static inline uint32_t hide(struct proof *proof, uint32_t id)
{
    proof->tensors[id].role = ROLE_TEMPORARY;
    return id;
}

/* A view of rows of k; along: row after row; else a row's elements lie `rows` apart. */
static inline const struct op *add_quantize(struct proof *proof, uint32_t x, int64_t batches,
                                            int64_t rows, int64_t k, int bits, int block,
                                            bool along)
{
    const struct contraction_shape shape = contraction_shape(k, bits, block);
    const int64_t dims[6] = {batches, 1, 1, rows, 1, k};
    const int64_t strides[6] = {rows * k, 0, 0, along ? k : 1, 0, along ? 1 : rows};
    const uint64_t all = (uint64_t)(batches * rows);
    struct op *op = add_op(proof, OP_QUANTIZE);

    for (int axis = 0; axis < 6; axis++) {
        op->attributes[QUANTIZE_DIMS + axis] = dims[axis];
        op->attributes[QUANTIZE_STRIDES + axis] = strides[axis];
    }
    op->attributes[QUANTIZE_BITS] = bits;
    op->attributes[QUANTIZE_BLOCK] = block;
    op->attribute_count = QUANTIZE_ATTRIBUTES;
    add_input(op, x);
    (void)hide(proof, add_output(proof, op, DTYPE_I16, all * (uint64_t)shape.pieces));
    (void)hide(proof, add_output(proof, op, DTYPE_I16, all * (uint64_t)shape.blocks));
    (void)hide(proof, add_output(proof, op, bits == 22 ? DTYPE_I32 : DTYPE_I16, all * (uint64_t)k));
    return op;
}

/* Sums of the rows of a quantized operand, by which its integers are judged. */
static inline uint32_t add_ones(struct proof *proof, const struct op *quantize, int64_t rows,
                                int64_t k)
{
    struct op *op = add_op(proof, OP_CONTRACT_ONES);

    op->attributes[ONES_ROWS] = rows;
    op->attributes[ONES_K] = k;
    op->attributes[ONES_BITS] = quantize->attributes[QUANTIZE_BITS];
    op->attributes[ONES_BLOCK] = quantize->attributes[QUANTIZE_BLOCK];
    op->attribute_count = ONES_ATTRIBUTES;
    add_input(op, quantize->outputs[2]);
    add_input(op, quantize->outputs[1]);
    return add_output(proof, op, DTYPE_F32, (uint64_t)rows);
}

/* Rows of a by rows of b; across: a result's rows lie side by side. */
static inline struct op *add_contract(struct proof *proof, const struct op *a, const struct op *b,
                                      const int64_t sizes[3], int64_t k, bool across)
{
    const int64_t dims[6] = {sizes[0], 1, 1, sizes[1], 1, sizes[2]};
    const int64_t strides[6] = {sizes[1] * sizes[2],   0, 0,
                                across ? 1 : sizes[2], 0, across ? sizes[1] : 1};
    struct op *op = add_op(proof, OP_CONTRACT);

    for (int axis = 0; axis < 6; axis++) {
        op->attributes[CONTRACT_DIMS + axis] = dims[axis];
        op->attributes[CONTRACT_STRIDES + axis] = strides[axis];
    }
    op->attributes[CONTRACT_K] = k;
    op->attributes[CONTRACT_BITS] = a->attributes[QUANTIZE_BITS];
    op->attributes[CONTRACT_BLOCK] = a->attributes[QUANTIZE_BLOCK];
    op->attribute_count = CONTRACT_ATTRIBUTES;
    add_input(op, a->outputs[2]);
    add_input(op, a->outputs[1]);
    add_input(op, b->outputs[2]);
    add_input(op, b->outputs[1]);
    (void)add_output(proof, op, DTYPE_F32, (uint64_t)(sizes[0] * sizes[1] * sizes[2]));
    return op;
}

/* One result for each batch of two operands of one row each. */
static inline uint32_t add_dots(struct proof *proof, const struct op *a, const struct op *b,
                                int64_t batches, int64_t k)
{
    const int64_t sizes[3] = {batches, 1, 1};

    return add_contract(proof, a, b, sizes, k, false)->outputs[0];
}

/* An operation along rows over given tensors: what each of them is, as in op.h. */
enum row_tensor { ROW_NONE, ROW_MATRIX, ROW_COLUMN, ROW_NUMBER };

struct row_kind {
    enum op_kind kind;
    uint32_t constant; /* epsilon or scale, where it has one */
    enum row_tensor inputs[5];
    enum row_tensor outputs[6];
};

static inline const struct op *add_rows(struct proof *proof, const struct row_kind *row,
                                        int64_t rows, int64_t columns, int64_t causal)
{
    const uint64_t counts[] = {0, (uint64_t)(rows * columns), (uint64_t)columns, (uint64_t)rows};
    uint32_t inputs[5];
    struct op *op;

    for (int i = 0; i < 5 && row->inputs[i] != ROW_NONE; i++) {
        inputs[i] = give(proof, DTYPE_F32, counts[row->inputs[i]]);
    }
    op = add_op(proof, row->kind);
    op->attributes[ROWS] = rows;
    op->attributes[COLUMNS] = columns;
    if (row->kind == OP_SOFTMAX || row->kind == OP_SOFTMAX_GRAD) {
        op->attributes[SOFTMAX_CAUSAL] = causal;
        op->attributes[SOFTMAX_SCALE_BITS] = row->constant;
    } else {
        op->attributes[NORM_EPSILON_BITS] = row->constant;
    }
    for (int i = 0; i < 5 && row->inputs[i] != ROW_NONE; i++) {
        add_input(op, inputs[i]);
    }
    for (int i = 0; i < 6 && row->outputs[i] != ROW_NONE; i++) {
        (void)add_output(proof, op, DTYPE_F32, counts[row->outputs[i]]);
    }
    return op;
}

/* ---- proof_views.c --------------------------------------------------------------------- */

#define PROOF_VIEWS_PARTS 2
void proof_build_views(struct proof *proof, uint32_t part);

/* ---- proof_epilogue.c ------------------------------------------------------------------ */

#define PROOF_EPILOGUE_PARTS 3
#define PROOF_EPILOGUE_SPLIT 1 /* the part whose products are split */

void proof_build_epilogue(struct proof *proof, uint32_t part);

#endif /* ENGINE_CUDA_SELFTEST_SELFTEST_TAPE_H */
