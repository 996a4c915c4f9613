/*
 * digest.h - a SHA-256 value as a type, so that a root is never mistaken for any other bytes.
 *
 * Digests are public: comparing them takes a time that depends on them.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_SIZE 32

struct digest {
    uint8_t bytes[DIGEST_SIZE];
};

static inline bool digest_equal(const struct digest *left, const struct digest *right)
{
    return memcmp(left->bytes, right->bytes, DIGEST_SIZE) == 0;
}

#endif /* BASE_DIGEST_H */
