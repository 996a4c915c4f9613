/* random_tape.c - see random_tape.h. */
#include "tests/support/numeric/random_tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/element.h"
#include "engine/ops/view.h"
#include "engine/tape/builder_core.h"

#define POOL_MAX 256

/* Of RANDOM_TAPE_COUNT elements each. */
static const uint64_t shapes[3][2] = {{8, 12}, {12, 8}, {4, 24}};

struct maker {
    struct builder *builder;
    uint64_t random;
    uint32_t pool[POOL_MAX]; /* tensors of RANDOM_TAPE_COUNT elements */
    uint32_t pool_count;
    uint32_t vectors[3]; /* as wide as the shapes */
    uint32_t weights[3]; /* square, likewise; of some seeds they are frozen */
    uint32_t table;      /* (8,12) */
    uint32_t frozen;     /* the same, of 16 bits */
    uint32_t index;      /* u32(8) */
    uint32_t states[9];
    uint32_t state_count;
    bool smooth; /* only kinds with a gradient rule */
};

static uint64_t next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);

    uint64_t mixed = (*state ^ (*state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);

    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* At most one draw to a call's arguments: compilers of two architectures evaluate them in two
 * orders, and the tapes would differ. */
static uint32_t below(struct maker *maker, uint32_t limit)
{
    return (uint32_t)(next(&maker->random) % limit);
}

/* A tensor of the pool; newer ones are more likely, so that chains grow long. */
static uint32_t any(struct maker *maker)
{
    uint32_t back = below(maker, 3) == 0
                        ? below(maker, maker->pool_count)
                        : below(maker, maker->pool_count < 3 ? maker->pool_count : 3);

    return maker->pool[maker->pool_count - 1 - back];
}

static uint64_t width_of(const struct maker *maker, uint32_t id)
{
    const struct tensor *tensor = builder_tensor(maker->builder, id);

    return tensor->dims[tensor->rank - 1];
}

/* Which of the shapes has this last axis. */
static uint32_t shape_of(const struct maker *maker, uint32_t id)
{
    uint64_t width = width_of(maker, id);

    return width == 12 ? 0 : width == 8 ? 1 : 2;
}

/* The same elements as a matrix of one of the shapes. */
static uint32_t reshaped(struct maker *maker, uint32_t x, uint32_t shape)
{
    return build_expand(maker->builder, x, 1, 2, shapes[shape]);
}

/* ---- operations, each of which ends in RANDOM_TAPE_COUNT elements -------- */

static uint32_t make_binary(struct maker *maker)
{
    uint32_t a = any(maker);
    uint32_t b = below(maker, 2) == 0 ? any(maker) : maker->vectors[below(maker, 3)];
    uint64_t mod = builder_tensor(maker->builder, b)->count;
    uint64_t most = RANDOM_TAPE_COUNT / mod;
    /* Whole periods, which have a gradient: 12, 8 and 24 all divide 96. */
    uint64_t div = most >= 4 && below(maker, 2) == 0 ? 4 : 1;

    if (below(maker, 2) == 0) {
        return build_add(maker->builder, a, b, div);
    }
    return build_mul(maker->builder, a, b, div);
}

/* The function of two tensors of one count. */
static uint32_t make_alike(struct maker *maker, enum binary_function function, uint32_t a,
                           uint32_t b)
{
    uint32_t inputs[2] = {a, b};
    struct op op = op_begin(OP_BINARY, 2, inputs);
    struct output_shape shape = shape_like(maker->builder, a);

    binary_set(&op, function, RANDOM_TAPE_COUNT, 1, RANDOM_TAPE_COUNT);
    op.output_count = 1;
    build_op(maker->builder, &op, &shape);
    return op.outputs[0];
}

static uint32_t make_unary(struct maker *maker)
{
    static const enum map_function maps[3] = {MAP_RELU, MAP_GELU, MAP_SILU};
    static const enum binary_function grads[3] = {BINARY_RELU_GRAD, BINARY_GELU_GRAD,
                                                  BINARY_SILU_GRAD};
    uint32_t which = below(maker, 3);
    uint32_t x = any(maker);

    if (!maker->smooth && below(maker, 2) == 0) {
        return make_alike(maker, grads[which], x, any(maker));
    }
    return build_map(maker->builder, maps[which], x);
}

static uint32_t make_scale(struct maker *maker)
{
    float factor = below(maker, 2) == 0 ? -0.5f : 1.25f;

    return build_scale(maker->builder, any(maker), factor);
}

static uint32_t make_norm(struct maker *maker)
{
    uint32_t x = any(maker);
    uint32_t gain = maker->vectors[shape_of(maker, x)];

    if (below(maker, 2) == 0) {
        return build_rms_norm(maker->builder, x, gain, 1e-5f);
    }
    return build_layer_norm(maker->builder, x, gain, gain, 1e-5f);
}

static uint32_t make_softmax(struct maker *maker)
{
    uint32_t x = any(maker);
    uint64_t causal = below(maker, 2) == 0 ? 0 : 1 + below(maker, (uint32_t)width_of(maker, x));

    if (below(maker, 4) == 0) { /* eight rows, one sequence, and the indexes as their reach */
        return build_softmax(maker->builder, reshaped(maker, x, 0), 0.75f, 8, maker->index);
    }
    return build_softmax(maker->builder, x, 0.75f, causal, TENSOR_NONE);
}

/* One number of each row, for the whole row. */
static uint32_t make_one_of_rows(struct maker *maker)
{
    uint32_t x = any(maker);
    uint64_t width = width_of(maker, x);
    uint32_t y;

    if (below(maker, 2) == 0) {
        enum reduce_function function = below(maker, 2) == 0 ? REDUCE_MAX : REDUCE_MIN;

        y = build_extreme(maker->builder, function, x, NULL);
        return build_expand(maker->builder, y, width, 2, shapes[shape_of(maker, x)]);
    }
    y = build_gather_elements(maker->builder, reshaped(maker, x, 0), maker->index);
    return build_expand(maker->builder, y, 12, 2, shapes[0]);
}

static uint32_t make_dropout(struct maker *maker)
{
    uint32_t stream = 40 + below(maker, 3);

    return build_dropout(maker->builder, any(maker), 0.25, stream, 77);
}

static uint32_t make_gather(struct maker *maker)
{
    return build_gather(maker->builder, below(maker, 2) == 0 ? maker->table : maker->frozen,
                        maker->index);
}

static uint32_t make_split_and_concat(struct maker *maker)
{
    uint32_t x = any(maker);
    uint64_t width = width_of(maker, x);
    uint32_t parts[2];
    uint32_t swapped[2];
    struct output_shape shape = shape_like(maker->builder, x);

    build_split(maker->builder, parts, 2, x);
    swapped[0] = parts[1];
    swapped[1] = parts[below(maker, 2)]; /* the same part twice, and one unused, or both */
    struct op op = op_begin(OP_CONCAT, 2, swapped);
    op_attribute(&op, RANDOM_TAPE_COUNT / width);
    op_attribute(&op, width / 2);
    op_attribute(&op, width / 2);
    op.output_count = 1;
    build_op(maker->builder, &op, &shape);
    return op.outputs[0];
}

static uint32_t make_expand(struct maker *maker)
{
    if (below(maker, 2) == 0) {
        uint32_t shape = below(maker, 3);

        return reshaped(maker, any(maker), shape);
    }
    return build_expand(maker->builder, maker->vectors[1], 4, 2, shapes[below(maker, 3)]);
}

/* 96 = 2 pictures of 4 by 4 with 3 channels = 8 patches of 2 by 2. */
static uint32_t make_image(struct maker *maker)
{
    static const int64_t apart[MEAN_POOL_ATTRIBUTES] = {2, 4, 4, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1};
    static const int64_t overlapping[MEAN_POOL_ATTRIBUTES] = {2, 4, 4, 3, 2, 2, 1,
                                                              1, 0, 0, 0, 0, 1, 1};
    /* 2*4*2*3 = 48 elements: padding above and to the right, another stride across. */
    static const int64_t uneven[MEAN_POOL_ATTRIBUTES] = {2, 4, 4, 3, 2, 2, 1, 2,
                                                         1, 0, 0, 1, 1, 1, 0};
    static const int64_t *const pools[4] = {apart, overlapping, uneven, uneven};
    uint32_t which = below(maker, 3);
    uint32_t x;

    if (which == 0) {
        return build_image_op(maker->builder, OP_IM2COL, any(maker), apart);
    }
    const int64_t *pool = pools[below(maker, 4)];

    x = build_image_op(maker->builder, which == 1 ? OP_MAX_POOL : OP_MEAN_POOL, any(maker), pool);
    if (builder_tensor(maker->builder, x)->count == 24) {
        return build_expand(maker->builder, x, 1, 2, shapes[below(maker, 3)]);
    }
    /* Overlapping, 2*3*3*3 = 54 elements: once around and the beginning again has no gradient. */
    x = build_reduce(maker->builder, x, 1, 6);
    return build_expand(maker->builder, x, 1, 2, shapes[below(maker, 3)]);
}

static uint32_t make_pool(struct maker *maker)
{
    static const int64_t apart[MEAN_POOL_ATTRIBUTES] = {2, 4, 4, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1};
    uint32_t x;

    if (!maker->smooth) {
        return make_image(maker);
    }
    x = build_image_op(maker->builder, OP_MAX_POOL, any(maker), apart);
    return build_expand(maker->builder, x, 1, 2, shapes[below(maker, 3)]);
}

static uint32_t make_linear(struct maker *maker)
{
    uint32_t x = any(maker);
    uint32_t weight = maker->weights[shape_of(maker, x)];

    return below(maker, 2) == 0 ? build_linear(maker->builder, x, weight)
                                : build_linear_transposed(maker->builder, x, weight);
}

/* (x y^T) y for matrices of 8 rows: two products through different views of one tensor. */
static uint32_t make_products(struct maker *maker)
{
    static const uint64_t square[6] = {0, 0, 0, 8, 0, 1};
    static const uint64_t plain[6] = {0, 0, 0, 12, 0, 1};
    static const uint64_t square_dims[2] = {8, 8};
    uint32_t x = reshaped(maker, any(maker), 0);
    uint32_t y = below(maker, 3) == 0 ? x : reshaped(maker, any(maker), 0);
    struct view rows = view_matrix(8, 12);
    struct view weights = view_matrix(8, 8);
    struct view columns = view_transposed(12, 8);
    uint32_t z = build_contract(maker->builder, x, &rows, y, &rows, square,
                                !maker->smooth && below(maker, 2) == 0 ? 8 : 0, 2, square_dims);

    return build_contract(maker->builder, z, &weights, y, &columns, plain, 0, 2, shapes[0]);
}

static uint32_t make_distance(struct maker *maker)
{
    const uint32_t a = any(maker);
    const uint32_t b = any(maker);

    return make_alike(maker, BINARY_SQUARED_ERROR, a, b);
}

/* Functions that are finite and have a gradient for any input. */
static uint32_t make_map(struct maker *maker)
{
    static const enum map_function functions[] = {MAP_NEG,     MAP_ABS, MAP_TANH, MAP_SIGMOID,
                                                  MAP_ERF,     MAP_SIN, MAP_COS,  MAP_GELU_ERF,
                                                  MAP_SIGMOID, MAP_EXP};
    uint32_t which = below(maker, (uint32_t)(sizeof(functions) / sizeof(functions[0])));
    uint32_t x = any(maker);

    x = functions[which] == MAP_EXP ? build_map(maker->builder, MAP_TANH, x) : x;
    return build_map(maker->builder, functions[which], x);
}

/* Divisors and bases are above 1/2. */
static uint32_t make_pair(struct maker *maker)
{
    static const enum binary_function functions[] = {BINARY_ADD, BINARY_SUB, BINARY_MUL, BINARY_MAX,
                                                     BINARY_MIN, BINARY_DIV, BINARY_POW};
    struct builder *builder = maker->builder;
    enum binary_function function = functions[below(maker, 7)];
    uint32_t a = any(maker);
    uint32_t b = below(maker, 2) == 0 ? maker->vectors[shape_of(maker, a)]
                                      : reshaped(maker, any(maker), shape_of(maker, a));

    if (function == BINARY_DIV || function == BINARY_POW) {
        uint32_t half = build_fill(builder, 0.5f, 1, (const uint64_t[]){1});
        uint32_t *low = function == BINARY_DIV ? &b : &a;

        *low = build_add(builder, build_map(builder, MAP_SIGMOID, *low), half, 1);
    }
    if (function == BINARY_POW) {
        b = build_fill(builder, 1.5f, 1, (const uint64_t[]){1});
    }
    return build_binary(builder, function, reshaped(maker, a, shape_of(maker, a)), b);
}

static uint32_t make_choice(struct maker *maker)
{
    uint32_t a = reshaped(maker, any(maker), 0);
    uint32_t b = reshaped(maker, any(maker), 0);
    uint32_t c = build_binary(maker->builder, BINARY_LESS, a, maker->vectors[0]);

    return build_select(maker->builder, c, below(maker, 2) == 0 ? maker->vectors[0] : a, b);
}

/* Rounded to 16 bits and back. */
static uint32_t make_cast(struct maker *maker)
{
    enum dtype dtype = below(maker, 2) == 0 ? DTYPE_F16 : DTYPE_BF16;
    uint32_t x = build_cast(maker->builder, any(maker), dtype);

    return build_cast(maker->builder, x, DTYPE_F32);
}

/* Transposed, reversed, or repeated from a part. */
static uint32_t make_move(struct maker *maker)
{
    static const uint32_t turned[2] = {1, 0};
    static const uint64_t starts[2] = {7, 1};
    static const uint64_t counts[2] = {4, 4};
    static const int64_t steps[2] = {-2, 3};
    static const struct move repeat = {{3, 2, 4, 1, 4}, {0, 0, 4, 0, 1}, 0};
    uint32_t x = reshaped(maker, any(maker), 0); /* (8, 12) */

    if (below(maker, 2) == 0) {
        return build_permute(maker->builder, x, turned);
    }
    x = build_slice(maker->builder, x, starts, counts, steps);
    return build_move(maker->builder, x, &repeat, 2, shapes[below(maker, 3)]);
}

/* (4, 12) of the one under (4, 12) of the other, or one part with a frame. */
static uint32_t make_place(struct maker *maker)
{
    static const uint64_t starts[2] = {2, 0};
    static const uint64_t counts[2] = {4, 12};
    static const int64_t steps[2] = {1, 1};
    static const uint64_t before[2] = {1, 0};
    static const uint64_t after[2] = {3, 0};
    uint32_t parts[2];

    for (uint32_t i = 0; i < 2; i++) {
        parts[i] =
            build_slice(maker->builder, reshaped(maker, any(maker), 0), starts, counts, steps);
    }
    if (below(maker, 2) == 0) {
        return build_pad(maker->builder, parts[0], before, after, 0.5f);
    }
    return build_join(maker->builder, parts, 2, 0);
}

/* Rows by the weights of the experts that the indexes name. */
static uint32_t make_experts(struct maker *maker)
{
    static const uint64_t dims[3] = {8, 12, 12};
    uint32_t x = reshaped(maker, any(maker), 0);
    uint32_t weights = build_expand(maker->builder, any(maker), 1, 3, dims);

    return build_linear_chosen(maker->builder, x, weights, maker->index);
}

/* The bits that two lists of places have both: places again. */
static uint32_t make_places(struct maker *maker, uint32_t a, uint32_t b)
{
    static const int64_t attributes[] = {INTEGER_AND, 1, 1, 8, 12, 0, 0, 12, 1, 0, 0, 12, 1};
    struct op op = op_begin(OP_INTEGER, 2, (const uint32_t[]){a, b});
    const struct output_shape shape = shape_matrix(DTYPE_U32, 8, 12);

    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        op_attribute(&op, (uint64_t)attributes[i]);
    }
    op.output_count = 1;
    build_op(maker->builder, &op, &shape);
    return op.outputs[0];
}

