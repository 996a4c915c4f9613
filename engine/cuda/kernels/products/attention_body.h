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
 * Rows of one chunk first hold their scores (or dp) as binary32 numbers, as the rules round them.
 * Then each warp takes a row, as in held_body.h, and puts p (or ds) in the place of the scores.
 * Then the strip is quantized and multiplied.
 *
 * Longer rows are never whole on chip: chunk by chunk a row's largest score is found, then its sum,
 * in the order of the fold, and backward the sum of p * dp. Who has a row's numbers makes each p
 * (or ds) where its scores are: so do columns, whose rows have left them. A chunk is made twice,
 * for the largest magnitude of its rows and for their limbs, unless it is the only one.
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
    uint32_t begin; /* of the chunk: a key, or of columns a query */
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

/* Goes to a chunk of the strip's rows. */
static RULE INLINED void attention_chunk(struct attention *attention, uint32_t chunk, bool columns)
{
    const struct attention_args *args = attention->args;
    struct strip *strip = &attention->strip;
    const uint32_t first = (uint32_t)strip->first;
    const uint32_t limit = columns ? 0 : attention_limit(args, first, strip->rows);

    strip_chunk(strip, &args->product, chunk);
    attention->begin = chunk * STRIP_K_MAX;
    for (uint32_t piece = 0; piece < strip->pieces; piece++) {
        const uint32_t begin = attention->begin + piece * CONTRACTION_PIECE;

        /* Of a strip's keys the first one is seen by most queries. */
        if (columns ? attention_limit(args, begin, CONTRACTION_PIECE) <= first : limit <= begin) {
            strip->seen &= ~(1u << piece);
        }
    }
}

