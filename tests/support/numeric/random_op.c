/* random_op.c - see random_op.h. */
#include "tests/support/numeric/random_op.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/ops/image.h"

uint64_t random_op_draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);

    uint64_t mixed = (*state ^ (*state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);

    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t random_op_below(uint64_t *state, uint64_t limit)
{
    return random_op_draw(state) % limit;
}

struct maker {
    struct tape *tape;
    struct op *op;
    uint64_t random;
};

static uint64_t below(struct maker *maker, uint64_t limit)
{
    return random_op_below(&maker->random, limit);
}

/* From low to high, both included; mostly small. */
static uint64_t from(struct maker *maker, uint64_t low, uint64_t high)
{
    uint64_t span = high - low + 1;

    return low + below(maker, below(maker, 4) == 0 ? span : (span + 3) / 4);
}

static uint32_t add_tensor(struct maker *maker, enum dtype dtype, enum role role, uint64_t count)
{
    struct tape *tape = maker->tape;
    uint32_t id = tape->tensor_count++;
    struct tensor *tensor = &tape->tensors[id];

    *tensor = (struct tensor){.dtype = dtype, .role = role, .rank = 1, .dims = {count}};
    if (count % 2 == 0 && below(maker, 2) == 0) {
        tensor->rank = 2;
        tensor->dims[0] = 2;
        tensor->dims[1] = count / 2;
    }
    tensor->count = count;
    (void)snprintf(tensor->name, sizeof(tensor->name), "t%u", id);
    return id;
}

static void input(struct maker *maker, enum dtype dtype, uint64_t count)
{
    static const enum role roles[4] = {ROLE_STATE, ROLE_DATA, ROLE_CONSTANT, ROLE_STATE};

    maker->op->inputs[maker->op->input_count++] =
        add_tensor(maker, dtype, roles[below(maker, 4)], count);
}

static void output(struct maker *maker, enum dtype dtype, uint64_t count)
{
    maker->op->outputs[maker->op->output_count++] =
        add_tensor(maker, dtype, below(maker, 8) == 0 ? ROLE_OUTPUT : ROLE_TEMPORARY, count);
}

static void inputs(struct maker *maker, uint32_t how_many, uint64_t count)
{
    for (uint32_t i = 0; i < how_many; i++) {
        input(maker, DTYPE_F32, count);
    }
}

static uint64_t attribute(struct maker *maker, uint64_t value)
{
    maker->op->attributes[maker->op->attribute_count++] = (int64_t)value;
    return value;
}

static void attribute_float(struct maker *maker)
{
    static const uint32_t bits[] = {0x3f800000, 0x3f7fbe77, 0x322bcc77, 0x3c23d70a, 0xbf000000,
                                    0x00000000, 0x80000000, 0x7f800000, 0x00000001, 0x7f7fffff};

    attribute(maker, bits[below(maker, below(maker, 2) == 0 ? 4 : 10)]);
}

static void attribute_seed(struct maker *maker)
{
    attribute(maker, random_op_draw(&maker->random) >> 32);
    attribute(maker, random_op_draw(&maker->random) >> 32);
    attribute(maker, random_op_draw(&maker->random) >> 32);
}

/* Of what quantize and gather read. */
static enum dtype number_type(struct maker *maker)
{
    static const enum dtype types[4] = {DTYPE_F32, DTYPE_F32, DTYPE_F16, DTYPE_BF16};

    return types[below(maker, 4)];
}

static enum dtype token_type(struct maker *maker)
{
    return (enum dtype)(DTYPE_U8 + below(maker, 3));
}

/* ---- where a step begins, moving, element by element --------------------- */

static void make_batch(struct maker *maker)
{
    const bool samples = maker->op->kind == OP_BATCH_SAMPLES;
    uint64_t batch = attribute(maker, from(maker, 1, 60));
    uint64_t length = attribute(maker, from(maker, 1, 40));

    attribute_seed(maker);
    if (samples) {
        uint64_t rows = from(maker, 1, 300);

        attribute_float(maker);
        input(maker, below(maker, 2) == 0 ? DTYPE_U8 : DTYPE_F32, rows * length);
        input(maker, token_type(maker), rows);
    } else {
        input(maker, token_type(maker), length + 1 + from(maker, 0, 5000));
    }
    input(maker, DTYPE_U32, 1);
    output(maker, samples ? DTYPE_F32 : DTYPE_U32, batch * length);
    output(maker, DTYPE_U32, samples ? batch : batch * length);
}

/* Few units, so that some positions are past them and some walks are long. */
static void make_batch_rows(struct maker *maker)
{
    static const enum dtype types[6] = {DTYPE_U8,  DTYPE_U16,  DTYPE_U32,
                                        DTYPE_F16, DTYPE_BF16, DTYPE_F32};
    enum dtype dtype = types[below(maker, 6)];
    bool floats = dtype == DTYPE_F32 || dtype_is_half(dtype);
    uint64_t unit = from(maker, 1, 3);
    uint64_t batch = attribute(maker, unit * from(maker, 1, 20));
    uint64_t length = attribute(maker, from(maker, 1, 40));

    attribute_seed(maker);
    attribute(maker, unit);
    attribute(maker, below(maker, 2));
    if (floats) {
        attribute_float(maker);
    } else {
        attribute(maker, below(maker, 2) == 0 ? UINT32_MAX : below(maker, 300));
    }
    attribute(maker, below(maker, 2));
    input(maker, dtype, length * unit * from(maker, 1, 130));
    input(maker, DTYPE_U32, 1);
    output(maker, floats ? DTYPE_F32 : DTYPE_U32, batch * length);
}

static void make_uniform(struct maker *maker)
{
    attribute_seed(maker);
    input(maker, DTYPE_U32, 1);
    output(maker, DTYPE_U32, from(maker, 1, 2000));
}

static void make_parts(struct maker *maker)
{
    const bool split = maker->op->kind == OP_SPLIT;
    uint64_t rows = attribute(maker, from(maker, 1, 40));
    uint64_t parts = from(maker, 1, 8);
    uint64_t width = 0;

    for (uint64_t i = 0; i < parts; i++) {
        width += attribute(maker, from(maker, 1, 20));
    }
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t count = rows * (uint64_t)maker->op->attributes[SPLIT_WIDTHS + i];

        if (split) {
            output(maker, DTYPE_F32, count);
        } else {
            input(maker, DTYPE_F32, count);
        }
    }
    if (split) {
        input(maker, DTYPE_F32, rows * width);
    } else {
        output(maker, DTYPE_F32, rows * width);
    }
}