/* Elements of each row in another order: its own, or that of another one, or sent there. */
static uint32_t make_sorted(struct maker *maker)
{
    const uint32_t x = reshaped(maker, any(maker), 0);
    const uint32_t other = reshaped(maker, any(maker), 0);
    struct sorted sorted;

    build_sort(maker->builder, &sorted, other, below(maker, 2) == 0);
    if (below(maker, 2) == 0) {
        sorted.index = make_places(maker, sorted.index, sorted.rank);
    }
    switch (below(maker, maker->smooth ? 1 : 3)) {
    case 0:
        return build_take(maker->builder, x, sorted.index);
    case 1:
        return build_scatter(maker->builder, SCATTER_ADD, sorted.rank, x, other);
    default:
        return sorted.y;
    }
}

/* Scaled to a norm of one, as in gradient clipping. */
static uint32_t make_clip(struct maker *maker)
{
    uint32_t x = any(maker);
    uint32_t square = build_square_sum(maker->builder, x);
    struct op op = op_begin(OP_CLIP_FACTOR, 1, &square);
    struct output_shape shape = shape_vector(DTYPE_F32, 1);

    op_attribute_float(&op, 1.0f);
    op.output_count = 1;
    build_op(maker->builder, &op, &shape);
    return build_mul(maker->builder, x, op.outputs[0], 1);
}

