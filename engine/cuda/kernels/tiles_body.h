/*
 * tiles_body.h - both quantizations of a tensor from one read: a block of threads holds a square of
 * 128 x 128 numbers, a piece of 128 rows and of 128 columns, and writes the limbs of all of them.
 *
 * A block of a row has the exponent of its own largest number, unless that lies more than the
 * window below the row's (contraction.h). So limbs are written by the piece's own exponent, before
 * the row's is known. kernel_quantize_raise, which has all peaks, reads again only the pieces whose
 * exponents are raised, and writes them once more. A piece of zeros has the same limbs anyway.
 *
 * Sums of columns (the gradient of a bias) are those of their pieces' integers. A norm has two such
 * gradients, of its bias and its gain, and the second one's numbers are made of the first one's.
 */

struct square {
    const struct tiles_args *args;
    const int64_t *starts; /* of the rows' first numbers, from x on */
    uint32_t *largest;     /* magnitudes, of each column */
    uint32_t *sums;        /* of the columns' integers, modulo 2^32 */
    int16_t *stage;        /* (columns, TILES_PITCH) */
    uint64_t batch;
    uint64_t row; /* the first, of the matrix */
    uint64_t column;
};

/* An element of cross-entropy's gradient, made again of its logit, as entropy_body.h makes it. */
static RULE inline float tiles_entropy(const struct tiles_args *args, float x, uint64_t row,
                                       uint64_t column)
{
    const struct entropy_slope slope = {1.0f / args->sum[row], args->dloss[row],
                                        args->targets[row]};

    return entropy_element(real_stored(scalar_exp(x - args->maximum[row])), &slope, column,
                           args->width);
}

/* What is quantized of a number of the matrix. */
static RULE inline float tiles_number(const struct tiles_args *args, float x, uint64_t row,
                                      uint64_t column)
{
    switch (args->code) {
    case TILES_GELU:
        return real_stored(element_gelu(x));
    case TILES_SILU:
        return real_stored(element_silu(x));
    case TILES_ENTROPY:
        return tiles_entropy(args, x, row, column);
    case TILES_LAYER_NORM:
        return real_stored(
            fmaf((x - args->mean[row]) * args->rstd[row], args->gain[column], args->bias[column]));
    case TILES_RMS_NORM:
        return real_stored((x * args->rstd[row]) * args->gain[column]);
    default:
        return x;
    }
}

/* As held_norm_grad() makes the product that a gain's gradient sums. */
static RULE inline float tiles_product(const struct tiles_args *args, float dy, float x,
                                       uint64_t row)
{
    return real_stored(dy * ((x - args->mean[row]) * args->rstd[row]));
}

/* A warp's rows; a lane has four neighbours of each, zeros where there are none. */
static RULE inline void square_load(const struct square *square, const float *matrix,
                                    struct quad x[TILES_ROWS])
{
    const struct tiles_args *args = square->args;
    const uint32_t first = thread_index() / CUDA_WARP * TILES_ROWS;
    const uint64_t column = square->column + thread_index() % CUDA_WARP * 4;

    UNROLL
    for (uint32_t r = 0; r < TILES_ROWS; r++) {
        const float *from = matrix + square->starts[first + r] + column;

        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            x[r].x[c] = 0.0f;
        }
        if (square->row + first + r >= args->across.k || column >= args->width) {
            continue;
        }
        if (args->quads != 0) {
            load_quad(x[r].x, from);
            continue;
        }
        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            x[r].x[c] = column + c < args->width ? from[c] : 0.0f;
        }
    }
}

static RULE inline void square_make(const struct square *square, struct quad x[TILES_ROWS])
{
    const uint64_t first = square->row + thread_index() / CUDA_WARP * TILES_ROWS;
    const uint64_t column = square->column + thread_index() % CUDA_WARP * 4;

    if (square->args->code == TILES_PLAIN) {
        return;
    }
    UNROLL
    for (uint32_t r = 0; r < TILES_ROWS; r++) {
        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            if (first + r < square->args->across.k && column + c < square->args->width) {
                x[r].x[c] = tiles_number(square->args, x[r].x[c], first + r, column + c);
            }
        }
    }
}

