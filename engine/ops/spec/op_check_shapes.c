/*
 * op_check_shapes.c - the checks of the kinds whose attributes describe shapes: rows, contractions
 * and pictures. See op_checker.h.
 */
#include "engine/ops/contraction.h"
#include "engine/ops/image.h"
#include "engine/ops/spec/op_checker.h"

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

void op_check_reduce(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    (void)check_attribute(checker, REDUCE_FUNCTION, 0, REDUCE_FUNCTION_COUNT - 1);
    check_input(checker, 0, DTYPES_F32, shape.all);
    check_output(checker, 0, DTYPES_F32, shape.chunks);
    check_output(checker, 1, DTYPES_U32, shape.chunks);
    check_output(checker, 2, DTYPES_F32, shape.rows);
    check_output(checker, 3, DTYPES_U32, shape.rows);
}

void op_check_gather_elements(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_input(checker, 0, DTYPES_F32, shape.all);
    check_input(checker, 1, DTYPES_U32, shape.rows);
    check_output(checker, 0, DTYPES_F32, shape.rows);
}

void op_check_gather_elements_grad(struct op_checker *checker)
{
    struct rows_shape shape = check_rows(checker);

    check_input(checker, 0, DTYPES_U32, shape.rows);
    check_input(checker, 1, DTYPES_F32, shape.rows);
    check_output(checker, 0, DTYPES_F32, shape.all);
}

/* ---- several elements of each row ---------------------------------------- */

/* TAKE and SCATTER: an index and numbers (R,W), whole rows (R,N). What is added is no integer. */
void op_check_sent(struct op_checker *checker)
{
    const bool takes = checker->op->kind == OP_TAKE;
    const struct rows_shape shape = check_rows(checker);
    const uint64_t most = takes ? UINT32_MAX : SCATTER_WIDTH_MAX;
    const uint64_t width = check_attribute(checker, TAKE_WIDTH, 1, most);
    const uint64_t sent = check_product(checker, shape.rows, width);
    const bool moves = takes || check_attribute(checker, SCATTER_FUNCTION, 0, SCATTER_LAST) != 0;
    const bool words = checker->tensors[checker->op->outputs[0]].dtype == DTYPE_U32;
    const uint32_t dtypes = moves && words ? DTYPES_U32 : DTYPES_F32;

    check_input(checker, takes, DTYPES_U32, sent);
    check_input(checker, !takes, dtypes, takes ? shape.all : sent);
    if (!takes) {
        check_input(checker, 2, dtypes, shape.all);
    }
    check_output(checker, 0, dtypes, takes ? sent : shape.all);
}

