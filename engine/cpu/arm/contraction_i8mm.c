/*
 * contraction_i8mm.c - contractions of 14 bits by products of bytes; all else as on NEON.
 *
 * SMMLA multiplies two rows of eight signed bytes by two others: 32 products, of which SMLAL makes
 * four. 14 bits are two bytes: q = h * 2^7 + l with -64 <= l <= 63 and -64 <= h <= 64, and h + l is
 * a byte too, at least -128 and at most 127: of |q| <= 2^13 - 1 the h of 64 has l = -1. So
 *   q q' = hh' (2^14 - 2^7) + ll' (1 - 2^7) + (h + l)(h' + l') 2^7.
 * A sum over a piece is below 128 * 2^14 = 2^21: no test of norms is needed.
 *
 * Whole groups of four lines hold bytes: see contraction_packed.h. The six elements of the last
 * three lines, at most, that stay pairs add up to less than 2^29. A piece begins with a group: all
 * but the last have a multiple of 16 elements.
 */
#include "engine/cpu/arm/contraction_neon.h"
#include "engine/cpu/cpu.h"

enum plane { PLANE_HIGH, PLANE_LOW, PLANE_BOTH };

/* ---- tile ---- */

/* Two rows of a group. */
NEON_INLINE int8x16_t two_rows(const char *at, const enum plane plane)
{
    const int8_t *bytes = (const int8_t *)(const void *)at;

    if (plane == PLANE_HIGH) {
        return vld1q_s8(bytes);
    }
    if (plane == PLANE_LOW) {
        return vld1q_s8(bytes + BYTES_LOW);
    }
    return vaddq_s8(vld1q_s8(bytes), vld1q_s8(bytes + BYTES_LOW));
}

/* Eight rows by eight columns, as squares of two by two. */
NEON_INLINE void multiply(int32x4_t acc[4][4], const char *a, const char *b, int64_t groups,
                          const enum plane plane)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        acc[i / 4][i % 4] = vdupq_n_s32(0);
    }
    for (int64_t g = 0; g < groups * BYTES_GROUP; g += BYTES_GROUP) {
        int8x16_t rows[4];

#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            rows[i] = two_rows(a + g + 16 * i, plane);
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            int8x16_t columns = two_rows(b + g + 16 * j, plane);

#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                acc[i][j] = vmmlaq_s32(acc[i][j], rows[i], columns);
            }
        }
    }
}

/* Where the sums of a piece and a panel go, and their shifts. */
struct byte_sums {
    int64_t *sums;
    const uint8_t *row_shifts;
    const uint8_t *column_shifts;
};

/* Adds squares of one plane: the eight columns from `column` on. */
NEON_INLINE void flush_squares(const struct byte_sums *target, int32x4_t acc[4][4], int column,
                               int32_t factor)
{
    for (int quad = 0; quad < 2; quad++) {
        int at = column + 4 * quad;
        int32x4_t factors = neon_factors(target->column_shifts + at, factor);

        for (int i = 0; i < 4; i++) {
            int64x2_t left = vreinterpretq_s64_s32(acc[i][2 * quad]);
            int64x2_t right = vreinterpretq_s64_s32(acc[i][2 * quad + 1]);
            int64_t *sums = target->sums + (size_t)(2 * i * NEON_ROW + at);

            neon_flush(sums, vreinterpretq_s32_s64(vtrn1q_s64(left, right)), factors,
                       vdupq_n_s64(target->row_shifts[2 * i]));
            neon_flush(sums + NEON_ROW, vreinterpretq_s32_s64(vtrn2q_s64(left, right)), factors,
                       vdupq_n_s64(target->row_shifts[2 * i + 1]));
        }
    }
}

static void add_groups(const struct byte_sums *target, const char *a, const char *b, int64_t groups)
{
    int32x4_t acc[4][4];

    for (int column = 0; column < PANEL_ROWS; column += 8) {
        const char *columns = b + 8 * column;

        multiply(acc, a, columns, groups, PLANE_HIGH);
        flush_squares(target, acc, column, (1 << (2 * BYTE_BITS)) - (1 << BYTE_BITS));
        multiply(acc, a, columns, groups, PLANE_LOW);
        flush_squares(target, acc, column, 1 - (1 << BYTE_BITS));
        multiply(acc, a, columns, groups, PLANE_BOTH);
        flush_squares(target, acc, column, 1 << BYTE_BITS);
    }
}

