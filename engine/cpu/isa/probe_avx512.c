/* probe_avx512.c - the probe of AVX-512: see probe_body.h. */
#include <immintrin.h>
#include <stdint.h>

#define PROBE_RUN   probe_avx512
#define PROBE_WIDTH 16
#define V(name)     _mm512_##name
#define S(name)     _mm512_##name##_si512

typedef __m512i probe_integers;

static inline __m512 as_reals(__m512i a)
{
    return _mm512_castsi512_ps(a);
}

static inline __m512i as_integers(__m512 a)
{
    return _mm512_castps_si512(a);
}

static inline __m512i where_greater(__m512i a, __m512i b, __m512i c)
{
    return _mm512_maskz_mov_epi32(_mm512_cmpgt_epi32_mask(a, b), c);
}

static inline __m512i dot_product(__m512i a, __m512i b, __m512i c)
{
    return _mm512_dpwssd_epi32(c, a, b);
}

static inline __m512i from_long(__m512i a)
{
    return _mm512_cvtepu32_epi64(_mm256_castps_si256(_mm512_cvtepi64_ps(a)));
}

static inline __m512i widen_bytes(const uint8_t *from)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

#include "engine/cpu/isa/probe_x86_body.h"
