/* selftest_tape.c - see selftest_tape.h. */
#include "engine/cuda/launch/selftest_tape.h"

#include <assert.h>
#include <string.h>

void selftest_init(struct selftest_tape *tape)
{
    memset(tape, 0, sizeof(*tape));
    tape->tape.tensors = tape->tensors;
    tape->tape.ops = tape->ops;
    tape->tape.loss = TENSOR_NONE;
}

int64_t selftest_timed_k(int64_t processors, int64_t most)
{
    const int64_t k = processors * 32;

    return k < most ? k : most;
}

uint32_t selftest_give(struct selftest_tape *tape, enum dtype dtype, uint64_t count)
{
    const uint32_t id = tape->tape.tensor_count++;

    assert(id < SELFTEST_TENSORS_MAX);
    tape->tensors[id] = (struct tensor){.dtype = dtype, .rank = 1, .dims = {count}, .count = count};
    return id;
}

uint32_t selftest_give_rows(struct selftest_tape *tape, int64_t rows, int64_t k)
{
    const uint32_t id = selftest_give(tape, DTYPE_F32, (uint64_t)(rows * k));

    tape->row[id] = k;
    return id;
}

uint32_t selftest_give_filled(struct selftest_tape *tape, int64_t rows, int64_t k,
                              selftest_fill *fill)
{
    const uint32_t id = selftest_give_rows(tape, rows, k);

    tape->fills[id] = fill;
    return id;
}

struct op *selftest_op(struct selftest_tape *tape, enum op_kind kind)
{
    struct op *op = &tape->ops[tape->tape.op_count++];

    assert(tape->tape.op_count <= SELFTEST_OPS_MAX);
    op->kind = kind;
    return op;
}

void selftest_input(struct op *op, uint32_t id)
{
    op->inputs[op->input_count++] = id;
}

uint32_t selftest_output(struct selftest_tape *tape, struct op *op, enum dtype dtype,
                         uint64_t count)
{
    const uint32_t id = selftest_give(tape, dtype, count);

    tape->tensors[id].role = ROLE_OUTPUT;
    op->outputs[op->output_count++] = id;
    tape->made[id] = true;
    return id;
}

uint32_t selftest_hide(struct selftest_tape *tape, uint32_t id)
{
    tape->tensors[id].role = ROLE_TEMPORARY;
    return id;
}

void selftest_show(struct selftest_tape *tape, uint32_t id)
{
    tape->tensors[id].role = ROLE_OUTPUT;
}

static void add_hidden(struct selftest_tape *tape, struct op *op, enum dtype dtype, int64_t count)
{
    (void)selftest_hide(tape, selftest_output(tape, op, dtype, (uint64_t)count));
}

const struct op *selftest_quantize(struct selftest_tape *tape, uint32_t x, int64_t batches,
                                   int64_t rows, int64_t k, int bits, int block, bool along)
{
    const struct contraction_shape shape = contraction_shape(k, bits, block);
    const int64_t dims[6] = {batches, 1, 1, rows, 1, k};
    const int64_t strides[6] = {rows * k, 0, 0, along ? k : 1, 0, along ? 1 : rows};
    struct op *op = selftest_op(tape, OP_QUANTIZE);

    memcpy(&op->attributes[QUANTIZE_DIMS], dims, sizeof(dims));
    memcpy(&op->attributes[QUANTIZE_STRIDES], strides, sizeof(strides));
    op->attributes[QUANTIZE_BITS] = bits;
    op->attributes[QUANTIZE_BLOCK] = block;
    op->attribute_count = QUANTIZE_ATTRIBUTES;
    selftest_input(op, x);
    add_hidden(tape, op, DTYPE_I16, batches * rows * shape.pieces);
    add_hidden(tape, op, DTYPE_I16, batches * rows * shape.blocks);
    add_hidden(tape, op, bits == 22 ? DTYPE_I32 : DTYPE_I16, batches * rows * k);
    return op;
}

uint32_t selftest_ones(struct selftest_tape *tape, const struct op *quantize, int64_t rows,
                       int64_t k)
{
    struct op *op = selftest_op(tape, OP_CONTRACT_ONES);

    op->attributes[ONES_ROWS] = rows;
    op->attributes[ONES_K] = k;
    op->attributes[ONES_BITS] = quantize->attributes[QUANTIZE_BITS];
    op->attributes[ONES_BLOCK] = quantize->attributes[QUANTIZE_BLOCK];
    op->attribute_count = ONES_ATTRIBUTES;
    selftest_input(op, quantize->outputs[2]);
    selftest_input(op, quantize->outputs[1]);
    return selftest_output(tape, op, DTYPE_F32, (uint64_t)rows);
}

struct op *selftest_contract(struct selftest_tape *tape, const struct op *a, const struct op *b,
                             const int64_t sizes[3], int64_t k, bool across)
{
    const int64_t dims[6] = {sizes[0], 1, 1, sizes[1], 1, sizes[2]};
    const int64_t strides[6] = {sizes[1] * sizes[2],   0, 0,
                                across ? 1 : sizes[2], 0, across ? sizes[1] : 1};
    struct op *op = selftest_op(tape, OP_CONTRACT);

    memcpy(&op->attributes[CONTRACT_DIMS], dims, sizeof(dims));
    memcpy(&op->attributes[CONTRACT_STRIDES], strides, sizeof(strides));
    op->attributes[CONTRACT_K] = k;
    op->attributes[CONTRACT_BITS] = a->attributes[QUANTIZE_BITS];
    op->attributes[CONTRACT_BLOCK] = a->attributes[QUANTIZE_BLOCK];
    op->attribute_count = CONTRACT_ATTRIBUTES;
    selftest_input(op, a->outputs[2]);
    selftest_input(op, a->outputs[1]);
    selftest_input(op, b->outputs[2]);
    selftest_input(op, b->outputs[1]);
    (void)selftest_output(tape, op, DTYPE_F32, (uint64_t)(sizes[0] * sizes[1] * sizes[2]));
    return op;
}

uint32_t selftest_dots(struct selftest_tape *tape, const struct op *a, const struct op *b,
                       int64_t batches, int64_t k)
{
    const int64_t sizes[3] = {batches, 1, 1};

    return selftest_contract(tape, a, b, sizes, k, false)->outputs[0];
}

const struct op *selftest_rows(struct selftest_tape *tape, const struct row_kind *row, int64_t rows,
                               int64_t columns, int64_t causal)
{
    const uint64_t counts[] = {0, (uint64_t)(rows * columns), (uint64_t)columns, (uint64_t)rows};
    uint32_t inputs[5];
    struct op *op;

    for (int i = 0; i < 5 && row->inputs[i] != ROW_NONE; i++) {
        inputs[i] = selftest_give(tape, DTYPE_F32, counts[row->inputs[i]]);
    }
    op = selftest_op(tape, row->kind);
    op->attributes[ROWS] = rows;
    op->attributes[COLUMNS] = columns;
    if (row->kind == OP_SOFTMAX || row->kind == OP_SOFTMAX_GRAD) {
        op->attributes[SOFTMAX_CAUSAL] = causal;
        op->attributes[SOFTMAX_SCALE_BITS] = row->constant;
    } else {
        op->attributes[NORM_EPSILON_BITS] = row->constant;
    }
    for (int i = 0; i < 5 && row->inputs[i] != ROW_NONE; i++) {
        selftest_input(op, inputs[i]);
    }
    for (int i = 0; i < 6 && row->outputs[i] != ROW_NONE; i++) {
        (void)selftest_output(tape, op, DTYPE_F32, counts[row->outputs[i]]);
    }
    return op;
}
