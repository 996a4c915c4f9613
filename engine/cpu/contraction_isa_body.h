/*
 * contraction_isa_body.h - what the inner loops of every instruction set have in common. Included
 * once, behind them, by contraction_avx2.c and contraction_avx512.c, whose functions it names.
 */
#ifndef ENGINE_CPU_CONTRACTION_ISA_BODY_H
#define ENGINE_CPU_CONTRACTION_ISA_BODY_H

#include "engine/cpu/contraction_packed.h"

INLINE void integers_with(char *lines, size_t plane_size, const struct piece_source *source,
                          const struct scales *scales, int bits, const bool wide, const bool split)
{
    if (source->adjacent) {
        integers_adjacent(lines, plane_size, source, scales, bits, wide, split);
    } else {
        integers_along(lines, plane_size, source, scales, bits, wide, split);
    }
}

static void piece_integers(char *lines, size_t plane_size, const struct piece_source *source,
                           const int32_t *exponents, int bits)
{
    struct scales scales;

    scales_from(&scales, exponents, bits);
    if (bits == 22) {
        integers_with(lines, plane_size, source, &scales, bits, true, true);
    } else if (scales.wide) {
        integers_with(lines, plane_size, source, &scales, bits, true, false);
    } else {
        integers_with(lines, plane_size, source, &scales, bits, false, false);
    }
}

/* ---- the table ---- */

static const struct contraction_isa own_isa = {
    .tile = tile_product,
    .finish = finish_tile,
    .tile_short = tile_short,
    .magnitudes = piece_magnitudes,
    .integers = piece_integers,
    .norms = piece_norms,
    .stream = stream_bytes,
    .row_sums = row_sums,
    .unpack = unpack_lines,
    .finish_row = finish_row,
};

static void run_unpack(void *q, const void *packed, const struct op *quantize, int thread_count)
{
    contraction_unpack(&own_isa, q, packed, quantize, thread_count);
}

static void run_quantize(const struct kernel_call *call)
{
    contraction_quantize(&own_isa, call);
}

static void run_contract(const struct kernel_call *call)
{
    contraction_contract(&own_isa, call);
}

static void run_ones(const struct kernel_call *call)
{
    contraction_ones(&own_isa, call);
}

static void run_onehot(const struct kernel_call *call)
{
    contraction_onehot(&own_isa, call);
}

static const struct contraction_runs own_runs = {run_unpack, run_quantize, run_contract, run_ones,
                                                 run_onehot};

#endif /* ENGINE_CPU_CONTRACTION_ISA_BODY_H */
