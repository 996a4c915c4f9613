/*
 * fuse_attention.c - attention's rows, found in a tape: scores, softmax, the quantization of p
 * along its rows and its product with the values; and backward, dp, the softmax's gradient, the
 * quantization of ds and its product with the keys. Each four become one operation, which makes the
 * last product and, where others read it, p or ds. See attention_body.h.
 */
#include "engine/cuda/fusions/fuse_core.h"
#include "engine/cuda/launch/launch_core.h"

enum { FIRST, ALONG, QUANTIZED, SECOND, PARTS };

/* The four operations, and what lies between them. */
struct attention {
    uint32_t ats[PARTS];
    const struct op *ops[PARTS];
    uint32_t made; /* p or ds */
};

/* The only operation of a kind that reads a tensor in this place; NEVER where there is none. */
static uint32_t reader_of(const struct fusion *fusion, const struct readers *readers, uint32_t id,
                          enum op_kind kind, bool (*fits)(const struct op *op, const struct op *to),
                          const struct op *rows)
{
    for (uint32_t at = readers->first[id]; at != NEVER && at <= readers->last[id]; at++) {
        const struct op *op = &fusion->ops[at];

        if (op->kind == kind && op->input_count > 0 && op->inputs[0] == id &&
            chain_may_take(fusion, at) && fits(op, rows)) {
            return at;
        }
    }
    return NEVER;
}

/* Rows of the quantization are rows of the operation, one after another. */
static bool quantizes_rows_of(const struct op *quantize, const struct op *rows)
{
    const struct contraction_shape shape = contraction_shape_of(quantize);
    const struct plain_view view = fuse_view_of(quantize);
    const int64_t columns = rows->attributes[COLUMNS];

    if (quantize_rows(quantize) != rows->attributes[ROWS] || shape.k != columns ||
        shape.piece != CONTRACTION_PIECE || (shape.blocks > 1 && shape.block_span != 1)) {
        return false;
    }
    for (int axis = 0; axis < view.count; axis++) {
        const bool along = axis >= view.rows;

        if (view.strides[axis] != (along ? 1 : columns)) {
            return false;
        }
    }
    return view.rows <= 1 && view.count <= view.rows + 1;
}

static bool any_product(const struct op *op, const struct op *rows)
{
    (void)op;
    (void)rows;
    return true;
}

/* Do results lie one after another, row after row, batch after batch? */
static bool is_linear(const struct op *contract)
{
    const int64_t *dims = &contract->attributes[CONTRACT_DIMS];
    int64_t stride = 1;

    for (int axis = 5; axis >= 0; axis--) {
        if (dims[axis] != 1 && contract->attributes[CONTRACT_STRIDES + axis] != stride) {
            return false;
        }
        stride *= dims[axis];
    }
    return true;
}

static int64_t product_of(const struct op *contract, int first)
{
    return contract->attributes[CONTRACT_DIMS + first] *
           contract->attributes[CONTRACT_DIMS + first + 1];
}

/* Both products, as attention_body.h counts with them. */
static bool products_fit(const struct attention *found)
{
    const struct op *first = found->ops[FIRST];
    const struct op *second = found->ops[SECOND];
    const struct op *rows = found->ops[ALONG];
    const struct op *quantize = found->ops[QUANTIZED];
    const struct contraction_shape shape = contraction_shape_of(first);
    const int64_t causal = first->attributes[CONTRACT_CAUSAL];

    return shape.blocks == 1 && shape.k <= ATTENTION_D_MAX && shape.bits != 22 &&
           is_linear(first) && product_of(first, 4) == rows->attributes[COLUMNS] &&
           product_of(first, 0) * product_of(first, 2) == rows->attributes[ROWS] &&
           causal == rows->attributes[SOFTMAX_CAUSAL] &&
           (causal == 0 || product_of(first, 2) % causal == 0) &&
           product_of(second, 0) == product_of(first, 0) &&
           product_of(second, 2) == product_of(first, 2) &&
           product_of(second, 4) <= ATTENTION_D_MAX && second->attributes[CONTRACT_CAUSAL] == 0 &&
           second->attributes[CONTRACT_K] == rows->attributes[COLUMNS] &&
           second->attributes[CONTRACT_BITS] == shape.bits &&
           second->attributes[CONTRACT_BITS] == quantize->attributes[QUANTIZE_BITS] &&
           second->attributes[CONTRACT_BLOCK] == quantize->attributes[QUANTIZE_BLOCK];
}

