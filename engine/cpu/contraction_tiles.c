/*
 * contraction_tiles.c - exact matrix products, cut into tiles that fit the caches and the threads.
 *
 * A task is a block of TASK_A by TASK_B panels of one batch. It goes through K in slices, and in a
 * slice tile by tile (8 rows by up to 48 columns), with 64-bit sums in scratch. The sums are exact,
 * so the cut does not change a bit.
 *
 * Batches are ranges of flat rows and need not begin with a panel. A panel may hold rows of the
 * neighbouring batch; they are computed and not written.
 *
 * Where each row has an expert, rows are first copied together by their experts, in any order: an
 * expert is then a batch. Where sums are apart by expert, places along K are: each expert is then a
 * product of its own.
 */
#include <stdatomic.h>
#include <string.h>

#include "engine/cpu/contraction_packed.h"

#define TASK_A  8   /* panels */
#define TASK_B  12  /* panels, a multiple of TILE_PANELS */
#define SLICE_K 256 /* elements, whole pieces: three panels of B stay in the first cache */

#define TASK_TILES (TASK_A * (PANEL_ROWS / TILE_ROWS) * (TASK_B / TILE_PANELS))
#define TASK_SUMS  (TASK_TILES * TILE_SUMS) /* a multiple of 64 bytes */

/* One panel from the first element of a slice of K on. */
struct panel_slice {
    const char *lines;
    size_t plane_size;
    const struct piece_head *heads;
    const int32_t *lowest;
};

/* One per thread. */
struct task_scratch {
    int64_t *sums; /* TASK_SUMS */
    struct panel_slice a[TASK_A];
    struct panel_slice b[TASK_B];
    int64_t places[TASK_A * PANEL_ROWS];  /* of the task's rows in out, inside the batch */
    int64_t visible[TASK_A * PANEL_ROWS]; /* columns that are not masked; 0: not in the batch */
};

size_t contraction_contract_scratch(const struct op *op, int thread_count)
{
    (void)op;
    return sizeof(int64_t) * TASK_SUMS * (size_t)thread_count;
}

/* ---- operands ---- */

static struct panel_slice slice_of(const struct operand_rows *operand, int64_t panel, int64_t start)
{
    const struct packed_layout *layout = &operand->layout;
    const char *lines = (const char *)operand->q + (size_t)panel * layout->panel_size;

    return (struct panel_slice){
        .lines = lines + start / 2 * LINE_SIZE,
        .plane_size = layout->plane_size,
        .heads = panel_heads(layout, lines) + start / layout->shape.piece,
        .lowest = panel_lowest(layout, lines),
    };
}

static void open_slices(struct panel_slice *slices, const struct operand_rows *operand,
                        int64_t panel, int64_t count, int64_t start)
{
    for (int64_t i = 0; i < count; i++) {
        slices[i] = slice_of(operand, panel + i, start);
    }
}

/* ---- output ---- */

static int64_t row_place(const struct product *product, int64_t m)
{
    return m / product->dims[3] * product->strides[2] + m % product->dims[3] * product->strides[3];
}

static int64_t column_place(const struct product *product, int64_t n)
{
    return n / product->dims[5] * product->strides[4] + n % product->dims[5] * product->strides[5];
}

struct tile {
    float *out;             /* of its batch */
    const int64_t *places;  /* of its rows in out; see task_scratch */
    const int64_t *visible; /* of its rows; see task_scratch */
    int64_t n;              /* its first column in the batch; negative before the batch */
    int panels;
    int a_row; /* its first row inside its panel */
    const struct panel_slice *a;
    const struct panel_slice *b;
    int64_t *sums;
};

/* The same of rows that stand together by their experts. */
static void open_grouped_rows(struct task_scratch *scratch, const struct product *product,
                              int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t row = product->groups->order[first + i];

        scratch->places[i] = row == ROW_NONE ? 0 : row_place(product, row);
        scratch->visible[i] = row == ROW_NONE ? 0 : product->b.batch_rows;
    }
}

