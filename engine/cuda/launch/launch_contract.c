/* launch_contract.c - see launch_contract.h. */
#include "engine/cuda/launch/launch_contract.h"

#include "engine/cuda/launch/contract_kernel.h"

/* ---- sums without tiles ---------------------------------------------------------- */

#define DOTS_K_MAX    65536 /* a product splits longer rows over many blocks */
#define DOTS_ROWS_FEW 64    /* so many rows fill a device anyway */
#define DOTS_TEAM_K   1024  /* rows of more elements are shared by all warps of a block */

/* Results of one row by one row? */
static bool takes_dots(const struct launcher *launcher, const struct contract_args *args)
{
    return launch_allows(launcher, VARIANT_DOTS) && args->m == 1 && args->n == 1 &&
           (args->k <= DOTS_K_MAX || args->batches >= DOTS_ROWS_FEW);
}

static enum device_result launch_dots(const struct launcher *launcher, struct dots_args *args)
{
    const uint32_t warps = BLOCK_THREADS / CUDA_WARP;

    args->team = args->k > DOTS_TEAM_K ? warps : 1;
    return LAUNCH_WORK(launcher, KERNEL_DOTS, args->rows, warps / args->team, *args);
}

/* Rows of a warp and of a block, of all widths. */
void launch_dots_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct {
        int64_t rows;
        int64_t k;
        int bits;
        int block;
    } shapes[DOTS_SELFTESTS] = {{37, 300, 14, 128}, {5, 1300, 16, 128}, {3, 1030, 22, 0}};
    const int64_t rows = shapes[part].rows;
    const int64_t k = shapes[part].k;
    const uint32_t x = selftest_give(tape, DTYPE_F32, (uint64_t)(rows * k));
    const uint32_t y = selftest_give(tape, DTYPE_F32, (uint64_t)(rows * k));
    const struct op *a =
        selftest_quantize(tape, x, rows, 1, k, shapes[part].bits, shapes[part].block, true);
    const struct op *b =
        selftest_quantize(tape, y, rows, 1, k, shapes[part].bits, shapes[part].block, true);

    (void)selftest_dots(tape, a, b, rows, k);
    (void)selftest_dots(tape, a, a, rows, k);
    (void)selftest_ones(tape, b, rows, k);
}

/* ---- operands -------------------------------------------------------------------- */

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
static enum device_result prepare_operand(struct packed_operand *operand,
                                          const struct launcher *launcher, const struct op *op,
                                          const struct prepared *from, uint64_t scratch_offset)
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

/* ---- products -------------------------------------------------------------------- */

#define GRID_Y_MAX 65535

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

/* Two tickets for each tile, as if tiles were the smallest. */
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

/* Chooses the number of splits, and clears the sums and tickets where they meet. */
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
                                        const struct contract_kernel *kernel,
                                        const struct contract_args *args)
{
    const uint64_t units = args->batches * args->tiles_m * args->tiles_n * args->splits;
    const uint64_t most = launcher->processors < 1 ? 1 : launcher->processors;
    const struct device_launch launch = {.kernel = kernel->kernel,
                                         .grid = {(uint32_t)(units < most ? units : most), 1, 1},
                                         .block = HOPPER_THREADS,
                                         .shared_size = HOPPER_SHARED,
                                         .arguments_size = sizeof(*args),
                                         .arguments = args};

    assert(units <= INT32_MAX);
    return launcher->calls->launch(launcher->device, &launch);
}

static enum device_result launch_tiles(const struct launcher *launcher,
                                       const struct contract_kernel *kernel,
                                       struct contract_args *args)
{
    const bool plain = kernel->kernel == KERNEL_CONTRACT_PLAIN;
    enum device_result result = DEVICE_OK;

