/*
 * reverse_general.c - the gradient rules of the general kinds, as tapes of other kinds.
 *
 * An operand that was repeated gets the sum of what its copies get, by exact contraction. Steps
 * (sign, floor, comparisons) have no gradient: nothing is added.
 */
#include "engine/ops/real.h"
#include "engine/ops/view.h"
#include "engine/tape/reverse_core.h"

#define TWO_OVER_SQRT_PI 0x1.20dd76p0f

/* ---- views ---------------------------------------------------------------- */

static const int64_t once[VIEW_AXES] = {0}; /* the strides of an operand of one element */

/* An operand and how it is read: NULL for one that lies as the output does. */
struct viewed {
    uint32_t tensor;
    const int64_t *strides;
};

static void add_strides(struct op *op, const int64_t *dims, const int64_t *strides)
{
    int64_t dense[VIEW_AXES];

    view_dense(dense, dims);
    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        op_attribute(op, (uint64_t)(strides != NULL ? strides : dense)[axis]);
    }
}

/* Appends dims, the strides of count operands, and the operation, shaped as the forward output. */
static uint32_t build_viewed(struct reverse *reverse, struct op *op, const int64_t *dims,
                             const struct viewed *operands, uint32_t count)
{
    struct output_shape shape = shape_like(reverse->builder, reverse->op->outputs[0]);

    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        op_attribute(op, (uint64_t)dims[axis]);
    }
    for (uint32_t i = 0; i < count; i++) {
        op->inputs[i] = operands[i].tensor;
        add_strides(op, dims, operands[i].strides);
    }
    op->output_count = 1;
    build_op(reverse->builder, op, &shape);
    return op->outputs[0];
}

static uint32_t build_pair(struct reverse *reverse, enum binary_function function,
                           const int64_t *dims, struct viewed a, struct viewed b)
{
    static const uint32_t none[2] = {0};
    struct op op = op_begin(OP_BINARY, 2, none);
    struct viewed operands[2] = {a, b};

    op_attribute(&op, function);
    return build_viewed(reverse, &op, dims, operands, 2);
}

static uint32_t build_choice(struct reverse *reverse, const int64_t *dims, struct viewed c,
                             struct viewed a, struct viewed b)
{
    static const uint32_t none[3] = {0};
    struct op op = op_begin(OP_SELECT, 3, none);
    struct viewed operands[3] = {c, a, b};

    return build_viewed(reverse, &op, dims, operands, 3);
}

static uint32_t fill_number(struct reverse *reverse, float value)
{
    static const uint64_t one = 1;

    return build_fill(reverse->builder, value, 1, &one);
}

/* ---- sums over repeated axes ---------------------------------------------- */

/* The axes of a view that an operand repeats, neighbours as one: at most two. */
static uint32_t repeated_axes(struct view *view, const int64_t *dims, const int64_t *strides)
{
    int64_t dense[VIEW_AXES];
    uint32_t count = 0;
    bool before = false; /* is the axis before this one repeated too? */

    view_dense(dense, dims);
    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        if (dims[axis] == 1) {
            continue;
        }
        if (strides[axis] == 0) {
            count += before ? 0 : 1;
            view->dims[3 + count] *= (uint64_t)dims[axis];
            view->strides[3 + count] = (uint64_t)dense[axis];
        }
        before = strides[axis] == 0;
    }
    return count;
}

/* The other axes as rows, in the order in which the operand has them. */
static void kept_axes(struct view *view, const int64_t *dims, const int64_t *strides)
{
    int64_t dense[VIEW_AXES];
    bool placed[VIEW_AXES] = {false};

    view_dense(dense, dims);
    for (uint32_t row = VIEW_AXES; row > 0; row--) {
        uint32_t least = VIEW_AXES;

        for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
            if (!placed[axis] && dims[axis] > 1 && strides[axis] > 0 &&
                (least == VIEW_AXES || strides[axis] < strides[least])) {
                least = axis;
            }
        }
        if (least < VIEW_AXES) {
            placed[least] = true;
            view->dims[row - 1] = (uint64_t)dims[least];
            view->strides[row - 1] = (uint64_t)dense[least];
        }
    }
}

