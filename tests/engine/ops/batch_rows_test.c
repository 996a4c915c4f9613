/*
 * batch_rows_test.c - every unit once per epoch, in an order that stream, seed and epoch decide.
 *
 * Method: whole epochs of all small numbers of units and of some up to a million; places pinned
 * from a second implementation, batch_rows_reference.py; how often neighbours stay neighbours; the
 * positions of batches, with and without pairs.
 */
#include "engine/ops/batch_rows.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

/* clang-format off */
static const struct pin {
    uint64_t position;
    uint64_t units;
    uint32_t stream;
    uint64_t seed;
    uint64_t unit;
} pins[] = {
    {0u, 1u, 0u, 1u, 0u},
    {0u, 1u, 0u, 1u, 0u},
    {5u, 1u, 7u, 9223372036854775817u, 0u},
    {4294967295u, 1u, 4294967295u, 18446744073709551615u, 0u},
    {0u, 2u, 0u, 1u, 0u},
    {1u, 2u, 0u, 1u, 1u},
    {11u, 2u, 7u, 9223372036854775817u, 0u},
    {8589934590u, 2u, 4294967295u, 18446744073709551615u, 1u},
    {0u, 3u, 0u, 1u, 1u},
    {2u, 3u, 0u, 1u, 0u},
    {16u, 3u, 7u, 9223372036854775817u, 2u},
    {12884901886u, 3u, 4294967295u, 18446744073709551615u, 1u},
    {0u, 7u, 0u, 1u, 6u},
    {6u, 7u, 0u, 1u, 1u},
    {38u, 7u, 7u, 9223372036854775817u, 6u},
    {30064771067u, 7u, 4294967295u, 18446744073709551615u, 5u},
    {0u, 10u, 0u, 1u, 6u},
    {9u, 10u, 0u, 1u, 4u},
    {55u, 10u, 7u, 9223372036854775817u, 0u},
    {42949672953u, 10u, 4294967295u, 18446744073709551615u, 6u},
    {0u, 97u, 0u, 1u, 16u},
    {96u, 97u, 0u, 1u, 95u},
    {533u, 97u, 7u, 9223372036854775817u, 63u},
    {416611827647u, 97u, 4294967295u, 18446744073709551615u, 9u},
    {0u, 1000u, 0u, 1u, 687u},
    {999u, 1000u, 0u, 1u, 759u},
    {5500u, 1000u, 7u, 9223372036854775817u, 427u},
    {4294967295333u, 1000u, 4294967295u, 18446744073709551615u, 841u},
    {0u, 10001u, 0u, 1u, 6282u},
    {10000u, 10001u, 0u, 1u, 3864u},
    {55005u, 10001u, 7u, 9223372036854775817u, 5278u},
    {42953967920628u, 10001u, 4294967295u, 18446744073709551615u, 1099u},
    {0u, 1000000u, 0u, 1u, 460775u},
    {999999u, 1000000u, 0u, 1u, 472517u},
    {5500000u, 1000000u, 7u, 9223372036854775817u, 808510u},
    {4294967295333333u, 1000000u, 4294967295u, 18446744073709551615u, 443553u},
    {0u, 2147483647u, 0u, 1u, 1036963648u},
    {2147483646u, 2147483647u, 0u, 1u, 1155230185u},
    {11811160058u, 2147483647u, 7u, 9223372036854775817u, 1607646046u},
    {9223372031128152747u, 2147483647u, 4294967295u, 18446744073709551615u, 1443233072u},
    {0u, 2147483648u, 0u, 1u, 1036963648u},
    {2147483647u, 2147483648u, 0u, 1u, 1927532305u},
    {11811160064u, 2147483648u, 7u, 9223372036854775817u, 459221985u},
    {9223372035423120042u, 2147483648u, 4294967295u, 18446744073709551615u, 1443233072u},
};
/* clang-format on */

static void test_units_are_those_of_a_second_implementation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pins) / sizeof(pins[0]); i++) {
        assert_int_equal(batch_unit(pins[i].position, pins[i].units, pins[i].stream, pins[i].seed),
                         pins[i].unit);
    }
}

static void test_side_is_the_least_integer_whose_square_is_enough(void **state)
{
    (void)state;
    for (uint64_t side = 1; side <= 46340; side++) {
        assert_int_equal(batch_side(side * side), side);
        assert_int_equal(batch_side(side * side + 1), side + 1);
    }
    assert_int_equal(batch_side(BATCH_UNITS_MAX), 46341);
}

