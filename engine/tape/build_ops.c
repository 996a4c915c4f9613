/* build_ops.c - short forms of the operations; see builder.h. */
#include <assert.h>
#include <string.h>

#include "engine/ops/image.h"
#include "engine/ops/view.h"
#include "engine/tape/builder_core.h"

/* Appends op with one output of the shape given. */
static uint32_t build_one(struct builder *builder, struct op *op, const struct output_shape *shape)
{
    op->output_count = 1;
    build_op(builder, op, shape);
    return op->outputs[0];
}

/* Appends op with one output shaped as tensor `like`. */
static uint32_t build_like(struct builder *builder, struct op *op, uint32_t like)
{
    struct output_shape shape = shape_like(builder, like);

    return build_one(builder, op, &shape);
}

static uint64_t last_axis(const struct builder *builder, uint32_t id)
{
    const struct tensor *tensor = builder_tensor(builder, id);

    return tensor->rank == 0 ? 1 : tensor->dims[tensor->rank - 1];
}

static uint64_t element_count(const struct builder *builder, uint32_t id)
{
    return builder_tensor(builder, id)->count;
}

/* ---- step number, schedules, constants, randomness ---------------------- */

uint32_t build_step(struct builder *builder)
{
    if (builder->step == TENSOR_NONE && !builder_failed(builder)) {
        static const uint64_t one = 1;
        struct output_shape shape = shape_vector(DTYPE_U32, 1);
        char scope[sizeof(builder->scope)];
        struct op op;

        memcpy(scope, builder->scope, sizeof(scope));
        build_scope(builder, "");
        builder->step = build_tensor(builder, "step", DTYPE_U32, ROLE_STATE, 1, &one);
        build_init(builder, builder->step, (struct init){.kind = INIT_ZEROS});
        op = op_begin(OP_STEP_NEXT, 1, &builder->step);
        build_after(builder, builder->step, build_one(builder, &op, &shape));
        build_scope(builder, scope);
    }
    return builder->step;
}

uint32_t build_schedule(struct builder *builder, uint32_t table, uint32_t columns, uint32_t column)
{
    uint32_t inputs[2] = {table, build_step(builder)};
    struct output_shape shape = shape_vector(DTYPE_F32, 1);
    struct op op = op_begin(OP_SCHEDULE, 2, inputs);

    op_attribute(&op, columns);
    op_attribute(&op, column);
    return build_one(builder, &op, &shape);
}

uint32_t build_fill(struct builder *builder, float value, uint32_t rank, const uint64_t *dims)
{
    struct output_shape shape = {DTYPE_F32, rank, {0}};
    struct op op = op_begin(OP_FILL, 0, NULL);

    for (uint32_t axis = 0; axis < rank && axis < TENSOR_RANK_MAX; axis++) {
        shape.dims[axis] = dims[axis];
    }
    op_attribute_float(&op, value);
    return build_one(builder, &op, &shape);
}

uint32_t build_dropout(struct builder *builder, uint32_t x, double share, uint32_t stream,
                       uint64_t seed)
{
    uint32_t inputs[2] = {x, build_counter(builder)};
    struct op op = op_begin(OP_DROPOUT, 2, inputs);

    if (!(share >= 0.0 && share < 1.0)) {
        builder_fail(builder, STATUS_USAGE, "a dropout share of %g; must be from 0 to below 1",
                     share);
        return 0;
    }
    op_attribute(&op, (uint64_t)(share * 4294967296.0));
    op_attribute_float(&op, (float)(1.0 / (1.0 - share)));
    op_attribute(&op, stream);
    op_attribute(&op, seed & UINT32_MAX);
    op_attribute(&op, seed >> 32);
    return build_like(builder, &op, x);
}

/* ---- moving data -------------------------------------------------------- */

