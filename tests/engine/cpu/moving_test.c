/*
 * moving_test.c - the kernels that move data give the rules' bits, for any number of threads and
 * any choice of outputs, and write nothing else.
 *
 * Method: each operation in ragged and in large shapes, on special numbers, with 1, 2 and 3
 * threads; every element of every output against its rule; then without each output in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/image.h"
#include "tests/support/numeric/op_case.h"

#define GUARD 0xa5

static uint32_t rule_of(const struct rule_call *call, uint32_t output, uint64_t index)
{
    static rule_function *const rules[OP_KIND_COUNT][4] = {
        [OP_STEP_NEXT] = {rule_step_next},
        [OP_SCHEDULE] = {rule_schedule},
        [OP_BATCH_TOKENS] = {rule_batch_tokens, rule_batch_targets},
        [OP_BATCH_SAMPLES] = {rule_batch_samples, rule_batch_labels},
        [OP_DROPOUT] = {rule_dropout},
        [OP_BATCH_ROWS] = {rule_batch_rows},
        [OP_UNIFORM] = {rule_uniform},
        [OP_GATHER] = {rule_gather},
        [OP_CONCAT] = {rule_concat},
        [OP_IM2COL] = {rule_im2col},
        [OP_COL2IM] = {rule_col2im},
        [OP_MAX_POOL] = {rule_max_pool, rule_max_pool_index},
        [OP_MAX_POOL_GRAD] = {rule_max_pool_grad},
        [OP_MEAN_POOL] = {rule_mean_pool},
        [OP_MEAN_POOL_GRAD] = {rule_mean_pool_grad},
        [OP_MOVE] = {rule_move},
        [OP_PLACE] = {rule_place},
        [OP_REDUCE] = {rule_reduce_part, rule_reduce_part_index, rule_reduce, rule_reduce_index},
        [OP_GATHER_ELEMENTS] = {rule_gather_elements},
        [OP_GATHER_ELEMENTS_GRAD] = {rule_gather_elements_grad},
        [OP_CAST] = {rule_cast},
    };

    if (call->op->kind == OP_SPLIT) {
        return rule_split(call, output, index);
    }
    return rules[call->op->kind][output](call, index);
}

/* Every element by its rule, as raw bits; the caller frees. */
static uint32_t *expected_output(const struct op_case *c, uint32_t output)
{
    struct rule_call call = op_case_rule_call(c);
    uint64_t count = c->tensors[c->op.outputs[output]].count;
    uint32_t *bits = calloc(count, sizeof(*bits));

    assert(bits != NULL);
    for (uint64_t i = 0; i < count; i++) {
        bits[i] = rule_of(&call, output, i);
    }
    return bits;
}

static void check_output(const struct op_case *c, uint32_t output, const uint32_t *expected)
{
    struct operand got = op_case_operand(c, c->op.outputs[output]);

    assert(expected != NULL);
    for (uint64_t i = 0; i < got.count; i++) {
        if (operand_get(&got, i) != expected[i]) {
            fail_msg("kind %d output %u element %llu: got %08x, rule %08x", (int)c->op.kind, output,
                     (unsigned long long)i, operand_get(&got, i), expected[i]);
        }
    }
}

static void spoil_outputs(const struct op_case *c)
{
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        const struct tensor *tensor = &c->tensors[c->op.outputs[i]];

        memset(c->memory[c->op.outputs[i]], GUARD, tensor->count * dtype_size(tensor->dtype));
    }
}

/* Runs with every output but one; OP_OUTPUTS_MAX leaves none out. */
static void check_run(const struct op_case *c, const struct kernel *kernel,
                      uint32_t *const *expected, int thread_count, uint32_t left_out)
{
    struct kernel_call call = op_case_kernel_call(c, thread_count);

    if (left_out < c->op.output_count) {
        call.outputs[left_out] = NULL;
    }
    spoil_outputs(c);
    kernel->run(&call);
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        if (i != left_out) {
            check_output(c, i, expected[i]);
        }
    }
}

