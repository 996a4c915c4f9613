/*
 * op.h - the operations that a training step is made of.
 *
 * An operation has a kind, integer attributes, and input and output tensor ids. Each output has one
 * rule (rule.h), a small pure function of one element's position. The rules define the arithmetic.
 * docs/ARITHMETIC.md states the same in mathematics; kernels, the CUDA backend and the contract
 * translate it.
 *
 * Attributes named *_bits hold the bit pattern of a binary32 constant. Operations read tensors as
 * flat arrays whose sizes the attributes give; op_check() refuses any other size.
 *
 * Folds: fold(v_0..v_n-1) is the canonical sum of fold.h: chunks of FOLD_CHUNK elements are
 * outputs of their own ("part", (rows, chunks)), and the total is the fold of the parts.
 */
#ifndef ENGINE_OPS_OP_H
#define ENGINE_OPS_OP_H

#include <stdint.h>

#include "base/error.h"
#include "engine/ops/tensor.h"

#define OP_INPUTS_MAX     8
#define OP_OUTPUTS_MAX    8
#define OP_ATTRIBUTES_MAX 16

/* Lanes and chunk length of the canonical fold. */
#define FOLD_LANES 32
#define FOLD_CHUNK 1024

#define FLOAT_NAN_BITS UINT32_C(0x7fc00000)

