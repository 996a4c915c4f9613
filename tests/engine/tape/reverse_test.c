/*
 * reverse_test.c - every gradient rule is the derivative of its operation.
 *
 * Method: gradient_check.h, on small tapes of every kind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model_writer.h"
#include "engine/plan/backend.h"
#include "engine/tape/builder_core.h"
#include "tests/support/numeric/gradient_check.h"
#include "tests/support/test.h"

/* ---- element by element ------------------------------------------------- */

static uint32_t write_add_bias(struct net *net)
{
    uint32_t x = net_cube(net, 3, 4, 5);

    return build_add(net->builder, x, net_vector(net, 5), 1);
}

static uint32_t write_add_spread(struct net *net)
{
    uint32_t x = net_cube(net, 3, 4, 5);

    return build_add(net->builder, build_add(net->builder, x, net_vector(net, 3), 20),
                     net_vector(net, 4), 5);
}

static uint32_t write_add_itself(struct net *net)
{
    uint32_t x = net_matrix(net, 3, 4);
    uint32_t y = build_add(net->builder, x, x, 1);

    return build_add(net->builder, y, build_add(net->builder, y, x, 1), 1);
}

static void test_gradient_of_add_with_broadcast(void **state)
{
    (void)state;
    gradient_check(write_add_bias);
    gradient_check(write_add_spread);
}

static void test_gradient_of_add_of_a_tensor_to_itself(void **state)
{
    (void)state;
    gradient_check(write_add_itself);
}

static uint32_t write_mul(struct net *net)
{
    uint32_t x = net_matrix(net, 6, 5);

    return build_mul(net->builder, x, net_matrix(net, 6, 5), 1);
}

static uint32_t write_mul_spread(struct net *net)
{
    uint32_t x = net_cube(net, 3, 4, 5);

    x = build_mul(net->builder, x, net_vector(net, 5), 1);
    x = build_mul(net->builder, x, net_vector(net, 4), 5);
    return build_mul(net->builder, x, net_vector(net, 1), 1);
}

static uint32_t write_square(struct net *net)
{
    uint32_t x = net_matrix(net, 6, 5);

    return build_mul(net->builder, x, x, 1);
}

static void test_gradient_of_mul_with_broadcast(void **state)
{
    (void)state;
    gradient_check(write_mul);
    gradient_check(write_mul_spread);
    gradient_check(write_square);
}

static uint32_t write_scale(struct net *net)
{
    return build_scale(net->builder, net_matrix(net, 4, 7), -0.375f);
}

static uint32_t write_relu(struct net *net)
{
    return build_map(net->builder, MAP_RELU, net_vector(net, 41));
}

static uint32_t write_gelu(struct net *net)
{
    return build_map(net->builder, MAP_GELU, net_vector(net, 41));
}

static uint32_t write_silu(struct net *net)
{
    return build_map(net->builder, MAP_SILU, net_vector(net, 41));
}

static void test_gradient_of_scale_and_activations(void **state)
{
    (void)state;
    gradient_check(write_scale);
    gradient_check_spread(write_relu, 0.25);
    gradient_check_spread(write_gelu, 0.25); /* to 5 and beyond, where GELU is flat */
    gradient_check_spread(write_silu, 0.25);
}

