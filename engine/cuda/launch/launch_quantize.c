/* launch_quantize.c - see launch_quantize.h. */
#include "engine/cuda/launch/launch_quantize.h"

/* ---- the view ------------------------------------------------------------------- */

/* Does the view's innermost row axis run along memory, and its k axes not? */
static bool view_across(const struct op *op)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    int64_t k_stride = dims[5] > 1 ? strides[5] : dims[4] > 1 ? strides[4] : 1;
    int axis = 3;

    while (axis > 0 && dims[axis] == 1) {
        axis--;
    }
    return k_stride != 1 && strides[axis] == 1;
}

/* Is each row a run of memory that can be read by 16 bytes, of whole pieces? */
static bool view_of_runs(const struct op *op, const struct contraction_shape *shape, const void *x)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    bool runs = shape->piece == CONTRACTION_PIECE && shape->k % 4 == 0 &&
                (shape->blocks == 1 || shape->block_span == 1) && (uintptr_t)x % 16 == 0 &&
                (dims[5] == 1 || strides[5] == 1) && (dims[4] == 1 || strides[4] == dims[5]);

    for (int axis = 0; axis < 4; axis++) {
        runs = runs && (dims[axis] == 1 || strides[axis] % 4 == 0);
    }
    return runs;
}

#define TEAM_K        1024 /* rows of more elements are shared by all warps of a block */
#define LONG_ROW_K    16384
#define LONG_ROWS_FEW 128

static uint64_t peaks_size(const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return packed_round_up((uint64_t)quantize_rows(op) * (uint64_t)shape.pieces * sizeof(int16_t),
                           PACKED_ALIGNMENT);
}

/* One block of threads would take each row, and the rest of the device would be idle. */
static bool few_long_rows(const struct quantize_args *args)
{
    return args->rows < LONG_ROWS_FEW && args->k > LONG_ROW_K;
}

struct quantize_args launch_quantize_args(const struct launcher *launcher, const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);
    uint64_t rows = (uint64_t)quantize_rows(op);
    struct packed packed = packed_for(&shape, rows);
    struct quantize_args args = {.x = input_memory(launcher, op, 0),
                                 .peaks = output_memory(launcher, op, 0),
                                 .exponents = output_memory(launcher, op, 1),
                                 .batch_rows = (uint64_t)(op->attributes[2] * op->attributes[3]),
                                 .rows = rows,
                                 .plane_size = packed.plane_size,
                                 .strip_size = packed.strip_size,
                                 .shift_pitch = packed.shift_pitch,
                                 .line_log = packed.line_log,
                                 .k = (uint64_t)shape.k,
                                 .block = (uint64_t)shape.block,
                                 .blocks = (uint64_t)shape.blocks,
                                 .block_log = block_log_of(&shape),
                                 .piece = (uint64_t)shape.piece,
                                 .pieces = (uint64_t)shape.pieces,
                                 .block_span = (uint64_t)shape.block_span,
                                 .window = shape.window,
                                 .bits = shape.bits,
                                 .across = view_across(op)};
    uint8_t *q = output_memory(launcher, op, 2);
    const enum dtype dtype = launcher->tape->tensors[op->inputs[0]].dtype;

    /* The kernel widens numbers of 16 bits itself: a copy of 32 bits would take twice their
     * memory. */
    if (dtype_is_half(dtype)) {
        args.half = args.x;
        args.x = NULL;
        args.dtype = (uint32_t)dtype;
    }
    if (quantize_is_shifted(op)) {
        args.c = input_memory(launcher, op, 1);
    }
    for (int axis = 0; axis < 6; axis++) {
        args.dims[axis] = op->attributes[QUANTIZE_DIMS + axis];
        args.strides[axis] = op->attributes[QUANTIZE_STRIDES + axis];
    }
    /* What nobody reads is omitted from the plan and has no memory; the kernel still writes it, to
     * scratch. */
    if (args.peaks == NULL) {
        args.peaks = (int16_t *)launcher->scratch;
    }
    if (args.exponents == NULL) {
        args.exponents = (int16_t *)(launcher->scratch + peaks_size(op));
    }
    /* The numbers as a contraction reads them, in planes of bytes, where no observer wants them
     * plain. */
    if (launcher->packed && q != NULL) {
        args.planes = q;
        args.shifts = q + packed.shifts;
        args.lowest = (int32_t *)(q + packed.lowest);
    } else {
        args.q = q;
    }
    return args;
}

