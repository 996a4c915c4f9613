/*
 * contraction.c - see contraction.h. Integers only: no rounding mode or control word matters here.
 */
#include "engine/ops/contraction.h"

#include <assert.h>

RULE struct contraction_shape contraction_shape_of(const struct op *op)
{
    const int64_t *a = op->attributes;

    if (op->kind == OP_QUANTIZE) {
        return contraction_shape(a[QUANTIZE_DIMS + 4] * a[QUANTIZE_DIMS + 5], a[QUANTIZE_BITS],
                                 a[QUANTIZE_BLOCK]);
    }
    if (op->kind == OP_CONTRACT) {
        return contraction_shape(a[CONTRACT_K], a[CONTRACT_BITS], a[CONTRACT_BLOCK]);
    }
    if (op->kind == OP_CONTRACT_ONES) {
        return contraction_shape(a[ONES_K], a[ONES_BITS], a[ONES_BLOCK]);
    }
    if (op->kind == OP_CONTRACT_CHOSEN) {
        return contraction_shape(a[CHOSEN_K], a[CHOSEN_BITS], a[CHOSEN_BLOCK]);
    }
    if (op->kind == OP_CONTRACT_CHOSEN_ROWS) {
        return contraction_shape(a[CHOSEN_SUM_K], a[CHOSEN_SUM_BITS], a[CHOSEN_SUM_BLOCK]);
    }
    assert(op->kind == OP_CONTRACT_ONEHOT);
    return contraction_shape(a[ONEHOT_K], a[ONEHOT_BITS], a[ONEHOT_BLOCK]);
}

uint32_t contraction_slots(uint32_t slots[2], enum op_kind kind)
{
    static const struct {
        uint8_t count;
        uint8_t slots[2];
    } operands[OP_KIND_COUNT] = {
        [OP_CONTRACT] = {2, {0, 2}},
        [OP_CONTRACT_ONES] = {1, {0}},
        [OP_CONTRACT_ONEHOT] = {1, {1}},
        [OP_CONTRACT_CHOSEN] = {2, {0, 3}},
        [OP_CONTRACT_CHOSEN_ROWS] = {2, {1, 3}},
    };

    for (uint32_t i = 0; i < operands[kind].count; i++) {
        slots[i] = operands[kind].slots[i];
    }
    return operands[kind].count;
}

RULE uint64_t quantize_place(const struct op *op, uint64_t row, uint64_t k)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    uint64_t place = 0;

    for (int axis = 3; axis >= 0; axis--) {
        place += row % (uint64_t)dims[axis] * (uint64_t)strides[axis];
        row /= (uint64_t)dims[axis];
    }
    for (int axis = 5; axis >= 4; axis--) {
        place += k % (uint64_t)dims[axis] * (uint64_t)strides[axis];
        k /= (uint64_t)dims[axis];
    }
    return place;
}

RULE int contraction_lowest(bool *poison, const int16_t *exponents, int64_t blocks)
{
    int lowest = exponents[0];

    *poison = false;
    for (int64_t b = 0; b < blocks; b++) {
        if (exponents[b] < lowest) {
            lowest = exponents[b];
        }
        if (exponents[b] == EXPONENT_POISON) {
            *poison = true;
        }
    }
    return lowest;
}

/* Sums are unsigned: hostile values wrap, and nothing is undefined. */
static RULE int64_t dot_of_16(const int16_t *a, const int16_t *b, int64_t count)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < count; i++) {
        sum += (uint64_t)(int64_t)((int32_t)a[i] * b[i]);
    }
    return (int64_t)sum;
}

static RULE int64_t dot_of_32(const int32_t *a, const int32_t *b, int64_t count)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < count; i++) {
        sum += (uint64_t)((int64_t)a[i] * b[i]);
    }
    return (int64_t)sum;
}

RULE int64_t contraction_partial(const struct contraction_shape *shape,
                                 const struct quantized_row *a, const struct quantized_row *b,
                                 int64_t first, int64_t last)
{
    bool poison;
    int base = contraction_lowest(&poison, a->exponents, shape->blocks) +
               contraction_lowest(&poison, b->exponents, shape->blocks);
    uint64_t sum = 0;

    for (int64_t i = first; i < last; i++) {
        int64_t start = i * shape->block;
        int64_t count = shape->k - start < shape->block ? shape->k - start : shape->block;
        int shift = a->exponents[i] + b->exponents[i] - base;
        int64_t part;

        if (shape->bits == 22) {
            part = dot_of_32((const int32_t *)a->q + start, (const int32_t *)b->q + start, count);
        } else {
            part = dot_of_16((const int16_t *)a->q + start, (const int16_t *)b->q + start, count);
        }
        sum += shift < 64 ? (uint64_t)part << shift : 0;
    }
    return (int64_t)sum;
}

/* RNE(value / 2^drop) for any drop >= 0. */
static RULE uint64_t shift_right_rne(uint64_t value, int drop)
{
    if (drop == 0) {
        return value;
    }
    if (drop > 63) {
        /* Callers pass value < 2^63, less than half of 2^64: RNE gives 0. */
        return 0;
    }
    uint64_t kept = value >> drop;
    uint64_t rest = value & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);

    return kept + (rest > half || (rest == half && (kept & 1)));
}

RULE uint32_t contraction_finish(int64_t sum, int exponent)
{
    if (sum == 0) {
        return 0;
    }
    uint32_t sign = sum < 0 ? UINT32_C(0x80000000) : 0;
    uint64_t magnitude = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
    int length = 64 - __builtin_clzll(magnitude);

    /* First rounding: to 24 significant bits. A carry to 2^24 is again 24 bits, one place up. */
    if (length > 24) {
        magnitude = shift_right_rne(magnitude, length - 24);
        exponent += length - 24;
    } else {
        magnitude <<= 24 - length;
        exponent -= 24 - length;
    }
    if (magnitude >> 24) {
        magnitude >>= 1;
        exponent++;
    }

    /* The value is magnitude * 2^exponent with 2^23 <= magnitude < 2^24. */
    if (exponent > 104) {
        return sign | UINT32_C(0x7f800000);
    }
    if (exponent < EXPONENT_ZERO) {
        /* Subnormal: the second rounding. A carry to 2^23 encodes the smallest normal by itself. */
        return sign | (uint32_t)shift_right_rne(magnitude, EXPONENT_ZERO - exponent);
    }
    return sign | ((uint32_t)(exponent + 150) << 23) | ((uint32_t)magnitude & UINT32_C(0x7fffff));
}
