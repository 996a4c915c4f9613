/*
 * Goal: the plan of sums gives the additions of the tape's tree for every number of ranks.
 *
 * Method: all groups up to 64, and for each all ranks up to twice as many. The groups below the
 * subtrees of all are each group once, in order, and belong to their rank. Floats whose sum depends
 * on the order go up the plan and up the tree itself, bit by bit. Refusals by name.
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
        for (uint32_t ranks = 2; ranks <= 2 * groups; ranks++) { /* from groups on some are spare */
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

static void test_numbers_of_ranks_that_share_nothing_are_refused(void **state)
{
    struct ranks_plan plan;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(ranks_plan_build(&plan, 1, 4, &error), STATUS_USAGE);
    error_init(&error);
    assert_int_equal(ranks_plan_build(&plan, RANKS_MAX + 1, 1u << 20, &error), STATUS_USAGE);
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
        cmocka_unit_test(test_numbers_of_ranks_that_share_nothing_are_refused),
        cmocka_unit_test(test_work_is_dealt_to_the_rank_with_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
