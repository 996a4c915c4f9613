/*
 * strip_columns_body.h - a view across memory times packed limbs: neighbouring columns of memory
 * become the rows of a strip (strip_body.h), so that a number is read once and its limbs are never
 * written. The other operand has few rows.
 */

/* Loads that are under way before the first is waited for; a lane has 16 or 32 of a step. */
#define STRIP_BATCH 16

/* A lane's column of memory, and where it is among the axes of k. */
struct strip_column {
    const float *x; /* of k = 0; NULL: the operand has no such row */
    uint32_t index; /* of the strip */
    uint32_t inner; /* dims[5] */
    int64_t strides[2];
};

static RULE INLINED struct strip_column
strip_column_of(const struct strip *strip, const struct strip_columns_args *args, uint32_t index)
{
    const struct contract_args *contract = &args->product.contract;
    const uint64_t rows = args->product.is_b ? contract->n : contract->m;
    const uint64_t own = strip->first + index;
    struct strip_column column;

    column.x = NULL;
    column.index = index;
    column.inner = (uint32_t)args->view.dims[5];
    column.strides[0] = args->view.strides[4];
    column.strides[1] = args->view.strides[5];
    if (own < rows) {
        column.x = args->view.x + view_row(&args->view, strip->batch * rows + own);
    }
    return column;
}

/* Elements k to k + count - 1 of a column, and the largest of their magnitudes so far. */
static RULE INLINED uint32_t strip_bring(const struct strip *strip,
                                         const struct strip_column *column, uint32_t k,
                                         uint32_t end, uint32_t largest)
{
    float *to = strip->x + column->index * strip->pitch + k;
    uint32_t outer = k / column->inner;
    uint32_t inner = k - outer * column->inner;
    float values[STRIP_BATCH];

    UNROLL
    for (uint32_t i = 0; i < STRIP_BATCH; i++) {
        values[i] = 0.0f;
        if (column->x != NULL && k + i < end) {
            values[i] = column->x[outer * column->strides[0] + inner * column->strides[1]];
        }
        inner++;
        if (inner == column->inner) {
            inner = 0;
            outer++;
        }
    }
    UNROLL
    for (uint32_t i = 0; i < STRIP_BATCH; i++) {
        const uint32_t magnitude = magnitude_of(values[i]);

        largest = magnitude > largest ? magnitude : largest;
        to[i] = values[i];
    }
    return largest;
}

/* A step of k to a warp; its lanes lie along memory. */
static RULE INLINED void strip_bring_all(const struct strip *strip,
                                         const struct strip_columns_args *args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const struct strip_column column = strip_column_of(strip, args, lane % strip->rows);
    const uint32_t end = (uint32_t)args->view.k;
    const uint32_t steps = strip->pieces * (CONTRACTION_PIECE / PACKED_STEP);

    for (uint32_t step = thread_index() / CUDA_WARP; step < steps; step += STRIP_WARPS) {
        const uint32_t piece = step / (CONTRACTION_PIECE / PACKED_STEP);
        uint32_t largest = 0;

        /* Half a step to a lane where 16 columns leave it every other one. */
        for (uint32_t at = lane / strip->rows * STRIP_BATCH; at < PACKED_STEP;
             at += STRIP_BATCH * (CUDA_WARP / strip->rows)) {
            largest = strip_bring(strip, &column, step * PACKED_STEP + at, end, largest);
        }
        atomic_max(&strip->peaks[column.index * STRIP_PIECES + piece], largest);
    }
}

static RULE INLINED void strip_columns(const struct strip_columns_args *args, enum limb_kind kind)
{
    const uint64_t batch = block_index() / args->strips;
    struct strip strip;

    strip_init(&strip, args->rows, block_index() % args->strips * args->rows, batch,
               &args->product);
    if (thread_index() < STRIP_ROWS * STRIP_PIECES) {
        strip.peaks[thread_index()] = 0;
    }
    barrier();
    strip_bring_all(&strip, args);
    strip_contract(&strip, &args->product, kind);
}

/* grid: strips of all batches; block: STRIP_THREADS. 14 bits. */
KERNEL_LIMITED(kernel_strip_columns_narrow, struct strip_columns_args, STRIP_THREADS)
{
    strip_columns(&args, LIMBS_FOUR);
}

/* The same for 15 and 16 bits. */
KERNEL_LIMITED(kernel_strip_columns_wide, struct strip_columns_args, STRIP_THREADS)
{
    strip_columns(&args, LIMBS_WIDE);
}

/* And both by halves. */
KERNEL_LIMITED(kernel_strip_halves_narrow, struct strip_columns_args, STRIP_THREADS)
{
    strip_columns(&args, LIMBS_HALVES_SHORT);
}

KERNEL_LIMITED(kernel_strip_halves_wide, struct strip_columns_args, STRIP_THREADS)
{
    strip_columns(&args, LIMBS_HALVES_WIDE);
}
