/*
 * probe_body.h - the vector side of probe.h, written once; the including file says what PROBE_RUN
 * and PROBE_WIDTH (lanes of an integer vector) are, whether it
 * PROBE_HAS_BYTES to multiply, and has integer_result() and store_integers().
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

void PROBE_RUN(enum probe_class class, struct probe_lanes *probe)
{
    if (class <= PROBE_SCALE) {
        run_reals(class, probe);
    } else if (class == PROBE_FOLD) {
        run_fold(probe);
    } else if (class == PROBE_PART) {
        run_part(probe);
    } else if (class >= PROBE_BYTE_DOT && !PROBE_HAS_BYTES) {
        probe_scalar(class, probe);
    } else {
        for (uint32_t i = 0; i < PROBE_LANES; i += PROBE_WIDTH) {
            store_integers(probe->out + i, integer_result(class, probe, i));
        }
    }
}
