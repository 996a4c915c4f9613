/* launch.c - see launch.h. */
#include "engine/cuda/launch/launch_core.h"

#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/launch/epilogue.h"
#include "engine/ops/kernel.h"

#define GRID_Y_MAX 65535
/* Kernels count the elements of a row in 32 bits. */
#define ROW_MAX    UINT64_C(0xffffff00)

/* ---- by the rules --------------------------------------------------------- */

static struct operand operand_of(const struct launcher *launcher, uint32_t id)
{
    const struct tensor *tensor = &launcher->tape->tensors[id];

    return (struct operand){.memory = launcher->memory[id],
                            .dtype = tensor->dtype,
                            .count = tensor->count,
                            .tensor = id};
}

static enum device_result launch_rules(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];
    struct rule_args args = {.call = {.op = &launcher->ops[at]}};
    enum device_result result = DEVICE_OK;

    for (uint32_t i = 0; i < op->input_count; i++) {
        args.call.inputs[i] = operand_of(launcher, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.call.outputs[i] = operand_of(launcher, op->outputs[i]);
        assert(args.call.outputs[i].memory != NULL);
    }
    for (uint32_t i = 0; i < op->output_count && result == DEVICE_OK; i++) {
        args.output = i;
        args.count = launcher->tape->tensors[op->outputs[i]].count;
        result = LAUNCH_WORK(launcher, KERNEL_RULE, args.count, BLOCK_THREADS, args);
    }
    return result;
}

/* ---- element by element ---------------------------------------------------- */

/* The kinds of kernel_elements. */
static bool is_elementwise(enum op_kind kind)
{
    switch ((int)kind) {
    case OP_EXPAND:
    case OP_FILL:
    case OP_ADD:
    case OP_MUL:
    case OP_SCALE:
    case OP_RELU:
    case OP_RELU_GRAD:
    case OP_GELU:
    case OP_GELU_GRAD:
    case OP_SILU:
    case OP_SILU_GRAD:
    case OP_SQUARED_ERROR:
    case OP_SQUARED_ERROR_GRAD:
    case OP_CROSS_ENTROPY_GRAD:
    case OP_SGD:
    case OP_ADAMW:
        return true;
    default:
        return false;
    }
}

static bool all_words(const struct op *op, const struct tensor *tensors)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (dtype_size(tensors[op->inputs[i]].dtype) != 4) {
            return false;
        }
    }
    return true;
}

static enum device_result launch_elements(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];
    struct elements_args args = {.op = &launcher->ops[at],
                                 .count = launcher->tape->tensors[op->outputs[0]].count};

    for (uint32_t i = 0; i < op->input_count; i++) {
        args.inputs[i] = input_memory(launcher, op, i);
        args.input_counts[i] = launcher->tape->tensors[op->inputs[i]].count;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.outputs[i] = output_memory(launcher, op, i);
        assert(args.outputs[i] != NULL);
    }
    return LAUNCH_WORK(launcher, KERNEL_ELEMENTS, args.count, BLOCK_THREADS, args);
}

/* ---- rows ------------------------------------------------------------------- */

static bool is_row_kind(enum op_kind kind)
{
    switch ((int)kind) {
    case OP_ROW_SUM:
    case OP_LAYER_NORM:
    case OP_LAYER_NORM_GRAD:
    case OP_RMS_NORM:
    case OP_RMS_NORM_GRAD:
    case OP_SOFTMAX:
    case OP_SOFTMAX_GRAD:
    case OP_CROSS_ENTROPY:
        return true;
    default:
        return false;
    }
}

struct rows_args launch_rows_args(const struct launcher *launcher, const struct op *op)
{
    const int64_t *attributes = op->attributes;
    struct rows_args args = {.rows = (uint64_t)attributes[ROWS],
                             .columns = (uint64_t)attributes[COLUMNS],
                             .kind = (uint32_t)op->kind};

    if (op->kind == OP_SOFTMAX || op->kind == OP_SOFTMAX_GRAD) {
        args.causal = (uint64_t)attributes[SOFTMAX_CAUSAL];
        args.constant = (uint32_t)attributes[SOFTMAX_SCALE_BITS];
    } else if (op->kind == OP_LAYER_NORM || op->kind == OP_RMS_NORM) {
        args.constant = (uint32_t)attributes[NORM_EPSILON_BITS];
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        args.inputs[i] = input_memory(launcher, op, i);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.outputs[i] = output_memory(launcher, op, i);
    }
    /* One input more: what the gradient is added to (fuse_epilogue.c). */
    if (op->kind == OP_LAYER_NORM_GRAD && op->input_count == 6) {
        args.addend = args.inputs[5];
    } else if (op->kind == OP_RMS_NORM_GRAD && op->input_count == 5) {
        args.addend = args.inputs[4];
    }
    return args;
}

