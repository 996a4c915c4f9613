/* keccak.c - see keccak.h. The permutation is Keccak-f[1600] of FIPS 202, section 3. */
#include "chain/codec/keccak.h"

#include <string.h>

enum {
    LANES = 25,
    ROUNDS = 24,
    PADDING_FIRST = 0x01,
    PADDING_LAST = 0x80,
};

/* FIPS 202, algorithm 5 (rc), unrolled: the constants of iota. */
static const uint64_t round_constants[ROUNDS] = {
    0x0000000000000001u, 0x0000000000008082u, 0x800000000000808au, 0x8000000080008000u,
    0x000000000000808bu, 0x0000000080000001u, 0x8000000080008081u, 0x8000000000008009u,
    0x000000000000008au, 0x0000000000000088u, 0x0000000080008009u, 0x000000008000000au,
    0x000000008000808bu, 0x800000000000008bu, 0x8000000000008089u, 0x8000000000008003u,
    0x8000000000008002u, 0x8000000000000080u, 0x000000000000800au, 0x800000008000000au,
    0x8000000080008081u, 0x8000000000008080u, 0x0000000080000001u, 0x8000000080008008u,
};

static uint64_t rotate_left(uint64_t value, unsigned count)
{
    return count == 0 ? value : value << count | value >> (64 - count);
}

static void theta(uint64_t lanes[LANES])
{
    uint64_t columns[5];

#pragma GCC unroll 5
    for (int x = 0; x < 5; x++) {
        columns[x] = lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20];
    }
#pragma GCC unroll 5
    for (int x = 0; x < 5; x++) {
        uint64_t mix = columns[(x + 4) % 5] ^ rotate_left(columns[(x + 1) % 5], 1);

#pragma GCC unroll 5
        for (int y = 0; y < LANES; y += 5) {
            lanes[x + y] ^= mix;
        }
    }
}

/* Rho and pi in one walk from lane 1 on: lane (x, y) goes to (y, 2x + 3y), turned by the triangular
 * number of its place in the walk. */
static void rho_pi(uint64_t lanes[LANES])
{
    static const uint8_t next[ROUNDS] = {10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                         15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1};
    uint64_t moving = lanes[1];

#pragma GCC unroll 24
    for (unsigned t = 0; t < ROUNDS; t++) {
        uint64_t kept = lanes[next[t]];

        lanes[next[t]] = rotate_left(moving, (t + 1) * (t + 2) / 2 % 64);
        moving = kept;
    }
}

static void chi(uint64_t lanes[LANES])
{
#pragma GCC unroll 5
    for (int y = 0; y < LANES; y += 5) {
        uint64_t row[5];

        memcpy(row, &lanes[y], sizeof(row));
#pragma GCC unroll 5
        for (int x = 0; x < 5; x++) {
            lanes[x + y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
        }
    }
}

/* The loops of a round are unrolled: places and turns become constants, and lanes registers. Every
 * event and every move that is read is hashed for. */
static void permute_lanes(uint64_t lanes[LANES])
{
    for (int round = 0; round < ROUNDS; round++) {
        theta(lanes);
        rho_pi(lanes);
        chi(lanes);
        lanes[0] ^= round_constants[round];
    }
}

static void absorb_byte(struct keccak *keccak, uint32_t at, uint8_t byte)
{
    keccak->lanes[at / 8] ^= (uint64_t)byte << (8 * (at % 8));
}

void keccak_init(struct keccak *keccak)
{
    memset(keccak, 0, sizeof(*keccak));
}

void keccak_add(struct keccak *keccak, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    for (size_t i = 0; i < size; i++) {
        absorb_byte(keccak, keccak->used, from[i]);
        keccak->used++;
        if (keccak->used == KECCAK_RATE) {
            permute_lanes(keccak->lanes);
            keccak->used = 0;
        }
    }
}

struct hash32 keccak_end(struct keccak *keccak)
{
    struct hash32 hash;

    absorb_byte(keccak, keccak->used, PADDING_FIRST);
    absorb_byte(keccak, KECCAK_RATE - 1, PADDING_LAST);
    permute_lanes(keccak->lanes);
    for (uint32_t i = 0; i < HASH32_SIZE; i++) {
        hash.bytes[i] = (uint8_t)(keccak->lanes[i / 8] >> (8 * (i % 8)));
    }
    return hash;
}

struct hash32 keccak256(const void *bytes, size_t size)
{
    struct keccak keccak;

    keccak_init(&keccak);
    keccak_add(&keccak, bytes, size);
    return keccak_end(&keccak);
}

bool hash32_equal(const struct hash32 *left, const struct hash32 *right)
{
    return memcmp(left->bytes, right->bytes, HASH32_SIZE) == 0;
}

bool hash32_is_zero(const struct hash32 *hash)
{
    static const struct hash32 zero;

    return hash32_equal(hash, &zero);
}
