/*
 * fragments_body.h - what a warp multiplies by mma and adds up: fragments of limbs, their 32-bit
 * sums inside a piece, and the 64-bit sums of pieces. contract_body.h and strip_body.h bring limbs.
 *
 * At the end of every piece the 32-bit sums of the limbs' products become one 64-bit part, are
 * shifted by the two exponents of their block and added: contraction.h shows that nothing
 * overflows. contract_body.h waits for the end of the block, as far as packed_reach says.
 *
 * What the 32-bit sums hold of a piece, at most 128 products each (packed.h):
 *   14 bits, and 15 and 16 bits by halves: hh', ll', (h+l)(h'+l').
 *   14 bits of few rows (LIMBS_FOUR): hh', ll', hl' + lh', at most 2^20 by limbs up to 64.
 *   15, 16 bits: hh', ll', hl' + lh'.
 *   22 bits: hh', ll', hm' + mh', hl' + mm' + lh', ml' + lm'. With -32 <= h <= 31 and m and l in
 *   0 .. 255: |hh'| sums to at most 128 * 2^10 = 2^17; |hm' + mh'| to 128 * 2 * 32 * 255 < 2^21;
 *   hl' + mm' + lh' to 128 * (255^2 + 2 * 32 * 255) < 2^24, ml' + lm' to 128 * 2 * 255^2 < 2^24,
 *   ll' to 128 * 255^2 < 2^23. So top = 256 hh' + (hm' + mh') stays within 2^25 + 2^21 < 2^26, and
 *   low = 256 (ml' + lm') + ll', which is never negative, within 128 * 255^2 * 513 < 2^32: unsigned
 *   it fits. The piece is top 2^24 + (hl' + mm' + lh') 2^16 + low, below 2^50, in 64 bits.
 */

#define FRAGMENT_ROWS    2 /* of a warp: fragments of 16 rows; 1 where there are three limbs */
#define FRAGMENT_COLUMNS 4 /* of 8 columns */
#define FRAGMENT_SUMS    4 /* results of a fragment that one lane holds */
#define LIMB_SUMS        5 /* at most */

/* The kind of limbs is a constant of a kernel. */
static RULE INLINED uint32_t limb_planes(enum limb_kind kind)
{
    return kind == LIMBS_THREE || kind == LIMBS_HALVES_THREE ? 3 : 2;
}

static RULE INLINED uint32_t limb_sums(enum limb_kind kind)
{
    return limb_planes(kind) == 3 ? 5 : 3;
}

static RULE INLINED uint32_t fragment_rows(enum limb_kind kind)
{
    return limb_planes(kind) == 3 ? FRAGMENT_ROWS / 2 : FRAGMENT_ROWS;
}

static RULE INLINED bool limbs_are_halves(enum limb_kind kind)
{
    return kind >= LIMBS_HALVES_SHORT;
}

/* Of 15 and 16 bits? */
static RULE INLINED bool limbs_are_wide(enum limb_kind kind)
{
    return kind == LIMBS_WIDE || kind == LIMBS_HALVES_WIDE;
}

/* What a warp holds of one step: fragments of all limbs, as 32-bit words of four elements. */
struct fragments {
    uint32_t a[PACKED_PLANES_MAX][FRAGMENT_ROWS][4];
    uint32_t b[PACKED_PLANES_MAX][FRAGMENT_COLUMNS][2];
};

static RULE INLINED void fragments_add(uint32_t *sum, const uint32_t *a, const uint32_t *b,
                                       uint32_t count)
{
    UNROLL
    for (uint32_t i = 0; i < count; i++) {
        sum[i] = packed_add_bytes(a[i], b[i]);
    }
}

/* The products of one step, of row i and column j of fragments. */
static RULE INLINED void
fragments_narrow(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                 const struct fragments *f, uint32_t i, uint32_t j)
{
    uint32_t both_a[4];
    uint32_t both_b[2];

    fragments_add(both_a, f->a[0][i], f->a[1][i], 4);
    fragments_add(both_b, f->b[0][j], f->b[1][j], 2);
    multiply_ss(sums[0][i][j], f->a[0][i], f->b[0][j]);
    multiply_ss(sums[1][i][j], f->a[1][i], f->b[1][j]);
    multiply_ss(sums[2][i][j], both_a, both_b);
}

