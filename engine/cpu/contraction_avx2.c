/*
 * contraction_avx2.c - contractions on AVX2: see contraction_packed.h.
 *
 * The inner loops only; threads, views and blocking are in contraction_tiles.c and
 * contraction_quantize.c. Scratch order of a tile's sums: (row, panel, half of the panel, even
 * columns and odd columns), four sums to a vector.
 */
#include <immintrin.h>

#include "engine/cpu/contraction_finish_avx2.h"
#include "engine/cpu/contraction_packed.h"
#include "engine/cpu/cpu.h"

#define PREFETCH_AHEAD 256 /* bytes */
#define TILE_STEP      4   /* rows whose sums live in registers together */

/* ---- tile ---- */

/*
 * Widens the 32-bit sums, applies the two rows' shifts and adds them to the 64-bit sums. vpmuldq
 * multiplies the even 32-bit lanes into 64 bits: it widens and applies the column's power of two in
 * one step. The power and the factor are below 2^31: a shift is at most W, and with more than one
 * block (K > 16) W <= 15 for 14 to 16 bits and W <= 7 for 22, whose factors are < 2^22.
 */
INLINE void flush(__m256i *sums, __m256i acc[TILE_STEP][2], const uint8_t *row_shifts,
                  const uint8_t *column_shifts, int32_t factor)
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m128i shifts = _mm_loadl_epi64((const __m128i *)(column_shifts + 8 * h));
        __m256i even = _mm256_sllv_epi32(_mm256_set1_epi32(factor), _mm256_cvtepu8_epi32(shifts));
        __m256i odd = _mm256_srli_epi64(even, 32);

#pragma GCC unroll 4
        for (int r = 0; r < TILE_STEP; r++) {
            __m128i shift = _mm_cvtsi32_si128(row_shifts[r]);
            __m256i *sum = &sums[r * TILE_PANELS * SUM_VECTORS + 2 * h];
            __m256i low = _mm256_mul_epi32(acc[r][h], even);
            __m256i high = _mm256_mul_epi32(_mm256_srli_epi64(acc[r][h], 32), odd);

            sum[0] = _mm256_add_epi64(sum[0], _mm256_sll_epi64(low, shift));
            sum[1] = _mm256_add_epi64(sum[1], _mm256_sll_epi64(high, shift));
        }
    }
}

/* The sum in assembly: with the intrinsic, gcc 12 copies all eight in each turn of the loop. */
INLINE void add_products(__m256i *sum, __m256i row, __m256i columns)
{
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(_mm256_madd_epi16(row, columns)));
}

/* The products of `pairs` lines. 8 sums, 2 columns, a row and a product fit the registers. */
INLINE void multiply(__m256i acc[TILE_STEP][2], const char *a, const char *b, int64_t pairs)
{
#pragma GCC unroll 4
    for (int r = 0; r < TILE_STEP; r++) {
        acc[r][0] = _mm256_setzero_si256();
        acc[r][1] = _mm256_setzero_si256();
    }
    for (int64_t i = 0; i < pairs * LINE_SIZE; i += LINE_SIZE) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(b + i));
        __m256i second = _mm256_loadu_si256((const __m256i *)(b + i + HALF_LINE));

#pragma GCC unroll 4
        for (int r = 0; r < TILE_STEP; r++) {
            __m256i row = _mm256_set1_epi32(*(const int32_t *)(a + i + 4 * r));

            add_products(&acc[r][0], row, first);
            add_products(&acc[r][1], row, second);
        }
    }
}

