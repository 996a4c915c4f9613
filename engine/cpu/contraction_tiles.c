/*
 * contraction_tiles.c - exact matrix products, cut into tiles that fit the caches and the threads.
 *
 * A task is a block of TASK_A by TASK_B panels of one batch. It walks K in slices, and in a slice
 * tile by tile (8 rows by up to 48 columns) with 64-bit sums in scratch. Since the sums are exact,
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
#define TASK_SUMS  (TASK_TILES * TILE_SUMS) /* a multiple of 64 bytes */

/* A part of one panel, from the first element of a slice of K on. */
struct slice {
    const char *lines;
    size_t plane_size;
    const struct piece_head *heads;
    const int32_t *lowest;
};

struct operand_rows {
    const void *q; /* packed */
    struct packed_layout layout;
    int64_t batch_rows;
};

struct contract {
    const struct contraction_isa *isa;
    struct contraction_shape shape;
    struct operand_rows a;
    struct operand_rows b;
    bool stream; /* out is larger than the caches */
    bool unit;   /* neighbouring columns are neighbours in out */
    int64_t causal;
    int64_t dims[6]; /* as in the operation, A and B perhaps exchanged */
    int64_t strides[6];
    float *out;
};

/* What one thread owns. */
struct task_scratch {
    int64_t *sums; /* TASK_SUMS */
    struct slice a[TASK_A];
    struct slice b[TASK_B];
    int64_t places[TASK_A * PANEL_ROWS];  /* of the task's rows in out, inside the batch */
    int64_t visible[TASK_A * PANEL_ROWS]; /* columns that are not masked; 0: no such row */
};

size_t contraction_contract_scratch(const struct op *op, int thread_count)
{
    (void)op;
    return sizeof(int64_t) * TASK_SUMS * (size_t)thread_count;
}

/* ---- operands ---- */

static struct slice slice_of(const struct operand_rows *operand, int64_t panel, int64_t start)
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

static void open_slices(struct slice *slices, const struct operand_rows *operand, int64_t panel,
                        int64_t count, int64_t start)
{
    for (int64_t i = 0; i < count; i++) {
        slices[i] = slice_of(operand, panel + i, start);
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
        open_slices(scratch->a, &contract->a, task->a_panel, task->a_count, start);
        open_slices(scratch->b, &contract->b, task->b_panel, task->b_count, start);
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
        struct task_scratch own;

        own.sums = (int64_t *)scratch + (size_t)contraction_thread() * TASK_SUMS;
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
                                        int64_t batches, int64_t batch_rows)
{
    return (struct operand_rows){
        .q = q, .layout = packed_layout(shape, batches * batch_rows), .batch_rows = batch_rows};
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
    struct contract contract = {
        .isa = isa, .shape = shape, .causal = attributes[CONTRACT_CAUSAL], .out = call->outputs[0]};
    int64_t batches = attributes[CONTRACT_DIMS] * attributes[CONTRACT_DIMS + 1];

    memcpy(contract.dims, &attributes[CONTRACT_DIMS], sizeof(contract.dims));
    memcpy(contract.strides, &attributes[CONTRACT_STRIDES], sizeof(contract.strides));
    contract.a =
        operand_rows(&shape, call->inputs[0], batches, contract.dims[2] * contract.dims[3]);
    contract.b =
        operand_rows(&shape, call->inputs[2], batches, contract.dims[4] * contract.dims[5]);
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
