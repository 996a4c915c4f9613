/*
 * strip_body.h - a strip of 16 or 32 rows of numbers that lies in shared memory, quantized there
 * and multiplied by packed limbs of another operand: what a block of threads has just made or
 * gathered needs no limbs in memory.
 *
 * To use it, with STRIP_THREADS threads and STRIP_SHARED(rows, K) bytes of dynamic shared memory:
 *
 *   strip_init(&strip, rows, first, batch, &product)  every thread, with the same arguments;
 *   strip.seen = a bit for each piece of 128 elements of k that is looked at. All others count as
 *     128 zeros, which add nothing to any sum, but do to the exponents: strip.x is not read there;
 *   strip.x[row * strip.pitch + k] = the numbers of all rows of the strip, with +0 from K on to the
 *     end of K's last piece. What rows hold that the operand has no more (product rows from
 *     first + row on) changes nothing, but something must lie there;
 *   strip_peaks(&strip)  or instead strip.peaks[row * STRIP_PIECES + piece] = the largest magnitude
 *     (magnitude_of) of each piece that is seen, by the thread that has just had the numbers;
 *   strip_contract(&strip, &product, kind)  writes the results.
 *
 * Rows of more than STRIP_K_MAX elements are made in chunks of so many, each twice: first, after
 * strip_begin(), for the largest magnitude of each row, and then for the sums:
 *
 *   strip_chunk(&strip, &product, chunk)  every thread, and then strip.seen, strip.x, strip_peaks;
 *   strip_top(&strip)                     the first time; or
 *   strip_add(&strip, &product, wide, kind)  the second; wide begins with zeros, and in the end
 *   strip_end(&strip, &product, wide)     writes the results.
 *
 * Of these, strip_peaks, strip_contract, strip_add and strip_end begin and end with a barrier:
 * what was written before them is seen, and when they return strip.x (now full of sums) may be
 * written again. They do all that quantize_body.h does, by the same rules, for blocks of one piece
 * or of the whole row; and what contract_body.h does, for 14 bits (LIMBS_FOUR,
 * LIMBS_HALVES_SHORT), 15 and 16 bits (LIMBS_WIDE, LIMBS_HALVES_WIDE), another operand of up to
 * STRIP_COLUMNS rows in a batch, and no causal mask over the results. product.contract is what a
 * contraction of both operands is given, but for the limbs of the strip's.
 *
 * Numbers become limbs where they lie: a lane has eight neighbours of a row, and leaves their limbs
 * in four of the eight words. They are fragments of A then. A step's 32 elements of k may be handed
 * to the tensor cores in any order, so long as both operands have the same: here lane l has
 * elements 8 (l % 4) to 8 (l % 4) + 7, 8 bytes of a line of B, read as they lie in memory.
 *
 * A warp takes 16 rows by 16 columns of results, and where warps are left, some of the pieces; the
 * 64-bit sums of those meet in shared memory, and then every thread finishes some results.
 */

struct strip {
    float *x;        /* (rows, pitch), in shared memory as all of it; limbs, then sums */
    uint32_t *peaks; /* (STRIP_ROWS, STRIP_PIECES): magnitudes, then the blocks' exponents */
    int32_t *lowest; /* (STRIP_ROWS) */
    uint32_t *tops;  /* (STRIP_ROWS): magnitudes of rows, where there are several chunks */
    float *numbers;  /* (STRIP_ROW_NUMBERS, STRIP_ROWS): for attention_body.h */
    uint8_t *shifts; /* (STRIP_PIECES, STRIP_ROWS) */
    uint8_t *others; /* (STRIP_PIECES, STRIP_COLUMNS): shifts of the other operand */
    uint64_t batch;  /* of the product */
    uint64_t first;  /* row of its batch */
    uint32_t rows;   /* 16 or 32 */
    uint32_t pitch;
    uint32_t chunks;
    uint32_t begin; /* of the chunk: a piece */
    uint32_t pieces;
    uint32_t seen;
};

