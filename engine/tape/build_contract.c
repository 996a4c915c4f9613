/* build_contract.c - matrix products as quantize and contract; see builder.h. */
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/tape/builder_core.h"

struct view view_matrix(uint64_t rows, uint64_t k)
{
    return (struct view){{1, 1, 1, rows, 1, k}, {0, 0, 0, k, 0, 1}};
}

struct view view_transposed(uint64_t rows, uint64_t k)
{
    return (struct view){{1, 1, 1, rows, 1, k}, {0, 0, 0, 1, 0, rows}};
}

/* ---- quantize ----------------------------------------------------------- */

static bool same_view(const struct op *op, const struct view *view)
{
    for (uint32_t axis = 0; axis < 6; axis++) {
        int64_t dim = op->attributes[QUANTIZE_DIMS + axis];

        /* An axis of length one may have any stride. */
        if (dim != (int64_t)view->dims[axis] ||
            (dim != 1 && op->attributes[QUANTIZE_STRIDES + axis] != (int64_t)view->strides[axis])) {
            return false;
        }
    }
    return true;
}

static bool same_request(const struct op *op, const struct view *view, struct precision precision,
                         uint32_t shift)
{
    return (quantize_is_shifted(op) ? op->inputs[1] : SHIFT_NONE) == shift && same_view(op, view) &&
           op->attributes[QUANTIZE_BITS] == precision.bits &&
           op->attributes[QUANTIZE_BLOCK] == precision.block;
}

/* The QUANTIZE that serves the request already, or OP_NONE. */
static uint32_t find_request(const struct builder *builder, uint32_t x, const struct view *view,
                             struct precision precision, uint32_t shift)
{
    uint32_t at = builder->notes[x].last_quantize;

    while (at != OP_NONE && !same_request(&builder->tape.ops[at], view, precision, shift)) {
        at = builder->quantize_before[at];
    }
    return at;
}

uint32_t find_exponents(const struct builder *builder, uint32_t x, const struct view *view)
{
    uint32_t at = builder_failed(builder) ? OP_NONE : builder->notes[x].last_quantize;

    while (at != OP_NONE && !same_view(&builder->tape.ops[at], view)) {
        at = builder->quantize_before[at];
    }
    return at == OP_NONE ? SHIFT_NONE : builder->tape.ops[at].outputs[1];
}

struct quantized build_quantize_shifted(struct builder *builder, uint32_t x,
                                        const struct view *view, struct precision precision,
                                        uint32_t shift)
{
    uint32_t inputs[2] = {x, shift};
    struct op op = op_begin(OP_QUANTIZE, shift == SHIFT_NONE ? 1 : 2, inputs);
    uint64_t rows = 1;
    uint64_t k = view->dims[4] * view->dims[5];
    uint32_t before;

    if (builder_failed(builder)) {
        return (struct quantized){0, 0};
    }
    /* The same numbers in the same view were rounded before: a second operation would give the same
     * bits. */
    before = find_request(builder, x, view, precision, shift);
    if (before != OP_NONE) {
        const struct op *made = &builder->tape.ops[before];

        return (struct quantized){made->outputs[2], made->outputs[1]};
    }
    for (uint32_t axis = 0; axis < 6; axis++) {
        op_attribute(&op, view->dims[axis]);
        /* The first four axes are rows, the last two what is summed over. */
        rows *= axis < 4 ? view->dims[axis] : 1;
    }
    for (uint32_t axis = 0; axis < 6; axis++) {
        op_attribute(&op, view->strides[axis]);
    }
    op_attribute(&op, precision.bits);
    op_attribute(&op, precision.block);
    struct contraction_shape cut = contraction_shape((int64_t)k, precision.bits, precision.block);
    struct output_shape shapes[3] = {
        shape_matrix(DTYPE_I16, rows, (uint64_t)cut.pieces),
        shape_matrix(DTYPE_I16, rows, (uint64_t)cut.blocks),
        shape_matrix(precision.bits > 16 ? DTYPE_I32 : DTYPE_I16, rows, k)};
    op.output_count = 3;
    build_op(builder, &op, shapes);
    if (!builder_failed(builder)) {
        uint32_t at = builder->tape.op_count - 1;

        /* A list of the quantizations of a tensor, the newest first: find_request() looks through
         * it. */
        builder->quantize_before[at] = builder->notes[x].last_quantize;
        builder->notes[x].last_quantize = at;
    }
    return (struct quantized){op.outputs[2], op.outputs[1]};
}

struct quantized build_quantize(struct builder *builder, uint32_t x, const struct view *view,
                                struct precision precision)
{
    return build_quantize_shifted(builder, x, view, precision, SHIFT_NONE);
}

void builder_equilibrate(struct builder *builder)
{
    builder->equilibrates = true;
}

