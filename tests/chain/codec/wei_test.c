/*
 * Goal: amounts mean exactly what their text says, or are refused.
 * Method: spellings and their values, the range's edge, random amounts through text and back.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/codec/currency.h"

enum {
    ROUNDS = 20000,
};

static void test_spellings_have_their_values(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"7wei", 7},
        {"3 gwei", 3000000000u},
        {"0.5gwei", 500000000u},
        {"1.5ether", 1500000000000000000u},
        {"1 ETH", 1000000000000000000u},
        {"0.000000000000000001 ether", 1},
        {"007", 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wei amount = 99;

        assert_int_equal(wei_parse(&amount, cases[i].text), STATUS_OK);
        assert_true(amount == cases[i].value);
    }
}

static void test_other_spellings_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "-1",
                                      "+1",
                                      "1e18",
                                      "1.5",
                                      "1.",
                                      ".5",
                                      "1..5",
                                      "1.5.5",
                                      "0x10",
                                      "1 finney",
                                      "1etherx",
                                      "ether",
                                      "1,5",
                                      " 1",
                                      "1.5wei",
                                      "1.0000000001gwei",
                                      "0.0000000000000000001ether"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        wei amount = 99;

        assert_int_equal(wei_parse(&amount, bad[i]), STATUS_BAD_FORMAT);
        assert_true(amount == 99);
    }
}

static void test_the_largest_amount_is_the_last(void **state)
{
    wei amount = 0;

    (void)state;
    assert_int_equal(wei_parse(&amount, "79228162514264337593543950335"), STATUS_OK);
    assert_true(amount == WEI_MAX);
    assert_int_equal(wei_parse(&amount, "79228162514264337593543950336"), STATUS_OVER_LIMIT);
    assert_int_equal(wei_parse(&amount, "79228162515 ether"), STATUS_OVER_LIMIT);
    assert_true(amount == WEI_MAX);
}

static void test_amounts_come_back_from_their_text(void **state)
{
    uint64_t random = 4;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        wei amount = (((wei)test_random(&random) << 64) | test_random(&random)) & WEI_MAX;
        struct uint256 wide;
        char text[WEI_TEXT_SIZE];
        wei back = 0;

        amount >>= test_random_below(&random, 96);
        currency_print_number(text, &currency_coin, amount);
        (void)strcat(text, "ether");
        assert_int_equal(wei_parse(&back, text), STATUS_OK);
        assert_true(back == amount);
        wei_print_plain(text, amount);
        assert_int_equal(wei_parse(&back, text), STATUS_OK);
        assert_true(back == amount);
        wide = wei_to_uint256(amount);
        assert_true(wei_from_uint256(&back, &wide));
        assert_true(back == amount);
    }
}

/* 0.55 ether less forty wei is no 0.55, and no binary number comes in between. */
static void test_amounts_are_printed_to_the_last_wei(void **state)
{
    static const struct {
        uint64_t amount;
        int places;
        const char *text;
    } cases[] = {
        {0, WEI_ETHER_PLACES, "0"},
        {0, 0, "0"},
        {70, 0, "70"},
        {1, WEI_ETHER_PLACES, "0.000000000000000001"},
        {550000000000000000u, WEI_ETHER_PLACES, "0.55"},
        {549999999999999960u, WEI_ETHER_PLACES, "0.54999999999999996"},
        {10000000000000000000u, WEI_ETHER_PLACES, "10"},
        {1200000001u, WEI_GWEI_PLACES, "1.200000001"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[WEI_TEXT_SIZE];

        wei_print_number(text, cases[i].amount, cases[i].places);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings_have_their_values),
        cmocka_unit_test(test_other_spellings_are_refused),
        cmocka_unit_test(test_the_largest_amount_is_the_last),
        cmocka_unit_test(test_amounts_come_back_from_their_text),
        cmocka_unit_test(test_amounts_are_printed_to_the_last_wei),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
