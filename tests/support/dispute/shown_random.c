/* shown_random.c - see shown_random.h. */
#include "tests/support/dispute/shown_random.h"

#include <assert.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/ops/element.h"
#include "engine/ops/image.h"
#include "tests/support/numeric/float_operands.h"
#include "tests/support/test.h"

const enum op_kind shown_random_kinds[SHOWN_RANDOM_KINDS] = {
    OP_STEP_NEXT,
    OP_SCHEDULE,
    OP_FILL,
    OP_BATCH_TOKENS,
    OP_BATCH_SAMPLES,
    OP_DROPOUT,
    OP_GATHER,
    OP_SPLIT,
    OP_CONCAT,
    OP_EXPAND,
    OP_IM2COL,
    OP_COL2IM,
    OP_QUANTIZE,
    OP_CONTRACT,
    OP_CONTRACT_ONES,
    OP_CONTRACT_ONEHOT,
    OP_MAX_POOL,
    OP_MAX_POOL_GRAD,
    OP_MEAN_POOL,
    OP_MEAN_POOL_GRAD,
    OP_EQUILIBRATE,
    OP_BATCH_ROWS,
    OP_UNIFORM,
    OP_CONTRACT_CHOSEN,
    OP_CONTRACT_CHOSEN_ROWS,
};

static int64_t pick(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)test_random_below(seed, (uint64_t)(high - low + 1));
}

static bool chance(uint64_t *seed, uint64_t of)
{
    return test_random_below(seed, of) == 0;
}

/* ---- elements ------------------------------------------------------------- */

static uint32_t ordinary(uint64_t *seed)
{
    uint32_t bits = (uint32_t)test_random(seed);

    return (bits & UINT32_C(0x81ffffff)) | UINT32_C(0x3e000000); /* 2^-3 to 1 */
}

/* One flavour for a tensor: ordinary numbers, those with a few special ones, or anything. */
static void fill_floats(uint64_t *seed, uint32_t *elements, uint64_t count)
{
    uint64_t flavour = test_random_below(seed, 3);

    for (uint64_t i = 0; i < count; i++) {
        bool any = flavour == 2 || (flavour == 1 && chance(seed, 16));

        elements[i] = any ? float_operands_any(seed) : ordinary(seed);
    }
}

static uint32_t *floats(struct shown_case *shown, uint32_t number, uint64_t *seed, uint64_t count)
{
    uint32_t *elements = shown_case_tensor(shown, number, DTYPE_F32, count);

    fill_floats(seed, elements, count);
    return elements;
}

/* What quantize and gather read: floats of 32 or of 16 bits. */
static void reals(struct shown_case *shown, uint32_t number, uint64_t *seed, uint64_t count)
{
    const enum dtype dtype = chance(seed, 2) ? DTYPE_F16 : DTYPE_BF16;
    uint16_t *elements;

    if (chance(seed, 2)) {
        (void)floats(shown, number, seed, count);
        return;
    }
    elements = shown_case_tensor(shown, number, dtype, count);
    for (uint64_t i = 0; i < count; i++) {
        elements[i] = chance(seed, 8) ? (uint16_t)test_random(seed)
                                      : (uint16_t)element_cast(DTYPE_F32, dtype, ordinary(seed));
    }
}

/* Numbers mostly below limit. */
static void numbers(struct shown_case *shown, uint32_t number, uint64_t *seed, uint64_t count,
                    uint64_t limit)
{
    uint32_t *elements = shown_case_tensor(shown, number, DTYPE_U32, count);

    for (uint64_t i = 0; i < count; i++) {
        elements[i] =
            (uint32_t)(chance(seed, 20) ? test_random(seed) : test_random_below(seed, limit));
    }
}

static void any_bytes(struct shown_case *shown, uint32_t number, uint64_t *seed, enum dtype dtype,
                      uint64_t count)
{
    test_random_fill(seed, shown_case_tensor(shown, number, dtype, count),
                     count * dtype_size(dtype));
}