/* One piece of one panel of B, eight rows of A. */
static void tile_piece(const struct tile_call *call, int64_t piece, int c, const char *a,
                       const char *b, int64_t pairs, int32_t factor)
{
    const struct piece_head *a_head = &call->a_heads[piece];
    const struct piece_head *b_head = &call->b_heads[c][piece];
    int64_t run = safe_pairs(a_head->norms, b_head->norms, call->bits);
    __m256i acc[TILE_STEP][2];

    for (int64_t done = 0; done < pairs && run > 0; done += run) {
        int64_t step = pairs - done < run ? pairs - done : run;

        for (int r = 0; r < TILE_ROWS; r += TILE_STEP) {
            __m256i *sums = (__m256i *)call->sums + (r * TILE_PANELS + c) * SUM_VECTORS;

            multiply(acc, a + done * LINE_SIZE + 4 * r, b + done * LINE_SIZE, step);
            flush(sums, acc, a_head->shifts + call->a_row + r, b_head->shifts, factor);
        }
    }
}

static void tile_product(const struct tile_call *call)
{
    tile_pieces(call, tile_piece);
}

/* ---- the last step ---- */

static bool tile_short(const struct tile_call *call, const struct finish_call *finish)
{
    int64_t pairs = (call->count + 1) / 2;
    __m256i acc[TILE_STEP][2];

    for (int c = 0; c < call->panels; c++) {
        int64_t run = safe_pairs(call->a_heads->norms, call->b_heads[c]->norms, call->bits);

        /* 0: nothing but zeros, which any run may add. */
        if (run > 0 && run < pairs) {
            return false;
        }
    }
    const struct exponent_range range = range_of_columns(finish);

    for (int c = 0; c < call->panels; c++) {
        for (int step = 0; step < TILE_ROWS; step += TILE_STEP) {
            multiply(acc, call->a + 4 * step, call->b[c], pairs);
#pragma GCC unroll 8
            for (int i = 0; i < 2 * TILE_STEP; i++) {
                int r = step + i / 2;
                int h = 2 * c + i % 2;
                __m256 value = _mm256_cvtepi32_ps(acc[i / 2][i % 2]);
                __m256i exponents;

                if (finish->out[r] == NULL) {
                    continue;
                }
                exponents = lane_exponents(finish, r, h);
                write_lanes(finish, r, h,
                            is_ordinary_row(finish, range, r) ? scale_ordinary(value, exponents)
                                                              : scale(value, exponents));
            }
        }
    }
    return true;
}

static void finish_row(float *out, const int64_t *sums, const int32_t *exponents)
{
    for (int h = 0; h < 2; h++) {
        const __m256i *from = (const __m256i *)(sums + 8 * h);
        __m256i own = _mm256_loadu_si256((const __m256i *)(exponents + 8 * h));

        _mm256_storeu_ps(out + 8 * h, finish_lanes(_mm256_loadu_si256(from),
                                                   _mm256_loadu_si256(from + 1), own, false));
    }
}

/* ---- quantize ---- */

/* The lanes below `count`. */
INLINE __m256i lanes_below(int64_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int32_t limit = count >= 8 ? 8 : (count <= 0 ? 0 : (int32_t)count);

    return _mm256_cmpgt_epi32(_mm256_set1_epi32(limit), lanes);
}

INLINE uint32_t largest_lane(__m256i most)
{
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));

    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* quantize_shifted() of eight elements. */
INLINE __m256i shifted(__m256i x, __m256 factor)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const __m256i infinity = _mm256_set1_epi32(0x7f800000);
    __m256i y = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(x), factor));
    __m256i over = _mm256_cmpeq_epi32(_mm256_and_si256(y, mask), infinity);
    __m256i finite = _mm256_cmpgt_epi32(infinity, _mm256_and_si256(x, mask));

    return _mm256_add_epi32(y, _mm256_and_si256(over, finite));
}

/* The magnitudes of 16 adjacent rows. The next panels follow in memory: prefetches two ahead. */
INLINE void magnitudes_adjacent(uint32_t *largest, const struct piece_source *source, float *copy,
                                const bool shifts)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i most[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};

    for (int64_t k = 0; k < source->count; k++) {
        const float *x = source->rows[0] + k * source->stride;

        _mm_prefetch((const char *)x + PREFETCH_AHEAD, _MM_HINT_T0);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            __m256i bits = _mm256_loadu_si256((const __m256i *)(x + 8 * h));

            if (shifts) {
                bits = shifted(bits, _mm256_set1_ps(source->factors[k]));
            }
            most[h] = _mm256_max_epu32(most[h], _mm256_and_si256(bits, mask));
            if (copy != NULL) {
                _mm256_storeu_si256((__m256i *)(copy + k * PANEL_ROWS + 8 * h), bits);
            }
        }
    }
    _mm256_storeu_si256((__m256i *)largest, most[0]);
    _mm256_storeu_si256((__m256i *)(largest + 8), most[1]);
}

