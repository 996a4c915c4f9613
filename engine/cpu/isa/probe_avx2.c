/* probe_avx2.c - the probe of AVX2: see probe_body.h. */
#include <immintrin.h>
#include <stdint.h>

#define PROBE_RUN   probe_avx2
#define PROBE_WIDTH 8
#define V(name)     _mm256_##name
#define S(name)     _mm256_##name##_si256

typedef __m256i probe_integers;

static inline __m256 as_reals(__m256i a)
{
    return _mm256_castsi256_ps(a);
}

static inline __m256i as_integers(__m256 a)
{
    return _mm256_castps_si256(a);
}

static inline __m256i where_greater(__m256i a, __m256i b, __m256i c)
{
    return _mm256_and_si256(_mm256_cmpgt_epi32(a, b), c);
}

static inline __m256i dot_product(__m256i a, __m256i b, __m256i c)
{
    return _mm256_add_epi32(c, _mm256_madd_epi16(a, b));
}

/* As contraction_avx2.c converts its sums. */
static inline __m256i from_long(__m256i a)
{
    const __m256i magic = _mm256_set1_epi64x(INT64_C(0x4330000000000000)); /* 2^52 */
    __m256d exact =
        _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(a, magic)), _mm256_castsi256_pd(magic));

    return _mm256_cvtepu32_epi64(_mm_castps_si128(_mm256_cvtpd_ps(exact)));
}

static inline __m256i widen_bytes(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

#include "engine/cpu/isa/probe_x86_body.h"
