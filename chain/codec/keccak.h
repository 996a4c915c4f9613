/*
 * keccak.h - Keccak-256, the hash of the EVM chains, and the 32-byte value they are made of.
 *
 * This is the original Keccak padding (0x01), not SHA3-256 (0x06): the chains settled on it before
 * the standard was final. Nothing here allocates or fails.
 */
#ifndef CHAIN_CODEC_KECCAK_H
#define CHAIN_CODEC_KECCAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH32_SIZE 32

/* Any 32-byte value of a chain: a hash, a root, a job's key. */
struct hash32 {
    uint8_t bytes[HASH32_SIZE];
};

#define KECCAK_RATE 136

struct keccak {
    uint64_t lanes[25];
    uint32_t used; /* bytes absorbed into the current block; < KECCAK_RATE */
};

void keccak_init(struct keccak *keccak);
void keccak_add(struct keccak *keccak, const void *bytes, size_t size);

/* The hash of everything added. Call keccak_init before the next use. */
struct hash32 keccak_end(struct keccak *keccak);

struct hash32 keccak256(const void *bytes, size_t size);

bool hash32_equal(const struct hash32 *left, const struct hash32 *right);
bool hash32_is_zero(const struct hash32 *hash);

#endif /* CHAIN_CODEC_KECCAK_H */