static enum device_result launch_rows(const struct launcher *launcher, const struct op *op)
{
    const struct rows_args args = launch_rows_args(launcher, op);

    if (launch_held_takes(launcher, op)) {
        return launch_held(launcher, &args, NULL);
    }
    return LAUNCH_WORK(launcher, KERNEL_ROWS, args.rows,
                       fold_chunks(args.columns) == 1 ? ROWS_WARPS : 1, args);
}

/* ---- quantization ------------------------------------------------------------ */

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

/* Is each row a run of memory that is read by 16 bytes, its pieces blocks or all of it one? */
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

/* A block of threads would go through each alone, and the rest of the device wait for it. */
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

    for (int axis = 0; axis < 6; axis++) {
        args.dims[axis] = op->attributes[QUANTIZE_DIMS + axis];
        args.strides[axis] = op->attributes[QUANTIZE_STRIDES + axis];
    }
    if (args.peaks == NULL) {
        args.peaks = (int16_t *)launcher->scratch;
    }
    if (args.exponents == NULL) {
        args.exponents = (int16_t *)(launcher->scratch + peaks_size(op));
    }
    if (launcher->packed && q != NULL) {
        args.planes = q;
        args.shifts = q + packed.shifts;
        args.lowest = (int32_t *)(q + packed.lowest);
    } else {
        args.q = q;
    }
    return args;
}

static enum device_result launch_quantize(const struct launcher *launcher, const struct op *op)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    struct quantize_args args = launch_quantize_args(launcher, op);
    const uint64_t rows = args.rows;
    const uint8_t *q = output_memory(launcher, op, 2);
    enum device_result result;
    uint64_t width;

    if (args.planes != NULL && view_of_runs(op, &shape, args.x) && !few_long_rows(&args)) {
        args.team = args.k > TEAM_K ? BLOCK_THREADS / CUDA_WARP : 1;
        return LAUNCH_WORK(launcher, KERNEL_QUANTIZE_ROWS, rows,
                           BLOCK_THREADS / CUDA_WARP / args.team, args);
    }
    args.team = launch_columns_fit(launcher, &args);
    if (args.team != 0) {
        args.peaks = output_memory(launcher, op, 0);
        return launch_columns(launcher, &args);
    }
    width = args.planes != NULL ? packed_round_up(args.k, UINT64_C(1) << args.line_log) : args.k;
    result = LAUNCH_WORK(launcher, KERNEL_QUANTIZE_PEAKS, rows * args.pieces, 8, args);
    if (result == DEVICE_OK) {
        result = LAUNCH_WORK(launcher, KERNEL_QUANTIZE_EXPONENTS, rows, 8, args);
    }
    if (result == DEVICE_OK && q != NULL) {
        uint64_t tiles = (rows + QUANTIZE_TILE_ROWS - 1) / QUANTIZE_TILE_ROWS *
                         ((width + QUANTIZE_TILE_K - 1) / QUANTIZE_TILE_K);

        result = launch_grid(launcher, KERNEL_QUANTIZE_INTEGERS, tiles, BLOCK_THREADS, &args,
                             sizeof(args));
    }
    return result;
}

/* ---- contraction -------------------------------------------------------------- */

/* One quantized operand of an operation: q and its exponents among the inputs. */
struct prepared {
    uint32_t q;
    uint32_t exponents;
    uint64_t rows;
};

struct packed_operand launch_operand(const struct contraction_shape *shape, uint64_t rows,
                                     const uint8_t *planes)
{
    const struct packed packed = packed_for(shape, rows);

    return (struct packed_operand){.planes = planes,
                                   .shifts = planes + packed.shifts,
                                   .lowest = (const int32_t *)(planes + packed.lowest),
                                   .plane_size = packed.plane_size,
                                   .strip_size = packed.strip_size,
                                   .shift_pitch = packed.shift_pitch,
                                   .atoms = packed.atoms};
}

