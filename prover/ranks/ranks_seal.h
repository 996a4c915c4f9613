/*
 * ranks_seal.h - how a message between ranks is sealed: CRC-32C finds damage, HMAC-SHA-256 finds
 * a sender that does not know the ranks' secret.
 */
#ifndef PROVER_RANKS_RANKS_SEAL_H
#define PROVER_RANKS_RANKS_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/secret.h"

#define RANKS_KEY_SIZE 32

struct ranks_key {
    uint8_t bytes[RANKS_KEY_SIZE];
};

/* CRC-32C (Castagnoli) of the bytes. */
uint32_t ranks_seal_crc(const void *bytes, size_t size);

/* HMAC-SHA-256 (RFC 2104) of two runs of bytes, one after the other. */
void ranks_seal_hmac(struct digest *seal, const struct ranks_key *key, const void *first,
                     size_t first_size, const void *second, size_t second_size);

/* The key of a text of any length, and the key that follows from a key and bytes that all know. */
void ranks_seal_key_of_text(struct ranks_key *key, const char *text);
void ranks_seal_key_of_key(struct ranks_key *key, const struct ranks_key *from, const void *bytes,
                           size_t size);

#endif /* PROVER_RANKS_RANKS_SEAL_H */
