/*
 * uint256.h - unsigned numbers of 256 bits: balances, fees, ABI words.
 *
 * An operation that leaves the range says so instead of wrapping; division is only what printing
 * needs. Amounts of money stay far below the range (wei.h), so an overflow comes from a hostile
 * number.
 */
#ifndef CHAIN_CODEC_UINT256_H
#define CHAIN_CODEC_UINT256_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define UINT256_SIZE     32
#define UINT256_HEX_SIZE 67 /* "0x", 64 digits, the NUL */

struct uint256 {
    uint64_t limbs[4]; /* least significant first */
};

struct uint256 uint256_of(uint64_t value);
struct uint256 uint256_from_bytes(const uint8_t bytes[UINT256_SIZE]); /* big-endian */
void uint256_to_bytes(uint8_t bytes[UINT256_SIZE], const struct uint256 *value);

/* Below 0, 0 or above 0 as left is below, equal to or above right. */
int uint256_compare(const struct uint256 *left, const struct uint256 *right);
uint32_t uint256_bit_length(const struct uint256 *value);

/* False, and *out untouched, when the value has more than 64 bits. */
MUST_CHECK bool uint256_to_u64(uint64_t *out, const struct uint256 *value);

/* STATUS_OVER_LIMIT, and *out untouched, when the result is not in the range. out may be an
 * operand. */
MUST_CHECK enum status uint256_add(struct uint256 *out, const struct uint256 *left,
                                   const struct uint256 *right);
MUST_CHECK enum status uint256_multiply(struct uint256 *out, const struct uint256 *left,
                                        uint64_t factor);

/* Quotient in *out, remainder returned. divisor > 0. */
uint64_t uint256_divide(struct uint256 *out, const struct uint256 *value, uint64_t divisor);

/* JSON-RPC quantities: "0x0", or "0x" and hex digits of which the first is not zero. */
MUST_CHECK enum status uint256_parse_quantity(struct uint256 *out, const char *text);
void uint256_print_quantity(char text[UINT256_HEX_SIZE], const struct uint256 *value);

#endif /* CHAIN_CODEC_UINT256_H */