static void make_expand(struct maker *maker)
{
    uint64_t count = from(maker, 1, 3000);

    attribute(maker, from(maker, 1, 50));
    input(maker, DTYPE_F32, attribute(maker, from(maker, 1, 700)));
    output(maker, DTYPE_F32, count);
}

static void make_rotary(struct maker *maker)
{
    uint64_t length = attribute(maker, from(maker, 1, 12));
    uint64_t heads = attribute(maker, from(maker, 1, 5));
    uint64_t width = attribute(maker, 2 * from(maker, 1, 20));
    uint64_t count = length * heads * width * from(maker, 1, 4);

    attribute(maker, below(maker, 2));
    attribute(maker, below(maker, 2));
    input(maker, DTYPE_F32, count);
    input(maker, DTYPE_F32, length * width);
    output(maker, DTYPE_F32, count);
}

static void make_update(struct maker *maker, uint32_t whole, uint32_t scalars, uint32_t constants,
                        uint32_t outputs)
{
    uint64_t count = from(maker, 1, 2000);

    for (uint32_t i = 0; i < constants; i++) {
        attribute_float(maker);
    }
    inputs(maker, whole, count);
    inputs(maker, scalars, 1);
    for (uint32_t i = 0; i < outputs; i++) {
        output(maker, DTYPE_F32, count);
    }
}

static void make_step_next(struct maker *maker)
{
    input(maker, DTYPE_U32, 1);
    output(maker, DTYPE_U32, 1);
}

