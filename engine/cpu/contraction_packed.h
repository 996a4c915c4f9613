/*
 * contraction_packed.h - the packed layout, and what an instruction set supplies for contractions.
 *
 * Rows are flat (a batch is a range of rows) and lie in panels of 16. A panel is
 *
 *   planes x (pairs, 16, 2) int16   element [pair][row][k & 1], pair = k / 2; an odd K ends in 0
 *   int32_t lowest[16]              smallest exponent of each row, or LOWEST_POISON
 *   struct piece_head [pieces]
 *
 * so one 64-byte line holds two neighbours in k of 16 rows. Operand A broadcasts the pair of one
 * row; operand B uses the whole line. Rows past the last are zeros.
 *
 * For 14, 15 and 16 bits there is one plane, q itself. For 22 bits q = h * 2^11 + l with
 * -1024 <= l <= 1023 and -1024 <= h <= 1024, and the planes are h, l and h + l (Karatsuba):
 *   q q' = hh' (2^22 - 2^11) + ll' (1 - 2^11) + (h + l)(h' + l') 2^11.
 *
 * When may a dot product run in 32 bits? By Cauchy and Schwarz |dot| <= |a| |b|, so a product of
 * squared norms below 2^62 bounds it by 2^31 - 1. A piece keeps the largest squared norm among its
 * rows over runs of 128, 32 or 8 elements (for 14, 15, 16 bits) and over half runs. A tile widens
 * its sums to 64 bits after the longest safe run. (The squared norm of half a run is below 2^32:
 * 64 * 8191^2, 16 * 16383^2, 4 * 32767^2.) A quarter of a run is always safe:
 *   14 bits: 32 * 8191^2, 15 bits: 8 * 16383^2, 16 bits: 2 * 32767^2, all < 2^31.
 * For 22 bits a whole piece is safe: 128 * 2048^2 = 2^29.
 */
#ifndef ENGINE_CPU_CONTRACTION_PACKED_H
#define ENGINE_CPU_CONTRACTION_PACKED_H

#include <omp.h>

#include "engine/ops/contraction.h"
#include "engine/ops/kernel.h"

#define PANEL_ROWS    16
#define LINE_SIZE     64 /* bytes of one pair of a panel */
#define PLANES_MAX    3
#define PLANE_BITS    11 /* of l, for 22 bits */
#define LOWEST_POISON (1 << 20)

/* Larger results, in bytes, are written past the caches. */
#define STREAM_SIZE (INT64_C(24) << 20)

/* With less work per thread, another thread costs more than it gains: elements read, products. */
#define THREAD_ELEMENTS 16384
#define THREAD_PRODUCTS 500000

/* Lines that are transposed into rows at a time; as many as a line has rows. */
#define UNPACK_PAIRS 16

/* A tile is TILE_ROWS rows of A by at most TILE_PANELS panels of B. */
#define TILE_ROWS    8
#define TILE_PANELS  3
#define TILE_COLUMNS (TILE_PANELS * PANEL_ROWS)
#define TILE_SUMS    (TILE_ROWS * TILE_COLUMNS)

/* Where the table says `bytes`: see packed_element(). */
#define BYTES_BITS  14
#define BYTE_BITS   7                         /* of l: q = h * 2^7 + l */
#define BYTES_LINES 4                         /* of a group: eight elements */
#define BYTES_GROUP (BYTES_LINES * LINE_SIZE) /* bytes */
#define BYTES_LOW   (BYTES_GROUP / 2)         /* from h to l */

#define ROW_NONE UINT32_MAX /* no row, or place along K */

#define NORM_RUN  0 /* places in piece_head.norms */
#define NORM_HALF 1

struct piece_head {
    uint32_t norms[2];          /* UINT32_MAX where the true norm of a run is larger */
    uint8_t shifts[PANEL_ROWS]; /* exponent of the piece's block above the row's lowest */
};

struct packed_layout {
    struct contraction_shape shape;
    int planes;
    int64_t rows;
    int64_t panels;
    size_t plane_size;
    size_t panel_size;
};

/* Bytes in whole lines. */
static inline size_t contraction_lines(size_t size)
{
    return (size + LINE_SIZE - 1) / LINE_SIZE * LINE_SIZE;
}

struct packed_layout packed_layout(const struct contraction_shape *shape, int64_t rows);

/* The longest run of the norm test, in elements; 0 for 22 bits, which need no test. */
static inline int64_t norm_run(int bits)
{
    return bits == 22 ? 0 : INT64_C(128) >> (2 * (bits - 14));
}

