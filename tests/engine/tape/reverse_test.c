/*
 * reverse_test.c - every gradient rule is the derivative of its operation.
 *
 * For each small tape the test compares, for every element of every parameter:
 *
 *   1. central differences of the forward operations in double (support/reference/reference.h)
 *   2. the tape's own backward operations in double precision: must agree to about 1e-7
 *   3. the engine's backward operations, quantized: must agree as far as the bits allow
 *
 * The first two share nothing but the tape, so a wrong rule, view or attribute shows. Inputs avoid
 * the corners of ReLU and of maxima, where there is no derivative.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model_writer.h"
#include "engine/plan/backend.h"
#include "engine/tape/builder_core.h"
#include "tests/support/reference/reference.h"
#include "tests/support/test.h"

#define TENSORS_MAX   8
#define DIFFERENCES   48 /* elements of a parameter that are moved */
#define STEP          1e-5
#define DOUBLE_WITHIN 1e-6

struct net {
    struct builder *builder;
    uint32_t parameters[TENSORS_MAX];
    uint32_t gradients[TENSORS_MAX];
    uint32_t parameter_count;
    uint32_t indexes; /* a u32 constant, or TENSOR_NONE */
    uint32_t index_below;
    bool ignores;     /* every third index is TARGET_IGNORED */
    uint32_t forward; /* operations of the forward part */
    double spread;    /* distance between any two values of a parameter; 0: plain random */
    struct tape *tape;
};

/* Writes the operations of one case; returns the tensor whose weighted mean is the loss. */
typedef uint32_t write_case(struct net *net);

/* ---- writing ------------------------------------------------------------ */

static uint32_t parameter(struct net *net, uint32_t rank, uint64_t a, uint64_t b, uint64_t c,
                          uint64_t d)
{
    uint64_t dims[4] = {a, b, c, d};
    char name[16];

    (void)snprintf(name, sizeof(name), "p%u", net->parameter_count);
    assert_true(net->parameter_count < TENSORS_MAX);
    return net->parameters[net->parameter_count++] =
               build_tensor(net->builder, name, DTYPE_F32, ROLE_STATE, rank, dims);
}

static uint32_t vector(struct net *net, uint64_t n)
{
    return parameter(net, 1, n, 0, 0, 0);
}

static uint32_t matrix(struct net *net, uint64_t rows, uint64_t columns)
{
    return parameter(net, 2, rows, columns, 0, 0);
}

static uint32_t cube(struct net *net, uint64_t a, uint64_t b, uint64_t c)
{
    return parameter(net, 3, a, b, c, 0);
}

static uint32_t index_constant(struct net *net, uint64_t count, uint32_t below)
{
    net->index_below = below;
    return net->indexes = build_tensor(net->builder, "index", DTYPE_U32, ROLE_CONSTANT, 1, &count);
}

/* loss = mean(y * weights); a single number is the loss itself. */
static uint32_t write_loss(struct net *net, uint32_t y)
{
    const struct tensor shape = *builder_tensor(net->builder, y);
    uint32_t weights;

    if (shape.count == 1) {
        return y;
    }
    weights =
        build_tensor(net->builder, "weights", DTYPE_F32, ROLE_CONSTANT, shape.rank, shape.dims);
    return build_mean(net->builder, build_mul(net->builder, y, weights, 1));
}

static enum status write_net(struct net *net, write_case *write, struct precision precision,
                             struct error *error)
{
    enum status status;
    uint32_t loss;