uint32_t build_gather(struct builder *builder, uint32_t table, uint32_t index)
{
    const struct tensor *rows = builder_tensor(builder, index);
    uint64_t width = last_axis(builder, table);
    uint32_t inputs[2] = {table, index};
    struct output_shape shape = {DTYPE_F32, rows->rank + 1, {0}};
    struct op op = op_begin(OP_GATHER, 2, inputs);

    for (uint32_t axis = 0; axis < rows->rank && axis + 1 < TENSOR_RANK_MAX; axis++) {
        shape.dims[axis] = rows->dims[axis];
    }
    if (rows->rank < TENSOR_RANK_MAX) {
        shape.dims[rows->rank] = width;
    }
    op_attribute(&op, element_count(builder, table) / width);
    op_attribute(&op, width);
    return build_one(builder, &op, &shape);
}

uint32_t build_expand(struct builder *builder, uint32_t a, uint64_t div, uint32_t rank,
                      const uint64_t *dims)
{
    struct output_shape shape = {DTYPE_F32, rank, {0}};
    struct op op = op_begin(OP_EXPAND, 1, &a);

    for (uint32_t axis = 0; axis < rank && axis < TENSOR_RANK_MAX; axis++) {
        shape.dims[axis] = dims[axis];
    }
    op_attribute(&op, div);
    op_attribute(&op, element_count(builder, a));
    return build_one(builder, &op, &shape);
}

void build_split_widths(struct builder *builder, uint32_t *parts, const uint64_t *widths,
                        uint32_t count, uint32_t x)
{
    uint64_t width = last_axis(builder, x);
    struct op op = op_begin(OP_SPLIT, 1, &x);
    struct output_shape shapes[OP_OUTPUTS_MAX];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count && count <= OP_OUTPUTS_MAX; i++) {
        sum += widths[i];
    }
    if (width == 0 || sum != width || builder_tensor(builder, x)->rank == 0) {
        builder_fail(builder, STATUS_USAGE, "cannot split a width of %llu into %u parts",
                     (unsigned long long)width, count);
        width = 1;
        count = 0;
    }
    op_attribute(&op, element_count(builder, x) / width);
    for (uint32_t i = 0; i < count; i++) {
        shapes[i] = shape_like(builder, x);
        shapes[i].dims[shapes[i].rank - 1] = widths[i];
        op_attribute(&op, widths[i]);
    }
    op.output_count = count;
    build_op(builder, &op, shapes);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = op.outputs[i];
    }
}

void build_split(struct builder *builder, uint32_t *parts, uint32_t count, uint32_t x)
{
    uint64_t widths[OP_OUTPUTS_MAX];

    for (uint32_t i = 0; i < count && i < OP_OUTPUTS_MAX; i++) {
        widths[i] = last_axis(builder, x) / count;
    }
    build_split_widths(builder, parts, widths, count, x);
}

uint32_t build_image_op(struct builder *builder, enum op_kind kind, uint32_t x,
                        const int64_t *image_attributes)
{
    const int64_t *a = image_attributes;
    struct op op = op_begin(kind, 1, &x);
    struct output_shape shapes[2] = {{0}};
    uint64_t out[2];

    for (uint32_t horizontal = 0; horizontal < 2; horizontal++) {
        if (a[IMAGE_STRIDE_Y + horizontal] <= 0) {
            builder_fail(builder, STATUS_USAGE, "a stride of %lld",
                         (long long)a[IMAGE_STRIDE_Y + horizontal]);
            return 0;
        }
        out[horizontal] = (uint64_t)image_axis_of(a, horizontal).out;
    }
    uint64_t windows = (uint64_t)a[IMAGE_BATCH] * out[0] * out[1];
    uint64_t channels = (uint64_t)a[IMAGE_CHANNELS];
    uint64_t places = (uint64_t)(a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH]);

    for (uint32_t i = 0; i < (kind == OP_MEAN_POOL ? MEAN_POOL_ATTRIBUTES : IMAGE_ATTRIBUTES);
         i++) {
        op_attribute(&op, (uint64_t)a[i]);
    }
    if (kind == OP_IM2COL) {
        shapes[0] = shape_matrix(DTYPE_F32, windows, places * channels);
        return build_one(builder, &op, shapes);
    }
    if (kind == OP_COL2IM) {
        shapes[0] = (struct output_shape){DTYPE_F32,
                                          4,
                                          {(uint64_t)a[IMAGE_BATCH], (uint64_t)a[IMAGE_HEIGHT],
                                           (uint64_t)a[IMAGE_WIDTH], channels}};
        return build_one(builder, &op, shapes);
    }
    shapes[0] =
        (struct output_shape){DTYPE_F32, 4, {(uint64_t)a[IMAGE_BATCH], out[0], out[1], channels}};
    shapes[1] = shapes[0];
    shapes[1].dtype = DTYPE_U32;
    op.output_count = kind == OP_MAX_POOL ? 2 : 1;
    build_op(builder, &op, shapes);
    return op.outputs[0];
}