enum op_kind {
    /* ---- step number, schedules, batches, randomness ---- */
    OP_STEP_NEXT = 0, /* in step u32(1); out step+1                                             */
    OP_SCHEDULE,      /* in table(rows*columns), step; out (1): table[min(step,rows-1)][column] */
    OP_FILL,          /* out f32|u32(count): the constant                                      */
    OP_BATCH_TOKENS,  /* in data u8|u16|u32(n), step; out tokens u32(B,T), targets u32(B,T)     */
    OP_BATCH_SAMPLES, /* in samples u8|f32(n,width), labels u8|u16|u32(n), step;
                         out x f32(B,width) = sample*scale, y u32(B)                             */
    OP_DROPOUT,       /* in x(count), step u32(1); out keep ? x*scale : +0                       */
    /* ---- moving data ---- */
    OP_GATHER, /* in table(V,C), index u32(R); out (R,C); an index >= V gives NaN                */
    OP_SPLIT,  /* in x(R,N); out parts (R,n_i), side by side                                     */
    OP_CONCAT, /* in parts (R,n_i); out (R,N)                                                    */
    OP_EXPAND, /* in a; out[i] = a[(i/div)%mod]                                                  */
    OP_IM2COL, /* in x(B,H,W,C); out (B*OH*OW, KH*KW*C), outside the picture +0                  */
    OP_COL2IM, /* the adjoint: in (B*OH*OW, KH*KW*C); out (B,H,W,C), sums in order of (ky,kx)    */
    /* ---- element by element; the second operand is read at (i/div)%mod ---- */
    OP_ADD,       /* a+b                                                                         */
    OP_MUL,       /* a*b                                                                         */
    OP_SCALE,     /* a*constant                                                                  */
    OP_RELU,      /* x>0 ? x : +0 (NaN stays NaN)                                                */
    OP_RELU_GRAD, /* in x, dy; x>0 ? dy : +0 (NaN if x is NaN)                                   */
    OP_GELU,      /* tanh form                                                                   */
    OP_GELU_GRAD, /* in x, dy                                                                    */
    OP_SILU,      /* x*sigmoid(x)                                                                */
    OP_SILU_GRAD, /* in x, dy                                                                    */
    OP_ROTARY,    /* in x(outer,T,heads*D), table(T,D/2,2) of cos,sin; pairs (2j,2j+1) turn, or,
                     with HALVES, (j,j+D/2)                                                  */
    OP_SQUARED_ERROR,      /* in a, b; (a-b)^2                                                   */
    OP_SQUARED_ERROR_GRAD, /* in a, b, dy; 2*(a-b)*dy                                            */
    /* ---- exact contraction ---- */
    OP_QUANTIZE,        /* in x[, c i16(batches,K)]; out peaks i16(rows,pieces), exponents
                           i16(rows,blocks), q i16|i32(rows,K)                                   */
    OP_CONTRACT,        /* in qa, ea, qb, eb; out (batch,M,N) through a permuted view            */
    OP_CONTRACT_ONES,   /* in q, e; out (rows): sum over K                                       */
    OP_CONTRACT_ONEHOT, /* in index u32(K), q(C,K), e; out (V,C): sum over k with index[k]==v     */
    /* ---- rows ---- */
    OP_ROW_SUM,            /* in x(R,N); out part(R,chunks), sum(R)                              */
    OP_LAYER_NORM,         /* in x, gain, bias; out sum_part, mean, square_part, rstd, y         */
    OP_LAYER_NORM_GRAD,    /* in dy, x, gain, mean, rstd;
                              out part_g, part_gx, mean_g, mean_gx, dx, product                  */
    OP_RMS_NORM,           /* in x, gain; out square_part, rstd, y                               */
    OP_RMS_NORM_GRAD,      /* in dy, x, gain, rstd; out part_gx, mean_gx, dx, product            */
    OP_SOFTMAX,            /* in x[, reach u32]; out max_part, max, exps, sum_part, sum, p       */
    OP_SOFTMAX_GRAD,       /* in p, dp[, reach u32]; out dot_part, dot, dx                       */
    OP_CROSS_ENTROPY,      /* in x(R,V), target u32(R); out max_part, max, exps, sum_part, sum,
                              loss(R); a target of TARGET_IGNORED has loss +0                    */
    OP_CROSS_ENTROPY_GRAD, /* in x, target, max, sum, dloss(R); out dx, +0 in ignored rows       */
    /* ---- pictures, (B,H,W,C) ---- */
    OP_MAX_POOL,       /* in x; out y, index u32: place of the first maximum in its window       */
    OP_MAX_POOL_GRAD,  /* in index, dy; out dx                                                   */
    OP_MEAN_POOL,      /* in x; out y                                                            */
    OP_MEAN_POOL_GRAD, /* in dy; out dx                                                          */
    /* ---- the update ---- */
    OP_CLIP_FACTOR, /* in squared norm(1); out norm > limit ? limit/norm : 1                     */
    OP_SGD,         /* in p, g, v, rate(1), gscale(1); out p', v'                                */
    OP_ADAMW,       /* in p, g, m, v, rate(1), correct1(1), correct2(1), gscale(1); out p',m',v' */
    /* ---- general: a function code over views of up to four axes ---- */
    OP_MAP,    /* in x; out function(x), element by element                                      */
    OP_BINARY, /* in a, b; out function(a, b), each read through strides that may repeat it      */
    OP_SELECT, /* in c f32|u32|u8, a, b, read likewise; out c != 0 ? a : b, the bits; a, b and
                  out are all f32 or all u32                                                    */
    OP_MOVE,  /* in x; out[i] = x at offset + sums of index*stride: permute, slice, flip, repeat  */
    OP_PLACE, /* in x, base(1) or base(out); out = base, and x over it at such a place: pad, join */
    /* ---- the extreme of a row, and one element of each ---- */
    OP_REDUCE,               /* in x(R,N); out part(R,chunks), part_index u32(R,chunks), y(R),
                                index u32(R): the first maximum or minimum of each row           */
    OP_GATHER_ELEMENTS,      /* in x(R,N), index u32(R); out x[r,index[r]]; NaN past the row     */
    OP_GATHER_ELEMENTS_GRAD, /* in index u32(R), dy(R); out (R,N): dy[r] at index[r], else +0    */
    /* ---- exact contraction, continued ---- */
    OP_EQUILIBRATE, /* in e i16(rows,A)[, f i16(rows,B)]; out c i16(rows), -c                    */
    OP_CAST,        /* in x; out the same numbers as f32, or from f32 to f16, bf16 or i32         */
    OP_KIND_COUNT,
};

/* Attribute positions, kind by kind. */
enum { SCHEDULE_COLUMNS, SCHEDULE_COLUMN, SCHEDULE_ATTRIBUTES };
enum { FILL_VALUE_BITS, FILL_ATTRIBUTES };
/* The seed has 64 bits, in two halves; operations with different streams draw different numbers. */
enum {
    BATCH_COUNT,  /* B */
    BATCH_LENGTH, /* T, or the width of a sample */
    BATCH_STREAM,
    BATCH_SEED_LOW,
    BATCH_SEED_HIGH,
    BATCH_SCALE_BITS, /* samples only */
    BATCH_TOKENS_ATTRIBUTES = BATCH_SCALE_BITS,
    BATCH_SAMPLES_ATTRIBUTES,
};
/* An element survives when its random word is >= threshold. */
enum {
    DROPOUT_THRESHOLD,
    DROPOUT_SCALE_BITS,
    DROPOUT_STREAM,
    DROPOUT_SEED_LOW,
    DROPOUT_SEED_HIGH,
    DROPOUT_ATTRIBUTES
};
enum { GATHER_VOCABULARY, GATHER_WIDTH, GATHER_ATTRIBUTES };
enum { SPLIT_ROWS, SPLIT_WIDTHS }; /* then one width per part */
enum { EXPAND_DIV, EXPAND_MOD, EXPAND_ATTRIBUTES };
/* Windows over pictures. Place (ky,kx) of window (oy,ox) lies at row oy*STRIDE_Y - TOP +
 * ky*DILATION_Y, and likewise in columns. */