static uint32_t write_rotary(struct net *net)
{
    uint64_t dims[2] = {5, 6};
    uint32_t table = build_tensor(net->builder, "table", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    return build_rotary(net->builder, net_cube(net, 2, 5, 18), table, 5, 3, false);
}

static uint32_t write_rotary_halves(struct net *net)
{
    uint64_t dims[2] = {5, 6};
    uint32_t table = build_tensor(net->builder, "table", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    return build_rotary(net->builder, net_cube(net, 2, 5, 18), table, 5, 3, true);
}

static void test_gradient_of_rotary(void **state)
{
    (void)state;
    gradient_check(write_rotary);
    gradient_check(write_rotary_halves);
}

static uint32_t write_squared_error(struct net *net)
{
    uint32_t a = net_matrix(net, 4, 6);
    uint32_t b = net_matrix(net, 4, 6);

    return build_mean(net->builder, build_binary(net->builder, BINARY_SQUARED_ERROR, a, b));
}

static void test_gradient_of_mean_squared_error(void **state)
{
    (void)state;
    gradient_check(write_squared_error);
}

static uint32_t write_dropout_of_a_third(struct net *net)
{
    return build_dropout(net->builder, net_matrix(net, 9, 11), 1.0 / 3.0, 5, 1234);
}

static void test_gradient_of_dropout(void **state)
{
    (void)state;
    gradient_check(write_dropout_of_a_third);
}

/* ---- moving data -------------------------------------------------------- */

static uint32_t write_gather(struct net *net)
{
    uint32_t table = net_matrix(net, 5, 6);

    /* 23 draws from 5 rows: every row several times. */
    return build_gather(net->builder, table, net_index(net, 23, 5));
}

static void test_gradient_of_gather(void **state)
{
    (void)state;
    gradient_check(write_gather);
}

/* 23 rows by four experts. */
static uint32_t write_experts(struct net *net)
{
    uint32_t x = net_matrix(net, 23, 6);
    uint32_t weights = net_cube(net, 4, 5, 6);

    return build_linear_chosen(net->builder, x, weights, net_index(net, 23, 4));
}

static uint32_t write_experts_in_turn(struct net *net)
{
    uint32_t x = net_matrix(net, 9, 6);
    uint32_t first = net_cube(net, 3, 5, 6);
    uint32_t second = net_cube(net, 3, 7, 5);
    uint32_t index = net_index(net, 9, 3);

    x = build_linear_chosen(net->builder, x, first, index);
    return build_linear_chosen(net->builder, build_map(net->builder, MAP_SILU, x), second, index);
}

static uint32_t write_linear_wide(struct net *net)
{
    uint32_t x = net_matrix(net, 9, 6);

    return build_linear_wide(net->builder, x, net_matrix(net, 5, 6));
}

static uint32_t write_experts_apart(struct net *net)
{
    uint32_t x = net_matrix(net, 9, 6);
    uint32_t weights = net_cube(net, 3, 5, 7); /* of rows of 7 */

    return build_linear_chosen(net->builder, x, weights, net_index(net, 9, 3));
}

static void test_gradient_of_products_by_experts(void **state)
{
    (void)state;
    gradient_check(write_experts);
    gradient_check(write_experts_in_turn);
    gradient_check(write_linear_wide);
    gradient_check_refused(write_experts_apart, "no experts for such rows");
}

static uint32_t write_split_all(struct net *net)
{
    uint32_t parts[3];

    build_split(net->builder, parts, 3, net_matrix(net, 4, 15));
    return build_mul(net->builder, parts[0], build_mul(net->builder, parts[1], parts[2], 1), 1);
}

static uint32_t write_split_some(struct net *net)
{
    uint32_t parts[3];

    build_split(net->builder, parts, 3, net_matrix(net, 4, 15));
    return build_mul(net->builder, parts[0], parts[2], 1);
}

static void test_gradient_of_split_with_and_without_unused_parts(void **state)
{
    (void)state;
    gradient_check(write_split_all);
    gradient_check(write_split_some);
}

static uint32_t write_concat(struct net *net)
{
    uint32_t inputs[3] = {net_matrix(net, 4, 2), net_matrix(net, 4, 5), net_matrix(net, 4, 1)};
    struct op op = op_begin(OP_CONCAT, 3, inputs);
    struct output_shape shape = shape_matrix(DTYPE_F32, 4, 8);

    op_attribute(&op, 4);
    op_attribute(&op, 2);
    op_attribute(&op, 5);
    op_attribute(&op, 1);
    op.output_count = 1;
    build_op(net->builder, &op, &shape);
    return op.outputs[0];
}

static uint32_t write_expand(struct net *net)
{
    uint64_t dims[3] = {3, 4, 5};

    return build_expand(net->builder, net_vector(net, 4), 5, 3, dims);
}

static void test_gradient_of_concat_and_expand(void **state)
{
    (void)state;
    gradient_check(write_concat);
    gradient_check(write_expand);
}

/* ---- pictures ----------------------------------------------------------- */

static uint32_t write_image(struct net *net, enum op_kind kind, int64_t kernel, int64_t stride,
                            int64_t padding)
{
    int64_t image[MEAN_POOL_ATTRIBUTES] = {
        2, 6, 5, 3, kernel, kernel, stride, stride, padding, padding, padding, padding, 1, 1};

    return build_image_op(net->builder, kind, net_parameter(net, 4, 2, 6, 5, 3), image);
}

/* Everything differs between the directions, and padding between the sides. */
static uint32_t write_uneven(struct net *net, enum op_kind kind, bool counts_padding)
{
    int64_t image[MEAN_POOL_ATTRIBUTES] = {2, 6, 5, 3, 3, 2, 2, 1, 2, 0, 1, 1, 2, 3};

    image[MEAN_POOL_COUNTS_PADDING] = counts_padding;
    return build_image_op(net->builder, kind, net_parameter(net, 4, 2, 6, 5, 3), image);
}

static uint32_t write_patches(struct net *net)
{
    return write_image(net, OP_IM2COL, 3, 1, 1);
}

static uint32_t write_patches_apart(struct net *net)
{
    return write_image(net, OP_IM2COL, 2, 2, 1);
}

static uint32_t write_patches_uneven(struct net *net)
{
    return write_uneven(net, OP_IM2COL, false);
}

static uint32_t write_unpatch(struct net *net)
{
    static const int64_t image[IMAGE_ATTRIBUTES] = {2, 6, 5, 3, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1};

    return build_image_op(net->builder, OP_COL2IM, net_matrix(net, 2 * 3 * 3, 27), image);
}

static uint32_t write_unpatch_uneven(struct net *net)
{
    static const int64_t image[IMAGE_ATTRIBUTES] = {2, 6, 5, 3, 3, 2, 2, 1, 2, 0, 1, 1, 2, 3};

    return build_image_op(net->builder, OP_COL2IM, net_matrix(net, 2 * 3 * 3, 18), image);
}

static uint32_t write_max_pool_uneven(struct net *net)
{
    return write_uneven(net, OP_MAX_POOL, false);
}

static uint32_t write_mean_pool_uneven(struct net *net)
{
    return write_uneven(net, OP_MEAN_POOL, false);
}

static uint32_t write_mean_pool_counting(struct net *net)
{
    return write_uneven(net, OP_MEAN_POOL, true);
}

static uint32_t write_max_pool(struct net *net)
{
    return write_image(net, OP_MAX_POOL, 2, 2, 0);
}

static uint32_t write_max_pool_overlapping(struct net *net)
{
    return write_image(net, OP_MAX_POOL, 3, 1, 0);
}

static uint32_t write_mean_pool(struct net *net)
{
    return write_image(net, OP_MEAN_POOL, 2, 2, 0);
}

static uint32_t write_mean_pool_overlapping(struct net *net)
{
    return write_image(net, OP_MEAN_POOL, 3, 2, 0);
}

static void test_gradient_of_patches_and_their_adjoint(void **state)
{
    (void)state;
    gradient_check(write_patches);
    gradient_check(write_patches_apart);
    gradient_check(write_patches_uneven);
    gradient_check(write_unpatch);
    gradient_check(write_unpatch_uneven);
}

static void test_gradient_of_pools(void **state)
{
    (void)state;
    gradient_check_spread(write_max_pool, 0.01);
    gradient_check_spread(write_max_pool_overlapping, 0.01);
    gradient_check_spread(write_max_pool_uneven, 0.01);
    gradient_check(write_mean_pool);
    gradient_check(write_mean_pool_overlapping);
    gradient_check(write_mean_pool_uneven);
    gradient_check(write_mean_pool_counting);
}

/* ---- rows --------------------------------------------------------------- */

static uint32_t write_row_sum(struct net *net)
{
    uint32_t x = net_matrix(net, 3, 1500);
    struct op op = op_begin(OP_ROW_SUM, 1, &x);
    struct output_shape shapes[2] = {shape_matrix(DTYPE_F32, 3, 2), shape_vector(DTYPE_F32, 3)};

    op_attribute(&op, 3);
    op_attribute(&op, 1500);
    op.output_count = 2;
    build_op(net->builder, &op, shapes);
    return build_mul(net->builder, op.outputs[1], op.outputs[1], 1);
}

static uint32_t write_layer_norm(struct net *net)
{
    uint32_t x = net_matrix(net, 7, 24);
    uint32_t gain = net_vector(net, 24);

    return build_layer_norm(net->builder, x, gain, net_vector(net, 24), 1e-5f);
}

static uint32_t write_layer_norm_wide(struct net *net)
{
    uint32_t x = net_matrix(net, 2, 1100);
    uint32_t gain = net_vector(net, 1100);

    return build_layer_norm(net->builder, x, gain, net_vector(net, 1100), 1e-5f);
}

static uint32_t write_rms_norm(struct net *net)
{
    uint32_t x = net_matrix(net, 7, 24);

    return build_rms_norm(net->builder, x, net_vector(net, 24), 1e-5f);
}

static uint32_t write_rms_norm_wide(struct net *net)
{
    uint32_t x = net_matrix(net, 2, 1100);

    return build_rms_norm(net->builder, x, net_vector(net, 1100), 1e-5f);
}

static void test_gradient_of_row_sum_and_norms(void **state)
{
    (void)state;
    gradient_check(write_row_sum);
    gradient_check(write_layer_norm);
    gradient_check(write_layer_norm_wide);
    gradient_check(write_rms_norm);
    gradient_check(write_rms_norm_wide);
}

/* (batch, channels, height*width), and with the channels last. */
static uint32_t write_batch_norm(struct net *net)
{
    uint32_t x = net_cube(net, 4, 3, 10);
    uint32_t gain = net_vector(net, 3);

    return build_batch_norm(net->builder, x, gain, net_vector(net, 3), 10, 1e-3f, NULL);
}

static uint32_t write_batch_norm_channels_last(struct net *net)
{
    uint32_t x = net_cube(net, 4, 10, 3);
    uint32_t gain = net_vector(net, 3);

    return build_batch_norm(net->builder, x, gain, net_vector(net, 3), 1, 1e-3f, NULL);
}

static uint32_t write_group_norm(struct net *net)
{
    uint32_t x = net_cube(net, 3, 6, 10);
    uint32_t gain = net_vector(net, 6);

    return build_group_norm(net->builder, x, gain, net_vector(net, 6), 10, 2, 1e-3f);
}

static uint32_t write_instance_norm(struct net *net)
{
    uint32_t x = net_cube(net, 3, 4, 25);
    uint32_t gain = net_vector(net, 4);

    return build_group_norm(net->builder, x, gain, net_vector(net, 4), 25, 4, 1e-3f);
}

static void test_gradient_of_norms_of_batches_groups_and_instances(void **state)
{
    (void)state;
    gradient_check(write_batch_norm);
    gradient_check(write_batch_norm_channels_last);
    gradient_check(write_group_norm);
    gradient_check(write_instance_norm);
}

enum { NORM_BATCH = 3, NORM_CHANNELS = 6, NORM_INNER = 7 };
#define NORM_COUNT (NORM_BATCH * NORM_CHANNELS * NORM_INNER)

/* y of one form: groups 0 is the batch's. */
static void run_norm(float y[NORM_COUNT], const float x[NORM_COUNT], const float *gain,
                     const float *bias, uint64_t groups)
{
    const struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1};
    const uint64_t dims[3] = {NORM_BATCH, NORM_CHANNELS, NORM_INNER};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t at = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 3, dims);
    uint32_t g = build_tensor(builder, "g", DTYPE_F32, ROLE_INPUT, 1, dims + 1);
    uint32_t b = build_tensor(builder, "b", DTYPE_F32, ROLE_INPUT, 1, dims + 1);
    uint32_t out = groups == 0 ? build_batch_norm(builder, at, g, b, NORM_INNER, 1e-5f, NULL)
                               : build_group_norm(builder, at, g, b, NORM_INNER, groups, 1e-5f);
    struct machine *machine = NULL;
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    build_output(builder, "y", out);
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_OK);
    builder_free(builder);
    assert_int_equal(backend_cpu.open(&machine, tape, &options, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, at, x, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, g, gain, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, b, bias, &error), STATUS_OK);
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    assert_int_equal(backend_cpu.read(machine, out, y, &error), STATUS_OK);
    backend_cpu.close(machine);
    tape_free(tape);
}