/* ---- element by element ------------------------------------------------- */

static uint32_t build_turns(struct builder *builder, enum binary_function function, uint32_t a,
                            uint32_t b, uint64_t div)
{
    const uint64_t count = element_count(builder, a);
    const uint64_t mod = element_count(builder, b);
    uint32_t inputs[2] = {a, b};
    struct op op = op_begin(OP_BINARY, 2, inputs);

    if (builder_failed(builder)) {
        return 0;
    }
    if (div == 0 || div > count || mod > count || count % (div * mod) != 0) {
        builder_fail(builder, STATUS_USAGE,
                     "cannot read %llu elements in whole turns of %llu by %llu",
                     (unsigned long long)count, (unsigned long long)mod, (unsigned long long)div);
        return 0;
    }
    binary_set(&op, function, count, div, mod);
    return build_like(builder, &op, a);
}

uint32_t build_add(struct builder *builder, uint32_t a, uint32_t b, uint64_t div)
{
    return build_turns(builder, BINARY_ADD, a, b, div);
}

uint32_t build_mul(struct builder *builder, uint32_t a, uint32_t b, uint64_t div)
{
    return build_turns(builder, BINARY_MUL, a, b, div);
}

static uint32_t build_code(struct builder *builder, enum map_function function, uint32_t x,
                           float constant)
{
    struct op op = op_begin(OP_MAP, 1, &x);

    op_attribute(&op, function);
    op_attribute_float(&op, constant);
    return build_like(builder, &op, x);
}

uint32_t build_scale(struct builder *builder, uint32_t a, float factor)
{
    return build_code(builder, MAP_SCALE, a, factor);
}

uint32_t build_stop(struct builder *builder, uint32_t x)
{
    uint32_t stopped = build_scale(builder, x, 1.0f);

    if (!builder_failed(builder)) {
        builder->notes[stopped].stopped = true;
    }
    return stopped;
}

uint32_t build_map(struct builder *builder, enum map_function function, uint32_t x)
{
    assert(function != MAP_SCALE);
    return build_code(builder, function, x, 0.0f);
}

uint32_t build_rotary(struct builder *builder, uint32_t x, uint32_t table, uint64_t length,
                      uint64_t heads, bool halves)
{
    uint32_t inputs[2] = {x, table};
    struct op op = op_begin(OP_ROTARY, 2, inputs);

    op_attribute(&op, length);
    op_attribute(&op, heads);
    op_attribute(&op, length == 0 ? 0 : element_count(builder, table) / length);
    op_attribute(&op, 0);
    op_attribute(&op, halves);
    return build_like(builder, &op, x);
}

/* ---- rows --------------------------------------------------------------- */

static void rows_attributes(const struct builder *builder, struct op *op, uint32_t x,
                            uint64_t *rows, uint64_t *chunks)
{
    uint64_t columns = last_axis(builder, x);

    *rows = element_count(builder, x) / columns;
    *chunks = fold_chunks(columns);
    op_attribute(op, *rows);
    op_attribute(op, columns);
}

