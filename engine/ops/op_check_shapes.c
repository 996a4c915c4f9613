/*
 * op_check_shapes.c - the checks of the kinds whose attributes describe shapes: rows, contractions
 * and pictures. See op_checker.h.
 */
#include "engine/ops/contraction.h"
#include "engine/ops/op_checker.h"

/* A row has at most FOLD_CHUNK chunks, so that the fold of the parts is one chunk. */
#define COLUMNS_MAX ((uint64_t)FOLD_CHUNK * FOLD_CHUNK)

struct rows_shape {
    uint64_t rows;
    uint64_t columns;
    uint64_t all;    /* rows*columns */
    uint64_t chunks; /* rows*chunks of a row */
};

static struct rows_shape check_rows(struct op_checker *checker)
{
    struct rows_shape shape;

    shape.rows = check_attribute(checker, ROWS, 1, TENSOR_COUNT_MAX);
    shape.columns = check_attribute(checker, COLUMNS, 1, COLUMNS_MAX);
    shape.all = check_product(checker, shape.rows, shape.columns);
    shape.chunks = check_product(checker, shape.rows, fold_chunks(shape.columns));
    return shape;
}

/* ---- rows --------------------------------------------------------------- */

void op_check_row_sum(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_input(checker, 0, DTYPES_F32, shape.all);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_F32, shape.rows);
}

void op_check_layer_norm(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_float(checker, NORM_EPSILON_BITS);
    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_F32, shape.columns);
    check_input(checker, 2, DTYPES_F32, shape.columns);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_F32, shape.rows);
    check_output(checker, 2, DTYPES_F32, shape.chunks);
    check_output(checker, 3, DTYPES_F32, shape.rows);
    check_output(checker, 4, DTYPES_F32, shape.all);
}

void op_check_layer_norm_grad(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_F32, shape.all);
    check_input(checker, 2, DTYPES_F32, shape.columns);
    check_input(checker, 3, DTYPES_F32, shape.rows);
    check_input(checker, 4, DTYPES_F32, shape.rows);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_F32, shape.chunks);
    check_output(checker, 2, DTYPES_F32, shape.rows);
    check_output(checker, 3, DTYPES_F32, shape.rows);
    check_output(checker, 4, DTYPES_F32, shape.all);
    check_output(checker, 5, DTYPES_F32, shape.all);
}

void op_check_rms_norm(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_float(checker, NORM_EPSILON_BITS);
    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_F32, shape.columns);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_F32, shape.rows);
    check_output(checker, 2, DTYPES_F32, shape.all);
}

void op_check_rms_norm_grad(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_F32, shape.all);
    check_input(checker, 2, DTYPES_F32, shape.columns);
    check_input(checker, 3, DTYPES_F32, shape.rows);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_F32, shape.rows);
    check_output(checker, 2, DTYPES_F32, shape.all);
    check_output(checker, 3, DTYPES_F32, shape.all);
}

/* The rows are (S,H,T) and the reach is (S,T), for some H. */
static void check_reach(struct op_checker *checker, const struct rows_shape *shape)
{
    const struct op *op = checker->op;
    const uint32_t slot = softmax_reach_input(op->kind);
    uint64_t period;
    uint64_t count;

    if (op->input_count <= slot || checker->status != STATUS_OK) {
        return;
    }
    period = (uint64_t)op->attributes[SOFTMAX_CAUSAL];
    count = check_any_input(checker, slot, DTYPES_U32, 1);
    if (period == 0) {
        check_fail(checker, "a reach needs causal rows");
    } else if (count == 0 || shape->rows % count != 0 || count % period != 0) {
        check_fail(checker, "'%s' has %llu elements for %llu rows in sequences of %llu",
                   checker->tensors[op->inputs[slot]].name, (unsigned long long)count,
                   (unsigned long long)shape->rows, (unsigned long long)period);
    }
}

static struct rows_shape check_softmax_shape(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    /* Row r sees the columns 0 .. r % T, so T is at most the number of columns. */
    (void)check_attribute(checker, SOFTMAX_CAUSAL, 0, shape.columns);
    check_float(checker, SOFTMAX_SCALE_BITS);
    check_reach(checker, &shape);
    return shape;
}

/* max_part, max, exps, sum_part, sum: shared by softmax and cross-entropy. */
static void check_exponentials(struct op_checker *checker, const struct rows_shape *shape)
{
    check_input(checker, 0, DTYPES_F32, shape->all);
    check_output(checker, 0, DTYPES_F32, shape->chunks);
    check_output(checker, 1, DTYPES_F32, shape->rows);
    check_output(checker, 2, DTYPES_F32, shape->all);
    check_output(checker, 3, DTYPES_F32, shape->chunks);
    check_output(checker, 4, DTYPES_F32, shape->rows);
}

void op_check_softmax(struct op_checker *checker)
{
    struct rows_shape shape = check_softmax_shape(checker);

    check_exponentials(checker, &shape);
    check_output(checker, 5, DTYPES_F32, shape.all);
}