/* Where a warp's tile is small, h + l takes more instructions than a fourth product. */
static RULE INLINED void
fragments_four(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
               const struct fragments *f, uint32_t i, uint32_t j)
{
    multiply_ss(sums[0][i][j], f->a[0][i], f->b[0][j]);
    multiply_ss(sums[1][i][j], f->a[1][i], f->b[1][j]);
    multiply_ss(sums[2][i][j], f->a[0][i], f->b[1][j]);
    multiply_ss(sums[2][i][j], f->a[1][i], f->b[0][j]);
}

static RULE INLINED void
fragments_wide(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
               const struct fragments *f, uint32_t i, uint32_t j)
{
    multiply_ss(sums[0][i][j], f->a[0][i], f->b[0][j]);
    multiply_uu(sums[1][i][j], f->a[1][i], f->b[1][j]);
    multiply_su(sums[2][i][j], f->a[0][i], f->b[1][j]);
    multiply_us(sums[2][i][j], f->a[1][i], f->b[0][j]);
}

static RULE INLINED void
fragments_three(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                const struct fragments *f, uint32_t i, uint32_t j)
{
    multiply_ss(sums[0][i][j], f->a[0][i], f->b[0][j]);
    multiply_uu(sums[1][i][j], f->a[2][i], f->b[2][j]);
    multiply_su(sums[2][i][j], f->a[0][i], f->b[1][j]);
    multiply_us(sums[2][i][j], f->a[1][i], f->b[0][j]);
    multiply_su(sums[3][i][j], f->a[0][i], f->b[2][j]);
    multiply_uu(sums[3][i][j], f->a[1][i], f->b[1][j]);
    multiply_us(sums[3][i][j], f->a[2][i], f->b[0][j]);
    multiply_uu(sums[4][i][j], f->a[1][i], f->b[2][j]);
    multiply_uu(sums[4][i][j], f->a[2][i], f->b[1][j]);
}

/* ---- by halves ------------------------------------------------------------------- */

#define HALVES_PLANES 3 /* high limbs, low limbs, their sums; or three limbs */

/* Two bytes, each raised by 128, as halves of 1024 more: 0x6400 + u is the half 1024 + u. */
static RULE INLINED uint32_t halves_above(uint32_t raised, uint32_t selector)
{
    return pick_bytes(raised, UINT32_C(0x64646464), selector);
}

#define FIRST_BYTES 0x4140
#define LAST_BYTES  0x4342

/* Four signed bytes as four halves. */
static RULE INLINED void halves_signed(uint32_t to[2], uint32_t bytes)
{
    const uint32_t raised = bytes ^ UINT32_C(0x80808080);
    const uint32_t above = UINT32_C(0x64806480); /* 1024 + 128 */

    to[0] = halves_subtract(halves_above(raised, FIRST_BYTES), above);
    to[1] = halves_subtract(halves_above(raised, LAST_BYTES), above);
}

/* The same, and 1 more where the limb below is 128 or more, and is taken as signed. */
static RULE INLINED void halves_carried(uint32_t to[2], uint32_t bytes, uint32_t lower)
{
    const uint32_t raised = bytes ^ UINT32_C(0x80808080);
    const uint32_t carry = lower >> 7 & UINT32_C(0x01010101);
    const uint32_t above = UINT32_C(0x64806480);

    to[0] = halves_subtract(halves_above(raised, FIRST_BYTES) + pick_bytes(carry, 0, FIRST_BYTES),
                            above);
    to[1] =
        halves_subtract(halves_above(raised, LAST_BYTES) + pick_bytes(carry, 0, LAST_BYTES), above);
}

/* The limbs of four elements, as packed.h has them of halves; bytes: a word of each plane. */
static RULE INLINED void halves_of(uint32_t to[HALVES_PLANES][2],
                                   const uint32_t bytes[PACKED_PLANES_MAX], enum limb_kind kind)
{
    if (kind == LIMBS_HALVES_THREE) {
        halves_carried(to[0], bytes[0], bytes[1]);
        halves_carried(to[1], bytes[1], bytes[2]);
        halves_signed(to[2], bytes[2]);
        return;
    }
    if (kind == LIMBS_HALVES_WIDE) {
        halves_carried(to[0], bytes[0], bytes[1]);
    } else {
        halves_signed(to[0], bytes[0]);
    }
    halves_signed(to[1], bytes[1]);
    to[2][0] = halves_add(to[0][0], to[1][0]);
    to[2][1] = halves_add(to[0][1], to[1][1]);
}

