/*
 * attention_body.h - the rows of attention on chip: from the limbs of queries and keys to p and to
 * what p makes of the values; and backward, from the limbs of dout and of the values to ds and to
 * the gradient of the queries. Scores, dp and the limbs of p and ds along rows are never written.
 *
 * A block of threads takes a strip of rows of one head. First its scores (or dp), by mma, lie in
 * shared memory as the binary32 numbers that the rules say; then a warp has a row, as held_body.h
 * has it, and leaves p (or ds) in the place of the scores; the same warp quantizes it, and the
 * limbs lie in the place of p, piece by piece: 512 bytes of numbers become two or three planes of
 * 128. What remains is a product of a strip held in shared memory by packed limbs.
 *
 * Under a causal mask, keys that no row of the strip sees are never brought. Pieces that hold
 * nothing but what is hidden are left out of a row's exponents: they are the smallest, the sum is a
 * multiple of a power of two more, and one rounding of it gives the same bits.
 *
 * Warps have 16 rows each, eight of them side by side have the columns of a tile: 256 threads for
 * 16 rows, 512 for 32.
 */

#define ATTENTION_ACROSS     8 /* warps side by side */
#define ATTENTION_PLANE_SIZE (ATTENTION_TILE * CONTRACT_STAGE)

struct strip {
    float *x; /* (rows, pitch) */
    uint32_t pitch;
    uint8_t *shifts; /* (rows, ATTENTION_PIECES): of x's pieces, once it holds limbs */
    int32_t *lowest; /* (rows) */
    uint8_t *stages;
    uint64_t batch;
    uint64_t first_m;
    uint32_t limit;  /* columns that some row sees */
    uint32_t pieces; /* of those */
    uint32_t row;    /* of the strip: the first of this warp's fragment */
    uint32_t column; /* of a tile */
};

static RULE INLINED uint32_t strip_visible(const struct attention_args *args, uint64_t m)
{
    const uint64_t limit = causal_limit(&args->first, m);

    return m >= args->first.m      ? 0
           : limit < args->first.n ? (uint32_t)limit
                                   : (uint32_t)args->first.n;
}

/* The longest strips come first. */
static RULE INLINED struct strip strip_of(const struct attention_args *args)
{
    const uint32_t rows = block_size() / (CUDA_WARP * ATTENTION_ACROSS) * 16;
    const uint32_t index = args->strips - 1 - (uint32_t)(block_index() / args->first.batches);
    const uint32_t warp = thread_index() / CUDA_WARP;
    struct strip strip;

    strip.pitch = ATTENTION_PITCH(args->first.n);
    strip.x = (float *)dynamic_shared();
    strip.stages = (uint8_t *)(strip.x + rows * strip.pitch);
    strip.batch = block_index() % args->first.batches;
    strip.first_m = (uint64_t)index * rows;
    strip.limit = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t visible = strip_visible(args, strip.first_m + r);

        strip.limit = visible > strip.limit ? visible : strip.limit;
    }
    strip.pieces = (strip.limit + CONTRACTION_PIECE - 1) / CONTRACTION_PIECE;
    strip.row = warp / ATTENTION_ACROSS * 16;
    strip.column = warp % ATTENTION_ACROSS * 8;
    return strip;
}

/* ---- limbs of columns, brought in stages ---------------------------------------- */

/* Tiles of ATTENTION_TILE rows of an operand, each in some stages along k. */
struct bringer {
    const struct packed_operand *operand;
    uint64_t first; /* row: of this batch */
    uint32_t rows;
    uint32_t line_log;
    uint32_t steps; /* stages of a tile */
    uint32_t count; /* of all tiles */
    uint32_t at;    /* the next to be multiplied */
    uint8_t *stages;
};

