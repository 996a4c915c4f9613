/*
 * contraction_quantize.c - quantization of any permuted view, in one pass over memory.
 *
 * A block's exponent depends on its row's largest element only if the block lies more than W binary
 * orders below it. So each block is quantized as it is read, with its own exponent, and the few
 * that lie too low are quantized again when the row is complete.
 *
 * Views whose rows run along memory are read row by row. Views whose neighbouring rows are
 * neighbours in memory (a transposed matrix) are read in stripes of up to GROUP_PANELS panels, to
 * use whole cache lines and pages. Other views are gathered piece by piece. Numbers of 16 bits are
 * widened piece by piece, so no whole binary32 copy of them exists.
 */
#include <stdatomic.h>
#include <string.h>

#include "engine/cpu/contraction_packed.h"
#include "engine/ops/element.h"

#define GROUP_PANELS 64    /* panels side by side in a stripe of a transposed view */
#define AHEAD_PANELS 8     /* of these, fetched from memory together */
#define TASK_LENGTH  8192  /* elements of a row per task, where rows run along memory */
#define FAR_ELEMENTS 65536 /* fewer have stayed in the caches since they were made */

static const float zeros[CONTRACTION_PIECE];

struct quantizer {
    const struct contraction_isa *isa;
    const struct op *op;
    struct packed_layout layout;
    const float *x;       /* NULL: half */
    const uint16_t *half; /* of this type */
    enum dtype dtype;
    const int16_t *shifts; /* c; NULL: none */
    int16_t *peaks;        /* may be NULL */
    int16_t *exponents;
    bool stream;      /* q is larger than the caches */
    bool far;         /* x may lie beyond the second cache */
    int64_t k_stride; /* 0: the two axes of k do not join into one */
};

static int64_t joined_stride(const struct op *op)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];

    if (dims[4] * dims[5] == 1) {
        return 1;
    }
    if (dims[4] == 1 || (dims[5] > 1 && strides[4] == dims[5] * strides[5])) {
        return strides[5];
    }
    return dims[5] == 1 ? strides[4] : 0;
}

/* The places in x of element 0 of `count` rows from `row` on. */
static void row_places(int64_t *places, const struct op *op, int64_t row, int count)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    int64_t at[4];
    int64_t place = 0;

    for (int axis = 3; axis >= 0; axis--) {
        const int64_t outer = row < dims[axis] ? 0 : row / dims[axis]; /* a division is slow */

        at[axis] = row - outer * dims[axis];
        row = outer;
        place += at[axis] * strides[axis];
    }
    for (int i = 0; i < count; i++) {
        int axis = 3;

        places[i] = place;
        at[3]++;
        place += strides[3];
        while (axis > 0 && at[axis] == dims[axis]) {
            place += strides[axis - 1] - at[axis] * strides[axis];
            at[axis] = 0;
            at[--axis]++;
        }
    }
}

/* The rows of one panel in x. */
struct panel_view {
    int64_t places[PANEL_ROWS];
    const int16_t *shifts[PANEL_ROWS]; /* of element 0 of each row */
    int64_t first_row;
    int row_count;
    int64_t ahead; /* elements to the same row of the next panel, if all rows lie evenly */
    bool adjacent;
};

/* Finds the shifts of the rows that there are: are they the same for all? Of most panels two
 * divisions tell it. */
static bool find_shifts(struct panel_view *view, const struct quantizer *quantizer)
{
    const uint64_t first = (uint64_t)view->first_row;
    const uint64_t last = first + (uint64_t)view->row_count - 1;
    const uint64_t place = quantize_shift_place(quantizer->op, first, 0);
    const bool same = quantize_shift_place(quantizer->op, last, 0) == place;

    for (uint64_t row = first; row <= last; row++) {
        view->shifts[row - first] =
            quantizer->shifts + (same ? place : quantize_shift_place(quantizer->op, row, 0));
    }
    return same;
}