static uint32_t make_one(struct maker *maker)
{
    static uint32_t (*const makers[])(struct maker *) = {
        make_binary,   make_binary,      make_unary,   make_scale,   make_norm,
        make_softmax,  make_linear,      make_dropout, make_gather,  make_split_and_concat,
        make_expand,   make_pool,        make_linear,  make_norm,    make_products,
        make_distance, make_map,         make_pair,    make_choice,  make_move,
        make_place,    make_one_of_rows, make_cast,    make_experts, make_sorted,
        make_clip};
    uint32_t count = (uint32_t)(sizeof(makers) / sizeof(makers[0])) - (maker->smooth ? 1 : 0);

    return makers[below(maker, count)](maker);
}

/* ---- the ends ----------------------------------------------------------- */

static uint32_t make_state(struct maker *maker, const char *name, uint64_t rows, uint64_t columns)
{
    uint64_t dims[2] = {rows, columns};
    uint32_t rank = rows == 0 ? 1 : 2;

    return maker->states[maker->state_count++] = build_tensor(
               maker->builder, name, DTYPE_F32, ROLE_STATE, rank, rank == 1 ? &columns : dims);
}

static uint32_t make_frozen(struct maker *maker, const char *name, enum dtype dtype, uint64_t rows,
                            uint64_t columns)
{
    const uint64_t dims[2] = {rows, columns};

    return build_tensor(maker->builder, name, dtype, ROLE_DATA, 2, dims);
}