/* The lines behind the last group. */
static void add_rest(const struct byte_sums *target, const char *a, const char *b, int64_t pairs)
{
    for (int first = 0; first < TILE_ROWS && pairs > 0; first += NEON_STEP) {
        int32x4_t acc[NEON_STEP][NEON_QUADS] = {{vdupq_n_s32(0)}};

        neon_multiply(acc, a + 4 * first, b, pairs);
        for (int i = 0; i < NEON_STEP * NEON_QUADS; i++) {
            int r = first + i / NEON_QUADS;
            int column = 4 * (i % NEON_QUADS);

            neon_flush(target->sums + (size_t)(r * NEON_ROW + column),
                       acc[i / NEON_QUADS][i % NEON_QUADS],
                       neon_factors(target->column_shifts + column, 1),
                       vdupq_n_s64(target->row_shifts[r]));
        }
    }
}

static void tile_piece(const struct tile_call *call, int64_t piece, int c, int64_t pairs)
{
    const struct piece_head *a_head = &call->a_heads[piece];
    const struct piece_head *b_head = &call->b_heads[c][piece];
    const char *a = call->a + piece * (call->piece / 2) * LINE_SIZE;
    const char *b = call->b[c] + piece * (call->piece / 2) * LINE_SIZE;
    int64_t groups = pairs / BYTES_LINES;
    struct byte_sums target = {.sums = call->sums + (size_t)c * PANEL_ROWS,
                               .row_shifts = a_head->shifts + call->a_row,
                               .column_shifts = b_head->shifts};

    if (a_head->norms[NORM_RUN] == 0 || b_head->norms[NORM_RUN] == 0) {
        return;
    }
    /* A row has four bytes in a line of pairs, and eight of h in a group. */
    add_groups(&target, a + 4 * (size_t)call->a_row, b, groups);
    add_rest(&target, a + groups * BYTES_GROUP, b + groups * BYTES_GROUP,
             pairs - groups * BYTES_LINES);
}

static void tile_product(const struct tile_call *call)
{
    int64_t pairs_all = (call->count + 1) / 2;
    int64_t piece = 0;

    for (int64_t at = 0; at < pairs_all; at += call->piece / 2, piece++) {
        int64_t pairs = pairs_all - at < call->piece / 2 ? pairs_all - at : call->piece / 2;

        for (int c = 0; c < call->panels; c++) {
            tile_piece(call, piece, c, pairs);
        }
    }
}

/* A sum lies in three planes: it goes by 64 bits. */
static bool tile_short(const struct tile_call *call, const struct finish_call *finish)
{
    (void)call;
    (void)finish;
    return false;
}

/* ---- quantize ---- */

/* h and l of two rows of eight elements. */
NEON_INLINE void put_rows(char *to, int16x8_t first, int16x8_t second)
{
    int16x8_t low[2] = {vshrq_n_s16(vshlq_n_s16(first, 16 - BYTE_BITS), 16 - BYTE_BITS),
                        vshrq_n_s16(vshlq_n_s16(second, 16 - BYTE_BITS), 16 - BYTE_BITS)};
    int16x8_t high[2] = {vshrq_n_s16(vsubq_s16(first, low[0]), BYTE_BITS),
                         vshrq_n_s16(vsubq_s16(second, low[1]), BYTE_BITS)};

    vst1q_s8((int8_t *)(void *)to, vmovn_high_s16(vmovn_s16(high[0]), high[1]));
    vst1q_s8((int8_t *)(void *)(to + BYTES_LOW), vmovn_high_s16(vmovn_s16(low[0]), low[1]));
}

/* Four lines of pairs become a group of bytes, in place. */
static void group_from_lines(char *lines)
{
    int32x4_t rows[PANEL_ROWS];

    for (int r = 0; r < PANEL_ROWS; r += 4) {
        for (int pair = 0; pair < 4; pair++) {
            rows[r + pair] =
                vld1q_s32((const int32_t *)(const void *)(lines + pair * LINE_SIZE + 4 * r));
        }
        neon_transpose(rows + r);
    }
    for (int r = 0; r < PANEL_ROWS; r += 2) {
        put_rows(lines + 8 * r, vreinterpretq_s16_s32(rows[r]), vreinterpretq_s16_s32(rows[r + 1]));
    }
}

