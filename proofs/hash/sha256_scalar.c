/* sha256_scalar.c - the compression function in portable C; the table that all kernels share. */
#include <string.h>

#include "base/endian.h"
#include "base/sha256_numbers.h"
#include "proofs/hash/sha256_kernel.h"

#define WORD uint32_t
#include "proofs/hash/sha256_rounds.h"

const uint32_t sha256_round_constants[64] = {SHA256_ROUND_NUMBERS};

void sha256_compress_scalar(uint32_t (*state)[8], const uint8_t *const *blocks, size_t block_count)
{
    uint32_t s[8];
    uint32_t w[16];

    memcpy(s, state[0], sizeof(s));
    for (size_t block = 0; block < block_count; block++) {
        const uint8_t *bytes = blocks[0] + block * 64;

        for (size_t i = 0; i < 16; i++) {
            w[i] = endian_load_be32(bytes + 4 * i);
        }
        block_add(s, w);
    }
    memcpy(state[0], s, sizeof(s));
}
