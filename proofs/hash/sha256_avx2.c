/*
 * sha256_avx2.c - eight SHA-256 messages in the eight lanes of AVX2 vectors.
 *
 * For the many x86-64 processors that have AVX2 and no SHA instructions. Compiled for AVX2;
 * sha256.c calls it only where the processor reports AVX2.
 */
#include "proofs/hash/sha256_kernel.h"

#if SHA256_HAS_X86

#include <string.h>

#define WORD sha256_lanes8
typedef uint32_t sha256_lanes8 __attribute__((vector_size(32)));

#include "proofs/hash/sha256_rounds.h"

/* The word at offset in the blocks of every lane. */
static inline WORD word_load(const uint8_t *const *blocks, size_t offset)
{
    uint32_t words[SHA256_AVX2_MANY];
    WORD lanes;

    UNROLLED
    for (int lane = 0; lane < SHA256_AVX2_MANY; lane++) {
        memcpy(&words[lane], blocks[lane] + offset, sizeof(words[lane]));
        words[lane] = __builtin_bswap32(words[lane]);
    }
    memcpy(&lanes, words, sizeof(lanes));
    return lanes;
}

void sha256_compress_avx2_many(uint32_t (*state)[8], const uint8_t *const *blocks,
                               size_t block_count)
{
    WORD s[8];
    WORD w[16];

    for (int word = 0; word < 8; word++) {
        for (int lane = 0; lane < SHA256_AVX2_MANY; lane++) {
            s[word][lane] = state[lane][word];
        }
    }
    for (size_t block = 0; block < block_count; block++) {
        for (size_t word = 0; word < 16; word++) {
            w[word] = word_load(blocks, block * 64 + 4 * word);
        }
        block_add(s, w);
    }
    for (int word = 0; word < 8; word++) {
        for (int lane = 0; lane < SHA256_AVX2_MANY; lane++) {
            state[lane][word] = s[word][lane];
        }
    }
}

#endif /* SHA256_HAS_X86 */
