/* ranks_seal.c - see ranks_seal.h. */
#include "prover/ranks/ranks_seal.h"

#include <string.h>

#include "base/endian.h"
#include "proofs/hash/sha256.h"

/*
 * CRC-32C (polynomial 0x82f63b78, reflected) is linear: what a byte adds is the sum of what its
 * bits add.
 */
static uint32_t crc_of_byte(uint32_t crc, uint8_t byte)
{
    static const uint32_t bits[8] = {0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf,
                                     0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78};
    const uint32_t index = (crc ^ byte) & 0xff;

    crc >>= 8;
    for (unsigned i = 0; i < 8; i++) {
        crc ^= (index >> i & 1u) != 0 ? bits[i] : 0;
    }
    return crc;
}

/* The instructions of the processors that have them; elsewhere the rule itself. */
#if defined(__x86_64__)
#include <nmmintrin.h>

#define WITH_CRC __attribute__((target("sse4.2")))

static bool has_crc(void)
{
    return __builtin_cpu_supports("sse4.2");
}

WITH_CRC static inline uint32_t crc_of_word(uint32_t crc, uint64_t word)
{
    return (uint32_t)_mm_crc32_u64(crc, word);
}
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>

#define WITH_CRC __attribute__((target("+crc")))

static bool has_crc(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

WITH_CRC static inline uint32_t crc_of_word(uint32_t crc, uint64_t word)
{
    return __crc32cd(crc, word);
}
#else
#define WITH_CRC

static bool has_crc(void)
{
    return true;
}

static inline uint32_t crc_of_word(uint32_t crc, uint64_t word)
{
    for (unsigned i = 0; i < sizeof(word); i++) {
        crc = crc_of_byte(crc, (uint8_t)(word >> 8 * i));
    }
    return crc;
}
#endif

/* Eight bytes at once. */
WITH_CRC static uint32_t crc_of_words(uint32_t crc, const uint8_t *at, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        crc = crc_of_word(crc, endian_load_le64(at + i * sizeof(uint64_t)));
    }
    return crc;
}

uint32_t ranks_seal_crc(const void *bytes, size_t size)
{
    const size_t words = has_crc() ? size / sizeof(uint64_t) : 0;
    const uint8_t *at = bytes;
    uint32_t crc = crc_of_words(UINT32_MAX, at, words);

    for (size_t i = words * sizeof(uint64_t); i < size; i++) {
        crc = crc_of_byte(crc, at[i]);
    }
    return ~crc;
}

static void begin_hash(struct sha256 *hash, const struct ranks_key *key, uint8_t pad)
{
    uint8_t block[SHA256_BLOCK_SIZE];

    memset(block, pad, sizeof(block));
    for (size_t i = 0; i < RANKS_KEY_SIZE; i++) {
        block[i] ^= key->bytes[i];
    }
    sha256_init(hash, SHA256_ISA_BEST);
    sha256_add(hash, block, sizeof(block));
    secret_wipe(block, sizeof(block));
}

void ranks_seal_hmac(struct digest *seal, const struct ranks_key *key, const void *first,
                     size_t first_size, const void *second, size_t second_size)
{
    struct sha256 hash;
    struct digest inner;

    begin_hash(&hash, key, 0x36);
    sha256_add(&hash, first, first_size);
    sha256_add(&hash, second, second_size);
    sha256_end(&hash, &inner);
    begin_hash(&hash, key, 0x5c);
    sha256_add(&hash, inner.bytes, sizeof(inner.bytes));
    sha256_end(&hash, seal);
}

void ranks_seal_key_of_text(struct ranks_key *key, const char *text)
{
    struct digest digest;

    sha256(&digest, text, strlen(text));
    memcpy(key->bytes, digest.bytes, sizeof(key->bytes));
    secret_wipe(&digest, sizeof(digest));
}

void ranks_seal_key_of_key(struct ranks_key *key, const struct ranks_key *from, const void *bytes,
                           size_t size)
{
    struct digest digest;

    ranks_seal_hmac(&digest, from, bytes, size, "", 0);
    memcpy(key->bytes, digest.bytes, sizeof(key->bytes));
    secret_wipe(&digest, sizeof(digest));
}