static void make_schedule(struct maker *maker)
{
    uint64_t columns = attribute(maker, from(maker, 1, 64));

    attribute(maker, below(maker, columns));
    input(maker, DTYPE_F32, columns * from(maker, 1, 60));
    input(maker, DTYPE_U32, 1);
    output(maker, DTYPE_F32, 1);
}

static void make_fill(struct maker *maker)
{
    attribute_float(maker);
    output(maker, below(maker, 3) == 0 ? DTYPE_U32 : DTYPE_F32, from(maker, 1, 2000));
}

static void make_dropout(struct maker *maker)
{
    uint64_t count = from(maker, 1, 2000);

    attribute(maker, below(maker, 2) == 0 ? UINT32_MAX / 3 : below(maker, UINT32_MAX));
    attribute_float(maker);
    attribute_seed(maker);
    input(maker, DTYPE_F32, count);
    input(maker, DTYPE_U32, 1);
    output(maker, DTYPE_F32, count);
}

static void make_gather(struct maker *maker)
{
    uint64_t vocabulary = attribute(maker, from(maker, 1, 100));
    uint64_t width = attribute(maker, from(maker, 1, 40));
    uint64_t rows = from(maker, 1, 50);

    input(maker, number_type(maker), vocabulary * width);
    input(maker, DTYPE_U32, rows);
    output(maker, DTYPE_F32, rows * width);
}

static void make_clip_factor(struct maker *maker)
{
    attribute_float(maker);
    input(maker, DTYPE_F32, 1);
    output(maker, DTYPE_F32, 1);
}

/* ---- pictures ----------------------------------------------------------- */

/* Does a pool's window lie in nothing but padding? */
static bool has_empty_window(const struct image_axis *axis)
{
    for (int64_t o = 0; o < axis->out; o++) {
        struct image_span places = image_places(axis, o);

        if (places.end <= places.first) {
            return true;
        }
    }
    return false;
}