/* The longest strips come first, those of all batches together: of queries the last ones. */
static RULE INLINED void attention_init(struct attention *attention,
                                        const struct attention_args *args, bool columns)
{
    const uint32_t rows = args->strip_rows;
    const uint64_t batches = args->scores.batches;
    const uint32_t turn = (uint32_t)(block_index() / batches);
    const uint32_t index = columns ? turn : args->strips - 1 - turn;

    attention->args = args;
    attention->warp = thread_index() / CUDA_WARP;
    strip_init(&attention->strip, rows, (uint64_t)index * rows, block_index() % batches,
               &args->product);
    attention_chunk(attention, 0, columns);
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

/* The scores (or dp) of a chunk of queries' rows. Columns that no row sees are left. */
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
    for (uint32_t column = attention->warp / halves * STRIP_TILE_COLUMNS;
         column < STRIP_K_MAX && attention->begin + column < limit;
         column += STRIP_WARPS / halves * STRIP_TILE_COLUMNS) {
        float made[FACED_COLUMNS][2];

        faced_tile(made, &faced, attention->begin + column, kind);
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

/* What a warp takes of a row: the columns of the chunk that the row sees. */
static RULE INLINED struct held attention_held(const struct attention *attention, uint32_t row)
{
    const struct attention_args *args = attention->args;
    const uint32_t m = (uint32_t)attention->strip.first + row;
    const uint32_t visible = attention_visible(args, m);
    const uint32_t left = visible < attention->begin ? 0 : visible - attention->begin;
    struct held held;

    held.args = &args->rows;
    held.row = attention->strip.batch * args->scores.m + m;
    held.first = held.row * args->rows.columns;
    held.visible = left < STRIP_K_MAX ? left : STRIP_K_MAX;
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

#define ATTENTION_TURNS (STRIP_ROWS / STRIP_WARPS) /* rows of a warp */

#define ATTENTION_EACH(attention, turn, row)                                                       \
    UNROLL                                                                                         \
    for (uint32_t turn = 0, row = (attention)->warp; turn < ATTENTION_TURNS;                       \
         turn++, row += STRIP_WARPS)                                                               \
        if (row < (attention)->strip.rows)

/* p of a chunk in registers, row by row, and dp in the strip. Every thread comes here. */
static RULE INLINED void attention_slopes(const struct attention *attention,
                                          float p[ATTENTION_TURNS][HELD_SLOTS], enum limb_kind kind)
{
    const struct attention_args *args = attention->args;

    if (args->scores.a.planes != NULL) {
        attention_scores(attention, &args->scores, kind);
    }
    barrier();
    ATTENTION_EACH(attention, turn, row)
    {
        attention_again(attention, row, p[turn]);
    }
    barrier(); /* nobody reads the scores any more: dp takes their place */
    attention_scores(attention, &args->slopes, kind);
    barrier();
}

/* ---- rows of one chunk --------------------------------------------------------------- */

/* p of scores, or ds of p (in x) and dp: written where others want it, and left in the strip. */
static RULE INLINED void attention_row(const struct attention *attention, uint32_t row, float *x)
{
    const struct rows_args *args = &attention->args->rows;
    const struct strip *strip = &attention->strip;
    const struct held held = attention_held(attention, row);
    const bool forward = args->kind == OP_SOFTMAX;
    float *at = strip->x + row * strip->pitch;

    if (held.visible == 0) { /* behind the last query */
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

static RULE INLINED void attend_rows(const struct attention *attention, enum limb_kind kind)
{
    const struct attention_args *args = attention->args;
    float x[ATTENTION_TURNS][HELD_SLOTS] = {};

    if (args->slopes.a.planes != NULL) {
        attention_slopes(attention, x, kind);
    } else {
        attention_scores(attention, &args->scores, kind);
        barrier();
    }
    ATTENTION_EACH(attention, turn, row)
    {
        attention_row(attention, row, x[turn]);
    }
    if (args->product.contract.out != NULL) {
        strip_contract(&attention->strip, &args->product, kind);
    }
}

/* ---- p and ds where the scores are --------------------------------------------------- */

enum { NUMBER_MAXIMUM, NUMBER_SUM, NUMBER_DOT };

static_assert(NUMBER_DOT + 1 == STRIP_ROW_NUMBERS, "a row has so many numbers");

/* What is known of a query. */
struct query {
    uint32_t visible;
    float maximum;
    float inverse;
    float dot;
};

/* Of memory. */
static RULE INLINED struct query query_of(const struct attention *attention, uint32_t m)
{
    const struct attention_args *args = attention->args;
    const uint64_t queries = args->scores.m;
    const uint64_t at = attention->strip.batch * queries + (m < queries ? m : 0);
    struct query query;

    query.visible = attention_visible(args, m);
    query.maximum = args->maximum[at];
    query.inverse = 1.0f / args->sum[at];
    query.dot = args->dot != NULL ? args->dot[at] : 0.0f;
    return query;
}

/* Of the strip's own rows. */
static RULE INLINED struct query query_of_row(const struct attention *attention, uint32_t row)
{
    const float *numbers = attention->strip.numbers + row;
    struct query query;

    query.visible = attention_visible(attention->args, (uint32_t)attention->strip.first + row);
    query.maximum = numbers[NUMBER_MAXIMUM * STRIP_ROWS];
    query.inverse = 1.0f / numbers[NUMBER_SUM * STRIP_ROWS];
    query.dot = numbers[NUMBER_DOT * STRIP_ROWS];
    return query;
}

/* p or, where there is dp, ds of 16 rows by 16 others, in place of their scores. */
static RULE INLINED void tile_make(const struct attention *attention, float made[FACED_COLUMNS][2],
                                   float slopes[FACED_COLUMNS][2], uint32_t row, uint32_t other,
                                   bool columns)
{
    const struct attention_args *args = attention->args;
    const float scale = real_from_bits(args->rows.constant);
    const bool forward = args->slopes.a.planes == NULL;
    struct query queries[2];

    UNROLL
    for (uint32_t i = 0; i < 2 && !columns; i++) {
        queries[i] = query_of_row(attention, row + sum_row(2 * i));
    }
    UNROLL
    for (uint32_t to = 0; to < FACED_COLUMNS; to++) {
        const uint32_t at = other + faced_column(to);

        if (columns) {
            queries[0] = queries[1] = query_of(attention, at);
        }
        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            const struct query *query = &queries[i];
            const uint32_t own = (uint32_t)attention->strip.first + row + sum_row(2 * i);
            float x = 0.0f;

            if ((columns ? own : at) < query->visible) {
                x = attention_share(&args->rows, made[to][i], query->maximum, query->inverse);
                x = forward ? x : real_stored((x * (slopes[to][i] - query->dot)) * scale);
            }
            made[to][i] = x;
        }
    }
}

/* 16 rows by 16 others, from the chunk's `column` on; zeros where no key is seen. */
static RULE INLINED void attention_tile(const struct attention *attention, uint32_t row,
                                        uint32_t column, bool columns, enum limb_kind kind)
{
    const struct attention_args *args = attention->args;
    const uint32_t own = (uint32_t)attention->strip.first + row;
    const uint32_t other = attention->begin + column;
    const uint32_t query = columns ? other : own;
    float made[FACED_COLUMNS][2] = {};
    float slopes[FACED_COLUMNS][2] = {};

    if (query < args->scores.m && attention_limit(args, query, 16) > (columns ? own : other)) {
        struct faced faced;

        faced_init(&faced, attention, &args->scores, own, columns);
        faced_tile(made, &faced, other, kind);
        if (args->slopes.a.planes != NULL) {
            faced_init(&faced, attention, &args->slopes, own, columns);
            faced_tile(slopes, &faced, other, kind);
        }
        tile_make(attention, made, slopes, row, other, columns);
    }
    faced_store(&attention->strip, row, column, made);
}

/* A chunk, and its peaks. False: nothing of it is seen. */
static RULE INLINED bool attention_make(struct attention *attention, uint32_t chunk, bool columns,
                                        enum limb_kind kind)
{
    struct strip *strip = &attention->strip;
    const uint32_t halves = strip->rows / 16;

    attention_chunk(attention, chunk, columns);
    if (strip->seen == 0) {
        return false;
    }
    for (uint32_t at = attention->warp;
         at < strip->pieces * (CONTRACTION_PIECE / STRIP_TILE_COLUMNS) * halves;
         at += STRIP_WARPS) {
        const uint32_t column = at / halves * STRIP_TILE_COLUMNS;

        if (piece_seen(strip, column / CONTRACTION_PIECE)) {
            attention_tile(attention, at % halves * 16, column, columns, kind);
        }
    }
    strip_peaks(strip);
    return true;
}

static RULE INLINED void attend_chunks(struct attention *attention, bool columns,
                                       enum limb_kind kind)
{
    const struct strip_product *product = &attention->args->product;
    struct strip *strip = &attention->strip;
    int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};

    strip_begin(strip);
    for (uint32_t chunk = 0; strip->chunks > 1 && chunk < strip->chunks; chunk++) {
        if (attention_make(attention, chunk, columns, kind)) {
            strip_top(strip);
        }
    }
    for (uint32_t chunk = 0; chunk < strip->chunks; chunk++) {
        if (attention_make(attention, chunk, columns, kind)) {
            strip_add(strip, product, wide, kind);
        }
    }
    strip_end(strip, product, wide);
}

static RULE INLINED void attend_strip(const struct attention_args *args, enum limb_kind kind)
{
    struct attention attention;

    attention_init(&attention, args, false);
    attend_rows(&attention, kind);
}

static RULE INLINED void attend_columns(const struct attention_args *args, enum limb_kind kind)
{
    struct attention attention;

    attention_init(&attention, args, true);
    attend_chunks(&attention, true, kind);
}

/* ---- the kernels ---------------------------------------------------------------------- */

/* grid: strips of all batches; block: STRIP_THREADS. Rows of one chunk, of 14 bits. */
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
KERNEL_LIMITED(kernel_attend_keys_narrow, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_FOUR);
}

KERNEL_LIMITED(kernel_attend_keys_wide, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_WIDE);
}

KERNEL_LIMITED(kernel_attend_keys_halves_narrow, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_HALVES_SHORT);
}

KERNEL_LIMITED(kernel_attend_keys_halves_wide, struct attention_args, STRIP_THREADS)
{
    attend_columns(&args, LIMBS_HALVES_WIDE);
}