/* The elements of a gradient in the order in which the operand has them. */
static uint32_t reordered_gradient(struct reverse *reverse, uint32_t slot, uint32_t gradient,
                                   const struct view *view)
{
    const struct tensor like = *builder_tensor(reverse->builder, reverse->op->inputs[slot]);
    struct move move = {{1, 1, 1, 1, 1}, {0}, 0};

    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        move.dims[axis] = (int64_t)view->dims[axis];
        move.strides[axis] = (int64_t)view->strides[axis];
    }
    return build_move(reverse->builder, gradient, &move, like.rank, like.dims);
}

/* Adds what the copies of the operand get to its gradient. */
static void add_viewed(struct reverse *reverse, uint32_t slot, uint32_t gradient,
                       const int64_t *dims, const int64_t *strides)
{
    struct view view = {{1, 1, 1, 1, 1, 1}, {0}};
    struct view_turns turns;

    if (view_is_turns(&turns, dims, strides)) {
        reverse_add_reduced(reverse, slot, gradient, turns.div, turns.mod);
        return;
    }
    kept_axes(&view, dims, strides);
    if (repeated_axes(&view, dims, strides) == 0) {
        gradient = reordered_gradient(reverse, slot, gradient, &view);
    } else {
        gradient = build_sum(reverse->builder, gradient, &view);
    }
    reverse_add(reverse, slot, gradient);
}

/* A function without a gradient rule, or a power whose exponent wants one. */
static uint32_t reverse_refuse(struct reverse *reverse)
{
    builder_fail(reverse->builder, STATUS_BAD_FORMAT,
                 "operation '%s' has no gradient rule for what depends on a parameter",
                 op_name(reverse->op));
    return TENSOR_NONE;
}

/* ---- MAP --------------------------------------------------------------------- */

/* Functions of tensors that lie alike. */
struct flat {
    struct reverse *reverse;
    int64_t dims[VIEW_AXES];
    uint32_t x;
    uint32_t y;
    uint32_t dy;
    float constant;
};

static uint32_t flat_pair(struct flat *flat, enum binary_function function, uint32_t a, uint32_t b)
{
    struct viewed left = {a, NULL};
    struct viewed right = {b, NULL};

    return build_pair(flat->reverse, function, flat->dims, left, right);
}

static uint32_t flat_mul(struct flat *flat, uint32_t a, uint32_t b)
{
    return flat_pair(flat, BINARY_MUL, a, b);
}

/* 1 - a */
static uint32_t flat_rest(struct flat *flat, uint32_t a)
{
    struct viewed one = {fill_number(flat->reverse, 1.0f), once};
    struct viewed right = {a, NULL};

    return build_pair(flat->reverse, BINARY_SUB, flat->dims, one, right);
}

static uint32_t flat_map(struct flat *flat, enum map_function function, uint32_t a)
{
    return build_map(flat->reverse->builder, function, a);
}

static uint32_t flat_scale(struct flat *flat, uint32_t a, float factor)
{
    return build_scale(flat->reverse->builder, a, factor);
}

