/*
 * contraction_avx512.c - contractions on AVX-512 with VNNI: see contraction_packed.h.
 *
 * The inner loops only; threads, views and blocking are in contraction_tiles.c and
 * contraction_quantize.c. Scratch order of a tile's sums: (row, panel, even columns, odd columns).
 */
#include <immintrin.h>

#include "engine/cpu/contraction_packed.h"
#include "engine/cpu/cpu.h"

#define INLINE         static inline __attribute__((always_inline))
#define PREFETCH_AHEAD 256 /* bytes */

/* ---- tile ---- */

/*
 * Widens the 32-bit sums of a tile, applies the two rows' shifts and adds them to the 64-bit sums.
 * vpmuldq multiplies the even 32-bit lanes into 64 bits: it widens and applies the column's power
 * of two in one step. The power and the factor are below 2^31: a shift is at most W, and with more
 * than one block (K > 16) W <= 15 for 14 to 16 bits and W <= 7 for 22, whose factors are < 2^22.
 */
INLINE void flush(__m512i *sums, __m512i acc[TILE_ROWS][TILE_PANELS], const struct tile_call *call,
                  int64_t piece, int32_t factor, const int width)
{
    const uint8_t *row_shifts = call->a_heads[piece].shifts + call->a_row;

#pragma GCC unroll 3
    for (int c = 0; c < width; c++) {
        const __m128i *column = (const __m128i *)call->b_heads[c][piece].shifts;
        __m512i even = _mm512_sllv_epi32(_mm512_set1_epi32(factor),
                                         _mm512_cvtepu8_epi32(_mm_loadu_si128(column)));
        __m512i odd = _mm512_srli_epi64(even, 32);

#pragma GCC unroll 8
        for (int r = 0; r < TILE_ROWS; r++) {
            __m128i shift = _mm_cvtsi32_si128(row_shifts[r]);
            __m512i *sum = &sums[(r * TILE_PANELS + c) * 2];
            __m512i low = _mm512_mul_epi32(acc[r][c], even);
            __m512i high = _mm512_mul_epi32(_mm512_srli_epi64(acc[r][c], 32), odd);

            sum[0] = _mm512_add_epi64(sum[0], _mm512_sll_epi64(low, shift));
            sum[1] = _mm512_add_epi64(sum[1], _mm512_sll_epi64(high, shift));
        }
    }
}

/* In assembly: with the intrinsic, gcc 12 copies and spills the sums in the loop. */
INLINE void dot_pairs(__m512i *sum, __m512i row, __m512i columns)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(row), "v"(columns));
}

/* The products of `pairs` lines. For three panels 24 sums, 3 columns and a row fit registers. */
INLINE void multiply(__m512i acc[TILE_ROWS][TILE_PANELS], const char *a, const char *const *b,
                     int64_t pairs, const int width)
{
    const char *b0 = b[0];
    const char *b1 = b[width > 1 ? 1 : 0];
    const char *b2 = b[width > 2 ? 2 : 0];

#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++) {
#pragma GCC unroll 3
        for (int c = 0; c < width; c++) {
            acc[r][c] = _mm512_setzero_si512();
        }
    }
    for (int64_t i = 0; i < pairs * LINE_SIZE; i += LINE_SIZE) {
        __m512i columns[TILE_PANELS];

        columns[0] = _mm512_loadu_si512(b0 + i);
        columns[1] = width > 1 ? _mm512_loadu_si512(b1 + i) : columns[0];
        columns[2] = width > 2 ? _mm512_loadu_si512(b2 + i) : columns[0];
#pragma GCC unroll 8
        for (int r = 0; r < TILE_ROWS; r++) {
            __m512i row = _mm512_set1_epi32(*(const int32_t *)(a + i + 4 * r));
#pragma GCC unroll 3
            for (int c = 0; c < width; c++) {
                dot_pairs(&acc[r][c], row, columns[c]);
            }
        }
    }
}

