/*
 * simd.h - one name for each vector operation that the float kernels need, on each instruction set.
 *
 * The compiler flags of the including file choose the instruction set. Each function is one
 * operation on SIMD_WIDTH lanes with binary32 results rounded once, as in the rules; nothing here
 * reassociates or contracts. FOLD_LANES / SIMD_WIDTH vectors are the lanes of a canonical fold.
 *
 * A new instruction set is one more section with the same names; no kernel body changes. "part"
 * functions touch only the first `lanes` elements of memory.
 */
#ifndef ENGINE_CPU_ISA_SIMD_H
#define ENGINE_CPU_ISA_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/ops/op.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Vectors per fold. */
#define SIMD_GROUP  (FOLD_LANES / SIMD_WIDTH)
/* Small arrays of vectors stay in registers only if the loops over them are unrolled. */
#define SIMD_UNROLL _Pragma("GCC unroll 8")

#if defined(__AVX2__)

/* ---- shared by both x86 sections -------------------------------------------- */

/* The last three additions of a fold's tree, at distance 4, 2, 1. */
SIMD_INLINE float simd_fold_eight(__m256 x)
{
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}

SIMD_INLINE float simd_max_eight(__m256 x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

#endif

#if defined(__AVX512F__)

/* ---- AVX-512 -------------------------------------------------------------- */

#define SIMD_WIDTH          16
/* Does simd_scale() take one instruction? */
#define SIMD_SCALES_AT_ONCE true

typedef __m512 simd_real;
typedef __mmask16 simd_mask;

SIMD_INLINE simd_real simd_set(float x)
{
    return _mm512_set1_ps(x);
}

SIMD_INLINE simd_real simd_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

SIMD_INLINE void simd_store(float *to, simd_real x)
{
    _mm512_storeu_ps(to, x);
}

/* Numbers of 16 bits, widened exactly. */
SIMD_INLINE simd_real simd_load_f16(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

SIMD_INLINE simd_real simd_load_bf16(const uint16_t *from)
{
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)from);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/* Lanes 0 .. lanes-1. */
SIMD_INLINE simd_mask simd_first(size_t lanes)
{
    return (simd_mask)((1u << lanes) - 1u);
}

SIMD_INLINE simd_real simd_load_part(const float *from, size_t lanes)
{
    return _mm512_maskz_loadu_ps(simd_first(lanes), from);
}

SIMD_INLINE void simd_store_part(float *to, simd_real x, size_t lanes)
{
    _mm512_mask_storeu_ps(to, simd_first(lanes), x);
}

SIMD_INLINE simd_real simd_add(simd_real a, simd_real b)
{
    return _mm512_add_ps(a, b);
}

SIMD_INLINE simd_real simd_sub(simd_real a, simd_real b)
{
    return _mm512_sub_ps(a, b);
}

SIMD_INLINE simd_real simd_mul(simd_real a, simd_real b)
{
    return _mm512_mul_ps(a, b);
}

SIMD_INLINE simd_real simd_div(simd_real a, simd_real b)
{
    return _mm512_div_ps(a, b);
}

SIMD_INLINE simd_real simd_sqrt(simd_real a)
{
    return _mm512_sqrt_ps(a);
}

/* a * b + c */
SIMD_INLINE simd_real simd_fma(simd_real a, simd_real b, simd_real c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* -(a * b) + c, the same as negating a first */
SIMD_INLINE simd_real simd_fnma(simd_real a, simd_real b, simd_real c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

/* even lanes a * b - c, odd lanes a * b + c */
SIMD_INLINE simd_real simd_fma_turn(simd_real a, simd_real b, simd_real c)
{
    return _mm512_fmaddsub_ps(a, b, c);
}

/* Where either is a NaN: b. */
SIMD_INLINE simd_real simd_min(simd_real a, simd_real b)
{
    return _mm512_min_ps(a, b);
}

SIMD_INLINE simd_real simd_max(simd_real a, simd_real b)
{
    return _mm512_max_ps(a, b);
}

SIMD_INLINE simd_real simd_negate(simd_real a)
{
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}

/* Negates the odd lanes. */
SIMD_INLINE simd_real simd_negate_odd(simd_real a)
{
    return _mm512_mask_xor_ps(a, 0xaaaa, a, _mm512_set1_ps(-0.0f));
}

SIMD_INLINE simd_real simd_even_twice(simd_real a)
{
    return _mm512_moveldup_ps(a);
}

SIMD_INLINE simd_real simd_odd_twice(simd_real a)
{
    return _mm512_movehdup_ps(a);
}

SIMD_INLINE simd_real simd_swap_pairs(simd_real a)
{
    return _mm512_permute_ps(a, 0xb1);
}

SIMD_INLINE simd_mask simd_is_nan(simd_real a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}

SIMD_INLINE simd_mask simd_greater(simd_real a, simd_real b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

/* Is |a| <= bound in all lanes? False with a NaN. */
SIMD_INLINE bool simd_all_within(simd_real a, float bound)
{
    return _mm512_cmp_ps_mask(_mm512_abs_ps(a), _mm512_set1_ps(bound), _CMP_NLE_UQ) == 0;
}

SIMD_INLINE simd_mask simd_no_lane(void)
{
    return 0;
}

SIMD_INLINE simd_mask simd_either(simd_mask a, simd_mask b)
{
    return a | b;
}

SIMD_INLINE bool simd_any(simd_mask mask)
{
    return mask != 0;
}

SIMD_INLINE simd_real simd_select(simd_mask mask, simd_real yes, simd_real no)
{
    return _mm512_mask_blend_ps(mask, no, yes);
}

/* p * 2^k with one rounding, for k the integer in the low bits of t and n = k as a number. */
SIMD_INLINE simd_real simd_scale(simd_real p, simd_real t, simd_real n)
{
    (void)t;
    return _mm512_scalef_ps(p, n);
}

/* The same where p and the result are normal numbers. */
SIMD_INLINE simd_real simd_scale_normal(simd_real p, simd_real t, simd_real n)
{
    return simd_scale(p, t, n);
}

/* The tree of a canonical fold. */
SIMD_INLINE float simd_fold(const simd_real lanes[2])
{
    __m512 x = _mm512_add_ps(lanes[0], lanes[1]);

    return simd_fold_eight(_mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

SIMD_INLINE float simd_max_lane(const simd_real lanes[2])
{
    __m512 x = _mm512_max_ps(lanes[0], lanes[1]);

    return simd_max_eight(_mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

#elif defined(__AVX2__) && defined(__FMA__)

/* ---- AVX2 with FMA -------------------------------------------------------- */

#define SIMD_WIDTH          8
#define SIMD_SCALES_AT_ONCE false

typedef __m256 simd_real;
typedef __m256 simd_mask; /* all bits of a lane, or none */

SIMD_INLINE simd_real simd_set(float x)
{
    return _mm256_set1_ps(x);
}

SIMD_INLINE simd_real simd_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

SIMD_INLINE void simd_store(float *to, simd_real x)
{
    _mm256_storeu_ps(to, x);
}

SIMD_INLINE simd_real simd_load_f16(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

SIMD_INLINE simd_real simd_load_bf16(const uint16_t *from)
{
    __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)from);

    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

SIMD_INLINE simd_mask simd_first(size_t lanes)
{
    __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)lanes), number));
}

SIMD_INLINE simd_real simd_load_part(const float *from, size_t lanes)
{
    return _mm256_maskload_ps(from, _mm256_castps_si256(simd_first(lanes)));
}

SIMD_INLINE void simd_store_part(float *to, simd_real x, size_t lanes)
{
    _mm256_maskstore_ps(to, _mm256_castps_si256(simd_first(lanes)), x);
}

SIMD_INLINE simd_real simd_add(simd_real a, simd_real b)
{
    return _mm256_add_ps(a, b);
}

SIMD_INLINE simd_real simd_sub(simd_real a, simd_real b)
{
    return _mm256_sub_ps(a, b);
}

SIMD_INLINE simd_real simd_mul(simd_real a, simd_real b)
{
    return _mm256_mul_ps(a, b);
}

SIMD_INLINE simd_real simd_div(simd_real a, simd_real b)
{
    return _mm256_div_ps(a, b);
}

SIMD_INLINE simd_real simd_sqrt(simd_real a)
{
    return _mm256_sqrt_ps(a);
}

SIMD_INLINE simd_real simd_fma(simd_real a, simd_real b, simd_real c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE simd_real simd_fnma(simd_real a, simd_real b, simd_real c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

SIMD_INLINE simd_real simd_fma_turn(simd_real a, simd_real b, simd_real c)
{
    return _mm256_fmaddsub_ps(a, b, c);
}

SIMD_INLINE simd_real simd_min(simd_real a, simd_real b)
{
    return _mm256_min_ps(a, b);
}

SIMD_INLINE simd_real simd_max(simd_real a, simd_real b)
{
    return _mm256_max_ps(a, b);
}

SIMD_INLINE simd_real simd_negate(simd_real a)
{
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}

SIMD_INLINE simd_real simd_negate_odd(simd_real a)
{
    return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi64x(INT64_MIN)));
}

SIMD_INLINE simd_real simd_even_twice(simd_real a)
{
    return _mm256_moveldup_ps(a);
}

SIMD_INLINE simd_real simd_odd_twice(simd_real a)
{
    return _mm256_movehdup_ps(a);
}

SIMD_INLINE simd_real simd_swap_pairs(simd_real a)
{
    return _mm256_permute_ps(a, 0xb1);
}

SIMD_INLINE simd_mask simd_is_nan(simd_real a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}

SIMD_INLINE simd_mask simd_greater(simd_real a, simd_real b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}

SIMD_INLINE bool simd_all_within(simd_real a, float bound)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
    __m256 outside = _mm256_cmp_ps(size, _mm256_set1_ps(bound), _CMP_NLE_UQ);

    return _mm256_testz_ps(outside, outside) != 0;
}

SIMD_INLINE simd_mask simd_no_lane(void)
{
    return _mm256_setzero_ps();
}

SIMD_INLINE simd_mask simd_either(simd_mask a, simd_mask b)
{
    return _mm256_or_ps(a, b);
}

SIMD_INLINE bool simd_any(simd_mask mask)
{
    return _mm256_movemask_ps(mask) != 0;
}

SIMD_INLINE simd_real simd_select(simd_mask mask, simd_real yes, simd_real no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

/*
 * As in the rule: two factors 2^(k>>1) and 2^(k-(k>>1)); the first product is exact. The bits of t
 * are those of the rounder, whose low nine bits and their halves are zero, plus k.
 */
SIMD_INLINE simd_real simd_scale(simd_real p, simd_real t, simd_real n)
{
    __m256i bits = _mm256_castps_si256(t);
    __m256i half = _mm256_srli_epi32(bits, 1);
    __m256i rest = _mm256_sub_epi32(bits, half);
    __m256i offset = _mm256_set1_epi32(127);

    (void)n;
    half = _mm256_slli_epi32(_mm256_add_epi32(half, offset), 23);
    rest = _mm256_slli_epi32(_mm256_add_epi32(rest, offset), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(half)), _mm256_castsi256_ps(rest));
}

/* Adds k to the exponent: the shift keeps only the low nine bits of t, which are those of k. */
SIMD_INLINE simd_real simd_scale_normal(simd_real p, simd_real t, simd_real n)
{
    __m256i shift = _mm256_slli_epi32(_mm256_castps_si256(t), 23);

    (void)n;
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), shift));
}

