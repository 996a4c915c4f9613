/*
 * contraction_neon.c - contractions on NEON: see contraction_packed.h and contraction_neon.h.
 *
 * The inner loops only; threads, views and blocking are in contraction_tiles.c and
 * contraction_quantize.c. There are no stores past the caches: `stream` is a plain copy.
 */
#include "engine/cpu/arm/contraction_neon.h"

#include <string.h>

#include "engine/cpu/cpu.h"

#define PREFETCH_AHEAD 256 /* bytes */

/* ---- tile ---- */

/*
 * A line is parted into the first and the second elements of its pairs; SMLAL then multiplies
 * columns by one element of A. 16 sums, 4 columns and a row fit the registers.
 */
#define MULTIPLY_ROW(r)                                                                            \
    acc[r][0] = vmlal_laneq_s16(acc[r][0], vget_low_s16(left.val[0]), rows, 2 * (r));              \
    acc[r][1] = vmlal_high_laneq_s16(acc[r][1], left.val[0], rows, 2 * (r));                       \
    acc[r][2] = vmlal_laneq_s16(acc[r][2], vget_low_s16(right.val[0]), rows, 2 * (r));             \
    acc[r][3] = vmlal_high_laneq_s16(acc[r][3], right.val[0], rows, 2 * (r));                      \
    acc[r][0] = vmlal_laneq_s16(acc[r][0], vget_low_s16(left.val[1]), rows, 2 * (r) + 1);          \
    acc[r][1] = vmlal_high_laneq_s16(acc[r][1], left.val[1], rows, 2 * (r) + 1);                   \
    acc[r][2] = vmlal_laneq_s16(acc[r][2], vget_low_s16(right.val[1]), rows, 2 * (r) + 1);         \
    acc[r][3] = vmlal_high_laneq_s16(acc[r][3], right.val[1], rows, 2 * (r) + 1)

NEON_INLINE void multiply(int32x4_t acc[NEON_STEP][NEON_QUADS], const char *a, const char *b,
                          int64_t pairs)
{
    for (int64_t i = 0; i < pairs * LINE_SIZE; i += LINE_SIZE) {
        const int16_t *line = (const int16_t *)(const void *)(b + i);
        int16x8x2_t left = vld2q_s16(line);
        int16x8x2_t right = vld2q_s16(line + PANEL_ROWS);
        int16x8_t rows = vld1q_s16((const int16_t *)(const void *)(a + i));

        MULTIPLY_ROW(0);
        MULTIPLY_ROW(1);
        MULTIPLY_ROW(2);
        MULTIPLY_ROW(3);
    }
}

NEON_INLINE void clear(int32x4_t acc[NEON_STEP][NEON_QUADS])
{
#pragma GCC unroll 4
    for (int r = 0; r < NEON_STEP; r++) {
#pragma GCC unroll 4
        for (int quad = 0; quad < NEON_QUADS; quad++) {
            acc[r][quad] = vdupq_n_s32(0);
        }
    }
}

void neon_multiply(int32x4_t acc[NEON_STEP][NEON_QUADS], const char *a, const char *b,
                   int64_t pairs)
{
    multiply(acc, a, b, pairs);
}

/* One piece of one panel of B, eight rows of A. */
static void tile_piece(const struct tile_call *call, int64_t piece, int c, const char *a,
                       const char *b, int64_t pairs, int32_t factor)
{
    const struct piece_head *const heads[2] = {&call->a_heads[piece], &call->b_heads[c][piece]};
    const int64_t run = safe_pairs(heads[0]->norms, heads[1]->norms, call->bits);

    for (int64_t done = 0; run > 0 && done < pairs; done += run) {
        int64_t step = pairs - done < run ? pairs - done : run;
        int32x4_t acc[NEON_STEP][NEON_QUADS];

        for (int first = 0; first < TILE_ROWS; first += NEON_STEP) {
            clear(acc);
            multiply(acc, a + done * LINE_SIZE + 4 * first, b + done * LINE_SIZE, step);
            for (int i = 0; i < NEON_STEP * NEON_QUADS; i++) {
                int r = first + i / NEON_QUADS;
                int column = 4 * (i % NEON_QUADS);

                neon_flush(call->sums + r * NEON_ROW + c * PANEL_ROWS + column,
                           acc[i / NEON_QUADS][i % NEON_QUADS],
                           neon_factors(heads[1]->shifts + column, factor),
                           vdupq_n_s64(heads[0]->shifts[call->a_row + r]));
            }
        }
    }
}

