/*
 * probe_arm_body.h - the integers of the probe on 64-bit ARM, written once; the compiler flags of
 * the including file say whether it has the products of bytes.
 */
#include <string.h>

#include "engine/cpu/isa/probe.h"
#include "engine/cpu/isa/simd.h"

#define PROBE_WIDTH 4
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define PROBE_HAS_BYTES true
#else
#define PROBE_HAS_BYTES false
#endif

struct probe_operands {
    int32x4_t a;
    int32x4_t b;
    int32x4_t c;
};

SIMD_INLINE int32x4_t as_signed(uint32x4_t a)
{
    return vreinterpretq_s32_u32(a);
}

SIMD_INLINE uint32x4_t as_unsigned(int32x4_t a)
{
    return vreinterpretq_u32_s32(a);
}

SIMD_INLINE int32x4_t dot_product(struct probe_operands x)
{
    int16x8_t a = vreinterpretq_s16_s32(x.a);
    int16x8_t b = vreinterpretq_s16_s32(x.b);
    int32x4_t even = vmlal_s16(x.c, vget_low_s16(vuzp1q_s16(a, a)), vget_low_s16(vuzp1q_s16(b, b)));

    return vmlal_high_s16(even, vuzp2q_s16(a, a), vuzp2q_s16(b, b));
}

SIMD_INLINE int32x4_t shifts(struct probe_operands x)
{
    int32x4_t count = vandq_s32(x.b, vdupq_n_s32(31));
    int32x4_t left = veorq_s32(vshlq_n_s32(x.a, 23), vshlq_s32(x.a, count));
    int32x4_t right = veorq_s32(as_signed(vshrq_n_u32(as_unsigned(x.a), 1)), vshrq_n_s32(x.a, 7));

    return veorq_s32(left, right);
}

SIMD_INLINE int32x4_t wide(struct probe_operands x, uint32_t count)
{
    int32x2_t a = vget_low_s32(vuzp1q_s32(x.a, x.a));
    int32x2_t b = vget_low_s32(vuzp1q_s32(x.b, x.b));
    uint64x2_t product = vreinterpretq_u64_s64(vmull_s32(a, b));
    uint64x2_t left = vshlq_u64(product, vdupq_n_s64(count));

    return vreinterpretq_s32_u64(vaddq_u64(left, vshrq_n_u64(product, 32)));
}

/* As contraction_neon.c converts its sums. */
SIMD_INLINE int32x4_t from_long(int32x4_t a)
{
    int64_t lanes[2];
    float reals[4] = {0.0f};

    vst1q_s64(lanes, vreinterpretq_s64_s32(a));
    reals[0] = (float)lanes[0];
    reals[2] = (float)lanes[1];
    return vreinterpretq_s32_f32(vld1q_f32(reals));
}

SIMD_INLINE int32x4_t order(struct probe_operands x)
{
    int32x4_t least = vminq_s32(x.a, x.b);
    int32x4_t above = vaddq_s32(as_signed(vmaxq_u32(as_unsigned(x.a), as_unsigned(x.b))), x.c);
    int32x4_t chosen = vandq_s32(as_signed(vcgtq_s32(x.a, x.b)), x.c);

    return veorq_s32(veorq_s32(vaddq_s32(least, least), vmaxq_s32(x.a, x.b)),
                     veorq_s32(above, chosen));
}

SIMD_INLINE int32x4_t packed(struct probe_operands x)
{
    int8x16_t halves = vrev64q_s8(vreinterpretq_s8_s16(vqmovn_high_s32(vqmovn_s32(x.a), x.b)));
    int32x4_t reversed = vreinterpretq_s32_s8(vextq_s8(halves, halves, 8));

    return veorq_s32(vzip1q_s32(reversed, x.c), vzip2q_s32(reversed, x.c));
}

SIMD_INLINE int32x4_t widen_bytes(const uint8_t *from)
{
    uint32_t word;

    memcpy(&word, from, sizeof(word));
    return as_signed(vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word))))));
}

#if PROBE_HAS_BYTES
SIMD_INLINE int32x4_t byte_result(enum probe_class class, struct probe_operands x)
{
    int8x16_t a = vreinterpretq_s8_s32(x.a);
    int8x16_t b = vreinterpretq_s8_s32(x.b);

    return class == PROBE_BYTE_DOT ? vdotq_s32(x.c, a, b) : vmmlaq_s32(x.c, a, b);
}
#else
SIMD_INLINE int32x4_t byte_result(enum probe_class class, struct probe_operands x)
{
    (void)class;
    return x.c;
}
#endif

SIMD_INLINE int32x4_t integer_result(enum probe_class class, const struct probe_lanes *probe,
                                     uint32_t at)
{
    struct probe_operands x = {
        .a = as_signed(vld1q_u32(probe->a + at)),
        .b = as_signed(vld1q_u32(probe->b + at)),
        .c = as_signed(vld1q_u32(probe->c + at)),
    };

    switch ((int)class) {
    case PROBE_TO_INT:
        return vcvtnq_s32_f32(vreinterpretq_f32_s32(x.a));
    case PROBE_FROM_INT:
        return vreinterpretq_s32_f32(vcvtq_f32_s32(x.a));
    case PROBE_FROM_LONG:
        return from_long(x.a);
    case PROBE_DOT:
        return dot_product(x);
    case PROBE_SHIFT:
        return shifts(x);
    case PROBE_WIDE:
        return wide(x, probe->c[0] & 31);
    case PROBE_ORDER:
        return order(x);
    case PROBE_PACK:
        return packed(x);
    case PROBE_BYTES:
        return widen_bytes((const uint8_t *)(const void *)probe->a + at);
    default: /* PROBE_BYTE_DOT, PROBE_BYTE_MATRIX */
        return byte_result(class, x);
    }
}

SIMD_INLINE void store_integers(uint32_t *to, int32x4_t result)
{
    vst1q_u32(to, as_unsigned(result));
}

#include "engine/cpu/isa/probe_body.h"
