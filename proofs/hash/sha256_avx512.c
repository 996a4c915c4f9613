/*
 * sha256_avx512.c - sixteen SHA-256 messages in the sixteen lanes of AVX-512 vectors.
 *
 * One instruction rotates sixteen words, and one makes any function of three bits. Compiled for
 * AVX-512; sha256_many.c calls it only where the processor reports it.
 */
#include "proofs/hash/sha256_kernel.h"

#if SHA256_HAS_X86

#include <immintrin.h>

#define WORD sha256_lanes16
typedef uint32_t sha256_lanes16 __attribute__((vector_size(64)));

#include "proofs/hash/sha256_rounds.h"

/* The next 64 bytes of each lane as big-endian words. */
static inline void rows_load(__m512i rows[16], const uint8_t *const *blocks, size_t offset)
{
    const __m512i swap = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);

    UNROLLED
    for (int lane = 0; lane < SHA256_AVX512_MANY; lane++) {
        rows[lane] = _mm512_shuffle_epi8(_mm512_loadu_si512(blocks[lane] + offset), swap);
    }
}

/* In each quarter of a row: afterwards row 4i + j holds word j of it for the lanes 4i to 4i + 3. */
static inline void quarters_turn(__m512i rows[16])
{
    UNROLLED
    for (int i = 0; i < 16; i += 4) {
        __m512i low01 = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        __m512i high01 = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
        __m512i low23 = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]);
        __m512i high23 = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);

        rows[i] = _mm512_unpacklo_epi64(low01, low23);
        rows[i + 1] = _mm512_unpackhi_epi64(low01, low23);
        rows[i + 2] = _mm512_unpacklo_epi64(high01, high23);
        rows[i + 3] = _mm512_unpackhi_epi64(high01, high23);
    }
}

/* The sixteen words at offset, each of all lanes. */
static inline void words_load(WORD w[16], const uint8_t *const *blocks, size_t offset)
{
    __m512i rows[16];

    rows_load(rows, blocks, offset);
    quarters_turn(rows);
    UNROLLED
    for (int j = 0; j < 4; j++) {
        __m512i even01 = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0x88); /* quarters 0 and 2 */
        __m512i odd01 = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0xdd);
        __m512i even23 = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0x88);
        __m512i odd23 = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0xdd);

        w[j] = (WORD)_mm512_shuffle_i32x4(even01, even23, 0x88);
        w[4 + j] = (WORD)_mm512_shuffle_i32x4(odd01, odd23, 0x88);
        w[8 + j] = (WORD)_mm512_shuffle_i32x4(even01, even23, 0xdd);
        w[12 + j] = (WORD)_mm512_shuffle_i32x4(odd01, odd23, 0xdd);
    }
}

void sha256_compress_avx512_many(uint32_t (*state)[8], const uint8_t *const *blocks,
                                 size_t block_count)
{
    const __m512i lanes = _mm512_set_epi32(120, 112, 104, 96, 88, 80, 72, 64, 56, 48, 40, 32, 24,
                                           16, 8, 0); /* eight words of state each */
    WORD s[8];
    WORD w[16];

    UNROLLED
    for (int word = 0; word < 8; word++) {
        s[word] = (WORD)_mm512_i32gather_epi32(lanes, &state[0][word], 4);
    }
    for (size_t block = 0; block < block_count; block++) {
        words_load(w, blocks, block * 64);
        block_add(s, w);
    }
    UNROLLED
    for (int word = 0; word < 8; word++) {
        _mm512_i32scatter_epi32(&state[0][word], lanes, (__m512i)s[word], 4);
    }
}

#endif /* SHA256_HAS_X86 */
