/*
 * probe_body.h - the vector side of probe.h, written once; the including file says what PROBE_RUN,
 * PROBE_WIDTH (lanes of an integer vector) and V(name) and S(name) are: the intrinsic of that name,
 * and of that name with _si256 or _si512 behind it.
 */
#include "engine/cpu/isa/probe.h"
#include "engine/cpu/isa/simd.h"

/* ---- numbers ---- */

SIMD_INLINE simd_real load_real(const uint32_t *from)
{
    return simd_load((const float *)(const void *)from);
}

SIMD_INLINE simd_real real_result(enum probe_class class, simd_real a, simd_real b, simd_real c)
{
    switch ((int)class) {
    case PROBE_ADD:
        return simd_add(a, b);
    case PROBE_SUB:
        return simd_sub(a, b);
    case PROBE_MUL:
        return simd_mul(a, b);
    case PROBE_DIV:
        return simd_div(a, b);
    case PROBE_SQRT:
        return simd_sqrt(a);
    case PROBE_FMA:
        return simd_fma(a, b, c);
    case PROBE_FNMA:
        return simd_fnma(a, b, c);
    case PROBE_TURN:
        return simd_fma_turn(simd_even_twice(a), simd_swap_pairs(b),
                             simd_negate_odd(simd_odd_twice(c)));
    case PROBE_MIN:
        return simd_min(a, b);
    case PROBE_MAX:
        return simd_max(a, b);
    case PROBE_SELECT:
        return simd_select(simd_greater(a, b), a, c);
    default: /* PROBE_SCALE */
        return simd_scale(a, b, c);
    }
}

static void run_reals(enum probe_class class, struct probe_lanes *probe)
{
    for (uint32_t i = 0; i < PROBE_LANES; i += SIMD_WIDTH) {
        simd_real result = real_result(class, load_real(probe->a + i), load_real(probe->b + i),
                                       load_real(probe->c + i));

        simd_store((float *)(void *)(probe->out + i), simd_stored(result));
    }
}

static void run_fold(struct probe_lanes *probe)
{
    simd_real lanes[SIMD_GROUP];
    simd_real total;

    for (uint32_t i = 0; i < SIMD_GROUP; i++) {
        uint32_t at = i * SIMD_WIDTH;

        lanes[i] = load_real(at < PROBE_LANES ? probe->a + at : probe->b + (at - PROBE_LANES));
    }
    total = simd_stored(simd_set(simd_fold(lanes)));
    for (uint32_t i = 0; i < PROBE_LANES; i += SIMD_WIDTH) {
        simd_store((float *)(void *)(probe->out + i), total);
    }
}

static void run_part(struct probe_lanes *probe)
{
    uint32_t lanes = probe->b[0] & 15;

    for (uint32_t i = 0; i < PROBE_LANES; i += SIMD_WIDTH) {
        uint32_t rest = lanes > i ? lanes - i : 0;
        uint32_t here = rest < SIMD_WIDTH ? rest : SIMD_WIDTH;
        float *out = (float *)(void *)(probe->out + i);

        simd_store(out, load_real(probe->c + i));
        simd_store_part(out, simd_load_part((const float *)(const void *)(probe->a + i), here),
                        here);
    }
}

/* ---- integers ---- */

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
        return bytes((const uint8_t *)(const void *)probe->a + at);
    }
}

void PROBE_RUN(enum probe_class class, struct probe_lanes *probe)
{
    if (class <= PROBE_SCALE) {
        run_reals(class, probe);
    } else if (class == PROBE_FOLD) {
        run_fold(probe);
    } else if (class == PROBE_PART) {
        run_part(probe);
    } else {
        for (uint32_t i = 0; i < PROBE_LANES; i += PROBE_WIDTH) {
            probe_integers result = integer_result(class, probe, i);

            S(storeu)((probe_integers *)(void *)(probe->out + i), result);
        }
    }
}
