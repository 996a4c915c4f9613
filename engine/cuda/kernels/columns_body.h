/*
 * columns_body.h - quantization of views whose neighbouring rows are neighbours in memory, in one
 * pass: a block of threads holds some columns of memory, whole, and writes them as rows.
 *
 * The exponents of a row are known only when all of it was read, so it must be held or read twice.
 * 32, 16 or 8 columns fit, and make runs of memory that are worth reading.
 */

/* Eight loads are under way before the first is waited for. */
#define COLUMNS_BATCH 8

struct columns {
    float *tile; /* (columns, pitch) */
    int32_t *exponents;
    const int64_t *starts;
    uint64_t first_row;
    uint64_t width; /* of a row: K and zeros up to a whole line */
    uint32_t count; /* of columns: 8, 16 or 32 */
    uint32_t pitch;
};

static RULE inline void columns_load(const struct columns *columns,
                                     const struct quantize_args *args)
{
    const uint32_t all = (uint32_t)columns->width * columns->count;

    for (uint32_t first = thread_index(); first < all; first += COLUMNS_THREADS * COLUMNS_BATCH) {
        float values[COLUMNS_BATCH];

        UNROLL
        for (uint32_t i = 0; i < COLUMNS_BATCH; i++) {
            const uint32_t at = first + i * COLUMNS_THREADS;
            const uint32_t c = at % columns->count;
            const uint32_t k = at / columns->count;

            values[i] = 0.0f;
            if (k < args->k && columns->first_row + c < args->rows) {
                values[i] = view_element(args, columns->starts[c], columns->first_row + c, k);
            }
        }
        UNROLL
        for (uint32_t i = 0; i < COLUMNS_BATCH; i++) {
            const uint32_t at = first + i * COLUMNS_THREADS;

            if (at < all) {
                columns->tile[at % columns->count * columns->pitch + at / columns->count] =
                    values[i];
            }
        }
    }
}

/* The exponent of each piece's largest number; a warp takes a piece. */
static RULE inline void columns_peaks(const struct columns *columns,
                                      const struct quantize_args *args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint32_t pieces = (uint32_t)args->pieces;

    for (uint32_t at = thread_index() / CUDA_WARP; at < columns->count * pieces;
         at += COLUMNS_THREADS / CUDA_WARP) {
        const uint32_t c = at / pieces;
        const uint32_t k = at % pieces * CONTRACTION_PIECE + lane * 4;
        struct quad quad = {{0.0f, 0.0f, 0.0f, 0.0f}};
        uint32_t largest;

        if (k < columns->width) {
            load_quad(quad.x, columns->tile + c * columns->pitch + k);
        }
        largest = warp_largest(quad_magnitude(&quad));
        if (lane == 0) {
            columns->exponents[at] = exponent_of_bits(largest);
            if (args->peaks != NULL && columns->first_row + c < args->rows) {
                args->peaks[(columns->first_row + c) * pieces + at % pieces] =
                    (int16_t)exponent_of_bits(largest);
            }
        }
    }
}

/* A thread's row: its blocks' exponents, in place of the pieces' peaks; the smallest, or poison. */
static RULE inline int32_t columns_raise(const struct columns *columns,
                                         const struct quantize_args *args, uint32_t c)
{
    const uint32_t pieces = (uint32_t)args->pieces;
    int32_t *own = columns->exponents + c * pieces;
    int32_t top = INT16_MIN;
    int32_t lowest = INT16_MAX;

    for (uint32_t p = 0; p < pieces; p++) {
        top = own[p] > top ? own[p] : top;
    }
    for (uint32_t p = 0; p < pieces; p++) {
        const int32_t least = args->blocks == 1 ? top : top - args->window;

        own[p] = own[p] > least ? own[p] : least;
        lowest = own[p] < lowest ? own[p] : lowest;
    }
    return top == EXPONENT_POISON ? PACKED_POISON : lowest;
}

/* Their shifts, exponents and lowest exponents. */
static RULE inline void columns_exponents(const struct columns *columns,
                                          const struct quantize_args *args, uint32_t c)
{
    const uint64_t row = columns->first_row + c;
    const int32_t *own = columns->exponents + c * (uint32_t)args->pieces;
    const int32_t lowest = columns_raise(columns, args, c);

    args->lowest[row] = lowest;
    for (uint32_t b = 0; b < args->blocks; b++) {
        args->exponents[row * args->blocks + b] = (int16_t)own[b];
        args->shifts[b * args->shift_pitch + row] =
            lowest == PACKED_POISON ? 0 : (uint8_t)(own[b] - lowest);
    }
}

static RULE inline void columns_integers(const struct columns *columns,
                                         const struct quantize_args *args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint32_t pieces = (uint32_t)args->pieces;

    for (uint32_t at = thread_index() / CUDA_WARP; at < columns->count * pieces;
         at += COLUMNS_THREADS / CUDA_WARP) {
        const uint32_t c = at / pieces;
        const uint32_t k = at % pieces * CONTRACTION_PIECE + lane * 4;
        const uint64_t row = columns->first_row + c;
        struct quad quad;
        int32_t q[4];

        if (row >= args->rows || k >= columns->width) {
            continue;
        }
        load_quad(quad.x, columns->tile + c * columns->pitch + k);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            q[i] = quantized_number(quad.x[i], columns->exponents[at], args->bits);
        }
        write_limbs(args->planes, args->plane_size,
                    packed_place(row, k, args->strip_size, args->line_log), q, args->bits);
    }
}

static RULE inline struct columns columns_of(const struct quantize_args *args, int32_t *exponents,
                                             const int64_t *starts)
{
    struct columns columns;

    columns.tile = (float *)dynamic_shared();
    columns.exponents = exponents;
    columns.starts = starts;
    columns.first_row = 0;
    columns.width = packed_round_up(args->k, UINT64_C(1) << args->line_log);
    columns.count = args->team;
    columns.pitch = COLUMNS_PITCH(args->k);
    return columns;
}

/* The columns of a group, and their pieces' peaks. */
static RULE inline void columns_bring(struct columns *columns, int64_t *starts,
                                      const struct quantize_args *args, uint64_t group)
{
    const uint32_t thread = thread_index();

    columns->first_row = group * args->team;
    if (thread < args->team && columns->first_row + thread < args->rows) {
        starts[thread] = view_row(args, columns->first_row + thread);
    }
    barrier();
    columns_load(columns, args);
    barrier();
    columns_peaks(columns, args);
    barrier();
}

/* grid: any; block: COLUMNS_THREADS. A block takes args.team columns of memory at a time. */
KERNEL_LIMITED(kernel_quantize_columns, struct quantize_args, COLUMNS_THREADS)
{
    SHARED(int32_t, exponents, COLUMNS_PIECES_MAX);
    SHARED(int64_t, starts, COLUMNS_MAX);
    const uint64_t groups = (args.rows + args.team - 1) / args.team;
    struct columns columns = columns_of(&args, exponents, starts);
    const uint32_t thread = thread_index();

    for (uint64_t group = block_index(); group < groups; group += grid_size()) {
        columns_bring(&columns, starts, &args, group);
        if (thread < args.team && columns.first_row + thread < args.rows) {
            columns_exponents(&columns, &args, thread);
        }
        barrier();
        columns_integers(&columns, &args);
        barrier();
    }
}