static struct panel_view panel_view(const struct quantizer *quantizer, int64_t panel)
{
    struct panel_view view; /* places and shifts of rows that there are */
    int64_t left = quantizer->layout.rows - panel * PANEL_ROWS;

    view.first_row = panel * PANEL_ROWS;
    view.row_count = left < PANEL_ROWS ? (int)left : PANEL_ROWS;
    row_places(view.places, quantizer->op, view.first_row, view.row_count);
    view.ahead = view.row_count == PANEL_ROWS ? PANEL_ROWS * (view.places[1] - view.places[0]) : 0;
    view.adjacent = view.row_count == PANEL_ROWS && quantizer->k_stride != 0;
    for (int r = 1; r < view.row_count; r++) {
        view.adjacent &= view.places[r] == view.places[0] + r;
    }
    if (quantizer->shifts != NULL) {
        view.adjacent &= find_shifts(&view, quantizer);
    }
    return view;
}

/*
 * Rows that stand across x are read a line at a time, at distances that no processor foresees, so
 * a panel would wait for memory line by line. Before the first of each AHEAD_PANELS neighbours
 * reads the piece at `start`, the piece of all of them is asked for, in the order in which it lies.
 * from, end: the first panel of the stripe, and one past its last.
 */
static void fetch_panels(const struct quantizer *quantizer, int64_t panel, int64_t from,
                         int64_t end, int64_t start)
{
    const struct contraction_shape *shape = &quantizer->layout.shape;
    const int64_t count = end - panel < AHEAD_PANELS ? end - panel : AHEAD_PANELS;
    const int64_t length = shape->k - start < shape->piece ? shape->k - start : shape->piece;
    int64_t first;
    int64_t last;

    if ((panel - from) % AHEAD_PANELS != 0 || quantizer->k_stride <= 1 || !quantizer->far) {
        return;
    }
    row_places(&first, quantizer->op, panel * PANEL_ROWS, 1);
    row_places(&last, quantizer->op, (panel + count - 1) * PANEL_ROWS, 1);
    if (last - first != (count - 1) * PANEL_ROWS) {
        return; /* they lie apart */
    }
    for (int64_t k = 0; k < length; k++) {
        const float *x = quantizer->x + first + (start + k) * quantizer->k_stride;

        for (int64_t i = 0; i < count; i++) {
            __builtin_prefetch(x + i * PANEL_ROWS);
        }
    }
    atomic_signal_fence(memory_order_seq_cst); /* gcc leaves out a function that only fetches */
}

/* ---- numbers of 16 bits ---- */

static inline float widened_half(const struct quantizer *quantizer, int64_t place)
{
    const uint32_t bits = quantizer->half[place];

    return quantizer->dtype == DTYPE_BF16 ? real_from_bits(bits << 16) : element_from_f16(bits);
}

/* Widens a run. */
static void widen_run(float *to, const struct quantizer *quantizer, int64_t place, int64_t count)
{
    const uint16_t *half = quantizer->half + place;

    if (quantizer->dtype == DTYPE_BF16) {
        for (int64_t k = 0; k < count; k++) {
            to[k] = real_from_bits((uint32_t)half[k] << 16);
        }
    } else {
        for (int64_t k = 0; k < count; k++) {
            to[k] = element_from_f16(half[k]);
        }
    }
}

/* Takes a piece of adjacent rows to local lines of PANEL_ROWS elements. */
static void widen_lines(struct piece_source *source, float *local,
                        const struct quantizer *quantizer, int64_t place)
{
    for (int64_t k = 0; k < source->count; k++) {
        widen_run(local + k * PANEL_ROWS, quantizer, place + k * source->stride, PANEL_ROWS);
    }
    source->rows[0] = local;
    source->stride = PANEL_ROWS;
}

/* ---- pieces ---- */