void op_check_sort(struct op_checker *checker)
{
    const struct rows_shape shape = check_rows(checker);

    (void)check_attribute(checker, COLUMNS, 1, SORT_COLUMNS_MAX);
    (void)check_attribute(checker, SORT_DESCENDING, 0, 1);
    check_input(checker, 0, DTYPES_F32, shape.all);
    check_output(checker, 0, DTYPES_U32, shape.all);
    check_output(checker, 1, DTYPES_U32, shape.all);
    check_output(checker, 2, DTYPES_F32, shape.all);
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

void op_check_equilibrate(struct op_checker *checker)
{
    const bool pair = checker->op->input_count == 2;
    uint64_t rows = check_attribute(checker, EQUILIBRATE_ROWS, 1, TENSOR_COUNT_MAX);
    uint64_t e = check_attribute(checker, EQUILIBRATE_E, 1, TENSOR_COUNT_MAX);
    uint64_t f = check_attribute(checker, EQUILIBRATE_F, pair ? 1 : 0, pair ? TENSOR_COUNT_MAX : 0);

    check_input(checker, 0, DTYPES_I16, check_product(checker, rows, e));
    if (pair) {
        check_input(checker, 1, DTYPES_I16, check_product(checker, rows, f));
    }
    check_output(checker, 0, DTYPES_I16, rows);
    check_output(checker, 1, DTYPES_I16, rows);
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
    if (quantize_is_shifted(checker->op)) {
        check_input(checker, 1, DTYPES_I16, (uint64_t)dims[0] * (uint64_t)dims[1] * k);
    }
    check_input(checker, 0, DTYPES_NUMBER, count);
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

void op_check_contract_chosen(struct op_checker *checker)
{
    uint64_t rows = check_attribute(checker, CHOSEN_ROWS, 1, TENSOR_COUNT_MAX);
    uint64_t experts = check_attribute(checker, CHOSEN_EXPERTS, 1, UINT32_MAX);
    uint64_t width = check_attribute(checker, CHOSEN_WIDTH, 1, UINT32_MAX);
    uint64_t k = check_attribute(checker, CHOSEN_K, 1, TENSOR_COUNT_MAX);

    check_quantized(checker, 0, rows, k, CHOSEN_BITS);
    check_input(checker, 2, DTYPES_U32, rows);
    check_quantized(checker, 3, check_product(checker, experts, width), k, CHOSEN_BITS);
    check_output(checker, 0, DTYPES_F32, check_product(checker, rows, width));
}

void op_check_contract_chosen_rows(struct op_checker *checker)
{
    uint64_t experts = check_attribute(checker, CHOSEN_SUM_EXPERTS, 1, UINT32_MAX);
    uint64_t m = check_attribute(checker, CHOSEN_SUM_M, 1, UINT32_MAX);
    uint64_t n = check_attribute(checker, CHOSEN_SUM_N, 1, UINT32_MAX);
    uint64_t k = check_attribute(checker, CHOSEN_SUM_K, 1, TENSOR_COUNT_MAX);

    check_input(checker, 0, DTYPES_U32, k);
    check_quantized(checker, 1, m, k, CHOSEN_SUM_BITS);
    check_quantized(checker, 3, n, k, CHOSEN_SUM_BITS);
    check_output(checker, 0, DTYPES_F32,
                 check_product(checker, check_product(checker, experts, m), n));
}

/* ---- pictures ----------------------------------------------------------- */

struct image_shape {
    uint64_t in;      /* elements of the picture */
    uint64_t out;     /* elements of the pooled picture */
    uint64_t columns; /* elements of the patches */
    uint64_t places;  /* of a window */
    uint64_t covers;  /* windows in which an element may lie */
};

/* Checks the attributes of one direction; false: no window fits, or another check has failed. */
static bool check_axis(struct op_checker *checker, struct image_axis *axis, uint32_t horizontal)
{
    axis->size = (int64_t)check_attribute(checker, IMAGE_HEIGHT + horizontal, 1, 65535);
    axis->kernel =
        (int64_t)check_attribute(checker, IMAGE_KERNEL_HEIGHT + horizontal, 1, IMAGE_KERNEL_MAX);
    axis->stride = (int64_t)check_attribute(checker, IMAGE_STRIDE_Y + horizontal, 1, 64);
    axis->before = (int64_t)check_attribute(checker, IMAGE_TOP + horizontal, 0, 4095);
    (void)check_attribute(checker, IMAGE_BOTTOM + horizontal, 0, 4095);
    axis->dilation = (int64_t)check_attribute(checker, IMAGE_DILATION_Y + horizontal, 1, 64);
    if (checker->status != STATUS_OK) {
        return false;
    }
    const int64_t *a = checker->op->attributes;

    if (image_extent(axis) > axis->size + axis->before + a[IMAGE_BOTTOM + horizontal]) {
        check_fail(checker, "a window of %lld %s is larger than the picture",
                   (long long)image_extent(axis), horizontal != 0 ? "columns" : "rows");
        return false;
    }
    *axis = image_axis_of(a, horizontal);
    return true;
}

static struct image_shape check_image(struct op_checker *checker)
{
    uint64_t batch = check_attribute(checker, IMAGE_BATCH, 1, UINT32_MAX);
    uint64_t channels = check_attribute(checker, IMAGE_CHANNELS, 1, 65535);
    struct image_axis y;
    struct image_axis x;
    struct image_shape shape = {0};

    if (!check_axis(checker, &y, 0) || !check_axis(checker, &x, 1)) {
        return shape;
    }
    uint64_t windows = check_product(checker, batch, (uint64_t)(y.out * x.out));

    shape.places = (uint64_t)(y.kernel * x.kernel);
    shape.covers = (uint64_t)(image_covers(&y) * image_covers(&x));
    shape.in = check_product(checker, check_product(checker, batch, (uint64_t)(y.size * x.size)),
                             channels);
    shape.out = check_product(checker, windows, channels);
    shape.columns = check_product(checker, windows, shape.places * channels);
    return shape;
}

/* What one rule reads of each of `operands` operands. */
static void check_reads(struct op_checker *checker, uint64_t elements, uint64_t operands)
{
    if (elements * operands > IMAGE_WINDOW_MAX) {
        check_fail(checker, "an element reads %llu others through windows, and %d are allowed",
                   (unsigned long long)elements, IMAGE_WINDOW_MAX / (int)operands);
    }
}

/* A window of nothing but padding has no maximum and no mean. */
static void check_no_empty_window(struct op_checker *checker)
{
    if (checker->status != STATUS_OK) {
        return;
    }
    for (uint32_t horizontal = 0; horizontal < 2; horizontal++) {
        struct image_axis axis = image_axis_of(checker->op->attributes, horizontal);
        int64_t o = 0;

        /* Where a window begins in the picture, all are sound up to the one that begins behind. */
        do {
            struct image_span places = image_places(&axis, o);

            if (places.end <= places.first) {
                check_fail(checker, "window %lld of the %s has nothing but padding", (long long)o,
                           horizontal != 0 ? "columns" : "rows");
                return;
            }
            o = image_position(&axis, o, 0) < 0 ? o + 1 : o < axis.out - 1 ? axis.out - 1 : o + 1;
        } while (o < axis.out);
    }
}

void op_check_im2col(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker);

    check_input(checker, 0, DTYPES_F32, shape.in);
    check_output(checker, 0, DTYPES_F32, shape.columns);
}

void op_check_col2im(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker);

    check_reads(checker, shape.covers, 1);
    check_input(checker, 0, DTYPES_F32, shape.columns);
    check_output(checker, 0, DTYPES_F32, shape.in);
}