/* Which elements are normalized together. */
static int norm_set(int i, int groups)
{
    int channel = i / NORM_INNER % NORM_CHANNELS;

    return groups == 0
               ? channel
               : i / (NORM_INNER * NORM_CHANNELS) * groups + channel / (NORM_CHANNELS / groups);
}

static void check_norm(int groups)
{
    float x[NORM_COUNT];
    float y[NORM_COUNT];
    float gain[NORM_CHANNELS];
    float bias[NORM_CHANNELS];
    uint64_t seed = 3;

    for (int i = 0; i < NORM_COUNT; i++) {
        x[i] = 20.0f + (float)test_random_below(&seed, 1000) / 100.0f;
    }
    for (int c = 0; c < NORM_CHANNELS; c++) {
        gain[c] = 0.5f + (float)c;
        bias[c] = 1.0f - (float)c;
    }
    run_norm(y, x, gain, bias, (uint64_t)groups);
    for (int i = 0; i < NORM_COUNT; i++) {
        int channel = i / NORM_INNER % NORM_CHANNELS;
        double count = 0.0;
        double sum = 0.0;
        double squares = 0.0;

        for (int j = 0; j < NORM_COUNT; j++) {
            bool together = norm_set(i, groups) == norm_set(j, groups);

            count += together ? 1.0 : 0.0;
            sum += together ? (double)x[j] : 0.0;
            squares += together ? (double)x[j] * (double)x[j] : 0.0;
        }
        double mean = sum / count;
        double rstd = 1.0 / sqrt(squares / count - mean * mean + 1e-5);
        double wanted =
            ((double)x[i] - mean) * rstd * (double)gain[channel] + (double)bias[channel];

        assert_true(fabs((double)y[i] - wanted) < 2e-4);
    }
}

