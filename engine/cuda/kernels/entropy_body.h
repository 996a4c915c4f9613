/*
 * entropy_body.h - cross-entropy along rows, its gradient and the gradient's quantization, in one
 * pass: a block of threads holds a row in shared memory, first x, then exp(x - max), then dx.
 * rows_body.h and quantize_body.h define what is computed, and in which order.
 *
 * A warp keeps the same chunks of the row, so warps wait for each other only for the row's maximum,
 * sum and largest gradient. A warp that is done goes on to the next row, which it has prefetched.
 *
 * A row that does not fit is left to kernel_rows and kernel_quantize_*.
 */

struct entropy {
    const struct entropy_args *args;
    float *stage;   /* the chunks' areas */
    float *parts;   /* (chunks): sums */
    int16_t *tops;  /* (pieces): exponents of their largest */
    const float *x; /* the row */
    uint64_t row;
    uint32_t columns;
    uint32_t chunks;
    uint32_t skew; /* numbers from a multiple of 16 bytes to x */
    uint32_t lane;
    uint32_t warp;
    uint32_t warps;
};

/* A chunk of a row, in shared memory. */
struct entropy_chunk {
    float *area; /* x begins `skew` further on; all else at once */
    uint32_t first;
    uint32_t count;
};

static RULE inline struct entropy_chunk entropy_chunk(const struct entropy *row, uint32_t chunk)
{
    struct entropy_chunk part;

    part.area = row->stage + chunk * ENTROPY_PITCH;
    part.first = chunk * FOLD_CHUNK;
    part.count = row->columns - part.first < FOLD_CHUNK ? row->columns - part.first : FOLD_CHUNK;
    return part;
}

#define ENTROPY_EACH_CHUNK(row, chunk)                                                             \
    for (uint32_t chunk = (row)->warp; chunk < (row)->chunks; chunk += (row)->warps)

/*
 * By 16 bytes. They may begin before the chunk and end behind it, but not outside of the row, where
 * other blocks may be writing.
 */
static RULE inline void entropy_load(const struct entropy *row, uint32_t chunk)
{
    const struct entropy_chunk part = entropy_chunk(row, chunk);
    const int32_t columns = (int32_t)row->columns;

    for (uint32_t i = row->lane; i < ENTROPY_PITCH / 4; i += CUDA_WARP) {
        const int32_t c = (int32_t)(part.first + 4 * i) - (int32_t)row->skew;

        if (c >= (int32_t)(part.first + part.count)) {
            continue;
        }
        if (c >= 0 && c + 4 <= columns) {
            copy_async(part.area + 4 * i, row->x + c, true);
            continue;
        }
        for (int32_t j = 0; j < 4; j++) {
            if (c + j >= 0 && c + j < columns) {
                part.area[4 * i + (uint32_t)j] = row->x[c + j];
            }
        }
    }
}

/* Prefetches the next row of this block into the L2 cache: a line is 32 numbers. */
static RULE inline void entropy_call(const struct entropy *row, uint64_t next)
{
    if (next < row->args->quantize.rows) {
        const float *x = row->x + (next - row->row) * row->columns;

        ENTROPY_EACH_CHUNK(row, chunk)
        {
            const struct entropy_chunk part = entropy_chunk(row, chunk);

            if (row->lane * 32 < part.count) {
                prefetch_line(x + part.first + row->lane * 32);
            }
        }
    }
}

static RULE inline float entropy_lanes_maximum(float lane)
{
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        lane = fold_maximum(lane, shuffle_xor_real(lane, d));
    }
    return lane;
}