/* safe_pairs() over all panels of the tile. */
static int64_t tile_pairs(const struct tile_call *call, int64_t piece)
{
    uint32_t norms[2] = {0, 0};

    for (int c = 0; c < call->panels; c++) {
        const uint32_t *own = call->b_heads[c][piece].norms;

        norms[NORM_RUN] = own[NORM_RUN] > norms[NORM_RUN] ? own[NORM_RUN] : norms[NORM_RUN];
        norms[NORM_HALF] = own[NORM_HALF] > norms[NORM_HALF] ? own[NORM_HALF] : norms[NORM_HALF];
    }
    return safe_pairs(call->a_heads[piece].norms, norms, call->bits);
}

INLINE void tile_plane(const struct tile_call *call, int plane, int32_t factor, const int width)
{
    const char *a = call->a + (size_t)plane * call->a_plane_size;
    const char *b[TILE_PANELS];
    int64_t pairs_left = (call->count + 1) / 2;
    __m512i acc[TILE_ROWS][TILE_PANELS];

    for (int c = 0; c < width; c++) {
        b[c] = call->b[c] + (size_t)plane * call->b_plane_size;
    }
    for (int64_t piece = 0; pairs_left > 0; piece++) {
        int64_t pairs = pairs_left < call->piece / 2 ? pairs_left : call->piece / 2;
        int64_t run = tile_pairs(call, piece);

        for (int64_t done = 0; done < pairs && run > 0; done += run) {
            const char *lines[TILE_PANELS];

            for (int c = 0; c < width; c++) {
                lines[c] = b[c] + done * LINE_SIZE;
            }
            multiply(acc, a + done * LINE_SIZE, lines, pairs - done < run ? pairs - done : run,
                     width);
            flush((__m512i *)call->sums, acc, call, piece, factor, width);
        }
        a += pairs * LINE_SIZE;
        for (int c = 0; c < width; c++) {
            b[c] += pairs * LINE_SIZE;
        }
        pairs_left -= pairs;
    }
}

INLINE void tile_planes(const struct tile_call *call, const int width)
{
    if (call->bits != 22) {
        tile_plane(call, 0, 1, width);
        return;
    }
    tile_plane(call, 0, (1 << (2 * PLANE_BITS)) - (1 << PLANE_BITS), width);
    tile_plane(call, 1, 1 - (1 << PLANE_BITS), width);
    tile_plane(call, 2, 1 << PLANE_BITS, width);
}

static void tile_1(const struct tile_call *call)
{
    tile_planes(call, 1);
}

static void tile_2(const struct tile_call *call)
{
    tile_planes(call, 2);
}

static void tile_3(const struct tile_call *call)
{
    tile_planes(call, 3);
}

static void tile_product(const struct tile_call *call)
{
    switch (call->panels) {
    case 1:
        tile_1(call);
        break;
    case 2:
        tile_2(call);
        break;
    default:
        tile_3(call);
        break;
    }
}

/* ---- the last step ---- */

/* value * 2^exponents, rounded where the result is subnormal; NaN where an exponent is poison. */
INLINE __m512 scaled_lanes(__m512 value, __m512i exponents)
{
    __m512 scaled = _mm512_scalef_ps(value, _mm512_cvtepi32_ps(exponents));
    __mmask16 poison = _mm512_cmpge_epi32_mask(exponents, _mm512_set1_epi32(LOWEST_POISON / 2));

    return _mm512_mask_blend_ps(poison, scaled,
                                _mm512_castsi512_ps(_mm512_set1_epi32(FLOAT_NAN_BITS)));
}

/* Converts 16 sums to binary32 with one rounding, and scales them. */
INLINE __m512 finish_lanes(__m512i low, __m512i high, __m512i order, __m512i exponents)
{
    __m512 value = _mm512_castps256_ps512(_mm512_cvtepi64_ps(low));
    __m512 other = _mm512_castps256_ps512(_mm512_cvtepi64_ps(high));

    return scaled_lanes(_mm512_permutex2var_ps(value, order, other), exponents);
}