void op_check_softmax_grad(struct op_checker *checker)
{
    struct rows_shape shape = check_softmax_shape(checker);

    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_F32, shape.all);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_F32, shape.rows);
    check_output(checker, 2, DTYPES_F32, shape.all);
}

void op_check_cross_entropy(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_exponentials(checker, &shape);
    check_input(checker, 1, DTYPES_U32, shape.rows);
    check_output(checker, 5, DTYPES_F32, shape.rows);
}

void op_check_cross_entropy_grad(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_U32, shape.rows);
    check_input(checker, 2, DTYPES_F32, shape.rows);
    check_input(checker, 3, DTYPES_F32, shape.rows);
    check_input(checker, 4, DTYPES_F32, shape.rows);
    check_output(checker, 0, DTYPES_F32, shape.all);
}

/* ---- exact contraction -------------------------------------------------- */

/* Checks bits and block of a contraction over k elements, and that its sum fits 64 bits. */
static void check_precision(struct op_checker *checker, uint32_t bits_at, uint64_t k)
{
    uint64_t bits = check_attribute(checker, bits_at, 14, 22);
    uint64_t block = check_attribute(checker, bits_at + 1, 0, CONTRACTION_BLOCK_MAX);

    if (!contraction_bits_known((int64_t)bits)) {
        check_fail(checker, "bits is %llu, must be 14, 15, 16 or 22", (unsigned long long)bits);
    }
    if (!contraction_block_known((int64_t)block)) {
        check_fail(checker, "block is %llu, must be 0 or a power of two from %d",
                   (unsigned long long)block, CONTRACTION_BLOCK_MIN);
    }
    if (k > 0 && contraction_window((int64_t)bits, (int64_t)k) < 0) {
        check_fail(checker, "%llu elements of %llu bits do not sum in 64 bits",
                   (unsigned long long)k, (unsigned long long)bits);
    }
}

static uint32_t integer_dtypes(struct op_checker *checker, uint32_t bits_at)
{
    return checker->op->attributes[bits_at] == 22 ? DTYPES(DTYPE_I32) : DTYPES_I16;
}

void op_check_quantize(struct op_checker *checker)
{
    uint64_t count = check_view(checker, 6, QUANTIZE_DIMS, QUANTIZE_STRIDES, false);
    const int64_t *dims = &checker->op->attributes[QUANTIZE_DIMS];
    uint64_t k;
    uint64_t rows;

    if (checker->status != STATUS_OK) {
        return;
    }
    k = (uint64_t)dims[4] * (uint64_t)dims[5];
    rows = count / k;
    check_precision(checker, QUANTIZE_BITS, k);
    if (checker->status != STATUS_OK) {
        return;
    }
    struct contraction_shape cut = contraction_shape_of(checker->op);
    check_input(checker, 0, DTYPES_F32, count);
    check_output(checker, 0, DTYPES_I16, rows * (uint64_t)cut.pieces);
    check_output(checker, 1, DTYPES_I16, rows * (uint64_t)cut.blocks);
    check_output(checker, 2, integer_dtypes(checker, QUANTIZE_BITS), count);
}

void op_check_contract(struct op_checker *checker)
{
    uint64_t count = check_view(checker, 6, CONTRACT_DIMS, CONTRACT_STRIDES, false);
    const int64_t *dims = &checker->op->attributes[CONTRACT_DIMS];
    uint64_t k = check_attribute(checker, CONTRACT_K, 1, TENSOR_COUNT_MAX);
    uint64_t blocks;
    uint64_t rows[2]; /* of A, of B */

    check_precision(checker, CONTRACT_BITS, k);
    (void)check_attribute(checker, CONTRACT_CAUSAL, 0, TENSOR_COUNT_MAX);
    if (checker->status != STATUS_OK) {
        return;
    }
    blocks = (uint64_t)contraction_shape_of(checker->op).blocks;
    rows[0] = count / ((uint64_t)dims[4] * (uint64_t)dims[5]);
    rows[1] = count / ((uint64_t)dims[2] * (uint64_t)dims[3]);
    for (uint32_t side = 0; side < 2; side++) {
        check_input(checker, 2 * side, integer_dtypes(checker, CONTRACT_BITS),
                    check_product(checker, rows[side], k));
        check_input(checker, 2 * side + 1, DTYPES_I16, check_product(checker, rows[side], blocks));
    }
    check_output(checker, 0, DTYPES_F32, count);
}

/* q and e of `rows` rows of k elements, at input slots slot and slot+1. */
static void check_quantized(struct op_checker *checker, uint32_t slot, uint64_t rows, uint64_t k,
                            uint32_t bits_at)
{
    check_precision(checker, bits_at, k);
    if (checker->status != STATUS_OK) {
        return;
    }
    uint64_t blocks = (uint64_t)contraction_shape_of(checker->op).blocks;
    check_input(checker, slot, integer_dtypes(checker, bits_at), check_product(checker, rows, k));
    check_input(checker, slot + 1, DTYPES_I16, check_product(checker, rows, blocks));
}