static void make_image(struct maker *maker)
{
    const bool pool = maker->op->kind != OP_IM2COL && maker->op->kind != OP_COL2IM;
    uint64_t kernel[2] = {from(maker, 1, 5), from(maker, 1, 5)};
    uint64_t dilation[2] = {from(maker, 1, 3), from(maker, 1, 3)};
    uint64_t extent[2] = {(kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1};

    attribute(maker, from(maker, 1, 3));
    attribute(maker, extent[0] + below(maker, 6));
    attribute(maker, extent[1] + below(maker, 6));
    attribute(maker, from(maker, 1, 6));
    attribute(maker, kernel[0]);
    attribute(maker, kernel[1]);
    attribute(maker, from(maker, 1, 4));
    attribute(maker, from(maker, 1, 4));
    for (int side = 0; side < 4; side++) {
        attribute(maker, below(maker, 4));
    }
    attribute(maker, dilation[0]);
    attribute(maker, dilation[1]);
    if (maker->op->kind == OP_MEAN_POOL || maker->op->kind == OP_MEAN_POOL_GRAD) {
        attribute(maker, below(maker, 2));
    }

    struct image image = image_of(maker->op);

    if (pool && (has_empty_window(&image.y) || has_empty_window(&image.x))) {
        for (int side = 0; side < 4; side++) {
            maker->op->attributes[IMAGE_TOP + side] = 0;
        }
        image = image_of(maker->op);
    }
    uint64_t places = (uint64_t)(image.batch * image.y.out * image.x.out);
    uint64_t channels = (uint64_t)image.channels;
    uint64_t in = (uint64_t)(image.batch * image.y.size * image.x.size) * channels;
    uint64_t columns = places * kernel[0] * kernel[1] * channels;
    uint64_t out = places * channels;

    const enum op_kind kind = maker->op->kind;

    if (kind == OP_IM2COL || kind == OP_COL2IM) {
        input(maker, DTYPE_F32, kind == OP_IM2COL ? in : columns);
        output(maker, DTYPE_F32, kind == OP_IM2COL ? columns : in);
        return;
    }
    if (kind == OP_MAX_POOL || kind == OP_MEAN_POOL) {
        input(maker, DTYPE_F32, in);
        output(maker, DTYPE_F32, out);
    } else {
        if (kind == OP_MAX_POOL_GRAD) {
            input(maker, DTYPE_U32, out);
        }
        input(maker, DTYPE_F32, out);
        output(maker, DTYPE_F32, in);
    }
    if (kind == OP_MAX_POOL) {
        output(maker, DTYPE_U32, out);
    }
}

/* ---- rows --------------------------------------------------------------- */

/* Sometimes rows of several chunks. */
static void rows_shape(struct maker *maker, uint64_t *rows, uint64_t *columns)
{
    bool wide = below(maker, 4) == 0;

    *rows = attribute(maker, wide ? 1 + below(maker, 2) : from(maker, 1, 20));
    *columns = attribute(maker, wide ? 1000 + below(maker, 2500) : from(maker, 1, 150));
}

static void make_norm(struct maker *maker)
{
    enum op_kind kind = maker->op->kind;
    bool grad = kind == OP_LAYER_NORM_GRAD || kind == OP_RMS_NORM_GRAD;
    bool layer = kind == OP_LAYER_NORM || kind == OP_LAYER_NORM_GRAD;
    uint64_t rows;
    uint64_t columns;

    rows_shape(maker, &rows, &columns);
    uint64_t chunks = rows * fold_chunks(columns);

    if (!grad) {
        attribute_float(maker);
        input(maker, DTYPE_F32, rows * columns);
        inputs(maker, layer ? 2 : 1, columns);
    } else {
        inputs(maker, 2, rows * columns);
        input(maker, DTYPE_F32, columns);
        inputs(maker, layer ? 2 : 1, rows);
    }
    uint32_t folds = layer ? 2 : 1;

    for (uint32_t i = 0; i < folds && grad; i++) {
        output(maker, DTYPE_F32, chunks);
    }
    for (uint32_t i = 0; i < folds; i++) {
        if (!grad) {
            output(maker, DTYPE_F32, chunks);
        }
        output(maker, DTYPE_F32, rows);
    }
    for (uint32_t i = 0; i < (grad ? 2 : 1); i++) {
        output(maker, DTYPE_F32, rows * columns);
    }
}

static void make_one_of_rows(struct maker *maker, uint64_t rows, uint64_t columns)
{
    uint64_t chunks = rows * fold_chunks(columns);

    if (maker->op->kind == OP_REDUCE) {
        attribute(maker, below(maker, REDUCE_FUNCTION_COUNT));
        input(maker, DTYPE_F32, rows * columns);
        output(maker, DTYPE_F32, chunks);
        output(maker, DTYPE_U32, chunks);
        output(maker, DTYPE_F32, rows);
        output(maker, DTYPE_U32, rows);
    } else if (maker->op->kind == OP_GATHER_ELEMENTS) {
        input(maker, DTYPE_F32, rows * columns);
        input(maker, DTYPE_U32, rows);
        output(maker, DTYPE_F32, rows);
    } else {
        input(maker, DTYPE_U32, rows);
        input(maker, DTYPE_F32, rows);
        output(maker, DTYPE_F32, rows * columns);
    }
}

static void make_rows(struct maker *maker)
{
    enum op_kind kind = maker->op->kind;
    uint64_t rows;
    uint64_t columns;

    rows_shape(maker, &rows, &columns);
    uint64_t chunks = rows * fold_chunks(columns);

    uint64_t reach = 0;

    if (kind >= OP_REDUCE && kind <= OP_GATHER_ELEMENTS_GRAD) {
        make_one_of_rows(maker, rows, columns);
        return;
    }
    if (kind == OP_SOFTMAX || kind == OP_SOFTMAX_GRAD) {
        uint64_t period = attribute(maker, below(maker, 2) == 0 ? 0 : 1 + below(maker, columns));

        attribute_float(maker);
        /* Whole sequences may have a reach, one for all or one for each. */
        if (period > 0 && period <= 9 && below(maker, 2) == 0) {
            uint64_t sequences = 1 + below(maker, 3);

            reach = sequences * period;
            rows = reach * (1 + below(maker, 3));
            maker->op->attributes[ROWS] = (int64_t)rows;
            chunks = rows * fold_chunks(columns);
        }
    }
    inputs(maker, kind == OP_SOFTMAX_GRAD ? 2 : 1, rows * columns);
    if (reach > 0) {
        input(maker, DTYPE_U32, reach);
    }
    if (kind == OP_CROSS_ENTROPY || kind == OP_CROSS_ENTROPY_GRAD) {
        input(maker, DTYPE_U32, rows);
    }
    if (kind == OP_CROSS_ENTROPY_GRAD) {
        inputs(maker, 3, rows);
        output(maker, DTYPE_F32, rows * columns);
        return;
    }
    output(maker, DTYPE_F32, chunks);
    output(maker, DTYPE_F32, rows);
    if (kind == OP_SOFTMAX || kind == OP_CROSS_ENTROPY) {
        output(maker, DTYPE_F32, rows * columns);
        output(maker, DTYPE_F32, chunks);
        output(maker, DTYPE_F32, rows);
        output(maker, DTYPE_F32, kind == OP_SOFTMAX ? rows * columns : rows);
    } else if (kind == OP_SOFTMAX_GRAD) {
        output(maker, DTYPE_F32, rows * columns);
    }
}

/* ---- exact contraction -------------------------------------------------- */

static void precision(struct maker *maker)
{
    static const uint64_t bits[4] = {14, 15, 16, 22};
    static const uint64_t blocks[5] = {128, 0, 16, 32, 512};

    attribute(maker, bits[below(maker, 4)]);
    attribute(maker, blocks[below(maker, 5)]);
}

/* Six dims, then strides that are a permutation; dims[4] and dims[5] get k as a product. */
static void view(struct maker *maker, uint64_t dims[6])
{
    uint32_t order[6] = {0, 1, 2, 3, 4, 5};
    uint64_t strides[6];
    uint64_t stride = 1;

    for (uint32_t i = 5; i > 0; i--) {
        uint32_t j = (uint32_t)below(maker, i + 1);
        uint32_t kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    for (uint32_t i = 0; i < 6; i++) {
        attribute(maker, dims[i]);
        strides[order[i]] = dims[order[i]] == 1 ? below(maker, 9) : stride;
        stride *= dims[order[i]];
    }
    for (uint32_t i = 0; i < 6; i++) {
        attribute(maker, strides[i]);
    }
}

static enum dtype integer_type(const struct contraction_shape *shape)
{
    return shape->bits == 22 ? DTYPE_I32 : DTYPE_I16;
}

static void make_quantize(struct maker *maker)
{
    uint64_t dims[6];
    uint64_t rows = 1;

    for (uint32_t i = 0; i < 4; i++) {
        dims[i] = from(maker, 1, 4);
        rows *= dims[i];
    }
    dims[4] = from(maker, 1, 6);
    dims[5] = from(maker, 1, 300);
    rows = rows * dims[4] * dims[5] > 20000 ? 1 : rows;
    for (uint32_t i = 0; i < 4; i++) {
        dims[i] = rows == 1 ? 1 : dims[i];
    }
    view(maker, dims);
    precision(maker);

    struct contraction_shape shape = contraction_shape_of(maker->op);

    input(maker, number_type(maker), rows * (uint64_t)shape.k);
    if (below(maker, 2) == 0) {
        input(maker, DTYPE_I16, dims[0] * dims[1] * (uint64_t)shape.k);
    }
    output(maker, DTYPE_I16, rows * (uint64_t)shape.pieces);
    output(maker, DTYPE_I16, rows * (uint64_t)shape.blocks);
    output(maker, integer_type(&shape), rows * (uint64_t)shape.k);
}

static void make_equilibrate(struct maker *maker)
{
    uint64_t rows = attribute(maker, from(maker, 1, 60));
    uint64_t e = attribute(maker, from(maker, 1, 40));
    uint64_t f = attribute(maker, below(maker, 3) == 0 ? 0 : from(maker, 1, 40));

    input(maker, DTYPE_I16, rows * e);
    if (f > 0) {
        input(maker, DTYPE_I16, rows * f);
    }
    output(maker, DTYPE_I16, rows);
    output(maker, DTYPE_I16, rows);
}

static void quantized(struct maker *maker, uint64_t rows)
{
    struct contraction_shape shape = contraction_shape_of(maker->op);

    input(maker, integer_type(&shape), rows * (uint64_t)shape.k);
    input(maker, DTYPE_I16, rows * (uint64_t)shape.blocks);
}

static void make_contract(struct maker *maker)
{
    uint64_t dims[6];
    uint64_t count = 1;

    for (uint32_t i = 0; i < 6; i++) {
        dims[i] = from(maker, 1, 3);
        count *= dims[i];
    }
    view(maker, dims);
    attribute(maker, from(maker, 1, 1500));
    precision(maker);
    attribute(maker, below(maker, 3) == 0 ? 1 + below(maker, 6) : 0);
    quantized(maker, count / (dims[4] * dims[5]));
    quantized(maker, count / (dims[2] * dims[3]));
    output(maker, DTYPE_F32, count);
}

static void make_ones(struct maker *maker)
{
    uint64_t rows = attribute(maker, from(maker, 1, 10));

    attribute(maker, from(maker, 1, 6000));
    precision(maker);
    quantized(maker, rows);
    output(maker, DTYPE_F32, rows);
}

static void make_onehot(struct maker *maker)
{
    uint64_t vocabulary = attribute(maker, from(maker, 1, 8));
    uint64_t width = attribute(maker, from(maker, 1, 6));
    uint64_t k = attribute(maker, from(maker, 1, 3000));

    precision(maker);
    input(maker, DTYPE_U32, k);
    quantized(maker, width);
    output(maker, DTYPE_F32, vocabulary * width);
}

static void make_contract_chosen(struct maker *maker)
{
    uint64_t rows = attribute(maker, from(maker, 1, 12));
    uint64_t experts = attribute(maker, from(maker, 1, 8));
    uint64_t width = attribute(maker, from(maker, 1, 6));

    attribute(maker, from(maker, 1, 1500));
    precision(maker);
    quantized(maker, rows);
    input(maker, DTYPE_U32, rows);
    quantized(maker, experts * width);
    output(maker, DTYPE_F32, rows * width);
}

static void make_contract_chosen_rows(struct maker *maker)
{
    uint64_t experts = attribute(maker, from(maker, 1, 8));
    uint64_t m = attribute(maker, from(maker, 1, 5));
    uint64_t n = attribute(maker, from(maker, 1, 5));
    uint64_t k = attribute(maker, from(maker, 1, 2500));

    precision(maker);
    input(maker, DTYPE_U32, k);
    quantized(maker, m);
    quantized(maker, n);
    output(maker, DTYPE_F32, experts * m * n);
}

/* ---- general ------------------------------------------------------------ */

/* Four axes whose strides are appended for each operand: some repeat, the others are permuted. */
static uint64_t view_of_operand(struct maker *maker, const uint64_t dims[VIEW_AXES])
{
    uint64_t strides[VIEW_AXES] = {0};
    uint32_t first = (uint32_t)below(maker, VIEW_AXES);
    uint32_t step = 1 + 2 * (uint32_t)below(maker, 2);
    uint64_t stride = 1;

    for (uint32_t i = VIEW_AXES; i > 0; i--) {
        uint32_t axis = (first + step * i) % VIEW_AXES;

        if (dims[axis] == 1) {
            strides[axis] = below(maker, 9);
        } else if (below(maker, 4) != 0) {
            strides[axis] = stride;
            stride *= dims[axis];
        }
    }
    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        attribute(maker, strides[axis]);
    }
    return stride;
}

static void make_viewed(struct maker *maker, uint32_t operands)
{
    static const enum dtype conditions[3] = {DTYPE_F32, DTYPE_U8, DTYPE_U32};
    enum dtype dtype = maker->op->kind == OP_INTEGER           ? DTYPE_U32
                       : operands == 3 && below(maker, 3) == 0 ? DTYPE_U32
                                                               : DTYPE_F32;
    uint64_t dims[VIEW_AXES];
    uint64_t count = 1;

    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        count *= dims[axis] = attribute(maker, from(maker, 1, 7));
    }
    for (uint32_t i = 0; i < operands; i++) {
        bool condition = operands == 3 && i == 0;

        input(maker, condition ? conditions[below(maker, 3)] : dtype, view_of_operand(maker, dims));
    }
    output(maker, dtype, count);
}