/* The operand as the kernels read it; in trace mode its planes are made in scratch first. */
static enum device_result prepare(struct packed_operand *operand, const struct launcher *launcher,
                                  const struct op *op, const struct prepared *from,
                                  uint64_t scratch_offset)
{
    struct contraction_shape shape = contraction_shape_of(op);
    struct packed packed = packed_for(&shape, from->rows);
    uint8_t *planes = launcher->packed ? launcher->memory[op->inputs[from->q]]
                                       : launcher->scratch + scratch_offset;
    struct pack_args args = {.q = input_memory(launcher, op, from->q),
                             .exponents = input_memory(launcher, op, from->exponents),
                             .planes = planes,
                             .shifts = planes + packed.shifts,
                             .lowest = (int32_t *)(planes + packed.lowest),
                             .rows = from->rows,
                             .k = (uint64_t)shape.k,
                             .plane_size = packed.plane_size,
                             .strip_size = packed.strip_size,
                             .shift_pitch = packed.shift_pitch,
                             .blocks = (uint64_t)shape.blocks,
                             .bits = shape.bits,
                             .line_log = packed.line_log};

    *operand = launch_operand(&shape, from->rows, planes);
    if (launcher->packed) {
        return DEVICE_OK;
    }
    return LAUNCH_WORK(launcher, KERNEL_PACK, from->rows, 8, args);
}

static uint64_t contract_rows(const struct op *op, int first)
{
    const int64_t *dims = &op->attributes[CONTRACT_DIMS];

    return (uint64_t)(dims[0] * dims[1] * dims[first] * dims[first + 1]);
}

/* Scratch of the operands that trace mode packs for a contraction. */
static uint64_t operands_size(const struct op *op, bool packed)
{
    const struct contraction_shape shape = contraction_shape_of(op);

    return packed ? 0
                  : packed_for(&shape, contract_rows(op, 2)).size +
                        packed_for(&shape, contract_rows(op, 4)).size;
}

/*
 * Splitting k: where there are fewer tiles than multiprocessors. Each split is at least SPLIT_K
 * elements long, and there is scratch for SPLIT_RESULTS_MAX sums.
 */
#define SPLIT_K           512
#define SPLIT_RESULTS_MAX (UINT64_C(1) << 22)

static uint64_t split_sums_size(uint64_t results)
{
    return packed_round_up(results * sizeof(uint64_t), PACKED_ALIGNMENT);
}

/* Two tickets for each of so many tiles: there are never more than the smallest give. */
static uint64_t split_tickets_size(uint64_t batches, uint64_t m, uint64_t n)
{
    return packed_round_up(batches * contract_tiles(m, batches, CONTRACT_ROWS_THREE, true) *
                               contract_tiles(n, batches, CONTRACT_COLUMNS, true) * 2 *
                               sizeof(uint32_t),
                           PACKED_ALIGNMENT);
}

static uint64_t split_size(uint64_t batches, uint64_t m, uint64_t n, uint64_t k)
{
    if (k < 2 * SPLIT_K || batches * m * n > SPLIT_RESULTS_MAX) {
        return 0;
    }
    return split_sums_size(batches * m * n) + split_tickets_size(batches, m, n);
}

/* Decides on splits, and empties what they meet in. */
static enum device_result prepare_splits(const struct launcher *launcher,
                                         struct contract_args *args, uint8_t *scratch)
{
    const uint64_t size = split_size(args->batches, args->m, args->n, args->k);
    const uint64_t tiles = args->batches * args->tiles_m * args->tiles_n;

    args->splits = 1;
    if (size == 0 || tiles * 2 > launcher->processors) {
        return DEVICE_OK;
    }
    args->splits = (uint32_t)(launcher->processors / tiles);
    if (args->splits > args->k / SPLIT_K) {
        args->splits = (uint32_t)(args->k / SPLIT_K);
    }
    args->partial = (uint64_t *)scratch;
    args->tickets = (uint32_t *)(scratch + split_sums_size(args->batches * args->m * args->n));
    return launcher->calls->fill(launcher->device, scratch, 0, size);
}

/* One block of threads for each multiprocessor, which goes from tile to tile. */
static enum device_result launch_hopper(const struct launcher *launcher,
                                        const struct contract_way *way,
                                        const struct contract_args *args)
{
    const uint64_t units = args->batches * args->tiles_m * args->tiles_n * args->splits;
    const bool paired = way->kernel == KERNEL_HOPPER_NARROW_PAIR;
    const uint64_t least = paired ? 2 : 1;
    const uint64_t most =
        launcher->processors < least ? least : launcher->processors / least * least;
    const struct device_launch launch = {.kernel = way->kernel,
                                         .grid = {(uint32_t)(units < most ? units : most), 1, 1},
                                         .block = HOPPER_THREADS,
                                         .shared_size = HOPPER_SHARED,
                                         .arguments_size = sizeof(*args),
                                         .arguments = args};

    assert(units <= INT32_MAX);
    return launcher->calls->launch(launcher->device, &launch);
}