/* dy times the derivative; TENSOR_NONE: the function is a step, and its derivative is 0. */
static uint32_t flat_gradient(struct flat *flat, enum map_function function)
{
    uint32_t x = flat->x;
    uint32_t y = flat->y;
    uint32_t dy = flat->dy;

    switch (function) {
    case MAP_SIGN:
    case MAP_FLOOR:
    case MAP_CEIL:
    case MAP_ROUND:
        return TENSOR_NONE;
    case MAP_NEG:
        return flat_map(flat, MAP_NEG, dy);
    case MAP_ABS:
        return flat_mul(flat, dy, flat_map(flat, MAP_SIGN, x));
    case MAP_SQRT:
        return flat_pair(flat, BINARY_DIV, flat_scale(flat, dy, 0.5f), y);
    case MAP_RSQRT: /* -y / 2x: finite wherever the result is */
        return flat_mul(flat, flat_scale(flat, dy, -0.5f), flat_pair(flat, BINARY_DIV, y, x));
    case MAP_RECIPROCAL:
        return flat_mul(flat, flat_map(flat, MAP_NEG, dy), flat_mul(flat, y, y));
    case MAP_EXP:
        return flat_mul(flat, dy, y);
    case MAP_LOG:
        return flat_pair(flat, BINARY_DIV, dy, x);
    case MAP_TANH:
        return flat_mul(flat, dy, flat_rest(flat, flat_mul(flat, y, y)));
    case MAP_SIGMOID:
        return flat_mul(flat, dy, flat_mul(flat, y, flat_rest(flat, y)));
    case MAP_ERF:
        x = flat_map(flat, MAP_EXP, flat_map(flat, MAP_NEG, flat_mul(flat, x, x)));
        return flat_mul(flat, dy, flat_scale(flat, x, TWO_OVER_SQRT_PI));
    case MAP_SIN:
        return flat_mul(flat, dy, flat_map(flat, MAP_COS, x));
    case MAP_COS:
        return flat_mul(flat, flat_map(flat, MAP_NEG, dy), flat_map(flat, MAP_SIN, x));
    case MAP_GELU_ERF:
        return flat_mul(flat, dy, flat_map(flat, MAP_GELU_ERF_SLOPE, x));
    case MAP_SCALE:
        return flat_scale(flat, dy, flat->constant);
    case MAP_RELU:
        return flat_pair(flat, BINARY_RELU_GRAD, x, dy);
    case MAP_GELU:
        return flat_pair(flat, BINARY_GELU_GRAD, x, dy);
    case MAP_SILU:
        return flat_pair(flat, BINARY_SILU_GRAD, x, dy);
    case MAP_GELU_ERF_SLOPE:
    case MAP_FUNCTION_COUNT:
        break;
    }
    return reverse_refuse(flat->reverse);
}

void grad_map(struct reverse *reverse, uint32_t dy)
{
    const int64_t *attributes = reverse->op->attributes;
    struct flat flat = {.reverse = reverse,
                        .dims = {1, 1, 1, (int64_t)builder_tensor(reverse->builder, dy)->count},
                        .x = reverse->op->inputs[0],
                        .y = reverse->op->outputs[0],
                        .dy = dy,
                        .constant = real_from_bits((uint32_t)attributes[MAP_CONSTANT_BITS])};
    uint32_t gradient = flat_gradient(&flat, (enum map_function)attributes[MAP_FUNCTION]);

    if (gradient != TENSOR_NONE) {
        reverse_add(reverse, 0, gradient);
    }
}

/* ---- BINARY -------------------------------------------------------------------- */

struct two {
    struct reverse *reverse;
    const int64_t *dims;
    struct viewed a;
    struct viewed b;
    struct viewed dy;
};

static uint32_t two_pair(struct two *two, enum binary_function function, struct viewed a,
                         struct viewed b)
{
    return build_pair(two->reverse, function, two->dims, a, b);
}

static struct viewed viewed_alike(uint32_t tensor)
{
    return (struct viewed){tensor, NULL};
}

/* dy where first beats second, half of dy where they are equal. */
static uint32_t grad_extreme(struct two *two, struct viewed less, struct viewed more)
{
    struct builder *builder = two->reverse->builder;
    uint32_t whole = two_pair(two, BINARY_LESS, less, more);
    uint32_t half = build_scale(builder, two_pair(two, BINARY_EQUAL, less, more), 0.5f);
    uint32_t share = two_pair(two, BINARY_ADD, viewed_alike(whole), viewed_alike(half));

    return two_pair(two, BINARY_MUL, two->dy, viewed_alike(share));
}