static void begin(struct maker *maker, uint64_t seed)
{
    static const enum dtype frozen[3] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    static const uint64_t eight = 8;
    static const char *const names[3] = {"a", "b", "c"};

    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        uint64_t width = shapes[i][1];

        (void)snprintf(name, sizeof(name), "vector.%s", names[i]);
        maker->vectors[i] = make_state(maker, name, 0, width);
        (void)snprintf(name, sizeof(name), "weight.%s", names[i]);
        maker->weights[i] = seed % 5 == 0
                                ? make_frozen(maker, name, frozen[(seed + i) % 3], width, width)
                                : make_state(maker, name, width, width);
        (void)snprintf(name, sizeof(name), "x.%s", names[i]);
        maker->pool[maker->pool_count++] = make_state(maker, name, shapes[i][0], width);
    }
    maker->table = maker->pool[0];
    maker->frozen = make_frozen(maker, "table.frozen", frozen[seed % 2], 8, 12);
    maker->index = build_tensor(maker->builder, "index", DTYPE_U32, ROLE_CONSTANT, 1, &eight);
}

/* What a step draws: rows of packed data, and words. */
static void draw(struct maker *maker)
{
    const uint32_t data = make_frozen(maker, "rows", DTYPE_F32, 10, 12);
    const uint32_t counter = build_counter(maker->builder);
    struct op rows = op_begin(OP_BATCH_ROWS, 2, (const uint32_t[]){data, counter});
    struct op words = op_begin(OP_UNIFORM, 1, &counter);
    const struct output_shape shape = shape_matrix(DTYPE_F32, 8, 12);
    const struct output_shape list = shape_vector(DTYPE_U32, RANDOM_TAPE_COUNT);
    const uint32_t attributes[9] = {8, 12, 50, 77, 0, 2, 1, 0, 1}; /* pairs, the next place */

    for (uint32_t i = 0; i < 9; i++) {
        op_attribute(&rows, attributes[i]);
    }
    for (uint32_t i = 2; i < 5; i++) {
        op_attribute(&words, attributes[i]);
    }
    rows.output_count = words.output_count = 1;
    build_op(maker->builder, &rows, &shape);
    build_op(maker->builder, &words, &list);
    maker->pool[maker->pool_count++] = rows.outputs[0];
    maker->pool[maker->pool_count++] =
        reshaped(maker, build_cast(maker->builder, words.outputs[0], DTYPE_F32), 0);
}

