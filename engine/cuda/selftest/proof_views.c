/* proof_views.c - tapes of rows that are split and put together: see proof_core.h. */
#include "engine/cuda/selftest/selftest_tape.h"

#include "engine/ops/real.h"

#define ROWS_OF_WHOLE 44

/* Sums along a part's rows and across them. */
static void add_looks(struct proof *proof, uint32_t id, int64_t width)
{
    const struct op *along = add_quantize(proof, id, 1, ROWS_OF_WHOLE, width, 14, 128, true);
    const struct op *across = add_quantize(proof, id, 1, width, ROWS_OF_WHOLE, 16, 0, false);

    (void)add_ones(proof, along, ROWS_OF_WHOLE, width);
    (void)add_ones(proof, across, width, ROWS_OF_WHOLE);
}

/* Of what is made, not given: that lies with the states. */
static void build_split_rows(struct proof *proof)
{
    static const int64_t widths[3] = {20, 144, 16};
    const uint32_t x = give(proof, DTYPE_F32, ROWS_OF_WHOLE * 180);
    struct op *op = add_op(proof, OP_SCALE);
    uint32_t whole;

    op->attributes[SCALE_FACTOR_BITS] = real_to_bits(0.75f);
    op->attribute_count = SCALE_ATTRIBUTES;
    add_input(op, x);
    whole = hide(proof, add_output(proof, op, DTYPE_F32, ROWS_OF_WHOLE * 180));
    op = add_op(proof, OP_SPLIT);
    op->attributes[SPLIT_ROWS] = ROWS_OF_WHOLE;
    op->attribute_count = SPLIT_WIDTHS + 3;
    add_input(op, whole);
    for (int i = 0; i < 3; i++) {
        op->attributes[SPLIT_WIDTHS + i] = widths[i];
        (void)hide(proof, add_output(proof, op, DTYPE_F32, (uint64_t)(ROWS_OF_WHOLE * widths[i])));
    }
    for (int i = 0; i < 3; i++) {
        add_looks(proof, op->outputs[i], widths[i]);
    }
}

/* Two products side by side. */
static void build_concatenated(struct proof *proof)
{
    static const int64_t widths[2] = {72, 36};
    const int64_t k = 50;
    const uint32_t x = give(proof, DTYPE_F32, (uint64_t)(ROWS_OF_WHOLE * k));
    const struct op *a = add_quantize(proof, x, 1, ROWS_OF_WHOLE, k, 14, 128, true);
    uint32_t parts[2];
    struct op *op;

    for (int i = 0; i < 2; i++) {
        const int64_t sizes[3] = {1, ROWS_OF_WHOLE, widths[i]};
        const uint32_t y = give(proof, DTYPE_F32, (uint64_t)(widths[i] * k));
        const struct op *b = add_quantize(proof, y, 1, widths[i], k, 14, 128, true);

        parts[i] = hide(proof, add_contract(proof, a, b, sizes, k, false)->outputs[0]);
    }
    op = add_op(proof, OP_CONCAT);
    op->attributes[SPLIT_ROWS] = ROWS_OF_WHOLE;
    op->attribute_count = SPLIT_WIDTHS + 2;
    for (int i = 0; i < 2; i++) {
        op->attributes[SPLIT_WIDTHS + i] = widths[i];
        add_input(op, parts[i]);
    }
    add_looks(proof, hide(proof, add_output(proof, op, DTYPE_F32, ROWS_OF_WHOLE * 108)), 108);
}

void proof_build_views(struct proof *proof, uint32_t part)
{
    if (part == 0) {
        build_split_rows(proof);
    } else {
        build_concatenated(proof);
    }
}