/* Checks outputs that lie over an input, where op_in_place() allows it. Overwrites the input. */
static void check_in_place(const struct op_case *c, const struct kernel *kernel,
                           uint32_t *const *expected)
{
    for (uint32_t output = 0; output < c->op.output_count; output++) {
        for (uint32_t input = 0; input < c->op.input_count; input++) {
            struct kernel_call call = op_case_kernel_call(c, 2);
            uint32_t id = c->op.inputs[input];

            if (op_in_place(&c->op, output, input) &&
                c->tensors[id].count == c->tensors[c->op.outputs[output]].count) {
                call.outputs[output] = c->memory[id];
                kernel->run(&call);
                assert_int_equal(c->tensors[id].dtype, DTYPE_F32);
                assert_memory_equal(c->memory[id], expected[output], c->tensors[id].count * 4);
                return;
            }
        }
    }
}

/* Takes the case. */
static void check_kernel(struct op_case *c)
{
    struct kernel_table table = {0};
    uint32_t *expected[OP_OUTPUTS_MAX] = {0};
    const struct kernel *kernel = &table.kernels[c->op.kind];

    moving_kernels(&table);
    assert_non_null(kernel->run);
    assert_null(kernel->scratch_size);
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        const struct tensor *tensor = &c->tensors[c->op.outputs[i]];

        expected[i] = expected_output(c, i);
        if (i + 1 < c->op.output_count && dtype_size(tensor->dtype) == 4) {
            /* A rule may read the outputs before its own. */
            memcpy(c->memory[c->op.outputs[i]], expected[i], tensor->count * 4);
        }
    }
    for (int thread_count = 1; thread_count <= 3; thread_count++) {
        check_run(c, kernel, expected, thread_count, OP_OUTPUTS_MAX);
    }
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        check_run(c, kernel, expected, 2, i);
    }
    check_in_place(c, kernel, expected);
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        free(expected[i]);
    }
    op_case_release(c);
}

static void test_step_next_and_schedule_equal_their_rules(void **state)
{
    const uint32_t steps[] = {0, 1, 2, 3, 1000, UINT32_MAX};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct op_case c;

        op_case_init(&c, OP_STEP_NEXT);
        op_case_input(&c, DTYPE_U32, 1, &steps[i]);
        op_case_output(&c, DTYPE_U32, 1);
        check_kernel(&c);

        op_case_init(&c, OP_SCHEDULE);
        op_case_nasty_input(&c, 3 * 4, 1);
        op_case_input(&c, DTYPE_U32, 1, &steps[i]);
        op_case_output(&c, DTYPE_F32, 1);
        op_case_attributes(&c, (int64_t[]){4, i % 4}, SCHEDULE_ATTRIBUTES);
        check_kernel(&c);
    }
}

static void fill_bytes(void *memory, size_t size, uint32_t stream)
{
    uint8_t *bytes = memory;

    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)philox_draw(i, stream, 0, 1).words[0];
    }
}

static void check_batch_tokens(enum dtype dtype, uint64_t count, int64_t batch, int64_t length)
{
    struct op_case c;
    uint32_t step = 12345;

    op_case_init(&c, OP_BATCH_TOKENS);
    fill_bytes(op_case_input(&c, dtype, count, NULL), count * dtype_size(dtype), 1);
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_U32, (uint64_t)(batch * length));
    op_case_output(&c, DTYPE_U32, (uint64_t)(batch * length));
    op_case_attributes(&c, (int64_t[]){batch, length, 3, 0xdeadbeef, 0xfeedface},
                       BATCH_TOKENS_ATTRIBUTES);
    check_kernel(&c);
}