static void outputs(struct shown_case *shown, uint64_t count, enum dtype first, enum dtype second)
{
    for (uint32_t i = 0; i < shown->op.output_count; i++) {
        (void)shown_case_tensor(shown, shown->op.input_count + i, i == 0 ? first : second, count);
    }
}

static void attribute(struct shown_case *shown, int64_t value)
{
    assert(shown->op.attribute_count < OP_ATTRIBUTES_MAX);
    shown->op.attributes[shown->op.attribute_count++] = value;
}

/* Constants hold no NaN but the one. */
static void float_attribute(struct shown_case *shown, uint64_t *seed)
{
    uint32_t bits = float_operands_any(seed);

    attribute(shown, (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000) ? FLOAT_NAN_BITS : bits);
}

static void seed_attributes(struct shown_case *shown, uint64_t *seed)
{
    attribute(shown, (int64_t)test_random_below(seed, 1000)); /* stream */
    attribute(shown, (uint32_t)test_random(seed));
    attribute(shown, (uint32_t)test_random(seed));
}

static enum dtype token_type(uint64_t *seed)
{
    static const enum dtype types[3] = {DTYPE_U8, DTYPE_U16, DTYPE_U32};

    return types[test_random_below(seed, 3)];
}

/* ---- kinds ---------------------------------------------------------------- */

static void make_schedule(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t columns = pick(seed, 1, 5);
    int64_t rows = pick(seed, 1, 300);

    shown_case_init(shown, kind, 2, 1);
    attribute(shown, columns);
    attribute(shown, pick(seed, 0, columns - 1));
    (void)floats(shown, 0, seed, (uint64_t)(rows * columns));
    numbers(shown, 1, seed, 1, (uint64_t)rows + 2);
    if (chance(seed, 2)) { /* about the end of the table */
        *(uint32_t *)shown->operands[1].memory = (uint32_t)(rows + pick(seed, -1, 1));
    }
    outputs(shown, 1, DTYPE_F32, DTYPE_F32);
}

static void make_batch_tokens(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t batch = pick(seed, 1, 6);
    int64_t length = pick(seed, 1, 40);

    shown_case_init(shown, kind, 2, 2);
    attribute(shown, batch);
    attribute(shown, length);
    seed_attributes(shown, seed);
    any_bytes(shown, 0, seed, token_type(seed), (uint64_t)(length + pick(seed, 1, 3000)));
    shown->operands[0].role = ROLE_DATA;
    any_bytes(shown, 1, seed, DTYPE_U32, 1);
    outputs(shown, (uint64_t)(batch * length), DTYPE_U32, DTYPE_U32);
}

static void make_batch_samples(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t batch = pick(seed, 1, 6);
    int64_t width = pick(seed, 1, 40);
    int64_t samples = pick(seed, 1, 90);

    shown_case_init(shown, kind, 3, 2);
    attribute(shown, batch);
    attribute(shown, width);
    seed_attributes(shown, seed);
    float_attribute(shown, seed);
    if (chance(seed, 2)) {
        (void)floats(shown, 0, seed, (uint64_t)(samples * width));
    } else {
        any_bytes(shown, 0, seed, DTYPE_U8, (uint64_t)(samples * width));
    }
    any_bytes(shown, 1, seed, token_type(seed), (uint64_t)samples);
    any_bytes(shown, 2, seed, DTYPE_U32, 1);
    (void)shown_case_tensor(shown, 3, DTYPE_F32, (uint64_t)(batch * width));
    (void)shown_case_tensor(shown, 4, DTYPE_U32, (uint64_t)batch);
}

