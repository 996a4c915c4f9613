/*
 * packed.h - how quantized operands lie in device memory, and the limbs that tensor cores multiply.
 *
 * A q tensor in fast mode is planes of bytes, then the blocks' shifts, then int32 lowest[rows]:
 * each row's smallest exponent, or PACKED_POISON. In trace mode the canonical q is kept, and the
 * same is made of it in scratch before it is used: every consumer knows one layout only.
 *
 * A plane is cut along k into strips of `line` elements (128; 64 where K is no more), zeros from K
 * on; a strip into atoms of 8 rows; an atom is 8 lines of `line` bytes, row after row, in which the
 * pieces of 16 bytes are exchanged as the PTX ISA's 128-byte (64-byte) swizzle does. So a tile of
 * rows is one run of memory, and what a plain copy brings to shared memory is what wgmma reads:
 * no tensor map, no transposition on the way. Rows are counted through all batches.
 *
 * shifts[block][row] = exponent - lowest, one byte, 0 in poison rows: it is at most the window W.
 *
 * 14 bits: q = 128 h + l with -64 <= l <= 63. |q| <= 8191, so h = (q + 64) >> 7 is in -64 .. 64:
 *   q = 8128 .. 8191 gives h = 64 and l = -64 .. -1, q = -8191 .. -8129 gives h = -64 and
 *   l = 1 .. 63. So h + l is in 0 .. 63 where h = 64, at least -63 where h = -64, and in
 *   -127 .. 126 elsewhere: it fits a signed byte, and three products do (Karatsuba):
 *   q q' = hh' 2^14 + ((h+l)(h'+l') - hh' - ll') 2^7 + ll'.
 *   The planes are h and l. mma and halves make h + l in registers; wgmma, which reads limbs where
 *   copies left them, makes four products: hl' + lh' in place of the difference.
 * 15 and 16 bits: q = 256 h + l with h = q >> 8 signed and l = q & 255 unsigned: four products,
 *   q q' = hh' 2^16 + (hl' + lh') 2^8 + ll'.
 * 22 bits: q = 65536 h + 256 m + l, h signed (-32 .. 31), m and l unsigned.
 *
 * 32-bit sums inside a piece (at most 128 products) never overflow:
 *   14 bits: |hh'| and |ll'| <= 2^12, (h+l)(h'+l') <= 2^14: sums below 2^22; hi = 128 hh + mid
 *   is below 128 * 2^19 + 2^21 < 2^27.
 *   15, 16 bits: hh' <= 2^14, |hl' + lh'| <= 2 * 128 * 255 < 2^16, ll' < 2^16: sums below 2^23;
 *   hi = 256 hh + mid <= 2^29 + 2^23 < 2^30.
 * In both, the piece's exact part is hi * radix + ll, in 64 bits.
 *
 * A block may be longer than a piece, and all of it has one shift. Its products may stay in 32 bits
 * as long as hi does, which is the largest of what is formed there (packed_reach):
 *   14 bits, 2,048 products: 128 hh <= 2^7 * 2^12 * 2^11 = 2^30, and |mid|, which is |hl' + lh'| at
 *   limbs up to 64, <= 2^13 * 2^11 = 2^24; the sum of (h+l)(h'+l') <= 2^14 * 2^11 = 2^25.
 *   15, 16 bits, 256 products: 256 hh <= 2^8 * 2^14 * 2^8 = 2^30, |mid| < 2^16 * 2^8 = 2^24.
 *   22 bits: a piece (fragments_body.h), since the low part fills its 32 bits.
 *
 * wgmma has one 32-bit sum at a time. Of a run of R = 2^r products of one block (hopper_body.h) it
 * makes hi = 128 hh' + (hl' + lh'), where the sum of hh' is raised by 7 bits and then goes on, and
 * ll'. Each is added by itself, times 2^shift of its row and of its column: the 32-bit sum, with as
 * much of the row's shift as it has room for, times a 32-bit factor, with the rest, the column's
 * shift and, for hi, 2^7. Shifts are above 0 only where there are two blocks, so k > R,
 * ceil(log2 k) >= r + 1, and each is at most the window (contraction.h)
 *   W = floor((62 - 26 - ceil(log2 k)) / 2), so that 2 W <= 35 - r.
 *   Of one product |hi| < 2^19: where both high limbs are 64 in magnitude, their low limbs, of the
 *   other sign, leave at most 128 * 64 * 64 - 128; elsewhere it is at most 128 * 64 * 63 + 64 * 64
 *   + 64 * 63 = 524,224. So with room = 12 - r, hi stays below 2^(19 + r + 12 - r) = 2^31; and
 *   ll', which is 2^12 at most, below 2^25.
 *   What is left of the row's shift is at most W - 12 + r, or nothing. With the column's and the 7
 *   bits of hi that is 2 W - 5 + r <= 30 bits, or W + 7 <= 21: the factor is at most 2^30.
 *
 * Products by halves (binary16) with sums in binary32: bytes become halves in registers. All
 * operands are integers of at most 255 in magnitude, which a half holds, so all products are
 * integers, and by ARITHMETIC.md ("What a machine must offer") a unit drops nothing of a sum whose
 * start and products have magnitudes of less than 2^24 together:
 *   14 bits, limbs as above: (h+l)(h'+l') <= 127^2 is the largest. 256 products from HALVES_START,
 *   1.5 * 2^23: 12,582,912 + 256 * 16,129 = 16,711,936 < 2^24, and the sum stays above 2^23, where
 *   the bits of binary32 count by ones: the integer is the difference of two bit patterns. From 0,
 *   1,024 products: 16,516,096 < 2^24.
 *   15 and 16 bits: the low limb is taken as signed, -128 .. 127, and the high one is h + (l >> 7),
 *   -128 .. 128. There |h + l| <= 255: where h = 128, q >= 32640 has l < 0; where h = -128,
 *   q <= -32641 has l > 0. Three products do, from 0: 256 * 255^2 = 16,646,400 < 2^24.
 *   22 bits: the middle and the low limb are taken as signed, -128 .. 127, and what they owe is
 *   added to the limb above: m + (l >> 7) in -128 .. 128, h + (m >> 7) in -32 .. 32. Nine products
 *   and five sums as by bytes, of 128 elements from 0: the largest is ml' + lm', of 2 * 2^14 * 2^7
 *   = 2^22, and hl' + mm' + lh' comes to 128 * (2 * 32 * 128 + 2^14) = 3,145,728 < 2^22.
 * In 32 bits: 14 bits, 128 hh <= 2^7 * 2^12 * 2^10 = 2^29; 15 and 16 bits, 256 hh <= 2^8 * 2^14 *
 * 2^8 = 2^30 and |mid| <= 2 * 2^14 * 2^8 = 2^23; 22 bits, 256 hh' + (hm' + mh') <= 2^8 * 2^17 +
 * 2^20 and 256 (ml' + lm') + ll' <= 2^8 * 2^22 + 2^21 < 2^31, of either sign.
 *
 * A strip (strip_body.h) adds up after every piece, so at most 128 products: 14 bits from
 * HALVES_START; 15 and 16 bits from 0, 128 * 255^2 = 8,323,200, less than 2^23.
 */