static enum device_result launch_tiles(const struct launcher *launcher,
                                       const struct contract_way *way, struct contract_args *args)
{
    const bool plain = way->kernel == KERNEL_CONTRACT_PLAIN;
    enum device_result result = DEVICE_OK;

    for (args->batch_first = 0; args->batch_first < args->batches && result == DEVICE_OK;
         args->batch_first += GRID_Y_MAX) {
        const uint64_t left = args->batches - args->batch_first;
        const struct device_launch launch = {
            .kernel = way->kernel,
            .grid = {args->tiles_m * args->tiles_n * args->splits,
                     (uint32_t)(left < GRID_Y_MAX ? left : GRID_Y_MAX), 1},
            .block = plain ? BLOCK_THREADS : CONTRACT_THREADS,
            .shared_size = plain ? 0 : args->stages * CONTRACT_STAGE_SIZE,
            .arguments_size = sizeof(*args),
            .arguments = args};

        result = launcher->calls->launch(launcher->device, &launch);
    }
    return result;
}

static enum device_result launch_contract_grid(const struct launcher *launcher,
                                               const struct contraction_shape *shape,
                                               struct contract_args *args, uint8_t *scratch)
{
    const struct contract_way way = contract_way_of(launcher, shape, args);
    const bool paired = way.kernel == KERNEL_HOPPER_NARROW_PAIR;
    const bool by_wgmma = paired || contract_path_of(launcher, shape, args) == CONTRACT_BY_WGMMA;
    enum device_result result = DEVICE_OK;

    args->tiles_m = (uint32_t)contract_tiles(args->m, args->batches, way.rows, by_wgmma);
    args->tiles_n = (uint32_t)contract_tiles(args->n, args->batches, way.columns, by_wgmma);
    args->tiles_m += paired ? args->tiles_m % 2 : 0;
    args->stages = CONTRACT_STAGES(launcher->shared_max);
    args->gives_up = launcher->gives_up;
    args->splits = 1;
    if (way.kernel != KERNEL_CONTRACT_PLAIN && !paired) {
        result = prepare_splits(launcher, args, scratch);
    }
    if (result != DEVICE_OK) {
        return result;
    }
    return by_wgmma ? launch_hopper(launcher, &way, args) : launch_tiles(launcher, &way, args);
}

struct contract_args launch_contract_args(const struct launcher *launcher, const struct op *op)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    const int64_t *dims = &op->attributes[CONTRACT_DIMS];
    struct contract_args args = {.out = output_memory(launcher, op, 0),
                                 .batches = (uint64_t)(dims[0] * dims[1]),
                                 .m = (uint64_t)(dims[2] * dims[3]),
                                 .n = (uint64_t)(dims[4] * dims[5]),
                                 .k = (uint64_t)shape.k,
                                 .blocks = (uint64_t)shape.blocks,
                                 .block_log = block_log_of(&shape),
                                 .line_log = packed_for(&shape, 1).line_log,
                                 .causal = (uint64_t)op->attributes[CONTRACT_CAUSAL],
                                 .piece = (uint32_t)shape.piece,
                                 .bits = shape.bits};

    for (int axis = 0; axis < 6; axis++) {
        args.dims[axis] = dims[axis];
        args.strides[axis] = op->attributes[CONTRACT_STRIDES + axis];
    }
    return args;
}

enum device_result launch_contract(const struct launcher *launcher, const struct op *op, void *out,
                                   const struct epilogue *epilogue)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    const struct prepared a = {0, 1, contract_rows(op, 2)};
    const struct prepared b = {2, 3, contract_rows(op, 4)};
    struct contract_args args = launch_contract_args(launcher, op);
    enum device_result result;

    args.out = out;
    if (epilogue != NULL) {
        args.epilogue = *epilogue;
    }
    result = prepare(&args.a, launcher, op, &a, 0);
    if (result == DEVICE_OK) {
        result = prepare(&args.b, launcher, op, &b, packed_for(&shape, a.rows).size);
    }
    if (result == DEVICE_OK && launch_dots_takes(launcher, args.m, args.n, args.batches, args.k)) {
        struct dots_args dots = {.a = args.a,
                                 .b = args.b,
                                 .out = args.out,
                                 .rows = args.batches,
                                 .rows_inner = (uint64_t)args.dims[1],
                                 .stride_outer = (uint64_t)args.strides[0],
                                 .stride_inner = (uint64_t)args.strides[1],
                                 .k = args.k,
                                 .bits = args.bits,
                                 .line_log = args.line_log,
                                 .block_log = args.block_log};

        return launch_dots(launcher, &dots);
    }
    if (result == DEVICE_OK) {
        result = launch_contract_grid(launcher, &shape, &args,
                                      launcher->scratch + operands_size(op, launcher->packed));
    }
    return result;
}