    for (args->batch_first = 0; args->batch_first < args->batches && result == DEVICE_OK;
         args->batch_first += GRID_Y_MAX) {
        const uint64_t left = args->batches - args->batch_first;
        const struct device_launch launch = {
            .kernel = kernel->kernel,
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
    const struct contract_kernel kernel = contract_kernel_of(launcher, shape, args);
    const enum kernel_variant variant = contract_variant_of(launcher, shape);
    const bool by_wgmma = variant == VARIANT_WGMMA;

    args->tiles_m = (uint32_t)contract_tiles(args->m, args->batches, kernel.rows, by_wgmma);
    args->tiles_n = (uint32_t)contract_tiles(args->n, args->batches, kernel.columns, by_wgmma);
    args->stages = CONTRACT_STAGES(launcher->shared_max);
    args->gives_up = launcher->gives_up;
    args->reach_log = contract_reach_log(shape, variant);
    args->splits = 1;
    if (kernel.kernel != KERNEL_CONTRACT_PLAIN) {
        DEVICE_TRY(prepare_splits(launcher, args, scratch));
    }
    return by_wgmma ? launch_hopper(launcher, &kernel, args)
                    : launch_tiles(launcher, &kernel, args);
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

    args.out = out;
    if (epilogue != NULL) {
        args.epilogue = *epilogue;
    }
    DEVICE_TRY(prepare_operand(&args.a, launcher, op, &a, 0));
    DEVICE_TRY(prepare_operand(&args.b, launcher, op, &b, packed_for(&shape, a.rows).size));
    if (takes_dots(launcher, &args)) {
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
    return launch_contract_grid(launcher, &shape, &args,
                                launcher->scratch + operands_size(op, launcher->packed));
}

/* ---- sums and one-hots --------------------------------------------------------------- */

static struct sums_args sums_of(const struct op *op, uint64_t rows)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return (struct sums_args){.rows = rows,
                              .k = (uint64_t)shape.k,
                              .block_log = block_log_of(&shape),
                              .line_log = packed_for(&shape, rows).line_log,
                              .bits = shape.bits};
}

enum device_result launch_ones(const struct launcher *launcher, const struct op *op)
{
    const struct prepared from = {0, 1, (uint64_t)op->attributes[ONES_ROWS]};
    struct sums_args args = sums_of(op, from.rows);

    DEVICE_TRY(prepare_operand(&args.q, launcher, op, &from, 0));
    args.out = output_memory(launcher, op, 0);
    if (launch_allows(launcher, VARIANT_DOTS)) {
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
    return LAUNCH_WORK(launcher, KERNEL_ONES, args.rows, 8, args);
}

static uint64_t heads_size(const struct op *op)
{
    return packed_round_up((uint64_t)op->attributes[ONEHOT_VOCABULARY] * sizeof(uint32_t),
                           PACKED_ALIGNMENT);
}

static uint64_t links_size(const struct op *op)
{
    return packed_round_up((uint64_t)op->attributes[ONEHOT_K] * sizeof(uint32_t), PACKED_ALIGNMENT);
}

enum device_result launch_onehot(const struct launcher *launcher, const struct op *op)
{
    const struct prepared from = {1, 2, (uint64_t)op->attributes[ONEHOT_WIDTH]};
    const uint64_t k = (uint64_t)op->attributes[ONEHOT_K];
    struct sums_args args = sums_of(op, from.rows);

    args.vocabulary = (uint64_t)op->attributes[ONEHOT_VOCABULARY];
    args.index = input_memory(launcher, op, 0);
    args.out = output_memory(launcher, op, 0);
    args.addend =
        op->input_count > ONEHOT_ADDEND ? input_memory(launcher, op, ONEHOT_ADDEND) : NULL;
    args.heads = (uint32_t *)launcher->scratch;
    args.links = (uint32_t *)(launcher->scratch + heads_size(op));
    DEVICE_TRY(launcher->calls->fill(launcher->device, args.heads, 0, heads_size(op)));
    DEVICE_TRY(prepare_operand(&args.q, launcher, op, &from, heads_size(op) + links_size(op)));
    DEVICE_TRY(LAUNCH_WORK(launcher, KERNEL_ONEHOT_LINK, k, BLOCK_THREADS, args));
    return LAUNCH_WORK(launcher, KERNEL_ONEHOT_SUM, args.vocabulary, 1, args);
}

/* ---- experts --------------------------------------------------------------------------- */

/* The two operands of a product of experts. */
static void chosen_operands(struct prepared operands[2], const struct op *op)
{
    const uint64_t *a = (const uint64_t *)op->attributes;

    if (op->kind == OP_CONTRACT_CHOSEN) {
        operands[0] = (struct prepared){0, 1, a[CHOSEN_ROWS]};
        operands[1] = (struct prepared){3, 4, a[CHOSEN_EXPERTS] * a[CHOSEN_WIDTH]};
    } else {
        operands[0] = (struct prepared){1, 2, a[CHOSEN_SUM_M]};
        operands[1] = (struct prepared){3, 4, a[CHOSEN_SUM_N]};
    }
}

enum device_result launch_chosen(const struct launcher *launcher, const struct op *op)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    const bool apart = op->kind == OP_CONTRACT_CHOSEN_ROWS;
    const uint64_t *attributes = (const uint64_t *)op->attributes;
    struct prepared operands[2];
    struct chosen_args args = {.index = input_memory(launcher, op, apart ? 0 : 2),
                               .out = output_memory(launcher, op, 0),
                               .rows = attributes[apart ? CHOSEN_SUM_M : CHOSEN_ROWS],
                               .columns = attributes[apart ? CHOSEN_SUM_N : CHOSEN_WIDTH],
                               .experts = attributes[apart ? CHOSEN_SUM_EXPERTS : CHOSEN_EXPERTS],
                               .k = (uint64_t)shape.k,
                               .bits = shape.bits,
                               .line_log = packed_for(&shape, 1).line_log,
                               .block_log = block_log_of(&shape),
                               .apart = apart};

    chosen_operands(operands, op);
    DEVICE_TRY(prepare_operand(&args.a, launcher, op, &operands[0], 0));
    DEVICE_TRY(prepare_operand(&args.b, launcher, op, &operands[1],
                               packed_for(&shape, operands[0].rows).size));
    return LAUNCH_WORK(launcher, KERNEL_CHOSEN,
                       args.rows * args.columns * (apart ? args.experts : 1),
                       BLOCK_THREADS / CUDA_WARP, args);
}

bool launch_is_contraction(enum op_kind kind)
{
    uint32_t slots[2];

    return kind == OP_QUANTIZE || contraction_slots(slots, kind) != 0;
}

uint64_t launch_contract_scratch(const struct op *op, bool packed)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    const int64_t *dims = &op->attributes[CONTRACT_DIMS];

    if (op->kind == OP_CONTRACT) {
        return operands_size(op, packed) +
               split_size((uint64_t)(dims[0] * dims[1]), (uint64_t)(dims[2] * dims[3]),
                          (uint64_t)(dims[4] * dims[5]), (uint64_t)shape.k);
    }
    if (op->kind == OP_CONTRACT_CHOSEN || op->kind == OP_CONTRACT_CHOSEN_ROWS) {
        struct prepared operands[2];

        chosen_operands(operands, op);
        return packed ? 0
                      : packed_for(&shape, operands[0].rows).size +
                            packed_for(&shape, operands[1].rows).size;
    }
    if (op->kind == OP_CONTRACT_ONES) {
        return packed ? 0 : packed_for(&shape, (uint64_t)op->attributes[ONES_ROWS]).size;
    }
    return heads_size(op) + links_size(op) +
           (packed ? 0 : packed_for(&shape, (uint64_t)op->attributes[ONEHOT_WIDTH]).size);
}
