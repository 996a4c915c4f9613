/*
 * contract_body.h - exact contraction: by mma on tensor cores for 14, 15, 16 and 22 bits, by bytes
 * or by halves, without them for blocks of 16. hopper_body.h does it by wgmma;
 * tile_body.h has what both share, fragments_body.h the products and sums of a warp.
 *
 * A block of threads makes a tile of CONTRACT_ROWS x CONTRACT_COLUMNS results; its 8 warps, 4 down
 * and 2 across, make 32 x 32 each, as 2 x 4 fragments of 16 x 8. With 22 bits there are five 32-bit
 * sums for each result, and a tile has half the rows: 16 x 32 a warp, 80 registers of such sums and
 * 32 of wide ones. Limbs come through shared memory in stages of CONTRACT_STAGE elements of k, some
 * of which are under way while one is multiplied. Where tiles are few, k is split over several
 * blocks of threads; their 64-bit sums meet in memory by integer atomics, which have one result in
 * any order, and the last to come finishes. Where element-wise operations follow, results go
 * through them first: epilogue_body.h.
 */

/* Rows of A in a tile, of both operands, and the bytes of one plane of them. */
static RULE INLINED uint32_t tile_rows_a(enum limb_kind kind)
{
    return limb_planes(kind) == 3 ? CONTRACT_ROWS_THREE : CONTRACT_ROWS;
}

static RULE INLINED uint32_t tile_rows(enum limb_kind kind)
{
    return tile_rows_a(kind) + CONTRACT_COLUMNS;
}

static RULE INLINED uint32_t limb_plane_size(enum limb_kind kind)
{
    return tile_rows(kind) * CONTRACT_STAGE;
}

static_assert(3 * (CONTRACT_ROWS_THREE + CONTRACT_COLUMNS) * CONTRACT_STAGE <= CONTRACT_LIMBS_SIZE,
              "three planes take no more of a stage than two");

/* ---- into shared memory ------------------------------------------------------- */

struct contract_tile {
    uint64_t batch;
    uint64_t first_m;
    uint64_t first_n;
    uint64_t row_a; /* of A's planes: first_m in its batch */
    uint64_t row_b;
    uint64_t first_k;
    uint64_t end_k;
    uint32_t index; /* among the tiles of all batches */
    uint8_t *stages;
};

static RULE INLINED struct contract_tile contract_tile_of(const struct contract_args *args,
                                                          enum limb_kind kind)
{
    const uint32_t index = block_index() / args->splits;
    struct contract_tile tile;
    uint32_t tile_m;
    uint32_t tile_n;

    tile_of(&tile_m, &tile_n, args, index);
    tile.batch = args->batch_first + block_index_y();
    tile.index = (uint32_t)(tile.batch * args->tiles_m * args->tiles_n) + index;
    tile.first_m = (uint64_t)tile_m * tile_rows_a(kind);
    tile.first_n = (uint64_t)tile_n * CONTRACT_COLUMNS;
    tile.row_a = tile.batch * args->m + tile.first_m;
    tile.row_b = tile.batch * args->n + tile.first_n;
    split_of(&tile.first_k, &tile.end_k, args, block_index() % args->splits);
    tile.stages = dynamic_shared();
    return tile;
}

#define FILL_ROWS (CONTRACT_TILE_ROWS * 4 / CONTRACT_THREADS) /* of which a thread copies pieces */

static RULE INLINED uint32_t fill_rows(enum limb_kind kind)
{
    return tile_rows(kind) * 4 / CONTRACT_THREADS;
}

/* Where a thread copies from: one piece of 16 bytes of two rows of A (or one), and one of B. */
struct filler {
    const uint8_t *from[FILL_ROWS];
    uint64_t strip_sizes[2];
    uint64_t plane_sizes[2];
    uint32_t swizzles[FILL_ROWS];
    bool there[FILL_ROWS];
};

static RULE INLINED uint32_t fill_row(uint32_t i)
{
    return thread_index() / 4 + i * (CONTRACT_THREADS / 4);
}

