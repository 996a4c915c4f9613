/* build_general.c - short forms of the general kinds; see builder.h. */
#include "engine/tape/builder_core.h"

_Static_assert(VIEW_AXES == TENSOR_RANK_MAX, "the axes of a general view are those of its output");

/* The length of an axis, counted from the last one; 1 in front of the first. */
static uint64_t axis_from_end(const struct tensor *tensor, uint32_t back)
{
    return back < tensor->rank ? tensor->dims[tensor->rank - 1 - back] : 1;
}

/* The shape into which all inputs of op repeat. */
static void common_shape(struct builder *builder, struct output_shape *shape, const struct op *op)
{
    *shape = (struct output_shape){
        .dtype = builder_tensor(builder, op->inputs[op->input_count - 1])->dtype};
    for (uint32_t i = 0; i < op->input_count; i++) {
        uint32_t rank = builder_tensor(builder, op->inputs[i])->rank;

        shape->rank = rank > shape->rank ? rank : shape->rank;
    }
    for (uint32_t back = 0; back < shape->rank; back++) {
        uint64_t *length = &shape->dims[shape->rank - 1 - back];

        *length = 1;
        for (uint32_t i = 0; i < op->input_count; i++) {
            const struct tensor *tensor = builder_tensor(builder, op->inputs[i]);
            uint64_t own = axis_from_end(tensor, back);

            if (own != 1 && *length != 1 && own != *length) {
                builder_fail(builder, STATUS_USAGE,
                             "'%s' has %llu elements along an axis where another operand has %llu",
                             tensor->name, (unsigned long long)own, (unsigned long long)*length);
                return;
            }
            *length = own != 1 ? own : *length;
        }
    }
}

/* Appends the dims of the output, the strides of each input, and the operation. */
static uint32_t build_views(struct builder *builder, struct op *op)
{
    struct output_shape shape;

    common_shape(builder, &shape, op);
    if (builder_failed(builder)) {
        return 0;
    }
    for (uint32_t back = VIEW_AXES; back > 0; back--) {
        op_attribute(op, back > shape.rank ? 1 : shape.dims[shape.rank - back]);
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tensor *tensor = builder_tensor(builder, op->inputs[i]);
        uint64_t strides[VIEW_AXES];
        uint64_t stride = 1;

        for (uint32_t back = 0; back < VIEW_AXES; back++) {
            uint64_t length = axis_from_end(tensor, back);

            strides[VIEW_AXES - 1 - back] = length == 1 ? 0 : stride;
            stride *= length;
        }
        for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
            op_attribute(op, strides[axis]);
        }
    }
    op->output_count = 1;
    build_op(builder, op, &shape);
    return op->outputs[0];
}

uint32_t build_binary(struct builder *builder, enum binary_function function, uint32_t a,
                      uint32_t b)
{
    uint32_t inputs[2] = {a, b};
    struct op op = op_begin(OP_BINARY, 2, inputs);

    op_attribute(&op, function);
    return build_views(builder, &op);
}

uint32_t build_select(struct builder *builder, uint32_t c, uint32_t a, uint32_t b)
{
    uint32_t inputs[3] = {c, a, b};
    struct op op = op_begin(OP_SELECT, 3, inputs);

    return build_views(builder, &op);
}

/* ---- moves and places ----------------------------------------------------- */

static void add_move(struct op *op, const struct move *move)
{
    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        op_attribute(op, (uint64_t)move->dims[axis]);
    }
    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        op_attribute(op, (uint64_t)move->strides[axis]);
    }
    op_attribute(op, (uint64_t)move->offset);
}

static uint32_t build_moved(struct builder *builder, struct op *op, const struct move *move,
                            uint32_t rank, const uint64_t *dims)
{
    struct output_shape shape = {builder_tensor(builder, op->inputs[0])->dtype, rank, {0}};

    for (uint32_t axis = 0; axis < rank && axis < TENSOR_RANK_MAX; axis++) {
        shape.dims[axis] = dims[axis];
    }
    add_move(op, move);
    op->output_count = 1;
    build_op(builder, op, &shape);
    return op->outputs[0];
}

uint32_t build_move(struct builder *builder, uint32_t x, const struct move *move, uint32_t rank,
                    const uint64_t *dims)
{
    struct op op = op_begin(OP_MOVE, 1, &x);

    return build_moved(builder, &op, move, rank, dims);
}

uint32_t build_place(struct builder *builder, uint32_t x, uint32_t base, const struct move *move,
                     uint32_t rank, const uint64_t *dims)
{
    uint32_t inputs[2] = {x, base};
    struct op op = op_begin(OP_PLACE, 2, inputs);

    return build_moved(builder, &op, move, rank, dims);
}

/* The strides of a dense shape. */
static void shape_strides(int64_t strides[TENSOR_RANK_MAX], uint32_t rank, const uint64_t *dims)
{
    int64_t stride = 1;

    for (uint32_t axis = rank; axis > 0; axis--) {
        strides[axis - 1] = stride;
        stride *= (int64_t)dims[axis - 1];
    }
}

