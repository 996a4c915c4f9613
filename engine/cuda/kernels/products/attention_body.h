/*
 * attention_body.h - the rows of attention on chip: from the limbs of queries and keys to p and to
 * what p makes of the values; and backward, from the limbs of dout and of the values to ds and to
 * the gradient of the queries. Scores, dp and the limbs of p and ds along rows stay on chip.
 *
 * A block of threads takes a strip (strip_body.h) of rows of one head. First it holds their scores
 * (or dp) as binary32 numbers, as the rules round them. Then each warp takes a row, as in
 * held_body.h, and puts p (or ds) in the place of the scores. Then the strip is quantized and
 * multiplied by the limbs of the values (or keys).
 *
 * Under a causal mask, keys that no row of a strip sees are not read. Hidden elements are written
 * only where somebody else reads them.
 *
 * A warp makes 16 rows by 16 columns of scores, from limbs in memory, and goes on to others without
 * a barrier; it needs no shared memory but the scores' own.
 */

struct attention {
    const struct attention_args *args;
    struct strip strip;
    uint32_t warp;
};

/* Rows of a head are counted in 32 bits: their divisions are many. */
static RULE INLINED uint32_t attention_visible(const struct attention_args *args, uint32_t m)
{
    const uint32_t columns = (uint32_t)args->rows.columns;
    const uint32_t causal = (uint32_t)args->rows.causal;
    const uint32_t turn = causal == 0 ? columns : m % causal;

    if (m >= args->scores.contract.m) {
        return 0;
    }
    return turn < columns ? turn + 1 : columns;
}

/* Columns that some of these rows see, the first of which is there. */
static RULE INLINED uint32_t attention_limit(const struct attention_args *args, uint32_t m,
                                             uint32_t rows)
{
    const uint32_t all = (uint32_t)args->scores.contract.m;
    const uint32_t last = m + rows < all ? m + rows - 1 : all - 1;
    const uint32_t causal = (uint32_t)args->rows.causal;

    /* A turn that ends among them ends with its longest row. */
    if (causal != 0 && m / causal != last / causal) {
        return attention_visible(args, causal - 1);
    }
    return attention_visible(args, last);
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
    strip->seen = (1u << (attention_limit(args, index * rows, rows) + CONTRACTION_PIECE - 1) /
                             CONTRACTION_PIECE) -
                  1;
}

/* ---- scores ---------------------------------------------------------------------- */

/* A warp's 16 rows. */
struct queries {
    struct strip_reader reader;
    struct result_line lines[2]; /* of the two that a lane has results of */
    uint32_t row;                /* of the strip */
    uint32_t limit;              /* columns that some of them see */
};

static RULE INLINED void queries_init(struct queries *queries, const struct attention *attention)
{
    const struct contract_args *scores = &attention->args->scores.contract;
    const struct strip *strip = &attention->strip;
    const uint32_t m = (uint32_t)strip->first + attention->warp % (strip->rows / 16) * 16;

    queries->row = m - (uint32_t)strip->first;
    queries->limit = m < scores->m ? attention_limit(attention->args, m, 16) : 0;
    strip_reader_init(&queries->reader, &scores->a, strip->batch * scores->m, scores->m, m,
                      scores->line_log);
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t own = m + sum_row(2 * i);

        queries->lines[i].place = 0;
        queries->lines[i].limit = attention_visible(attention->args, own);
        queries->lines[i].lowest =
            own < scores->m ? scores->a.lowest[strip->batch * scores->m + own] : 0;
    }
}

/* A step's fragments: A's rows are read like B's, and lie as strip_load() has them. */
static RULE INLINED void scores_load(struct fragments *fragments, const struct queries *queries,
                                     const struct strip_reader *keys,
                                     const struct contract_args *scores, uint32_t step)
{
    struct fragments own;

    strip_load_other(&own, &queries->reader, 0, scores->a.plane_size, step);
    strip_load_other(fragments, keys, 0, scores->b.plane_size, step);
    UNROLL
    for (uint32_t plane = 0; plane < 2; plane++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            fragments->a[plane][0][i] = own.b[plane][i % 2][i / 2];
        }
    }
}

static_assert(STRIP_FRAGMENTS == 2, "two fragments of eight columns have the rows of one of A");

/* 16 columns. */
static RULE INLINED void scores_tile(const struct attention *attention,
                                     const struct queries *queries, uint32_t column,
                                     enum limb_kind kind)
{
    const struct contract_args *scores = &attention->args->scores.contract;
    const struct strip *strip = &attention->strip;
    int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    struct strip_reader keys;

    sums_begin(sums, kind);
    strip_reader_init(&keys, &scores->b, strip->batch * scores->n, scores->n, column,
                      scores->line_log);
    for (uint32_t step = 0; step >> scores->line_log == 0; step += PACKED_STEP) {
        struct fragments fragments;

        scores_load(&fragments, queries, &keys, scores, step);
        fragments_multiply(sums, &fragments, 1, STRIP_FRAGMENTS, kind);
    }
    UNROLL
    for (uint32_t to = 0; to < STRIP_FRAGMENTS * 2; to++) {
        const uint32_t n = column + to / 2 * 8 + sum_column(to % 2);
        const struct result_line own =
            result_column(scores, strip->batch, n < scores->n ? n : scores->n - 1);

        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            const int64_t sum = piece_added(0, sums, 0, to / 2, i * 2 + to % 2, 0, kind);

            strip->x[(queries->row + sum_row(2 * i)) * strip->pitch + n] =
                real_from_bits(result_bits(scores, &queries->lines[i], &own, sum));
        }
    }
}

/* Of one piece, without shifts: its exponents are its row's. Columns that no row sees are left. */
static RULE INLINED void attention_scores(const struct attention *attention, enum limb_kind kind)
{
    const uint32_t halves = attention->strip.rows / 16;
    struct queries queries;

    queries_init(&queries, attention);
    for (uint32_t column = attention->warp / halves * STRIP_TILE_COLUMNS; column < queries.limit;
         column += STRIP_WARPS / halves * STRIP_TILE_COLUMNS) {
        scores_tile(attention, &queries, column, kind);
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
    const uint32_t m = (uint32_t)strip->first + row;
    const uint64_t rows = attention->args->scores.contract.m;
    const bool forward = args->kind == OP_SOFTMAX;
    float *at = strip->x + row * strip->pitch;
    float x[HELD_SLOTS];
    struct held held;

    held.args = args;
    held.row = strip->batch * rows + m;
    held.first = held.row * args->columns;
    held.visible = attention_visible(attention->args, m);
    held.columns = held.visible; /* hidden columns are not computed */
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
        held_load(&held, x, 0);
        held_softmax_grad(&held, x, at + held.lane, CUDA_WARP);
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

static RULE INLINED void attend_strip(const struct attention_args *args, enum limb_kind kind)
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
    attend_strip(&args, LIMBS_FOUR);
}

/* The same for 15 and 16 bits. */
KERNEL_LIMITED(kernel_attention_wide, struct attention_args, STRIP_THREADS)
{
    attend_strip(&args, LIMBS_WIDE);
}

/* And both by halves. */
KERNEL_LIMITED(kernel_attention_halves_narrow, struct attention_args, STRIP_THREADS)
{
    attend_strip(&args, LIMBS_HALVES_SHORT);
}

KERNEL_LIMITED(kernel_attention_halves_wide, struct attention_args, STRIP_THREADS)
{
    attend_strip(&args, LIMBS_HALVES_WIDE);
}