static RULE INLINED void filler_init(struct filler *filler, const struct contract_args *args,
                                     const struct contract_tile *tile, enum limb_kind kind)
{
    UNROLL
    for (uint32_t i = 0; i < fill_rows(kind); i++) {
        const uint32_t r = fill_row(i);
        const bool is_a = i < fill_rows(kind) - 1;
        const struct packed_operand *operand = is_a ? &args->a : &args->b;
        const uint32_t in_tile = is_a ? r : r - tile_rows_a(kind);
        const uint64_t in_batch = (is_a ? tile->first_m : tile->first_n) + in_tile;
        const uint64_t row = (is_a ? tile->row_a : tile->row_b) + in_tile;

        filler->there[i] = in_batch < (is_a ? args->m : args->n);
        filler->from[i] = operand->planes + (filler->there[i] ? row << args->line_log : 0);
        filler->swizzles[i] = packed_swizzle(row, 0, args->line_log);
    }
    filler->strip_sizes[0] = args->a.strip_size;
    filler->strip_sizes[1] = args->b.strip_size;
    filler->plane_sizes[0] = args->a.plane_size;
    filler->plane_sizes[1] = args->b.plane_size;
}

/* A row of a stage is 64 bytes; its pieces are exchanged so that 8 rows share no bank. */
static RULE INLINED uint32_t stage_place(uint32_t row, uint32_t piece)
{
    return row * CONTRACT_STAGE + (piece ^ (row / 2 % 4)) * 16;
}

/* The shifts of both steps, each by threads of its own. */
static RULE INLINED void shifts_fill(const struct contract_args *args,
                                     const struct contract_tile *tile, uint8_t *stage, uint64_t k)
{
    const uint32_t pieces = CONTRACT_SHIFTS_SIZE / 16;
    const uint32_t step = thread_index() / pieces;
    const uint32_t at = thread_index() % pieces;
    const bool is_a = at < CONTRACT_SHIFTS_A / 16;
    const struct packed_operand *operand = is_a ? &args->a : &args->b;
    const uint64_t first = is_a ? tile->row_a / 16 * 16 + at * 16
                                : tile->row_b / 16 * 16 + at * 16 - CONTRACT_SHIFTS_A;
    uint64_t block = (k + step * PACKED_STEP) >> args->block_log;
    const bool there = first < operand->shift_pitch;

    if (step < CONTRACT_STAGE / PACKED_STEP) {
        block = block < args->blocks ? block : args->blocks - 1;
        copy_async(stage + CONTRACT_LIMBS_SIZE + step * CONTRACT_SHIFTS_SIZE + at * 16,
                   operand->shifts + block * operand->shift_pitch + (there ? first : 0), there);
    }
}

/* Starts the copies of a stage, from element k on. */
static RULE INLINED void stage_fill(const struct contract_args *args,
                                    const struct contract_tile *tile, const struct filler *filler,
                                    uint8_t *stage, uint64_t k, enum limb_kind kind)
{
    const uint32_t piece = thread_index() % 4;
    const uint64_t strip = k >> args->line_log;
    const uint32_t in_line = ((uint32_t)k & ((1u << args->line_log) - 1)) / 16 + piece;

    UNROLL
    for (uint32_t i = 0; i < fill_rows(kind); i++) {
        const uint32_t r = fill_row(i);
        const uint32_t which = i < fill_rows(kind) - 1 ? 0 : 1;
        const uint8_t *from = filler->from[i] + strip * filler->strip_sizes[which] +
                              (uint64_t)(in_line ^ filler->swizzles[i]) * 16;

        UNROLL
        for (uint32_t plane = 0; plane < limb_planes(kind); plane++) {
            copy_async(stage + plane * limb_plane_size(kind) + stage_place(r, piece),
                       from + plane * filler->plane_sizes[which], filler->there[i]);
        }
    }
    shifts_fill(args, tile, stage, k);
}

/* ---- into registers -------------------------------------------------------------- */

/* Places by the lane: the PTX ISA's ldmatrix gives lane l the row l / 4, bytes 4 (l % 4) .. +3. */
static RULE INLINED void fragments_load(struct fragments *fragments, const uint8_t *limbs,
                                        uint32_t warp_row, uint32_t warp_column, uint32_t step,
                                        enum limb_kind kind)
{
    const uint32_t lane = thread_index() % CUDA_WARP;

    UNROLL
    for (uint32_t plane = 0; plane < limb_planes(kind); plane++) {
        const uint8_t *base = limbs + plane * limb_plane_size(kind);

        UNROLL
        for (uint32_t i = 0; i < fragment_rows(kind); i++) {
            /* Four 8 x 16 matrices: rows 0-7 and 8-15 of k 0-15, then of k 16-31. */
            const uint32_t row = warp_row + i * 16 + lane % 16;

            load_matrices(fragments->a[plane][i], base + stage_place(row, step * 2 + lane / 16));
        }
        UNROLL
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j += 2) {
            /* k 0-15 and 16-31 of eight columns, then of the next eight. */
            const uint32_t row = tile_rows_a(kind) + warp_column + j * 8 + lane / 16 * 8 + lane % 8;
            uint32_t words[4];

            load_matrices(words, base + stage_place(row, step * 2 + lane / 8 % 2));
            fragments->b[plane][j][0] = words[0];
            fragments->b[plane][j][1] = words[1];
            fragments->b[plane][j + 1][0] = words[2];
            fragments->b[plane][j + 1][1] = words[3];
        }
    }
}