/* Masks one row of a panel and writes the wanted elements. */
INLINE void write_lanes(const struct finish_call *call, int r, int c, __m512 value)
{
    int64_t visible = call->visible[r] - PANEL_ROWS * c;
    uint32_t mask = visible >= PANEL_ROWS ? 0xffff : (visible <= 0 ? 0 : (1U << visible) - 1);
    float *to = call->out[r] + PANEL_ROWS * c;

    value = _mm512_maskz_mov_ps((__mmask16)mask, value);
    if (call->stream && call->wanted[c] == 0xffff && (uintptr_t)to % LINE_SIZE == 0) {
        _mm512_stream_ps(to, value);
    } else {
        _mm512_mask_storeu_ps(to, (__mmask16)call->wanted[c], value);
    }
}

INLINE __m512i lane_exponents(const struct finish_call *call, int r, int c)
{
    return _mm512_add_epi32(_mm512_set1_epi32(call->a_lowest[r] + call->exponent),
                            _mm512_loadu_si512(call->b_lowest[c]));
}

static void finish_tile(const struct finish_call *call)
{
    const __m512i interleave =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);

    for (int r = 0; r < TILE_ROWS; r++) {
        for (int c = 0; c < call->panels && call->out[r] != NULL; c++) {
            const __m512i *sums = (const __m512i *)call->sums + (r * TILE_PANELS + c) * 2;

            write_lanes(call, r, c,
                        finish_lanes(sums[0], sums[1], interleave, lane_exponents(call, r, c)));
        }
    }
}

INLINE void short_panels(const struct tile_call *call, const struct finish_call *finish,
                         const int width)
{
    __m512i acc[TILE_ROWS][TILE_PANELS];

    multiply(acc, call->a, call->b, (call->count + 1) / 2, width);
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++) {
#pragma GCC unroll 3
        for (int c = 0; c < width; c++) {
            if (finish->out[r] != NULL) {
                write_lanes(
                    finish, r, c,
                    scaled_lanes(_mm512_cvtepi32_ps(acc[r][c]), lane_exponents(finish, r, c)));
            }
        }
    }
}

static bool tile_short(const struct tile_call *call, const struct finish_call *finish)
{
    int64_t run = tile_pairs(call, 0);

    /* 0: nothing but zeros, which any run may add. */
    if (run > 0 && run < (call->count + 1) / 2) {
        return false;
    }
    switch (call->panels) {
    case 1:
        short_panels(call, finish, 1);
        break;
    case 2:
        short_panels(call, finish, 2);
        break;
    default:
        short_panels(call, finish, 3);
        break;
    }
    return true;
}

static void finish_row(float *out, const int64_t *sums, const int32_t *exponents)
{
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);

    _mm512_storeu_ps(out, finish_lanes(_mm512_loadu_si512(sums), _mm512_loadu_si512(sums + 8),
                                       order, _mm512_loadu_si512(exponents)));
}

/* ---- quantize ---- */

/* quantize_shifted() of sixteen elements. */
INLINE __m512i shifted(__m512i x, __m512 factor)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i infinity = _mm512_set1_epi32(0x7f800000);
    __m512i y = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(x), factor));
    __mmask16 over = _mm512_cmpeq_epi32_mask(_mm512_and_si512(y, mask), infinity);
    __mmask16 finite = _mm512_cmplt_epi32_mask(_mm512_and_si512(x, mask), infinity);

    return _mm512_mask_sub_epi32(y, over & finite, y, _mm512_set1_epi32(1));
}

