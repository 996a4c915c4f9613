/*
 * contraction.h - what quantization and exact contraction share: geometry, bounds, the last step.
 *
 * A row of K elements is cut into blocks (one exponent each) and pieces (one peak each, so that no
 * rule reads more than 128 elements for a maximum). An exact contraction is an integer sum S of
 * products of quantized elements, shifted by their blocks' exponents, and one conversion of S to
 * binary32. docs/ARITHMETIC.md states it in mathematics.
 *
 * Why 64 bits are enough. |q| <= 2^(bits-1) - 1 by the symmetric clamp, and a block's exponent
 * lies at most W above the row's smallest (exponents are raised to at least top - W). So   |S| <=
 * K * (2^(bits-1) - 1)^2 * 2^(2W) < 2^(ceil(log2 K) + 2(bits-1) + 2W) <= 2^62 because W =
 * floor((62 - 2(bits-1) - ceil(log2 K)) / 2). Every partial sum obeys the same bound, so any cut
 * of K over threads, tiles or processes adds up without overflow.
 *
 * The packed layout of the CPU's kernels. Their OP_QUANTIZE writes it and CONTRACT, ONES and
 * ONEHOT read it. It depends only on rows, K, bits and block: see cpu/contraction_packed.h.
 * The buffer of a packed q has contraction_packed_size() bytes, aligned to 64; exponents stay
 * canonical; peaks may be NULL. The rules do not know this layout.
 *
 * Nothing here allocates. Callers guarantee what op_check() checks. A rule accepts any values of
 * elements without undefined behaviour, since it also judges what a cheating solver wrote. A
 * kernel reads only what its own quantize wrote.
 */
#ifndef ENGINE_OPS_CONTRACTION_H
#define ENGINE_OPS_CONTRACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/ops/op.h"
#include "engine/ops/real.h"

#define CONTRACTION_PIECE     128 /* longest piece */
#define CONTRACTION_BLOCK_MIN 16
#define CONTRACTION_BLOCK_MAX (INT64_C(1) << 20)

/* Exponents: of a row of zeros, and of a block that holds a NaN or an infinity. */
#define EXPONENT_ZERO   (-149)
#define EXPONENT_POISON 129

struct contraction_shape {
    int bits;
    int64_t k;          /* elements of a row */
    int64_t block;      /* elements of a block; the last may be shorter */
    int64_t piece;      /* elements of a piece; a block is a whole number of pieces */
    int64_t blocks;     /* per row */
    int64_t pieces;     /* per row */
    int64_t block_span; /* pieces of a block */
    int window;         /* W */
};

/* Smallest n with value <= 2^n; value is at least 1. */
static RULE inline int ceil_log2(uint64_t value)
{
    return value == 1 ? 0 : 64 - __builtin_clzll(value - 1);
}

/* W, or -1 where bits and k leave no room: op_check() refuses that. */
static RULE inline int contraction_window(int64_t bits, int64_t k)
{
    int64_t room = 62 - 2 * (bits - 1) - ceil_log2((uint64_t)k);

    return room < 0 ? -1 : (int)(room / 2);
}

static RULE inline bool contraction_bits_known(int64_t bits)
{
    return bits == 14 || bits == 15 || bits == 16 || bits == 22;
}

/* 0 (the whole row) or a power of two in range. */
static RULE inline bool contraction_block_known(int64_t block)
{
    return block == 0 || (block >= CONTRACTION_BLOCK_MIN && block <= CONTRACTION_BLOCK_MAX &&
                          (block & (block - 1)) == 0);
}

static RULE inline struct contraction_shape contraction_shape(int64_t k, int64_t bits,
                                                              int64_t block)
{
    struct contraction_shape shape = {.bits = (int)bits, .k = k};

    shape.block = block == 0 ? k : block;
    shape.piece = block == 0 || block > CONTRACTION_PIECE ? CONTRACTION_PIECE : block;
    shape.blocks = (k + shape.block - 1) / shape.block;
    shape.pieces = (k + shape.piece - 1) / shape.piece;
    shape.block_span = (shape.block + shape.piece - 1) / shape.piece;
    shape.window = contraction_window(bits, k);
    return shape;
}

