/*
 * contract_body.h - exact contraction: by tensor cores for 14, 15 and 16 bits, plainly for 22 bits
 * and for blocks of 16.
 *
 * A block of threads makes a tile of CONTRACT_ROWS x CONTRACT_COLUMNS results; its 8 warps, 4 down
 * and 2 across, make 32 x 32 each, as 2 x 4 fragments of 16 x 8. Limbs come through shared memory
 * in stages of CONTRACT_STAGE elements of k. At the end of every piece (packed.h) the 32-bit sums
 * of the limbs' products become one 64-bit part, are shifted by the two exponents of their block
 * and added: contraction.h shows that nothing overflows.
 */

#define FRAGMENT_ROWS    2 /* of a warp: fragments of 16 rows */
#define FRAGMENT_COLUMNS 4 /* of 8 columns */
#define FRAGMENT_SUMS    4 /* results of a fragment that one lane holds */
#define LIMB_SUMS        3 /* hh, ll and (h+l)(h'+l'); or hh, hl' + lh' and ll' */

struct contract_tile {
    uint64_t batch;
    uint64_t first_m;
    uint64_t first_n;
    uint8_t *limbs;  /* [stage][plane][row][CONTRACT_PITCH] */
    uint8_t *shifts; /* [stage][step][row] */
};

static RULE inline uint64_t causal_limit(const struct contract_args *args, uint64_t m)
{
    return args->causal == 0 ? args->n : m % args->causal + 1;
}

/* Row `r` of a tile: rows of A first, then rows of B. */
static RULE inline const struct packed_operand *tile_operand(uint64_t *row, bool *there,
                                                             const struct contract_args *args,
                                                             const struct contract_tile *tile,
                                                             uint32_t r)
{
    const bool is_a = r < CONTRACT_ROWS;
    const uint64_t in_batch = is_a ? tile->first_m + r : tile->first_n + (r - CONTRACT_ROWS);
    const uint64_t count = is_a ? args->m : args->n;

    *there = in_batch < count;
    *row = tile->batch * count + (*there ? in_batch : 0);
    return is_a ? &args->a : &args->b;
}

/* Starts the copies of a stage, from element k on. */
static RULE inline void stage_fill(const struct contract_args *args,
                                   const struct contract_tile *tile, uint32_t stage, uint64_t k)
{
    const uint32_t thread = thread_index();

    for (uint32_t at = thread; at < 2 * CONTRACT_TILE_ROWS * (CONTRACT_STAGE / 16);
         at += CONTRACT_THREADS) {
        const uint32_t chunk = at % (CONTRACT_STAGE / 16);
        const uint32_t r = at / (CONTRACT_STAGE / 16) % CONTRACT_TILE_ROWS;
        const uint32_t plane = at / (CONTRACT_STAGE / 16) / CONTRACT_TILE_ROWS;
        const uint64_t from = k + chunk * 16;
        uint64_t row;
        bool there;
        const struct packed_operand *operand = tile_operand(&row, &there, args, tile, r);
        const bool real = there && from < args->pitch;

        copy_async(tile->limbs + stage * CONTRACT_STAGE_SIZE + plane * CONTRACT_PLANE_SIZE +
                       r * CONTRACT_PITCH + chunk * 16,
                   operand->planes + plane * operand->plane_size + row * args->pitch +
                       (real ? from : 0),
                   real);
    }
    for (uint32_t at = thread; at < CONTRACT_SHIFTS_SIZE; at += CONTRACT_THREADS) {
        const uint32_t r = at % CONTRACT_TILE_ROWS;
        const uint64_t from = k + at / CONTRACT_TILE_ROWS * PACKED_STEP;
        uint64_t row;
        bool there;
        const struct packed_operand *operand = tile_operand(&row, &there, args, tile, r);
        int32_t shift = 0;

        if (there && from < args->k && operand->lowest[row] != PACKED_POISON) {
            shift =
                operand->exponents[row * args->blocks + from / args->block] - operand->lowest[row];
        }
        tile->shifts[stage * CONTRACT_SHIFTS_SIZE + at] = (uint8_t)shift;
    }
}

/* What a warp holds of one step: fragments of both limbs, as 32-bit words of four elements. */
struct fragments {
    uint32_t a[2][FRAGMENT_ROWS][4];
    uint32_t b[2][FRAGMENT_COLUMNS][2];
};