static RULE INLINED void bring_stage(const struct bringer *bringer, uint32_t at)
{
    const struct packed_operand *operand = bringer->operand;
    const uint32_t k = at % bringer->steps * CONTRACT_STAGE;
    const uint32_t in_line = (k & ((1u << bringer->line_log) - 1)) / 16;
    uint8_t *stage = bringer->stages + at % ATTENTION_STAGES * ATTENTION_STAGE_SIZE;

    for (uint32_t i = thread_index(); at < bringer->count && i < ATTENTION_STAGE_SIZE / 16;
         i += block_size()) {
        const uint32_t plane = i / (ATTENTION_TILE * 4);
        const uint32_t r = i / 4 % ATTENTION_TILE;
        const uint32_t n = at / bringer->steps * ATTENTION_TILE + r;
        const bool there = n < bringer->rows;
        const uint64_t row = bringer->first + (there ? n : 0);
        const uint8_t *from =
            operand->planes + plane * operand->plane_size +
            (k >> bringer->line_log) * operand->strip_size + (row << bringer->line_log) +
            (uint64_t)packed_swizzle(row, in_line + i % 4, bringer->line_log) * 16;

        copy_async(stage + plane * ATTENTION_PLANE_SIZE + stage_place(r, i % 4), from, there);
    }
    copy_commit();
}

static RULE INLINED struct bringer bringer_of(const struct contract_args *product,
                                              const struct strip *strip, uint32_t tiles,
                                              uint32_t steps)
{
    struct bringer bringer;

    bringer.operand = &product->b;
    bringer.first = strip->batch * product->n;
    bringer.rows = (uint32_t)product->n;
    bringer.line_log = product->line_log;
    bringer.steps = steps;
    bringer.count = tiles * steps;
    bringer.at = 0;
    bringer.stages = strip->stages;
    return bringer;
}

/* Nobody may read a stage any more. */
static RULE INLINED void bring_begin(const struct bringer *bringer)
{
    for (uint32_t at = 0; at + 1 < ATTENTION_STAGES; at++) {
        bring_stage(bringer, at);
    }
}

/* The next stage, which is there for all; the one before it is done with. */
static RULE INLINED const uint8_t *bring_next(struct bringer *bringer)
{
    const uint32_t at = bringer->at++;

    copy_wait(ATTENTION_STAGES - 2);
    barrier();
    bring_stage(bringer, at + ATTENTION_STAGES - 1);
    return bringer->stages + at % ATTENTION_STAGES * ATTENTION_STAGE_SIZE;
}

/* ---- products -------------------------------------------------------------------- */

#define STRIP_SUMS 3 /* of limbs: 22 bits have no place here */

/* B's words of a stage, of 8 columns: both steps of 32. */
static RULE INLINED void stage_load(uint32_t b[2][4], const struct strip *strip,
                                    const uint8_t *stage)
{
    const uint32_t lane = thread_index() % CUDA_WARP;

    UNROLL
    for (uint32_t plane = 0; plane < 2; plane++) {
        load_matrices(b[plane], stage + plane * ATTENTION_PLANE_SIZE +
                                    stage_place(strip->column + lane % 8, lane / 8));
    }
}

/* Of one step; a's third plane is the sum of both. */
static RULE INLINED void strip_multiply(int32_t sums[STRIP_SUMS][FRAGMENT_SUMS],
                                        const uint32_t a[PACKED_PLANES_MAX][4],
                                        const uint32_t b[2][4], uint32_t step, enum limb_kind kind)
{
    const uint32_t *high = b[0] + 2 * step;
    const uint32_t *low = b[1] + 2 * step;

    if (kind == LIMBS_NARROW) {
        uint32_t both[2];

        fragments_add(both, high, low, 2);
        multiply_ss(sums[0], a[0], high);
        multiply_ss(sums[1], a[1], low);
        multiply_ss(sums[2], a[2], both);
    } else {
        multiply_ss(sums[0], a[0], high);
        multiply_uu(sums[1], a[1], low);
        multiply_su(sums[2], a[0], low);
        multiply_us(sums[2], a[1], high);
    }
}

