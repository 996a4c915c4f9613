/* launch_fused.c - launches that spare passes and launches; see launch_core.h. */
#include "engine/cuda/launch/launch_core.h"

/* ---- sums without tiles ---------------------------------------------------------- */

#define DOTS_K_MAX    65536 /* a row of more is split over many tiles' worth of blocks, elsewhere */
#define DOTS_ROWS_FEW 64    /* but not where there are rows enough to fill a device */
#define DOTS_TEAM_K   1024  /* rows of more elements are shared by all warps of a block */

bool launch_dots_takes(const struct launcher *launcher, uint64_t m, uint64_t n, uint64_t batches,
                       uint64_t k)
{
    return launch_way_free(launcher, WAY_DOTS) && m == 1 && n == 1 &&
           (k <= DOTS_K_MAX || batches >= DOTS_ROWS_FEW);
}

enum device_result launch_dots(const struct launcher *launcher, struct dots_args *args)
{
    const uint32_t warps = BLOCK_THREADS / CUDA_WARP;

    args->team = args->k > DOTS_TEAM_K ? warps : 1;
    return LAUNCH_WORK(launcher, KERNEL_DOTS, args->rows, warps / args->team, *args);
}

/* ---- columns ----------------------------------------------------------------------- */

#define COLUMNS_SHARED_TWICE (96 * 1024) /* so much leaves room for a second block beside it */

/* As many columns as let two blocks lie side by side, else as few as are worth it. */
uint32_t launch_columns_of(uint32_t shared_max, uint64_t k)
{
    const uint64_t most = shared_max == 0 ? 48 * 1024 : shared_max;
    const uint64_t pieces = (k + CONTRACTION_PIECE - 1) / CONTRACTION_PIECE;
    uint32_t columns = COLUMNS_MAX;

    while (columns > COLUMNS_MIN && (COLUMNS_SHARED(columns, k) > COLUMNS_SHARED_TWICE ||
                                     columns * pieces > COLUMNS_PIECES_MAX)) {
        columns /= 2;
    }
    if (COLUMNS_SHARED(columns, k) + COLUMNS_SHARED_STATIC > most ||
        columns * pieces > COLUMNS_PIECES_MAX) {
        return 0;
    }
    return columns;
}

uint32_t launch_columns_fit(const struct launcher *launcher, const struct quantize_args *args)
{
    if (!launch_way_free(launcher, WAY_COLUMNS) || !args->across || args->planes == NULL ||
        args->piece != CONTRACTION_PIECE || (args->blocks > 1 && args->block_span != 1)) {
        return 0;
    }
    return launch_columns_of(launcher->shared_max, args->k);
}

enum device_result launch_columns(const struct launcher *launcher, struct quantize_args *args)
{
    const uint64_t groups = (args->rows + args->team - 1) / args->team;
    const struct device_launch launch = {
        .kernel = KERNEL_QUANTIZE_COLUMNS,
        .grid = {(uint32_t)(groups < launcher->block_count ? groups : launcher->block_count), 1, 1},
        .block = COLUMNS_THREADS,
        .shared_size = (uint32_t)COLUMNS_SHARED(args->team, args->k),
        .arguments_size = sizeof(*args),
        .arguments = args};

    return launcher->calls->launch(launcher->device, &launch);
}

/* What a chain of fuse_sums.c says: the quantization, and the sums. */
enum device_result launch_column_sums(const struct launcher *launcher, const struct chain *chain)
{
    struct column_sums_args args = {.view = launch_quantize_args(launcher, &chain->ops[0]),
                                    .out = output_memory(launcher, &chain->ops[1], 0)};

    args.view.peaks = NULL;
    if (args.view.k <= CONTRACTION_PIECE) {
        return LAUNCH_WORK(launcher, KERNEL_SHORT_SUMS, args.view.rows, BLOCK_THREADS, args);
    }
    args.view.team = launch_columns_of(launcher->shared_max, args.view.k);
    assert(args.view.team > 0); /* fuse_sums.c takes no others */
    const uint64_t groups = (args.view.rows + args.view.team - 1) / args.view.team;
    const struct device_launch launch = {
        .kernel = KERNEL_COLUMN_SUMS,
        .grid = {(uint32_t)(groups < launcher->block_count ? groups : launcher->block_count), 1, 1},
        .block = COLUMNS_THREADS,
        .shared_size = (uint32_t)COLUMNS_SHARED(args.view.team, args.view.k),
        .arguments_size = sizeof(args),
        .arguments = &args};

    return launcher->calls->launch(launcher->device, &launch);
}

/* ---- held rows --------------------------------------------------------------------- */

bool launch_held_takes(const struct launcher *launcher, const struct op *op)
{
    return launch_way_free(launcher, WAY_HELD) && fuse_holds_rows(op);
}

enum device_result launch_held(const struct launcher *launcher, const struct rows_args *rows,
                               const struct quantize_args *quantize)
{
    struct held_args args = {.rows = *rows};

    if (quantize != NULL) {
        args.quantize = *quantize;
        args.quantize.team = 1;
    }
    return LAUNCH_WORK(launcher, KERNEL_HELD, rows->rows, ROWS_WARPS, args);
}

/* ---- lists ------------------------------------------------------------------------- */

enum device_result launch_updates(const struct launcher *launcher, const struct fused_updates *run)
{
    const struct updates_args args = {.items = run->items,
                                      .firsts = run->firsts,
                                      .end_tile = run->tiles,
                                      .item_count = run->end - run->at};

    return LAUNCH_WORK(launcher, KERNEL_UPDATES, run->tiles, 1, args);
}

enum device_result launch_squares(const struct launcher *launcher, const struct fused_squares *run)
{
    const struct op *op = &launcher->fusion->ops[run->at];
    const struct total_args total = {
        .terms = run->terms, .out = output_memory(launcher, op, 0), .count = run->term_count};
    enum device_result result = DEVICE_OK;

    if (run->rows.tiles > 0) {
        result = LAUNCH_WORK(launcher, KERNEL_SQUARES, run->rows.tiles, 1, run->rows);
    }
    if (result == DEVICE_OK && run->sums.tiles > 0) {
        result = LAUNCH_WORK(launcher, KERNEL_SQUARES, run->sums.tiles, 1, run->sums);
    }
    return result != DEVICE_OK
               ? result
               : launch_grid(launcher, KERNEL_TOTAL, 1, CUDA_WARP, &total, (uint32_t)sizeof(total));
}