/* Places by the lane: the PTX ISA's ldmatrix gives lane l the row l / 4, bytes 4 (l % 4) .. +3. */
static RULE inline void fragments_load(struct fragments *fragments, const uint8_t *limbs,
                                       uint32_t warp_row, uint32_t warp_column, uint32_t step)
{
    const uint32_t lane = thread_index() % CUDA_WARP;

    UNROLL
    for (uint32_t plane = 0; plane < 2; plane++) {
        const uint8_t *base = limbs + plane * CONTRACT_PLANE_SIZE + step * PACKED_STEP;

        UNROLL
        for (uint32_t i = 0; i < FRAGMENT_ROWS; i++) {
            /* Four 8 x 16 matrices: rows 0-7 and 8-15 of k 0-15, then of k 16-31. */
            const uint32_t row = warp_row + i * 16 + lane % 16;

            load_matrices(fragments->a[plane][i], base + row * CONTRACT_PITCH + lane / 16 * 16);
        }
        UNROLL
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j += 2) {
            /* k 0-15 and 16-31 of eight columns, then of the next eight. */
            const uint32_t row = CONTRACT_ROWS + warp_column + j * 8 + lane / 16 * 8 + lane % 8;
            uint32_t words[4];

            load_matrices(words, base + row * CONTRACT_PITCH + lane / 8 % 2 * 16);
            fragments->b[plane][j][0] = words[0];
            fragments->b[plane][j][1] = words[1];
            fragments->b[plane][j + 1][0] = words[2];
            fragments->b[plane][j + 1][1] = words[3];
        }
    }
}

static RULE inline void fragments_add(uint32_t *sum, const uint32_t *a, const uint32_t *b,
                                      uint32_t count)
{
    UNROLL
    for (uint32_t i = 0; i < count; i++) {
        sum[i] = packed_add_bytes(a[i], b[i]);
    }
}

/* The products of one step. */
static RULE inline void
fragments_multiply(int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                   const struct fragments *f, bool narrow)
{
    UNROLL
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++) {
        uint32_t both_a[4];

        fragments_add(both_a, f->a[0][i], f->a[1][i], 4);
        UNROLL
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            multiply_ss(sums[0][i][j], f->a[0][i], f->b[0][j]);
            if (narrow) {
                uint32_t both_b[2];

                fragments_add(both_b, f->b[0][j], f->b[1][j], 2);
                multiply_ss(sums[1][i][j], f->a[1][i], f->b[1][j]);
                multiply_ss(sums[2][i][j], both_a, both_b);
            } else {
                multiply_uu(sums[1][i][j], f->a[1][i], f->b[1][j]);
                multiply_su(sums[2][i][j], f->a[0][i], f->b[1][j]);
                multiply_us(sums[2][i][j], f->a[1][i], f->b[0][j]);
            }
        }
    }
}

/* Which row and column of a fragment a lane's c-th result is: the PTX ISA's m16n8k32. */
static RULE inline uint32_t sum_row(uint32_t c)
{
    return thread_index() % CUDA_WARP / 4 + c / 2 * 8;
}

static RULE inline uint32_t sum_column(uint32_t c)
{
    return thread_index() % CUDA_WARP % 4 * 2 + c % 2;
}

/*
 * Shifts up to here multiply in 32 bits: radix << SHIFT_QUICK is at most 2^30, so that a piece is
 * added by two multiplications of 32 by 32 bits into 64.
 */
#define SHIFT_QUICK 22

