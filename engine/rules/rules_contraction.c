/*
 * rules_contraction.c - the rules of quantization and exact contraction.
 *
 * Integer arithmetic on the bits of binary32. A cheating solver may have written the inputs, with
 * exponents and integers that no quantize operation gives. Every rule is total: sums wrap modulo
 * 2^64, and a term shifted by 64 or more is 0. On honest inputs nothing wraps (contraction.h).
 */
#include "engine/ops/contraction.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

static RULE int exponent_at(const struct operand *exponents, uint64_t index)
{
    return (int)(int32_t)operand_get(exponents, index);
}

RULE uint32_t rule_part_finish(const struct rule_part *part)
{
    if (part->settled) {
        return part->bits;
    }
    return part->fold == RULE_MAXIMUM ? (uint32_t)part->value
                                      : contraction_finish(part->value, part->exponent);
}

/* ---- equilibrate: exponents -> c, -c ---- */

static RULE int top_of(const struct operand *exponents, uint64_t row, uint64_t width)
{
    int top = INT16_MIN;

    for (uint64_t i = 0; i < width; i++) {
        int exponent = exponent_at(exponents, row * width + i);

        top = exponent > top ? exponent : top;
    }
    return top;
}

static RULE int equilibrium_of(const struct rule_call *call, uint64_t row)
{
    const int64_t *attributes = call->op->attributes;
    int top = top_of(&call->inputs[0], row, (uint64_t)attributes[EQUILIBRATE_E]);
    int apart;

    if (call->op->input_count < 2) {
        return top;
    }
    apart = top - top_of(&call->inputs[1], row, (uint64_t)attributes[EQUILIBRATE_F]);
    return (apart - (apart & 1)) / 2;
}

RULE uint32_t rule_equilibrate(const struct rule_call *call, uint64_t index)
{
    return (uint32_t)equilibrium_of(call, index);
}

RULE uint32_t rule_equilibrate_minus(const struct rule_call *call, uint64_t index)
{
    return (uint32_t)-equilibrium_of(call, index);
}

/* ---- quantize: x -> peaks, exponents, integers ---- */

/* Element k of a row as it counts: with its shift, if there is one. */
static RULE uint32_t quantize_read(const struct rule_call *call, uint64_t row, uint64_t k)
{
    uint32_t x = operand_number(&call->inputs[0], quantize_place(call->op, row, k));

    if (!quantize_is_shifted(call->op)) {
        return x;
    }
    int c = exponent_at(&call->inputs[1], quantize_shift_place(call->op, row, k));

    return real_to_bits(quantize_shifted(real_from_bits(x), quantize_factor(c)));
}

/* Elements of the piece whose peak is at index. */
static RULE uint64_t piece_length(const struct contraction_shape *shape, uint64_t index)
{
    int64_t start = (int64_t)(index % (uint64_t)shape->pieces) * shape->piece;

    return (uint64_t)(shape->k - start < shape->piece ? shape->k - start : shape->piece);
}

RULE void rule_quantize_peak_part(struct rule_part *part, const struct rule_call *call,
                                  uint64_t index, uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    uint64_t row = index / (uint64_t)shape.pieces;
    uint64_t start = index % (uint64_t)shape.pieces * (uint64_t)shape.piece;

    part->fold = RULE_MAXIMUM;
    part->value = EXPONENT_ZERO;
    for (uint64_t k = start + from; k < start + to; k++) {
        int exponent = exponent_of_bits(quantize_read(call, row, k));

        part->value = exponent > part->value ? exponent : part->value;
    }
}

RULE uint32_t rule_quantize_peak(const struct rule_call *call, uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct rule_part part = {.fold = RULE_MAXIMUM};

    rule_quantize_peak_part(&part, call, index, 0, piece_length(&shape, index));
    return rule_part_finish(&part);
}

/* The largest of the block's own peaks, or top - W: each peak counts as it is in its block, and
 * less by W elsewhere. */
RULE void rule_quantize_exponent_part(struct rule_part *part, const struct rule_call *call,
                                      uint64_t index, uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    uint64_t row = index / (uint64_t)shape.blocks;
    uint64_t first = index % (uint64_t)shape.blocks * (uint64_t)shape.block_span;
    uint64_t end = first + (uint64_t)shape.block_span;
    const struct operand *peaks = &call->outputs[QUANTIZE_PEAKS_OUT];

    part->value = INT32_MIN;
    for (uint64_t p = from; p < to; p++) {
        int peak = exponent_at(peaks, row * (uint64_t)shape.pieces + p);

        peak -= p >= first && p < end ? 0 : shape.window;
        part->value = peak > part->value ? peak : part->value;
    }
}

