/* launch.c - see launch.h. */
#include "engine/cuda/launch.h"

#include <assert.h>

#include "engine/cuda/packed.h"
#include "engine/kernel.h"

#define GRID_Y_MAX 65535
/* Kernels count the elements of a row in 32 bits. */
#define ROW_MAX    UINT64_C(0xffffff00)

/* ---- launching ------------------------------------------------------------ */

static enum device_result launch_grid(const struct launcher *launcher, enum cuda_kernel kernel,
                                      uint64_t blocks, uint32_t block_threads,
                                      const void *arguments, uint32_t arguments_size)
{
    const struct device_launch launch = {.kernel = kernel,
                                         .grid = {(uint32_t)blocks, 1, 1},
                                         .block = block_threads,
                                         .arguments_size = arguments_size,
                                         .arguments = arguments};

    return launcher->calls->launch(launcher->device, &launch);
}

/* For kernels that stride: blocks for all the work, but no more than fill the device. */
static enum device_result launch_work(const struct launcher *launcher, enum cuda_kernel kernel,
                                      uint64_t items, uint64_t items_per_block,
                                      uint32_t block_threads, const void *arguments,
                                      uint32_t arguments_size)
{
    uint64_t blocks = (items + items_per_block - 1) / items_per_block;

    if (blocks > launcher->block_count) {
        blocks = launcher->block_count;
    }
    return launch_grid(launcher, kernel, blocks, block_threads, arguments, arguments_size);
}

#define LAUNCH_WORK(launcher, kernel, items, per_block, args)                                      \
    launch_work(launcher, kernel, items, per_block, BLOCK_THREADS, &(args), (uint32_t)sizeof(args))

static const void *input_memory(const struct launcher *launcher, const struct op *op,
                                uint32_t input)
{
    assert(launcher->memory[op->inputs[input]] != NULL);
    return launcher->memory[op->inputs[input]];
}

static void *output_memory(const struct launcher *launcher, const struct op *op, uint32_t output)
{
    return launcher->memory[op->outputs[output]];
}

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

static enum device_result launch_rows(const struct launcher *launcher, const struct op *op)
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

static uint64_t peaks_size(const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return packed_round_up((uint64_t)quantize_rows(op) * (uint64_t)shape.pieces * sizeof(int16_t),
                           PACKED_ALIGNMENT);
}

static enum device_result launch_quantize(const struct launcher *launcher, const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);
    uint64_t rows = (uint64_t)quantize_rows(op);
    struct packed packed = packed_of(shape.bits, rows, (uint64_t)shape.k);
    struct quantize_args args = {.x = input_memory(launcher, op, 0),
                                 .peaks = output_memory(launcher, op, 0),
                                 .exponents = output_memory(launcher, op, 1),
                                 .rows = rows,
                                 .pitch = packed.pitch,
                                 .plane_size = packed.plane_size,
                                 .k = (uint64_t)shape.k,
                                 .block = (uint64_t)shape.block,
                                 .blocks = (uint64_t)shape.blocks,
                                 .piece = (uint64_t)shape.piece,
                                 .pieces = (uint64_t)shape.pieces,
                                 .block_span = (uint64_t)shape.block_span,
                                 .window = shape.window,
                                 .bits = shape.bits,
                                 .across = view_across(op)};
    uint8_t *q = output_memory(launcher, op, 2);
    enum device_result result;
    uint64_t width;

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
        args.lowest = (int32_t *)(q + packed.lowest);
    } else {
        args.q = q;
    }
    width = args.planes != NULL ? args.pitch : args.k;
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