/* Computes places and visible columns of the task's rows once: divisions would slow short tiles. */
static void open_rows(struct task_scratch *scratch, const struct product *product, int64_t first,
                      int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t m = first + i;

        scratch->visible[i] = 0;
        scratch->places[i] = 0;
        if (m >= 0 && m < product->a.batch_rows) {
            scratch->places[i] = row_place(product, m);
            scratch->visible[i] =
                product->causal > 0 ? m % product->causal + 1 : product->b.batch_rows;
        }
    }
}

/* Is every element of the tile masked? */
static bool tile_hidden(const int64_t *visible, int64_t n)
{
    int64_t most = 0;

    for (int r = 0; r < TILE_ROWS; r++) {
        most = visible[r] > most ? visible[r] : most;
    }
    return n >= most;
}

/* Writes a finished tile whose columns are not neighbours in out. */
static void scatter_tile(const struct product *product, const struct tile *tile,
                         const float *values)
{
    for (int r = 0; r < TILE_ROWS; r++) {
        for (int c = 0; c < tile->panels * PANEL_ROWS && tile->visible[r] > 0; c++) {
            int64_t n = tile->n + c;

            if (n >= 0 && n < product->b.batch_rows) {
                tile->out[tile->places[r] + column_place(product, n)] =
                    values[r * TILE_COLUMNS + c];
            }
        }
    }
}

/* Directs a tile's values to out (true), or to `values` for scatter_tile(). */
static bool open_finish(struct finish_call *call, float *values, const struct product *product,
                        const struct tile *tile)
{
    bool direct = product->unit && tile->n >= 0;

    call->sums = tile->sums;
    call->panels = tile->panels;
    call->stream = direct && product->stream;
    call->exponent = -2 * (product->shape.bits - 1);
    call->a_lowest = tile->a->lowest + tile->a_row;
    for (int c = 0; c < tile->panels; c++) {
        int64_t left = product->b.batch_rows - tile->n - c * PANEL_ROWS;

        call->b_lowest[c] = tile->b[c].lowest;
        call->wanted[c] =
            !direct || left >= PANEL_ROWS ? 0xffff : (left <= 0 ? 0 : (1U << left) - 1);
    }
    for (int r = 0; r < TILE_ROWS; r++) {
        call->out[r] = direct ? tile->out + tile->places[r] + tile->n : values + r * TILE_COLUMNS;
        call->out[r] = tile->visible[r] > 0 ? call->out[r] : NULL;
        call->visible[r] = tile->visible[r] - tile->n;
        /* The lines come from memory while the tile adds its products. */
        for (int c = 0; direct && !call->stream && call->out[r] != NULL && c < call->panels; c++) {
            __builtin_prefetch(call->out[r] + c * PANEL_ROWS, 1);
        }
    }
    return direct;
}

/* ---- tasks ---- */

struct tile_task {
    int64_t batch;
    int64_t a_panel;
    int64_t b_panel;
    int64_t a_count;
    int64_t b_count;
};

/* Member by member: a whole one is zeroed and copied, and a tile waits for both. */
static void open_tile(struct tile_call *call, const struct product *product,
                      const struct tile *tile, int64_t count)
{
    call->a = tile->a->lines + tile->a_row * 4;
    call->a_heads = tile->a->heads;
    call->a_row = tile->a_row;
    call->a_plane_size = tile->a->plane_size;
    call->b_plane_size = tile->b->plane_size;
    call->panels = tile->panels;
    call->bits = product->shape.bits;
    call->piece = product->shape.piece;
    call->count = count;
    call->sums = tile->sums;
    for (int c = 0; c < tile->panels; c++) {
        call->b[c] = tile->b[c].lines;
        call->b_heads[c] = tile->b[c].heads;
    }
}