/* Sums and rows of a warp's fragment, of no shifts yet. */
static RULE INLINED void strip_sums_clear(int32_t sums[STRIP_SUMS][FRAGMENT_SUMS])
{
    UNROLL
    for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
        sums[0][c] = 0;
        sums[1][c] = 0;
        sums[2][c] = 0;
    }
}

static RULE INLINED uint32_t strip_bits(int64_t sum, int32_t row_lowest, int32_t column_lowest,
                                        int bits)
{
    if (row_lowest == PACKED_POISON || column_lowest == PACKED_POISON) {
        return FLOAT_NAN_BITS;
    }
    return contraction_finish(sum, row_lowest + column_lowest - 2 * (bits - 1));
}

/* A warp's 16 rows of the first product's A: two or three planes of all of k, in registers. */
static RULE INLINED void
queries_load(uint32_t a[ATTENTION_D_MAX / PACKED_STEP][PACKED_PLANES_MAX][4],
             const struct attention_args *args, const struct strip *strip, enum limb_kind kind)
{
    const struct packed_operand *operand = &args->first.a;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint32_t line = 1u << args->first.line_log;

    UNROLL
    for (uint32_t step = 0; step < ATTENTION_D_MAX / PACKED_STEP; step++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t m = strip->first_m + strip->row + lane / 4 + i % 2 * 8;
            const uint32_t k = step * PACKED_STEP + i / 2 * 16 + lane % 4 * 4;
            const uint8_t *at =
                operand->planes + packed_place(strip->batch * args->first.m + m, k,
                                               operand->strip_size, args->first.line_log);
            const bool there = m < args->first.m && k < line;

            a[step][0][i] = there ? *(const uint32_t *)at : 0;
            a[step][1][i] = there ? *(const uint32_t *)(at + operand->plane_size) : 0;
            a[step][2][i] =
                kind == LIMBS_NARROW ? packed_add_bytes(a[step][0][i], a[step][1][i]) : 0;
        }
    }
}

/* Scores or dp of the strip, as the rules have them where a row sees; elsewhere something. */
static RULE INLINED void strip_scores(const struct attention_args *args, const struct strip *strip,
                                      enum limb_kind kind)
{
    const struct contract_args *product = &args->first;
    const uint32_t lane_row = strip->row + sum_row(0);
    struct bringer bringer =
        bringer_of(product, strip, (strip->limit + ATTENTION_TILE - 1) / ATTENTION_TILE,
                   (1u << product->line_log) / CONTRACT_STAGE);
    uint32_t a[ATTENTION_D_MAX / PACKED_STEP][PACKED_PLANES_MAX][4];
    int32_t row_lowest[2];

    bring_begin(&bringer);
    queries_load(a, args, strip, kind);
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t m = strip->first_m + lane_row + i * 8;

        row_lowest[i] = m < product->m ? product->a.lowest[strip->batch * product->m + m] : 0;
    }
    for (uint32_t first = 0; first < strip->limit; first += ATTENTION_TILE) {
        const uint32_t column = first + strip->column + sum_column(0);
        int32_t sums[STRIP_SUMS][FRAGMENT_SUMS];
        int32_t column_lowest[2];

        strip_sums_clear(sums);
        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            column_lowest[i] = column + i < product->n
                                   ? product->b.lowest[strip->batch * product->n + column + i]
                                   : 0;
        }
        UNROLL
        for (uint32_t half = 0; half < ATTENTION_D_MAX / CONTRACT_STAGE; half++) {
            if (half < bringer.steps) {
                uint32_t b[2][4];

                stage_load(b, strip, bring_next(&bringer));
                strip_multiply(sums, a[half * 2], b, 0, kind);
                strip_multiply(sums, a[half * 2 + 1], b, 1, kind);
            }
        }
        UNROLL
        for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
            const int64_t sum = piece_joined(0, sums[0][c], sums[1][c], sums[2][c], 0, true, kind);

            strip->x[(lane_row + c / 2 * 8) * strip->pitch + column + c % 2] = real_from_bits(
                strip_bits(sum, row_lowest[c / 2], column_lowest[c % 2], product->bits));
        }
    }
}

