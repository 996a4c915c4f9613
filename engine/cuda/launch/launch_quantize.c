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

/* ---- both views from one read ------------------------------------------------------ */

bool launch_has_tiles(const struct op *op)
{
    return op->kind == OP_QUANTIZE && op->attribute_count == TILES_ATTRIBUTES;
}

/* The quantization of the rows, but for its view. False: there is none. */
bool launch_tiles_along(struct op *along, const struct op *op)
{
    if (!launch_has_tiles(op) || op->output_count < 2 * TILES_ALONG) {
        return false;
    }
    const int64_t width = op->attributes[TILES_WIDTH];
    const int64_t height = contraction_shape_of(op).k;

    *along = *op;
    along->attribute_count = QUANTIZE_ATTRIBUTES;
    for (int axis = 0; axis < 6; axis++) {
        along->attributes[QUANTIZE_DIMS + axis] = 1;
    }
    along->attributes[QUANTIZE_DIMS + 3] = quantize_rows(op) / width * height;
    along->attributes[QUANTIZE_DIMS + 5] = width;
    along->output_count = TILES_ALONG;
    for (uint32_t i = 0; i < TILES_ALONG; i++) {
        along->outputs[i] = op->outputs[TILES_ALONG + i];
    }
    return true;
}

/* Does every row of the matrix begin at a multiple of 16 bytes, and end at one? */
static bool rows_are_quads(const struct op *op, const void *x)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    bool quads = launch_is_aligned(x) && op->attributes[TILES_WIDTH] % 4 == 0;

    for (int axis = 0; axis < 6; axis++) {
        quads = quads && (dims[axis] == 1 || strides[axis] == 1 || strides[axis] % 4 == 0);
    }
    return quads;
}

/* What the numbers are made of, beside x. */
static void take_others(struct tiles_args *args, const struct launcher *launcher,
                        const struct op *op)
{
    switch ((enum tiles_code)args->code) {
    case TILES_PLAIN:
    case TILES_GELU:
    case TILES_SILU:
        break;
    case TILES_ENTROPY:
        args->targets = input_memory(launcher, op, 1);
        args->dloss = input_memory(launcher, op, 2);
        args->maximum = input_memory(launcher, op, 3);
        args->sum = input_memory(launcher, op, 4);
        break;
    case TILES_LAYER_NORM:
        args->gain = input_memory(launcher, op, 1);
        args->bias = input_memory(launcher, op, 2);
        args->mean = input_memory(launcher, op, 3);
        args->rstd = input_memory(launcher, op, 4);
        break;
    case TILES_RMS_NORM:
        args->gain = input_memory(launcher, op, 1);
        args->rstd = input_memory(launcher, op, 2);
        break;
    case TILES_SLOPES:
        args->mean = input_memory(launcher, op, 1);
        args->rstd = input_memory(launcher, op, 2);
        break;
    }
}

/* The input that is dy; 0: there is none. */
static uint32_t slopes_input(const struct op *op)
{
    const uint32_t input = op->attributes[TILES_FUNCTION] == TILES_SLOPES       ? 3
                           : op->attributes[TILES_FUNCTION] == TILES_LAYER_NORM ? 5
                                                                                : 0;

    return input < op->input_count ? input : 0;
}

/* Both sums of dy, and their scratch: peaks and sums of pieces of each. */
static void take_slopes(struct tiles_args *args, const struct launcher *launcher,
                        const struct op *op, uint8_t *scratch)
{
    args->dy = input_memory(launcher, op, slopes_input(op));
    args->quads = args->quads && launch_is_aligned(args->dy);
    for (uint32_t i = 0; i < 2; i++) {
        struct tiles_sums *own = &args->slopes[i];

        own->view = args->across;
        own->view.planes = NULL;
        own->view.exponents = NULL;
        own->view.peaks = (int16_t *)scratch;
        own->parts = (int32_t *)(scratch + peaks_size(op));
        own->sums = output_memory(launcher, op, TILES_ALONG + i);
        scratch += 3 * peaks_size(op);
    }
}

static struct tiles_args tiles_args_of(const struct launcher *launcher, const struct op *op)
{
    const uint32_t sums = op->output_count - 1;
    uint8_t *scratch = launcher->scratch;
    struct tiles_args args = {.across = launch_quantize_args(launcher, op),
                              .width = (uint64_t)op->attributes[TILES_WIDTH],
                              .code = (uint32_t)op->attributes[TILES_FUNCTION],
                              .quads = rows_are_quads(op, input_memory(launcher, op, 0))};
    struct op along;

    args.across.exponents = output_memory(launcher, op, 1);
    scratch += peaks_size(op);
    if (launch_tiles_along(&along, op)) {
        args.along = launch_quantize_args(launcher, &along);
        args.along.exponents = output_memory(launcher, &along, 1);
        if (output_memory(launcher, &along, 0) == NULL) {
            args.along.peaks = (int16_t *)scratch;
        }
        scratch += peaks_size(&along);
    }
    take_others(&args, launcher, op);
    if (slopes_input(op) != 0) {
        take_slopes(&args, launcher, op, scratch);
    } else if (sums % TILES_ALONG == 0) {
        args.sums = output_memory(launcher, op, sums);
        args.parts = args.sums == NULL ? NULL : (int32_t *)scratch;
    }
    return args;
}

enum device_result launch_tiles(const struct launcher *launcher, const struct op *op)
{
    const struct tiles_args args = tiles_args_of(launcher, op);
    const uint64_t squares = args.across.rows / args.width * args.across.pieces *
                             ((args.width + TILES_SIDE - 1) / TILES_SIDE);

    assert(launcher->packed && args.across.k <= UINT32_MAX);
    DEVICE_TRY(launch_work(launcher, KERNEL_QUANTIZE_TILES, squares, 1, TILES_THREADS, &args,
                           (uint32_t)sizeof(args)));
    return LAUNCH_WORK(launcher, KERNEL_QUANTIZE_RAISE,
                       (args.dy != NULL ? 3 : 1) * args.across.rows + args.along.rows,
                       BLOCK_THREADS / CUDA_WARP, args);
}

/* Peaks of both, and sums of pieces. */
static uint64_t tiles_scratch(const struct op *op)
{
    struct op along;

    return slopes_input(op) != 0
               ? 7 * peaks_size(op)
               : 3 * peaks_size(op) + (launch_tiles_along(&along, op) ? peaks_size(&along) : 0);
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
    return launch_has_tiles(op)
               ? tiles_scratch(op)
               : peaks_size(op) + packed_round_up(tensors[op->outputs[1]].count * sizeof(int16_t),
                                                  PACKED_ALIGNMENT);
}