SIMD_INLINE float simd_fold(const simd_real lanes[4])
{
    __m256 low = _mm256_add_ps(lanes[0], lanes[2]);
    __m256 high = _mm256_add_ps(lanes[1], lanes[3]);

    return simd_fold_eight(_mm256_add_ps(low, high));
}

SIMD_INLINE float simd_max_lane(const simd_real lanes[4])
{
    __m256 low = _mm256_max_ps(lanes[0], lanes[2]);
    __m256 high = _mm256_max_ps(lanes[1], lanes[3]);

    return simd_max_eight(_mm256_max_ps(low, high));
}

#elif defined(__aarch64__)

/* ---- NEON ----------------------------------------------------------------- */

#define SIMD_WIDTH          4
#define SIMD_SCALES_AT_ONCE false

typedef float32x4_t simd_real;
typedef uint32x4_t simd_mask; /* all bits of a lane, or none */

SIMD_INLINE simd_real simd_set(float x)
{
    return vdupq_n_f32(x);
}

SIMD_INLINE simd_real simd_load(const float *from)
{
    return vld1q_f32(from);
}

SIMD_INLINE void simd_store(float *to, simd_real x)
{
    vst1q_f32(to, x);
}

SIMD_INLINE simd_real simd_load_f16(const uint16_t *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}

