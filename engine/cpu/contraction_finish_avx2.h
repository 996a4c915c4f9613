/*
 * contraction_finish_avx2.h - the last step of contractions on AVX2, for contraction_avx2.c alone:
 * from 64-bit sums to binary32. The order of a tile's sums is contraction_avx2.c's.
 *
 * Most rows are ordinary: their sums fit the significand of binary64, and binary32 has their
 * exponents. These take a third of the instructions.
 */
#ifndef ENGINE_CPU_CONTRACTION_FINISH_AVX2_H
#define ENGINE_CPU_CONTRACTION_FINISH_AVX2_H

#include <immintrin.h>

#include "engine/cpu/contraction_packed.h"

#define INLINE      static inline __attribute__((always_inline))
#define HALF_LINE   32 /* bytes: eight rows of a pair */
#define SUM_VECTORS 4  /* of one row and panel */

/* ---- any numbers ---- */

/* The magnitudes of four sums as binary32 after one rounding; where big is set, times 2^-11. */
struct converted {
    __m128 magnitude;
    __m256i big;
    __m256i negative;
};

/*
 * A magnitude below 2^52 is exact in binary64, so only its conversion to binary32 rounds. A larger
 * one first loses 11 bits to a sticky bit, far below the bits that binary32 keeps.
 */
INLINE struct converted convert(__m256i sums)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i magic = _mm256_set1_epi64x(INT64_C(0x4330000000000000)); /* 2^52 */
    __m256i negative = _mm256_cmpgt_epi64(zero, sums);
    __m256i magnitude = _mm256_sub_epi64(_mm256_xor_si256(sums, negative), negative);
    __m256i big = _mm256_cmpgt_epi64(magnitude, _mm256_set1_epi64x((INT64_C(1) << 52) - 1));
    __m256i rest = _mm256_and_si256(magnitude, _mm256_set1_epi64x(2047));
    __m256i sticky = _mm256_andnot_si256(_mm256_cmpeq_epi64(rest, zero), one);
    __m256i cut = _mm256_or_si256(_mm256_srli_epi64(magnitude, 11), sticky);
    __m256i kept = _mm256_blendv_epi8(magnitude, cut, big);
    __m256d exact = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(kept, magic)),
                                  _mm256_castsi256_pd(magic));

    return (struct converted){_mm256_cvtpd_ps(exact), big, negative};
}

/* The low halves of eight 64-bit lanes, interleaved or in order. */
INLINE __m256i low_halves(__m256i first, __m256i second, const bool interleave)
{
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    __m128i a = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(first, even));
    __m128i b = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(second, even));

    return interleave ? _mm256_set_m128i(_mm_unpackhi_epi32(a, b), _mm_unpacklo_epi32(a, b))
                      : _mm256_set_m128i(b, a);
}

/* value * 2^exponent for 0 or 1 <= |value| < 2^62: the first step is exact, only the second rounds.
 * NaN where the exponent is poison. */
INLINE __m256 scale(__m256 value, __m256i exponents)
{
    const __m256i least = _mm256_set1_epi32(-126);
    const __m256i most = _mm256_set1_epi32(127);
    __m256i first = _mm256_min_epi32(_mm256_max_epi32(exponents, least), most);
    __m256i second =
        _mm256_min_epi32(_mm256_max_epi32(_mm256_sub_epi32(exponents, first), least), most);

    first = _mm256_slli_epi32(_mm256_add_epi32(first, most), 23);
    second = _mm256_slli_epi32(_mm256_add_epi32(second, most), 23);
    value = _mm256_mul_ps(_mm256_mul_ps(value, _mm256_castsi256_ps(first)),
                          _mm256_castsi256_ps(second));

    __m256i poison = _mm256_cmpgt_epi32(exponents, _mm256_set1_epi32(LOWEST_POISON / 2));

    return _mm256_blendv_ps(value, _mm256_castsi256_ps(_mm256_set1_epi32(FLOAT_NAN_BITS)),
                            _mm256_castsi256_ps(poison));
}

/* The rule's binary32 of eight sums in two vectors, columns interleaved or in order. */
INLINE __m256 finish_lanes(__m256i first, __m256i second, __m256i exponents, const bool interleave)
{
    struct converted a = convert(first);
    struct converted b = convert(second);
    __m256i big = low_halves(a.big, b.big, interleave);
    __m256i sign = _mm256_slli_epi32(low_halves(a.negative, b.negative, interleave), 31);
    __m256 magnitude = interleave ? _mm256_set_m128(_mm_unpackhi_ps(a.magnitude, b.magnitude),
                                                    _mm_unpacklo_ps(a.magnitude, b.magnitude))
                                  : _mm256_set_m128(b.magnitude, a.magnitude);
    __m256i moved = _mm256_add_epi32(exponents, _mm256_and_si256(big, _mm256_set1_epi32(11)));

    return scale(_mm256_or_ps(magnitude, _mm256_castsi256_ps(sign)), moved);
}

/* ---- ordinary numbers ---- */

/* value * 2^exponent for exponents that binary32 has: one product, rounded at most once. */
INLINE __m256 scale_ordinary(__m256 value, __m256i exponents)
{
    __m256i power = _mm256_slli_epi32(_mm256_add_epi32(exponents, _mm256_set1_epi32(127)), 23);

    return _mm256_mul_ps(value, _mm256_castsi256_ps(power));
}