/* The magnitudes of 16 adjacent rows. The next panels follow in memory: prefetches two ahead. */
INLINE void magnitudes_adjacent(uint32_t *largest, const struct piece_source *source, float *copy,
                                const bool shifts)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const float *x = source->rows[0];
    __m512i most = _mm512_setzero_si512();

    for (int64_t k = 0; k < source->count; k++) {
        __m512i bits = _mm512_loadu_si512(x + k * source->stride);

        _mm_prefetch((const char *)(x + k * source->stride) + PREFETCH_AHEAD, _MM_HINT_T0);
        if (shifts) {
            bits = shifted(bits, _mm512_set1_ps(source->factors[k]));
        }
        most = _mm512_max_epu32(most, _mm512_and_si512(bits, mask));
        if (copy != NULL) {
            _mm512_storeu_si512(copy + k * PANEL_ROWS, bits);
        }
    }
    _mm512_storeu_si512(largest, most);
}

static void piece_magnitudes(uint32_t *largest, const struct piece_source *source, float *copy)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);

    if (source->adjacent && source->factors != NULL) {
        magnitudes_adjacent(largest, source, copy, true);
        return;
    }
    if (source->adjacent) {
        magnitudes_adjacent(largest, source, copy, false);
        return;
    }
    for (int r = 0; r < PANEL_ROWS; r++) {
        const float *x = source->rows[r];
        __m512i most = _mm512_setzero_si512();
        int64_t k = 0;

        for (; k + 16 <= source->count; k += 16) {
            _mm_prefetch((const char *)(x + k + source->ahead), _MM_HINT_T0);
            most = _mm512_max_epu32(most, _mm512_and_si512(_mm512_loadu_si512(x + k), mask));
        }
        if (k < source->count) {
            __mmask16 tail = (__mmask16)((1U << (source->count - k)) - 1);

            most = _mm512_max_epu32(most,
                                    _mm512_and_si512(_mm512_maskz_loadu_epi32(tail, x + k), mask));
        }
        largest[r] = _mm512_reduce_max_epu32(most);
    }
}

/* Only wide scales may have rows that are poison: piece_integers(). */
INLINE __m512i rounded(__m512 x, __m512 first, __m512 second, __mmask16 live, const bool wide)
{
    if (wide) {
        return _mm512_maskz_cvtps_epi32(live, _mm512_mul_ps(_mm512_mul_ps(x, first), second));
    }
    return _mm512_cvtps_epi32(_mm512_mul_ps(x, first));
}

/* Clamps two vectors of rounded integers and packs them into planes, as vpackssdw does. */
INLINE void planes_of(__m512i *planes, __m512i even, __m512i odd, int bits, const bool split)
{
    if (!split) {
        __m512i most = _mm512_set1_epi16((int16_t)((1 << (bits - 1)) - 1));
        __m512i least = _mm512_sub_epi16(_mm512_setzero_si512(), most);
        __m512i packed = _mm512_packs_epi32(even, odd);

        planes[0] = _mm512_max_epi16(_mm512_min_epi16(packed, most), least);
        return;
    }
    __m512i most = _mm512_set1_epi32((1 << (bits - 1)) - 1);
    __m512i least = _mm512_sub_epi32(_mm512_setzero_si512(), most);
    __m512i q[2] = {_mm512_max_epi32(_mm512_min_epi32(even, most), least),
                    _mm512_max_epi32(_mm512_min_epi32(odd, most), least)};
    __m512i low[2];
    __m512i high[2];

    for (int i = 0; i < 2; i++) {
        low[i] = _mm512_srai_epi32(_mm512_slli_epi32(q[i], 32 - PLANE_BITS), 32 - PLANE_BITS);
        high[i] = _mm512_srai_epi32(_mm512_sub_epi32(q[i], low[i]), PLANE_BITS);
    }
    planes[0] = _mm512_packs_epi32(high[0], high[1]);
    planes[1] = _mm512_packs_epi32(low[0], low[1]);
    planes[2] = _mm512_add_epi16(planes[0], planes[1]);
}

