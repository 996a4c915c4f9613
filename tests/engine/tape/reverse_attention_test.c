/*
 * reverse_attention_test.c - the gradients of attention: causal products, shared heads, caps; and
 * what is refused.
 *
 * Method: gradient_check.h, on small tapes.
 */
#include "engine/models/model_writer.h"
#include "engine/plan/backend.h"
#include "engine/tape/builder_core.h"
#include "tests/support/numeric/gradient_check.h"
#include "tests/support/test.h"

static uint32_t write_heads(struct net *net, uint64_t heads, uint64_t kv_heads, double share,
                            double cap)
{
    struct model_options options = {.dropout = share, .seed = 5};
    struct model_writer writer = {
        .builder = net->builder, .options = &options, .reach = TENSOR_NONE};
    uint32_t q = net_cube(net, 2, 5, heads * 4);
    uint32_t k = net_cube(net, 2, 5, kv_heads * 4);
    uint32_t v = net_cube(net, 2, 5, kv_heads * 4);

    return write_attention(&writer, q, k, v, heads, kv_heads, 0.7, cap);
}

static uint32_t write_attention_plain(struct net *net)
{
    return write_heads(net, 3, 3, 0.0, 0.0);
}

static uint32_t write_attention_grouped(struct net *net)
{
    return write_heads(net, 6, 2, 0.0, 0.0);
}

static uint32_t write_attention_dropout(struct net *net)
{
    return write_heads(net, 4, 2, 0.25, 0.0);
}

/* The scores are cap * tanh(score / cap): the product in front of the cap is causal too. */
static uint32_t write_attention_capped(struct net *net)
{
    uint32_t out = write_heads(net, 4, 2, 0.0, 1.5);
    const struct tape *tape = &net->builder->tape;
    uint32_t causal = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        causal +=
            tape->ops[at].kind == OP_CONTRACT && tape->ops[at].attributes[CONTRACT_CAUSAL] == 5;
    }
    assert_int_equal(causal, 1);
    return out;
}

static void test_gradient_of_causal_attention_with_capped_scores(void **state)
{
    (void)state;
    gradient_check(write_attention_capped);
}

static void test_gradient_of_causal_attention_with_grouped_heads(void **state)
{
    (void)state;
    gradient_check(write_attention_plain);
    gradient_check(write_attention_grouped);
    gradient_check(write_attention_dropout);
}

/* Causal probabilities transposed: k runs down the columns, where no mask applies. */
static uint32_t write_causal_across(struct net *net)
{
    static const uint64_t strides[6] = {0, 0, 0, 4, 0, 1};
    static const uint64_t dims[2] = {6, 4};
    uint32_t p = build_softmax(net->builder, net_matrix(net, 6, 6), 1.0f, 6, TENSOR_NONE);
    struct view columns = view_transposed(6, 6);
    struct view rows = view_matrix(4, 6);

    return build_contract(net->builder, p, &columns, net_matrix(net, 4, 6), &rows, strides, 0, 2,
                          dims);
}

static void test_gradient_of_causal_probabilities_in_another_view(void **state)
{
    (void)state;
    gradient_check(write_causal_across);
}

static uint32_t write_product(struct net *net, uint64_t period, uint64_t row, uint64_t column)
{
    const uint64_t strides[6] = {0, 0, 0, row, 0, column};
    static const uint64_t dims[2] = {6, 6};
    struct view rows = view_matrix(6, 4);
    uint32_t x = net_matrix(net, 6, 4);

    return build_contract(net->builder, x, &rows, net_matrix(net, 6, 4), &rows, strides, period, 2,
                          dims);
}

static uint32_t write_causal_product(struct net *net)
{
    return write_product(net, 6, 6, 1);
}

/* A sum puts a number where the softmax has none, and a second reader of the scores adds one. */
static uint32_t write_causal_seen_twice(struct net *net)
{
    uint32_t scores = write_causal_product(net);
    uint32_t p = build_softmax(net->builder, build_map(net->builder, MAP_TANH, scores), 1.0f, 6,
                               TENSOR_NONE);

    return build_add(net->builder, p, build_scale(net->builder, scores, 0.5f), 1);
}

/* The same sum, whose first term is the second reader. */
static uint32_t write_causal_seen_before(struct net *net)
{
    uint32_t scores = write_causal_product(net);
    uint32_t other = build_scale(net->builder, scores, 0.5f);
    uint32_t p = build_softmax(net->builder, build_map(net->builder, MAP_TANH, scores), 1.0f, 6,
                               TENSOR_NONE);

    return build_add(net->builder, other, p, 1);
}

/* The product leaves elements out that the softmax reads. */
static uint32_t write_causal_of_another_period(struct net *net)
{
    return build_softmax(net->builder, write_product(net, 3, 6, 1), 1.0f, 6, TENSOR_NONE);
}

/* The product's rows are columns of the softmax. */
static uint32_t write_causal_in_columns(struct net *net)
{
    return build_softmax(net->builder, write_product(net, 6, 1, 6), 1.0f, 6, TENSOR_NONE);
}

/* Between the cap and the softmax the rows are turned into columns. */
static uint32_t write_causal_turned(struct net *net)
{
    static const uint32_t order[2] = {1, 0};
    uint32_t scores = build_permute(net->builder, write_causal_product(net), order);

    return build_softmax(net->builder, scores, 1.0f, 6, TENSOR_NONE);
}

static void test_causal_product_without_softmax_has_no_gradient(void **state)
{
    (void)state;
    gradient_check_refused(write_causal_seen_twice, "causal product");
    gradient_check_refused(write_causal_seen_before, "causal product");
    gradient_check_refused(write_causal_of_another_period, "causal product");
    gradient_check_refused(write_causal_in_columns, "causal product");
    gradient_check_refused(write_causal_turned, "causal product");
    gradient_check_refused(write_causal_product, "causal product");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_causal_attention_with_grouped_heads),
        cmocka_unit_test(test_gradient_of_causal_attention_with_capped_scores),
        cmocka_unit_test(test_gradient_of_causal_probabilities_in_another_view),
        cmocka_unit_test(test_causal_product_without_softmax_has_no_gradient),
    };

    return cmocka_run_group_tests_name("reverse attention", tests, NULL, NULL);
}