/* Slopes become their products with what the norm made of its numbers. */
static RULE inline void square_multiply(const struct square *square, struct quad dy[TILES_ROWS])
{
    const uint64_t first = square->row + thread_index() / CUDA_WARP * TILES_ROWS;
    const uint64_t column = square->column + thread_index() % CUDA_WARP * 4;
    struct quad x[TILES_ROWS];

    square_load(square, square->args->across.x, x);
    UNROLL
    for (uint32_t r = 0; r < TILES_ROWS; r++) {
        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            if (first + r < square->args->across.k && column + c < square->args->width) {
                dy[r].x[c] = tiles_product(square->args, dy[r].x[c], x[r].x[c], first + r);
            }
        }
    }
}

/* The limbs of a warp's rows, by their pieces' own exponents. */
static RULE inline void square_along(const struct square *square, const struct quad x[TILES_ROWS])
{
    const struct quantize_args *along = &square->args->along;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t first = square->row + thread_index() / CUDA_WARP * TILES_ROWS;
    const uint64_t k = square->column + lane * 4;
    const uint64_t width = packed_round_up(along->k, UINT64_C(1) << along->line_log);

    UNROLL
    for (uint32_t r = 0; r < TILES_ROWS; r++) {
        const uint64_t row = square->batch * square->args->across.k + first + r;
        const uint32_t largest = warp_largest(quad_magnitude(&x[r]));
        int32_t q[4];

        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            q[c] = quantized_number(x[r].x[c], exponent_of_bits(largest), along->bits);
        }
        if (first + r >= square->args->across.k) {
            continue;
        }
        if (lane == 0) {
            write_peak(along, row, square->column / TILES_SIDE, largest);
        }
        if (k < width) {
            write_limbs(along->planes, along->plane_size,
                        packed_place(row, k, along->strip_size, along->line_log), q, along->bits);
        }
    }
}

/* The largest number of each column, from all warps. */
static RULE inline void square_peaks(const struct square *square, const struct quad x[TILES_ROWS])
{
    UNROLL
    for (uint32_t c = 0; c < 4; c++) {
        uint32_t largest = 0;

        UNROLL
        for (uint32_t r = 0; r < TILES_ROWS; r++) {
            const uint32_t magnitude = magnitude_of(x[r].x[c]);

            largest = magnitude > largest ? magnitude : largest;
        }
        atomic_max(&square->largest[thread_index() % CUDA_WARP * 4 + c], largest);
    }
}

/* The integers of the columns, laid side by side, and their sums. */
static RULE inline void square_across(const struct square *square, const struct quad x[TILES_ROWS])
{
    const int32_t bits = square->args->across.bits;
    const uint32_t first = thread_index() / CUDA_WARP * TILES_ROWS;

    UNROLL
    for (uint32_t c = 0; c < 4; c++) {
        const uint32_t column = thread_index() % CUDA_WARP * 4 + c;
        const int32_t exponent = exponent_of_bits(square->largest[column]);
        int16_t *to = square->stage + column * TILES_PITCH + first;
        uint32_t sum = 0;

        UNROLL
        for (uint32_t r = 0; r < TILES_ROWS; r++) {
            const int32_t q = quantized_number(x[r].x[c], exponent, bits);

            sum += (uint32_t)q;
            to[r] = (int16_t)q;
        }
        (void)atomic_add(&square->sums[column], sum);
    }
}

/* What is known of a column: a thread has one. */
static RULE inline void square_tell(const struct square *square, const struct quantize_args *view,
                                    int32_t *parts)
{
    const struct tiles_args *args = square->args;
    const uint32_t column = thread_index();
    const uint64_t row = square->batch * args->width + square->column + column;
    const uint64_t piece = square->row / TILES_SIDE;

    if (column < TILES_SIDE && square->column + column < args->width) {
        write_peak(view, row, piece, square->largest[column]);
        if (parts != NULL) {
            parts[row * view->pieces + piece] = (int32_t)square->sums[column];
        }
    }
}