static void test_batch_tokens_equal_their_rules(void **state)
{
    (void)state;
    for (enum dtype dtype = DTYPE_U8; dtype <= DTYPE_U32; dtype++) {
        check_batch_tokens(dtype, 2, 1, 1);
        check_batch_tokens(dtype, 100, 7, 13);
        check_batch_tokens(dtype, 65, 3, 64);
        check_batch_tokens(dtype, 10000, 40, 513);
    }
}

static void check_batch_samples(enum dtype dtype, enum dtype label_dtype, uint64_t samples,
                                int64_t batch, int64_t width, uint32_t scale_bits)
{
    struct op_case c;
    uint32_t step = 9;

    op_case_init(&c, OP_BATCH_SAMPLES);
    if (dtype == DTYPE_F32) {
        op_case_nasty_input(&c, samples * (uint64_t)width, 2);
    } else {
        fill_bytes(op_case_input(&c, dtype, samples * (uint64_t)width, NULL),
                   samples * (uint64_t)width, 2);
    }
    fill_bytes(op_case_input(&c, label_dtype, samples, NULL), samples * dtype_size(label_dtype), 3);
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_F32, (uint64_t)(batch * width));
    op_case_output(&c, DTYPE_U32, (uint64_t)batch);
    op_case_attributes(&c, (int64_t[]){batch, width, 3, 0xdeadbeef, 0xfeedface, scale_bits},
                       BATCH_SAMPLES_ATTRIBUTES);
    check_kernel(&c);
}

static void test_batch_samples_equal_their_rules(void **state)
{
    /* 1/255, a subnormal, infinity (0 * inf is a NaN), -0 */
    const uint32_t scales[] = {0x3b808081, 0x00000123, 0x7f800000, 0x80000000};

    (void)state;
    for (int i = 0; i < 4; i++) {
        check_batch_samples(DTYPE_U8, DTYPE_U8, 10, 7, 5, scales[i]);
        check_batch_samples(DTYPE_F32, DTYPE_U16, 10, 7, 5, scales[i]);
        check_batch_samples(DTYPE_U8, DTYPE_U32, 50, 30, 785, scales[i]);
        check_batch_samples(DTYPE_F32, DTYPE_U32, 50, 30, 785, scales[i]);
    }
}

static void check_batch_rows(enum dtype dtype, uint64_t units, int64_t batch, int64_t length,
                             int64_t together)
{
    const bool real = dtype == DTYPE_F32 || dtype_is_half(dtype);

    for (int64_t choice = 0; choice < 4; choice++) {
        const uint64_t count = units * (uint64_t)(together * length);
        struct op_case c;
        uint32_t counter = 2;

        op_case_init(&c, OP_BATCH_ROWS);
        fill_bytes(op_case_input(&c, dtype, count, NULL), count * dtype_size(dtype), 1);
        op_case_input(&c, DTYPE_U32, 1, &counter);
        op_case_output(&c, real ? DTYPE_F32 : DTYPE_U32, (uint64_t)(batch * length));
        op_case_attributes(&c,
                           (int64_t[]){batch, length, 3, 0xdeadbeef, 0xfeedface, together,
                                       choice % 2, 0x7fc00000, choice / 2},
                           BATCH_ROWS_ATTRIBUTES);
        check_kernel(&c);
    }
}

static void test_batch_rows_equal_their_rules(void **state)
{
    static const enum dtype dtypes[] = {DTYPE_U8,  DTYPE_U16,  DTYPE_U32,
                                        DTYPE_F16, DTYPE_BF16, DTYPE_F32};

    (void)state;
    for (int i = 0; i < 6; i++) {
        check_batch_rows(dtypes[i], 1, 1, 1, 1);
        check_batch_rows(dtypes[i], 7, 3, 13, 1); /* the data ends within the batch */
        check_batch_rows(dtypes[i], 11, 6, 33, 2);
        check_batch_rows(dtypes[i], 300, 40, 513, 1);
    }
}