SIMD_INLINE simd_real simd_load_bf16(const uint16_t *from)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}

SIMD_INLINE simd_mask simd_first(size_t lanes)
{
    static const uint32_t number[4] = {0, 1, 2, 3};

    return vcgtq_u32(vdupq_n_u32((uint32_t)lanes), vld1q_u32(number));
}

/* There are no masked loads and stores: these go lane by lane. */
SIMD_INLINE simd_real simd_load_part(const float *from, size_t lanes)
{
    float32x4_t x = vdupq_n_f32(0.0f);

    x = lanes > 0 ? vld1q_lane_f32(from, x, 0) : x;
    x = lanes > 1 ? vld1q_lane_f32(from + 1, x, 1) : x;
    x = lanes > 2 ? vld1q_lane_f32(from + 2, x, 2) : x;
    return lanes > 3 ? vld1q_lane_f32(from + 3, x, 3) : x;
}

SIMD_INLINE void simd_store_part(float *to, simd_real x, size_t lanes)
{
    if (lanes > 0) {
        vst1q_lane_f32(to, x, 0);
    }
    if (lanes > 1) {
        vst1q_lane_f32(to + 1, x, 1);
    }
    if (lanes > 2) {
        vst1q_lane_f32(to + 2, x, 2);
    }
    if (lanes > 3) {
        vst1q_lane_f32(to + 3, x, 3);
    }
}

