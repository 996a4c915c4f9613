/*
 * currency_test.c
 *
 * Goal: an amount reads the same wherever it is shown, exact where it says so, and a token cannot
 * name itself so that people take it for the coin.
 * Method: known answers; random amounts read back; names that a token may and may not have.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/codec/currency.h"

static void shows(const struct currency *currency, wei amount, const char *exact, const char *about)
{
    char text[WEI_TEXT_SIZE];

    currency_print(text, currency, amount);
    assert_string_equal(text, exact);
    currency_print_about(text, currency, amount);
    assert_string_equal(text, about);
}

static void test_amounts_of_the_coin_are_in_a_unit_that_fits(void **state)
{
    (void)state;
    assert_string_equal(currency_name(&currency_coin), "eth");
    shows(&currency_coin, 0, "0 eth", "0 eth");
    shows(&currency_coin, 999, "999 wei", "999 wei");
    shows(&currency_coin, 12 * WEI_PER_GWEI, "12 gwei", "12 gwei");
    shows(&currency_coin, WEI_PER_ETHER / 48 + 1, "0.020833333333333334 eth", "0.020833 eth");
    shows(&currency_coin, WEI_MAX, "79228162514.264337593543950335 eth", "7.9228e+10 eth");
}

static void test_amounts_of_a_token_have_its_decimals_and_name(void **state)
{
    const struct currency six = currency_of_token("USDC", 6);
    const struct currency none = currency_of_token("", 0);
    const struct currency most = currency_of_token("M", CURRENCY_PLACES_MAX);

    (void)state;
    shows(&six, 1500000, "1.5 USDC", "1.5 USDC");
    shows(&six, 1, "0.000001 USDC", "1e-06 USDC");
    shows(&six, 0, "0 USDC", "0 USDC");
    shows(&none, 1500000, "1500000 units", "1.5e+06 units");
    shows(&most, WEI_MAX, "79.228162514264337593543950335 M", "79.228 M");
}

static void test_a_name_that_misleads_is_not_repeated(void **state)
{
    static const char *const unfit[] = {"",      "ETH",       "eth",     "Ether",         "GWEI",
                                        "wei",   "a b",       "\x1b[1m", "thirteen-long", "x\ny",
                                        "units", "\xd0\xb5th"};

    (void)state;
    for (size_t i = 0; i < sizeof(unfit) / sizeof(unfit[0]); i++) {
        const struct currency currency = currency_of_token(unfit[i], 18);

        assert_string_equal(currency_name(&currency), "tokens");
        assert_int_equal(currency.places, 18);
    }
    assert_string_equal(currency_of_token("stETH", 18).name, "stETH");
    assert_string_equal(currency_of_token("USD-C.e", 6).name, "USD-C.e");
}

/* A point that no amount reaches helps nobody, and would be a line of zeros. */
static void test_more_decimals_than_amounts_have_digits_are_none(void **state)
{
    const struct currency currency = currency_of_token("FAR", CURRENCY_PLACES_MAX + 1);

    (void)state;
    shows(&currency, 7, "7 units", "7 units");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts_of_the_coin_are_in_a_unit_that_fits),
        cmocka_unit_test(test_amounts_of_a_token_have_its_decimals_and_name),
        cmocka_unit_test(test_a_name_that_misleads_is_not_repeated),
        cmocka_unit_test(test_more_decimals_than_amounts_have_digits_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