/* Few units, so that some positions are past them and some walks are long; now and then many. */
static void make_batch_rows(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    static const enum dtype types[6] = {DTYPE_U8,  DTYPE_U16,  DTYPE_U32,
                                        DTYPE_F16, DTYPE_BF16, DTYPE_F32};
    const enum dtype dtype = types[test_random_below(seed, 6)];
    const bool real = dtype == DTYPE_F32 || dtype_is_half(dtype);
    const int64_t together = pick(seed, 1, 3);
    const int64_t length = pick(seed, 1, 9);
    const int64_t batch = together * pick(seed, 1, 30);
    const int64_t units = chance(seed, 4) ? pick(seed, 1000, 9000) : pick(seed, 1, 60);

    shown_case_init(shown, kind, 2, 1);
    attribute(shown, batch);
    attribute(shown, length);
    seed_attributes(shown, seed);
    attribute(shown, together);
    attribute(shown, pick(seed, 0, 1));
    if (real) {
        float_attribute(shown, seed);
    } else {
        attribute(shown, chance(seed, 2) ? UINT32_MAX : (uint32_t)test_random(seed));
    }
    attribute(shown, chance(seed, 4) ? 0 : 1);
    any_bytes(shown, 0, seed, dtype, (uint64_t)(units * together * length));
    shown->operands[0].role = ROLE_DATA;
    numbers(shown, 1, seed, 1, 8);
    outputs(shown, (uint64_t)(batch * length), real ? DTYPE_F32 : DTYPE_U32, DTYPE_U32);
}

static void make_uniform(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    shown_case_init(shown, kind, 1, 1);
    seed_attributes(shown, seed);
    any_bytes(shown, 0, seed, DTYPE_U32, 1);
    outputs(shown, (uint64_t)pick(seed, 1, 1000), DTYPE_U32, DTYPE_U32);
}

static void make_dropout(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    uint64_t count = (uint64_t)pick(seed, 1, 1000);

    shown_case_init(shown, kind, 2, 1);
    attribute(shown, (uint32_t)test_random(seed));
    float_attribute(shown, seed);
    seed_attributes(shown, seed);
    (void)floats(shown, 0, seed, count);
    any_bytes(shown, 1, seed, DTYPE_U32, 1);
    outputs(shown, count, DTYPE_F32, DTYPE_F32);
}

static void make_witness(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t vocabulary = pick(seed, 1, 60);
    int64_t width = pick(seed, 1, 70);
    int64_t rows = pick(seed, 1, 300);

    shown_case_init(shown, kind, 2, 1);
    attribute(shown, vocabulary);
    attribute(shown, width);
    reals(shown, 0, seed, (uint64_t)(vocabulary * width));
    numbers(shown, 1, seed, (uint64_t)rows, (uint64_t)vocabulary + 1);
    outputs(shown, (uint64_t)(rows * width), DTYPE_F32, DTYPE_F32);
}

/* SPLIT and CONCAT: the whole is operand 0 of one and the last of the other. */
static void make_parts(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    uint32_t parts = (uint32_t)pick(seed, 1, 8);
    int64_t rows = pick(seed, 1, 30);
    int64_t whole = 0;

    shown_case_init(shown, kind, kind == OP_SPLIT ? 1 : parts, kind == OP_SPLIT ? parts : 1);
    attribute(shown, rows);
    for (uint32_t i = 0; i < parts; i++) {
        int64_t width = pick(seed, 1, chance(seed, 2) ? 3 : 90);

        attribute(shown, width);
        whole += width;
        (void)floats(shown, kind == OP_SPLIT ? 1 + i : i, seed, (uint64_t)(rows * width));
    }
    (void)floats(shown, kind == OP_SPLIT ? 0 : parts, seed, (uint64_t)(rows * whole));
}

static void make_expand(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t divisor = pick(seed, 1, 20);
    int64_t modulus = pick(seed, 1, 600);

    shown_case_init(shown, kind, 1, 1);
    attribute(shown, divisor);
    attribute(shown, modulus);
    (void)floats(shown, 0, seed, (uint64_t)modulus);
    outputs(shown, (uint64_t)(divisor * modulus * pick(seed, 1, 2)), DTYPE_F32, DTYPE_F32);
}

static bool is_pool(enum op_kind kind)
{
    return kind == OP_MAX_POOL || kind == OP_MAX_POOL_GRAD || kind == OP_MEAN_POOL ||
           kind == OP_MEAN_POOL_GRAD;
}