/* Adds a piece to the 64-bit sums and starts the limbs' sums anew. */
static RULE inline void
sums_widen(int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
           int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
           const uint8_t *shifts, uint32_t warp_row, uint32_t warp_column, bool narrow)
{
    const int32_t radix = narrow ? 128 : 256;
    uint32_t rows[FRAGMENT_ROWS][2];
    uint32_t columns[FRAGMENT_COLUMNS][2];
    uint32_t most_of_rows = 0;
    uint32_t most_of_columns = 0;

    UNROLL
    for (uint32_t at = 0; at < FRAGMENT_ROWS * 2; at++) {
        const uint32_t shift = shifts[warp_row + at / 2 * 16 + sum_row(at % 2 * 2)];

        rows[at / 2][at % 2] = shift;
        most_of_rows = shift > most_of_rows ? shift : most_of_rows;
    }
    UNROLL
    for (uint32_t at = 0; at < FRAGMENT_COLUMNS * 2; at++) {
        const uint32_t shift =
            shifts[CONTRACT_ROWS + warp_column + at / 2 * 8 + sum_column(at % 2)];

        columns[at / 2][at % 2] = shift;
        most_of_columns = shift > most_of_columns ? shift : most_of_columns;
    }
    const bool quick = most_of_rows + most_of_columns <= SHIFT_QUICK;

    UNROLL
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++) {
        UNROLL
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            UNROLL
            for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
                const int32_t high = sums[0][i][j][c];
                const int32_t low = sums[1][i][j][c];
                const int32_t middle = sums[2][i][j][c] - (narrow ? high + low : 0);
                const uint32_t shift = rows[i][c / 2] + columns[j][c % 2];
                const int32_t top = high * radix + middle;

                if (quick) {
                    wide[i][j][c] += (int64_t)top * (radix << shift) + (int64_t)low * (1 << shift);
                } else {
                    const int64_t part = (int64_t)top * radix + low;

                    wide[i][j][c] = (int64_t)((uint64_t)wide[i][j][c] + ((uint64_t)part << shift));
                }
                sums[0][i][j][c] = 0;
                sums[1][i][j][c] = 0;
                sums[2][i][j][c] = 0;
            }
        }
    }
}

/* Where results lie: a row's part of the place, and a column's. */
static RULE inline uint64_t place_of_row(const struct contract_args *args, uint64_t batch,
                                         uint64_t m)
{
    const uint64_t b1 = (uint64_t)args->dims[1];
    const uint64_t m1 = (uint64_t)args->dims[3];

    return batch / b1 * (uint64_t)args->strides[0] + batch % b1 * (uint64_t)args->strides[1] +
           m / m1 * (uint64_t)args->strides[2] + m % m1 * (uint64_t)args->strides[3];
}

static RULE inline uint64_t place_of_column(const struct contract_args *args, uint64_t n)
{
    const uint64_t n1 = (uint64_t)args->dims[5];

    return n / n1 * (uint64_t)args->strides[4] + n % n1 * (uint64_t)args->strides[5];
}

/* One result, from its sum. */
static RULE inline void write_result(const struct contract_args *args, uint64_t batch, uint64_t m,
                                     uint64_t n, int64_t sum)
{
    const int32_t a = args->a.lowest[batch * args->m + m];
    const int32_t b = args->b.lowest[batch * args->n + n];
    uint32_t bits = 0;

    if (n < causal_limit(args, m)) {
        bits = a == PACKED_POISON || b == PACKED_POISON
                   ? FLOAT_NAN_BITS
                   : contraction_finish(sum, a + b - 2 * (args->bits - 1));
    }
    args->out[place_of_row(args, batch, m) + place_of_column(args, n)] = bits;
}

/* Is no result of the rows [first, end) and columns from n on wanted? */
static RULE inline bool tile_unseen(const struct contract_args *args, uint64_t first, uint64_t end,
                                    uint64_t n)
{
    if (args->causal == 0) {
        return false;
    }
    /* Rows of one turn rise to the last; a tile that holds the end of a turn sees the most. */
    if (first / args->causal != (end - 1) / args->causal) {
        return n >= args->causal;
    }
    return n >= causal_limit(args, end - 1);
}

static RULE inline struct contract_tile contract_tile_of(const struct contract_args *args)
{
    struct contract_tile tile;

    tile.batch = args->batch_first + block_index_y();
    tile.first_m = block_index() / args->tiles_n * CONTRACT_ROWS;
    tile.first_n = block_index() % args->tiles_n * CONTRACT_COLUMNS;
    tile.limbs = (uint8_t *)dynamic_shared();
    tile.shifts = tile.limbs + CONTRACT_STAGES * CONTRACT_STAGE_SIZE;
    return tile;
}

static RULE inline void contract_write(const struct contract_args *args,
                                       const struct contract_tile *tile,
                                       int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                                       uint32_t warp_row, uint32_t warp_column)
{
    UNROLL
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++) {
        UNROLL
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            UNROLL
            for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
                const uint64_t m = tile->first_m + warp_row + i * 16 + sum_row(c);
                const uint64_t n = tile->first_n + warp_column + j * 8 + sum_column(c);

                if (m < args->m && n < args->n) {
                    write_result(args, tile->batch, m, n, wide[i][j][c]);
                }
            }
        }
    }
}