enum {
    IMAGE_BATCH,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    IMAGE_CHANNELS,
    IMAGE_KERNEL_HEIGHT,
    IMAGE_KERNEL_WIDTH,
    IMAGE_STRIDE_Y,
    IMAGE_STRIDE_X,
    IMAGE_TOP, /* padding */
    IMAGE_LEFT,
    IMAGE_BOTTOM,
    IMAGE_RIGHT,
    IMAGE_DILATION_Y,
    IMAGE_DILATION_X,
    IMAGE_ATTRIBUTES,
    /* Mean pools: 0: a window is divided by its places in the picture; 1: by all of them. */
    MEAN_POOL_COUNTS_PADDING = IMAGE_ATTRIBUTES,
    MEAN_POOL_ATTRIBUTES,
};
/*
 * The most elements that one rule reads of a window, or through windows. Each may lie in a leaf of
 * its own, and the proofs of all of them must fit one transaction of a ledger.
 */
#define IMAGE_WINDOW_MAX 64
#define IMAGE_KERNEL_MAX 64 /* places of a window in one direction */
enum { BROADCAST_DIV, BROADCAST_MOD, BROADCAST_ATTRIBUTES }; /* ADD, MUL */
enum { SCALE_FACTOR_BITS, SCALE_ATTRIBUTES };
enum {
    ROTARY_LENGTH,
    ROTARY_HEADS,
    ROTARY_WIDTH,
    ROTARY_INVERSE,
    ROTARY_HALVES,
    ROTARY_ATTRIBUTES
};
/*
 * QUANTIZE reads x through a view: six axes (batch0, batch1, row0, row1, k0, k1) with strides,
 * which must be a permutation of x's elements. Rows of the result are (batch0, batch1, row0, row1)
 * in that order, K = k0*k1. BLOCK is 0 (the whole row) or a power of two from 16.
 */
enum {
    QUANTIZE_DIMS = 0,
    QUANTIZE_STRIDES = 6,
    QUANTIZE_BITS = 12,
    QUANTIZE_BLOCK,
    QUANTIZE_ATTRIBUTES
};
/*
 * With c, element k of a row of batch b counts as x * 2^-c[b*K+k]. The other operand of a product
 * has -c, so the product is that of x, and elements that are large or small along K in one operand
 * and not in the other leave each other bits. EQUILIBRATE makes such a pair for K rows of two
 * tensors, of their QUANTIZEs' exponents: c = (top of e's row - top of f's row) / 2, rounded down;
 * without f, c = the top of e's row.
 */
#define QUANTIZE_SHIFT_MAX 126
enum { EQUILIBRATE_ROWS, EQUILIBRATE_E, EQUILIBRATE_F, EQUILIBRATE_ATTRIBUTES };
/*
 * CONTRACT: out element (b0,b1,m0,m1,n0,n1) is stored at the sum of index*stride, a permutation of
 * out. Row of A is ((b0*B1+b1)*M0+m0)*M1+m1, of B likewise with n. With CAUSAL = T > 0, elements
 * whose n > m % T (m, n flat) are +0 and not computed.
 */
enum {
    CONTRACT_DIMS = 0, /* B0 B1 M0 M1 N0 N1 */
    CONTRACT_STRIDES = 6,
    CONTRACT_K = 12,
    CONTRACT_BITS,
    CONTRACT_BLOCK,
    CONTRACT_CAUSAL,
    CONTRACT_ATTRIBUTES
};
enum { ONES_ROWS, ONES_K, ONES_BITS, ONES_BLOCK, ONES_ATTRIBUTES };
enum { ONEHOT_VOCABULARY, ONEHOT_WIDTH, ONEHOT_K, ONEHOT_BITS, ONEHOT_BLOCK, ONEHOT_ATTRIBUTES };
/* Every row operation begins with these two. */
enum { ROWS, COLUMNS, ROW_SUM_ATTRIBUTES };
enum { NORM_EPSILON_BITS = 2, NORM_ATTRIBUTES, NORM_GRAD_ATTRIBUTES = 2 };
/*
 * With CAUSAL = T > 0 row r sees columns 0 .. r % T; the others are +0 and outside every fold. With
 * a reach, (S,T) for a multiple of S*T rows, it sees at most that many columns before column r % T:
 * the rows are (S,H,T), and every H reads the same reach.
 */