static void tile_product(const struct tile_call *call)
{
    tile_pieces(call, tile_piece);
}

/* ---- the last step ---- */

/* value * 2^exponent for 0 or 1 <= |value| <= 2^62: the first step is exact, only the second
 * rounds. NaN where the exponent is poison. */
NEON_INLINE float32x4_t scale(float32x4_t value, int32x4_t exponents)
{
    const int32x4_t least = vdupq_n_s32(-126);
    const int32x4_t most = vdupq_n_s32(127);
    int32x4_t first = vminq_s32(vmaxq_s32(exponents, least), most);
    int32x4_t second = vminq_s32(vmaxq_s32(vsubq_s32(exponents, first), least), most);
    uint32x4_t poison = vcgtq_s32(exponents, vdupq_n_s32(LOWEST_POISON / 2));

    first = vshlq_n_s32(vaddq_s32(first, most), 23);
    second = vshlq_n_s32(vaddq_s32(second, most), 23);
    value =
        vmulq_f32(vmulq_f32(value, vreinterpretq_f32_s32(first)), vreinterpretq_f32_s32(second));
    return vbslq_f32(poison, vreinterpretq_f32_u32(vdupq_n_u32(FLOAT_NAN_BITS)), value);
}

/* The rule's binary32 of four sums: SCVTF rounds a 64-bit integer once. */
NEON_INLINE float32x4_t finish_quad(const int64_t *sums, int32x4_t exponents)
{
    const float value[4] = {(float)sums[0], (float)sums[1], (float)sums[2], (float)sums[3]};

    return scale(vld1q_f32(value), exponents);
}

/* Masks four columns of one row, from `column` on, and writes the wanted elements. */
NEON_INLINE void write_quad(const struct finish_call *call, int r, int column, float32x4_t value)
{
    static const int32_t numbers[4] = {0, 1, 2, 3};
    int64_t visible = call->visible[r] - column;
    uint32_t wanted = call->wanted[column / PANEL_ROWS] >> (column % PANEL_ROWS) & 0xf;
    float *to = call->out[r] + column;

    if (visible < 4) {
        int32x4_t limit = vdupq_n_s32(visible <= 0 ? 0 : (int32_t)visible);
        uint32x4_t shown = vcgtq_s32(limit, vld1q_s32(numbers));

        value = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(value), shown));
    }
    if (wanted == 0xf) {
        vst1q_f32(to, value);
        return;
    }
    float local[4];

    vst1q_f32(local, value);
    for (int i = 0; i < 4; i++) {
        if ((wanted >> i & 1) != 0) {
            to[i] = local[i];
        }
    }
}

NEON_INLINE int32x4_t quad_exponents(const struct finish_call *call, int r, int column)
{
    const int32_t *own = call->b_lowest[column / PANEL_ROWS] + column % PANEL_ROWS;

    return vaddq_s32(vdupq_n_s32(call->a_lowest[r] + call->exponent), vld1q_s32(own));
}

void neon_finish(const struct finish_call *call)
{
    for (int r = 0; r < TILE_ROWS; r++) {
        for (int column = 0; column < call->panels * PANEL_ROWS && call->out[r] != NULL;
             column += 4) {
            write_quad(
                call, r, column,
                finish_quad(call->sums + r * NEON_ROW + column, quad_exponents(call, r, column)));
        }
    }
}

