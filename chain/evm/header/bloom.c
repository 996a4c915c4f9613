/* bloom.c - see bloom.h. */
#include "chain/evm/header/bloom.h"

#include "chain/codec/keccak.h"

enum {
    BITS = 8 * BLOOM_SIZE,
};

struct bloom_item bloom_item_of(const void *bytes, size_t size)
{
    const struct hash32 hash = keccak256(bytes, size);
    struct bloom_item item;

    for (size_t i = 0; i < 3; i++) {
        item.bits[i] = (uint16_t)((hash.bytes[2 * i] << 8 | hash.bytes[2 * i + 1]) % BITS);
    }
    return item;
}

/* Bit 0 is the lowest of the last byte. */
static uint8_t *byte_of(struct bloom *bloom, uint16_t bit)
{
    return &bloom->bytes[BLOOM_SIZE - 1 - bit / 8];
}

void bloom_add(struct bloom *bloom, const struct bloom_item *item)
{
    for (size_t i = 0; i < 3; i++) {
        *byte_of(bloom, item->bits[i]) |= (uint8_t)(1 << item->bits[i] % 8);
    }
}

bool bloom_has(const struct bloom *bloom, const struct bloom_item *item)
{
    for (size_t i = 0; i < 3; i++) {
        if ((bloom->bytes[BLOOM_SIZE - 1 - item->bits[i] / 8] >> item->bits[i] % 8 & 1) == 0) {
            return false;
        }
    }
    return true;
}