static struct move move_of_nothing(void)
{
    return (struct move){{1, 1, 1, 1, 1}, {0}, 0};
}

uint32_t build_permute(struct builder *builder, uint32_t x, const uint32_t *order)
{
    const struct tensor tensor = *builder_tensor(builder, x);
    struct move move = move_of_nothing();
    int64_t strides[TENSOR_RANK_MAX];
    uint64_t dims[TENSOR_RANK_MAX] = {0};

    shape_strides(strides, tensor.rank, tensor.dims);
    for (uint32_t axis = 0; axis < tensor.rank; axis++) {
        uint32_t from = order[axis];

        if (from >= tensor.rank) {
            builder_fail(builder, STATUS_USAGE, "'%s' has no axis %u", tensor.name, from);
            return 0;
        }
        dims[axis] = tensor.dims[from];
        move.dims[axis] = (int64_t)dims[axis];
        move.strides[axis] = strides[from];
    }
    return build_move(builder, x, &move, tensor.rank, dims);
}

uint32_t build_slice(struct builder *builder, uint32_t x, const uint64_t *starts,
                     const uint64_t *counts, const int64_t *steps)
{
    const struct tensor tensor = *builder_tensor(builder, x);
    struct move move = move_of_nothing();
    int64_t strides[TENSOR_RANK_MAX];

    shape_strides(strides, tensor.rank, tensor.dims);
    for (uint32_t axis = 0; axis < tensor.rank; axis++) {
        int64_t last = (int64_t)starts[axis] + ((int64_t)counts[axis] - 1) * steps[axis];

        /* Past the end of an axis lies another row: op_check() would take it. */
        if (counts[axis] == 0 || starts[axis] >= tensor.dims[axis] || last < 0 ||
            last >= (int64_t)tensor.dims[axis]) {
            builder_fail(builder, STATUS_USAGE, "a slice ends outside of axis %u of '%s'", axis,
                         tensor.name);
            return 0;
        }
        move.dims[axis] = (int64_t)counts[axis];
        move.strides[axis] = steps[axis] * strides[axis];
        move.offset += (int64_t)starts[axis] * strides[axis];
    }
    return build_move(builder, x, &move, tensor.rank, counts);
}

/* The move that puts x at `at` into a tensor of shape dims. */
static struct move move_into(const struct tensor *x, const uint64_t *at, const uint64_t *dims)
{
    struct move move = move_of_nothing();
    int64_t strides[TENSOR_RANK_MAX] = {0};

    shape_strides(strides, x->rank, dims);
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        move.dims[axis] = (int64_t)x->dims[axis];
        move.strides[axis] = strides[axis];
        move.offset += (int64_t)at[axis] * strides[axis];
    }
    return move;
}

uint32_t build_pad(struct builder *builder, uint32_t x, const uint64_t *before,
                   const uint64_t *after, float value)
{
    const struct tensor tensor = *builder_tensor(builder, x);
    uint64_t dims[TENSOR_RANK_MAX] = {0};
    static const uint64_t one = 1;

    for (uint32_t axis = 0; axis < tensor.rank; axis++) {
        dims[axis] = before[axis] + tensor.dims[axis] + after[axis];
    }
    struct move move = move_into(&tensor, before, dims);
    return build_place(builder, x, build_fill(builder, value, 1, &one), &move, tensor.rank, dims);
}

uint32_t build_join(struct builder *builder, const uint32_t *parts, uint32_t count, uint32_t axis)
{
    const struct tensor first = *builder_tensor(builder, parts[0]);
    uint64_t dims[TENSOR_RANK_MAX] = {0};
    uint64_t at[TENSOR_RANK_MAX] = {0};
    static const uint64_t one = 1;
    uint32_t joined = build_fill(builder, 0.0f, 1, &one);

    for (uint32_t i = 0; i < first.rank; i++) {
        dims[i] = i == axis ? 0 : first.dims[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct tensor *part = builder_tensor(builder, parts[i]);

        for (uint32_t other = 0; other < first.rank; other++) {
            if (part->rank != first.rank || axis >= first.rank ||
                (other != axis && part->dims[other] != first.dims[other])) {
                builder_fail(builder, STATUS_USAGE, "'%s' does not join '%s' along axis %u",
                             part->name, first.name, axis);
                return 0;
            }
        }
        dims[axis] += part->dims[axis];
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct tensor part = *builder_tensor(builder, parts[i]);
        struct move move = move_into(&part, at, dims);

        joined = build_place(builder, parts[i], joined, &move, part.rank, dims);
        at[axis] += part.dims[axis];
    }
    return joined;
}

uint32_t build_cast(struct builder *builder, uint32_t x, enum dtype dtype)
{
    struct output_shape shape = shape_like(builder, x);
    struct op op = op_begin(OP_CAST, 1, &x);

    shape.dtype = dtype;
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}