SIMD_INLINE simd_real simd_add(simd_real a, simd_real b)
{
    return vaddq_f32(a, b);
}

SIMD_INLINE simd_real simd_sub(simd_real a, simd_real b)
{
    return vsubq_f32(a, b);
}

SIMD_INLINE simd_real simd_mul(simd_real a, simd_real b)
{
    return vmulq_f32(a, b);
}

SIMD_INLINE simd_real simd_div(simd_real a, simd_real b)
{
    return vdivq_f32(a, b);
}

SIMD_INLINE simd_real simd_sqrt(simd_real a)
{
    return vsqrtq_f32(a);
}

SIMD_INLINE simd_real simd_fma(simd_real a, simd_real b, simd_real c)
{
    return vfmaq_f32(c, a, b);
}

SIMD_INLINE simd_real simd_fnma(simd_real a, simd_real b, simd_real c)
{
    return vfmsq_f32(c, a, b);
}

/* The signs of the even, or of the odd lanes. */
SIMD_INLINE uint32x4_t simd_signs(bool odd)
{
    return vreinterpretq_u32_u64(vdupq_n_u64(UINT64_C(0x80000000) << (odd ? 32 : 0)));
}

SIMD_INLINE simd_real simd_flip(simd_real a, uint32x4_t signs)
{
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a), signs));
}

SIMD_INLINE simd_real simd_fma_turn(simd_real a, simd_real b, simd_real c)
{
    return vfmaq_f32(simd_flip(c, simd_signs(false)), a, b);
}