static void piece_magnitudes(uint32_t *largest, const struct piece_source *source, float *copy)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);

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
        __m256i most = _mm256_setzero_si256();
        int64_t k = 0;

        for (; k + 8 <= source->count; k += 8) {
            __m256i bits = _mm256_loadu_si256((const __m256i *)(x + k));

            _mm_prefetch((const char *)(x + k + source->ahead), _MM_HINT_T0);
            most = _mm256_max_epu32(most, _mm256_and_si256(bits, mask));
        }
        if (k < source->count) {
            __m256i bits =
                _mm256_maskload_epi32((const int *)x + k, lanes_below(source->count - k));

            most = _mm256_max_epu32(most, _mm256_and_si256(bits, mask));
        }
        largest[r] = largest_lane(most);
    }
}

/* Only wide scales may have rows that are poison: piece_integers(). */
INLINE __m256i rounded(__m256 x, __m256 first, __m256 second, __m256i live, const bool wide)
{
    __m256i integers = _mm256_cvtps_epi32(_mm256_mul_ps(x, first));

    if (wide) {
        integers = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(x, first), second));
        integers = _mm256_and_si256(integers, live);
    }
    return integers;
}

/* Clamps two vectors of rounded integers and packs them into planes, as vpackssdw does. */
INLINE void planes_of(__m256i *planes, __m256i even, __m256i odd, int bits, const bool split)
{
    if (!split) {
        __m256i most = _mm256_set1_epi16((int16_t)((1 << (bits - 1)) - 1));
        __m256i least = _mm256_sub_epi16(_mm256_setzero_si256(), most);
        __m256i packed = _mm256_packs_epi32(even, odd);

        planes[0] = _mm256_max_epi16(_mm256_min_epi16(packed, most), least);
        return;
    }
    __m256i most = _mm256_set1_epi32((1 << (bits - 1)) - 1);
    __m256i least = _mm256_sub_epi32(_mm256_setzero_si256(), most);
    __m256i q[2] = {_mm256_max_epi32(_mm256_min_epi32(even, most), least),
                    _mm256_max_epi32(_mm256_min_epi32(odd, most), least)};
    __m256i low[2];
    __m256i high[2];

    for (int i = 0; i < 2; i++) {
        low[i] = _mm256_srai_epi32(_mm256_slli_epi32(q[i], 32 - PLANE_BITS), 32 - PLANE_BITS);
        high[i] = _mm256_srai_epi32(_mm256_sub_epi32(q[i], low[i]), PLANE_BITS);
    }
    planes[0] = _mm256_packs_epi32(high[0], high[1]);
    planes[1] = _mm256_packs_epi32(low[0], low[1]);
    planes[2] = _mm256_add_epi16(planes[0], planes[1]);
}

/* All ones in the lanes of rows 8h .. 8h+7 that are not poison. */
INLINE __m256i live_rows(uint32_t live, int h)
{
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i own = _mm256_and_si256(_mm256_set1_epi32((int32_t)(live >> (8 * h))), bits);

    return _mm256_cmpeq_epi32(own, bits);
}