static void test_random_words_equal_their_rules(void **state)
{
    static const uint64_t counts[] = {1, 3, 63, 64, 65, 40001};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct op_case c;
        uint32_t step = 5;

        op_case_init(&c, OP_UNIFORM);
        op_case_input(&c, DTYPE_U32, 1, &step);
        op_case_output(&c, DTYPE_U32, counts[i]);
        op_case_attributes(&c, (int64_t[]){11, 0xffffffff, 0x80000001}, UNIFORM_ATTRIBUTES);
        check_kernel(&c);
    }
}

static void check_dropout(uint64_t count, int64_t threshold, uint32_t scale_bits)
{
    struct op_case c;
    uint32_t step = 77;

    op_case_init(&c, OP_DROPOUT);
    op_case_nasty_input(&c, count, 4);
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_F32, count);
    op_case_attributes(&c, (int64_t[]){threshold, scale_bits, 11, 0xffffffff, 0x80000001},
                       DROPOUT_ATTRIBUTES);
    check_kernel(&c);
}

static void test_dropout_equals_its_rule(void **state)
{
    (void)state;
    for (uint64_t count = 1; count <= 140; count++) {
        check_dropout(count, 0x80000000, 0x40000000);
    }
    check_dropout(50001, 0x1999999a, 0x3f8e38e4);
    check_dropout(1000, 0, 0x3f800000);
    check_dropout(1000, INT64_C(0x100000000), 0x7f800000);
    /* The word of the element itself: the first threshold that drops it is one more. */
    for (uint64_t i = 0; i < 8; i++) {
        uint32_t word = philox_draw(i / 4, 11, 77, UINT64_C(0x80000001ffffffff)).words[i % 4];

        check_dropout(100, word, 0x3f800000);
        check_dropout(100, (int64_t)word + 1, 0x3f800000);
    }
}

static void check_gather(uint32_t vocabulary, int64_t width, uint64_t rows)
{
    struct op_case c;

    op_case_init(&c, OP_GATHER);
    op_case_nasty_input(&c, (uint64_t)vocabulary * (uint64_t)width, 5);
    uint32_t *index = op_case_input(&c, DTYPE_U32, rows, NULL);

    for (uint64_t i = 0; i < rows; i++) {
        index[i] = philox_draw(i, 6, 0, 0).words[0] % (vocabulary + 1);
        index[i] = i % 17 == 16 ? UINT32_MAX - (uint32_t)i : index[i];
    }
    op_case_output(&c, DTYPE_F32, rows * (uint64_t)width);
    op_case_attributes(&c, (int64_t[]){vocabulary, width}, GATHER_ATTRIBUTES);
    check_kernel(&c);
}

static void test_gather_equals_its_rule(void **state)
{
    (void)state;
    check_gather(1, 1, 1);
    check_gather(10, 7, 33);
    check_gather(300, 129, 400);
}

static void check_split_and_concat(enum dtype dtype, uint64_t rows, const int64_t *widths,
                                   uint32_t part_count)
{
    int64_t attributes[1 + OP_OUTPUTS_MAX] = {(int64_t)rows};
    uint64_t width = 0;
    struct op_case split;
    struct op_case concat;

    for (uint32_t i = 0; i < part_count; i++) {
        attributes[1 + i] = widths[i];
        width += (uint64_t)widths[i];
    }
    op_case_init(&split, OP_SPLIT);
    op_case_init(&concat, OP_CONCAT);
    fill_bytes(op_case_input(&split, dtype, rows * width, NULL), rows * width * dtype_size(dtype),
               7);
    for (uint32_t i = 0; i < part_count; i++) {
        uint64_t count = rows * (uint64_t)widths[i];

        op_case_output(&split, dtype, count);
        fill_bytes(op_case_input(&concat, dtype, count, NULL), count * dtype_size(dtype), 8 + i);
    }
    op_case_output(&concat, dtype, rows * width);
    op_case_attributes(&split, attributes, 1 + part_count);
    op_case_attributes(&concat, attributes, 1 + part_count);
    check_kernel(&split);
    check_kernel(&concat);
}

