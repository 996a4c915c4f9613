/* quantizer.c - see quantizer.h. */
#include "engine/cuda/fusions/quantizer.h"

static void view_add(struct plain_view *view, int64_t dim, int64_t stride, int first)
{
    if (dim == 1) {
        return;
    }
    if (view->count > first && view->strides[view->count - 1] == dim * stride) {
        view->dims[view->count - 1] *= dim;
        view->strides[view->count - 1] = stride;
        return;
    }
    view->dims[view->count] = dim;
    view->strides[view->count] = stride;
    view->count++;
}

struct plain_view quantizer_view(const struct op *op)
{
    struct plain_view view = {.count = 0};

    for (int axis = 0; axis < 6; axis++) {
        if (axis == 4) {
            view.rows = view.count;
        }
        view_add(&view, op->attributes[QUANTIZE_DIMS + axis],
                 op->attributes[QUANTIZE_STRIDES + axis], axis < 4 ? 0 : view.rows);
    }
    return view;
}

bool quantizer_same(const struct op *a, const struct op *b)
{
    const struct contraction_shape shape = contraction_shape_of(a);
    const struct contraction_shape other = contraction_shape_of(b);
    const struct plain_view view = quantizer_view(a);
    const struct plain_view to = quantizer_view(b);

    if (a->input_count != b->input_count || a->inputs[0] != b->inputs[0] ||
        (quantize_is_shifted(a) && a->inputs[1] != b->inputs[1]) || shape.bits != other.bits ||
        shape.k != other.k || shape.block != other.block || shape.piece != other.piece ||
        view.count != to.count || view.rows != to.rows || quantize_rows(a) != quantize_rows(b)) {
        return false;
    }
    for (int axis = 0; axis < view.count; axis++) {
        if (view.dims[axis] != to.dims[axis] || view.strides[axis] != to.strides[axis]) {
            return false;
        }
    }
    return true;
}

bool quantizes_rows(const struct op *op, uint32_t x, int64_t rows, int64_t columns)
{
    const int along = columns > 1;
    const int across = rows > 1;
    struct plain_view view;

    if (op->kind != OP_QUANTIZE || op->input_count != 1 || op->inputs[0] != x ||
        quantize_rows(op) != rows || contraction_shape_of(op).k != columns) {
        return false;
    }
    view = quantizer_view(op);
    return view.rows == across && view.count == across + along &&
           (!across || view.strides[0] == columns) && (!along || view.strides[view.count - 1] == 1);
}

bool quantizes_columns(const struct op *op, uint32_t x, int64_t matrices, int64_t rows,
                       int64_t columns)
{
    const int several = matrices > 1;
    const int along = columns > 1;
    struct plain_view view;

    if (op->kind != OP_QUANTIZE || op->input_count != 1 || op->inputs[0] != x || rows < 2 ||
        quantize_rows(op) != matrices * columns || contraction_shape_of(op).k != rows) {
        return false;
    }
    view = quantizer_view(op);
    return view.rows == several + along && view.count == several + along + 1 &&
           (!several || (view.dims[0] == matrices && view.strides[0] == rows * columns)) &&
           (!along || view.strides[several] == 1) && view.strides[view.count - 1] == columns;
}

bool quantizes_pieces(const struct op *quantize)
{
    const struct contraction_shape shape = contraction_shape_of(quantize);

    return shape.piece == CONTRACTION_PIECE && (shape.blocks == 1 || shape.block_span == 1);
}

uint32_t quantizer_of_rows(const struct fusion *fusion, const struct readers *readers, uint32_t x,
                           int64_t rows, int64_t columns)
{
    for (uint32_t at = readers->first[x]; at != NEVER && at <= readers->last[x]; at++) {
        const struct op *op = &fusion->ops[at];

        if (fusion_may_take(fusion, at) && quantizes_rows(op, x, rows, columns) &&
            quantizes_pieces(op)) {
            return at;
        }
    }
    return NEVER;
}

uint32_t quantizer_of_result(const struct fusion *fusion, const struct readers *readers,
                             const struct op *op, uint32_t output)
{
    return quantizer_of_rows(fusion, readers, op->outputs[output], op->attributes[ROWS],
                             op->attributes[COLUMNS]);
}

uint32_t quantizer_of_operand(const struct fusion *fusion, const struct readers *readers,
                              const struct op *op, uint32_t input)
{
    const uint32_t at = readers->maker[op->inputs[input]];
    const struct op *maker;

    if (at == NEVER || !fusion_may_take(fusion, at)) {
        return NEVER;
    }
    maker = &fusion->ops[at];
    return maker->kind == OP_QUANTIZE && maker->input_count == 1 &&
                   maker->outputs[2] == op->inputs[input] &&
                   maker->outputs[1] == op->inputs[input + 1]
               ? at
               : NEVER;
}