/* Adjacent rows: two lines of x make one line of q, in two halves. */
INLINE void integers_adjacent(char *lines, size_t plane_size, const struct piece_source *source,
                              const struct scales *scales, int bits, const bool wide,
                              const bool split)
{
    const __m256i pairs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));

    for (int h = 0; h < 2; h++) {
        const __m256 first = _mm256_loadu_ps(scales->first + 8 * h);
        const __m256 second = _mm256_loadu_ps(scales->second + 8 * h);
        const __m256i live = live_rows(scales->live, h);

        for (int64_t k = 0; k < source->count; k += 2) {
            const float *x = source->rows[0] + k * source->stride + 8 * h;
            char *to = lines + k / 2 * LINE_SIZE + h * HALF_LINE;
            __m256 odd =
                k + 1 < source->count ? _mm256_loadu_ps(x + source->stride) : _mm256_setzero_ps();
            __m256i planes[PLANES_MAX];

            planes_of(planes, rounded(_mm256_loadu_ps(x), first, second, live, wide),
                      rounded(odd, first, second, live, wide), bits, split);
            for (int p = 0; p < (split ? 3 : 1); p++) {
                _mm256_storeu_si256((__m256i *)(to + (size_t)p * plane_size),
                                    _mm256_shuffle_epi8(planes[p], pairs));
            }
        }
    }
}

/* Transposes 8 x 8 32-bit elements. */
INLINE void transpose(__m256i t[8])
{
    __m256i u[8];

#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        u[i] = _mm256_unpacklo_epi32(t[i], t[i + 1]);
        u[i + 1] = _mm256_unpackhi_epi32(t[i], t[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        t[i] = _mm256_unpacklo_epi64(u[i], u[i + 2]);
        t[i + 1] = _mm256_unpackhi_epi64(u[i], u[i + 2]);
        t[i + 2] = _mm256_unpacklo_epi64(u[i + 1], u[i + 3]);
        t[i + 3] = _mm256_unpackhi_epi64(u[i + 1], u[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        u[i] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x20);
        u[i + 4] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[i] = u[i];
    }
}

/* Eight elements of a row; zeros behind the last `left`. */
INLINE __m256 row_part(const float *x, int64_t left, const bool whole)
{
    return whole ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, lanes_below(left));
}

/*
 * Rows along k, eight rows by 16 elements from k on: packed to 8 pairs and transposed. vpackssdw
 * works in 128-bit lanes, so vector i of the transpose holds pair (i & 1) + 2 * (i / 4), and 4 more
 * if i & 2.
 */
INLINE void square_along(char *lines, size_t plane_size, const struct piece_source *source,
                         const struct scales *scales, int64_t k, int h, int bits, const bool wide,
                         const bool split, const bool whole)
{
    int64_t left = source->count - k;
    __m256i rows[PLANES_MAX][8];

#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
        const float *x = source->rows[8 * h + r] + k;
        __m256 first = _mm256_set1_ps(scales->first[8 * h + r]);
        __m256 second = wide ? _mm256_set1_ps(scales->second[8 * h + r]) : first;
        __m256i live = wide ? _mm256_set1_epi32(-(int)((scales->live >> (8 * h + r)) & 1))
                            : _mm256_setzero_si256();
        __m256i planes[PLANES_MAX];

        planes_of(planes, rounded(row_part(x, left, whole), first, second, live, wide),
                  rounded(row_part(x + 8, left - 8, whole), first, second, live, wide), bits,
                  split);
        for (int p = 0; p < (split ? 3 : 1); p++) {
            rows[p][r] = planes[p];
        }
    }
    for (int p = 0; p < (split ? 3 : 1); p++) {
        transpose(rows[p]);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            int pair = 2 * (i / 4) + (i & 1) + (i & 2) * 2;
            char *to = lines + (size_t)p * plane_size + (k / 2 + pair) * LINE_SIZE;

            if (whole || 2 * pair < left) {
                _mm256_storeu_si256((__m256i *)(to + h * HALF_LINE), rows[p][i]);
            }
        }
    }
}

