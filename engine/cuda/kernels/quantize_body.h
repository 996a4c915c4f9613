/*
 * quantize_body.h - quantization of any permuted view: peaks, then exponents, then integers.
 *
 * A view is read by a warp along k, for rows that lie in memory one after another, or by a warp
 * across 32 rows, for views whose neighbouring rows are neighbours in memory. Where rows are runs
 * of memory, kernel_quantize_rows does it all in one launch: the second pass over a row finds it in
 * the cache, so x is read from memory once.
 */

/* The magnitude as bits, largest for a NaN or an infinity: E() is monotone in it. */
static RULE inline uint32_t magnitude_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits & UINT32_C(0x7fffffff);
}

static RULE inline int64_t view_row(const struct quantize_args *args, uint64_t row)
{
    int64_t at = 0;

    for (int axis = 3; axis >= 0; axis--) {
        at += (int64_t)(row % (uint64_t)args->dims[axis]) * args->strides[axis];
        row /= (uint64_t)args->dims[axis];
    }
    return at;
}

/* K is below 2^32: a row of more elements has no room for a window (op_check). */
static RULE inline int64_t view_k(const struct quantize_args *args, uint32_t k)
{
    uint32_t inner = (uint32_t)args->dims[5];

    if (args->dims[4] == 1) {
        return (int64_t)k * args->strides[5];
    }
    return (int64_t)(k / inner) * args->strides[4] + (int64_t)(k % inner) * args->strides[5];
}

static RULE inline float view_number(const struct quantize_args *args, int64_t place)
{
    if (args->x != NULL) {
        return args->x[place];
    }
    return real_from_bits(
        element_cast((enum dtype)args->dtype, DTYPE_F32, ((const uint16_t *)args->half)[place]));
}

/* Element k of a row that begins at a place, shifted as the row's batch says. */
static RULE inline float view_element(const struct quantize_args *args, int64_t at, uint64_t row,
                                      uint32_t k)
{
    const float element = view_number(args, at + view_k(args, k));

    return args->c == NULL
               ? element
               : quantize_shifted(element,
                                  quantize_factor(args->c[row / args->batch_rows * args->k + k]));
}

static RULE inline void write_peak(const struct quantize_args *args, uint64_t row, uint64_t piece,
                                   uint32_t magnitude)
{
    args->peaks[row * args->pieces + piece] = (int16_t)exponent_of_bits(magnitude);
}

/* grid: any; block: BLOCK_THREADS. A warp takes a piece of one row, or of 32. */
KERNEL(kernel_quantize_peaks, struct quantize_args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t warps = place_stride() / CUDA_WARP;
    const uint64_t groups = args.across ? (args.rows + CUDA_WARP - 1) / CUDA_WARP : args.rows;

    for (uint64_t at = first_place() / CUDA_WARP; at < groups * args.pieces; at += warps) {
        /* Across, neighbouring warps take neighbouring rows; along, neighbouring pieces. */
        const uint64_t group = args.across ? at % groups : at / args.pieces;
        const uint64_t piece = args.across ? at / groups : at % args.pieces;
        const uint32_t start = (uint32_t)(piece * args.piece);
        const uint32_t end =
            args.k - start < args.piece ? (uint32_t)args.k : start + (uint32_t)args.piece;
        uint32_t largest = 0;

        if (args.across) {
            const uint64_t row = group * CUDA_WARP + lane;

            if (row < args.rows) {
                const int64_t x = view_row(&args, row);

                for (uint32_t k = start; k < end; k++) {
                    const uint32_t magnitude = magnitude_of(view_element(&args, x, row, k));

                    largest = magnitude > largest ? magnitude : largest;
                }
                write_peak(&args, row, piece, largest);
            }
        } else {
            const int64_t x = view_row(&args, group);

            for (uint32_t k = start + lane; k < end; k += CUDA_WARP) {
                const uint32_t magnitude = magnitude_of(view_element(&args, x, group, k));

                largest = magnitude > largest ? magnitude : largest;
            }
            for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
                const uint32_t other = shuffle_xor(largest, d);

                largest = other > largest ? other : largest;
            }
            if (lane == 0) {
                write_peak(&args, group, piece, largest);
            }
        }
    }
}

static RULE inline int32_t warp_maximum(int32_t value)
{
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        const int32_t other = (int32_t)shuffle_xor((uint32_t)value, d);

        value = other > value ? other : value;
    }
    return value;
}

