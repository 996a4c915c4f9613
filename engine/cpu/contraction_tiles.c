/*
 * contraction_tiles.c - exact matrix products, cut into tiles that fit the caches and the threads.
 *
 * A task is a block of TASK_A by TASK_B panels of one batch. It walks K in slices, and in a slice
 * tile by tile (8 rows by up to 48 columns) with 64-bit sums in scratch. Operands are read packed,
 * or packed slice by slice from their canonical layout (trace mode). Since the sums are exact,
 * nothing of this shows in the bits.
 *
 * Batches are ranges of flat rows and need not begin with a panel; rows and columns of a
 * neighbouring batch that share a panel are computed along and not written.
 */
#include <stdatomic.h>
#include <string.h>

#include "engine/cpu/contraction_packed.h"

#define TASK_A  8    /* panels */
#define TASK_B  12   /* panels, a multiple of TILE_PANELS */
#define SLICE_K 1024 /* elements */

#define TASK_TILES (TASK_A * (PANEL_ROWS / TILE_ROWS) * (TASK_B / TILE_PANELS))

/* A part of one panel, from the first element of a slice of K on. */
struct slice {
    const char *lines;
    size_t plane_size;
    const struct piece_head *heads;
    const int32_t *lowest;
};

struct operand_rows {
    const void *q; /* packed or canonical */
    const int16_t *exponents;
    struct packed_layout layout;
    int64_t batch_rows;
};

struct contract {
    const struct contraction_isa *isa;
    struct contraction_shape shape;
    struct operand_rows a;
    struct operand_rows b;
    bool packed;
    bool stream; /* out is larger than the caches */
    bool unit;   /* neighbouring columns are neighbours in out */
    int64_t causal;
    int64_t dims[6]; /* as in the operation, A and B perhaps exchanged */
    int64_t strides[6];
    float *out;
};

/* What one thread owns. */
struct task_scratch {
    int64_t *sums; /* TASK_TILES * TILE_SUMS */
    char *panels;  /* packed slices, canonical mode only */
    struct slice a[TASK_A];
    struct slice b[TASK_B];
    int32_t lowest[TASK_A + TASK_B][PANEL_ROWS];
    int64_t places[TASK_A * PANEL_ROWS];  /* of the task's rows in out, inside the batch */
    int64_t visible[TASK_A * PANEL_ROWS]; /* columns that are not masked; 0: no such row */
};

static int64_t slice_length(const struct contraction_shape *shape)
{
    return shape->k < SLICE_K ? shape->k : SLICE_K;
}

/* Bytes of a packed slice of one panel: planes, then heads. */
static size_t slice_size(const struct contraction_shape *shape)
{
    int64_t length = slice_length(shape);
    size_t lines = (size_t)((length + 1) / 2) * LINE_SIZE;
    size_t heads = (size_t)((length + shape->piece - 1) / shape->piece) * sizeof(struct piece_head);

    return lines * (shape->bits == 22 ? 3 : 1) + (heads + LINE_SIZE - 1) / LINE_SIZE * LINE_SIZE;
}

/* Sums are a multiple of 64 bytes too. */
static size_t thread_size(const struct contraction_shape *shape)
{
    return sizeof(int64_t) * TASK_TILES * TILE_SUMS + (TASK_A + TASK_B) * slice_size(shape);
}

size_t contraction_contract_scratch(const struct op *op, int thread_count)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return thread_size(&shape) * (size_t)thread_count;
}

/* ---- operands ---- */

static struct slice slice_packed(const struct operand_rows *operand, int64_t panel, int64_t start)
{
    const struct packed_layout *layout = &operand->layout;
    const char *lines = (const char *)operand->q + (size_t)panel * layout->panel_size;

    return (struct slice){
        .lines = lines + start / 2 * LINE_SIZE,
        .plane_size = layout->plane_size,
        .heads = panel_heads(layout, lines) + start / layout->shape.piece,
        .lowest = panel_lowest(layout, lines),
    };
}

static void rows_lowest(int32_t *lowest, const struct operand_rows *operand, int64_t panel)
{
    int64_t blocks = operand->layout.shape.blocks;

    for (int r = 0; r < PANEL_ROWS; r++) {
        int64_t row = panel * PANEL_ROWS + r;
        bool poison = false;

        lowest[r] = EXPONENT_ZERO;
        if (row < operand->layout.rows) {
            lowest[r] = contraction_lowest(&poison, operand->exponents + row * blocks, blocks);
        }
        lowest[r] = poison ? LOWEST_POISON : lowest[r];
    }
}