/* A pool has less padding than a window that lies close has places: none is empty. */
static void make_window_attributes(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t kernel[2] = {pick(seed, 1, 5), pick(seed, 1, 5)};
    int64_t dilation[2] = {1, 1};
    int64_t padding = is_pool(kind) ? (kernel[0] > 1 && kernel[1] > 1) : 3;

    if (!is_pool(kind) || padding == 0) {
        dilation[0] = pick(seed, 1, 3);
        dilation[1] = pick(seed, 1, 3);
    }
    attribute(shown, pick(seed, 1, 3));
    attribute(shown, (kernel[0] - 1) * dilation[0] + pick(seed, 1, 8));
    attribute(shown, (kernel[1] - 1) * dilation[1] + pick(seed, 1, 8));
    attribute(shown, pick(seed, 1, 5));
    attribute(shown, kernel[0]);
    attribute(shown, kernel[1]);
    attribute(shown, pick(seed, 1, 4));
    attribute(shown, pick(seed, 1, 4));
    for (int side = 0; side < 4; side++) {
        attribute(shown, pick(seed, 0, padding));
    }
    attribute(shown, dilation[0]);
    attribute(shown, dilation[1]);
    if (kind == OP_MEAN_POOL || kind == OP_MEAN_POOL_GRAD) {
        attribute(shown, pick(seed, 0, 1));
    }
}

static void make_windows(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    shown_case_init(shown, kind, kind == OP_MAX_POOL_GRAD ? 2 : 1, kind == OP_MAX_POOL ? 2 : 1);
    make_window_attributes(shown, seed, kind);

    struct image image = image_of(&shown->op);
    uint64_t picture = (uint64_t)(image.batch * image.y.size * image.x.size * image.channels);
    uint64_t windows = (uint64_t)(image.batch * image.y.out * image.x.out * image.channels);
    uint64_t inside = (uint64_t)(image.y.kernel * image.x.kernel);

    if (kind == OP_IM2COL || kind == OP_COL2IM) {
        const bool spreads = kind == OP_IM2COL;

        (void)floats(shown, 0, seed, spreads ? picture : windows * inside);
        outputs(shown, spreads ? windows * inside : picture, DTYPE_F32, DTYPE_F32);
        return;
    }
    if (kind == OP_MAX_POOL || kind == OP_MEAN_POOL) {
        (void)floats(shown, 0, seed, picture);
        outputs(shown, windows, DTYPE_F32, DTYPE_U32);
        return;
    }
    if (kind == OP_MAX_POOL_GRAD) {
        numbers(shown, 0, seed, windows, inside + 1);
    }
    (void)floats(shown, kind == OP_MAX_POOL_GRAD ? 1 : 0, seed, windows);
    outputs(shown, picture, DTYPE_F32, DTYPE_F32);
}

/* ---- contraction ----------------------------------------------------------- */

static int64_t random_bits(uint64_t *seed)
{
    static const int64_t known[4] = {14, 15, 16, 22};

    return known[test_random_below(seed, 4)];
}

static int64_t random_block(uint64_t *seed)
{
    static const int64_t blocks[8] = {0, 16, 32, 64, 128, 256, 512, 1024};

    return blocks[test_random_below(seed, 8)];
}

/* Lengths of rows: ragged, about a block or a word of sixteen, now and then long. */
static int64_t random_k(uint64_t *seed)
{
    static const int64_t near[8] = {1, 15, 16, 17, 127, 128, 129, 256};

    if (chance(seed, 3)) {
        return near[test_random_below(seed, 8)];
    }
    return pick(seed, 1, chance(seed, 6) ? 2100 : 300);
}

/* Strides that make the six axes a permutation of what they span, in random order. */
static void random_strides(struct shown_case *shown, uint64_t *seed, const int64_t dims[6])
{
    int64_t stride = 1;
    int order[6] = {5, 4, 3, 2, 1, 0};

    for (int i = 5; i > 0 && chance(seed, 2); i--) {
        int other = (int)test_random_below(seed, (uint64_t)i + 1);
        int axis = order[i];

        order[i] = order[other];
        order[other] = axis;
    }
    for (int i = 0; i < 6; i++) {
        shown->op.attributes[6 + order[i]] = stride;
        stride *= dims[order[i]];
    }
    shown->op.attribute_count = 12;
}