INLINE void integers_along(char *lines, size_t plane_size, const struct piece_source *source,
                           const struct scales *scales, int bits, const bool wide, const bool split)
{
    int64_t whole = source->count / 16 * 16;

    for (int h = 0; h < 2; h++) {
        for (int64_t k = 0; k < whole; k += 16) {
            square_along(lines, plane_size, source, scales, k, h, bits, wide, split, true);
        }
        if (whole < source->count) {
            square_along(lines, plane_size, source, scales, whole, h, bits, wide, split, false);
        }
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

static bool any_nonzero(const char *lines, int64_t pairs)
{
    __m256i seen = _mm256_setzero_si256();

    for (int64_t i = 0; i < pairs * LINE_SIZE; i += HALF_LINE) {
        seen = _mm256_or_si256(seen, _mm256_loadu_si256((const __m256i *)(lines + i)));
    }
    return !_mm256_testz_si256(seen, seen);
}

/* Squared norms of eight rows over lines [from, to). */
INLINE __m256i squares(const char *lines, int64_t from, int64_t to)
{
    __m256i sum = _mm256_setzero_si256();

    for (int64_t i = from * LINE_SIZE; i < to * LINE_SIZE; i += LINE_SIZE) {
        __m256i line = _mm256_loadu_si256((const __m256i *)(lines + i));

        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(line, line));
    }
    return sum;
}

/* The norms of half a run fit 32 unsigned bits; the sum of two saturates at UINT32_MAX. */
static void piece_norms(uint32_t *norms, const char *lines, size_t plane_size, int64_t pairs,
                        int bits)
{
    __m256i most_run = _mm256_setzero_si256();
    __m256i most_half = _mm256_setzero_si256();

    if (bits == 22) {
        norms[NORM_RUN] = any_nonzero(lines, pairs) || any_nonzero(lines + plane_size, pairs);
        norms[NORM_HALF] = norms[NORM_RUN];
        return;
    }
    int64_t half_pairs = norm_run(bits) / 4;

    for (int64_t start = 0; start < pairs; start += 2 * half_pairs) {
        int64_t middle = start + half_pairs < pairs ? start + half_pairs : pairs;
        int64_t end = start + 2 * half_pairs < pairs ? start + 2 * half_pairs : pairs;

        for (int h = 0; h < 2; h++) {
            __m256i first = squares(lines + h * HALF_LINE, start, middle);
            __m256i second = squares(lines + h * HALF_LINE, middle, end);
            __m256i run = _mm256_add_epi32(first, second);
            __m256i fits = _mm256_cmpeq_epi32(_mm256_max_epu32(run, first), run);

            run = _mm256_or_si256(run, _mm256_andnot_si256(fits, _mm256_set1_epi32(-1)));
            most_run = _mm256_max_epu32(most_run, run);
            most_half = _mm256_max_epu32(most_half, _mm256_max_epu32(first, second));
        }
    }
    norms[NORM_RUN] = largest_lane(most_run);
    norms[NORM_HALF] = largest_lane(most_half);
}

static void stream_bytes(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += HALF_LINE) {
        _mm256_stream_si256((__m256i *)(to + i), _mm256_load_si256((const __m256i *)(from + i)));
    }
}

static void row_sums(int32_t *sums, const char *lines, int64_t pairs)
{
    const __m256i ones = _mm256_set1_epi16(1);

    for (int h = 0; h < 2; h++) {
        __m256i sum = _mm256_setzero_si256();

        for (int64_t i = 0; i < pairs; i++) {
            const char *at = lines + i * LINE_SIZE + h * HALF_LINE;
            __m256i line = _mm256_loadu_si256((const __m256i *)at);

            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(line, ones));
        }
        _mm256_storeu_si256((__m256i *)(sums + 8 * h), sum);
    }
}

static void row_dots(int32_t *sums, const char *a, const char *b, int64_t pairs)
{
    for (int h = 0; h < LINE_SIZE; h += HALF_LINE) {
        __m256i sum = _mm256_setzero_si256();

        for (int64_t i = h; i < pairs * LINE_SIZE; i += LINE_SIZE) {
            sum = _mm256_add_epi32(sum,
                                   _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(a + i)),
                                                     _mm256_loadu_si256((const __m256i *)(b + i))));
        }
        _mm256_storeu_si256((__m256i *)((char *)sums + h), sum);
    }
}