    net->indexes = TENSOR_NONE;
    net->builder = builder_new(precision);
    assert_non_null(net->builder);
    loss = write_loss(net, write(net));
    build_output(net->builder, "loss", loss);
    build_loss(net->builder, loss);
    net->forward = net->builder->tape.op_count;
    build_gradients(net->builder, net->gradients, loss, net->parameters, net->parameter_count);
    for (uint32_t i = 0; i < net->parameter_count && !builder_failed(net->builder); i++) {
        char name[32];

        /* Every case uses all of its parameters. */
        assert_int_not_equal(net->gradients[i], TENSOR_NONE);
        assert_int_equal(builder_tensor(net->builder, net->gradients[i])->count,
                         builder_tensor(net->builder, net->parameters[i])->count);
        (void)snprintf(name, sizeof(name), "gradient%u", i);
        build_output(net->builder, name, net->gradients[i]);
    }
    status = builder_finish(&net->tape, net->builder, error);
    builder_free(net->builder);
    return status;
}

/* ---- values ------------------------------------------------------------- */

/* Fills a tensor; the engine and the reference both start from these values. */
static void *first_values(const struct net *net, uint32_t id, uint64_t *random)
{
    const struct tensor *tensor = &net->tape->tensors[id];
    void *bytes = calloc(tensor->count, dtype_size(tensor->dtype));

    assert_non_null(bytes);
    for (uint64_t i = 0; i < tensor->count; i++) {
        if (tensor->dtype == DTYPE_U32) {
            ((uint32_t *)bytes)[i] =
                id == net->indexes ? (uint32_t)test_random_below(random, net->index_below) : 3;
            if (id == net->indexes && net->ignores && i % 3 == 1) {
                ((uint32_t *)bytes)[i] = TARGET_IGNORED;
            }
        } else if (net->spread > 0.0 && tensor->role == ROLE_STATE) {
            /* Odd multiples of half the spread, each once, in a scattered order. */
            int64_t count = (int64_t)tensor->count;
            int64_t place = (int64_t)i * 37 % count - count / 2;

            ((float *)bytes)[i] = (float)(((double)place + 0.5) * net->spread);
        } else {
            ((float *)bytes)[i] =
                (float)((double)test_random_below(random, 2000001) / 1000000.0 - 1.0);
        }
    }
    return bytes;
}

static bool is_given(enum role role)
{
    return role == ROLE_STATE || role == ROLE_CONSTANT;
}

/* ---- the three ways ----------------------------------------------------- */

static double loss_of(struct reference *reference, const struct net *net)
{
    reference_run(reference, net->forward);
    return reference_values(reference, net->tape->loss)[0];
}

static double largest(const double *values, uint64_t count)
{
    double top = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        top = fmax(top, fabs(values[i]));
    }
    return top;
}

static void compare_differences(struct reference *reference, const struct net *net, uint32_t which)
{
    uint64_t count = net->tape->tensors[net->parameters[which]].count;
    double *x = reference_values(reference, net->parameters[which]);
    const double *gradient = reference_values(reference, net->gradients[which]);
    uint64_t stride = count / DIFFERENCES + 1;

    for (uint64_t i = 0; i < count; i += stride) {
        double before = x[i];
        double above;
        double below;
        double difference;

        x[i] = before + STEP;
        above = loss_of(reference, net);
        x[i] = before - STEP;
        below = loss_of(reference, net);
        x[i] = before;
        difference = (above - below) / (2.0 * STEP);
        if (fabs(difference - gradient[i]) > DOUBLE_WITHIN * (largest(gradient, count) + 1e-4)) {
            fail_msg("parameter %u element %llu: gradient %.12g, differences give %.12g", which,
                     (unsigned long long)i, gradient[i], difference);
        }
    }
}

/* The distance of the engine's values from the reference's, relative to the latter's norm. */
static double distance(const float *values, const double *exact, uint64_t count)
{
    double apart = 0.0;
    double length = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        apart += (values[i] - exact[i]) * (values[i] - exact[i]);
        length += exact[i] * exact[i];
    }
    return length == 0.0 ? sqrt(apart) : sqrt(apart / length);
}

static void compare_engine(const struct reference *reference, const struct net *net, void **values,
                           enum isa isa, double within)
{
    struct machine_options options = {.isa = isa, .thread_count = 2};
    struct machine *machine;
    struct error error;