static void test_split_and_concat_equal_their_rules(void **state)
{
    (void)state;
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPE_COUNT; dtype++) {
        check_split_and_concat(dtype, 1, (int64_t[]){1}, 1);
        check_split_and_concat(dtype, 5, (int64_t[]){3, 1, 2}, 3);
        check_split_and_concat(dtype, 3, (int64_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
        check_split_and_concat(dtype, 300, (int64_t[]){64, 64, 65}, 3);
    }
}

/* B H W C KH KW, strides, padding (top left bottom right), dilations */
static const int64_t pools[][IMAGE_ATTRIBUTES] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1},    {2, 4, 4, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1},
    {2, 5, 7, 3, 2, 3, 2, 2, 0, 0, 0, 0, 1, 1},    {1, 6, 5, 2, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1},
    {1, 7, 7, 65, 2, 2, 3, 3, 0, 0, 0, 0, 1, 1},   {3, 3, 8, 2, 3, 1, 2, 2, 0, 0, 0, 0, 1, 1},
    {1, 4, 9, 130, 4, 4, 5, 5, 0, 0, 0, 0, 1, 1},  {2, 6, 6, 64, 3, 2, 2, 2, 0, 0, 0, 0, 1, 1},
    {2, 28, 28, 17, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1}, {1, 30, 31, 33, 3, 3, 2, 2, 0, 0, 0, 0, 1, 1},
    {1, 9, 9, 200, 5, 5, 1, 1, 0, 0, 0, 0, 1, 1},  {2, 6, 7, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1},
    {1, 9, 8, 5, 3, 3, 1, 2, 2, 1, 1, 2, 2, 1},    {1, 5, 9, 70, 2, 3, 3, 2, 0, 2, 1, 2, 1, 3},
    {2, 1, 12, 4, 1, 4, 1, 3, 0, 3, 0, 2, 5, 2},   {1, 11, 4, 2, 4, 2, 2, 2, 3, 1, 2, 0, 3, 2},
};
static const int64_t convolutions[][IMAGE_ATTRIBUTES] = {
    {1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},  {2, 4, 4, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 5, 7, 3, 2, 3, 2, 2, 2, 2, 2, 2, 1, 1},  {1, 6, 5, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
    {1, 2, 2, 3, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1},  {1, 3, 4, 2, 2, 2, 3, 3, 2, 2, 2, 2, 1, 1},
    {1, 2, 3, 1, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1},  {2, 14, 15, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 9, 8, 70, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1}, {1, 5, 2, 3, 3, 7, 1, 1, 3, 3, 3, 3, 1, 1},
    {1, 2, 1, 2, 2, 9, 1, 1, 6, 6, 6, 6, 1, 1},  {1, 2, 2, 3, 2, 2, 1, 2, 5, 0, 0, 7, 3, 2},
    {1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 2, 2},  {1, 32, 33, 3, 16, 16, 16, 16, 0, 0, 0, 0, 1, 1},
};

struct counts {
    uint64_t picture;
    uint64_t windows; /* (batch, oy, ox) */
    uint64_t kernel;  /* places in a window */
    uint64_t channels;
};

static struct counts counts_of(const int64_t *a)
{
    int64_t windows = a[IMAGE_BATCH] * image_axis_of(a, 0).out * image_axis_of(a, 1).out;

    return (struct counts){
        .picture =
            (uint64_t)(a[IMAGE_BATCH] * a[IMAGE_HEIGHT] * a[IMAGE_WIDTH] * a[IMAGE_CHANNELS]),
        .windows = (uint64_t)windows,
        .kernel = (uint64_t)(a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH]),
        .channels = (uint64_t)a[IMAGE_CHANNELS],
    };
}