/* Four sums from -2^51 to 2^51 - 1 as binary32: exact in binary64, so only the last step rounds. */
INLINE __m128 convert_ordinary(__m256i sums)
{
    const __m256i magic = _mm256_set1_epi64x(INT64_C(0x4338000000000000)); /* 2^52 + 2^51 */
    __m256d moved = _mm256_castsi256_pd(_mm256_add_epi64(sums, magic));

    return _mm256_cvtpd_ps(_mm256_sub_pd(moved, _mm256_castsi256_pd(magic)));
}

/* Are all of these sums from -2^51 to 2^51 - 1? */
INLINE bool are_ordinary(const __m256i *sums, int count)
{
    const __m256i middle = _mm256_set1_epi64x(INT64_C(1) << 51);
    __m256i seen = _mm256_setzero_si256();

    for (int i = 0; i < count; i++) {
        seen = _mm256_or_si256(seen, _mm256_add_epi64(sums[i], middle));
    }
    return _mm256_testz_si256(seen, _mm256_set1_epi64x(-(INT64_C(1) << 52))) != 0;
}

/* The smallest and the largest lowest exponent of the tile's columns. */
struct exponent_range {
    int32_t least;
    int32_t most;
};

INLINE struct exponent_range range_of_columns(const struct finish_call *call)
{
    __m256i least = _mm256_loadu_si256((const __m256i *)call->b_lowest[0]);
    __m256i most = least;
    int32_t ends[2][8];
    struct exponent_range range = {INT32_MAX, INT32_MIN};

    for (int h = 1; h < 2 * call->panels; h++) {
        const int32_t *column = call->b_lowest[h / 2] + 8 * (h & 1);
        __m256i own = _mm256_loadu_si256((const __m256i *)column);

        least = _mm256_min_epi32(least, own);
        most = _mm256_max_epi32(most, own);
    }
    _mm256_storeu_si256((__m256i *)ends[0], least);
    _mm256_storeu_si256((__m256i *)ends[1], most);
    for (int i = 0; i < 8; i++) {
        range.least = ends[0][i] < range.least ? ends[0][i] : range.least;
        range.most = ends[1][i] > range.most ? ends[1][i] : range.most;
    }
    return range;
}

/* Does binary32 have the exponents of row r? Poison is above all that it has. */
INLINE bool is_ordinary_row(const struct finish_call *call, struct exponent_range range, int r)
{
    int32_t own = call->a_lowest[r] + call->exponent;

    return own + range.least >= -126 && own + range.most <= 127;
}

INLINE __m256 ordinary_lanes(__m256i first, __m256i second, __m256i exponents)
{
    __m128 a = convert_ordinary(first);
    __m128 b = convert_ordinary(second);

    return scale_ordinary(_mm256_set_m128(_mm_unpackhi_ps(a, b), _mm_unpacklo_ps(a, b)), exponents);
}

/* ---- a tile ---- */

/* Masks one row of half panel h and writes the wanted elements. */
INLINE void write_lanes(const struct finish_call *call, int r, int h, __m256 value)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    int64_t visible = call->visible[r] - 8 * h;
    uint32_t wanted = call->wanted[h / 2] >> (8 * (h & 1)) & 0xff;
    float *to = call->out[r] + 8 * h;

    if (visible < 8) {
        __m256i limit = _mm256_set1_epi32(visible <= 0 ? 0 : (int32_t)visible);

        value = _mm256_and_ps(value, _mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, lanes)));
    }
    if (call->stream && wanted == 0xff && (uintptr_t)to % HALF_LINE == 0) {
        _mm256_stream_ps(to, value);
    } else if (wanted == 0xff) {
        _mm256_storeu_ps(to, value);
    } else {
        __m256i chosen = _mm256_and_si256(_mm256_set1_epi32((int32_t)wanted), bits);

        _mm256_maskstore_ps(to, _mm256_cmpeq_epi32(chosen, bits), value);
    }
}

INLINE __m256i lane_exponents(const struct finish_call *call, int r, int h)
{
    const int32_t *column = call->b_lowest[h / 2] + 8 * (h & 1);

    return _mm256_add_epi32(_mm256_set1_epi32(call->a_lowest[r] + call->exponent),
                            _mm256_loadu_si256((const __m256i *)column));
}

static void finish_tile(const struct finish_call *call)
{
    const struct exponent_range range = range_of_columns(call);

    for (int r = 0; r < TILE_ROWS; r++) {
        const __m256i *sums = (const __m256i *)call->sums + r * TILE_PANELS * SUM_VECTORS;

        if (call->out[r] == NULL) {
            continue;
        }
        const bool ordinary =
            is_ordinary_row(call, range, r) && are_ordinary(sums, call->panels * SUM_VECTORS);

        for (int h = 0; h < 2 * call->panels; h++, sums += 2) {
            __m256i exponents = lane_exponents(call, r, h);

            write_lanes(call, r, h,
                        ordinary ? ordinary_lanes(sums[0], sums[1], exponents)
                                 : finish_lanes(sums[0], sums[1], exponents, true));
        }
    }
}

#endif /* ENGINE_CPU_CONTRACTION_FINISH_AVX2_H */