/* Around an operation along rows. */
static bool attention_at(struct attention *found, const struct fusion *fusion,
                         const struct readers *readers, uint32_t at)
{
    const struct op *rows = &fusion->ops[at];
    const bool forward = rows->kind == OP_SOFTMAX;
    uint32_t *ats = found->ats;

    if ((!forward && rows->kind != OP_SOFTMAX_GRAD) || !chain_may_take(fusion, at) ||
        strip_rows_of(fusion->facts.shared_max, (uint64_t)rows->attributes[COLUMNS]) == 0) {
        return false;
    }
    found->made = rows->outputs[forward ? 5 : 2];
    ats[ALONG] = at;
    ats[FIRST] = readers->maker[rows->inputs[forward ? 0 : 1]];
    if (ats[FIRST] == NEVER || fusion->ops[ats[FIRST]].kind != OP_CONTRACT ||
        !chain_may_take(fusion, ats[FIRST])) {
        return false;
    }
    ats[QUANTIZED] = reader_of(fusion, readers, found->made, OP_QUANTIZE, quantizes_rows_of, rows);
    if (ats[QUANTIZED] == NEVER) {
        return false;
    }
    ats[SECOND] = reader_of(fusion, readers, fusion->ops[ats[QUANTIZED]].outputs[2], OP_CONTRACT,
                            any_product, rows);
    if (ats[SECOND] == NEVER) {
        return false;
    }
    for (int part = 0; part < PARTS; part++) {
        found->ops[part] = &fusion->ops[ats[part]];
    }
    const uint32_t made[2] = {found->made, found->ops[SECOND]->outputs[0]};

    return products_fit(found) && chain_closed(fusion, readers, ats, PARTS, made, 2);
}

/* The last product: of queries (dout), keys (values) and values (keys); and p, where ds is made. */
static struct op maker_of(const struct attention *found, const struct readers *readers)
{
    struct op maker = *found->ops[SECOND];

    maker.input_count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        maker.inputs[maker.input_count++] = found->ops[FIRST]->inputs[i];
    }
    maker.inputs[maker.input_count++] = found->ops[SECOND]->inputs[2];
    maker.inputs[maker.input_count++] = found->ops[SECOND]->inputs[3];
    if (found->ops[ALONG]->kind == OP_SOFTMAX_GRAD) {
        maker.inputs[maker.input_count++] = found->ops[ALONG]->inputs[0];
    }
    if (readers->kept[found->made] || readers->count[found->made] > 1) {
        maker.outputs[maker.output_count++] = found->made;
    }
    return maker;
}

bool fuse_find_attention(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct attention found;

        if (!attention_at(&found, fusion, readers, at)) {
            continue;
        }
        const struct op maker = maker_of(&found, readers);

        if (!chain_add(fusion, found.ats, PARTS, &maker, launch_attention)) {
            return false;
        }
        readers_release(readers);
        if (!readers_find(readers, fusion, tape)) {
            return false;
        }
    }
    return true;
}

/* ---- what is hidden ---------------------------------------------------------------- */

static const struct op *along_of(const struct fusion *fusion, uint32_t at)
{
    const struct chain *chain = fusion_chain(fusion, at);

    return chain != NULL && chain->launch == launch_attention ? &chain->ops[ALONG] : NULL;
}

/* Does an operation that reads what `along` made leave out what that hides? */
static bool leaves_hidden(const struct fusion *fusion, uint32_t at, const struct op *along)
{
    const struct op *own = along_of(fusion, at);

    return fuse_sees_causally(fusion, at) ||
           (own != NULL && own->attributes[SOFTMAX_CAUSAL] == along->attributes[SOFTMAX_CAUSAL] &&
            own->attributes[ROWS] == along->attributes[ROWS] &&
            own->attributes[COLUMNS] == along->attributes[COLUMNS]);
}

void fuse_leave_hidden(struct fusion *fusion, const struct readers *readers)
{
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *along = along_of(fusion, at);
        struct op *op = &fusion->ops[at];
        bool hidden = false;

        if (along == NULL || op->output_count < 2) {
            continue;
        }
        const uint32_t made = op->outputs[1];

        for (uint32_t to = readers->first[made]; to != NEVER && to <= readers->last[made]; to++) {
            for (uint32_t i = 0; i < fusion->ops[to].input_count; i++) {
                hidden = hidden ||
                         (fusion->ops[to].inputs[i] == made && !leaves_hidden(fusion, to, along));
            }
        }
        if (!hidden && !readers->kept[made]) {
            op->attributes[CONTRACT_CAUSAL] = along->attributes[SOFTMAX_CAUSAL];
        }
    }
}