/* The limbs of the columns: a warp takes one at a time. */
static RULE inline void square_write(const struct square *square)
{
    const struct tiles_args *args = square->args;
    const struct quantize_args *across = &args->across;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t k = square->row + lane * 4;
    const uint64_t width = packed_round_up(across->k, UINT64_C(1) << across->line_log);

    for (uint32_t column = thread_index() / CUDA_WARP;
         column < TILES_SIDE && square->column + column < args->width;
         column += TILES_THREADS / CUDA_WARP) {
        const uint64_t row = square->batch * args->width + square->column + column;
        const int16_t *from = square->stage + column * TILES_PITCH + lane * 4;
        const int32_t q[4] = {from[0], from[1], from[2], from[3]};

        if (k < width) {
            write_limbs(across->planes, across->plane_size,
                        packed_place(row, k, across->strip_size, across->line_log), q,
                        across->bits);
        }
    }
}

/* Nothing is known of a square's columns yet. */
static RULE inline void square_clear(const struct square *square)
{
    if (thread_index() < TILES_SIDE) {
        square->largest[thread_index()] = 0;
        square->sums[thread_index()] = 0;
    }
}

/* The columns of what the warps hold: peaks, integers and sums of a view. */
static RULE inline void square_columns(const struct square *square, const struct quad x[TILES_ROWS],
                                       const struct quantize_args *view, int32_t *parts)
{
    square_peaks(square, x);
    barrier();
    square_across(square, x);
    barrier();
    square_tell(square, view, parts);
}

/* What is quantized of x. */
static RULE inline void square_main(const struct square *square, struct quad x[TILES_ROWS])
{
    const struct tiles_args *args = square->args;

    square_load(square, args->across.x, x);
    square_make(square, x);
    if (args->along.planes != NULL) {
        square_along(square, x);
    }
    square_columns(square, x, &args->across, args->parts);
    if (args->across.planes != NULL) {
        square_write(square);
    }
}

/* Both gradients of a norm. A thread's column is its own, so it clears what it has told. */
static RULE inline void square_slopes(const struct square *square, struct quad x[TILES_ROWS])
{
    const struct tiles_args *args = square->args;

    square_load(square, args->dy, x);
    square_columns(square, x, &args->slopes[0].view, args->slopes[0].parts);
    square_multiply(square, x);
    square_clear(square);
    barrier();
    square_columns(square, x, &args->slopes[1].view, args->slopes[1].parts);
}

/* One square, from `at` on; every thread of the block. */
static RULE inline void square_do(struct square *square, int64_t *starts, uint64_t at)
{
    const struct tiles_args *args = square->args;
    const uint64_t columns = (args->width + TILES_SIDE - 1) / TILES_SIDE;
    const uint32_t thread = thread_index();
    struct quad x[TILES_ROWS];

    square->column = at % columns * TILES_SIDE;
    square->row = at / columns % args->across.pieces * TILES_SIDE;
    square->batch = at / columns / args->across.pieces;
    if (thread < TILES_SIDE) {
        const uint64_t row = square->row + thread;

        starts[thread] = view_row(&args->across, square->batch * args->width) +
                         (row < args->across.k ? view_k(&args->across, (uint32_t)row) : 0);
    }
    square_clear(square);
    barrier();
    if (args->code != TILES_SLOPES) {
        square_main(square, x);
    }
    if (args->dy != NULL) {
        square_clear(square);
        barrier();
        square_slopes(square, x);
    }
    barrier();
}

