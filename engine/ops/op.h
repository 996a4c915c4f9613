/*
 * op.h - the operations that a training step is made of; op_list.h has a row for each kind.
 *
 * An operation has a kind, integer attributes, and input and output tensor ids. Each output has one
 * rule (rule.h), a small pure function of one element's position. The rules define the arithmetic.
 * docs/ARITHMETIC.md states the same in mathematics; kernels, the CUDA backend and the contract
 * translate it.
 *
 * Attributes named *_BITS hold the bit pattern of a binary32 constant. Operations read tensors as
 * flat arrays whose sizes the attributes give; op_check() refuses any other size.
 *
 * Folds: fold(v_0..v_n-1) is the canonical sum of fold.h: chunks of FOLD_CHUNK elements are
 * outputs of their own ("part", (rows, chunks)), and the total is the fold of the parts.
 *
 * Tour 1 of 10: next read engine/rules/rule.h, what one of its numbers is.
 */
#ifndef ENGINE_OPS_OP_H
#define ENGINE_OPS_OP_H

#include <stdint.h>

#include "base/error.h"
#include "engine/ops/op_list.h"
#include "engine/ops/tensor.h"

#define OP_INPUTS_MAX     8
#define OP_OUTPUTS_MAX    8
#define OP_ATTRIBUTES_MAX 16

/* Lanes and chunk length of the canonical fold. */
#define FOLD_LANES 32
#define FOLD_CHUNK 1024

#define FLOAT_NAN_BITS UINT32_C(0x7fc00000)

#define OP_ENUMERATOR(NAME, ...) OP_##NAME,
enum op_kind { OP_LIST(OP_ENUMERATOR) OP_KIND_COUNT };

/* Attribute positions, set by set: SCHEDULE_COLUMNS, SCHEDULE_COLUMN, SCHEDULE_ATTRIBUTES ... */
#define OP_AT(SET, index, NAME) SET##_##NAME,
#define OP_SET(SET, ...)        enum { OP_EACH(OP_AT, SET, __VA_ARGS__) SET##_ATTRIBUTES };
OP_ATTRIBUTES(OP_SET)
enum { NONE_ATTRIBUTES };

/* All kinds of batch begin with these. LENGTH: T, or the width of a sample or a row. The seed has
 * 64 bits, in two halves; operations with different streams draw different numbers. */
enum {
    BATCH_COUNT = BATCH_SAMPLES_COUNT,
    BATCH_LENGTH = BATCH_SAMPLES_LENGTH,
    BATCH_STREAM = BATCH_SAMPLES_STREAM,
    BATCH_SEED_LOW = BATCH_SAMPLES_SEED_LOW,
    BATCH_SEED_HIGH = BATCH_SAMPLES_SEED_HIGH,
    BATCH_SCALE_BITS = BATCH_SAMPLES_SCALE_BITS,
};
/*
 * BATCH_ROWS: UNIT rows are drawn together. Element t of a row is element t + AHEAD (0 or 1) of the
 * data's row, and where that is past it, or past the data, the 32 bits PAST. ORDER 0: as the rows
 * lie; 1: each once per epoch, in an order of its own (batch_rows.h).
 */
/* DROPOUT: an element survives when its random word is >= THRESHOLD. */

enum { SPLIT_WIDTHS = SPLIT_WIDTH }; /* one width per part */
/*
 * Windows over pictures: place (ky,kx) of window (oy,ox) lies at row oy*STRIDE_Y - TOP +
 * ky*DILATION_Y, and likewise in columns. TOP, LEFT, BOTTOM and RIGHT are padding. Mean pools:
 * COUNTS_PADDING 0: a window is divided by its places in the picture; 1: by all of them.
 *
 * The most elements that one rule reads of a window, or through windows. Each may lie in a leaf of
 * its own, and the proofs of all of them must fit one transaction of a ledger.
 */
#define IMAGE_WINDOW_MAX 64
#define IMAGE_KERNEL_MAX 64 /* places of a window in one direction */
/*
 * QUANTIZE reads x through a view: six axes (batch0, batch1, row0, row1, k0, k1) with strides,
 * which must be a permutation of x's elements. Rows of the result are (batch0, batch1, row0, row1)
 * in that order, K = k0*k1. BLOCK is 0 (the whole row) or a power of two from 16.
 */
enum { QUANTIZE_DIMS = QUANTIZE_B0, QUANTIZE_STRIDES = QUANTIZE_SB0 };
/*
 * With c, element k of a row of batch b counts as x * 2^-c[b*K+k]. The other operand of a product
 * has -c, so the product is that of x, and elements that are large or small along K in one operand
 * and not in the other leave each other bits. EQUILIBRATE makes such a pair for K rows of two
 * tensors, of their QUANTIZEs' exponents: c = (top of e's row - top of f's row) / 2, rounded down;
 * without f, c = the top of e's row. E and F are the widths of their rows.
 */
#define QUANTIZE_SHIFT_MAX 126
/*
 * CONTRACT: out element (b0,b1,m0,m1,n0,n1) is stored at the sum of index*stride, a permutation of
 * out. Row of A is ((b0*B1+b1)*M0+m0)*M1+m1, of B likewise with n. With CAUSAL = T > 0, elements
 * whose n > m % T (m, n flat) are +0 and not computed.
 */