static struct slice slice_canonical(const struct contract *contract, char *memory,
                                    const int32_t *lowest, const struct operand_rows *operand,
                                    int64_t panel, int64_t start)
{
    const struct contraction_shape *shape = &contract->shape;
    size_t size = shape->bits == 22 ? sizeof(int32_t) : sizeof(int16_t);
    int64_t first = panel * PANEL_ROWS;
    int64_t left = operand->layout.rows - first;
    int64_t count = shape->k - start < SLICE_K ? shape->k - start : SLICE_K;
    struct quantized_row rows[PANEL_ROWS];
    struct slice slice = {.lines = memory, .lowest = lowest};
    int row_count = left < PANEL_ROWS ? (int)left : PANEL_ROWS;

    slice.plane_size = (size_t)((slice_length(shape) + 1) / 2) * LINE_SIZE;
    slice.heads = (struct piece_head *)(memory + slice.plane_size * (shape->bits == 22 ? 3 : 1));
    for (int r = 0; r < row_count; r++) {
        rows[r].q = (const char *)operand->q + (size_t)((first + r) * shape->k) * size;
        rows[r].exponents = operand->exponents + (first + r) * shape->blocks;
    }
    contraction_pack(contract->isa, memory, slice.plane_size, (struct piece_head *)slice.heads,
                     shape, rows, lowest, row_count, start, count);
    return slice;
}

/* Brings `count` panels of an operand, from element `start` of K on, into slices. */
static void open_slices(struct slice *slices, const struct contract *contract,
                        const struct operand_rows *operand, int64_t panel, int64_t count,
                        int64_t start, char *memory, int32_t (*lowest)[PANEL_ROWS])
{
    for (int64_t i = 0; i < count; i++) {
        if (contract->packed) {
            slices[i] = slice_packed(operand, panel + i, start);
            continue;
        }
        if (start == 0) {
            rows_lowest(lowest[i], operand, panel + i);
        }
        slices[i] = slice_canonical(contract, memory + (size_t)i * slice_size(&contract->shape),
                                    lowest[i], operand, panel + i, start);
    }
}

/* ---- output ---- */

static int64_t row_place(const struct contract *contract, int64_t m)
{
    return m / contract->dims[3] * contract->strides[2] +
           m % contract->dims[3] * contract->strides[3];
}

static int64_t column_place(const struct contract *contract, int64_t n)
{
    return n / contract->dims[5] * contract->strides[4] +
           n % contract->dims[5] * contract->strides[5];
}

static int64_t batch_place(const struct contract *contract, int64_t batch)
{
    return batch / contract->dims[1] * contract->strides[0] +
           batch % contract->dims[1] * contract->strides[1];
}

/* One tile of a task. */
struct tile {
    float *out;             /* of its batch */
    const int64_t *places;  /* of its rows in out; see task_scratch */
    const int64_t *visible; /* of its rows; see task_scratch */
    int64_t n;              /* its first column inside the batch; it may be before it */
    int panels;
    int a_row; /* its first row inside its panel */
    const struct slice *a;
    const struct slice *b;
    int64_t *sums;
};

/* Fills in what tiles need to know of the task's rows: divisions are dear beside a short tile. */
static void open_rows(struct task_scratch *scratch, const struct contract *contract, int64_t first,
                      int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t m = first + i;

        scratch->visible[i] = 0;
        scratch->places[i] = 0;
        if (m >= 0 && m < contract->a.batch_rows) {
            scratch->places[i] = row_place(contract, m);
            scratch->visible[i] =
                contract->causal > 0 ? m % contract->causal + 1 : contract->b.batch_rows;
        }
    }
}

/* Is every element of the tile masked? visible is that of its rows. */
static bool tile_hidden(const int64_t *visible, int64_t n)
{
    int64_t most = 0;

    for (int r = 0; r < TILE_ROWS; r++) {
        most = visible[r] > most ? visible[r] : most;
    }
    return n >= most;
}

/* Writes a finished tile of which columns are not neighbours in out. */
static void scatter(const struct contract *contract, const struct tile *tile, const float *values)
{
    for (int r = 0; r < TILE_ROWS; r++) {
        for (int c = 0; c < tile->panels * PANEL_ROWS && tile->visible[r] > 0; c++) {
            int64_t n = tile->n + c;

            if (n >= 0 && n < contract->b.batch_rows) {
                tile->out[tile->places[r] + column_place(contract, n)] =
                    values[r * TILE_COLUMNS + c];
            }
        }
    }
}