static bool tile_short(const struct tile_call *call, const struct finish_call *finish)
{
    int64_t pairs = (call->count + 1) / 2;
    int32x4_t acc[NEON_STEP][NEON_QUADS];

    for (int c = 0; c < call->panels; c++) {
        int64_t run = safe_pairs(call->a_heads->norms, call->b_heads[c]->norms, call->bits);

        /* 0: nothing but zeros, which any run may add. */
        if (run > 0 && run < pairs) {
            return false;
        }
    }
    for (int c = 0; c < call->panels; c++) {
        for (int first = 0; first < TILE_ROWS; first += NEON_STEP) {
            clear(acc);
            multiply(acc, call->a + 4 * first, call->b[c], pairs);
            for (int i = 0; i < NEON_STEP * NEON_QUADS; i++) {
                int r = first + i / NEON_QUADS;
                int column = c * PANEL_ROWS + 4 * (i % NEON_QUADS);

                if (finish->out[r] != NULL) {
                    write_quad(finish, r, column,
                               scale(vcvtq_f32_s32(acc[i / NEON_QUADS][i % NEON_QUADS]),
                                     quad_exponents(finish, r, column)));
                }
            }
        }
    }
    return true;
}

void neon_finish_row(float *out, const int64_t *sums, const int32_t *exponents)
{
    for (int i = 0; i < PANEL_ROWS; i += 4) {
        vst1q_f32(out + i, finish_quad(sums + i, vld1q_s32(exponents + i)));
    }
}

/* ---- quantize ---- */

NEON_INLINE uint32x4_t size_bits(float32x4_t x)
{
    return vreinterpretq_u32_f32(vabsq_f32(x));
}

/* quantize_shifted() of four elements. */
NEON_INLINE float32x4_t shifted(float32x4_t x, float factor)
{
    const uint32x4_t infinity = vdupq_n_u32(0x7f800000);
    float32x4_t y = vmulq_n_f32(x, factor);
    uint32x4_t over =
        vandq_u32(vceqq_u32(size_bits(y), infinity), vcltq_u32(size_bits(x), infinity));

    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(y), over));
}

/* The magnitudes of 16 adjacent rows. The next panels follow in memory: prefetches two ahead. */
NEON_INLINE void magnitudes_adjacent(uint32_t *largest, const struct piece_source *source,
                                     float *copy, const bool shifts)
{
    uint32x4_t most[NEON_QUADS] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};

    for (int64_t k = 0; k < source->count; k++) {
        const float *x = source->rows[0] + k * source->stride;

        __builtin_prefetch((const char *)x + PREFETCH_AHEAD);
#pragma GCC unroll 4
        for (int quad = 0; quad < NEON_QUADS; quad++) {
            float32x4_t four = vld1q_f32(x + 4 * quad);

            four = shifts ? shifted(four, source->factors[k]) : four;
            most[quad] = vmaxq_u32(most[quad], size_bits(four));
            if (copy != NULL) {
                vst1q_f32(copy + k * PANEL_ROWS + 4 * quad, four);
            }
        }
    }
#pragma GCC unroll 4
    for (int quad = 0; quad < NEON_QUADS; quad++) {
        vst1q_u32(largest + 4 * quad, most[quad]);
    }
}

/* The first `count` of four elements, then zeros. */
NEON_INLINE float32x4_t load_some(const float *x, int64_t count)
{
    if (count >= 4) {
        return vld1q_f32(x);
    }
    float local[4] = {0.0f};

    for (int64_t i = 0; i < count; i++) {
        local[i] = x[i];
    }
    return vld1q_f32(local);
}

void neon_magnitudes(uint32_t *largest, const struct piece_source *source, float *copy)
{
    if (source->adjacent && source->factors == NULL) {
        magnitudes_adjacent(largest, source, copy, false);
        return;
    }
    if (source->adjacent) {
        magnitudes_adjacent(largest, source, copy, true);
        return;
    }
    for (int r = 0; r < PANEL_ROWS; r++) {
        uint32x4_t most = vdupq_n_u32(0);

        for (int64_t k = 0; k < source->count; k += 4) {
            most = vmaxq_u32(most, size_bits(load_some(source->rows[r] + k, source->count - k)));
        }
        largest[r] = vmaxvq_u32(most);
    }
}

/* How four elements are scaled, and which of them are not poison. */
struct scaling {
    float32x4_t first;
    float32x4_t second;
    int32x4_t live;
};

NEON_INLINE int32x4_t rounded(float32x4_t x, const struct scaling *scaling, const bool wide)
{
    float32x4_t scaled = vmulq_f32(x, scaling->first);

    if (wide) {
        scaled = vmulq_f32(scaled, scaling->second);
    }
    return vandq_s32(vcvtnq_s32_f32(scaled), scaling->live);
}