/*
 * Five axes with gaps between their elements, some reversed, some (of a move) repeated; the
 * addressed tensor may be larger at both ends.
 */
static void make_moved(struct maker *maker)
{
    const bool place = maker->op->kind == OP_PLACE;
    int64_t strides[MOVE_AXES] = {0};
    uint64_t dims[MOVE_AXES];
    uint64_t count = 1;
    int64_t span = 0;
    int64_t offset = (int64_t)below(maker, 5);
    uint32_t first = (uint32_t)below(maker, MOVE_AXES);
    enum dtype dtype = below(maker, 4) == 0 ? DTYPE_U32 : DTYPE_F32;

    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        count *= dims[axis] = attribute(maker, from(maker, 1, 5));
    }
    for (uint32_t i = 0; i < MOVE_AXES; i++) {
        uint32_t axis = (first + 2 * i) % MOVE_AXES;
        int64_t length = (int64_t)dims[axis] - 1;
        int64_t stride = span + 1 + (int64_t)below(maker, 3);

        if (!place && below(maker, 5) == 0) {
            continue;
        }
        strides[axis] = below(maker, 3) == 0 ? -stride : stride;
        offset += strides[axis] < 0 ? length * stride : 0;
        span += length * stride;
    }
    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        attribute(maker, (uint64_t)strides[axis]);
    }
    attribute(maker, (uint64_t)offset);

    /* The least place is the rest of the offset: at most 4. */
    uint64_t addressed = (uint64_t)span + 5 + below(maker, 5);

    input(maker, dtype, place ? count : addressed);
    if (place) {
        input(maker, dtype, below(maker, 2) == 0 ? 1 : addressed);
    }
    output(maker, dtype, place ? addressed : count);
}