/* ---- the tile ------------------------------------------------------------------- */

/*
 * The last split sees what all splits added. The thread that takes the ticket fences before and
 * after it: the barrier before orders the other threads' writes before its ticket, and the barrier
 * after hands them what the ticket saw. Fences of other threads would order nothing with a ticket
 * that they do not take.
 */
static RULE INLINED bool last_of_splits(const struct contract_args *args, uint32_t ticket)
{
    SHARED(uint32_t, before, 1);

    barrier();
    if (thread_index() == 0) {
        device_fence();
        *before = atomic_add(&args->tickets[ticket], 1);
        device_fence();
    }
    barrier();
    return *before + 1 == args->splits;
}

static RULE INLINED void
contract_write(const struct contract_args *args, const struct contract_tile *tile,
               int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS], uint32_t warp_row,
               uint32_t warp_column, bool add, enum limb_kind kind)
{
    const bool split = args->splits > 1;

    UNROLL
    for (uint32_t at = 0; at < fragment_rows(kind) * 2; at++) {
        const uint64_t m = tile->first_m + warp_row + at / 2 * 16 + sum_row(at % 2 * 2);
        const uint64_t partial_row = (tile->batch * args->m + m) * args->n;

        if (m >= args->m) {
            continue;
        }
        const struct result_line row = result_row(args, tile->batch, m);

        UNROLL
        for (uint32_t to = 0; to < FRAGMENT_COLUMNS * 2; to++) {
            const uint64_t n = tile->first_n + warp_column + to / 2 * 8 + sum_column(to % 2);
            const int64_t own = wide[at / 2][to / 2][at % 2 * 2 + to % 2];

            if (n >= args->n) {
                continue;
            }
            if (add) {
                atomic_add_wide(&args->partial[partial_row + n], (uint64_t)own);
            } else {
                const struct result_line column = result_column(args, tile->batch, n);

                write_result(args, &row, &column,
                             split ? (int64_t)load_fresh(&args->partial[partial_row + n]) : own);
            }
        }
    }
}

/* The same where element-wise operations follow. */
static RULE INLINED void
contract_write_steps(const struct contract_args *args, const struct contract_tile *tile,
                     int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                     uint32_t warp_row, uint32_t warp_column, enum limb_kind kind)
{
    const struct epilogue_patches patches = {
        tile->stages + thread_index() / CUDA_WARP * EPILOGUE_STAGE_SIZE, tile->first_m + warp_row,
        tile->first_n + warp_column, fragment_rows(kind) * 2, fragment_rows(kind) * 2};
    uint32_t made[FRAGMENT_ROWS * FRAGMENT_COLUMNS * FRAGMENT_SUMS] = {};

    copy_wait(0);
    barrier(); /* nobody reads the stages any more */
    epilogue_send(args, &patches, 0);
    UNROLL
    for (uint32_t at = 0; at < fragment_rows(kind) * 2; at++) {
        const uint64_t m = patches.first_m + at / 2 * 16 + sum_row(at % 2 * 2);

        UNROLL
        for (uint32_t i = 0; i < FRAGMENT_COLUMNS * 2; i++) {
            const uint64_t n = patches.first_n + i / 2 * 8 + sum_column(i % 2);

            if (m < args->m && n < args->n) {
                made[at * 8 + i] = seen_bits(
                    args, args->a.lowest[m], args->b.lowest[n],
                    args->splits > 1 ? (int64_t)load_fresh(&args->partial[m * args->n + n])
                                     : wide[at / 2][i / 2][at % 2 * 2 + i % 2]);
            }
        }
    }
    epilogue_finish(args, &patches, made);
}

/* Do 32-bit sums end before element k, if not with the split? */
static RULE INLINED bool reach_ends(const struct contract_args *args, uint64_t k)
{
    return (k & ((UINT64_C(1) << args->reach_log) - 1)) == 0;
}