/* Copies a piece of any view to local rows of CONTRACTION_PIECE elements. */
static void gather_piece(float *local, const struct quantizer *quantizer,
                         const struct panel_view *view, int64_t start, int64_t count)
{
    const int64_t *dims = &quantizer->op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &quantizer->op->attributes[QUANTIZE_STRIDES];
    int64_t outer = start / dims[5];
    int64_t inner = start % dims[5];

    for (int64_t k = 0; k < count; k++) {
        const int64_t at = outer * strides[4] + inner * strides[5];

        for (int r = 0; r < view->row_count; r++) {
            local[r * CONTRACTION_PIECE + k] = quantizer->x != NULL
                                                   ? quantizer->x[at + view->places[r]]
                                                   : widened_half(quantizer, at + view->places[r]);
        }
        if (++inner == dims[5]) {
            inner = 0;
            outer++;
        }
    }
}

/* Fills source with a piece, not shifted yet; gathers it into local if the view needs it. */
static void piece_open(struct piece_source *source, float *local, const struct quantizer *quantizer,
                       const struct panel_view *view, int64_t start)
{
    const struct contraction_shape *shape = &quantizer->layout.shape;

    source->factors = NULL;
    source->count = shape->k - start < shape->piece ? shape->k - start : shape->piece;
    source->adjacent = view->adjacent && quantizer->k_stride != 1;
    source->stride = quantizer->k_stride;
    source->ahead = 0;
    if (source->adjacent) {
        const int64_t place = view->places[0] + start * quantizer->k_stride;

        if (quantizer->x == NULL) {
            widen_lines(source, local, quantizer, place);
        } else {
            source->rows[0] = quantizer->x + place;
        }
        return;
    }
    if (quantizer->k_stride != 1) {
        gather_piece(local, quantizer, view, start, source->count);
    } else if (quantizer->x != NULL) {
        source->ahead = start + shape->piece < shape->k ? shape->piece : view->ahead - start;
    }
    for (int r = 0; r < PANEL_ROWS; r++) {
        if (r >= view->row_count) {
            source->rows[r] = zeros;
        } else if (quantizer->k_stride == 1 && quantizer->x != NULL) {
            source->rows[r] = quantizer->x + view->places[r] + start;
        } else {
            source->rows[r] = local + r * CONTRACTION_PIECE;
            if (quantizer->k_stride == 1) {
                widen_run(local + r * CONTRACTION_PIECE, quantizer, view->places[r] + start,
                          source->count);
            }
        }
    }
}

/* The factors that were found last: panels of a stripe have the same. */
struct factors {
    const int16_t *shifts; /* NULL: none were found */
    float of[CONTRACTION_PIECE];
};

static const float *find_factors(struct factors *factors, const int16_t *shifts, int64_t count)
{
    if (factors->shifts != shifts) {
        factors->shifts = shifts;
#pragma omp simd
        for (int64_t k = 0; k < count; k++) {
            factors->of[k] = quantize_factor(shifts[k]);
        }
    }
    return factors->of;
}

/* Takes a piece of adjacent rows, shifted, to local lines of PANEL_ROWS elements. */
static void shift_lines(struct piece_source *source, float *local, const float *factors)
{
    for (int64_t k = 0; k < source->count; k++) {
        const float *x = source->rows[0] + k * source->stride;
        float *to = local + k * PANEL_ROWS;

#pragma omp simd
        for (int r = 0; r < PANEL_ROWS; r++) {
            to[r] = quantize_shifted(x[r], factors[k]);
        }
    }
    source->rows[0] = local;
    source->stride = PANEL_ROWS;
}

/* Takes a row, shifted, to a local one, which may be itself. */
static void shift_row(float *to, const float *x, const float *factors, int64_t count)
{
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        to[k] = quantize_shifted(x[k], factors[k]);
    }
}

/* Takes a piece that was opened to local memory, shifted. */
static void piece_shift(struct piece_source *source, float *local, const struct panel_view *view,
                        int64_t start)
{
    struct factors factors = {.shifts = NULL};

    if (source->adjacent) {
        shift_lines(source, local, find_factors(&factors, view->shifts[0] + start, source->count));
        return;
    }
    for (int r = 0; r < view->row_count; r++) {
        float *row = local + r * CONTRACTION_PIECE;

        shift_row(row, source->rows[r],
                  find_factors(&factors, view->shifts[r] + start, source->count), source->count);
        source->rows[r] = row;
    }
}