static struct sums_args sums_of(const struct op *op, uint64_t rows)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return (struct sums_args){.rows = rows,
                              .k = (uint64_t)shape.k,
                              .block_log = block_log_of(&shape),
                              .line_log = packed_for(&shape, rows).line_log,
                              .bits = shape.bits};
}

static enum device_result launch_ones(const struct launcher *launcher, const struct op *op)
{
    const struct prepared from = {0, 1, (uint64_t)op->attributes[ONES_ROWS]};
    struct sums_args args = sums_of(op, from.rows);
    enum device_result result = prepare(&args.q, launcher, op, &from, 0);

    args.out = output_memory(launcher, op, 0);
    if (result == DEVICE_OK && launch_way_free(launcher, WAY_DOTS)) {
        struct dots_args dots = {.a = args.q,
                                 .out = args.out,
                                 .rows = args.rows,
                                 .rows_inner = args.rows,
                                 .stride_inner = 1,
                                 .k = args.k,
                                 .bits = args.bits,
                                 .line_log = args.line_log,
                                 .block_log = args.block_log};

        return launch_dots(launcher, &dots);
    }
    return result != DEVICE_OK ? result : LAUNCH_WORK(launcher, KERNEL_ONES, args.rows, 8, args);
}

static uint64_t heads_size(const struct op *op)
{
    return packed_round_up((uint64_t)op->attributes[ONEHOT_VOCABULARY] * sizeof(uint32_t),
                           PACKED_ALIGNMENT);
}

static enum device_result launch_onehot(const struct launcher *launcher, const struct op *op)
{
    const struct prepared from = {1, 2, (uint64_t)op->attributes[ONEHOT_WIDTH]};
    const uint64_t k = (uint64_t)op->attributes[ONEHOT_K];
    struct sums_args args = sums_of(op, from.rows);
    enum device_result result;

    args.vocabulary = (uint64_t)op->attributes[ONEHOT_VOCABULARY];
    args.index = input_memory(launcher, op, 0);
    args.out = output_memory(launcher, op, 0);
    args.heads = (uint32_t *)launcher->scratch;
    args.links = (uint32_t *)(launcher->scratch + heads_size(op));
    result = launcher->calls->fill(launcher->device, args.heads, 0, heads_size(op));
    if (result == DEVICE_OK) {
        result = prepare(&args.q, launcher, op, &from,
                         heads_size(op) + packed_round_up(k * sizeof(uint32_t), PACKED_ALIGNMENT));
    }
    if (result == DEVICE_OK) {
        result = LAUNCH_WORK(launcher, KERNEL_ONEHOT_LINK, k, BLOCK_THREADS, args);
    }
    if (result == DEVICE_OK) {
        result = LAUNCH_WORK(launcher, KERNEL_ONEHOT_SUM, args.vocabulary, 1, args);
    }
    return result;
}

/* ---- one operation -------------------------------------------------------------- */

static bool is_contraction(enum op_kind kind)
{
    return kind == OP_QUANTIZE || kind == OP_CONTRACT || kind == OP_CONTRACT_ONES ||
           kind == OP_CONTRACT_ONEHOT;
}

bool launch_takes(const struct op *op)
{
    return !is_contraction(op->kind) || (uint64_t)contraction_shape_of(op).k <= ROW_MAX;
}

/* Does the operation make what others of the tape did? Then it is launched. */
static bool launch_made(enum device_result *result, const struct launcher *launcher, uint32_t at)
{
    const struct fusion *fusion = launcher->fusion;
    const struct chain *chain = fusion_chain(fusion, at);

    if (chain != NULL) {
        *result = chain->launch(launcher, chain);
        return true;
    }
    for (uint32_t i = 0; i < fusion->squares_count; i++) {
        if (fusion->squares[i].at == at) {
            *result = launch_squares(launcher, &fusion->squares[i]);
            return true;
        }
    }
    return false;
}