static void test_norms_of_batches_groups_and_instances_are_those_of_double_precision(void **state)
{
    (void)state;
    check_norm(0);
    check_norm(1);
    check_norm(2);
    check_norm(NORM_CHANNELS);
}

/* Columns, and what stands in the middle. */
static uint32_t write_column_sums(struct net *net)
{
    return build_reduce(net->builder, net_matrix(net, 4, 6), 1, 6);
}

static uint32_t write_middle_sums(struct net *net)
{
    return build_reduce(net->builder, net_cube(net, 3, 4, 5), 5, 4);
}

static void test_gradient_of_exact_sums(void **state)
{
    (void)state;
    gradient_check(write_column_sums);
    gradient_check(write_middle_sums);
}

static uint32_t write_maximum(struct net *net)
{
    return build_extreme(net->builder, REDUCE_MAX, net_cube(net, 2, 3, 7), NULL);
}

/* Rows of two parts. */
static uint32_t write_minimum(struct net *net)
{
    return build_extreme(net->builder, REDUCE_MIN, net_matrix(net, 2, 1300), NULL);
}

static uint32_t write_gather_elements(struct net *net)
{
    return build_gather_elements(net->builder, net_matrix(net, 9, 5), net_index(net, 9, 5));
}

/* The gradient of a gradient: one element of each row is placed in a row of zeros. */
static uint32_t write_scatter_elements(struct net *net)
{
    uint32_t inputs[2] = {net_index(net, 9, 5), net_vector(net, 9)};
    struct op op = op_begin(OP_GATHER_ELEMENTS_GRAD, 2, inputs);
    struct output_shape shape = shape_matrix(DTYPE_F32, 9, 5);

    op_attribute(&op, 9);
    op_attribute(&op, 5);
    op.output_count = 1;
    build_op(net->builder, &op, &shape);
    return op.outputs[0];
}