static void make_cast(struct maker *maker)
{
    static const enum dtype narrow[4] = {DTYPE_F16, DTYPE_BF16, DTYPE_U32, DTYPE_I32};
    uint64_t count = from(maker, 1, 2000);
    bool widen = below(maker, 2) == 0;

    input(maker, widen ? (enum dtype)(DTYPE_U8 + below(maker, DTYPE_COUNT - 1)) : DTYPE_F32, count);
    output(maker, widen ? DTYPE_F32 : narrow[below(maker, 4)], count);
}

static void make_map(struct maker *maker)
{
    if (attribute(maker, below(maker, MAP_FUNCTION_COUNT)) == MAP_SCALE) {
        attribute_float(maker);
    } else {
        attribute(maker, 0);
    }
    uint64_t count = from(maker, 1, 2000);

    input(maker, DTYPE_F32, count);
    output(maker, DTYPE_F32, count);
}

static void make_select(struct maker *maker)
{
    make_viewed(maker, 3);
}

static void make_sgd(struct maker *maker)
{
    make_update(maker, 3, 2, SGD_ATTRIBUTES, 2);
}

static void make_adamw(struct maker *maker)
{
    make_update(maker, 4, 4, ADAMW_ATTRIBUTES, 3);
}

static void make_binary(struct maker *maker)
{
    attribute(maker, below(maker, BINARY_FUNCTION_COUNT));
    make_viewed(maker, 2);
}