/* Where a tile's values go: straight to out, or to `values`, to be scattered. */
static bool open_finish(struct finish_call *call, float *values, const struct contract *contract,
                        const struct tile *tile)
{
    bool direct = contract->unit && tile->n >= 0;

    call->sums = tile->sums;
    call->panels = tile->panels;
    call->stream = direct && contract->stream;
    call->exponent = -2 * (contract->shape.bits - 1);
    call->a_lowest = tile->a->lowest + tile->a_row;
    for (int c = 0; c < tile->panels; c++) {
        int64_t left = contract->b.batch_rows - tile->n - c * PANEL_ROWS;

        call->b_lowest[c] = tile->b[c].lowest;
        call->wanted[c] =
            !direct || left >= PANEL_ROWS ? 0xffff : (left <= 0 ? 0 : (1U << left) - 1);
    }
    for (int r = 0; r < TILE_ROWS; r++) {
        call->out[r] = direct ? tile->out + tile->places[r] + tile->n : values + r * TILE_COLUMNS;
        call->out[r] = tile->visible[r] > 0 ? call->out[r] : NULL;
        call->visible[r] = tile->visible[r] - tile->n;
    }
    return direct;
}

/* ---- tasks ---- */

struct task {
    int64_t batch;
    int64_t a_panel;
    int64_t b_panel;
    int64_t a_count;
    int64_t b_count;
};

static struct tile_call open_tile(const struct contract *contract, const struct tile *tile)
{
    struct tile_call call = {
        .a = tile->a->lines + tile->a_row * 4,
        .a_heads = tile->a->heads,
        .a_row = tile->a_row,
        .a_plane_size = tile->a->plane_size,
        .b_plane_size = tile->b->plane_size,
        .panels = tile->panels,
        .bits = contract->shape.bits,
        .piece = contract->shape.piece,
        .sums = tile->sums,
    };

    for (int c = 0; c < tile->panels; c++) {
        call.b[c] = tile->b[c].lines;
        call.b_heads[c] = tile->b[c].heads;
    }
    return call;
}

/* One tile over one slice of K, from `start` on; the last slice finishes it. */
static void run_tile(const struct contract *contract, const struct tile *tile, int64_t start)
{
    int64_t left = contract->shape.k - start;
    bool last = left <= SLICE_K;
    bool hidden = tile_hidden(tile->visible, tile->n);
    bool single = contract->shape.pieces == 1 && contract->shape.bits != 22;
    struct tile_call call = open_tile(contract, tile);
    float values[TILE_ROWS * TILE_COLUMNS];
    struct finish_call finish;
    bool direct = !last || open_finish(&finish, values, contract, tile);

    call.count = hidden ? 0 : (last ? left : SLICE_K);
    if (!last || !(single || hidden) || !contract->isa->tile_short(&call, &finish)) {
        if (start == 0) {
            memset(tile->sums, 0, sizeof(int64_t) * TILE_SUMS);
        }
        contract->isa->tile(&call);
        if (last) {
            contract->isa->finish(&finish);
        }
    }
    if (!direct) {
        scatter(contract, tile, values);
    }
}

/* All tiles of a task over one slice of K. */
static void run_slice(const struct contract *contract, struct task_scratch *scratch,
                      const struct task *task, int64_t start)
{
    bool whole = contract->shape.k <= SLICE_K;
    int64_t first_column = task->b_panel * PANEL_ROWS - task->batch * contract->b.batch_rows;
    int64_t used = 0;

    for (int64_t j = 0; j < task->b_count; j += TILE_PANELS) {
        for (int64_t i = 0; i < task->a_count * PANEL_ROWS; i += TILE_ROWS) {
            int64_t panels = task->b_count - j < TILE_PANELS ? task->b_count - j : TILE_PANELS;
            struct tile tile = {
                .out = contract->out + batch_place(contract, task->batch),
                .places = &scratch->places[i],
                .visible = &scratch->visible[i],
                .n = first_column + j * PANEL_ROWS,
                .panels = (int)panels,
                .a_row = (int)(i % PANEL_ROWS),
                .a = &scratch->a[i / PANEL_ROWS],
                .b = &scratch->b[j],
                .sums = scratch->sums + used,
            };

            run_tile(contract, &tile, start);
            used += whole ? 0 : TILE_SUMS;
        }
    }
}

static void run_task(const struct contract *contract, struct task_scratch *scratch,
                     const struct task *task)
{
    open_rows(scratch, contract, task->a_panel * PANEL_ROWS - task->batch * contract->a.batch_rows,
              task->a_count * PANEL_ROWS);
    for (int64_t start = 0; start < contract->shape.k; start += SLICE_K) {
        open_slices(scratch->a, contract, &contract->a, task->a_panel, task->a_count, start,
                    scratch->panels, scratch->lowest);
        open_slices(scratch->b, contract, &contract->b, task->b_panel, task->b_count, start,
                    scratch->panels + TASK_A * slice_size(&contract->shape),
                    scratch->lowest + TASK_A);
        run_slice(contract, scratch, task, start);
    }
}