/* Exponents as a quantize operation gives them, with poison, or of any kind. */
static void random_exponents(struct shown_case *shown, uint32_t number, uint64_t *seed,
                             uint64_t count)
{
    int16_t *exponents = shown_case_tensor(shown, number, DTYPE_I16, count);
    uint64_t flavour = test_random_below(seed, 8);
    int64_t base = pick(seed, -149, 120);

    for (uint64_t i = 0; i < count; i++) {
        if (flavour == 0) {
            exponents[i] = (int16_t)test_random(seed);
        } else if (flavour == 1) {
            exponents[i] = (int16_t)(base + pick(seed, 0, 80)); /* shifts past 64 */
        } else {
            exponents[i] = (int16_t)(base + pick(seed, 0, 8));
        }
    }
    if (chance(seed, 12)) {
        exponents[test_random_below(seed, count)] = EXPONENT_POISON;
    }
}

/* Integers within the clamp, at the ends of the type, or few. */
static void random_integers(struct shown_case *shown, uint32_t number, uint64_t *seed,
                            uint64_t count, int64_t bits)
{
    enum dtype dtype = bits == 22 ? DTYPE_I32 : DTYPE_I16;
    char *elements = shown_case_tensor(shown, number, dtype, count);
    size_t size = dtype_size(dtype);
    uint64_t flavour = test_random_below(seed, 4);
    int64_t limit = (INT64_C(1) << (bits - 1)) - 1;

    for (uint64_t i = 0; i < count; i++) {
        int64_t value = pick(seed, -limit, limit);

        if (flavour == 0) {
            value = (int64_t)test_random(seed);
        } else if (flavour == 1) {
            value = chance(seed, 2) ? INT32_MIN >> (bits == 22 ? 0 : 16) : INT32_MAX;
        } else if (flavour == 2 && !chance(seed, 10)) {
            value = 0;
        }
        int32_t bits32 = (int32_t)value;

        memcpy(elements + i * size, &bits32, size);
    }
}

static void make_quantize(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t dims[6];
    uint64_t count = 1;

    const bool shifted = chance(seed, 2);
    const uint32_t out = shifted ? 2 : 1; /* the first output's operand */

    shown_case_init(shown, kind, shifted ? 2 : 1, 3);
    for (int i = 0; i < 6; i++) {
        dims[i] = chance(seed, 3) ? 1 : pick(seed, 1, 3);
    }
    dims[4 + test_random_below(seed, 2)] = random_k(seed);
    for (int i = 0; i < 6; i++) {
        shown->op.attributes[i] = dims[i];
        count *= (uint64_t)dims[i];
    }
    random_strides(shown, seed, dims);
    attribute(shown, random_bits(seed));
    attribute(shown, random_block(seed));

    struct contraction_shape shape = contraction_shape_of(&shown->op);
    uint64_t rows = (uint64_t)quantize_rows(&shown->op);
    enum dtype q = shape.bits == 22 ? DTYPE_I32 : DTYPE_I16;

    reals(shown, 0, seed, count);
    if (shifted) {
        random_exponents(shown, 1, seed, (uint64_t)(dims[0] * dims[1] * dims[4] * dims[5]));
    }
    (void)shown_case_tensor(shown, out, DTYPE_I16, rows * (uint64_t)shape.pieces);
    (void)shown_case_tensor(shown, out + 1, DTYPE_I16, rows * (uint64_t)shape.blocks);
    (void)shown_case_tensor(shown, out + 2, q, count);
    shown_case_compute(shown);
    for (uint32_t i = out; i < out + 2; i++) {
        int16_t *exponents = shown->operands[i].memory;

        if (chance(seed, 2)) { /* a liar's */
            exponents[test_random_below(seed, shown->operands[i].count)] =
                (int16_t)pick(seed, -200, 140);
        }
    }
}