/*
 * The pairs after which a tile must widen the sums of a piece; 0 where the piece adds nothing. a
 * and b are piece_head.norms; b may be the maximum over several panels.
 */
static inline int64_t safe_pairs(const uint32_t *a, const uint32_t *b, int bits)
{
    int64_t pairs = norm_run(bits) / 2;

    if (a[NORM_RUN] == 0 || b[NORM_RUN] == 0) {
        return 0;
    }
    if (bits == 22) {
        return CONTRACTION_PIECE / 2;
    }
    if (a[NORM_RUN] < UINT32_MAX && b[NORM_RUN] < UINT32_MAX &&
        (uint64_t)a[NORM_RUN] * b[NORM_RUN] < UINT64_C(1) << 62) {
        return pairs;
    }
    return (uint64_t)a[NORM_HALF] * b[NORM_HALF] < UINT64_C(1) << 62 ? pairs / 2 : pairs / 4;
}

/* 2^exponent for -126 <= exponent <= 127. */
static inline float power_of_two(int exponent)
{
    union {
        uint32_t bits;
        float value;
    } power = {.bits = (uint32_t)(exponent + 127) << 23};

    return power.value;
}

/*
 * x * 2^(bits-1-e) may need a factor beyond 2^127. Two factors then replace it, and each step is
 * exact. A product below 2^-126 may round, but to a number that RNE takes to 0.
 */
struct scales {
    float first[PANEL_ROWS];
    float second[PANEL_ROWS];
    uint32_t live; /* rows that are not poison here */
    bool wide;     /* some second factor is not 1 */
};

static inline void scales_from(struct scales *scales, const int32_t *exponents, int bits)
{
    scales->live = 0;
    scales->wide = false;
    for (int r = 0; r < PANEL_ROWS; r++) {
        int shift = bits - 1 - exponents[r];

        scales->live |= (uint32_t)(exponents[r] != EXPONENT_POISON) << r;
        scales->first[r] = power_of_two(shift > 127 ? 127 : shift);
        scales->second[r] = power_of_two(shift > 127 ? shift - 127 : 0);
        scales->wide |= shift > 127;
    }
}

static inline int32_t *panel_lowest(const struct packed_layout *layout, const char *panel)
{
    return (int32_t *)(uintptr_t)(panel + (size_t)layout->planes * layout->plane_size);
}

static inline struct piece_head *panel_heads(const struct packed_layout *layout, const char *panel)
{
    return (struct piece_head *)(panel_lowest(layout, panel) + PANEL_ROWS);
}

/*
 * Sixteen rows of binary32 over `count` <= 128 elements: rows[i][k], or with adjacent rows
 * rows[0][k * stride + i].
 */
struct piece_source {
    const float *rows[PANEL_ROWS];
    const float *factors; /* of adjacent rows: of each k, what they are shifted by; or NULL */
    bool adjacent;
    int64_t stride;
    int64_t count;
    int64_t ahead; /* rows along k: elements to what is read after this piece; 0: not known */
};

/* Writes the lines of a piece: with second factors or poison where it is wide, in three planes
 * where it is split. */
typedef void integers_function(char *lines, size_t plane_size, const struct piece_source *source,
                               const struct scales *scales, int bits, bool wide, bool split);

static inline __attribute__((always_inline)) void integers_of(char *lines, size_t plane_size,
                                                              const struct piece_source *source,
                                                              const int32_t *exponents, int bits,
                                                              integers_function *write)
{
    struct scales scales;

    scales_from(&scales, exponents, bits);
    if (bits == 22) {
        write(lines, plane_size, source, &scales, bits, true, true);
    } else if (scales.wide || scales.live != (1U << PANEL_ROWS) - 1) {
        write(lines, plane_size, source, &scales, bits, true, false);
    } else {
        write(lines, plane_size, source, &scales, bits, false, false);
    }
}

struct tile_call {
    const char *a;                    /* first line of plane 0, at the tile's first row */
    const struct piece_head *a_heads; /* of the first piece */
    int a_row;                        /* the tile's first row inside its panel: 0 or 8 */
    const char *b[TILE_PANELS];       /* first lines of plane 0 */
    const struct piece_head *b_heads[TILE_PANELS];
    size_t a_plane_size;
    size_t b_plane_size;
    int panels; /* of B: 1 .. TILE_PANELS */
    int bits;
    int64_t piece; /* elements of a piece */
    int64_t count; /* elements to contract; only the last piece may be short */
    int64_t *sums; /* TILE_SUMS, 64-byte aligned; each instruction set has its own order */
};