/* The maximum of the row, from all warps' chunks. maxima: (warps), shared. */
static RULE inline float entropy_maximum(const struct entropy *row, float *maxima)
{
    float lane = -INFINITY;

    ENTROPY_EACH_CHUNK(row, chunk)
    {
        const struct entropy_chunk part = entropy_chunk(row, chunk);

        for (uint32_t c = row->lane; c < part.count; c += CUDA_WARP) {
            lane = fold_maximum(lane, part.area[row->skew + c]);
        }
    }
    lane = entropy_lanes_maximum(lane);
    if (row->lane == 0) {
        maxima[row->warp] = lane;
    }
    barrier();
    lane = entropy_lanes_maximum(row->lane < row->warps ? maxima[row->lane] : -INFINITY);
    return real_from_bits(fold_maximum_bits(lane));
}

#define ENTROPY_STEPS 4 /* of a lane's fold, whose exponentials are made side by side */

/*
 * A chunk's exponentials, moved to the beginning of the area, and their sum. A turn writes before
 * the place where the next one reads.
 */
static RULE inline float entropy_exponentials(const struct entropy *row,
                                              const struct entropy_chunk *part, float maximum)
{
    float lane = -0.0f;

    for (uint32_t first = row->lane; first < part->count + row->lane;
         first += ENTROPY_STEPS * CUDA_WARP) {
        float x[ENTROPY_STEPS];

        UNROLL
        for (uint32_t i = 0; i < ENTROPY_STEPS; i++) {
            const uint32_t c = first + i * CUDA_WARP;

            x[i] = c < part->count ? part->area[row->skew + c] : 0.0f;
        }
        warp_barrier();
        UNROLL
        for (uint32_t i = 0; i < ENTROPY_STEPS; i++) {
            const uint32_t c = first + i * CUDA_WARP;
            const float e = real_stored(scalar_exp(x[i] - maximum));

            /* Zeros up to the end of a piece. */
            if (c < packed_round_up(part->count, CONTRACTION_PIECE)) {
                part->area[c] = c < part->count ? e : 0.0f;
            }
            lane = c < part->count ? lane + e : lane;
        }
    }
    return warp_fold(lane);
}

static RULE inline float entropy_sum(const struct entropy *row, float maximum)
{
    float total = -0.0f;

    ENTROPY_EACH_CHUNK(row, chunk)
    {
        const struct entropy_chunk part = entropy_chunk(row, chunk);
        const float sum = entropy_exponentials(row, &part, maximum);

        if (row->lane == 0) {
            row->parts[chunk] = real_stored(sum);
        }
    }
    barrier();
    for (uint32_t chunk = row->lane; chunk < row->chunks; chunk += CUDA_WARP) {
        total = total + row->parts[chunk];
    }
    return real_stored(warp_fold(total));
}

static RULE inline void entropy_number(float *numbers, uint64_t row, float value)
{
    if (numbers != NULL) {
        numbers[row] = real_stored(value);
    }
}

/* The factors of an element's gradient. */
struct entropy_slope {
    float inverse; /* of the sum */
    float dloss;
    uint32_t target;
};

/* Magnitudes that a quantization needs: the largest, and the smallest of the pieces' largest. */
struct entropy_range {
    uint32_t most;
    uint32_t least;
};

/* The loss of a row whose target is no column, and its gradient's elements. */
static RULE inline float entropy_without(uint32_t target)
{
    return target == TARGET_IGNORED ? 0.0f : real_from_bits(FLOAT_NAN_BITS);
}

/* An element of the gradient, from its exponential. */
static RULE inline float entropy_element(float e, const struct entropy_slope *slope,
                                         uint64_t column, uint64_t columns)
{
    float p = e * slope->inverse;

    p = column == slope->target ? p - 1.0f : p;
    p = slope->target < columns ? p * slope->dloss : entropy_without(slope->target);
    return real_stored(p);
}

