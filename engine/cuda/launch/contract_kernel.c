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

/* mma takes pieces of whole steps, wgmma whole pieces. */
enum kernel_variant contract_variant_of(const struct launcher *launcher,
                                        const struct contraction_shape *shape)
{
    if (launcher->capability == HOPPER_CAPABILITY && shape->bits == 14 &&
        shape->piece == CONTRACTION_PIECE && launch_allows(launcher, VARIANT_WGMMA)) {
        return VARIANT_WGMMA;
    }
    return shape->piece % PACKED_STEP == 0 && launch_allows(launcher, VARIANT_MMA) ? VARIANT_MMA
                                                                                   : VARIANT_PLAIN;
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
    switch ((int)contract_variant_of(launcher, shape)) {
    case VARIANT_WGMMA:
        return wgmma_kernel(launcher, args);
    case VARIANT_MMA:
        return (struct contract_kernel){shape->bits == 14   ? KERNEL_CONTRACT_NARROW
                                        : shape->bits == 22 ? KERNEL_CONTRACT_THREE
                                                            : KERNEL_CONTRACT_WIDE,
                                        shape->bits == 22 ? CONTRACT_ROWS_THREE : CONTRACT_ROWS,
                                        CONTRACT_COLUMNS};
    default:
        return (struct contract_kernel){KERNEL_CONTRACT_PLAIN, PLAIN_TILE, PLAIN_TILE};
    }
}

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
        {14, 128, 133, 40, 390, 0, false},
        {14, 0, 70, 40, 64, 70, false},
        {14, 128, 50, 20, 1200, 0, true},
    };

    add_product(tape, &products[part]);
}

void contract_mma_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct product_case products[MMA_SELFTESTS] = {
        {14, 128, 130, 66, 300, 0, false}, {16, 32, 70, 40, 160, 0, false},
        {14, 64, 40, 40, 1200, 40, true},  {22, 0, 70, 70, 300, 0, false},
        {22, 128, 40, 20, 1200, 40, true},
    };

    add_product(tape, &products[part]);
}

void contract_plain_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct product_case products[PLAIN_SELFTESTS] = {
        {22, 0, 40, 33, 100, 0, false},
        {14, 16, 33, 40, 100, 0, false},
    };

    add_product(tape, &products[part]);
}