RULE uint32_t rule_quantize_exponent(const struct rule_call *call, uint64_t index)
{
    struct rule_part part = {.fold = RULE_MAXIMUM};

    rule_quantize_exponent_part(&part, call, index, 0,
                                (uint64_t)contraction_shape_of(call->op).pieces);
    return rule_part_finish(&part);
}

/* RNE(magnitude * 2^shift), or limit if that is smaller; magnitude < 2^24. */
static RULE uint32_t scale_clamped(uint32_t magnitude, int shift, uint32_t limit)
{
    if (magnitude == 0 || shift < -25) {
        return 0; /* less than one half */
    }
    if (shift >= 24) {
        return limit; /* at least 2^24, and limit < 2^22 */
    }
    uint64_t value = magnitude;

    if (shift >= 0) {
        value <<= shift;
    } else {
        uint64_t half = UINT64_C(1) << (-shift - 1);
        uint64_t rest = value & (2 * half - 1);

        value >>= -shift;
        value += rest > half || (rest == half && (value & 1));
    }
    return value < limit ? (uint32_t)value : limit;
}

RULE uint32_t rule_quantize_integer(const struct rule_call *call, uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    uint64_t row = index / (uint64_t)shape.k;
    uint64_t k = index % (uint64_t)shape.k;
    uint64_t block = row * (uint64_t)shape.blocks + k / (uint64_t)shape.block;
    int exponent = exponent_at(&call->outputs[QUANTIZE_EXPONENTS_OUT], block);
    uint32_t x = quantize_read(call, row, k);

    if (exponent == EXPONENT_POISON) {
        return 0;
    }
    /* x = significand * 2^(place - 150). An infinity or a NaN here means a false exponent; the
     * formula then treats 255 like any other place. */
    uint32_t place = (x >> 23) & 0xff;
    uint32_t significand = x & UINT32_C(0x7fffff);

    if (place == 0) {
        place = 1;
    } else {
        significand |= UINT32_C(0x800000);
    }
    uint32_t limit = (UINT32_C(1) << (shape.bits - 1)) - 1;
    int shift = (int)place - 150 + shape.bits - 1 - exponent;
    uint32_t q = scale_clamped(significand, shift, limit);

    return x >> 31 ? -q : q;
}

/* ---- contract ---- */

/* One row of a quantized operand, in memory or fetched. */
struct product_row {
    const struct operand *q;
    const struct operand *exponents;
    uint64_t q_start;
    uint64_t exponent_start;
};

static RULE struct product_row row_open(const struct contraction_shape *shape,
                                        const struct operand *q, const struct operand *exponents,
                                        uint64_t row)
{
    return (struct product_row){.q = q,
                                .exponents = exponents,
                                .q_start = row * (uint64_t)shape->k,
                                .exponent_start = row * (uint64_t)shape->blocks};
}

static RULE int row_exponent(const struct product_row *row, int64_t block)
{
    return exponent_at(row->exponents, row->exponent_start + (uint64_t)block);
}

static RULE int64_t row_q(const struct product_row *row, int64_t k)
{
    return (int32_t)operand_get(row->q, row->q_start + (uint64_t)k);
}

/* Settles the element, for any sum. */
static RULE void settle_part(struct rule_part *part, uint32_t bits)
{
    part->settled = true;
    part->bits = bits;
}

/* The lowest exponent of a row, all of which is read. A poisoned one settles the part; returns
 * where one is, in elements. */
static RULE uint64_t row_lowest(int *lowest, struct rule_part *part,
                                const struct contraction_shape *shape,
                                const struct product_row *row)
{
    uint64_t poisoned = 0;

    *lowest = INT16_MAX;
    for (int64_t b = 0; b < shape->blocks; b++) {
        int exponent = row_exponent(row, b);

        if (exponent == EXPONENT_POISON) {
            settle_part(part, FLOAT_NAN_BITS);
            poisoned = (uint64_t)(b * shape->block);
        }
        *lowest = exponent < *lowest ? exponent : *lowest;
    }
    return poisoned;
}