static RULE INLINED void strip_chunk(struct strip *strip, const struct strip_product *product,
                                     uint32_t chunk)
{
    const uint32_t all =
        (uint32_t)((product->contract.k + CONTRACTION_PIECE - 1) / CONTRACTION_PIECE);
    const uint32_t left = all - chunk * STRIP_PIECES;

    strip->begin = chunk * STRIP_PIECES;
    strip->pieces = left < STRIP_PIECES ? left : STRIP_PIECES;
    strip->seen = (1u << strip->pieces) - 1;
}

static RULE INLINED void strip_init(struct strip *strip, uint32_t rows, uint64_t first,
                                    uint64_t batch, const struct strip_product *product)
{
    uint8_t *control = dynamic_shared() + STRIP_AREA(rows, product->contract.k);

    strip->x = (float *)dynamic_shared();
    strip->peaks = (uint32_t *)control;
    strip->lowest = (int32_t *)(control + STRIP_ROWS * STRIP_PIECES * 4);
    strip->tops = (uint32_t *)strip->lowest + STRIP_ROWS;
    strip->numbers = (float *)strip->tops + STRIP_ROWS;
    strip->shifts = (uint8_t *)(strip->numbers + STRIP_ROW_NUMBERS * STRIP_ROWS);
    strip->others = strip->shifts + STRIP_ROWS * STRIP_PIECES;
    strip->batch = batch;
    strip->first = first;
    strip->rows = rows;
    strip->pitch = STRIP_PITCH(product->contract.k);
    strip->chunks = (uint32_t)((product->contract.k + STRIP_K_MAX - 1) / STRIP_K_MAX);
    strip_chunk(strip, product, 0);
}

static RULE INLINED bool piece_seen(const struct strip *strip, uint32_t piece)
{
    return strip->seen >> piece & 1;
}

/* ---- exponents --------------------------------------------------------------------- */

/* Eight rows and a piece to a warp; a lane has every eighth quarter of a step, as strip_limbs. */
static RULE inline void strip_peaks(struct strip *strip)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint32_t groups = strip->rows / 8;

    barrier();
    for (uint32_t unit = thread_index() / CUDA_WARP; unit < groups * strip->pieces;
         unit += STRIP_WARPS) {
        const uint32_t piece = unit / groups;
        const uint32_t row = unit % groups * 8 + lane / 4;
        const float *x = strip->x + row * strip->pitch + piece * CONTRACTION_PIECE + lane % 4 * 8;
        uint32_t largest = 0;

        if (!piece_seen(strip, piece)) {
            continue;
        }
        for (uint32_t step = 0; step < CONTRACTION_PIECE; step += PACKED_STEP) {
            UNROLL
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t magnitude = magnitude_of(x[step + i]);

                largest = magnitude > largest ? magnitude : largest;
            }
        }
        for (uint32_t d = 1; d <= 2; d *= 2) {
            const uint32_t other = shuffle_xor(largest, d);

            largest = other > largest ? other : largest;
        }
        if (lane % 4 == 0) {
            strip->peaks[row * STRIP_PIECES + piece] = largest;
        }
    }
    barrier();
}

/* The largest of the eight lanes that share a row. */
static RULE INLINED int32_t row_maximum(int32_t value)
{
    UNROLL
    for (uint32_t d = 1; d < STRIP_PIECES; d *= 2) {
        const int32_t other = (int32_t)shuffle_xor((uint32_t)value, d);

        value = other > value ? other : value;
    }
    return value;
}

static_assert(STRIP_ROWS * STRIP_PIECES <= STRIP_THREADS, "a thread has a piece of a row");

/* Before the first chunk: of which there may be none that is seen. */
static RULE INLINED void strip_begin(const struct strip *strip)
{
    if (thread_index() < STRIP_ROWS) {
        strip->tops[thread_index()] = 0;
        strip->lowest[thread_index()] = 0;
    }
}

/* The rows' largest magnitudes so far, with those of this chunk: a row to a thread. */
static RULE INLINED void strip_top(const struct strip *strip)
{
    const uint32_t row = thread_index();

    for (uint32_t piece = 0; piece < strip->pieces && row < strip->rows; piece++) {
        const uint32_t peak = strip->peaks[row * STRIP_PIECES + piece];

        if (piece_seen(strip, piece) && peak > strip->tops[row]) {
            strip->tops[row] = peak;
        }
    }
}