#ifndef ENGINE_CUDA_KERNELS_PACKED_H
#define ENGINE_CUDA_KERNELS_PACKED_H

#include "engine/ops/contraction.h"

#define PACKED_STEP       32 /* elements of k that one product of tensor cores takes */
#define PACKED_PLANES_MAX 3
#define PACKED_POISON     (1 << 20)
#define PACKED_ALIGNMENT  UINT64_C(256)

#define PACKED_ATOM_ROWS 8
#define PACKED_LINE_MAX  128

struct packed {
    uint64_t rows;
    uint64_t atoms;       /* of a strip: 8 rows each, the last may be short */
    uint64_t strip_size;  /* bytes */
    uint64_t plane_size;  /* bytes */
    uint64_t shifts;      /* offset of the shifts */
    uint64_t shift_pitch; /* bytes from block to block */
    uint64_t lowest;      /* offset of lowest[] */
    uint64_t size;        /* bytes of all */
    uint32_t line_log;    /* a line has 2^line_log elements */
};

/* Plain functions of both sides; nvcc compiles them for the processor too. */
#ifdef __CUDACC__
#define PACKED_BOTH __host__ __device__
#else
#define PACKED_BOTH
#endif

static PACKED_BOTH inline uint64_t packed_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static PACKED_BOTH inline uint32_t packed_planes(int bits)
{
    return bits == 22 ? 3 : 2;
}

