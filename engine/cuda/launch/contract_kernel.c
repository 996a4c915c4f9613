/* contract_kernel.c - see contract_kernel.h. */
#include "engine/cuda/launch/contract_kernel.h"

uint64_t contract_tiles(uint64_t rows, uint64_t batches, uint64_t tile, bool by_wgmma)
{
    const bool before = by_wgmma && batches > 1 && rows % PACKED_ATOM_ROWS != 0;

    return (rows + (before ? PACKED_ATOM_ROWS - 1 : 0) + tile - 1) / tile;
}

static uint64_t hopper_tiles(const struct contract_args *args, uint32_t columns)
{
    return args->batches * contract_tiles(args->m, args->batches, HOPPER_ROWS, true) *
           contract_tiles(args->n, args->batches, columns, true);
}

/* The time of a wave of half tiles, of one of whole tiles: above half, since A is read as often. */
#define HALF_WAVE_PERCENT 58

/* Half tiles where they leave fewer multiprocessors idle. */
static enum cuda_kernel narrow_kernel(const struct launcher *launcher,
                                      const struct contract_args *args)
{
    const uint64_t processors = launcher->processors == 0 ? 1 : launcher->processors;
    const uint64_t whole = hopper_tiles(args, HOPPER_COLUMNS) + processors - 1;
    const uint64_t half = hopper_tiles(args, HOPPER_COLUMNS / 2) + processors - 1;

    return half / processors * HALF_WAVE_PERCENT < whole / processors * 100
               ? KERNEL_HOPPER_NARROW_HALF
               : KERNEL_HOPPER_NARROW;
}

/* Products by halves: where they are quicker, or where bytes have no kernel. */
static bool half_takes(const struct launcher *launcher, const struct contraction_shape *shape)
{
    return shape->piece % PACKED_STEP == 0 && launch_allows(launcher, VARIANT_HALF);
}

bool contract_by_halves(const struct launcher *launcher, enum unit_family family, int bits)
{
    return launch_allows(launcher, VARIANT_HALF) &&
           ((launcher->quicker & QUICKER(family, unit_width_of(bits))) != 0 ||
            !launch_allows(launcher, VARIANT_MMA));
}

/* mma and half take pieces of whole steps, wgmma whole pieces. */
enum kernel_variant contract_variant_of(const struct launcher *launcher,
                                        const struct contraction_shape *shape)
{
    const uint32_t quicker = QUICKER(UNITS_PRODUCTS, unit_width_of(shape->bits));

    if ((launcher->quicker & quicker) != 0 && half_takes(launcher, shape)) {
        return VARIANT_HALF;
    }
    if (launcher->capability == HOPPER_CAPABILITY && shape->bits == 14 &&
        shape->piece == CONTRACTION_PIECE && launch_allows(launcher, VARIANT_WGMMA)) {
        return VARIANT_WGMMA;
    }
    if (shape->piece % PACKED_STEP == 0 && launch_allows(launcher, VARIANT_MMA)) {
        return VARIANT_MMA;
    }
    return half_takes(launcher, shape) ? VARIANT_HALF : VARIANT_PLAIN;
}

uint32_t contract_reach_log(const struct contraction_shape *shape, enum kernel_variant variant)
{
    const uint64_t reach = variant == VARIANT_HALF    ? packed_reach_of_halves(shape->bits)
                           : variant == VARIANT_WGMMA ? HOPPER_REACH
                                                      : packed_reach(shape->bits);
    const bool is_short = shape->blocks > 1 && (uint64_t)shape->block < reach;

    return (uint32_t)ceil_log2(is_short ? (uint64_t)shape->block : reach);
}

static enum cuda_kernel half_kernel(const struct contraction_shape *shape)
{
    if (shape->bits != 14) {
        return shape->bits == 22 ? KERNEL_HALVES_THREE : KERNEL_HALVES_WIDE;
    }
    return 1u << contract_reach_log(shape, VARIANT_HALF) <= HALVES_SHORT ? KERNEL_HALVES_SHORT
                                                                         : KERNEL_HALVES_LONG;
}

