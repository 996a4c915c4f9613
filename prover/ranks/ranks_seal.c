/* ranks_seal.c - see ranks_seal.h. */
#include "prover/ranks/ranks_seal.h"

#include <string.h>

#include "proofs/hash/sha256.h"

#define SLICES 8 /* bytes that one turn takes in */

/*
 * CRC-32C (polynomial 0x82f63b78, reflected) is linear: the entry of a byte is the sum of those of
 * its bits. A table is written as its eight entries of one bit each. Table 0 takes in one byte;
 * table s takes in a byte that s more follow.
 */
#define BIT(i, k, entry) (((i) >> (k)&1u) != 0 ? (uint32_t)(entry) : 0u)
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                           \
    (BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^     \
     BIT(i, 6, g) ^ BIT(i, 7, h))
#define FOUR(i, ...)                                                                               \
    ENTRY((i), __VA_ARGS__), ENTRY((i) + 1u, __VA_ARGS__), ENTRY((i) + 2u, __VA_ARGS__),           \
        ENTRY((i) + 3u, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                            \
    FOUR((i), __VA_ARGS__), FOUR((i) + 4u, __VA_ARGS__), FOUR((i) + 8u, __VA_ARGS__),              \
        FOUR((i) + 12u, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                         \
    SIXTEEN((i), __VA_ARGS__), SIXTEEN((i) + 16u, __VA_ARGS__), SIXTEEN((i) + 32u, __VA_ARGS__),   \
        SIXTEEN((i) + 48u, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        SIXTY_FOUR(0u, __VA_ARGS__), SIXTY_FOUR(64u, __VA_ARGS__), SIXTY_FOUR(128u, __VA_ARGS__),  \
            SIXTY_FOUR(192u, __VA_ARGS__)                                                          \
    }

static const uint32_t tables[SLICES][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};

uint32_t ranks_seal_crc(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint32_t crc = UINT32_MAX;

    for (; size >= SLICES; size -= SLICES, at += SLICES) {
        crc ^=
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
              tables[4][crc >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; size > 0; size--) {
        crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xff];
    }
    return ~crc;
}

static void begin_hash(struct sha256 *hash, const struct ranks_key *key, uint8_t pad)
{
    uint8_t block[SHA256_BLOCK_SIZE];

    memset(block, pad, sizeof(block));
    for (size_t i = 0; i < RANKS_KEY_SIZE; i++) {
        block[i] ^= key->bytes[i];
    }
    sha256_init(hash, SHA256_ISA_BEST);
    sha256_add(hash, block, sizeof(block));
    secret_wipe(block, sizeof(block));
}

void ranks_seal_hmac(struct digest *seal, const struct ranks_key *key, const void *first,
                     size_t first_size, const void *second, size_t second_size)
{
    struct sha256 hash;
    struct digest inner;

    begin_hash(&hash, key, 0x36);
    sha256_add(&hash, first, first_size);
    sha256_add(&hash, second, second_size);
    sha256_end(&hash, &inner);
    begin_hash(&hash, key, 0x5c);
    sha256_add(&hash, inner.bytes, sizeof(inner.bytes));
    sha256_end(&hash, seal);
}

void ranks_seal_key_of_text(struct ranks_key *key, const char *text)
{
    struct digest digest;

    sha256(&digest, text, strlen(text));
    memcpy(key->bytes, digest.bytes, sizeof(key->bytes));
    secret_wipe(&digest, sizeof(digest));
}

void ranks_seal_key_of_key(struct ranks_key *key, const struct ranks_key *from, const void *bytes,
                           size_t size)
{
    struct digest digest;

    ranks_seal_hmac(&digest, from, bytes, size, "", 0);
    memcpy(key->bytes, digest.bytes, sizeof(key->bytes));
    secret_wipe(&digest, sizeof(digest));
}