/* ---- a row ------------------------------------------------------------------------- */

/* Limbs in the place of numbers; the exponents of the row's pieces, which are its blocks. */
static RULE INLINED void strip_quantize(const struct attention_args *args,
                                        const struct strip *strip, uint32_t row)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const int bits = args->second.bits;
    float *x = strip->x + row * strip->pitch;
    int32_t own = EXPONENT_ZERO;
    int32_t top;
    int32_t lowest;

    for (uint32_t p = 0; p < strip->pieces; p++) {
        struct quad quad;
        uint32_t largest;

        load_quad(quad.x, x + p * CONTRACTION_PIECE + lane * 4);
        largest = warp_largest(quad_magnitude(&quad));
        own = lane == p ? exponent_of_bits(largest) : own;
    }
    top = warp_maximum(own);
    own = args->second.blocks == 1 ? top : own > top - args->window ? own : top - args->window;
    lowest = -warp_maximum(lane < strip->pieces ? -own : INT16_MIN);
    lowest = top == EXPONENT_POISON ? PACKED_POISON : lowest;
    if (lane < strip->pieces) {
        strip->shifts[row * ATTENTION_PIECES + lane] =
            lowest == PACKED_POISON ? 0 : (uint8_t)(own - lowest);
    }
    if (lane == 0) {
        strip->lowest[row] = lowest;
    }
    warp_barrier();
    for (uint32_t p = 0; p < strip->pieces; p++) {
        const int exponent = lowest == PACKED_POISON
                                 ? EXPONENT_POISON
                                 : lowest + strip->shifts[row * ATTENTION_PIECES + p];
        uint8_t *limbs = (uint8_t *)(x + p * CONTRACTION_PIECE);
        struct quad quad;
        int32_t q[4];

        load_quad(quad.x, x + p * CONTRACTION_PIECE + lane * 4);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            q[i] = quantized(quad.x[i], exponent, bits);
        }
        warp_barrier(); /* all have read what is written over now */
        write_limbs(limbs, CONTRACTION_PIECE, lane * 4, q, bits);
    }
}

/* p of scores, or ds of p and dp: written where it is wanted, and quantized in its place. */
static RULE INLINED void strip_row(const struct attention_args *args, const struct strip *strip,
                                   uint32_t row)
{
    const uint64_t m = strip->first_m + row;
    const uint32_t visible = strip_visible(args, m);
    const uint32_t width = strip->pieces * CONTRACTION_PIECE;
    float *at = strip->x + row * strip->pitch;
    struct held held;
    float x[HELD_SLOTS];
    float other[HELD_SLOTS];

    held.args = &args->rows;
    held.row = strip->batch * args->first.m + m;
    held.first = held.row * args->first.n;
    held.columns = visible;
    held.visible = visible;
    held.lane = thread_index() % CUDA_WARP;
    HELD_EACH(&held, i, c)
    {
        x[i] = c < visible ? at[c] : 0.0f;
    }
    if (args->rows.kind == OP_SOFTMAX) {
        held_softmax(&held, x);
    } else {
        HELD_EACH(&held, i, c)
        {
            (void)c;
            other[i] = x[i];
        }
        held_load(&held, x, 0);
        held_softmax_grad(&held, x, other);
    }
    UNROLL
    for (uint32_t i = 0; i < HELD_SLOTS; i++) {
        const uint32_t c = i * CUDA_WARP + held.lane;

        if (i * CUDA_WARP < width) {
            at[c] = i * CUDA_WARP < visible && c < visible ? x[i] : 0.0f;
        }
    }
    if (args->hidden != 0 && m < args->first.m) {
        for (uint32_t c = visible + held.lane; c < args->first.n; c += CUDA_WARP) {
            out_f32(&args->rows, args->rows.kind == OP_SOFTMAX ? 5 : 2, held.first + c, 0.0f);
        }
    }
    warp_barrier();
    strip_quantize(args, strip, row);
}