/* FMIN would give a NaN wherever there is one. */
SIMD_INLINE simd_real simd_min(simd_real a, simd_real b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

SIMD_INLINE simd_real simd_max(simd_real a, simd_real b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

SIMD_INLINE simd_real simd_negate(simd_real a)
{
    return vnegq_f32(a);
}

SIMD_INLINE simd_real simd_negate_odd(simd_real a)
{
    return simd_flip(a, simd_signs(true));
}

SIMD_INLINE simd_real simd_even_twice(simd_real a)
{
    return vtrn1q_f32(a, a);
}

SIMD_INLINE simd_real simd_odd_twice(simd_real a)
{
    return vtrn2q_f32(a, a);
}

SIMD_INLINE simd_real simd_swap_pairs(simd_real a)
{
    return vrev64q_f32(a);
}

SIMD_INLINE simd_mask simd_is_nan(simd_real a)
{
    return vmvnq_u32(vceqq_f32(a, a));
}

SIMD_INLINE simd_mask simd_greater(simd_real a, simd_real b)
{
    return vcgtq_f32(a, b);
}

SIMD_INLINE bool simd_all_within(simd_real a, float bound)
{
    return vminvq_u32(vcleq_f32(vabsq_f32(a), vdupq_n_f32(bound))) != 0;
}

SIMD_INLINE simd_mask simd_no_lane(void)
{
    return vdupq_n_u32(0);
}

SIMD_INLINE simd_mask simd_either(simd_mask a, simd_mask b)
{
    return vorrq_u32(a, b);
}

SIMD_INLINE bool simd_any(simd_mask mask)
{
    return vmaxvq_u32(mask) != 0;
}

SIMD_INLINE simd_real simd_select(simd_mask mask, simd_real yes, simd_real no)
{
    return vbslq_f32(mask, yes, no);
}

/* As AVX2's. */
SIMD_INLINE simd_real simd_scale(simd_real p, simd_real t, simd_real n)
{
    uint32x4_t bits = vreinterpretq_u32_f32(t);
    uint32x4_t half = vshrq_n_u32(bits, 1);
    uint32x4_t rest = vsubq_u32(bits, half);
    uint32x4_t offset = vdupq_n_u32(127);

    (void)n;
    half = vshlq_n_u32(vaddq_u32(half, offset), 23);
    rest = vshlq_n_u32(vaddq_u32(rest, offset), 23);
    return vmulq_f32(vmulq_f32(p, vreinterpretq_f32_u32(half)), vreinterpretq_f32_u32(rest));
}

SIMD_INLINE simd_real simd_scale_normal(simd_real p, simd_real t, simd_real n)
{
    uint32x4_t shift = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);

    (void)n;
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), shift));
}

SIMD_INLINE float simd_fold(const simd_real lanes[8])
{
    simd_real x = vaddq_f32(vaddq_f32(lanes[0], lanes[4]), vaddq_f32(lanes[2], lanes[6]));
    simd_real y = vaddq_f32(vaddq_f32(lanes[1], lanes[5]), vaddq_f32(lanes[3], lanes[7]));
    simd_real z = vaddq_f32(x, y);
    float32x2_t pair = vadd_f32(vget_low_f32(z), vget_high_f32(z));

    return vget_lane_f32(pair, 0) + vget_lane_f32(pair, 1);
}

SIMD_INLINE float simd_max_lane(const simd_real lanes[8])
{
    simd_real x = simd_max(simd_max(lanes[0], lanes[4]), simd_max(lanes[2], lanes[6]));
    simd_real y = simd_max(simd_max(lanes[1], lanes[5]), simd_max(lanes[3], lanes[7]));
    simd_real z = simd_max(x, y);

    z = simd_max(z, vextq_f32(z, z, 2));
    return vgetq_lane_f32(simd_max(z, vextq_f32(z, z, 1)), 0);
}

#else
#error "simd.h: compile this file with the flags of an instruction set that has a section here"
#endif

/* ---- for every section ---------------------------------------------------- */

/* Any NaN becomes the one NaN of the engine. */
SIMD_INLINE simd_real simd_stored(simd_real a)
{
    return simd_select(simd_is_nan(a), simd_set(__builtin_nanf("")), a);
}

/* The first `lanes` elements; a plain load where lanes is the constant SIMD_WIDTH. */
SIMD_INLINE simd_real simd_get(const float *from, size_t lanes)
{
    return lanes == SIMD_WIDTH ? simd_load(from) : simd_load_part(from, lanes);
}

SIMD_INLINE void simd_put(float *to, simd_real x, size_t lanes)
{
    if (lanes == SIMD_WIDTH) {
        simd_store(to, x);
    } else {
        simd_store_part(to, x, lanes);
    }
}

#endif /* ENGINE_CPU_ISA_SIMD_H */
