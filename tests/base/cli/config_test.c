/*
 * Goal: a config file is read as written and every bad line is named.
 * Method: the documented forms, each kind of bad line, the limits.
 */
#include "base/cli/config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static void assert_refused(const char *text, size_t size, const char *wanted)
{
    struct config config;
    struct error error;

    error_init(&error);
    assert_int_equal(config_parse(&config, &error, "f", text, size), STATUS_USAGE);
    assert_string_equal(error.text, wanted);
    assert_null(config.text);
    assert_null(config.entries);
}

static void test_documented_forms_are_read(void **state)
{
    const char *text = "# comment\n\n  data = /a b/c=d \r\nempty=\nlast-1=x#y";
    struct config config;

    (void)state;
    assert_int_equal(config_parse(&config, NULL, "f", text, strlen(text)), STATUS_OK);
    assert_int_equal(config.entry_count, 3);
    assert_string_equal(config.entries[0].key, "data");
    assert_string_equal(config.entries[0].value, "/a b/c=d");
    assert_int_equal(config.entries[0].line, 3);
    assert_string_equal(config.entries[1].value, "");
    assert_string_equal(config.entries[2].key, "last-1");
    assert_string_equal(config.entries[2].value, "x#y");
    assert_int_equal(config.entries[2].line, 5);
    config_release(&config);
    assert_int_equal(config_parse(&config, NULL, "f", "", 0), STATUS_OK);
    assert_int_equal(config.entry_count, 0);
    config_release(&config);
}

static void test_bad_lines_are_named(void **state)
{
    (void)state;
    assert_refused("a=1\nnonsense\n", 13, "f:2: not a line of key=value: 'nonsense'");
    assert_refused("=x", 2, "f:1: '' is not a key");
    assert_refused("Data=x", 6, "f:1: 'Data' is not a key");
    assert_refused("a b=x", 5, "f:1: 'a b' is not a key");
    assert_refused("-a=x", 4, "f:1: '-a' is not a key");
    assert_refused("\xef\xbb\xbf"
                   "a=x",
                   6,
                   "f:1: '\xef\xbb\xbf"
                   "a' is not a key");
    assert_refused("a=1\n\nb=2\0x\n", 12, "f:3: holds a zero byte");
}

static void test_limits_are_kept(void **state)
{
    char *text = calloc(CONFIG_SIZE_MAX + 1, 1);
    struct config config;

    (void)state;
    assert_non_null(text);
    memset(text, '\n', CONFIG_SIZE_MAX + 1);
    assert_int_equal(config_parse(&config, NULL, "f", text, CONFIG_SIZE_MAX), STATUS_OK);
    config_release(&config);
    assert_refused(text, CONFIG_SIZE_MAX + 1, "f: larger than 65536 bytes");
    for (size_t i = 0; i <= CONFIG_ENTRIES_MAX; i++) {
        memcpy(text + 4 * i, "k=v\n", 4);
    }
    assert_int_equal(config_parse(&config, NULL, "f", text, 4 * CONFIG_ENTRIES_MAX), STATUS_OK);
    config_release(&config);
    assert_refused(text, 4 * CONFIG_ENTRIES_MAX + 4, "f:513: more than 512 settings");
    free(text);
}

static void test_missing_file_is_not_found(void **state)
{
    struct config config;
    struct error error;

    (void)state;
    assert_int_equal(config_read(&config, &error, "/nowhere/config"), STATUS_NOT_FOUND);
    assert_string_equal(error.text, "/nowhere/config: No such file or directory");
    config_release(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_forms_are_read),
        cmocka_unit_test(test_bad_lines_are_named),
        cmocka_unit_test(test_limits_are_kept),
        cmocka_unit_test(test_missing_file_is_not_found),
    };

    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
