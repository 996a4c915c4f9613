/* sha256_many.c - see sha256.h: the choice of kernel, and many messages side by side. */
#include <string.h>

#include "base/host.h"
#include "proofs/hash/sha256.h"
#include "proofs/hash/sha256_kernel.h"

#if SHA256_HAS_X86
#include <cpuid.h>
#endif

struct kernels {
    sha256_compress *one;
    sha256_compress *many;
    uint32_t many_lanes;
    const struct kernels *few; /* quicker for up to twice its lanes; NULL: none */
};

static const struct kernels kernels_scalar = {sha256_compress_scalar, sha256_compress_scalar, 1,
                                              NULL};
#if SHA256_HAS_X86
static const struct kernels kernels_avx2 = {sha256_compress_scalar, sha256_compress_avx2_many,
                                            SHA256_AVX2_MANY, NULL};
static const struct kernels kernels_shani = {sha256_compress_shani, sha256_compress_shani_many,
                                             SHA256_SHANI_MANY, NULL};
static const struct kernels kernels_avx512 = {sha256_compress_scalar, sha256_compress_avx512_many,
                                              SHA256_AVX512_MANY, NULL};
static const struct kernels kernels_both = {sha256_compress_shani, sha256_compress_avx512_many,
                                            SHA256_AVX512_MANY, &kernels_shani};

/* The compilers we support do not all know the name "sha": CPUID leaf 7, EBX bit 29. */
static bool cpu_has_shani(void)
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;

    if (!__builtin_cpu_supports("sse4.1") || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        return false;
    }
    return (ebx >> 29 & 1) != 0;
}
static const struct kernels kernels_armsha = {sha256_compress_scalar, sha256_compress_scalar, 1,
                                              NULL};
#else
static const struct kernels kernels_avx2;
static const struct kernels kernels_shani;
static const struct kernels kernels_avx512;
static const struct kernels kernels_both;
#if SHA256_HAS_ARM
static const struct kernels kernels_armsha = {sha256_compress_armsha, sha256_compress_armsha_many,
                                              SHA256_ARMSHA_MANY, NULL};
#else
static const struct kernels kernels_armsha = {sha256_compress_scalar, sha256_compress_scalar, 1,
                                              NULL};
#endif

static bool cpu_has_shani(void)
{
    return false;
}
#endif

static bool cpu_has_avx2(void)
{
    struct host_cpuid cpuid;

    host_cpuid_read(&cpuid);
    return host_has_avx2(&cpuid);
}

static bool cpu_has_avx512(void)
{
    struct host_cpuid cpuid;

    host_cpuid_read(&cpuid);
    return host_has_avx512(&cpuid);
}

static bool cpu_has_armsha(void)
{
    struct host_hwcap hwcap;

    host_hwcap_read(&hwcap);
    return host_has_armsha(&hwcap);
}

bool sha256_isa_usable(enum sha256_isa isa)
{
    switch (isa) {
    case SHA256_ISA_BEST:
    case SHA256_ISA_SCALAR:
        return true;
    case SHA256_ISA_AVX2:
        return cpu_has_avx2();
    case SHA256_ISA_SHANI:
        return cpu_has_shani();
    case SHA256_ISA_ARMSHA:
        return cpu_has_armsha();
    case SHA256_ISA_AVX512:
        return cpu_has_avx512();
    }
    return false;
}

/* The quickest for one message. */
static enum sha256_isa find_best_one(void)
{
    return sha256_isa_usable(SHA256_ISA_SHANI)    ? SHA256_ISA_SHANI
           : sha256_isa_usable(SHA256_ISA_ARMSHA) ? SHA256_ISA_ARMSHA
                                                  : SHA256_ISA_SCALAR;
}

/* The quickest for many, where `one` is that for one. */
static enum sha256_isa find_best_many(enum sha256_isa one)
{
    return sha256_isa_usable(SHA256_ISA_AVX512) ? SHA256_ISA_AVX512
           : one != SHA256_ISA_SCALAR           ? one
           : sha256_isa_usable(SHA256_ISA_AVX2) ? SHA256_ISA_AVX2
                                                : SHA256_ISA_SCALAR;
}

/*
 * CPUID costs microseconds under a hypervisor, as much as hashing a kilobyte, so its answer is
 * kept. The one exception to "no mutable globals": threads that race here store the same value.
 * *one: what hashes a single message, where that is something else.
 */
static enum sha256_isa best_isa(enum sha256_isa *one)
{
    static _Atomic int sha256_best_kept = SHA256_ISA_BEST;
    int best = sha256_best_kept;

    if (best == SHA256_ISA_BEST) {
        *one = find_best_one();
        best = (int)find_best_many(*one) + SHA256_ISA_COUNT * (int)*one;
        sha256_best_kept = best;
    }
    *one = (enum sha256_isa)(best / SHA256_ISA_COUNT);
    return (enum sha256_isa)(best % SHA256_ISA_COUNT);
}

const char *sha256_isa_name(enum sha256_isa isa)
{
    static const char *const names[SHA256_ISA_COUNT] = {"best",  "scalar", "avx2",
                                                        "shani", "armsha", "avx512"};
    enum sha256_isa one;

    return names[isa == SHA256_ISA_BEST ? best_isa(&one) : isa];
}

static const struct kernels *kernels_of(enum sha256_isa isa)
{
    enum sha256_isa one;
    enum sha256_isa many;

    switch (isa) {
    case SHA256_ISA_BEST:
        many = best_isa(&one);
        return many == SHA256_ISA_AVX512 && one == SHA256_ISA_SHANI ? &kernels_both
                                                                    : kernels_of(many);
    case SHA256_ISA_AVX512:
        return &kernels_avx512;
    case SHA256_ISA_AVX2:
        return &kernels_avx2;
    case SHA256_ISA_SHANI:
        return &kernels_shani;
    case SHA256_ISA_ARMSHA:
        return &kernels_armsha;
    case SHA256_ISA_SCALAR:
        break;
    }
    return &kernels_scalar;
}