static void check_image(enum op_kind kind, const int64_t *attributes, uint64_t in, uint64_t out)
{
    const bool mean = kind == OP_MEAN_POOL || kind == OP_MEAN_POOL_GRAD;
    int64_t all[MEAN_POOL_ATTRIBUTES];
    struct op_case c;

    memcpy(all, attributes, IMAGE_ATTRIBUTES * sizeof(*all));
    all[MEAN_POOL_COUNTS_PADDING] = attributes[IMAGE_HEIGHT] % 2;
    op_case_init(&c, kind);
    op_case_attributes(&c, all, mean ? MEAN_POOL_ATTRIBUTES : IMAGE_ATTRIBUTES);
    op_case_nasty_input(&c, in, 10);
    op_case_output(&c, DTYPE_F32, out);
    if (kind == OP_MAX_POOL) {
        op_case_output(&c, DTYPE_U32, out);
    }
    check_kernel(&c);
}

static void check_max_pool_grad(const int64_t *attributes, struct counts n)
{
    struct op_case c;
    uint64_t windows = n.windows * n.channels;

    op_case_init(&c, OP_MAX_POOL_GRAD);
    op_case_attributes(&c, attributes, IMAGE_ATTRIBUTES);
    uint32_t *index = op_case_input(&c, DTYPE_U32, windows, NULL);

    for (uint64_t i = 0; i < windows; i++) {
        index[i] = philox_draw(i, 12, 0, 0).words[0] % (uint32_t)(n.kernel + 1);
        index[i] = i % 29 == 28 ? UINT32_MAX : index[i];
    }
    op_case_nasty_input(&c, windows, 11);
    op_case_output(&c, DTYPE_F32, n.picture);
    check_kernel(&c);
}

static void test_windows_equal_their_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        struct counts n = counts_of(pools[i]);

        check_image(OP_IM2COL, pools[i], n.picture, n.windows * n.kernel * n.channels);
        check_image(OP_COL2IM, pools[i], n.windows * n.kernel * n.channels, n.picture);
        check_image(OP_MAX_POOL, pools[i], n.picture, n.windows * n.channels);
        check_image(OP_MEAN_POOL, pools[i], n.picture, n.windows * n.channels);
        check_image(OP_MEAN_POOL_GRAD, pools[i], n.windows * n.channels, n.picture);
        check_max_pool_grad(pools[i], n);
    }
}

static void test_windows_over_padding_equal_their_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(convolutions) / sizeof(convolutions[0]); i++) {
        struct counts n = counts_of(convolutions[i]);

        check_image(OP_IM2COL, convolutions[i], n.picture, n.windows * n.kernel * n.channels);
        check_image(OP_COL2IM, convolutions[i], n.windows * n.kernel * n.channels, n.picture);
    }
}

/* ---- moves and places ------------------------------------------------------ */

/* Every sign and some gaps, with an inner axis of one, a few and many elements. */
static const int64_t moves[][MOVE_ATTRIBUTES] = {
    {1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0},
    {2, 3, 1, 4, 5, 60, 20, 0, 5, 1, 0},
    {2, 3, 1, 4, 5, 1, 2, 7, 6, 24, 0},
    {2, 3, 1, 4, 5, -70, 22, 0, -5, 1, 87},
    {3, 1, 2, 7, 9, 200, 0, -90, 10, -1, 101},
    {1, 1, 1, 1, 40000, 0, 0, 0, 0, 1, 3},
    {1, 1, 2, 300, 70, 0, 0, 21000, 70, 1, 0},
    {1, 1, 300, 2, 70, 0, 0, 280, -140, 2, 150},
    {5, 40, 101, 1, 1, -8080, 202, 2, 0, 0, 40000},
};

static uint64_t dense_count(const int64_t *move)
{
    return (uint64_t)(move[0] * move[1] * move[2] * move[3] * move[4]);
}

static void check_move(const int64_t *move, uint64_t addressed)
{
    struct op_case c;

    op_case_init(&c, OP_MOVE);
    op_case_nasty_input(&c, addressed, 5);
    op_case_output(&c, DTYPE_F32, dense_count(move));
    op_case_attributes(&c, move, MOVE_ATTRIBUTES);
    check_kernel(&c);
}