static void test_gradient_of_extremes_and_of_one_element_a_row(void **state)
{
    (void)state;
    gradient_check_spread(write_maximum, 0.01);
    gradient_check_spread(write_minimum, 0.001);
    gradient_check(write_gather_elements);
    gradient_check(write_scatter_elements);
}

static uint32_t write_softmax(struct net *net)
{
    return build_softmax(net->builder, net_matrix(net, 5, 13), 2.5f, 0, TENSOR_NONE);
}

static uint32_t write_softmax_causal(struct net *net)
{
    return build_softmax(net->builder, net_cube(net, 2, 6, 6), 1.5f, 6, TENSOR_NONE);
}

/* Two sequences of three heads; each row sees one to four columns. */
static uint32_t write_softmax_reach(struct net *net)
{
    return build_softmax(net->builder, net_parameter(net, 4, 2, 3, 6, 6), 1.5f, 6,
                         net_index(net, 12, 4));
}

static uint32_t write_softmax_wide(struct net *net)
{
    return build_softmax(net->builder, net_matrix(net, 2, 1300), 3.0f, 0, TENSOR_NONE);
}

static void test_gradient_of_softmax_plain_and_causal(void **state)
{
    (void)state;
    gradient_check(write_softmax);
    gradient_check(write_softmax_causal);
    gradient_check(write_softmax_reach);
    gradient_check(write_softmax_wide);
}