static PACKED_BOTH inline struct packed packed_of(int bits, uint64_t rows, uint64_t k,
                                                  uint64_t blocks)
{
    struct packed packed;
    uint64_t line;

    packed.rows = rows;
    packed.line_log = k <= 64 ? 6 : 7;
    line = UINT64_C(1) << packed.line_log;
    packed.atoms = (rows + PACKED_ATOM_ROWS - 1) / PACKED_ATOM_ROWS;
    packed.strip_size = packed.atoms * PACKED_ATOM_ROWS * line;
    packed.plane_size =
        packed_round_up((k + line - 1) / line * packed.strip_size, PACKED_ALIGNMENT);
    packed.shifts = packed_planes(bits) * packed.plane_size;
    /* A tile's shifts are copied by 16 bytes that begin anywhere: one piece more than there is. */
    packed.shift_pitch = packed_round_up(rows + 16, 16);
    packed.lowest = packed_round_up(packed.shifts + blocks * packed.shift_pitch, PACKED_ALIGNMENT);
    packed.size = packed_round_up(packed.lowest + 4 * rows, PACKED_ALIGNMENT);
    return packed;
}

/* So many products of one block may be added up in 32 bits before they are shifted. */
static PACKED_BOTH inline uint64_t packed_reach(int bits)
{
    return bits == 14 ? 2048 : bits == 22 ? 128 : 256;
}

/* And so many by halves; those of 14 bits up to HALVES_SHORT begin at HALVES_START. */
#define HALVES_SHORT 256
#define HALVES_START UINT32_C(0x4b400000) /* 1.5 * 2^23 */

static PACKED_BOTH inline uint64_t packed_reach_of_halves(int bits)
{
    return bits == 14 ? 1024 : bits == 22 ? 128 : 256;
}

/* The bits of a row's shift that wgmma's sums of a run of 2^run_log products have room for. */
static PACKED_BOTH inline uint32_t packed_room(uint32_t run_log)
{
    return 12 - run_log;
}

/* Where 16 bytes of a line lie in it: the swizzle, on bits 4 to 6 (5) of an address. */
static PACKED_BOTH inline uint32_t packed_swizzle(uint64_t row, uint32_t piece, uint32_t line_log)
{
    return piece ^ ((uint32_t)row % PACKED_ATOM_ROWS >> (7 - line_log));
}

/* The place in a plane of the byte of element k of a row. */
static PACKED_BOTH inline uint64_t packed_place(uint64_t row, uint64_t k, uint64_t strip_size,
                                                uint32_t line_log)
{
    const uint32_t in_line = (uint32_t)k & ((1u << line_log) - 1);

    return (k >> line_log) * strip_size + (row << line_log) +
           packed_swizzle(row, in_line / 16, line_log) * 16 + in_line % 16;
}

/* The limbs of q, highest first. */
static PACKED_BOTH inline void packed_split(uint8_t limbs[PACKED_PLANES_MAX], int32_t q, int bits)
{
    limbs[2] = 0;
    if (bits == 14) {
        int32_t high = (q + 64) >> 7;

        limbs[0] = (uint8_t)high;
        limbs[1] = (uint8_t)(q - high * 128);
    } else if (bits == 22) {
        limbs[0] = (uint8_t)(q >> 16);
        limbs[1] = (uint8_t)(q >> 8);
        limbs[2] = (uint8_t)q;
    } else {
        limbs[0] = (uint8_t)(q >> 8);
        limbs[1] = (uint8_t)q;
    }
}

static PACKED_BOTH inline int32_t packed_join(uint8_t high, uint8_t middle, uint8_t low, int bits)
{
    if (bits == 14) {
        return (int8_t)high * 128 + (int8_t)middle;
    }
    if (bits == 22) {
        return (int8_t)high * 65536 + middle * 256 + low;
    }
    return (int8_t)high * 256 + middle;
}

/* h + l of four elements at once, byte by byte, with no carry from one to the next. */
static PACKED_BOTH inline uint32_t packed_add_bytes(uint32_t a, uint32_t b)
{
    uint32_t low = (a & UINT32_C(0x7f7f7f7f)) + (b & UINT32_C(0x7f7f7f7f));

    return low ^ ((a ^ b) & UINT32_C(0x80808080));
}

#endif /* ENGINE_CUDA_KERNELS_PACKED_H */