/*
 * Exponents in place of the peaks, shifts and lowest: as row_exponents() of quantize_body.h, but
 * that shifts count from the window below the row's largest, whether or not a block is as small: a
 * chunk does not know those of others. The sums are as many times larger, which their bounds allow.
 */
static RULE INLINED void strip_exponents(const struct strip *strip,
                                         const struct strip_product *product)
{
    const uint32_t thread = thread_index();
    const uint32_t row = thread / STRIP_PIECES;
    const uint32_t piece = thread % STRIP_PIECES;
    const bool there = piece < strip->pieces;
    int32_t own = EXPONENT_ZERO;

    if (row >= strip->rows) {
        return; /* whole warps */
    }
    if (there && piece_seen(strip, piece)) {
        own = exponent_of_bits(strip->peaks[thread]);
    }
    const int32_t top = strip->chunks == 1 ? row_maximum(own) : exponent_of_bits(strip->tops[row]);
    const int32_t lowest = product->contract.blocks == 1 ? top : top - product->window;
    const bool poison = top == EXPONENT_POISON;

    own = own > lowest ? own : lowest;
    strip->peaks[thread] = (uint32_t)own;
    strip->shifts[piece * STRIP_ROWS + row] = poison || !there ? 0 : (uint8_t)(own - lowest);
    if (piece == 0) {
        strip->lowest[row] = poison ? PACKED_POISON : lowest;
    }
}

/* The other operand's shifts; 0 for columns that it does not have. */
static RULE INLINED void strip_others_shifts(const struct strip *strip,
                                             const struct strip_product *product)
{
    const struct packed_operand *other =
        product->is_b ? &product->contract.a : &product->contract.b;
    const uint64_t others = product->is_b ? product->contract.m : product->contract.n;

    for (uint32_t at = thread_index(); at < strip->pieces * STRIP_COLUMNS; at += STRIP_THREADS) {
        const uint32_t block =
            product->contract.blocks == 1 ? 0 : strip->begin + at / STRIP_COLUMNS;
        const uint32_t column = at % STRIP_COLUMNS;

        strip->others[at] =
            column < others
                ? other->shifts[block * other->shift_pitch + strip->batch * others + column]
                : 0;
    }
}

/* ---- limbs --------------------------------------------------------------------------- */

/*
 * x * first * rest + whole is a whole number, rounded once and to even: the first product is exact
 * but far below one half (quantized_number() of quantize_body.h), and floats from 2^23 to 2^24 have
 * ones in their last place. whole = 1.5 * 2^23 + what the limbs begin to count from, so that the
 * low bits of the sum are q + 64 (14 bits), or q.
 */
#define STRIP_WHOLE 12582912.0f

struct strip_scale {
    float first;
    float rest;
    float whole;
    float most;
    float least;
};

static RULE INLINED struct strip_scale strip_scale_of(int exponent, int bits, enum limb_kind kind)
{
    const int shift = bits - 1 - exponent;
    const int first = shift > 127 ? 127 : shift;
    const float limit = (float)((1 << (bits - 1)) - 1);
    struct strip_scale scale;

    scale.first = exact_power(first);
    scale.rest = exact_power(shift - first);
    scale.whole = STRIP_WHOLE + (limbs_are_wide(kind) ? 0.0f : 64.0f);
    scale.most = scale.whole + limit;
    scale.least = scale.whole - limit;
    return scale;
}

/* In poison rows it is any number. */
static RULE INLINED uint32_t strip_integer(float x, const struct strip_scale *scale)
{
    float sum = fmaf(x * scale->first, scale->rest, scale->whole);
    uint32_t bits;

    sum = sum > scale->most ? scale->most : sum;
    sum = sum < scale->least ? scale->least : sum;
    memcpy(&bits, &sum, sizeof(bits));
    return bits;
}

