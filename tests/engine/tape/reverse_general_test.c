/*
 * reverse_general_test.c - the gradients of the general kinds are the derivatives of their
 * functions.
 *
 * Method: gradient_check.h, for each function, for each pattern of repeated axes, and for operands
 * that are one tensor.
 */
#include <string.h>

#include "tests/support/numeric/gradient_check.h"
#include "tests/support/test.h"

/* ---- MAP ---------------------------------------------------------------- */

static enum map_function mapped;

static uint32_t write_map(struct net *net)
{
    uint32_t x = net_matrix(net, 5, 9);

    return build_map(net->builder, mapped, x);
}

/* x^2 + 0.25: positive */
static uint32_t write_map_above(struct net *net)
{
    uint32_t x = net_matrix(net, 5, 9);
    uint32_t low = build_fill(net->builder, 0.25f, 1, (const uint64_t[]){1});

    return build_map(net->builder, mapped,
                     build_add(net->builder, build_mul(net->builder, x, x, 1), low, 1));
}

static void test_gradient_of_every_function_of_one_element(void **state)
{
    static const enum map_function anywhere[] = {MAP_NEG, MAP_EXP, MAP_TANH, MAP_SIGMOID,
                                                 MAP_ERF, MAP_SIN, MAP_COS,  MAP_GELU_ERF};
    static const enum map_function above[] = {MAP_SQRT, MAP_RSQRT, MAP_RECIPROCAL, MAP_LOG};

    (void)state;
    for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++) {
        mapped = anywhere[i];
        gradient_check_spread(write_map, 0.25); /* to -5 and 5 */
    }
    for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
        mapped = above[i];
        gradient_check(write_map_above);
    }
    mapped = MAP_ABS;
    gradient_check_spread(write_map, 0.25);
}

static uint32_t write_step(struct net *net)
{
    uint32_t x = net_matrix(net, 5, 9);

    return build_binary(net->builder, BINARY_MUL, build_map(net->builder, mapped, x), x);
}

/* The gradient of f(x) * x is f(x) where f is a step. */
static void test_steps_pass_no_gradient(void **state)
{
    static const enum map_function steps[] = {MAP_SIGN, MAP_FLOOR, MAP_CEIL, MAP_ROUND};

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        mapped = steps[i];
        gradient_check_spread(write_step, 0.3);
    }
}

static void test_slope_has_no_gradient(void **state)
{
    (void)state;
    mapped = MAP_GELU_ERF_SLOPE;
    gradient_check_refused(write_map, "'gelu-erf-slope' has no gradient rule");
}

/* ---- BINARY ------------------------------------------------------------- */

static enum binary_function paired;

static uint32_t shaped(struct net *net, const uint64_t dims[4])
{
    return net_parameter(net, 4, dims[0], dims[1], dims[2], dims[3]);
}

/* Away from zero. */
static uint32_t above(struct net *net, uint32_t x)
{
    uint32_t low = build_fill(net->builder, 0.5f, 1, (const uint64_t[]){1});

    return build_add(net->builder, build_mul(net->builder, x, x, 1), low, 1);
}

static const uint64_t whole[4] = {2, 3, 4, 5};
static uint64_t repeated[4];

static uint32_t write_first_repeated(struct net *net)
{
    uint32_t a = shaped(net, repeated);
    uint32_t b = shaped(net, whole);

    net->slack = 4.0; /* 120 terms of both signs may come to little */

    return build_binary(net->builder, paired, a, paired == BINARY_DIV ? above(net, b) : b);
}

static uint32_t write_second_repeated(struct net *net)
{
    uint32_t a = shaped(net, whole);
    uint32_t b = shaped(net, repeated);

    net->slack = 4.0;

    return build_binary(net->builder, paired, a, paired == BINARY_DIV ? above(net, b) : b);
}

static void test_gradient_of_every_function_of_two_and_pattern_of_axes(void **state)
{
    static const enum binary_function smooth[] = {BINARY_ADD, BINARY_SUB, BINARY_MUL,
                                                  BINARY_DIV, BINARY_MAX, BINARY_MIN};

    (void)state;
    for (uint32_t pattern = 0; pattern < 16; pattern++) {
        for (uint32_t axis = 0; axis < 4; axis++) {
            repeated[axis] = (pattern >> axis & 1) != 0 ? 1 : whole[axis];
        }
        paired = smooth[pattern % 6];
        gradient_check(write_first_repeated);
        paired = smooth[(pattern + pattern / 6 + 3) % 6];
        gradient_check(write_second_repeated);
    }
}

static uint32_t write_both_repeated(struct net *net)
{
    uint32_t a = net_parameter(net, 3, 4, 1, 5, 0);
    uint32_t b = net_matrix(net, 3, 1);

    return build_binary(net->builder, paired, a, paired == BINARY_DIV ? above(net, b) : b);
}