/* Adjacent rows: two lines of x make one line of q. */
INLINE void integers_adjacent(char *lines, size_t plane_size, const struct piece_source *source,
                              const struct scales *scales, int bits, const bool wide,
                              const bool split)
{
    const __m512i pairs =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    const __m512 first = _mm512_loadu_ps(scales->first);
    const __m512 second = _mm512_loadu_ps(scales->second);
    const __mmask16 live = (__mmask16)scales->live;

    for (int64_t k = 0; k < source->count; k += 2) {
        const float *x = source->rows[0] + k * source->stride;
        __m512 odd =
            k + 1 < source->count ? _mm512_loadu_ps(x + source->stride) : _mm512_setzero_ps();
        __m512i planes[PLANES_MAX];

        planes_of(planes, rounded(_mm512_loadu_ps(x), first, second, live, wide),
                  rounded(odd, first, second, live, wide), bits, split);
        for (int p = 0; p < (split ? 3 : 1); p++) {
            _mm512_storeu_si512(lines + (size_t)p * plane_size + k / 2 * LINE_SIZE,
                                _mm512_shuffle_epi8(planes[p], pairs));
        }
    }
}

/* Transposes 16 x 16 32-bit elements. */
INLINE void transpose(__m512i t[PANEL_ROWS])
{
    __m512i u[PANEL_ROWS];

#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_unpacklo_epi32(t[i], t[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        t[i] = _mm512_unpacklo_epi64(u[i], u[i + 2]);
        t[i + 1] = _mm512_unpackhi_epi64(u[i], u[i + 2]);
        t[i + 2] = _mm512_unpacklo_epi64(u[i + 1], u[i + 3]);
        t[i + 3] = _mm512_unpackhi_epi64(u[i + 1], u[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        u[i] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
        u[i + 4] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
        u[i + 8] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
        u[i + 12] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(u[i], u[i + 8], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(u[i + 4], u[i + 12], 0x88);
        t[i + 8] = _mm512_shuffle_i32x4(u[i], u[i + 8], 0xdd);
        t[i + 12] = _mm512_shuffle_i32x4(u[i + 4], u[i + 12], 0xdd);
    }
}

/*
 * Rows along k: 32 elements of each row, from k on, are packed to 16 pairs and transposed.
 * vpackssdw works in 128-bit lanes, so vector i of the transpose holds pair 2*(i/4) + (i&1), and 8
 * more if i & 2.
 */
INLINE void square_along(char *lines, size_t plane_size, const struct piece_source *source,
                         const struct scales *scales, int64_t k, int bits, const bool wide,
                         const bool split, const bool whole)
{
    int64_t left = source->count - k;
    uint32_t mask = whole ? UINT32_MAX : (1U << left) - 1;
    __m512i rows[PLANES_MAX][PANEL_ROWS];

#pragma GCC unroll 16
    for (int r = 0; r < PANEL_ROWS; r++) {
        const float *x = source->rows[r] + k;
        __m512 first = _mm512_set1_ps(scales->first[r]);
        __m512 second = wide ? _mm512_set1_ps(scales->second[r]) : first;
        __mmask16 live = (scales->live >> r) & 1 ? 0xffff : 0;
        __m512i planes[PLANES_MAX];

        planes_of(planes,
                  rounded(_mm512_maskz_loadu_ps((__mmask16)mask, x), first, second, live, wide),
                  rounded(_mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + 16), first, second,
                          live, wide),
                  bits, split);
        for (int p = 0; p < (split ? 3 : 1); p++) {
            rows[p][r] = planes[p];
        }
    }
    for (int p = 0; p < (split ? 3 : 1); p++) {
        transpose(rows[p]);
#pragma GCC unroll 16
        for (int i = 0; i < PANEL_ROWS; i++) {
            int pair = 2 * (i / 4) + (i & 1) + (i & 2) * 4;

            if (whole || 2 * pair < left) {
                _mm512_storeu_si512(lines + (size_t)p * plane_size + (k / 2 + pair) * LINE_SIZE,
                                    rows[p][i]);
            }
        }
    }
}

INLINE void integers_along(char *lines, size_t plane_size, const struct piece_source *source,
                           const struct scales *scales, int bits, const bool wide, const bool split)
{
    int64_t whole = source->count / 32 * 32;

    for (int64_t k = 0; k < whole; k += 32) {
        square_along(lines, plane_size, source, scales, k, bits, wide, split, true);
    }
    if (whole < source->count) {
        square_along(lines, plane_size, source, scales, whole, bits, wide, split, false);
    }
}

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
    integers_of(lines, plane_size, source, exponents, bits, integers_with);
}

