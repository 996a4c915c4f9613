/*
 * Goal: the shares of a run add up to the whole.
 * Method: parts of every size against each other, and the extremes.
 */
#include "prover/train/time_split.h"
#include "tests/support/test.h"

static void test_nothing_done_has_no_share(void **state)
{
    const struct time_split split = {0};

    (void)state;
    assert_true(time_split_percent(&split, 0) == 0);
}

static void test_posting_beside_a_short_training_is_most_of_it(void **state)
{
    const struct time_split split = {
        .training_ns = 130000000, .committing_ns = 20000000, .posting_ns = 279300000};

    (void)state;
    assert_true(time_split_percent(&split, split.posting_ns) > 65.0);
    assert_true(time_split_percent(&split, split.posting_ns) < 65.1);
}

static void test_shares_add_up_to_the_whole(void **state)
{
    static const uint64_t sizes[] = {0, 1, 999, 1000000000, UINT64_MAX};
    const size_t count = sizeof(sizes) / sizeof(sizes[0]);

    (void)state;
    for (size_t i = 1; i < count * count * count; i++) {
        const struct time_split split = {.training_ns = sizes[i % count],
                                         .committing_ns = sizes[i / count % count],
                                         .posting_ns = sizes[i / count / count]};
        const double training = time_split_percent(&split, split.training_ns);
        const double committing = time_split_percent(&split, split.committing_ns);
        const double posting = time_split_percent(&split, split.posting_ns);
        const double sum = training + committing + posting;

        assert_true(training >= 0 && committing >= 0 && posting >= 0);
        assert_true(sum > 99.999999 && sum < 100.000001);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_done_has_no_share),
        cmocka_unit_test(test_posting_beside_a_short_training_is_most_of_it),
        cmocka_unit_test(test_shares_add_up_to_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