static void check_place(const int64_t *move, uint64_t addressed, bool one)
{
    struct op_case c;

    op_case_init(&c, OP_PLACE);
    op_case_nasty_input(&c, dense_count(move), 6);
    op_case_nasty_input(&c, one ? 1 : addressed, 7);
    op_case_output(&c, DTYPE_F32, addressed);
    op_case_attributes(&c, move, MOVE_ATTRIBUTES);
    check_kernel(&c);
}

static void check_cast(enum dtype from, enum dtype to, uint64_t count)
{
    struct op_case c;
    uint8_t *bytes;

    op_case_init(&c, OP_CAST);
    if (from == DTYPE_F32) {
        op_case_nasty_input(&c, count, 11);
    } else {
        bytes = op_case_input(&c, from, count, NULL);
        for (uint64_t i = 0; i < count * dtype_size(from); i++) {
            bytes[i] = (uint8_t)(i * 167 + i / 251);
        }
    }
    op_case_output(&c, to, count);
    check_kernel(&c);
}

static void test_casts_round_as_the_rule_says(void **state)
{
    static const uint64_t counts[] = {1, 7, 64, 1000, 70001};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (int from = DTYPE_U8; from < DTYPE_COUNT; from++) {
            check_cast((enum dtype)from, DTYPE_F32, counts[i]);
        }
        check_cast(DTYPE_F32, DTYPE_F16, counts[i]);
        check_cast(DTYPE_F32, DTYPE_BF16, counts[i]);
        check_cast(DTYPE_F32, DTYPE_U32, counts[i]);
        check_cast(DTYPE_F32, DTYPE_I32, counts[i]);
    }
}

static void test_moves_and_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        int64_t repeated[MOVE_ATTRIBUTES];
        int64_t most = moves[i][MOVE_OFFSET];

        for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
            int64_t length = (moves[i][axis] - 1) * moves[i][MOVE_STRIDES + axis];

            most += length > 0 ? length : 0;
        }
        for (uint64_t spare = 1; spare < 4; spare++) {
            check_move(moves[i], (uint64_t)most + spare);
            check_place(moves[i], (uint64_t)most + spare, spare == 2);
        }
        memcpy(repeated, moves[i], sizeof(repeated));
        for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
            if (repeated[MOVE_STRIDES + axis] > 0) {
                repeated[MOVE_STRIDES + axis] = 0;
                check_move(repeated, (uint64_t)most + 1);
            }
        }
    }
}

/* ---- rows -------------------------------------------------------------------- */

static void check_reduce(uint64_t rows, uint64_t columns, int64_t function)
{
    uint64_t parts = rows * fold_chunks(columns);
    struct op_case c;

    op_case_init(&c, OP_REDUCE);
    op_case_attributes(&c, (int64_t[]){(int64_t)rows, (int64_t)columns, function},
                       REDUCE_ATTRIBUTES);
    op_case_nasty_input(&c, rows * columns, 13);
    op_case_output(&c, DTYPE_F32, parts);
    op_case_output(&c, DTYPE_U32, parts);
    op_case_output(&c, DTYPE_F32, rows);
    op_case_output(&c, DTYPE_U32, rows);
    check_kernel(&c);
}

/* Some indexes are past the row. */
static void check_one_of_rows(uint64_t rows, uint64_t columns, bool grad)
{
    struct op_case c;
    uint32_t *index;

    op_case_init(&c, grad ? OP_GATHER_ELEMENTS_GRAD : OP_GATHER_ELEMENTS);
    op_case_attributes(&c, (int64_t[]){(int64_t)rows, (int64_t)columns},
                       GATHER_ELEMENTS_ATTRIBUTES);
    if (!grad) {
        op_case_nasty_input(&c, rows * columns, 14);
    }
    index = op_case_input(&c, DTYPE_U32, rows, NULL);
    for (uint64_t r = 0; r < rows; r++) {
        index[r] = philox_draw(r, 15, 0, 0).words[0] % (uint32_t)(columns + 1);
        index[r] = r % 17 == 16 ? UINT32_MAX : index[r];
    }
    if (grad) {
        op_case_nasty_input(&c, rows, 16);
    }
    op_case_output(&c, DTYPE_F32, grad ? rows * columns : rows);
    check_kernel(&c);
}