static RULE struct quantized_row row_memory(const struct contraction_shape *shape,
                                            const struct product_row *row)
{
    size_t size = shape->bits == 22 ? sizeof(int32_t) : sizeof(int16_t);

    return (struct quantized_row){
        .q = (const char *)row->q->memory + row->q_start * size,
        .exponents = (const int16_t *)row->exponents->memory + row->exponent_start,
    };
}

/* The elements of block i that lie in [from, to): *start up to, and without, *end. */
static RULE void block_cut(int64_t *start, int64_t *end, const struct contraction_shape *shape,
                           int64_t i, int64_t from, int64_t to)
{
    *start = i * shape->block;
    *end = shape->k - *start < shape->block ? shape->k : *start + shape->block;
    *start = *start < from ? from : *start;
    *end = *end > to ? to : *end;
}

/* The place of a sum's unit in the exponent of the sum, for a product of `rows` integers. */
static RULE int unit_place(const struct contraction_shape *shape, int rows)
{
    return rows * (shape->bits - 1);
}

/* Adds the terms of block i, shifted as its exponents say; a poisoned one settles the part. */
static RULE void add_block(struct rule_part *part, const struct contraction_shape *shape,
                           const struct product_row *rows, int row_count, int64_t i, uint64_t terms)
{
    int shift = -part->exponent - unit_place(shape, row_count);

    for (int r = 0; r < row_count; r++) {
        int exponent = row_exponent(&rows[r], i);

        if (exponent == EXPONENT_POISON) {
            settle_part(part, FLOAT_NAN_BITS);
        }
        shift += exponent;
    }
    part->unfit |= shift < 0 || shift > row_count * shape->window;
    part->value =
        (int64_t)((uint64_t)part->value + (shift >= 0 && shift < 64 ? terms << shift : 0));
}

/* Batch, row and column of the element that is stored at an index. */
struct product_place {
    uint64_t batch;
    uint64_t m;
    uint64_t n;
};

/*
 * The strides are a permutation of out, so dividing by them from the largest down gives the index
 * of each axis. An axis of length 1 may have any stride and is skipped.
 */
static RULE struct product_place product_place_of(const int64_t *attributes, uint64_t index)
{
    const int64_t *dims = &attributes[CONTRACT_DIMS];
    const int64_t *strides = &attributes[CONTRACT_STRIDES];
    uint64_t at[6] = {0};
    bool done[6] = {false};

    for (int turn = 0; turn < 6; turn++) {
        int widest = -1;

        for (int axis = 0; axis < 6; axis++) {
            if (!done[axis] && dims[axis] > 1 && (widest < 0 || strides[axis] > strides[widest])) {
                widest = axis;
            }
        }
        if (widest < 0) {
            break;
        }
        done[widest] = true;
        at[widest] = index / (uint64_t)strides[widest];
        index %= (uint64_t)strides[widest];
    }
    return (struct product_place){
        .batch = at[0] * (uint64_t)dims[1] + at[1],
        .m = at[2] * (uint64_t)dims[3] + at[3],
        .n = at[4] * (uint64_t)dims[5] + at[5],
    };
}

/* The two rows of an element of a product; false: it is behind the causal edge. */
static RULE bool product_rows(struct product_row rows[2], const struct contraction_shape *shape,
                              const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    const int64_t *dims = &attributes[CONTRACT_DIMS];
    struct product_place place = product_place_of(attributes, index);
    uint64_t causal = (uint64_t)attributes[CONTRACT_CAUSAL];

    if (causal > 0 && place.n > place.m % causal) {
        return false;
    }
    uint64_t row_a = place.batch * (uint64_t)(dims[2] * dims[3]) + place.m;
    uint64_t row_b = place.batch * (uint64_t)(dims[4] * dims[5]) + place.n;

    rows[0] = row_open(shape, &call->inputs[0], &call->inputs[1], row_a);
    rows[1] = row_open(shape, &call->inputs[2], &call->inputs[3], row_b);
    return true;
}

/* The exponent of a sum over rows, or what settles it. */
static RULE uint64_t rows_base(struct rule_part *part, const struct contraction_shape *shape,
                               const struct product_row *rows, int row_count)
{
    uint64_t poisoned = 0;

    part->exponent = -unit_place(shape, row_count);
    for (int r = 0; r < row_count; r++) {
        int lowest;
        uint64_t found = row_lowest(&lowest, part, shape, &rows[r]);

        poisoned = found > poisoned ? found : poisoned;
        part->exponent += lowest;
    }
    return poisoned;
}