static void make_integer(struct maker *maker)
{
    attribute(maker, below(maker, INTEGER_FUNCTION_COUNT));
    make_viewed(maker, 2);
}

/* TAKE and SCATTER: rows of the one side, with few places in each of the other. */
static void make_sent(struct maker *maker)
{
    const bool takes = maker->op->kind == OP_TAKE;
    uint64_t rows = attribute(maker, from(maker, 1, 12));
    uint64_t all = rows * attribute(maker, from(maker, 1, 60));
    uint64_t sent = rows * attribute(maker, from(maker, 1, 40));
    bool adds = !takes && attribute(maker, below(maker, SCATTER_LAST + 1)) == SCATTER_ADD;
    enum dtype dtype = !adds && below(maker, 3) == 0 ? DTYPE_U32 : DTYPE_F32;

    if (takes) {
        input(maker, dtype, all);
        input(maker, DTYPE_U32, sent);
        output(maker, dtype, sent);
    } else {
        input(maker, DTYPE_U32, sent);
        input(maker, dtype, sent);
        input(maker, dtype, all);
        output(maker, dtype, all);
    }
}

static void make_sort(struct maker *maker)
{
    bool wide = below(maker, 8) == 0;
    uint64_t rows = attribute(maker, wide ? 1 : from(maker, 1, 12));
    uint64_t count = rows * attribute(maker, wide ? 300 + below(maker, 900) : from(maker, 1, 40));

    attribute(maker, below(maker, 2));
    input(maker, DTYPE_F32, count);
    output(maker, DTYPE_U32, count);
    output(maker, DTYPE_U32, count);
    output(maker, DTYPE_F32, count);
}