enum { SOFTMAX_CAUSAL = 2, SOFTMAX_SCALE_BITS, SOFTMAX_ATTRIBUTES };
enum { CROSS_ENTROPY_ATTRIBUTES = 2 };
/* A target that takes no part. */
#define TARGET_IGNORED UINT32_MAX
enum reduce_function { REDUCE_MAX = 0, REDUCE_MIN, REDUCE_FUNCTION_COUNT };
enum { REDUCE_FUNCTION = 2, REDUCE_ATTRIBUTES, GATHER_ELEMENTS_ATTRIBUTES = 2 };
enum { CLIP_LIMIT_BITS, CLIP_ATTRIBUTES };
enum { SGD_MOMENTUM_BITS, SGD_DECAY_BITS, SGD_ATTRIBUTES };
enum {
    ADAMW_BETA1_BITS,
    ADAMW_ONE_LESS_BETA1_BITS,
    ADAMW_BETA2_BITS,
    ADAMW_ONE_LESS_BETA2_BITS,
    ADAMW_EPSILON_BITS,
    ADAMW_DECAY_BITS,
    ADAMW_ATTRIBUTES
};

/* MAP: the function. docs/ARITHMETIC.md has their steps and bounds. */
enum map_function {
    MAP_NEG = 0,
    MAP_ABS,
    MAP_SIGN, /* -1, +0 or 1 */
    MAP_FLOOR,
    MAP_CEIL,
    MAP_ROUND, /* ties to even */
    MAP_SQRT,
    MAP_RSQRT,
    MAP_RECIPROCAL,
    MAP_EXP,
    MAP_LOG,
    MAP_TANH,
    MAP_SIGMOID,
    MAP_ERF,
    MAP_SIN,
    MAP_COS,
    MAP_GELU_ERF,       /* x * Phi(x) */
    MAP_GELU_ERF_SLOPE, /* its derivative */
    MAP_FUNCTION_COUNT,
};
enum { MAP_FUNCTION, MAP_ATTRIBUTES };
/* BINARY: the function. A comparison gives 1 or +0; with a NaN only NOT_EQUAL holds. */
enum binary_function {
    BINARY_ADD = 0,
    BINARY_SUB,
    BINARY_MUL,
    BINARY_DIV,
    BINARY_MAX, /* NaN if either is; a where they are equal */
    BINARY_MIN,
    BINARY_POW,
    BINARY_LESS,
    BINARY_LESS_EQUAL,
    BINARY_EQUAL,
    BINARY_NOT_EQUAL,
    BINARY_FUNCTION_COUNT,
};
/*
 * A general view: out has VIEW_AXES axes in row-major order, and an operand is read at the sum of
 * index * stride. A stride of 0 repeats the operand; the other strides are a permutation of it.
 */
#define VIEW_AXES 4
enum {
    BINARY_FUNCTION,
    BINARY_DIMS,
    BINARY_A_STRIDES = BINARY_DIMS + VIEW_AXES,
    BINARY_B_STRIDES = BINARY_A_STRIDES + VIEW_AXES,
    BINARY_ATTRIBUTES = BINARY_B_STRIDES + VIEW_AXES,
};
enum {
    SELECT_DIMS = 0,
    SELECT_C_STRIDES = SELECT_DIMS + VIEW_AXES,
    SELECT_A_STRIDES = SELECT_C_STRIDES + VIEW_AXES,
    SELECT_B_STRIDES = SELECT_A_STRIDES + VIEW_AXES,
    SELECT_ATTRIBUTES = SELECT_B_STRIDES + VIEW_AXES,
};

/*
 * MOVE and PLACE address a tensor through MOVE_AXES axes with signed strides, and the OFFSET of the
 * element whose indexes are all 0. MOVE's out has these axes in row-major order, and x is
 * addressed; PLACE's x has them, and out is addressed. No element is addressed twice, but a stride
 * of 0 in MOVE repeats: in order of size, each stride is above the sum of (length-1)*stride of
 * those below it.
 */
#define MOVE_AXES 5
enum { MOVE_DIMS = 0, MOVE_STRIDES = MOVE_AXES, MOVE_OFFSET = 2 * MOVE_AXES, MOVE_ATTRIBUTES };

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

/*
 * Is op sound? Checks its counts, the ranges of its attributes, and that every tensor it touches
 * has the type and size that the attributes imply. Safe on hostile input: nothing overflows.
 */
MUST_CHECK enum status op_check(const struct op *op, const struct tensor *tensors,
                                uint32_t tensor_count, struct error *error);

#endif /* ENGINE_OPS_OP_H */
