/*
 * Goal: the gradients of what build_rows.c and build_sum_by_index() write: several elements of each
 * row, taken, sent, put in order, read in another shape, and rows that are summed by an index.
 * Method: support/numeric/gradient_check.h; places repeat, and one scatter is longer than an
 * operation takes. What does not fit is refused.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/support/numeric/gradient_check.h"

/* Four elements of each row, some of them twice. */
static uint32_t write_take(struct net *net)
{
    return build_take(net->builder, net_matrix(net, 9, 5), net_index(net, 36, 5));
}

static uint32_t write_scatter_add(struct net *net)
{
    const uint32_t x = net_matrix(net, 9, 4);

    return build_scatter(net->builder, SCATTER_ADD, net_index(net, 36, 5), x,
                         net_matrix(net, 9, 5));
}

/* More places of a row than one operation takes. */
static uint32_t write_scatter_long(struct net *net)
{
    const uint32_t x = net_matrix(net, 2, 1500);

    return build_scatter(net->builder, SCATTER_ADD, net_index(net, 3000, 7), x,
                         net_matrix(net, 2, 7));
}

/* One place of each row: none is replaced by another one. */
static uint32_t write_scatter_last(struct net *net)
{
    const uint32_t x = net_matrix(net, 9, 1);

    return build_scatter(net->builder, SCATTER_LAST, net_index(net, 9, 5), x,
                         net_matrix(net, 9, 5));
}

static uint32_t write_sort(struct net *net)
{
    struct sorted sorted;

    build_sort(net->builder, &sorted, net_matrix(net, 4, 11), true);
    return sorted.y;
}

/* Read in a shape of other rows: the gradient comes in that shape. */
static uint32_t read_as_column(struct net *net, uint32_t x)
{
    const uint64_t dims[2] = {builder_tensor(net->builder, x)->count, 1};

    return build_reshape(net->builder, build_scale(net->builder, x, 1.5f), 2, dims);
}

static uint32_t write_take_column(struct net *net)
{
    return read_as_column(net, write_take(net));
}

static uint32_t write_scatter_add_column(struct net *net)
{
    return read_as_column(net, write_scatter_add(net));
}

static uint32_t write_scatter_last_column(struct net *net)
{
    return read_as_column(net, write_scatter_last(net));
}

static uint32_t write_sort_column(struct net *net)
{
    return read_as_column(net, write_sort(net));
}

static uint32_t write_sum_by_index(struct net *net)
{
    const uint64_t dims[2] = {5, 6};
    const uint32_t x = net_matrix(net, 23, 6);

    return build_sum_by_index(net->builder, net_index(net, 23, 5), x, 2, dims);
}

static void test_gradient_of_several_elements_a_row(void **state)
{
    (void)state;
    gradient_check(write_take);
    gradient_check(write_scatter_add);
    gradient_check(write_scatter_long);
    gradient_check(write_scatter_last);
    gradient_check_spread(write_sort, 0.01);
    gradient_check(write_sum_by_index);
}

static void test_gradient_of_rows_that_are_read_in_another_shape(void **state)
{
    (void)state;
    gradient_check(write_take_column);
    gradient_check(write_scatter_add_column);
    gradient_check(write_scatter_last_column);
    gradient_check_spread(write_sort_column, 0.01);
}

/* Places that are no whole rows. */
static void test_places_of_no_rows_are_refused(void **state)
{
    const uint64_t dims[2] = {4, 6};
    struct builder *builder = builder_new((struct precision){22, 0});
    struct tape *tape = NULL;
    struct error error;

    (void)state;
    assert_non_null(builder);
    const uint32_t base = build_fill(builder, 0.0f, 2, dims);
    const uint32_t three = build_fill(builder, 0.0f, 1, (const uint64_t[]){3});

    (void)build_scatter(builder, SCATTER_ADD, three, three, base);
    assert_true(builder_failed(builder));
    error_init(&error);
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_BAD_FORMAT);
    builder_free(builder);
    assert_non_null(strstr(error.text, "are not places of 4 rows"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_several_elements_a_row),
        cmocka_unit_test(test_gradient_of_rows_that_are_read_in_another_shape),
        cmocka_unit_test(test_places_of_no_rows_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
