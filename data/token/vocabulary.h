/*
 * vocabulary.h - tokens as bytes and as numbers, each found by the other.
 *
 * Bounded by VOCABULARY_MAX ids and VOCABULARY_BYTES_MAX bytes. Refused: two tokens of one id, two
 * ids of one token, a token without bytes.
 */
#ifndef DATA_TOKEN_VOCABULARY_H
#define DATA_TOKEN_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define VOCABULARY_MAX       4194304u /* ids are below it */
#define VOCABULARY_BYTES_MAX (UINT32_C(1) << 28)
#define VOCABULARY_NONE      UINT32_MAX

struct vocabulary {
    uint8_t *bytes; /* of all tokens, one behind the other */
    size_t bytes_size;
    size_t bytes_capacity;
    uint32_t *starts; /* of id: where its bytes begin; VOCABULARY_NONE: there is no such token */
    uint32_t *sizes;
    uint32_t id_count; /* one above the largest id */
    uint32_t id_capacity;
    uint32_t *slots; /* ids by the hash of their bytes */
    size_t slot_count;
    size_t used;
};

/* Accepts a zeroed vocabulary, which is empty. */
void vocabulary_release(struct vocabulary *vocabulary);

MUST_CHECK enum status vocabulary_add(struct vocabulary *vocabulary, struct error *error,
                                      uint32_t id, const void *bytes, size_t size);

/* The id of exactly these bytes, or VOCABULARY_NONE. */
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const void *bytes, size_t size);

/* The bytes of a token; NULL: there is none of this id. */
const uint8_t *vocabulary_bytes(const struct vocabulary *vocabulary, uint32_t id, size_t *size);

/* A hash of bytes that does not depend on the machine. */
uint64_t vocabulary_hash(const void *bytes, size_t size);

#endif /* DATA_TOKEN_VOCABULARY_H */