/* A piece of the gradient; the magnitude of its largest is returned. */
static RULE inline uint32_t entropy_gradient(const struct entropy *row,
                                             const struct entropy_chunk *part, uint32_t piece,
                                             const struct entropy_slope *slope)
{
    float *dx = row->args->dx == NULL ? NULL : row->args->dx + row->row * row->columns;
    uint32_t largest = 0;

    UNROLL
    for (uint32_t i = 0; i < CONTRACTION_PIECE / CUDA_WARP; i++) {
        const uint32_t c = piece * CONTRACTION_PIECE + i * CUDA_WARP + row->lane;
        const float p = entropy_element(part->area[c], slope, part->first + c, row->columns);

        if (c < part->count) {
            const uint32_t magnitude = magnitude_of(p);

            part->area[c] = p;
            largest = magnitude > largest ? magnitude : largest;
            if (dx != NULL) {
                dx[part->first + c] = p;
            }
        }
    }
    return warp_largest(largest);
}

static RULE inline struct entropy_range entropy_gradients(const struct entropy *row,
                                                          const struct entropy_slope *slope)
{
    const struct quantize_args *quantize = &row->args->quantize;
    struct entropy_range range = {0, UINT32_MAX};

    ENTROPY_EACH_CHUNK(row, chunk)
    {
        const struct entropy_chunk part = entropy_chunk(row, chunk);

        for (uint32_t p = 0; p * CONTRACTION_PIECE < part.count; p++) {
            const uint32_t piece = chunk * ENTROPY_PIECES + p;
            const uint32_t largest = entropy_gradient(row, &part, p, slope);

            range.most = largest > range.most ? largest : range.most;
            range.least = largest < range.least ? largest : range.least;
            if (row->lane == 0) {
                row->tops[piece] = (int16_t)exponent_of_bits(largest);
                if (quantize->peaks != NULL) {
                    write_peak(quantize, row->row, piece, largest);
                }
            }
        }
    }
    return range;
}

/* The exponents of a row, from its largest and the least of its pieces' largest. */
struct entropy_scale {
    int32_t top;
    int32_t floor; /* no block's exponent is below */
    int32_t lowest;
};

/* ranges: (warps), shared. */
static RULE inline struct entropy_scale entropy_scale(const struct entropy *row,
                                                      struct entropy_range range, uint32_t *mosts,
                                                      uint32_t *leasts)
{
    const struct quantize_args *quantize = &row->args->quantize;
    struct entropy_scale scale;

    if (row->lane == 0) {
        mosts[row->warp] = range.most;
        leasts[row->warp] = range.least;
    }
    barrier();
    range.most = warp_largest(row->lane < row->warps ? mosts[row->lane] : 0);
    range.least = ~warp_largest(row->lane < row->warps ? ~leasts[row->lane] : 0);
    scale.top = exponent_of_bits(range.most);
    scale.floor = quantize->blocks == 1 ? scale.top : scale.top - quantize->window;
    scale.lowest = exponent_of_bits(range.least);
    scale.lowest = scale.lowest > scale.floor ? scale.lowest : scale.floor;
    if (scale.top == EXPONENT_POISON) {
        scale.lowest = PACKED_POISON;
    }
    return scale;
}

static RULE inline int32_t entropy_exponent(const struct entropy *row,
                                            const struct entropy_scale *scale, uint32_t piece)
{
    const int32_t own = row->tops[piece];

    return own > scale->floor ? own : scale->floor;
}

/* The limbs of a warp's chunks, and the exponents and shifts of their blocks. */
static RULE inline void entropy_quantize(const struct entropy *row,
                                         const struct entropy_scale *scale)
{
    const struct quantize_args *quantize = &row->args->quantize;
    const uint32_t width =
        (uint32_t)packed_round_up(row->columns, UINT64_C(1) << quantize->line_log);

    ENTROPY_EACH_CHUNK(row, chunk)
    {
        const struct entropy_chunk part = entropy_chunk(row, chunk);
        const uint32_t block = chunk * ENTROPY_PIECES + row->lane;

        if (row->lane < ENTROPY_PIECES && block < quantize->blocks) {
            const int32_t own = entropy_exponent(row, scale, block);

            if (quantize->exponents != NULL) {
                quantize->exponents[row->row * quantize->blocks + block] = (int16_t)own;
            }
            quantize->shifts[block * quantize->shift_pitch + row->row] =
                scale->lowest == PACKED_POISON ? 0 : (uint8_t)(own - scale->lowest);
        }
        for (uint32_t p = 0; p * CONTRACTION_PIECE < part.count; p++) {
            const int32_t exponent = entropy_exponent(row, scale, chunk * ENTROPY_PIECES + p);
            const uint32_t c = p * CONTRACTION_PIECE + row->lane * 4;
            struct quad quad;
            int32_t q[4];

            load_quad(quad.x, part.area + c);
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                q[i] = quantized_number(quad.x[i], exponent, quantize->bits);
            }
            if (part.first + c < width) {
                write_limbs(quantize->planes, quantize->plane_size,
                            packed_place(row->row, part.first + c, quantize->strip_size,
                                         quantize->line_log),
                            q, quantize->bits);
            }
        }
    }
    if (row->warp == 0 && row->lane == 0) {
        quantize->lowest[row->row] = scale->lowest;
    }
}