uint32_t build_layer_norm(struct builder *builder, uint32_t x, uint32_t gain, uint32_t bias,
                          float epsilon)
{
    uint32_t inputs[3] = {x, gain, bias};
    struct op op = op_begin(OP_LAYER_NORM, 3, inputs);
    uint64_t rows;
    uint64_t chunks;

    rows_attributes(builder, &op, x, &rows, &chunks);
    op_attribute_float(&op, epsilon);
    op.output_count = 5;
    struct output_shape parts = shape_matrix(DTYPE_F32, rows, chunks);
    struct output_shape one = shape_vector(DTYPE_F32, rows);
    struct output_shape shapes[5] = {parts, one, parts, one, shape_like(builder, x)};
    build_op(builder, &op, shapes);
    return op.outputs[4];
}

uint32_t build_rms_norm(struct builder *builder, uint32_t x, uint32_t gain, float epsilon)
{
    uint32_t inputs[2] = {x, gain};
    struct op op = op_begin(OP_RMS_NORM, 2, inputs);
    uint64_t rows;
    uint64_t chunks;

    rows_attributes(builder, &op, x, &rows, &chunks);
    op_attribute_float(&op, epsilon);
    op.output_count = 3;
    struct output_shape shapes[3] = {shape_matrix(DTYPE_F32, rows, chunks),
                                     shape_vector(DTYPE_F32, rows), shape_like(builder, x)};
    build_op(builder, &op, shapes);
    return op.outputs[2];
}

/* x without its last axis; one number where it has no other. */
static struct output_shape shape_of_rows(const struct builder *builder, uint32_t x)
{
    struct output_shape shape = shape_like(builder, x);

    if (shape.rank > 1) {
        shape.rank--;
    } else {
        shape.dims[0] = 1;
        shape.rank = 1;
    }
    return shape;
}

uint32_t build_extreme(struct builder *builder, enum reduce_function function, uint32_t x,
                       uint32_t *index)
{
    struct op op = op_begin(OP_REDUCE, 1, &x);
    uint64_t rows;
    uint64_t chunks;

    rows_attributes(builder, &op, x, &rows, &chunks);
    op_attribute(&op, function);
    op.output_count = 4;
    struct output_shape one = shape_of_rows(builder, x);
    struct output_shape shapes[4] = {shape_matrix(DTYPE_F32, rows, chunks),
                                     shape_matrix(DTYPE_U32, rows, chunks), one, one};

    shapes[3].dtype = DTYPE_U32;
    build_op(builder, &op, shapes);
    if (index != NULL) {
        *index = op.outputs[3];
    }
    return op.outputs[2];
}

uint32_t build_gather_elements(struct builder *builder, uint32_t x, uint32_t index)
{
    uint32_t inputs[2] = {x, index};
    struct op op = op_begin(OP_GATHER_ELEMENTS, 2, inputs);
    struct output_shape shape = shape_of_rows(builder, x);
    uint64_t rows;
    uint64_t chunks;

    rows_attributes(builder, &op, x, &rows, &chunks);
    return build_one(builder, &op, &shape);
}

/* The five outputs that softmax and cross-entropy share. */
static void exponential_shapes(const struct builder *builder, struct output_shape *shapes,
                               uint32_t x, uint64_t rows, uint64_t chunks)
{
    shapes[0] = shapes[3] = shape_matrix(DTYPE_F32, rows, chunks);
    shapes[1] = shapes[4] = shape_vector(DTYPE_F32, rows);
    shapes[2] = shape_like(builder, x);
}