/* Planes of one word of A, and of B. */
static RULE INLINED void halves_of_a(uint32_t to[HALVES_PLANES][2], const struct fragments *f,
                                     uint32_t i, uint32_t word, enum limb_kind kind)
{
    const uint32_t bytes[PACKED_PLANES_MAX] = {f->a[0][i][word], f->a[1][i][word],
                                               limb_planes(kind) == 3 ? f->a[2][i][word] : 0};

    halves_of(to, bytes, kind);
}

static RULE INLINED void halves_of_b(uint32_t to[HALVES_PLANES][2], const struct fragments *f,
                                     uint32_t j, uint32_t word, enum limb_kind kind)
{
    const uint32_t bytes[PACKED_PLANES_MAX] = {f->b[0][j][word], f->b[1][j][word],
                                               limb_planes(kind) == 3 ? f->b[2][j][word] : 0};

    halves_of(to, bytes, kind);
}

/* Where the product of a plane of A and a plane of B is added: as fragments_three() has them. */
static RULE INLINED uint32_t halves_place(uint32_t a, uint32_t b, enum limb_kind kind)
{
    if (kind != LIMBS_HALVES_THREE) {
        return a == b ? a : LIMB_SUMS; /* nowhere */
    }
    return a + b == 0 ? 0 : a + b == 4 ? 1 : a + b + 1;
}

/*
 * The products of one step by halves, of 16 elements of k at a time. Of a word of four bytes the
 * first two elements stand for a half fragment's lower k, the others for its upper: in A and in B
 * alike, so that the same elements meet.
 */
static RULE INLINED void
fragments_halves(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                 const struct fragments *f, uint32_t row_count, uint32_t column_count,
                 enum limb_kind kind)
{
    UNROLL
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t b[FRAGMENT_COLUMNS][HALVES_PLANES][2];

        UNROLL
        for (uint32_t j = 0; j < column_count; j++) {
            halves_of_b(b[j], f, j, part, kind);
        }
        UNROLL
        for (uint32_t i = 0; i < row_count; i++) {
            uint32_t rows[2][HALVES_PLANES][2];

            halves_of_a(rows[0], f, i, part * 2, kind);
            halves_of_a(rows[1], f, i, part * 2 + 1, kind);
            UNROLL
            for (uint32_t at = 0; at < HALVES_PLANES * HALVES_PLANES; at++) {
                const uint32_t plane = at / HALVES_PLANES;
                const uint32_t other = at % HALVES_PLANES;
                const uint32_t place = halves_place(plane, other, kind);
                const uint32_t a[4] = {rows[0][plane][0], rows[1][plane][0], rows[0][plane][1],
                                       rows[1][plane][1]};

                UNROLL
                for (uint32_t j = 0; place < LIMB_SUMS && j < column_count; j++) {
                    multiply_halves(sums[place][i][j], a, b[j][other]);
                }
            }
        }
    }
}

/* What a sum begins with, and the integer that it has come to. */
static RULE INLINED int32_t sum_start(enum limb_kind kind)
{
    return kind == LIMBS_HALVES_SHORT ? (int32_t)HALVES_START : 0;
}

/* Sums that are zeros begin as those of halves do. */
static RULE INLINED void
sums_begin(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
           enum limb_kind kind)
{
    UNROLL
    for (uint32_t at = 0; at < HALVES_PLANES * 32; at++) {
        if (kind == LIMBS_HALVES_SHORT) {
            sums[at / 32][at / 16 % 2][at / 4 % 4][at % 4] = sum_start(kind);
        }
    }
}

static RULE INLINED int32_t sum_value(int32_t sum, enum limb_kind kind)
{
    if (kind == LIMBS_HALVES_SHORT) {
        return (int32_t)((uint32_t)sum - HALVES_START);
    }
    return limbs_are_halves(kind) ? round_to_int(real_from_bits((uint32_t)sum)) : sum;
}

