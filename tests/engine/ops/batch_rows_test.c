/*
 * batch_rows_test.c - every unit once per epoch, in an order that only stream, seed and epoch decide.
 *
 * Method: whole epochs of all small numbers of units and of some up to a million; places pinned from
 * a second implementation, batch_rows_reference.py; how often neighbours stay neighbours; the
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
    {UINT64_C(0), UINT64_C(1), UINT32_C(0), UINT64_C(1), UINT64_C(0)},
    {UINT64_C(0), UINT64_C(1), UINT32_C(0), UINT64_C(1), UINT64_C(0)},
    {UINT64_C(5), UINT64_C(1), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(0)},
    {UINT64_C(4294967295), UINT64_C(1), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(0)},
    {UINT64_C(0), UINT64_C(2), UINT32_C(0), UINT64_C(1), UINT64_C(0)},
    {UINT64_C(1), UINT64_C(2), UINT32_C(0), UINT64_C(1), UINT64_C(1)},
    {UINT64_C(11), UINT64_C(2), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(0)},
    {UINT64_C(8589934590), UINT64_C(2), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(1)},
    {UINT64_C(0), UINT64_C(3), UINT32_C(0), UINT64_C(1), UINT64_C(1)},
    {UINT64_C(2), UINT64_C(3), UINT32_C(0), UINT64_C(1), UINT64_C(0)},
    {UINT64_C(16), UINT64_C(3), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(2)},
    {UINT64_C(12884901886), UINT64_C(3), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(1)},
    {UINT64_C(0), UINT64_C(7), UINT32_C(0), UINT64_C(1), UINT64_C(6)},
    {UINT64_C(6), UINT64_C(7), UINT32_C(0), UINT64_C(1), UINT64_C(1)},
    {UINT64_C(38), UINT64_C(7), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(6)},
    {UINT64_C(30064771067), UINT64_C(7), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(5)},
    {UINT64_C(0), UINT64_C(10), UINT32_C(0), UINT64_C(1), UINT64_C(6)},
    {UINT64_C(9), UINT64_C(10), UINT32_C(0), UINT64_C(1), UINT64_C(4)},
    {UINT64_C(55), UINT64_C(10), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(0)},
    {UINT64_C(42949672953), UINT64_C(10), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(6)},
    {UINT64_C(0), UINT64_C(97), UINT32_C(0), UINT64_C(1), UINT64_C(16)},
    {UINT64_C(96), UINT64_C(97), UINT32_C(0), UINT64_C(1), UINT64_C(95)},
    {UINT64_C(533), UINT64_C(97), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(63)},
    {UINT64_C(416611827647), UINT64_C(97), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(9)},
    {UINT64_C(0), UINT64_C(1000), UINT32_C(0), UINT64_C(1), UINT64_C(687)},
    {UINT64_C(999), UINT64_C(1000), UINT32_C(0), UINT64_C(1), UINT64_C(759)},
    {UINT64_C(5500), UINT64_C(1000), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(427)},
    {UINT64_C(4294967295333), UINT64_C(1000), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(841)},
    {UINT64_C(0), UINT64_C(10001), UINT32_C(0), UINT64_C(1), UINT64_C(6282)},
    {UINT64_C(10000), UINT64_C(10001), UINT32_C(0), UINT64_C(1), UINT64_C(3864)},
    {UINT64_C(55005), UINT64_C(10001), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(5278)},
    {UINT64_C(42953967920628), UINT64_C(10001), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(1099)},
    {UINT64_C(0), UINT64_C(1000000), UINT32_C(0), UINT64_C(1), UINT64_C(460775)},
    {UINT64_C(999999), UINT64_C(1000000), UINT32_C(0), UINT64_C(1), UINT64_C(472517)},
    {UINT64_C(5500000), UINT64_C(1000000), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(808510)},
    {UINT64_C(4294967295333333), UINT64_C(1000000), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(443553)},
    {UINT64_C(0), UINT64_C(2147483647), UINT32_C(0), UINT64_C(1), UINT64_C(1036963648)},
    {UINT64_C(2147483646), UINT64_C(2147483647), UINT32_C(0), UINT64_C(1), UINT64_C(1155230185)},
    {UINT64_C(11811160058), UINT64_C(2147483647), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(1607646046)},
    {UINT64_C(9223372031128152747), UINT64_C(2147483647), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(1443233072)},
    {UINT64_C(0), UINT64_C(2147483648), UINT32_C(0), UINT64_C(1), UINT64_C(1036963648)},
    {UINT64_C(2147483647), UINT64_C(2147483648), UINT32_C(0), UINT64_C(1), UINT64_C(1927532305)},
    {UINT64_C(11811160064), UINT64_C(2147483648), UINT32_C(7), UINT64_C(9223372036854775817), UINT64_C(459221985)},
    {UINT64_C(9223372035423120042), UINT64_C(2147483648), UINT32_C(4294967295), UINT64_C(18446744073709551615), UINT64_C(1443233072)},
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
