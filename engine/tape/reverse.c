/*
 * reverse.c - the reverse pass: one gradient rule per kind of operation.
 *
 * The pass visits the operations from the loss back. grad[t] is the gradient of tensor t so far; a
 * second reader of t adds to it. A gradient rule takes the gradient of its operation's main output
 * and adds gradients of the inputs. Kinds that carry only integers have no rule. A quantized
 * operand gets the gradient of the product it goes into: rounding passes gradients straight
 * through.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/tape/reverse_core.h"

bool reverse_wants(const struct reverse *reverse, uint32_t slot)
{
    return reverse->wanted[reverse->op->inputs[slot]];
}

static void add_to(struct reverse *reverse, uint32_t tensor, uint32_t gradient)
{
    if (reverse->grad[tensor] == TENSOR_NONE) {
        reverse->grad[tensor] = gradient;
    } else {
        reverse->grad[tensor] = build_add(reverse->builder, reverse->grad[tensor], gradient, 1);
    }
}

void reverse_add(struct reverse *reverse, uint32_t slot, uint32_t gradient)
{
    add_to(reverse, reverse->op->inputs[slot], gradient);
}

static uint64_t attribute_at(const struct reverse *reverse, uint32_t position)
{
    return (uint64_t)reverse->op->attributes[position];
}

static const struct tensor *input_tensor(const struct reverse *reverse, uint32_t slot)
{
    return builder_tensor(reverse->builder, reverse->op->inputs[slot]);
}

/* Appends an operation that takes the forward operation's attributes as they are. */
static void build_with_attributes(struct reverse *reverse, struct op *op, uint32_t count,
                                  const struct output_shape *shapes, uint32_t output_count)
{
    for (uint32_t i = 0; i < count; i++) {
        op_attribute(op, attribute_at(reverse, i));
    }
    op->output_count = output_count;
    build_op(reverse->builder, op, shapes);
}

/* ---- moving data -------------------------------------------------------- */

void grad_dropout(struct reverse *reverse, uint32_t dy)
{
    uint32_t inputs[2] = {dy, reverse->op->inputs[1]};
    struct op op = op_begin(OP_DROPOUT, 2, inputs);
    struct output_shape shape = shape_like(reverse->builder, dy);

    build_with_attributes(reverse, &op, DROPOUT_ATTRIBUTES, &shape, 1);
    reverse_add(reverse, 0, op.outputs[0]);
}

void grad_gather(struct reverse *reverse, uint32_t dy)
{
    const struct tensor like = *input_tensor(reverse, 0);

    reverse_add(
        reverse, 0,
        build_sum_by_index(reverse->builder, reverse->op->inputs[1], dy, like.rank, like.dims));
}

static uint32_t zeros_like(struct reverse *reverse, uint32_t tensor)
{
    const struct tensor *like = builder_tensor(reverse->builder, tensor);

    return build_fill(reverse->builder, 0.0f, like->rank, like->dims);
}

/* Concatenates the gradients of the parts; an unused part has a gradient of zeros. */
static void grad_split(struct reverse *reverse)
{
    uint32_t parts[OP_INPUTS_MAX];
    struct output_shape shape = shape_like(reverse->builder, reverse->op->inputs[0]);
    uint32_t count = reverse->op->output_count;
    uint32_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        used += reverse->grad[reverse->op->outputs[i]] != TENSOR_NONE;
    }
    if (used == 0) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = reverse->grad[reverse->op->outputs[i]];

        parts[i] = part != TENSOR_NONE ? part : zeros_like(reverse, reverse->op->outputs[i]);
    }
    struct op op = op_begin(OP_CONCAT, count, parts);
    build_with_attributes(reverse, &op, reverse->op->attribute_count, &shape, 1);
    reverse_add(reverse, 0, op.outputs[0]);
}

void grad_concat(struct reverse *reverse, uint32_t dy)
{
    struct op op = op_begin(OP_SPLIT, 1, &dy);
    struct output_shape shapes[OP_OUTPUTS_MAX];

    for (uint32_t i = 0; i < reverse->op->input_count; i++) {
        shapes[i] = shape_like(reverse->builder, reverse->op->inputs[i]);
    }
    build_with_attributes(reverse, &op, reverse->op->attribute_count, shapes,
                          reverse->op->input_count);
    for (uint32_t i = 0; i < reverse->op->input_count; i++) {
        if (reverse_wants(reverse, i)) {
            reverse_add(reverse, i, op.outputs[i]);
        }
    }
}