/* Adds a piece of one plane and one panel of B to the sums, times factor. */
typedef void tile_piece_function(const struct tile_call *call, int64_t piece, int c, const char *a,
                                 const char *b, int64_t pairs, int32_t factor);

static inline __attribute__((always_inline)) void
tile_plane_pieces(const struct tile_call *call, int plane, int32_t factor, tile_piece_function *add)
{
    const char *a = call->a + (size_t)plane * call->a_plane_size;
    int64_t pairs_all = (call->count + 1) / 2;
    int64_t piece = 0;

    for (int64_t at = 0; at < pairs_all; at += call->piece / 2, piece++) {
        int64_t pairs = pairs_all - at < call->piece / 2 ? pairs_all - at : call->piece / 2;

        for (int c = 0; c < call->panels; c++) {
            const char *b = call->b[c] + (size_t)plane * call->b_plane_size;

            add(call, piece, c, a + at * LINE_SIZE, b + at * LINE_SIZE, pairs, factor);
        }
    }
}

/* A tile, piece by piece: one plane, or the three of 22 bits. */
static inline __attribute__((always_inline)) void tile_pieces(const struct tile_call *call,
                                                              tile_piece_function *add)
{
    if (call->bits != 22) {
        tile_plane_pieces(call, 0, 1, add);
        return;
    }
    tile_plane_pieces(call, 0, (1 << (2 * PLANE_BITS)) - (1 << PLANE_BITS), add);
    tile_plane_pieces(call, 1, 1 - (1 << PLANE_BITS), add);
    tile_plane_pieces(call, 2, 1 << PLANE_BITS, add);
}

struct finish_call {
    const int64_t *sums;
    int panels;
    int32_t exponent; /* -2 * (bits - 1) */
    const int32_t *a_lowest;
    const int32_t *b_lowest[TILE_PANELS];
    float *out[TILE_ROWS];        /* where column 0 of each row goes; NULL: nowhere */
    uint32_t wanted[TILE_PANELS]; /* one bit per column of a panel */
    bool stream;                  /* out is larger than the caches: write past them */
    int64_t visible[TILE_ROWS];   /* columns from here on are +0 */
};

/* What an instruction set supplies: pure functions with the rules' bits. */
struct contraction_isa {
    bool bytes; /* whole groups of lines hold bytes; such a table is for 14 bits alone */
    /* Adds the tile's products to call->sums. */
    void (*tile)(const struct tile_call *call);
    /* Converts the sums and writes the wanted elements. */
    void (*finish)(const struct finish_call *call);
    /* Both in one, for rows of a single piece whose sums fit 32 bits; if they may not fit, does
     * nothing and returns false. Does not use finish->sums. A count of 0 gives zeros. */
    bool (*tile_short)(const struct tile_call *call, const struct finish_call *finish);
    /* The largest magnitude of each row, as the bits of binary32. Also copies adjacent rows to
     * `copy`, unless it is NULL: see contraction_quantize.c. Both are of shifted elements where the
     * source has factors. */
    void (*magnitudes)(uint32_t *largest, const struct piece_source *source, float *copy);
    /* Writes (count + 1) / 2 lines of each plane, the first at `lines`. */
    void (*integers)(char *lines, size_t plane_size, const struct piece_source *source,
                     const int32_t *exponents, int bits);
    /* Fills norms from the lines of a piece. */
    void (*norms)(uint32_t *norms, const char *lines, size_t plane_size, int64_t pairs, int bits);
    /* Copies whole lines past the caches; both sides are aligned to a line. */
    void (*stream)(char *to, const char *from, size_t size);
    /* The sum of each row over at most 64 lines of one plane. */
    void (*row_sums)(int32_t *sums, const char *lines, int64_t pairs);
    /* The products of each row of a with the same row of b, likewise, where they fit 32 bits. NULL:
     * the tiles do it. */
    void (*row_dots)(int32_t *sums, const char *a, const char *b, int64_t pairs);
    /* Transposes UNPACK_PAIRS lines of one plane into 16 rows, `pitch` elements apart. */
    void (*unpack)(int16_t *rows, int64_t pitch, const char *lines);
    /* Makes lines of a plane of two places each of another plane; ROW_NONE: of zeros. Not for
     * bytes. */
    void (*join)(char *to, const char *lines, const uint32_t *order, int64_t pairs);
    /* contraction_finish() of 16 sums; LOWEST_POISON or more gives NaN. */
    void (*finish_row)(float *out, const int64_t *sums, const int32_t *exponents);
};

/*
 * Element k of a row of a packed panel. Where the table says `bytes`, every four lines, eight
 * elements of 16 rows, hold h of all of them, row by row, and then l; the lines behind the last
 * whole four are as everywhere else.
 */