/* The operand as the kernels read it; in trace mode its planes are made in scratch first. */
static enum device_result prepare(struct packed_operand *operand, const struct launcher *launcher,
                                  const struct op *op, const struct prepared *from,
                                  uint64_t scratch_offset)
{
    struct contraction_shape shape = contraction_shape_of(op);
    struct packed packed = packed_of(shape.bits, from->rows, (uint64_t)shape.k);
    uint8_t *planes = launcher->packed ? launcher->memory[op->inputs[from->q]]
                                       : launcher->scratch + scratch_offset;
    struct pack_args args = {.q = input_memory(launcher, op, from->q),
                             .exponents = input_memory(launcher, op, from->exponents),
                             .planes = planes,
                             .lowest = (int32_t *)(planes + packed.lowest),
                             .rows = from->rows,
                             .k = (uint64_t)shape.k,
                             .pitch = packed.pitch,
                             .plane_size = packed.plane_size,
                             .blocks = (uint64_t)shape.blocks,
                             .bits = shape.bits};

    *operand = (struct packed_operand){.planes = planes,
                                       .lowest = args.lowest,
                                       .exponents = args.exponents,
                                       .plane_size = packed.plane_size};
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

/* Tensor cores take pieces of whole steps and two limbs. */
static enum cuda_kernel contract_kernel(const struct contraction_shape *shape)
{
    if (shape->bits == 22 || shape->piece % PACKED_STEP != 0) {
        return KERNEL_CONTRACT_PLAIN;
    }
    return shape->bits == 14 ? KERNEL_CONTRACT_NARROW : KERNEL_CONTRACT_WIDE;
}

static enum device_result launch_contract_grid(const struct launcher *launcher,
                                               enum cuda_kernel kernel, struct contract_args *args,
                                               uint64_t batches)
{
    const bool plain = kernel == KERNEL_CONTRACT_PLAIN;
    const uint64_t tile_m = plain ? PLAIN_TILE : CONTRACT_ROWS;
    const uint64_t tile_n = plain ? PLAIN_TILE : CONTRACT_COLUMNS;
    enum device_result result = DEVICE_OK;

    args->tiles_n = (args->n + tile_n - 1) / tile_n;
    for (args->batch_first = 0; args->batch_first < batches && result == DEVICE_OK;
         args->batch_first += GRID_Y_MAX) {
        const uint64_t left = batches - args->batch_first;
        const struct device_launch launch = {
            .kernel = kernel,
            .grid = {(uint32_t)((args->m + tile_m - 1) / tile_m * args->tiles_n),
                     (uint32_t)(left < GRID_Y_MAX ? left : GRID_Y_MAX), 1},
            .block = plain ? BLOCK_THREADS : CONTRACT_THREADS,
            .shared_size = plain ? 0 : CONTRACT_SHARED,
            .arguments_size = sizeof(*args),
            .arguments = args};

        result = launcher->calls->launch(launcher->device, &launch);
    }
    return result;
}

static enum device_result launch_contract(const struct launcher *launcher, const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);
    const int64_t *dims = &op->attributes[CONTRACT_DIMS];
    const struct prepared a = {0, 1, contract_rows(op, 2)};
    const struct prepared b = {2, 3, contract_rows(op, 4)};
    const struct packed packed = packed_of(shape.bits, a.rows, (uint64_t)shape.k);
    struct contract_args args = {.out = output_memory(launcher, op, 0),
                                 .m = (uint64_t)(dims[2] * dims[3]),
                                 .n = (uint64_t)(dims[4] * dims[5]),
                                 .k = (uint64_t)shape.k,
                                 .pitch = packed.pitch,
                                 .block = (uint64_t)shape.block,
                                 .blocks = (uint64_t)shape.blocks,
                                 .causal = (uint64_t)op->attributes[CONTRACT_CAUSAL],
                                 .piece = (uint32_t)shape.piece,
                                 .bits = shape.bits};
    enum device_result result;

    for (int axis = 0; axis < 6; axis++) {
        args.dims[axis] = dims[axis];
        args.strides[axis] = op->attributes[CONTRACT_STRIDES + axis];
    }
    result = prepare(&args.a, launcher, op, &a, 0);
    if (result == DEVICE_OK) {
        result = prepare(&args.b, launcher, op, &b, packed.size);
    }
    if (result == DEVICE_OK) {
        result = launch_contract_grid(launcher, contract_kernel(&shape), &args,
                                      (uint64_t)(dims[0] * dims[1]));
    }
    return result;
}

static struct sums_args sums_of(const struct op *op, uint64_t rows)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return (struct sums_args){.rows = rows,
                              .k = (uint64_t)shape.k,
                              .pitch = packed_of(shape.bits, rows, (uint64_t)shape.k).pitch,
                              .block = (uint64_t)shape.block,
                              .blocks = (uint64_t)shape.blocks,
                              .bits = shape.bits};
}

static enum device_result launch_ones(const struct launcher *launcher, const struct op *op)
{
    const struct prepared from = {0, 1, (uint64_t)op->attributes[ONES_ROWS]};
    struct sums_args args = sums_of(op, from.rows);
    enum device_result result = prepare(&args.q, launcher, op, &from, 0);

    args.out = output_memory(launcher, op, 0);
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

enum device_result launch_op(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];

