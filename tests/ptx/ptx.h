/*
 * ptx.h - what the C that translate.py makes of PTX stands on: its arithmetic, its memory and what
 * threads do together, over the emulator.
 *
 * Every load and store comes through here: an address that is no multiple of the access, or that
 * lies in no allocation, no shared memory of the block, no array of the module and not on the
 * thread's own stack, ends the program with the kernel's place. Shared memory has addresses as on a
 * device: dynamic memory from PTX_DYNAMIC on, and arrays that are declared from PTX_STATIC on.
 */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include "tests/support/device/emulator_core.h"

#define PTX_DYNAMIC       DYNAMIC_ADDRESS
#define PTX_STATIC        0x100000
#define PTX_ARGUMENTS_MAX 2048

typedef void ptx_function(uint8_t *result, uint8_t *const *parameters);

/* Memory that kernels may use, and no longer. */
void ptx_allow(const void *memory, uint64_t size);
void ptx_forbid(const void *memory);

#define PTX_ARRAY(name)                                                                            \
    __attribute__((constructor)) static void allow_##name(void)                                    \
    {                                                                                              \
        ptx_allow(name, sizeof(name));                                                             \
    }

/* ---- arithmetic ---- */

static inline float ptx_real(uint32_t bits)
{
    float real;

    memcpy(&real, &bits, sizeof(real));
    return real;
}

static inline uint32_t ptx_bits(float real)
{
    uint32_t bits;

    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

/* A device gives something for a division by zero; no kernel of ours may ask for it. */
static inline void ptx_divisor(bool there)
{
    if (!there) {
        emulator_give_up("a division by zero");
    }
}

/* Shifts by a width and more leave zeros, or the sign. */
#define PTX_SHIFTS(width)                                                                          \
    static inline uint##width##_t ptx_left_##width(uint##width##_t a, uint32_t by)                 \
    {                                                                                              \
        return by >= (width) ? 0 : a << by;                                                        \
    }                                                                                              \
    static inline uint##width##_t ptx_right_##width(uint##width##_t a, uint32_t by)                \
    {                                                                                              \
        return by >= (width) ? 0 : a >> by;                                                        \
    }                                                                                              \
    static inline int##width##_t ptx_right_signed_##width(uint##width##_t a, uint32_t by)          \
    {                                                                                              \
        return (int##width##_t)a >> (by >= (width) ? (width)-1 : by);                              \
    }
PTX_SHIFTS(32)
PTX_SHIFTS(64)

static inline uint32_t ptx_funnel(uint32_t low, uint32_t high, uint32_t by)
{
    return (uint32_t)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}

static inline uint32_t ptx_zeros_32(uint32_t a)
{
    return a == 0 ? 32 : (uint32_t)__builtin_clz(a);
}

static inline uint32_t ptx_zeros_64(uint64_t a)
{
    return a == 0 ? 64 : (uint32_t)__builtin_clzll(a);
}

/* prmt: bytes by number; the bit above the number takes the byte's sign for all of it. */
static inline uint32_t ptx_permute(uint32_t a, uint32_t b, uint32_t how)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t result = 0;

    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t one = how >> 4 * i & 15;
        uint32_t byte = (uint32_t)(both >> 8 * (one & 7)) & 0xff;

        if (one & 8) {
            byte = byte & 0x80 ? 0xff : 0;
        }
        result |= byte << 8 * i;
    }
    return result;
}

static inline uint64_t ptx_insert(uint64_t a, uint64_t b, uint32_t at, uint32_t size,
                                  uint32_t width)
{
    uint64_t mask;

    at &= 0xff;
    size &= 0xff;
    if (at >= width || size == 0) {
        return b;
    }
    mask = (size >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << size) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}

/* Saturates; no number becomes zero. */
static inline int32_t ptx_integer(float real, bool nearest)
{
    const double whole = nearest ? nearbyint((double)real) : trunc((double)real);

    return isnan(real)         ? 0
           : whole > INT32_MAX ? INT32_MAX
           : whole < -0x1p31   ? INT32_MIN
                               : (int32_t)whole;
}

static inline uint32_t ptx_natural(float real)
{
    const double whole = trunc((double)real);

    return isnan(real) || whole < 0.0 ? 0 : whole > UINT32_MAX ? UINT32_MAX : (uint32_t)whole;
}

/* ---- memory ---- */

struct ptx_arguments {
    uint8_t bytes[PTX_ARGUMENTS_MAX] __attribute__((aligned(16)));
};

static inline const uint8_t *ptx_arguments_of(struct ptx_arguments *copy, const void *given)
{
    memcpy(copy->bytes, given, sizeof(copy->bytes));
    return copy->bytes;
}

/* The arrays that a kernel declares, all in one. */
uint8_t *ptx_statics(size_t size);

/* Generic memory; the address is a multiple of align. */
void *ptx_place_of(uint64_t at, uint64_t size, uint64_t align);
void *ptx_shared_of(uint8_t *statics, uint64_t at, uint64_t size, uint64_t align);
uint64_t ptx_generic_of_shared(uint8_t *statics, uint64_t at);

static inline void *ptx_place(uint64_t at, uint64_t size)
{
    return ptx_place_of(at, size, size);
}

static inline void *ptx_shared(uint8_t *statics, uint64_t at, uint64_t size)
{
    return ptx_shared_of(statics, at, size, size);
}

#define PTX_ACCESS(width)                                                                          \
    static inline uint##width##_t ptx_load_##width(const void *at)                                 \
    {                                                                                              \
        uint##width##_t value;                                                                     \
                                                                                                   \
        memcpy(&value, at, sizeof(value));                                                         \
        return value;                                                                              \
    }                                                                                              \
    static inline void ptx_store_##width(void *at, uint64_t bits)                                  \
    {                                                                                              \
        const uint##width##_t value = (uint##width##_t)bits;                                       \
                                                                                                   \
        memcpy(at, &value, sizeof(value));                                                         \
    }
PTX_ACCESS(8)
PTX_ACCESS(16)
PTX_ACCESS(32)
PTX_ACCESS(64)

/* ---- threads together ---- */

/* Masks of a part of a warp are not known here. */
static inline void ptx_whole(uint32_t mask)
{
    if (mask != UINT32_MAX) {
        emulator_give_up("a meeting of a part of a warp");
    }
}

uint32_t ptx_shuffle_bfly(uint32_t value, uint32_t distance, uint32_t clamp, uint32_t mask);
uint32_t ptx_shuffle_down(uint32_t value, uint32_t distance, uint32_t clamp, uint32_t mask);
uint32_t ptx_shuffle_idx(uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask);

/* Products of a group: fence, products, commit, wait. */
struct ptx_group {
    bool fenced;
    bool begun;
    bool committed;
};

void ptx_group_fence(struct ptx_group *group);
void ptx_group_multiply(struct ptx_group *group, int32_t *sums, uint64_t a, uint64_t b, bool more,
                        uint32_t columns);
void ptx_group_commit(struct ptx_group *group);
void ptx_group_wait(struct ptx_group *group, int32_t *sums, uint32_t columns);

#endif /* TESTS_PTX_PTX_H */
