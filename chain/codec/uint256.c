/* uint256.c - see uint256.h. */
#include "chain/codec/uint256.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hex.h"

__extension__ typedef unsigned __int128 wide; /* a scalar: the product of two limbs */

struct uint256 uint256_of(uint64_t value)
{
    struct uint256 result = {{value, 0, 0, 0}};

    return result;
}

struct uint256 uint256_from_bytes(const uint8_t bytes[UINT256_SIZE])
{
    struct uint256 value = {{0, 0, 0, 0}};

    for (int i = 0; i < UINT256_SIZE; i++) {
        value.limbs[3 - i / 8] = value.limbs[3 - i / 8] << 8 | bytes[i];
    }
    return value;
}

void uint256_to_bytes(uint8_t bytes[UINT256_SIZE], const struct uint256 *value)
{
    for (int i = 0; i < UINT256_SIZE; i++) {
        bytes[i] = (uint8_t)(value->limbs[3 - i / 8] >> (8 * (7 - i % 8)));
    }
}

int uint256_compare(const struct uint256 *left, const struct uint256 *right)
{
    for (int i = 3; i >= 0; i--) {
        if (left->limbs[i] != right->limbs[i]) {
            return left->limbs[i] < right->limbs[i] ? -1 : 1;
        }
    }
    return 0;
}

uint32_t uint256_bit_length(const struct uint256 *value)
{
    for (int i = 3; i >= 0; i--) {
        if (value->limbs[i] != 0) {
            return (uint32_t)(64 * i + 64 - __builtin_clzll(value->limbs[i]));
        }
    }
    return 0;
}

bool uint256_to_u64(uint64_t *out, const struct uint256 *value)
{
    if (uint256_bit_length(value) > 64) {
        return false;
    }
    *out = value->limbs[0];
    return true;
}

enum status uint256_add(struct uint256 *out, const struct uint256 *left,
                        const struct uint256 *right)
{
    struct uint256 sum;
    wide carry = 0;

    for (int i = 0; i < 4; i++) {
        carry += (wide)left->limbs[i] + right->limbs[i];
        sum.limbs[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (carry != 0) {
        return STATUS_OVER_LIMIT;
    }
    *out = sum;
    return STATUS_OK;
}

enum status uint256_multiply(struct uint256 *out, const struct uint256 *left, uint64_t factor)
{
    struct uint256 product;
    wide carry = 0;

    for (int i = 0; i < 4; i++) {
        carry += (wide)left->limbs[i] * factor;
        product.limbs[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (carry != 0) {
        return STATUS_OVER_LIMIT;
    }
    *out = product;
    return STATUS_OK;
}

uint64_t uint256_divide(struct uint256 *out, const struct uint256 *value, uint64_t divisor)
{
    struct uint256 quotient;
    wide rest = 0;

    assert(divisor > 0);
    for (int i = 3; i >= 0; i--) {
        rest = rest << 64 | value->limbs[i];
        quotient.limbs[i] = (uint64_t)(rest / divisor);
        rest %= divisor;
    }
    *out = quotient;
    return (uint64_t)rest;
}

enum status uint256_parse_quantity(struct uint256 *out, const char *text)
{
    struct uint256 value = uint256_of(0);
    size_t length = strlen(text);

    if (length < 3 || text[0] != '0' || text[1] != 'x' || (length > 3 && text[2] == '0')) {
        return STATUS_BAD_FORMAT;
    }
    if (length >= UINT256_HEX_SIZE) {
        return STATUS_OVER_LIMIT;
    }
    for (size_t i = 2; i < length; i++) {
        int digit = hex_digit(text[i]);

        if (digit < 0) {
            return STATUS_BAD_FORMAT;
        }
        for (int limb = 3; limb > 0; limb--) {
            value.limbs[limb] = value.limbs[limb] << 4 | value.limbs[limb - 1] >> 60;
        }
        value.limbs[0] = value.limbs[0] << 4 | (uint64_t)digit;
    }
    *out = value;
    return STATUS_OK;
}

void uint256_print_quantity(char text[UINT256_HEX_SIZE], const struct uint256 *value)
{
    uint32_t bits = uint256_bit_length(value);
    uint32_t count = bits == 0 ? 1 : (bits + 3) / 4;

    text[0] = '0';
    text[1] = 'x';
    for (uint32_t i = 0; i < count; i++) {
        uint32_t nibble = count - 1 - i;

        text[2 + i] = "0123456789abcdef"[value->limbs[nibble / 16] >> (4 * (nibble % 16)) & 0xf];
    }
    text[2 + count] = '\0';
}