enum device_result launch_op(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];
    enum device_result result;

    if (launcher->rules_only) {
        return launch_rules(launcher, at);
    }
    if (launcher->fusion != NULL && launch_made(&result, launcher, at)) {
        return result;
    }
    if (is_elementwise(op->kind) && all_words(op, launcher->tape->tensors)) {
        if (launch_quads_takes(launcher, op)) {
            return launch_quads(launcher, op);
        }
        return launch_elements(launcher, at);
    }
    if (is_row_kind(op->kind)) {
        return launch_rows(launcher, op);
    }
    switch ((int)op->kind) {
    case OP_QUANTIZE:
        return launch_quantize(launcher, op);
    case OP_CONTRACT:
        return launch_contract(launcher, op, output_memory(launcher, op, 0), NULL);
    case OP_CONTRACT_ONES:
        return launch_ones(launcher, op);
    case OP_CONTRACT_ONEHOT:
        return launch_onehot(launcher, op);
    default:
        return launch_rules(launcher, at);
    }
}

enum device_result launch_unit(uint32_t *next, const struct launcher *launcher, uint32_t at,
                               uint32_t last)
{
    const struct fusion *fusion = launcher->fusion;

    *next = at + 1;
    if (fusion == NULL || fusion->ends[at] == at + 1 || fusion->ends[at] > last) {
        return launch_op(launcher, at);
    }
    *next = fusion->ends[at];
    for (uint32_t i = 0; i < fusion->updates_count; i++) {
        if (fusion->updates[i].at == at) {
            return launch_updates(launcher, &fusion->updates[i]);
        }
    }
    const struct op *ops = &launcher->tape->ops[at];
    const struct rows_args rows = launch_rows_args(launcher, &ops[0]);
    const struct quantize_args quantize = launch_quantize_args(launcher, &ops[1]);

    return launch_held(launcher, &rows, &quantize);
}

uint64_t launch_scratch_size(const struct op *op, const struct tensor *tensors, bool packed)
{
    struct contraction_shape shape;
    uint64_t k;

    if (!is_contraction(op->kind)) {
        return 0;
    }
    shape = contraction_shape_of(op);
    k = (uint64_t)shape.k;
    switch ((int)op->kind) {
    case OP_QUANTIZE:
        return peaks_size(op) +
               packed_round_up(tensors[op->outputs[1]].count * sizeof(int16_t), PACKED_ALIGNMENT);
    case OP_CONTRACT:
        return operands_size(op, packed) + split_size((uint64_t)(op->attributes[CONTRACT_DIMS] *
                                                                 op->attributes[CONTRACT_DIMS + 1]),
                                                      (uint64_t)(op->attributes[CONTRACT_DIMS + 2] *
                                                                 op->attributes[CONTRACT_DIMS + 3]),
                                                      (uint64_t)(op->attributes[CONTRACT_DIMS + 4] *
                                                                 op->attributes[CONTRACT_DIMS + 5]),
                                                      k);
    case OP_CONTRACT_ONES:
        return packed ? 0 : packed_for(&shape, (uint64_t)op->attributes[ONES_ROWS]).size;
    default:
        return heads_size(op) + packed_round_up(k * sizeof(uint32_t), PACKED_ALIGNMENT) +
               (packed ? 0 : packed_for(&shape, (uint64_t)op->attributes[ONEHOT_WIDTH]).size);
    }
}

uint64_t launch_output_size(const struct op *op, uint32_t output, const struct tensor *tensors,
                            bool packed)
{
    const struct tensor *tensor = &tensors[op->outputs[output]];

    if (packed && op->kind == OP_QUANTIZE && output == 2) {
        struct contraction_shape shape = contraction_shape_of(op);

        return packed_for(&shape, (uint64_t)quantize_rows(op)).size;
    }
    if (packed && op->kind == OP_CROSS_ENTROPY_GRAD && output == ENTROPY_Q) {
        struct contraction_shape shape = contraction_shape(
            op->attributes[COLUMNS], op->attributes[ENTROPY_BITS], op->attributes[ENTROPY_BLOCK]);

        return packed_for(&shape, (uint64_t)op->attributes[ROWS]).size;
    }
    return tensor->count * dtype_size(tensor->dtype);
}

bool launch_in_place(enum op_kind kind, uint32_t output, uint32_t input)
{
    return (is_elementwise(kind) || is_row_kind(kind)) && op_in_place(kind, output, input);
}

bool launch_may_omit(enum op_kind kind)
{
    return kind == OP_QUANTIZE || kind == OP_CROSS_ENTROPY_GRAD || is_row_kind(kind);
}