/* Shared memory of all warps. */
struct entropy_shared {
    float *maxima;
    uint32_t *mosts;
    uint32_t *leasts;
};

static RULE inline void entropy_row(const struct entropy *row, const struct entropy_shared *shared)
{
    const struct entropy_args *args = row->args;
    const bool first = row->warp == 0 && row->lane == 0;
    const uint32_t target = args->targets[row->row];
    const bool known = target < row->columns;
    struct entropy_slope slope = {.dloss = args->dloss[row->row], .target = target};
    float wanted = 0.0f;

    ENTROPY_EACH_CHUNK(row, chunk)
    {
        entropy_load(row, chunk);
    }
    copy_commit();
    /* dx is written over it below. */
    if (first && known) {
        wanted = row->x[target];
    }
    copy_wait(0);
    warp_barrier();
    entropy_call(row, row->row + grid_size());

    const float maximum = entropy_maximum(row, shared->maxima);
    const float sum = entropy_sum(row, maximum);

    if (first) {
        entropy_number(args->maximum, row->row, maximum);
        entropy_number(args->sum, row->row, sum);
        entropy_number(args->loss, row->row,
                       known ? scalar_log(sum) - (wanted - maximum) : entropy_without(target));
    }
    slope.inverse = 1.0f / sum;

    const struct entropy_range range = entropy_gradients(row, &slope);
    const struct entropy_scale scale = entropy_scale(row, range, shared->mosts, shared->leasts);

    if (args->quantize.planes != NULL) {
        entropy_quantize(row, &scale);
    }
    /* Other lanes may still read what the next row is copied over. */
    warp_barrier();
}

/* grid: any; block: warps, no more than chunks. A block takes a row at a time. */
KERNEL_ALONE(kernel_entropy, struct entropy_args, ENTROPY_WARPS_MAX *CUDA_WARP)
{
    SHARED(float, parts, ENTROPY_CHUNKS_MAX);
    SHARED(int16_t, tops, ENTROPY_CHUNKS_MAX * ENTROPY_PIECES);
    SHARED(float, maxima, ENTROPY_WARPS_MAX);
    SHARED(uint32_t, mosts, ENTROPY_WARPS_MAX);
    SHARED(uint32_t, leasts, ENTROPY_WARPS_MAX);
    const struct entropy_shared shared = {maxima, mosts, leasts};
    struct entropy row = {.args = &args,
                          .stage = (float *)dynamic_shared(),
                          .parts = parts,
                          .tops = tops,
                          .columns = (uint32_t)args.quantize.k,
                          .chunks = (uint32_t)fold_chunks(args.quantize.k),
                          .lane = thread_index() % CUDA_WARP,
                          .warp = thread_index() / CUDA_WARP,
                          .warps = block_size() / CUDA_WARP};

    for (row.row = block_index(); args.quantize.rows > row.row; row.row += grid_size()) {
        row.x = args.quantize.x + row.row * row.columns;
        row.skew = (uint32_t)((uintptr_t)row.x / 4 % 4);
        entropy_row(&row, &shared);
    }
}