/* ---- all of them -------------------------------------------------------- */

/* Kinds that share a maker, which looks at the kind. */
#define make_batch_tokens         make_batch
#define make_batch_samples        make_batch
#define make_split                make_parts
#define make_concat               make_parts
#define make_im2col               make_image
#define make_col2im               make_image
#define make_max_pool             make_image
#define make_max_pool_grad        make_image
#define make_mean_pool            make_image
#define make_mean_pool_grad       make_image
#define make_contract_ones        make_ones
#define make_contract_onehot      make_onehot
#define make_layer_norm           make_norm
#define make_layer_norm_grad      make_norm
#define make_rms_norm             make_norm
#define make_rms_norm_grad        make_norm
#define make_row_sum              make_rows
#define make_softmax              make_rows
#define make_softmax_grad         make_rows
#define make_cross_entropy        make_rows
#define make_cross_entropy_grad   make_rows
#define make_reduce               make_rows
#define make_gather_elements      make_rows
#define make_gather_elements_grad make_rows
#define make_move                 make_moved
#define make_place                make_moved

/* The compiler names a kind whose maker is missing: make_NAME(), by the name of its check. */
#define OP_SPEC(ins, in_names, outs, out_names, counts, SET, check) make_##check
#define MAKER(NAME, text, spec, ...)                                [OP_##NAME] = spec,

typedef void maker_function(struct maker *maker);

static maker_function *const makers[OP_KIND_COUNT] = {OP_LIST(MAKER)};

/* Lists the states, in the order of the tensors. */
static void finish(struct maker *maker)
{
    struct tape *tape = maker->tape;
    struct error error;

    error_init(&error);
    (void)add_tensor(maker, DTYPE_F32, ROLE_STATE, 1 + below(maker, 5)); /* so that there is one */
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_STATE) {
            tape->states[tape->state_count++] = (struct state_pair){.before = id, .after = id};
        }
    }
    if (op_check(maker->op, tape->tensors, tape->tensor_count, &error) != STATUS_OK) {
        fprintf(stderr, "random op: %s\n", error.text);
        abort();
    }
}

struct tape *random_op_tape(enum op_kind kind, uint64_t seed)
{
    struct maker maker = {.random = seed * 64 + (uint64_t)kind};
    struct tape *tape = calloc(1, sizeof(*tape));

    if (tape == NULL) {
        abort();
    }
    tape->tensors = calloc(OP_INPUTS_MAX + OP_OUTPUTS_MAX + 1, sizeof(*tape->tensors));
    tape->states = calloc(OP_INPUTS_MAX + 1, sizeof(*tape->states));
    tape->ops = calloc(1, sizeof(*tape->ops));
    if (tape->tensors == NULL || tape->states == NULL || tape->ops == NULL) {
        abort();
    }
    tape->op_count = 1;
    tape->loss = TENSOR_NONE;
    tape->ops[0].kind = kind;
    maker.tape = tape;
    maker.op = &tape->ops[0];
    makers[kind](&maker);
    finish(&maker);
    return tape;
}