/* The bytes of four integers: high, then low, as packed_split() has them. */
static RULE INLINED void strip_split(uint32_t *high, uint32_t *low, const float *x,
                                     const struct strip_scale *scale, enum limb_kind kind)
{
    const uint32_t even = (strip_integer(x[0], scale) & 0xffff) | strip_integer(x[2], scale) << 16;
    const uint32_t odd = (strip_integer(x[1], scale) & 0xffff) | strip_integer(x[3], scale) << 16;

    if (!limbs_are_wide(kind)) {
        /* Of q + 64, bits 7 to 14 are h; l + 64 is what is left: seven bits, then a sign of six. */
        const uint32_t left = (even & UINT32_C(0x007f007f)) | (odd << 8 & UINT32_C(0x7f007f00));
        const uint32_t six = left ^ UINT32_C(0x40404040);

        *high = (even >> 7 & UINT32_C(0x00ff00ff)) | (odd << 1 & UINT32_C(0xff00ff00));
        *low = six | (six & UINT32_C(0x40404040)) << 1;
    } else {
        *high = (even >> 8 & UINT32_C(0x00ff00ff)) | (odd & UINT32_C(0xff00ff00));
        *low = (even & UINT32_C(0x00ff00ff)) | (odd << 8 & UINT32_C(0xff00ff00));
    }
}

/* Eight rows and a piece to a warp. No two lanes touch the same words. */
static RULE INLINED void strip_limbs(const struct strip *strip, const struct strip_product *product,
                                     enum limb_kind kind)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint32_t groups = strip->rows / 8;

    for (uint32_t unit = thread_index() / CUDA_WARP; unit < groups * strip->pieces;
         unit += STRIP_WARPS) {
        const uint32_t piece = unit / groups;
        const uint32_t row = unit % groups * 8 + lane / 4;
        float *x = strip->x + row * strip->pitch + piece * CONTRACTION_PIECE + lane % 4 * 8;

        if (!piece_seen(strip, piece)) {
            continue;
        }
        const struct strip_scale scale = strip_scale_of(
            (int32_t)strip->peaks[row * STRIP_PIECES + piece], product->contract.bits, kind);

        UNROLL
        for (uint32_t step = 0; step < CONTRACTION_PIECE; step += PACKED_STEP) {
            uint32_t words[4];
            float own[8];

            UNROLL
            for (uint32_t i = 0; i < 8; i++) {
                own[i] = x[step + i];
            }
            strip_split(&words[0], &words[2], own, &scale, kind);
            strip_split(&words[1], &words[3], own + 4, &scale, kind);
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                memcpy(&x[step + i], &words[i], sizeof(words[i]));
            }
        }
    }
}

/* ---- products ---------------------------------------------------------------------- */

/* Few registers for each thread, so that there can be many threads. */
#define STRIP_FRAGMENTS    2 /* of 8 columns */
#define STRIP_TILE_ROWS    16
#define STRIP_TILE_COLUMNS (8 * STRIP_FRAGMENTS)

/* The tile of a warp, and its share of the pieces. */
struct strip_share {
    uint32_t row;    /* the first of the strip */
    uint32_t column; /* and of the other operand, in its batch */
    uint32_t part;   /* of parts that share the pieces */
    uint32_t parts;
    bool there;
};

static RULE INLINED uint32_t strip_others(const struct strip_product *product)
{
    return (uint32_t)(product->is_b ? product->contract.m : product->contract.n);
}

static RULE INLINED uint32_t strip_tiles(const struct strip_product *product)
{
    return (strip_others(product) + STRIP_TILE_COLUMNS - 1) / STRIP_TILE_COLUMNS;
}

/* Sums that lie in a row of the strip's area. */
static RULE INLINED uint32_t strip_pitch_of_sums(const struct strip_product *product)
{
    return strip_tiles(product) * STRIP_TILE_COLUMNS + 8; /* two rows lie in other banks */
}

static RULE INLINED struct strip_share strip_share_of(const struct strip *strip,
                                                      const struct strip_product *product)
{
    const uint32_t warp = thread_index() / CUDA_WARP;
    const uint32_t rows = strip->rows / STRIP_TILE_ROWS;
    const uint32_t columns = strip_tiles(product);
    struct strip_share share;

    const uint64_t room = STRIP_AREA(strip->rows, product->contract.k) /
                          (8 * strip->rows * strip_pitch_of_sums(product));

    share.parts = STRIP_WARPS / (rows * columns);
    share.parts = share.parts < room ? share.parts : (uint32_t)room;
    share.row = warp % rows * STRIP_TILE_ROWS;
    share.column = warp / rows % columns * STRIP_TILE_COLUMNS;
    share.part = warp / (rows * columns);
    share.there = share.part < share.parts;
    return share;
}

