/*
 * philox.h - Philox4x32-10: the source of every random choice.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A block of
 * four words is a pure function of a counter and a key, so anybody can draw any element of any step
 * again, alone and in any order. Not for secrets.
 *
 * Counter words: element low, element high, stream, step. Key words: seed low, seed high.
 */
#ifndef ENGINE_OPS_PHILOX_H
#define ENGINE_OPS_PHILOX_H

#include <stdint.h>

#include "engine/ops/portable.h"

#define PHILOX_ROUNDS       10
/* A round multiplies two words of the counter by these. */
#define PHILOX_MULTIPLIER_0 UINT32_C(0xd2511f53)
#define PHILOX_MULTIPLIER_2 UINT32_C(0xcd9e8d57)
/* Added to the words of the key between rounds. */
#define PHILOX_KEY_STEP_0   UINT32_C(0x9e3779b9)
#define PHILOX_KEY_STEP_1   UINT32_C(0xbb67ae85)

struct philox_block {
    uint32_t words[4];
};

/* The block of a counter under a key; the words are in the paper's order. */
RULE struct philox_block philox(const uint32_t counter[4], const uint32_t key[2]);

/* The block that the engine draws for an element of a stream in a step. */
RULE struct philox_block philox_draw(uint64_t element, uint32_t stream, uint32_t step,
                                     uint64_t seed);

/*
 * floor(r * count / 2^64), where r = word 1 * 2^32 + word 0: an integer in 0 .. count-1. Each has
 * a probability within 2^-64 of 1/count.
 */
RULE uint64_t philox_below(const struct philox_block *block, uint64_t count);

#endif /* ENGINE_OPS_PHILOX_H */