static void test_extremes_and_elements_of_rows_equal_their_rules(void **state)
{
    static const uint64_t columns[] = {1, 2, 3, 31, 65, 1023, 1024, 1025, 3000};

    (void)state;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        for (uint64_t rows = 1; rows < 40; rows += 19) {
            check_reduce(rows, columns[i], REDUCE_MAX);
            check_reduce(rows, columns[i], REDUCE_MIN);
            check_one_of_rows(rows, columns[i], false);
            check_one_of_rows(rows, columns[i], true);
        }
    }
}

/* Of equals the first, zeros of both signs among them; a NaN beats all numbers, and the first one
 * stays, in any part. */
static void test_first_extreme_or_first_nan_of_a_row_holds(void **state)
{
    enum { COLUMNS_HERE = 2100 };
    static const struct {
        uint32_t places[2];
        uint32_t bits[2];
        uint32_t holder; /* of the maximum */
    } cases[] = {
        {{3, 9}, {0x3f800000, 0x3f800000}, 3},
        {{9, 2000}, {0x3f800000, 0x3f800001}, 2000},
        {{5, 1500}, {0x40000000, 0x7fc00000}, 1500},
        {{1030, 1031}, {0x7fc00000, 0x7f800000}, 1030},
        {{1024, 2099}, {0x7fc00000, 0x7fc00000}, 1024},
        {{7, 8}, {0x80000000, 0xbf800000}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kernel_table table = {0};
        struct op_case c;
        uint32_t *x;

        op_case_init(&c, OP_REDUCE);
        op_case_attributes(&c, (int64_t[]){1, COLUMNS_HERE, REDUCE_MAX}, REDUCE_ATTRIBUTES);
        x = op_case_input(&c, DTYPE_F32, COLUMNS_HERE, NULL);
        x[cases[i].places[0]] = cases[i].bits[0];
        x[cases[i].places[1]] = cases[i].bits[1];
        op_case_output(&c, DTYPE_F32, 3);
        op_case_output(&c, DTYPE_U32, 3);
        uint32_t *y = op_case_output(&c, DTYPE_F32, 1);
        uint32_t *index = op_case_output(&c, DTYPE_U32, 1);
        struct kernel_call call = op_case_kernel_call(&c, 1);

        moving_kernels(&table);
        table.kernels[OP_REDUCE].run(&call);
        assert_int_equal(*index, cases[i].holder);
        assert_int_equal(*y, x[cases[i].holder]);
        op_case_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_next_and_schedule_equal_their_rules),
        cmocka_unit_test(test_batch_tokens_equal_their_rules),
        cmocka_unit_test(test_batch_samples_equal_their_rules),
        cmocka_unit_test(test_batch_rows_equal_their_rules),
        cmocka_unit_test(test_random_words_equal_their_rules),
        cmocka_unit_test(test_dropout_equals_its_rule),
        cmocka_unit_test(test_gather_equals_its_rule),
        cmocka_unit_test(test_split_and_concat_equal_their_rules),
        cmocka_unit_test(test_windows_equal_their_rules),
        cmocka_unit_test(test_moves_and_places),
        cmocka_unit_test(test_casts_round_as_the_rule_says),
        cmocka_unit_test(test_windows_over_padding_equal_their_rules),
        cmocka_unit_test(test_extremes_and_elements_of_rows_equal_their_rules),
        cmocka_unit_test(test_first_extreme_or_first_nan_of_a_row_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
