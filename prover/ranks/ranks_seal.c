/* ranks_seal.c - see ranks_seal.h. */
#include "prover/ranks/ranks_seal.h"

#include <pthread.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/hash/sha256.h"

#define POLYNOMIAL 0x82f63b78u /* of CRC-32C, reflected */
#define SLICES     8           /* bytes that one turn takes in */

static uint32_t tables[SLICES][256];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        }
        tables[0][byte] = crc;
    }
    for (uint32_t slice = 1; slice < SLICES; slice++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            const uint32_t before = tables[slice - 1][byte];

            tables[slice][byte] = before >> 8 ^ tables[0][before & 0xff];
        }
    }
}

uint32_t ranks_seal_crc(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint32_t crc = UINT32_MAX;

    (void)pthread_once(&tables_made, make_tables);
    for (; size >= SLICES; size -= SLICES, at += SLICES) {
        crc ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
               (uint32_t)at[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
              tables[4][crc >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; size > 0; size--) {
        crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xff];
    }
    return ~crc;
}

static void begin_hash(struct sha256 *hash, const struct secret_key *key, uint8_t pad)
{
    uint8_t block[SHA256_BLOCK_SIZE];

    memset(block, pad, sizeof(block));
    for (size_t i = 0; i < SECRET_KEY_SIZE; i++) {
        block[i] ^= key->bytes[i];
    }
    sha256_init(hash, SHA256_ISA_BEST);
    sha256_add(hash, block, sizeof(block));
    secret_wipe(block, sizeof(block));
}

void ranks_seal_hmac(struct digest *seal, const struct secret_key *key, const void *first,
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

void ranks_seal_key_of_text(struct secret_key *key, const char *text)
{
    struct digest digest;

    sha256(&digest, text, strlen(text));
    memcpy(key->bytes, digest.bytes, sizeof(key->bytes));
    secret_wipe(&digest, sizeof(digest));
}

void ranks_seal_key_of_key(struct secret_key *key, const struct secret_key *from,
                           const void *bytes, size_t size)
{
    struct digest digest;

    ranks_seal_hmac(&digest, from, bytes, size, "", 0);
    memcpy(key->bytes, digest.bytes, sizeof(key->bytes));
    secret_wipe(&digest, sizeof(digest));
}
