/*
 * sha256_armsha.c - SHA-256 by the crypto extension of 64-bit ARM, one message or several
 * interleaved.
 *
 * SHA256H and SHA256H2 wait for each other's result; independent messages fill the unit meanwhile.
 * Compiled for the extension; sha256.c calls it only where the system reports it.
 */
#include "proofs/hash/sha256_kernel.h"

#if SHA256_HAS_ARM

#include <arm_neon.h>

/* The words a..d and e..h, lowest first. */
struct arm_state {
    uint32x4_t abcd;
    uint32x4_t efgh;
};

/* Loads four words of the message, big-endian in memory. */
static inline uint32x4_t words_load(const uint8_t *bytes)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes)));
}

/* The next four schedule words from the last sixteen, oldest first in w[turn % 4]. */
static inline uint32x4_t words_next(const uint32x4_t *w, int turn)
{
    uint32x4_t sum = vsha256su0q_u32(w[turn % 4], w[(turn + 1) % 4]);

    return vsha256su1q_u32(sum, w[(turn + 2) % 4], w[(turn + 3) % 4]);
}

/* One block for each lane. lanes is a constant at every call, so all of this unrolls. */
__attribute__((always_inline)) static inline void
block_lanes(struct arm_state *state, const uint8_t *const *blocks, size_t offset, int lanes)
{
    struct arm_state old[SHA256_ARMSHA_MANY];
    uint32x4_t w[SHA256_ARMSHA_MANY][4];

    UNROLLED
    for (int lane = 0; lane < lanes; lane++) {
        old[lane] = state[lane];
    }
    UNROLLED
    for (int turn = 0; turn < 16; turn++) {
        uint32x4_t k = vld1q_u32(sha256_round_constants + 4 * turn);

        UNROLLED
        for (int lane = 0; lane < lanes; lane++) {
            uint32x4_t words = turn < 4 ? words_load(blocks[lane] + offset + 16 * turn)
                                        : words_next(w[lane], turn);
            uint32x4_t sum = vaddq_u32(words, k);
            uint32x4_t abcd = state[lane].abcd;

            w[lane][turn % 4] = words;
            state[lane].abcd = vsha256hq_u32(abcd, state[lane].efgh, sum);
            state[lane].efgh = vsha256h2q_u32(state[lane].efgh, abcd, sum);
        }
    }
    UNROLLED
    for (int lane = 0; lane < lanes; lane++) {
        state[lane].abcd = vaddq_u32(state[lane].abcd, old[lane].abcd);
        state[lane].efgh = vaddq_u32(state[lane].efgh, old[lane].efgh);
    }
}

__attribute__((always_inline)) static inline void
compress_lanes(uint32_t (*words)[8], const uint8_t *const *blocks, size_t block_count, int lanes)
{
    struct arm_state state[SHA256_ARMSHA_MANY];

    for (int lane = 0; lane < lanes; lane++) {
        state[lane] = (struct arm_state){vld1q_u32(words[lane]), vld1q_u32(words[lane] + 4)};
    }
    for (size_t block = 0; block < block_count; block++) {
        block_lanes(state, blocks, block * 64, lanes);
    }
    for (int lane = 0; lane < lanes; lane++) {
        vst1q_u32(words[lane], state[lane].abcd);
        vst1q_u32(words[lane] + 4, state[lane].efgh);
    }
}

void sha256_compress_armsha(uint32_t (*state)[8], const uint8_t *const *blocks, size_t block_count)
{
    compress_lanes(state, blocks, block_count, 1);
}

void sha256_compress_armsha_many(uint32_t (*state)[8], const uint8_t *const *blocks,
                                 size_t block_count)
{
    compress_lanes(state, blocks, block_count, SHA256_ARMSHA_MANY);
}

#endif /* SHA256_HAS_ARM */
