/*
 * attention_body.h - attention on chip, by strips (strip_body.h) of one head.
 *
 * A strip of queries makes p and what it makes of the values; backward ds, and the gradient of the
 * queries. A strip of keys makes the columns of p, and the gradient of the values; or those of ds,
 * and the gradient of the keys. Scores, dp and limbs stay on chip; so do p and ds, unless others
 * want them: the backward pass makes p again from the limbs of queries and keys, and from what a
 * row left of its softmax, its largest score and the sum of its exponentials. For ds a row's sum of
 * p * dp is kept as well. The same operations on the same numbers have the same bits.
 *
 * Rows first hold their scores (or dp) as binary32 numbers, as the rules round them. Then each warp
 * takes a row, as in held_body.h, and puts p (or ds) in the place of the scores. Columns need no
 * sums: each number is made where its scores are. Then the strip is quantized and multiplied.
 *
 * Under a causal mask, keys that no row of a strip sees are not read, nor queries that see no key
 * of it.
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

    if (m >= args->scores.m) {
        return 0;
    }
    return turn < columns ? turn + 1 : columns;
}

/* Columns that some of these rows see, the first of which is there. */
static RULE INLINED uint32_t attention_limit(const struct attention_args *args, uint32_t m,
                                             uint32_t rows)
{
    const uint32_t all = (uint32_t)args->scores.m;
    const uint32_t last = m + rows < all ? m + rows - 1 : all - 1;
    const uint32_t causal = (uint32_t)args->rows.causal;

    /* A turn that ends among them ends with its longest row. */
    if (causal != 0 && m / causal != last / causal) {
        return attention_visible(args, causal - 1);
    }
    return attention_visible(args, last);
}

/* The longest strips come first, those of all batches together: of queries the last ones. */
static RULE INLINED void attention_init(struct attention *attention,
                                        const struct attention_args *args, bool columns)
{
    const uint32_t rows = args->strip_rows;
    const uint64_t batches = args->scores.batches;
    const uint32_t turn = (uint32_t)(block_index() / batches);
    const uint32_t index = columns ? turn : args->strips - 1 - turn;
    struct strip *strip = &attention->strip;

    attention->args = args;
    attention->warp = thread_index() / CUDA_WARP;
    strip_init(strip, rows, (uint64_t)index * rows, block_index() % batches, &args->product);
    if (!columns) {
        strip->seen = (1u << (attention_limit(args, index * rows, rows) + CONTRACTION_PIECE - 1) /
                                 CONTRACTION_PIECE) -
                      1;
        return;
    }
    for (uint32_t piece = 0; piece < strip->pieces; piece++) {
        /* The first key is seen by most queries. */
        if (attention_limit(args, piece * CONTRACTION_PIECE, CONTRACTION_PIECE) <= index * rows) {
            strip->seen &= ~(1u << piece);
        }
    }
}

/* ---- products of rows by rows ---------------------------------------------------- */

/* Scores, or dp: a warp's 16 rows of the strip, by rows of the other operand. */
struct faced {
    const struct contract_args *product;
    const struct packed_operand *own;
    const struct packed_operand *others;
    uint64_t other_rows; /* of a batch */
    uint64_t batch;
    struct strip_reader reader;
    int32_t lowest[2]; /* of the two rows that a lane has results of */
};

/* From row `first` of the batch on; columns: a strip's rows are keys, which are B's. */
static RULE INLINED void faced_init(struct faced *faced, const struct attention *attention,
                                    const struct contract_args *product, uint32_t first,
                                    bool columns)
{
    const uint64_t rows = columns ? product->n : product->m;
    const uint64_t batch = attention->strip.batch;

    faced->product = product;
    faced->own = columns ? &product->b : &product->a;
    faced->others = columns ? &product->a : &product->b;
    faced->other_rows = columns ? product->m : product->n;
    faced->batch = batch;
    strip_reader_init(&faced->reader, faced->own, batch * rows, rows, first, product->line_log);
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = first + sum_row(2 * i);

        faced->lowest[i] = row < rows ? faced->own->lowest[batch * rows + row] : 0;
    }
}

