/*
 * attention_body.h - the rows of attention on chip: from the limbs of queries and keys to p and to
 * what p makes of the values; and backward, from the limbs of dout and of the values to ds and to
 * the gradient of the queries. Scores, dp and the limbs of p and ds along rows are never written.
 *
 * A block of threads takes a strip (strip_body.h) of rows of one head. First it holds their scores
 * (or dp) as the binary32 numbers that the rules say; then a warp has a row, as held_body.h has it,
 * and leaves p (or ds) in the place of the scores; then the strip is quantized and multiplied by
 * the limbs of the values (or keys).
 *
 * Under a causal mask, keys that no row of a strip sees are not looked at; and where nobody else
 * reads what is hidden, it is not written.
 *
 * A warp makes 16 rows by 16 columns of scores, from limbs in memory, and goes on to others without
 * a barrier; it needs no shared memory but the scores' own.
 */

struct attention {
    const struct attention_args *args;
    struct strip strip;
    uint32_t warp;
};

static RULE INLINED uint32_t attention_visible(const struct attention_args *args, uint64_t m)
{
    const struct contract_args *scores = &args->scores.contract;
    const uint64_t limit = causal_limit(scores, m);

    if (m >= scores->m) {
        return 0;
    }
    return (uint32_t)(limit < scores->n ? limit : scores->n);
}

/* Columns that some of these rows see. */
static RULE INLINED uint32_t attention_limit(const struct attention_args *args, uint64_t m,
                                             uint32_t rows)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t visible = attention_visible(args, m + i);

        most = visible > most ? visible : most;
    }
    return most;
}

/* The longest strips come first, those of all batches together. */
static RULE INLINED void attention_init(struct attention *attention,
                                        const struct attention_args *args)
{
    const uint32_t rows = args->strip_rows;
    const uint64_t batches = args->scores.contract.batches;
    const uint32_t index = args->strips - 1 - (uint32_t)(block_index() / batches);
    struct strip *strip = &attention->strip;

    attention->args = args;
    attention->warp = thread_index() / CUDA_WARP;
    strip_init(strip, rows, (uint64_t)index * rows, block_index() % batches, &args->product);
    strip->seen = (1u << (attention_limit(args, strip->first, rows) + CONTRACTION_PIECE - 1) /
                             CONTRACTION_PIECE) -
                  1;
}

/* ---- scores ---------------------------------------------------------------------- */

/* A's words of a step, as strip_load() has them: rows of the first product's own operand. */
static RULE INLINED void queries_load(struct fragments *fragments,
                                      const struct attention *attention, uint32_t first,
                                      uint32_t step)
{
    const struct contract_args *scores = &attention->args->scores.contract;
    const uint32_t lane = thread_index() % CUDA_WARP;

    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint64_t m = attention->strip.first + first + lane / 4 + half * 8;
        const uint64_t row = attention->strip.batch * scores->m + (m < scores->m ? m : 0);
        const uint8_t *at = scores->a.planes + packed_place(row, step + lane % 4 * 8,
                                                            scores->a.strip_size, scores->line_log);

        UNROLL
        for (uint32_t plane = 0; plane < 2; plane++) {
            uint32_t words[2];

            load_pair(words, at + plane * scores->a.plane_size);
            fragments->a[plane][0][half] = words[0];
            fragments->a[plane][0][2 + half] = words[1];
        }
    }
}

/* 16 rows by 16 columns, from a row of the strip and a column on. */
static RULE INLINED void scores_tile(const struct attention *attention, uint32_t first,
                                     uint32_t column, enum limb_kind kind)
{
    const struct contract_args *scores = &attention->args->scores.contract;
    const struct strip *strip = &attention->strip;
    int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    struct strip_reader reader;
    struct result_line rows[2];

    strip_reader_init(&reader, strip, &attention->args->scores, column);
    for (uint32_t step = 0; step >> scores->line_log == 0; step += PACKED_STEP) {
        struct fragments fragments;

        queries_load(&fragments, attention, first, step);
        strip_load_other(&fragments, &reader, 0, scores->b.plane_size, step);
        fragments_multiply(sums, &fragments, 1, STRIP_FRAGMENTS, kind);
    }
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t m = strip->first + first + sum_row(2 * i);

        rows[i] = result_row(scores, strip->batch, m < scores->m ? m : 0);
    }
    UNROLL
    for (uint32_t to = 0; to < STRIP_FRAGMENTS * 2; to++) {
        const uint32_t n = column + to / 2 * 8 + sum_column(to % 2);
        const struct result_line own =
            result_column(scores, strip->batch, n < scores->n ? n : scores->n - 1);

        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            const int64_t sum = piece_added(0, sums, 0, to / 2, i * 2 + to % 2, 0, true, kind);

            strip->x[(first + sum_row(2 * i)) * strip->pitch + n] =
                real_from_bits(result_bits(scores, &rows[i], &own, sum));
        }
    }
}