/* The most panels that a batch of `rows` rows can touch, wherever it begins. */
static int64_t panels_touched(int64_t rows)
{
    return rows % PANEL_ROWS == 0 ? rows / PANEL_ROWS : (rows + 2 * PANEL_ROWS - 2) / PANEL_ROWS;
}

/* The range of panels of part `part` of a batch; an empty range where the batch has fewer. */
static void part_range(int64_t *first, int64_t *count, int64_t batch, int64_t rows, int64_t part,
                       int64_t width)
{
    int64_t begin = batch * rows / PANEL_ROWS;
    int64_t end = ((batch + 1) * rows + PANEL_ROWS - 1) / PANEL_ROWS;

    *first = begin + part * width;
    *count = end - *first < width ? end - *first : width;
}

static void run_tasks(const struct contract *contract, char *scratch, int thread_count)
{
    int64_t batches = contract->dims[0] * contract->dims[1];
    int64_t a_parts = (panels_touched(contract->a.batch_rows) + TASK_A - 1) / TASK_A;
    int64_t b_parts = (panels_touched(contract->b.batch_rows) + TASK_B - 1) / TASK_B;

#pragma omp parallel num_threads(thread_count)
    {
        char *mine = scratch + (size_t)contraction_thread() * thread_size(&contract->shape);
        struct task_scratch own;

        own.sums = (int64_t *)mine;
        own.panels = mine + sizeof(int64_t) * TASK_TILES * TILE_SUMS;
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < batches * a_parts * b_parts; t++) {
            struct task task = {.batch = t / (a_parts * b_parts)};

            part_range(&task.a_panel, &task.a_count, task.batch, contract->a.batch_rows,
                       t / b_parts % a_parts, TASK_A);
            part_range(&task.b_panel, &task.b_count, task.batch, contract->b.batch_rows,
                       t % b_parts, TASK_B);
            if (task.a_count > 0 && task.b_count > 0) {
                run_task(contract, &own, &task);
            }
            /* Stores past the caches are not ordered by the barrier's own. */
            atomic_thread_fence(memory_order_seq_cst);
        }
    }
}

/* ---- the kernel ---- */

static bool axis_is_unit(const int64_t *dims, const int64_t *strides)
{
    if (dims[1] == 1) {
        return dims[0] == 1 || strides[0] == 1;
    }
    return strides[1] == 1 && (dims[0] == 1 || strides[0] == dims[1]);
}

static struct operand_rows operand_rows(const struct contraction_shape *shape, const void *q,
                                        const void *exponents, int64_t batches, int64_t batch_rows)
{
    return (struct operand_rows){.q = q,
                                 .exponents = exponents,
                                 .layout = packed_layout(shape, batches * batch_rows),
                                 .batch_rows = batch_rows};
}

static void swap_pair(int64_t *left, int64_t *right)
{
    for (int i = 0; i < 2; i++) {
        int64_t held = left[i];

        left[i] = right[i];
        right[i] = held;
    }
}

void contraction_contract(const struct contraction_isa *isa, const struct kernel_call *call)
{
    const int64_t *attributes = call->op->attributes;
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct contract contract = {.isa = isa,
                                .shape = shape,
                                .packed = call->packed,
                                .causal = attributes[CONTRACT_CAUSAL],
                                .out = call->outputs[0]};
    int64_t batches = attributes[CONTRACT_DIMS] * attributes[CONTRACT_DIMS + 1];

    memcpy(contract.dims, &attributes[CONTRACT_DIMS], sizeof(contract.dims));
    memcpy(contract.strides, &attributes[CONTRACT_STRIDES], sizeof(contract.strides));
    contract.a = operand_rows(&shape, call->inputs[0], call->inputs[1], batches,
                              contract.dims[2] * contract.dims[3]);
    contract.b = operand_rows(&shape, call->inputs[2], call->inputs[3], batches,
                              contract.dims[4] * contract.dims[5]);
    contract.unit = axis_is_unit(&contract.dims[4], &contract.strides[4]);
    if (!contract.unit && contract.causal == 0 &&
        axis_is_unit(&contract.dims[2], &contract.strides[2])) {
        /* out is stored transposed: exchanging the operands makes its rows run along memory. */
        struct operand_rows held = contract.a;

        contract.a = contract.b;
        contract.b = held;
        swap_pair(&contract.dims[2], &contract.dims[4]);
        swap_pair(&contract.strides[2], &contract.strides[4]);
        contract.unit = true;
    }
    int64_t elements = batches * contract.a.batch_rows * contract.b.batch_rows;

    contract.stream = elements > STREAM_SIZE / (int64_t)sizeof(float);
    run_tasks(&contract, call->scratch,
              contraction_threads(call->thread_count, elements, THREAD_PRODUCTS / shape.k + 1));
}