/* A warp writes a row's shifts. */
static RULE inline void write_shifts(uint8_t *shifts, uint64_t pitch, uint64_t row,
                                     const int16_t *exponents, uint64_t blocks, int32_t lowest)
{
    for (uint64_t b = thread_index() % CUDA_WARP; b < blocks; b += CUDA_WARP) {
        shifts[b * pitch + row] = lowest == PACKED_POISON ? 0 : (uint8_t)(exponents[b] - lowest);
    }
}

/* The smallest of a row's exponents, or PACKED_POISON; every lane of a warp gets it. */
static RULE inline int32_t warp_lowest(const int16_t *exponents, uint64_t blocks)
{
    int32_t least = INT16_MAX;
    int32_t most = INT16_MIN;

    for (uint64_t b = thread_index() % CUDA_WARP; b < blocks; b += CUDA_WARP) {
        least = exponents[b] < least ? exponents[b] : least;
        most = exponents[b] > most ? exponents[b] : most;
    }
    least = -warp_maximum(-least);
    most = warp_maximum(most);
    return most == EXPONENT_POISON ? PACKED_POISON : least;
}

/* grid: any; block: BLOCK_THREADS. A warp takes a row. */
KERNEL(kernel_quantize_exponents, struct quantize_args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t warps = place_stride() / CUDA_WARP;

    for (uint64_t row = first_place() / CUDA_WARP; row < args.rows; row += warps) {
        const int16_t *peaks = args.peaks + row * args.pieces;
        int16_t *exponents = args.exponents + row * args.blocks;
        int32_t top = INT16_MIN;

        for (uint64_t p = lane; p < args.pieces; p += CUDA_WARP) {
            top = peaks[p] > top ? peaks[p] : top;
        }
        top = warp_maximum(top);
        for (uint64_t b = lane; b < args.blocks; b += CUDA_WARP) {
            const uint64_t end =
                (b + 1) * args.block_span < args.pieces ? (b + 1) * args.block_span : args.pieces;
            int32_t own = top - args.window;

            for (uint64_t p = b * args.block_span; p < end; p++) {
                own = peaks[p] > own ? peaks[p] : own;
            }
            exponents[b] = (int16_t)own;
        }
        warp_barrier();
        if (args.lowest != NULL) {
            const int32_t lowest = warp_lowest(exponents, args.blocks);

            if (lane == 0) {
                args.lowest[row] = lowest;
            }
            write_shifts(args.shifts, args.shift_pitch, row, exponents, args.blocks, lowest);
        }
    }
}

static RULE inline float exact_power(int exponent)
{
    return real_from_bits((uint32_t)(exponent + 127) << 23);
}

/*
 * RNE(x * 2^(bits-1-e)), clamped. The exponent is this operation's own, so |x| < 2^e and e >= -149:
 * the factor is at most 2^(21 + 149), made of two, each product exact; only a product below 2^-126
 * may round, and that is far below one half.
 */
static RULE inline int32_t quantized_number(float x, int exponent, int bits)
{
    const int shift = bits - 1 - exponent;
    const int first = shift > 127 ? 127 : shift;
    const int32_t limit = (1 << (bits - 1)) - 1;

    if (exponent == EXPONENT_POISON) {
        return 0;
    }
    const int32_t q = round_to_int((x * exact_power(first)) * exact_power(shift - first));

    return q > limit ? limit : q < -limit ? -limit : q;
}

/* Writes the limbs of q[0..3], which lie at row, k .. k+3. */
static RULE inline void write_limbs(uint8_t *planes, uint64_t plane_size, uint64_t place,
                                    const int32_t *q, int bits)
{
    uint32_t words[PACKED_PLANES_MAX] = {0, 0, 0};

    for (int i = 0; i < 4; i++) {
        uint8_t limbs[PACKED_PLANES_MAX];

        packed_split(limbs, q[i], bits);
        for (uint32_t plane = 0; plane < PACKED_PLANES_MAX; plane++) {
            words[plane] |= (uint32_t)limbs[plane] << (8 * i);
        }
    }
    for (uint32_t plane = 0; plane < PACKED_PLANES_MAX; plane++) {
        if (plane < packed_planes(bits)) {
            *(uint32_t *)(planes + (uint64_t)plane * plane_size + place) = words[plane];
        }
    }
}

/*
 * grid: tiles of QUANTIZE_TILE_ROWS x QUANTIZE_TILE_K, those of one stripe of rows side by side;
 * block: BLOCK_THREADS. Read across and written along k, or the reverse, through shared memory.
 */