struct shifts build_equilibrate(struct builder *builder, uint64_t rows, uint32_t e, uint32_t f)
{
    uint32_t inputs[2] = {e, f};
    struct op op = op_begin(OP_EQUILIBRATE, f == SHIFT_NONE ? 1 : 2, inputs);
    struct output_shape shapes[2] = {shape_vector(DTYPE_I16, rows), shape_vector(DTYPE_I16, rows)};

    if (builder_failed(builder)) {
        return SHIFTS_NONE;
    }
    op_attribute(&op, rows);
    op_attribute(&op, builder_tensor(builder, e)->count / rows);
    op_attribute(&op, f == SHIFT_NONE ? 0 : builder_tensor(builder, f)->count / rows);
    op.output_count = 2;
    build_op(builder, &op, shapes);
    return (struct shifts){op.outputs[0], op.outputs[1]};
}

/* ---- contract ----------------------------------------------------------- */

void builder_choose(struct builder *builder,
                    struct product_choice (*choose)(void *context, uint32_t number), void *context)
{
    builder->choose = choose;
    builder->choose_context = context;
}

static uint32_t build_product(struct builder *builder, const struct quantized *qa,
                              const struct view *a_view, const struct quantized *qb,
                              const struct view *b_view, const uint64_t *out_strides,
                              struct precision precision, uint64_t causal, uint32_t rank,
                              const uint64_t *dims)
{
    uint32_t inputs[4] = {qa->q, qa->exponents, qb->q, qb->exponents};
    struct op op = op_begin(OP_CONTRACT, 4, inputs);
    struct output_shape shape = {DTYPE_F32, rank, {0}};

    if (a_view->dims[0] != b_view->dims[0] || a_view->dims[1] != b_view->dims[1] ||
        a_view->dims[4] != b_view->dims[4] || a_view->dims[5] != b_view->dims[5]) {
        builder_fail(builder, STATUS_USAGE, "the operands of a product do not fit each other");
        return 0;
    }
    for (uint32_t axis = 0; axis < 4; axis++) {
        op_attribute(&op, a_view->dims[axis]);
    }
    op_attribute(&op, b_view->dims[2]);
    op_attribute(&op, b_view->dims[3]);
    for (uint32_t axis = 0; axis < 6; axis++) {
        op_attribute(&op, out_strides[axis]);
    }
    op_attribute(&op, a_view->dims[4] * a_view->dims[5]);
    op_attribute(&op, precision.bits);
    op_attribute(&op, precision.block);
    op_attribute(&op, causal);
    for (uint32_t axis = 0; axis < rank && axis < TENSOR_RANK_MAX; axis++) {
        shape.dims[axis] = dims[axis];
    }
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* The shifts are the caller's: where it has none, they and the bits are chosen. */
static uint32_t build_chosen(struct builder *builder, uint32_t a, const struct view *a_view,
                             uint32_t b, const struct view *b_view, const uint64_t *out_strides,
                             struct shifts shifts, uint64_t causal, uint32_t rank,
                             const uint64_t *dims)
{
    struct precision precision = builder->precision;
    const uint32_t number = builder->product_count++;

    if (builder->choose != NULL && shifts.down == SHIFT_NONE && !builder_failed(builder)) {
        struct product_choice choice = builder->choose(builder->choose_context, number);

        shifts = choice.shifts;
        precision = choice.bits == 0 ? precision : (struct precision){choice.bits, 0};
    }
    struct quantized qa = build_quantize_shifted(builder, a, a_view, precision, shifts.down);
    struct quantized qb = build_quantize_shifted(builder, b, b_view, precision, shifts.up);

    return build_product(builder, &qa, a_view, &qb, b_view, out_strides, precision, causal, rank,
                         dims);
}

uint32_t build_contract_shifted(struct builder *builder, uint32_t a, const struct view *a_view,
                                uint32_t b, const struct view *b_view, const uint64_t *out_strides,
                                struct shifts shifts, uint32_t rank, const uint64_t *dims)
{
    return build_chosen(builder, a, a_view, b, b_view, out_strides, shifts, 0, rank, dims);
}

uint32_t build_contract(struct builder *builder, uint32_t a, const struct view *a_view, uint32_t b,
                        const struct view *b_view, const uint64_t *out_strides, uint64_t causal,
                        uint32_t rank, const uint64_t *dims)
{
    return build_chosen(builder, a, a_view, b, b_view, out_strides, SHIFTS_NONE, causal, rank,
                        dims);
}

static uint32_t build_matrix_product(struct builder *builder, uint32_t x, uint32_t weight,
                                     const struct view *weight_view, uint64_t n, uint64_t k)
{
    struct output_shape shape = shape_like(builder, x);
    struct view x_view;
    uint64_t strides[6] = {0, 0, 0, n, 0, 1};

    if (shape.rank == 0 || k == 0 || shape.dims[shape.rank - 1] != k) {
        builder_fail(builder, STATUS_USAGE, "'%s' does not end in an axis of %llu",
                     builder_tensor(builder, x)->name, (unsigned long long)k);
        return 0;
    }
    shape.dims[shape.rank - 1] = n;
    x_view = view_matrix(builder_tensor(builder, x)->count / k, k);
    return build_contract(builder, x, &x_view, weight, weight_view, strides, 0, shape.rank,
                          shape.dims);
}

/* Fails the builder if the weight is no matrix. */
static const struct tensor *weight_shape(struct builder *builder, uint32_t weight)
{
    const struct tensor *tensor = builder_tensor(builder, weight);

    if (tensor->rank != 2) {
        builder_fail(builder, STATUS_USAGE, "the weight '%s' is not a matrix", tensor->name);
    }
    return tensor;
}

static uint32_t build_linear_through(struct builder *builder, uint32_t x, uint32_t weight,
                                     bool transposed)
{
    const struct tensor *shape = weight_shape(builder, weight);
    uint64_t n = shape->dims[transposed ? 1 : 0];
    uint64_t k = shape->dims[transposed ? 0 : 1];
    struct view view = transposed ? view_transposed(n, k) : view_matrix(n, k);

    return build_matrix_product(builder, x, weight, &view, n, k);
}

uint32_t build_linear(struct builder *builder, uint32_t x, uint32_t weight)
{
    return build_linear_through(builder, x, weight, false);
}

uint32_t build_linear_transposed(struct builder *builder, uint32_t x, uint32_t weight)
{
    return build_linear_through(builder, x, weight, true);
}

uint32_t build_linear_wide(struct builder *builder, uint32_t x, uint32_t weight)
{
    const struct precision precision = builder->precision;
    uint32_t out;

    builder->precision = PRECISION_WIDE;
    out = build_linear(builder, x, weight);
    builder->precision = precision;
    if (!builder_failed(builder)) {
        builder->notes[out].wide = true;
    }
    return out;
}

/* ---- experts ------------------------------------------------------------ */

struct view view_experts(uint64_t experts, uint64_t n, uint64_t k)
{
    return (struct view){{1, 1, experts, n, 1, k}, {0, 0, n * k, k, 0, 1}};
}

struct view view_experts_transposed(uint64_t experts, uint64_t n, uint64_t k)
{
    return (struct view){{1, 1, experts, k, 1, n}, {0, 0, n * k, 1, 0, k}};
}

static void shape_of_dims(struct output_shape *shape, uint32_t rank, const uint64_t *dims)
{
    *shape = (struct output_shape){DTYPE_F32, rank, {0}};
    for (uint32_t axis = 0; axis < rank && axis < TENSOR_RANK_MAX; axis++) {
        shape->dims[axis] = dims[axis];
    }
}

uint32_t build_contract_chosen(struct builder *builder, uint32_t a, uint32_t index, uint32_t b,
                               const struct view *b_view, uint32_t rank, const uint64_t *dims)
{
    const uint64_t k = b_view->dims[4] * b_view->dims[5];
    const uint64_t rows = builder_tensor(builder, a)->count / k;
    const struct view a_view = view_matrix(rows, k);
    struct quantized qa = build_quantize(builder, a, &a_view, builder->precision);
    struct quantized qb = build_quantize(builder, b, b_view, builder->precision);
    uint32_t inputs[5] = {qa.q, qa.exponents, index, qb.q, qb.exponents};
    struct op op = op_begin(OP_CONTRACT_CHOSEN, 5, inputs);
    struct output_shape shape;

    shape_of_dims(&shape, rank, dims);
    op_attribute(&op, rows);
    op_attribute(&op, b_view->dims[2]);
    op_attribute(&op, b_view->dims[3]);
    op_attribute(&op, k);
    op_attribute(&op, builder->precision.bits);
    op_attribute(&op, builder->precision.block);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* Of one block a row: places of an expert stand together, from any block of the tokens. */
uint32_t build_contract_chosen_rows(struct builder *builder, uint32_t index, uint32_t a,
                                    const struct view *a_view, uint32_t b,
                                    const struct view *b_view, struct shifts shifts, uint32_t rank,
                                    const uint64_t *dims)
{
    const struct precision precision = {builder->precision.bits, 0};
    struct quantized qa = build_quantize_shifted(builder, a, a_view, precision, shifts.down);
    struct quantized qb = build_quantize_shifted(builder, b, b_view, precision, shifts.up);
    uint32_t inputs[5] = {index, qa.q, qa.exponents, qb.q, qb.exponents};
    struct op op = op_begin(OP_CONTRACT_CHOSEN_ROWS, 5, inputs);
    struct output_shape shape;

    shape_of_dims(&shape, rank, dims);
    op_attribute(&op, dims[0]);
    op_attribute(&op, a_view->dims[3]);
    op_attribute(&op, b_view->dims[3]);
    op_attribute(&op, a_view->dims[5]);
    op_attribute(&op, precision.bits);
    op_attribute(&op, precision.block);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

uint32_t build_sum_by_index(struct builder *builder, uint32_t index, uint32_t x, uint32_t rank,
                            const uint64_t *dims)
{
    const uint64_t rows = builder_tensor(builder, index)->count;
    const uint64_t width = builder_tensor(builder, x)->count / rows;
    struct view view = view_transposed(width, rows);
    struct quantized q = build_quantize(builder, x, &view, builder->precision);
    uint32_t inputs[3] = {index, q.q, q.exponents};
    struct op op = op_begin(OP_CONTRACT_ONEHOT, 3, inputs);
    struct output_shape shape = {DTYPE_F32, rank, {0}};
    uint64_t count = 1;

    for (uint32_t axis = 0; axis < rank && axis < TENSOR_RANK_MAX; axis++) {
        shape.dims[axis] = dims[axis];
        count *= dims[axis];
    }
    op_attribute(&op, width == 0 ? 0 : count / width);
    op_attribute(&op, width);
    op_attribute(&op, rows);
    op_attribute(&op, builder->precision.bits);
    op_attribute(&op, builder->precision.block);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

uint32_t build_linear_chosen(struct builder *builder, uint32_t x, uint32_t weight, uint32_t index)
{
    const struct tensor tensor = *builder_tensor(builder, weight);
    const struct tensor rows = *builder_tensor(builder, x);
    uint64_t dims[2];

    if (tensor.rank != 3 || rows.rank != 2 || rows.dims[1] != tensor.dims[2] ||
        builder_tensor(builder, index)->count != rows.dims[0]) {
        builder_fail(builder, STATUS_USAGE, "'%s' has no experts for such rows", tensor.name);
        return 0;
    }
    struct view view = view_experts(tensor.dims[0], tensor.dims[1], tensor.dims[2]);

    dims[0] = rows.dims[0];
    dims[1] = tensor.dims[1];
    return build_contract_chosen(builder, x, index, weight, &view, 2, dims);
}

/* ---- sums --------------------------------------------------------------- */

static uint32_t build_ones(struct builder *builder, uint32_t x, const struct view *view,
                           struct precision precision)
{
    const uint64_t *dims = view->dims;
    struct quantized q = build_quantize(builder, x, view, precision);
    uint32_t inputs[2] = {q.q, q.exponents};
    struct op op = op_begin(OP_CONTRACT_ONES, 2, inputs);
    struct output_shape shape = shape_vector(DTYPE_F32, dims[0] * dims[1] * dims[2] * dims[3]);

    op_attribute(&op, shape.dims[0]);
    op_attribute(&op, dims[4] * dims[5]);
    op_attribute(&op, precision.bits);
    op_attribute(&op, precision.block);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

uint32_t build_sum(struct builder *builder, uint32_t x, const struct view *view)
{
    return build_ones(builder, x, view, builder->precision);
}

uint32_t build_reduce(struct builder *builder, uint32_t x, uint64_t div, uint64_t mod)
{
    uint64_t count = builder_tensor(builder, x)->count;

    if (div == 0 || mod == 0 || div > count || mod > count || count % (div * mod) != 0) {
        builder_fail(builder, STATUS_USAGE, "cannot sum %llu elements in turns of %llu by %llu",
                     (unsigned long long)count, (unsigned long long)mod, (unsigned long long)div);
        return 0;
    }
    uint64_t outer = count / (div * mod);
    struct view view = {{1, 1, 1, mod, outer, div}, {0, 0, 0, div, mod * div, 1}};
    if (outer * div == 1) {
        return x; /* a sum of one element */
    }
    return build_ones(builder, x, &view, builder->precision);
}

/*
 * Two levels, so that a referee never sums a whole parameter: a dot product per row of the last
 * axis, then their sum at 22 bits, whose rounding error is far below the first level's.
 */
uint32_t build_square_sum(struct builder *builder, uint32_t x)
{
    const struct tensor *tensor = builder_tensor(builder, x);
    uint64_t k = tensor->rank == 0 ? 1 : tensor->dims[tensor->rank - 1];
    uint64_t rows = tensor->count / k;
    struct view view = {{rows, 1, 1, 1, 1, k}, {k, 0, 0, 0, 0, 1}};
    uint64_t strides[6] = {1, 0, 0, 0, 0, 0};
    struct view all = view_matrix(1, rows);
    uint32_t partial = build_contract(builder, x, &view, x, &view, strides, 0, 1, &rows);

    if (rows == 1) {
        return partial;
    }
    return build_ones(builder, partial, &all, (struct precision){22, 0});
}
