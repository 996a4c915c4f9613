/*
 * Goal: numbers of 256 bits never wrap, and print and parse to themselves.
 * Method: the range's ends, libcrypto's sums, random identities between the operations, malformed
 * texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/bn.h>
#include <string.h>

#include "chain/codec/uint256.h"

enum {
    ROUNDS = 20000,
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

static struct uint256 largest(void)
{
    struct uint256 value = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

    return value;
}

static struct uint256 random_value(uint64_t *state)
{
    struct uint256 value;
    uint64_t limbs = next_random(state) % 5;

    for (uint64_t i = 0; i < 4; i++) {
        value.limbs[i] = i < limbs ? next_random(state) : 0;
    }
    return value;
}

/* As libcrypto adds. */
static bool is_sum(const struct uint256 *sum, const struct uint256 *a, const struct uint256 *b)
{
    BIGNUM *numbers[3] = {BN_new(), BN_new(), BN_new()};
    const struct uint256 *values[3] = {sum, a, b};
    bool equal;

    for (int i = 0; i < 3; i++) {
        uint8_t bytes[UINT256_SIZE];

        uint256_to_bytes(bytes, values[i]);
        assert_non_null(BN_bin2bn(bytes, sizeof(bytes), numbers[i]));
    }
    assert_int_equal(BN_add(numbers[1], numbers[1], numbers[2]), 1);
    equal = BN_cmp(numbers[0], numbers[1]) == 0;
    for (int i = 0; i < 3; i++) {
        BN_free(numbers[i]);
    }
    return equal;
}

static void test_the_ends_of_the_range_do_not_wrap(void **state)
{
    struct uint256 most = largest();
    struct uint256 one = uint256_of(1);
    struct uint256 out = uint256_of(77);
    uint64_t narrow = 5;

    (void)state;
    assert_int_equal(uint256_add(&out, &most, &one), STATUS_OVER_LIMIT);
    assert_int_equal(uint256_multiply(&out, &most, 2), STATUS_OVER_LIMIT);
    assert_int_equal(out.limbs[0], 77);
    out = uint256_of(0);
    assert_false(uint256_to_u64(&narrow, &most));
    assert_int_equal(narrow, 5);
    assert_int_equal(uint256_bit_length(&most), 256);
    assert_int_equal(uint256_bit_length(&out), 0);
}

static void test_operations_agree_with_each_other(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct uint256 a = random_value(&random);
        struct uint256 b = random_value(&random);
        uint64_t divisor = (next_random(&random) >> (next_random(&random) % 64)) | 1;
        struct uint256 out;
        struct uint256 back;
        uint64_t rest;
        uint8_t bytes[UINT256_SIZE];

        if (uint256_add(&out, &a, &b) == STATUS_OK) {
            assert_true(is_sum(&out, &a, &b));
            assert_true(uint256_compare(&out, &a) >= 0);
        } else {
            assert_int_equal(uint256_bit_length(&a) == 256 || uint256_bit_length(&b) == 256, 1);
        }
        rest = uint256_divide(&out, &a, divisor);
        assert_true(rest < divisor);
        assert_int_equal(uint256_multiply(&back, &out, divisor), STATUS_OK);
        out = uint256_of(rest);
        assert_int_equal(uint256_add(&back, &back, &out), STATUS_OK);
        assert_int_equal(uint256_compare(&back, &a), 0);
        uint256_to_bytes(bytes, &a);
        back = uint256_from_bytes(bytes);
        assert_int_equal(uint256_compare(&back, &a), 0);
    }
}

static void test_texts_come_back(void **state)
{
    uint64_t random = 2;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct uint256 value = i == 0 ? largest() : random_value(&random);
        struct uint256 back;
        char quantity[UINT256_HEX_SIZE];

        uint256_print_quantity(quantity, &value);
        assert_int_equal(uint256_parse_quantity(&back, quantity), STATUS_OK);
        assert_int_equal(uint256_compare(&back, &value), 0);
    }
}

static void test_known_spellings_are_used(void **state)
{
    struct uint256 value = largest();
    char quantity[UINT256_HEX_SIZE];

    (void)state;
    uint256_print_quantity(quantity, &value);
    assert_string_equal(quantity,
                        "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");
    value = uint256_of(0x41);
    uint256_print_quantity(quantity, &value);
    assert_string_equal(quantity, "0x41"); /* the example of the JSON-RPC specification */
    value = uint256_of(0);
    uint256_print_quantity(quantity, &value);
    assert_string_equal(quantity, "0x0");
}

static void test_malformed_texts_are_refused(void **state)
{
    static const char *const quantities[] = {
        "",
        "0",
        "0x",
        "x1",
        "0x00",
        "0x01",
        "0xg",
        "0X1",
        " 0x1",
        "0x1 ",
        "-0x1",
        "1",
        "0x10000000000000000000000000000000000000000000000000000000000000000",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(quantities) / sizeof(quantities[0]); i++) {
        struct uint256 value = uint256_of(9);

        assert_int_not_equal(uint256_parse_quantity(&value, quantities[i]), STATUS_OK);
        assert_int_equal(value.limbs[0], 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ends_of_the_range_do_not_wrap),
        cmocka_unit_test(test_operations_agree_with_each_other),
        cmocka_unit_test(test_texts_come_back),
        cmocka_unit_test(test_known_spellings_are_used),
        cmocka_unit_test(test_malformed_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
