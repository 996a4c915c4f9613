/*
 * bloom.h - the bloom filter of a block: which addresses and topics its logs may have.
 *
 * An item that the filter lacks is in no log of the block. One that it has may be there.
 */
#ifndef CHAIN_EVM_HEADER_BLOOM_H
#define CHAIN_EVM_HEADER_BLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOOM_SIZE 256

struct bloom {
    uint8_t bytes[BLOOM_SIZE];
};

/* The bits that an address or a topic sets. */
struct bloom_item {
    uint16_t bits[3];
};

struct bloom_item bloom_item_of(const void *bytes, size_t size);
void bloom_add(struct bloom *bloom, const struct bloom_item *item);
bool bloom_has(const struct bloom *bloom, const struct bloom_item *item);

#endif /* CHAIN_EVM_HEADER_BLOOM_H */