/* Of one piece, without shifts: its exponents are its row's. Columns that no row sees are left. */
static RULE INLINED void attention_scores(const struct attention *attention, enum limb_kind kind)
{
    const uint32_t halves = attention->strip.rows / 16;
    const uint32_t first = attention->warp % halves * 16;
    const uint32_t limit = attention_limit(attention->args, attention->strip.first + first, 16);

    for (uint32_t column = attention->warp / halves * STRIP_TILE_COLUMNS; column < limit;
         column += STRIP_WARPS / halves * STRIP_TILE_COLUMNS) {
        scores_tile(attention, first, column, kind);
    }
}

/* ---- a row ------------------------------------------------------------------------- */

#define HELD_PIECE (CONTRACTION_PIECE / CUDA_WARP) /* slots of a lane */

static_assert(HELD_SLOTS == STRIP_PIECES * HELD_PIECE && STRIP_PIECES == 8,
              "a warp's row is eight pieces");

/* The largest magnitude of each piece: lanes 4 p to 4 p + 3 end with that of piece p. */
static RULE INLINED void attention_peaks(const struct strip *strip, uint32_t row, const float *x)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    uint32_t largest[STRIP_PIECES];

    UNROLL
    for (uint32_t p = 0; p < STRIP_PIECES; p++) {
        largest[p] = 0;
        UNROLL
        for (uint32_t i = 0; i < HELD_PIECE; i++) {
            const uint32_t magnitude = magnitude_of(x[p * HELD_PIECE + i]);

            largest[p] = magnitude > largest[p] ? magnitude : largest[p];
        }
    }
    UNROLL
    for (uint32_t half = STRIP_PIECES / 2; half > 0; half /= 2) {
        const bool upper = (lane & half * 4) != 0;

        UNROLL
        for (uint32_t p = 0; p < half; p++) {
            const uint32_t low = largest[p];
            const uint32_t high = largest[p + half];
            const uint32_t own = upper ? high : low;
            const uint32_t other = shuffle_xor(upper ? low : high, half * 4);

            largest[p] = other > own ? other : own;
        }
    }
    UNROLL
    for (uint32_t d = 2; d > 0; d /= 2) {
        const uint32_t other = shuffle_xor(largest[0], d);

        largest[0] = other > largest[0] ? other : largest[0];
    }
    if (lane % 4 == 0) {
        strip->peaks[row * STRIP_PIECES + lane / 4] = largest[0];
    }
}

/* p of scores, or ds of p and dp: written where others want it, and left in the strip. */
static RULE INLINED void attention_row(const struct attention *attention, uint32_t row)
{
    const struct rows_args *args = &attention->args->rows;
    const struct strip *strip = &attention->strip;
    const uint64_t m = strip->first + row;
    const uint64_t rows = attention->args->scores.contract.m;
    const bool forward = args->kind == OP_SOFTMAX;
    float *at = strip->x + row * strip->pitch;
    float x[HELD_SLOTS];
    struct held held;

    held.args = args;
    held.row = strip->batch * rows + m;
    held.first = held.row * args->columns;
    held.visible = attention_visible(attention->args, m);
    held.columns = held.visible; /* nothing is asked of those behind */
    held.lane = thread_index() % CUDA_WARP;
    UNROLL
    for (uint32_t i = 0; i < HELD_SLOTS; i++) {
        x[i] = 0.0f;
    }
    if (forward) {
        HELD_EACH(&held, i, c)
        {
            x[i] = c < held.visible ? at[c] : 0.0f;
        }
        held_softmax(&held, x);
    } else {
        float dp[HELD_SLOTS];

        HELD_EACH(&held, i, c)
        {
            dp[i] = c < held.visible ? at[c] : 0.0f;
        }
        held_load(&held, x, 0);
        held_softmax_grad(&held, x, dp);
    }
    UNROLL
    for (uint32_t i = 0; i < HELD_SLOTS; i++) {
        if (piece_seen(strip, i / HELD_PIECE)) {
            at[i * CUDA_WARP + held.lane] = x[i];
        }
    }
    attention_peaks(strip, row, x);
    if (attention->args->hidden != 0 && m < rows) {
        for (uint32_t c = held.visible + held.lane; c < args->columns; c += CUDA_WARP) {
            out_f32(args, forward ? 5 : 2, held.first + c, 0.0f);
        }
    }
}

/* ---- the kernels ---------------------------------------------------------------------- */

static RULE INLINED void attention(const struct attention_args *args, enum limb_kind kind)
{
    struct attention attention;

    attention_init(&attention, args);
    attention_scores(&attention, kind);
    barrier();
    for (uint32_t row = attention.warp; row < attention.strip.rows; row += STRIP_WARPS) {
        attention_row(&attention, row);
    }
    strip_contract(&attention.strip, &args->product, kind);
}

/* grid: strips of all batches; block: STRIP_THREADS. 14 bits. */
KERNEL_LIMITED(kernel_attention_narrow, struct attention_args, STRIP_THREADS)
{
    attention(&args, LIMBS_NARROW);
}

/* The same for 15 and 16 bits. */
KERNEL_LIMITED(kernel_attention_wide, struct attention_args, STRIP_THREADS)
{
    attention(&args, LIMBS_WIDE);
}