void sha256_init(struct sha256 *hash, enum sha256_isa isa)
{
    sha256_init_scalar(hash);
    hash->compress = kernels_of(isa)->one;
}

void sha256(struct digest *digest, const void *data, size_t data_size)
{
    struct sha256 hash;

    sha256_init(&hash, SHA256_ISA_BEST);
    sha256_add(&hash, data, data_size);
    sha256_end(&hash, digest);
}

/* One group of messages in sha256_many(). The prefix shifts each message, so its first and last
 * blocks are put together here. */
struct lane_group {
    uint32_t state[SHA256_LANES_MAX][8];
    const uint8_t *blocks[SHA256_LANES_MAX];
    uint8_t starts[SHA256_LANES_MAX][SHA256_BLOCK_SIZE];
    uint8_t ends[SHA256_LANES_MAX][3 * SHA256_BLOCK_SIZE];
};

/*
 * Messages of up to 127 bytes with their prefix (tree nodes among them) fit whole in a lane's
 * buffer: one call of the kernel does them.
 */
static void group_short(struct lane_group *group, const struct kernels *kernels, uint8_t prefix,
                        const uint8_t *const *messages, size_t message_size)
{
    size_t block_count = 0;
    size_t whole = (message_size + 1) / SHA256_BLOCK_SIZE * SHA256_BLOCK_SIZE;

    for (uint32_t lane = 0; lane < kernels->many_lanes; lane++) {
        uint8_t *end = group->ends[lane];

        end[0] = prefix;
        memcpy(end + 1, messages[lane], message_size);
        block_count = whole / SHA256_BLOCK_SIZE +
                      sha256_pad(end + whole, message_size + 1 - whole, message_size + 1);
        group->blocks[lane] = end;
    }
    kernels->many(group->state, group->blocks, block_count);
}

/* Longer messages: the first block, which the prefix shifts; the middle, in place; the padded
 * end. */
static void group_long(struct lane_group *group, const struct kernels *kernels, uint8_t prefix,
                       const uint8_t *const *messages, size_t message_size)
{
    size_t first = SHA256_BLOCK_SIZE - 1;
    size_t middle = (message_size - first) / SHA256_BLOCK_SIZE;
    size_t rest_at = first + middle * SHA256_BLOCK_SIZE;
    size_t end_count = 0;

    /* Writes the ends long before they are read: a load of bytes that were just stored would
     * wait. */
    for (uint32_t lane = 0; lane < kernels->many_lanes; lane++) {
        group->starts[lane][0] = prefix;
        memcpy(group->starts[lane] + 1, messages[lane], SHA256_BLOCK_SIZE - 1);
        group->blocks[lane] = group->starts[lane];
    }
    for (uint32_t lane = 0; lane < kernels->many_lanes; lane++) {
        memcpy(group->ends[lane], messages[lane] + rest_at, message_size - rest_at);
        end_count =
            sha256_pad(group->ends[lane], message_size - rest_at, (uint64_t)message_size + 1);
    }
    kernels->many(group->state, group->blocks, 1);
    for (uint32_t lane = 0; lane < kernels->many_lanes; lane++) {
        group->blocks[lane] = messages[lane] + first;
    }
    kernels->many(group->state, group->blocks, middle);
    for (uint32_t lane = 0; lane < kernels->many_lanes; lane++) {
        group->blocks[lane] = group->ends[lane];
    }
    kernels->many(group->state, group->blocks, end_count);
}

/* The processor does not prefetch by itself: each message is too short a run. */
static void fetch_ahead(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += SHA256_BLOCK_SIZE) {
        __builtin_prefetch(bytes + i, 0, 2);
    }
}

/* An idle lane takes as long as one with a message. */
static const struct kernels *kernels_for(const struct kernels *best, const struct kernels *alone,
                                         uint64_t count)
{
    const struct kernels *few = best->few;

    return count == 1 ? alone : few != NULL && count <= 2 * (uint64_t)few->many_lanes ? few : best;
}

void sha256_many(struct digest *digests, uint8_t prefix, const void *messages, size_t message_size,
                 uint64_t count, enum sha256_isa isa)
{
    const struct kernels *best = kernels_of(isa);
    const struct kernels alone = {best->one, best->one, 1, NULL};
    const uint8_t *next = messages;
    struct lane_group group;

    while (count > 0) {
        const struct kernels *kernels = kernels_for(best, &alone, count);
        uint32_t used = count < kernels->many_lanes ? (uint32_t)count : kernels->many_lanes;
        const uint8_t *lanes[SHA256_LANES_MAX];

        fetch_ahead(next + used * message_size,
                    (count - used < used ? (size_t)(count - used) : used) * message_size);
        for (uint32_t lane = 0; lane < kernels->many_lanes; lane++) {
            /* Lanes without a message of their own repeat the last one; nobody reads them. */
            lanes[lane] = next + (size_t)(lane < used ? lane : used - 1) * message_size;
            memcpy(group.state[lane], sha256_initial_state, sizeof(sha256_initial_state));
        }
        if (message_size + 1 < 2 * SHA256_BLOCK_SIZE) {
            group_short(&group, kernels, prefix, lanes, message_size);
        } else {
            group_long(&group, kernels, prefix, lanes, message_size);
        }
        for (uint32_t lane = 0; lane < used; lane++) {
            sha256_store(&digests[lane], group.state[lane]);
        }
        digests += used;
        next += (size_t)used * message_size;
        count -= used;
    }
}
