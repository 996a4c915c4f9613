/*
 * probe_x86_body.h - the integers of the probe on x86-64, written once; the including file says
 * what V(name) and S(name) are: the intrinsic of that name, and of that name with _si256 or _si512
 * behind it.
 */
#include "engine/cpu/isa/probe.h"
#include "engine/cpu/isa/simd.h"

#define PROBE_HAS_BYTES false

SIMD_INLINE probe_integers shifts(probe_integers a, probe_integers b)
{
    probe_integers count = S(and)(b, V(set1_epi32)(31));
    probe_integers left = S(xor)(V(slli_epi32)(a, 23), V(sllv_epi32)(a, count));

    return S(xor)(left, S(xor)(V(srli_epi32)(a, 1), V(srai_epi32)(a, 7)));
}

SIMD_INLINE probe_integers wide(probe_integers a, probe_integers b, uint32_t count)
{
    probe_integers product = V(mul_epi32)(a, b);

    return V(add_epi64)(V(sll_epi64)(product, _mm_cvtsi32_si128((int)count)),
                        V(srli_epi64)(product, 32));
}

SIMD_INLINE probe_integers order(probe_integers a, probe_integers b, probe_integers c)
{
    probe_integers least = V(min_epi32)(a, b);
    probe_integers most = V(max_epi32)(a, b);
    probe_integers above = V(add_epi32)(V(max_epu32)(a, b), c);

    return S(xor)(S(xor)(V(add_epi32)(least, least), most), S(xor)(above, where_greater(a, b, c)));
}

SIMD_INLINE probe_integers packed(probe_integers a, probe_integers b, probe_integers c)
{
    static const int8_t reversing[64] __attribute__((aligned(64))) = {
        15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, /* in each 128 bits */
        15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, /**/
        15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, /**/
        15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, /**/
    };
    probe_integers order_of_bytes = S(loadu)((const probe_integers *)(const void *)reversing);
    probe_integers x = V(shuffle_epi8)(V(packs_epi32)(a, b), order_of_bytes);

    return S(xor)(V(unpacklo_epi32)(x, c), V(unpackhi_epi32)(x, c));
}

SIMD_INLINE probe_integers integer_result(enum probe_class class, const struct probe_lanes *probe,
                                          uint32_t at)
{
    probe_integers a = S(loadu)((const probe_integers *)(const void *)(probe->a + at));
    probe_integers b = S(loadu)((const probe_integers *)(const void *)(probe->b + at));
    probe_integers c = S(loadu)((const probe_integers *)(const void *)(probe->c + at));

    switch ((int)class) {
    case PROBE_TO_INT:
        return V(cvtps_epi32)(as_reals(a));
    case PROBE_FROM_INT:
        return as_integers(V(cvtepi32_ps)(a));
    case PROBE_FROM_LONG:
        return from_long(a);
    case PROBE_DOT:
        return dot_product(a, b, c);
    case PROBE_SHIFT:
        return shifts(a, b);
    case PROBE_WIDE:
        return wide(a, b, probe->c[0] & 31);
    case PROBE_ORDER:
        return order(a, b, c);
    case PROBE_PACK:
        return packed(a, b, c);
    default: /* PROBE_BYTES */
        return widen_bytes((const uint8_t *)(const void *)probe->a + at);
    }
}

SIMD_INLINE void store_integers(uint32_t *to, probe_integers result)
{
    S(storeu)((probe_integers *)(void *)to, result);
}

#include "engine/cpu/isa/probe_body.h"
