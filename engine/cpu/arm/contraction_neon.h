/*
 * contraction_neon.h - the inner loops of contractions on NEON, for contraction_i8mm.c: it has its
 * own for 14 bits and takes these for all others. contraction_packed.h says what each does.
 *
 * Scratch order of a tile's sums: (row, panel, column).
 */
#ifndef ENGINE_CPU_ARM_CONTRACTION_NEON_H
#define ENGINE_CPU_ARM_CONTRACTION_NEON_H

#include <arm_neon.h>

#include "engine/cpu/contraction_packed.h"

#define NEON_INLINE static inline __attribute__((always_inline))
#define NEON_STEP   4                          /* rows whose sums live in registers together */
#define NEON_QUADS  (PANEL_ROWS / 4)           /* vectors of 32-bit sums of one row and panel */
#define NEON_ROW    (TILE_PANELS * PANEL_ROWS) /* sums of a row of a tile */

extern const struct contraction_isa contraction_neon;

/* Of this table. */
void neon_finish(const struct finish_call *call);
void neon_magnitudes(uint32_t *largest, const struct piece_source *source, float *copy);
void neon_integers(char *lines, size_t plane_size, const struct piece_source *source,
                   const int32_t *exponents, int bits);
void neon_stream(char *to, const char *from, size_t size);
void neon_row_sums(int32_t *sums, const char *lines, int64_t pairs);
void neon_finish_row(float *out, const int64_t *sums, const int32_t *exponents);

/* Is a bit of whole lines set? */
bool neon_any_nonzero(const char *lines, int64_t pairs);

/* Adds the products of `pairs` lines of pairs to four rows of 32-bit sums; a begins at the first of
 * these rows. */
void neon_multiply(int32x4_t acc[NEON_STEP][NEON_QUADS], const char *a, const char *b,
                   int64_t pairs);

/*
 * Widens four 32-bit sums, applies the shifts of their columns and of their row and adds them to
 * the 64-bit sums. The factors, shifted, are below 2^31: see contraction_avx2.c.
 */
NEON_INLINE void neon_flush(int64_t *sums, int32x4_t acc, int32x4_t factors, int64x2_t row_shift)
{
    int64x2_t low = vmull_s32(vget_low_s32(acc), vget_low_s32(factors));
    int64x2_t high = vmull_high_s32(acc, factors);

    vst1q_s64(sums, vaddq_s64(vld1q_s64(sums), vshlq_s64(low, row_shift)));
    vst1q_s64(sums + 2, vaddq_s64(vld1q_s64(sums + 2), vshlq_s64(high, row_shift)));
}

/* factor times the powers of two of four columns. */
NEON_INLINE int32x4_t neon_factors(const uint8_t *column_shifts, int32_t factor)
{
    const int32_t shifts[4] = {column_shifts[0], column_shifts[1], column_shifts[2],
                               column_shifts[3]};

    return vshlq_s32(vdupq_n_s32(factor), vld1q_s32(shifts));
}

/* Transposes 4 x 4 32-bit elements. */
NEON_INLINE void neon_transpose(int32x4_t t[4])
{
    int32x4_t low = vtrn1q_s32(t[0], t[1]); /* 00 10 02 12 */
    int32x4_t high = vtrn2q_s32(t[0], t[1]);
    int32x4_t next_low = vtrn1q_s32(t[2], t[3]);
    int32x4_t next_high = vtrn2q_s32(t[2], t[3]);

    t[0] = vreinterpretq_s32_s64(
        vtrn1q_s64(vreinterpretq_s64_s32(low), vreinterpretq_s64_s32(next_low)));
    t[1] = vreinterpretq_s32_s64(
        vtrn1q_s64(vreinterpretq_s64_s32(high), vreinterpretq_s64_s32(next_high)));
    t[2] = vreinterpretq_s32_s64(
        vtrn2q_s64(vreinterpretq_s64_s32(low), vreinterpretq_s64_s32(next_low)));
    t[3] = vreinterpretq_s32_s64(
        vtrn2q_s64(vreinterpretq_s64_s32(high), vreinterpretq_s64_s32(next_high)));
}

#endif /* ENGINE_CPU_ARM_CONTRACTION_NEON_H */
