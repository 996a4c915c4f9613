/* sha256.c - see sha256.h: padding and streams, and all of one message in portable C. */
#include "proofs/hash/sha256.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/hash/sha256_kernel.h"

/* FIPS 180-4, 5.3.3 */
const uint32_t sha256_initial_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

void sha256_store(struct digest *digest, const uint32_t *state)
{
    for (int i = 0; i < 8; i++) {
        endian_store_be32(digest->bytes + 4 * i, state[i]);
    }
}

void sha256_init_scalar(struct sha256 *hash)
{
    memcpy(hash->state, sha256_initial_state, sizeof(hash->state));
    hash->size = 0;
    hash->compress = sha256_compress_scalar;
}

static void compress_one(struct sha256 *hash, const uint8_t *blocks, size_t block_count)
{
    const uint8_t *const lane[1] = {blocks};

    hash->compress(&hash->state, lane, block_count);
}

void sha256_add(struct sha256 *hash, const void *data, size_t data_size)
{
    const uint8_t *bytes = data;
    size_t held = hash->size % SHA256_BLOCK_SIZE;

    if (data_size == 0) {
        return;
    }
    assert(data_size < UINT64_C(1) << 61);
    assert(hash->size < (UINT64_C(1) << 61) - data_size);
    hash->size += data_size;
    if (held > 0) {
        size_t room = SHA256_BLOCK_SIZE - held;
        size_t taken = data_size < room ? data_size : room;

        memcpy(hash->block + held, bytes, taken);
        if (taken < room) {
            return;
        }
        compress_one(hash, hash->block, 1);
        bytes += taken;
        data_size -= taken;
    }
    if (data_size >= SHA256_BLOCK_SIZE) {
        compress_one(hash, bytes, data_size / SHA256_BLOCK_SIZE);
    }
    memcpy(hash->block, bytes + data_size / SHA256_BLOCK_SIZE * SHA256_BLOCK_SIZE,
           data_size % SHA256_BLOCK_SIZE);
}

size_t sha256_pad(uint8_t *blocks, size_t held, uint64_t message_size)
{
    size_t block_count = held < SHA256_BLOCK_SIZE - 8 ? 1 : 2;
    size_t size = block_count * SHA256_BLOCK_SIZE;

    memset(blocks + held, 0, size - held);
    blocks[held] = 0x80;
    endian_store_be64(blocks + size - 8, message_size * 8);
    return block_count;
}

void sha256_end(struct sha256 *hash, struct digest *digest)
{
    uint8_t tail[2 * SHA256_BLOCK_SIZE];
    size_t held = hash->size % SHA256_BLOCK_SIZE;

    memcpy(tail, hash->block, held);
    compress_one(hash, tail, sha256_pad(tail, held, hash->size));
    sha256_store(digest, hash->state);
}

void sha256_scalar(struct digest *digest, const void *data, size_t data_size)
{
    struct sha256 hash;

    sha256_init_scalar(&hash);
    sha256_add(&hash, data, data_size);
    sha256_end(&hash, digest);
}
