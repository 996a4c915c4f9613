/* gas_shapes.c - see gas_shapes.h. */
#include "tests/support/gas/gas_shapes.h"

#include <stdio.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/ops/fold.h"
#include "tests/support/test.h"

enum {
    WIDTH = 768,
    HIDDEN = 3072,
    TOKENS = 1024,
    HEADS = 12,
    VOCABULARY = 50257,
    ROWS_SHOWN = 64, /* fewer rows than a step has: only the height of the trees is less */
    ROWS_OF_LONG = 2,
};

/* ---- float rules ---------------------------------------------------------- */

/* Both signs, exponents around 1. */
static uint32_t ordinary(uint64_t *seed)
{
    uint64_t random = test_random(seed);

    return (uint32_t)(random >> 32 & UINT32_C(0x807fffff)) | (uint32_t)(124 + random % 6) << 23;
}

/* How many elements a tensor has, in terms of the operation's shape. */
enum extent {
    NONE, /* no such tensor */
    ALL,  /* rows times columns */
    LINE, /* columns: gain and bias */
    EACH, /* rows */
    PART, /* rows times chunks */
    ONE,
    TARGET, /* rows, of u32 */
    COUNTS, /* rows times columns, of u32 */
};

struct measured {
    enum op_kind kind;
    uint64_t rows;
    uint64_t columns;
    uint32_t attribute_count;
    int64_t attributes[OP_ATTRIBUTES_MAX];
    enum extent inputs[OP_INPUTS_MAX];
    enum extent outputs[OP_OUTPUTS_MAX];
    const char *shape;                 /* what the table calls it; "" for none */
    const char *names[OP_OUTPUTS_MAX]; /* of outputs; NULL: not measured */
};

#define ONE_BITS  INT64_C(0x3f800000)
#define HALF_BITS INT64_C(0x3f000000)
#define TINY_BITS INT64_C(0x3727c5ac) /* 1e-5 */

/* Views of two operands that lie alike; and of one whose second is a row. */
#define ALIKE(width) 1, 1, 1, ROWS_SHOWN *(width), 0, 0, 0, 1, 0, 0, 0, 1
#define A_LINE       1, 1, ROWS_SHOWN, HIDDEN, 0, 0, HIDDEN, 1, 0, 0, 0, 1

static const struct measured elementwise_kinds[] = {
    {OP_BINARY,
     ROWS_SHOWN,
     HIDDEN,
     BINARY_ATTRIBUTES,
     {BINARY_ADD, A_LINE},
     {ALL, LINE},
     {ALL},
     "",
     {"add"}},
    {OP_BINARY,
     ROWS_SHOWN,
     HIDDEN,
     BINARY_ATTRIBUTES,
     {BINARY_MUL, A_LINE},
     {ALL, LINE},
     {ALL},
     "",
     {"mul"}},
    {OP_MAP, ROWS_SHOWN, HIDDEN, 2, {MAP_SCALE, HALF_BITS}, {ALL}, {ALL}, "", {"scale"}},
    {OP_MAP, ROWS_SHOWN, HIDDEN, 2, {MAP_RELU, 0}, {ALL}, {ALL}, "", {"relu"}},
    {OP_BINARY,
     ROWS_SHOWN,
     HIDDEN,
     BINARY_ATTRIBUTES,
     {BINARY_RELU_GRAD, ALIKE(HIDDEN)},
     {ALL, ALL},
     {ALL},
     "",
     {"relu-grad"}},
    {OP_MAP, ROWS_SHOWN, HIDDEN, 2, {MAP_GELU, 0}, {ALL}, {ALL}, "", {"gelu"}},
    {OP_BINARY,
     ROWS_SHOWN,
     HIDDEN,
     BINARY_ATTRIBUTES,
     {BINARY_GELU_GRAD, ALIKE(HIDDEN)},
     {ALL, ALL},
     {ALL},
     "",
     {"gelu-grad"}},
    {OP_MAP, ROWS_SHOWN, HIDDEN, 2, {MAP_SILU, 0}, {ALL}, {ALL}, "", {"silu"}},
    {OP_BINARY,
     ROWS_SHOWN,
     HIDDEN,
     BINARY_ATTRIBUTES,
     {BINARY_SILU_GRAD, ALIKE(HIDDEN)},
     {ALL, ALL},
     {ALL},
     "",
     {"silu-grad"}},
    {OP_BINARY,
     ROWS_SHOWN,
     WIDTH,
     BINARY_ATTRIBUTES,
     {BINARY_SQUARED_ERROR, ALIKE(WIDTH)},
     {ALL, ALL},
     {ALL},
     "",
     {"squared-error"}},
    {OP_BINARY,
     ROWS_SHOWN,
     WIDTH,
     BINARY_ATTRIBUTES,
     {BINARY_SQUARED_ERROR_SLOPE, ALIKE(WIDTH)},
     {ALL, ALL},
     {ALL},
     "",
     {"squared-error-slope"}},
    /* 64 numbers a head. */
    {OP_ROTARY,
     ROWS_SHOWN *HEADS,
     WIDTH / HEADS,
     5,
     {ROWS_SHOWN * HEADS, 1, WIDTH / HEADS, 0, 1},
     {ALL, ALL},
     {ALL},
     "",
     {"rotary"}},
    {OP_CLIP_FACTOR, 1, 1, 1, {ONE_BITS}, {ONE}, {ONE}, "", {"clip-factor"}},
    {OP_SGD,
     HIDDEN,
     WIDTH,
     2,
     {HALF_BITS, TINY_BITS},
     {ALL, ALL, ALL, ONE, ONE},
     {ALL, ALL},
     "",
     {"sgd, parameter", "sgd, velocity"}},
    {OP_ADAMW,
     HIDDEN,
     WIDTH,
     6,
     {HALF_BITS, HALF_BITS, HALF_BITS, HALF_BITS, TINY_BITS, TINY_BITS},
     {ALL, ALL, ALL, ALL, ONE, ONE, ONE, ONE},
     {ALL, ALL, ALL},
     "",
     {"adamw, parameter", "adamw, moment 1", "adamw, moment 2"}},
    /* The dearest functions; the last operand repeats for each row. */
    {OP_MAP,
     ROWS_SHOWN,
     HIDDEN,
     2,
     {MAP_GELU_ERF_SLOPE, 0},
     {ALL},
     {ALL},
     "",
     {"map, gelu-erf-slope"}},
    {OP_BINARY,
     ROWS_SHOWN,
     HIDDEN,
     BINARY_ATTRIBUTES,
     {BINARY_POW, A_LINE},
     {ALL, LINE},
     {ALL},
     "",
     {"binary, pow"}},
    {OP_SELECT,
     ROWS_SHOWN,
     HIDDEN,
     SELECT_ATTRIBUTES,
     {1, 1, ROWS_SHOWN, HIDDEN, 0, 0, HIDDEN, 1, 0, 0, HIDDEN, 1, 0, 0, 0, 1},
     {ALL, ALL, LINE},
     {ALL},
     "",
     {"select"}},
};

