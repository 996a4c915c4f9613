/*
 * builder_test.c - builders share equal operations, keep their first failure, and survive misuse.
 *
 * A failed builder answers every call with tensor 0 and does nothing. Models are plain sequences of
 * calls, so any call may come after a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/view.h"
#include "engine/tape/builder_core.h"
#include "tests/support/test.h"

static const uint64_t one[1] = {1};

static uint32_t state_of(struct builder *builder, const char *name, uint64_t rows, uint64_t columns)
{
    uint64_t dims[2] = {rows, columns};

    return build_tensor(builder, name, DTYPE_F32, ROLE_STATE, 2, dims);
}

/* builder_finish() fails, and the error holds the words. */
static void assert_failed(struct builder *builder, const char *words)
{
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    assert_int_not_equal(builder_finish(&tape, builder, &error), STATUS_OK);
    assert_null(tape);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
    builder_free(builder);
}

static struct tape *finish(struct builder *builder)
{
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    if (builder_finish(&tape, builder, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    builder_free(builder);
    return tape;
}

/* ---- sharing ------------------------------------------------------------ */

static void test_equal_requests_quantize_once(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = state_of(builder, "x", 6, 8);
    struct view rows = view_matrix(6, 8);
    struct view columns = view_transposed(8, 6);
    struct view same = rows;
    struct quantized first = build_quantize(builder, x, &rows, PRECISION_DEFAULT);
    struct quantized again;

    (void)state;
    same.strides[0] = 999; /* of an axis of length one: means nothing */
    again = build_quantize(builder, x, &same, PRECISION_DEFAULT);
    assert_int_equal(first.q, again.q);
    assert_int_equal(first.exponents, again.exponents);
    assert_int_equal(builder->tape.op_count, 1);
    again = build_quantize(builder, x, &columns, PRECISION_DEFAULT);
    assert_int_not_equal(first.q, again.q);
    again = build_quantize(builder, x, &rows, (struct precision){15, 128});
    assert_int_not_equal(first.q, again.q);
    again = build_quantize(builder, x, &rows, (struct precision){14, 0});
    assert_int_not_equal(first.q, again.q);
    assert_int_equal(builder->tape.op_count, 4);
    again = build_quantize(builder, x, &rows, PRECISION_DEFAULT);
    assert_int_equal(first.q, again.q);
    tape_free(finish(builder));
}

static void test_step_is_made_once_and_outside_of_scopes(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape;
    uint32_t step;

    (void)state;
    build_scope(builder, "h.0");
    step = build_step(builder);
    assert_int_equal(build_step(builder), step);
    assert_string_equal(builder_tensor(builder, step)->name, "step");
    assert_string_equal(builder_tensor(builder, state_of(builder, "w", 2, 2))->name, "h.0.w");
    tape = finish(builder);
    assert_int_equal(tape->op_count, 1);
    assert_int_equal(tape->states[0].before, step);
    assert_int_not_equal(tape->states[0].after, step);
    tape_free(tape);
}

static void test_sum_of_one_element_is_that_element(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 1, (const uint64_t[]){5});

    (void)state;
    assert_int_equal(build_reduce(builder, x, 1, 5), x);
    assert_int_not_equal(build_reduce(builder, x, 5, 1), x);
    tape_free(finish(builder));
}

static void test_tables_grow_past_their_first_room(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape;
    uint32_t x = state_of(builder, "x", 2, 2);
    uint32_t y = x;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        y = build_scale(builder, y, 0.5f);
    }
    for (int i = 0; i < 200; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "w%d", i);
        (void)state_of(builder, name, 1, 1);
    }
    build_after(builder, x, y);
    tape = finish(builder);
    assert_int_equal(tape->op_count, 5000);
    assert_int_equal(tape->state_count, 201);
    assert_int_equal(tape->states[0].after, y);
    tape_free(tape);
}

/* ---- failures ----------------------------------------------------------- */

static void test_first_failure_is_kept(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);

    (void)state;
    (void)build_tensor(builder, "empty", DTYPE_F32, ROLE_STATE, 1, (const uint64_t[]){0});
    (void)build_tensor(builder, "deep", DTYPE_F32, ROLE_STATE, 5,
                       (const uint64_t[]){1, 1, 1, 1, 1});
    build_after(builder, 99, 98);
    assert_failed(builder, "'empty' is empty");
}