void op_check_contract_ones(struct op_checker *checker)
{
    uint64_t rows = check_attribute(checker, ONES_ROWS, 1, TENSOR_COUNT_MAX);
    uint64_t k = check_attribute(checker, ONES_K, 1, TENSOR_COUNT_MAX);

    check_quantized(checker, 0, rows, k, ONES_BITS);
    check_output(checker, 0, DTYPES_F32, rows);
}

void op_check_contract_onehot(struct op_checker *checker)
{
    uint64_t vocabulary = check_attribute(checker, ONEHOT_VOCABULARY, 1, UINT32_MAX);
    uint64_t width = check_attribute(checker, ONEHOT_WIDTH, 1, UINT32_MAX);
    uint64_t k = check_attribute(checker, ONEHOT_K, 1, TENSOR_COUNT_MAX);

    check_input(checker, 0, DTYPES_U32, k);
    check_quantized(checker, 1, width, k, ONEHOT_BITS);
    check_output(checker, 0, DTYPES_F32, check_product(checker, vocabulary, width));
}

/* ---- pictures ----------------------------------------------------------- */

struct image_shape {
    uint64_t in;      /* elements of the picture */
    uint64_t out;     /* elements of the pooled picture */
    uint64_t columns; /* elements of the patches */
};

static struct image_shape check_image(struct op_checker *checker, bool padded)
{
    uint64_t batch = check_attribute(checker, IMAGE_BATCH, 1, UINT32_MAX);
    uint64_t height = check_attribute(checker, IMAGE_HEIGHT, 1, 65535);
    uint64_t width = check_attribute(checker, IMAGE_WIDTH, 1, 65535);
    uint64_t channels = check_attribute(checker, IMAGE_CHANNELS, 1, 65535);
    uint64_t padding = check_attribute(checker, IMAGE_PADDING, 0, padded ? 63 : 0);
    uint64_t kernel_h = check_attribute(checker, IMAGE_KERNEL_HEIGHT, 1, 64);
    uint64_t kernel_w = check_attribute(checker, IMAGE_KERNEL_WIDTH, 1, 64);
    uint64_t stride = check_attribute(checker, IMAGE_STRIDE, 1, 64);
    struct image_shape shape = {0};

    if (kernel_h > height + 2 * padding || kernel_w > width + 2 * padding) {
        check_fail(checker, "a window of %llu by %llu is larger than the picture",
                   (unsigned long long)kernel_h, (unsigned long long)kernel_w);
        return shape;
    }
    if (kernel_h * kernel_w > IMAGE_WINDOW_MAX) {
        check_fail(checker, "a window of %llu by %llu is larger than %d elements",
                   (unsigned long long)kernel_h, (unsigned long long)kernel_w, IMAGE_WINDOW_MAX);
        return shape;
    }
    uint64_t out_h = (height + 2 * padding - kernel_h) / stride + 1;
    uint64_t out_w = (width + 2 * padding - kernel_w) / stride + 1;
    uint64_t places = check_product(checker, batch, out_h * out_w);

    shape.in = check_product(checker, check_product(checker, batch, height * width), channels);
    shape.out = check_product(checker, places, channels);
    shape.columns = check_product(checker, places, kernel_h * kernel_w * channels);
    return shape;
}

void op_check_im2col(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker, true);

    check_input(checker, 0, DTYPES_F32, shape.in);
    check_output(checker, 0, DTYPES_F32, shape.columns);
}

void op_check_col2im(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker, true);

    check_input(checker, 0, DTYPES_F32, shape.columns);
    check_output(checker, 0, DTYPES_F32, shape.in);
}

void op_check_max_pool(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker, false);

    check_input(checker, 0, DTYPES_F32, shape.in);
    check_output(checker, 0, DTYPES_F32, shape.out);
    check_output(checker, 1, DTYPES_U32, shape.out);
}

void op_check_max_pool_grad(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker, false);
    const int64_t *attributes = checker->op->attributes;

    if (checker->status == STATUS_OK) { /* the attributes are sound */
        int64_t stride = attributes[IMAGE_STRIDE];
        int64_t down = (attributes[IMAGE_KERNEL_HEIGHT] + stride - 1) / stride;
        int64_t across = (attributes[IMAGE_KERNEL_WIDTH] + stride - 1) / stride;

        int64_t windows = down * across;

        if (2 * windows > IMAGE_WINDOW_MAX) {
            check_fail(checker, "an element lies in %lld windows, and %d are allowed",
                       (long long)windows, IMAGE_WINDOW_MAX / 2);
        }
    }
    check_input(checker, 0, DTYPES_U32, shape.out);
    check_input(checker, 1, DTYPES_F32, shape.out);
    check_output(checker, 0, DTYPES_F32, shape.in);
}

void op_check_mean_pool(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker, false);

    check_input(checker, 0, DTYPES_F32, shape.in);
    check_output(checker, 0, DTYPES_F32, shape.out);
}

void op_check_mean_pool_grad(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker, false);

    check_input(checker, 0, DTYPES_F32, shape.out);
    check_output(checker, 0, DTYPES_F32, shape.in);
}