/* The norms of half a run fit 32 unsigned bits; the sum of two saturates at UINT32_MAX. */
static void piece_norms(uint32_t *norms, const char *lines, size_t plane_size, int64_t pairs,
                        int bits)
{
    __m512i most_run = _mm512_setzero_si512();
    __m512i most_half = _mm512_setzero_si512();

    if (bits == 22) {
        for (int64_t i = 0; i < pairs * LINE_SIZE; i += LINE_SIZE) {
            most_run = _mm512_or_si512(most_run, _mm512_loadu_si512(lines + i));
            most_run = _mm512_or_si512(most_run, _mm512_loadu_si512(lines + plane_size + i));
        }
        norms[NORM_RUN] = _mm512_test_epi32_mask(most_run, most_run) != 0;
        norms[NORM_HALF] = norms[NORM_RUN];
        return;
    }
    int64_t half_pairs = norm_run(bits) / 4;

    for (int64_t start = 0; start < pairs; start += 2 * half_pairs) {
        __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};

        for (int h = 0; h < 2; h++) {
            int64_t from = start + h * half_pairs;
            int64_t to = from + half_pairs < pairs ? from + half_pairs : pairs;

            for (int64_t i = from; i < to; i++) {
                __m512i line = _mm512_loadu_si512(lines + i * LINE_SIZE);

                sums[h] = _mm512_dpwssd_epi32(sums[h], line, line);
            }
            most_half = _mm512_max_epu32(most_half, sums[h]);
        }
        __m512i run = _mm512_add_epi32(sums[0], sums[1]);
        __mmask16 over = _mm512_cmplt_epu32_mask(run, sums[0]);

        run = _mm512_mask_mov_epi32(run, over, _mm512_set1_epi32(-1));
        most_run = _mm512_max_epu32(most_run, run);
    }
    norms[NORM_RUN] = _mm512_reduce_max_epu32(most_run);
    norms[NORM_HALF] = _mm512_reduce_max_epu32(most_half);
}

static void stream_bytes(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += LINE_SIZE) {
        _mm512_stream_si512((__m512i *)(to + i), _mm512_load_si512(from + i));
    }
}

static void row_sums(int32_t *sums, const char *lines, int64_t pairs)
{
    const __m512i ones = _mm512_set1_epi16(1);
    __m512i sum = _mm512_setzero_si512();

    for (int64_t i = 0; i < pairs * LINE_SIZE; i += LINE_SIZE) {
        sum = _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(lines + i), ones);
    }
    _mm512_storeu_si512(sums, sum);
}

static void row_dots(int32_t *sums, const char *a, const char *b, int64_t pairs)
{
    __m512i sum = _mm512_setzero_si512();

    for (int64_t i = 0; i < pairs * LINE_SIZE; i += LINE_SIZE) {
        sum = _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i));
    }
    _mm512_storeu_si512(sums, sum);
}