/* Where a lane reads the limbs of its columns, and how its 8 bytes of a step are exchanged. */
struct strip_reader {
    const uint8_t *from[STRIP_FRAGMENTS];
    uint32_t swizzles[STRIP_FRAGMENTS];
    uint32_t in_line; /* the mask of a place in a line */
};

/* Rows from `first` on, of `rows` of a batch that begins at `batch_row`. */
static RULE INLINED void strip_reader_init(struct strip_reader *reader,
                                           const struct packed_operand *operand, uint64_t batch_row,
                                           uint64_t rows, uint64_t first, uint32_t line_log)
{
    UNROLL
    for (uint32_t j = 0; j < STRIP_FRAGMENTS; j++) {
        const uint64_t own = first + j * 8 + thread_index() % CUDA_WARP / 4;
        const uint64_t row = batch_row + (own < rows ? own : 0);

        reader->from[j] = operand->planes + (row << line_log);
        reader->swizzles[j] = packed_swizzle(row, 0, line_log);
    }
    reader->in_line = (1u << line_log) - 1;
}

/* A step's words of such rows. */
static RULE INLINED void strip_load_other(struct fragments *fragments,
                                          const struct strip_reader *reader, uint64_t line,
                                          uint64_t plane_size, uint32_t step)
{
    const uint32_t k = (step + thread_index() % 4 * 8) & reader->in_line;

    UNROLL
    for (uint32_t plane = 0; plane < 2; plane++) {
        UNROLL
        for (uint32_t j = 0; j < STRIP_FRAGMENTS; j++) {
            load_pair(fragments->b[plane][j], reader->from[j] + line + plane * plane_size +
                                                  (k / 16 ^ reader->swizzles[j]) * 16 + k % 16);
        }
    }
}

/* A step's fragments. Behind the end of a line of 64, the strip holds zeros, and any limbs do. */
static RULE INLINED void strip_load(struct fragments *fragments, const struct strip_reader *reader,
                                    const float *x, uint64_t line, uint64_t plane_size,
                                    uint32_t pitch, uint32_t step)
{
    UNROLL
    for (uint32_t plane = 0; plane < 2; plane++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            memcpy(&fragments->a[plane][0][i], x + i % 2 * 8 * pitch + step + plane * 2 + i / 2,
                   sizeof(uint32_t));
        }
    }
    strip_load_other(fragments, reader, line, plane_size, step);
}

/* A warp's sums over its pieces. */
static RULE INLINED void
strip_multiply(int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
               const struct strip *strip, const struct strip_product *product,
               const struct strip_share *share, enum limb_kind kind)
{
    const struct packed_operand *other =
        product->is_b ? &product->contract.a : &product->contract.b;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const float *x = strip->x + (share->row + lane / 4) * strip->pitch + lane % 4 * 8;
    int32_t sums[LIMB_SUMS][FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};
    struct strip_reader reader;
    uint32_t turn = 0;

    sums_begin(sums, kind);
    strip_reader_init(&reader, other, strip->batch * strip_others(product), strip_others(product),
                      share->column, product->contract.line_log);
    for (uint32_t piece = 0; piece < strip->pieces; piece++) {
        if (!piece_seen(strip, piece)) {
            continue;
        }
        const bool own = turn == share->part;

        turn = turn + 1 == share->parts ? 0 : turn + 1;
        if (!own) {
            continue;
        }
        UNROLL
        for (uint32_t step = 0; step < CONTRACTION_PIECE; step += PACKED_STEP) {
            struct fragments fragments;

            strip_load(&fragments, &reader, x + piece * CONTRACTION_PIECE,
                       (strip->begin + piece) * other->strip_size, other->plane_size, strip->pitch,
                       step);
            fragments_multiply(sums, &fragments, 1, STRIP_FRAGMENTS, kind);
        }
        sums_widen(wide, sums, strip->shifts + piece * STRIP_ROWS + share->row,
                   strip->others + piece * STRIP_COLUMNS + share->column, 1, STRIP_FRAGMENTS, kind);
    }
}