enum { CONTRACT_DIMS = CONTRACT_B0, CONTRACT_STRIDES = CONTRACT_SB0 };
/* Every row operation begins with these two. */
enum { ROWS = ROW_SUM_ROWS, COLUMNS = ROW_SUM_COLUMNS };
/*
 * SOFTMAX: with CAUSAL = T > 0 row r sees columns 0 .. r % T; the others are +0 and outside every
 * fold. With a reach, (S,T) for a multiple of S*T rows, it sees at most that many columns before
 * column r % T: the rows are (S,H,T), and every H reads the same reach.
 */

/* A target that takes no part. */
#define TARGET_IGNORED UINT32_MAX
/*
 * Part of the columns of a CROSS_ENTROPY_GRAD (engine/plan/slice.h): FIRST columns lie before it,
 * and the row has REST columns more than it. These stand behind the attributes of the kind, in the
 * private tape of a machine alone: op_check() refuses them. They are 0 where it has all columns.
 */
enum { CROSS_ENTROPY_FIRST = CROSS_ENTROPY_ATTRIBUTES, CROSS_ENTROPY_REST, CROSS_ENTROPY_PART };
enum reduce_function { REDUCE_MAX = 0, REDUCE_MIN, REDUCE_FUNCTION_COUNT };

#define OP_MAP_ENUMERATOR(NAME, ...)     MAP_##NAME,
#define OP_BINARY_ENUMERATOR(NAME, ...)  BINARY_##NAME,
#define OP_INTEGER_ENUMERATOR(NAME, ...) INTEGER_##NAME,
enum map_function { OP_MAP_CODES(OP_MAP_ENUMERATOR) MAP_FUNCTION_COUNT };
enum binary_function { OP_BINARY_CODES(OP_BINARY_ENUMERATOR) BINARY_FUNCTION_COUNT };
enum integer_function { OP_INTEGER_CODES(OP_INTEGER_ENUMERATOR) INTEGER_FUNCTION_COUNT };
enum scatter_function { SCATTER_ADD = 0, SCATTER_LAST };
/* What one rule reads of a row that is sorted, and of what is sent to one. */
#define SORT_COLUMNS_MAX  4096
#define SCATTER_WIDTH_MAX FOLD_CHUNK
/*
 * A general view: out has VIEW_AXES axes in row-major order, and an operand is read at the sum of
 * index * stride. A stride of 0 repeats the operand; the other strides are a permutation of it.
 */
#define VIEW_AXES         4
enum {
    BINARY_DIMS = BINARY_D0, /* of INTEGER too */
    BINARY_A_STRIDES = BINARY_A0,
    BINARY_B_STRIDES = BINARY_B0,
    SELECT_DIMS = SELECT_D0,
    SELECT_C_STRIDES = SELECT_C0,
    SELECT_A_STRIDES = SELECT_A0,
    SELECT_B_STRIDES = SELECT_B0,
};

/*
 * MOVE and PLACE address a tensor through MOVE_AXES axes with signed strides, and the OFFSET of the
 * element whose indexes are all 0. MOVE's out has these axes in row-major order, and x is
 * addressed; PLACE's x has them, and out is addressed. No element is addressed twice, but a stride
 * of 0 in MOVE repeats: in order of size, each stride is above the sum of (length-1)*stride of
 * those below it.
 */
#define MOVE_AXES 5
enum { MOVE_DIMS = MOVE_D0, MOVE_STRIDES = MOVE_S0 };

struct op {
    enum op_kind kind;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t attribute_count;
    uint32_t inputs[OP_INPUTS_MAX];   /* tensor ids */
    uint32_t outputs[OP_OUTPUTS_MAX]; /* tensor ids */
    int64_t attributes[OP_ATTRIBUTES_MAX];
};

static RULE inline uint64_t fold_chunks(uint64_t columns)
{
    return (columns + FOLD_CHUNK - 1) / FOLD_CHUNK;
}

/* SOFTMAX and its gradient: the input that holds the reach, if the operation has that many. */
static RULE inline uint32_t softmax_reach_input(enum op_kind kind)
{
    return kind == OP_SOFTMAX ? 1 : 2;
}

/* The columns that a row of a softmax sees, from..end-1; at least one. */
struct softmax_span {
    uint64_t from;
    uint64_t end;
};

/* Where the reach of a row stands, of reach_count. */
static RULE inline uint64_t softmax_reach_index(const int64_t *attributes, uint64_t reach_count,
                                                uint64_t row)
{
    uint64_t period = (uint64_t)attributes[SOFTMAX_CAUSAL];
    uint64_t sharers = (uint64_t)attributes[ROWS] / reach_count;

    return row / (period * sharers) * period + row % period;
}

/* reach: UINT32_MAX where there is none. */
static RULE inline struct softmax_span softmax_span_of(const int64_t *attributes, uint64_t row,
                                                       uint32_t reach)
{
    uint64_t columns = (uint64_t)attributes[COLUMNS];
    uint64_t period = (uint64_t)attributes[SOFTMAX_CAUSAL];
    uint64_t last = period == 0 || row % period >= columns ? columns - 1 : row % period;

    return (struct softmax_span){period == 0 || last < reach ? 0 : last - reach, last + 1};
}

/* The kind's name for people: "contract-onehot". NULL past the last kind. */
const char *op_kind_name(enum op_kind kind);

/* The same of a sound operation; of a MAP, a BINARY or an INTEGER that of its function: "gelu". */
const char *op_name(const struct op *op);

/*
 * Is op sound? Checks its counts, the ranges of its attributes, and that every tensor it touches
 * has the type and size that the attributes imply. Safe on hostile input: nothing overflows.
 */
MUST_CHECK enum status op_check(const struct op *op, const struct tensor *tensors,
                                uint32_t tensor_count, struct error *error);

#endif /* ENGINE_OPS_OP_H */