/* As the rule reads it. */
static void piece_open_shifted(struct piece_source *source, float *local,
                               const struct quantizer *quantizer, const struct panel_view *view,
                               int64_t start)
{
    piece_open(source, local, quantizer, view, start);
    if (quantizer->shifts != NULL) {
        piece_shift(source, local, view, start);
    }
}

/* Quantizes one piece of a panel with the given exponents. */
static void piece_integers(const struct quantizer *quantizer, char *panel, int64_t start,
                           const struct piece_source *source, const int32_t *exponents)
{
    const struct packed_layout *layout = &quantizer->layout;
    const struct contraction_isa *isa = quantizer->isa;
    struct piece_head *head = &panel_heads(layout, panel)[start / layout->shape.piece];
    char *lines = panel + start / 2 * LINE_SIZE;
    int64_t pairs = (source->count + 1) / 2;
    int bits = layout->shape.bits;

    if (!quantizer->stream) {
        isa->integers(lines, layout->plane_size, source, exponents, bits);
        isa->norms(head->norms, lines, layout->plane_size, pairs, bits);
        return;
    }
    char local[PLANES_MAX * CONTRACTION_PIECE / 2 * LINE_SIZE] __attribute__((aligned(LINE_SIZE)));
    size_t size = (size_t)pairs * LINE_SIZE;

    isa->integers(local, size, source, exponents, bits);
    isa->norms(head->norms, local, size, pairs, bits);
    for (int p = 0; p < layout->planes; p++) {
        isa->stream(lines + (size_t)p * layout->plane_size, local + (size_t)p * size, size);
    }
}

/* Quantizes the pieces of one block of a panel with the given exponents. */
static void block_integers(const struct quantizer *quantizer, char *panel,
                           const struct panel_view *view, int64_t block, const int32_t *exponents)
{
    const struct contraction_shape *shape = &quantizer->layout.shape;
    int64_t end =
        shape->k - block * shape->block < shape->block ? shape->k : (block + 1) * shape->block;
    float local[PANEL_ROWS * CONTRACTION_PIECE];
    struct piece_source source;

    for (int64_t start = block * shape->block; start < end; start += shape->piece) {
        piece_open_shifted(&source, local, quantizer, view, start);
        piece_integers(quantizer, panel, start, &source, exponents);
    }
}

/* Stores the peaks of one piece, and raises the magnitudes of its block. */
static void note_peaks(const struct quantizer *quantizer, uint32_t *most,
                       const struct panel_view *view, int64_t piece, const uint32_t *largest)
{
    for (int r = 0; r < PANEL_ROWS; r++) {
        most[r] = largest[r] > most[r] ? largest[r] : most[r];
        if (quantizer->peaks != NULL && r < view->row_count) {
            quantizer->peaks[(view->first_row + r) * quantizer->layout.shape.pieces + piece] =
                (int16_t)exponent_of_bits(largest[r]);
        }
    }
}

/* Stores the block's exponents; finish_panel() raises them to top - W. */
static void note_exponents(const struct quantizer *quantizer, int32_t *exponents,
                           const struct panel_view *view, int64_t block, const uint32_t *most)
{
    for (int r = 0; r < PANEL_ROWS; r++) {
        exponents[r] = exponent_of_bits(most[r]);
        if (r < view->row_count) {
            quantizer->exponents[(view->first_row + r) * quantizer->layout.shape.blocks + block] =
                (int16_t)exponents[r];
        }
    }
}

/* Finds the magnitudes of a piece as it counts, and leaves it in local memory where its rows stand
 * across x: at a distance of a power of two they evict each other. */