static void make_equilibrate(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    const bool pair = chance(seed, 2);
    int64_t rows = pick(seed, 1, 40);
    int64_t widths[2] = {pick(seed, 1, 700), pair ? pick(seed, 1, 30) : 0};

    shown_case_init(shown, kind, pair ? 2 : 1, 2);
    attribute(shown, rows);
    attribute(shown, widths[0]);
    attribute(shown, widths[1]);
    for (uint32_t i = 0; i < (pair ? 2 : 1); i++) {
        random_exponents(shown, i, seed, (uint64_t)(rows * widths[i]));
    }
    (void)shown_case_tensor(shown, pair ? 2 : 1, DTYPE_I16, (uint64_t)rows);
    (void)shown_case_tensor(shown, pair ? 3 : 2, DTYPE_I16, (uint64_t)rows);
    shown_case_compute(shown);
}

static void make_contract(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    int64_t dims[6];
    int64_t k = random_k(seed);
    int64_t bits = random_bits(seed);

    shown_case_init(shown, kind, 4, 1);
    for (int i = 0; i < 6; i++) {
        dims[i] = chance(seed, 3) ? 1 : pick(seed, 1, 4);
        shown->op.attributes[i] = dims[i];
    }
    random_strides(shown, seed, dims);
    attribute(shown, k);
    attribute(shown, bits);
    attribute(shown, random_block(seed));
    attribute(shown, chance(seed, 4) ? pick(seed, 1, dims[2] * dims[3]) : 0);

    struct contraction_shape shape = contraction_shape_of(&shown->op);
    uint64_t batches = (uint64_t)(dims[0] * dims[1]);
    uint64_t rows_a = batches * (uint64_t)(dims[2] * dims[3]);
    uint64_t rows_b = batches * (uint64_t)(dims[4] * dims[5]);

    random_integers(shown, 0, seed, rows_a * (uint64_t)k, bits);
    random_exponents(shown, 1, seed, rows_a * (uint64_t)shape.blocks);
    random_integers(shown, 2, seed, rows_b * (uint64_t)k, bits);
    random_exponents(shown, 3, seed, rows_b * (uint64_t)shape.blocks);
    outputs(shown, rows_a * (uint64_t)(dims[4] * dims[5]), DTYPE_F32, DTYPE_F32);
}

/* CONTRACT_ONES, and CONTRACT_ONEHOT with its indexes in front. */
static void make_sums(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    uint32_t q = kind == OP_CONTRACT_ONEHOT ? 1 : 0;
    int64_t vocabulary = pick(seed, 1, 12);
    int64_t rows = pick(seed, 1, 6);
    int64_t k = random_k(seed);
    int64_t bits = random_bits(seed);

    shown_case_init(shown, kind, q + 2, 1);
    if (kind == OP_CONTRACT_ONEHOT) {
        attribute(shown, vocabulary);
        numbers(shown, 0, seed, (uint64_t)k, (uint64_t)vocabulary);
    }
    attribute(shown, rows);
    attribute(shown, k);
    attribute(shown, bits);
    attribute(shown, random_block(seed));

    struct contraction_shape shape = contraction_shape_of(&shown->op);

    random_integers(shown, q, seed, (uint64_t)(rows * k), bits);
    random_exponents(shown, q + 1, seed, (uint64_t)(rows * shape.blocks));
    outputs(shown, (uint64_t)(kind == OP_CONTRACT_ONEHOT ? vocabulary * rows : rows), DTYPE_F32,
            DTYPE_F32);
}

/* Two operands of so many rows, the first at slot `first`, the second at 3. */
static void random_operands(struct shown_case *shown, uint64_t *seed, uint32_t first,
                            uint64_t rows_a, uint64_t rows_b, int64_t bits)
{
    struct contraction_shape shape = contraction_shape_of(&shown->op);

    random_integers(shown, first, seed, rows_a * (uint64_t)shape.k, bits);
    random_exponents(shown, first + 1, seed, rows_a * (uint64_t)shape.blocks);
    random_integers(shown, 3, seed, rows_b * (uint64_t)shape.k, bits);
    random_exponents(shown, 4, seed, rows_b * (uint64_t)shape.blocks);
}