/* Transposes sixteen lines: by pairs, by fours, then by quarters. */
static void unpack_lines(int16_t *rows, int64_t pitch, const char *lines)
{
    __m512i four[16];

    for (int i = 0; i < 16; i += 4) {
        __m512i line[4];

        for (int j = 0; j < 4; j++) {
            line[j] = _mm512_loadu_si512(lines + (i + j) * LINE_SIZE);
        }
        __m512i low = _mm512_unpacklo_epi32(line[0], line[1]);
        __m512i high = _mm512_unpackhi_epi32(line[0], line[1]);
        __m512i next_low = _mm512_unpacklo_epi32(line[2], line[3]);
        __m512i next_high = _mm512_unpackhi_epi32(line[2], line[3]);

        four[i] = _mm512_unpacklo_epi64(low, next_low);
        four[i + 1] = _mm512_unpackhi_epi64(low, next_low);
        four[i + 2] = _mm512_unpacklo_epi64(high, next_high);
        four[i + 3] = _mm512_unpackhi_epi64(high, next_high);
    }
    for (int r = 0; r < 4; r++) { /* quarter j of four[r] belongs to row r + 4j */
        __m512i even = _mm512_shuffle_i32x4(four[r], four[r + 4], 0x88);
        __m512i odd = _mm512_shuffle_i32x4(four[r], four[r + 4], 0xdd);
        __m512i next_even = _mm512_shuffle_i32x4(four[r + 8], four[r + 12], 0x88);
        __m512i next_odd = _mm512_shuffle_i32x4(four[r + 8], four[r + 12], 0xdd);

        _mm512_storeu_si512(rows + r * pitch, _mm512_shuffle_i32x4(even, next_even, 0x88));
        _mm512_storeu_si512(rows + (r + 4) * pitch, _mm512_shuffle_i32x4(odd, next_odd, 0x88));
        _mm512_storeu_si512(rows + (r + 8) * pitch, _mm512_shuffle_i32x4(even, next_even, 0xdd));
        _mm512_storeu_si512(rows + (r + 12) * pitch, _mm512_shuffle_i32x4(odd, next_odd, 0xdd));
    }
}

/* Of place k of a plane: the line that holds it; zeros where there is none. */
INLINE __m512i line_of(const char *lines, uint32_t k)
{
    return k == ROW_NONE ? _mm512_setzero_si512()
                         : _mm512_loadu_si512(lines + k / 2 * (size_t)LINE_SIZE);
}

static void join_lines(char *to, const char *lines, const uint32_t *order, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++, order += 2) {
        __m512i low =
            _mm512_srl_epi32(line_of(lines, order[0]), _mm_cvtsi32_si128((int)(order[0] & 1) * 16));
        __m512i high = _mm512_sll_epi32(line_of(lines, order[1]),
                                        _mm_cvtsi32_si128((int)(~order[1] & 1) * 16));

        _mm512_storeu_si512(to + i * LINE_SIZE, _mm512_mask_blend_epi16(0xaaaaaaaa, low, high));
    }
}

/* ---- the table ---- */

static const struct contraction_isa avx512 = {
    .tile = tile_product,
    .finish = finish_tile,
    .tile_short = tile_short,
    .magnitudes = piece_magnitudes,
    .integers = piece_integers,
    .norms = piece_norms,
    .stream = stream_bytes,
    .row_sums = row_sums,
    .row_dots = row_dots,
    .unpack = unpack_lines,
    .join = join_lines,
    .finish_row = finish_row,
};

static void run_unpack(void *q, const void *packed, const struct op *quantize, int thread_count)
{
    contraction_unpack(&avx512, q, packed, quantize, thread_count);
}

static void run_quantize(const struct kernel_call *call)
{
    contraction_quantize(&avx512, call);
}

static void run_contract(const struct kernel_call *call)
{
    contraction_contract(&avx512, call);
}

static void run_ones(const struct kernel_call *call)
{
    contraction_ones(&avx512, call);
}

static void run_onehot(const struct kernel_call *call)
{
    contraction_onehot(&avx512, call);
}

static void run_chosen(const struct kernel_call *call)
{
    contraction_chosen(&avx512, call);
}

static void run_chosen_rows(const struct kernel_call *call)
{
    contraction_chosen_rows(&avx512, call);
}

void contraction_kernels_avx512(struct kernel_table *table)
{
    contraction_table(table,
                      &(struct contraction_runs){run_unpack, run_quantize, run_contract, run_ones,
                                                 run_onehot, run_chosen, run_chosen_rows});
}