NEON_INLINE int16x8_t halves(int32x4_t low, int32x4_t high)
{
    return vqmovn_high_s32(vqmovn_s32(low), high);
}

/* Clamps two vectors of rounded integers and packs them into planes, in order. */
NEON_INLINE void planes_of(int16x8_t *planes, int32x4_t low, int32x4_t high, int bits,
                           const bool split)
{
    if (!split) {
        int16x8_t most = vdupq_n_s16((int16_t)((1 << (bits - 1)) - 1));

        planes[0] = vmaxq_s16(vminq_s16(halves(low, high), most), vnegq_s16(most));
        return;
    }
    int32x4_t most = vdupq_n_s32((1 << (bits - 1)) - 1);
    int32x4_t q[2] = {vmaxq_s32(vminq_s32(low, most), vnegq_s32(most)),
                      vmaxq_s32(vminq_s32(high, most), vnegq_s32(most))};
    int32x4_t l[2];
    int32x4_t h[2];

    for (int i = 0; i < 2; i++) {
        l[i] = vshrq_n_s32(vshlq_n_s32(q[i], 32 - PLANE_BITS), 32 - PLANE_BITS);
        h[i] = vshrq_n_s32(vsubq_s32(q[i], l[i]), PLANE_BITS);
    }
    planes[0] = halves(h[0], h[1]);
    planes[1] = halves(l[0], l[1]);
    planes[2] = vaddq_s16(planes[0], planes[1]);
}

/* Adjacent rows: two lines of x make one line of q, in four quarters. */
NEON_INLINE void integers_adjacent(char *lines, size_t plane_size,
                                   const struct piece_source *source, const struct scales *scales,
                                   int bits, const bool wide, const bool split)
{
    for (int r = 0; r < PANEL_ROWS; r += 4) {
        int32_t live[4];

        for (int i = 0; i < 4; i++) {
            live[i] = -(int32_t)(scales->live >> (r + i) & 1);
        }
        const struct scaling scaling = {vld1q_f32(scales->first + r), vld1q_f32(scales->second + r),
                                        vld1q_s32(live)};

        for (int64_t k = 0; k < source->count; k += 2) {
            const float *x = source->rows[0] + k * source->stride + r;
            char *to = lines + k / 2 * LINE_SIZE + 4 * r;
            float32x4_t odd =
                k + 1 < source->count ? vld1q_f32(x + source->stride) : vdupq_n_f32(0.0f);
            int16x8_t planes[PLANES_MAX];

            planes_of(planes, rounded(vld1q_f32(x), &scaling, wide), rounded(odd, &scaling, wide),
                      bits, split);
            for (int p = 0; p < (split ? 3 : 1); p++) {
                vst1q_s16((int16_t *)(void *)(to + (size_t)p * plane_size),
                          vzip1q_s16(planes[p], vextq_s16(planes[p], planes[p], 4)));
            }
        }
    }
}

/* Rows along k: four rows by eight elements at a time, packed to four pairs and transposed. */
NEON_INLINE void integers_along(char *lines, size_t plane_size, const struct piece_source *source,
                                const struct scales *scales, int bits, const bool wide,
                                const bool split)
{
    for (int64_t k = 0; k < source->count; k += 8) {
        int64_t left = source->count - k;

        for (int first = 0; first < PANEL_ROWS; first += 4) {
            int32x4_t rows[PLANES_MAX][4];

            for (int i = 0; i < 4; i++) {
                int r = first + i;
                const float *x = source->rows[r] + k;
                const struct scaling scaling = {vdupq_n_f32(scales->first[r]),
                                                vdupq_n_f32(scales->second[r]),
                                                vdupq_n_s32(-(int32_t)(scales->live >> r & 1))};
                int16x8_t planes[PLANES_MAX];
                float32x4_t next = left > 4 ? load_some(x + 4, left - 4) : vdupq_n_f32(0.0f);

                planes_of(planes, rounded(load_some(x, left), &scaling, wide),
                          rounded(next, &scaling, wide), bits, split);
                for (int p = 0; p < (split ? 3 : 1); p++) {
                    rows[p][i] = vreinterpretq_s32_s16(planes[p]);
                }
            }
            for (int p = 0; p < (split ? 3 : 1); p++) {
                neon_transpose(rows[p]);
                for (int pair = 0; pair < 4 && 2 * pair < left; pair++) {
                    char *to = lines + (size_t)p * plane_size + (k / 2 + pair) * LINE_SIZE;

                    vst1q_s32((int32_t *)(void *)(to + 4 * first), rows[p][pair]);
                }
            }
        }
    }
}