    error_init(&error);
    if (backend_cpu.open(&machine, net->tape, &options, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    for (uint32_t id = 0; id < net->tape->tensor_count; id++) {
        if (is_given(net->tape->tensors[id].role)) {
            assert_int_equal(backend_cpu.write(machine, id, values[id], &error), STATUS_OK);
        }
    }
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    for (uint32_t i = 0; i < net->parameter_count; i++) {
        uint32_t id = net->gradients[i];
        double apart = distance(backend_cpu.peek(machine, id), reference_values(reference, id),
                                net->tape->tensors[id].count);

        if (!(apart < within)) {
            fail_msg("%s: gradient of parameter %u is %.3g away, allowed %.3g", isa_name(isa), i,
                     apart, within);
        }
    }
    backend_cpu.close(machine);
}

/* ---- one case ----------------------------------------------------------- */

struct width {
    struct precision precision;
    double within; /* relative distance that the bits allow, over the few products of a case */
};

static const struct width widths[] = {
    {{14, 128}, 1e-3}, {{14, 16}, 1e-3}, {{16, 0}, 3e-4}, {{22, 0}, 4e-6}};

static void check_width(write_case *write, double spread, const struct width *width)
{
    struct net net = {.spread = spread};
    uint64_t random = 7;
    struct reference *reference;
    struct error error;
    void **values;

    error_init(&error);
    if (write_net(&net, write, width->precision, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    reference = reference_new(net.tape, REFERENCE_DOUBLE);
    values = calloc(net.tape->tensor_count, sizeof(*values));
    assert_non_null(values);
    for (uint32_t id = 0; id < net.tape->tensor_count; id++) {
        if (is_given(net.tape->tensors[id].role)) {
            values[id] = first_values(&net, id, &random);
            reference_write(reference, id, values[id]);
        }
    }
    reference_run(reference, net.tape->op_count);
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa)) {
            compare_engine(reference, &net, values, (enum isa)isa, width->within);
        }
    }
    for (uint32_t i = 0; i < net.parameter_count && width == widths; i++) {
        compare_differences(reference, &net, i);
    }
    for (uint32_t id = 0; id < net.tape->tensor_count; id++) {
        free(values[id]);
    }
    free(values);
    reference_free(reference);
    tape_free(net.tape);
}

static void check_spread(write_case *write, double spread)
{
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        check_width(write, spread, &widths[i]);
    }
}

static void check(write_case *write)
{
    check_spread(write, 0.0);
}

/* ---- element by element ------------------------------------------------- */

static uint32_t write_add_bias(struct net *net)
{
    uint32_t x = cube(net, 3, 4, 5);

    return build_add(net->builder, x, vector(net, 5), 1);
}

static uint32_t write_add_spread(struct net *net)
{
    uint32_t x = cube(net, 3, 4, 5);

    return build_add(net->builder, build_add(net->builder, x, vector(net, 3), 20), vector(net, 4),
                     5);
}

static uint32_t write_add_itself(struct net *net)
{
    uint32_t x = matrix(net, 3, 4);
    uint32_t y = build_add(net->builder, x, x, 1);

    return build_add(net->builder, y, build_add(net->builder, y, x, 1), 1);
}

static void test_gradient_of_add_with_broadcast(void **state)
{
    (void)state;
    check(write_add_bias);
    check(write_add_spread);
}

static void test_gradient_of_add_of_a_tensor_to_itself(void **state)
{
    (void)state;
    check(write_add_itself);
}

static uint32_t write_mul(struct net *net)
{
    uint32_t x = matrix(net, 6, 5);

    return build_mul(net->builder, x, matrix(net, 6, 5), 1);
}

static uint32_t write_mul_spread(struct net *net)
{
    uint32_t x = cube(net, 3, 4, 5);

    x = build_mul(net->builder, x, vector(net, 5), 1);
    x = build_mul(net->builder, x, vector(net, 4), 5);
    return build_mul(net->builder, x, vector(net, 1), 1);
}