static struct contract_kernel wgmma_kernel(const struct launcher *launcher,
                                           const struct contract_args *args)
{
    const enum cuda_kernel kernel = narrow_kernel(launcher, args);

    return (struct contract_kernel){kernel, HOPPER_ROWS,
                                    kernel == KERNEL_HOPPER_NARROW_HALF ? HOPPER_COLUMNS / 2
                                                                        : HOPPER_COLUMNS};
}

struct contract_kernel contract_kernel_of(const struct launcher *launcher,
                                          const struct contraction_shape *shape,
                                          const struct contract_args *args)
{
    const uint32_t rows = shape->bits == 22 ? CONTRACT_ROWS_THREE : CONTRACT_ROWS;

    switch ((int)contract_variant_of(launcher, shape)) {
    case VARIANT_WGMMA:
        return wgmma_kernel(launcher, args);
    case VARIANT_MMA:
        return (struct contract_kernel){shape->bits == 14   ? KERNEL_CONTRACT_NARROW
                                        : shape->bits == 22 ? KERNEL_CONTRACT_THREE
                                                            : KERNEL_CONTRACT_WIDE,
                                        rows, CONTRACT_COLUMNS};
    case VARIANT_HALF:
        return (struct contract_kernel){half_kernel(shape), rows, CONTRACT_COLUMNS};
    default:
        return (struct contract_kernel){KERNEL_CONTRACT_PLAIN, PLAIN_TILE, PLAIN_TILE};
    }
}

#define TIMED_K_MAX 4096

/* ---- self-tests ------------------------------------------------------------------------ */

struct product_case {
    int bits;
    int block;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t causal;
    bool split; /* k is long, and is split over blocks */
};

static void add_product(struct selftest_tape *tape, const struct product_case *product)
{
    const int64_t sizes[3] = {1, product->m, product->n};
    const int64_t k = product->k;
    const uint32_t x = selftest_give_rows(tape, product->m, k);
    const uint32_t y = selftest_give_rows(tape, product->n, k);
    const struct op *a =
        selftest_quantize(tape, x, 1, product->m, k, product->bits, product->block, true);
    const struct op *b =
        selftest_quantize(tape, y, 1, product->n, k, product->bits, product->block, true);

    selftest_contract(tape, a, b, sizes, k, false)->attributes[CONTRACT_CAUSAL] = product->causal;
    tape->splits = product->split;
}

void contract_wgmma_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct product_case products[WGMMA_SELFTESTS] = {
        {14, 128, 130, 70, 300, 0, false},
        {14, 256, 133, 40, 390, 0, false},
        {14, 0, 70, 40, 64, 70, false},
        {14, 128, 50, 20, 1200, 0, true},
    };

    add_product(tape, &products[part]);
}

void contract_mma_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct product_case products[MMA_SELFTESTS] = {
        {14, 128, 130, 40, 300, 0, false}, {16, 32, 70, 40, 160, 0, false},
        {14, 64, 40, 40, 1100, 40, true},  {22, 0, 70, 70, 160, 0, false},
        {22, 128, 40, 20, 1100, 40, true},
    };

    add_product(tape, &products[part]);
}

/*
 * What shows a unit that drops a bit of a sum (packed.h): limbs at their largest, of which the sum
 * h + l is odd, so that a bit that is missing anywhere is missing in the result.
 */
#define PEAK_NARROW  (-8128)  /* h + l = -127 */
#define OTHER_NARROW 8127     /* 126 */
#define PEAK_WIDE    (-32640) /* -255 */
#define OTHER_WIDE   32639    /* 254 */

/* Peaks, and one 1 among them: of two rows alike it is the product behind 127 peaks. */
static float fill_places(uint64_t row, uint64_t k)
{
    return (float)(k % 128 == row ? 1 : PEAK_NARROW) * 0x1p-13f;
}

