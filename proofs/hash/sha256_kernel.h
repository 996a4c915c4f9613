/*
 * sha256_kernel.h - the compression functions behind sha256.h, for its two files alone.
 *
 * A kernel advances `lanes` independent messages by block_count blocks each: blocks[l] is where
 * the blocks of message l begin, at any alignment, and state[l] its eight words in FIPS order.
 */
#ifndef PROOFS_HASH_SHA256_KERNEL_H
#define PROOFS_HASH_SHA256_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"

/* Measured on Zen 4: gcc 12 is quickest with four streams, clang 14 loses a third with four. */
#if defined(__clang__)
#define SHA256_SHANI_MANY 3
#else
#define SHA256_SHANI_MANY 4
#endif
#define SHA256_AVX2_MANY   8
#define SHA256_AVX512_MANY 16
#define SHA256_ARMSHA_MANY 2 /* 32 registers hold no more state and schedule */
#define SHA256_LANES_MAX   16

#if defined(__x86_64__)
#define SHA256_HAS_X86 1
#else
#define SHA256_HAS_X86 0
#endif
#if defined(__aarch64__)
#define SHA256_HAS_ARM 1
#else
#define SHA256_HAS_ARM 0
#endif

/* Before a loop whose counter must become constants, so that the state lives in registers. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 64")
#endif

typedef void sha256_compress(uint32_t (*state)[8], const uint8_t *const *blocks,
                             size_t block_count);

/* FIPS 180-4, 5.3.3 and 4.2.2 */
extern const uint32_t sha256_initial_state[8];
extern const uint32_t sha256_round_constants[64];

/*
 * Ends a message of message_size bytes whose last held bytes stand at the start of blocks, which
 * has room for two: adds the padding of FIPS 180-4, 5.1.1. Returns the blocks filled, 1 or 2.
 */
size_t sha256_pad(uint8_t *blocks, size_t held, uint64_t message_size);

/* The bytes of a digest, from the words of a state. */
void sha256_store(struct digest *digest, const uint32_t *state);

sha256_compress sha256_compress_scalar;
#if SHA256_HAS_X86
sha256_compress sha256_compress_shani;       /* 1 lane */
sha256_compress sha256_compress_shani_many;  /* SHA256_SHANI_MANY lanes */
sha256_compress sha256_compress_avx2_many;   /* SHA256_AVX2_MANY lanes */
sha256_compress sha256_compress_avx512_many; /* SHA256_AVX512_MANY lanes */
#elif SHA256_HAS_ARM
sha256_compress sha256_compress_armsha;      /* 1 lane */
sha256_compress sha256_compress_armsha_many; /* SHA256_ARMSHA_MANY lanes */
#endif

#endif /* PROOFS_HASH_SHA256_KERNEL_H */