static uint32_t write_cross_entropy(struct net *net)
{
    uint32_t logits = net_matrix(net, 9, 11);

    return build_cross_entropy(net->builder, logits, net_index(net, 9, 11));
}

static uint32_t write_cross_entropy_ignoring(struct net *net)
{
    uint32_t logits = net_matrix(net, 9, 11);

    net->ignores = true;
    return build_cross_entropy(net->builder, logits, net_index(net, 9, 11));
}

/* Two micro-batches under one mask: the mean is over both. */
static uint32_t write_cross_entropy_masked(struct net *net)
{
    uint64_t rows = 6;
    uint32_t masks[2];
    uint32_t losses[2];

    masks[0] = masks[1] = net_index(net, rows, 2);
    uint32_t targets = build_tensor(net->builder, "targets", DTYPE_U32, ROLE_CONSTANT, 1, &rows);
    uint32_t share = build_scale(net->builder, build_share(net->builder, masks[0]), 0.5f);

    for (int i = 0; i < 2; i++) {
        losses[i] = build_cross_entropy_masked(net->builder, net_matrix(net, rows, 11), targets,
                                               masks[i], share);
    }
    return build_add(net->builder, losses[0], losses[1], 1);
}

static uint32_t write_cross_entropy_wide(struct net *net)
{
    uint32_t logits = net_matrix(net, 3, 1300);

    return build_cross_entropy(net->builder, logits, net_index(net, 3, 1300));
}

static void test_gradient_of_cross_entropy(void **state)
{
    (void)state;
    gradient_check(write_cross_entropy);
    gradient_check(write_cross_entropy_ignoring);
    gradient_check(write_cross_entropy_masked);
    gradient_check(write_cross_entropy_wide);
}

/* The loss of four rows of NaN and infinity, of which the mask leaves those given. */
static void run_masked(float *loss, float gradient[20], const uint8_t mask[4])
{
    const struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1};
    const uint64_t dims[2] = {4, 5};
    const uint32_t targets[4] = {4, 0, 99, 2};
    float logits[20];
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 2, dims);
    uint32_t t = build_tensor(builder, "t", DTYPE_U32, ROLE_CONSTANT, 1, dims);
    uint32_t m = build_tensor(builder, "m", DTYPE_U8, ROLE_CONSTANT, 1, dims);
    uint32_t share = build_share(builder, m);
    uint32_t mean = build_cross_entropy_masked(builder, x, t, m, share);
    struct machine *machine = NULL;
    struct tape *tape = NULL;
    struct error error;
    uint32_t dx;

    error_init(&error);
    build_output(builder, "loss", mean);
    build_gradients(builder, &dx, mean, &x, 1);
    build_output(builder, "dx", dx);
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_OK);
    builder_free(builder);
    for (int i = 0; i < 20; i++) {
        logits[i] = i < 5 ? (float)i : i < 10 ? NAN : INFINITY;
    }
    assert_int_equal(backend_cpu.open(&machine, tape, &options, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, x, logits, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, t, targets, &error), STATUS_OK);
    assert_int_equal(backend_cpu.write(machine, m, mask, &error), STATUS_OK);
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    assert_int_equal(backend_cpu.read(machine, mean, loss, &error), STATUS_OK);
    assert_int_equal(backend_cpu.read(machine, dx, gradient, &error), STATUS_OK);
    backend_cpu.close(machine);
    tape_free(tape);
}

static void test_rows_outside_the_mask_do_not_count(void **state)
{
    static const uint8_t none[4] = {0};
    static const uint8_t first[4] = {7, 0, 0, 0};
    float gradient[20];
    float loss;
    double sum = 0.0;

    (void)state;
    run_masked(&loss, gradient, none);
    assert_true(loss == 0.0f);
    for (int i = 0; i < 20; i++) {
        assert_true(gradient[i] == 0.0f);
    }
    /* The mean over one row is that row's. */
    run_masked(&loss, gradient, first);
    for (int i = 0; i < 5; i++) {
        sum += exp(i);
    }
    assert_true(fabs((double)loss - (log(sum) - 4.0)) < 1e-6);
    for (int i = 0; i < 20; i++) {
        double p = i < 5 ? exp(i) / sum - (i == 4) : 0.0;

        assert_true(fabs((double)gradient[i] - p) < 1e-6);
    }
}

