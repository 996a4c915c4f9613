/*
 * address.h - the 20-byte name of an account, and its spelling with a checksum (EIP-55).
 *
 * A spelling in one case carries no checksum and is taken; mixed case must be the right one.
 */
#ifndef CHAIN_CODEC_ADDRESS_H
#define CHAIN_CODEC_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define ADDRESS_SIZE      20
#define ADDRESS_TEXT_SIZE 43 /* "0x", 40 digits, the NUL */

struct address {
    uint8_t bytes[ADDRESS_SIZE];
};

bool address_equal(const struct address *left, const struct address *right);
bool address_is_zero(const struct address *address);

/* "0x" and 40 hex digits. STATUS_BAD_FORMAT for anything else, and for a checksum that is wrong. */
MUST_CHECK enum status address_parse(struct address *address, const char *text);

/* The EIP-55 spelling. */
void address_print(char text[ADDRESS_TEXT_SIZE], const struct address *address);

/* The address of the contract that the creator's transaction with that nonce creates. */
struct address address_of_contract(const struct address *creator, uint64_t nonce);

#endif /* CHAIN_CODEC_ADDRESS_H */
