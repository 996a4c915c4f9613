/* hex_bytes.h - test vectors are written in hex: turns such text into bytes. Tests only. */
#ifndef TESTS_CHAIN_CODEC_HEX_BYTES_H
#define TESTS_CHAIN_CODEC_HEX_BYTES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/address.h"
#include "chain/codec/keccak.h"

/* Returns the number of bytes; text is a literal of the test, so a bad one is a bug. */
static inline size_t hex_bytes(uint8_t *bytes, size_t size, const char *text)
{
    size_t count = strlen(text) / 2;

    assert(strlen(text) % 2 == 0);
    assert(count <= size);
    for (size_t i = 0; i < count; i++) {
        unsigned value = 0;
        int read = sscanf(text + 2 * i, "%2x", &value);

        assert(read == 1);
        bytes[i] = (uint8_t)value;
    }
    return count;
}

static inline struct hash32 hex_hash(const char *text)
{
    struct hash32 hash;
    size_t count = hex_bytes(hash.bytes, sizeof(hash.bytes), text);

    assert(count == HASH32_SIZE);
    return hash;
}

static inline struct address hex_address(const char *text)
{
    struct address address;
    size_t count = hex_bytes(address.bytes, sizeof(address.bytes), text);

    assert(count == ADDRESS_SIZE);
    return address;
}

#endif /* TESTS_CHAIN_CODEC_HEX_BYTES_H */
