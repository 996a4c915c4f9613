/*
 * Goal: text and bytes are each other's inverse, and nothing but digits is taken.
 * Method: all byte values, all characters at every place of a short text, all lengths near it.
 */
#include "base/hex.h"

#include <string.h>

#include "tests/support/test.h"

static void test_every_byte_comes_back(void **state)
{
    (void)state;
    for (unsigned value = 0; value < 256; value++) {
        uint8_t byte = (uint8_t)value;
        uint8_t back = (uint8_t)~value;
        char text[HEX_SIZE(1)];

        hex_encode(text, &byte, 1);
        assert_int_equal(strlen(text), 2);
        assert_int_equal(hex_decode(&back, 1, text, 2), STATUS_OK);
        assert_int_equal(back, value);
    }
}

static void test_prefix_and_capitals_are_taken(void **state)
{
    uint8_t bytes[2];

    (void)state;
    assert_int_equal(hex_decode(bytes, 2, "0xABcd", 6), STATUS_OK);
    assert_int_equal(bytes[0], 0xab);
    assert_int_equal(bytes[1], 0xcd);
}

static void test_only_digits_are_taken_at_every_place(void **state)
{
    (void)state;
    for (size_t at = 0; at < 4; at++) {
        for (int letter = 0; letter < 256; letter++) {
            char text[] = "12ab";
            uint8_t bytes[2];
            int digit = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f') ||
                        (letter >= 'A' && letter <= 'F');

            text[at] = (char)letter;
            assert_int_equal(hex_decode(bytes, 2, text, 4), digit ? STATUS_OK : STATUS_BAD_FORMAT);
        }
    }
}

static void test_wrong_length_is_refused(void **state)
{
    const char *text = "0123456789";
    uint8_t bytes[8];

    (void)state;
    for (size_t length = 0; length <= 10; length++) {
        for (size_t size = 0; size <= 5; size++) {
            assert_int_equal(hex_decode(bytes, size, text, length),
                             length == 2 * size ? STATUS_OK : STATUS_BAD_FORMAT);
        }
    }
    assert_int_equal(hex_decode(bytes, 1, "0x", 2), STATUS_BAD_FORMAT);
    assert_int_equal(hex_decode(bytes, 1, "0x0x", 4), STATUS_BAD_FORMAT);
    /* A length near the end of size_t must not wrap into a match. */
    assert_int_equal(hex_decode(bytes, SIZE_MAX / 2 + 2, text, 2), STATUS_BAD_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_comes_back),
        cmocka_unit_test(test_prefix_and_capitals_are_taken),
        cmocka_unit_test(test_only_digits_are_taken_at_every_place),
        cmocka_unit_test(test_wrong_length_is_refused),
    };

    return cmocka_run_group_tests_name("hex", tests, NULL, NULL);
}