RULE uint64_t rule_contract_base(struct rule_part *part, const struct rule_call *call,
                                 uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row rows[2];

    if (!product_rows(rows, &shape, call, index)) {
        settle_part(part, 0);
        return 0;
    }
    return rows_base(part, &shape, rows, 2);
}

RULE uint64_t rule_contract_ones_base(struct rule_part *part, const struct rule_call *call,
                                      uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row row = row_open(&shape, &call->inputs[0], &call->inputs[1], index);

    return rows_base(part, &shape, &row, 1);
}

RULE uint64_t rule_contract_onehot_base(struct rule_part *part, const struct rule_call *call,
                                        uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    uint64_t width = (uint64_t)call->op->attributes[ONEHOT_WIDTH];
    struct product_row row = row_open(&shape, &call->inputs[1], &call->inputs[2], index % width);

    return rows_base(part, &shape, &row, 1);
}

/* The rows of an element of a chosen product; false: no expert has that index. */
static RULE bool chosen_rows(struct product_row rows[2], const struct contraction_shape *shape,
                             const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t width = (uint64_t)attributes[CHOSEN_WIDTH];
    uint64_t row = index / width;
    uint64_t expert = operand_get(&call->inputs[2], row);

    if (expert >= (uint64_t)attributes[CHOSEN_EXPERTS]) {
        return false;
    }
    rows[0] = row_open(shape, &call->inputs[0], &call->inputs[1], row);
    rows[1] = row_open(shape, &call->inputs[3], &call->inputs[4], expert * width + index % width);
    return true;
}

RULE uint64_t rule_contract_chosen_base(struct rule_part *part, const struct rule_call *call,
                                        uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row rows[2];

    if (!chosen_rows(rows, &shape, call, index)) {
        settle_part(part, FLOAT_NAN_BITS);
        return 0;
    }
    return rows_base(part, &shape, rows, 2);
}

/* The two rows over which an element of an expert's sum goes. */
static RULE void expert_rows(struct product_row rows[2], const struct contraction_shape *shape,
                             const struct rule_call *call, uint64_t index)
{
    uint64_t m = (uint64_t)call->op->attributes[CHOSEN_SUM_M];
    uint64_t n = (uint64_t)call->op->attributes[CHOSEN_SUM_N];

    rows[0] = row_open(shape, &call->inputs[1], &call->inputs[2], index / n % m);
    rows[1] = row_open(shape, &call->inputs[3], &call->inputs[4], index % n);
}

RULE uint64_t rule_contract_chosen_rows_base(struct rule_part *part, const struct rule_call *call,
                                             uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row rows[2];

    expert_rows(rows, &shape, call, index);
    return rows_base(part, &shape, rows, 2);
}

/* The products of [from, to) of two rows; of the places whose index is the word, where there are
 * indexes. */
static RULE void add_products(struct rule_part *part, const struct contraction_shape *shape,
                              const struct product_row rows[2], const struct operand *indexes,
                              uint64_t word, uint64_t from, uint64_t to)
{
    for (int64_t i = (int64_t)from / shape->block; i * shape->block < (int64_t)to; i++) {
        uint64_t terms = 0;
        int64_t start;
        int64_t end;

        block_cut(&start, &end, shape, i, (int64_t)from, (int64_t)to);
        for (int64_t k = start; k < end; k++) {
            if (indexes == NULL || operand_get(indexes, (uint64_t)k) == word) {
                terms += (uint64_t)(row_q(&rows[0], k) * row_q(&rows[1], k));
            }
        }
        add_block(part, shape, rows, 2, i, terms);
    }
}

RULE void rule_contract_chosen_part(struct rule_part *part, const struct rule_call *call,
                                    uint64_t index, uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row rows[2];

    if (!chosen_rows(rows, &shape, call, index)) {
        settle_part(part, FLOAT_NAN_BITS);
        return;
    }
    add_products(part, &shape, rows, NULL, 0, from, to);
}

RULE void rule_contract_chosen_rows_part(struct rule_part *part, const struct rule_call *call,
                                         uint64_t index, uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    const int64_t *attributes = call->op->attributes;
    uint64_t expert =
        index / ((uint64_t)attributes[CHOSEN_SUM_M] * (uint64_t)attributes[CHOSEN_SUM_N]);
    struct product_row rows[2];

    expert_rows(rows, &shape, call, index);
    add_products(part, &shape, rows, &call->inputs[0], expert, from, to);
}