KERNEL(kernel_quantize_integers, struct quantize_args)
{
    SHARED(int32_t, tile, QUANTIZE_TILE_ROWS * (QUANTIZE_TILE_K + 4));
    SHARED(int64_t, starts, QUANTIZE_TILE_ROWS);
    const uint64_t line = UINT64_C(1) << args.line_log;
    const uint64_t width = args.planes != NULL ? packed_round_up(args.k, line) : args.k;
    const uint64_t across = (width + QUANTIZE_TILE_K - 1) / QUANTIZE_TILE_K;
    const uint64_t first_row = block_index() / across * QUANTIZE_TILE_ROWS;
    const uint32_t first_k = (uint32_t)(block_index() % across) * QUANTIZE_TILE_K;
    const uint32_t thread = thread_index();

    if (thread < QUANTIZE_TILE_ROWS && first_row + thread < args.rows) {
        starts[thread] = view_row(&args, first_row + thread);
    }
    barrier();
    for (uint32_t at = thread; at < QUANTIZE_TILE_ROWS * QUANTIZE_TILE_K; at += BLOCK_THREADS) {
        const uint32_t r = args.across ? at % QUANTIZE_TILE_ROWS : at / QUANTIZE_TILE_K;
        const uint32_t c = args.across ? at / QUANTIZE_TILE_ROWS : at % QUANTIZE_TILE_K;
        const uint32_t k = first_k + c;
        int32_t q = 0;

        if (first_row + r < args.rows && k < args.k) {
            const uint64_t block = (first_row + r) * args.blocks + ((uint64_t)k >> args.block_log);

            q = quantized_number(view_element(&args, starts[r], first_row + r, k),
                                 args.exponents[block], args.bits);
        }
        tile[r * (QUANTIZE_TILE_K + 4) + c] = q;
    }
    barrier();
    for (uint32_t at = thread; at < QUANTIZE_TILE_ROWS * QUANTIZE_TILE_K / 4; at += BLOCK_THREADS) {
        const uint32_t r = at / (QUANTIZE_TILE_K / 4);
        const uint32_t c = at % (QUANTIZE_TILE_K / 4) * 4;
        const uint64_t row = first_row + r;
        const int32_t *q = &tile[r * (QUANTIZE_TILE_K + 4) + c];

        if (row >= args.rows || first_k + c >= width) {
            continue;
        }
        if (args.planes != NULL) {
            write_limbs(args.planes, args.plane_size,
                        packed_place(row, first_k + c, args.strip_size, args.line_log), q,
                        args.bits);
            continue;
        }
        for (uint32_t i = 0; i < 4 && first_k + c + i < args.k; i++) {
            if (args.bits == 22) {
                ((int32_t *)args.q)[row * args.k + first_k + c + i] = q[i];
            } else {
                ((int16_t *)args.q)[row * args.k + first_k + c + i] = (int16_t)q[i];
            }
        }
    }
}

/* ---- rows that are runs of memory -------------------------------------------- */

struct quad {
    float x[4];
};

/* Four elements from k on, zeros from K on: K is a multiple of four here. */
static RULE inline struct quad quad_at(const struct quantize_args *args, const float *x, uint32_t k)
{
    struct quad quad = {{0.0f, 0.0f, 0.0f, 0.0f}};

    if (k < args->k) {
        load_quad(quad.x, x + k);
    }
    return quad;
}

/* The peaks of a row's pieces; a lane's share of the row's largest magnitude is returned. */
static RULE inline uint32_t row_peaks(const struct quantize_args *args, const float *x,
                                      uint64_t row, uint32_t member)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    uint32_t top = 0;

    for (uint64_t p = member; p < args->pieces; p += args->team) {
        const struct quad quad = quad_at(args, x, (uint32_t)p * CONTRACTION_PIECE + lane * 4);
        uint32_t largest = 0;

        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t magnitude = magnitude_of(quad.x[i]);

            largest = magnitude > largest ? magnitude : largest;
        }
        for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
            const uint32_t other = shuffle_xor(largest, d);

            largest = other > largest ? other : largest;
        }
        if (lane == 0) {
            write_peak(args, row, p, largest);
        }
        top = largest > top ? largest : top;
    }
    return top;
}

/* The exponents of a row's blocks, of one piece each or one for all; the smallest is returned. */
static RULE inline int32_t row_exponents(const struct quantize_args *args, uint64_t row,
                                         uint32_t member, int32_t top)
{
    int32_t least = INT16_MAX;

    for (uint64_t b = member * CUDA_WARP + thread_index() % CUDA_WARP; b < args->blocks;
         b += (uint64_t)args->team * CUDA_WARP) {
        int32_t own = top;

        if (args->blocks > 1) {
            const int32_t peak = args->peaks[row * args->pieces + b];

            own = peak > top - args->window ? peak : top - args->window;
        }
        args->exponents[row * args->blocks + b] = (int16_t)own;
        least = own < least ? own : least;
    }
    return -warp_maximum(-least);
}