/* Gradients of the loss by every state, and an update of the states that it depends on. */
static void make_updates(struct maker *maker, uint32_t loss)
{
    struct builder *builder = maker->builder;
    uint32_t gradients[9];
    uint32_t scalar = build_fill(builder, 0.125f, 1, (const uint64_t[]){1});

    build_gradients(builder, gradients, loss, maker->states, maker->state_count);
    for (uint32_t i = 0; i < maker->state_count && !builder_failed(builder); i++) {
        uint32_t p = maker->states[i];
        const struct tensor like = *builder_tensor(builder, p);
        struct output_shape shape = shape_like(builder, p);
        struct output_shape two[2] = {shape, shape};
        char name[TENSOR_NAME_MAX + 8];

        if (gradients[i] == TENSOR_NONE) {
            continue;
        }
        (void)snprintf(name, sizeof(name), "v.%s", like.name);
        uint32_t v = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, like.rank, like.dims);
        uint32_t inputs[5] = {p, gradients[i], v, scalar, scalar};
        struct op op = op_begin(OP_SGD, 5, inputs);
        op_attribute_float(&op, 0.5f);
        op_attribute_float(&op, 0.01f);
        op.output_count = 2;
        build_op(builder, &op, two);
        build_after(builder, p, op.outputs[0]);
        build_after(builder, v, op.outputs[1]);
    }
}