static void piece_integers(char *lines, size_t plane_size, const struct piece_source *source,
                           const int32_t *exponents, int bits)
{
    int64_t groups = (source->count + 1) / 2 / BYTES_LINES;

    neon_integers(lines, plane_size, source, exponents, bits);
    for (int64_t g = 0; g < groups; g++) {
        group_from_lines(lines + g * BYTES_GROUP);
    }
}

static void piece_norms(uint32_t *norms, const char *lines, size_t plane_size, int64_t pairs,
                        int bits)
{
    (void)plane_size;
    (void)bits;
    norms[NORM_RUN] = neon_any_nonzero(lines, pairs);
    norms[NORM_HALF] = norms[NORM_RUN];
}

/* SDOT with ones. */
static void row_sums_bytes(int32_t *sums, const char *lines, int64_t groups)
{
    const int8x16_t ones = vdupq_n_s8(1);

    for (int r = 0; r < PANEL_ROWS; r += 2) {
        int32x4_t high = vdupq_n_s32(0); /* two sums to a row */
        int32x4_t low = vdupq_n_s32(0);

        for (int64_t g = 0; g < groups; g++) {
            const char *at = lines + g * BYTES_GROUP + 8 * r;

            high = vdotq_s32(high, two_rows(at, PLANE_HIGH), ones);
            low = vdotq_s32(low, two_rows(at, PLANE_LOW), ones);
        }
        int32x4_t whole = vaddq_s32(vshlq_n_s32(high, BYTE_BITS), low);

        vst1_s32(sums + r, vget_low_s32(vpaddq_s32(whole, whole)));
    }
}

static void row_sums(int32_t *sums, const char *lines, int64_t pairs)
{
    int64_t groups = pairs / BYTES_LINES;
    int32_t rest[PANEL_ROWS];

    row_sums_bytes(sums, lines, groups);
    neon_row_sums(rest, lines + groups * BYTES_GROUP, pairs - groups * BYTES_LINES);
    for (int r = 0; r < PANEL_ROWS; r++) {
        sums[r] += rest[r];
    }
}

static void unpack_lines(int16_t *rows, int64_t pitch, const char *lines)
{
    for (int r = 0; r < PANEL_ROWS; r++) {
        for (int64_t g = 0; g < UNPACK_PAIRS / BYTES_LINES; g++) {
            const int8_t *at = (const int8_t *)(const void *)(lines + g * BYTES_GROUP + 8 * r);
            int16x8_t high = vshll_n_s8(vld1_s8(at), BYTE_BITS);

            vst1q_s16(rows + r * pitch + 8 * g, vaddw_s8(high, vld1_s8(at + BYTES_LOW)));
        }
    }
}

/* ---- the table ---- */

static const struct contraction_isa i8mm = {
    .bytes = true,
    .tile = tile_product,
    .finish = neon_finish,
    .tile_short = tile_short,
    .magnitudes = neon_magnitudes,
    .integers = piece_integers,
    .norms = piece_norms,
    .stream = neon_stream,
    .row_sums = row_sums,
    .unpack = unpack_lines,
    .finish_row = neon_finish_row,
};

/* The bytes for 14 bits, NEON's pairs for all others. */
static const struct contraction_isa *table_for(const struct op *op)
{
    return contraction_shape_of(op).bits == BYTES_BITS ? &i8mm : &contraction_neon;
}

static void run_unpack(void *q, const void *packed, const struct op *quantize, int thread_count)
{
    contraction_unpack(table_for(quantize), q, packed, quantize, thread_count);
}

static void run_quantize(const struct kernel_call *call)
{
    contraction_quantize(table_for(call->op), call);
}

static void run_contract(const struct kernel_call *call)
{
    contraction_contract(table_for(call->op), call);
}

static void run_ones(const struct kernel_call *call)
{
    contraction_ones(table_for(call->op), call);
}

static void run_onehot(const struct kernel_call *call)
{
    contraction_onehot(table_for(call->op), call);
}

static void run_chosen(const struct kernel_call *call)
{
    contraction_chosen(table_for(call->op), call);
}

static void run_chosen_rows(const struct kernel_call *call)
{
    contraction_chosen_rows(table_for(call->op), call);
}

void contraction_kernels_i8mm(struct kernel_table *table)
{
    contraction_table(table,
                      &(struct contraction_runs){run_unpack, run_quantize, run_contract, run_ones,
                                                 run_onehot, run_chosen, run_chosen_rows});
}