static void make_chosen(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    bool sums = kind == OP_CONTRACT_CHOSEN_ROWS;
    int64_t dims[3] = {pick(seed, 1, 5), pick(seed, 1, 5), pick(seed, 1, 5)};
    int64_t experts = dims[sums ? 0 : 1];
    int64_t k = random_k(seed);
    int64_t bits = random_bits(seed);

    shown_case_init(shown, kind, 5, 1);
    for (int i = 0; i < 3; i++) {
        attribute(shown, dims[i]);
    }
    attribute(shown, k);
    attribute(shown, bits);
    attribute(shown, random_block(seed));
    numbers(shown, sums ? 0 : 2, seed, (uint64_t)(sums ? k : dims[0]), (uint64_t)experts + 1);
    random_operands(shown, seed, sums ? 1 : 0, (uint64_t)(sums ? dims[1] : dims[0]),
                    (uint64_t)(sums ? dims[2] : experts * dims[2]), bits);
    outputs(shown, (uint64_t)(sums ? dims[0] * dims[1] * dims[2] : dims[0] * dims[2]), DTYPE_F32,
            DTYPE_F32);
}

static void make_step_next(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    shown_case_init(shown, kind, 1, 1);
    any_bytes(shown, 0, seed, DTYPE_U32, 1);
    outputs(shown, 1, DTYPE_U32, DTYPE_U32);
}

static void make_fill(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    shown_case_init(shown, kind, 0, 1);
    float_attribute(shown, seed);
    outputs(shown, (uint64_t)pick(seed, 1, 900), DTYPE_F32, DTYPE_F32);
}

typedef void maker(struct shown_case *shown, uint64_t *seed, enum op_kind kind);

void shown_random(struct shown_case *shown, uint64_t *seed, enum op_kind kind)
{
    static maker *const makers[OP_KIND_COUNT] = {
        [OP_STEP_NEXT] = make_step_next,
        [OP_SCHEDULE] = make_schedule,
        [OP_FILL] = make_fill,
        [OP_BATCH_TOKENS] = make_batch_tokens,
        [OP_BATCH_SAMPLES] = make_batch_samples,
        [OP_DROPOUT] = make_dropout,
        [OP_BATCH_ROWS] = make_batch_rows,
        [OP_UNIFORM] = make_uniform,
        [OP_GATHER] = make_witness,
        [OP_SPLIT] = make_parts,
        [OP_CONCAT] = make_parts,
        [OP_EXPAND] = make_expand,
        [OP_QUANTIZE] = make_quantize,
        [OP_EQUILIBRATE] = make_equilibrate,
        [OP_CONTRACT] = make_contract,
        [OP_CONTRACT_ONES] = make_sums,
        [OP_CONTRACT_ONEHOT] = make_sums,
        [OP_CONTRACT_CHOSEN] = make_chosen,
        [OP_CONTRACT_CHOSEN_ROWS] = make_chosen,
        [OP_IM2COL] = make_windows,
        [OP_COL2IM] = make_windows,
        [OP_MAX_POOL] = make_windows,
        [OP_MAX_POOL_GRAD] = make_windows,
        [OP_MEAN_POOL] = make_windows,
        [OP_MEAN_POOL_GRAD] = make_windows,
    };

    makers[kind](shown, seed, kind);
    if (kind != OP_EQUILIBRATE) {
        shown_case_check(shown);
    }
}

struct shown_target shown_random_target(const struct shown_case *shown, uint64_t *seed)
{
    uint32_t output = (uint32_t)test_random_below(seed, shown->op.output_count);
    const struct shown_operand *accused = &shown->operands[shown->op.input_count + output];

    return (struct shown_target){
        .output = output,
        .element = test_random_below(seed, accused->count),
    };
}