static void check_epoch(uint64_t units, uint64_t epoch, uint64_t seed)
{
    uint8_t *seen = calloc(units, 1);

    assert_non_null(seen);
    for (uint64_t i = 0; i < units; i++) {
        const uint64_t unit = batch_unit(epoch * units + i, units, 3, seed);

        assert_true(unit < units);
        if (seen[unit]++ != 0) {
            fail_msg("%llu units: unit %llu comes twice", (unsigned long long)units,
                     (unsigned long long)unit);
        }
    }
    free(seen);
}

static void test_every_unit_comes_once_per_epoch(void **state)
{
    static const uint64_t large[] = {4095, 4096, 4097, 10007, 65536, 99999, 1000000};
    const uint64_t small = test_share(5000, 500);

    (void)state;
    for (uint64_t units = 1; units <= small; units++) {
        check_epoch(units, units % 3, units);
    }
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        check_epoch(large[i], UINT64_C(1) << (5 * i), 42);
    }
}

/* By chance one unit in an epoch is followed by the next one. */
static void test_neighbours_follow_each_other_as_by_chance(void **state)
{
    enum { UNITS = 400, EPOCHS = 1000 };
    uint32_t followed = 0;

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t last = batch_unit(epoch * UNITS, UNITS, 0, 1);

        for (uint64_t i = 1; i < UNITS; i++) {
            const uint64_t unit = batch_unit(epoch * UNITS + i, UNITS, 0, 1);

            followed += unit == last + 1;
            last = unit;
        }
    }
    /* Five standard deviations of that many pairs: sqrt(1000) = 32. */
    assert_in_range(followed, EPOCHS - 160, EPOCHS + 160);
}

static void test_each_place_has_each_unit_about_equally(void **state)
{
    enum { UNITS = 11, EPOCHS = 20000 };
    uint32_t counts[UNITS][UNITS];

    (void)state;
    memset(counts, 0, sizeof(counts));
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (uint64_t i = 0; i < UNITS; i++) {
            counts[i][batch_unit(epoch * UNITS + i, UNITS, 0, 7)]++;
        }
    }
    for (int i = 0; i < UNITS * UNITS; i++) {
        /* Five standard deviations: sqrt(20000 / 11) = 43. */
        assert_in_range(counts[i / UNITS][i % UNITS], EPOCHS / UNITS - 215, EPOCHS / UNITS + 215);
    }
}

static void test_batches_follow_each_other_and_units_stay_together(void **state)
{
    int64_t a[BATCH_ROWS_ATTRIBUTES] = {0};
    const uint64_t rows = 14;

    (void)state;
    a[BATCH_COUNT] = 6;
    a[BATCH_LENGTH] = 5;
    a[BATCH_ROWS_UNIT] = 2;
    a[BATCH_STREAM] = 9;
    a[BATCH_SEED_LOW] = 0xfedcba98;
    a[BATCH_SEED_HIGH] = 0x80000001;
    for (uint32_t counter = 0; counter < 30; counter++) {
        for (uint64_t b = 0; b < 6; b++) {
            const uint64_t position = counter * 3 + b / 2;

            a[BATCH_ROWS_ORDER] = 0;
            assert_int_equal(batch_row(a, rows * 5, counter, b),
                             position < 7 ? 2 * position + b % 2 : BATCH_ROW_NONE);
            a[BATCH_ROWS_ORDER] = 1;
            assert_int_equal(batch_row(a, rows * 5, counter, b),
                             2 * batch_unit(position, 7, 9, UINT64_C(0x80000001fedcba98)) + b % 2);
        }
    }
    a[BATCH_COUNT] = UINT32_MAX - 1; /* the last position that there is */
    a[BATCH_ROWS_ORDER] = 0;
    assert_int_equal(batch_row(a, rows * 5, UINT32_MAX, UINT32_MAX - 2), BATCH_ROW_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_are_those_of_a_second_implementation),
        cmocka_unit_test(test_side_is_the_least_integer_whose_square_is_enough),
        cmocka_unit_test(test_every_unit_comes_once_per_epoch),
        cmocka_unit_test(test_neighbours_follow_each_other_as_by_chance),
        cmocka_unit_test(test_each_place_has_each_unit_about_equally),
        cmocka_unit_test(test_batches_follow_each_other_and_units_stay_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