/*
 * Row 0: peaks alone. 1: the last of them even. 2: 64 of one sign, 64 of the other. 3: zeros of
 * both signs. 4 to 7: so many peaks, then small odd numbers, so that sums come to just under 2^21,
 * 2^23 and 2^24, and over 2^23 by ones. Others: any of these numbers.
 */
static float fill_sums(uint64_t row, uint64_t k, const int32_t numbers[2], const uint32_t peaks[4])
{
    const uint64_t mixed = (row * 31 + k) * UINT64_C(0x9e3779b97f4a7c15) >> 60;
    const int32_t any[4] = {numbers[0], numbers[1], 1, -1};

    switch (row) {
    case 0:
        return (float)numbers[0];
    case 1:
        return (float)numbers[k % 256 == 255 ? 1 : 0];
    case 2:
        return (float)numbers[k % 128 < 64 ? 0 : 1];
    case 3:
        return k % 2 == 0 ? 0.0f : -0.0f;
    case 4:
    case 5:
    case 6:
    case 7:
        return (float)(k < peaks[row - 4] ? numbers[0] : row % 2 == 0 ? 1 : 3);
    default:
        return (float)any[mixed % 4];
    }
}

static float fill_narrow(uint64_t row, uint64_t k)
{
    static const int32_t numbers[2] = {PEAK_NARROW, OTHER_NARROW};
    static const uint32_t peaks[4] = {130, 520, 519, 1023};

    /* Behind the longest sum, exponents of every other row differ: shifts are met. */
    return fill_sums(row, k, numbers, peaks) * (k >= 1024 && row % 2 == 0 ? 0x1p-18f : 0x1p-13f);
}

static float fill_wide(uint64_t row, uint64_t k)
{
    static const int32_t numbers[2] = {PEAK_WIDE, OTHER_WIDE};
    static const uint32_t peaks[4] = {32, 129, 128, 255};

    return fill_sums(row, k, numbers, peaks) * 0x1p-15f;
}

static void add_filled(struct selftest_tape *tape, int bits, int block, int64_t rows, int64_t k,
                       selftest_fill *fill)
{
    const int64_t sizes[3] = {1, rows, rows};
    const uint32_t x = selftest_give_filled(tape, rows, k, fill);
    const uint32_t y = selftest_give_filled(tape, rows, k, fill);
    const struct op *a = selftest_quantize(tape, x, 1, rows, k, bits, block, true);
    const struct op *b = selftest_quantize(tape, y, 1, rows, k, bits, block, true);

    (void)selftest_contract(tape, a, b, sizes, k, false);
}

void contract_half_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct product_case products[] = {
        {14, 64, 70, 40, 96, 0, false},
        {16, 32, 70, 40, 96, 0, false},
        {22, 128, 40, 40, 160, 0, false},
    };
    static const struct {
        int bits;
        int block;
        int64_t rows;
        int64_t k;
        selftest_fill *fill;
    } filled[] = {
        {14, 128, 128, 128, fill_places},
        {14, 1024, 16, 1056, fill_narrow},
        {14, 256, 16, 288, fill_narrow},
        {16, 256, 16, 288, fill_wide},
    };
    const uint32_t random = sizeof(products) / sizeof(products[0]);

    if (part < random) {
        add_product(tape, &products[part]);
        return;
    }
    add_filled(tape, filled[part - random].bits, filled[part - random].block,
               filled[part - random].rows, filled[part - random].k, filled[part - random].fill);
}

/* A tile to each multiprocessor, and a little more. */
void contract_timed(struct selftest_tape *tape, int bits, int64_t processors)
{
    const int64_t k = selftest_timed_k(processors, TIMED_K_MAX);
    int64_t side = 1;

    while (side * side < processors) {
        side++;
    }
    const struct product_case product = {bits, 128,  side * CONTRACT_ROWS, side * CONTRACT_ROWS, k,
                                         0,    false};

    add_product(tape, &product);
}

void contract_plain_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct product_case products[PLAIN_SELFTESTS] = {
        {22, 0, 40, 33, 100, 0, false},
        {14, 16, 33, 40, 100, 0, false},
    };

    add_product(tape, &products[part]);
}