/* dy * b * a^(b-1), and 0 where b is 0. */
static uint32_t grad_pow(struct two *two)
{
    struct reverse *reverse = two->reverse;
    uint32_t one = fill_number(reverse, 1.0f);
    struct viewed zero = {fill_number(reverse, 0.0f), once};
    uint32_t less =
        build_add(reverse->builder, two->b.tensor, build_scale(reverse->builder, one, -1.0f), 1);
    struct viewed lower = {less, two->b.strides};
    uint32_t power = two_pair(two, BINARY_POW, two->a, lower);
    uint32_t slope = two_pair(two, BINARY_MUL, viewed_alike(power), two->b);

    slope = build_choice(reverse, two->dims, two->b, viewed_alike(slope), zero);
    return two_pair(two, BINARY_MUL, two->dy, viewed_alike(slope));
}

/* The gradient of (a-b)^2 with respect to a. */
static uint32_t grad_square(struct two *two)
{
    uint32_t slope = two_pair(two, BINARY_SQUARED_ERROR_SLOPE, two->a, two->b);

    return two_pair(two, BINARY_MUL, viewed_alike(slope), two->dy);
}

static uint32_t grad_first(struct two *two, enum binary_function function)
{
    switch (function) {
    case BINARY_ADD:
    case BINARY_SUB:
        return two->dy.tensor;
    case BINARY_MUL:
        return two_pair(two, BINARY_MUL, two->dy, two->b);
    case BINARY_DIV:
        return two_pair(two, BINARY_DIV, two->dy, two->b);
    case BINARY_MAX:
        return grad_extreme(two, two->b, two->a);
    case BINARY_MIN:
        return grad_extreme(two, two->a, two->b);
    case BINARY_POW:
        return grad_pow(two);
    case BINARY_SQUARED_ERROR:
        return grad_square(two);
    case BINARY_LESS:
    case BINARY_LESS_EQUAL:
    case BINARY_EQUAL:
    case BINARY_NOT_EQUAL:
        return TENSOR_NONE;
    case BINARY_RELU_GRAD:
    case BINARY_GELU_GRAD:
    case BINARY_SILU_GRAD:
    case BINARY_SQUARED_ERROR_SLOPE:
    case BINARY_FUNCTION_COUNT:
        break;
    }
    return reverse_refuse(two->reverse);
}

/* first: the gradient of the first operand, or TENSOR_NONE where nobody wants it. */
static uint32_t grad_second(struct two *two, enum binary_function function, uint32_t first)
{
    struct builder *builder = two->reverse->builder;
    uint32_t part;

    switch (function) {
    case BINARY_ADD:
        return two->dy.tensor;
    case BINARY_SUB:
        return build_map(builder, MAP_NEG, two->dy.tensor);
    case BINARY_MUL:
        return two_pair(two, BINARY_MUL, two->dy, two->a);
    case BINARY_DIV: /* -(dy / b) * (a / b) */
        part = two_pair(two, BINARY_DIV, two->dy, two->b);
        part = two_pair(two, BINARY_MUL, viewed_alike(part),
                        viewed_alike(two->reverse->op->outputs[0]));
        return build_map(builder, MAP_NEG, part);
    case BINARY_MAX:
        return grad_extreme(two, two->a, two->b);
    case BINARY_MIN:
        return grad_extreme(two, two->b, two->a);
    case BINARY_SQUARED_ERROR:
        return build_scale(builder, first == TENSOR_NONE ? grad_square(two) : first, -1.0f);
    case BINARY_POW: /* none with respect to the exponent */
        return reverse_refuse(two->reverse);
    case BINARY_LESS:
    case BINARY_LESS_EQUAL:
    case BINARY_EQUAL:
    case BINARY_NOT_EQUAL:
    case BINARY_SQUARED_ERROR_SLOPE:
    case BINARY_RELU_GRAD:
    case BINARY_GELU_GRAD:
    case BINARY_SILU_GRAD:
    case BINARY_FUNCTION_COUNT:
        break;
    }
    return grad_first(two, function); /* none, as of the first */
}