/* Line by line: the C library's function takes longer to begin than this takes. */
static void clear_sums(int64_t *sums)
{
    for (int i = 0; i < TILE_SUMS; i += LINE_SIZE / (int)sizeof(*sums)) {
        for (int j = 0; j < LINE_SIZE / (int)sizeof(*sums); j++) {
            sums[i + j] = 0;
        }
        atomic_signal_fence(memory_order_seq_cst); /* so that no compiler calls that function */
    }
}

/* Runs one tile over the slice of K at `start`. The last slice finishes the tile. */
static void run_tile(const struct product *product, const struct tile *tile, int64_t start)
{
    int64_t left = product->shape.k - start;
    bool last = left <= SLICE_K;
    bool hidden = tile_hidden(tile->visible, tile->n);
    bool single = product->shape.pieces == 1 && product->shape.bits != 22;
    struct tile_call call;
    float values[TILE_ROWS * TILE_COLUMNS];
    struct finish_call finish;
    bool direct = !last || open_finish(&finish, values, product, tile);

    open_tile(&call, product, tile, hidden ? 0 : (last ? left : SLICE_K));
    if (!last || !(single || hidden) || !product->isa->tile_short(&call, &finish)) {
        if (start == 0) {
            clear_sums(tile->sums);
        }
        product->isa->tile(&call);
        if (last) {
            product->isa->finish(&finish);
        }
    }
    if (!direct) {
        scatter_tile(product, tile, values);
    }
}

/* Runs all tiles of a task over one slice of K. */
static void run_slice(const struct product *product, struct task_scratch *scratch,
                      const struct tile_task *task, int64_t start)
{
    bool whole = product->shape.k <= SLICE_K;
    int64_t first_column = task->b_panel * PANEL_ROWS - task->batch * product->b.batch_rows;
    int64_t used = 0;

    for (int64_t j = 0; j < task->b_count; j += TILE_PANELS) {
        for (int64_t i = 0; i < task->a_count * PANEL_ROWS; i += TILE_ROWS) {
            int64_t panels = task->b_count - j < TILE_PANELS ? task->b_count - j : TILE_PANELS;
            struct tile tile = {
                .out = product->out + batch_place(product, task->batch),
                .places = &scratch->places[i],
                .visible = &scratch->visible[i],
                .n = first_column + j * PANEL_ROWS,
                .panels = (int)panels,
                .a_row = (int)(i % PANEL_ROWS),
                .a = &scratch->a[i / PANEL_ROWS],
                .b = &scratch->b[j],
                .sums = scratch->sums + used,
            };

            run_tile(product, &tile, start);
            used += whole ? 0 : TILE_SUMS;
        }
    }
}

static void run_task(const struct product *product, struct task_scratch *scratch,
                     const struct tile_task *task)
{
    if (product->groups != NULL) {
        open_grouped_rows(scratch, product, task->a_panel * PANEL_ROWS, task->a_count * PANEL_ROWS);
    } else {
        open_rows(scratch, product,
                  task->a_panel * PANEL_ROWS - task->batch * product->a.batch_rows,
                  task->a_count * PANEL_ROWS);
    }
    for (int64_t start = 0; start < product->shape.k; start += SLICE_K) {
        open_slices(scratch->a, &product->a, task->a_panel, task->a_count, start);
        open_slices(scratch->b, &product->b, task->b_panel, task->b_count, start);
        run_slice(product, scratch, task, start);
    }
}

/* The most panels that a batch of `rows` rows can touch. */
static int64_t panels_touched(int64_t rows)
{
    return rows % PANEL_ROWS == 0 ? rows / PANEL_ROWS : (rows + 2 * PANEL_ROWS - 2) / PANEL_ROWS;
}

/* The panels of part `part` of a batch; none where the batch has fewer. */
static void part_range(int64_t *first, int64_t *count, int64_t batch, int64_t rows, int64_t part,
                       int64_t width)
{
    int64_t begin = batch * rows / PANEL_ROWS;
    int64_t end = ((batch + 1) * rows + PANEL_ROWS - 1) / PANEL_ROWS;

    *first = begin + part * width;
    *count = end - *first < width ? end - *first : width;
}

