/*
 * fuse_sums.c - gradients of biases and gains: a quantization across memory of which only the rows'
 * sums are wanted, and those sums, become one operation (columns_body.h). Where a matrix's gradient
 * reads the same limbs, they are made, and the sums are theirs.
 */
#include "engine/cuda/fusions/fuse_core.h"
#include "engine/cuda/launch/launch_core.h"

/* Are its rows neighbours in memory, of one piece or as short as a block holds them? */
static bool is_summed_view(const struct fusion *fusion, const struct op *quantize)
{
    const struct contraction_shape shape = contraction_shape_of(quantize);
    const struct plain_view view = fuse_view_of(quantize);

    if (view.rows == 0 || view.strides[view.rows - 1] != 1 || shape.piece != CONTRACTION_PIECE ||
        (shape.blocks > 1 && shape.block_span != 1)) {
        return false;
    }
    return shape.k <= CONTRACTION_PIECE ||
           launch_columns_of(fusion->facts.shared_max, (uint64_t)shape.k) != 0;
}

static bool sums_at(uint32_t ats[2], const struct fusion *fusion, const struct readers *readers,
                    uint32_t at)
{
    const struct op *sums = &fusion->ops[at];
    const struct op *quantize;

    if (sums->kind != OP_CONTRACT_ONES || sums->input_count != 2 || !chain_may_take(fusion, at)) {
        return false;
    }
    ats[0] = readers->maker[sums->inputs[0]];
    ats[1] = at;
    if (ats[0] == NEVER || !chain_may_take(fusion, ats[0])) {
        return false;
    }
    quantize = &fusion->ops[ats[0]];
    return quantize->kind == OP_QUANTIZE && quantize->outputs[2] == sums->inputs[0] &&
           quantize->outputs[1] == sums->inputs[1] && is_summed_view(fusion, quantize) &&
           chain_closed(fusion, readers, ats, 2, sums->outputs, 1);
}

bool fuse_find_sums(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    (void)tape;
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        struct op maker = fusion->ops[at];
        uint32_t ats[2];

        if (!sums_at(ats, fusion, readers, at)) {
            continue;
        }
        maker.input_count = 1;
        maker.inputs[0] = fusion->ops[ats[0]].inputs[0];
        if (!chain_add(fusion, ats, 2, &maker, launch_column_sums)) {
            return false;
        }
    }
    return true;
}