/* Transposes half of eight lines: eight rows of eight pairs. */
static void unpack_eight(int16_t *rows, int64_t pitch, const char *lines)
{
    __m256i line[8];
    __m256i four[8];

    for (int i = 0; i < 8; i++) {
        line[i] = _mm256_loadu_si256((const __m256i *)(lines + i * LINE_SIZE));
    }
    for (int i = 0; i < 8; i += 4) {
        __m256i low = _mm256_unpacklo_epi32(line[i], line[i + 1]);
        __m256i high = _mm256_unpackhi_epi32(line[i], line[i + 1]);
        __m256i next_low = _mm256_unpacklo_epi32(line[i + 2], line[i + 3]);
        __m256i next_high = _mm256_unpackhi_epi32(line[i + 2], line[i + 3]);

        four[i] = _mm256_unpacklo_epi64(low, next_low);
        four[i + 1] = _mm256_unpackhi_epi64(low, next_low);
        four[i + 2] = _mm256_unpacklo_epi64(high, next_high);
        four[i + 3] = _mm256_unpackhi_epi64(high, next_high);
    }
    for (int r = 0; r < 4; r++) {
        _mm256_storeu_si256((__m256i *)(rows + r * pitch),
                            _mm256_permute2x128_si256(four[r], four[r + 4], 0x20));
        _mm256_storeu_si256((__m256i *)(rows + (r + 4) * pitch),
                            _mm256_permute2x128_si256(four[r], four[r + 4], 0x31));
    }
}

static void unpack_lines(int16_t *rows, int64_t pitch, const char *lines)
{
    for (int half = 0; half < 2; half++) {
        for (int pair = 0; pair < UNPACK_PAIRS; pair += 8) {
            unpack_eight(rows + 8 * half * pitch + 2 * pair, pitch,
                         lines + pair * LINE_SIZE + half * HALF_LINE);
        }
    }
}

/* Of place k of a plane: half of the line that holds it; zeros where there is none. */
INLINE __m256i half_of(const char *lines, uint32_t k)
{
    return k == ROW_NONE ? _mm256_setzero_si256()
                         : _mm256_loadu_si256((const __m256i *)(lines + k / 2 * (size_t)LINE_SIZE));
}

static void join_half_lines(char *to, const char *lines, const uint32_t *order, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++, order += 2) {
        for (int h = 0; h < LINE_SIZE; h += HALF_LINE) {
            __m256i low = _mm256_srl_epi32(half_of(lines + h, order[0]),
                                           _mm_cvtsi32_si128((int)(order[0] & 1) * 16));
            __m256i high = _mm256_sll_epi32(half_of(lines + h, order[1]),
                                            _mm_cvtsi32_si128((int)(~order[1] & 1) * 16));

            _mm256_storeu_si256((__m256i *)(to + i * LINE_SIZE + h),
                                _mm256_blend_epi16(low, high, 0xaa));
        }
    }
}

/* ---- the table ---- */

static const struct contraction_isa avx2 = {
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
    .join = join_half_lines,
    .finish_row = finish_row,
};

static void run_unpack(void *q, const void *packed, const struct op *quantize, int thread_count)
{
    contraction_unpack(&avx2, q, packed, quantize, thread_count);
}

static void run_quantize(const struct kernel_call *call)
{
    contraction_quantize(&avx2, call);
}

static void run_contract(const struct kernel_call *call)
{
    contraction_contract(&avx2, call);
}

static void run_ones(const struct kernel_call *call)
{
    contraction_ones(&avx2, call);
}

static void run_onehot(const struct kernel_call *call)
{
    contraction_onehot(&avx2, call);
}

static void run_chosen(const struct kernel_call *call)
{
    contraction_chosen(&avx2, call);
}

static void run_chosen_rows(const struct kernel_call *call)
{
    contraction_chosen_rows(&avx2, call);
}

void contraction_kernels_avx2(struct kernel_table *table)
{
    contraction_table(table,
                      &(struct contraction_runs){run_unpack, run_quantize, run_contract, run_ones,
                                                 run_onehot, run_chosen, run_chosen_rows});
}