NEON_INLINE void integers_with(char *lines, size_t plane_size, const struct piece_source *source,
                               const struct scales *scales, int bits, const bool wide,
                               const bool split)
{
    if (source->adjacent) {
        integers_adjacent(lines, plane_size, source, scales, bits, wide, split);
    } else {
        integers_along(lines, plane_size, source, scales, bits, wide, split);
    }
}

void neon_integers(char *lines, size_t plane_size, const struct piece_source *source,
                   const int32_t *exponents, int bits)
{
    struct scales scales;

    scales_from(&scales, exponents, bits);
    if (bits != 22 && !scales.wide) {
        integers_with(lines, plane_size, source, &scales, bits, false, false);
    } else if (bits != 22) {
        integers_with(lines, plane_size, source, &scales, bits, true, false);
    } else {
        integers_with(lines, plane_size, source, &scales, bits, true, true);
    }
}

bool neon_any_nonzero(const char *lines, int64_t pairs)
{
    uint32x4_t seen = vdupq_n_u32(0);

    for (int64_t i = 0; i < pairs * LINE_SIZE; i += 16) {
        seen = vorrq_u32(seen, vld1q_u32((const uint32_t *)(const void *)(lines + i)));
    }
    return vmaxvq_u32(seen) != 0;
}

/* The sums of the products of the pairs in a quarter line. */
NEON_INLINE int32x4_t pair_sums(int16x8_t a, int16x8_t b)
{
    return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}

/* Squared norms of four rows over lines [from, to). */
NEON_INLINE uint32x4_t squares(const char *lines, int64_t from, int64_t to)
{
    uint32x4_t sum = vdupq_n_u32(0);

    for (int64_t i = from * LINE_SIZE; i < to * LINE_SIZE; i += LINE_SIZE) {
        int16x8_t line = vld1q_s16((const int16_t *)(const void *)(lines + i));

        sum = vaddq_u32(sum, vreinterpretq_u32_s32(pair_sums(line, line)));
    }
    return sum;
}

/* The norms of half a run fit 32 unsigned bits; the sum of two saturates at UINT32_MAX. */
static void piece_norms(uint32_t *norms, const char *lines, size_t plane_size, int64_t pairs,
                        int bits)
{
    uint32x4_t most_run = vdupq_n_u32(0);
    uint32x4_t most_half = vdupq_n_u32(0);

    if (bits == 22) {
        norms[NORM_RUN] =
            neon_any_nonzero(lines, pairs) || neon_any_nonzero(lines + plane_size, pairs);
        norms[NORM_HALF] = norms[NORM_RUN];
        return;
    }
    const int64_t half = norm_run(bits) / 4;

    for (int64_t start = 0; start < pairs; start += 2 * half) {
        int64_t middle = start + half < pairs ? start + half : pairs;
        int64_t end = start + 2 * half < pairs ? start + 2 * half : pairs;

        for (int quarter = 0; quarter < LINE_SIZE; quarter += 16) {
            uint32x4_t first = squares(lines + quarter, start, middle);
            uint32x4_t second = squares(lines + quarter, middle, end);

            most_run = vmaxq_u32(most_run, vqaddq_u32(first, second));
            most_half = vmaxq_u32(most_half, vmaxq_u32(first, second));
        }
    }
    norms[NORM_RUN] = vmaxvq_u32(most_run);
    norms[NORM_HALF] = vmaxvq_u32(most_half);
}

void neon_stream(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
}

void neon_row_sums(int32_t *sums, const char *lines, int64_t pairs)
{
    for (int r = 0; r < PANEL_ROWS; r += 4) {
        int32x4_t sum = vdupq_n_s32(0);

        for (int64_t i = 0; i < pairs; i++) {
            sum = vpadalq_s16(
                sum, vld1q_s16((const int16_t *)(const void *)(lines + i * LINE_SIZE + 4 * r)));
        }
        vst1q_s32(sums + r, sum);
    }
}