static RULE INLINED void contract_tensor(const struct contract_args *args, enum limb_kind kind)
{
    const struct contract_tile tile = contract_tile_of(args, kind);
    const uint32_t warp = thread_index() / CUDA_WARP;
    const uint32_t warp_row = warp % 4 * (tile_rows_a(kind) / 4);
    const uint32_t warp_column = warp / 4 * 32;
    const uint64_t end =
        tile.first_m + tile_rows_a(kind) < args->m ? tile.first_m + tile_rows_a(kind) : args->m;
    const uint64_t stages = (tile.end_k - tile.first_k + CONTRACT_STAGE - 1) / CONTRACT_STAGE;
    int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    struct filler filler;

    sums_begin(sums, kind);
    if (tile_unseen(args, tile.first_m, end, tile.first_n)) {
        if (block_index() % args->splits == 0) {
            contract_write(args, &tile, wide, warp_row, warp_column, false, kind);
        }
        return; /* all threads of the block: none waits at a barrier */
    }
    filler_init(&filler, args, &tile, kind);
    for (uint32_t s = 0; s + 1 < args->stages; s++) {
        if (s < stages) {
            stage_fill(args, &tile, &filler, tile.stages + s * CONTRACT_STAGE_SIZE,
                       tile.first_k + s * CONTRACT_STAGE, kind);
        }
        copy_commit();
    }
    for (uint64_t s = 0; s < stages; s++) {
        const uint64_t next = s + args->stages - 1;
        const uint64_t k = tile.first_k + s * CONTRACT_STAGE;
        const uint8_t *stage = tile.stages + s % args->stages * CONTRACT_STAGE_SIZE;

        copy_wait(args->stages - 2);
        barrier(); /* all see this stage, and nobody reads the one before it any more */
        if (next < stages) {
            stage_fill(args, &tile, &filler,
                       tile.stages + next % args->stages * CONTRACT_STAGE_SIZE,
                       tile.first_k + next * CONTRACT_STAGE, kind);
        }
        copy_commit();
        UNROLL
        for (uint32_t step = 0; step < CONTRACT_STAGE / PACKED_STEP; step++) {
            const uint64_t at = k + step * PACKED_STEP;
            const uint8_t *shifts = stage + CONTRACT_LIMBS_SIZE + step * CONTRACT_SHIFTS_SIZE;
            struct fragments fragments;

            if (at >= tile.end_k) {
                continue;
            }
            fragments_load(&fragments, stage, warp_row, warp_column, step, kind);
            fragments_multiply(sums, &fragments, fragment_rows(kind), FRAGMENT_COLUMNS, kind);
            if (reach_ends(args, at + PACKED_STEP) || at + PACKED_STEP >= tile.end_k) {
                sums_widen(wide, sums, shifts + tile.row_a % 16 + warp_row,
                           shifts + CONTRACT_SHIFTS_A + tile.row_b % 16 + warp_column,
                           fragment_rows(kind), FRAGMENT_COLUMNS, kind);
            }
        }
    }
    if (args->splits > 1) {
        contract_write(args, &tile, wide, warp_row, warp_column, true, kind);
        if (!last_of_splits(args, tile.index)) {
            return;
        }
    }
    if (args->epilogue.count != 0) {
        contract_write_steps(args, &tile, wide, warp_row, warp_column, kind);
        return;
    }
    contract_write(args, &tile, wide, warp_row, warp_column, false, kind);
}

/* grid: (splits of tiles of m and n, batch); block: CONTRACT_THREADS. 14 bits. */
KERNEL_LIMITED(kernel_contract_narrow, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_NARROW);
}

/* The same for 15 and 16 bits. */
KERNEL_LIMITED(kernel_contract_wide, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_WIDE);
}

/* And for 22 bits. */
KERNEL_LIMITED(kernel_contract_three, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_THREE);
}

/* 14 bits by halves: up to HALVES_SHORT elements of a block, and more. */
KERNEL_LIMITED(kernel_halves_short, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_HALVES_SHORT);
}

KERNEL_LIMITED(kernel_halves_long, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_HALVES_LONG);
}

/* And 15 and 16 bits. */
KERNEL_LIMITED(kernel_halves_wide, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_HALVES_WIDE);
}

/* And 22 bits. */
KERNEL_LIMITED(kernel_halves_three, struct contract_args, CONTRACT_THREADS)
{
    contract_tensor(&args, LIMBS_HALVES_THREE);
}

/* ---- any width, any block ------------------------------------------------- */