static uint32_t write_itself(struct net *net)
{
    uint32_t x = above(net, net_matrix(net, 4, 6));

    return build_binary(net->builder, paired, x, x);
}

static void test_gradient_of_operands_that_both_repeat_or_are_one(void **state)
{
    (void)state;
    for (int function = BINARY_ADD; function <= BINARY_MIN; function++) {
        paired = (enum binary_function)function;
        gradient_check(write_both_repeated);
        gradient_check(write_itself); /* of a maximum of equals: half to each */
    }
}

static float exponent;

static uint32_t write_power(struct net *net)
{
    uint32_t x = above(net, net_matrix(net, 5, 7));

    return build_binary(net->builder, BINARY_POW, x,
                        build_fill(net->builder, exponent, 1, (const uint64_t[]){1}));
}

static uint32_t write_exponent(struct net *net)
{
    uint32_t x = net_matrix(net, 5, 7);

    return build_binary(net->builder, BINARY_POW, above(net, x), x);
}

/* y = x^p + x, so that the gradient is there where p is 0. */
static uint32_t write_power_and_base(struct net *net)
{
    uint32_t x = net_matrix(net, 5, 7);
    uint32_t y = build_binary(net->builder, BINARY_POW, x,
                              build_fill(net->builder, exponent, 1, (const uint64_t[]){1}));

    return build_binary(net->builder, BINARY_ADD, y, x);
}

static void test_gradient_of_powers(void **state)
{
    static const float above_zero[] = {0.5f, 1.5f, -0.75f, -2.0f, 1.0f};
    static const float anywhere[] = {0.0f, 1.0f, 2.0f, 3.0f};

    (void)state;
    for (size_t i = 0; i < sizeof(above_zero) / sizeof(above_zero[0]); i++) {
        exponent = above_zero[i];
        gradient_check(write_power);
    }
    for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++) {
        exponent = anywhere[i];
        gradient_check(write_power_and_base);
    }
    gradient_check_refused(write_exponent, "'pow' has no gradient rule");
}

/* ---- SELECT ------------------------------------------------------------- */

static uint32_t write_select(struct net *net)
{
    uint32_t a = net_parameter(net, 3, 4, 1, 5, 0);
    uint32_t b = net_cube(net, 4, 3, 5);
    uint32_t c = build_binary(net->builder, BINARY_LESS, b, net_matrix(net, 3, 1));
    /* The limits have a gradient of their own, through d. */
    uint32_t d = build_select(net->builder, c, a, b);

    return build_binary(net->builder, BINARY_MUL, d, net->parameters[2]);
}

static uint32_t write_clamp(struct net *net)
{
    uint32_t x = net_matrix(net, 9, 5);
    uint32_t low = build_fill(net->builder, -0.4f, 1, (const uint64_t[]){1});
    uint32_t high = build_fill(net->builder, 0.3f, 1, (const uint64_t[]){1});

    x = build_binary(net->builder, BINARY_MAX, x, low);
    return build_binary(net->builder, BINARY_MIN, x, high);
}

static void test_gradient_of_select_and_clamp(void **state)
{
    (void)state;
    gradient_check(write_select);
    gradient_check(write_clamp);
}

/* ---- MOVE and PLACE ----------------------------------------------------- */

static uint32_t write_permuted(struct net *net)
{
    static const uint32_t order[3] = {2, 0, 1};
    uint32_t x = build_permute(net->builder, net_cube(net, 3, 4, 5), order);

    return build_binary(net->builder, BINARY_MUL, x, net_matrix(net, 3, 4));
}

static uint32_t write_sliced(struct net *net)
{
    static const uint64_t starts[3] = {0, 5, 1};
    static const uint64_t counts[3] = {2, 3, 2};
    static const int64_t steps[3] = {1, -2, 3};

    return build_slice(net->builder, net_cube(net, 2, 6, 5), starts, counts, steps);
}

/* Three groups of repeated axes, and two that turn round. */
static uint32_t write_repeated_move(struct net *net)
{
    static const struct move move = {{2, 3, 2, 4, 3}, {0, -4, 0, 1, 0}, 8};
    static const uint64_t dims[2] = {12, 12};

    net->slack = 4.0;
    return build_move(net->builder, net_matrix(net, 3, 4), &move, 2, dims);
}

static uint32_t write_padded(struct net *net)
{
    static const uint64_t before[2] = {1, 2};
    static const uint64_t after[2] = {0, 3};
    uint32_t x = build_pad(net->builder, net_matrix(net, 3, 4), before, after, 0.5f);

    return build_binary(net->builder, BINARY_MUL, x, x);
}