static void piece_take(struct piece_source *source, float *local, uint32_t *largest,
                       const struct quantizer *quantizer, const struct panel_view *view,
                       int64_t start, struct factors *factors)
{
    piece_open(source, local, quantizer, view, start);
    if (quantizer->shifts != NULL && source->adjacent) { /* as they are copied */
        source->factors = find_factors(factors, view->shifts[0] + start, source->count);
    } else if (quantizer->shifts != NULL) {
        piece_shift(source, local, view, start);
    }
    quantizer->isa->magnitudes(largest, source, local);
    if (source->adjacent) {
        source->rows[0] = local;
        source->stride = PANEL_ROWS;
        source->factors = NULL;
    }
}

/* Reads a block of one piece once: a copy keeps elements that are gathered or far apart in memory.
 * (Rows at a distance of a power of two evict each other from the first cache.) */
static void quantize_piece(const struct quantizer *quantizer, char *panel,
                           const struct panel_view *view, int64_t block, struct factors *factors)
{
    int64_t start = block * quantizer->layout.shape.block;
    float local[PANEL_ROWS * CONTRACTION_PIECE] __attribute__((aligned(LINE_SIZE)));
    uint32_t most[PANEL_ROWS] = {0};
    uint32_t largest[PANEL_ROWS];
    int32_t exponents[PANEL_ROWS];
    struct piece_source source;

    piece_take(&source, local, largest, quantizer, view, start, factors);
    note_peaks(quantizer, most, view, block, largest);
    note_exponents(quantizer, exponents, view, block, most);
    if (panel != NULL) {
        piece_integers(quantizer, panel, start, &source, exponents);
    }
}

static void quantize_block(const struct quantizer *quantizer, char *panel,
                           const struct panel_view *view, int64_t block)
{
    const struct contraction_shape *shape = &quantizer->layout.shape;
    int64_t first = block * shape->block_span;
    int64_t last =
        first + shape->block_span < shape->pieces ? first + shape->block_span : shape->pieces;
    float local[PANEL_ROWS * CONTRACTION_PIECE];
    uint32_t most[PANEL_ROWS] = {0};
    int32_t exponents[PANEL_ROWS];
    struct piece_source source;

    for (int64_t piece = first; piece < last; piece++) {
        uint32_t largest[PANEL_ROWS];

        piece_open_shifted(&source, local, quantizer, view, piece * shape->piece);
        quantizer->isa->magnitudes(largest, &source, NULL);
        note_peaks(quantizer, most, view, piece, largest);
    }
    note_exponents(quantizer, exponents, view, block, most);
    if (panel != NULL) {
        block_integers(quantizer, panel, view, block, exponents);
    }
}

static char *panel_of(const struct quantizer *quantizer, char *packed, int64_t panel)
{
    return packed == NULL ? NULL : packed + (size_t)panel * quantizer->layout.panel_size;
}

/*
 * A block of several pieces, of neighbouring panels whose rows stand across x: piece by piece for
 * all of them, since a panel alone would visit as many pages as a piece has elements.
 */
static void quantize_stripe(const struct quantizer *quantizer, char *packed, int64_t panel,
                            int64_t end, int64_t block, struct factors *factors)
{
    const struct contraction_shape *shape = &quantizer->layout.shape;
    int64_t from = block * shape->block;
    int64_t to = shape->k - from < shape->block ? shape->k : from + shape->block;
    float local[PANEL_ROWS * CONTRACTION_PIECE] __attribute__((aligned(LINE_SIZE)));
    struct panel_view views[GROUP_PANELS];
    uint32_t most[GROUP_PANELS][PANEL_ROWS] = {{0}};
    int32_t exponents[GROUP_PANELS][PANEL_ROWS];
    struct piece_source source;

    for (int64_t p = panel; p < end; p++) {
        views[p - panel] = panel_view(quantizer, p);
    }
    for (int64_t start = from; start < to; start += shape->piece) {
        for (int64_t p = 0; p < end - panel; p++) {
            uint32_t largest[PANEL_ROWS];

            fetch_panels(quantizer, panel + p, panel, end, start);
            piece_take(&source, local, largest, quantizer, &views[p], start, factors);
            note_peaks(quantizer, most[p], &views[p], start / shape->piece, largest);
        }
    }
    for (int64_t p = 0; p < end - panel; p++) {
        note_exponents(quantizer, exponents[p], &views[p], block, most[p]);
    }
    for (int64_t start = from; start < to && packed != NULL; start += shape->piece) {
        for (int64_t p = 0; p < end - panel; p++) {
            uint32_t unused[PANEL_ROWS];

            fetch_panels(quantizer, panel + p, panel, end, start);
            piece_take(&source, local, unused, quantizer, &views[p], start, factors);
            piece_integers(quantizer, panel_of(quantizer, packed, panel + p), start, &source,
                           exponents[p]);
        }
    }
}

