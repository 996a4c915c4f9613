/*
 * Goal: what stands behind the micro-batches is cut at rows and leaves, every element of a sum and
 * of a state in parts has one owner, and what only parts read is nowhere whole.
 *
 * Method: a tape that adds to states of many shapes, for all ranks up to 64. Shards cover each
 * element once, begin at a row and at a leaf, and what is small or has no common place is whole.
 */
#include <stdio.h>
#include <string.h>

#include "engine/ranks/rank_places.h"
#include "engine/tape/builder.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

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

/* Each micro-batch adds up a weight; behind them a moment takes the sum, and the weight both. */
static struct tape *build_shapes(void)
{
    static const uint64_t one = 1;
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t weights[SHAPES];
    uint32_t moments[SHAPES];
    uint32_t sums[SHAPES];
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < SHAPES; i++) {
        char name[TENSOR_NAME_MAX + 1];

        (void)snprintf(name, sizeof(name), "weight%u", i);
        weights[i] =
            build_tensor(builder, name, DTYPE_F32, ROLE_STATE, shapes[i].rank, shapes[i].dims);
        (void)snprintf(name, sizeof(name), "moment%u", i);
        moments[i] =
            build_tensor(builder, name, DTYPE_F32, ROLE_STATE, shapes[i].rank, shapes[i].dims);
    }
    const uint32_t half = build_fill(builder, 0.5f, 1, &one);

    build_repeat(builder, 4, 1);
    for (uint32_t i = 0; i < SHAPES; i++) {
        char name[TENSOR_NAME_MAX + 1];

        (void)snprintf(name, sizeof(name), "sum%u", i);
        sums[i] = build_accumulated(builder, name, build_mul(builder, weights[i], half, 1));
    }
    build_repeat_end(builder);
    for (uint32_t i = 0; i < SHAPES; i++) {
        const uint32_t moment = build_add(builder, moments[i], sums[i], 1);

        build_after(builder, moments[i], moment);
        build_after(builder, weights[i], build_add(builder, weights[i], moment, 1));
    }
    start_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static void check_bounds(const struct rank_places *places, uint32_t tensor, uint32_t shape)
{
    uint32_t owners = 0;

    assert_int_equal(rank_places_first(places, tensor, 0), 0);
    assert_int_equal(rank_places_first(places, tensor, places->ranks), shapes[shape].count);
    for (uint32_t rank = 0; rank < places->ranks; rank++) {
        const uint64_t first = rank_places_first(places, tensor, rank);
        const uint64_t end = rank_places_first(places, tensor, rank + 1);
        const uint32_t rows = shapes[shape].rank - 1;

        assert_true(first <= end);
        owners += first < end;
        if (first < end) {
            assert_int_equal(first % 256, 0);
            assert_int_equal(first % (rows == 0 ? 1 : shapes[shape].dims[rows]), 0);
        }
    }
    assert_true(is_cut[shape] ? owners > 1 : owners == 1);
}

static void check_places(const struct tape *tape, uint32_t ranks)
{
    struct rank_places places;
    struct error error;

    error_init(&error);
    start_must(rank_places_build(&places, tape, ranks, &error), &error);
    assert_int_equal(places.sum_count, SHAPES);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;
        const bool is_moment = strncmp(tape->tensors[id].name, "moment", 6) == 0;
        const uint32_t shape = (uint32_t)(tape->tensors[id].name[6] - '0');

        if (!is_moment && strncmp(tape->tensors[id].name, "weight", 6) != 0) {
            continue; /* the counters of steps and micro-batches */
        }
        assert_int_equal(places.states[i], is_moment ? RANK_STATE_CUT : RANK_STATE_GATHERED);
        assert_int_equal(places.cut[id], is_moment);
        check_bounds(&places, id, shape);
        check_bounds(&places, places.sums[shape], shape);
    }
    assert_int_equal(places.arrival_count, SHAPES); /* the weights */
    rank_places_release(&places);
}

static void test_every_element_has_one_owner(void **state)
{
    struct tape *tape = build_shapes();

    (void)state;
    for (uint32_t ranks = 2; ranks <= 64; ranks++) {
        check_places(tape, ranks);
    }
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_element_has_one_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