void reverse_add_reduced(struct reverse *reverse, uint32_t slot, uint32_t dy, uint64_t div,
                         uint64_t mod)
{
    struct builder *builder = reverse->builder;

    if (builder_tensor(builder, dy)->count % (div * mod) != 0) {
        builder_fail(builder, STATUS_BAD_FORMAT,
                     "no gradient of an operand that is not read in whole turns");
        return;
    }
    reverse_add(reverse, slot, build_reduce(builder, dy, div, mod));
}

void grad_expand(struct reverse *reverse, uint32_t dy)
{
    reverse_add_reduced(reverse, 0, dy, attribute_at(reverse, EXPAND_DIV),
                        attribute_at(reverse, EXPAND_MOD));
}

void grad_image(struct reverse *reverse, uint32_t dy)
{
    bool max = reverse->op->kind == OP_MAX_POOL;
    uint32_t inputs[2] = {max ? reverse->op->outputs[1] : dy, dy};
    enum op_kind kind = reverse->op->kind == OP_IM2COL   ? OP_COL2IM
                        : reverse->op->kind == OP_COL2IM ? OP_IM2COL
                        : max                            ? OP_MAX_POOL_GRAD
                                                         : OP_MEAN_POOL_GRAD;
    struct op op = op_begin(kind, max ? 2 : 1, inputs);
    struct output_shape shape = shape_like(reverse->builder, reverse->op->inputs[0]);

    build_with_attributes(reverse, &op, reverse->op->attribute_count, &shape, 1);
    reverse_add(reverse, 0, op.outputs[0]);
}

/* ---- element by element ------------------------------------------------- */

void grad_rotary(struct reverse *reverse, uint32_t dy)
{
    uint32_t inputs[2] = {dy, reverse->op->inputs[1]};
    struct op op = op_begin(OP_ROTARY, 2, inputs);
    struct output_shape shape = shape_like(reverse->builder, dy);

    op_attribute(&op, attribute_at(reverse, ROTARY_LENGTH));
    op_attribute(&op, attribute_at(reverse, ROTARY_HEADS));
    op_attribute(&op, attribute_at(reverse, ROTARY_WIDTH));
    op_attribute(&op, 1 - attribute_at(reverse, ROTARY_INVERSE));
    op_attribute(&op, attribute_at(reverse, ROTARY_HALVES));
    op.output_count = 1;
    build_op(reverse->builder, &op, &shape);
    reverse_add(reverse, 0, op.outputs[0]);
}

/* ---- contractions ------------------------------------------------------- */

static bool is_quantized(const struct reverse *reverse, uint32_t slot)
{
    uint32_t producer = reverse->builder->notes[reverse->op->inputs[slot]].producer;

    return producer != OP_NONE && reverse->builder->tape.ops[producer].kind == OP_QUANTIZE;
}

/* The QUANTIZE that made operand q, and the view through which it reads its input. */
static const struct op *quantize_of(const struct reverse *reverse, uint32_t slot, struct view *view)
{
    uint32_t producer = reverse->builder->notes[reverse->op->inputs[slot]].producer;
    const struct op *op = &reverse->builder->tape.ops[producer];

    for (uint32_t axis = 0; axis < 6; axis++) {
        view->dims[axis] = (uint64_t)op->attributes[QUANTIZE_DIMS + axis];
        view->strides[axis] = (uint64_t)op->attributes[QUANTIZE_STRIDES + axis];
    }
    return op;
}

/* A view with two of its axis pairs (0 batch, 1 rows, 2 k) as rows and k. */
static struct view pick_axes(const struct view *view, uint32_t rows, uint32_t k)
{
    struct view picked = *view;

    for (uint32_t axis = 0; axis < 2; axis++) {
        picked.dims[2 + axis] = view->dims[2 * rows + axis];
        picked.strides[2 + axis] = view->strides[2 * rows + axis];
        picked.dims[4 + axis] = view->dims[2 * k + axis];
        picked.strides[4 + axis] = view->strides[2 * k + axis];
    }
    return picked;
}