/* The input slots of a kind's quantized operands: q, whose exponents follow. Returns how many. */
uint32_t contraction_slots(uint32_t slots[2], enum op_kind kind);

/* The shape of the rows that a quantize, contract, ones or onehot operation works on. */
RULE struct contraction_shape contraction_shape_of(const struct op *op);

/* Rows of a quantize operation's result: batch0 * batch1 * row0 * row1. */
static RULE inline int64_t quantize_rows(const struct op *op)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];

    return dims[0] * dims[1] * dims[2] * dims[3];
}

/* Does a quantize operation read its elements shifted? */
static RULE inline bool quantize_is_shifted(const struct op *op)
{
    return op->kind == OP_QUANTIZE && op->input_count == 2;
}

/* Where the shift of element k of a row stands in c. */
static RULE inline uint64_t quantize_shift_place(const struct op *op, uint64_t row, uint64_t k)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];

    return row / (uint64_t)(dims[2] * dims[3]) * (uint64_t)(dims[4] * dims[5]) + k;
}

/* 2^-c, of which no more than QUANTIZE_SHIFT_MAX places count. */
static RULE inline float quantize_factor(int c)
{
    int place = c > QUANTIZE_SHIFT_MAX    ? -QUANTIZE_SHIFT_MAX
                : c < -QUANTIZE_SHIFT_MAX ? QUANTIZE_SHIFT_MAX
                                          : -c;

    return real_from_bits((uint32_t)(place + 127) << 23);
}

/* x * factor, rounded once; a finite x stays finite. A NaN or an infinity stays one of the two. */
static RULE inline float quantize_shifted(float x, float factor)
{
    float shifted = x * factor;
    uint32_t infinity = real_to_bits(shifted) & UINT32_C(0x7fffffff);

    if (infinity == UINT32_C(0x7f800000) &&
        (real_to_bits(x) & UINT32_C(0x7fffffff)) < UINT32_C(0x7f800000)) {
        return real_from_bits(real_to_bits(shifted) - 1);
    }
    return shifted;
}

/* Place in x of element k of row, through the operation's view. */
RULE uint64_t quantize_place(const struct op *op, uint64_t row, uint64_t k);

/* E(x): smallest e with |x| < 2^e; EXPONENT_ZERO for zero, EXPONENT_POISON for NaN and infinity. */
static RULE inline int exponent_of_bits(uint32_t bits)
{
    uint32_t magnitude = bits & UINT32_C(0x7fffffff);

    if (magnitude >= UINT32_C(0x7f800000)) {
        return EXPONENT_POISON;
    }
    if (magnitude >= UINT32_C(0x00800000)) {
        return (int)(magnitude >> 23) - 126;
    }
    return magnitude == 0 ? EXPONENT_ZERO : EXPONENT_ZERO + 32 - __builtin_clz(magnitude);
}

/* One row of a quantized operand, in canonical layout; q is int16_t, or int32_t for 22 bits. */
struct quantized_row {
    const void *q;
    const int16_t *exponents;
};

/* The smallest exponent of a row's blocks; *poison: is one of them EXPONENT_POISON? */
RULE int contraction_lowest(bool *poison, const int16_t *exponents, int64_t blocks);

/*
 * The part of S from the blocks [first, last) of two rows. The parts of any cut of the blocks add
 * up to S, modulo 2^64.
 */
RULE int64_t contraction_partial(const struct contraction_shape *shape,
                                 const struct quantized_row *a, const struct quantized_row *b,
                                 int64_t first, int64_t last);

/*
 * The last step of every contraction: RNE(sum) to binary32, times 2^exponent, rounded once more
 * only where the result is subnormal; overflow gives infinity, a sum of 0 gives +0. Raw bits.
 */
RULE uint32_t contraction_finish(int64_t sum, int exponent);

/* Bytes of the packed q of a quantize operation; a multiple of 64. */
size_t contraction_packed_size(const struct op *quantize);

#endif /* ENGINE_OPS_CONTRACTION_H */
