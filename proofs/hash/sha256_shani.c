/*
 * sha256_shani.c - SHA-256 by the SHA instructions of x86-64, one message or several interleaved.
 *
 * A SHA256RNDS2 takes twice as long to finish as the unit takes to start the next one, which waits
 * for it. One message keeps the unit half idle; independent messages fill it. sha256.c calls this
 * only where the processor reports the instructions.
 */
#include "proofs/hash/sha256_kernel.h"

#if SHA256_HAS_X86

#include <immintrin.h>

#define SHANI __attribute__((target("sha,sse4.1,ssse3")))

/* The SHA instructions keep the words a..h as {f, e, b, a} and {h, g, d, c}, lowest first. */
struct shani_state {
    __m128i abef;
    __m128i cdgh;
};

SHANI static inline struct shani_state state_load(const uint32_t *words)
{
    __m128i abcd = _mm_loadu_si128((const __m128i *)words);
    __m128i efgh = _mm_loadu_si128((const __m128i *)(words + 4));
    __m128i badc = _mm_shuffle_epi32(abcd, 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(efgh, 0x1B);

    return (struct shani_state){
        .abef = _mm_alignr_epi8(badc, hgfe, 8),
        .cdgh = _mm_blend_epi16(hgfe, badc, 0xF0),
    };
}

SHANI static inline void state_store(uint32_t *words, const struct shani_state *state)
{
    __m128i feba = _mm_shuffle_epi32(state->abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(state->cdgh, 0xB1);

    _mm_storeu_si128((__m128i *)words, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(words + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Loads four words of the message, big-endian in memory. */
SHANI static inline __m128i words_load(const uint8_t *bytes)
{
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);

    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes), swap);
}

/* The next four schedule words from the last sixteen, oldest first in w[turn % 4]. */
SHANI static inline __m128i words_next(const __m128i *w, int turn)
{
    __m128i oldest = w[turn % 4];
    __m128i newest = w[(turn + 3) % 4];
    __m128i seventh = _mm_alignr_epi8(newest, w[(turn + 2) % 4], 4);
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(oldest, w[(turn + 1) % 4]), seventh);

    return _mm_sha256msg2_epu32(sum, newest);
}

/* One block for each lane. lanes is a constant at every call, so all of this unrolls. */
SHANI __attribute__((always_inline)) static inline void
block_lanes(struct shani_state *state, const uint8_t *const *blocks, size_t offset, int lanes)
{
    struct shani_state old[SHA256_SHANI_MANY];
    __m128i w[SHA256_SHANI_MANY][4];

    UNROLLED
    for (int lane = 0; lane < lanes; lane++) {
        old[lane] = state[lane];
    }
    UNROLLED
    for (int turn = 0; turn < 16; turn++) {
        __m128i k = _mm_loadu_si128((const __m128i *)(sha256_round_constants + 4 * turn));

        UNROLLED
        for (int lane = 0; lane < lanes; lane++) {
            __m128i words = turn < 4 ? words_load(blocks[lane] + offset + 16 * turn)
                                     : words_next(w[lane], turn);
            __m128i sum = _mm_add_epi32(words, k);

            w[lane][turn % 4] = words;
            state[lane].cdgh = _mm_sha256rnds2_epu32(state[lane].cdgh, state[lane].abef, sum);
            sum = _mm_shuffle_epi32(sum, 0x0E);
            state[lane].abef = _mm_sha256rnds2_epu32(state[lane].abef, state[lane].cdgh, sum);
        }
    }
    UNROLLED
    for (int lane = 0; lane < lanes; lane++) {
        state[lane].abef = _mm_add_epi32(state[lane].abef, old[lane].abef);
        state[lane].cdgh = _mm_add_epi32(state[lane].cdgh, old[lane].cdgh);
    }
}

SHANI __attribute__((always_inline)) static inline void
compress_lanes(uint32_t (*words)[8], const uint8_t *const *blocks, size_t block_count, int lanes)
{
    struct shani_state state[SHA256_SHANI_MANY];

    for (int lane = 0; lane < lanes; lane++) {
        state[lane] = state_load(words[lane]);
    }
    for (size_t block = 0; block < block_count; block++) {
        block_lanes(state, blocks, block * 64, lanes);
    }
    for (int lane = 0; lane < lanes; lane++) {
        state_store(words[lane], &state[lane]);
    }
}

SHANI void sha256_compress_shani(uint32_t (*state)[8], const uint8_t *const *blocks,
                                 size_t block_count)
{
    compress_lanes(state, blocks, block_count, 1);
}

SHANI void sha256_compress_shani_many(uint32_t (*state)[8], const uint8_t *const *blocks,
                                      size_t block_count)
{
    compress_lanes(state, blocks, block_count, SHA256_SHANI_MANY);
}

#endif /* SHA256_HAS_X86 */