static inline int32_t packed_element(const struct contraction_isa *isa,
                                     const struct packed_layout *layout, const char *panel,
                                     int64_t row, int64_t k)
{
    const char *line = panel + k / 2 * LINE_SIZE + row * 4 + (k & 1) * 2;
    int64_t grouped = (layout->shape.k + 1) / 2 / BYTES_LINES * BYTES_LINES * 2;

    if (isa->bytes && k < grouped) {
        const int8_t *at = (const int8_t *)panel + k / 8 * BYTES_GROUP + row * 8 + k % 8;

        return at[0] * (1 << BYTE_BITS) + at[BYTES_LOW];
    }
    if (layout->planes == 3) {
        return *(const int16_t *)line * (1 << PLANE_BITS) +
               *(const int16_t *)(line + layout->plane_size);
    }
    return *(const int16_t *)line;
}

/* The calling thread's number in its team. */
static inline int contraction_thread(void)
{
    return omp_get_thread_num();
}

/* At most thread_count threads with at least `least` items each. */
static inline int contraction_threads(int thread_count, int64_t items, int64_t least)
{
    int64_t useful = items / least;

    return useful < 1 ? 1 : (useful < thread_count ? (int)useful : thread_count);
}

/* ---- products, tile by tile ---- */

struct operand_rows {
    const void *q; /* packed */
    struct packed_layout layout;
    int64_t batch_rows;
};

/* Rows of A by their experts; those of an expert begin with a panel. */
struct row_groups {
    uint32_t *panels; /* experts + 1: the first panel of each */
    uint32_t *order;  /* of each place in a panel, the row that stands there, or ROW_NONE */
};

struct product {
    const struct contraction_isa *isa;
    const struct row_groups *groups; /* of A, if it has some; the groups are the batches */
    struct contraction_shape shape;
    struct operand_rows a;
    struct operand_rows b;
    bool stream; /* out is larger than the caches */
    bool unit;   /* neighbouring columns are neighbours in out */
    int64_t causal;
    int64_t dims[6]; /* of the operation; A and B may be exchanged */
    int64_t strides[6];
    float *out;
};

struct operand_rows contraction_operand(const struct contraction_shape *shape, const void *q,
                                        int64_t batches, int64_t batch_rows);

/* Makes all of out. The scratch is that of contraction_contract_scratch(). */
void contraction_run_product(const struct product *product, char *scratch, int thread_count);

/* The same where every batch is one row of A and one of B. */
bool contraction_is_dots(const struct product *product);
void contraction_run_dots(const struct product *product, int thread_count);

/* Where a batch begins in out. */
static inline int64_t batch_place(const struct product *product, int64_t batch)
{
    return batch / product->dims[1] * product->strides[0] +
           batch % product->dims[1] * product->strides[1];
}

/* The kernels, given an instruction set. */
void contraction_quantize(const struct contraction_isa *isa, const struct kernel_call *call);
void contraction_equilibrate(const struct kernel_call *call);
void contraction_contract(const struct contraction_isa *isa, const struct kernel_call *call);
void contraction_ones(const struct contraction_isa *isa, const struct kernel_call *call);
void contraction_onehot(const struct contraction_isa *isa, const struct kernel_call *call);
void contraction_chosen(const struct contraction_isa *isa, const struct kernel_call *call);
void contraction_chosen_rows(const struct contraction_isa *isa, const struct kernel_call *call);

size_t contraction_contract_scratch(const struct op *op, int thread_count);
size_t contraction_onehot_scratch(const struct op *op, int thread_count);
size_t contraction_chosen_scratch(const struct op *op, int thread_count);
size_t contraction_chosen_rows_scratch(const struct op *op, int thread_count);

/* What an instruction set calls them by. */
struct contraction_runs {
    void (*unpack)(void *q, const void *packed, const struct op *quantize, int thread_count);
    void (*quantize)(const struct kernel_call *call);
    void (*contract)(const struct kernel_call *call);
    void (*ones)(const struct kernel_call *call);
    void (*onehot)(const struct kernel_call *call);
    void (*chosen)(const struct kernel_call *call);
    void (*chosen_rows)(const struct kernel_call *call);
};
void contraction_table(struct kernel_table *table, const struct contraction_runs *runs);

/* Makes the canonical q of a quantize operation from the packed one. */
void contraction_unpack(const struct contraction_isa *isa, void *q, const void *packed,
                        const struct op *quantize, int thread_count);

#endif /* ENGINE_CPU_CONTRACTION_PACKED_H */