static void row_dots(int32_t *sums, const char *a, const char *b, int64_t pairs)
{
    for (int r = 0; r < PANEL_ROWS; r += 4) {
        int32x4_t sum = vdupq_n_s32(0); /* of the four rows, even and odd places of k together */

        for (int64_t i = 4 * r; i < pairs * LINE_SIZE; i += LINE_SIZE) {
            int16x8_t x = vld1q_s16((const int16_t *)(const void *)(a + i));
            int16x8_t y = vld1q_s16((const int16_t *)(const void *)(b + i));

            sum = vaddq_s32(
                sum, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
        }
        vst1q_s32(sums + r, sum);
    }
}

/* Transposes four rows of four pairs at a time. */
static void unpack_lines(int16_t *rows, int64_t pitch, const char *lines)
{
    for (int r = 0; r < PANEL_ROWS; r += 4) {
        for (int pair = 0; pair < UNPACK_PAIRS; pair += 4) {
            int32x4_t square[4];

            for (int i = 0; i < 4; i++) {
                const char *at = lines + (pair + i) * LINE_SIZE + 4 * r;

                square[i] = vld1q_s32((const int32_t *)(const void *)at);
            }
            neon_transpose(square);
            for (int i = 0; i < 4; i++) {
                vst1q_s16(rows + (r + i) * pitch + 2 * pair, vreinterpretq_s16_s32(square[i]));
            }
        }
    }
}

/* Of place k of a plane: a quarter of the line that holds it, its element the lower one of each
 * pair; zeros where there is none. */
NEON_INLINE uint16x8_t quarter_of(const char *lines, uint32_t k)
{
    const int32x4_t down = vdupq_n_s32((int32_t)(k & 1) * -16);

    if (k == ROW_NONE) {
        return vdupq_n_u16(0);
    }
    lines += k / 2 * (size_t)LINE_SIZE;
    return vreinterpretq_u16_u32(vshlq_u32(vld1q_u32((const uint32_t *)(const void *)lines), down));
}

static void join_lines(char *to, const char *lines, const uint32_t *order, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++, order += 2) {
        for (int quarter = 0; quarter < LINE_SIZE; quarter += 16) {
            vst1q_u16((uint16_t *)(void *)(to + i * LINE_SIZE + quarter),
                      vtrn1q_u16(quarter_of(lines + quarter, order[0]),
                                 quarter_of(lines + quarter, order[1])));
        }
    }
}

/* ---- the table ---- */

const struct contraction_isa contraction_neon = {
    .tile = tile_product,
    .finish = neon_finish,
    .tile_short = tile_short,
    .magnitudes = neon_magnitudes,
    .integers = neon_integers,
    .norms = piece_norms,
    .stream = neon_stream,
    .row_sums = neon_row_sums,
    .row_dots = row_dots,
    .unpack = unpack_lines,
    .join = join_lines,
    .finish_row = neon_finish_row,
};

static void run_unpack(void *q, const void *packed, const struct op *quantize, int thread_count)
{
    contraction_unpack(&contraction_neon, q, packed, quantize, thread_count);
}

static void run_quantize(const struct kernel_call *call)
{
    contraction_quantize(&contraction_neon, call);
}

static void run_contract(const struct kernel_call *call)
{
    contraction_contract(&contraction_neon, call);
}

static void run_ones(const struct kernel_call *call)
{
    contraction_ones(&contraction_neon, call);
}

static void run_onehot(const struct kernel_call *call)
{
    contraction_onehot(&contraction_neon, call);
}

static void run_chosen(const struct kernel_call *call)
{
    contraction_chosen(&contraction_neon, call);
}

static void run_chosen_rows(const struct kernel_call *call)
{
    contraction_chosen_rows(&contraction_neon, call);
}

void contraction_kernels_neon(struct kernel_table *table)
{
    contraction_table(table,
                      &(struct contraction_runs){run_unpack, run_quantize, run_contract, run_ones,
                                                 run_onehot, run_chosen, run_chosen_rows});
}
