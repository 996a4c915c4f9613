/*
 * selftest_tape.h - small tapes, as the self-tests of kernel variants build them.
 *
 * Every file with a variant has a function that adds operations to such a tape. selftest.h runs it
 * on a device and compares every shown tensor with the rules. Tensors that no operation makes are
 * given: the harness fills them.
 */
#ifndef ENGINE_CUDA_LAUNCH_SELFTEST_TAPE_H
#define ENGINE_CUDA_LAUNCH_SELFTEST_TAPE_H

#include "engine/ops/contraction.h"
#include "engine/tape/tape.h"

/* Element k of a row. */
typedef float selftest_fill(uint64_t row, uint64_t k);

#define SELFTEST_TENSORS_MAX 128
#define SELFTEST_OPS_MAX     32

struct selftest_tape {
    struct tape tape;
    struct tensor tensors[SELFTEST_TENSORS_MAX];
    struct op ops[SELFTEST_OPS_MAX];
    bool made[SELFTEST_TENSORS_MAX];
    int64_t row[SELFTEST_TENSORS_MAX]; /* elements of a row whose pieces differ in size; 0: none */
    selftest_fill *fills[SELFTEST_TENSORS_MAX]; /* what rows hold; NULL: numbers of all sizes */
    bool splits;                                /* products are split along k */
};

typedef void selftest_build(struct selftest_tape *tape, uint32_t part);

/* A tape whose last operation is timed: it has something to do for so many multiprocessors. */
typedef void selftest_timed(struct selftest_tape *tape, int bits, int64_t processors);

/* Elements of k in it, at most `most`: a device that has few multiprocessors is soon done. */
int64_t selftest_timed_k(int64_t processors, int64_t most);

void selftest_init(struct selftest_tape *tape);

/* A given tensor, and one of rows whose pieces lie up to 2^12 apart: every kind of shift is met. */
uint32_t selftest_give(struct selftest_tape *tape, enum dtype dtype, uint64_t count);
uint32_t selftest_give_rows(struct selftest_tape *tape, int64_t rows, int64_t k);
uint32_t selftest_give_filled(struct selftest_tape *tape, int64_t rows, int64_t k,
                              selftest_fill *fill);

struct op *selftest_op(struct selftest_tape *tape, enum op_kind kind);
void selftest_input(struct op *op, uint32_t id);

/* A made tensor. It is shown, until it is hidden: then it may be left out, or laid out freely. */
uint32_t selftest_output(struct selftest_tape *tape, struct op *op, enum dtype dtype,
                         uint64_t count);
uint32_t selftest_hide(struct selftest_tape *tape, uint32_t id);
void selftest_show(struct selftest_tape *tape, uint32_t id);

/* A view of rows of k; along: row after row; else a row's elements lie `rows` apart. */
const struct op *selftest_quantize(struct selftest_tape *tape, uint32_t x, int64_t batches,
                                   int64_t rows, int64_t k, int bits, int block, bool along);

/* Sums of the rows of a quantized operand, by which its integers are judged. */
uint32_t selftest_ones(struct selftest_tape *tape, const struct op *quantize, int64_t rows,
                       int64_t k);

/* sizes: batches, rows of a, rows of b; across: a result's rows lie side by side. */
struct op *selftest_contract(struct selftest_tape *tape, const struct op *a, const struct op *b,
                             const int64_t sizes[3], int64_t k, bool across);

/* One result for each batch of two operands of one row each. */
uint32_t selftest_dots(struct selftest_tape *tape, const struct op *a, const struct op *b,
                       int64_t batches, int64_t k);

/* What an input or output of an operation along rows is, as in op.h. */
enum row_tensor { ROW_NONE, ROW_MATRIX, ROW_COLUMN, ROW_NUMBER };

struct row_kind {
    enum op_kind kind;
    uint32_t constant; /* epsilon or scale, where it has one */
    enum row_tensor inputs[5];
    enum row_tensor outputs[6];
};

const struct op *selftest_rows(struct selftest_tape *tape, const struct row_kind *row, int64_t rows,
                               int64_t columns, int64_t causal);

#endif /* ENGINE_CUDA_LAUNCH_SELFTEST_TAPE_H */