/* ---- a strip of limbs by packed limbs ------------------------------------------------ */

/* A's words of one step, k elements into the strip. */
static RULE INLINED void strip_load(uint32_t a[PACKED_PLANES_MAX][4], const struct strip *strip,
                                    uint32_t k, enum limb_kind kind)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint8_t *at = (const uint8_t *)(strip->x + (strip->row + lane % 16) * strip->pitch +
                                          k / CONTRACTION_PIECE * CONTRACTION_PIECE) +
                        k % CONTRACTION_PIECE + lane / 16 * 16;

    UNROLL
    for (uint32_t plane = 0; plane < (kind == LIMBS_NARROW ? 3u : 2u); plane++) {
        load_matrices(a[plane], at + plane * CONTRACTION_PIECE);
    }
}

/* What lies in shared memory of the second product's B: shifts of its pieces, and the lowest. */
struct strip_columns {
    uint8_t *shifts; /* (ATTENTION_PIECES, ATTENTION_D_MAX) */
    int32_t *lowest;
};

static RULE INLINED void strip_columns_load(const struct strip_columns *columns,
                                            const struct attention_args *args,
                                            const struct strip *strip)
{
    const struct contract_args *product = &args->second;

    for (uint32_t i = thread_index(); i < strip->pieces * ATTENTION_D_MAX; i += block_size()) {
        const uint32_t piece = product->blocks == 1 ? 0 : i / ATTENTION_D_MAX;
        const uint32_t n = i % ATTENTION_D_MAX;
        const uint64_t row = strip->batch * product->n + n;

        columns->shifts[i] =
            n < product->n ? product->b.shifts[piece * product->b.shift_pitch + row] : 0;
        if (i < ATTENTION_D_MAX) {
            columns->lowest[i] = n < product->n ? product->b.lowest[row] : 0;
        }
    }
}

/* A piece's sums, shifted, and added. */
static RULE INLINED void strip_widen(int64_t wide[FRAGMENT_SUMS],
                                     int32_t sums[STRIP_SUMS][FRAGMENT_SUMS],
                                     const struct strip *strip, const struct strip_columns *columns,
                                     uint32_t piece, uint32_t column, enum limb_kind kind)
{
    uint32_t rows[2];
    uint32_t others[2];

    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = strip->row + sum_row(2 * i);

        rows[i] = strip->shifts[row * ATTENTION_PIECES + piece] & SHIFT_MASK;
        others[i] = columns->shifts[piece * ATTENTION_D_MAX + column + i] & SHIFT_MASK;
    }
    const uint32_t most =
        (rows[0] > rows[1] ? rows[0] : rows[1]) + (others[0] > others[1] ? others[0] : others[1]);

    UNROLL
    for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
        wide[c] = piece_joined(wide[c], sums[0][c], sums[1][c], sums[2][c],
                               rows[c / 2] + others[c % 2], most <= SHIFT_QUICK, kind);
    }
    strip_sums_clear(sums);
}

static RULE INLINED void strip_write(const struct attention_args *args, const struct strip *strip,
                                     const struct strip_columns *columns,
                                     const int64_t wide[FRAGMENT_SUMS], uint32_t column)
{
    const struct contract_args *product = &args->second;

    UNROLL
    for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
        const uint32_t row = strip->row + sum_row(c);
        const uint64_t m = strip->first_m + row;
        const uint32_t n = column + c % 2;

        if (m < product->m && n < product->n) {
            product->out[place_of_row(product, strip->batch, m) + place_of_column(product, n)] =
                strip_bits(wide[c], strip->lowest[row], columns->lowest[n], product->bits);
        }
    }
}

