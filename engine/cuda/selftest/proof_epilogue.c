/* proof_epilogue.c - tapes of products and of what follows them: see proof_core.h. */
#include "engine/cuda/selftest/selftest_tape.h"

#include "engine/ops/real.h"

/* Rows by rows, row after row. Nobody has to see it. */
static uint32_t add_product(struct proof *proof, const struct op *a, const struct op *b,
                            const int64_t sizes[3])
{
    const int64_t one[3] = {1, sizes[0], sizes[1]};

    return hide(proof, add_contract(proof, a, b, one, sizes[2], false)->outputs[0]);
}

/* An element-wise operation of one operand, or two, of which the second may be a row; not seen. */
static uint32_t add_element(struct proof *proof, enum op_kind kind, uint32_t a, uint32_t b)
{
    const uint64_t count = proof->tensors[a].count;
    struct op *op = add_op(proof, kind);

    add_input(op, a);
    if (b != TENSOR_NONE) {
        add_input(op, b);
    }
    if (kind == OP_ADD || kind == OP_MUL) {
        op->attributes[BROADCAST_DIV] = 1;
        op->attributes[BROADCAST_MOD] = (int64_t)proof->tensors[b].count;
        op->attribute_count = BROADCAST_ATTRIBUTES;
    }
    return hide(proof, add_output(proof, op, DTYPE_F32, count));
}

static void show(struct proof *proof, uint32_t id)
{
    proof->tensors[id].role = ROLE_OUTPUT;
}

/* As the layers of models are followed: sums, of which the first is kept or not, and functions. */
static void build_products(struct proof *proof, const struct op *a, const struct op *b,
                           const int64_t sizes[3], uint32_t part)
{
    const uint64_t all = (uint64_t)(sizes[0] * sizes[1]);
    const uint32_t row = give(proof, DTYPE_F32, (uint64_t)sizes[1]);
    const uint32_t x = give(proof, DTYPE_F32, all);
    const uint32_t y = give(proof, DTYPE_F32, all);
    uint32_t made = add_product(proof, a, b, sizes);

    switch (part) {
    case 0:
        show(proof, add_element(proof, OP_ADD, x, add_element(proof, OP_ADD, made, row)));
        made = add_element(proof, OP_ADD, add_product(proof, a, b, sizes), row);
        show(proof, made);
        show(proof, add_element(proof, OP_GELU, made, TENSOR_NONE));
        show(proof, add_element(proof, OP_GELU_GRAD, x, add_product(proof, a, b, sizes)));
        break;
    case 1:
        show(proof, made);
        made = add_element(proof, OP_SILU, made, TENSOR_NONE);
        show(proof, add_element(proof, OP_MUL, made, y));
        break;
    default:
        show(proof, add_element(proof, OP_MUL, made, x));
        made = add_element(proof, OP_MUL, made, y);
        show(proof, add_element(proof, OP_SILU_GRAD, x, made));
        break;
    }
    /* And where no product is. */
    show(proof, add_element(proof, OP_RELU, x, TENSOR_NONE));
    show(proof, add_element(proof, OP_RELU_GRAD, x, y));
    show(proof, add_element(proof, OP_MUL, x, row));
    show(proof, add_element(proof, OP_SCALE, y, TENSOR_NONE));
    proof->ops[proof->tape.op_count - 1].attributes[SCALE_FACTOR_BITS] = real_to_bits(0.3f);
}

/* Whole tiles and ragged ones, all widths, k split over blocks; by each kernel that contracts. */
void proof_build_epilogue(struct proof *proof, uint32_t part)
{
    static const struct {
        int64_t sizes[3]; /* m, n, k */
        int bits;
        int block;
    } shapes[PROOF_EPILOGUE_PARTS] = {
        {{133, 72, 140}, 14, 128}, {{21, 20, 1030}, 16, 0}, {{33, 36, 130}, 22, 0}};
    static const struct row_kind kinds[] = {
        {OP_LAYER_NORM_GRAD, 0, {1, 1, 2, 3, 3}, {3, 3, 3, 3, 1, 1}},
        {OP_RMS_NORM_GRAD, 0, {1, 1, 2, 3}, {3, 3, 1, 1}},
    };
    const int64_t m = shapes[part].sizes[0];
    const int64_t n = shapes[part].sizes[1];
    const int64_t k = shapes[part].sizes[2];
    const uint32_t x = give(proof, DTYPE_F32, (uint64_t)(m * k));
    const uint32_t w = give(proof, DTYPE_F32, (uint64_t)(n * k));
    const uint32_t residual = give(proof, DTYPE_F32, (uint64_t)(5 * k));
    const struct op *a =
        add_quantize(proof, x, m, 1, k, shapes[part].bits, shapes[part].block, true);
    const struct op *b =
        add_quantize(proof, w, n, 1, k, shapes[part].bits, shapes[part].block, true);

    build_products(proof, a, b, shapes[part].sizes, part);
    for (int i = 0; i < 2 && k <= HELD_MAX; i++) {
        const struct op *op = add_rows(proof, &kinds[i], 5, k, 0);

        show(proof, add_element(proof, OP_ADD, residual, hide(proof, op->outputs[i == 0 ? 4 : 2])));
    }
}