/* The limbs of a row, and its shifts. */
static RULE inline void row_integers(const struct quantize_args *args, const float *x, uint64_t row,
                                     uint32_t member, int32_t lowest)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t line = UINT64_C(1) << args->line_log;
    const uint64_t width = packed_round_up(args->k, line);

    for (uint64_t b = member * CUDA_WARP + lane; b < args->blocks;
         b += (uint64_t)args->team * CUDA_WARP) {
        const int32_t exponent = args->exponents[row * args->blocks + b];

        args->shifts[b * args->shift_pitch + row] =
            lowest == PACKED_POISON ? 0 : (uint8_t)(exponent - lowest);
    }
    for (uint64_t p = member; p < args->pieces; p += args->team) {
        const uint32_t k = (uint32_t)p * CONTRACTION_PIECE + lane * 4;
        const struct quad quad = quad_at(args, x, k);
        const int exponent = args->exponents[row * args->blocks + (args->blocks > 1 ? p : 0)];
        int32_t q[4];

        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            q[i] = quantized_number(quad.x[i], exponent, args->bits);
        }
        if (k < width) {
            write_limbs(args->planes, args->plane_size,
                        packed_place(row, k, args->strip_size, args->line_log), q, args->bits);
        }
    }
}

/* grid: any; block: BLOCK_THREADS. A warp, or all of them, take a row. */
KERNEL(kernel_quantize_rows, struct quantize_args)
{
    SHARED(uint32_t, tops, BLOCK_THREADS / CUDA_WARP);
    SHARED(int32_t, lows, BLOCK_THREADS / CUDA_WARP);
    const uint32_t warp = thread_index() / CUDA_WARP;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint32_t member = warp % args.team;
    const uint32_t teams = BLOCK_THREADS / CUDA_WARP / args.team;
    const uint64_t turns =
        (args.rows + (uint64_t)teams * grid_size() - 1) / ((uint64_t)teams * grid_size());

    for (uint64_t turn = 0; turn < turns; turn++) {
        const uint64_t row = (turn * grid_size() + block_index()) * teams + warp / args.team;
        const bool there = row < args.rows;
        const float *x = args.x + (there ? view_row(&args, row) : 0);
        int32_t lowest = INT16_MAX;
        uint32_t largest = 0;

        const uint32_t own_top = there ? row_peaks(&args, x, row, member) : 0;

        if (lane == 0) {
            tops[warp] = own_top;
        }
        barrier();
        for (uint32_t i = 0; i < args.team; i++) {
            const uint32_t other = tops[warp - member + i];

            largest = other > largest ? other : largest;
        }
        const int32_t top = exponent_of_bits(largest);

        const int32_t own_low = there ? row_exponents(&args, row, member, top) : 0;

        if (lane == 0) {
            lows[warp] = own_low;
        }
        barrier();
        for (uint32_t i = 0; i < args.team; i++) {
            const int32_t other = lows[warp - member + i];

            lowest = other < lowest ? other : lowest;
        }
        lowest = top == EXPONENT_POISON ? PACKED_POISON : lowest;
        if (there) {
            row_integers(&args, x, row, member, lowest);
            if (member == 0 && lane == 0) {
                args.lowest[row] = lowest;
            }
        }
    }
}

/* grid: any; block: BLOCK_THREADS. A warp takes a row of a canonical q. */
KERNEL(kernel_pack, struct pack_args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t warps = place_stride() / CUDA_WARP;
    const uint64_t width = packed_round_up(args.k, UINT64_C(1) << args.line_log);

    for (uint64_t row = first_place() / CUDA_WARP; row < args.rows; row += warps) {
        const int32_t lowest = warp_lowest(args.exponents + row * args.blocks, args.blocks);

        if (lane == 0) {
            args.lowest[row] = lowest;
        }
        write_shifts(args.shifts, args.shift_pitch, row, args.exponents + row * args.blocks,
                     args.blocks, lowest);
        for (uint64_t k = (uint64_t)lane * 4; k < width; k += (uint64_t)CUDA_WARP * 4) {
            int32_t q[4];

            for (uint32_t i = 0; i < 4; i++) {
                const uint64_t at = row * args.k + k + i;

                q[i] = k + i >= args.k   ? 0
                       : args.bits == 22 ? ((const int32_t *)args.q)[at]
                                         : ((const int16_t *)args.q)[at];
            }
            write_limbs(args.planes, args.plane_size,
                        packed_place(row, k, args.strip_size, args.line_log), q, args.bits);
        }
    }
}