static void test_unsound_tensors_are_refused(void **state)
{
    char name[TENSOR_NAME_MAX + 2];
    struct builder *builder = builder_new(PRECISION_DEFAULT);

    (void)state;
    (void)build_tensor(builder, "deep", DTYPE_F32, ROLE_STATE, 5,
                       (const uint64_t[]){1, 1, 1, 1, 1});
    assert_failed(builder, "'deep': rank 5");
    builder = builder_new(PRECISION_DEFAULT);
    (void)state_of(builder, "huge", UINT64_C(1) << 32, UINT64_C(1) << 32);
    assert_failed(builder, "'huge' is empty or over");
    builder = builder_new(PRECISION_DEFAULT);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    (void)state_of(builder, name, 1, 1);
    assert_failed(builder, "is too long");
    builder = builder_new(PRECISION_DEFAULT);
    (void)state_of(builder, "twin", 1, 1);
    (void)state_of(builder, "twin", 1, 1);
    assert_failed(builder, "two tensors have the name 'twin'");
}

static void test_operation_that_does_not_fit_names_its_scope(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t a = state_of(builder, "a", 2, 3);
    uint32_t b = state_of(builder, "b", 3, 4);
    uint32_t inputs[2] = {a, b};
    struct op op = op_begin(OP_BINARY, 2, inputs);
    struct output_shape shape = shape_like(builder, a);

    (void)state;
    build_scope(builder, "h.7");
    binary_set(&op, BINARY_SQUARED_ERROR, 6, 1, 6);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    assert_failed(builder, "h.7: operation 0: binary: b 'b' has 12 elements, must have 6");
}

static void test_products_that_do_not_fit_are_refused(void **state)
{
    static const uint64_t strides[6] = {0, 0, 0, 3, 0, 1};
    static const uint64_t dims[2] = {2, 3};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = state_of(builder, "x", 2, 3);
    uint32_t w = state_of(builder, "w", 5, 4);
    struct view x_rows = view_matrix(2, 3);
    struct view w_rows = view_matrix(5, 4);

    (void)state;
    (void)build_linear(builder, x, w);
    assert_failed(builder, "'x' does not end in an axis of 4");
    builder = builder_new(PRECISION_DEFAULT);
    x = state_of(builder, "x", 2, 3);
    w = state_of(builder, "w", 5, 4);
    (void)build_contract(builder, x, &x_rows, w, &w_rows, strides, 0, 2, dims);
    assert_failed(builder, "do not fit each other");
    builder = builder_new(PRECISION_DEFAULT);
    x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 1, (const uint64_t[]){3});
    (void)build_linear(builder, x, x);
    assert_failed(builder, "the weight 'x' is not a matrix");
}

static void test_sums_in_broken_turns_are_refused(void **state)
{
    static const uint64_t turns[][2] = {{0, 5}, {5, 0}, {1, 4}, {11, 1}, {UINT64_MAX, UINT64_MAX}};

    (void)state;
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        struct builder *builder = builder_new(PRECISION_DEFAULT);

        (void)build_reduce(builder, state_of(builder, "x", 2, 5), turns[i][0], turns[i][1]);
        assert_failed(builder, "cannot sum 10 elements");
    }
}

static void test_splits_dropouts_and_windows_are_checked(void **state)
{
    static const int64_t still[MEAN_POOL_ATTRIBUTES] = {1, 4, 4, 1, 2, 2, 0, 0, 0, 0, 0, 0, 1, 1};
    static const int64_t wide[MEAN_POOL_ATTRIBUTES] = {1, 4, 4, 1, 9, 9, 1, 1, 0, 0, 0, 0, 1, 1};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t parts[OP_OUTPUTS_MAX] = {0};

    (void)state;
    build_split(builder, parts, 3, state_of(builder, "x", 2, 4));
    assert_failed(builder, "cannot split a width of 4 into 3 parts");
    builder = builder_new(PRECISION_DEFAULT);
    build_split(builder, parts, OP_OUTPUTS_MAX + 1, state_of(builder, "x", 2, 9));
    assert_failed(builder, "cannot split");
    builder = builder_new(PRECISION_DEFAULT);
    (void)build_dropout(builder, state_of(builder, "x", 2, 4), 1.0, 0, 0);
    assert_failed(builder, "a dropout share of 1");
    builder = builder_new(PRECISION_DEFAULT);
    (void)build_image_op(builder, OP_IM2COL, state_of(builder, "x", 4, 4), still);
    assert_failed(builder, "a stride of 0");
    builder = builder_new(PRECISION_DEFAULT);
    (void)build_image_op(builder, OP_MAX_POOL, state_of(builder, "x", 4, 4), wide);
    assert_failed(builder, "max-pool");
}