    if (launcher->rules_only) {
        return launch_rules(launcher, at);
    }
    if (is_elementwise(op->kind) && all_words(op, launcher->tape->tensors)) {
        return launch_elements(launcher, at);
    }
    if (is_row_kind(op->kind)) {
        return launch_rows(launcher, op);
    }
    switch ((int)op->kind) {
    case OP_QUANTIZE:
        return launch_quantize(launcher, op);
    case OP_CONTRACT:
        return launch_contract(launcher, op);
    case OP_CONTRACT_ONES:
        return launch_ones(launcher, op);
    case OP_CONTRACT_ONEHOT:
        return launch_onehot(launcher, op);
    default:
        return launch_rules(launcher, at);
    }
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
        return packed ? 0
                      : packed_of(shape.bits, contract_rows(op, 2), k).size +
                            packed_of(shape.bits, contract_rows(op, 4), k).size;
    case OP_CONTRACT_ONES:
        return packed ? 0 : packed_of(shape.bits, (uint64_t)op->attributes[ONES_ROWS], k).size;
    default:
        return heads_size(op) + packed_round_up(k * sizeof(uint32_t), PACKED_ALIGNMENT) +
               (packed ? 0 : packed_of(shape.bits, (uint64_t)op->attributes[ONEHOT_WIDTH], k).size);
    }
}

uint64_t launch_output_size(const struct op *op, uint32_t output, const struct tensor *tensors,
                            bool packed)
{
    const struct tensor *tensor = &tensors[op->outputs[output]];

    if (packed && op->kind == OP_QUANTIZE && output == 2) {
        struct contraction_shape shape = contraction_shape_of(op);

        return packed_of(shape.bits, (uint64_t)quantize_rows(op), (uint64_t)shape.k).size;
    }
    return tensor->count * dtype_size(tensor->dtype);
}

bool launch_in_place(enum op_kind kind, uint32_t output, uint32_t input)
{
    return (is_elementwise(kind) || is_row_kind(kind)) && op_in_place(kind, output, input);
}

bool launch_may_omit(enum op_kind kind)
{
    return kind == OP_QUANTIZE || is_row_kind(kind);
}

/* ---- hashing, and numbers that are none -------------------------------------------- */

void launch_hash_plan(struct hash_item *items, uint32_t count)
{
    for (uint32_t level = 0; level < HASH_LEVELS; level++) {
        uint64_t place = 0;

        for (uint32_t i = 0; i < count; i++) {
            assert(items[i].size > 0);
            items[i].first[level] = place;
            place += hash_count(items[i].size, level);
        }
    }
}

/* Digests of all items at a level. */
static uint64_t hash_total(const struct hash_item *items, uint32_t count, uint32_t level)
{
    return items[count - 1].first[level] + hash_count(items[count - 1].size, level);
}

static uint64_t digests_size(uint64_t count)
{
    return packed_round_up(count * HASH_DIGEST, PACKED_ALIGNMENT);
}

uint64_t launch_hash_scratch_size(const struct hash_item *items, uint32_t count)
{
    return count == 0 ? 0
                      : digests_size(hash_total(items, count, 0)) +
                            digests_size(hash_total(items, count, 1));
}

enum device_result launch_hash(const struct launcher *launcher, void *roots,
                               const struct hash_item *on_device, const struct hash_item *items,
                               uint32_t count)
{
    const uint64_t leaves = hash_total(items, count, 0);
    uint8_t *halves[2] = {launcher->scratch, launcher->scratch + digests_size(leaves)};
    struct hash_args args = {
        .items = on_device, .to = halves[0], .total = leaves, .item_count = count};
    enum device_result result = launch_work(launcher, KERNEL_HASH_LEAVES, leaves, HASH_LEAF_THREADS,
                                            HASH_LEAF_THREADS, &args, sizeof(args));

    /* At least once, so that the roots of single leaves are moved to their places. */
    do {
        args.level++;
        assert(args.level < HASH_LEVELS);
        args.total = hash_total(items, count, args.level);
        args.from = args.to;
        args.to = args.total == count ? (uint8_t *)roots : halves[args.level % 2];
        if (result == DEVICE_OK) {
            result = launch_work(launcher, KERNEL_HASH_NODES, args.total, 1, HASH_NODES_THREADS,
                                 &args, sizeof(args));
        }
    } while (args.total > count && result == DEVICE_OK);
    return result;
}

enum device_result launch_finite(const struct launcher *launcher, uint32_t *found,
                                 const void *values, uint64_t count)
{
    struct finite_args args = {.bits = values, .found = found, .count = count};

    return LAUNCH_WORK(launcher, KERNEL_FINITE, count, BLOCK_THREADS * 4, args);
}