/* ---- columns ----------------------------------------------------------------------- */

#define COLUMNS_SHARED_TWICE (96 * 1024) /* leaves room for a second block */

/* As many as leave room for two blocks; where none do, the fewest that are worth it; 0: they do not
 * fit. */
static uint32_t columns_that_fit(uint32_t shared_max, uint64_t k)
{
    const uint64_t most = shared_max == 0 ? SHARED_USUAL : shared_max;
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

static uint32_t columns_for(const struct launcher *launcher, const struct quantize_args *args)
{
    if (!launch_allows(launcher, VARIANT_COLUMNS) || !args->across || args->planes == NULL ||
        args->piece != CONTRACTION_PIECE || (args->blocks > 1 && args->block_span != 1)) {
        return 0;
    }
    return columns_that_fit(launcher->shared_max, args->k);
}

/* Blocks hold args->team columns each. */
static enum device_result launch_columns(const struct launcher *launcher,
                                         const struct quantize_args *args)
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

/* Views across memory, some rows too many for a group, all widths. */
void launch_columns_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct {
        int64_t batches;
        int64_t rows;
        int64_t k;
        int bits;
        int block;
    } shapes[COLUMNS_SELFTESTS] = {
        {2, 37, 300, 14, 128}, {1, 19, 1030, 16, 128}, {1, 9, 60, 22, 0}};
    const int64_t batches = shapes[part].batches;
    const int64_t rows = shapes[part].rows;
    const int64_t k = shapes[part].k;
    const uint32_t x = selftest_give(tape, DTYPE_F32, (uint64_t)(batches * rows * k));
    const struct op *q =
        selftest_quantize(tape, x, batches, rows, k, shapes[part].bits, shapes[part].block, false);

    (void)selftest_dots(tape, q, q, batches * rows, k);
    (void)selftest_ones(tape, q, batches * rows, k);
    selftest_show(tape, q->outputs[1]);
}

/* ---- one operation ---------------------------------------------------------------- */

enum device_result launch_quantize(const struct launcher *launcher, const struct op *op)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    struct quantize_args args = launch_quantize_args(launcher, op);
    const uint64_t rows = args.rows;
    const uint8_t *q = output_memory(launcher, op, 2);
    uint64_t width;

    if (args.planes != NULL && args.c == NULL && args.x != NULL &&
        view_of_runs(op, &shape, args.x) && !few_long_rows(&args)) {
        args.team = args.k > TEAM_K ? BLOCK_THREADS / CUDA_WARP : 1;
        return LAUNCH_WORK(launcher, KERNEL_QUANTIZE_ROWS, rows,
                           BLOCK_THREADS / CUDA_WARP / args.team, args);
    }
    args.team = columns_for(launcher, &args);
    if (args.team != 0) {
        args.peaks = output_memory(launcher, op, 0);
        return launch_columns(launcher, &args);
    }
    width = args.planes != NULL ? packed_round_up(args.k, UINT64_C(1) << args.line_log) : args.k;
    DEVICE_TRY(LAUNCH_WORK(launcher, KERNEL_QUANTIZE_PEAKS, rows * args.pieces, 8, args));
    DEVICE_TRY(LAUNCH_WORK(launcher, KERNEL_QUANTIZE_EXPONENTS, rows, 8, args));
    if (q == NULL) {
        return DEVICE_OK;
    }
    const uint64_t tiles = (rows + QUANTIZE_TILE_ROWS - 1) / QUANTIZE_TILE_ROWS *
                           ((width + QUANTIZE_TILE_K - 1) / QUANTIZE_TILE_K);

    return launch_grid(launcher, KERNEL_QUANTIZE_INTEGERS, tiles, BLOCK_THREADS, &args,
                       sizeof(args));
}

uint64_t launch_quantize_scratch(const struct op *op, const struct tensor *tensors)
{
    return peaks_size(op) +
           packed_round_up(tensors[op->outputs[1]].count * sizeof(int16_t), PACKED_ALIGNMENT);
}