/* rows and columns are put before the attributes that are given. */
static const struct measured norm_kinds[] = {
    {OP_ROW_SUM, 0, 0, 0, {0}, {ALL}, {PART, EACH}, "", {"row-sum, part", "row-sum, sum"}},
    {OP_LAYER_NORM,
     0,
     0,
     1,
     {TINY_BITS},
     {ALL, LINE, LINE},
     {PART, EACH, PART, EACH, ALL},
     "",
     {"layer-norm, sum part", "layer-norm, mean", "layer-norm, square part", "layer-norm, rstd",
      "layer-norm, y"}},
    {OP_LAYER_NORM_GRAD,
     0,
     0,
     0,
     {0},
     {ALL, ALL, LINE, EACH, EACH},
     {PART, PART, EACH, EACH, ALL, ALL},
     "",
     {"layer-norm-grad, g part", "layer-norm-grad, gx part", "layer-norm-grad, g mean",
      "layer-norm-grad, gx mean", "layer-norm-grad, dx", "layer-norm-grad, product"}},
    {OP_RMS_NORM,
     0,
     0,
     1,
     {TINY_BITS},
     {ALL, LINE},
     {PART, EACH, ALL},
     "",
     {"rms-norm, square part", "rms-norm, rstd", "rms-norm, y"}},
    {OP_RMS_NORM_GRAD,
     0,
     0,
     0,
     {0},
     {ALL, ALL, LINE, EACH},
     {PART, EACH, ALL, ALL},
     "",
     {"rms-norm-grad, gx part", "rms-norm-grad, gx mean", "rms-norm-grad, dx",
      "rms-norm-grad, product"}},
};

static const struct measured row_kinds[] = {
    {OP_SOFTMAX,
     0,
     0,
     2,
     {0, HALF_BITS},
     {ALL},
     {PART, EACH, ALL, PART, EACH, ALL},
     "",
     {"softmax, max part", "softmax, max", "softmax, exps", "softmax, sum part", "softmax, sum",
      "softmax, p"}},
    {OP_SOFTMAX_GRAD,
     0,
     0,
     2,
     {0, HALF_BITS},
     {ALL, ALL},
     {PART, EACH, ALL},
     "",
     {"softmax-grad, dot part", "softmax-grad, dot", "softmax-grad, dx"}},
};

static const struct measured order_kinds[] = {
    {OP_SORT,
     0,
     0,
     1,
     {0},
     {ALL},
     {COUNTS, COUNTS, ALL},
     "",
     {"sort, rank", "sort, index", "sort, y"}},
};