static void test_after_of_no_state_is_refused(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t y = build_fill(builder, 1.0f, 1, one);

    (void)state;
    build_after(builder, y, y);
    assert_failed(builder, "tensor 0 is not a state");
}

static void test_finished_builder_is_spent(void **state)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;

    (void)state;
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    tape_free(tape);
    (void)state_of(builder, "x", 1, 1);
    assert_failed(builder, "has finished its tape");
}

/* Every call, on a builder that failed before it had a tensor. */
static void test_every_call_survives_a_failed_builder(void **state)
{
    static const int64_t image[MEAN_POOL_ATTRIBUTES] = {1, 4, 4, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1};
    static const uint64_t dims[2] = {2, 3};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct view view = view_matrix(2, 3);
    uint32_t parts[2];
    uint32_t of[1] = {0};

    (void)state;
    builder_fail(builder, STATUS_USAGE, "failed at once");
    build_scope(builder, "scope");
    assert_int_equal(state_of(builder, "x", 2, 3), 0);
    (void)build_step(builder);
    (void)build_schedule(builder, 0, 3, 1);
    (void)build_fill(builder, 1.0f, 2, dims);
    (void)build_gather(builder, 0, 0);
    (void)build_add(builder, 0, 0, 1);
    (void)build_mul(builder, 0, 0, 1);
    (void)build_scale(builder, 0, 1.0f);
    (void)build_map(builder, MAP_RELU, 0);
    (void)build_binary(builder, BINARY_ADD, 0, 0);
    (void)build_expand(builder, 0, 1, 2, dims);
    build_split(builder, parts, 2, 0);
    (void)build_layer_norm(builder, 0, 0, 0, 1e-5f);
    (void)build_rms_norm(builder, 0, 0, 1e-5f);
    (void)build_softmax(builder, 0, 1.0f, 0, TENSOR_NONE);
    (void)build_rotary(builder, 0, 0, 0, 1, false);
    (void)build_dropout(builder, 0, 0.5, 0, 0);
    (void)build_image_op(builder, OP_MAX_POOL, 0, image);
    (void)build_cross_entropy(builder, 0, 0);
    (void)build_mean(builder, 0);
    (void)build_quantize(builder, 0, &view, PRECISION_DEFAULT);
    (void)build_contract(builder, 0, &view, 0, &view, view.strides, 0, 2, dims);
    (void)build_linear(builder, 0, 0);
    (void)build_linear_transposed(builder, 0, 0);
    (void)build_reduce(builder, 0, 1, 1);
    (void)build_square_sum(builder, 0);
    build_after(builder, 0, 0);
    build_output(builder, "y", 0);
    build_gradients(builder, parts, 0, of, 1);
    assert_int_equal(parts[0], TENSOR_NONE);
    assert_int_equal(builder->tape.op_count, 0);
    assert_failed(builder, "failed at once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_requests_quantize_once),
        cmocka_unit_test(test_step_is_made_once_and_outside_of_scopes),
        cmocka_unit_test(test_sum_of_one_element_is_that_element),
        cmocka_unit_test(test_tables_grow_past_their_first_room),
        cmocka_unit_test(test_first_failure_is_kept),
        cmocka_unit_test(test_unsound_tensors_are_refused),
        cmocka_unit_test(test_operation_that_does_not_fit_names_its_scope),
        cmocka_unit_test(test_products_that_do_not_fit_are_refused),
        cmocka_unit_test(test_sums_in_broken_turns_are_refused),
        cmocka_unit_test(test_splits_dropouts_and_windows_are_checked),
        cmocka_unit_test(test_after_of_no_state_is_refused),
        cmocka_unit_test(test_finished_builder_is_spent),
        cmocka_unit_test(test_every_call_survives_a_failed_builder),
    };

    return cmocka_run_group_tests_name("builder", tests, NULL, NULL);
}