/* grid: any; block: TILES_THREADS. A block takes a square at a time. 14, 15 and 16 bits. */
KERNEL_LIMITED(kernel_quantize_tiles, struct tiles_args, TILES_THREADS)
{
    SHARED(int64_t, starts, TILES_SIDE);
    SHARED(uint32_t, largest, TILES_SIDE);
    SHARED(uint32_t, sums, TILES_SIDE);
    SHARED(int16_t, stage, TILES_SIDE * TILES_PITCH);
    const uint64_t batches = args.across.rows / args.width;
    const uint64_t squares =
        batches * args.across.pieces * ((args.width + TILES_SIDE - 1) / TILES_SIDE);
    struct square square = {
        .args = &args, .starts = starts, .largest = largest, .sums = sums, .stage = stage};

    for (uint64_t at = block_index(); at < squares; at += grid_size()) {
        square_do(&square, starts, at);
    }
}

/* ---- rows whose pieces are all known ------------------------------------------------------- */

enum raise_kind { RAISE_MAIN, RAISE_SLOPES, RAISE_PRODUCTS };

/* A row of one of the views. */
struct raise {
    const struct tiles_args *args;
    const struct quantize_args *view;
    uint64_t row;
    int64_t start; /* of its first number, from x on */
    int32_t top;
    int32_t floor;  /* no block's exponent is below */
    int32_t *parts; /* of the view; NULL: no sums */
    uint32_t *sums;
    enum raise_kind numbers;
};

static RULE inline struct raise raise_of(const struct tiles_args *args, uint64_t at)
{
    const struct quantize_args *across = &args->across;
    struct raise raise = {
        .args = args, .view = across, .row = at, .parts = args->parts, .sums = args->sums};

    if (at < across->rows) {
        raise.start = view_row(across, at);
        return raise;
    }
    at -= across->rows;
    raise.parts = NULL;
    if (at >= args->along.rows) {
        at -= args->along.rows;
        raise.numbers = at < across->rows ? RAISE_SLOPES : RAISE_PRODUCTS;
        raise.row = at % across->rows;
        raise.start = view_row(across, raise.row);
        raise.view = &args->slopes[raise.numbers - RAISE_SLOPES].view;
        raise.parts = args->slopes[raise.numbers - RAISE_SLOPES].parts;
        raise.sums = args->slopes[raise.numbers - RAISE_SLOPES].sums;
        return raise;
    }
    raise.view = &args->along;
    raise.row = at;
    raise.start = view_row(across, raise.row / across->k * args->width) +
                  view_k(across, (uint32_t)(raise.row % across->k));
    return raise;
}

static RULE inline int32_t raise_exponent(const struct raise *raise, uint64_t piece)
{
    const int32_t peak = raise->view->peaks[raise->row * raise->view->pieces + piece];

    return peak > raise->floor ? peak : raise->floor;
}

/* The row's exponents and shifts; its smallest is returned, or poison. */
static RULE inline int32_t raise_exponents(struct raise *raise)
{
    const struct quantize_args *view = raise->view;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const int16_t *peaks = view->peaks + raise->row * view->pieces;
    int32_t top = INT16_MIN;
    int32_t least = INT16_MAX;
    int32_t lowest;

    for (uint64_t p = lane; p < view->pieces; p += CUDA_WARP) {
        top = peaks[p] > top ? peaks[p] : top;
        least = peaks[p] < least ? peaks[p] : least;
    }
    raise->top = warp_maximum(top);
    least = -warp_maximum(-least);
    raise->floor = view->blocks == 1 ? raise->top : raise->top - view->window;
    lowest = raise->top == EXPONENT_POISON ? PACKED_POISON
             : least > raise->floor        ? least
                                           : raise->floor;
    for (uint64_t p = lane; p < view->pieces; p += CUDA_WARP) {
        const int32_t own = raise_exponent(raise, p);

        if (view->exponents != NULL) {
            view->exponents[raise->row * view->pieces + p] = (int16_t)own;
        }
        if (view->planes != NULL) {
            view->shifts[p * view->shift_pitch + raise->row] =
                lowest == PACKED_POISON ? 0 : (uint8_t)(own - lowest);
        }
    }
    if (lane == 0 && view->planes != NULL) {
        view->lowest[raise->row] = lowest;
    }
    return lowest;
}

