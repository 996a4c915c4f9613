/*
 * Goal: the plan of sums gives the additions of the tape's tree for every number of ranks, and
 * every element of a sum has one owner.
 *
 * Method: all ranks up to 64 for all groups up to 64. The groups below the subtrees of all are
 * each group once, in order, and belong to their rank. Floats whose sum depends on the order go up
 * the plan and up the tree itself, bit by bit. Shards of tensors of many shapes cover each element
 * once, begin at a row and at a leaf, and differ by one piece at most. Refusals by name.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/ranks/ranks_plan.h"
#include "tests/support/test.h"

#define GROUPS_MAX 64

static float leaf_of(uint32_t group)
{
    const uint32_t word = (group + 1) * UINT32_C(2654435761);

    return (float)(int32_t)word * 1e-3f + 1.0f / (float)(group + 3);
}

static float tree_sum(uint32_t node, uint32_t groups)
{
    return node >= groups ? leaf_of(node - groups)
                          : tree_sum(2 * node, groups) + tree_sum(2 * node + 1, groups);
}

static void group_range(uint32_t *first, uint32_t *end, uint32_t node, uint32_t groups)
{
    *first = *end = node;
    while (*first < groups) {
        *first *= 2;
        *end = *end * 2 + 1;
    }
    *first -= groups;
    *end = *end - groups + 1;
}

static void check_subtrees(const struct ranks_plan *plan)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < plan->subtree_count; i++) {
        const uint32_t rank = plan->subtrees[i].rank;
        uint32_t first;
        uint32_t end;

        group_range(&first, &end, plan->subtrees[i].node, plan->group_count);
        assert_int_equal(first, next);
        assert_true(first >= ranks_first_group(rank, plan->rank_count, plan->group_count));
        assert_true(end <= ranks_first_group(rank + 1, plan->rank_count, plan->group_count));
        assert_true(i >= ranks_first_subtree(plan, rank) &&
                    i < ranks_first_subtree(plan, rank + 1));
        next = end;
    }
    assert_int_equal(next, plan->group_count);
}

static void check_sum(const struct ranks_plan *plan)
{
    float slots[2 * GROUPS_MAX];
    const float whole = tree_sum(1, plan->group_count);

    for (uint32_t i = 0; i < plan->subtree_count; i++) {
        slots[i] = tree_sum(plan->subtrees[i].node, plan->group_count);
    }
    for (uint32_t i = 0; i < plan->join_count; i++) {
        slots[plan->subtree_count + i] = slots[plan->joins[i].left] + slots[plan->joins[i].right];
    }
    assert_int_equal(plan->joins[plan->join_count - 1].node, 1);
    assert_int_equal(plan->join_count, plan->subtree_count - 1);
    assert_memory_equal(&slots[plan->subtree_count + plan->join_count - 1], &whole, sizeof(whole));
}

static void test_every_number_of_ranks_adds_as_the_tree(void **state)
{
    (void)state;
    for (uint32_t groups = 2; groups <= GROUPS_MAX; groups *= 2) {
        for (uint32_t ranks = 2; ranks <= groups; ranks++) {
            struct ranks_plan plan;
            struct error error;

            error_init(&error);
            assert_int_equal(ranks_plan_build(&plan, ranks, groups, &error), STATUS_OK);
            check_subtrees(&plan);
            check_sum(&plan);
            ranks_plan_release(&plan);
        }
    }
}

static void test_too_few_groups_are_refused_with_both_numbers(void **state)
{
    struct ranks_plan plan;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(ranks_plan_build(&plan, 5, 4, &error), STATUS_REFUSED);
    assert_non_null(strstr(error.text, "4 groups of micro-batches, fewer than 5 ranks"));
    assert_non_null(strstr(error.advice, "--accumulate-group"));
    error_init(&error);
    assert_int_equal(ranks_plan_build(&plan, 1, 4, &error), STATUS_USAGE);
    error_init(&error);
    assert_int_equal(ranks_plan_build(&plan, RANKS_MAX + 1, 1u << 20, &error), STATUS_USAGE);
}

/* ---- shards ------------------------------------------------------------------------------ */