/* A step's fragments: A's rows are read like B's, and lie as strip_load() has them. */
static RULE INLINED void faced_load(struct fragments *fragments, const struct faced *faced,
                                    const struct strip_reader *others, uint32_t step)
{
    struct fragments own;

    strip_load_other(&own, &faced->reader, 0, faced->own->plane_size, step);
    strip_load_other(fragments, others, 0, faced->others->plane_size, step);
    UNROLL
    for (uint32_t plane = 0; plane < 2; plane++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            fragments->a[plane][0][i] = own.b[plane][i % 2][i / 2];
        }
    }
}

static_assert(STRIP_FRAGMENTS == 2, "two fragments of eight columns have the rows of one of A");

#define FACED_COLUMNS (STRIP_FRAGMENTS * 2) /* of which a lane has results, in two rows each */

/* Which of the 16 columns of a tile a lane's result is in. */
static RULE INLINED uint32_t faced_column(uint32_t to)
{
    return to / 2 * 8 + sum_column(to % 2);
}

/* Results of 16 columns. Of one piece, without shifts: its exponents are its row's. */
static RULE INLINED void faced_tile(float made[FACED_COLUMNS][2], const struct faced *faced,
                                    uint32_t column, enum limb_kind kind)
{
    const struct contract_args *product = faced->product;
    const uint64_t batch_row = faced->batch * faced->other_rows;
    int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    struct strip_reader others;

    sums_begin(sums, kind);
    strip_reader_init(&others, faced->others, batch_row, faced->other_rows, column,
                      product->line_log);
    for (uint32_t step = 0; step >> product->line_log == 0; step += PACKED_STEP) {
        struct fragments fragments;

        faced_load(&fragments, faced, &others, step);
        fragments_multiply(sums, &fragments, 1, STRIP_FRAGMENTS, kind);
    }
    UNROLL
    for (uint32_t to = 0; to < FACED_COLUMNS; to++) {
        const uint32_t n = column + faced_column(to);
        const uint64_t other = n < faced->other_rows ? n : faced->other_rows - 1;
        const int32_t lowest = faced->others->lowest[batch_row + other];

        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            const int64_t sum = piece_added(0, sums, 0, to / 2, i * 2 + to % 2, 0, kind);

            made[to][i] = real_from_bits(seen_bits(product, faced->lowest[i], lowest, sum));
        }
    }
}

/* What a tile has made, at its place in the strip. */
static RULE INLINED void faced_store(const struct strip *strip, uint32_t row, uint32_t column,
                                     float made[FACED_COLUMNS][2])
{
    UNROLL
    for (uint32_t to = 0; to < FACED_COLUMNS; to++) {
        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            strip->x[(row + sum_row(2 * i)) * strip->pitch + column + faced_column(to)] =
                made[to][i];
        }
    }
}

/* The scores (or dp) of a strip of queries. Columns that no row sees are left. */
static RULE INLINED void attention_scores(const struct attention *attention,
                                          const struct contract_args *product, enum limb_kind kind)
{
    const struct strip *strip = &attention->strip;
    const uint32_t halves = strip->rows / 16;
    const uint32_t row = attention->warp % halves * 16;
    const uint32_t first = (uint32_t)strip->first + row;
    const uint32_t limit = first < product->m ? attention_limit(attention->args, first, 16) : 0;
    struct faced faced;

    faced_init(&faced, attention, product, first, false);
    for (uint32_t column = attention->warp / halves * STRIP_TILE_COLUMNS; column < limit;
         column += STRIP_WARPS / halves * STRIP_TILE_COLUMNS) {
        float made[FACED_COLUMNS][2];

        faced_tile(made, &faced, column, kind);
        faced_store(strip, row, column, made);
    }
}