RULE void rule_contract_part(struct rule_part *part, const struct rule_call *call, uint64_t index,
                             uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row rows[2];

    if (!product_rows(rows, &shape, call, index)) {
        settle_part(part, 0);
        return;
    }
    add_products(part, &shape, rows, NULL, 0, from, to);
}

RULE void rule_contract_ones_part(struct rule_part *part, const struct rule_call *call,
                                  uint64_t index, uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct product_row row = row_open(&shape, &call->inputs[0], &call->inputs[1], index);

    for (int64_t i = (int64_t)from / shape.block; i * shape.block < (int64_t)to; i++) {
        uint64_t terms = 0;
        int64_t start;
        int64_t end;

        block_cut(&start, &end, &shape, i, (int64_t)from, (int64_t)to);
        for (int64_t k = start; k < end; k++) {
            terms += (uint64_t)row_q(&row, k);
        }
        add_block(part, &shape, &row, 1, i, terms);
    }
}

RULE void rule_contract_onehot_part(struct rule_part *part, const struct rule_call *call,
                                    uint64_t index, uint64_t from, uint64_t to)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    uint64_t width = (uint64_t)call->op->attributes[ONEHOT_WIDTH];
    uint64_t word = index / width;
    struct product_row row = row_open(&shape, &call->inputs[1], &call->inputs[2], index % width);

    for (int64_t i = (int64_t)from / shape.block; i * shape.block < (int64_t)to; i++) {
        uint64_t terms = 0;
        int64_t start;
        int64_t end;

        block_cut(&start, &end, &shape, i, (int64_t)from, (int64_t)to);
        for (int64_t k = start; k < end; k++) {
            if (operand_get(&call->inputs[0], (uint64_t)k) == word) {
                terms += (uint64_t)row_q(&row, k);
            }
        }
        add_block(part, &shape, &row, 1, i, terms);
    }
}

/* ---- whole rows ---- */

/* Rows in memory, which a machine has, are added faster. */
static RULE void product_in_memory(struct rule_part *part, const struct contraction_shape *shape,
                                   const struct product_row rows[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        if (rows[i].q->memory == NULL || rows[i].exponents->memory == NULL) {
            add_products(part, shape, rows, NULL, 0, 0, (uint64_t)shape->k);
            return;
        }
    }
    struct quantized_row in_memory[2] = {row_memory(shape, &rows[0]), row_memory(shape, &rows[1])};

    part->value = contraction_partial(shape, &in_memory[0], &in_memory[1], 0, shape->blocks);
}

RULE uint32_t rule_contract(const struct rule_call *call, uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct rule_part part = {.fold = RULE_SUM};
    struct product_row rows[2];

    (void)rule_contract_base(&part, call, index);
    if (!part.settled && product_rows(rows, &shape, call, index)) {
        product_in_memory(&part, &shape, rows);
    }
    return rule_part_finish(&part);
}

RULE uint32_t rule_contract_chosen(const struct rule_call *call, uint64_t index)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct rule_part part = {.fold = RULE_SUM};
    struct product_row rows[2];

    (void)rule_contract_chosen_base(&part, call, index);
    if (!part.settled && chosen_rows(rows, &shape, call, index)) {
        product_in_memory(&part, &shape, rows);
    }
    return rule_part_finish(&part);
}

RULE uint32_t rule_contract_chosen_rows(const struct rule_call *call, uint64_t index)
{
    struct rule_part part = {.fold = RULE_SUM};

    (void)rule_contract_chosen_rows_base(&part, call, index);
    if (!part.settled) {
        rule_contract_chosen_rows_part(&part, call, index, 0,
                                       (uint64_t)contraction_shape_of(call->op).k);
    }
    return rule_part_finish(&part);
}

RULE uint32_t rule_contract_ones(const struct rule_call *call, uint64_t index)
{
    struct rule_part part = {.fold = RULE_SUM};

    (void)rule_contract_ones_base(&part, call, index);
    if (!part.settled) {
        rule_contract_ones_part(&part, call, index, 0, (uint64_t)contraction_shape_of(call->op).k);
    }
    return rule_part_finish(&part);
}

RULE uint32_t rule_contract_onehot(const struct rule_call *call, uint64_t index)
{
    struct rule_part part = {.fold = RULE_SUM};

    (void)rule_contract_onehot_base(&part, call, index);
    if (!part.settled) {
        rule_contract_onehot_part(&part, call, index, 0,
                                  (uint64_t)contraction_shape_of(call->op).k);
    }
    return rule_part_finish(&part);
}