static RULE inline void contract_tensor(const struct contract_args *args, bool narrow)
{
    const struct contract_tile tile = contract_tile_of(args);
    const uint32_t warp = thread_index() / CUDA_WARP;
    const uint32_t warp_row = warp % 4 * 32;
    const uint32_t warp_column = warp / 4 * 32;
    const uint64_t end =
        tile.first_m + CONTRACT_ROWS < args->m ? tile.first_m + CONTRACT_ROWS : args->m;
    const uint64_t piece_steps = args->piece / PACKED_STEP;
    const uint64_t steps = args->pitch / PACKED_STEP;
    const uint64_t stages = (args->pitch + CONTRACT_STAGE - 1) / CONTRACT_STAGE;
    int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};

    if (tile_unseen(args, tile.first_m, end, tile.first_n)) {
        contract_write(args, &tile, wide, warp_row, warp_column);
        return; /* the whole block of threads: no barrier is left out by some */
    }
    stage_fill(args, &tile, 0, 0);
    copy_commit();
    for (uint64_t s = 0; s < stages; s++) {
        const uint32_t stage = (uint32_t)(s % CONTRACT_STAGES);

        if (s + 1 < stages) {
            stage_fill(args, &tile, (uint32_t)((s + 1) % CONTRACT_STAGES),
                       (s + 1) * CONTRACT_STAGE);
        }
        copy_commit();
        copy_wait_all_but_last();
        barrier();
        UNROLL
        for (uint32_t step = 0; step < CONTRACT_STAGE / PACKED_STEP; step++) {
            const uint64_t at = s * (CONTRACT_STAGE / PACKED_STEP) + step;
            struct fragments fragments;

            if (at >= steps) {
                continue;
            }
            fragments_load(&fragments, tile.limbs + stage * CONTRACT_STAGE_SIZE, warp_row,
                           warp_column, step);
            fragments_multiply(sums, &fragments, narrow);
            if ((at + 1) % piece_steps == 0 || at + 1 == steps) {
                sums_widen(wide, sums,
                           tile.shifts + stage * CONTRACT_SHIFTS_SIZE + step * CONTRACT_TILE_ROWS,
                           warp_row, warp_column, narrow);
            }
        }
        barrier();
    }
    contract_write(args, &tile, wide, warp_row, warp_column);
}

/* grid: (tiles of m and n, batch); block: CONTRACT_THREADS; CONTRACT_SHARED bytes. 14 bits. */
KERNEL_LIMITED(kernel_contract_narrow, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, true);
}

/* The same for 15 and 16 bits. */
KERNEL_LIMITED(kernel_contract_wide, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, false);
}

/* ---- any width, any block ------------------------------------------------- */

static RULE inline int32_t operand_q(const struct packed_operand *operand, uint64_t place, int bits)
{
    const uint8_t *at = operand->planes + place;

    return packed_join(at[0], at[operand->plane_size], bits == 22 ? at[2 * operand->plane_size] : 0,
                       bits);
}