/* ---- all of a step --------------------------------------------------------------- */

/* rows, columns: fragments that are there, constants. */
static RULE INLINED void
fragments_multiply(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                   const struct fragments *f, uint32_t rows, uint32_t columns, enum limb_kind kind)
{
    if (limbs_are_halves(kind)) {
        fragments_halves(sums, f, rows, columns, kind);
        return;
    }
    UNROLL
    for (uint32_t i = 0; i < rows; i++) {
        UNROLL
        for (uint32_t j = 0; j < columns; j++) {
            if (kind == LIMBS_NARROW) {
                fragments_narrow(sums, f, i, j);
            } else if (kind == LIMBS_FOUR) {
                fragments_four(sums, f, i, j);
            } else if (kind == LIMBS_WIDE) {
                fragments_wide(sums, f, i, j);
            } else {
                fragments_three(sums, f, i, j);
            }
        }
    }
}

/* Which row and column of a fragment a lane's c-th result is: the PTX ISA's m16n8k32. */
static RULE INLINED uint32_t sum_row(uint32_t c)
{
    return thread_index() % CUDA_WARP / 4 + c / 2 * 8;
}

static RULE INLINED uint32_t sum_column(uint32_t c)
{
    return thread_index() % CUDA_WARP % 4 * 2 + c % 2;
}

/* Result c of a piece, from its limbs' sums: shifted, and added modulo 2^64. */
static RULE INLINED int64_t
piece_added(int64_t wide, int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
            uint32_t i, uint32_t j, uint32_t c, uint32_t shift, enum limb_kind kind)
{
    const int32_t high = sum_value(sums[0][i][j][c], kind);
    const int32_t low = sum_value(sums[1][i][j][c], kind);
    int64_t part;

    if (limb_planes(kind) == 3) {
        const int32_t top = high * 256 + sum_value(sums[2][i][j][c], kind);
        const int32_t middle = sum_value(sums[3][i][j][c], kind);
        const uint32_t bottom = (uint32_t)sum_value(sums[4][i][j][c], kind) * 256 + (uint32_t)low;

        part = kind == LIMBS_THREE
                   ? (int64_t)top * (1 << 24) + ((int64_t)middle * 65536 + bottom)
                   : (int64_t)top * (1 << 24) + ((int64_t)middle * 65536 + (int32_t)bottom);
    } else {
        const bool three = kind == LIMBS_NARROW || limbs_are_halves(kind);
        const int32_t radix = limbs_are_wide(kind) ? 256 : 128;
        const int32_t middle = sum_value(sums[2][i][j][c], kind) - (three ? high + low : 0);
        const int32_t top = high * radix + middle;

        part = (int64_t)top * radix + low;
    }
    return (int64_t)((uint64_t)wide + ((uint64_t)part << shift));
}

/* Adds a piece to the 64-bit sums; the limbs' sums begin again. */
static RULE INLINED void
sums_widen(int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
           int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
           const uint8_t *row_shifts, const uint8_t *column_shifts, uint32_t row_count,
           uint32_t column_count, enum limb_kind kind)
{
    uint32_t rows[FRAGMENT_ROWS][2];
    uint32_t columns[FRAGMENT_COLUMNS][2];

    UNROLL
    for (uint32_t at = 0; at < row_count * 2; at++) {
        rows[at / 2][at % 2] = row_shifts[at / 2 * 16 + sum_row(at % 2 * 2)] & SHIFT_MASK;
    }
    UNROLL
    for (uint32_t at = 0; at < column_count * 2; at++) {
        columns[at / 2][at % 2] =
            load_padded(&column_shifts[at / 2 * 8 + sum_column(at % 2)]) & SHIFT_MASK;
    }
    UNROLL
    for (uint32_t i = 0; i < row_count; i++) {
        UNROLL
        for (uint32_t j = 0; j < column_count; j++) {
            UNROLL
            for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
                wide[i][j][c] = piece_added(wide[i][j][c], sums, i, j, c,
                                            rows[i][c / 2] + columns[j][c % 2], kind);
                UNROLL
                for (uint32_t sum = 0; sum < limb_sums(kind); sum++) {
                    sums[sum][i][j][c] = sum_start(kind);
                }
            }
        }
    }
}