static uint32_t write_joined(struct net *net)
{
    uint32_t parts[3];

    parts[0] = net_cube(net, 2, 3, 4);
    parts[1] = net_cube(net, 2, 1, 4);
    parts[2] = parts[0];
    parts[0] = build_join(net->builder, parts, 3, 1);
    return build_binary(net->builder, BINARY_MUL, parts[0], parts[0]);
}

/* The base of a place: under a part of it, and one number around it. */
static uint32_t write_base(struct net *net)
{
    static const struct move move = {{1, 1, 1, 2, 3}, {0, 0, 0, -6, 2}, 13};
    static const uint64_t dims[2] = {4, 6};
    uint32_t x = net_matrix(net, 2, 3);
    uint32_t y = build_place(net->builder, x, net_matrix(net, 4, 6), &move, 2, dims);
    uint32_t z = build_place(net->builder, x, net_vector(net, 1), &move, 2, dims);

    net->slack = 4.0;
    return build_binary(net->builder, BINARY_ADD, y, z);
}

/* The second operand is read in another order: its gradient goes back by a move. */
static uint32_t write_crossed(struct net *net)
{
    uint32_t inputs[2] = {net_matrix(net, 4, 5), net_matrix(net, 5, 4)};
    static const int64_t attributes[BINARY_ATTRIBUTES] = {BINARY_MUL, 1, 1, 4, 5, 0, 0,
                                                          5,          1, 0, 0, 1, 4};
    struct op op = op_begin(OP_BINARY, 2, inputs);
    struct output_shape shape = shape_like(net->builder, inputs[0]);

    for (uint32_t i = 0; i < BINARY_ATTRIBUTES; i++) {
        op_attribute(&op, (uint64_t)attributes[i]);
    }
    op.output_count = 1;
    build_op(net->builder, &op, &shape);
    return op.outputs[0];
}

static void test_gradient_of_moves_and_places(void **state)
{
    (void)state;
    gradient_check(write_permuted);
    gradient_check(write_sliced);
    gradient_check(write_repeated_move);
    gradient_check(write_padded);
    gradient_check(write_joined);
    gradient_check(write_base);
    gradient_check(write_crossed);
}

static uint32_t write_through_types(struct net *net)
{
    uint32_t x = net_matrix(net, 5, 6);

    x = build_cast(net->builder, build_cast(net->builder, x, DTYPE_BF16), DTYPE_F32);
    x = build_cast(net->builder, build_cast(net->builder, x, DTYPE_F16), DTYPE_F32);
    net->slack = 1000.0; /* the reference does not round */
    return build_binary(net->builder, BINARY_MUL, x, net_matrix(net, 5, 6));
}

static void test_gradient_goes_straight_through_rounding(void **state)
{
    (void)state;
    gradient_check(write_through_types);
}

static uint32_t write_slice_past_the_end(struct net *net)
{
    static const uint64_t starts[2] = {0, 3};
    static const uint64_t counts[2] = {2, 3};
    static const int64_t steps[2] = {1, 1};

    return build_slice(net->builder, net_matrix(net, 4, 5), starts, counts, steps);
}

static uint32_t write_join_of_other_widths(struct net *net)
{
    uint32_t parts[2];

    parts[0] = net_matrix(net, 3, 4);
    parts[1] = net_matrix(net, 2, 4);
    return build_join(net->builder, parts, 2, 1);
}

static void test_slices_and_joins_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    gradient_check_refused(write_slice_past_the_end, "outside of axis 1");
    gradient_check_refused(write_join_of_other_widths, "does not join");
}

/* ---- shapes ------------------------------------------------------------- */

static void test_shapes_that_do_not_fit_are_refused_by_name(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    uint32_t a = build_tensor(builder, "a", DTYPE_F32, ROLE_STATE, 2, (const uint64_t[]){4, 6});
    uint32_t b = build_tensor(builder, "narrow", DTYPE_F32, ROLE_STATE, 1, (const uint64_t[]){3});

    (void)build_binary(builder, BINARY_ADD, a, b);
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "narrow"));
    builder_free(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_every_function_of_one_element),
        cmocka_unit_test(test_steps_pass_no_gradient),
        cmocka_unit_test(test_slope_has_no_gradient),
        cmocka_unit_test(test_gradient_of_every_function_of_two_and_pattern_of_axes),
        cmocka_unit_test(test_gradient_of_operands_that_both_repeat_or_are_one),
        cmocka_unit_test(test_gradient_of_powers),
        cmocka_unit_test(test_gradient_of_select_and_clamp),
        cmocka_unit_test(test_gradient_of_moves_and_places),
        cmocka_unit_test(test_gradient_goes_straight_through_rounding),
        cmocka_unit_test(test_slices_and_joins_that_do_not_fit_are_refused),
        cmocka_unit_test(test_shapes_that_do_not_fit_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