void grad_binary(struct reverse *reverse, uint32_t dy)
{
    const int64_t *attributes = reverse->op->attributes;
    enum binary_function function = (enum binary_function)attributes[BINARY_FUNCTION];
    struct two two = {reverse,
                      &attributes[BINARY_DIMS],
                      {reverse->op->inputs[0], &attributes[BINARY_A_STRIDES]},
                      {reverse->op->inputs[1], &attributes[BINARY_B_STRIDES]},
                      {dy, NULL}};
    uint32_t first = reverse_wants(reverse, 0) ? grad_first(&two, function) : TENSOR_NONE;

    if (first != TENSOR_NONE) {
        add_viewed(reverse, 0, first, two.dims, two.a.strides);
    }
    if (reverse_wants(reverse, 1)) {
        uint32_t second = grad_second(&two, function, first);

        if (second != TENSOR_NONE) {
            add_viewed(reverse, 1, second, two.dims, two.b.strides);
        }
    }
}

/* ---- SELECT ----------------------------------------------------------------------- */

/* The condition has no gradient. */
void grad_select(struct reverse *reverse, uint32_t dy)
{
    const int64_t *attributes = reverse->op->attributes;
    const int64_t *dims = &attributes[SELECT_DIMS];
    struct viewed c = {reverse->op->inputs[0], &attributes[SELECT_C_STRIDES]};
    struct viewed all = {dy, NULL};

    if (reverse_wants(reverse, 1)) {
        struct viewed zero = {fill_number(reverse, 0.0f), once};

        add_viewed(reverse, 1, build_choice(reverse, dims, c, all, zero), dims,
                   &attributes[SELECT_A_STRIDES]);
    }
    if (reverse_wants(reverse, 2)) {
        struct viewed zero = {fill_number(reverse, 0.0f), once};

        add_viewed(reverse, 2, build_choice(reverse, dims, c, zero, all), dims,
                   &attributes[SELECT_B_STRIDES]);
    }
}

/* ---- MOVE and PLACE ----------------------------------------------------------------- */

static struct move move_of(const struct reverse *reverse)
{
    const int64_t *attributes = reverse->op->attributes;
    struct move move = {.offset = attributes[MOVE_OFFSET]};

    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        move.dims[axis] = attributes[MOVE_DIMS + axis];
        move.strides[axis] = attributes[MOVE_STRIDES + axis];
    }
    return move;
}

/* Sums the gradient over the axes that the move repeats, one group of neighbours after the other;
 * they then have length 1. */
static uint32_t sum_repeated(struct reverse *reverse, uint32_t gradient, struct move *move)
{
    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        struct view view = {{1, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 0, 1}};

        if (move->dims[axis] == 1 || move->strides[axis] != 0) {
            continue;
        }
        for (uint32_t other = 0; other < axis; other++) {
            view.dims[2] *= (uint64_t)move->dims[other];
        }
        uint32_t behind = axis;

        while (behind < MOVE_AXES && move->strides[behind] == 0) {
            view.dims[5] *= (uint64_t)move->dims[behind];
            move->dims[behind] = 1;
            behind++;
        }
        for (; behind < MOVE_AXES; behind++) {
            view.dims[3] *= (uint64_t)move->dims[behind];
        }
        view.strides[5] = view.dims[3];
        view.strides[2] = view.dims[3] * view.dims[5];
        gradient = build_sum(reverse->builder, gradient, &view);
    }
    return gradient;
}

void grad_move(struct reverse *reverse, uint32_t dy)
{
    const struct tensor x = *builder_tensor(reverse->builder, reverse->op->inputs[0]);
    struct move move = move_of(reverse);
    uint32_t gradient = sum_repeated(reverse, dy, &move);

    reverse_add(
        reverse, 0,
        build_place(reverse->builder, gradient, fill_number(reverse, 0.0f), &move, x.rank, x.dims));
}