static bool is_requested(const struct reverse *reverse, uint32_t tensor)
{
    for (uint32_t i = 0; i < reverse->of_count; i++) {
        if (reverse->of[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* Are the view's rows and k the rows and columns of a softmax over `columns`? */
static bool keeps_rows(const struct view *view, uint64_t period, uint64_t columns)
{
    if (view->dims[4] != 1 || view->dims[5] != columns || (columns > 1 && view->strides[5] != 1) ||
        view->dims[3] % period != 0 || (view->dims[3] > 1 && view->strides[3] != columns)) {
        return false;
    }
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (view->dims[axis] > 1 && view->strides[axis] % (period * columns) != 0) {
            return false;
        }
    }
    return true;
}

/*
 * The period of the causal softmax that made x, where only that softmax reads x's gradient and the
 * view keeps "row % period"; else 0.
 */
static uint64_t causal_period(const struct reverse *reverse, uint32_t x, const struct view *view)
{
    uint32_t producer = reverse->builder->notes[x].producer;
    const struct op *op;
    uint64_t period;

    if (producer == OP_NONE || is_requested(reverse, x)) {
        return 0;
    }
    op = &reverse->builder->tape.ops[producer];
    if (op->kind != OP_SOFTMAX || op->attributes[SOFTMAX_CAUSAL] == 0) {
        return 0;
    }
    period = (uint64_t)op->attributes[SOFTMAX_CAUSAL];
    return keeps_rows(view, period, (uint64_t)op->attributes[COLUMNS]) ? period : 0;
}

/* Is the operation's gradient +0 where that of its result is, for every finite number there? A
 * product with a finite factor, which has the place of its element. */
static bool keeps_zeros(const struct reverse *reverse, const struct op *op)
{
    const int64_t *attributes = op->attributes;

    return op->kind == OP_MAP
               ? attributes[MAP_FUNCTION] == MAP_SCALE
               : op->kind == OP_BINARY && attributes[BINARY_FUNCTION] == BINARY_MUL &&
                     builder_tensor(reverse->builder, op->inputs[0])->count ==
                         builder_tensor(reverse->builder, op->outputs[0])->count;
}

/*
 * The gradient of a causal softmax from which dy follows, element by element, or NULL. A cap and a
 * scale stand between the scores and the softmax; their gradients are dy times a factor, mul and
 * scale of one operand, whose other factor follows from what the product made. That is +0 in the
 * elements that it leaves out, so the factor is finite.
 */
static const struct op *masked_by(const struct reverse *reverse, uint32_t dy)
{
    const struct tape *tape = &reverse->builder->tape;

    while (reverse->builder->notes[dy].producer != OP_NONE) {
        const struct op *op = &tape->ops[reverse->builder->notes[dy].producer];

        if (op->kind == OP_SOFTMAX_GRAD) {
            return op;
        }
        if (!keeps_zeros(reverse, op)) {
            return NULL;
        }
        dy = op->inputs[0];
    }
    return NULL;
}

/*
 * The elements that a causal product leaves out must have no gradient. That holds when dy is the
 * gradient of a softmax of the same period, which is +0 there, or what a cap between them makes of
 * it. Any other dy is refused.
 */
static bool is_masked(const struct reverse *reverse, uint32_t dy, const struct view *out_view)
{
    uint64_t period = attribute_at(reverse, CONTRACT_CAUSAL);
    struct view rows = pick_axes(out_view, 1, 2);
    const struct op *op = period == 0 ? NULL : masked_by(reverse, dy);

    if (period == 0) {
        return true;
    }
    return op != NULL && op->kind == OP_SOFTMAX_GRAD &&
           (uint64_t)op->attributes[SOFTMAX_CAUSAL] == period &&
           keeps_rows(&rows, period, (uint64_t)op->attributes[COLUMNS]);
}

/*
 * What the gradient of a weight sums over is the rows m of a and dy: tokens. Each gives them its
 * own size; the rows that another product has quantized already tell which.
 */
static struct shifts token_shifts(struct reverse *reverse, uint32_t dy, uint32_t exponents,
                                  const struct view *rows_k, const struct view *rows_m)
{
    struct builder *builder = reverse->builder;
    const uint64_t tokens = rows_k->dims[4] * rows_k->dims[5];
    uint32_t other;
    struct shifts shifts;

    if (!builder->equilibrates || rows_k->dims[0] * rows_k->dims[1] != 1 || tokens == 1) {
        return SHIFTS_NONE;
    }
    other = find_exponents(builder, dy, rows_m);
    shifts = build_equilibrate(builder, tokens, exponents, other);
    return (struct shifts){.down = shifts.up, .up = shifts.down}; /* dy is the first operand */
}

/*
 * out[r,n] = sum_k x[r,k] w[e,n,k] with e = index[r] gives
 *
 *     dx[r,k] = sum_n dout[r,n] w[e,n,k]    dw[e,n,k] = sum over r with index[r] == e of
 *                                                       dout[r,n] x[r,k]
 *
 * of weights as they lie in the files, and of rows as they lie.
 */
void grad_contract_chosen(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    struct view x_view;
    struct view w_view;

    if (!is_quantized(reverse, 0) || !is_quantized(reverse, 3)) {
        builder_fail(builder, STATUS_BAD_FORMAT, "a contraction of what no operation quantized");
        return;
    }
    const uint32_t x = quantize_of(reverse, 0, &x_view)->inputs[0];
    const uint32_t w = quantize_of(reverse, 3, &w_view)->inputs[0];
    const uint32_t exponents = reverse->op->inputs[1];
    const uint32_t index = reverse->op->inputs[2];
    const uint64_t rows = attribute_at(reverse, CHOSEN_ROWS);
    const uint64_t experts = attribute_at(reverse, CHOSEN_EXPERTS);
    const uint64_t n = attribute_at(reverse, CHOSEN_WIDTH);
    const uint64_t k = attribute_at(reverse, CHOSEN_K);
    const struct view plain_x = view_matrix(rows, k);
    const struct view plain_w = view_experts(experts, n, k);

    if (memcmp(&x_view, &plain_x, sizeof(x_view)) != 0 ||
        memcmp(&w_view, &plain_w, sizeof(w_view)) != 0) {
        builder_fail(builder, STATUS_BAD_FORMAT, "no gradient of experts in another view");
        return;
    }
    if (reverse->wanted[x]) {
        struct view across = view_experts_transposed(experts, n, k);
        const struct tensor shape = *builder_tensor(builder, x);

        add_to(reverse, x,
               build_contract_chosen(builder, dy, index, w, &across, shape.rank, shape.dims));
    }
    if (reverse->wanted[w]) {
        const struct view rows_m = view_matrix(rows, n);
        const struct view rows_n = view_transposed(n, rows);
        const struct view rows_k = view_transposed(k, rows);
        const struct tensor shape = *builder_tensor(builder, w);
        const struct shifts shifts = token_shifts(reverse, dy, exponents, &rows_k, &rows_m);

        add_to(reverse, w,
               build_contract_chosen_rows(builder, index, dy, &rows_n, x, &rows_k, shifts,
                                          shape.rank, shape.dims));
    }
}

/* out[v] = sum over k with index[k] == v of x[k] gives dx[k] = dout[index[k]]. */
void grad_contract_onehot(struct reverse *reverse, uint32_t dy)
{
    const struct view rows =
        view_transposed(attribute_at(reverse, ONEHOT_WIDTH), attribute_at(reverse, ONEHOT_K));
    struct view view;

    if (!is_quantized(reverse, 1)) {
        builder_fail(reverse->builder, STATUS_BAD_FORMAT,
                     "a contraction of what no operation quantized");
        return;
    }
    const uint32_t x = quantize_of(reverse, 1, &view)->inputs[0];

    if (memcmp(&view, &rows, sizeof(view)) != 0) {
        builder_fail(reverse->builder, STATUS_BAD_FORMAT, "no gradient of rows in another view");
    } else if (reverse->wanted[x]) {
        const struct tensor like = *builder_tensor(reverse->builder, x);
        const uint64_t flat[2] = {attribute_at(reverse, ONEHOT_VOCABULARY), rows.dims[3]};
        const struct move all = {.dims = {1, 1, 1, 1, (int64_t)(flat[0] * flat[1])},
                                 .strides = {0, 0, 0, 0, 1}};
        uint32_t dx = build_move(reverse->builder, dy, &all, 2, flat);

        dx = build_gather(reverse->builder, dx, reverse->op->inputs[0]);
        add_to(reverse, x, build_reshape(reverse->builder, dx, like.rank, like.dims));
    }
}

/*
 * out[b,m,n] = sum_k a[b,m,k] b[b,n,k] gives
 *
 *     da[b,m,k] = sum_n dout[b,m,n] b[b,n,k]    db[b,n,k] = sum_m dout[b,m,n] a[b,m,k]
 *
 * Each is stored through the view that read its operand, so it has the operand's layout. Behind a
 * causal softmax only the visible part of da is read, and only that part is computed.
 */
static void add_product_gradients(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    struct view a_view;
    struct view b_view;

    if (!is_quantized(reverse, 0) || !is_quantized(reverse, 2)) {
        builder_fail(builder, STATUS_BAD_FORMAT, "a contraction of what no operation quantized");
        return;
    }
    /* The table of operations moves as it grows, so copy from it first. */
    uint32_t a = quantize_of(reverse, 0, &a_view)->inputs[0];
    const uint32_t exponents = reverse->op->inputs[1]; /* of a's rows */
    uint32_t b = quantize_of(reverse, 2, &b_view)->inputs[0];
    struct view out_view;

    for (uint32_t axis = 0; axis < 6; axis++) {
        out_view.dims[axis] = attribute_at(reverse, CONTRACT_DIMS + axis);
        out_view.strides[axis] = attribute_at(reverse, CONTRACT_STRIDES + axis);
    }
    if (!is_masked(reverse, dy, &out_view)) {
        builder_fail(builder, STATUS_BAD_FORMAT,
                     "no gradient of a causal product that no causal softmax reads");
        return;
    }
    const struct view rows_m = pick_axes(&out_view, 1, 2);

    if (reverse->wanted[a]) {
        struct view rows_k = pick_axes(&b_view, 2, 1);
        const struct tensor shape = *builder_tensor(builder, a);
        uint64_t causal = causal_period(reverse, a, &a_view);

        add_to(reverse, a,
               build_contract(builder, dy, &rows_m, b, &rows_k, a_view.strides, causal, shape.rank,
                              shape.dims));
    }
    if (reverse->wanted[b]) {
        struct view rows_n = pick_axes(&out_view, 2, 1);
        struct view rows_k = pick_axes(&a_view, 2, 1);
        const struct tensor shape = *builder_tensor(builder, b);

        const struct shifts shifts = token_shifts(reverse, dy, exponents, &rows_k, &rows_m);

        add_to(reverse, b,
               build_contract_shifted(builder, dy, &rows_n, a, &rows_k, b_view.strides, shifts,
                                      shape.rank, shape.dims));
    }
}

void grad_contract(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    const struct precision precision = builder->precision;

    if (builder->notes[reverse->op->outputs[0]].wide) {
        builder->precision = PRECISION_WIDE;
    }
    add_product_gradients(reverse, dy);
    builder->precision = precision;
}

/*
 * A sum of each row gives its gradient to all of the row. The view is a permutation, so an element
 * i has the index (i / stride) % length along an axis; rows of more than one axis have no short
 * form.
 */
void grad_contract_ones(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    struct view view;
    uint64_t div = 1;
    uint32_t axes = 0;

    if (!is_quantized(reverse, 0)) {
        builder_fail(builder, STATUS_BAD_FORMAT, "a sum of what no operation quantized");
        return;
    }
    uint32_t x = quantize_of(reverse, 0, &view)->inputs[0];

    for (uint32_t axis = 0; axis < 4; axis++) {
        if (view.dims[axis] > 1) {
            div = view.strides[axis];
            axes++;
        }
    }
    if (axes > 1) {
        builder_fail(builder, STATUS_BAD_FORMAT, "no gradient of sums over rows of %u axes", axes);
        return;
    }
    if (reverse->wanted[x]) {
        const struct tensor shape = *builder_tensor(builder, x);

        add_to(reverse, x, build_expand(builder, dy, div, shape.rank, shape.dims));
    }
}

void grad_row_sum(struct reverse *reverse, uint32_t dy)
{
    const struct tensor shape = *input_tensor(reverse, 0);

    reverse_add(
        reverse, 0,
        build_expand(reverse->builder, dy, attribute_at(reverse, COLUMNS), shape.rank, shape.dims));
}

/* ---- rows --------------------------------------------------------------- */

void grad_norm(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    const struct op *norm = reverse->op;
    bool layer = norm->kind == OP_LAYER_NORM;
    uint64_t rows = attribute_at(reverse, ROWS);
    uint64_t columns = attribute_at(reverse, COLUMNS);
    struct output_shape part = shape_matrix(DTYPE_F32, rows, fold_chunks(columns));
    struct output_shape one = shape_vector(DTYPE_F32, rows);
    struct output_shape all = shape_like(builder, dy);
    uint32_t layer_inputs[5] = {dy, norm->inputs[0], norm->inputs[1], norm->outputs[1],
                                norm->outputs[3]};
    uint32_t rms_inputs[4] = {dy, norm->inputs[0], norm->inputs[1], norm->outputs[1]};
    struct output_shape layer_shapes[6] = {part, part, one, one, all, all};
    struct output_shape rms_shapes[4] = {part, one, all, all};
    struct op op = layer ? op_begin(OP_LAYER_NORM_GRAD, 5, layer_inputs)
                         : op_begin(OP_RMS_NORM_GRAD, 4, rms_inputs);
    uint32_t main = layer ? 4 : 2;

    build_with_attributes(reverse, &op, NORM_GRAD_ATTRIBUTES, layer ? layer_shapes : rms_shapes,
                          main + 2);
    if (reverse_wants(reverse, 0)) {
        reverse_add(reverse, 0, op.outputs[main]);
    }
    if (reverse_wants(reverse, 1)) {
        reverse_add_reduced(reverse, 1, op.outputs[main + 1], 1, columns);
    }
    if (layer && reverse_wants(reverse, 2)) {
        reverse_add_reduced(reverse, 2, dy, 1, columns);
    }
}

/* A row's gradient goes to one element: the extreme, or the one that was gathered. */
void grad_one_of_row(struct reverse *reverse, uint32_t dy)
{
    const struct op *forward = reverse->op;
    bool reduce = forward->kind == OP_REDUCE;
    uint32_t inputs[2] = {reduce ? forward->outputs[3] : forward->inputs[1], dy};
    struct op op = op_begin(OP_GATHER_ELEMENTS_GRAD, 2, inputs);
    struct output_shape shape = shape_like(reverse->builder, forward->inputs[0]);

    build_with_attributes(reverse, &op, GATHER_ELEMENTS_ATTRIBUTES, &shape, 1);
    reverse_add(reverse, 0, op.outputs[0]);
}

void grad_gather_elements_grad(struct reverse *reverse, uint32_t dy)
{
    uint32_t inputs[2] = {dy, reverse->op->inputs[0]};
    struct op op = op_begin(OP_GATHER_ELEMENTS, 2, inputs);
    struct output_shape shape = shape_like(reverse->builder, reverse->op->inputs[1]);

    build_with_attributes(reverse, &op, GATHER_ELEMENTS_ATTRIBUTES, &shape, 1);
    reverse_add(reverse, 1, op.outputs[0]);
}

void grad_softmax(struct reverse *reverse, uint32_t dy)
{
    const bool reach = reverse->op->input_count > 1;
    uint32_t inputs[3] = {reverse->op->outputs[5], dy, reach ? reverse->op->inputs[1] : 0};
    struct op op = op_begin(OP_SOFTMAX_GRAD, reach ? 3 : 2, inputs);
    uint64_t rows = attribute_at(reverse, ROWS);
    struct output_shape shapes[3] = {
        shape_matrix(DTYPE_F32, rows, fold_chunks(attribute_at(reverse, COLUMNS))),
        shape_vector(DTYPE_F32, rows), shape_like(reverse->builder, dy)};

    build_with_attributes(reverse, &op, SOFTMAX_ATTRIBUTES, shapes, 3);
    reverse_add(reverse, 0, op.outputs[2]);
}

void grad_cross_entropy(struct reverse *reverse, uint32_t dloss)
{
    const struct op *forward = reverse->op;
    uint32_t inputs[5] = {forward->inputs[0], forward->inputs[1], forward->outputs[1],
                          forward->outputs[4], dloss};
    struct op op = op_begin(OP_CROSS_ENTROPY_GRAD, 5, inputs);
    struct output_shape shape = shape_like(reverse->builder, forward->inputs[0]);

    build_with_attributes(reverse, &op, CROSS_ENTROPY_ATTRIBUTES, &shape, 1);
    reverse_add(reverse, 0, op.outputs[0]);
}

/* ---- the pass ----------------------------------------------------------- */

struct gradient_rule {
    gradient_function *apply; /* NULL: none */
    uint32_t main_output;     /* the output that carries the gradient */
};

#define OP_GRADIENT(rule, output)                                                                  \
    {                                                                                              \
        grad_##rule, output                                                                        \
    }
#define OP_NO_GRADIENT                                                                             \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
#define GRADIENT(NAME, text, spec, rules, gradient, ...) [OP_##NAME] = gradient,

static const struct gradient_rule rules[OP_KIND_COUNT] = {OP_LIST(GRADIENT)};

/* Marks every tensor of the forward tape that depends on one of `of`. */
static void mark_wanted(struct reverse *reverse, const uint32_t *of, uint32_t count)
{
    const struct tape *tape = &reverse->builder->tape;

    for (uint32_t i = 0; i < count; i++) {
        reverse->wanted[of[i]] = true;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        bool any = false;

        for (uint32_t i = 0; i < op->input_count; i++) {
            any = any || reverse->wanted[op->inputs[i]];
        }
        for (uint32_t i = 0; any && i < op->output_count; i++) {
            reverse->wanted[op->outputs[i]] = !reverse->builder->notes[op->outputs[i]].stopped;
        }
    }
}

/* Has an output other than the main one a gradient? It would be lost. */
static bool has_side_gradient(const struct reverse *reverse, uint32_t main_output)
{
    for (uint32_t i = 0; i < reverse->op->output_count; i++) {
        if (i != main_output && reverse->grad[reverse->op->outputs[i]] != TENSOR_NONE) {
            return true;
        }
    }
    return false;
}

static void walk_back(struct reverse *reverse, uint32_t op_count)
{
    for (uint32_t at = op_count; at > 0 && !builder_failed(reverse->builder); at--) {
        reverse->current = reverse->builder->tape.ops[at - 1];
        const struct gradient_rule *rule = &rules[reverse->op->kind];
        uint32_t main = reverse->op->outputs[rule->main_output];

        if (reverse->op->kind == OP_SPLIT) {
            if (reverse_wants(reverse, 0)) {
                grad_split(reverse);
            }
        } else if (reverse->wanted[main] && has_side_gradient(reverse, rule->main_output)) {
            builder_fail(reverse->builder, STATUS_BAD_FORMAT,
                         "operation '%s' has no gradient rule for one of its outputs that is used",
                         op_kind_name(reverse->op->kind));
        } else if (reverse->grad[main] != TENSOR_NONE && reverse->wanted[main]) {
            if (rule->apply == NULL) {
                builder_fail(reverse->builder, STATUS_BAD_FORMAT,
                             "operation '%s' has no gradient rule",
                             op_kind_name(reverse->op->kind));
                return;
            }
            rule->apply(reverse, reverse->grad[main]);
        }
    }
}

void build_gradients(struct builder *builder, uint32_t *gradients, uint32_t loss,
                     const uint32_t *of, uint32_t count)
{
    struct reverse reverse = {
        .builder = builder, .count = builder->tape.tensor_count, .of = of, .of_count = count};
    uint32_t op_count = builder->tape.op_count;
    static const uint64_t one = 1;

    for (uint32_t i = 0; i < count; i++) {
        gradients[i] = TENSOR_NONE;
    }
    if (builder_failed(builder)) {
        return;
    }
    reverse.grad = malloc(((size_t)reverse.count + 1) * sizeof(*reverse.grad));
    reverse.wanted = calloc((size_t)reverse.count + 1, sizeof(*reverse.wanted));
    if (reverse.grad == NULL || reverse.wanted == NULL) {
        builder_fail(builder, STATUS_NO_MEMORY, "no memory for the reverse pass");
        goto out;
    }
    for (uint32_t id = 0; id < reverse.count; id++) {
        reverse.grad[id] = TENSOR_NONE;
    }
    reverse.op = &reverse.current;
    mark_wanted(&reverse, of, count);
    reverse.grad[loss] = build_fill(builder, 1.0f, 1, &one);
    walk_back(&reverse, op_count);
    for (uint32_t i = 0; i < count && !builder_failed(builder); i++) {
        gradients[i] = reverse.grad[of[i]];
    }
out:
    free(reverse.grad);
    free(reverse.wanted);
}