/* Without gradients: the next value of a state is the latest tensor of its shape, used once. */
static void make_afters(struct maker *maker)
{
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t state = maker->pool[i];

        for (uint32_t at = maker->pool_count; at > 3; at--) {
            uint32_t id = maker->pool[at - 1];
            const struct tensor *made = builder_tensor(maker->builder, id);

            if (id != TENSOR_NONE && made->role == ROLE_TEMPORARY && made->rank == 2 &&
                made->dims[0] == shapes[i][0] && made->dims[1] == shapes[i][1]) {
                build_after(maker->builder, state, id);
                for (uint32_t j = 3; j < maker->pool_count; j++) {
                    maker->pool[j] = maker->pool[j] == id ? TENSOR_NONE : maker->pool[j];
                }
                break;
            }
        }
    }
}

struct tape *random_tape(uint64_t seed, uint32_t op_count)
{
    struct maker maker = {.random = seed, .builder = NULL};
    struct tape *tape = NULL;
    struct error error;
    uint32_t loss;

    error_init(&error);
    maker.builder = builder_new((struct precision){seed % 3 == 0   ? 22
                                                   : seed % 3 == 1 ? 14
                                                                   : 16,
                                                   seed % 2 == 0 ? 16 : 0});
    maker.smooth = seed % 4 < 2;
    begin(&maker, seed);
    if (seed % 16 == 7) {
        draw(&maker);
    }
    for (uint32_t i = 0; i < op_count && maker.pool_count < POOL_MAX; i++) {
        uint32_t made = make_one(&maker); /* which itself chooses from the pool */

        maker.pool[maker.pool_count++] = made;
    }
    loss = build_mean(maker.builder, maker.pool[maker.pool_count - 1]);
    build_output(maker.builder, "loss", loss);
    build_loss(maker.builder, loss);
    if (maker.smooth && seed % 8 < 4) {
        builder_equilibrate(maker.builder);
    }
    if (maker.smooth) {
        make_updates(&maker, loss);
    } else {
        make_afters(&maker);
    }
    if (builder_finish(&tape, maker.builder, &error) != STATUS_OK) {
        fprintf(stderr, "random tape %llu: %s\n", (unsigned long long)seed, error.text);
        abort();
    }
    builder_free(maker.builder);
    return tape;
}

