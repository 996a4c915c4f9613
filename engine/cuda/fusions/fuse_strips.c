/*
 * fuse_strips.c - products whose operand across memory need not have limbs there: a quantization of
 * such a view and the only product that reads it become one operation, which strip_columns_body.h
 * makes. Refused: 22 bits, long rows, an other operand of many rows, blocks that are no piece.
 */
#include "engine/cuda/fusions/fuse_core.h"
#include "engine/cuda/launch/launch_core.h"

/* A product, and the side of it that is held; the other's inputs are 2 * !side and the next. */
struct strip_chain {
    uint32_t ats[2]; /* quantization, product */
    uint32_t side;   /* 0: A, 1: B */
    int64_t causal;
};

static int64_t product_rows(const struct op *contract, uint32_t side)
{
    const int64_t *dims = &contract->attributes[CONTRACT_DIMS + 2 + 2 * side];

    return dims[0] * dims[1];
}

/* Are its rows neighbours in memory, as long and as many as a strip's? */
static bool is_held_view(const struct op *quantize)
{
    const struct contraction_shape shape = contraction_shape_of(quantize);
    const int64_t *dims = &quantize->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &quantize->attributes[QUANTIZE_STRIDES];

    return dims[3] > 1 && strides[3] == 1 && shape.bits != 22 && shape.k <= STRIP_K_MAX &&
           shape.piece == CONTRACTION_PIECE && (shape.blocks == 1 || shape.block_span == 1);
}

static bool is_softmax_of(const struct op *op, uint32_t id)
{
    return (op->kind == OP_SOFTMAX && op->outputs[5] == id) ||
           (op->kind == OP_SOFTMAX_GRAD && op->outputs[2] == id);
}

/*
 * T where k, row after row, runs through the queries of a causal softmax, T in each turn, and the
 * view's rows are its columns from the first on: then element k of row m is hidden, and +0, where
 * k % T < m % dims[3]. Otherwise 0.
 */
static int64_t causal_of(const struct op *quantize, const struct op *maker)
{
    const int64_t *dims = &quantize->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &quantize->attributes[QUANTIZE_STRIDES];
    int64_t causal;
    int64_t columns;

    if (maker == NULL || !is_softmax_of(maker, quantize->inputs[0])) {
        return 0;
    }
    causal = maker->attributes[SOFTMAX_CAUSAL];
    columns = maker->attributes[COLUMNS];
    if (causal == 0 || dims[5] != causal || strides[5] != columns || dims[3] > columns ||
        dims[3] > causal) {
        return 0;
    }
    for (int axis = 0; axis < 5; axis++) {
        if (axis != 3 && dims[axis] > 1 && strides[axis] % (causal * columns) != 0) {
            return 0;
        }
    }
    return causal;
}

/* What made a tensor in the tape, also where a chain makes it now; NULL: nothing. */
static const struct op *maker_of(const struct fusion *fusion, const struct readers *readers,
                                 uint32_t id)
{
    const uint32_t at = readers->maker[id];
    const struct chain *chain = at == NEVER ? NULL : fusion_chain(fusion, at);

    for (uint32_t i = 0; chain != NULL && i < chain->count; i++) {
        for (uint32_t j = 0; j < chain->ops[i].output_count; j++) {
            if (chain->ops[i].outputs[j] == id) {
                return &chain->ops[i];
            }
        }
    }
    return at == NEVER ? NULL : &fusion->ops[at];
}

/* The quantization that gives a side of a product, or NEVER. */
static uint32_t quantize_of(const struct fusion *fusion, const struct readers *readers,
                            const struct op *contract, uint32_t side)
{
    const uint32_t at = readers->maker[contract->inputs[2 * side]];
    const struct op *op;

    if (at == NEVER || !chain_may_take(fusion, at)) {
        return NEVER;
    }
    op = &fusion->ops[at];
    return op->kind == OP_QUANTIZE && op->outputs[2] == contract->inputs[2 * side] &&
                   op->outputs[1] == contract->inputs[2 * side + 1] &&
                   contract->inputs[2 * side] != contract->inputs[2 * !side]
               ? at
               : NEVER;
}

static bool strip_at(struct strip_chain *strip, const struct fusion *fusion,
                     const struct readers *readers, uint32_t at, uint32_t side)
{
    const struct op *contract = &fusion->ops[at];
    const uint32_t quantize = quantize_of(fusion, readers, contract, side);

    if (quantize == NEVER || !is_held_view(&fusion->ops[quantize]) ||
        product_rows(contract, !side) > STRIP_COLUMNS ||
        strip_rows_of(fusion->facts.shared_max, (uint64_t)contract->attributes[CONTRACT_K]) == 0) {
        return false;
    }
    *strip = (struct strip_chain){
        .ats = {quantize, at},
        .side = side,
        .causal = causal_of(&fusion->ops[quantize],
                            maker_of(fusion, readers, fusion->ops[quantize].inputs[0]))};
    return chain_closed(fusion, readers, strip->ats, 2, contract->outputs, 1);
}

/* The product reads the numbers instead of their limbs. */
static bool add_strip(struct fusion *fusion, const struct strip_chain *strip)
{
    const struct op *quantize = &fusion->ops[strip->ats[0]];
    const struct op *contract = &fusion->ops[strip->ats[1]];
    struct op maker = *contract;

    maker.input_count = 3;
    maker.inputs[0] = quantize->inputs[0];
    maker.inputs[1] = contract->inputs[2 * !strip->side];
    maker.inputs[2] = contract->inputs[2 * !strip->side + 1];
    maker.attributes[CONTRACT_CAUSAL] = strip->causal;
    return chain_add(fusion, strip->ats, 2, &maker, launch_strip_columns);
}

bool fuse_find_strips(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    (void)tape;
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *op = &fusion->ops[at];
        struct strip_chain strip;

        if (op->kind != OP_CONTRACT || op->input_count != 4 || !chain_may_take(fusion, at) ||
            op->attributes[CONTRACT_CAUSAL] != 0) {
            continue;
        }
        if ((strip_at(&strip, fusion, readers, at, 0) ||
             strip_at(&strip, fusion, readers, at, 1)) &&
            !add_strip(fusion, &strip)) {
            return false;
        }
    }
    return true;
}

bool fuse_sees_causally(const struct fusion *fusion, uint32_t at)
{
    const struct chain *chain = fusion_chain(fusion, at);

    return chain != NULL && chain->launch == launch_strip_columns &&
           fusion->ops[at].attributes[CONTRACT_CAUSAL] != 0;
}