/* p, of a score that is seen. */
static RULE INLINED float attention_share(const struct rows_args *args, float score, float maximum,
                                          float inverse)
{
    const float scaled = score * real_from_bits(args->constant);

    return real_stored(real_stored(scalar_exp(scaled - maximum)) * inverse);
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

static RULE INLINED struct held attention_held(const struct attention *attention, uint32_t row)
{
    const struct attention_args *args = attention->args;
    const uint32_t m = (uint32_t)attention->strip.first + row;
    struct held held;

    held.args = &args->rows;
    held.row = attention->strip.batch * args->scores.m + m;
    held.first = held.row * args->rows.columns;
    held.visible = attention_visible(args, m);
    held.columns = held.visible; /* hidden columns are not computed */
    held.lane = thread_index() % CUDA_WARP;
    return held;
}

/* A row of the strip. */
static RULE INLINED void attention_take(const struct held *held, const float *at, float *x)
{
    HELD_EACH(held, i, c)
    {
        x[i] = c < held->visible ? at[c] : 0.0f;
    }
}

/* The row's p as it was: from memory, or of the scores that lie in the strip. */
static RULE INLINED void attention_again(const struct attention *attention, uint32_t row, float *p)
{
    const struct attention_args *args = attention->args;
    const struct held held = attention_held(attention, row);

    if (args->scores.a.planes == NULL) {
        held_load(&held, p, 0);
        return;
    }
    if (held.visible == 0) {
        return; /* behind the last query: there are no numbers of its row */
    }
    const float maximum = args->maximum[held.row];
    const float inverse = 1.0f / args->sum[held.row];

    attention_take(&held, attention->strip.x + row * attention->strip.pitch, p);
    HELD_EACH(&held, i, c)
    {
        p[i] = c < held.visible ? attention_share(&args->rows, p[i], maximum, inverse) : 0.0f;
    }
}

/* p of scores, or ds of p (in x) and dp: written where others want it, and left in the strip. */
static RULE INLINED void attention_row(const struct attention *attention, uint32_t row, float *x)
{
    const struct rows_args *args = &attention->args->rows;
    const struct strip *strip = &attention->strip;
    const struct held held = attention_held(attention, row);
    const bool forward = args->kind == OP_SOFTMAX;
    float *at = strip->x + row * strip->pitch;

    if (strip->first + row >= attention->args->scores.m) {
        UNROLL
        for (uint32_t i = 0; i < HELD_SLOTS; i++) {
            x[i] = 0.0f;
        }
    } else if (forward) {
        attention_take(&held, at, x);
        held_softmax(&held, x);
    } else {
        held_softmax_grad(&held, x, at + held.lane, CUDA_WARP);
    }
    UNROLL
    for (uint32_t i = 0; i < HELD_SLOTS; i++) {
        if (piece_seen(strip, i / HELD_PIECE)) {
            at[i * CUDA_WARP + held.lane] = x[i];
        }
    }
    attention_peaks(strip, row, x);
    if (held.visible != 0) {
        for (uint32_t c = held.visible + held.lane; c < args->columns; c += CUDA_WARP) {
            out_f32(args, forward ? 5 : 2, held.first + c, 0.0f);
        }
    }
}

#define ATTENTION_TURNS (STRIP_ROWS / STRIP_WARPS) /* rows of a warp */

static RULE INLINED void attend_strip(const struct attention_args *args, enum limb_kind kind)
{
    float x[ATTENTION_TURNS][HELD_SLOTS] = {};
    struct attention attention;

    attention_init(&attention, args, false);
    if (args->scores.a.planes != NULL) {
        attention_scores(&attention, &args->scores, kind);
    }
    barrier();
    if (args->slopes.a.planes != NULL) {
        UNROLL
        for (uint32_t turn = 0; turn < ATTENTION_TURNS; turn++) {
            const uint32_t row = turn * STRIP_WARPS + attention.warp;

            if (row < attention.strip.rows) {
                attention_again(&attention, row, x[turn]);
            }
        }
        barrier(); /* nobody reads the scores any more: dp takes their place */
        attention_scores(&attention, &args->slopes, kind);
        barrier();
    }
    UNROLL
    for (uint32_t turn = 0; turn < ATTENTION_TURNS; turn++) {
        const uint32_t row = turn * STRIP_WARPS + attention.warp;

        if (row < attention.strip.rows) {
            attention_row(&attention, row, x[turn]);
        }
    }
    if (args->product.contract.out != NULL) {
        strip_contract(&attention.strip, &args->product, kind);
    }
}

/* ---- columns --------------------------------------------------------------------------- */

/* p of 16 keys by 16 queries, in place of their scores; ds, where there is dp. */
static RULE INLINED void columns_make(const struct attention *attention,
                                      float made[FACED_COLUMNS][2], float slopes[FACED_COLUMNS][2],
                                      uint32_t row, uint32_t column)
{
    const struct attention_args *args = attention->args;
    const uint32_t queries = (uint32_t)args->scores.m;
    const uint32_t key = (uint32_t)attention->strip.first + row;

    UNROLL
    for (uint32_t to = 0; to < FACED_COLUMNS; to++) {
        const uint32_t m = column + faced_column(to);
        const uint64_t at = attention->strip.batch * queries + (m < queries ? m : 0);
        const uint32_t visible = attention_visible(args, m);
        const float maximum = args->maximum[at];
        const float inverse = 1.0f / args->sum[at];
        const float dot = args->dot != NULL ? args->dot[at] : 0.0f;

        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            float x = 0.0f;

            if (key + sum_row(2 * i) < visible) {
                x = attention_share(&args->rows, made[to][i], maximum, inverse);
                if (args->dot != NULL) {
                    x = real_stored((x * (slopes[to][i] - dot)) *
                                    real_from_bits(args->rows.constant));
                }
            }
            made[to][i] = x;
        }
    }
}