static const struct measured loss_kinds[] = {
    {OP_CROSS_ENTROPY,
     0,
     0,
     0,
     {0},
     {ALL, TARGET},
     {PART, EACH, ALL, PART, EACH, EACH},
     "",
     {"cross-entropy, max part", "cross-entropy, max", "cross-entropy, exps",
      "cross-entropy, sum part", "cross-entropy, sum", "cross-entropy, loss"}},
    {OP_CROSS_ENTROPY_GRAD,
     0,
     0,
     0,
     {0},
     {ALL, TARGET, EACH, EACH, EACH},
     {ALL},
     "",
     {"cross-entropy-grad, dx"}},
};

static uint64_t count_of(const struct measured *measured, enum extent extent)
{
    uint64_t chunks = fold_chunks(measured->columns);

    switch (extent) {
    case NONE:
        return 0;
    case ALL:
    case COUNTS:
        return measured->rows * measured->columns;
    case LINE:
        return measured->columns;
    case EACH:
    case TARGET:
        return measured->rows;
    case PART:
        return measured->rows * chunks;
    case ONE:
        return 1;
    }
    return 0;
}

static void fill(struct gas_shapes *shapes, struct shown_case *shown, uint32_t number,
                 const struct measured *measured, enum extent extent)
{
    enum dtype dtype = extent == TARGET || extent == COUNTS ? DTYPE_U32 : DTYPE_F32;
    uint64_t count = count_of(measured, extent);
    uint32_t *bits = shown_case_tensor(shown, number, dtype, count);

    for (uint64_t i = 0; i < count; i++) {
        if (extent == COUNTS) { /* the place that is sought is the last one's */
            bits[i] = (uint32_t)(measured->columns - 1 - i % measured->columns);
        } else {
            bits[i] = extent == TARGET
                          ? (uint32_t)test_random_below(&shapes->seed, measured->columns)
                          : ordinary(&shapes->seed);
        }
    }
}

static void measure(struct gas_shapes *shapes, const struct measured *measured, bool has_rows)
{
    struct shown_case shown;
    uint32_t inputs = 0;
    uint32_t outputs = 0;

    while (inputs < OP_INPUTS_MAX && measured->inputs[inputs] != NONE) {
        inputs++;
    }
    while (outputs < OP_OUTPUTS_MAX && measured->outputs[outputs] != NONE) {
        outputs++;
    }
    shown_case_init(&shown, measured->kind, inputs, outputs);
    if (has_rows) {
        shown.op.attributes[shown.op.attribute_count++] = (int64_t)measured->rows;
        shown.op.attributes[shown.op.attribute_count++] = (int64_t)measured->columns;
    }
    for (uint32_t i = 0; i < measured->attribute_count; i++) {
        shown.op.attributes[shown.op.attribute_count++] = measured->attributes[i];
    }
    for (uint32_t i = 0; i < inputs; i++) {
        fill(shapes, &shown, i, measured, measured->inputs[i]);
    }
    for (uint32_t i = 0; i < outputs; i++) {
        fill(shapes, &shown, inputs + i, measured, measured->outputs[i]);
    }
    shown_case_check(&shown);
    for (uint32_t i = 0; i < outputs; i++) {
        uint64_t count = count_of(measured, measured->outputs[i]);
        char name[64];

        (void)snprintf(name, sizeof(name), "%s%s", measured->names[i], measured->shape);
        shapes->visit(shapes->context, name, &shown,
                      &(struct shown_target){.output = i, .element = count / 2});
    }
    shown_case_release(&shown);
}

#define MEASURE_ALL(shapes, kinds, shape, rows, columns)                                           \
    measure_all(shapes, kinds, sizeof(kinds) / sizeof((kinds)[0]), shape, rows, columns)

static void measure_all(struct gas_shapes *shapes, const struct measured *kinds, size_t count,
                        const char *shape, uint64_t rows, uint64_t columns)
{
    for (size_t i = 0; i < count; i++) {
        struct measured measured = kinds[i];

        measured.rows = rows;
        measured.columns = columns;
        measured.shape = shape;
        measure(shapes, &measured, true);
    }
}

void gas_shapes_of_floats(struct gas_shapes *shapes)
{
    for (size_t i = 0; i < sizeof(elementwise_kinds) / sizeof(elementwise_kinds[0]); i++) {
        measure(shapes, &elementwise_kinds[i], false);
    }
    MEASURE_ALL(shapes, norm_kinds, ", 768 columns", ROWS_SHOWN, WIDTH);
    MEASURE_ALL(shapes, norm_kinds, ", 3072 columns", ROWS_SHOWN, HIDDEN);
    MEASURE_ALL(shapes, row_kinds, ", 1024 columns", ROWS_SHOWN, TOKENS);
    MEASURE_ALL(shapes, loss_kinds, ", 50257 columns", ROWS_OF_LONG, VOCABULARY);
    MEASURE_ALL(shapes, order_kinds, ", 4096 columns", ROWS_OF_LONG, SORT_COLUMNS_MAX);
}