/* ---- contractions ------------------------------------------------------- */

static uint32_t write_linear(struct net *net)
{
    uint32_t x = net_cube(net, 3, 4, 20);

    return build_linear(net->builder, x, net_matrix(net, 6, 20));
}

static uint32_t write_linear_transposed(struct net *net)
{
    uint32_t x = net_cube(net, 3, 4, 20);

    return build_linear_transposed(net->builder, x, net_matrix(net, 20, 6));
}

/* A weight used twice, once transposed, like a tied embedding. */
static uint32_t write_tied(struct net *net)
{
    uint32_t table = net_matrix(net, 7, 12);
    uint32_t x = build_gather(net->builder, table, net_index(net, 10, 7));

    return build_linear(net->builder,
                        build_linear_transposed(net->builder, x, net_matrix(net, 12, 12)), table);
}

static void test_gradient_of_linear_layers_and_tied_weights(void **state)
{
    (void)state;
    gradient_check(write_linear);
    gradient_check(write_linear_transposed);
    gradient_check(write_tied);
}

/* Six axes of a (2,3 | 2,5 | 3,4) and b (2,3 | 4,2 | 3,4), none where the plain order has it. */
static uint32_t write_permuted(struct net *net)
{
    uint32_t a = net_vector(net, 720);
    uint32_t b = net_vector(net, 576);
    /* a lies as (r0, r1, k1, k0, b0, b1). */
    static const struct view a_rows = {{2, 3, 2, 5, 3, 4}, {3, 1, 360, 72, 6, 18}};
    /* b lies as (k0, b1, r1, b0, k1, r0). */
    static const struct view b_rows = {{2, 3, 4, 2, 3, 4}, {16, 64, 1, 32, 192, 4}};
    /* out lies as (n1, m0, b0, n0, m1, b1): 2, 2, 2, 4, 5, 3. */
    static const uint64_t out_strides[6] = {60, 1, 120, 3, 15, 240};
    static const uint64_t dims[2] = {20, 24};

    return build_contract(net->builder, a, &a_rows, b, &b_rows, out_strides, 0, 2, dims);
}

/* Both operands are one tensor: its rows times its rows. */
static uint32_t write_gram(struct net *net)
{
    static const uint64_t strides[6] = {0, 0, 0, 6, 0, 1};
    static const uint64_t dims[2] = {6, 6};
    struct view rows = view_matrix(6, 20);
    uint32_t x = net_matrix(net, 6, 20);

    return build_contract(net->builder, x, &rows, x, &rows, strides, 0, 2, dims);
}

static void test_gradient_of_contract_with_permuted_strides(void **state)
{
    (void)state;
    gradient_check(write_permuted);
    gradient_check(write_gram);
}

/* ---- refusals ----------------------------------------------------------- */

static uint32_t write_clip(struct net *net)
{
    uint32_t x = net_vector(net, 1);
    struct op op = op_begin(OP_CLIP_FACTOR, 1, &x);
    struct output_shape shape = shape_vector(DTYPE_F32, 1);

    op_attribute_float(&op, 1.0f);
    op.output_count = 1;
    build_op(net->builder, &op, &shape);
    return op.outputs[0];
}

static void test_kind_without_gradient_rule_is_named(void **state)
{
    (void)state;
    gradient_check_refused(write_clip, "'clip-factor' has no gradient rule");
}

