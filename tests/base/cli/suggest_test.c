/*
 * Goal: slips are recognized, other words are not.
 * Method: known distances; symmetry and the triangle of small words, exhaustively.
 */
#include "base/cli/suggest.h"

#include <string.h>

#include "tests/support/test.h"

static void test_known_distances_are_right(void **state)
{
    char long_word[SUGGEST_WORD_MAX + 2];

    (void)state;
    assert_int_equal(suggest_distance("", ""), 0);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(suggest_distance("doctor", "docotr"), 1); /* a swap is one slip */
    assert_int_equal(suggest_distance("ca", "abc"), 3);        /* optimal string alignment */
    assert_int_equal(suggest_distance("", "abc"), 3);
    memset(long_word, 'x', sizeof(long_word));
    long_word[SUGGEST_WORD_MAX] = '\0';
    assert_int_equal(suggest_distance(long_word, "x"), SUGGEST_WORD_MAX);
    long_word[SUGGEST_WORD_MAX - 1] = '\0';
    assert_int_equal(suggest_distance(long_word, "x"), SUGGEST_WORD_MAX - 2);
}

/* The word number index of all words over "ab" with up to 4 letters. */
static void word_of(char word[5], unsigned index)
{
    unsigned length = index / 16;

    for (unsigned i = 0; i < length; i++) {
        word[i] = (char)('a' + ((index >> i) & 1));
    }
    word[length] = '\0';
}

static void test_distance_is_symmetric_and_zero_only_for_equals(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 80; a++) {
        for (unsigned b = 0; b < 80; b++) {
            char left[5];
            char right[5];
            size_t distance;

            word_of(left, a);
            word_of(right, b);
            distance = suggest_distance(left, right);
            assert_int_equal(distance, suggest_distance(right, left));
            assert_int_equal(distance == 0, strcmp(left, right) == 0);
            assert_true(distance <= 4);
        }
    }
}

static void test_far_words_are_not_suggested(void **state)
{
    struct suggestion suggestion;

    (void)state;
    suggestion_init(&suggestion, "walet");
    suggestion_consider(&suggestion, "ledger");
    assert_null(suggestion.best);
    suggestion_consider(&suggestion, "wallet");
    suggestion_consider(&suggestion, "ballet");
    assert_string_equal(suggestion.best, "wallet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_distances_are_right),
        cmocka_unit_test(test_distance_is_symmetric_and_zero_only_for_equals),
        cmocka_unit_test(test_far_words_are_not_suggested),
    };

    return cmocka_run_group_tests_name("suggest", tests, NULL, NULL);
}