static void quantize_blocks(const struct quantizer *quantizer, char *panel, int64_t index,
                            int64_t first, int64_t last, struct factors *factors)
{
    struct panel_view view = panel_view(quantizer, index);

    for (int64_t block = first; block < last; block++) {
        if (quantizer->layout.shape.block_span == 1) {
            quantize_piece(quantizer, panel, &view, block, factors);
        } else {
            quantize_block(quantizer, panel, &view, block);
        }
    }
}

/* Raises exponents to top - W, quantizes the changed blocks again, and writes the panel's head.
 * panel NULL: the exponents alone. */
static void finish_panel(const struct quantizer *quantizer, char *panel, int64_t index)
{
    const struct packed_layout *layout = &quantizer->layout;
    const struct contraction_shape *shape = &layout->shape;
    struct panel_view view = panel_view(quantizer, index);
    int16_t *rows = quantizer->exponents + view.first_row * shape->blocks;
    struct piece_head *heads = panel == NULL ? NULL : panel_heads(layout, panel);
    int32_t unused[PANEL_ROWS];
    int32_t *lowest = panel == NULL ? unused : panel_lowest(layout, panel);
    int32_t least[PANEL_ROWS];
    bool poison[PANEL_ROWS];

    for (int r = 0; r < PANEL_ROWS; r++) {
        lowest[r] = EXPONENT_ZERO;
        least[r] = EXPONENT_ZERO;
        poison[r] = false;
        if (r < view.row_count) {
            const int16_t *row = rows + r * shape->blocks;
            int top = row[0];
            int low = row[0];

            for (int64_t b = 1; b < shape->blocks; b++) {
                top = row[b] > top ? row[b] : top;
                low = row[b] < low ? row[b] : low;
            }
            least[r] = top - shape->window;
            lowest[r] = low > least[r] ? low : least[r];
            poison[r] = top == EXPONENT_POISON;
        }
    }
    for (int64_t b = 0; b < shape->blocks; b++) {
        int32_t exponents[PANEL_ROWS];
        uint8_t shifts[PANEL_ROWS];
        bool again = false;

        for (int r = 0; r < PANEL_ROWS; r++) {
            exponents[r] = lowest[r];
            if (r < view.row_count) {
                int16_t *exponent = &rows[r * shape->blocks + b];

                /* A block of zeros stays zeros with any exponent. */
                again |= *exponent < least[r] && *exponent != EXPONENT_ZERO;
                *exponent = *exponent > least[r] ? *exponent : (int16_t)least[r];
                exponents[r] = *exponent;
            }
            shifts[r] = (uint8_t)(exponents[r] - lowest[r]);
        }
        if (again && panel != NULL) {
            block_integers(quantizer, panel, &view, b, exponents);
        }
        for (int64_t p = b * shape->block_span;
             panel != NULL && p < (b + 1) * shape->block_span && p < shape->pieces; p++) {
            memcpy(heads[p].shifts, shifts, sizeof(shifts));
        }
    }
    for (int r = 0; r < PANEL_ROWS; r++) {
        lowest[r] = poison[r] ? LOWEST_POISON : lowest[r];
    }
}

/* ---- the kernel ---- */