static RULE INLINED void strip_contract(const struct attention_args *args,
                                        const struct strip *strip,
                                        const struct strip_columns *columns,
                                        struct bringer *bringer, enum limb_kind kind)
{
    for (uint32_t first = 0; first < args->second.n; first += ATTENTION_TILE) {
        const uint32_t column = first + strip->column + sum_column(0);
        int64_t wide[FRAGMENT_SUMS] = {0, 0, 0, 0};
        int32_t sums[STRIP_SUMS][FRAGMENT_SUMS];

        strip_sums_clear(sums);
        for (uint32_t stage = 0; stage < bringer->steps; stage++) {
            const uint32_t k = stage * CONTRACT_STAGE;
            uint32_t b[2][4];

            stage_load(b, strip, bring_next(bringer));
            UNROLL
            for (uint32_t step = 0; step < CONTRACT_STAGE / PACKED_STEP; step++) {
                uint32_t a[PACKED_PLANES_MAX][4];

                strip_load(a, strip, k + step * PACKED_STEP, kind);
                strip_multiply(sums, a, b, step, kind);
            }
            if ((k + CONTRACT_STAGE) % CONTRACTION_PIECE == 0 || stage + 1 == bringer->steps) {
                strip_widen(wide, sums, strip, columns, k / CONTRACTION_PIECE, column, kind);
            }
        }
        strip_write(args, strip, columns, wide, column);
    }
}

/* ---- the kernels ---------------------------------------------------------------------- */

static RULE INLINED void attention(const struct attention_args *args, struct strip *strip,
                                   const struct strip_columns *columns, enum limb_kind kind)
{
    const uint32_t warps = block_size() / CUDA_WARP;
    struct bringer bringer;

    strip_columns_load(columns, args, strip);
    strip_scores(args, strip, kind);
    barrier();
    bringer = bringer_of(&args->second, strip,
                         (uint32_t)(args->second.n + ATTENTION_TILE - 1) / ATTENTION_TILE,
                         (strip->limit + CONTRACT_STAGE - 1) / CONTRACT_STAGE);
    bring_begin(&bringer); /* beside the rows */
    for (uint32_t row = thread_index() / CUDA_WARP; row < warps / ATTENTION_ACROSS * 16;
         row += warps) {
        strip_row(args, strip, row);
    }
    strip_contract(args, strip, columns, &bringer, kind);
}

#define ATTENTION_SHARED_ARRAYS(strip, columns)                                                    \
    SHARED(uint8_t, row_shifts, ATTENTION_ROWS *ATTENTION_PIECES);                                 \
    SHARED(int32_t, row_lowest, ATTENTION_ROWS);                                                   \
    SHARED(uint8_t, column_shifts, ATTENTION_D_MAX *ATTENTION_PIECES);                             \
    SHARED(int32_t, column_lowest, ATTENTION_D_MAX);                                               \
    struct strip strip = strip_of(&args);                                                          \
    struct strip_columns columns;                                                                  \
    (strip).shifts = row_shifts;                                                                   \
    (strip).lowest = row_lowest;                                                                   \
    (columns).shifts = column_shifts;                                                              \
    (columns).lowest = column_lowest

/* grid: strips of all batches; block: 16 threads for each row of a strip. 14 bits. */
KERNEL_LIMITED(kernel_attention_narrow, struct attention_args, ATTENTION_THREADS)
{
    ATTENTION_SHARED_ARRAYS(strip, columns);
    attention(&args, &strip, &columns, LIMBS_NARROW);
}

/* The same for 15 and 16 bits. */
KERNEL_LIMITED(kernel_attention_wide, struct attention_args, ATTENTION_THREADS)
{
    ATTENTION_SHARED_ARRAYS(strip, columns);
    attention(&args, &strip, &columns, LIMBS_WIDE);
}