static uint32_t write_square(struct net *net)
{
    uint32_t x = matrix(net, 6, 5);

    return build_mul(net->builder, x, x, 1);
}

static void test_gradient_of_mul_with_broadcast(void **state)
{
    (void)state;
    check(write_mul);
    check(write_mul_spread);
    check(write_square);
}

static uint32_t write_scale(struct net *net)
{
    return build_scale(net->builder, matrix(net, 4, 7), -0.375f);
}

static uint32_t write_relu(struct net *net)
{
    return build_unary(net->builder, OP_RELU, vector(net, 41));
}

static uint32_t write_gelu(struct net *net)
{
    return build_unary(net->builder, OP_GELU, vector(net, 41));
}

static uint32_t write_silu(struct net *net)
{
    return build_unary(net->builder, OP_SILU, vector(net, 41));
}

static void test_gradient_of_scale_and_activations(void **state)
{
    (void)state;
    check(write_scale);
    check_spread(write_relu, 0.25);
    check_spread(write_gelu, 0.25); /* to 5 and beyond, where GELU is flat */
    check_spread(write_silu, 0.25);
}

static uint32_t write_rotary(struct net *net)
{
    uint64_t dims[2] = {5, 6};
    uint32_t table = build_tensor(net->builder, "table", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    return build_rotary(net->builder, cube(net, 2, 5, 18), table, 5, 3, false);
}

static uint32_t write_rotary_halves(struct net *net)
{
    uint64_t dims[2] = {5, 6};
    uint32_t table = build_tensor(net->builder, "table", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    return build_rotary(net->builder, cube(net, 2, 5, 18), table, 5, 3, true);
}

static void test_gradient_of_rotary(void **state)
{
    (void)state;
    check(write_rotary);
    check(write_rotary_halves);
}

static uint32_t write_squared_error(struct net *net)
{
    uint32_t a = matrix(net, 4, 6);
    uint32_t inputs[2] = {a, matrix(net, 4, 6)};
    struct op op = op_begin(OP_SQUARED_ERROR, 2, inputs);
    struct output_shape shape = shape_like(net->builder, a);

    op.output_count = 1;
    build_op(net->builder, &op, &shape);
    return build_mean(net->builder, op.outputs[0]);
}

static void test_gradient_of_mean_squared_error(void **state)
{
    (void)state;
    check(write_squared_error);
}

static uint32_t write_dropout_of_a_third(struct net *net)
{
    return build_dropout(net->builder, matrix(net, 9, 11), 1.0 / 3.0, 5, 1234);
}

static void test_gradient_of_dropout(void **state)
{
    (void)state;
    check(write_dropout_of_a_third);
}

/* ---- moving data -------------------------------------------------------- */

static uint32_t write_gather(struct net *net)
{
    uint32_t table = matrix(net, 5, 6);

    /* 23 draws from 5 rows: every row several times. */
    return build_gather(net->builder, table, index_constant(net, 23, 5));
}

static void test_gradient_of_gather(void **state)
{
    (void)state;
    check(write_gather);
}

static uint32_t write_split_all(struct net *net)
{
    uint32_t parts[3];

    build_split(net->builder, parts, 3, matrix(net, 4, 15));
    return build_mul(net->builder, parts[0], build_mul(net->builder, parts[1], parts[2], 1), 1);
}

static uint32_t write_split_some(struct net *net)
{
    uint32_t parts[3];

    build_split(net->builder, parts, 3, matrix(net, 4, 15));
    return build_mul(net->builder, parts[0], parts[2], 1);
}

static void test_gradient_of_split_with_and_without_unused_parts(void **state)
{
    (void)state;
    check(write_split_all);
    check(write_split_some);
}

static uint32_t write_concat(struct net *net)
{
    uint32_t inputs[3] = {matrix(net, 4, 2), matrix(net, 4, 5), matrix(net, 4, 1)};
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

    return build_expand(net->builder, vector(net, 4), 5, 3, dims);
}

static void test_gradient_of_concat_and_expand(void **state)
{
    (void)state;
    check(write_concat);
    check(write_expand);
}

/* ---- pictures ----------------------------------------------------------- */

static uint32_t write_image(struct net *net, enum op_kind kind, int64_t kernel, int64_t stride,
                            int64_t padding)
{
    int64_t image[IMAGE_ATTRIBUTES] = {2, 6, 5, 3, kernel, kernel, stride, padding};

    return build_image_op(net->builder, kind, parameter(net, 4, 2, 6, 5, 3), image);
}

static uint32_t write_patches(struct net *net)
{
    return write_image(net, OP_IM2COL, 3, 1, 1);
}

static uint32_t write_patches_apart(struct net *net)
{
    return write_image(net, OP_IM2COL, 2, 2, 1);
}

/* The adjoint has no short form: its output is the picture. */
static uint32_t write_unpatch(struct net *net)
{
    static const int64_t image[IMAGE_ATTRIBUTES] = {2, 6, 5, 3, 3, 3, 2, 1};
    uint32_t x = matrix(net, 2 * 3 * 3, 27);
    struct op op = op_begin(OP_COL2IM, 1, &x);
    struct output_shape shape = {DTYPE_F32, 4, {2, 6, 5, 3}};

    for (uint32_t i = 0; i < IMAGE_ATTRIBUTES; i++) {
        op_attribute(&op, (uint64_t)image[i]);
    }
    op.output_count = 1;
    build_op(net->builder, &op, &shape);
    return op.outputs[0];
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
    check(write_patches);
    check(write_patches_apart);
    check(write_unpatch);
}

static void test_gradient_of_pools(void **state)
{
    (void)state;
    check_spread(write_max_pool, 0.01);
    check_spread(write_max_pool_overlapping, 0.01);
    check(write_mean_pool);
    check(write_mean_pool_overlapping);
}

/* ---- rows --------------------------------------------------------------- */

static uint32_t write_row_sum(struct net *net)
{
    uint32_t x = matrix(net, 3, 1500);
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
    uint32_t x = matrix(net, 7, 24);
    uint32_t gain = vector(net, 24);

    return build_layer_norm(net->builder, x, gain, vector(net, 24), 1e-5f);
}

static uint32_t write_layer_norm_wide(struct net *net)
{
    uint32_t x = matrix(net, 2, 1100);
    uint32_t gain = vector(net, 1100);

    return build_layer_norm(net->builder, x, gain, vector(net, 1100), 1e-5f);
}

static uint32_t write_rms_norm(struct net *net)
{
    uint32_t x = matrix(net, 7, 24);

    return build_rms_norm(net->builder, x, vector(net, 24), 1e-5f);
}

static uint32_t write_rms_norm_wide(struct net *net)
{
    uint32_t x = matrix(net, 2, 1100);

    return build_rms_norm(net->builder, x, vector(net, 1100), 1e-5f);
}

static void test_gradient_of_row_sum_and_norms(void **state)
{
    (void)state;
    check(write_row_sum);
    check(write_layer_norm);
    check(write_layer_norm_wide);
    check(write_rms_norm);
    check(write_rms_norm_wide);
}

static uint32_t write_softmax(struct net *net)
{
    return build_softmax(net->builder, matrix(net, 5, 13), 2.5f, 0, TENSOR_NONE);
}

static uint32_t write_softmax_causal(struct net *net)
{
    return build_softmax(net->builder, cube(net, 2, 6, 6), 1.5f, 6, TENSOR_NONE);
}

/* Two sequences of three heads; each row sees one to four columns. */
static uint32_t write_softmax_reach(struct net *net)
{
    return build_softmax(net->builder, parameter(net, 4, 2, 3, 6, 6), 1.5f, 6,
                         index_constant(net, 12, 4));
}

static uint32_t write_softmax_wide(struct net *net)
{
    return build_softmax(net->builder, matrix(net, 2, 1300), 3.0f, 0, TENSOR_NONE);
}

static void test_gradient_of_softmax_plain_and_causal(void **state)
{
    (void)state;
    check(write_softmax);
    check(write_softmax_causal);
    check(write_softmax_reach);
    check(write_softmax_wide);
}

static uint32_t write_cross_entropy(struct net *net)
{
    uint32_t logits = matrix(net, 9, 11);

    return build_cross_entropy(net->builder, logits, index_constant(net, 9, 11));
}

static uint32_t write_cross_entropy_ignoring(struct net *net)
{
    uint32_t logits = matrix(net, 9, 11);

    net->ignores = true;
    return build_cross_entropy(net->builder, logits, index_constant(net, 9, 11));
}

static uint32_t write_cross_entropy_wide(struct net *net)
{
    uint32_t logits = matrix(net, 3, 1300);

    return build_cross_entropy(net->builder, logits, index_constant(net, 3, 1300));
}

static void test_gradient_of_cross_entropy(void **state)
{
    (void)state;
    check(write_cross_entropy);
    check(write_cross_entropy_ignoring);
    check(write_cross_entropy_wide);
}

/* ---- contractions ------------------------------------------------------- */

static uint32_t write_linear(struct net *net)
{
    uint32_t x = cube(net, 3, 4, 20);

    return build_linear(net->builder, x, matrix(net, 6, 20));
}

static uint32_t write_linear_transposed(struct net *net)
{
    uint32_t x = cube(net, 3, 4, 20);

    return build_linear_transposed(net->builder, x, matrix(net, 20, 6));
}

/* A weight used twice, once transposed, like a tied embedding. */
static uint32_t write_tied(struct net *net)
{
    uint32_t table = matrix(net, 7, 12);
    uint32_t x = build_gather(net->builder, table, index_constant(net, 10, 7));

    return build_linear(net->builder, build_linear_transposed(net->builder, x, matrix(net, 12, 12)),
                        table);
}

static void test_gradient_of_linear_layers_and_tied_weights(void **state)
{
    (void)state;
    check(write_linear);
    check(write_linear_transposed);
    check(write_tied);
}

/* Six axes of a (2,3 | 2,5 | 3,4) and b (2,3 | 4,2 | 3,4), none where the plain order has it. */
static uint32_t write_permuted(struct net *net)
{
    uint32_t a = vector(net, 720);
    uint32_t b = vector(net, 576);
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
    uint32_t x = matrix(net, 6, 20);

    return build_contract(net->builder, x, &rows, x, &rows, strides, 0, 2, dims);
}

static void test_gradient_of_contract_with_permuted_strides(void **state)
{
    (void)state;
    check(write_permuted);
    check(write_gram);
}

static uint32_t write_heads(struct net *net, uint64_t heads, uint64_t kv_heads, double share)
{
    struct model_options options = {.dropout = share, .seed = 5};
    struct model_writer writer = {.builder = net->builder, .options = &options};
    uint32_t q = cube(net, 2, 5, heads * 4);
    uint32_t k = cube(net, 2, 5, kv_heads * 4);
    uint32_t v = cube(net, 2, 5, kv_heads * 4);

    return write_attention(&writer, q, k, v, heads, kv_heads);
}

static uint32_t write_attention_plain(struct net *net)
{
    return write_heads(net, 3, 3, 0.0);
}

static uint32_t write_attention_grouped(struct net *net)
{
    return write_heads(net, 6, 2, 0.0);
}

static uint32_t write_attention_dropout(struct net *net)
{
    return write_heads(net, 4, 2, 0.25);
}

static void test_gradient_of_causal_attention_with_grouped_heads(void **state)
{
    (void)state;
    check(write_attention_plain);
    check(write_attention_grouped);
    check(write_attention_dropout);
}

/* Causal probabilities transposed: k runs down the columns, where no mask applies. */
static uint32_t write_causal_across(struct net *net)
{
    static const uint64_t strides[6] = {0, 0, 0, 4, 0, 1};
    static const uint64_t dims[2] = {6, 4};
    uint32_t p = build_softmax(net->builder, matrix(net, 6, 6), 1.0f, 6, TENSOR_NONE);
    struct view columns = view_transposed(6, 6);
    struct view rows = view_matrix(4, 6);

    return build_contract(net->builder, p, &columns, matrix(net, 4, 6), &rows, strides, 0, 2, dims);
}

static void test_gradient_of_causal_probabilities_in_another_view(void **state)
{
    (void)state;
    check(write_causal_across);
}

/* ---- refusals ----------------------------------------------------------- */

static void check_refused(write_case *write, const char *words)
{
    struct net net = {0};
    struct error error;

    error_init(&error);
    assert_int_not_equal(write_net(&net, write, PRECISION_DEFAULT, &error), STATUS_OK);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
}

static uint32_t write_reduce(struct net *net)
{
    return build_reduce(net->builder, matrix(net, 4, 6), 1, 6);
}

static void test_kind_without_gradient_rule_is_named(void **state)
{
    (void)state;
    check_refused(write_reduce, "'contract-ones' has no gradient rule");
}

static uint32_t write_part_of_turn(struct net *net)
{
    uint32_t x = vector(net, 7);

    return build_add(net->builder, x, vector(net, 3), 1);
}

static void test_operand_read_in_part_of_a_turn_has_no_gradient(void **state)
{
    (void)state;
    check_refused(write_part_of_turn, "whole turns");
}

static uint32_t write_causal_product(struct net *net)
{
    static const uint64_t strides[6] = {0, 0, 0, 6, 0, 1};
    static const uint64_t dims[2] = {6, 6};
    struct view rows = view_matrix(6, 4);
    uint32_t x = matrix(net, 6, 4);

    return build_contract(net->builder, x, &rows, matrix(net, 6, 4), &rows, strides, 6, 2, dims);
}

static void test_causal_product_without_softmax_has_no_gradient(void **state)
{
    (void)state;
    check_refused(write_causal_product, "causal product");
}

/* The row maximum of a softmax has no gradient rule, so using it must fail. */
static uint32_t write_side_output(struct net *net)
{
    uint32_t p = build_softmax(net->builder, matrix(net, 5, 6), 1.0f, 0, TENSOR_NONE);
    const struct op *op = &net->builder->tape.ops[net->builder->notes[p].producer];

    return build_scale(net->builder, op->outputs[1], 2.0f);
}

static void test_gradient_of_a_side_output_is_refused(void **state)
{
    (void)state;
    check_refused(write_side_output, "softmax");
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
        cmocka_unit_test(test_gradient_of_split_with_and_without_unused_parts),
        cmocka_unit_test(test_gradient_of_concat_and_expand),
        cmocka_unit_test(test_gradient_of_patches_and_their_adjoint),
        cmocka_unit_test(test_gradient_of_pools),
        cmocka_unit_test(test_gradient_of_row_sum_and_norms),
        cmocka_unit_test(test_gradient_of_softmax_plain_and_causal),
        cmocka_unit_test(test_gradient_of_cross_entropy),
        cmocka_unit_test(test_gradient_of_linear_layers_and_tied_weights),
        cmocka_unit_test(test_gradient_of_contract_with_permuted_strides),
        cmocka_unit_test(test_gradient_of_causal_attention_with_grouped_heads),
        cmocka_unit_test(test_gradient_of_causal_probabilities_in_another_view),
        cmocka_unit_test(test_kind_without_gradient_rule_is_named),
        cmocka_unit_test(test_operand_read_in_part_of_a_turn_has_no_gradient),
        cmocka_unit_test(test_causal_product_without_softmax_has_no_gradient),
        cmocka_unit_test(test_gradient_of_a_side_output_is_refused),
        cmocka_unit_test(test_gradient_of_what_the_loss_ignores_is_none),
    };

    return cmocka_run_group_tests_name("reverse", tests, NULL, NULL);
}