void op_check_max_pool(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker);

    check_reads(checker, shape.places, 1);
    check_no_empty_window(checker);
    check_input(checker, 0, DTYPES_F32, shape.in);
    check_output(checker, 0, DTYPES_F32, shape.out);
    check_output(checker, 1, DTYPES_U32, shape.out);
}

void op_check_max_pool_grad(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker);

    check_reads(checker, shape.covers, 2);
    check_no_empty_window(checker);
    check_input(checker, 0, DTYPES_U32, shape.out);
    check_input(checker, 1, DTYPES_F32, shape.out);
    check_output(checker, 0, DTYPES_F32, shape.in);
}

void op_check_mean_pool(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker);

    (void)check_attribute(checker, MEAN_POOL_COUNTS_PADDING, 0, 1);
    check_reads(checker, shape.places, 1);
    check_no_empty_window(checker);
    check_input(checker, 0, DTYPES_F32, shape.in);
    check_output(checker, 0, DTYPES_F32, shape.out);
}

void op_check_mean_pool_grad(struct op_checker *checker)
{
    struct image_shape shape = check_image(checker);

    (void)check_attribute(checker, MEAN_POOL_COUNTS_PADDING, 0, 1);
    check_reads(checker, shape.covers, 1);
    check_no_empty_window(checker);
    check_input(checker, 0, DTYPES_F32, shape.out);
    check_output(checker, 0, DTYPES_F32, shape.in);
}