void grad_place(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    const struct tensor x = *builder_tensor(builder, reverse->op->inputs[0]);
    const struct tensor base = *builder_tensor(builder, reverse->op->inputs[1]);
    const struct tensor out = *builder_tensor(builder, reverse->op->outputs[0]);
    struct move move = move_of(reverse);

    if (reverse_wants(reverse, 0)) {
        reverse_add(reverse, 0, build_move(builder, dy, &move, x.rank, x.dims));
    }
    if (reverse_wants(reverse, 1)) {
        uint32_t zeros = build_fill(builder, 0.0f, x.rank, x.dims);
        uint32_t rest = build_place(builder, zeros, dy, &move, out.rank, out.dims);

        reverse_add(reverse, 1, base.count == out.count ? rest : build_reduce(builder, rest, 1, 1));
    }
}

/* ---- several elements of each row ------------------------------------------------------- */

/* dy in the rows of the forward operation's tensor `like`: it has the shape of its last reader, and
 * TAKE and SCATTER find rows by the last axis. */
static uint32_t in_rows_of(struct reverse *reverse, uint32_t dy, uint32_t like)
{
    const struct tensor from = *builder_tensor(reverse->builder, dy);
    const struct tensor to = *builder_tensor(reverse->builder, like);
    const struct move all = {.dims = {1, 1, 1, 1, (int64_t)from.count}, .strides = {0, 0, 0, 0, 1}};

    return from.dims[from.rank - 1] == to.dims[to.rank - 1]
               ? dy
               : build_move(reverse->builder, dy, &all, to.rank, to.dims);
}

void grad_take(struct reverse *reverse, uint32_t dy)
{
    const struct tensor x = *builder_tensor(reverse->builder, reverse->op->inputs[0]);
    const uint32_t zeros = build_fill(reverse->builder, 0.0f, x.rank, x.dims);

    reverse_add(reverse, 0,
                build_scatter(reverse->builder, SCATTER_ADD, reverse->op->inputs[1], dy, zeros));
}

/* What was sent gets the gradient of its place, as PyTorch has it: also what was replaced. */
void grad_scatter(struct reverse *reverse, uint32_t dy)
{
    struct builder *builder = reverse->builder;
    const uint32_t index = reverse->op->inputs[0];
    const bool adds = reverse->op->attributes[SCATTER_FUNCTION] == SCATTER_ADD;
    const struct tensor x = *builder_tensor(builder, reverse->op->inputs[1]);

    dy = in_rows_of(reverse, dy, reverse->op->outputs[0]);
    if (reverse_wants(reverse, 1)) {
        const uint32_t taken = build_take(builder, dy, index);

        reverse_add(reverse, 1, build_reshape(builder, taken, x.rank, x.dims));
    }
    if (reverse_wants(reverse, 2)) {
        const uint32_t zeros = adds ? 0 : build_fill(builder, 0.0f, x.rank, x.dims);

        reverse_add(reverse, 2, adds ? dy : build_scatter(builder, SCATTER_LAST, index, zeros, dy));
    }
}

void grad_sort(struct reverse *reverse, uint32_t dy)
{
    dy = in_rows_of(reverse, dy, reverse->op->outputs[2]);
    reverse_add(reverse, 0, build_take(reverse->builder, dy, reverse->op->outputs[0]));
}

/* ---- CAST ------------------------------------------------------------------------------ */

/* Rounding passes gradients straight through; integers have none. */
void grad_cast(struct reverse *reverse, uint32_t dy)
{
    enum dtype from = builder_tensor(reverse->builder, reverse->op->inputs[0])->dtype;
    enum dtype to = builder_tensor(reverse->builder, reverse->op->outputs[0])->dtype;
    bool real_from = from == DTYPE_F32 || from == DTYPE_F16 || from == DTYPE_BF16;

    if (real_from && to != DTYPE_I32 && to != DTYPE_U32) {
        reverse_add(reverse, 0, dy);
    }
}
