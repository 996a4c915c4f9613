/* contract_kernel.c - see contract_way.h. */
#include "engine/cuda/launch/contract_kernel.h"

#include "engine/cuda/kernels/packed.h"

static bool barred(const struct launcher *launcher, enum contract_path path)
{
    return (launcher->barred >> path & 1) != 0;
}

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

/* What a wave of half tiles takes of one of whole tiles: more than half, for A is read as often. */
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

/* Two tiles to a pair: worth it where every multiprocessor has several. */
static bool worth_pairs(const struct launcher *launcher, const struct contract_args *args)
{
    return launcher->processors > 1 &&
           hopper_tiles(args, HOPPER_COLUMNS) >= (uint64_t)launcher->processors * 2 &&
           narrow_kernel(launcher, args) == KERNEL_HOPPER_NARROW;
}

/* mma takes pieces of whole steps, wgmma whole pieces. */
enum contract_path contract_path_of(const struct launcher *launcher,
                                    const struct contraction_shape *shape,
                                    const struct contract_args *args)
{
    if (launcher->capability == HOPPER_CAPABILITY && shape->piece == CONTRACTION_PIECE) {
        if (!barred(launcher, CONTRACT_BY_PAIRS) && shape->bits == 14 && args->causal == 0 &&
            (barred(launcher, CONTRACT_BY_WGMMA) || worth_pairs(launcher, args))) {
            return CONTRACT_BY_PAIRS;
        }
        if (!barred(launcher, CONTRACT_BY_WGMMA)) {
            return CONTRACT_BY_WGMMA;
        }
    }
    if (shape->piece % PACKED_STEP == 0 && !barred(launcher, CONTRACT_BY_MMA)) {
        return CONTRACT_BY_MMA;
    }
    return CONTRACT_PLAINLY;
}

struct contract_way contract_way_of(const struct launcher *launcher,
                                    const struct contraction_shape *shape,
                                    const struct contract_args *args)
{
    struct contract_way way = {KERNEL_CONTRACT_PLAIN, PLAIN_TILE, PLAIN_TILE};

    switch (contract_path_of(launcher, shape, args)) {
    case CONTRACT_BY_PAIRS:
        way.kernel = KERNEL_HOPPER_NARROW_PAIR;
        way.rows = HOPPER_ROWS;
        way.columns = HOPPER_COLUMNS;
        break;
    case CONTRACT_BY_WGMMA:
        way.kernel = shape->bits == 14   ? narrow_kernel(launcher, args)
                     : shape->bits == 22 ? KERNEL_HOPPER_THREE
                                         : KERNEL_HOPPER_WIDE;
        way.rows = HOPPER_ROWS;
        way.columns = way.kernel == KERNEL_HOPPER_NARROW_HALF || way.kernel == KERNEL_HOPPER_THREE
                          ? HOPPER_COLUMNS / 2
                          : HOPPER_COLUMNS;
        break;
    case CONTRACT_BY_MMA:
        way.kernel = shape->bits == 14   ? KERNEL_CONTRACT_NARROW
                     : shape->bits == 22 ? KERNEL_CONTRACT_THREE
                                         : KERNEL_CONTRACT_WIDE;
        way.rows = shape->bits == 22 ? CONTRACT_ROWS_THREE : CONTRACT_ROWS;
        way.columns = CONTRACT_COLUMNS;
        break;
    case CONTRACT_PLAINLY:
    case CONTRACT_PATHS:
        break;
    }
    return way;
}