static const struct tensor shapes[] = {
    {.dtype = DTYPE_F32, .rank = 2, .dims = {512, 384}, .count = 512 * 384},
    {.dtype = DTYPE_F32, .rank = 1, .dims = {5}, .count = 5},
    {.dtype = DTYPE_F32, .rank = 1, .dims = {20000}, .count = 20000},
    {.dtype = DTYPE_F32, .rank = 2, .dims = {100, 300}, .count = 30000},     /* one common place */
    {.dtype = DTYPE_F32, .rank = 2, .dims = {3, 20011}, .count = 3 * 20011}, /* none */
    {.dtype = DTYPE_F32, .rank = 4, .dims = {64, 32, 3, 3}, .count = 64 * 32 * 9},
    {.dtype = DTYPE_F32, .rank = 1, .dims = {16383}, .count = 16383},
};
static const bool is_cut[] = {true, false, true, false, false, true, false};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void check_shards(uint32_t ranks)
{
    struct ranks_shards shards;
    struct error error;
    uint64_t all = 0;
    uint64_t owned = 0;

    error_init(&error);
    for (uint32_t i = 0; i < SHAPES; i++) {
        all += shapes[i].count;
    }
    assert_int_equal(ranks_shards_build(&shards, shapes, SHAPES, ranks, &error), STATUS_OK);
    for (uint32_t i = 0; i < SHAPES; i++) {
        uint32_t owners = 0;

        assert_int_equal(ranks_shard_first(&shards, i, 0), 0);
        assert_int_equal(ranks_shard_first(&shards, i, ranks), shapes[i].count);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const uint64_t first = ranks_shard_first(&shards, i, rank);
            const uint64_t end = ranks_shard_first(&shards, i, rank + 1);

            assert_true(first <= end);
            owners += first < end;
            if (first < end) { /* it begins at a row and at a leaf */
                assert_int_equal(first % 256, 0);
                assert_int_equal(
                    first % (shapes[i].rank < 2 ? 1 : shapes[i].dims[shapes[i].rank - 1]), 0);
            }
        }
        assert_true(is_cut[i] ? owners > 1 : owners == 1);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        owned += ranks_shard_count(&shards, rank);
    }
    assert_int_equal(owned, all);
    ranks_shards_release(&shards);
}

static void test_every_element_has_one_owner(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 64; ranks++) {
        check_shards(ranks);
    }
}

/* Of a large sum that is cut evenly: (N - 1) / N of 4 bytes for each subtree of a rank's, and as
 * much for the sum that comes back. */
static void test_the_bytes_on_the_wire_are_those_of_the_formula(void **state)
{
    const struct tensor large = {
        .dtype = DTYPE_F32, .rank = 1, .dims = {UINT64_C(1) << 22}, .count = UINT64_C(1) << 22};

    (void)state;
    for (uint32_t ranks = 2; ranks <= 8; ranks *= 2) {
        struct ranks_shards shards;
        struct ranks_plan plan;
        struct error error;

        error_init(&error);
        assert_int_equal(ranks_plan_build(&plan, ranks, 8, &error), STATUS_OK);
        assert_int_equal(ranks_shards_build(&shards, &large, 1, ranks, &error), STATUS_OK);
        assert_int_equal(ranks_wire_bytes(&plan, &shards), large.count * 8 * (ranks - 1));
        ranks_shards_release(&shards);
        ranks_plan_release(&plan);
    }
}

static void test_work_is_dealt_to_the_rank_with_least(void **state)
{
    static const uint64_t sizes[] = {9, 4, 4, 4, 1};
    uint32_t owners[5];
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(ranks_deal(owners, sizes, 5, 2, &error), STATUS_OK);
    assert_memory_equal(owners, ((uint32_t[]){0, 1, 1, 1, 0}), sizeof(owners));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number_of_ranks_adds_as_the_tree),
        cmocka_unit_test(test_too_few_groups_are_refused_with_both_numbers),
        cmocka_unit_test(test_every_element_has_one_owner),
        cmocka_unit_test(test_the_bytes_on_the_wire_are_those_of_the_formula),
        cmocka_unit_test(test_work_is_dealt_to_the_rank_with_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