static RULE inline int32_t operand_q(const struct packed_operand *operand, uint64_t row, uint64_t k,
                                     uint32_t line_log, int bits)
{
    const uint8_t *at = operand->planes + packed_place(row, k, operand->strip_size, line_log);

    return packed_join(at[0], at[operand->plane_size], bits == 22 ? at[2 * operand->plane_size] : 0,
                       bits);
}

/* grid: (tiles, batch); block: BLOCK_THREADS, each with four results of one column. */
KERNEL(kernel_contract_plain, struct contract_args)
{
    SHARED(int32_t, a, PLAIN_TILE * PLAIN_STEP);
    SHARED(int32_t, b, PLAIN_TILE * (PLAIN_STEP + 1));
    const uint64_t batch = args.batch_first + block_index_y();
    const uint64_t first_m = (uint64_t)(block_index() / args.tiles_n) * PLAIN_TILE;
    const uint64_t first_n = (uint64_t)(block_index() % args.tiles_n) * PLAIN_TILE;
    const uint64_t n = first_n + thread_index() % PLAIN_TILE;
    const uint32_t group = thread_index() / PLAIN_TILE;
    uint64_t sums[4] = {0, 0, 0, 0};

    for (uint64_t k = 0; k < args.k; k += PLAIN_STEP) {
        const uint64_t block = k >> args.block_log;

        for (uint32_t at = thread_index(); at < PLAIN_TILE * PLAIN_STEP; at += BLOCK_THREADS) {
            const uint32_t r = at / PLAIN_STEP;
            const uint32_t c = at % PLAIN_STEP;
            const uint64_t m_row = batch * args.m + first_m + r;
            const uint64_t n_row = batch * args.n + first_n + r;

            /* A line is a whole number of steps, and its end holds zeros. */
            a[r * PLAIN_STEP + c] = first_m + r < args.m
                                        ? operand_q(&args.a, m_row, k + c, args.line_log, args.bits)
                                        : 0;
            b[r * (PLAIN_STEP + 1) + c] =
                first_n + r < args.n ? operand_q(&args.b, n_row, k + c, args.line_log, args.bits)
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
                const uint32_t shift =
                    args.a.shifts[block * args.a.shift_pitch + batch * args.m + m] +
                    args.b.shifts[block * args.b.shift_pitch + batch * args.n + n];

                sums[i] += shifted_part(part, shift);
            }
        }
        barrier();
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t m = first_m + group + 8 * i;

        if (m < args.m && n < args.n) {
            const struct result_line row = result_row(&args, batch, m);
            const struct result_line column = result_column(&args, batch, n);
            const uint32_t bits = result_bits(&args, &row, &column, (int64_t)sums[i]);

            if (args.out != NULL) {
                args.out[row.place + column.place] = bits;
            }
            epilogue_one(&args.epilogue, real_from_bits(bits), m * args.n + n, n);
        }
    }
}

/* ---- sums of quantized rows ------------------------------------------------ */

static RULE inline uint32_t sum_finished(const struct sums_args *args, uint64_t row, int64_t sum)
{
    const int32_t lowest = args->q.lowest[row];

    return lowest == PACKED_POISON ? FLOAT_NAN_BITS
                                   : contraction_finish(sum, last_bit(lowest, args->bits));
}

static RULE inline uint64_t shifted_q(const struct sums_args *args, uint64_t row, uint64_t k)
{
    const uint32_t shift = args->q.shifts[(k >> args->block_log) * args->q.shift_pitch + row];
    const int32_t q = operand_q(&args->q, row, k, args->line_log, args->bits);

    return shifted_part(q, shift);
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
        sum = warp_sum_wide(sum);
        if (lane == 0) {
            args.out[row] = sum_finished(&args, row, (int64_t)sum);
        }
    }
}

/*
 * Lists of the places of each word. The order of a list depends on timing; the sum of integers that
 * is made of it does not.
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
            const uint64_t at = word * args.rows + row;
            uint64_t sum = 0;
            bool same = false; /* few words occur: most of what is added to is there already */

            for (uint32_t k = args.heads[word]; k != 0; k = args.links[k - 1]) {
                sum += shifted_q(&args, row, k - 1);
            }
            uint32_t bits = sum_finished(&args, row, (int64_t)sum);

            if (args.addend != NULL) {
                const uint32_t addend = args.addend[at];

                bits = real_to_bits(real_stored(real_from_bits(bits) + real_from_bits(addend)));
                same = args.addend == args.out && bits == addend;
            }
            if (!same) {
                args.out[at] = bits;
            }
        }
    }
}