/* 16 keys by 16 queries; zeros where none of these sees one of those. */
static RULE INLINED void columns_tile(const struct attention *attention, uint32_t row,
                                      uint32_t column, enum limb_kind kind)
{
    const struct attention_args *args = attention->args;
    const uint32_t key = (uint32_t)attention->strip.first + row;
    float made[FACED_COLUMNS][2] = {};
    float slopes[FACED_COLUMNS][2] = {};

    if (column < args->scores.m && attention_limit(args, column, 16) > key) {
        struct faced faced;

        faced_init(&faced, attention, &args->scores, key, true);
        faced_tile(made, &faced, column, kind);
        if (args->dot != NULL) {
            faced_init(&faced, attention, &args->slopes, key, true);
            faced_tile(slopes, &faced, column, kind);
        }
        columns_make(attention, made, slopes, row, column);
    }
    faced_store(&attention->strip, row, column, made);
}

static RULE INLINED void attend_columns(const struct attention_args *args, enum limb_kind kind)
{
    struct attention attention;
    const uint32_t halves = args->strip_rows / 16;

    attention_init(&attention, args, true);
    const uint32_t tiles =
        attention.strip.pieces * (CONTRACTION_PIECE / STRIP_TILE_COLUMNS) * halves;

    for (uint32_t at = attention.warp; at < tiles; at += STRIP_WARPS) {
        const uint32_t column = at / halves * STRIP_TILE_COLUMNS;

        if (piece_seen(&attention.strip, column / CONTRACTION_PIECE)) {
            columns_tile(&attention, at % halves * 16, column, kind);
        }
    }
    strip_peaks(&attention.strip);
    strip_contract(&attention.strip, &args->product, kind);
}

/* ---- the kernels ---------------------------------------------------------------------- */

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

/* The columns, likewise. */
KERNEL_LIMITED(kernel_attention_columns_narrow, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_FOUR);
}

KERNEL_LIMITED(kernel_attention_columns_wide, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_WIDE);
}

KERNEL_LIMITED(kernel_attention_columns_halves_narrow, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_HALVES_SHORT);
}

KERNEL_LIMITED(kernel_attention_columns_halves_wide, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_HALVES_WIDE);
}