/* ---- machines ----------------------------------------------------------- */

void *random_tape_value(const struct tape *tape, uint32_t id, uint64_t seed)
{
    const struct tensor *tensor = &tape->tensors[id];
    uint64_t random = seed * 1000 + id;
    uint8_t *bytes = calloc(tensor->count, dtype_size(tensor->dtype));

    for (uint64_t i = 0; bytes != NULL && i < tensor->count; i++) {
        uint64_t draw = next(&random);
        float value = (float)((double)(draw >> 40) * 0x1p-23 - 1.0);
        uint32_t word = (uint32_t)(draw % 9); /* now and then past the end of a table of 8 */

        if (tensor->dtype == DTYPE_F32) {
            memcpy(bytes + 4 * i, &value, 4);
        } else if (dtype_is_half(tensor->dtype)) {
            word = element_cast(DTYPE_F32, tensor->dtype, real_to_bits(value));
            memcpy(bytes + 2 * i, &word, 2);
        } else if (dtype_size(tensor->dtype) == 4) {
            word = tensor->role == ROLE_CONSTANT ? word % 8 : word;
            memcpy(bytes + 4 * i, &word, 4);
        } else {
            bytes[dtype_size(tensor->dtype) * i] = (uint8_t)word;
        }
    }
    if (bytes == NULL) {
        abort();
    }
    return bytes;
}

void random_machine_open(struct random_machine *random, const struct tape *tape,
                         const struct machine_options *options, uint64_t seed)
{
    struct error error;

    error_init(&error);
    random->data = calloc((size_t)tape->tensor_count + 1, sizeof(*random->data));
    if (random->data == NULL ||
        backend_cpu.open(&random->machine, tape, options, &error) != STATUS_OK) {
        fprintf(stderr, "random machine: %s\n", error.text);
        abort();
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        enum status status = STATUS_OK;

        if (role_is_made(tape->tensors[id].role)) {
            continue;
        }
        void *bytes = random_tape_value(tape, id, seed);
        if (tape->tensors[id].role == ROLE_DATA) {
            random->data[id] = bytes;
            status = backend_cpu.bind(random->machine, id, bytes, &error);
        } else {
            status = backend_cpu.write(random->machine, id, bytes, &error);
            free(bytes);
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "random machine: %s\n", error.text);
            abort();
        }
    }
}

void random_machine_step(struct random_machine *random, const struct observer *observer)
{
    struct error error;

    error_init(&error);
    if (backend_cpu.step(random->machine, observer, &error) != STATUS_OK) {
        fprintf(stderr, "random machine: %s\n", error.text);
        abort();
    }
}

void random_machine_close(struct random_machine *random)
{
    for (uint32_t id = 0; id < random->machine->tape->tensor_count; id++) {
        free(random->data[id]);
    }
    free(random->data);
    backend_cpu.close(random->machine);
}

bool random_machine_equal(const char **name, const struct random_machine *a,
                          const struct random_machine *b)
{
    const struct tape *tape = a->machine->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        const uint32_t other = id == tape->loss ? b->machine->tape->loss : id;

        if ((tensor->role == ROLE_STATE || tensor->role == ROLE_OUTPUT || id == tape->loss) &&
            memcmp(backend_cpu.peek(a->machine, id), backend_cpu.peek(b->machine, other),
                   tensor->count * dtype_size(tensor->dtype)) != 0) {
            *name = tensor->name;
            return false;
        }
    }
    return true;
}