/* The panels of a group's part, likewise. */
static void group_range(int64_t *first, int64_t *count, const struct row_groups *groups,
                        int64_t group, int64_t part, int64_t width)
{
    int64_t end = groups->panels[group + 1];

    *first = groups->panels[group] + part * width;
    *count = end - *first < width ? end - *first : width;
}

/* The most panels of A that a batch has. */
static int64_t most_panels(const struct product *product, int64_t batches)
{
    int64_t most = 0;

    if (product->groups == NULL) {
        return panels_touched(product->a.batch_rows);
    }
    for (int64_t group = 0; group < batches; group++) {
        int64_t count = product->groups->panels[group + 1] - product->groups->panels[group];

        most = count > most ? count : most;
    }
    return most;
}

void contraction_run_product(const struct product *product, char *scratch, int thread_count)
{
    int64_t batches = product->dims[0] * product->dims[1];
    int64_t a_parts = (most_panels(product, batches) + TASK_A - 1) / TASK_A;
    int64_t b_parts = (panels_touched(product->b.batch_rows) + TASK_B - 1) / TASK_B;

#pragma omp parallel num_threads(thread_count)
    {
        struct task_scratch own;

        own.sums = (int64_t *)scratch + (size_t)contraction_thread() * TASK_SUMS;
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < batches * a_parts * b_parts; t++) {
            struct tile_task task = {.batch = t / (a_parts * b_parts)};

            if (product->groups != NULL) {
                group_range(&task.a_panel, &task.a_count, product->groups, task.batch,
                            t / b_parts % a_parts, TASK_A);
            } else {
                part_range(&task.a_panel, &task.a_count, task.batch, product->a.batch_rows,
                           t / b_parts % a_parts, TASK_A);
            }
            part_range(&task.b_panel, &task.b_count, task.batch, product->b.batch_rows, t % b_parts,
                       TASK_B);
            if (task.a_count > 0 && task.b_count > 0) {
                run_task(product, &own, &task);
            }
            /* The barrier does not order stores past the caches. */
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

struct operand_rows contraction_operand(const struct contraction_shape *shape, const void *q,
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
    struct product product = {
        .isa = isa, .shape = shape, .causal = attributes[CONTRACT_CAUSAL], .out = call->outputs[0]};
    int64_t batches = attributes[CONTRACT_DIMS] * attributes[CONTRACT_DIMS + 1];

    memcpy(product.dims, &attributes[CONTRACT_DIMS], sizeof(product.dims));
    memcpy(product.strides, &attributes[CONTRACT_STRIDES], sizeof(product.strides));
    product.a =
        contraction_operand(&shape, call->inputs[0], batches, product.dims[2] * product.dims[3]);
    product.b =
        contraction_operand(&shape, call->inputs[2], batches, product.dims[4] * product.dims[5]);
    product.unit = axis_is_unit(&product.dims[4], &product.strides[4]);
    if (!product.unit && product.causal == 0 &&
        axis_is_unit(&product.dims[2], &product.strides[2])) {
        /* out is stored transposed; with A and B exchanged its rows run along memory. */
        struct operand_rows held = product.a;

        product.a = product.b;
        product.b = held;
        swap_pair(&product.dims[2], &product.dims[4]);
        swap_pair(&product.strides[2], &product.strides[4]);
        product.unit = true;
    }
    int64_t elements = batches * product.a.batch_rows * product.b.batch_rows;

    if (contraction_is_dots(&product)) {
        contraction_run_dots(
            &product, contraction_threads(call->thread_count, batches * shape.k, THREAD_ELEMENTS));
        return;
    }
    product.stream = elements > STREAM_SIZE / (int64_t)sizeof(float);
    contraction_run_product(
        &product, call->scratch,
        contraction_threads(call->thread_count, elements, THREAD_PRODUCTS / shape.k + 1));
}
