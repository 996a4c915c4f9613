/* build_general.c - short forms of the general kinds; see builder.h. */
#include "engine/tape/builder_core.h"

_Static_assert(VIEW_AXES == TENSOR_RANK_MAX, "the axes of a general view are those of its output");

uint32_t build_map(struct builder *builder, enum map_function function, uint32_t x)
{
    struct output_shape shape = shape_like(builder, x);
    struct op op = op_begin(OP_MAP, 1, &x);

    op_attribute(&op, function);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

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
