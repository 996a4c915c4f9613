/* build_rows.c - short forms of integers, and of several elements of each row; see builder.h. */
#include "engine/tape/builder_core.h"

static uint64_t last_axis_of(const struct builder *builder, uint32_t x)
{
    const struct tensor *tensor = builder_tensor(builder, x);

    return tensor->dims[tensor->rank - 1];
}

/* The attributes of TAKE and SCATTER: rows of `whole` and so many places in each. */
static void sent_attributes(const struct builder *builder, struct op *op, uint32_t whole,
                            uint64_t width)
{
    const uint64_t columns = last_axis_of(builder, whole);

    op_attribute(op, builder_tensor(builder, whole)->count / columns);
    op_attribute(op, columns);
    op_attribute(op, width);
}

static struct output_shape shape_of(const struct builder *builder, uint32_t like, uint32_t type)
{
    struct output_shape shape = shape_like(builder, like);

    shape.dtype = builder_tensor(builder, type)->dtype;
    return shape;
}

uint32_t build_take(struct builder *builder, uint32_t x, uint32_t index)
{
    const uint32_t inputs[2] = {x, index};
    const uint64_t rows = builder_tensor(builder, x)->count / last_axis_of(builder, x);
    struct output_shape shape = shape_of(builder, index, x);
    struct op op = op_begin(OP_TAKE, 2, inputs);

    sent_attributes(builder, &op, x, builder_tensor(builder, index)->count / rows);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* The places first..first+width-1 of each row of x, which has `all` of them. */
static uint32_t places_of(struct builder *builder, uint32_t x, uint64_t rows, uint64_t all,
                          uint64_t first, uint64_t width)
{
    const struct move move = {.dims = {1, 1, 1, (int64_t)rows, (int64_t)width},
                              .strides = {0, 0, 0, (int64_t)all, 1},
                              .offset = (int64_t)first};
    const uint64_t dims[2] = {rows, width};

    return width == all ? x : build_move(builder, x, &move, 2, dims);
}

uint32_t build_scatter(struct builder *builder, enum scatter_function function, uint32_t index,
                       uint32_t x, uint32_t base)
{
    const uint64_t rows = builder_tensor(builder, base)->count / last_axis_of(builder, base);
    const uint64_t all = builder_tensor(builder, index)->count / rows;

    if (all == 0 || builder_tensor(builder, index)->count != rows * all ||
        builder_tensor(builder, x)->count != rows * all) {
        builder_fail(builder, STATUS_BAD_FORMAT, "'%s' and '%s' are not places of %llu rows",
                     builder_tensor(builder, index)->name, builder_tensor(builder, x)->name,
                     (unsigned long long)rows);
    }
    for (uint64_t first = 0; first < all && !builder_failed(builder); first += SCATTER_WIDTH_MAX) {
        const uint64_t left = all - first;
        const uint64_t width = left < SCATTER_WIDTH_MAX ? left : SCATTER_WIDTH_MAX;
        const uint32_t inputs[3] = {places_of(builder, index, rows, all, first, width),
                                    places_of(builder, x, rows, all, first, width), base};
        struct output_shape shape = shape_of(builder, base, base);
        struct op op = op_begin(OP_SCATTER, 3, inputs);

        sent_attributes(builder, &op, base, width);
        op_attribute(&op, function);
        op.output_count = 1;
        build_op(builder, &op, &shape);
        base = op.outputs[0];
    }
    return base;
}

void build_sort(struct builder *builder, struct sorted *sorted, uint32_t x, bool descending)
{
    struct op op = op_begin(OP_SORT, 1, &x);
    struct output_shape place = shape_like(builder, x);
    const uint64_t columns = last_axis_of(builder, x);

    op_attribute(&op, builder_tensor(builder, x)->count / columns);
    op_attribute(&op, columns);
    op_attribute(&op, descending);
    place.dtype = DTYPE_U32;
    op.output_count = 3;
    struct output_shape shapes[3] = {place, place, shape_like(builder, x)};
    build_op(builder, &op, shapes);
    *sorted = (struct sorted){.rank = op.outputs[0], .index = op.outputs[1], .y = op.outputs[2]};
}
