/*
 * sha256.h - SHA-256 (FIPS 180-4): one message, a stream, or many equal-sized messages at once.
 *
 * Commitments hash millions of independent 1,025-byte leaves and 65-byte nodes. One SHA-256 is a
 * chain of dependent instructions that leaves most of a core idle, so sha256_many() runs several
 * messages side by side. Every instruction set gives the same digests.
 *
 * Nothing here allocates, locks or prints.
 */
#ifndef PROOFS_HASH_SHA256_H
#define PROOFS_HASH_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"

#define SHA256_BLOCK_SIZE 64

/* How the compression function is computed; the digests do not depend on it. */
enum sha256_isa {
    SHA256_ISA_BEST = 0, /* the fastest that this processor has */
    SHA256_ISA_SCALAR,   /* portable C */
    SHA256_ISA_AVX2,     /* many: eight messages in the lanes of a vector; one: as scalar */
    SHA256_ISA_SHANI,    /* the SHA instructions of x86-64; many: interleaved streams */
    SHA256_ISA_ARMSHA,   /* the same of 64-bit ARM, its crypto extension */
    SHA256_ISA_AVX512,   /* many: sixteen messages in the lanes of a vector; one: as scalar */
};
#define SHA256_ISA_COUNT 6

/* A stream in progress. A plain value: copy it to hash two continuations of one prefix. */
struct sha256 {
    uint32_t state[8];
    uint64_t size;                    /* bytes added so far; more than 2^61 - 1 are refused */
    uint8_t block[SHA256_BLOCK_SIZE]; /* the first size % 64 bytes wait here for their block */
    void (*compress)(uint32_t (*state)[8], const uint8_t *const *blocks, size_t block_count);
};

/* Can this processor, and this build, use it? SCALAR and BEST always work. */
bool sha256_isa_usable(enum sha256_isa isa);

/* "shani": for messages. Of BEST the name of what hashes many messages here. */
const char *sha256_isa_name(enum sha256_isa isa);

/* The isa must be usable. */
void sha256_init(struct sha256 *hash, enum sha256_isa isa);

/*
 * In portable C. What convicts (evidence and its paths, docs/TRUST.md) is hashed so, one message
 * at a time: then no kernel of an instruction set stands between a true step and a conviction.
 */
void sha256_init_scalar(struct sha256 *hash);
void sha256_scalar(struct digest *digest, const void *data, size_t data_size);

void sha256_add(struct sha256 *hash, const void *data, size_t data_size);

/* Ends the stream; init it again before adding more. */
void sha256_end(struct sha256 *hash, struct digest *digest);

/* The digest of one message, by the fastest instruction set. */
void sha256(struct digest *digest, const void *data, size_t data_size);

/*
 * digests[i] = SHA-256(prefix || message i) for count messages of message_size bytes each that
 * follow one another in messages. The digests may overwrite the messages from their start when
 * message_size is at least 32: a message is read before its digest, or a later one, is written.
 */
void sha256_many(struct digest *digests, uint8_t prefix, const void *messages, size_t message_size,
                 uint64_t count, enum sha256_isa isa);

#endif /* PROOFS_HASH_SHA256_H */
