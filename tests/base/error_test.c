/*
 * Goal: an error keeps all its words, in order, and never overruns its buffer.
 * Method: build chains, cut them at every place, and read what is left.
 */
#include "base/error.h"

#include <errno.h>
#include <string.h>

#include "tests/support/test.h"

static void test_chain_reads_from_the_outside_in(void **state)
{
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(error.status, STATUS_OK);
    assert_int_equal(error_set(&error, STATUS_BAD_FORMAT, "line %d", 7), STATUS_BAD_FORMAT);
    assert_int_equal(error_wrap(&error, "journal '%s'", "run1"), STATUS_BAD_FORMAT);
    assert_string_equal(error.text, "journal 'run1': line 7");
}

static void test_innermost_advice_wins(void **state)
{
    struct error error;

    (void)state;
    error_init(&error);
    error_advise(&error, "do %s", "this");
    error_advise(&error, "do that");
    assert_string_equal(error.advice, "do this");
    (void)error_set(&error, STATUS_IO, "new trouble");
    assert_string_equal(error.advice, "");
}

static void test_errno_is_told_in_words(void **state)
{
    struct error error;

    (void)state;
    errno = ENOENT;
    assert_int_equal(error_set_errno(&error, "%s", "run.bin"), STATUS_IO);
    assert_string_equal(error.text, "run.bin: No such file or directory");
}

static void test_long_text_is_cut_and_shows_it(void **state)
{
    struct error error;
    char word[ERROR_TEXT_MAX + 2];

    (void)state;
    for (size_t length = ERROR_TEXT_MAX - 8; length <= ERROR_TEXT_MAX + 1; length++) {
        memset(word, 'x', length);
        word[length] = '\0';
        (void)error_set(&error, STATUS_IO, "%s", word);
        assert_true(strlen(error.text) < ERROR_TEXT_MAX);
        if (length >= ERROR_TEXT_MAX) {
            assert_string_equal(error.text + ERROR_TEXT_MAX - 4, "...");
        } else {
            assert_int_equal(strlen(error.text), length);
        }
        (void)error_wrap(&error, "outer");
        assert_memory_equal(error.text, "outer: xxx", 10);
        assert_string_equal(error.text + strlen(error.text) - 3,
                            length + 7 >= ERROR_TEXT_MAX ? "..." : "xxx");
    }
}

static void test_without_an_error_only_the_status_travels(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, STATUS_REFUSED, "no"), STATUS_REFUSED);
    error_advise(NULL, "nothing");
}

static void test_every_status_has_its_own_name(void **state)
{
    (void)state;
    for (int a = STATUS_OK; a <= STATUS_STOPPED; a++) {
        assert_string_not_equal(status_name((enum status)a), "unknown");
        for (int b = STATUS_OK; b < a; b++) {
            assert_string_not_equal(status_name((enum status)a), status_name((enum status)b));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_reads_from_the_outside_in),
        cmocka_unit_test(test_innermost_advice_wins),
        cmocka_unit_test(test_errno_is_told_in_words),
        cmocka_unit_test(test_long_text_is_cut_and_shows_it),
        cmocka_unit_test(test_without_an_error_only_the_status_travels),
        cmocka_unit_test(test_every_status_has_its_own_name),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