/* packed NULL: nobody reads the integers here, and the exponents are all that is wanted. */
static void quantize_packed(const struct quantizer *quantizer, char *packed, int thread_count)
{
    const struct packed_layout *layout = &quantizer->layout;
    const struct contraction_shape *shape = &layout->shape;
    int64_t along = quantizer->k_stride == 1 ? TASK_LENGTH : CONTRACTION_PIECE;
    int64_t blocks = shape->block < along ? along / shape->block : 1;
    int64_t parts = (shape->blocks + blocks - 1) / blocks;
    int64_t group = quantizer->k_stride == 1 ? 1 : GROUP_PANELS;
    int64_t groups = (layout->panels + group - 1) / group;

#pragma omp parallel num_threads(thread_count)
    {
#pragma omp for schedule(guided)
        for (int64_t task = 0; task < groups * parts; task++) {
            int64_t panel = task / parts * group;
            int64_t end = panel + group < layout->panels ? panel + group : layout->panels;
            int64_t first = task % parts * blocks;
            int64_t last = first + blocks < shape->blocks ? first + blocks : shape->blocks;

            struct factors factors; /* the numbers are left as they are */

            factors.shifts = NULL;
            for (; group > 1 && shape->block_span > 1 && first < last; first++) {
                quantize_stripe(quantizer, packed, panel, end, first, &factors);
            }
            for (const int64_t from = panel; first < last && panel < end; panel++) {
                fetch_panels(quantizer, panel, from, end, first * shape->block);
                quantize_blocks(quantizer, panel_of(quantizer, packed, panel), panel, first, last,
                                &factors);
            }
            /* The barrier does not order stores past the caches. */
            atomic_thread_fence(memory_order_seq_cst);
        }
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < layout->panels; panel++) {
            finish_panel(quantizer, panel_of(quantizer, packed, panel), panel);
        }
    }
}

void contraction_quantize(const struct contraction_isa *isa, const struct kernel_call *call)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    const enum dtype dtype = call->tensors[call->op->inputs[0]].dtype;
    struct quantizer quantizer = {
        .isa = isa,
        .op = call->op,
        .layout = packed_layout(&shape, quantize_rows(call->op)),
        .x = dtype_is_half(dtype) ? NULL : call->inputs[0],
        .half = call->inputs[0],
        .dtype = dtype,
        .shifts = quantize_is_shifted(call->op) ? call->inputs[1] : NULL,
        .peaks = call->outputs[0],
        .exponents = call->outputs[1],
        .k_stride = joined_stride(call->op),
    };
    int threads =
        contraction_threads(call->thread_count, quantizer.layout.rows * shape.k, THREAD_ELEMENTS);

    quantizer.far = quantizer.x != NULL && quantizer.layout.rows * shape.k >= FAR_ELEMENTS;
    quantizer.stream = contraction_packed_size(call->op) > STREAM_SIZE;
    quantize_packed(&quantizer, call->outputs[2], threads);
}

/* ---- equilibrate ---- */

static int row_top(const int16_t *exponents, int64_t width)
{
    int top = INT16_MIN;

    for (int64_t i = 0; i < width; i++) {
        top = exponents[i] > top ? exponents[i] : top;
    }
    return top;
}

void contraction_equilibrate(const struct kernel_call *call)
{
    const int64_t *attributes = call->op->attributes;
    const int16_t *e = call->inputs[0];
    const int16_t *f = call->op->input_count < 2 ? NULL : call->inputs[1];
    int16_t *const outputs[2] = {call->outputs[0], call->outputs[1]};

    for (int64_t row = 0; row < attributes[EQUILIBRATE_ROWS]; row++) {
        int c = row_top(e + row * attributes[EQUILIBRATE_E], attributes[EQUILIBRATE_E]);

        if (f != NULL) {
            c -= row_top(f + row * attributes[EQUILIBRATE_F], attributes[EQUILIBRATE_F]);
            c = (c - (c & 1)) / 2;
        }
        if (outputs[0] != NULL) {
            outputs[0][row] = (int16_t)c;
        }
        if (outputs[1] != NULL) {
            outputs[1][row] = (int16_t)-c;
        }
    }
}