/* Sums over rows that are two axes of a view. */
static uint32_t write_sums_of_two_axes(struct net *net)
{
    struct builder *builder = net->builder;
    struct view view = {{1, 1, 2, 3, 1, 4}, {0, 0, 4, 8, 0, 1}};
    struct quantized q = build_quantize(builder, net_cube(net, 3, 2, 4), &view, builder->precision);
    uint32_t inputs[2] = {q.q, q.exponents};
    struct op op = op_begin(OP_CONTRACT_ONES, 2, inputs);
    struct output_shape shape = shape_vector(DTYPE_F32, 6);

    op_attribute(&op, 6);
    op_attribute(&op, 4);
    op_attribute(&op, builder->precision.bits);
    op_attribute(&op, builder->precision.block);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

static void test_sums_over_rows_of_two_axes_have_no_gradient(void **state)
{
    (void)state;
    gradient_check_refused(write_sums_of_two_axes, "rows of 2 axes");
}

static uint32_t write_part_of_turn(struct net *net)
{
    uint32_t x = net_vector(net, 7);

    return build_add(net->builder, x, net_vector(net, 3), 1);
}

static void test_operand_read_in_part_of_a_turn_is_refused(void **state)
{
    (void)state;
    gradient_check_refused(write_part_of_turn, "whole turns");
}

/* The row maximum of a softmax has no gradient rule, so using it must fail. */
static uint32_t write_side_output(struct net *net)
{
    uint32_t p = build_softmax(net->builder, net_matrix(net, 5, 6), 1.0f, 0, TENSOR_NONE);
    const struct op *op = &net->builder->tape.ops[net->builder->notes[p].producer];

    return build_scale(net->builder, op->outputs[1], 2.0f);
}

static void test_gradient_of_a_side_output_is_refused(void **state)
{
    (void)state;
    gradient_check_refused(write_side_output, "softmax");
}

static void test_gradient_of_what_the_loss_ignores_is_none(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint64_t dims[1] = {4};
    uint32_t of[2];
    uint32_t gradients[2];

    (void)state;
    of[0] = build_tensor(builder, "used", DTYPE_F32, ROLE_STATE, 1, dims);
    of[1] = build_tensor(builder, "ignored", DTYPE_F32, ROLE_STATE, 1, dims);
    build_gradients(builder, gradients, build_mean(builder, of[0]), of, 2);
    assert_false(builder_failed(builder));
    assert_int_not_equal(gradients[0], TENSOR_NONE);
    assert_int_equal(gradients[1], TENSOR_NONE);
    builder_free(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_add_with_broadcast),
        cmocka_unit_test(test_gradient_of_add_of_a_tensor_to_itself),
        cmocka_unit_test(test_gradient_of_mul_with_broadcast),
        cmocka_unit_test(test_gradient_of_scale_and_activations),
        cmocka_unit_test(test_gradient_of_rotary),
        cmocka_unit_test(test_gradient_of_mean_squared_error),
        cmocka_unit_test(test_gradient_of_dropout),
        cmocka_unit_test(test_gradient_of_gather),
        cmocka_unit_test(test_gradient_of_products_by_experts),
        cmocka_unit_test(test_gradient_of_split_with_and_without_unused_parts),
        cmocka_unit_test(test_gradient_of_concat_and_expand),
        cmocka_unit_test(test_gradient_of_patches_and_their_adjoint),
        cmocka_unit_test(test_gradient_of_pools),
        cmocka_unit_test(test_gradient_of_row_sum_and_norms),
        cmocka_unit_test(test_gradient_of_norms_of_batches_groups_and_instances),
        cmocka_unit_test(test_norms_of_batches_groups_and_instances_are_those_of_double_precision),
        cmocka_unit_test(test_gradient_of_exact_sums),
        cmocka_unit_test(test_gradient_of_extremes_and_of_one_element_a_row),
        cmocka_unit_test(test_gradient_of_softmax_plain_and_causal),
        cmocka_unit_test(test_gradient_of_cross_entropy),
        cmocka_unit_test(test_rows_outside_the_mask_do_not_count),
        cmocka_unit_test(test_gradient_of_linear_layers_and_tied_weights),
        cmocka_unit_test(test_gradient_of_contract_with_permuted_strides),
        cmocka_unit_test(test_kind_without_gradient_rule_is_named),
        cmocka_unit_test(test_sums_over_rows_of_two_axes_have_no_gradient),
        cmocka_unit_test(test_operand_read_in_part_of_a_turn_is_refused),
        cmocka_unit_test(test_gradient_of_a_side_output_is_refused),
        cmocka_unit_test(test_gradient_of_what_the_loss_ignores_is_none),
    };

    return cmocka_run_group_tests_name("reverse", tests, NULL, NULL);
}