/* Element k of the row, at a place of x: what is quantized. */
static RULE inline float raise_number(const struct raise *raise, int64_t place, uint64_t k)
{
    const struct tiles_args *args = raise->args;

    /* Of one matrix k is the row. */
    return raise->numbers == RAISE_MAIN ? tiles_number(args, args->across.x[place], k, raise->row)
           : raise->numbers == RAISE_SLOPES
               ? args->dy[place]
               : tiles_product(args, args->dy[place], args->across.x[place], k);
}

/* A piece's limbs by the exponent that it has now; the sum of its integers is returned. */
static RULE inline int32_t raise_piece(const struct raise *raise, uint64_t piece)
{
    const struct quantize_args *view = raise->view;
    const bool along = view == &raise->args->along;
    const uint64_t k = piece * CONTRACTION_PIECE + thread_index() % CUDA_WARP * 4;
    int32_t q[4];
    int32_t sum = 0;

    ROLLED
    for (uint32_t i = 0; i < 4; i++) {
        float x = 0.0f;

        if (k + i < view->k) {
            const int64_t place = along ? (int64_t)(k + i) : view_k(view, (uint32_t)(k + i));

            x = raise_number(raise, raise->start + place, k + i);
        }
        q[i] = quantized_number(x, raise->floor, view->bits);
        sum += q[i];
    }
    if (view->planes != NULL && k < packed_round_up(view->k, UINT64_C(1) << view->line_log)) {
        write_limbs(view->planes, view->plane_size,
                    packed_place(raise->row, k, view->strip_size, view->line_log), q, view->bits);
    }
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        sum += (int32_t)shuffle_xor((uint32_t)sum, d);
    }
    return sum;
}

/* The sum of a row's integers, from its pieces'. */
static RULE inline void raise_sum(const struct raise *raise, int32_t lowest)
{
    const struct quantize_args *view = raise->view;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const int32_t *parts = raise->parts + raise->row * view->pieces;
    uint64_t sum = 0;

    for (uint64_t p = lane; p < view->pieces; p += CUDA_WARP) {
        /* In poison rows exponents may be far apart, and the sum does not matter. */
        sum += (uint64_t)(int64_t)parts[p] << ((uint32_t)(raise_exponent(raise, p) - lowest) & 63);
    }
    sum = warp_sum_wide(sum);
    if (lane == 0) {
        raise->sums[raise->row] = lowest == PACKED_POISON
                                      ? FLOAT_NAN_BITS
                                      : contraction_finish((int64_t)sum, lowest - (view->bits - 1));
    }
}

/* grid: any; block: BLOCK_THREADS. A warp takes a row, of the columns first. */
KERNEL(kernel_quantize_raise, struct tiles_args)
{
    const uint64_t warps = place_stride() / CUDA_WARP;
    const uint64_t columns = args.across.rows;
    const uint64_t rows = columns + args.along.rows + (args.dy != NULL ? 2 * columns : 0);

    for (uint64_t at = first_place() / CUDA_WARP + (args.code == TILES_SLOPES ? columns : 0);
         at < rows; at += warps) {
        struct raise raise = raise_of(&args, at);
        const bool summed = raise.parts != NULL;
        const int32_t lowest = raise_exponents(&raise);

        for (uint64_t p = 0; p < raise.view->pieces; p++) {
            const int32_t peak = raise.view->peaks[raise.row * raise.view->pieces + p];

            if (peak < raise.floor && peak != EXPONENT_ZERO) {
                const int32_t sum = raise_piece(&raise, p);

                if (summed && thread_index() % CUDA_WARP == 0) {
                    raise.parts[raise.row * raise.view->pieces + p] = sum;
                }
            }
        }
        if (summed) {
            warp_barrier();
            raise_sum(&raise, lowest);
        }
    }
}