/* grid: (tiles, batch); block: BLOCK_THREADS, each with four results of one column. */
KERNEL(kernel_contract_plain, struct contract_args)
{
    SHARED(int32_t, a, PLAIN_TILE * PLAIN_STEP);
    SHARED(int32_t, b, PLAIN_TILE * (PLAIN_STEP + 1));
    const uint64_t batch = args.batch_first + block_index_y();
    const uint64_t first_m = block_index() / args.tiles_n * PLAIN_TILE;
    const uint64_t first_n = block_index() % args.tiles_n * PLAIN_TILE;
    const uint64_t n = first_n + thread_index() % PLAIN_TILE;
    const uint32_t group = thread_index() / PLAIN_TILE;
    uint64_t sums[4] = {0, 0, 0, 0};

    for (uint64_t k = 0; k < args.k; k += PLAIN_STEP) {
        const uint64_t block = k / args.block;

        for (uint32_t at = thread_index(); at < PLAIN_TILE * PLAIN_STEP; at += BLOCK_THREADS) {
            const uint32_t r = at / PLAIN_STEP;
            const uint32_t c = at % PLAIN_STEP;
            const uint64_t m_row = batch * args.m + first_m + r;
            const uint64_t n_row = batch * args.n + first_n + r;

            /* The pitch is a whole number of steps, and its end holds zeros. */
            a[r * PLAIN_STEP + c] = first_m + r < args.m
                                        ? operand_q(&args.a, m_row * args.pitch + k + c, args.bits)
                                        : 0;
            b[r * (PLAIN_STEP + 1) + c] =
                first_n + r < args.n ? operand_q(&args.b, n_row * args.pitch + k + c, args.bits)
                                     : 0;
        }
        barrier();
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t m = first_m + group + 8 * i;
            int64_t part = 0;

            for (uint32_t c = 0; c < PLAIN_STEP; c++) {
                part += (int64_t)a[(group + 8 * i) * PLAIN_STEP + c] *
                        b[thread_index() % PLAIN_TILE * (PLAIN_STEP + 1) + c];
            }
            if (m < args.m && n < args.n && part != 0) {
                const uint64_t a_row = batch * args.m + m;
                const uint64_t b_row = batch * args.n + n;
                const uint32_t shift = (uint32_t)(args.a.exponents[a_row * args.blocks + block] -
                                                  args.a.lowest[a_row] +
                                                  args.b.exponents[b_row * args.blocks + block] -
                                                  args.b.lowest[b_row]);

                /* Of poison rows the shift means nothing, and the result is NaN anyhow. */
                sums[i] += shift < 64 ? (uint64_t)part << shift : 0;
            }
        }
        barrier();
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t m = first_m + group + 8 * i;

        if (m < args.m && n < args.n) {
            write_result(&args, batch, m, n, (int64_t)sums[i]);
        }
    }
}

/* ---- sums of quantized rows ------------------------------------------------ */

static RULE inline uint32_t sum_finished(const struct sums_args *args, uint64_t row, int64_t sum)
{
    const int32_t lowest = args->q.lowest[row];

    return lowest == PACKED_POISON ? FLOAT_NAN_BITS
                                   : contraction_finish(sum, lowest - (args->bits - 1));
}

static RULE inline uint64_t shifted_q(const struct sums_args *args, uint64_t row, uint64_t k)
{
    const int32_t shift =
        args->q.exponents[row * args->blocks + k / args->block] - args->q.lowest[row];
    const int32_t q = operand_q(&args->q, row * args->pitch + k, args->bits);

    return shift >= 0 && shift < 64 ? (uint64_t)(int64_t)q << shift : 0;
}

/* grid: any; block: BLOCK_THREADS. A warp takes a row. */
KERNEL(kernel_ones, struct sums_args)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t warps = place_stride() / CUDA_WARP;

    for (uint64_t row = first_place() / CUDA_WARP; row < args.rows; row += warps) {
        uint64_t sum = 0;

        for (uint64_t k = lane; k < args.k; k += CUDA_WARP) {
            sum += shifted_q(&args, row, k);
        }
        for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
            const uint32_t low = shuffle_xor((uint32_t)sum, d);
            const uint32_t high = shuffle_xor((uint32_t)(sum >> 32), d);

            sum += (uint64_t)high << 32 | low;
        }
        if (lane == 0) {
            args.out[row] = sum_finished(&args, row, (int64_t)sum);
        }
    }
}

/*
 * Lists of the places of each word. In which order a list runs depends on the weather; what is
 * made of it is a sum of integers and does not.
 */
KERNEL(kernel_onehot_link, struct sums_args)
{
    for (uint64_t k = first_place(); k < args.k; k += place_stride()) {
        const uint32_t word = args.index[k];

        if (word < args.vocabulary) {
            args.links[k] = atomic_swap(&args.heads[word], (uint32_t)k + 1);
        }
    }
}

/* grid: any; block: BLOCK_THREADS. A block takes words, its threads the columns. */
KERNEL(kernel_onehot_sum, struct sums_args)
{
    for (uint64_t word = block_index(); word < args.vocabulary; word += grid_size()) {
        for (uint64_t row = thread_index(); row < args.rows; row += block_size()) {
            uint64_t sum = 0;

            for (uint32_t at = args.heads[word]; at != 0; at = args.links[at - 1]) {
                sum += shifted_q(&args, row, at - 1);
            }
            args.out[word * args.rows + row] = sum_finished(&args, row, (int64_t)sum);
        }
    }
}