/* ---- results -------------------------------------------------------------------------- */

/* Where the sums of a part begin, in place of the numbers, and how many lie in a row. */
static RULE INLINED int64_t *strip_sums(const struct strip *strip, uint32_t columns, uint32_t part)
{
    return (int64_t *)strip->x + (uint64_t)part * strip->rows * columns;
}

static RULE INLINED void strip_gather(const struct strip *strip, const struct strip_share *share,
                                      uint32_t columns,
                                      int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS])
{
    int64_t *sums = strip_sums(strip, columns, share->part);

    UNROLL
    for (uint32_t j = 0; j < STRIP_FRAGMENTS; j++) {
        UNROLL
        for (uint32_t c = 0; c < FRAGMENT_SUMS; c++) {
            sums[(share->row + sum_row(c)) * columns + share->column + j * 8 + sum_column(c)] =
                wide[0][j][c];
        }
    }
}

/* One result: `own` row of the strip, `other` of the other operand. */
static RULE INLINED void strip_write(const struct strip *strip, const struct strip_product *product,
                                     uint32_t own, uint32_t other, int64_t sum)
{
    const struct contract_args *args = &product->contract;
    const struct packed_operand *packed = product->is_b ? &args->a : &args->b;
    const uint64_t in_batch = strip->first + own;
    const uint64_t m = product->is_b ? other : in_batch;
    const uint64_t n = product->is_b ? in_batch : other;
    const struct result_line row = {place_of_row(args, strip->batch, m), 1, strip->lowest[own]};
    const struct result_line column = {
        place_of_column(args, n), 0, packed->lowest[strip->batch * strip_others(product) + other]};

    write_result(args, &row, &column, sum);
}

static RULE INLINED void strip_finish(const struct strip *strip,
                                      const struct strip_product *product, uint32_t columns,
                                      uint32_t parts)
{
    const uint64_t rows = product->is_b ? product->contract.n : product->contract.m;
    const uint32_t others = strip_others(product);

    for (uint32_t at = thread_index(); at < strip->rows * others; at += STRIP_THREADS) {
        const uint32_t own = at / others;
        const uint32_t other = at % others;
        uint64_t sum = 0;

        if (strip->first + own >= rows) {
            break;
        }
        for (uint32_t part = 0; part < parts; part++) {
            sum += (uint64_t)strip_sums(strip, columns, part)[own * columns + other];
        }
        strip_write(strip, product, own, other, (int64_t)sum);
    }
}

/* A chunk's part of the sums. */
static RULE INLINED void strip_add(const struct strip *strip, const struct strip_product *product,
                                   int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS],
                                   enum limb_kind kind)
{
    const struct strip_share share = strip_share_of(strip, product);

    barrier();
    strip_exponents(strip, product);
    strip_others_shifts(strip, product);
    barrier();
    strip_limbs(strip, product, kind);
    barrier();
    if (share.there) {
        strip_multiply(wide, strip, product, &share, kind);
    }
    barrier(); /* nobody reads the limbs any more */
}

/* Sums take the numbers' place, and become results. */
static RULE INLINED void strip_end(const struct strip *strip, const struct strip_product *product,
                                   int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS])
{
    const struct strip_share share = strip_share_of(strip, product);
    const uint32_t columns = strip_pitch_of_sums(product);

    barrier();
    if (share.there) {
        strip_gather(strip, &share, columns, wide);
    }
    barrier();
    strip_finish(strip, product, columns, share.parts);
    barrier();
}

static RULE INLINED void strip_contract(const struct strip *strip,
                                        const struct strip_product *product, enum limb_kind kind)
{
    int64_t wide[FRAGMENT_ROWS][FRAGMENT_COLUMNS][FRAGMENT_SUMS] = {};

    strip_add(strip, product, wide, kind);
    strip_end(strip, product, wide);
}
