/*
 * sha256_rounds.h - the rounds of FIPS 180-4, 6.2.2, over any type that adds, shifts and xors as
 * uint32_t does: a word for one message, a vector for as many messages as it has lanes.
 *
 * For the kernels alone. The file that includes it first defines WORD as that type.
 */
#ifndef PROOFS_HASH_SHA256_ROUNDS_H
#define PROOFS_HASH_SHA256_ROUNDS_H

#include "proofs/hash/sha256_kernel.h"

static inline WORD rotate_right(WORD x, int by)
{
    return (x >> by) | (x << (32 - by));
}

/* The schedule's word of this round from the sixteen before it, held in w by round % 16. */
static inline WORD schedule_next(const WORD *w, int round)
{
    WORD early = w[(round + 1) % 16];
    WORD late = w[(round + 14) % 16];
    WORD sigma0 = rotate_right(early, 7) ^ rotate_right(early, 18) ^ (early >> 3);
    WORD sigma1 = rotate_right(late, 17) ^ rotate_right(late, 19) ^ (late >> 10);

    return w[round % 16] + sigma0 + w[(round + 9) % 16] + sigma1;
}

/* s holds a..h. Instead of all words moving up one place, the place of `a` moves down. */
static inline void round_one(WORD *s, int round, WORD word)
{
    WORD a = s[(64 - round) % 8];
    WORD b = s[(65 - round) % 8];
    WORD c = s[(66 - round) % 8];
    WORD e = s[(68 - round) % 8];
    WORD f = s[(69 - round) % 8];
    WORD g = s[(70 - round) % 8];
    WORD sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
    WORD sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
    WORD choice = ((f ^ g) & e) ^ g;
    WORD majority = (a & b) | (c & (a | b));
    WORD first = s[(71 - round) % 8] + sum1 + choice + sha256_round_constants[round] + word;

    s[(67 - round) % 8] += first;
    s[(71 - round) % 8] = first + sum0 + majority;
}

/* Adds one block, already in w as sixteen native words, to the state s. Destroys w. */
static inline void block_add(WORD *s, WORD *w)
{
    WORD t[8];

    UNROLLED
    for (int i = 0; i < 8; i++) {
        t[i] = s[i];
    }
    UNROLLED
    for (int round = 0; round < 16; round++) {
        round_one(t, round, w[round]);
    }
    UNROLLED
    for (int round = 16; round < 64; round++) {
        w[round % 16] = schedule_next(w, round);
        round_one(t, round, w[round % 16]);
    }
    UNROLLED
    for (int i = 0; i < 8; i++) {
        s[i] += t[i];
    }
}

#endif /* PROOFS_HASH_SHA256_ROUNDS_H */