uint32_t build_softmax(struct builder *builder, uint32_t x, float scale, uint64_t causal,
                       uint32_t reach)
{
    uint32_t inputs[2] = {x, reach};
    struct op op = op_begin(OP_SOFTMAX, reach == TENSOR_NONE ? 1 : 2, inputs);
    struct output_shape shapes[6];
    uint64_t rows;
    uint64_t chunks;

    rows_attributes(builder, &op, x, &rows, &chunks);
    op_attribute(&op, causal);
    op_attribute_float(&op, scale);
    exponential_shapes(builder, shapes, x, rows, chunks);
    shapes[5] = shapes[2];
    op.output_count = 6;
    build_op(builder, &op, shapes);
    return op.outputs[5];
}

uint32_t build_row_sum(struct builder *builder, uint32_t x, uint64_t columns)
{
    uint64_t count = element_count(builder, x);
    struct op op = op_begin(OP_ROW_SUM, 1, &x);

    if (columns == 0 || count % columns != 0) {
        builder_fail(builder, STATUS_USAGE, "%llu elements are no rows of %llu",
                     (unsigned long long)count, (unsigned long long)columns);
        return 0;
    }
    struct output_shape shapes[2] = {shape_matrix(DTYPE_F32, count / columns, fold_chunks(columns)),
                                     shape_vector(DTYPE_F32, count / columns)};

    op_attribute(&op, count / columns);
    op_attribute(&op, columns);
    op.output_count = 2;
    build_op(builder, &op, shapes);
    return op.outputs[1];
}

/* Sum of all elements of a vector: one number. */
static uint32_t build_total(struct builder *builder, uint32_t x)
{
    return build_row_sum(builder, x, element_count(builder, x));
}

uint32_t build_mean(struct builder *builder, uint32_t x)
{
    float share = (float)(1.0 / (double)element_count(builder, x));

    return build_scale(builder, build_total(builder, x), share);
}

uint32_t build_cross_entropy_rows(struct builder *builder, uint32_t logits, uint32_t targets)
{
    uint32_t inputs[2] = {logits, targets};
    struct op op = op_begin(OP_CROSS_ENTROPY, 2, inputs);
    struct output_shape shapes[6];
    uint64_t rows;
    uint64_t chunks;

    rows_attributes(builder, &op, logits, &rows, &chunks);
    exponential_shapes(builder, shapes, logits, rows, chunks);
    shapes[5] = shapes[1];
    op.output_count = 6;
    build_op(builder, &op, shapes);
    return op.outputs[5];
}

uint32_t build_cross_entropy(struct builder *builder, uint32_t logits, uint32_t targets)
{
    return build_mean(builder, build_cross_entropy_rows(builder, logits, targets));
}

uint32_t build_marked(struct builder *builder, uint32_t mask)
{
    static const uint64_t one = 1;

    /* One after the other: compilers differ in the order of a call's arguments. */
    uint32_t unmarked = build_fill(builder, 0.0f, 1, &one);
    uint32_t marked = build_fill(builder, 1.0f, 1, &one);

    return build_total(builder, build_select(builder, mask, marked, unmarked));
}

uint32_t build_share_of(struct builder *builder, uint32_t marked)
{
    static const uint64_t one = 1;
    uint32_t least = build_fill(builder, 1.0f, 1, &one);

    return build_map(builder, MAP_RECIPROCAL, build_binary(builder, BINARY_MAX, marked, least));
}

uint32_t build_share(struct builder *builder, uint32_t mask)
{
    return build_share_of(builder, build_marked(builder, mask));
}

uint32_t build_cross_entropy_masked(struct builder *builder, uint32_t logits, uint32_t targets,
                                    uint32_t mask, uint32_t share)
{
    struct output_shape shape = shape_vector(DTYPE_U32, 1);
    struct op op = op_begin(OP_FILL, 0, NULL);

    op_attribute(&op, TARGET_IGNORED);
    targets = build_select(builder, mask, targets, build_one(builder, &op, &shape));
    return build_mul(builder,
                     build_total(builder, build_cross_entropy_rows(builder, logits, targets)),
                     share, 1);
}
